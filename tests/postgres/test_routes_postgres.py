"""Queues in a store of their own (C8): `mail` lives in a PostgreSQL, everything else in a SQLite file.
The cases of routes_cases.py, and what happens while the database is away: the other store
continues."""
import os
import signal
import subprocess
import time
import unittest

from harness import wait_until
from routes_cases import QUEUES, CommonRoutes, PoolRoutes, RoutesCases
from server import Postgres, programs

POSTGRES = None


def setUpModule():
    global POSTGRES  # one for all tests of the module
    POSTGRES = Postgres().__enter__()
    unittest.addModuleCleanup(POSTGRES.__exit__)


class InPostgres:
    schemas = 0

    def mail_store(self):
        InPostgres.schemas += 1
        schema = f"routes_{InPostgres.schemas}"
        subprocess.run([f"{programs()}/psql", "-q", POSTGRES.url, "-c", f"CREATE SCHEMA {schema}"],
                       check=True)
        return f"{POSTGRES.url}?options=-csearch_path%3D{schema}"


class PostgresRoutes(InPostgres, CommonRoutes):
    pass


class PostgresPool(InPostgres, PoolRoutes):
    pass


class Away(InPostgres, RoutesCases):
    def take_away(self):
        POSTGRES.stop(signal.SIGQUIT)
        self.addCleanup(lambda: POSTGRES.process.poll() is None or POSTGRES.start())

    def test_c8_without_one_database_its_tasks_wait_and_all_others_go_on(self):
        mail = self.enqueue(queue="mail")["id"]
        self.register(queues=QUEUES)
        held, = self.claim(queues=["mail"])
        self.take_away()
        self.expect_error(503, "unavailable", "POST", "/v1/tasks", {"type": "a", "queue": "mail"})
        took = []
        for _ in range(3):  # enqueue, claim, report, control, wait, read: all as ever
            task_id = self.enqueue()["id"]
            begun = time.monotonic()
            task, = self.claim(wait_ms=30000)
            self.assertEqual(task["id"], task_id)
            self.complete("worker-1", task)
            self.assertEqual(self.task(task_id)["status"], "completed")
            took.append(time.monotonic() - begun)
        self.assertLess(min(took), 3)
        self.assertEqual(self.heartbeat("worker-1", held)["lost"], [])
        self.expect_error(503, "unavailable", "GET", f"/v1/tasks/{mail}")
        self.expect_error(503, "unavailable", "GET", "/v1/queues/mail")
        self.expect_error(503, "unavailable", "GET", "/v1/tasks")
        self.assertEqual(len(self.expect(200, "GET", "/v1/tasks?queue=default")["items"]), 3)
        self.expect_error(503, "unavailable", "POST", "/v1/tasks:retry?status=cancelled")
        self.expect_error(503, "unavailable", "GET", f"/v1/workflows/{mail}")
        other = self.enqueue()["id"]
        self.assertEqual(self.expect(200, "POST", "/v1/tasks:cancel?status=pending&queue=default")
                         ["changed"], 1)
        self.assertEqual(self.task(other)["status"], "cancelled")
        stats = self.expect(200, "GET", "/v1/stats")
        self.assertEqual((stats["stores"], stats["stores_down"]), (2, 1))
        self.assertEqual(self.expect(200, "GET", "/readyz")["status"], "degraded")
        status, answer = self.api("POST", "/v1/workers/worker-1:report",
                                  [self.element(held, "complete")])
        self.assertEqual((status, answer["error"]["code"]), (503, "unavailable"))
        POSTGRES.start()
        wait_until(lambda: self.request("POST", "/v1/workers/worker-1:report",
                                        [self.element(held, "complete")]).status == 200,
                   what="the report taken")
        self.assertEqual(self.task(mail)["status"], "completed")

    def test_c8_a_waiting_claim_goes_on_without_one_database_and_finds_its_work_when_it_is_back(self):
        self.register(queues=QUEUES)
        self.take_away()
        waiting = self.in_thread(lambda: self.claim(wait_ms=30000))
        self.wait_for_waiting("waiting_claims", 1)
        task_id = self.enqueue()["id"]
        task, = waiting.result()
        self.assertEqual(task["id"], task_id)
        self.complete("worker-1", task)
        waiting = self.in_thread(lambda: self.claim(wait_ms=60000))
        self.wait_for_waiting("waiting_claims", 1)
        POSTGRES.start()
        wait_until(lambda: self.request("POST", "/v1/tasks", {"type": "a", "queue": "mail"})
                   .status == 201, what="the database back")
        got = waiting.result()  # at once, or none so that the worker claims again
        got = got or self.claim(wait_ms=30000)
        self.assertEqual(got[0]["queue"], "mail")


class AwayPool(InPostgres, RoutesCases):
    """Two slots; `slow` waits for a file."""
    handlers = (PoolRoutes.handlers.replace("workers:", "  - type: slow\n    command: [\"/bin/sh\", "
                "\"-c\", \"until [ -e go ]; do sleep 0.02; done\"]\nworkers:"))

    def both_are_completed(self):
        reply = self.request("GET", "/v1/queues/mail")  # readers may find the database back later
        return reply.status == 200 and reply.json["counts"]["completed"] == 2

    def test_c8_the_pool_goes_on_with_one_store_while_the_other_is_away(self):
        slow = self.enqueue("slow", queue="mail")["id"]
        wait_until(lambda: self.task(slow)["status"] == "running", what="the slow task running")
        Away.take_away(self)
        open(os.path.join(self.folder, "go"), "w", encoding="utf-8").close()
        wait_until(lambda: "report.unsent" in self.server.log(), what="a report that stays here")
        ids = [self.enqueue()["id"] for _ in range(5)]
        wait_until(lambda: all(self.task(i)["status"] == "completed" for i in ids),
                   what="the tasks of the main store completed")
        POSTGRES.start()
        wait_until(lambda: self.request("POST", "/v1/tasks", {"type": "test", "queue": "mail"})
                   .status == 201, what="the database back")
        wait_until(self.both_are_completed, what="both of its tasks completed")
        self.assertEqual(self.task(slow)["attempts"], 1)


del CommonRoutes, PoolRoutes, RoutesCases  # run by the classes above only

if __name__ == "__main__":
    unittest.main()
