"""Idempotency keys of the engine's own are out of reach for clients: the note of a dead letter comes whatever keys were
taken before (B1, D13)."""
import pathlib
import shutil
import tempfile
import threading
import unittest

from harness import ApiTest, Server


class OwnKeys(ApiTest):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="perdura-api-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        pathlib.Path(self.folder, "server.yaml").write_text("queues:\n  - {name: default, dead_letter_queue: dead}\n")
        self.server = Server(self.folder, "--config", "server.yaml")
        self.local = threading.local()
        self.addCleanup(self.tear_server_down)
        self.server.start()

    def test_d13_a_dead_letter_is_told_of_although_somebody_took_the_key_before(self):
        task = self.enqueue("mail", max_retries=0)
        for key in (f"dead_letter:{task['id']}:1", f"{task['id']}:1"):
            self.enqueue("mail", queue="other", idempotency_key=key)
        self.register()
        [held] = self.claim()
        self.report_ok("worker-1", held, "fail", error="no")
        [note] = self.expect(200, "GET", "/v1/tasks?queue=dead")["items"]
        self.assertEqual(note["payload"], {"dead_letter": task["id"]})
        # No client could have taken the key it has.
        self.expect_error(422, "invalid", "POST", "/v1/tasks", {"type": "mail", "idempotency_key": note["idempotency_key"]},
                          field="idempotency_key")

    def test_b1_keys_of_the_engines_own_are_refused_wherever_tasks_come_from(self):
        task = {"type": "t", "idempotency_key": "perdura:x"}
        self.expect_error(422, "invalid", "POST", "/v1/tasks", task, field="idempotency_key")
        self.expect_error(422, "invalid", "POST", "/v1/tasks", [{"type": "t"}, task])
        self.enqueue()
        self.register()
        [held] = self.claim()
        item = self.report_one("worker-1", held, "spawn", tasks=[task])
        self.assertEqual((item["ok"], item["error"]["code"]), (False, "invalid"))
        self.enqueue(idempotency_key="perdura")
        self.report_ok("worker-1", held, "spawn", tasks=[{"type": "child", "ref": "one"}])
        [child] = self.expect(200, "GET", "/v1/tasks?type=child")["items"]
        self.assertEqual(child["idempotency_key"], f"perdura:spawn:{held['id']}:one")


if __name__ == "__main__":
    unittest.main()
