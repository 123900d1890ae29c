"""The audit trail (D18): who changed what, what was refused, and what is shown of it."""
import unittest

from harness import ApiTest

TOKEN = "a-token-of-the-server"


class AuditTest(ApiTest):
    environment = {"PERDURA_TOKEN": TOKEN}

    def request(self, method, path, body=None, headers=None):
        headers = {"Authorization": f"Bearer {TOKEN}"} | (headers or {})
        return super().request(method, path, body,
                               {key: value for key, value in headers.items() if value})

    def trail(self, query=""):
        """Oldest first."""
        return self.expect(200, "GET", "/v1/audit" + query)["items"][::-1]

    def told(self, query=""):
        return [(entry["action"], entry["object_id"]) for entry in self.trail(query)]


class Changes(AuditTest):
    def test_d18_changes_of_queues_name_who_and_what(self):
        self.expect(200, "PATCH", "/v1/queues/media", {"concurrency": 3},
                    {"X-Request-Id": "deploy-7"})
        self.expect(200, "POST", "/v1/queues/media:pause")
        self.expect(200, "POST", "/v1/queues/media:resume")
        self.expect(204, "DELETE", "/v1/queues/media")
        entries = self.trail()
        self.assertEqual([entry["action"] for entry in entries],
                         ["queue.update", "queue.pause", "queue.resume", "queue.delete"])
        first = entries[0]
        self.assertEqual((first["principal"], first["token_id"], first["address"], first["request_id"],
                          first["namespace"], first["object_kind"], first["object_id"], first["outcome"]),
                         ("root", None, "127.0.0.1", "deploy-7", "default", "queue", "media", "done"))
        self.assertEqual(first["change"], {"before": {"concurrency": 0}, "after": {"concurrency": 3}})
        self.assertEqual([entry["seq"] for entry in entries], [1, 2, 3, 4])
        self.assertEqual(entries[3]["change"]["before"]["concurrency"], 3)

    def test_d18_changes_of_plans_show_before_and_after_but_no_payload(self):
        job = self.expect(201, "POST", "/v1/jobs", {"name": "nightly", "task_type": "t",
                                                    "payload": {"card": "4111-1111"}})["id"]
        self.expect(200, "PATCH", f"/v1/jobs/{job}", {"max_retries": 7, "payload": {"card": "42"}})
        schedule = self.expect(201, "POST", "/v1/schedules", {
            "job_id": job, "schedule_type": "interval", "interval_seconds": 60})["id"]
        self.expect(200, "POST", f"/v1/schedules/{schedule}:pause")
        other = self.expect(201, "POST", "/v1/jobs", {"name": "other", "task_type": "t"})["id"]
        edge = self.expect(201, "POST", f"/v1/jobs/{job}/dependencies",
                           {"depends_on_job_id": other, "dependency_type": "success"})["id"]
        self.expect(204, "DELETE", f"/v1/jobs/{job}/dependencies/{edge}")
        pattern = self.expect(201, "POST", "/v1/recurring", {
            "name": "daily", "template_job_id": job, "pattern_type": "daily",
            "pattern_config": {"time": "03:00"}})["id"]
        self.expect(204, "DELETE", f"/v1/recurring/{pattern}")
        category = self.expect(201, "POST", "/v1/categories", {"name": "night"})["id"]
        self.expect(200, "PATCH", f"/v1/categories/{category}", {"description": "by night"})
        self.expect(204, "DELETE", f"/v1/categories/{category}")
        self.expect(201, "POST", f"/v1/jobs/{other}:run")
        self.expect(204, "DELETE", f"/v1/schedules/{schedule}")
        self.expect(204, "DELETE", f"/v1/jobs/{job}")
        self.assertEqual(self.told(), [
            ("job.create", job), ("job.update", job), ("schedule.create", schedule),
            ("schedule.update", schedule), ("job.create", other), ("dependency.create", edge),
            ("dependency.delete", edge), ("recurring.create", pattern), ("recurring.delete", pattern),
            ("category.create", category), ("category.update", category), ("category.delete", category),
            ("job.run", other), ("schedule.delete", schedule), ("job.delete", job)])
        update = self.trail("?action=job.update")[0]["change"]
        self.assertEqual(update, {"before": {"max_retries": None, "payload_bytes": 21},
                                  "after": {"max_retries": 7, "payload_bytes": 14}})
        self.assertEqual(self.trail("?action=category.update")[0]["change"],
                         {"before": {"description": None}, "after": {"description": "by night"}})
        self.assertEqual(self.trail("?action=schedule.update")[0]["change"]["after"]["is_active"], False)
        self.assertNotIn("4111-1111", self.request("GET", "/v1/audit").body.decode())

    def test_d18_what_people_do_to_tasks_is_told_and_their_normal_life_is_not(self):
        self.register("worker-1")
        task = self.enqueue("t", user_id="u1")["id"]
        self.complete("worker-1", self.claim()[0])
        self.expect(200, "POST", f"/v1/tasks/{task}:retry")
        self.expect(200, "POST", f"/v1/tasks/{task}:prioritize", {"priority": 7})
        self.expect(200, "POST", f"/v1/tasks/{task}:pause")
        self.expect(200, "POST", f"/v1/tasks/{task}:resume")
        self.expect(200, "PATCH", f"/v1/tasks/{task}", {"note": "look at this"})
        self.expect(200, "POST", f"/v1/tasks/{task}:cancel")
        self.expect(204, "DELETE", f"/v1/tasks/{task}")
        self.assertEqual(self.told(), [("task." + word, task) for word in (
            "retry", "prioritize", "pause", "resume", "update", "cancel", "delete")])
        changes = [entry["change"] for entry in self.trail()]
        self.assertEqual(changes[0], {"before": {"status": "completed"}, "after": {"status": "pending"}})
        self.assertEqual(changes[1], {"before": {"priority": 0}, "after": {"priority": 7}})
        self.assertEqual(changes[4], {"before": {"note": None}, "after": {"note": "look at this"}})
        self.assertEqual(changes[6], {"before": {"status": "cancelled"}})
        original = self.enqueue("t", user_id="u1")["id"]
        self.complete("worker-1", self.claim()[0])
        fork = self.expect(200, "POST", f"/v1/tasks/{original}:fork", {})["id"]
        self.assertEqual(self.told("?action=task.fork"), [("task.fork", original)])
        self.assertEqual(self.trail("?action=task.fork")[0]["change"], {"after": {"task_id": fork}})
        self.complete("worker-1", self.claim()[0])
        self.expect(200, "DELETE", "/v1/tasks?user_id=u1")
        self.assertEqual(self.told("?action=task.purge"), [("task.purge", "u1")])

    def test_d18_each_task_of_a_bulk_change_is_told(self):
        made = {self.enqueue("t")["id"] for _ in range(3)}
        self.expect(200, "POST", "/v1/tasks:cancel?status=pending")
        self.assertEqual({entry["object_id"] for entry in self.trail("?action=task.cancel")}, made)
        self.assertEqual({entry["principal"] for entry in self.trail()}, {"root"})
        self.expect(200, "POST", "/v1/tasks:retry?status=cancelled")
        self.assertEqual({entry["object_id"] for entry in self.trail("?action=task.retry")}, made)

    def test_d18_what_is_refused_by_the_rules_changes_nothing_and_is_not_told(self):
        task = self.enqueue("t")["id"]
        self.expect_error(409, "invalid_transition", "POST", f"/v1/tasks/{task}:retry")
        self.expect_error(409, "version_mismatch", "POST", f"/v1/tasks/{task}:cancel", {"if_version": 99})
        self.expect(404, "POST", "/v1/jobs/0197f6a2-5c3e-7b11-9d2f-3a4b5c6d7e8f:run")
        self.expect(422, "POST", "/v1/jobs", {"name": ""})
        self.assertEqual(self.trail(), [])


    def test_d18_tokens_that_are_made_rotated_and_revoked_are_told_without_their_secrets(self):
        made = self.expect(201, "POST", "/v1/tokens", {"name": "deploy", "role": "operator"})
        self.expect(200, "POST", f"/v1/tokens/{made['id']}:rotate")
        token = {"Authorization": f"Bearer {made['token']}"}
        self.assertEqual(self.request("GET", "/v1/stats", headers=token).status, 401)
        self.expect(204, "DELETE", f"/v1/tokens/{made['id']}")
        self.assertEqual(self.told("?object_kind=token"), [("token." + word, made["id"]) for word in (
            "create", "rotate", "revoke")])
        change = self.trail("?action=token.create")[0]["change"]["after"]
        self.assertEqual(change["name"], "deploy")
        self.assertNotIn("hash", change)
        self.assertNotIn(made["token"][-20:], self.request("GET", "/v1/audit").body.decode())

    def test_d18_a_change_by_a_token_names_it(self):
        made = self.expect(201, "POST", "/v1/tokens", {"name": "deploy", "role": "operator"})
        token = {"Authorization": f"Bearer {made['token']}"}
        self.assertEqual(self.request("POST", "/v1/queues/a:pause", headers=token).status, 200)
        entry = self.trail("?action=queue.pause")[0]
        self.assertEqual((entry["principal"], entry["token_id"]), ("token:deploy", made["id"]))
        self.assertEqual(self.request("GET", "/v1/audit", headers=token).status, 403)


class Lists(AuditTest):
    def test_d18_filters_and_pages(self):
        for name in ("a", "b", "c"):
            self.expect(200, "POST", f"/v1/queues/{name}:pause")
        self.expect(201, "POST", "/v1/jobs", {"name": "j", "task_type": "t"})
        self.assertEqual(len(self.trail("?action=queue")), 3)
        self.assertEqual(self.told("?object_kind=job")[0][0], "job.create")
        self.assertEqual(self.told("?object_id=b"), [("queue.pause", "b")])
        self.assertEqual(self.trail("?principal=token:x"), [])
        self.assertEqual(self.trail("?outcome=refused"), [])
        middle = self.trail()[1]["at"]
        self.assertEqual(len(self.trail("?after=" + middle)), 3)
        self.assertEqual(len(self.trail("?before=" + middle)), 1)
        page = self.expect(200, "GET", "/v1/audit?limit=3")
        self.assertEqual([entry["seq"] for entry in page["items"]], [4, 3, 2])
        rest = self.expect(200, "GET", "/v1/audit?limit=3&cursor=" + page["next_cursor"])
        self.assertEqual([entry["seq"] for entry in rest["items"]], [1])
        self.assertIsNone(rest["next_cursor"])
        self.expect_error(422, "invalid", "GET", "/v1/audit?outcome=maybe", field="outcome")

    def test_d12_a_namespace_sees_its_own_entries(self):
        self.expect(200, "POST", "/v1/queues/a:pause")
        self.assertEqual(len(self.trail()), 1)
        reply = self.expect(200, "GET", "/v1/audit", headers={"Perdura-Namespace": "default"})
        self.assertEqual(len(reply["items"]), 1)


class Refusals(AuditTest):
    def test_d18_refusals_are_counted_by_who_asked_for_what(self):
        for _ in range(3):
            self.assertEqual(self.request("GET", "/v1/tasks", headers={"Authorization": None}).status, 401)
        self.assertEqual(self.request("GET", "/v1/stats", headers={"Host": "evil.example"}).status, 403)
        self.server.stop()
        self.server.start()
        self.local.connection = None
        entries = self.trail("?outcome=refused")
        self.assertEqual({(entry["principal"], entry["change"]["code"], entry["change"]["count"])
                          for entry in entries},
                         {("unknown", "unauthorized", 3), ("unknown", "forbidden", 1)})
        self.assertEqual({entry["action"] for entry in entries}, {"access.refused"})
        self.assertEqual({entry["address"] for entry in entries}, {"127.0.0.1"})


if __name__ == "__main__":
    unittest.main()
