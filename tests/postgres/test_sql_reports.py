"""Programs that complete, fail and checkpoint their tasks with SQL (A14): what the program changed and how the task
went commit together, whatever ends or asks in between."""
import http.client
import json
import threading
import unittest
import uuid

import psycopg2

import harness
from cluster import begin_module
from sql_programs import SqlTest

setUpModule = begin_module
QUICK = ("--lease", "1s")


class SqlReports(SqlTest):
    def begin(self, count=1, *arguments):
        super().begin(count, *arguments)
        self.nodes.sql("CREATE TABLE effects (id bigint GENERATED ALWAYS AS IDENTITY, task uuid)")
        return self.nodes

    def held(self, worker="worker-1", **fields):
        """A task that the worker holds."""
        made = self.node.enqueue("t", **fields)["id"]
        self.node.register(worker)
        return next(t for t in self.node.claim(worker, max=50) if t["id"] == made)

    def say(self, cursor, task, call):
        """The program's own change, and what it says of its task."""
        self.call(cursor, "WITH done AS (INSERT INTO @effects (task) VALUES (%s) RETURNING 1) SELECT count(*) FROM done",
                  task["id"])
        name, *values = call
        self.call(cursor, f"SELECT @{name}(%s, %s{', %s' * len(values)})", task["id"], task["lease_token"], *values)

    def effects(self, task):
        return int(self.nodes.sql(f"SELECT count(*) FROM effects WHERE task = '{task['id']}'")[0][0])

    def commit(self, task, *call):
        connection = self.connect()
        with connection, connection.cursor() as cursor:
            self.say(cursor, task, call)
        connection.close()

    def test_a14_a_completion_with_sql_is_one_with_the_program_s_changes(self):
        self.begin()
        task, other = self.held(), self.held()
        connection = self.connect()
        cursor = connection.cursor()
        self.say(cursor, task, ("complete", json.dumps({"sum": 7})))
        self.say(cursor, other, ("complete",))
        self.assertEqual([self.node.task(t["id"])["status"] for t in (task, other)], ["claimed"] * 2)
        connection.rollback()
        self.assertEqual((self.node.task(task["id"])["status"], self.effects(task)), ("claimed", 0))
        self.say(cursor, task, ("complete", json.dumps({"sum": 7})))
        connection.commit()
        done = self.wait_status(self.node, task["id"], "completed")
        self.assertEqual((done["result"], self.effects(task)), ({"sum": 7}, 1))
        self.assertEqual(self.node.statuses(task["id"]), ["pending", "claimed", "running", "completed"])
        self.node.complete("worker-1", task, "said by the worker afterwards, which does not count")
        self.assertEqual(self.node.task(task["id"])["result"], {"sum": 7})
        self.node.complete("worker-1", other, 1)

    def test_a14_dependents_and_parents_see_it_as_any_other_end(self):
        self.begin()
        task = self.held()
        after = self.node.enqueue("after", depends_on=[task["id"]])["id"]
        waiting = self.node.in_thread(self.node.expect, 200, "GET", f"/v1/tasks/{task['id']}/wait?timeout_ms=30000")
        self.commit(task, "complete", '{"x": 1}')
        self.assertEqual(waiting.result()["status"], "completed")
        [claimed] = self.node.claim(wait_ms=20000)
        self.assertEqual((claimed["id"], claimed["data"]["dependencies"][task["id"]]["result"]), (after, {"x": 1}))

    def test_a14_a_failure_with_sql_is_retried_by_the_rules_of_the_task(self):
        self.begin()
        task = self.held(retry_delay_ms=0)
        self.commit(task, "fail", "no paper", '{"tray": 2}')
        [again] = self.node.claim(wait_ms=20000)
        self.assertEqual((again["id"], self.node.task(task["id"])["last_error"]), (task["id"], "no paper"))
        self.commit(again, "fail", "broken", None, False)
        failed = self.wait_status(self.node, task["id"], "failed")
        self.assertEqual((failed["error"], self.effects(task)), ("broken", 2))

    def test_a14_a_checkpoint_with_sql_is_where_the_next_attempt_continues(self):
        self.begin(1, *QUICK)
        task = self.held()
        self.commit(task, "checkpoint", "page-1", 30, '{"page": 1}')
        self.commit(task, "checkpoint", "page-2", 60, '{"page": 2}')
        harness.wait_until(lambda: self.node.task(task["id"])["progress"] == 60, what="the checkpoint")
        self.node.register("worker-2")
        [again] = self.node.claim("worker-2", wait_ms=30000)
        self.assertEqual((again["id"], again["checkpoint"]["name"], again["checkpoint"]["data"]),
                         (task["id"], "page-2", {"page": 2}))
        with self.assertRaisesRegex(psycopg2.Error, "no longer held under this lease"):
            self.commit(task, "checkpoint", "page-3", 90)
        self.assertEqual(self.effects(task), 2)

    def test_e5_a_stale_lease_changes_nothing(self):
        self.begin(1, *QUICK)
        task = self.held()
        [again] = harness.wait_until(lambda: self.node.register("worker-2") and self.node.claim("worker-2"),
                                     what="the lease to end")
        for call in (("complete",), ("fail", "x"), ("checkpoint", "c")):
            with self.assertRaisesRegex(psycopg2.Error, "no longer held under this lease; roll back and stop"):
                self.commit(task, *call)
        self.commit(again, "complete")
        self.wait_status(self.node, task["id"], "completed")
        with self.assertRaisesRegex(psycopg2.Error, "no longer held"):
            self.commit(again, "complete")
        self.assertEqual(self.effects(task), 1)

    def test_a14_what_is_committed_wins_over_all_that_comes_later(self):
        """While no node may take the report in: a lease that ended long ago, a cancel, a report of the worker."""
        self.begin(1, *QUICK)
        swept, cancelled, reported = [self.held() for _ in range(3)]
        self.nodes.stop(0)
        for task in (swept, cancelled, reported):
            self.commit(task, "complete", '"mine"')
        holder = self.connect()
        holder.cursor().execute(f"SELECT FROM {self.nodes.schema}.intake_reports FOR UPDATE")  # the chore passes over it
        self.nodes.start(0)
        cancels = self.node.in_thread(self.node.api, "POST", f"/v1/tasks/{cancelled['id']}:cancel", {})
        reports = self.node.in_thread(self.node.report, "worker-1", {
            "task_id": reported["id"], "lease_token": reported["lease_token"], "op": "complete", "result": "theirs"})
        harness.wait_until(lambda: int(self.nodes.sql("SELECT count(*) FROM pg_locks WHERE NOT granted")[0][0]) >= 1,
                           what="a request to wait for the report")
        holder.rollback()
        self.assertEqual(cancels.result()[0], 409)
        reports.result()
        for task in (swept, cancelled, reported):
            self.assertEqual(self.wait_status(self.node, task["id"], "completed")["result"], "mine")
            self.assertEqual(self.node.statuses(task["id"]), ["pending", "claimed", "running", "completed"])

    def test_a14_a_cancel_before_the_commit_wins_and_the_program_learns_of_it(self):
        self.begin()
        task = self.held()
        self.node.expect(200, "POST", f"/v1/tasks/{task['id']}:cancel", {})
        with self.assertRaisesRegex(psycopg2.Error, "no longer held"):
            self.commit(task, "complete")
        self.assertEqual(self.effects(task), 0)

    def test_a14_what_is_wrong_is_refused_with_a_sentence_and_an_outcome_comes_once(self):
        self.begin()
        task = self.held()
        for call, sentence in ((("complete", json.dumps("x" * 262144)), "larger than 256 KiB"),
                               (("fail", "x", json.dumps("x" * 16384)), "larger than 16 KiB"),
                               (("checkpoint", "x" * 201), "longer than 200 bytes"),
                               (("checkpoint", "x", 101), "from 0 to 100"),
                               (("checkpoint", "x", 1, json.dumps("x" * 1048576)), "larger than 1 MiB")):
            with self.assertRaisesRegex(psycopg2.Error, sentence):
                self.commit(task, *call)
        for id, token, sentence in ((task["id"], task["lease_token"] + 1, "no longer held"),
                                    ("00000000-0000-7000-8000-000000000000", 1, "there is no task")):
            with self.assertRaisesRegex(psycopg2.Error, sentence):
                self.one("SELECT @complete(%s, %s)", id, token)
        connection = self.connect()
        with self.assertRaisesRegex(psycopg2.Error, "no longer held"), connection, connection.cursor() as cursor:
            self.say(cursor, task, ("complete",))
            self.say(cursor, task, ("fail", "x"))
        self.assertEqual((self.node.task(task["id"])["status"], self.effects(task)), ("claimed", 0))

    def test_a14_many_checkpoints_of_a_transaction_are_bounded_and_end_with_their_outcome(self):
        """What a transaction says of a task is applied at once, however much of other tasks there is."""
        self.begin()
        tasks = [self.held() for _ in range(45)]  # over a thousand reports
        connection = self.connect()
        self.nodes.freeze(0)
        with connection, connection.cursor() as cursor:
            for at in range(30):
                for task in tasks:
                    self.call(cursor, "SELECT @checkpoint(%s, %s, %s, %s)", task["id"], task["lease_token"], f"p{at}", at)
            for task in tasks:
                self.call(cursor, "SELECT @complete(%s, %s)", task["id"], task["lease_token"])
        self.nodes.thaw(0)
        for task in tasks:
            self.wait_status(self.node, task["id"], "completed")
        other = self.held()
        with self.assertRaisesRegex(psycopg2.Error, "at most 32 reports"), connection, connection.cursor() as cursor:
            for at in range(33):
                self.call(cursor, "SELECT @checkpoint(%s, %s, 'p', 1)", other["id"], other["lease_token"])

    def test_j5_a_role_reports_tasks_of_its_namespace_only(self):
        self.begin()
        role = self.role("shop")
        self.node.expect(201, "POST", "/v1/namespaces", {"name": "other"})
        other = {"Perdura-Namespace": "other"}
        made = self.node.expect(201, "POST", "/v1/tasks", {"type": "t"}, other)["id"]
        self.node.expect(201, "POST", "/v1/workers", {"id": "w", "hostname": "h", "pool_size": 1, "queues": ["default"]},
                         other)
        [theirs] = self.node.expect(200, "POST", "/v1/workers/w:claim", {"max": 1}, other)["tasks"]
        self.assertEqual(theirs["id"], made)
        with self.assertRaisesRegex(psycopg2.Error, "there is no task"):
            self.one("SELECT @complete(%s, %s)", made, theirs["lease_token"], role=role)
        mine = self.held()
        self.one("SELECT @complete(%s, %s)", mine["id"], mine["lease_token"], role=role)
        self.wait_status(self.node, mine["id"], "completed")

    def test_a14_effects_and_outcomes_never_differ_while_nodes_are_killed(self):
        self.begin(2, "--lease", "2s")
        count, done, stop = 150, [], threading.Event()
        connection = self.connect()
        with connection, connection.cursor() as cursor:
            ids = [row[0] for row in self.call(
                cursor, "SELECT @enqueue_many('t', array_fill('1'::jsonb, ARRAY[%s]), '{\"max_crashes\": 1000}')", count)]

        def worker(number):
            connection, name = self.connect(), f"worker-{number}"
            while not stop.is_set():
                node = self.nodes.nodes[number % 2]
                try:
                    node.register(name)
                    for task in node.claim(name, max=3, wait_ms=500):
                        with connection, connection.cursor() as cursor:
                            self.say(cursor, task, ("complete", json.dumps(name)))
                        done.append(task["id"])
                except (OSError, http.client.HTTPException, AssertionError, psycopg2.Error):
                    connection.rollback()
                    name = f"worker-{uuid.uuid4()}"  # who got no answer to a claim keeps it while it lives

        workers = [harness.Background(worker, i) for i in range(4)]
        for turn in range(6):
            enough = min(len(done) + 15, count)
            harness.wait_until(lambda: len(done) >= enough, 240, "tasks")
            self.nodes.kill(turn % 2)
            self.nodes.start(turn % 2)
        harness.wait_until(lambda: self.nodes.sql(
            "SELECT count(*) FROM tasks WHERE status = 'completed'") == [[str(count)]], 240, "the last task")
        stop.set()
        for one in workers:
            one.result()
        self.assertEqual(self.nodes.sql("SELECT count(*), count(DISTINCT task) FROM effects"), [[str(count)] * 2])
        self.assertEqual(sorted(ids), sorted(done))


if __name__ == "__main__":
    unittest.main()
