"""The commands that look at a store or at the program itself: migrate, verify, backup, doctor,
bench, completion, man."""
import json
import os
import shutil
import sqlite3
import subprocess
import threading
import unittest

from cli_harness import FolderTest, ServerTest, binary, wait_until


def lines(done):
    return done.stdout.splitlines()


class Migrate(FolderTest):
    def status(self, *more):
        return json.loads(self.perdura("migrate", "status", "--json", *more).stdout)["items"]

    def test_up_and_down_and_status(self):
        """A11"""
        self.assertFalse(any(item["applied"] for item in self.status()))
        self.assertIn("applied", self.perdura("migrate", "up").stdout)
        self.assertTrue(all(item["applied"] for item in self.status()))
        again = json.loads(self.perdura("migrate", "up", "--json").stdout)["items"]
        self.assertFalse(any(item["changed"] for item in again), "a second run changes nothing")
        self.assertIn("nothing to do", self.on_terminal("migrate", "up"))
        down = json.loads(self.perdura("migrate", "down", "--to", "0", "--lose-data", "--json").stdout)["items"]
        self.assertTrue(all(item["changed"] and not item["applied"] for item in down))
        with sqlite3.connect(os.path.join(self.folder, "perdura.db")) as db:
            tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master")]
        db.close()
        self.assertEqual([name for name in tables if name.startswith("task")], [])
        self.perdura("migrate", "up")
        self.assertIn("no problems found", self.perdura("verify").stdout)

    def number_of(self, name):
        return next(item["number"] for item in self.status() if item["name"] == name)

    def test_the_way_down_says_what_it_gives_up(self):
        """A11, C4: data goes only where that is said."""
        self.perdura("migrate", "up")
        newest = self.number_of("task notes")
        self.assertIn("callback events (which moments", self.refused(1, "migrate", "down", "--to", str(newest)))
        self.perdura("migrate", "down", "--to", str(newest), "--lose-data")
        self.assertIn("(the notes on tasks)", self.refused(1, "migrate", "down"))
        self.assertIn("task notes gave up the notes on tasks", self.perdura("migrate", "down", "--lose-data").stderr)
        self.assertEqual(max(item["number"] for item in self.status() if item["applied"]), newest - 1)
        told = self.refused(1, "migrate", "down", "--to", "4")
        for words in ("0009 log trust (the notes of ended runs", "0006 tracing (the trace contexts",
                      "make a backup first, then add --lose-data"):
            self.assertIn(words, told)
        self.assertEqual(max(item["number"] for item in self.status() if item["applied"]), newest - 1)
        done = self.perdura("migrate", "down", "--to", "4", "--lose-data")
        self.assertIn("0005 measures gave up executions per hour", done.stderr)
        self.assertNotIn("0002 jobs gave up", done.stderr)
        self.perdura("migrate", "up")
        self.assertIn("no problems found", self.perdura("verify").stdout)

    def test_the_printed_sql_applied_by_hand_is_accepted(self):
        """A11: the migrations can also be applied as plain SQL."""
        sql = self.perdura("migrate", "sql").stdout
        store = os.path.join(self.folder, "perdura.db")
        subprocess.run(["sqlite3", "-bail", store], input=sql, text=True, check=True,
                       stdout=subprocess.DEVNULL)
        self.assertTrue(all(item["applied"] and not item["checksum_differs"]
                            for item in self.status()))
        server = self.serve()
        self.url = "http://%s:%d" % server.address
        self.perdura("enqueue", "a")
        self.assertNotIn("store.migrated", server.log())
        self.assertEqual(server.stop(), 0)
        self.perdura("verify")

    def test_d15_a_store_from_before_notes_is_migrated_with_its_tasks(self):
        server = self.serve()
        self.url = "http://%s:%d" % server.address
        made = self.perdura("enqueue", "a", "--metadata", '{"m":1}', "--note", "goes").stdout.strip()
        self.assertEqual(server.stop(), 0)
        self.perdura("migrate", "down", "--to", str(self.number_of("task notes") - 1), "--lose-data")
        server = self.serve()
        self.url = "http://%s:%d" % server.address
        self.assertIn("store.migrated", server.log())
        task = json.loads(self.perdura("task", "show", made, "--json").stdout)
        self.assertEqual((task["metadata"], task["note"]), ({"m": 1}, None))
        self.perdura("task", "update", made, "--note", "new")
        with sqlite3.connect(os.path.join(self.folder, "perdura.db")) as db:
            self.assertEqual(db.execute("SELECT note FROM tasks").fetchall(), [("new",)])
            with self.assertRaisesRegex(sqlite3.IntegrityError, "can be set with SQL"):
                db.execute("UPDATE tasks SET note = 'by hand'")
        db.close()
        self.assertEqual(server.stop(), 0)
        self.perdura("verify")

    def test_a_store_in_service_is_not_migrated(self):
        self.serve()
        self.assertRegex(self.refused(1, "migrate", "down", "--lose-data"), "in use by process")
        self.assertTrue(all(item["applied"] for item in self.status()))

    def test_a_store_of_a_newer_program_is_refused(self):
        """F-A15"""
        self.perdura("migrate", "up")
        store = os.path.join(self.folder, "perdura.db")
        with sqlite3.connect(store) as db:
            db.execute("INSERT INTO schema_migrations VALUES ('9999', 'future', 1, 'x')")
        db.close()
        for words in (["serve", "--listen", "127.0.0.1:0"], ["verify"]):
            self.assertIn("9999", self.refused(1, *words))


class Verify(ServerTest):
    def damage(self, *statements):
        with sqlite3.connect(self.server.store) as db:
            for statement in statements:
                db.execute(statement)
        db.close()

    def ended_tasks(self):
        self.register()
        for i in range(3):
            self.enqueue("a", payload={"i": i})
            task = self.claim()[0]
            self.report_ok("worker-1", task, "start")
            self.report_ok("worker-1", task, "checkpoint", name="one", progress=10, data={"i": i})
            self.complete("worker-1", task, i)
        self.server.stop()
        return task["id"]

    def verify(self, code, *more):
        done = self.perdura("verify", "--store", self.server.store, "--json", *more, code=code)
        report = json.loads(done.stdout)
        self.assertEqual(report["ok"], code == 0)
        return report

    def test_an_untouched_store_is_fine(self):
        self.ended_tasks()
        self.assertEqual(self.verify(0)["checked"]["tasks"], 3)
        self.verify(0, "--checkpoints")

    def test_a_store_in_service_can_be_verified(self):
        self.enqueue("a")
        self.assertEqual(self.verify(0)["checked"]["tasks"], 1)

    def test_a_changed_checkpoint_is_named(self):
        task_id = self.ended_tasks()
        self.damage("""UPDATE task_checkpoints SET recoverable_data = '{"i":99}' WHERE rowid =
                       (SELECT max(rowid) FROM task_checkpoints)""")
        for more in ([], ["--checkpoints"]):
            finding, = self.verify(1, *more)["findings"]
            self.assertIn(f"of task {finding['task_id']} ", finding["detail"])
            self.assertEqual((finding["kind"], finding["subject"]),
                             ("checkpoint", "task_checkpoints"))
            self.assertIn(task_id, finding["detail"])
        text = self.perdura("verify", "--store", self.server.store, code=1).stdout
        self.assertIn(task_id, text)

    def test_removed_rows_are_named(self):
        self.ended_tasks()
        self.damage("DELETE FROM task_specs WHERE task = (SELECT min(task) FROM task_specs)",
                    "UPDATE lane_counts SET tasks = tasks + 5 WHERE status = 'completed'")
        subjects = {finding["subject"] for finding in self.verify(1)["findings"]}
        self.assertLessEqual({"lane_counts", "task_states"}, subjects)
        doctor = json.loads(self.perdura("doctor", "--store", self.server.store, "--json",
                                         code=1).stdout)
        self.assertIn("failure", [check["verdict"] for check in doctor["checks"]
                                  if check["name"] == "integrity"])

    def test_what_cannot_be_checked_is_not_called_fine(self):
        self.server.stop()
        self.refused(3, "verify", "--store", self.server.store, "--anchor", "heads.txt")
        self.refused(2, "verify", "--store", self.server.store, "--logs", "--public-key", "12")

    def test_something_else_than_a_store_is_refused(self):
        path = self.write("other.db", "this is no database at all" * 100)
        self.refused(1, "verify", "--store", path)
        missing = os.path.join(self.folder, "missing.db")
        self.assertIn("there is no store", self.refused(3, "verify", "--store", missing))
        self.assertFalse(os.path.exists(missing))


class Backup(ServerTest):
    def test_a_backup_under_load_is_whole_and_its_leases_are_stale(self):
        """F-D14"""
        self.register()
        held = self.enqueue("held")
        task = self.claim()[0]
        self.report_ok("worker-1", task, "start")
        acknowledged, over = [], threading.Event()

        def load():
            while not over.is_set():
                acknowledged.append(self.enqueue("load", queue="load")["id"])
        thread = self.in_thread(load)
        wait_until(lambda: len(acknowledged) >= 20)
        before = list(acknowledged)
        reply = json.loads(self.perdura("backup", "copy.db", "--json").stdout)
        over.set()
        thread.result()
        self.assertEqual(reply["path"], os.path.join(self.folder, "copy.db"))
        self.assertEqual(reply["bytes"], os.path.getsize(reply["path"]))
        self.assertIn("exists already", self.refused(1, "backup", "copy.db"))
        self.perdura("verify", "--store", "copy.db")
        self.server.stop()
        for name in os.listdir(self.folder):
            if name.startswith("perdura.db"):
                os.unlink(os.path.join(self.folder, name))
        shutil.copy(reply["path"], self.server.store)
        self.server.start()
        self.local.connection = None
        items = self.expect(200, "GET", "/v1/tasks?limit=1000")["items"]
        self.assertLessEqual({*before, held["id"]}, {item["id"] for item in items})
        self.register()
        item = self.report_one("worker-1", task, "complete", result=1)
        self.assertFalse(item["ok"])
        self.assertEqual(item["error"]["code"], "stale_lease")
        self.assertNotEqual(self.task(held["id"])["status"], "completed")

    def test_a_store_that_nobody_serves_is_copied_with_store(self):
        self.enqueue("a")
        self.server.stop()
        self.perdura("backup", "copy.db", "--store", self.server.store)
        report = json.loads(self.perdura("verify", "--store", "copy.db", "--json").stdout)
        self.assertEqual(report["checked"]["tasks"], 1)
        self.refused(1, "backup", "copy.db", "--store", self.server.store)
        self.refused(3, "backup", "x.db", "--store", os.path.join(self.folder, "missing.db"))
        self.assertFalse(os.path.exists(os.path.join(self.folder, "missing.db")))


class Doctor(FolderTest):
    def doctor(self, *more, code=0, **variables):
        report = json.loads(self.perdura("doctor", "--json", "--server", "http://127.0.0.1:1",
                                         *more, code=code, **variables).stdout)
        self.assertEqual(report["ok"], code == 0)
        return report

    def setting(self, key, *more, **variables):
        return next((item["value"], item["from"]) for item in
                    self.doctor(*more, **variables)["settings"] if item["key"] == key)

    def test_it_says_where_each_setting_comes_from(self):
        """Flag beats environment beats file beats default."""
        self.assertEqual(self.setting("store"), ("perdura.db", "default"))
        self.write("perdura.yaml", "# mine\nstore: file.db\nlease: 7s\n")
        value, origin = self.setting("store")
        self.assertEqual(value, "file.db")
        self.assertIn("perdura.yaml:2", origin)
        value, origin = self.setting("store", PERDURA_STORE="env.db")
        self.assertEqual(value, "env.db")
        self.assertIn("PERDURA_STORE", origin)
        value, origin = self.setting("store", "--store", "flag.db", PERDURA_STORE="env.db")
        self.assertEqual(value, "flag.db")
        self.assertIn("--store", origin)
        self.assertEqual(self.setting("lease")[0], "7s")

    def test_own_tables_that_block_removals_are_named(self):
        self.perdura("migrate", "up")
        def check():
            return next(item for item in self.doctor()["checks"] if item["name"] == "foreign keys")
        self.assertEqual(check()["verdict"], "ok")
        db = sqlite3.connect(os.path.join(self.folder, "perdura.db"))
        db.executescript("CREATE TABLE goes (task INTEGER REFERENCES task_specs (task) "
                         "ON DELETE CASCADE); CREATE TABLE mine (n INTEGER PRIMARY KEY);"
                         "CREATE TABLE mine_too (n INTEGER REFERENCES mine (n));"
                         "CREATE TABLE stays (task INTEGER REFERENCES task_specs (task))")
        db.close()
        self.assertEqual(check()["verdict"], "warning")
        self.assertRegex(check()["detail"], ": stays$")

    def test_own_rows_go_with_their_task(self):
        """As docs/recovery.md shows it for a file."""
        self.perdura("migrate", "up")
        db = sqlite3.connect(os.path.join(self.folder, "perdura.db"), isolation_level=None)
        db.execute("CREATE TABLE mine (task INTEGER REFERENCES task_specs (task) "
                   "ON DELETE CASCADE)")
        server = self.serve()
        self.url = "http://%s:%d" % server.address
        task = json.loads(self.perdura("enqueue", "a", "--json").stdout)["id"]
        server.stop()
        db.execute("PRAGMA foreign_keys = ON")
        db.execute(f"INSERT INTO mine SELECT task FROM task_states WHERE id = "
                   f"x'{task.replace('-', '')}'")
        self.assertEqual(db.execute("SELECT count(*) FROM mine").fetchone(), (1,))
        db.close()
        server.start()
        self.url = "http://%s:%d" % server.address
        self.perdura("task", "cancel", task)
        self.perdura("task", "delete", task)
        server.stop()
        db = sqlite3.connect(os.path.join(self.folder, "perdura.db"))
        self.assertEqual(db.execute("SELECT count(*) FROM mine").fetchone(), (0,))
        db.close()

    def test_what_is_wrong_comes_with_its_remedy(self):
        self.write("perdura.yaml", "listen: 0.0.0.0:7070\nhandlers:\n  - type: a\n"
                                   "    command: [/nonexistent/program]\n")
        failures = [check for check in self.doctor(code=1)["checks"]
                    if check["verdict"] == "failure"]
        self.assertEqual({check["name"] for check in failures}, {"handler", "listen"})
        self.assertTrue(all(check["fix"] for check in failures))
        text = self.perdura("doctor", "--server", "http://127.0.0.1:1", code=1).stdout
        self.assertIn("/nonexistent/program", text)

    def test_the_token_is_never_shown(self):
        secret = "canary-0123456789abcdef"
        done = self.perdura("doctor", "--server", "http://127.0.0.1:1", PERDURA_TOKEN=secret)
        self.assertNotIn(secret, done.stdout + done.stderr)
        done = self.perdura("doctor", "--json", "--server", "http://127.0.0.1:1",
                            PERDURA_TOKEN=secret)
        self.assertNotIn(secret, done.stdout + done.stderr)


class Bench(FolderTest):
    def test_it_measures_and_leaves_nothing_behind(self):
        rows = json.loads(self.perdura("bench", "--tasks", "200", "--json").stdout)["items"]
        self.assertTrue(all(row["tasks_per_second"] > 0 for row in rows))
        self.assertTrue(any("p99_us" in row for row in rows))
        self.assertIn("TASKS/S", self.perdura("bench", "--tasks", "20", "--batch", "10").stdout)
        self.assertEqual(os.listdir(self.folder), [])


class Texts(FolderTest):
    def test_completions_are_valid_in_their_shells(self):
        for shell in ("bash", "zsh", "fish"):
            with self.subTest(shell):
                text = self.perdura("completion", shell).stdout
                self.assertIn("enqueue", text)
                if not shutil.which(shell):
                    self.skipTest(f"{shell} is not installed")
                path = self.write("completion." + shell, text)
                subprocess.run([shell, "-n", path], check=True)

    def test_bash_completes_commands_and_flags(self):
        path = self.write("completion.bash", self.perdura("completion", "bash").stdout)
        script = f"""source {path}
        complete_words() {{ COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _perdura; \
        echo "${{COMPREPLY[@]}}"; }}
        complete_words perdura enq; complete_words perdura task sh
        complete_words perdura enqueue x --prio; complete_words perdura task list --status dead"""
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
        self.assertEqual([line.strip() for line in lines(done)],
                         ["enqueue", "show", "--priority", "dead_letter"])

    @unittest.skipUnless(shutil.which("scdoc"), "scdoc is not installed")
    def test_manual_pages_render(self):
        pages = lines(self.perdura("man", "--list"))
        self.assertIn("perdura-enqueue.1", pages)
        self.assertIn("perdura.yaml.5", pages)
        for page in pages:
            with self.subTest(page):
                source = self.perdura("man", page.rsplit(".", 1)[0]).stdout
                done = subprocess.run(["scdoc"], input=source, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(".SH", done.stdout)
        self.refused(3, "man", "nothing")

    def test_a_full_disk_is_not_success(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([binary(), "help"], stdout=full, stderr=subprocess.PIPE,
                                  text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("could not be written", done.stderr)


if __name__ == "__main__":
    unittest.main()
