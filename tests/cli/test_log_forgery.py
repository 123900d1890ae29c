"""Logs of an SQLite store that an attacker without the key writes to (F-J5, F-J8, D9): see
tests/campaign/forgery_cases.py."""
import contextlib
import json
import os
import pathlib
import shutil
import sqlite3
import sys
import unittest
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "campaign"))
import schemas  # noqa: E402
import harness  # noqa: E402
from forgery_cases import ForgeryCases  # noqa: E402


class LogForgery(ForgeryCases, unittest.TestCase):
    changes = sorted(set(schemas.BOTH + schemas.SQLITE), key=lambda attack: attack.__name__)

    @classmethod
    def setUpClass(cls):
        cls.make_stand(schemas.Sqlite())

    def test_f_j5_a_closed_run_stays_closed_when_its_rows_say_that_it_runs(self):
        """And a worker adds a line to it over HTTP, with the lease that these rows name."""
        case = self.case()
        execution = case.ended[2]
        task, held = case.tasks[execution], case.tasks[case.held[0]]
        lease = ", ".join(f"{name} = (SELECT {name} FROM task_states WHERE id = {case.uid(held)})"
                          for name in ("held", "lease_until"))
        case.put("UPDATE execution_rows SET status = 'running', completed_at = NULL, end_seq = NULL "
                 f"WHERE id = {case.uid(execution)}",
                 "UPDATE task_states SET status = 'running', completed_at = NULL, "
                 f"worker_id = 'worker-1', lease_token = 12345, {lease}, execution = (SELECT execution "
                 f"FROM execution_rows WHERE id = {case.uid(execution)}) WHERE id = {case.uid(task)}")
        case.apply()
        said = {"op": "log", "task_id": str(uuid.UUID(task)), "level": "INFO", "lease_token": 12345,
                "message": "all is well"}
        log = case.serve(lambda client: client.report("worker-1", said), retention=False)
        self.assertFalse(case.kept(execution))  # it was taken
        self.assertIn("log.forged", log)
        self.assert_named(case, execution)

    def test_f_j5_lines_that_readers_do_not_see_are_named(self):
        """Values of another class than their column, and rows that readers come by."""
        hidden = (
            "UPDATE execution_logs SET execution_id = CAST(execution_id AS TEXT) WHERE {run}",
            "UPDATE execution_logs SET message = CAST(message AS BLOB) WHERE {run}",
            "UPDATE log_heads SET closed = CAST(closed AS BLOB) WHERE {run}",
            "DELETE FROM task_specs WHERE task = (SELECT task FROM task_states WHERE id = {task})",
            "UPDATE task_states SET lane = 999999 WHERE id = {task}",
            "UPDATE task_specs SET lane = 999999 WHERE task = (SELECT task FROM task_states "
            "WHERE id = {task})")
        for statement in hidden:
            case = self.case()
            execution = case.ended[2]
            case.put(statement.format(run=case.where(execution),
                                      task=case.uid(case.tasks[execution])))
            case.apply()
            report = case.verify()
            told = " ".join(finding["detail"] for finding in report["findings"])
            names = (str(uuid.UUID(execution)), str(uuid.UUID(case.tasks[execution])))
            self.assertTrue(any(name in told for name in names), (statement, report))

    def test_f_j5_no_class_of_value_keeps_a_run_out_of_the_records(self):
        case = self.case()
        executions = case.held

        def during(client):
            for task in self.stand.held:
                client.say(task, "INFO", "and more")
            case.dialect.run(case.store, ["UPDATE log_heads SET closed = x'' WHERE closed = ''"])
        case.serve(during, retention=False, config="")
        case.load()
        for execution in executions:
            last = len(case.runs[execution])
            told = [item for text, in case.rows("SELECT record FROM log_anchors")
                    for item in json.loads(text)["items"] if uuid.UUID(item[0]).hex == execution]
            self.assertEqual(max(item[1] for item in told), last)

    def test_f_j5_a_server_does_not_go_on_with_a_log_that_others_do_not_see(self):
        """A copy of -wal in the place of the one that is open: verify would see another store."""
        case = self.case()
        server = harness.Server(case.folder)
        server.store = case.store
        server.start()
        self.addCleanup(server.stop)
        wal = case.store + "-wal"
        shutil.copy(wal, wal + ".copy")
        os.replace(wal + ".copy", wal)
        harness.wait_until(lambda: server.process.poll() is not None, what="the end of the server")
        self.assertIn("-wal' was deleted or replaced while in use", server.log())

    def test_d9_a_damaged_record_does_not_make_the_store_one_from_before(self):
        """With another name of the key, and without lines for the moment of a start. Several nodes
        wait for the key that the store names, and sign nothing."""
        case = self.case()
        serial, signature, name = case.rows(
            "SELECT a.serial, a.signature, i.value FROM log_anchors a, store_info i WHERE i.name = "
            "'log_public_key' ORDER BY a.serial DESC LIMIT 1")[0]
        case.put("CREATE TABLE away AS SELECT * FROM execution_logs", "DELETE FROM execution_logs",
                 f"UPDATE log_anchors SET signature = '{'ab' * 64}' WHERE serial = {serial}",
                 f"UPDATE store_info SET value = '{'cd' * 32}' WHERE name = 'log_public_key'")
        case.apply()

        log = case.serve(lambda client: client.logged("late", 2, self.rng), retention=False, config="")
        self.assertIn("log.foreign_records", log)
        case.put("INSERT INTO execution_logs SELECT * FROM away", "DROP TABLE away",
                 f"UPDATE log_anchors SET signature = '{signature}' WHERE serial = {serial}",
                 f"UPDATE store_info SET value = '{name}' WHERE name = 'log_public_key'")
        case.apply()
        report = case.verify()
        self.assertFalse(report["ok"])
        self.assertNotIn("log lines from before the key", report["checked"])
        begins = {json.loads(text)["begin"] for text, in case.rows("SELECT record FROM log_anchors")}
        self.assertEqual(begins, {1})

    def test_f_j5_a_server_reads_the_pages_that_others_read(self):
        """A copy of the table takes its place, under the number by which SQLite knows the schema."""
        case = self.case()
        execution = case.ended[0]
        path = f"/v1/tasks/{uuid.UUID(case.tasks[execution])}/logs"

        def swap():
            with contextlib.closing(sqlite3.connect(case.store, timeout=60, isolation_level=None)) as db:
                made, = db.execute("SELECT sql FROM sqlite_master WHERE name = 'execution_logs'").fetchone()
                db.execute("BEGIN IMMEDIATE")
                db.execute(made.replace("execution_logs", "mine", 1))
                db.execute("INSERT INTO mine SELECT * FROM execution_logs")
                db.execute("COMMIT")
                roots = dict(db.execute("SELECT name, rootpage FROM sqlite_master WHERE name IN "
                                        "('execution_logs', 'mine')"))
                db.execute("PRAGMA writable_schema = ON")
                db.execute("BEGIN IMMEDIATE")
                for name, other in (("execution_logs", "mine"), ("mine", "execution_logs")):
                    db.execute("UPDATE sqlite_master SET rootpage = ? WHERE name = ?", (roots[other], name))
                db.execute("COMMIT")
            case.dialect.run(case.store, [f"UPDATE mine SET message = 'forged' WHERE {case.where(execution)}"])

        def strike(client):
            shown = [line["message"] for line in client.expect(200, "GET", path)["items"]]
            swap()
            for task in self.stand.held:  # a writer sees that the store was changed
                client.say(task, "INFO", "and on")
            for _ in range(20):  # whichever connection reads
                self.assertEqual([line["message"] for line in client.expect(200, "GET", path)["items"]],
                                 shown)
        case.serve(strike, retention=False, config="")
        self.assertTrue(case.verify()["ok"])


if __name__ == "__main__":
    unittest.main()
