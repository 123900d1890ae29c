"""The far corners of the API: empty lists, cursors that are none, bodies of the wrong kind, names
with odd letters, more queues than metrics name, callers without a token or from elsewhere. Each
gets its own clear answer (F-H4, F-H20)."""
import contextlib
import signal
import sqlite3
import unittest

from harness import ApiTest

ID = "01890000-0000-7000-8000-000000000001"
TOKEN = "0123456789abcdef0123456789abcdef"


class Lists(ApiTest):
    def test_parts_a_task_does_not_have_are_empty_lists(self):
        task_id = self.enqueue()["id"]
        for part in ("executions", "checkpoints", "logs"):
            page = self.expect(200, "GET", f"/v1/tasks/{task_id}/{part}")
            self.assertEqual((page["items"], page["next_cursor"]), ([], None))
        self.expect_error(422, "invalid", "POST", "/v1/tasks", [])

    def test_pages_behind_the_last_are_empty(self):
        task_id = self.enqueue()["id"]
        for path in (f"/v1/tasks/{task_id}/events?cursor=p0000000000000001",
                     "/v1/tasks?cursor=t0000000000000001"):
            self.assertEqual(self.expect(200, "GET", path)["items"], [], path)

    def test_cursors_that_are_none_are_refused_everywhere(self):
        task_id = self.enqueue()["id"]
        for path in ("/v1/tasks", "/v1/queues", "/v1/workers", f"/v1/tasks/{task_id}/events",
                     f"/v1/tasks/{task_id}/executions", f"/v1/tasks/{task_id}/checkpoints",
                     f"/v1/tasks/{task_id}/logs"):
            for cursor in ("x", "t", "t000000000000000g", "tffffffffffffffff", "n", "n123",
                           "n" + "0" * 16 + "zz", "l" + "0" * 47, "l" + "g" * 48,
                           "l" + "0" * 32 + "f" * 16, "e000000000000000/"):
                with self.subTest(path=path, cursor=cursor):
                    self.expect_error(422, "invalid", "GET", f"{path}?cursor={cursor}",
                                      field="cursor")

    def test_e1_a_parameter_without_a_value_is_refused_and_does_not_mean_everything(self):
        task_id = self.enqueue()["id"]
        for path, field in (("/v1/tasks?tag=", "tag"), ("/v1/tasks?status=", "status"), ("/v1/tasks?queue", "queue"),
                            ("/v1/jobs?name=", "name"), (f"/v1/tasks/{task_id}/logs?q=", "q"),
                            ("/v1/executions?job_id=", "job_id"), ("/v1/recovery?status=", "status"),
                            ("/v1/tasks?limit=", "limit"),
                            ("/v1/stream?queue=", "queue"), ("/v1/forecast?tz=", "tz")):
            self.expect_error(422, "invalid", "GET", path, field=field)
        self.assertEqual(len(self.expect(200, "GET", "/v1/tasks?cursor=")["items"]), 1)  # the first page

    def test_e1_services_take_the_parameters_of_a_list(self):
        self.assertEqual(self.expect(200, "GET", "/v1/services?limit=5"), {"items": [], "next_cursor": None})
        for query, field in (("limit=abc", "limit"), ("limit=0", "limit"), ("cursor=x", "cursor"), ("name=x", "name")):
            self.expect_error(422, "invalid", "GET", f"/v1/services?{query}", field=field)

    def test_b1_a_priority_is_a_number_or_a_level_wherever_it_is_said(self):
        task_id = self.enqueue()["id"]
        for wrong in ("5", "-5", "+5", "HIGH", "", 1001, 1.5, True, None, []):
            for path, body in (("/v1/tasks", {"type": "t", "priority": wrong}),
                               (f"/v1/tasks/{task_id}:prioritize", {"priority": wrong}),
                               (f"/v1/tasks/{task_id}:fork", {"priority": wrong}),
                               ("/v1/jobs", {"name": "j", "priority": wrong}),
                               ("/v1/categories", {"name": "c", "default_priority": wrong})):
                if wrong is None and "prioritize" not in path:
                    continue  # as if it were not there
                self.expect_error(422, "invalid", "POST", path, body,
                                  field="default_priority" if "categories" in path else "priority")
        for right, number in (("high", 10), (7, 7), (-1000, -1000)):
            self.assertEqual(self.expect(200, "POST", f"/v1/tasks/{task_id}:prioritize",
                                         {"priority": right})["priority"], number)

    def test_filters_of_the_wrong_kind_are_refused(self):
        for query, field in (("status=glowing", "status"), ("job_id=5", "job_id"),
                             ("parent_id=x", "parent_id"), ("schedule_id=-", "schedule_id"),
                             ("created_after=soon", "created_after"),
                             ("created_before=" + "1" * 80, "created_before"),
                             ("limit=x", "limit"), ("limit=-1", "limit"), ("limit=1.5", "limit")):
            with self.subTest(query):
                self.expect_error(422, "invalid", "GET", f"/v1/tasks?{query}", field=field)
        self.expect(200, "GET", "/v1/tasks?limit=99999999999999999999999")
        self.expect(200, "GET", "/v1/tasks?limit=1e2&created_after=2027-03-28T01:00:00 02:00"
                    .replace(" ", "%20"))
        task_id = self.enqueue()["id"]
        self.expect_error(422, "invalid", "GET", f"/v1/tasks/{task_id}/logs?level=loud",
                          field="level")

    def test_names_nobody_has_are_404(self):
        for path in ("/v1/queues/none", "/v1/workers/none", "/v1/tasks/x", "/v1/tasks/x/wait",
                     "/v1/tasks/x/logs", "/v1/tasks/x/result", f"/v1/tasks/{ID}/result",
                     f"/v1/tasks/{ID}/wait"):
            with self.subTest(path):
                self.expect_error(404, "not_found", "GET", path)
        self.expect_error(404, "not_found", "DELETE", "/v1/workers/none")

    def test_limits_of_types_are_shown_in_a_list(self):
        limits = [{"type": "a", "concurrency": 1}, {"type": "b", "concurrency": 2}]
        self.expect(200, "PATCH", "/v1/queues/q", {"type_limits": limits})
        self.assertEqual([x["type"] for x in self.expect(200, "GET", "/v1/queues/q")
                          ["type_limits"]], ["a", "b"])


class ByHand(ApiTest):
    def test_f_h4_a_mark_of_sql_reports_in_a_file_ends_no_server(self):
        """Only PostgreSQL has such reports; the number can be written into any store."""
        self.register()
        self.enqueue()
        task = self.claim()[0]
        self.server.stop(signal.SIGKILL)
        with contextlib.closing(sqlite3.connect(self.server.store)) as db:
            db.execute("UPDATE task_states SET outcome_token = -1")
            db.commit()
        self.server.start()
        self.expect(200, "GET", f"/v1/tasks/{task['id']}/why")
        self.complete("worker-1", task)
        self.assertEqual(self.task(task["id"])["status"], "completed")


class Bodies(ApiTest):
    def test_bodies_of_the_wrong_kind_are_refused_with_the_field(self):
        task_id = self.enqueue()["id"]
        self.register()
        base = f"/v1/tasks/{task_id}"
        beat = "/v1/workers/worker-1:heartbeat"
        rows = ((f"{base}:cancel", {"reason": 5}, 422, "reason"),
                (f"{base}:cancel", {"if_version": -1}, 422, "if_version"),
                (f"{base}:cancel", {"if_version": "1"}, 422, "if_version"),
                (f"{base}:prioritize", {"priority": 1001}, 422, "priority"),
                (f"{base}:prioritize", {"priority": -1001}, 422, "priority"),
                (f"{base}:prioritize", {"priority": []}, 422, "priority"),
                (f"{base}:prioritize", {}, 422, "priority"),
                (f"{base}:recover", {"method": "magic"}, 422, "method"),
                (f"{base}:recover", {"method": 5}, 422, "method"),
                (beat, {"tasks": {}}, 422, "tasks"), (beat, {"tasks": [5]}, 422, None),
                (beat, {"tasks": [{"task_id": task_id}]}, 422, None),
                (beat, {"tasks": [{"task_id": task_id, "lease_token": 1}] * 10001}, 413, "tasks"),
                ("/v1/workers", {"id": 5}, 422, "id"),
                ("/v1/workers", {"id": "a\nb"}, 422, "id"),
                ("/v1/workers", {"queues": "all"}, 422, "queues"),
                ("/v1/workers", {"queues": [""]}, 422, "queues"),
                ("/v1/workers", {"pool_size": "4"}, 422, "pool_size"),
                ("/v1/workers/worker-1:claim", {"queues": ["q"] * 257}, 422, "queues"),
                ("/v1/workers/worker-1:claim", {"types": [5]}, 422, "types"),
                ("/v1/backup", {"path": "/tmp/copy.db"}, 422, "path"),
                ("/v1/backup", {}, 422, "name"), ("/v1/backup", {"name": 5}, 422, "name"))
        for path, body, status, field in rows:
            with self.subTest(path=path, body=str(body)[:60]):
                reply = self.request("POST", path, body)
                self.assertEqual(reply.status, status, reply.body)
                if field:
                    self.assertEqual(reply.json["error"].get("field"), field, reply.json)
        self.assertEqual(self.task(task_id)["status"], "pending")

    def test_a_version_is_given_once_and_as_the_etag_says_it(self):
        path = f"/v1/tasks/{self.enqueue()['id']}:pause"
        for tag in ("5", '"', '""', '"x"', '"-3"', 'W/"1"'):
            with self.subTest(tag):
                self.expect_error(412, "precondition_failed", "POST", path, {},
                                  headers={"If-Match": tag})
        self.expect_error(422, "invalid", "POST", path, {"if_version": 1},
                          headers={"If-Match": '"1"'}, field="if_version")
        self.expect(200, "POST", path, {}, headers={"If-Match": "*"})

    def test_odd_letters_in_names_are_escaped_in_metrics(self):
        self.enqueue(queue='a"b\\c')
        text = self.request("GET", "/metrics").body.decode()
        self.assertIn('queue="a\\"b\\\\c"', text)

    def test_more_queues_than_metrics_name_are_told_together(self):
        tasks = [{"type": "t", "queue": f"q{i}"} for i in range(1003)]
        self.expect(201, "POST", "/v1/tasks", tasks)
        text = self.request("GET", "/metrics").body.decode()
        pending = [line for line in text.splitlines()
                   if line.startswith("perdura_tasks{") and 'status="pending"' in line]
        self.assertEqual(sum(int(float(line.split()[-1])) for line in pending), 1003)
        self.assertTrue(any('queue="other"' in line for line in pending))

    def test_the_head_of_a_stream_ends_at_once(self):
        reply = self.request("HEAD", "/v1/stream")
        self.assertEqual((reply.status, reply.body), (200, b""))


class Strangers(ApiTest):
    arguments = ("--listen", "0.0.0.0:0", "--allow-clear-text")
    environment = {"PERDURA_TOKEN": TOKEN}

    def test_a_large_body_without_a_token_is_refused_before_it_is_read(self):
        head = (f"POST /v1/tasks HTTP/1.1\r\nHost: 127.0.0.1:{self.server.address[1]}\r\n"
                "Content-Length: 30000000\r\nExpect: 100-continue\r\n\r\n")
        reply = self.raw(head.encode())
        self.assertEqual(reply.status, 401)
        self.assertIn("Bearer", reply.headers["WWW-Authenticate"])


if __name__ == "__main__":
    unittest.main()
