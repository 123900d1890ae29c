"""Tasks that programs enqueue with SQL, in transactions of their own (A14): what the functions store, what nodes
make of it, and what a role may do that can call them and nothing else."""
import json
import os
import subprocess
import threading
import time
import unittest
import uuid

import psycopg2
import psycopg2.errors

import harness
from cluster import CALM, at_once, begin_module
from sql_programs import SqlTest
from test_pooler import Pooler

setUpModule = begin_module
EVERY = {"name": "n", "queue": "mail", "priority": 7, "delay_ms": 3600000, "data": {"at": [1, 2.5, "ü"]},
         "metadata": {"a": 1}, "tags": ["x", "y"], "user_id": "u", "context_key": "c", "correlation_id": "co",
         "workflow_id": "w", "limit_key": "l", "max_retries": 5, "max_crashes": 2, "max_continuations": 9,
         "retry_policy": "fixed", "retry_delay_ms": 70, "max_retry_delay_ms": 700, "timeout_ms": 7000,
         "stall_after_ms": 900, "recovery_priority": 3, "auto_recovery": False, "unique_until": "ended",
         "on_unsatisfied": "fail", "note": "said", "traceparent": "00-" + "a" * 32 + "-" + "b" * 16 + "-01",
         "tracestate": "v=1", "callback_events": ["started", "ended"]}


class SqlEnqueue(SqlTest):
    def begin(self, count=1, *arguments):
        return super().begin(count, *arguments, *CALM)

    # What becomes of one.

    def test_a14_a_task_is_there_from_the_commit_on_and_runs(self):
        self.begin().stop(0)
        payload = '{"b" : 1,\n "a": [1.50, "ü"]}'
        connection = self.connect()
        cursor = connection.cursor()
        [[first]] = self.call(cursor, "SELECT @enqueue('mail', %s)", payload)
        self.assertEqual(self.nodes.sql("SELECT count(*) FROM tasks"), [["0"]])
        connection.commit()
        self.assertEqual(self.nodes.sql("SELECT id, type, status, state, queue, payload FROM tasks"),
                         [[first, "mail", "pending", "Queued", "default", payload]])
        self.nodes.start(0)
        self.node.register()
        [task] = self.node.claim(wait_ms=20000)
        self.assertEqual((task["id"], task["payload"]), (first, json.loads(payload)))
        self.node.complete("worker-1", task, {"ok": True})
        self.assertEqual(self.node.statuses(first), ["pending", "claimed", "running", "completed"])
        self.assertEqual(self.nodes.sql(f"SELECT payload = $p${payload}$p$ FROM tasks"), [["t"]])

    def test_a14_a_waiting_worker_gets_it_at_once(self):
        self.begin()
        self.node.register()
        for _ in range(5):
            waiting = self.node.in_thread(self.node.claim, "worker-1", 1, 30000)
            made = self.enqueue()
            [task] = waiting.result()
            self.assertEqual(task["id"], made)
            self.node.complete("worker-1", task)

    def test_a14_every_field_of_a_request_is_an_option(self):
        self.begin()
        task = self.node.enqueue("t", payload={"a": 1}, external_id="e1", idempotency_key="k1", **EVERY)
        made = self.enqueue("t", '{"a": 1}', external_id="e2", idempotency_key="k2", **EVERY)
        self.taken_in()
        mine = self.node.task(made)
        differ = {name for name in task if task[name] != mine.get(name)}
        self.assertEqual(differ, {"id", "external_id", "idempotency_key", "created_at", "updated_at", "scheduled_at",
                                  "run_at"} & set(task))
        self.assertEqual(set(mine), set(task))
        at = self.enqueue(run_at="2099-01-01T00:00:00Z", category="general")
        self.taken_in()
        self.assertEqual(self.node.task(at)["scheduled_at"][:10], "2099-01-01")

    def test_a14_tasks_depend_on_one_another_across_sql_and_http(self):
        self.begin()
        self.node.register()
        connection = self.connect()
        with connection, connection.cursor() as cursor:
            ids = [self.call(cursor, "SELECT @enqueue('step')")[0][0]]
            for _ in range(30):
                [[made]] = self.call(cursor, "SELECT @enqueue('step', '{}', %s::jsonb)",
                                     json.dumps({"depends_on": [ids[-1]]}))
                ids.append(made)
        ids.append(self.node.enqueue("step", depends_on=[ids[-1]])["id"])
        for made in ids:
            [task] = self.node.claim(wait_ms=20000)
            self.assertEqual(task["id"], made)
            self.node.complete("worker-1", task)
        self.assertEqual(self.node.claim(), [])

    def test_a14_many_at_once_keep_their_order(self):
        self.begin()
        payloads = [json.dumps({"i": i}) for i in range(2345)]
        connection = self.connect()
        with connection, connection.cursor() as cursor:
            ids = [row[0] for row in self.call(cursor, "SELECT @enqueue_many('t', %s::jsonb[], '{\"queue\": \"q\"}')",
                                               payloads)]
        self.taken_in()
        found = self.nodes.sql("SELECT id, payload FROM tasks WHERE queue = 'q' ORDER BY perdura_key(id)")
        self.assertEqual([(i, json.loads(p)) for i, p in found], [(i, json.loads(p)) for i, p in zip(ids, payloads)])
        self.assertEqual(self.one("SELECT count(*) FROM @enqueue_many('t', '{}')"), 0)

    # What does not become one.

    def test_a14_what_is_rolled_back_leaves_nothing(self):
        self.begin()
        before = self.left()

        def work(count):
            connection = self.connect()
            cursor = connection.cursor()
            for i in range(count):
                self.call(cursor, "SELECT @enqueue('t', '{}', %s::jsonb)",
                          json.dumps({"idempotency_key": str(uuid.uuid4())}))
                self.call(cursor, "SELECT @enqueue_many('t', '{1,2,3}')")
                if i % 3 == 0:
                    cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())") if i % 30 == 0 else \
                        connection.rollback()
                if i % 3 == 1:
                    cursor.execute("SAVEPOINT s")
                    self.call(cursor, "SELECT @enqueue('t')")
                    cursor.execute("ROLLBACK TO s")
                    connection.rollback()
                if i % 3 == 2:
                    with self.assertRaises(psycopg2.Error):
                        cursor.execute("SELECT 1 / 0")
                    connection.rollback()

        def again():
            done = 0
            while done < 250:
                try:
                    work(1)
                except psycopg2.OperationalError:
                    pass
                done += 1

        at_once(lambda: work_lost(work), lambda: work_lost(work), again)
        self.assertEqual(self.left(), before)

    def test_a14_a_duplicate_key_gives_the_first_id(self):
        self.begin()
        first = self.enqueue(idempotency_key="a")
        self.assertEqual(self.enqueue(idempotency_key="a"), first)
        again = self.node.expect(200, "POST", "/v1/tasks", {"type": "t", "payload": {}, "idempotency_key": "a"})
        self.assertEqual((again["id"], again["duplicate"]), (first, True))
        other = self.node.enqueue("t", idempotency_key="b")["id"]
        self.assertEqual(self.enqueue(idempotency_key="b"), other)
        self.assertNotEqual(self.enqueue("u", idempotency_key="b"), other)
        self.taken_in()
        self.assertEqual(self.nodes.sql("SELECT count(*) FROM tasks"), [["3"]])

    def test_a14_a_key_that_no_node_has_taken_in_yet_counts_for_http(self):
        self.begin()
        first = self.enqueue(idempotency_key="a", external_id="e")  # the node may be faster: either is right
        again = self.node.expect(200, "POST", "/v1/tasks", {"type": "t", "payload": {}, "idempotency_key": "a"})
        self.assertEqual(again["id"], first)
        self.node.expect_error(409, "conflict", "POST", "/v1/tasks", {"type": "t", "external_id": "e"})
        with self.assertRaisesRegex(psycopg2.errors.UniqueViolation, "already a task with this external_id"):
            self.enqueue(external_id="e")

    def test_a14_of_two_that_use_a_key_at_once_the_second_waits_for_the_first(self):
        self.begin()
        for commits in (True, False):
            key = json.dumps({"idempotency_key": f"k{commits}"})
            holder = self.connect()
            cursor = holder.cursor()
            [[first]] = self.call(cursor, "SELECT @enqueue('t', '{}', %s::jsonb)", key)
            waiting = harness.Background(self.one, "SELECT @enqueue('t', '{}', %s::jsonb)", key)
            harness.wait_until(lambda: self.nodes.sql("SELECT count(*) FROM pg_locks WHERE NOT granted") != [["0"]],
                               what="the second to wait")
            holder.commit() if commits else holder.rollback()
            self.assertEqual(waiting.result() == first, commits)
        self.taken_in()
        self.assertEqual(self.nodes.sql("SELECT count(*) FROM tasks"), [["2"]])

    def test_a3_the_same_input_runs_once(self):
        self.begin()
        first = self.enqueue(payload='{"a": 1, "b": 2}', hash_input=True)
        second = self.enqueue(payload='{"b": 2, "a": 1}', hash_input=True)
        self.taken_in()
        task = self.node.task(second)
        self.assertEqual((self.node.task(first)["status"], task["status"]), ("pending", "cancelled"))
        self.assertEqual(task["error_details"], {"reason": "duplicate", "task_id": first})

    def test_a14_what_the_engine_refuses_ends_as_a_failed_task_that_says_why(self):
        self.begin()
        for options, sentence in (({"colour": "red"}, 'no member "colour"'),
                                  ({"category": "none"}, "no category 'none'"),
                                  ({"depends_on": [str(uuid.uuid4())]}, "there is no task"),
                                  ({"priority": 5000}, "priority"), ({"tags": "x"}, "tags"),
                                  ({"delay_ms": 1, "run_at": "2099-01-01T00:00:00Z"}, "not both"),
                                  ({"callback_url": "ftp://x"}, "callback_url"),
                                  ({"callback_events": ["now"]}, "callback_events")):
            made = self.enqueue(payload='{"p": 1}', idempotency_key="again", external_id="once", **options)
            task = self.wait_status(self.node, made, "failed")
            self.assertIn(sentence, task["error"])
            self.assertEqual((task["error_details"]["reason"], task["payload"]), ("refused", {"p": 1}))
            self.assertEqual(self.node.statuses(made), ["pending", "failed"])
        self.assertEqual(self.left()[2], "0")  # its key is free again

    def test_f_h3_a_payload_that_is_json_to_postgresql_alone_stays_out_of_lists(self):
        """What no client understands would take the whole list, and each claim around it, with it."""
        self.begin(1)
        fine = self.enqueue()
        for payload, sentence in (("[" * 65 + "]" * 65, "nested too deeply"), ('{"a":1,"a":2}', "this key twice"),
                                  ("[1e400]", "range of a double"), ('["\\ud800"]', "surrogate")):
            made = self.enqueue(payload=payload)
            task = self.wait_status(self.node, made, "failed")
            self.assertIn(sentence, task["error"])
            self.assertEqual(task["payload"], None)
        port = self.node.server.address[1]
        listed = subprocess.run([harness.binary(), "task", "list", "--json", "--server", f"http://127.0.0.1:{port}"],
                                capture_output=True, text=True, check=False)
        self.assertIn(fine, listed.stdout, listed.stderr)

    def test_a14_what_is_wrong_at_once_is_refused_with_a_sentence(self):
        self.begin()
        before = self.left()
        for values, sentence in ((("", "{}", "{}"), "the type is missing"), ((None, "{}", "{}"), "the type is missing"),
                                 (("x" * 201, "{}", "{}"), "longer than 200 bytes"),
                                 (("t", "{", "{}"), "invalid input syntax for type json"),
                                 (("t", '"' + "x" * 1048576 + '"', "{}"), "larger than 1 MiB"),
                                 (("t", "{}", "[]"), "must be a JSON object"), (("t", "{}", None), "a JSON object"),
                                 (("t", "{}", '{"type": "u"}'), "arguments, not options"),
                                 (("t", "{}", '{"payload": 1}'), "arguments, not options"),
                                 (("t", "{}", '{"idempotency_key": 7}'), "are texts"),
                                 (("t", "{}", json.dumps({"idempotency_key": "x" * 257})), "256 bytes"),
                                 (("t", "{}", '{"idempotency_key": "perdura:x"}'), "do not begin with"),
                                 (("t", "{}", json.dumps({"data": "x" * (2 << 20)})), "options are larger than 2 MiB"),
                                 (("t", "{}", '{"encrypt": true}'), "enqueue it over HTTP"),
                                 (("t", "{}", '{"encrypt_fields": ["/a"]}'), "enqueue it over HTTP")):
            with self.assertRaisesRegex(psycopg2.Error, sentence):
                self.one("SELECT @enqueue(%s, %s, %s::jsonb)", *values)
        for options, sentence in (('{"idempotency_key": "a"}', "belong to one task"), ('{"type": "u"}', "arguments")):
            with self.assertRaisesRegex(psycopg2.Error, sentence):
                self.one("SELECT count(*) FROM @enqueue_many('t', '{1,2}', %s::jsonb)", options)
        with self.assertRaisesRegex(psycopg2.Error, "larger than 1 MiB"):
            self.one("SELECT count(*) FROM @enqueue_many('t', ARRAY[to_jsonb(repeat('x', 1048577))])")
        self.assertEqual(self.left(), before)

    # What a commit does not tell, because another row waits that brought a NOTIFY.

    def untold(self, isolation, ask):
        """A transaction that is open while a node takes in all that waited, and commits later."""
        self.begin(2)  # nodes that hear of one another do not poll
        self.node.register()
        self.nodes.freeze(0)
        self.nodes.freeze(1)
        first = self.enqueue("first")
        connection = self.connect()
        connection.set_session(isolation_level=isolation)
        cursor = connection.cursor()
        made = ask(cursor)
        self.nodes.thaw(0)
        self.nodes.thaw(1)
        self.taken_in()
        self.assertEqual([t["id"] for t in self.node.claim(max=9, wait_ms=20000)], [first])
        waiting = self.node.in_thread(self.node.claim, "worker-1", 1, 30000)
        time.sleep(1)  # a node that looks for a while only has stopped by then
        made = made or self.call(cursor, "SELECT @enqueue('late')")[0][0]
        connection.commit()
        committed = time.monotonic()
        [task] = waiting.result()
        self.assertEqual(task["id"], made)
        self.assertLess(time.monotonic() - committed, 10)

    def test_a14_a_commit_that_comes_long_after_its_checks_is_found(self):
        self.untold("READ COMMITTED", lambda cursor: (
            cursor.execute("BEGIN; SET CONSTRAINTS ALL IMMEDIATE"),
            self.call(cursor, "SELECT @enqueue('late')")[0][0])[1])

    def test_a14_a_commit_that_sees_the_store_as_it_was_is_found(self):
        self.untold("REPEATABLE READ", lambda cursor: cursor.execute("SELECT 1"))

    def test_g1_callbacks_to_the_server_itself_need_a_list_as_for_any_other_client(self):
        self.begin()
        made = self.enqueue(callback_url="http://127.0.0.1:9/v1/tasks")
        self.taken_in()
        task = self.node.task(made)
        self.assertEqual(task["status"], "failed")
        self.assertIn("callbacks.allow", task["error"])

    # Before a node has taken it in.

    def test_a14_one_that_no_node_has_taken_in_is_shown_as_pending_and_cannot_be_changed_by_hand(self):
        self.begin()
        holder = self.connect()
        cursor = holder.cursor()
        self.nodes.stop(0)
        made = self.enqueue("mail", '{"a": 1}', queue="q", priority="high", user_id="u", retry_delay_ms=5)
        cursor.execute(f"SELECT FROM {self.nodes.schema}.intake_rows FOR UPDATE")  # nodes pass over it
        self.nodes.start(0)
        task = self.node.task(made)
        self.assertEqual((task["status"], task["type"], task["queue"], task["priority"], task["payload"],
                          task["user_id"], task["retry_delay_ms"]), ("pending", "mail", "q", 10, {"a": 1}, "u", 5))
        self.assertEqual(self.nodes.sql("SELECT status, queue, priority, user_id, retry_delay_ms FROM tasks"),
                         [["pending", "q", "10", "u", "5"]])
        with self.assertRaisesRegex(AssertionError, "no node has taken it in"):
            self.nodes.sql("UPDATE tasks SET status = 'cancelled'")
        cancelled = harness.Background(self.node.expect, 200, "POST", f"/v1/tasks/{made}:cancel", {})
        holder.rollback()
        cancelled.result()
        self.assertEqual(self.node.task(made)["status"], "cancelled")

    def test_a14_whatever_is_asked_of_it_right_after_the_commit_finds_it(self):
        self.begin(2)
        for i in range(20):
            made = self.enqueue(queue=f"q{i % 3}")
            node = self.nodes.nodes[i % 2]
            self.assertEqual(node.task(made)["id"], made)
            if i % 4 == 0:
                self.assertTrue(node.expect(200, "GET", f"/v1/tasks/{made}/why")["reason"])
            if i % 4 == 1:
                self.assertEqual(node.expect(200, "POST", f"/v1/tasks/{made}:cancel", {})["status"], "cancelled")
            if i % 4 == 2:
                node.expect(201, "POST", "/v1/tasks", {"type": "t", "depends_on": [made]})

    # Nodes.

    def test_a14_no_task_is_lost_or_made_twice_while_nodes_are_killed_and_race(self):
        self.begin(2)
        ids, stop = [], threading.Event()

        def producer():
            connection = self.connect()
            while not stop.is_set():
                with connection, connection.cursor() as cursor:
                    made = [row[0] for row in self.call(cursor, "SELECT @enqueue_many('t', '{1,2,3,4,5}')")]
                    made += self.call(cursor, "SELECT @enqueue('t')")[0]
                ids.extend(made)

        producers = [harness.Background(producer) for _ in range(3)]
        for turn in range(8):
            enough = len(ids) + 200
            harness.wait_until(lambda: len(ids) > enough, what="tasks")
            self.nodes.kill(turn % 2)
            self.nodes.start(turn % 2)
        stop.set()
        for one in producers:
            one.result()
        self.taken_in()
        self.assertEqual(self.nodes.sql("SELECT count(*), count(DISTINCT id) FROM task_states"), [[str(len(ids))] * 2])
        self.assertEqual(self.nodes.sql("SELECT count(*) FROM task_events"), [[str(len(ids))]])

    def test_a14_a_pooler_in_transaction_mode_is_no_obstacle(self):
        self.begin()
        self.node.register()
        role = self.role("shop")
        with Pooler(self.postgres, role) as pooler:
            waiting = self.node.in_thread(self.node.claim, "worker-1", 1, 30000)
            made = self.one("SELECT @enqueue('t', '{}', '{\"idempotency_key\": \"k\"}')", role=role, port=pooler.port)
            self.assertEqual(waiting.result()[0]["id"], made)

    def test_d12_a_bound_of_the_namespace_that_passes_only_puts_it_off(self):
        with open(os.path.join(self.temporary_folder(), "c.yaml"), "w", encoding="utf-8") as config:
            self.begin()
            role = self.role("shop")
            config.write(f"access:\n  sql_roles:\n    {role}: shop\n")
        self.node.expect(201, "POST", "/v1/namespaces", {"name": "shop", "limits": {"waiting": 2}})
        self.nodes.stop(0)
        self.node.server.arguments = (*self.node.server.arguments, "--config", config.name)
        self.nodes.start(0)
        harness.wait_until(lambda: self.nodes.sql("SELECT 1 FROM store_info WHERE name = 'sql_roles' AND value <> '{}'"),
                           what="the node to say which role has which namespace")
        for _ in range(4):
            self.one("SELECT @enqueue('t')", role=role)
        shop = {"Perdura-Namespace": "shop"}
        harness.wait_until(lambda: self.nodes.sql("SELECT count(*) FROM intake_rows WHERE due_at > '-infinity'")
                           == [["2"]], what="two to be put off")
        self.assertEqual(len(self.node.expect(200, "GET", "/v1/tasks", headers=shop)["items"]), 2)
        self.node.expect(200, "PATCH", "/v1/namespaces/shop", {"limits": {"waiting": 10}})
        self.taken_in()
        self.assertEqual(len(self.node.expect(200, "GET", "/v1/tasks", headers=shop)["items"]), 4)
        self.node.expect(200, "PATCH", "/v1/namespaces/shop", {"encryption": "all"})
        with self.assertRaisesRegex(psycopg2.Error, "SQL has no key"):
            self.one("SELECT @enqueue('t')", role=role)

    def test_a14_a_copy_loses_nothing_that_was_enqueued_with_sql(self):
        self.begin().stop(0)
        made = self.enqueue(idempotency_key="k")
        target = os.path.join(self.temporary_folder(), "copy.db")

        def copy():
            return subprocess.run([harness.binary(), "copy", "--from", self.nodes.store, "--to", target],
                                  capture_output=True, text=True, check=False)

        done = copy()
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("1 tasks were enqueued or reported with SQL and no node has taken that in", done.stderr)
        self.nodes.start(0)
        self.taken_in()
        self.nodes.stop(0)
        done = copy()
        self.assertEqual(done.returncode, 0, done.stderr)
        with self.assertRaisesRegex(psycopg2.Error, "the store was moved elsewhere"):
            self.enqueue()
        with self.assertRaisesRegex(psycopg2.Error, "the store was moved elsewhere"):
            self.one("SELECT @cancel(%s)", made)
        self.assertEqual(self.nodes.sql("SELECT id FROM tasks"), [[made]])
        self.node.server.arguments += ("--again",)
        self.nodes.start(0)
        self.assertTrue(self.enqueue())

    def test_a14_what_is_open_while_the_store_moves_is_not_lost(self):
        """A transaction may enqueue or complete before the copy begins and commit after it."""
        self.begin()
        task = self.node.enqueue("held")
        self.node.register("w")
        [held] = self.node.claim("w")
        self.nodes.stop(0)
        open_one = self.connect()
        self.call(open_one.cursor(), "SELECT @enqueue('t')")
        copy = [harness.binary(), "copy", "--from", self.nodes.store, "--to"]
        done = subprocess.run([*copy, os.path.join(self.temporary_folder(), "copy.db")], capture_output=True,
                              text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("programs that enqueue or report with SQL are in a transaction", done.stderr)
        open_one.rollback()
        reports = self.connect()
        self.call(open_one.cursor(), "SELECT @enqueue('t')")
        self.call(reports.cursor(), "SELECT @complete(%s, %s)", task["id"], held["lease_token"])
        for name, value, why in (("moved", "2026 elsewhere", "moved elsewhere"), ("copy", "{}", "has not ended")):
            self.nodes.sql(f"INSERT INTO store_info (name, value) VALUES ('{name}', '{value}')")
            for connection in (open_one, reports):
                with self.assertRaisesRegex(psycopg2.Error, why):
                    connection.commit()
            with self.assertRaisesRegex(psycopg2.Error, why):
                self.one("SELECT @complete(%s, %s)", task["id"], held["lease_token"])
            with self.assertRaisesRegex(psycopg2.Error, why):
                self.enqueue()
            self.nodes.sql(f"DELETE FROM store_info WHERE name = '{name}'")
            self.call(open_one.cursor(), "SELECT @enqueue('t')")
            self.call(reports.cursor(), "SELECT @complete(%s, %s)", task["id"], held["lease_token"])
        open_one.rollback()
        reports.rollback()
        self.assertEqual(self.left()[0], "0")
        done = subprocess.run([*copy, os.path.join(self.temporary_folder(), "copy.db")], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        with self.assertRaisesRegex(psycopg2.Error, "moved elsewhere"):
            self.one("SELECT @complete(%s, %s)", task["id"], held["lease_token"])

    def test_d12_types_that_the_configuration_encrypts_are_refused(self):
        self.begin().stop(0)
        with open(os.path.join(self.temporary_folder(), "c.yaml"), "w", encoding="utf-8") as config:
            config.write("handlers:\n  - type: 'secret:*'\n    command: [/bin/true]\n    encrypt: true\n"
                         "encryption:\n  keys:\n    - id: k1\n      env: KEY_OF_TESTS\n  current: k1\n")
        self.node.server.arguments = (*self.node.server.arguments, "--config", config.name, "--workers", "0")
        os.environ["KEY_OF_TESTS"] = "ab" * 32
        self.addCleanup(os.environ.pop, "KEY_OF_TESTS")
        self.nodes.start(0)
        harness.wait_until(lambda: self.nodes.sql("SELECT 1 FROM store_info WHERE name = 'sealed_types' AND "
                                                  "value LIKE '%secret%'"), what="the node to say which types")
        with self.assertRaisesRegex(psycopg2.Error, "SQL has no key; enqueue it over HTTP"):
            self.enqueue("secret:plan")
        self.wait_status(self.node, self.enqueue("plain"), "pending")

    # Rights.

    def test_j5_a_role_that_may_enqueue_can_do_nothing_else(self):
        self.begin()
        role = self.role("shop")
        made = self.one("SELECT @enqueue('t')", role=role)
        tables = [name for [name] in self.nodes.sql(
            f"SELECT c.relname FROM pg_class c WHERE c.relnamespace = '{self.nodes.schema}'::regnamespace AND c.relkind "
            f"IN ('r', 'p', 'v', 'S') AND (c.relkind <> 'S' AND has_any_column_privilege('{role}', c.oid, "
            f"'SELECT, INSERT, UPDATE') OR c.relkind = 'S' AND has_sequence_privilege('{role}', c.oid, 'USAGE, SELECT'))")]
        self.assertEqual(tables, ["tasks"])  # INSERT, and the id that RETURNING gives
        self.assertEqual(self.nodes.sql(
            f"SELECT DISTINCT p.proname FROM pg_proc p WHERE p.pronamespace = '{self.nodes.schema}'::regnamespace AND "
            f"p.prosecdef AND has_function_privilege('{role}', p.oid, 'EXECUTE') AND p.prorettype <> 'trigger'::regtype "
            "AND p.proname <> 'perdura_outside' ORDER BY 1"), [
                [name] for name in ("cancel", "checkpoint", "complete", "enqueue", "enqueue_many", "fail", "retry",
                                    "status", "wait_for")])
        for text in ("SELECT * FROM @tasks", "SELECT id FROM @tasks", "UPDATE @tasks SET status = 'cancelled'",
                     "DELETE FROM @tasks", "DELETE FROM @intake_rows RETURNING 1", "SELECT @intake_tell()",
                     "SELECT @intake_reserve('default', 'key', 't', 'x', 1)", "SELECT nextval('@task_keys')",
                     "SELECT @intake_grant('public', NULL)", "SELECT @intake_ask('cancel', NULL)", "SELECT value FROM @store_info"):
            with self.assertRaisesRegex(psycopg2.errors.InsufficientPrivilege, "permission denied"):
                self.one(text, role=role)
        connection = self.connect(role)  # tables of its own are not taken for ours
        with connection, connection.cursor() as cursor:
            cursor.execute("CREATE TEMP TABLE intake_rows AS SELECT 1; CREATE TEMP TABLE store_info (name text)")
            [[made]] = self.call(cursor, "SELECT @enqueue('t')")
            self.assertEqual(self.call(cursor, "SELECT * FROM pg_temp.intake_rows"), [(1,)])
        self.taken_in()
        self.assertEqual(self.node.task(made)["status"], "pending")

    def test_j5_a_role_without_the_grant_cannot_enqueue(self):
        self.begin()
        role = f"nobody_{self.nodes.schema}"
        self.nodes.sql(f"CREATE ROLE {role} LOGIN")
        for text in ("SELECT @enqueue('t')", "SELECT @enqueue_many('t', '{1}')"):
            with self.assertRaisesRegex(psycopg2.errors.InsufficientPrivilege, "permission denied"):
                self.one(text, role=role)
        done = subprocess.run([harness.binary(), "migrate", "grant", "nobody-there", "--store", self.nodes.store],
                              capture_output=True, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("there is no role nobody-there", done.stderr)


def work_lost(work):
    """Also where the connection ends in the middle."""
    for _ in range(25):
        try:
            work(10)
        except psycopg2.OperationalError:
            pass


if __name__ == "__main__":
    unittest.main()
