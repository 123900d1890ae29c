"""What programs ask for with SQL (A14): cancel(), retry(), status(), wait_for(), INSERT and DELETE on the view tasks;
and roles that may do a part of it only (J5)."""
import json
import os
import signal
import threading
import time
import unittest
import uuid

import psycopg2
import psycopg2.errors

import harness
from cluster import CALM, begin_module
from sql_programs import SqlTest
from test_pooler import Pooler

setUpModule = begin_module
UNKNOWN = "00000000-0000-7000-8000-000000000000"


class SqlVerbs(SqlTest):
    def begin(self, count=1, *arguments):
        super().begin(count, *arguments, *CALM)
        harness.wait_until(lambda: self.nodes.sql("SELECT 1 FROM store_info WHERE name = 'sql_verbs'"),
                           what="the node to say what may be asked")
        return self.nodes

    def say(self, verb, task, **to):
        return self.one(f"SELECT @{verb}(%s)", task, **to)

    def refused(self, verb, task, sentence, hint, **to):
        with self.assertRaisesRegex(psycopg2.Error, sentence) as raised:
            self.say(verb, task, **to)
        self.assertRegex(raised.exception.diag.message_hint or "", hint)

    def held(self, **fields):
        made = self.node.enqueue("t", **fields)["id"]
        self.node.register()
        return next(t for t in self.node.claim(max=50) if t["id"] == made)

    def with_access(self, text, *until):
        """The node again, with `access.sql_roles` as given."""
        with open(os.path.join(self.temporary_folder(), "c.yaml"), "w", encoding="utf-8") as config:
            config.write(f"access:\n  sql_roles:\n    {text}\n")
        self.nodes.stop(0)
        self.node.server.arguments = (*self.node.server.arguments, "--config", config.name)
        self.nodes.start(0)
        harness.wait_until(lambda: self.nodes.sql("SELECT 1 FROM store_info WHERE name = 'sql_roles' AND value <> '{}'"),
                           what="the node to say what the role may do")

    # cancel and retry.

    def test_a8_a7_a_cancel_and_a_retry_come_with_the_commit_and_a_rollback_leaves_nothing(self):
        self.begin()
        made = self.node.enqueue("t")["id"]
        connection = self.connect()
        cursor = connection.cursor()
        self.call(cursor, "SELECT @cancel(%s)", made)
        self.assertEqual(self.node.task(made)["status"], "pending")
        connection.rollback()
        self.assertEqual(self.nodes.sql("SELECT count(*) FROM intake_reports"), [["0"]])
        self.call(cursor, "SELECT @cancel(%s)", made)
        connection.commit()
        task = self.wait_status(self.node, made, "cancelled")
        self.assertEqual(task["state"], "Cancelled by user")
        self.say("retry", made)
        self.wait_status(self.node, made, "pending")
        self.node.register()
        [claimed] = self.node.claim(wait_ms=20000)
        self.assertEqual(claimed["id"], made)

    def test_a8_the_worker_of_a_cancelled_task_learns_of_it(self):
        self.begin()
        task = self.held()
        self.say("cancel", task["id"])
        self.wait_status(self.node, task["id"], "cancelled")
        self.assertEqual(self.node.heartbeat("worker-1", task)["cancel"], [task["id"]])

    def test_a14_one_that_no_node_has_taken_in_can_be_cancelled_also_by_the_transaction_that_enqueued_it(self):
        self.begin().stop(0)
        connection = self.connect()
        with connection, connection.cursor() as cursor:
            [[mine]] = self.call(cursor, "SELECT @enqueue('t')")
            self.call(cursor, "SELECT @cancel(%s)", mine)
        other = self.enqueue()
        self.assertEqual(self.say("status", other), "pending")
        self.say("cancel", other)
        self.nodes.start(0)
        for made in (mine, other):
            self.wait_status(self.node, made, "cancelled")
            self.assertEqual(self.node.statuses(made), ["pending", "cancelled"])

    def test_d18_the_audit_trail_names_the_role(self):
        self.begin()
        role = self.role("shop")
        made = self.node.enqueue("t")["id"]
        self.say("cancel", made, role=role)
        self.wait_status(self.node, made, "cancelled")
        self.assertEqual(self.nodes.sql("SELECT principal, action, namespace FROM audit_log WHERE object_id = "
                                        f"'{made}'"), [[f"sql:{role}", "task.cancel", "default"]])

    def test_a14_what_cannot_be_is_refused_with_the_words_of_the_api_and_a_hint(self):
        self.begin()
        waits, held, ended = self.node.enqueue("t", delay_ms=3600000)["id"], self.held()["id"], self.held()
        self.node.complete("worker-1", ended)
        for verb, task in (("cancel", ended["id"]), ("retry", waits), ("retry", held)):
            code, answer = self.node.api("POST", f"/v1/tasks/{task}:{verb}", {})[:2]
            self.assertEqual(code, 409)
            self.refused(verb, task, f"^{answer['error']['message']}", ".")
        for verb in ("cancel", "retry", "status", "wait_for"):
            self.refused(verb, UNKNOWN, "^there is no task", "removed, or is in another namespace")
            self.refused(verb, None, "^there is no task", "removed")
        self.assertEqual(self.nodes.sql("SELECT count(*) FROM intake_reports"), [["0"]])

    def test_a14_what_was_true_at_the_call_and_is_not_when_a_node_applies_it_changes_nothing_and_is_in_the_audit_trail(self):
        self.begin()
        task = self.held()
        connection = self.connect()
        with connection, connection.cursor() as cursor:
            self.call(cursor, "SELECT @cancel(%s)", task["id"])
            self.node.complete("worker-1", task, {"x": 1})
        [refusal] = harness.wait_until(lambda: self.nodes.sql(
            "SELECT principal, action, outcome, change FROM audit_log WHERE outcome = 'refused'"), what="the refusal")
        self.assertEqual(refusal[:3], ["sql:perdura", "task.cancel", "refused"])
        self.assertEqual(json.loads(refusal[3])["reason"], "a task that is completed cannot be cancelled")
        self.assertEqual(self.node.task(task["id"])["result"], {"x": 1})

    def test_a14_a_completion_that_waits_for_a_node_has_ended_the_task_already(self):
        self.begin()
        task = self.held()
        self.nodes.stop(0)
        self.one("SELECT @complete(%s, %s, '1')", task["id"], task["lease_token"])
        self.assertEqual(self.say("status", task["id"]), "completed")
        self.assertEqual(self.say("wait_for", task["id"]), "completed")
        self.refused("cancel", task["id"], "a task that is completed cannot be cancelled", "ended")
        self.say("retry", task["id"])
        self.nodes.start(0)
        self.wait_status(self.node, task["id"], "pending")
        self.assertIn("completed", self.node.statuses(task["id"]))

    def test_d12_a_request_that_a_bound_of_the_namespace_puts_off_waits_with_its_task(self):
        self.begin()
        role = self.role("shop")
        self.node.expect(201, "POST", "/v1/namespaces", {"name": "shop", "limits": {"waiting": 1}})
        self.with_access(f"{role}: shop")
        first, second = (self.one("SELECT @enqueue('t')", role=role) for _ in range(2))
        harness.wait_until(lambda: self.nodes.sql("SELECT count(*) FROM intake_rows WHERE due_at > '-infinity'")
                           == [["1"]], what="the second to be put off")
        self.say("cancel", second, role=role)
        harness.wait_until(lambda: self.nodes.sql("SELECT count(*) FROM intake_reports WHERE due_at > '-infinity'")
                           == [["1"]], what="its cancel to be put off")
        self.say("cancel", first, role=role)
        shop = {"Perdura-Namespace": "shop"}
        for made in (first, second):
            harness.wait_until(lambda: self.node.expect(200, "GET", f"/v1/tasks/{made}", headers=shop)["status"]
                               == "cancelled", what="both to be cancelled")

    # status and wait_for.

    def test_c7_wait_for_tells_of_the_end_and_gives_up_in_time(self):
        self.begin()
        task = self.held()
        waiting = harness.Background(self.one, "SELECT @wait_for(%s, '50 s')", task["id"])
        self.assertEqual(self.one("SELECT @wait_for(%s, '0.1 s')", task["id"]), "claimed")
        self.node.complete("worker-1", task)
        self.assertEqual(waiting.result(), "completed")
        for patience, sentence in (("2 hours", "to one hour"), ("-1 s", "to one hour"), (None, "NULL")):
            with self.assertRaisesRegex(psycopg2.Error, sentence):
                self.one("SELECT @wait_for(%s, %s::interval)", task["id"], patience)

    def test_c7_wait_for_says_at_once_where_it_would_wait_for_ever(self):
        self.begin()
        made = self.node.enqueue("t")["id"]
        for level in ("REPEATABLE READ", "SERIALIZABLE"):
            connection = self.connect()
            connection.set_session(isolation_level=level)
            with self.assertRaisesRegex(psycopg2.Error, f"isolation level {level}"), connection.cursor() as cursor:
                self.call(cursor, "SELECT @wait_for(%s)", made)
        for text in ("SELECT @wait_for(@enqueue('t'))", "SELECT @wait_for(%s) FROM (SELECT @cancel(%s)) c"):
            with self.assertRaisesRegex(psycopg2.Error, "would wait for ever"):
                connection = self.connect()
                with connection.cursor() as cursor:
                    if "%s" in text:
                        self.call(cursor, "SELECT @cancel(%s)", made)
                        self.call(cursor, "SELECT @wait_for(%s)", made)
                    else:
                        self.call(cursor, text)

    def test_c7_wait_for_does_not_poll_hot(self):
        """Looks at the table of tasks a few times a second at most."""
        self.begin()
        made = self.node.enqueue("t", delay_ms=3600000)["id"]
        connection = self.connect()
        connection.autocommit = True
        with connection.cursor() as cursor:
            self.call(cursor, "SELECT set_config('track_functions', 'all', false)")
            self.call(cursor, "SELECT @wait_for(%s, '3 s')", made)
            looks = harness.wait_until(lambda: self.call(
                cursor, "SELECT calls FROM pg_stat_user_functions WHERE funcname = 'intake_look' AND schemaname = "
                f"'{self.nodes.schema}'"), what="the count of looks")
        self.assertLess(looks[0][0], 30)

    # INSERT and DELETE.

    def test_a14_004s_insert_makes_a_task_and_a_duplicate_gives_the_first_id(self):
        self.begin()
        self.node.register(queues=("mail",))
        connection = self.connect()
        with connection, connection.cursor() as cursor:
            cursor.execute(f"SET search_path = {self.nodes.schema}")
            cursor.execute(
                "INSERT INTO tasks (type, payload, idempotency_key, queue, priority, metadata) VALUES ('email:send', "
                "'{\"to\":\"user@example.com\"}', 'email-user-123', 'mail', 7, '{\"a\": null}') RETURNING id, status")
            made, status = cursor.fetchone()
            self.assertEqual(status, "pending")
            [[again]] = self.call(cursor, "INSERT INTO tasks (type, payload, idempotency_key) VALUES ('email:send', '{}', "
                                  "'email-user-123') ON CONFLICT DO NOTHING RETURNING id")
            self.assertEqual(again, made)
        [task] = self.node.claim(wait_ms=20000)
        self.assertEqual((task["id"], task["payload"]), (made, {"to": "user@example.com"}))
        task = self.node.task(made)
        self.assertEqual((task["priority"], task["idempotency_key"], task["metadata"]),
                         (7, "email-user-123", {"a": None}))

    def test_a14_every_column_that_is_a_field_of_a_request_can_be_inserted(self):
        self.begin()
        values = {"external_id": "e", "name": "n", "queue": "q", "data": '{"d": [1]}', "tags": '["x"]', "user_id": "u",
                  "context_key": "c", "workflow_id": "w", "max_retries": 5, "timeout_ms": 7000, "note": "said",
                  "scheduled_at": "2099-01-01 00:00Z", "auto_recovery_enabled": False, "status": "pending",
                  "state": "Queued", "progress": 0, "namespace": "default"}
        names = ", ".join(values)
        made = self.one(f"INSERT INTO @tasks (type, {names}) VALUES ('t'{', %s' * len(values)}) RETURNING id",
                        *values.values())
        self.taken_in()
        task = self.node.task(made)
        self.assertEqual((task["status"], task["data"], task["tags"], task["auto_recovery"], task["scheduled_at"][:10],
                          task["payload"], task["max_retries"], task["note"], task["external_id"]),
                         ("delayed", {"d": [1]}, ["x"], False, "2099-01-01", {}, 5, "said", "e"))
        for columns, value, sentence in (("id", UNKNOWN, "cannot have id"), ("attempts", 3, "cannot have attempts"),
                                         ("status", "completed", "cannot have status"),
                                         ("namespace", "other", "not into other"),
                                         ("worker_id", "w", "cannot have worker_id")):
            with self.assertRaisesRegex(psycopg2.Error, sentence):
                self.one(f"INSERT INTO @tasks (type, {columns}) VALUES ('t', %s) RETURNING id", value)
        with self.assertRaisesRegex(psycopg2.Error, "the type is missing"):
            self.one("INSERT INTO @tasks (payload) VALUES ('{}') RETURNING id")
        for text in ("INSERT INTO executions (id) VALUES (NULL)", "DELETE FROM task_events", "UPDATE task_events SET id = id"):
            with self.assertRaisesRegex(AssertionError, "SQL cannot change (executions|task_events): nodes write it"):
                self.nodes.sql(text)

    def test_a14_delete_removes_what_has_ended_and_refuses_the_rest(self):
        self.begin()
        task, other = self.held(), self.node.enqueue("t")["id"]
        for made, sentence in ((task["id"], "a task that is claimed cannot be deleted; cancel it first"),
                               (other, "a task that is pending cannot be deleted; cancel it first")):
            with self.assertRaisesRegex(AssertionError, sentence):
                self.nodes.sql(f"DELETE FROM tasks WHERE id = '{made}'")
        self.node.complete("worker-1", task)
        self.nodes.sql(f"BEGIN; DELETE FROM tasks WHERE id = '{task['id']}'; ROLLBACK")
        self.assertEqual(self.nodes.sql("DELETE FROM tasks WHERE status = 'completed' RETURNING id"), [[task["id"]]])
        harness.wait_until(lambda: self.node.api("GET", f"/v1/tasks/{task['id']}")[0] == 404, what="it to be gone")
        self.assertEqual(self.nodes.sql("SELECT id FROM tasks"), [[other]])

    def test_j5_a_role_of_one_user_deletes_rows_of_its_own_only(self):
        self.begin()
        role = f"authenticated_{self.nodes.schema}"
        self.nodes.sql(f"CREATE ROLE {role} LOGIN; SELECT perdura_share('{role}'); GRANT DELETE ON tasks TO {role}")
        ids = {}
        for user in ("u", "v"):
            task = self.held(user_id=user)
            self.node.complete("worker-1", task)
            ids[user] = task["id"]
        connection = self.connect(role)
        with connection, connection.cursor() as cursor:
            cursor.execute("SELECT set_config('app.current_namespace', 'default', false), "
                           "set_config('app.current_user_id', 'u', false)")
            self.assertEqual(self.call(cursor, "DELETE FROM @tasks RETURNING id"), [(ids["u"],)])
        harness.wait_until(lambda: self.nodes.sql("SELECT id FROM tasks") == [[ids["v"]]], what="the other to be left")

    # Rights.

    def test_j5_a_role_can_be_granted_some_verbs_only(self):
        self.begin()
        role = self.role("web")
        task = self.held()
        self.grant(role, "--only", "enqueue,status")
        made = self.one("SELECT @enqueue('t')", role=role)
        self.assertEqual(self.say("status", made, role=role), "pending")
        self.assertTrue(self.one("INSERT INTO @tasks (type) VALUES ('t') RETURNING id", role=role))
        for text in ("SELECT @cancel(%s)", "SELECT @retry(%s)", "SELECT @wait_for(%s)", "SELECT @complete(%s, 1)",
                     "SELECT @fail(%s, 1, 'x')", "SELECT @checkpoint(%s, 1, 'x')", "DELETE FROM @tasks WHERE id = %s"):
            with self.assertRaisesRegex(psycopg2.errors.InsufficientPrivilege, "permission denied"):
                self.one(text, task["id"], role=role)
        self.grant(role, "--only", "status")
        for text in ("SELECT @enqueue('t')", "INSERT INTO @tasks (type) VALUES ('t')"):
            with self.assertRaisesRegex(psycopg2.errors.InsufficientPrivilege, "permission denied"):
                self.one(text, role=role)
        self.assertIn('there is no verb "fly"; choose from cancel', self.grant(role, "--only", "fly", code=1))
        self.grant(role)
        self.say("cancel", task["id"], role=role)
        self.wait_status(self.node, task["id"], "cancelled")

    def test_j5_the_configuration_narrows_a_role_to_verbs_and_types(self):
        self.begin()
        role = self.role("web")
        self.with_access(f"{role}: {{verbs: [enqueue, complete, cancel], types: ['order:*', mail]}}")
        theirs = self.held()
        mine = self.one("SELECT @enqueue('order:confirm')", role=role)
        self.one("SELECT @enqueue('mail')", role=role)
        self.say("cancel", mine, role=role)
        for text, values, sentence in (
                ("SELECT @enqueue('orders')", (), "may not call enqueue.. for tasks of type orders"),
                ("SELECT count(*) FROM @enqueue_many('t', '{1}')", (), "for tasks of type t"),
                ("INSERT INTO @tasks (type) VALUES ('t') RETURNING id", (), "for tasks of type t"),
                ("SELECT @cancel(%s)", (theirs["id"],), "may not call cancel.. for tasks of type t"),
                ("SELECT @complete(%s, %s)", (theirs["id"], theirs["lease_token"]), "may not call complete.. for tasks"),
                ("SELECT @retry(%s)", (mine,), "may not call retry"), ("SELECT @status(%s)", (mine,), "may not call"),
                ("SELECT @fail(%s, 1, 'x')", (mine,), "may not call fail")):
            with self.assertRaisesRegex(psycopg2.errors.InsufficientPrivilege, sentence):
                self.one(text, *values, role=role)

    def test_j5_a_role_asks_for_tasks_of_its_namespace_only(self):
        self.begin()
        role = self.role("shop")
        self.node.expect(201, "POST", "/v1/namespaces", {"name": "shop"})
        self.with_access(f"{role}: {{namespace: shop, types: ['a*']}}")
        theirs, mine = self.node.enqueue("secret")["id"], self.one("SELECT @enqueue('a')", role=role)
        for verb in ("cancel", "retry", "status", "wait_for"):
            self.refused(verb, theirs, "^there is no task", f"the role {role}", role=role)
        self.say("cancel", mine, role=role)
        self.assertEqual(self.say("wait_for", mine, role=role), "cancelled")

    def test_a14_a_pooler_in_transaction_mode_is_no_obstacle_for_the_verbs(self):
        self.begin()
        role = self.role("shop")
        with Pooler(self.postgres, role) as pooler:
            to = {"role": role, "port": pooler.port}
            made = self.one("INSERT INTO @tasks (type) VALUES ('t') RETURNING id", **to)
            self.say("cancel", made, **to)
            self.assertEqual(self.say("wait_for", made, **to), "cancelled")
            self.say("retry", made, **to)
            harness.wait_until(lambda: self.say("status", made, **to) == "pending", what="it to wait again")

    # Faults.

    def test_a14_two_thousand_rollbacks_leave_nothing(self):
        self.begin()
        task, ended = self.held()["id"], self.held()
        self.node.complete("worker-1", ended)
        before = self.left(), self.node.task(task), self.node.task(ended["id"])

        def work():
            connection = self.connect()
            cursor = connection.cursor()
            for i in range(500):
                self.call(cursor, "SELECT @cancel(%s)", task)
                self.call(cursor, "SELECT @retry(%s)", ended["id"])
                self.call(cursor, "INSERT INTO @tasks (type, idempotency_key) VALUES ('t', %s) RETURNING id",
                          str(uuid.uuid4()))
                if i % 2:
                    with self.assertRaises(psycopg2.Error):
                        cursor.execute("SELECT 1 / 0")
                connection.rollback()

        for one in [harness.Background(work) for _ in range(4)]:
            one.result()
        self.assertEqual((self.left(), self.node.task(task), self.node.task(ended["id"])), before)
        self.assertEqual(self.nodes.sql("SELECT count(*) FROM intake_reports"), [["0"]])

    def test_a14_requests_are_applied_once_while_nodes_are_killed(self):
        self.begin(2)
        ids, stop = [], threading.Event()

        def program():
            connection = self.connect()
            while not stop.is_set():
                with connection, connection.cursor() as cursor:
                    [[made]] = self.call(cursor, "SELECT @enqueue('t')")
                    self.call(cursor, "SELECT @cancel(%s)", made)
                ids.append(made)

        programs = [harness.Background(program) for _ in range(3)]
        for turn in range(6):
            enough = len(ids) + 60
            harness.wait_until(lambda: len(ids) > enough, what="tasks")
            self.nodes.kill(turn % 2)
            self.nodes.start(turn % 2)
        stop.set()
        for one in programs:
            one.result()
        count = [[str(len(ids))]]
        harness.wait_until(lambda: self.nodes.sql("SELECT count(*) FROM task_states WHERE status = 'cancelled'") == count,
                           what="all to be cancelled")
        self.assertEqual(self.nodes.sql("SELECT count(*) FROM task_events WHERE status = 'cancelled'"), count)
        self.assertEqual(self.nodes.sql("SELECT count(*) FROM audit_log WHERE action = 'task.cancel'"), count)

    def test_a14_an_idle_node_hears_of_a_request_without_polling(self):
        self.begin(2)  # nodes that hear of one another do not poll
        made = self.node.enqueue("t")["id"]
        time.sleep(1)
        began = time.monotonic()
        self.say("cancel", made)
        self.assertEqual(self.say("wait_for", made), "cancelled")
        self.assertLess(time.monotonic() - began, 10)


if __name__ == "__main__":
    unittest.main()
