"""PATCH /v1/tasks/{id} over HTTP: what people say about a task, changed at any time (A10)."""
import os
import unittest

from harness import ApiTest
from routes_cases import RoutesCases

NOBODY = "0197f6a2-5c3e-7b11-9d2f-3a4b5c6d7e8f"


class UpdateTest(ApiTest):
    def note(self, task_id, note):
        task = self.expect(200, "PATCH", f"/v1/tasks/{task_id}", {"note": note})
        self.assertEqual(task, self.task(task_id))
        return task["note"]

    def test_only_what_people_may_change_is_taken(self):
        path = f"/v1/tasks/{self.enqueue()['id']}"
        for member, value in (("type", "other"), ("priority", 1), ("status", "completed"), ("colour", "red")):
            error = self.expect_error(422, "invalid", "PATCH", path, {member: value}, field=member)
            self.assertIn(member, error["message"])
        for wrong, status, code in ((b"[]", 422, "invalid"), (b"1", 422, "invalid"), (b"{", 400, "malformed")):
            self.expect_error(status, code, "PATCH", path, wrong)
        self.assertEqual(self.task(path.rsplit("/", 1)[1])["version"], 1)

    def test_a_task_that_is_not_there_is_404_and_an_id_that_is_none_is_refused(self):
        self.expect_error(404, "not_found", "PATCH", f"/v1/tasks/{NOBODY}", {})
        self.expect_error(404, "not_found", "PATCH", "/v1/tasks/none", {})

    def test_a_change_that_names_nothing_changes_nothing(self):
        task = self.enqueue()
        self.assertEqual(self.expect(200, "PATCH", f"/v1/tasks/{task['id']}", {}), self.task(task["id"]))
        self.assertEqual((self.task(task["id"])["version"], len(self.events(task["id"]))), (1, 1))

    def test_a_version_that_is_gone_is_refused(self):
        path = f"/v1/tasks/{self.enqueue()['id']}"
        self.expect(200, "PATCH", path, {"if_version": 1})
        self.expect(200, "PATCH", path, {}, {"If-Match": '"1"'})
        self.expect_error(409, "version_mismatch", "PATCH", path, {"if_version": 2})
        self.expect_error(412, "precondition_failed", "PATCH", path, {}, {"If-Match": '"2"'})
        self.expect_error(422, "invalid", "PATCH", path, {"if_version": 1}, {"If-Match": '"1"'}, field="if_version")

    def test_a_note_is_given_at_enqueue_and_changed_later(self):
        made = self.enqueue(note="as agreed – “ä”")
        self.assertEqual((made["note"], self.task(made["id"])["note"]), ("as agreed – “ä”",) * 2)
        self.assertIsNone(self.enqueue()["note"])
        self.assertIsNone(self.enqueue(note=None)["note"])
        self.assertEqual(self.note(made["id"], "another"), "another")
        self.assertEqual(self.expect(200, "GET", "/v1/tasks?order=oldest")["items"][0]["note"], "another")
        for nothing in (None, ""):
            self.note(made["id"], "x")
            self.assertIsNone(self.note(made["id"], nothing))

    def test_a_note_has_up_to_1024_bytes_of_text(self):
        task_id = self.enqueue(note="ä" * 512)["id"]
        self.assertEqual(self.note(task_id, "x" * 1024), "x" * 1024)
        for wrong in ("x" * 1025, "ä" * 512 + "x", "two\nlines", 1, ["x"], {}):
            for method, path, body in (("POST", "/v1/tasks", {"type": "t", "note": wrong}),
                                       ("PATCH", f"/v1/tasks/{task_id}", {"note": wrong})):
                self.expect_error(422, "invalid", method, path, body, field="note")
        self.expect_error(422, "invalid", "POST", "/v1/tasks", {"type": "t", "note": ""}, field="note")
        for method, path in (("POST", "/v1/tasks"), ("PATCH", f"/v1/tasks/{task_id}")):
            self.expect_error(400, "malformed", method, path, b'{"note":"\xff"}')
        self.assertEqual(self.task(task_id)["note"], "x" * 1024)

    def test_a10_every_change_of_a_note_is_an_event_and_the_past_has_it(self):
        task_id = self.enqueue(note="first")["id"]
        moments = [self.task(task_id)]
        for note in ("second \"quoted\"", "second \"quoted\"", None):
            self.note(task_id, note)
            moments.append(self.task(task_id))
        self.assertEqual([moment["version"] for moment in moments], [1, 2, 2, 3])
        events = self.events(task_id)[::-1]
        self.assertEqual([event["detail"]["note"] for event in events], ["first", "second \"quoted\"", None])
        self.assertEqual([(event["actor"], event["status"]) for event in events[1:]], [("USER", "pending")] * 2)
        for moment in moments:
            past = self.expect(200, "GET", f"/v1/tasks/{task_id}?at={moment['updated_at']}")
            self.assertEqual((past["note"], past["updated_at"]), (moment["note"], moment["updated_at"]))

    def test_a_task_that_runs_or_has_ended_takes_a_note_and_nothing_else_changes(self):
        self.register()
        task_id = self.enqueue(max_retries=0)["id"]
        held, = self.claim()
        self.report_ok("worker-1", held, "start")
        self.assertEqual(self.note(task_id, "it runs"), "it runs")
        self.report_ok("worker-1", held, "fail", error="no")
        before = self.task(task_id)
        self.assertEqual((before["status"], before["note"]), ("dead_letter", "it runs"))
        self.note(task_id, "a known fault")
        after = self.task(task_id)
        changed = {name for name in after if after[name] != before[name]}
        self.assertEqual(changed, {"note", "version", "updated_at"})
        retried = self.expect(200, "POST", f"/v1/tasks/{task_id}:retry", {})
        self.assertEqual(retried["note"], "a known fault")

    def test_a_paused_task_is_paused_by_who_paused_it_and_not_by_who_noted_something(self):
        task_id = self.enqueue()["id"]
        self.expect(200, "POST", f"/v1/tasks/{task_id}:pause", {"reason": "a full disk"})
        before = self.why(task_id)
        self.assertIn("a full disk", str(before))
        self.note(task_id, "ask Ada")
        self.assertEqual(self.why(task_id), before)

    def why(self, task_id):
        """Without the sentence, which says how long ago it was."""
        answer = self.expect(200, "GET", f"/v1/tasks/{task_id}/why")
        return answer["reason"], answer["detail"]

    def test_a_fork_begins_without_the_note_of_its_original(self):
        made = self.expect(200, "POST", f"/v1/tasks/{self.enqueue(note='mine')['id']}:fork", {})
        self.assertIsNone(made["note"])

    def test_a_child_that_is_spawned_may_have_one(self):
        self.register()
        self.enqueue()
        held, = self.claim()
        self.report_ok("worker-1", held, "spawn", tasks=[{"type": "child", "note": "of its parent"}])
        child, = self.claim()
        self.assertEqual(child["note"], "of its parent")
        self.assertEqual(self.events(child["id"])[-1]["detail"]["note"], "of its parent")


class UpdateRoutesTest(RoutesCases):
    """C8: also where the task is in another store."""

    def mail_store(self):
        return os.path.join(self.folder, "mail.db")

    def test_a_note_finds_its_task_in_every_store(self):
        for task_id in self.enqueue_both():
            self.assertEqual(self.expect(200, "PATCH", f"/v1/tasks/{task_id}", {"note": "seen"})["note"], "seen")


del RoutesCases  # it has no store of its own


if __name__ == "__main__":
    unittest.main()
