"""Whom verification of logs believes: torn and missing anchor files, keys, records that were
removed or made by an attacker (F-J5 to F-J7)."""
import contextlib
import hashlib
import json
import os
import pathlib
import sqlite3
import unittest

from cli_harness import FolderTest
from test_logs import LogTest


def measured(data):
    """A field of a line's hash: its bytes behind their number."""
    if data is None:
        return b"\xff" * 8
    return len(data).to_bytes(8, "big") + (data if isinstance(data, bytes) else data.encode())


class TrustTest(LogTest):
    def again(self):
        """The server, as it comes back; one more execution logs; it stops."""
        self.server.start()
        self.local.connection = None
        self.register("worker-1")
        self.logged()
        self.server.stop()


class AnchorFile(TrustTest):
    def given(self):
        self.logged()
        self.server.stop()
        self.again()
        return pathlib.Path(self.anchor).read_bytes()

    def serials(self):
        return [json.loads(line)["record"]["serial"]
                for line in pathlib.Path(self.anchor).read_text().splitlines()]

    def test_f_j6_a_torn_end_is_made_whole_and_no_finding(self):
        whole = self.given()
        for cut in (1, 2, 50):
            pathlib.Path(self.anchor).write_bytes(whole[:-cut])
            self.verify(0, "--anchor", self.anchor)
            self.again()
            self.verify(0, "--anchor", self.anchor)
            self.assertEqual(self.serials(), list(range(1, len(self.serials()) + 1)))
            whole = pathlib.Path(self.anchor).read_bytes()

    def test_f_j7_a_configured_file_that_is_gone_is_told_of(self):
        self.given()
        config = ("--config", self.gates + "/server.yaml")
        self.verify(0, *config)
        for spoil in (lambda: os.truncate(self.anchor, 0), lambda: os.unlink(self.anchor)):
            spoil()
            finding, = self.verify(1, *config)["findings"]
            self.assertEqual((finding["kind"], finding["subject"]), ("anchor", "perdura.anchor"))
        doctor = json.loads(self.perdura("doctor", "--store", self.server.store, *config,
                                         "--json").stdout)
        anchor, = (check for check in doctor["checks"] if check["name"] == "anchor")
        self.assertEqual(anchor["verdict"], "warning")
        self.refused(3, "verify", "--store", self.server.store, "--anchor", self.anchor)
        self.again()
        self.assertIn("log.anchor_new", self.server.log())
        self.verify(0, *config)


class AnchorFolder(FolderTest):
    def test_f_j7_a_folder_that_is_not_there_is_told_of_before_anything_is_served(self):
        config = self.write("perdura.yaml", f"log_anchor: {self.folder}/nowhere/a\n")
        sentence = self.refused(1, "serve", "--listen", "127.0.0.1:0", "--config", config)
        self.assertIn(f"the folder '{self.folder}/nowhere' is not there", sentence)
        doctor = json.loads(self.perdura("doctor", "--config", config, "--json", code=1).stdout)
        anchor, = (check for check in doctor["checks"] if check["name"] == "anchor")
        self.assertEqual(anchor["verdict"], "failure")
        self.assertIn(f"the folder '{self.folder}/nowhere' is not there", anchor["detail"])
        os.mkdir(os.path.join(self.folder, "nowhere"))
        self.assertEqual(self.serve("--config", config).stop(), 0)


class Keys(TrustTest):
    config = "log_anchor_every: 100ms\n"

    def forge(self):
        """All records removed, a line changed, every chain made again and put among the heads that wait."""
        with contextlib.closing(sqlite3.connect(self.server.store)) as db:
            db.execute("DELETE FROM log_anchors")
            db.execute("UPDATE execution_logs SET message = 'nothing' WHERE seq = 2")
            tasks = dict(db.execute("SELECT id, task_id FROM executions"))
            for execution, in db.execute("SELECT DISTINCT execution_id FROM execution_logs").fetchall():
                self.chain_anew(db, execution, tasks[execution])
            db.commit()

    def chain_anew(self, db, execution, task):
        before = execution
        for seq, *fields, at in db.execute(
                "SELECT seq, log_level, message, context, logged_at FROM execution_logs "
                "WHERE execution_id = ? ORDER BY seq", (execution,)).fetchall():
            content = hashlib.sha256(measured(fields[1].encode()) + measured(fields[2])).digest()
            before = hashlib.sha256(b"".join(map(measured, (
                before, execution, task, seq.to_bytes(8, "big"), fields[0].encode(),
                at.to_bytes(8, "big"), content)))).digest()
            db.execute("UPDATE execution_logs SET chain_hash = ? WHERE execution_id = ? AND seq = ?",
                       (before.hex(), execution, seq))
        db.execute("INSERT OR REPLACE INTO log_heads (execution_id, seq, chain_hash, lines) VALUES (?, ?, ?, ?)",
                   (execution, seq, before.hex(), seq))

    def told(self, findings):
        return [(finding["kind"], finding["subject"]) for finding in findings]

    def test_f_j6_records_that_were_removed_are_missed_even_when_the_server_went_on(self):
        for _ in range(3):
            self.logged()
        self.server.stop()
        key = self.verify(0)["public_key"]
        self.forge()
        for more in ((), ("--public-key", key)):
            findings = self.verify(1, *more)["findings"]
            self.assertIn(("anchor", "store"), self.told(findings))
        self.again()
        self.assertIn("log.foreign_records", self.server.log())
        for more in ((), ("--public-key", key)):
            findings = self.verify(1, *more)["findings"]
            self.assertIn(("anchor", "record 1"), self.told(findings))
            self.assertEqual(len({finding.get("execution_id") for finding in findings} - {None}), 3)

    def test_d9_a_key_that_others_may_read_becomes_the_owners_and_signs(self):
        self.logged()
        self.server.stop()
        os.chmod(self.server.store + ".log-key", 0o644)
        self.again()
        self.assertIn("log.key_exposed", self.server.log())
        self.assertEqual(os.stat(self.server.store + ".log-key").st_mode & 0o777, 0o600)
        self.assertNotIn("unsigned records", self.verify(0)["checked"])

    def test_d9_a_configured_key_may_be_a_link_to_a_file_for_its_owner_only(self):
        """As secrets are mounted by Kubernetes."""
        self.server.stop()
        secret, link = os.path.join(self.folder, "secret"), os.path.join(self.folder, "key")
        pathlib.Path(secret).write_text("1f" * 32 + "\n")
        os.chmod(secret, 0o600)
        os.symlink("secret", link)
        with open(self.gates + "/server.yaml", "a", encoding="utf-8") as config:
            config.write(f"log_key: {link}\n")
        self.again()
        self.assertNotIn("log.unsigned", self.server.log())
        self.assertNotIn("unsigned records", self.verify(0)["checked"])
        self.assertFalse(os.path.exists(self.server.store + ".log-key"))

    def test_d9_a_key_beside_the_store_that_is_a_link_is_not_followed(self):
        self.server.stop()
        secret = os.path.join(self.folder, "secret")
        pathlib.Path(secret).write_text("1f" * 32 + "\n")
        os.chmod(secret, 0o600)
        os.symlink(secret, self.server.store + ".log-key")
        self.again()
        self.assertIn("log.unsigned", self.server.log())

    def test_d9_lines_written_without_the_key_are_never_signed(self):
        """Nothing distinguishes them from lines that an attacker wrote."""
        self.logged()
        self.server.stop()
        before = self.verify(0)["checked"]["records"]
        key = pathlib.Path(self.server.store + ".log-key")
        seed = key.read_text()
        key.write_text("spoilt\n")
        self.again()
        self.assertIn("log.unsigned", self.server.log())
        report = self.verify(0)
        self.assertEqual(report["checked"]["records"], before)
        self.assertEqual(report["checked"]["log lines that wait for a record"], 5)
        key.write_text(seed)
        self.again()
        report = self.verify(1)
        self.assertEqual(len({finding["execution_id"] for finding in report["findings"]}), 1)
        self.assertNotIn("unsigned records", report["checked"])
        self.assertGreater(report["checked"]["records"], before)

    def test_d9_a_new_key_accepts_lines_that_were_written_without_one(self):
        """In the open: they count as from before it."""
        self.logged()
        self.server.stop()
        old = self.verify(0)["public_key"]
        key = pathlib.Path(self.server.store + ".log-key")
        key.write_text("spoilt\n")
        self.again()
        self.assertIn("log.unsigned", self.server.log())
        key.unlink()
        self.again()
        self.assertIn("log.key_replaced", self.server.log())
        new = self.verify(1)["public_key"]
        report = self.verify(0, "--public-key", f"{old},{new}")
        self.assertGreaterEqual(report["checked"]["log lines from before the key"], 10)

    def test_d9_where_a_key_was_replaced_both_have_to_be_named(self):
        self.logged()
        self.server.stop()
        old = self.verify(0)["public_key"]
        os.unlink(self.server.store + ".log-key")
        self.again()
        report = self.verify(1)
        self.assertNotEqual(report["public_key"], old)
        both = f"{old},{report['public_key']}"
        details = [finding["detail"] for finding in report["findings"]]
        self.assertIn("signed by another key", details[0])
        self.assertIn(f"--public-key {both}", details[0])
        self.assertEqual([text for text in details if "missing" in text], [])
        self.verify(0, "--public-key", both)
        self.assertIn(f"--public-key {both}", self.server.log())
        check = next(check for check in json.loads(self.perdura(
            "doctor", "--json", "--store", self.server.store, "--server",
            "http://127.0.0.1:1").stdout)["checks"] if check["name"] == "logs")
        self.assertEqual(check["verdict"], "warning")
        self.assertIn(old, check["detail"])

    def test_d9_verify_says_that_it_had_no_key(self):
        self.logged()
        self.server.stop()
        store = ("--store", self.server.store)
        self.assertIsNone(self.verify(0)["log_key_missing"])
        self.assertNotIn("without the log key", self.perdura("verify", "--logs", *store).stdout)
        os.rename(self.server.store + ".log-key", self.server.store + ".elsewhere")
        said = self.perdura("verify", "--logs", *store).stdout
        self.assertIn(f"checked without the log key ({self.server.store}.log-key is not there)",
                      said)
        self.assertIn("is not there", self.verify(0)["log_key_missing"])

    def test_d9_records_that_are_gone_are_missed_also_where_a_key_was_replaced(self):
        self.logged()
        self.server.stop()
        os.unlink(self.server.store + ".log-key")
        self.again()
        self.server.stop()
        db = sqlite3.connect(self.server.store)
        db.execute("DELETE FROM log_anchors WHERE serial = 1")
        db.commit()
        db.close()
        self.assertIn("missing", " ".join(finding["detail"]
                                          for finding in self.verify(1)["findings"]))


class SecondStore(TrustTest):
    """What is in the main store takes the place of the same id behind it."""

    def write_configuration(self):
        pathlib.Path(self.folder, "perdura.yaml").write_text(
            "store: perdura.db\nqueues:\n  - {name: far, store: far.db}\n")
        self.server.arguments = ("--config", os.path.join(self.folder, "perdura.yaml"))

    def given(self):
        """A run with a line in the store behind, and one that said nothing in the main one. Its id."""
        self.register("worker-2", queues=("far", "default"))
        for queue in ("default", "far"):
            self.enqueue("a", queue=queue)
            task = self.claim("worker-2")[0]
            if queue == "far":
                self.report_ok("worker-2", task, "log", level="ERROR", message="the proof")
            self.complete("worker-2", task)
        execution = self.execution_of(task)
        self.paths = [f"/v1/tasks/{task['id']}/logs", f"/v1/executions/{execution}/logs"]
        self.assertEqual(self.seen(), [1, 1])
        self.server.stop()
        self.verify(0, "--config", os.path.join(self.folder, "perdura.yaml"))
        return execution

    def seen(self):
        """How many lines readers of the task and of the run see."""
        return [len(self.expect(200, "GET", path)["items"]) for path in self.paths]

    def attack(self, *statements):
        with contextlib.closing(sqlite3.connect(self.server.store)) as db:
            db.execute(f"ATTACH '{self.folder}/far.db' AS far")
            for statement in statements:
                db.execute(statement)
            db.commit()

    def assert_hidden(self, execution, seen, what):
        self.server.start()
        self.local.connection = None
        self.assertEqual(self.seen(), seen)
        self.server.stop()
        finding, = self.verify(1, "--config", os.path.join(self.folder, "perdura.yaml"))["findings"]
        self.assertEqual(finding["execution_id"], execution)
        self.assertIn(f"readers do not find its lines: there is {what} of the same id", finding["detail"])

    def test_f_j5_lines_behind_a_task_of_the_same_id_in_another_store_are_named(self):
        execution = self.given()
        self.attack("DELETE FROM task_states", "DELETE FROM task_specs",
                    *(f"INSERT OR IGNORE INTO {table} SELECT * FROM far.{table}"
                      for table in ("lanes", "task_specs", "task_states")))
        self.assert_hidden(execution, [0, 1], "a task")

    def test_f_j5_lines_behind_an_execution_of_the_same_id_in_another_store_are_named(self):
        """Of a task of the main store, whose readers see no line."""
        execution = self.given()
        self.attack("UPDATE execution_rows SET (execution, id) = (SELECT execution, id FROM far.execution_rows)")
        self.assert_hidden(execution, [1, 0], "an execution")


if __name__ == "__main__":
    unittest.main()
