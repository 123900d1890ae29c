"""Tamper-evident logs, as users meet them: verify with every kind of change (F-J5), cut
ends and a store that was set back (F-J6, F-J7), retention (F-J8), redaction before anything is stored
(D9), doctor."""
import contextlib
import json
import os
import pathlib
import shutil
import sqlite3
import unittest

import cli_harness
from cli_harness import wait_until

CONFIG = """log_anchor: perdura.anchor
log_anchor_every: 100ms
redact:
  - pattern: '[a-z]+@[a-z]+\\.example'
  - {pattern: 'sk_[A-Za-z0-9]{8,}', replace: '(key)', fields: [message, context]}
  - pointer: /user/phone
"""


class LogTest(cli_harness.ServerTest):
    config = CONFIG

    def setUp(self):
        super().setUp()
        self.anchor = os.path.join(self.folder, "perdura.anchor")
        self.tasks = {}  # by execution
        self.register("worker-1")

    def logged(self, lines=5, **fields):
        """A task that has ended, with so many lines."""
        self.enqueue("a")
        task = self.claim()[0]
        for number in range(lines):
            self.report_ok("worker-1", task, "log", level="INFO", message=f"line {number}", **fields)
        self.complete("worker-1", task)
        return task

    def change(self, *statements):
        """By SQL, as an administrator could."""
        with contextlib.closing(sqlite3.connect(self.server.store)) as db:
            for statement in statements:
                self.assertGreater(db.execute(statement).rowcount, 0, statement)
            db.commit()

    def execution_of(self, task):
        reply = self.expect(200, "GET", f"/v1/tasks/{task['id']}/executions")
        self.tasks[reply["items"][0]["id"]] = task["id"]
        return reply["items"][0]["id"]

    def verify(self, code, *more):
        done = self.perdura("verify", "--store", self.server.store, "--logs", "--json", *more,
                            code=code)
        report = json.loads(done.stdout)
        self.assertEqual(report["ok"], code == 0)
        self.assertNotIn("tasks", report["checked"])  # they were not looked at
        return report

    def found(self, execution, seq, *more):
        finding, *_ = self.verify(1, *more)["findings"]
        self.assertEqual(finding["kind"], "log")
        self.assertEqual(finding["subject"], f"execution {execution} line {seq}")
        self.assertEqual(finding["execution_id"], execution)
        self.assertEqual(finding["task_id"], self.tasks[execution])
        return finding


class Verify(LogTest):
    def given(self):
        """Two executions with five lines; the server has stopped. Their ids, oldest first."""
        ids = [self.execution_of(self.logged()) for _ in range(2)]
        self.server.stop()
        self.verify(0)
        self.verify(0, "--anchor", self.anchor)
        self.where = "execution_id = (SELECT min(execution_id) FROM execution_logs)"
        return ids

    def test_f_j5_a_changed_line_is_named(self):
        first, _ = self.given()
        for column, value in (("message", "'x'"), ("context", "'{}'"), ("log_level", "'DEBUG'"),
                              ("logged_at", "logged_at + 1"), ("chain_hash", "NULL")):
            shutil.copy(self.server.store, self.folder + "/kept.db")
            self.change(f"UPDATE execution_logs SET {column} = {value} WHERE {self.where} AND seq = 3")
            self.found(first, 3)
            shutil.copy(self.folder + "/kept.db", self.server.store)

    def test_f_j5_a_deleted_line_is_named(self):
        first, _ = self.given()
        self.change(f"DELETE FROM execution_logs WHERE {self.where} AND seq = 2")
        self.assertIn("missing", self.found(first, 2)["detail"])
        shown = self.perdura("verify", "--store", self.server.store, "--logs", code=1).stdout
        self.assertRegex(shown, f"execution {first} line 2 +{self.tasks[first]} ")

    def test_f_j5_an_inserted_line_is_named(self):
        first, _ = self.given()
        self.change(f"INSERT INTO execution_logs SELECT id, namespace, execution_id, 6, log_level, "
                    f"'one more', context, logged_at, chain_hash, NULL FROM execution_logs "
                    f"WHERE {self.where} AND seq = 5")
        self.found(first, 6)

    def test_f_j5_reordered_lines_are_named(self):
        first, _ = self.given()
        self.change(*(f"UPDATE execution_logs SET seq = {to} WHERE {self.where} AND seq = {seq}"
                      for seq, to in ((2, 90), (3, 2), (90, 3))))
        self.found(first, 2)

    def test_f_j5_lines_swapped_between_executions_are_named(self):
        first, second = self.given()
        swap = bytes(16).hex()
        one, other = (value.replace("-", "") for value in (first, second))
        self.change(*(f"UPDATE execution_logs SET execution_id = x'{to}' WHERE execution_id = x'{at}' "
                      "AND seq = 4" for at, to in ((one, swap), (other, one), (swap, other))))
        subjects = [finding["subject"] for finding in self.verify(1)["findings"]]
        self.assertEqual(subjects, [f"execution {first} line 4", f"execution {second} line 4"])

    def test_f_j5_findings_beyond_those_that_are_shown_are_told(self):
        """Who floods the store with findings hides none of his own without a word."""
        ids = self.given()
        self.change("INSERT INTO log_heads (execution_id, seq, chain_hash, lines) WITH RECURSIVE n (i) AS "
                    "(SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10001) SELECT randomblob(16), 1, '', 0 FROM n",
                    f"UPDATE execution_logs SET message = 'x' WHERE {self.where}")
        findings = self.verify(1)["findings"]
        self.assertNotIn(ids[0], [finding.get("execution_id") for finding in findings])
        self.assertIn("there are more findings", findings[-1]["detail"])
        self.change("DELETE FROM log_heads WHERE chain_hash = ''")
        self.assertIn(ids[0], [finding.get("execution_id") for finding in self.verify(1)["findings"]])

    def test_f_j5_logs_swapped_between_tasks_are_named(self):
        first, second = self.given()
        self.change("UPDATE execution_rows SET task = (SELECT sum(task) FROM execution_rows) - task")
        subjects = [finding["subject"] for finding in self.verify(1)["findings"]]
        self.assertEqual(subjects, [f"execution {first} line 1", f"execution {second} line 1"])

    def test_f_j6_a_cut_end_is_named(self):
        first, second = self.given()
        self.change(f"DELETE FROM execution_logs WHERE {self.where} AND seq > 3")
        self.assertIn("up to 5", self.found(first, 4)["detail"])

    def test_f_j6_with_the_anchor_also_what_the_store_forgot_is_found(self):
        first, _ = self.given()
        self.change(f"DELETE FROM execution_logs WHERE {self.where}")
        self.found(first, 1)
        self.change("DELETE FROM log_anchors", "DELETE FROM execution_logs",
                    "DELETE FROM log_heads")
        self.verify(1)  # it has a key, and no record
        self.change("DELETE FROM store_info WHERE name = 'log_public_key'")
        self.verify(0)  # nothing is left that could know
        kinds = {finding["kind"] for finding in self.verify(1, "--anchor", self.anchor)["findings"]}
        self.assertEqual(kinds, {"regression", "log"})

    def test_only_the_right_key_counts_where_one_is_given(self):
        self.given()
        key = self.verify(0)["public_key"]
        self.assertEqual(len(key), 64)
        self.verify(0, "--public-key", key)
        self.verify(0, "--public-key", "00" * 32 + "," + key)
        finding = self.verify(1, "--public-key", "00" * 32)["findings"][0]
        self.assertEqual(finding["kind"], "anchor")
        text = self.perdura("verify", "--store", self.server.store).stdout
        self.assertIn(f"public key {key}", text)

    def test_the_key_is_for_its_owner_only(self):
        self.given()
        mode = os.stat(self.server.store + ".log-key").st_mode
        self.assertEqual(mode & 0o777, 0o600)


class Life(LogTest):
    def test_f_j7_a_store_that_was_set_back_is_told_of_and_served(self):
        self.logged()
        self.server.stop()
        shutil.copy(self.server.store, self.folder + "/older.db")
        self.server.start()
        self.local.connection = None
        self.register("worker-1")
        self.assertFalse(self.expect(200, "GET", "/v1/stats")["log_regression"])
        self.logged()
        self.server.stop()
        shutil.copy(self.folder + "/older.db", self.server.store)
        doctor = json.loads(self.perdura("doctor", "--store", self.server.store, "--config",
                                         self.gates + "/server.yaml", "--json").stdout)
        anchor, = (check for check in doctor["checks"] if check["name"] == "anchor")
        self.assertEqual(anchor["verdict"], "warning")
        self.server.start()
        self.local.connection = None
        self.assertTrue(self.expect(200, "GET", "/v1/stats")["log_regression"])
        self.assertIn("log.regression", self.server.log())
        self.register("worker-1")
        self.logged()
        self.server.stop()
        kinds = {finding["kind"] for finding in self.verify(1, "--anchor", self.anchor)["findings"]}
        self.assertIn("regression", kinds)

    def test_f_j8_a_deleted_task_leaves_a_record_and_no_finding(self):
        task, kept = self.logged(), self.logged()
        self.expect(204, "DELETE", f"/v1/tasks/{task['id']}")
        self.verify(0)  # in service
        self.server.stop()
        report = self.verify(0, "--anchor", self.anchor)
        self.assertEqual(report["checked"]["log lines"], 5)
        records = [json.loads(line)["record"]
                   for line in pathlib.Path(self.anchor).read_text().splitlines()]
        cut, = (record for record in records if record["kind"] == "cuts")
        self.assertEqual((cut["reason"], cut["items"][0][1], cut["items"][0][3]), ("delete", 5, 5))
        self.assertIsNotNone(kept)

    def test_v7_a_killed_server_leaves_whole_chains(self):
        for _ in range(3):
            self.logged(20)
            self.server.stop(9)
            self.verify(0, *(("--anchor", self.anchor) if os.path.exists(self.anchor) else ()))
            self.server.start()
            self.local.connection = None
            self.register("worker-1")


class Search(LogTest):
    def test_d9_lines_are_found_by_their_context(self):
        self.enqueue("a")
        task = self.claim()[0]
        self.report("worker-1", *({"task_id": task["id"], "lease_token": task["lease_token"],
                                   "op": "log", "level": "WARN" if i % 2 else "INFO",
                                   "message": f"line {i}", "context": {"user": {"id": i % 7}}}
                                  for i in range(2500)))
        path = f"/v1/tasks/{task['id']}/logs?context=/user/id:3&limit=1000"
        page = self.expect(200, "GET", path)
        self.assertEqual([line["message"] for line in page["items"]],
                         [f"line {i}" for i in range(2500) if i % 7 == 3])
        self.assertIsNone(page["next_cursor"])
        seen, cursor = [], ""
        while cursor is not None:  # page by page
            page = self.expect(200, "GET", path.replace("1000", "100") + cursor)
            seen += [line["seq"] for line in page["items"]]
            cursor = page["next_cursor"] and "&cursor=" + page["next_cursor"]
        self.assertEqual(seen, [i + 1 for i in range(2500) if i % 7 == 3])
        both = self.expect(200, "GET", path + "&level=WARN&q=line%201")["items"]
        self.assertEqual([line["seq"] for line in both],
                         [i + 1 for i in range(2500) if i % 7 == 3 and i % 2 and str(i)[0] == "1"])
        text = self.perdura("task", "logs", task["id"], "--context", "/user/id:6", "--q", "line 6")
        self.assertIn("line 6 ", text.stdout)
        refused = self.request("GET", f"/v1/tasks/{task['id']}/logs?context=user")
        self.assertEqual((refused.status, refused.json["error"]["field"]), (422, "context"))


class Redaction(LogTest):
    SECRETS = ("ann@mail.example", "sk_live4eC39HqLyjWD", "555-0199-canary")

    def test_d9_secrets_never_reach_the_disk(self):
        mail, key, phone = self.SECRETS
        self.enqueue("a")
        task = self.claim()[0]
        self.report_ok("worker-1", task, "log", level="INFO", message=f"mail to {mail}, {key}!",
                       context={"user": {"phone": phone, "id": 7}, "to": [mail], key: 1})
        wait_until(lambda: os.path.exists(self.anchor), what="a record")
        shown, = self.expect(200, "GET", f"/v1/tasks/{task['id']}/logs")["items"]
        self.assertEqual(shown["message"], "mail to ***, (key)!")
        self.assertEqual(shown["context"], {"user": {"phone": "***", "id": 7}, "to": ["***"],
                                            "(key)": 1})
        self.complete("worker-1", task)
        for stopped in (False, True):
            if stopped:
                self.server.stop()
            for path in pathlib.Path(self.folder).iterdir():
                content = path.read_bytes()
                for secret in self.SECRETS:
                    self.assertNotIn(secret.encode(), content, path)
        self.verify(0, "--anchor", self.anchor)

    def test_d9_the_cut_of_a_line_leaves_no_half_of_a_secret(self):
        self.enqueue("a")
        task = self.claim()[0]
        text = ("x" * 80 + "@mail.example ") * 300
        text += ("-. " * 30000)[:65536 + 4096 - len(text) - 12] + " annsmithsecret@mail.example"
        self.report_ok("worker-1", task, "log", level="INFO", message=text)
        shown, = self.expect(200, "GET", f"/v1/tasks/{task['id']}/logs")["items"]
        self.assertNotIn("annsmith", shown["message"])

    def test_d9_a_rule_that_cannot_be_is_refused_with_its_line(self):
        for rule, words in (("pattern: '(a'", "missing closing parenthesis"),
                            ("pattern: '(a)\\1'", "non-existent"), ("pointer: user", "JSON pointer"),
                            ("replace: x", "one of them"),
                            ("{pattern: a, fields: [result]}", "not 'result'")):
            path = self.write("bad.yaml", f"lease: 30s\nredact:\n  - {rule}\n")
            line = self.refused(1, "serve", "--listen", "127.0.0.1:0", "--config", path)
            self.assertIn("bad.yaml:3: ", line)
            self.assertIn(words, line)


class ServerLogTest(cli_harness.ServerTest):
    """The log of the server itself: what is about a task names it and its correlation id (D10)."""
    config = "queues:\n  - {name: default, dead_letter_queue: dead}\n"

    def test_what_the_end_of_a_task_cannot_make_is_logged_with_its_id_and_correlation_id(self):
        first, second = (self.expect(201, "POST", "/v1/jobs", body)["id"] for body in
                         ({"name": "first", "max_retries": 0}, {"name": "second", "queue": "other"}))
        self.expect(201, "POST", f"/v1/jobs/{second}/dependencies",
                    {"depends_on_job_id": first, "dependency_type": "completion",
                     "dependency_config": {"mode": "trigger"}})
        self.expect(201, "POST", f"/v1/jobs/{first}:run", headers={"X-Request-Id": "order-7"})
        self.register("worker-1", queues=["default"])
        [held] = self.claim("worker-1")
        for begin in range(0, 10000, 5000):  # as many queues as there may be
            self.request("POST", "/v1/tasks", [{"type": "t", "queue": f"q{begin + i}"}
                                               for i in range(4995)])
        while self.request("POST", "/v1/tasks", {"type": "t", "queue": "x" + os.urandom(8).hex()}
                           ).status == 201:
            pass
        self.report_ok("worker-1", held, "fail", error="no")
        self.assertEqual(self.task(held["id"])["status"], "dead_letter")
        lines = [json.loads(line) for line in self.server.log().splitlines()]
        for event in ("dead_letter.not_escalated", "job.not_triggered"):
            [line] = [line for line in lines if line["event"] == event]
            self.assertEqual((line["task"], line["correlation_id"]), (held["id"], "order-7"))

    def test_a_damaged_checkpoint_is_logged_with_its_task(self):
        """B3: a reader of the log knows whose it was."""
        self.enqueue("t", correlation_id="order-8")
        self.register("worker-1")
        [held] = self.claim("worker-1")
        self.report_ok("worker-1", held, "checkpoint", name="half", data={"page": 1})
        self.report_ok("worker-1", held, "release")
        self.server.stop()
        with contextlib.closing(sqlite3.connect(self.server.store)) as db, db:
            db.execute("UPDATE task_checkpoints SET recoverable_data = '{\"page\":2}'")
        self.server.start()
        self.register("worker-1")
        [again] = self.claim("worker-1", wait_ms=30000)
        self.assertIsNone(again["checkpoint"])
        lines = [json.loads(line) for line in self.server.log().splitlines()]
        [line] = [line for line in lines if line["event"] == "checkpoint.damaged"]
        self.assertEqual((line["task"], line["correlation_id"]), (held["id"], "order-8"))


if __name__ == "__main__":
    unittest.main()
