"""Which moments of a task its callback tells of (D19, C7): each attempt that starts, fails or runs into its
timeout, and the end; set on a task, a job or a schedule."""
import collections
import json
import unittest

from harness import ApiTest, wait_until
from service_target import Target, reply

ALL = ["started", "failed", "timeout", "ended"]


class Told(ApiTest):
    arguments = ("--workers", "0")

    def setUp(self):
        self.told = collections.defaultdict(list)

        def receive(call):
            body = call.json
            self.told[body["id"]].append(body)
            return reply()
        self.receiver = Target(receive)
        self.addCleanup(self.receiver.close)
        super().setUp()
        self.register()

    def claim_one(self, **report):
        """One attempt of the task that is due."""
        (task,) = wait_until(lambda: self.claim(wait_ms=1000), what="a task to claim")
        self.report_ok("worker-1", task, "start")
        if report:
            self.report_ok("worker-1", task, **report)
        return task["id"]

    def url(self):
        return self.receiver.url + "/told"

    def heard(self, task_id, count):
        """What came, in the order of versions: callbacks of one task may arrive in any order."""
        bodies = wait_until(lambda: len(self.told[task_id]) >= count and self.told[task_id], what=f"{count} callbacks")
        self.assertEqual(len(bodies), count)
        return sorted(((x["event"], x.get("attempt")) for x in bodies), key=lambda x: (x[1] or 99, ALL.index(x[0])))

class CallbackEventsTest(Told):
    def test_d19_every_attempt_is_told_of(self):
        task = self.enqueue(callback_url=self.url(), callback_events=["ended", "failed", "started", "failed"],
                            max_retries=1, retry_delay_ms=1, payload={"n": 1})
        self.assertEqual(task["callback_events"], ["started", "failed", "ended"])
        self.claim_one(op="fail", error="no")
        self.claim_one(op="complete", result=7)
        self.assertEqual(self.heard(task["id"], 4), [("started", 1), ("failed", 1), ("started", 2), ("ended", None)])
        failed = next(x for x in self.told[task["id"]] if x["event"] == "failed")
        self.assertEqual((failed["last_error"], failed["payload"], failed["status"]), ("no", {"n": 1}, "delayed"))

    def test_d19_a_timeout_is_told_of_as_such(self):
        task = self.enqueue(callback_url=self.url(), callback_events=ALL, max_retries=0, timeout_ms=100)
        self.claim_one()
        self.assertEqual(self.heard(task["id"], 3), [("started", 1), ("timeout", 1), ("ended", None)])

    def test_d19_without_a_list_the_end_alone_is_told_and_a_list_may_leave_it_out(self):
        plain = self.enqueue(callback_url=self.url())
        self.assertIsNone(plain["callback_events"])
        self.claim_one(op="complete")
        self.assertEqual(self.heard(plain["id"], 1), [("ended", None)])
        quiet = self.enqueue(callback_url=self.url(), callback_events=["failed"])
        self.claim_one(op="complete")
        last = self.enqueue(callback_url=self.url())
        self.claim_one(op="complete")
        self.heard(last["id"], 1)
        self.assertEqual(self.told[quiet["id"]], [])

    def test_d19_a_job_says_it_for_its_runs_and_a_schedule_in_place_of_it(self):
        job = self.expect(201, "POST", "/v1/jobs", {
            "name": "j", "queue": "default", "callback_url": self.url(), "callback_events": ["started", "ended"]})
        self.assertEqual(job["callback_events"], ["started", "ended"])
        run = self.expect(201, "POST", f"/v1/jobs/{job['id']}:run", {})
        self.claim_one(op="complete")
        self.assertEqual(self.heard(run["id"], 2), [("started", 1), ("ended", None)])
        schedule = self.expect(201, "POST", f"/v1/jobs/{job['id']}/schedules", {
            "schedule_type": "immediate", "callback_events": ["started"]})
        self.assertEqual(schedule["callback_events"], ["started"])
        fired = self.claim_one(op="complete")
        self.assertEqual(self.heard(fired, 1), [("started", 1)])
        changed = self.expect(200, "PATCH", f"/v1/jobs/{job['id']}", {"callback_events": None})
        self.assertIsNone(changed["callback_events"])

    def test_d19_a_list_that_cannot_be_is_refused(self):
        for wrong in ([], "ended", ["begun"], [1], {"ended": True}, ["ended", None]):
            for path, body in (("/v1/tasks", {"type": "t"}), ("/v1/jobs", {"name": "wrong"})):
                status, answer = self.api("POST", path, {**body, "callback_events": wrong})
                self.assertEqual((status, answer["error"]["field"]), (422, "callback_events"), json.dumps(wrong))


class LostTest(Told):
    arguments = ("--workers", "0", "--lease", "1s")

    def test_d19_a_lost_worker_is_a_failed_attempt(self):
        task = self.enqueue(callback_url=self.url(), callback_events=["failed"], max_retries=0)
        self.claim_one()
        self.assertEqual(self.heard(task["id"], 1), [("failed", 1)])
        self.assertEqual(self.told[task["id"]][0]["last_error"], "worker_lost")


if __name__ == "__main__":
    unittest.main()
