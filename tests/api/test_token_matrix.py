"""The matrix of rights over the live socket (D12, V8, F-J1): every route and method, HEAD too, with every kind of
credential. What each answers comes from one table; the routes come from the server, and one that the table does not
name fails."""
import concurrent.futures
import datetime
import unittest

from harness import wait_until
from token_harness import ROOT_TOKEN, SCOPES, Addresses, TokenTest, bearer, unknown_token

THREADS = 8
NOBODY = "0197f6a2-5c3e-7b11-9d2f-3a4b5c6d7e8f"
NAMES = {"{id}": NOBODY, "{name}": "nothing", "{dependency_id}": NOBODY}

# The scope that a route needs, "in *": of every namespace; "any": a credential; "none": nothing; "own": tasks:read, or tasks:enqueue for what the
# same principal has made.
EXPECTED = {
    "tasks:enqueue": (
        "POST /v1/tasks",
    ),
    "tasks:read": (
        "GET /v1/tasks", "GET /v1/workflows/{id}", "GET /v1/executions", "GET /v1/executions/{id}",
        "GET /v1/executions/{id}/logs", "GET /v1/recovery", "GET /v1/recovery/{id}",
        "GET /v1/recovery/candidates", "POST /v1/recovery/validate", "GET /v1/stream",
    ),
    "tasks:delete": (
        "DELETE /v1/tasks", "DELETE /v1/tasks/{id}",
    ),
    "tasks:control": (
        "POST /v1/tasks:cancel", "POST /v1/tasks:retry", "PATCH /v1/tasks/{id}", "POST /v1/tasks/{id}:cancel",
        "POST /v1/tasks/{id}:retry", "POST /v1/tasks/{id}:pause", "POST /v1/tasks/{id}:resume",
        "POST /v1/tasks/{id}:prioritize", "POST /v1/tasks/{id}:recover", "POST /v1/tasks/{id}:fork",
        "POST /v1/recovery",
    ),
    "own": (
        "GET /v1/tasks/{id}", "GET /v1/tasks/{id}/events", "GET /v1/tasks/{id}/executions",
        "GET /v1/tasks/{id}/checkpoints", "GET /v1/tasks/{id}/logs", "GET /v1/tasks/{id}/result",
        "GET /v1/tasks/{id}/why", "GET /v1/tasks/{id}/wait",
    ),
    "work": (
        "POST /v1/workers", "DELETE /v1/workers/{id}", "POST /v1/workers/{id}:heartbeat",
        "POST /v1/workers/{id}:claim", "POST /v1/workers/{id}:report",
    ),
    "metrics:read": (
        "GET /v1/workers", "GET /v1/workers/{id}", "GET /v1/queues", "GET /v1/queues/{name}", "GET /v1/stats",
        "GET /v1/stats/history", "GET /v1/services", "GET /v1/services/{name}", "GET /v1/inboxes", "GET /v1/brokers",
        "GET /metrics",
    ),
    "queues:write": (
        "PATCH /v1/queues/{name}", "DELETE /v1/queues/{name}", "POST /v1/queues/{name}:pause",
        "POST /v1/queues/{name}:resume",
    ),
    "plans:read": (
        "GET /v1/categories", "GET /v1/categories/{id}", "GET /v1/jobs", "GET /v1/jobs/{id}",
        "GET /v1/jobs/{id}/schedules", "GET /v1/jobs/{id}/dependencies", "GET /v1/jobs/{id}/stats",
        "GET /v1/schedules", "POST /v1/schedules:preview", "GET /v1/schedules/{id}",
        "GET /v1/schedules/{id}/upcoming", "GET /v1/recurring", "POST /v1/recurring:preview",
        "GET /v1/recurring/{id}", "GET /v1/recurring/{id}/upcoming", "GET /v1/forecast",
    ),
    "plans:write": (
        "POST /v1/categories", "PATCH /v1/categories/{id}", "DELETE /v1/categories/{id}", "POST /v1/jobs",
        "PATCH /v1/jobs/{id}", "DELETE /v1/jobs/{id}", "POST /v1/jobs/{id}/schedules",
        "POST /v1/jobs/{id}/dependencies", "DELETE /v1/jobs/{id}/dependencies/{dependency_id}",
        "POST /v1/schedules", "PATCH /v1/schedules/{id}", "DELETE /v1/schedules/{id}",
        "POST /v1/schedules/{id}:pause", "POST /v1/schedules/{id}:resume", "POST /v1/recurring",
        "PATCH /v1/recurring/{id}", "DELETE /v1/recurring/{id}", "POST /v1/recurring/{id}:pause",
        "POST /v1/recurring/{id}:resume",
    ),
    "plans:run": (
        "POST /v1/jobs/{id}:run", "POST /v1/schedules/{id}:run", "POST /v1/recurring/{id}:run",
    ),
    "any": (
        "GET /v1/whoami", "GET /openapi.json", "GET /v1/namespaces", "GET /v1/namespaces/{name}",
    ),
    "audit:read": (
        "GET /v1/audit",
    ),
    "access:write": (
        "POST /v1/tokens", "GET /v1/tokens", "GET /v1/tokens/{id}", "DELETE /v1/tokens/{id}",
        "POST /v1/tokens/{id}:rotate", "GET /v1/keys", "POST /v1/keys:rotate", "POST /v1/keys:destroy",
    ),
    "access:write in *": (
        "POST /v1/namespaces", "PATCH /v1/namespaces/{name}", "DELETE /v1/namespaces/{name}", "GET /v1/keys",
        "POST /v1/keys:rotate", "POST /v1/keys:destroy",
    ),
    "admin in *": (
        "GET /v1/backup", "POST /v1/backup",
    ),
    "none": (
        "GET /healthz", "GET /readyz", "GET /", "GET /assets/{name}", "GET /v1/identity/jwks.json",
        "POST /v1/completions/{id}",
    ),
}

INCLUDES = {"payloads:read": {"tasks:read"}, "admin": set(SCOPES)}
EVERYWHERE = " in *"
WRONG = ("none", "malformed", "unknown", "expired", "revoked")
FOREIGN = ("foreign namespace", "foreign header")
CREDENTIALS = (*WRONG, *SCOPES, "root", *FOREIGN)


def allows(scope, needs):
    return scope == needs or needs in INCLUDES.get(scope, ())


def refusal(needs, credential):
    """401, 403, 404, or None: the request is looked at. Of another namespace nothing is there, and the whole store is
    for those of every namespace."""
    if needs == "none":
        return None
    if credential in WRONG:
        return 401
    if credential == "foreign header":
        return 403
    if credential == "root" or needs == "any":
        return None
    if needs.endswith(EVERYWHERE):
        return None if credential == "admin" else 403
    if credential == "foreign namespace":
        return None
    if needs == "own":
        return 404 if credential == "tasks:enqueue" else None if allows(credential, "tasks:read") else 403
    return None if allows(credential, needs) else 403


class Matrix(TokenTest):
    def credentials(self):
        soon = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=2)
        expired = self.token("admin", expires_at=soon.isoformat())
        revoked = self.make("admin")
        self.root(204, "DELETE", f"/v1/tokens/{revoked['id']}")
        wait_until(lambda: self.request("GET", "/v1/whoami", headers=bearer(expired)).status == 401, what="the end")
        tokens = {"none": None, "malformed": unknown_token()[:-1], "unknown": unknown_token(), "expired": expired,
                  "revoked": revoked["token"], "root": ROOT_TOKEN}
        return tokens | {scope: self.token(scope, namespace="*" if scope == "admin" else "default")
                         for scope in SCOPES}

    def scope_of(self, needs):
        return {"own": "tasks:read", "any": "tasks:read", "none": "tasks:read"}.get(needs, needs.removesuffix(EVERYWHERE))

    def check(self, method, path, needs, credential, headers):
        wanted = refusal(needs, credential)
        body = {} if method in ("POST", "PATCH") else None
        reply = self.alone(method, path, body, headers, self.addresses.next() if credential in WRONG else None)
        where = f"{method} {path} with {credential}: {reply.status} {reply.body[:300]!r}"
        if wanted:
            self.assertEqual(reply.status, wanted, where)
        else:
            self.assertNotIn(reply.status, (401, 403, 500), where)
        if wanted == 401:
            self.assertEqual(reply.headers["WWW-Authenticate"], 'Bearer realm="perdura"', where)
        if wanted == 403 and method != "HEAD":
            message = reply.json["error"]["message"]
            self.assertIn("namespace" if credential in FOREIGN else self.scope_of(needs), message, where)
        return 1

    def test_d12_v8_every_route_answers_every_credential_as_the_table_says(self):
        served = {(method.upper(), path) for path, operations in self.root(200, "GET", "/openapi.json")["paths"].items()
                  for method in operations if method in ("get", "post", "put", "patch", "delete")}
        table = {tuple(route.split(" ")): needs for needs, routes in EXPECTED.items() for route in routes}
        self.assertEqual(set(table), served, "routes without an expectation, or expectations without a route")
        rows = [*table.items(), *((("HEAD", path), needs) for (method, path), needs in table.items() if method == "GET")]
        tokens = self.credentials()
        self.root(201, "POST", "/v1/namespaces", {"name": "elsewhere"})
        foreign, cases = {}, []
        self.addresses = Addresses()
        for (method, path), needs in rows:
            for name, value in NAMES.items():
                path = path.replace(name, value)
            for credential in CREDENTIALS:
                scope = self.scope_of(needs)
                if credential == "foreign namespace" and scope not in foreign:
                    foreign[scope] = self.token(scope, namespace="elsewhere")
                headers = bearer(foreign[scope] if credential == "foreign namespace" else
                                 tokens[scope if credential == "foreign header" and scope != "admin" else
                                        "tasks:read" if credential == "foreign header" else credential])
                if credential == "foreign header":
                    headers["Perdura-Namespace"] = "elsewhere"
                cases.append((method, path, needs, credential, headers))
        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            checked = sum(pool.map(lambda case: self.check(*case), cases))
        self.assertEqual(len(CREDENTIALS), 5 + 14 + 1 + 2)
        self.assertEqual(checked, len(CREDENTIALS) * len(rows))
        self.assertGreater(checked, 3000)


if __name__ == "__main__":
    unittest.main()
