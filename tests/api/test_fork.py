"""POST /v1/tasks/{id}:fork over HTTP: a new task that begins behind a checkpoint of another."""
import os
import sqlite3
import unittest

from harness import ApiTest
from routes_cases import RoutesCases

NOBODY = "0197f6a2-5c3e-7b11-9d2f-3a4b5c6d7e8f"


class ForkTest(ApiTest):
    def setUp(self):
        super().setUp()
        self.register()

    def failed(self, **fields):
        """A task that failed behind its checkpoints one, two and one again."""
        task_id = self.enqueue(**fields)["id"]
        task, = self.claim()
        for name, row in (("one", 1), ("two", 2), ("one", 3)):
            self.report_ok("worker-1", task, "checkpoint", name=name, progress=row * 10,
                           data={"row": row})
        self.report_ok("worker-1", task, "fail", error="no", retryable=False)
        return task_id

    def fork(self, task_id, **body):
        return self.expect(200, "POST", f"/v1/tasks/{task_id}:fork", body)

    def first_checkpoint(self, made):
        task, = self.claim()
        self.assertEqual(task["id"], made["id"])
        self.complete("worker-1", task)
        return task["checkpoint"] and task["checkpoint"]["data"]

    def test_b7_a_fork_goes_on_from_the_checkpoint_that_was_named(self):
        task_id = self.failed()
        for body, row in (({}, 3), ({"from_checkpoint": 2}, 2), ({"from_checkpoint": "two"}, 2),
                          ({"from_checkpoint": "one"}, 3), ({"from_checkpoint": 1}, 1)):
            made = self.fork(task_id, **body)
            self.assertEqual((made["state"], made["progress"], made["checkpoint_data"]["seq"]),
                             ("Forked", row * 10, 1))
            self.assertEqual(self.first_checkpoint(made), {"row": row})
        made = self.fork(task_id, from_checkpoint=0)
        self.assertEqual((made["progress"], made["checkpoint_data"]), (0, None))
        self.assertIsNone(self.first_checkpoint(made))
        self.assertEqual(self.task(task_id)["status"], "failed")

    def test_a_fork_is_the_same_task_but_for_its_key(self):
        task_id = self.failed(payload={"a": 1.50}, idempotency_key="k", external_id="e",
                              tags=["x"], user_id="ada", metadata={"m": 1}, max_retries=7,
                              timeout_ms=1234, priority=5)
        made = self.fork(task_id)
        original = self.task(task_id)
        for name in ("type", "queue", "payload", "tags", "user_id", "max_retries", "timeout_ms",
                     "priority", "data"):
            self.assertEqual(made[name], original[name], name)
        self.assertEqual((made["idempotency_key"], made["external_id"]), (None, None))
        self.assertEqual(made["metadata"], {"forked_from": task_id, "m": 1})
        self.assertNotEqual(made["id"], task_id)
        again = self.fork(made["id"])
        self.assertEqual(again["metadata"], {"forked_from": made["id"], "m": 1})

    def test_a_fork_of_a_task_at_the_bound_of_its_metadata(self):
        task_id = self.failed(metadata={"m": "x" * 16370})
        self.assertEqual(self.fork(task_id)["metadata"], {"forked_from": task_id, "m": "x" * 16370})

    def test_a_fork_of_a_task_that_has_run_does_not_miss_parents_that_were_removed(self):
        parent = self.enqueue()["id"]
        self.complete("worker-1", self.claim()[0])
        task_id = self.failed(depends_on=[parent])
        self.expect(204, "DELETE", f"/v1/tasks/{parent}")
        made = self.fork(task_id)
        self.assertEqual((made["status"], made["depends_on"]), ("pending", []))

    def test_wishes_take_the_place_of_what_was(self):
        task_id = self.failed(payload=1)
        made = self.fork(task_id, payload={"other": True}, data=[1], queue="quick", name="Again",
                         priority="high")
        self.assertEqual((made["payload"], made["data"], made["queue"], made["name"]),
                         ({"other": True}, [1], "quick", "Again"))
        self.assertGreater(made["priority"], 0)
        self.assertIsNone(self.fork(task_id, payload=None)["payload"])

    def test_a_running_task_can_be_forked_and_a_task_without_checkpoints_too(self):
        task_id = self.enqueue()["id"]
        task, = self.claim()
        self.report_ok("worker-1", task, "start")
        made = self.fork(task_id)
        self.assertEqual((made["status"], made["checkpoint_data"]), ("pending", None))
        self.assertEqual(self.task(task_id)["status"], "running")

    def test_the_reply_says_where_the_fork_is(self):
        reply = self.request("POST", f"/v1/tasks/{self.failed()}:fork")
        self.assertEqual(reply.headers["Location"], f"/v1/tasks/{reply.json['id']}")
        self.assertEqual(reply.headers["ETag"], f'"{reply.json["version"]}"')
        event, = self.events(reply.json["id"])
        self.assertEqual((event["state"], event["actor"], event["detail"]["from_checkpoint"]),
                         ("Forked", "USER", 3))

    def test_what_cannot_be_forked_is_refused_with_the_field(self):
        task_id = self.failed()
        path = f"/v1/tasks/{task_id}:fork"
        self.expect_error(404, "not_found", "POST", f"/v1/tasks/{NOBODY}:fork")
        for body, field in (({"from_checkpoint": 9}, "from_checkpoint"),
                            ({"from_checkpoint": "three"}, "from_checkpoint"),
                            ({"from_checkpoint": -1}, "from_checkpoint"),
                            ({"from_checkpoint": 1.5}, "from_checkpoint"),
                            ({"from_checkpoint": [1]}, "from_checkpoint"),
                            ({"queue": ""}, "queue"), ({"queue": 7}, "queue"),
                            ({"priority": "urgent"}, "priority"), ({"colour": "red"}, "colour")):
            with self.subTest(body=body):
                self.expect_error(422, "invalid", "POST", path, body, field=field)
        version = self.task(task_id)["version"]
        self.expect_error(409, "version_mismatch", "POST", path, {"if_version": version + 1})
        self.fork(task_id, if_version=version)

    def test_b3_a_damaged_checkpoint_is_passed_over_and_refused_by_name(self):
        task_id = self.failed()
        with sqlite3.connect(self.server.store) as db:
            db.execute("UPDATE task_checkpoints SET recoverable_data = '{\"row\":9}' "
                       "WHERE seq = 3")
        db.close()
        self.assertEqual(self.first_checkpoint(self.fork(task_id)), {"row": 2})
        error = self.expect_error(422, "invalid", "POST", f"/v1/tasks/{task_id}:fork",
                                  {"from_checkpoint": 3}, field="from_checkpoint")
        self.assertIn("damaged", error["message"])


class ForkBetweenStores(RoutesCases):
    def mail_store(self):
        return os.path.join(self.folder, "mail.db")

    def test_c8_a_fork_may_go_to_a_queue_of_another_store(self):
        task_id = self.enqueue()["id"]
        self.register(queues=("default", "mail"))
        task, = self.claim()
        self.report_ok("worker-1", task, "checkpoint", name="one", data={"row": 1})
        self.complete("worker-1", task)
        made = self.expect(200, "POST", f"/v1/tasks/{task_id}:fork", {"queue": "mail"})
        task, = self.claim(wait_ms=30000)
        self.assertEqual((task["id"], task["queue"], task["checkpoint"]["data"]),
                         (made["id"], "mail", {"row": 1}))
        self.complete("worker-1", task)


if __name__ == "__main__":
    unittest.main()
