"""Rights are checked again before execution (003 §5.1, D12): what a token made is not handed out after its revocation,
plans fire with the rights of who made them, children reach no further than their parents' makers. Each test has a
server of its own."""
import os
import threading
import unittest

from harness import wait_until
from token_harness import ROOT_TOKEN, TokenTest, bearer


class RevokedTest(TokenTest):
    def revoke(self, made):
        self.root(204, "DELETE", f"/v1/tokens/{made['id']}")

    def shop(self, *scopes, **fields):
        return self.make(*(scopes or ("tasks:enqueue", "plans:read", "plans:write", "plans:run")), **{"name": "shop"} | fields)

    def restart(self, **environment):
        self.server.stop()
        self.server.environment.update(environment)
        self.local = threading.local()
        self.server.start()

    def worker(self, queue="default", name="w"):
        self.root(201, "POST", "/v1/workers", {"id": name, "queues": [queue]})
        return name

    def take(self, worker="w", most=10):
        return self.root(200, "POST", f"/v1/workers/{worker}:claim", {"max": most})["tasks"]

    def say(self, worker, task, op, **fields):
        reply = self.root(200, "POST", f"/v1/workers/{worker}:report", [
            {"task_id": task["id"], "lease_token": task["lease_token"], "op": op, **fields}])
        return reply["items"][0]

    def shown(self, task):
        return self.root(200, "GET", f"/v1/tasks/{task['id']}")


class Held(RevokedTest):
    def test_a_task_of_a_revoked_token_is_held_says_why_and_runs_when_someone_resumes_it(self):
        made = self.shop()
        task = self.as_token(made["token"], 201, "POST", "/v1/tasks", {"type": "t"})
        self.assertEqual(task["created_by_principal"], f"token:{made['id']}")
        self.revoke(made)
        self.worker()
        self.assertEqual(self.take(), [])
        held = self.shown(task)
        self.assertEqual(held["status"], "paused")
        self.assertEqual(held["state"], "Access revoked: the token 'shop' was revoked")
        event = self.root(200, "GET", f"/v1/tasks/{task['id']}/events")["items"][0]
        self.assertEqual((event["actor"], event["status"], event["principal"]), ("ACCESS", "paused", None))
        why = self.root(200, "GET", f"/v1/tasks/{task['id']}/why")
        self.assertIn("Access revoked: the token 'shop' was revoked", str(why))
        self.assertIn("ACCESS", str(why))
        self.assertEqual(self.take(), [])
        other = self.make("tasks:control", "tasks:read", name="ops")
        self.as_token(other["token"], 200, "POST", f"/v1/tasks/{task['id']}:resume", {})
        self.assertEqual([item["id"] for item in self.take()], [task["id"]])
        self.assertEqual(self.shown(task)["created_by_principal"], f"token:{other['id']}")
        event = [item for item in self.root(200, "GET", f"/v1/tasks/{task['id']}/events")["items"]
                 if item["actor"] == "USER"][0]
        self.assertEqual(event["principal"], f"token:{other['id']}")

    def test_who_resumes_it_answers_for_it_from_then_on(self):
        made, other = self.shop(), self.make("tasks:control", name="ops")
        task = self.as_token(made["token"], 201, "POST", "/v1/tasks", {"type": "t"})
        self.revoke(made)
        self.worker()
        self.take()
        self.as_token(other["token"], 200, "POST", f"/v1/tasks/{task['id']}:resume", {})
        self.revoke(other)
        self.assertEqual(self.take(), [])
        self.assertEqual(self.shown(task)["state"], "Access revoked: the token 'ops' was revoked")

    def test_what_runs_goes_on_and_its_next_attempt_is_held(self):
        made = self.shop()
        task = self.as_token(made["token"], 201, "POST", "/v1/tasks", {"type": "t", "retry_delay_ms": 1})
        self.worker()
        claimed = self.take()[0]
        self.revoke(made)
        self.assertTrue(self.say("w", claimed, "progress", progress=50)["ok"])
        self.assertTrue(self.say("w", claimed, "fail", error="x", retryable=True)["ok"])
        wait_until(lambda: self.take() == [] and self.shown(task)["status"] == "paused", what="the hold")

    def test_a_backlog_of_held_tasks_delays_nobody(self):
        made = self.shop()
        self.as_token(made["token"], 201, "POST", "/v1/tasks", [{"type": "t"} for _ in range(3000)])
        self.revoke(made)
        task = self.root(201, "POST", "/v1/tasks", {"type": "t"})
        self.worker()
        found = wait_until(lambda: self.take(most=1), what="the task of another")
        self.assertEqual(found[0]["id"], task["id"])
        counts = self.root(200, "GET", "/v1/queues/default")
        self.assertIn("3000", str(counts))

    def test_a_waiting_claim_gets_nothing_of_a_revoked_token(self):
        made = self.shop()
        self.as_token(made["token"], 201, "POST", "/v1/tasks", {"type": "t", "delay_ms": 300})
        self.revoke(made)
        self.worker()
        found = self.root(200, "POST", "/v1/workers/w:claim", {"max": 1, "wait_ms": 1500})["tasks"]
        self.assertEqual(found, [])

    def test_a_restart_knows_what_was_revoked(self):
        made = self.shop()
        task = self.as_token(made["token"], 201, "POST", "/v1/tasks", {"type": "t"})
        self.revoke(made)
        self.restart()
        self.worker()
        self.assertEqual(self.take(), [])
        self.assertEqual(self.shown(task)["status"], "paused")


class Plans(RevokedTest):
    def test_a_schedule_fires_with_the_rights_of_its_maker_and_of_the_maker_of_its_job(self):
        job_maker, maker = self.shop(name="jobs"), self.shop(name="times")
        job = self.as_token(job_maker["token"], 201, "POST", "/v1/jobs", {"name": "j", "task_type": "t"})
        self.assertEqual(job["created_by_principal"], f"token:{job_maker['id']}")
        schedule = self.as_token(maker["token"], 201, "POST", "/v1/schedules", {
            "job_id": job["id"], "schedule_type": "interval", "interval_seconds": 1})
        self.assertEqual(schedule["created_by_principal"], f"token:{maker['id']}")
        runs = f"/v1/tasks?job_id={job['id']}"
        run = wait_until(lambda: self.root(200, "GET", runs)["items"], what="a run")[0]
        self.assertEqual(run["created_by_principal"], f"token:{job_maker['id']}")
        path = f"/v1/schedules/{schedule['id']}"
        for name, made, fix in (("times", maker, path), ("jobs", job_maker, f"/v1/jobs/{job['id']}")):
            self.revoke(made)
            error = wait_until(lambda: self.root(200, "GET", path)["error"], what="the refusal")
            self.assertIn(f"access revoked: the token '{name}'", error)
            before = len(self.root(200, "GET", runs)["items"])
            self.root(200, "PATCH", fix, {"is_active": True})
            wait_until(lambda count=before: len(self.root(200, "GET", runs)["items"]) > count, what="a run")
            self.assertIsNone(self.root(200, "GET", path)["error"])

    def test_a_plan_cannot_use_what_its_maker_may_not(self):
        made = self.shop(queues=["orders"], types=["mail*"])
        for body, field in (({"queue": "other", "task_type": "mail"}, "queue"),
                            ({"queue": "orders", "task_type": "cron:run"}, "type")):
            self.expect_error(403, "forbidden", "POST", "/v1/jobs", {"name": "j", **body}, bearer(made["token"]), field)
        mine = self.as_token(made["token"], 201, "POST", "/v1/jobs", {"name": "j", "queue": "orders", "task_type": "mail"})
        self.expect_error(403, "forbidden", "PATCH", f"/v1/jobs/{mine['id']}", {"task_type": "cron:run"},
                          bearer(made["token"]), "type")
        wide = self.root(201, "POST", "/v1/jobs", {"name": "wide", "queue": "other", "task_type": "mail"})
        token = bearer(made["token"])
        self.expect_error(403, "forbidden", "POST", "/v1/schedules", {
            "job_id": wide["id"], "schedule_type": "interval", "interval_seconds": 1}, token, "queue")
        self.expect_error(403, "forbidden", "POST", "/v1/recurring", {
            "name": "p", "pattern_type": "daily", "pattern_config": {}, "template_job_id": wide["id"]}, token, "queue")
        self.expect_error(403, "forbidden", "POST", f"/v1/jobs/{wide['id']}/dependencies", {
            "depends_on_job_id": mine["id"], "dependency_config": {"mode": "trigger"}}, token, "queue")
        self.expect_error(403, "forbidden", "POST", f"/v1/jobs/{wide['id']}:run", {}, token, "queue")

    def test_a_job_that_another_changes_runs_with_the_rights_of_that_one(self):
        narrow = self.shop(queues=["orders"])
        job = self.root(201, "POST", "/v1/jobs", {"name": "j", "queue": "orders", "task_type": "t"})
        self.assertEqual(job["created_by_principal"], "root")
        changed = self.as_token(narrow["token"], 200, "PATCH", f"/v1/jobs/{job['id']}", {"payload": {"x": 1}})
        self.assertEqual(changed["created_by_principal"], f"token:{narrow['id']}")

    def test_enqueueing_alone_makes_no_plan(self):
        made = self.make("tasks:enqueue")
        for path, body in (("/v1/jobs", {"name": "j", "task_type": "t"}), ("/v1/schedules", {}), ("/v1/recurring", {}),
                           ("/v1/categories", {"name": "c"})):
            self.expect_error(403, "forbidden", "POST", path, body, bearer(made["token"]))


class Children(RevokedTest):
    def test_a_child_is_its_parents_makers_and_reaches_no_further(self):
        made = self.shop(queues=["orders"], types=["parent", "child*"])
        parent = self.as_token(made["token"], 201, "POST", "/v1/tasks", {"type": "parent", "queue": "orders"})
        self.worker("orders")
        claimed = self.take()[0]
        for child, field in (({"type": "child", "queue": "other"}, "queue"), ({"type": "cron:run", "queue": "orders"}, "type")):
            refused = self.say("w", claimed, "spawn", tasks=[child])
            self.assertFalse(refused["ok"], refused)
            self.assertIn(f"may not use the {field}", str(refused))
        self.assertTrue(self.say("w", claimed, "spawn", tasks=[{"type": "child:1", "queue": "orders"}])["ok"])
        child = self.root(200, "GET", f"/v1/tasks?parent_id={parent['id']}")["items"][0]
        self.assertEqual(child["created_by_principal"], f"token:{made['id']}")
        self.revoke(made)
        self.assertEqual(self.take(), [])
        self.assertEqual(self.shown(child)["status"], "paused")

    def test_a_child_of_a_users_task_is_of_no_other_user(self):
        made = self.shop(user_id="ada")
        self.as_token(made["token"], 201, "POST", "/v1/tasks", {"type": "parent"})
        self.worker()
        refused = self.say("w", self.take()[0], "spawn", tasks=[{"type": "child", "user_id": "bob"}])
        self.assertFalse(refused["ok"], refused)
        self.assertIn("ada", str(refused))

    def test_a_fork_is_its_makers_and_is_held_with_it(self):
        made = self.shop()
        task = self.as_token(made["token"], 201, "POST", "/v1/tasks", {"type": "t"})
        fork = self.root(200, "POST", f"/v1/tasks/{task['id']}:fork", {})
        self.assertEqual(fork["created_by_principal"], f"token:{made['id']}")
        self.revoke(made)
        self.worker()
        self.assertEqual(self.take(), [])
        self.assertEqual(self.shown(fork)["status"], "paused")


class Settings(RevokedTest):
    def test_revoked_tasks_may_run_or_be_cancelled(self):
        for word, status in (("run", "claimed"), ("cancel", "cancelled")):
            made = self.shop()
            task = self.as_token(made["token"], 201, "POST", "/v1/tasks", {"type": "t", "queue": word})
            self.revoke(made)
            self.restart(PERDURA_ACCESS_REVOKED_TASKS=word)
            self.worker(word, word)
            self.assertEqual([item["id"] for item in self.take(word)], [task["id"]] if word == "run" else [])
            self.assertEqual(self.shown(task)["status"], status)


class Callbacks(RevokedTest):
    SELF = "http://127.0.0.1:9/done"

    def test_without_a_list_only_who_may_do_everything_has_the_server_call_itself(self):
        self.root(201, "POST", "/v1/tasks", {"type": "t", "callback_url": self.SELF})
        job = self.root(201, "POST", "/v1/jobs", {"name": "j", "task_type": "t"})
        for made in (self.shop(), self.make("admin", user_id="ada", namespace="*"), self.make("admin", namespace="default")):
            for method, path, body in (
                    ("POST", "/v1/tasks", {"type": "t"}), ("POST", "/v1/jobs", {"name": "k", "task_type": "t"}),
                    ("POST", "/v1/schedules", {"job_id": job["id"], "schedule_type": "interval",
                                               "interval_seconds": 60})):
                reply = self.request(method, path, {**body, "callback_url": self.SELF}, bearer(made["token"]))
                self.assertEqual(reply.status, 403, f"{path}: {reply.body}")
        made = self.shop()
        self.expect_error(403, "forbidden", "PATCH", f"/v1/jobs/{job['id']}", {"callback_url": self.SELF},
                          bearer(made["token"]), "callback_url")
        self.as_token(self.token("admin", namespace="*"), 201, "POST", "/v1/tasks",
                      {"type": "t", "callback_url": self.SELF})

    def test_a_child_cannot_call_what_its_parents_maker_may_not(self):
        made = self.shop()
        self.as_token(made["token"], 201, "POST", "/v1/tasks", {"type": "parent"})
        self.worker()
        refused = self.say("w", self.take()[0], "spawn", tasks=[{"type": "child", "callback_url": self.SELF}])
        self.assertFalse(refused["ok"], refused)
        self.assertIn("callbacks.allow", str(refused))

    def test_with_a_list_everyone_may_name_what_is_in_it(self):
        with open(os.path.join(self.folder, "perdura.yaml"), "w", encoding="utf-8") as file:
            file.write('callbacks: {allow: ["http://127.0.0.1:9"]}\n')
        self.server.arguments = ("--config", os.path.join(self.folder, "perdura.yaml"))
        self.restart()
        self.as_token(self.shop()["token"], 201, "POST", "/v1/tasks", {"type": "t", "callback_url": self.SELF})


class Limits(RevokedTest):
    environment = {**TokenTest.environment, "PERDURA_ACCESS_USER_TASKS": "5/h"}

    def test_a_user_enqueues_no_more_than_the_limit_and_a_refusal_leaves_nothing_behind(self):
        ada, bob, shop = self.token("tasks:enqueue", user_id="ada"), self.token("tasks:enqueue", user_id="bob"), \
            self.token("tasks:enqueue")
        self.as_token(ada, 201, "POST", "/v1/tasks", [{"type": "t"}] * 3)
        for token, body in ((ada, [{"type": "t"}] * 3), (shop, [{"type": "t", "user_id": "ada"}] * 3),
                            (shop, [{"type": "t", "user_id": "bob"}, *[{"type": "t", "user_id": "ada"}] * 3])):
            reply = self.request("POST", "/v1/tasks", body, bearer(token))
            self.assertEqual(reply.status, 429, reply.body)
            self.assertGreater(int(reply.headers["Retry-After"]), 3000)
            self.assertIn("access.user_limits", reply.json["error"]["message"])
        self.assertEqual(len(self.root(200, "GET", "/v1/tasks")["items"]), 3)
        self.expect_error(403, "forbidden", "POST", "/v1/tasks", [{"type": "t"}, {"type": "t", "user_id": "bob"}],
                          bearer(ada), "user_id")
        self.as_token(ada, 201, "POST", "/v1/tasks", [{"type": "t"}] * 2)
        self.expect_error(429, "rate_limited", "POST", "/v1/tasks", {"type": "t"}, bearer(ada))
        self.as_token(bob, 201, "POST", "/v1/tasks", [{"type": "t"}] * 5)
        self.as_token(shop, 201, "POST", "/v1/tasks", [{"type": "t"}] * 20)
        self.expect_error(422, "invalid", "POST", "/v1/tasks", [{"type": "t"}] * 6, bearer(self.token(
            "tasks:enqueue", user_id="cleo")))

    def test_running_a_job_counts_and_a_schedule_does_not(self):
        ada = self.token("plans:write", "plans:run", "tasks:enqueue", user_id="ada")
        job = self.as_token(ada, 201, "POST", "/v1/jobs", {"name": "j", "task_type": "t"})
        for _ in range(5):
            self.as_token(ada, 201, "POST", f"/v1/jobs/{job['id']}:run", {})
        self.expect_error(429, "rate_limited", "POST", f"/v1/jobs/{job['id']}:run", {}, bearer(ada))
        self.as_token(ada, 201, "POST", "/v1/schedules", {"job_id": job["id"], "schedule_type": "interval",
                                                          "interval_seconds": 1})
        wait_until(lambda: len(self.root(200, "GET", f"/v1/tasks?job_id={job['id']}")["items"]) > 5, what="a run")


if __name__ == "__main__":
    unittest.main()
