"""GET /v1/tasks/{id}/why over HTTP: the reason, its sentence and its details, who paused a task; and
the same where queues live in several stores (C8)."""
import os
import unittest

from harness import ApiTest
from routes_cases import RoutesCases

NOBODY = "0197f6a2-5c3e-7b11-9d2f-3a4b5c6d7e8f"


class Why:
    """Mixin: asks."""

    def why(self, task_id):
        answer = self.expect(200, "GET", f"/v1/tasks/{task_id}/why")
        self.assertEqual(set(answer), {"reason", "text", "detail"})
        self.assertNotIn("\n", answer["text"])
        return answer

    def reason(self, task_id):
        return self.why(task_id)["reason"]


class WhyTest(Why, ApiTest):
    def test_a_task_that_is_not_there_is_404(self):
        self.expect_error(404, "not_found", "GET", f"/v1/tasks/{NOBODY}/why")
        self.expect_error(404, "not_found", "GET", "/v1/tasks/nonsense/why")
        self.expect_error(422, "invalid", "GET", f"/v1/tasks/{NOBODY}/why?deep=1")

    def test_a_life_is_told_from_line_to_end(self):
        task_id = self.enqueue()["id"]
        self.assertEqual(self.reason(task_id), "no_worker")
        self.register()
        answer = self.why(task_id)
        self.assertEqual((answer["reason"], answer["detail"]["workers"], answer["detail"]["line"]),
                         ("ready", 1, 1))
        task, = self.claim()
        self.assertEqual(self.reason(task_id), "claimed")
        self.report_ok("worker-1", task, "progress", progress=40, state="Halfway")
        answer = self.why(task_id)
        self.assertEqual((answer["reason"], answer["detail"]["worker_id"],
                          answer["detail"]["progress"]), ("running", "worker-1", 40))
        self.assertIn("Running on worker-1 since ", answer["text"])
        self.report_ok("worker-1", task, "fail", error="no such customer", retryable=False)
        answer = self.why(task_id)
        self.assertEqual((answer["reason"], answer["detail"]["error"]),
                         ("failed", "no such customer"))

    def test_a6_a_blocked_task_names_whom_it_waits_for(self):
        parent = self.enqueue()["id"]
        child = self.enqueue(depends_on=[parent])["id"]
        answer = self.why(child)
        self.assertEqual(answer["reason"], "dependency")
        self.assertEqual(answer["detail"]["tasks"],
                         [{"id": parent, "ref": None, "status": "pending"}])
        self.assertIn(f"Waiting for task {parent} (pending)", answer["text"])
        self.assertEqual(answer["detail"]["also"], ["no_worker"])

    def test_a6_a_chain_is_told_to_its_root(self):
        root = self.enqueue()["id"]
        between = self.enqueue(depends_on=[root])["id"]
        last = self.enqueue(depends_on=[between])["id"]
        self.expect(200, "POST", f"/v1/tasks/{root}:pause")
        answer = self.why(last)
        self.assertEqual(answer["detail"]["chain"], [{"id": between, "status": "blocked"},
                                                     {"id": root, "status": "paused"}])
        said = answer["detail"]["root"]
        self.assertEqual((said["id"], said["reason"], said["detail"]["status"]),
                         (root, "paused", "paused"))
        self.assertTrue(answer["text"].endswith(f", which is waiting for task {root} (paused): "
                                                f"{said['text']}"), answer["text"])
        self.expect(200, "POST", f"/v1/tasks/{root}:cancel")
        answer = self.why(last)
        self.assertEqual((answer["reason"], answer["detail"]["root"]["id"]), ("cancelled", root))
        self.assertIn(f"because it waited for task {root} (cancelled)", answer["text"])
        self.assertNotIn("chain", self.why(root)["detail"])

    def test_a_pause_says_who_when_and_why(self):
        task_id = self.enqueue()["id"]
        self.expect(200, "POST", f"/v1/tasks/{task_id}:pause", {"reason": "month end"})
        answer = self.why(task_id)
        self.assertEqual((answer["reason"], answer["detail"]["actor"],
                          answer["detail"]["paused_because"]), ("paused", "USER", "month end"))
        self.assertEqual(answer["detail"]["since"], self.events(task_id)[0]["created_at"])

    def test_a_pause_that_a_worker_carried_out_was_asked_for_by_the_user(self):
        task_id = self.enqueue()["id"]
        self.register()
        task, = self.claim()
        self.report_ok("worker-1", task, "start")
        self.expect(200, "POST", f"/v1/tasks/{task_id}:pause")
        self.assertIn("pause was requested", self.why(task_id)["text"])
        self.report_ok("worker-1", task, "release")
        answer = self.why(task_id)
        self.assertEqual((answer["reason"], answer["detail"]["actor"]), ("paused", "USER"))
        self.assertIn("Paused by USER", answer["text"])

    def test_a_paused_queue_and_a_retry_say_since_and_until_when(self):
        self.register()
        first = self.enqueue(retry_delay_ms=60000)["id"]
        task, = self.claim()
        self.report_ok("worker-1", task, "fail", error="no luck")
        answer = self.why(first)
        self.assertEqual((answer["reason"], answer["detail"]["retry"],
                          answer["detail"]["max_retries"]), ("retry", 1, 3))
        self.assertEqual(answer["detail"]["until"], self.task(first)["next_retry_at"])
        second = self.enqueue()["id"]
        self.expect(200, "POST", "/v1/queues/default:pause")
        self.assertEqual(self.reason(second), "queue_paused")
        self.assertEqual(self.why(first)["detail"]["also"], ["queue_paused"])

    def test_a_claim_that_waits_for_other_queues_than_it_registered_counts(self):
        self.register()
        blocked = self.enqueue("t", queue="mail", delay_ms=60000)["id"]
        self.assertEqual(self.why(blocked)["detail"]["also"], ["no_worker"])
        call = self.in_thread(lambda: self.claim(wait_ms=50000, queues=["mail"]))
        self.wait_for_waiting("waiting_claims", 1)
        self.assertEqual(self.why(blocked)["detail"]["also"], [])
        self.enqueue("t", queue="mail")
        self.assertEqual(len(call.result()), 1)


class WhyOfTwoStores(Why, RoutesCases):
    def mail_store(self):
        return os.path.join(self.folder, "mail.db")

    def test_c8_a_task_is_explained_whichever_store_it_is_in(self):
        here = self.enqueue()["id"]
        there = self.enqueue(queue="mail")["id"]
        self.expect(200, "POST", "/v1/queues/mail:pause")
        self.assertEqual(self.reason(here), "no_worker")
        self.assertEqual(self.reason(there), "queue_paused")
        self.expect(200, "POST", f"/v1/tasks/{there}:pause")
        self.assertEqual(self.why(there)["detail"]["actor"], "USER")
        self.expect_error(404, "not_found", "GET", f"/v1/tasks/{NOBODY}/why")


if __name__ == "__main__":
    unittest.main()
