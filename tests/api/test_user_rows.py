"""Rows of users over the live socket (D12, V8, F-J4): a principal with user_id on every route, with ids of its own, of
another user, without an owner and of nothing. A foreign id answers like a missing one, to the byte; what has no owner may
be read and not changed; what concerns the rows of all users is refused."""
import unittest

from token_harness import ROOT_TOKEN, TokenTest, bearer

NOTHING = "0197f6a2-5c3e-7b11-9d2f-3a4b5c6d7e8f"
OWNERS = ("own", "foreign", "ownerless")

# Kind of the object in the path -> routes that show it, and routes that change it (with a body).
READS = {
    "task": ("/v1/tasks/{id}", "/v1/tasks/{id}/events", "/v1/tasks/{id}/executions", "/v1/tasks/{id}/checkpoints",
             "/v1/tasks/{id}/logs", "/v1/tasks/{id}/result", "/v1/tasks/{id}/why", "/v1/tasks/{id}/wait",
             "/v1/workflows/{id}"),
    "execution": ("/v1/executions/{id}", "/v1/executions/{id}/logs"),
    "recovery": ("/v1/recovery/{id}",),
    "job": ("/v1/jobs/{id}", "/v1/jobs/{id}/schedules", "/v1/jobs/{id}/dependencies", "/v1/jobs/{id}/stats"),
    "schedule": ("/v1/schedules/{id}", "/v1/schedules/{id}/upcoming"),
    "recurring": ("/v1/recurring/{id}", "/v1/recurring/{id}/upcoming"),
}
WRITES = {
    "task": (("POST", "/v1/tasks/{id}:pause", {}), ("POST", "/v1/tasks/{id}:resume", {}),
             ("PATCH", "/v1/tasks/{id}", {"note": "hello"}), ("POST", "/v1/tasks/{id}:prioritize", {"priority": 7}),
             ("POST", "/v1/tasks/{id}:fork", {}), ("POST", "/v1/tasks/{id}:cancel", {}),
             ("POST", "/v1/tasks/{id}:retry", {}), ("POST", "/v1/tasks/{id}:recover", {"method": "validate_only"}),
             ("DELETE", "/v1/tasks/{id}", None)),
    "job": (("PATCH", "/v1/jobs/{id}", {"description": "changed"}), ("POST", "/v1/jobs/{id}:run", {}),
            ("POST", "/v1/jobs/{id}/schedules", {"schedule_type": "interval", "interval_seconds": 3600}),
            ("POST", "/v1/jobs/{id}/dependencies", {"depends_on_job_id": "{other}"}),
            ("DELETE", "/v1/jobs/{id}/dependencies/{dependency_id}", None), ("DELETE", "/v1/jobs/{id}", None)),
    "schedule": (("PATCH", "/v1/schedules/{id}", {"jitter_ms": 5}), ("POST", "/v1/schedules/{id}:pause", {}),
                 ("POST", "/v1/schedules/{id}:resume", {}), ("POST", "/v1/schedules/{id}:run", {}),
                 ("DELETE", "/v1/schedules/{id}", None)),
    "recurring": (("PATCH", "/v1/recurring/{id}", {"name": "changed"}), ("POST", "/v1/recurring/{id}:pause", {}),
                  ("POST", "/v1/recurring/{id}:resume", {}), ("POST", "/v1/recurring/{id}:run", {}),
                  ("DELETE", "/v1/recurring/{id}", None)),
}
# An id of the object stands in the body. The last word: what an ownerless one answers.
BODIES = (
    ("task", "POST", "/v1/recovery", {"task_id": "{id}", "method": "validate_only"}, 403),
    ("task", "POST", "/v1/recovery/validate", {"task_id": "{id}"}, 200),
    ("task", "POST", "/v1/tasks", {"type": "after", "depends_on": ["{id}"]}, 201),
    ("job", "POST", "/v1/schedules", {"job_id": "{id}", "schedule_type": "interval", "interval_seconds": 60}, 403),
    ("job", "POST", "/v1/recurring", {"name": "p", "pattern_type": "daily", "pattern_config": {},
                                      "template_job_id": "{id}"}, 403),
)
# Lists: the kind whose ids they may show.
LISTS = {
    "GET /v1/tasks": "task", "GET /v1/executions": "execution", "GET /v1/recovery": "recovery",
    "GET /v1/recovery/candidates": "orphan", "GET /v1/jobs": "job", "GET /v1/schedules": "schedule",
    "GET /v1/recurring": "recurring", "GET /v1/forecast": "job",
}
# What concerns the rows of all users.
ALL_USERS = (
    "POST /v1/workers", "DELETE /v1/workers/{id}", "POST /v1/workers/{id}:heartbeat", "POST /v1/workers/{id}:claim",
    "POST /v1/workers/{id}:report", "GET /v1/workers", "GET /v1/workers/{id}", "GET /v1/queues",
    "GET /v1/queues/{name}", "GET /v1/stats", "GET /v1/stats/history", "GET /v1/services", "GET /metrics",
    "GET /v1/services/{name}", "GET /v1/inboxes", "GET /v1/brokers",
    "PATCH /v1/queues/{name}", "DELETE /v1/queues/{name}", "POST /v1/queues/{name}:pause",
    "POST /v1/queues/{name}:resume", "GET /v1/audit", "GET /v1/backup", "POST /v1/backup", "GET /v1/keys",
    "POST /v1/keys:rotate", "POST /v1/keys:destroy", "POST /v1/categories", "PATCH /v1/categories/{id}",
    "DELETE /v1/categories/{id}", "POST /v1/namespaces", "PATCH /v1/namespaces/{name}", "DELETE /v1/namespaces/{name}",
)
# Looked at by a test of its own below or elsewhere, or without rows of users.
OTHERS = (
    "POST /v1/tasks:cancel", "POST /v1/tasks:retry", "DELETE /v1/tasks", "GET /v1/stream", "POST /v1/jobs",
    "GET /v1/categories", "GET /v1/categories/{id}", "POST /v1/schedules:preview", "POST /v1/recurring:preview",
    "POST /v1/tokens", "GET /v1/tokens", "GET /v1/tokens/{id}", "DELETE /v1/tokens/{id}", "POST /v1/tokens/{id}:rotate",
    "GET /v1/namespaces", "GET /v1/namespaces/{name}", "GET /v1/whoami", "GET /openapi.json", "GET /healthz", "GET /readyz", "GET /", "GET /assets/{name}",
    "POST /v1/completions/{id}", "GET /v1/identity/jwks.json",
)
USERS = {"own": "ada", "foreign": "bob", "ownerless": None}


def put(value, name, text):
    if isinstance(value, dict):
        return {key: put(item, name, text) for key, item in value.items()}
    if isinstance(value, list):
        return [put(item, name, text) for item in value]
    return value.replace(name, text) if isinstance(value, str) else value


class UserRows(TokenTest):
    def setUp(self):
        super().setUp()
        self.ada = self.token("admin", user_id="ada", namespace="*")
        self.rows = {owner: self.make_rows(owner, user) for owner, user in USERS.items()}
        self.rows["missing"] = {kind: NOTHING for kind in self.rows["own"]}
        self.cases = 0

    def make_rows(self, owner, user):
        """One of everything that belongs to this user."""
        task = self.root(201, "POST", "/v1/tasks", {"type": "waits", "queue": "idle", "user_id": user})
        ran, orphan = [self.root(201, "POST", "/v1/tasks", {"type": "runs", "queue": f"of-{owner}", "user_id": user})
                       for _ in range(2)]
        worker = f"worker-{owner}"
        self.root(201, "POST", "/v1/workers", {"id": worker, "queues": [f"of-{owner}"]})
        claimed = self.root(200, "POST", f"/v1/workers/{worker}:claim", {"max": 2})["tasks"]
        self.assertEqual({task["id"] for task in claimed}, {ran["id"], orphan["id"]})
        report = self.root(200, "POST", f"/v1/workers/{worker}:report", [
            {"task_id": task["id"], "lease_token": task["lease_token"], "op": "partial"} for task in claimed])
        self.assertTrue(all(item["ok"] for item in report["items"]), report)
        execution = self.root(200, "GET", f"/v1/tasks/{ran['id']}/executions")["items"][0]
        recovery = self.root(201, "POST", "/v1/recovery", {"task_id": ran["id"], "method": "validate_only"})
        job = self.root(201, "POST", "/v1/jobs", {"name": f"job-{owner}", "task_type": "planned", "created_by": user})
        other = self.root(201, "POST", "/v1/jobs", {"name": f"other-{owner}", "task_type": "planned",
                                                    "created_by": user})
        dependency = self.root(201, "POST", f"/v1/jobs/{job['id']}/dependencies", {"depends_on_job_id": other["id"]})
        schedule = self.root(201, "POST", "/v1/schedules", {"job_id": job["id"], "schedule_type": "interval",
                                                            "interval_seconds": 3600})
        pattern = self.root(201, "POST", "/v1/recurring", {"name": f"p-{owner}", "pattern_type": "daily",
                                                           "pattern_config": {}, "template_job_id": other["id"]})
        return {"task": task["id"], "orphan": orphan["id"], "execution": execution["id"], "recovery": recovery["id"],
                "job": job["id"], "schedule": schedule["id"], "recurring": pattern["id"],
                "dependency": dependency["id"], "other": other["id"]}

    def ask(self, method, path, body, owner, kind):
        """The answer, and its text without the ids that the request named."""
        rows = self.rows[owner]
        path = path + "?timeout_ms=1" if path.endswith("/wait") else path
        names = {"{id}": rows[kind], "{dependency_id}": rows["dependency"], "{other}": self.rows["own"]["other"]}
        for name, text in names.items():
            path, body = path.replace(name, text), put(body, name, text)
        reply = self.request(method, path, body, bearer(self.ada))
        text = reply.body.decode()
        for name, value in names.items():
            text = text.replace(value, name)
        self.cases += 1
        return reply, text, f"{method} {path} of {owner}: {reply.status} {reply.body[:300]!r}"

    def same_as_missing(self, method, path, body, kind):
        foreign, foreign_text, where = self.ask(method, path, body, "foreign", kind)
        missing, missing_text, _ = self.ask(method, path, body, "missing", kind)
        self.assertEqual((foreign.status, foreign_text), (missing.status, missing_text), where)
        self.assertEqual(sorted(foreign.headers.keys()), sorted(missing.headers.keys()), where)
        return foreign.status, where

    def test_d12_v8_foreign_rows_are_not_there_and_ownerless_rows_are_for_reading(self):
        expected = 0
        for kind, routes in READS.items():
            for path in routes:
                self.assertEqual(self.same_as_missing("GET", path, None, kind)[0], 404, path)
                for owner in ("own", "ownerless"):
                    reply, _, where = self.ask("GET", path, None, owner, kind)
                    self.assertIn(reply.status, (200, 204, 404 if path.endswith("result") else 200), where)
                expected += 4
        for kind, method, path, body, ownerless in BODIES:
            self.assertIn(self.same_as_missing(method, path, body, kind)[0], (200, 404, 422), path)
            reply, _, where = self.ask(method, path, body, "ownerless", kind)
            self.assertEqual(reply.status, ownerless, where)
            reply, _, where = self.ask(method, path, body, "own", kind)
            self.assertLess(reply.status, 300, where)
            expected += 4
        for kind, routes in WRITES.items():
            for method, path, body in routes:
                self.assertEqual(self.same_as_missing(method, path, body, kind)[0], 404, path)
                reply, _, where = self.ask(method, path, body, "ownerless", kind)
                self.assertEqual(reply.status, 403, where)
                reply, _, where = self.ask(method, path, body, "own", kind)
                self.assertNotIn(reply.status, (401, 403, 404, 500), where)
                expected += 4
        self.assertEqual(self.cases, expected)
        self.assertEqual(expected, 4 * (20 + 5 + 25))
        for kind in ("task", "job", "schedule", "recurring"):
            self.root(200, "GET", READS[kind][0].replace("{id}", self.rows["foreign"][kind]))
            self.root(200, "GET", READS[kind][0].replace("{id}", self.rows["ownerless"][kind]))

    def ids(self, path):
        text, cursor = "", None
        for _ in range(100):
            reply = self.as_token(self.ada, 200, "GET", path + ("&" if "?" in path else "?") + (f"cursor={cursor or ''}" if "forecast" not in path else ""))
            text += str(reply)
            cursor = reply.get("next_cursor")
            if not cursor:
                return text
        self.fail("the list has no end")

    def test_lists_leave_out_the_rows_of_others(self):
        for route, kind in LISTS.items():
            text = self.ids(route.split(" ")[1] + ("?auto_recovery=any" if route.endswith("candidates") else ""))
            self.assertNotIn(self.rows["foreign"][kind], text, route)
            for owner in ("own", "ownerless"):
                self.assertIn(self.rows[owner][kind], text, route)
        found = self.as_token(self.ada, 200, "GET", "/v1/tasks?user_id=bob")
        self.assertEqual(found["items"], [])
        found = self.as_token(self.ada, 200, "GET", "/v1/tasks?q=waits")
        self.assertEqual({item["user_id"] for item in found["items"]}, {"ada", None})

    def test_every_route_is_looked_at(self):
        table = [f"GET {path}" for routes in READS.values() for path in routes]
        table += [f"{method} {path}" for routes in WRITES.values() for method, path, _ in routes]
        table += [f"{method} {path}" for _, method, path, _, _ in BODIES]
        table += [*LISTS, *ALL_USERS, *OTHERS]
        served = {f"{method.upper()} {path}" for path, operations in
                  self.root(200, "GET", "/openapi.json")["paths"].items()
                  for method in operations if method in ("get", "post", "put", "patch", "delete")}
        self.assertEqual(set(table), served, "routes without a place, or places without a route")
        self.assertEqual(len(table), len(set(table)), "a route has two places")

    def test_what_concerns_all_users_is_refused(self):
        for route in ALL_USERS:
            method, path = route.split(" ")
            path = path.replace("{id}", NOTHING).replace("{name}", "idle")
            body = {"name": "c"} if method in ("POST", "PATCH") else None
            reply = self.request(method, path, body, bearer(self.ada))
            self.assertEqual(reply.status, 403, f"{route}: {reply.body}")
            self.assertIn("ada", reply.json["error"]["message"], route)
        reply = self.request("GET", "/v1/stream?stats=only", headers=bearer(self.ada))
        self.assertEqual(reply.status, 403)

    def test_what_a_user_makes_is_the_users(self):
        task = self.as_token(self.ada, 201, "POST", "/v1/tasks", {"type": "made"})
        self.assertEqual(task["user_id"], "ada")
        self.as_token(self.ada, 201, "POST", "/v1/tasks", {"type": "made", "user_id": "ada"})
        for body in ({"type": "made", "user_id": "bob"}, [{"type": "made"}, {"type": "made", "user_id": "bob"}]):
            self.expect_error(403, "forbidden", "POST", "/v1/tasks", body, bearer(self.ada), "user_id")
        job = self.as_token(self.ada, 201, "POST", "/v1/jobs", {"name": "mine", "task_type": "made"})
        self.assertEqual(job["created_by"], "ada")
        for method, path in (("POST", "/v1/jobs"), ("PATCH", f"/v1/jobs/{job['id']}")):
            self.expect_error(403, "forbidden", method, path, {"name": "x", "task_type": "made", "created_by": "bob"},
                              bearer(self.ada), "created_by")
        self.expect_error(403, "forbidden", "PATCH", f"/v1/jobs/{job['id']}", {"created_by": None}, bearer(self.ada),
                          "created_by")

    def test_the_runs_of_a_job_belong_to_the_user_in_created_by(self):
        for owner, user in USERS.items():
            run = self.root(201, "POST", f"/v1/jobs/{self.rows[owner]['other']}:run", {})
            self.assertEqual(run["user_id"], user)

    def test_a_child_belongs_to_the_user_of_its_parent(self):
        task = self.as_token(self.ada, 201, "POST", "/v1/tasks", {"type": "parent", "queue": "families"})
        self.root(201, "POST", "/v1/workers", {"id": "w", "queues": ["families"]})
        lease = self.root(200, "POST", "/v1/workers/w:claim", {"max": 1})["tasks"][0]["lease_token"]
        result = self.root(200, "POST", "/v1/workers/w:report", [
            {"task_id": task["id"], "lease_token": lease, "op": "spawn", "tasks": [{"type": "child"}]}])
        self.assertTrue(result["items"][0]["ok"], result)
        child = self.as_token(self.ada, 200, "GET", f"/v1/tasks?parent_id={task['id']}")["items"][0]
        self.assertEqual(child["user_id"], "ada")

    def test_many_tasks_at_once_are_ones_own(self):
        for path in ("/v1/tasks:cancel?status=pending&queue=idle&dry_run=true",
                     "/v1/tasks:cancel?status=pending&queue=idle"):
            self.assertEqual(self.as_token(self.ada, 200, "POST", path)["matched"], 1, path)
        counted = self.as_token(self.ada, 200, "POST", "/v1/tasks:cancel?status=pending&user_id=bob")
        self.assertEqual((counted["matched"], counted["refused"]), (0, 0))
        for owner, status in (("own", "cancelled"), ("foreign", "pending"), ("ownerless", "pending")):
            self.assertEqual(self.root(200, "GET", f"/v1/tasks/{self.rows[owner]['task']}")["status"], status)
        self.root(200, "POST", "/v1/tasks:cancel?status=pending&user_id=bob")
        self.assertEqual(self.as_token(self.ada, 200, "DELETE", "/v1/tasks?user_id=bob"), {"removed": 0})
        self.assertGreater(self.as_token(self.ada, 200, "DELETE", "/v1/tasks?user_id=ada")["removed"], 0)
        self.root(200, "GET", f"/v1/tasks/{self.rows['foreign']['task']}")

    def test_a_key_of_another_user_is_taken_and_shows_nothing(self):
        theirs = self.root(201, "POST", "/v1/tasks", {"type": "once", "user_id": "bob", "idempotency_key": "k"})
        reply = self.expect_error(409, "conflict", "POST", "/v1/tasks", {"type": "once", "idempotency_key": "k"},
                                  bearer(self.ada), "idempotency_key")
        self.assertNotIn(theirs["id"], str(reply))
        both = [{"type": "once", "idempotency_key": "mine"}, {"type": "once", "idempotency_key": "k"}]
        self.expect_error(409, "conflict", "POST", "/v1/tasks", both, bearer(self.ada), "idempotency_key")
        self.as_token(self.ada, 201, "POST", "/v1/tasks", both[0])

    def test_tokens_of_a_user_make_tokens_of_that_user(self):
        made = self.make("tasks:read", by=self.ada, user_id="ada")
        self.assertEqual(made["user_id"], "ada")
        self.expect_error(403, "forbidden", "POST", "/v1/tokens", {"name": "x", "scopes": ["tasks:read"]},
                          bearer(self.ada), "user_id")

    def test_the_stream_leaves_out_the_rows_of_others(self):
        connection = self.connection()
        self.addCleanup(connection.close)
        connection.request("GET", "/v1/stream", headers=bearer(self.ada))
        stream, seen = connection.getresponse(), ""
        for owner in ("foreign", "own", "ownerless"):
            self.root(200, "POST", f"/v1/tasks/{self.rows[owner]['task']}:prioritize", {"priority": 9})
        while self.rows["ownerless"]["task"] not in seen:
            line = stream.readline()
            self.assertTrue(line, "the stream ended")
            seen += line.decode()
        self.assertIn(self.rows["own"]["task"], seen)
        self.assertNotIn(self.rows["foreign"]["task"], seen)

    def test_the_servers_own_token_sees_everything(self):
        for owner in OWNERS:
            for kind in ("task", "job"):
                self.as_token(ROOT_TOKEN, 200, "GET", READS[kind][0].replace("{id}", self.rows[owner][kind]))


if __name__ == "__main__":
    unittest.main()
