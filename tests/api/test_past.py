"""GET /v1/tasks/{id}?at=TIME over HTTP: a task as it was (A10)."""
import datetime
import os
import unittest

from harness import ApiTest
from routes_cases import RoutesCases


def before(time):
    """A microsecond earlier."""
    moment = datetime.datetime.fromisoformat(time.replace("Z", "+00:00"))
    return (moment - datetime.timedelta(microseconds=1)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Past:
    """Mixin: asks."""

    def at(self, task_id, time):
        return self.expect(200, "GET", f"/v1/tasks/{task_id}?at={time}")


SAME = ("id", "type", "name", "queue", "status", "previous_status", "state", "progress",
        "attempts", "worker_id", "claimed_at", "started_at", "completed_at",
        "pause_requested", "checkpoint_data", "created_at", "updated_at")


class PastTest(Past, ApiTest):
    def shown(self, task):
        return {name: task[name] for name in SAME}

    def test_a10_each_moment_of_a_life_comes_back(self):
        task_id = self.enqueue("t", name="n")["id"]
        self.register()
        moments = [self.task(task_id)]
        task, = self.claim()
        moments.append(self.task(task_id))
        for op, fields in (("start", {}), ("progress", {"progress": 20, "state": "Reading"}),
                           ("checkpoint", {"name": "one", "progress": 30, "data": {"n": 1}}),
                           ("release", {})):
            self.report_ok("worker-1", task, op, **fields)
            moments.append(self.task(task_id))
        task, = self.claim()
        self.report_ok("worker-1", task, "start")
        moments.append(self.task(task_id))
        self.complete("worker-1", task, 1)
        moments.append(self.task(task_id))
        for moment in moments:
            past = self.at(task_id, moment["updated_at"])
            self.assertEqual(self.shown(past), self.shown(moment))
            self.assertEqual(past["at"], moment["updated_at"])
        for event in self.events(task_id)[:-1]:  # not the first: before that there was nothing
            past = self.at(task_id, before(event["created_at"]))
            self.assertLess(past["event_seq"], event["seq"])

    def test_times_are_taken_in_every_form_and_later_ones_are_now(self):
        task = self.enqueue()
        past = self.at(task["id"], "2999-01-01T00:00:00Z")
        self.assertEqual((past["status"], past["event_seq"]), ("pending", 1))
        offset = task["created_at"].replace("Z", "%2B00:00")
        self.assertEqual(self.at(task["id"], offset)["status"], "pending")
        self.expect_error(422, "invalid", "GET", f"/v1/tasks/{task['id']}?at=yesterday",
                          field="at")

    def test_before_it_was_made_there_was_no_task(self):
        task = self.enqueue()
        error = self.expect_error(404, "not_found", "GET",
                                  f"/v1/tasks/{task['id']}?at={before(task['created_at'])}")
        self.assertIn("did not exist yet", error["message"])

    def test_a_long_life_is_read_from_its_beginning(self):
        task_id = self.enqueue()["id"]
        self.register()
        task, = self.claim()
        for number in range(12):
            self.report("worker-1", *[self.element(task, "progress", progress=number,
                                                   state=f"Step {number * 100 + i}")
                                      for i in range(100)])
        events = self.expect(200, "GET", f"/v1/tasks/{task_id}/events?limit=100")["items"]
        self.assertEqual(events[0]["seq"], 1203)
        past = self.at(task_id, events[0]["created_at"])
        self.assertEqual((past["event_seq"], past["state"], past["progress"], past["attempts"]),
                         (1203, "Step 1199", 11, 1))
        early = self.at(task_id, self.task(task_id)["started_at"])
        self.assertEqual((early["status"], early["attempts"]), ("running", 1))
        self.assertLess(early["event_seq"], 200)

    def test_a_detail_of_the_users_own_is_never_taken_for_progress(self):
        task_id = self.enqueue()["id"]
        self.register()
        task, = self.claim()
        self.report_ok("worker-1", task, "progress", progress=5, state="A")
        self.report_ok("worker-1", task, "progress", state="B", detail={"progress": 77})
        self.assertEqual(self.task(task_id)["progress"], 5)
        self.assertEqual(self.at(task_id, "2999-01-01T00:00:00Z")["progress"], 5)
        events = self.expect(200, "GET", f"/v1/tasks/{task_id}/events")["items"]
        self.assertIn({"progress": 77}, [event["detail"] for event in events])

    def test_b7_a_fork_has_its_checkpoint_from_the_beginning(self):
        task_id = self.enqueue()["id"]
        self.register()
        task, = self.claim()
        self.report_ok("worker-1", task, "checkpoint", name="one", progress=30)
        self.complete("worker-1", task)
        made = self.expect(200, "POST", f"/v1/tasks/{task_id}:fork")
        past = self.at(made["id"], made["created_at"])
        self.assertEqual((past["state"], past["progress"], past["checkpoint_data"]),
                         ("Forked", 30, made["checkpoint_data"]))


class PastOfTwoStores(Past, RoutesCases):
    def mail_store(self):
        return os.path.join(self.folder, "mail.db")

    def test_c8_a_task_is_shown_as_it_was_whichever_store_it_is_in(self):
        for task_id in self.enqueue_both():
            self.expect(200, "POST", f"/v1/tasks/{task_id}:pause")
            made = self.task(task_id)["created_at"]
            self.assertEqual(self.at(task_id, made)["status"], "pending")
            self.assertEqual(self.at(task_id, "2999-01-01T00:00:00Z")["status"], "paused")


if __name__ == "__main__":
    unittest.main()
