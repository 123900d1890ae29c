"""API tokens in use (D12, V8, F-J1): the first one, their life, what they are narrowed to, what they may see, and
what waits while one ends."""
import datetime
import http.client
import json
import pathlib
import re
import subprocess
import tempfile
import threading
import time
import unittest

from harness import ApiTest, binary, wait_until
from token_harness import ROOT_TOKEN, TokenTest, bearer, unknown_token

CANARY = "canary-7f3a9c"
WITHIN_S = 5  # of what shall happen within a second: a machine may be busy


def later(seconds):
    return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)).isoformat()


class FirstToken(ApiTest):
    def test_f_j1_the_first_token_must_be_able_to_make_more_and_closes_the_server(self):
        refusal = self.expect_error(422, "invalid", "POST", "/v1/tokens", {"name": "w", "role": "worker"},
                                    field="scopes")
        self.assertIn("access:write or admin", refusal["message"])
        self.assertEqual(self.expect(200, "GET", "/v1/whoami")["kind"], "local")
        made = self.expect(201, "POST", "/v1/tokens", {"name": "ops", "role": "admin"})
        self.assertIn("from now on every request needs a token", made["notice"])
        self.assertEqual(made["namespace"], "*")
        self.expect_error(401, "unauthorized", "GET", "/v1/whoami")
        self.assertEqual(self.request("GET", "/v1/tasks", headers=bearer(made["token"])).status, 200)
        self.assertEqual(self.expect(200, "GET", "/healthz"), {"status": "ok"})

    def test_f_j1_a_restart_knows_the_tokens_and_revoking_the_last_one_opens_the_server(self):
        made = self.expect(201, "POST", "/v1/tokens", {"name": "ops", "scopes": ["access:write"]})
        self.assertNotIn(made["token"].encode(), pathlib.Path(self.server.store).read_bytes())
        self.server.stop()
        self.server.start()
        self.expect_error(401, "unauthorized", "GET", "/v1/whoami")
        self.expect(204, "DELETE", f"/v1/tokens/{made['id']}", headers=bearer(made["token"]))
        self.assertEqual(self.expect(200, "GET", "/v1/whoami")["kind"], "local")


class OfAClient(ApiTest):
    """PERDURA_TOKEN is also where clients have theirs: a server that is started in such a shell does not take it as its
    own."""

    def started_with(self, token):
        self.server.stop()
        self.server.environment["PERDURA_TOKEN"] = token
        self.server.start()
        self.assertIn("access.token_of_a_client", self.server.log())

    def test_f_j1_an_api_token_in_the_servers_environment_stays_what_it_is(self):
        admin = self.expect(201, "POST", "/v1/tokens", {"name": "ops", "role": "admin"})
        viewer = self.expect(201, "POST", "/v1/tokens", {"name": "v", "role": "viewer"}, bearer(admin["token"]))
        self.started_with(viewer["token"])
        self.assertEqual(self.expect(200, "GET", "/v1/whoami", None, bearer(viewer["token"]))["kind"], "token")
        self.expect_error(403, "forbidden", "POST", "/v1/tasks", {"type": "t"}, bearer(viewer["token"]))
        self.expect(204, "DELETE", f"/v1/tokens/{viewer['id']}", None, bearer(admin["token"]))
        self.expect_error(401, "unauthorized", "GET", "/v1/whoami", None, bearer(viewer["token"]))

    def test_f_j1_with_no_token_left_that_server_is_closed_and_not_open(self):
        admin = self.expect(201, "POST", "/v1/tokens", {"name": "ops", "role": "admin"})
        self.started_with(admin["token"])
        self.expect(204, "DELETE", f"/v1/tokens/{admin['id']}", None, bearer(admin["token"]))
        self.expect_error(401, "unauthorized", "GET", "/v1/whoami")
        self.expect_error(401, "unauthorized", "GET", "/v1/whoami", None, bearer(admin["token"]))

    def test_f_j1_a_jwt_is_not_the_servers_own_either(self):
        jwt = "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJhZGEifQ." + "c" * 86
        self.started_with(jwt)
        self.expect_error(401, "unauthorized", "GET", "/v1/whoami", None, bearer(jwt))


class Required(ApiTest):
    environment = {"PERDURA_ACCESS_REQUIRED": "true"}

    def test_f_j1_where_access_is_required_loopback_is_no_right(self):
        self.expect_error(401, "unauthorized", "GET", "/v1/whoami")


class Life(TokenTest):
    def test_f_j1_a_token_is_shown_once_listed_without_its_secret_and_revoked_for_ever(self):
        made = self.make("tasks:read", queues=["a", "b*"], user_id="ada", rate={"count": 50, "per_ms": 1000})
        self.assertRegex(made["token"], r"^pdt_[0-9a-f]{16}_[A-Za-z0-9_-]{43}$")
        self.assertEqual(made["created_by"], "root")
        shown = self.root(200, "GET", f"/v1/tokens/{made['id']}")
        self.assertEqual(shown, {key: value for key, value in made.items() if key != "token"})
        self.assertEqual(self.root(200, "GET", "/v1/tokens")["items"], [shown])
        self.as_token(made["token"], 200, "GET", "/v1/tasks")
        self.root(204, "DELETE", f"/v1/tokens/{made['id']}")
        self.root(204, "DELETE", f"/v1/tokens/{made['id']}")
        refusal = self.as_token(made["token"], 401, "GET", "/v1/tasks")["error"]["message"]
        self.assertIn("was revoked", refusal)
        self.assertEqual(self.root(200, "GET", f"/v1/tokens/{made['id']}")["status"], "revoked")
        self.root(409, "POST", f"/v1/tokens/{made['id']}:rotate", {})

    def test_f_j1_what_a_stranger_sends_says_what_is_wrong_but_not_which_tokens_there_are(self):
        made = self.make("tasks:read")
        other = made["token"][:30] + ("A" if made["token"][30] != "A" else "B") + made["token"][31:]
        answers = [self.as_token(token, 401, "GET", "/v1/tasks") for token in (other, unknown_token())]
        self.assertEqual(answers[0], answers[1])
        self.assertIn("whole token", self.as_token(made["token"][:-1], 401, "GET", "/v1/tasks")["error"]["message"])

    def test_f_j1_an_expired_token_says_so_to_its_holder(self):
        made = self.make("tasks:read", expires_at=later(1.5))
        self.as_token(made["token"], 200, "GET", "/v1/tasks")
        wait_until(lambda: self.request("GET", "/v1/tasks", headers=bearer(made["token"])).status == 401)
        self.assertIn("has expired", self.as_token(made["token"], 401, "GET", "/v1/tasks")["error"]["message"])
        self.assertEqual(self.root(200, "GET", f"/v1/tokens/{made['id']}")["status"], "expired")

    def test_f_j1_a_rotation_gives_a_new_secret_and_lets_the_old_one_live_as_long_as_asked(self):
        made = self.make("tasks:read")
        second = self.root(200, "POST", f"/v1/tokens/{made['id']}:rotate", {"overlap_ms": 60000})
        self.assertEqual(second["id"], made["id"])
        for token in (made["token"], second["token"]):
            self.as_token(token, 200, "GET", "/v1/tasks")
        third = self.root(200, "POST", f"/v1/tokens/{made['id']}:rotate", {})
        self.as_token(third["token"], 200, "GET", "/v1/tasks")
        for token in (made["token"], second["token"]):
            self.as_token(token, 401, "GET", "/v1/tasks")

    def test_f_j1_a_token_gives_no_more_than_it_has(self):
        maker = self.make("access:write", "tasks:enqueue", namespace="*", queues=["a*"],
                          rate={"count": 10, "per_ms": 1000}, expires_at=later(600))
        within = {"name": "n", "scopes": ["tasks:enqueue"], "queues": ["ab"], "expires_at": later(300),
                  "rate": {"count": 10, "per_ms": 1000}}
        made = self.as_token(maker["token"], 201, "POST", "/v1/tokens", within)
        self.assertEqual(made["created_by_id"], maker["id"])
        for field, value in (("scopes", ["tasks:read"]), ("queues", ["b"]), ("queues", None), ("expires_at", None),
                             ("rate", None), ("rate", {"count": 11, "per_ms": 1000})):
            refusal = self.as_token(maker["token"], 403, "POST", "/v1/tokens", within | {field: value})
            self.assertEqual(refusal["error"]["field"], field)
        self.root(204, "DELETE", f"/v1/tokens/{maker['id']}")
        self.as_token(made["token"], 422, "POST", "/v1/tasks", {})  # it lives by itself

    def test_f_j1_access_write_alone_cannot_take_an_administrators_secret(self):
        admin = self.make("admin")
        clerk = self.token("access:write", namespace="*")
        self.as_token(clerk, 403, "POST", f"/v1/tokens/{admin['id']}:rotate", {})
        self.as_token(admin["token"], 200, "GET", "/v1/tasks")

    def test_f_j1_who_rotates_a_token_of_another_maker_could_read_what_it_made(self):
        clerk = self.make("access:write", "tasks:enqueue")
        other = self.make("tasks:enqueue")
        self.as_token(clerk["token"], 403, "POST", f"/v1/tokens/{other['id']}:rotate", {})
        own = self.make("tasks:enqueue", by=clerk["token"])
        self.as_token(clerk["token"], 200, "POST", f"/v1/tokens/{own['id']}:rotate", {})
        reader = self.token("access:write", "tasks:enqueue", "payloads:read")
        self.as_token(reader, 200, "POST", f"/v1/tokens/{other['id']}:rotate", {})
        self.as_token(clerk["token"], 200, "POST", f"/v1/tokens/{clerk['id']}:rotate", {})

    def test_v8_a_foreign_namespaces_token_is_like_one_that_is_not_there(self):
        foreign = self.make("tasks:read", namespace="elsewhere")
        clerk = self.token("access:write", "tasks:read", namespace="default")
        for method, after in (("GET", ""), ("DELETE", ""), ("POST", ":rotate")):
            there, missing = (self.request(method, f"/v1/tokens/{which}{after}", headers=bearer(clerk))
                              for which in (foreign["id"], "0123456789abcdef"))
            self.assertEqual((there.status, there.body), (404, missing.body))
        self.assertEqual([t["namespace"] for t in self.as_token(clerk, 200, "GET", "/v1/tokens")["items"]], ["default"])
        self.as_token(clerk, 403, "POST", "/v1/tokens",
                      {"name": "n", "scopes": ["tasks:read"], "namespace": "elsewhere"})

    def test_f_h4_bodies_are_strict(self):
        for body, field in (({}, "name"), ({"name": "n"}, "scopes"), ({"name": "n", "role": "king"}, "role"),
                            ({"name": "n", "scopes": ["tasks:fly"]}, "scopes"), ({"name": "n", "scopes": []}, "scopes"),
                            ({"name": "n", "role": "viewer", "scopes": ["admin"]}, "scopes"),
                            ({"name": "n", "role": "viewer", "colour": "red"}, "colour"),
                            ({"name": "n", "role": "viewer", "queues": []}, "queues"),
                            ({"name": "n", "role": "viewer", "namespace": "a b"}, None),
                            ({"name": "n", "role": "viewer", "expires_at": "tomorrow"}, "expires_at"),
                            ({"name": "n", "role": "viewer", "expires_at": "2001-01-01T00:00:00Z"}, "expires_at")):
            refusal = self.root(422, "POST", "/v1/tokens", body)["error"]
            if field:
                self.assertEqual(refusal.get("field"), field, refusal)

    def test_f_j1_a_rate_answers_429_and_how_long_to_wait(self):
        made = self.make("tasks:read", rate={"count": 3, "per_ms": 60000})
        for _ in range(3):
            self.as_token(made["token"], 200, "GET", "/v1/tasks")
        reply = self.request("GET", "/v1/tasks", headers=bearer(made["token"]))
        self.assertEqual(reply.status, 429)
        self.assertTrue(1 <= int(reply.headers["Retry-After"]) <= 60, reply.headers["Retry-After"])
        self.root(200, "GET", "/v1/tasks")

    def test_f_j1_when_a_token_was_used_is_known_after_a_stop(self):
        made = self.make("tasks:read")
        self.as_token(made["token"], 200, "GET", "/v1/tasks")
        self.server.stop()
        self.server.start()
        used = self.root(200, "GET", f"/v1/tokens/{made['id']}")["last_used_at"]
        self.assertRegex(used, r"T\d\d:\d\d:00")


class Beyond(unittest.TestCase):
    def test_f_j1_a_store_with_a_token_may_be_served_beyond_loopback(self):
        with tempfile.TemporaryDirectory() as folder:
            command = [binary(), "serve", "--listen", "0.0.0.0:0", "--store", f"{folder}/s.db", "--allow-clear-text"]
            refused = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=60, check=False)
            self.assertEqual(refused.returncode, 2)
            self.assertIn("perdura token create", refused.stderr)
            made = subprocess.run([binary(), "token", "create", "--store", f"{folder}/s.db", "--name", "ops", "--role",
                                   "admin", "--quiet"], capture_output=True, text=True, timeout=60, check=True)
            self.assertRegex(made.stdout, r"^pdt_\S{60}\n$")
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                  cwd=folder) as server:
                try:
                    self.assertIn("listening on", server.stdout.readline())
                finally:
                    server.terminate()


class Narrowed(TokenTest):
    def test_f_j1_enqueueing_keeps_to_queues_types_and_categories(self):
        self.root(201, "POST", "/v1/categories", {"name": "reports2"})
        token = self.token("tasks:enqueue", queues=["media", "mail*"], types=["video:*"], categories=["general"])
        good = {"type": "video:cut", "queue": "media"}
        self.as_token(token, 201, "POST", "/v1/tasks", good)
        for change, field in (({"queue": "default"}, "queue"), ({"type": "cron:run"}, "type"),
                              ({"category": "reports2"}, "category")):
            refusal = self.as_token(token, 403, "POST", "/v1/tasks", good | change)["error"]
            self.assertEqual(refusal["field"], field)
            self.assertIn(change[field], refusal["message"])
        before = len(self.root(200, "GET", "/v1/tasks")["items"])
        self.as_token(token, 403, "POST", "/v1/tasks", [good, good | {"queue": "other"}])
        self.assertEqual(len(self.root(200, "GET", "/v1/tasks")["items"]), before)

    def test_f_j1_a_category_leads_only_where_its_editor_may_put_work(self):
        """A category gives jobs and tasks their queue: to change it is to move the work of others."""
        narrow = self.token("plans:write", "work", queues=["mine"])
        theirs = self.root(201, "POST", "/v1/categories", {"name": "theirs", "configuration": {"queue": "secret"}})
        for method, path, body in (
                ("PATCH", "/v1/categories/general", {"configuration": {"queue": "mine"}}),
                ("PATCH", f"/v1/categories/{theirs['id']}", {"configuration": {"queue": "mine"}}),
                ("DELETE", f"/v1/categories/{theirs['id']}", None),
                ("POST", "/v1/categories", {"name": "new"}),
                ("POST", "/v1/categories", {"name": "new", "configuration": {"queue": "secret"}})):
            self.assertEqual(self.as_token(narrow, 403, method, path, body)["error"]["field"], "queue", path)
        own = self.as_token(narrow, 201, "POST", "/v1/categories", {"name": "own", "configuration": {"queue": "mine"}})
        self.as_token(narrow, 403, "PATCH", f"/v1/categories/{own['id']}", {"configuration": {}})
        self.as_token(narrow, 200, "PATCH", f"/v1/categories/{own['id']}", {"description": "mine"})
        named = self.token("plans:write", categories=["own"])
        self.as_token(named, 403, "PATCH", f"/v1/categories/{theirs['id']}", {"description": "mine"})
        self.as_token(named, 403, "PATCH", f"/v1/categories/{own['id']}", {"name": "other"})
        self.as_token(named, 200, "PATCH", f"/v1/categories/{own['id']}", {"description": "ours"})

    def test_f_j1_a_worker_serves_what_its_token_is_limited_to(self):
        token = self.token("work", queues=["media", "mail*"], types=["video:*"])
        for body, field in (({"queues": ["default"]}, "queues"), ({"queues": ["media"], "types": ["x"]}, "types")):
            self.assertEqual(self.as_token(token, 403, "POST", "/v1/workers", body)["error"]["field"], field)
        worker = self.as_token(token, 201, "POST", "/v1/workers", {})["id"]
        shown = self.root(200, "GET", f"/v1/workers/{worker}")
        self.assertEqual((shown["queues"], shown["types"]), (["media"], ["video:*"]))
        self.as_token(token, 403, "POST", f"/v1/workers/{worker}:claim", {"queues": ["default"], "max": 1})
        self.root(201, "POST", "/v1/tasks", {"type": "video:cut", "queue": "media"})
        self.root(201, "POST", "/v1/tasks", {"type": "video:cut"})
        tasks = self.as_token(token, 200, "POST", f"/v1/workers/{worker}:claim", {"max": 10})["tasks"]
        self.assertEqual([task["queue"] for task in tasks], ["media"])

    def test_v8_what_a_worker_spawns_is_checked_against_the_token_that_reports(self):
        token = self.token("work", queues=["media"])
        worker = self.as_token(token, 201, "POST", "/v1/workers", {})["id"]
        self.root(201, "POST", "/v1/tasks", {"type": "t", "queue": "media"})
        task = self.as_token(token, 200, "POST", f"/v1/workers/{worker}:claim", {"max": 1})["tasks"][0]
        held = {"task_id": task["id"], "lease_token": task["lease_token"]}
        items = self.as_token(token, 200, "POST", f"/v1/workers/{worker}:report",
                              [held | {"op": "spawn", "tasks": [{"type": "t", "queue": "secret"}]},
                               held | {"op": "spawn", "tasks": [{"type": "t", "queue": "media"}]}])["items"]
        self.assertEqual([item["ok"] for item in items], [False, True])
        self.assertEqual(items[0]["error"]["code"], "forbidden")
        children = self.root(200, "GET", f"/v1/tasks?parent_id={task['id']}")["items"]
        self.assertEqual([(child["queue"], child["created_by_principal"]) for child in children],
                         [("media", "root")])

    def test_v8_a_worker_belongs_to_the_credential_that_registered_it(self):
        mine, other = self.token("work"), self.token("work")
        worker = self.as_token(mine, 201, "POST", "/v1/workers", {"id": "w-1", "queues": ["default"]})["id"]
        self.root(201, "POST", "/v1/tasks", {"type": "t"})
        task = self.as_token(mine, 200, "POST", f"/v1/workers/{worker}:claim", {"max": 1})["tasks"][0]
        report = [{"task_id": task["id"], "lease_token": task["lease_token"], "op": "complete", "result": 1}]
        for verb, body in ((":heartbeat", {}), (":claim", {"max": 1}), (":report", report)):
            there = self.request("POST", f"/v1/workers/{worker}{verb}", body, bearer(other))
            missing = self.request("POST", f"/v1/workers/nobody{verb}", body, bearer(other))
            self.assertEqual((there.status, there.body), (404, missing.body))
        self.as_token(other, 404, "DELETE", f"/v1/workers/{worker}")
        self.as_token(other, 409, "POST", "/v1/workers", {"id": "w-1", "queues": ["default"]})
        self.root(200, "POST", f"/v1/workers/{worker}:heartbeat", {})
        self.assertTrue(self.as_token(mine, 200, "POST", f"/v1/workers/{worker}:report", report)["items"][0]["ok"])


class Sight(TokenTest):
    def finished(self):
        """A task that carries the canary wherever it can; its worker's answers are as root."""
        task = self.root(201, "POST", "/v1/tasks", {"type": "t", "payload": {"p": CANARY}, "data": {"d": CANARY},
                                                    "max_retries": 0})
        worker = self.root(201, "POST", "/v1/workers", {"queues": ["default"]})["id"]
        claimed = self.root(200, "POST", f"/v1/workers/{worker}:claim", {"max": 1})["tasks"][0]
        held = {"task_id": task["id"], "lease_token": claimed["lease_token"]}
        items = self.root(200, "POST", f"/v1/workers/{worker}:report", [
            held | {"op": "log", "level": "INFO", "message": CANARY, "context": {"c": CANARY}},
            held | {"op": "progress", "progress": 5, "detail": {"x": CANARY}, "data": {"d2": CANARY}},
            held | {"op": "checkpoint", "name": "one", "progress": 9, "description": CANARY, "data": {"k": CANARY},
                    "database_state": {"s": CANARY}, "file_state": {"f": CANARY}},
            held | {"op": "fail", "error": CANARY, "details": {"e": CANARY}, "retryable": False}])["items"]
        self.assertTrue(all(item["ok"] for item in items), items)
        return task["id"]

    def test_f_j1_without_payloads_read_no_answer_holds_contents(self):
        task = self.finished()
        execution = self.root(200, "GET", f"/v1/tasks/{task}/executions")["items"][0]["id"]
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        one = f"/v1/tasks/{task}"
        paths = ["/v1/tasks", one, f"{one}/events", f"{one}/executions", f"{one}/checkpoints", f"{one}/logs",
                 f"{one}/why", f"{one}/wait?timeout_ms=0", "/v1/executions", f"/v1/executions/{execution}",
                 f"/v1/executions/{execution}/logs", f"/v1/workflows/{task}", "/v1/recovery"]
        whole = self.token("payloads:read")
        blind = self.token("tasks:read", "tasks:control")
        for path in paths:
            seen = json.dumps(self.as_token(blind, 200, "GET", path))
            self.assertNotIn(CANARY, seen, path)
            if CANARY in json.dumps(self.as_token(whole, 200, "GET", path)):
                self.assertIn('"redacted": true', seen, path)
        for path in (one, f"{one}/events", f"{one}/checkpoints", f"{one}/logs", f"{one}/executions", f"{one}/why"):
            self.assertIn(CANARY, json.dumps(self.as_token(whole, 200, "GET", path)), path)
        self.as_token(blind, 403, "GET", f"{one}/logs?q=canary")  # whether a line fits would tell
        self.as_token(blind, 403, "GET", f"{one}/logs?context=/c:1")
        self.assertNotIn(CANARY, json.dumps(self.as_token(blind, 200, "POST", f"{one}:retry", {})))
        fork = self.as_token(blind, 200, "POST", f"{one}:fork", {})
        self.assertNotIn(CANARY, json.dumps(fork))
        reply = self.request("GET", f"{one}?at={now}", headers=bearer(blind))
        self.assertNotIn(CANARY.encode(), reply.body)

    def test_f_j1_a_jobs_payload_is_content(self):
        job = self.root(201, "POST", "/v1/jobs", {"name": "j", "payload": {"p": CANARY}})["id"]
        blind, whole = self.token("plans:read", "plans:run"), self.token("plans:read", "payloads:read")
        for path in ("/v1/jobs", f"/v1/jobs/{job}"):
            self.assertNotIn(CANARY, json.dumps(self.as_token(blind, 200, "GET", path)))
            self.assertIn(CANARY, json.dumps(self.as_token(whole, 200, "GET", path)))
        self.assertNotIn(CANARY, json.dumps(self.as_token(blind, 201, "POST", f"/v1/jobs/{job}:run")))

    def test_f_j1_a_result_is_content(self):
        task = self.root(201, "POST", "/v1/tasks", {"type": "t"})["id"]
        worker = self.root(201, "POST", "/v1/workers", {"queues": ["default"]})["id"]
        claimed = self.root(200, "POST", f"/v1/workers/{worker}:claim", {"max": 1})["tasks"][0]
        self.root(200, "POST", f"/v1/workers/{worker}:report",
                  [{"task_id": task, "lease_token": claimed["lease_token"], "op": "complete", "result": CANARY}])
        blind = self.token("tasks:read")
        for path in (f"/v1/tasks/{task}", f"/v1/tasks/{task}/result", f"/v1/tasks/{task}/wait", "/v1/executions"):
            self.assertNotIn(CANARY, json.dumps(self.as_token(blind, 200, "GET", path)), path)
            self.assertIn("redacted", json.dumps(self.as_token(blind, 200, "GET", path)), path)

    def test_v8_a_producer_reads_and_waits_for_what_it_made_and_nothing_else(self):
        mine = self.make("tasks:enqueue")
        task = self.as_token(mine["token"], 201, "POST", "/v1/tasks", {"type": "t", "payload": CANARY})
        self.assertEqual(task["created_by_principal"], f"token:{mine['id']}")
        foreign = self.root(201, "POST", "/v1/tasks", {"type": "t", "payload": 1})["id"]
        self.assertEqual(self.as_token(mine["token"], 200, "GET", f"/v1/tasks/{task['id']}")["payload"], CANARY)
        for part in ("", "/events", "/executions", "/checkpoints", "/logs", "/why", "/wait?timeout_ms=30000", "/result",
                     "?at=2026-01-01T00:00:00Z"):
            begin = time.monotonic()
            there = self.request("GET", f"/v1/tasks/{foreign}{part}", headers=bearer(mine["token"]))
            missing = self.request("GET", f"/v1/tasks/0197f6a2-5c3e-7b11-9d2f-3a4b5c6d7e8f{part}",
                                   headers=bearer(mine["token"]))
            self.assertEqual((there.status, there.body), (404, missing.body), part)
            self.assertLess(time.monotonic() - begin, 20)
        rotated = self.root(200, "POST", f"/v1/tokens/{mine['id']}:rotate", {})["token"]
        self.as_token(rotated, 200, "GET", f"/v1/tasks/{task['id']}")

    def test_f_j1_who_made_a_task_is_not_for_clients_to_say(self):
        self.root(422, "POST", "/v1/tasks", {"type": "t", "created_by_principal": "token:0123456789abcdef"})
        made = self.root(201, "POST", "/v1/tasks", {"type": "t"})
        self.assertEqual(made["created_by_principal"], "root")

    def test_v8_a_key_that_another_principal_used_shows_nothing_of_its_task(self):
        task = {"type": "t", "idempotency_key": "k", "payload": CANARY}
        self.root(201, "POST", "/v1/tasks", task)
        other = self.token("tasks:enqueue")
        for body in (task, [task]):
            reply = self.request("POST", "/v1/tasks", body, bearer(other))
            self.assertIn(reply.status, (200, 201))
            self.assertNotIn(CANARY.encode(), reply.body)


class Ending(TokenTest):
    """Revoked or expired: within a second."""

    def stream(self, token):
        connection = http.client.HTTPConnection(*self.server.address, timeout=60)
        self.addCleanup(connection.close)
        connection.request("GET", "/v1/stream", headers=bearer(token))
        answer = connection.getresponse()
        self.assertEqual(answer.status, 200)
        answer.readline()
        return answer

    def ends(self, answer, reason):
        begin = time.monotonic()
        self.assertEqual(re.findall(r"event: end\ndata: (.*)\n", answer.read().decode()), [json.dumps(
            {"reason": f"token_{reason}"}, separators=(",", ":"))])
        self.assertLess(time.monotonic() - begin, WITHIN_S)

    def test_v8_a_stream_says_that_its_token_was_revoked_and_ends(self):
        made, other = self.make("tasks:read"), self.make("tasks:read")
        answer, stays = self.stream(made["token"]), self.stream(other["token"])
        self.root(204, "DELETE", f"/v1/tokens/{made['id']}")
        self.ends(answer, "revoked")
        self.root(200, "POST", f"/v1/tokens/{other['id']}:rotate", {})
        self.ends(stays, "rotated")

    def test_v8_a_stream_ends_when_its_token_expires(self):
        made = self.make("tasks:read", expires_at=later(1.5))
        self.ends(self.stream(made["token"]), "expired")

    def waiting(self, token, path, body=None):
        """A long poll on a thread of its own; its reply is put into a list."""
        replies = []
        method = "GET" if body is None else "POST"
        thread = threading.Thread(target=lambda: replies.append(self.alone(method, path, body, bearer(token))))
        thread.start()
        self.addCleanup(thread.join)
        return thread, replies

    def test_v8_waiting_claims_and_waits_end_with_401(self):
        made = self.make("work", "tasks:read")
        worker = self.as_token(made["token"], 201, "POST", "/v1/workers", {"queues": ["idle"]})["id"]
        task = self.root(201, "POST", "/v1/tasks", {"type": "t", "queue": "nobody"})["id"]
        polls = [self.waiting(made["token"], f"/v1/workers/{worker}:claim", {"max": 1, "wait_ms": 60000}),
                 self.waiting(made["token"], f"/v1/tasks/{task}/wait?timeout_ms=60000")]
        wait_until(lambda: b"perdura_waiting_claims 1" in self.request(
            "GET", "/metrics", headers=bearer(ROOT_TOKEN)).body, what="the waiting claim")
        begin = time.monotonic()
        self.root(204, "DELETE", f"/v1/tokens/{made['id']}")
        for thread, replies in polls:
            thread.join(30)
            self.assertEqual([reply.status for reply in replies], [401])
            self.assertIn("revoked", replies[0].json["error"]["message"])
        self.assertLess(time.monotonic() - begin, WITHIN_S)


if __name__ == "__main__":
    unittest.main()
