"""What workers and producers may say at most (A5, C3): whatever is beyond a bound is refused with
its reason or cut where a character ends; nothing that is stored breaks the JSON that shows it."""
import unittest

from harness import ApiTest

ID = "01890000-0000-7000-8000-000000000001"


class ReportBounds(ApiTest):
    def hold(self, **fields):
        self.register()
        self.enqueue(**fields)
        return self.claim()[0]

    def test_an_error_that_is_too_long_is_cut_between_characters(self):
        for text in ("x" + "ä" * 3000, "€" * 2000, "x" * 5000):
            with self.subTest(text[:2]):
                held = self.hold(max_retries=0)
                self.report_ok("worker-1", held, "fail", error=text, retryable=False)
                error = self.task(held["id"])["error"]
                self.assertTrue(text.startswith(error))
                self.assertLess(4096 - 4, len(error.encode()))
                self.assertLessEqual(len(error.encode()), 4096)

    def test_a_log_line_that_is_too_long_is_cut_between_characters(self):
        held = self.hold()
        text = "x" + "ä" * 40000
        self.report_ok("worker-1", held, "log", message=text)
        line, = self.expect(200, "GET", f"/v1/tasks/{held['id']}/logs")["items"]
        self.assertTrue(text.startswith(line["message"][:30000]))
        self.assertLessEqual(len(line["message"].encode()), 65536)

    def test_every_part_of_a_report_has_a_bound(self):
        held = self.hold()
        rows = (("progress", {"data": "x" * (1 << 20)}, "too_large", "data"),
                ("progress", {"metadata": {"m": "x" * 16384}}, "too_large", "metadata"),
                ("progress", {"detail": "x" * 16384}, "too_large", "detail"),
                ("progress", {"state": "x" * 201}, "too_large", "state"),
                ("progress", {"metadata": [1]}, "invalid", "metadata"),
                ("progress", {"progress": -1}, "invalid", "progress"),
                ("checkpoint", {"name": "n" * 201, "data": 1}, "too_large", "name"),
                ("checkpoint", {"name": "n", "data": 1, "description": "d" * 4097}, "too_large",
                 "description"),
                ("checkpoint", {"name": "n", "data": 1, "database_state": "x" * (1 << 20)},
                 "too_large", "database_state"),
                ("checkpoint", {"name": "n", "data": 1, "file_state": "x" * (1 << 20)},
                 "too_large", "file_state"),
                ("log", {"message": "m", "context": "x" * 65536}, "too_large", "context"),
                ("log", {"message": "m", "level": "LOUD"}, "invalid", "level"),
                ("continue", {"delay_ms": 400000000000}, "invalid", "delay_ms"),
                ("continue", {"delay_ms": -1}, "invalid", "delay_ms"),
                ("fail", {"error": "e", "details": "x" * 16384}, "too_large", "details"),
                ("fail", {"error": 5}, "invalid", "error"),
                ("spawn", {"tasks": {}}, "invalid", ""),
                ("spawn", {"tasks": [{"type": "c", "depends_on": [ID]}]}, "invalid", ""))
        for op, fields, code, word in rows:
            with self.subTest(op=op, fields=list(fields)):
                item = self.report_one("worker-1", held, op, **fields)
                self.assertFalse(item["ok"], item)
                self.assertEqual(item["error"]["code"], code, item)
                self.assertIn(word, item["error"]["message"])
        self.assertEqual(self.task(held["id"])["status"], "running")

    def lines(self, task_id):
        return self.expect(200, "GET", f"/v1/tasks/{task_id}/logs")["items"]

    def test_why_a_report_was_refused_is_told_whole_in_the_log_of_its_execution(self):
        """D9: the author of the handler reads it there; lost leases and repeats add nothing."""
        held = self.hold()
        long = "no-such-" + "x" * 150
        tasks = [{"type": "c", "ref": "a", "depends_on": [{"ref": long}]}]
        item = self.report_one("worker-1", held, "spawn", tasks=tasks)
        self.assertIn(long, item["error"]["message"])
        line, = self.lines(held["id"])
        self.assertEqual(line["message"], "spawn was refused: " + item["error"]["message"])
        self.assertEqual((line["log_level"], line["context"]),
                         ("WARN", {"refused": "spawn", "code": item["error"]["code"]}))
        item = self.report_one("worker-1", held, "complete", result="x" * (256 * 1024))
        self.assertEqual(self.lines(held["id"])[1]["message"],
                         "complete was refused: " + item["error"]["message"])
        stranger = {**held, "lease_token": held["lease_token"] + 1}
        self.report_one("worker-1", stranger, "spawn", tasks=tasks)
        self.report_one("worker-1", stranger, "progress", progress=10)
        self.assertEqual(len(self.lines(held["id"])), 2)

    def test_what_is_refused_again_and_again_does_not_fill_the_log(self):
        held = self.hold()
        for _ in range(4):
            self.report("worker-1", *[self.element(held, "progress", state="x" * 201)] * 20)
        lines = self.lines(held["id"])
        self.assertEqual(len(lines), 16)
        self.assertIn("are not logged", lines[-1]["message"])
        self.report_ok("worker-1", held, "log", message="continues")
        self.assertEqual(self.lines(held["id"])[-1]["message"], "continues")


class EnqueueBounds(ApiTest):
    def test_every_field_of_a_task_has_a_bound(self):
        rows = (({"type": ""}, 422, "type"), ({"type": "x" * 201}, 422, "type"),
                ({"type": "a\nb"}, 422, "type"), ({"queue": "a/b"}, 422, "queue"),
                ({"payload": "x" * (1 << 20)}, 413, "payload"),
                ({"data": "x" * (1 << 20)}, 413, "data"),
                ({"metadata": {"m": "x" * 16384}}, 413, "metadata"),
                ({"metadata": 5}, 422, "metadata"), ({"tags": "x"}, 422, "tags"),
                ({"tags": ["t"] * 17}, 422, "tags"), ({"tags": [1]}, 422, "tags"),
                ({"priority": 1001}, 422, "priority"), ({"priority": "urgent"}, 422, "priority"),
                ({"priority": 1.5}, 422, "priority"), ({"delay_ms": -1}, 422, "delay_ms"),
                ({"run_at": "soon"}, 422, "run_at"), ({"run_at": 5}, 422, "run_at"),
                ({"run_at": "1969-12-31T23:59:59Z"}, 422, "run_at"),
                ({"max_retries": -1}, 422, "max_retries"),
                ({"retry_policy": "often"}, 422, "retry_policy"),
                ({"unique_until": "noon"}, 422, "unique_until"),
                ({"on_unsatisfied": "cry"}, 422, "on_unsatisfied"),
                ({"hash_input": "yes"}, 422, "hash_input"),
                ({"hash_fields": ["a"]}, 422, "hash_fields"),
                ({"hash_fields": "/a"}, 422, "hash_fields"),
                ({"callback_url": "ftp://a"}, 422, "callback_url"),
                ({"callback_url": "http://u@a/"}, 422, "callback_url"),
                ({"callback_url": "http://" + "a" * 2048}, 422, "callback_url"),
                ({"idempotency_key": "k" * 257}, 422, "idempotency_key"),
                ({"depends_on": ["x"]}, 422, "depends_on"),
                ({"depends_on": [ID]}, 422, "depends_on"),
                ({"depends_on": [{"ref": "nobody"}]}, 422, "depends_on"),
                ({"depends_on": [{"task": ID, "type": "luck"}]}, 422, "depends_on"),
                ({"depends_on": [{"task": ID, "ref": "both"}]}, 422, "depends_on"),
                ({"depends_on": 5}, 422, "depends_on"), ({"category": "none"}, 422, "category"),
                ({"delay_ms": 1, "run_at": "2030-01-01T00:00:00Z"}, 422, None))
        for fields, status, field in rows:
            with self.subTest(fields=str(fields)[:60]):
                reply = self.request("POST", "/v1/tasks", {"type": "a", **fields})
                self.assertEqual(reply.status, status, reply.body)
                error = reply.json["error"]
                self.assertTrue(error["message"])
                if field:
                    self.assertEqual(error.get("field"), field, error)
        self.assertEqual(self.expect(200, "GET", "/v1/tasks")["items"], [])

    def test_one_parent_named_twice_in_two_ways_is_refused(self):
        parent = self.enqueue()["id"]
        twice = [{"task": parent, "type": "success"}, {"task": parent, "type": "failure"}]
        self.expect_error(422, "invalid", "POST", "/v1/tasks", {"type": "b", "depends_on": twice},
                          field="depends_on")
        self.expect_error(422, "invalid", "POST", "/v1/tasks",
                          {"type": "b", "depends_on": [parent, parent]}, field="depends_on")


if __name__ == "__main__":
    unittest.main()
