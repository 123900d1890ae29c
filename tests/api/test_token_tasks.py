"""A token's limit of tasks that have not ended (D12, F-J1): what counts, what is refused and how, and that the count is
right whatever happens to the server."""
import json
import os
import signal
import subprocess
import threading
import unittest

from harness import binary, wait_until
from test_revoked import RevokedTest
from token_harness import ROOT_TOKEN, bearer

ENDED = {"partial", "completed", "failed", "dead_letter", "cancelled"}


class TokenTasksTest(RevokedTest):
    def limited(self, most, *scopes, **fields):
        return self.shop(*(scopes or ("tasks:enqueue",)), **{"max_tasks": most} | fields)

    def count(self, made):
        """What the server says, which is what there is."""
        said = self.root(200, "GET", f"/v1/tokens/{made['id']}")["open_tasks"]
        there = sum(task["status"] not in ENDED and task["created_by_principal"] == f"token:{made['id']}"
                    for task in self.root(200, "GET", "/v1/tasks?limit=1000")["items"])
        self.assertEqual(said, there)
        return said

    def enqueue(self, made, body=None):
        return self.as_token(made["token"], 201, "POST", "/v1/tasks", body or {"type": "t"})

    def full(self, made, body=None, path="/v1/tasks"):
        reply = self.request("POST", path, {"type": "t"} if body is None else body, bearer(made["token"]))
        self.assertEqual(reply.status, 429, reply.body)
        return reply

    def end(self, task, op="complete", worker="w"):
        self.assertTrue(self.say(worker, task, op, **({"error": "e", "retryable": False} if op == "fail" else {}))["ok"])

    def verify(self):
        self.server.stop()
        done = subprocess.run([binary(), "verify", "--store", self.server.store], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Limit(TokenTasksTest):
    def test_d12_at_the_limit_a_request_gets_429_that_names_it_and_an_end_makes_room(self):
        made = self.limited(3)
        self.assertEqual((made["max_tasks"], made["open_tasks"]), (3, 0))
        self.enqueue(made, [{"type": "t"}] * 3)
        reply = self.full(made)
        self.assertIn("3 tasks of the token 'shop' have not ended, and at most 3 may be there (max_tasks)",
                      reply.json["error"]["message"])
        self.assertIn("access:write", reply.json["error"]["message"])
        self.assertIn("Retry-After", reply.headers)
        self.worker()
        tasks = self.take()
        self.full(made)
        for task, op in zip(tasks, ("complete", "fail", "complete")):
            self.end(task, op)
        self.assertEqual(self.count(made), 0)
        self.enqueue(made, [{"type": "t"}] * 3)
        self.full(made)
        self.verify()

    def test_d12_a_request_is_refused_as_a_whole_and_takes_nothing_with_it(self):
        made = self.limited(4)
        self.enqueue(made, [{"type": "t"}] * 2)
        self.full(made, [{"type": "t", "idempotency_key": "a"}, {"type": "t", "ref": "x"},
                         {"type": "t", "depends_on": [{"ref": "x"}]}])
        self.assertEqual(self.count(made), 2)
        self.enqueue(made, {"type": "t", "idempotency_key": "a"})
        self.enqueue(made)
        refusal = self.expect_error(422, "invalid", "POST", "/v1/tasks", [{"type": "t"}] * 5, bearer(made["token"]))
        self.assertIn("5 tasks at once are more than the token 'shop' may ever have (max_tasks: 4)", refusal["message"])

    def test_d12_what_is_there_already_needs_no_room(self):
        made = self.limited(2)
        first = self.enqueue(made, {"type": "t", "idempotency_key": "k"})
        self.enqueue(made)
        again = self.as_token(made["token"], 200, "POST", "/v1/tasks", {"type": "t", "idempotency_key": "k"})
        self.assertEqual(again["id"], first["id"])
        self.full(made, [{"type": "t", "idempotency_key": "k"}, {"type": "t"}])

    def test_d12_a_refused_request_leaves_the_rate_of_its_namespace_to_others(self):
        self.root(201, "POST", "/v1/namespaces", {"name": "shop", "limits": {"enqueue_rate": {"count": 3, "per_ms": 3600000}}})
        made = self.limited(1, namespace="shop")
        self.enqueue(made)
        for _ in range(5):
            self.assertIn("max_tasks", self.full(made).json["error"]["message"])
        other = self.shop("tasks:enqueue", namespace="shop")
        self.enqueue(other, [{"type": "t"}] * 2)

    def test_d12_others_are_not_limited_and_a_token_without_a_limit_says_null(self):
        made, free = self.limited(1), self.shop("tasks:enqueue")
        self.assertEqual((free["max_tasks"], free["open_tasks"]), (None, None))
        self.enqueue(made)
        self.enqueue(free, [{"type": "t"}] * 5)
        self.root(201, "POST", "/v1/tasks", {"type": "t"})
        self.full(made)

    def test_d12_who_i_am_the_list_and_the_commands_show_it(self):
        made = self.limited(7)
        self.enqueue(made)
        self.assertEqual(self.as_token(made["token"], 200, "GET", "/v1/whoami")["max_tasks"], 7)
        [listed] = [token for token in self.root(200, "GET", "/v1/tokens")["items"] if token["id"] == made["id"]]
        self.assertEqual((listed["max_tasks"], listed["open_tasks"]), (7, 1))
        url = "http://%s:%d" % self.server.address

        def say(token, *words):
            return subprocess.run([binary(), *words, "--server", url], capture_output=True, text=True, check=True,
                                  env={**os.environ, "PERDURA_TOKEN": token}).stdout

        self.assertRegex(say(made["token"], "whoami"), r"most open tasks +7\n")
        self.assertRegex(say(ROOT_TOKEN, "token", "show", made["id"]), r"most open tasks +7\nopen tasks +1\n")
        other = json.loads(say(ROOT_TOKEN, "token", "create", "--name", "n", "--role", "producer", "--max-tasks", "9", "--json"))
        self.assertEqual((other["max_tasks"], other["open_tasks"]), (9, 0))
        self.enqueue(self.limited(1))
        self.server.stop()
        doctor = subprocess.run([binary(), "doctor", "--store", self.server.store], capture_output=True, text=True, check=False)
        self.assertIn("1 have as many tasks as they may: shop", doctor.stdout)

    def test_f_j1_a_token_gives_no_higher_limit_than_its_own(self):
        maker = self.limited(5, "tasks:enqueue", "access:write")["token"]
        for limit in ({}, {"max_tasks": 6}):
            self.expect_error(403, "forbidden", "POST", "/v1/tokens", {"name": "n", "scopes": ["tasks:enqueue"], **limit},
                              bearer(maker), "max_tasks")
        self.as_token(maker, 201, "POST", "/v1/tokens", {"name": "n", "scopes": ["tasks:enqueue"], "max_tasks": 5})
        for wrong in (0, -1, 1.5, "3", 1000000001):
            self.expect_error(422, "invalid", "POST", "/v1/tokens", {"name": "n", "role": "producer", "max_tasks": wrong},
                              bearer(ROOT_TOKEN), "max_tasks")


class Doors(TokenTasksTest):
    def test_d12_children_count_and_are_not_refused(self):
        """As with the other limits of a client: its task must not wait for ever because it may not have a child."""
        made = self.limited(2)
        self.enqueue(made, {"type": "parent"})
        self.worker()
        [parent] = self.take()
        self.assertTrue(self.say("w", parent, "spawn", tasks=[{"type": "child"}] * 3)["ok"])
        self.assertEqual(self.count(made), 4)
        self.full(made)
        for child in self.take():
            self.end(child)
        self.assertEqual(self.count(made), 1)
        self.enqueue(made)

    def test_d12_a_run_by_hand_is_refused_and_one_of_a_schedule_only_counts(self):
        made = self.limited(1, "tasks:enqueue", "plans:write", "plans:run", "plans:read")
        job = self.as_token(made["token"], 201, "POST", "/v1/jobs", {"name": "j", "task_type": "t"})
        self.as_token(made["token"], 201, "POST", f"/v1/jobs/{job['id']}:run", {})
        self.full(made, {}, f"/v1/jobs/{job['id']}:run")
        self.as_token(made["token"], 201, "POST", "/v1/schedules", {
            "job_id": job["id"], "schedule_type": "interval", "interval_seconds": 1})
        wait_until(lambda: self.root(200, "GET", f"/v1/tokens/{made['id']}")["open_tasks"] > 1, what="a run")

    def test_d12_a_fork_counts_for_who_made_the_original_and_a_retry_counts_again(self):
        made = self.limited(2)
        task = self.enqueue(made)
        self.worker()
        self.end(self.take()[0], "fail")
        self.assertEqual(self.count(made), 0)
        self.enqueue(made)
        self.root(200, "POST", f"/v1/tasks/{task['id']}:fork", {})
        self.assertEqual(self.count(made), 2)
        self.full(made)
        self.root(200, "POST", f"/v1/tasks/{task['id']}:retry", {})
        self.assertEqual(self.count(made), 3)
        self.root(200, "POST", f"/v1/tasks/{task['id']}:cancel", {})
        self.assertEqual(self.count(made), 2)

    def test_d12_workflows_delayed_and_blocked_tasks_count_until_they_end(self):
        made = self.limited(3)
        self.enqueue(made, [{"type": "a", "ref": "a"}, {"type": "b", "depends_on": [{"ref": "a"}], "ref": "b"},
                            {"type": "c", "depends_on": [{"ref": "b"}], "delay_ms": 1}])
        self.full(made)
        self.worker()
        self.end(self.take()[0], "fail")
        self.assertEqual(self.count(made), 0)  # those that depended on it were cancelled with it

    def test_d12_a_namespace_that_goes_takes_its_tasks_off_the_count(self):
        self.root(201, "POST", "/v1/namespaces", {"name": "shop"})
        made = self.shop("tasks:enqueue", namespace="*", max_tasks=3)
        headers = {**bearer(made["token"]), "Perdura-Namespace": "shop"}
        self.expect(201, "POST", "/v1/tasks", [{"type": "t"}] * 3, headers=headers)
        self.full(made)
        self.root(202, "DELETE", "/v1/namespaces/shop?purge=true")
        wait_until(lambda: self.root(200, "GET", f"/v1/tokens/{made['id']}")["open_tasks"] == 0, what="the purge")
        self.enqueue(made, [{"type": "t"}] * 3)


class Life(TokenTasksTest):
    def test_f_j1_a_rotated_token_has_the_count_of_the_one_before(self):
        made = self.limited(2)
        self.enqueue(made, [{"type": "t"}] * 2)
        again = self.root(200, "POST", f"/v1/tokens/{made['id']}:rotate", {"overlap_ms": 60000})
        self.assertEqual((again["max_tasks"], again["open_tasks"]), (2, 2))
        self.full(again)
        self.full(made)

    def test_f_j1_tasks_of_a_revoked_token_move_to_the_count_of_who_resumes_them(self):
        made, other = self.limited(2), self.limited(5, "tasks:enqueue", "tasks:control", "tasks:read", "payloads:read")
        task = self.enqueue(made)
        self.enqueue(made)
        self.revoke(made)
        self.worker()
        self.assertEqual(self.take(), [])
        self.assertEqual((self.count(made), self.count(other)), (2, 0))
        self.as_token(other["token"], 200, "POST", f"/v1/tasks/{task['id']}:resume", {})
        self.assertEqual((self.count(made), self.count(other)), (1, 1))
        self.end(self.take()[0])
        self.assertEqual((self.count(made), self.count(other)), (1, 0))
        self.verify()

    def test_f_j1_after_kills_under_load_the_count_is_what_there_is(self):
        made = self.limited(40)
        self.worker()
        for _ in range(4):
            stop = threading.Event()

            def enqueue():
                while not stop.is_set():
                    try:
                        self.request("POST", "/v1/tasks", [{"type": "t"}] * 3, bearer(made["token"]))
                    except OSError:
                        return

            def work():
                while not stop.is_set():
                    try:
                        for task in self.request("POST", "/v1/workers/w:claim", {"max": 5}, bearer(ROOT_TOKEN)).json["tasks"]:
                            self.request("POST", "/v1/workers/w:report", [{
                                "task_id": task["id"], "lease_token": task["lease_token"], "op": "complete"}], bearer(ROOT_TOKEN))
                    except (OSError, TypeError, KeyError):
                        return

            threads = [threading.Thread(target=act) for act in (enqueue, enqueue, work)]
            done = self.root(200, "GET", "/v1/tasks?status=completed&limit=1000")["items"]
            for thread in threads:
                thread.start()
            wait_until(lambda: len(self.root(200, "GET", "/v1/tasks?status=completed&limit=1000")["items"]) > len(done) + 20
                       or len(done) > 900, what="some ends")
            self.server.stop(signal.SIGKILL)
            stop.set()
            for thread in threads:
                thread.join()
            self.local = threading.local()
            self.server.start()
            said = self.root(200, "GET", f"/v1/tokens/{made['id']}")["open_tasks"]
            self.assertLessEqual(said, 40)
        while self.request("POST", "/v1/tasks", {"type": "t"}, bearer(made["token"])).status == 201:
            pass
        self.assertEqual(self.root(200, "GET", f"/v1/tokens/{made['id']}")["open_tasks"], 40)
        self.verify()


class ByHand(TokenTasksTest):
    def literal(self, task_id):
        return f"x'{task_id.replace('-', '')}'"

    def sql(self, text):
        self.server.stop()
        subprocess.run(["sqlite3", self.server.store, text], check=True)
        self.server.start()
        self.local = threading.local()

    def test_d12_the_count_follows_hand_written_sql(self):
        made = self.limited(2)
        task = self.enqueue(made)
        self.enqueue(made)
        of_it = f"WHERE id = {self.literal(task['id'])}"
        self.sql(f"UPDATE tasks SET status = 'cancelled' {of_it}")
        self.assertEqual(self.count(made), 1)
        self.sql(f"UPDATE tasks SET status = 'pending' {of_it}")
        self.assertEqual(self.count(made), 2)
        self.full(made)
        self.verify()


if __name__ == "__main__":
    unittest.main()
