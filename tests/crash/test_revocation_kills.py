"""Kills -9 around revocation and rotation (V8, 003 §5.1): once a revocation was acknowledged, nothing that its token made
is handed out, whatever crashes; once a rotation was acknowledged, the new secret counts and the old one does not."""
import http.client
import random
import signal
import threading
import time
import unittest

from token_harness import TokenTest, bearer

ROUNDS = 12
TASKS = 300


class RevocationKills(TokenTest):
    def start_again(self):
        self.server.stop(signal.SIGKILL)
        self.local = threading.local()
        self.server.start()

    def ask_and_kill(self, method, path, body=None):
        """The answer, or None where the kill was faster; the server is there again."""
        answers = []

        def ask():
            try:
                answers.append(self.root_reply(method, path, body))
            except (OSError, http.client.HTTPException):
                pass

        asking = threading.Thread(target=ask)
        asking.start()
        time.sleep(random.random() * 0.02)
        self.start_again()
        asking.join(60)
        return answers[0] if answers else None

    def root_reply(self, method, path, body):
        return self.alone(method, path, body, bearer("root-token-of-the-tests"))

    def claim_all(self, worker):
        """Ids of all that the worker gets, until nothing comes any more."""
        got = []
        while True:
            tasks = self.root(200, "POST", f"/v1/workers/{worker}:claim", {"max": 100})["tasks"]
            got += [task["id"] for task in tasks]
            if not tasks and self.root(200, "GET", "/v1/tasks?status=pending&limit=1")["items"] == []:
                return set(got)

    def test_v8_nothing_of_a_token_runs_after_its_revocation_was_acknowledged(self):
        acknowledged = 0
        for i in range(ROUNDS):
            made = self.make("tasks:enqueue")
            tasks = self.as_token(made["token"], 201, "POST", "/v1/tasks",
                                  [{"type": "t", "queue": f"q{i}"} for _ in range(TASKS)])["items"]
            reply = self.ask_and_kill("DELETE", f"/v1/tokens/{made['id']}")
            acknowledged += reply is not None
            revoked = self.root(200, "GET", f"/v1/tokens/{made['id']}")["status"] == "revoked"
            self.assertTrue(revoked or reply is None, "an acknowledged revocation is gone")
            self.root(201, "POST", "/v1/workers", {"id": f"w{i}", "queues": [f"q{i}"]})
            got = self.claim_all(f"w{i}")
            self.assertEqual(got, set() if revoked else {task["id"] for task in tasks})
            if revoked:
                for task in random.sample(tasks, 5):
                    self.assertEqual(self.root(200, "GET", f"/v1/tasks/{task['id']}")["status"], "paused")
        self.assertGreater(acknowledged, 0, "no round had an answer before the kill")

    def test_v8_what_waits_when_a_token_is_revoked_gets_none_of_its_tasks(self):
        for i in range(ROUNDS):
            made = self.make("tasks:enqueue")
            self.root(201, "POST", "/v1/workers", {"id": f"w{i}", "queues": [f"q{i}"]})
            self.as_token(made["token"], 201, "POST", "/v1/tasks",
                          [{"type": "t", "queue": f"q{i}", "delay_ms": 5 * n} for n in range(60)])
            ended, late = threading.Event(), []

            def work(worker=f"w{i}", ended=ended, late=late):
                while True:
                    was_over = ended.is_set()  # asked before the claim was sent
                    reply = self.alone("POST", f"/v1/workers/{worker}:claim", {"max": 10, "wait_ms": 100},
                                       bearer("root-token-of-the-tests"))
                    if was_over:
                        late.extend(reply.json["tasks"])
                        return

            working = threading.Thread(target=work)
            working.start()
            time.sleep(random.random() * 0.2)
            self.root(204, "DELETE", f"/v1/tokens/{made['id']}")
            ended.set()
            working.join(60)
            self.assertEqual(late, [])

    def test_v8_an_acknowledged_rotation_counts_after_a_kill(self):
        for _ in range(ROUNDS):
            made = self.make("tasks:read")
            reply = self.ask_and_kill("POST", f"/v1/tokens/{made['id']}:rotate", {"overlap_ms": 0})
            old = self.request("GET", "/v1/whoami", headers=bearer(made["token"])).status
            if reply is None:
                self.assertIn(old, (200, 401))
                continue
            self.assertEqual(old, 401)
            self.assertEqual(self.request("GET", "/v1/whoami", headers=bearer(reply.json["token"])).status, 200)


if __name__ == "__main__":
    unittest.main()
