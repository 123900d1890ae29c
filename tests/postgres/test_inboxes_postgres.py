"""Inboxes in other databases of PostgreSQL (A15): rows of a program's own transactions become tasks, each once and in
their order, also where several nodes could take them; and what may happen to the database or the rights in it."""
import json
import os
import pathlib
import signal
import threading
import unittest

import psycopg2

import harness
from cluster import CALM, ClusterTest, begin_module
from harness import wait_until
from inbox_tables import PostgresBox, postgres_box
from server import Postgres

setUpModule = begin_module


class Inboxes(ClusterTest):
    databases = 0

    def setUp(self):
        Inboxes.databases += 1
        self.name = f"shop_{Inboxes.databases}"
        self.admin(f"CREATE DATABASE {self.name}")
        self.address = self.postgres.url.replace("/postgres", f"/{self.name}")
        self.box = postgres_box(self.address)
        self.addCleanup(self.box.close)

    def admin(self, text, url=None):
        connection = psycopg2.connect(url or self.postgres.url)
        connection.autocommit = True
        connection.cursor().execute(text)
        connection.close()

    def begin(self, count=1, store=None, more="", leases=CALM):
        folder = self.temporary_folder()
        self.file = os.path.join(folder, "perdura.yaml")
        self.configure(store or self.address, more)
        self.nodes = self.cluster(count, "--config", self.file, *leases)
        self.node = self.nodes.node(0)
        return self.node

    def configure(self, store, more=""):
        pathlib.Path(self.file).write_text(f"inboxes:\n  - name: shop\n    store: {store}\n{more}")

    def inbox(self, node=None):
        """As it is shown; while another address takes its place it is not there."""
        items = (node or self.node).expect(200, "GET", "/v1/inboxes")["items"]
        return items[0] if items else {"state": "absent", "error": None}

    def ready(self):
        wait_until(lambda: self.inbox()["state"] == "ready", what="the inbox to be ready")

    def fails(self, *words):
        wait_until(lambda: all(word in (self.inbox()["error"] or "") for word in words),
                   what=f"the inbox to say {words}")
        self.assertEqual((self.inbox()["state"], self.inbox()["connected"]), ("failed", False))

    def payloads(self):
        return [json.loads(row[0]) for row in self.nodes.sql("SELECT payload FROM tasks ORDER BY perdura_key(id)")]

    def assert_each_is_one_task(self, count, in_order=True):
        ids = [row[0] for row in self.nodes.sql("SELECT id FROM tasks ORDER BY perdura_key(id)")]
        noted = [row[2] for row in self.box.rows()]
        self.assertEqual(noted if in_order else sorted(noted), ids if in_order else sorted(ids))
        self.assertEqual(len(ids), count)


class FromPostgres(Inboxes):
    def test_a15_a_waiting_worker_gets_a_row_from_its_commit_on(self):
        self.begin()
        self.ready()
        self.node.register(queues=("mail",))
        for _ in range(10):
            waiting = self.node.in_thread(self.node.claim, "worker-1", 1, 30000)
            row = self.box.put("order:confirm", '{"order": 7}', {"queue": "mail", "priority": 7})
            [task] = waiting.result()
            self.assertEqual((task["type"], task["payload"], task["priority"]), ("order:confirm", {"order": 7}, 7))
            self.node.complete("worker-1", task)
            self.box.emptied()
            self.assertEqual(self.box.rows()[-1], (row, True, task["id"], None))

    def test_a15_a_row_whose_transaction_commits_late_is_taken_when_it_does(self):
        self.begin()
        early, late = self.box, PostgresBox(psycopg2.connect(self.address))
        self.addCleanup(late.close)
        late.put(payload='"late"', commit=False)
        for i in range(3):
            early.put(payload=str(i))
        early.emptied()
        self.assertEqual(self.payloads(), [0, 1, 2])
        late.connection.commit()
        early.emptied()
        self.assertEqual(self.payloads(), [0, 1, 2, "late"])

    def test_a15_what_is_rolled_back_leaves_nothing(self):
        self.begin()
        self.ready()
        for i in range(200):
            self.box.put(commit=False)
            if i % 3 == 0:
                self.box.run("SAVEPOINT s")
                self.box.put(commit=False)
                self.box.run("ROLLBACK TO s")
            self.box.connection.rollback()
        self.box.put(payload='"kept"')
        self.box.emptied()
        self.assertEqual(self.payloads(), ["kept"])

    def test_a15_ten_thousand_rows_keep_their_order(self):
        self.box.run("INSERT INTO @ (type, payload) SELECT 't', to_jsonb(i) FROM generate_series(0, 9999) i")
        self.box.connection.commit()
        self.begin()
        self.box.emptied()
        self.assertEqual(self.payloads(), list(range(10000)))
        self.assert_each_is_one_task(10000)

    def test_a15_damaged_rows_are_set_aside_and_the_rest_goes_on(self):
        self.box.run("DROP TABLE @")
        self.box.run("CREATE TABLE @ (id bigserial PRIMARY KEY, type text, payload text, options text, created_at "
                     "timestamptz DEFAULT now(), taken_at timestamptz, task_id text, error text)")
        cases = [("t", '{"a": ', "{}", "payload is no JSON"), ("t", '1, "queue": "x"', "{}", "payload is no JSON"),
                 ("t", "{}", "[]", "options must be a JSON object"), ("t", "{}", '{"surprise": 1}', "surprise"),
                 (None, "{}", "{}", "no type"), ("x" * 5000, "{}", "{}", "type is longer"),
                 ("t", "{}", json.dumps({"metadata": {"a": "x" * 3000000}}), "larger than 2 MiB"),
                 ("t", json.dumps("x" * (64 << 20)), "{}", "larger than 1 MiB"),
                 ("t", "{}", '{"priority": "größer"}', "priority")]
        for kind, payload, options, _ in cases:
            self.box.put(kind, payload, options)
        self.box.put("good", None, None)
        self.begin()
        self.box.emptied()
        rows = self.box.rows()
        for (*_, words), row in zip(cases, rows):
            self.assertEqual(row[1:3], (False, None), row)
            self.assertIn(words, row[3])
        self.assertEqual(rows[-1][2:], (self.nodes.sql("SELECT id FROM tasks")[0][0], None))
        self.box.run("UPDATE @ SET error = NULL, options = '{}' WHERE id = 3")
        self.box.connection.commit()
        self.box.emptied()
        self.assertEqual(self.nodes.sql("SELECT count(*) FROM tasks"), [["2"]])

    def test_a15_large_rows_come_in_looks_that_fit_the_memory(self):
        text = "x" * 1000000
        self.box.run("INSERT INTO @ (type, payload) SELECT 't', to_jsonb(%s::text) FROM generate_series(1, 60)", text)
        self.box.connection.commit()
        self.begin()
        self.box.emptied()
        self.assert_each_is_one_task(60)

    def test_a15_rows_may_be_deleted_when_they_are_tasks(self):
        self.begin(more="    after: delete\n")
        for i in range(20):
            self.box.put(payload=str(i))
        wait_until(lambda: self.box.rows() == [], what="the rows to go")
        self.assertEqual(self.payloads(), list(range(20)))

    def test_a15_a_row_that_a_program_has_locked_is_taken_when_it_lets_go(self):
        self.box.put(payload="1")
        self.box.run("UPDATE @ SET payload = '2'")
        self.begin()
        self.ready()
        other = PostgresBox(psycopg2.connect(self.address))
        self.addCleanup(other.close)
        other.put(payload="3")
        wait_until(lambda: self.payloads() == [3])
        self.box.connection.commit()
        self.box.emptied()
        self.assertEqual(self.payloads(), [3, 2])

    # What may happen to the database.

    def test_a15_a_missing_table_and_missing_rights_are_said_and_found_later(self):
        self.box.run("ALTER TABLE @ RENAME TO gone")
        self.box.run(f"CREATE ROLE {self.name}_taker LOGIN")
        self.box.connection.commit()
        self.begin(store=self.address.replace("perdura@", f"{self.name}_taker@"))
        self.fails("there is no table", "perdura inbox sql")
        for text in ("ALTER TABLE gone RENAME TO perdura_inbox", f"GRANT SELECT ON perdura_inbox TO {self.name}_taker"):
            self.fails("there is no table" if "ALTER" in text else "may not")
            self.box.run(text)
            self.box.connection.commit()
        self.fails("permission denied", "GRANT SELECT, UPDATE ON")
        self.box.put()
        self.box.run(f"GRANT UPDATE ON @ TO {self.name}_taker")
        self.box.connection.commit()
        self.box.emptied()
        self.box.run(f"REVOKE UPDATE ON @ FROM {self.name}_taker")
        self.box.connection.commit()
        self.box.put()
        self.fails("permission denied")
        self.box.run(f"GRANT UPDATE ON @ TO {self.name}_taker")
        self.box.connection.commit()
        self.box.emptied()
        self.assert_each_is_one_task(2)

    def test_a15_rights_that_go_between_commit_and_mark_double_nothing(self):
        self.box.run("CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not now'; END $$")
        self.box.run("CREATE TRIGGER no BEFORE UPDATE ON @ FOR EACH ROW EXECUTE FUNCTION no()")
        self.box.connection.commit()
        self.begin()
        self.box.put(payload="1")
        self.fails("not now")
        self.box.put(payload="2")
        self.assertEqual(self.payloads(), [1])
        self.box.run("DROP TRIGGER no ON @")
        self.box.connection.commit()
        self.box.emptied()
        self.assertEqual(self.payloads(), [1, 2])
        self.assert_each_is_one_task(2)

    def test_a15_marks_that_a_trigger_keeps_out_double_nothing(self):
        self.box.run("CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$")
        self.box.run("CREATE TRIGGER no BEFORE UPDATE ON @ FOR EACH ROW EXECUTE FUNCTION no()")
        self.box.put(payload="1")
        self.begin()
        self.fails("cannot be marked", "trigger")
        self.box.put(payload="2")
        self.fails("cannot be marked", "trigger")
        self.assertEqual(self.payloads(), [1])
        self.box.run("DROP TRIGGER no ON @")
        self.box.connection.commit()
        self.box.emptied()
        self.assertEqual(self.payloads(), [1, 2])

    def test_a15_a_database_that_only_reads_is_said(self):
        self.admin(f"ALTER DATABASE {self.name} SET default_transaction_read_only = on")
        self.begin()
        self.fails("read-only", "primary")
        self.admin(f"ALTER DATABASE {self.name} SET default_transaction_read_only = off")
        self.box.put()
        self.box.emptied()

    def test_a15_connections_that_are_cut_lose_and_double_nothing(self):
        self.begin()
        stop = threading.Event()

        def cut():
            while not stop.is_set():
                self.admin(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{self.name}' AND "
                           "application_name = 'perdura inbox'")
                stop.wait(0.15)

        cutter = harness.Background(cut)
        for i in range(400):
            self.box.put(payload=str(i))
        stop.set()
        cutter.result()
        self.box.emptied()
        self.assertEqual(self.payloads(), list(range(400)))
        self.assert_each_is_one_task(400)

    def test_a15_a_database_that_is_away_for_a_while_is_found_again(self):
        with Postgres() as other:
            self.box = postgres_box(other.url)
            self.begin(store=other.url)
            self.box.put(payload="1")
            self.box.emptied()
            self.box.close()
            other.stop(signal.SIGQUIT)
            self.fails("does not answer")
            other.start()
            self.box = postgres_box(other.url, make=False)
            self.box.put(payload="2")
            self.box.emptied()
            self.assertEqual(self.payloads(), [1, 2])
            self.box.close()

    def test_a15_passwords_and_parameters_of_tls_are_those_of_the_configuration(self):
        with Postgres() as other:
            rules = pathlib.Path(other.folder, "data", "pg_hba.conf")
            rules.write_text("host all keeper 127.0.0.1/32 scram-sha-256\n" + rules.read_text())
            self.admin("CREATE ROLE keeper LOGIN SUPERUSER PASSWORD 'right: @/'", other.url)
            self.admin("SELECT pg_reload_conf()", other.url)
            self.box = postgres_box(other.url)
            store = other.url.replace("perdura@", "keeper@")
            secret = os.path.join(self.temporary_folder(), "password")
            pathlib.Path(secret).write_text("wrong\n")
            os.chmod(secret, 0o600)
            self.begin(store=store, more=f"    password_file: {secret}\n")
            self.fails("password authentication failed")
            pathlib.Path(secret).write_text("right: @/\n")
            self.node.process.send_signal(signal.SIGHUP)
            self.ready()
            self.assertNotIn("right", json.dumps(self.inbox()) + self.node.log())
            self.configure(store + "?sslmode=require", f"    password_file: {secret}\n")
            self.node.process.send_signal(signal.SIGHUP)
            self.fails("SSL")
            self.box.close()


class SeveralNodes(Inboxes):
    def states(self):
        return sorted(self.inbox(node)["state"] for node in self.nodes.nodes if node.lives)

    def test_a15_one_node_takes_the_rows_and_a_change_of_leader_doubles_nothing(self):
        self.begin(3, leases=())
        wait_until(lambda: self.states() == ["ready", "standby", "standby"], what="one node to take the rows")
        sent = 0
        for change in ("kill", "freeze", "stop"):
            leader = self.nodes.wait_leader()
            writer = harness.Background(lambda first: [self.box.put(payload=str(first + i)) for i in range(150)], sent)
            wait_until(lambda: int(self.nodes.sql("SELECT count(*) FROM tasks")[0][0]) > sent + 20)
            getattr(self.nodes, change)(leader)
            writer.result()
            sent += 150
            self.box.emptied()
            if change == "freeze":
                self.nodes.thaw(leader)
            else:
                self.nodes.start(leader)
            taken = [one for one in self.payloads() if one >= sent - 150]
            # A frozen leader may hold rows that it was reading: they come when its session ends.
            self.assertEqual(sorted(taken) if change == "freeze" else taken, list(range(sent - 150, sent)))
        self.assert_each_is_one_task(sent, in_order=False)


if __name__ == "__main__":
    unittest.main()
