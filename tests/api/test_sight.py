"""What one task tells of another (D12, V8, F-J1): results that are handed on, why it waits, keys that are taken, forks,
validators. A credential learns nothing through a task of its own that it may not read directly."""
import http.client
import json
import os
import unittest

from harness import wait_until
from token_harness import TokenTest, bearer

CANARY = "canary-4111"
NOTHING = "0197f6a2-5c3e-7b11-9d2f-3a4b5c6d7e8f"


class SightTest(TokenTest):
    def end(self, queue, op, token=None, **report):
        """A worker of root, or of this token, takes one task of the queue and reports this; the task."""
        by = {"headers": bearer(token)} if token else {"headers": bearer("root-token-of-the-tests")}
        worker = self.expect(201, "POST", "/v1/workers", {"queues": [queue]}, **by)["id"]
        task = self.expect(200, "POST", f"/v1/workers/{worker}:claim", {"max": 1}, **by)["tasks"][0]
        item = self.expect(200, "POST", f"/v1/workers/{worker}:report", [
            {"task_id": task["id"], "lease_token": task["lease_token"], "op": op, **report}], **by)["items"][0]
        self.assertTrue(item["ok"], item)
        return task

    def make_task(self, token=None, **fields):
        return self.expect(201, "POST", "/v1/tasks", {"type": "t", **fields},
                           headers=bearer(token or "root-token-of-the-tests"))["id"]

    def secret(self):
        """A task of root in the queue `secret`, with a result."""
        task = self.make_task(queue="secret", payload=CANARY, metadata={"m": CANARY}, idempotency_key="secret")
        self.end("secret", "complete", result=CANARY)
        return task


class Results(SightTest):
    def test_v8_a_task_cannot_depend_on_what_its_maker_may_not_read(self):
        foreign = self.secret()
        both = self.token("tasks:enqueue", "work", queues=["mine"], types=["t"])
        body = {"type": "t", "queue": "mine", "depends_on": [foreign]}
        answers = [self.request("POST", "/v1/tasks", {**body, "depends_on": [task]}, bearer(both))
                   for task in (foreign, NOTHING)]
        self.assertEqual([answer.status for answer in answers], [422, 422])
        self.assertEqual(answers[0].body.replace(foreign.encode(), b""), answers[1].body.replace(NOTHING.encode(), b""))
        redacted = self.token("tasks:read", "tasks:enqueue", "work")
        self.assertEqual(self.as_token(redacted, 403, "POST", "/v1/tasks", body)["error"]["field"], "depends_on")
        own = self.make_task(both, queue="mine")
        self.end("mine", "complete", token=both, result="own")
        self.make_task(both, queue="mine", depends_on=[own])
        self.make_task(self.token("payloads:read", "tasks:enqueue"), queue="mine", depends_on=[foreign])

    def test_v8_a_worker_cannot_make_a_child_depend_on_what_it_may_not_read(self):
        foreign = self.secret()
        producer, worker = self.token("tasks:enqueue"), self.token("work", queues=["mine"])
        self.make_task(producer, queue="mine")
        by = bearer(worker)
        name = self.expect(201, "POST", "/v1/workers", {"queues": ["mine"]}, headers=by)["id"]
        task = self.expect(200, "POST", f"/v1/workers/{name}:claim", {"max": 1}, headers=by)["tasks"][0]
        held = {"task_id": task["id"], "lease_token": task["lease_token"], "op": "spawn"}
        spawns = [self.expect(200, "POST", f"/v1/workers/{name}:report", [
            {**held, "tasks": [{"type": "t", "queue": "mine", "depends_on": [on]}]}], headers=by)["items"][0]
            for on in (foreign, self.make_task(producer, queue="elsewhere"))]
        self.assertEqual([spawn["ok"] for spawn in spawns], [False, True], spawns)

    def test_v8_a_fork_does_not_carry_content_to_another_queue(self):
        foreign = self.secret()
        blind = self.token("tasks:read", "tasks:control", "work")
        self.assertEqual(self.as_token(blind, 403, "POST", f"/v1/tasks/{foreign}:fork", {"queue": "mine"})["error"]
                         ["field"], "queue")
        self.as_token(blind, 200, "POST", f"/v1/tasks/{foreign}:fork", {"queue": "secret"})
        self.as_token(self.token("payloads:read", "tasks:control"), 200, "POST", f"/v1/tasks/{foreign}:fork",
                      {"queue": "mine"})


class TakingOver(SightTest):
    """A task is resumed, a job is changed: they belong to who did it, who must not see more by that."""

    def test_v8_who_resumes_a_task_of_a_revoked_token_does_not_read_it_by_that(self):
        shop = self.make("tasks:enqueue")
        task = self.make_task(shop["token"], payload=CANARY)
        self.root(204, "DELETE", f"/v1/tokens/{shop['id']}")
        worker = self.root(201, "POST", "/v1/workers", {"queues": ["default"]})["id"]
        self.assertEqual(self.root(200, "POST", f"/v1/workers/{worker}:claim", {"max": 1})["tasks"], [])
        both = self.token("tasks:control", "tasks:enqueue")
        self.as_token(both, 403, "POST", f"/v1/tasks/{task}:resume", {})
        self.as_token(both, 404, "GET", f"/v1/tasks/{task}")
        self.as_token(self.token("tasks:control"), 200, "POST", f"/v1/tasks/{task}:resume", {})

    def test_v8_who_changes_a_job_does_not_read_its_runs_by_that(self):
        job = self.root(201, "POST", "/v1/jobs", {"name": "j", "task_type": "t", "payload": CANARY})["id"]
        change = ("PATCH", f"/v1/jobs/{job}", {"description": "mine"})
        both = self.token("plans:write", "tasks:enqueue")
        self.as_token(both, 403, *change)
        self.as_token(self.token("plans:write"), 200, *change)
        self.as_token(self.token("plans:write", "tasks:enqueue", "payloads:read"), 200, *change)
        own = self.as_token(both, 201, "POST", "/v1/jobs", {"name": "own", "task_type": "t"})["id"]
        self.as_token(both, 200, "PATCH", f"/v1/jobs/{own}", {"description": "mine"})


class Why(SightTest):
    def why(self, token, task):
        return json.dumps(self.as_token(token, 200, "GET", f"/v1/tasks/{task}/why"))

    def test_f_j1_without_payloads_read_no_error_of_another_task_is_told(self):
        blind, whole = self.token("tasks:read"), self.token("payloads:read")
        first = self.make_task(queue="first", max_retries=5, retry_delay_ms=3600000)
        waits = self.make_task(depends_on=[first])
        self.end("first", "fail", error=CANARY)
        self.assertNotIn(CANARY, self.why(blind, waits))
        self.assertIn(CANARY, self.why(whole, waits))
        ends = self.make_task(queue="second", max_retries=0)
        waits = self.make_task(depends_on=[ends])
        self.end("second", "fail", error=CANARY, retryable=False)
        wait_until(lambda: self.root(200, "GET", f"/v1/tasks/{waits}")["status"] == "cancelled")
        self.assertNotIn(CANARY, self.why(blind, waits))
        self.assertIn(CANARY, self.why(whole, waits))

    def test_v8_tasks_of_others_are_not_named(self):
        """A dependency that an administrator made does not open what it leads to."""
        ada = self.token("admin", user_id="ada")
        root = self.make_task(queue="idle", user_id="bob", max_retries=5)
        middle = self.make_task(depends_on=[root])
        own = self.make_task(depends_on=[middle], user_id="ada")
        other = self.make_task(depends_on=[root], user_id="ada")
        self.assertIn(root, self.why("root-token-of-the-tests", own))
        for task in (own, other):
            self.assertNotIn(root, self.why(ada, task))
        self.assertIn(middle, self.why(ada, own))

    def test_f_j1_the_reason_of_a_pause_is_content(self):
        task = self.make_task()
        self.root(200, "POST", f"/v1/tasks/{task}:pause", {"reason": CANARY})
        self.assertNotIn(CANARY, self.why(self.token("tasks:read"), task))
        self.assertIn(CANARY, self.why(self.token("payloads:read"), task))


class Keys(SightTest):
    def test_v8_a_taken_key_tells_neither_its_task_nor_whether_the_payload_is_right(self):
        foreign = self.secret()
        other = self.token("tasks:enqueue")
        for payload in (CANARY, "guess"):
            body = {"type": "t", "idempotency_key": "secret", "payload": payload}
            self.assertEqual(self.as_token(other, 200, "POST", "/v1/tasks", body), {"id": foreign, "duplicate": True})
            self.assertEqual(self.as_token(other, 201, "POST", "/v1/tasks", [body]),
                             {"items": [{"id": foreign, "duplicate": True}]})
        body["payload"] = "guess"
        redacted = self.as_token(self.token("tasks:enqueue", "tasks:read"), 200, "POST", "/v1/tasks", body)
        self.assertEqual((redacted["redacted"], redacted.get("payload_differs")), (True, None))
        self.assertTrue(self.root(200, "POST", "/v1/tasks", body)["payload_differs"])


class Streams(SightTest):
    def test_f_h4_one_credential_cannot_take_all_streams(self):
        token, other = self.token("tasks:read"), self.token("tasks:read")
        statuses = []
        for _ in range(251):
            connection = http.client.HTTPConnection(*self.server.address, timeout=60)
            self.addCleanup(connection.close)
            connection.request("GET", "/v1/stream", headers=bearer(token))
            statuses.append(connection.getresponse().status)
        self.assertEqual(statuses, [200] * 250 + [429])
        connection = http.client.HTTPConnection(*self.server.address, timeout=60)
        self.addCleanup(connection.close)
        connection.request("GET", "/v1/stream", headers=bearer(other))
        self.assertEqual(connection.getresponse().status, 200)


class Validators(SightTest):
    arguments = ("--config", "p.yaml")

    def write_configuration(self):
        said = os.path.join(self.folder, "says-no")
        with open(said, "w", encoding="utf-8") as script:
            script.write(f"#!/bin/sh\ncat > /dev/null\necho '{CANARY}'\nexit 1\n")
        os.chmod(said, 0o700)
        path = os.path.join(self.folder, "p.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"handlers:\n  - {{type: 'v:*', command: ['/bin/true'], queues: ['none'], "
                       f"validate: {{command: ['{said}']}}}}\n")
        os.chmod(path, 0o600)

    def test_f_j1_what_a_validator_says_is_content(self):
        task = self.make_task(type="v:1", queue="manual")
        self.end("manual", "partial")
        question = {"task_id": task}
        whole = self.as_token(self.token("payloads:read"), 200, "POST", "/v1/recovery/validate", question)
        self.assertEqual((whole["valid"], whole["reason"]), (False, CANARY), whole)
        blind = self.as_token(self.token("tasks:read"), 200, "POST", "/v1/recovery/validate", question)
        self.assertEqual((blind["valid"], blind["reason"], blind["redacted"]), (False, None, True), blind)


if __name__ == "__main__":
    unittest.main()
