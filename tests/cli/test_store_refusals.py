"""Stores, copies and servers where something is in the way (F-D6, F-D14): each command says what,
leaves nothing half done, and tells damage by its name."""
import fcntl
import json
import os
import signal
import sqlite3
import subprocess
import threading
import unittest

import cli_harness
from cli_harness import FolderTest, ServerTest, binary, wait_until


class Backups(ServerTest):
    def path(self, name):
        return os.path.join(self.folder, name)

    def test_a_copy_never_replaces_what_is_there(self):
        self.enqueue("a")
        self.perdura("backup", self.path("copy.db"))
        before = os.stat(self.path("copy.db")).st_ino
        self.assertIn("copy.db", self.refused(1, "backup", self.path("copy.db")))
        self.assertEqual(os.stat(self.path("copy.db")).st_ino, before)

    def test_what_is_in_the_way_of_a_copy_is_named(self):
        open(self.path("left.db.tmp"), "w", encoding="ascii").close()
        os.mkdir(self.path("folder"))
        for target, word in (("left.db", "left.db.tmp"), ("missing/copy.db", "missing"),
                             ("folder", "folder"), ("x" * 300, "x")):
            with self.subTest(target[:20]):
                self.assertIn(word, self.refused(1, "backup", self.path(target)))
        self.assertIn("perdura.db", self.refused(1, "backup", self.server.store))
        self.assertEqual(sorted(os.listdir(self.path("folder"))), [])

    def test_a_copy_without_a_server_has_the_same_refusals(self):
        self.server.stop()
        store = ("--store", self.server.store)
        self.perdura("backup", self.path("one.db"), *store)
        self.assertIn("one.db", self.refused(1, "backup", self.path("one.db"), *store))
        self.refused(3, "backup", self.path("two.db"), "--store", self.path("none.db"))
        self.refused(1, "backup", self.path("missing/three.db"), *store)


class Damage(ServerTest):
    def damaged(self, *statements):
        self.server.stop()
        db = sqlite3.connect(self.server.store)
        db.execute("PRAGMA foreign_keys = OFF")
        for statement in statements:
            db.execute(statement)
        db.commit()
        db.close()
        done = self.perdura("verify", "--store", self.server.store, "--json", code=1)
        return json.loads(done.stdout)["findings"]

    def test_a_row_whose_owner_is_gone_is_told(self):
        self.enqueue("a")
        self.register()
        task = self.claim()[0]
        self.report_ok("worker-1", task, "start")
        self.report_ok("worker-1", task, "checkpoint", name="one", progress=1, data=1)
        findings = self.damaged("DELETE FROM task_states")
        self.assertTrue(findings)
        self.assertTrue(all(finding["detail"] for finding in findings))

    def test_a_value_of_another_class_is_an_error_and_no_number(self):
        """F-J5: SQLite keeps a text or a blob in a column of numbers; read as a number it is 0."""
        task = self.enqueue("a", timeout_ms=4000)["id"]
        other = self.enqueue("b")["id"]
        findings = self.damaged("UPDATE task_specs SET timeout_ms = 'soon' WHERE timeout_ms = 4000")
        self.assertIn("1 values of timeout_ms are of another class than their column",
                      [finding["detail"] for finding in findings])
        self.server.start()
        answer = self.request("GET", f"/v1/tasks/{task}")
        self.assertEqual((answer.status, answer.json["error"]["code"]), (500, "storage_error"))
        self.assertIn("timeout_ms", answer.json["error"]["message"])
        self.expect(200, "GET", f"/v1/tasks/{other}")
        self.assertEqual(self.request("GET", "/v1/tasks").status, 500)  # lists read it, too

    def test_a_value_of_another_class_is_an_error_in_rows_that_few_tasks_have_too(self):
        """F-J5: what most tasks do not have is in rows of its own."""
        asked = self.enqueue("a", stall_after_ms=4000)["id"]
        noted = self.enqueue("b", note="seen")["id"]
        other = self.enqueue("c")["id"]
        self.damaged("UPDATE task_options SET stall_after_ms = 'soon'",
                     "UPDATE task_details SET note = x'73'")
        self.server.start()
        for task, column in (asked, "stall_after_ms"), (noted, "note"):
            answer = self.request("GET", f"/v1/tasks/{task}")
            self.assertEqual((answer.status, answer.json["error"]["code"]), (500, "storage_error"))
            self.assertIn(column, answer.json["error"]["message"])
        self.expect(200, "GET", f"/v1/tasks/{other}")

    def test_very_much_damage_is_told_in_few_lines(self):
        self.expect(201, "POST", "/v1/tasks", [{"type": "a"} for _ in range(500)])
        findings = self.damaged("DELETE FROM task_states")
        self.assertLess(len(findings), 500)

    def test_a_page_that_was_overwritten_is_told(self):
        self.expect(201, "POST", "/v1/tasks", [{"type": "a", "payload": "x" * 200}] * 200)
        self.server.stop()
        size = os.path.getsize(self.server.store)
        with open(self.server.store, "r+b") as file:
            file.seek(size // 2 // 4096 * 4096)
            file.write(b"\xa5" * 4096)
        done = subprocess.run([binary(), "verify", "--store", self.server.store, "--json"],
                              capture_output=True, text=True, env=cli_harness.environment())
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)

    def test_a_database_without_our_tables_is_not_called_fine(self):
        db = sqlite3.connect(os.path.join(self.folder, "other.db"))
        db.execute("CREATE TABLE mine (a)")
        db.commit()
        db.close()
        self.refused(1, "verify", "--store", os.path.join(self.folder, "other.db"))


class ChangedSchema(ServerTest):
    arguments = ("--lease", "3s")  # it looks every sixth of it

    def test_a_server_that_stops_says_that_a_repair_comes_before_the_next_start(self):
        """F-J5: the last line of a server names what the next start needs."""
        db = sqlite3.connect(self.server.store, timeout=30)
        db.execute("CREATE TRIGGER foreign_one AFTER INSERT ON task_specs BEGIN SELECT 1; END")
        db.commit()
        self.server.process.wait(cli_harness.DEADLINE_S)
        last = self.server.log().splitlines()[-1]
        self.assertRegex(last, "trigger foreign_one .*drop it.*; stopped to keep .*; repair the "
                         "schema first, then start it again: until then a start is refused$")
        self.refused(1, "serve", "--store", self.server.store, "--listen", "127.0.0.1:0")
        db.execute("DROP TRIGGER foreign_one")
        db.commit()
        db.close()
        self.restart()
        self.expect(200, "GET", "/healthz")


class Serving(FolderTest):
    def test_the_pool_serves_the_queues_that_the_configuration_says_so_of(self):
        """C8: a limit alone does not make the pool take a queue's tasks."""
        self.write("perdura.yaml", "workers: 1\nhandlers:\n"
                                   "  - {type: a, command: ['true'], queues: [bulk]}\n"
                                   "queues:\n  - {name: default}\n  - {name: mail, serve: true}\n"
                                   "  - {name: elsewhere, concurrency: 2}\n")
        server = self.serve("--config", "perdura.yaml")
        self.url = "http://%s:%d" % server.address
        for queue in ("default", "mail", "bulk"):
            self.perdura("enqueue", "a", "--queue", queue, "--wait")
        task = self.perdura("enqueue", "a", "--queue", "elsewhere").stdout.strip()
        self.assertIn("No worker serves the queue 'elsewhere'",
                      self.perdura("task", "why", task).stdout)
        [worker] = json.loads(self.perdura("workers", "--json").stdout)["items"]
        self.assertEqual((sorted(worker["queues"]), worker["types"]),
                         (["bulk", "default", "mail"], ["a"]))

    def test_a_second_signal_ends_it_at_once_and_loses_nothing(self):
        self.write("perdura.yaml", "grace: 60s\nhandlers:\n  - type: a\n    command: [sh, -c, "
                                   "\"trap '' TERM; touch runs; while :; do sleep 0.05; done\"]\n")
        server = self.serve("--config", "perdura.yaml")
        self.url = "http://%s:%d" % server.address
        task_id = self.perdura("enqueue", "a").stdout.strip()
        wait_until(lambda: os.path.exists(os.path.join(self.folder, "runs")))
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: "node.stopping" in server.log())
        self.assertIsNone(server.process.poll())
        self.assertEqual(server.stop(), 0)
        os.unlink(os.path.join(self.folder, "perdura.yaml"))
        server = self.serve()
        self.url = "http://%s:%d" % server.address
        task = json.loads(self.perdura("task", "show", task_id, "--json").stdout)
        self.assertEqual((task["status"], task["crash_count"]), ("pending", 0))

    def hold(self, pid):
        """The lock of a store, said to be held by a process."""
        file = open(os.path.join(self.folder, "perdura.db-lock"), "w", encoding="utf-8")
        self.addCleanup(file.close)
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(f"{pid}\n")
        file.flush()
        return file

    def test_what_a_killed_server_leaves_in_the_lock_for_a_moment_is_waited_for(self):
        with subprocess.Popen(["true"]) as dead:
            dead.wait()
        file = self.hold(dead.pid)
        timer = threading.Timer(0.3, file.close)
        timer.start()
        self.addCleanup(timer.join)
        self.serve()

    def test_a_server_that_lives_is_named_at_once(self):
        self.hold(os.getpid())
        self.assertIn(f"in use by process {os.getpid()}",
                      self.refused(1, "migrate", "up", "--store", "perdura.db"))


if __name__ == "__main__":
    unittest.main()
