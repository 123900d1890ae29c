"""PATCH /v1/tasks/{id} over HTTP: what people say about a task, changed at any time (A10)."""
import unittest

from harness import ApiTest

NOBODY = "0197f6a2-5c3e-7b11-9d2f-3a4b5c6d7e8f"


class UpdateTest(ApiTest):
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


if __name__ == "__main__":
    unittest.main()
