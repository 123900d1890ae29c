"""Encryption at rest: nothing of a task that is encrypted is found in what the store and the server
leave behind (F-J10); without its key nothing is shown, handed out or stored in the clear, and it
continues when the key is back (F-J2); a new key takes over (F-J1); a ciphertext that was moved does
not open (F-J3); destroyed
keys stay destroyed."""
import base64
import contextlib
import http.server
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import tempfile
import threading
import unittest
import uuid

import harness
from harness import ApiTest, wait_until

CANARY = "canary"


def unpacked(value):
    """What a file keeps of an encrypted text, as its text; anything else stays."""
    if not isinstance(value, bytes) or not value.startswith(b"pdx1|"):
        return value
    quote = '"' if value[5] == 2 else ""
    nonce, text = (base64.urlsafe_b64encode(part).decode().rstrip("=") for part in (value[22:46], value[46:]))
    return f"{quote}pdx1|{uuid.UUID(bytes=value[6:22])}|{nonce}|{text}{quote}"


class EncryptionTest(ApiTest):
    """A server with the key k1; the configuration is written again for every start."""
    settings = ""
    handlers = ""

    def setUp(self):
        self.keys = tempfile.mkdtemp(prefix="perdura-keys-")
        self.addCleanup(shutil.rmtree, self.keys, True)
        self.config = os.path.join(self.keys, "perdura.yaml")
        self.make_key("k1")
        self.configure(["k1"], "k1")
        self.arguments = ("--config", self.config, "--log-level", "debug")
        super().setUp()

    def make_key(self, name):
        done = self.perdura("key", "add", name, "--file", os.path.join(self.keys, name))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(os.stat(os.path.join(self.keys, name)).st_mode & 0o777, 0o600)

    def perdura(self, *arguments):
        return subprocess.run([harness.binary(), *arguments], cwd=self.keys, text=True,
                              capture_output=True, timeout=harness.DEADLINE_S)

    def key(self, *arguments):
        return self.perdura("key", *arguments, "--server", "http://%s:%d" % self.server.address)

    def configure(self, names, current, more=None):
        keys = "".join(f'    - {{id: {n}, file: "{self.keys}/{n}"}}\n' for n in names)
        text = f"backup_dir: {self.keys}/backups\n"
        if names:
            text += f"encryption:\n  keys:\n{keys}"
            text += f"  current: {current}\n" if current else ""
            text += self.settings
        os.makedirs(f"{self.keys}/backups", 0o700, exist_ok=True)
        pathlib.Path(self.config).write_text(text + (self.handlers if more is None else more))

    def restart(self):
        self.assertEqual(self.server.stop(), 0)
        self.server.start()

    def stored(self, statement):
        """The lines of a query on the closed or open store."""
        if self.server.store.startswith("postgres"):
            return self.sql(statement)
        with contextlib.closing(sqlite3.connect(self.server.store, timeout=60, isolation_level=None)) as store:
            if statement.startswith("BEGIN;"):
                store.executescript(statement)
                return []
            rows = store.execute(statement).fetchall()
        return ["|".join("" if value is None else str(unpacked(value)) for value in row) for row in rows]

    def parts(self, task_id, part):
        return self.expect(200, "GET", f"/v1/tasks/{task_id}/{part}")["items"]


class Canaries(EncryptionTest):
    """Every text of a task has a canary of its own."""

    def receive(self):
        received = []

        class Receiver(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                received.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
                self.send_response(204)
                self.end_headers()

            def log_message(self, *arguments):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return f"http://127.0.0.1:{server.server_address[1]}/", received

    def live(self, **fields):
        """One that fails, runs again with a checkpoint and completes."""
        url, received = self.receive()
        task = self.enqueue(payload={"p": f"{CANARY}-payload"}, data={"d": f"{CANARY}-data"},
                            hash_input=True, callback_url=url, retry_delay_ms=1, **fields)
        self.register()
        claimed = self.claim(wait_ms=30000)[0]
        self.assertEqual(claimed["payload"], {"p": f"{CANARY}-payload"})
        self.report("worker-1", self.element(claimed, "start"),
                    self.element(claimed, "log", level="INFO", message=f"{CANARY}-message",
                                 context={"c": f"{CANARY}-context"}),
                    self.element(claimed, "checkpoint", name="half", progress=50,
                                 data={"k": f"{CANARY}-checkpoint"},
                                 database_state={"k": f"{CANARY}-database"},
                                 file_state={"k": f"{CANARY}-files"}),
                    self.element(claimed, "fail", error=f"{CANARY}-error", retryable=True,
                                 details={"x": f"{CANARY}-details"}))
        shown = self.task(task["id"])
        self.assertEqual(shown["last_error"], f"{CANARY}-error")
        self.assertEqual(shown["error_details"]["details"], {"x": f"{CANARY}-details"})
        claimed = self.claim(wait_ms=30000)[0]
        self.assertEqual(claimed["data"], {"d": f"{CANARY}-data"})
        self.assertEqual(claimed["checkpoint"]["data"], {"k": f"{CANARY}-checkpoint"})
        self.assertEqual(claimed["checkpoint"]["file_state"], {"k": f"{CANARY}-files"})
        self.complete("worker-1", claimed, {"r": f"{CANARY}-result"})
        wait_until(lambda: received, what="the callback")
        self.assertIn(f"{CANARY}-payload", received[0])
        return task["id"]

    def shown_in_the_clear(self, task_id):
        task = self.task(task_id)
        self.assertEqual(task["payload"], {"p": f"{CANARY}-payload"})
        self.assertEqual(task["result"], {"r": f"{CANARY}-result"})
        logs = self.parts(task_id, "logs")
        self.assertEqual((logs[0]["message"], logs[0]["context"]),
                         (f"{CANARY}-message", {"c": f"{CANARY}-context"}))
        self.assertIn(f"{CANARY}-error", json.dumps(self.parts(task_id, "events")))
        executions = self.parts(task_id, "executions")
        self.assertIn(f"{CANARY}-error", json.dumps(executions[1]["error_data"]))
        self.assertEqual(executions[0]["result_data"], {"r": f"{CANARY}-result"})
        checkpoint = self.parts(task_id, "checkpoints")[0]
        self.assertEqual(checkpoint["recoverable_data"], {"k": f"{CANARY}-checkpoint"})

    def left_behind(self):
        """All files of the store, its dump or its backup, the log, metrics."""
        places = {"log": self.server.log(), "metrics": self.request("GET", "/metrics").body.decode()}
        if self.server.store.startswith("postgres"):
            from server import programs
            dump = subprocess.run([f"{programs()}/pg_dump", "--inserts", "-n", self.schema,
                                   self.postgres.url], check=True, capture_output=True)
            places["dump"] = dump.stdout.decode(errors="replace")
        else:
            self.expect(201, "POST", "/v1/backup", {"name": "copy.db"})
            paths = [*pathlib.Path(self.folder).glob("perdura.db*"),
                     pathlib.Path(self.keys, "backups", "copy.db")]
            for path in paths:
                places[path.name] = path.read_bytes().decode("latin-1")
        return places

    def test_nothing_that_is_encrypted_is_left_behind_in_the_clear(self):
        task_id = self.live(encrypt=True)
        self.shown_in_the_clear(task_id)
        for name, text in self.left_behind().items():
            self.assertNotIn(CANARY, text, name)
        self.restart()
        self.shown_in_the_clear(task_id)
        self.assertEqual(self.server.stop(), 0)
        done = self.perdura("verify", "--config", self.config, "--store", self.server.store)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("encrypted texts", done.stdout)
        self.server.start()

    def test_the_same_task_leaves_all_of_it_where_it_is_not_encrypted(self):
        self.shown_in_the_clear(self.live())
        text = "".join(self.left_behind().values())
        for what in ("payload", "data", "message", "context", "checkpoint", "database", "files",
                     "error", "details", "result"):
            self.assertIn(f"{CANARY}-{what}", text)

    def test_the_archive_keeps_what_is_stored(self):
        self.live(encrypt=True)
        self.configure(["k1"], "k1", f"retention:\n  archive: {self.keys}/old\nhandlers:\n"
                       "  - type: test\n    command: [/bin/true]\n    retention: 1ms\n")
        self.restart()
        old = pathlib.Path(self.keys, "old")
        path = wait_until(lambda: next(old.glob("*.zst"), None) if old.exists() else None,
                          what="the archive")
        text = subprocess.run(["zstd", "-dc", path], check=True, capture_output=True).stdout.decode()
        self.assertIn("pdx1|", text)
        self.assertNotIn(CANARY, text)


class Places(EncryptionTest):
    """Places beside the store where content or keys could be left."""

    def receive_spans(self):
        received = []

        class Receiver(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                received.append(self.rfile.read(int(self.headers["Content-Length"])).decode("latin-1"))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.configure(["k1"], "k1", f"tracing: {{otlp: 'http://127.0.0.1:{server.server_address[1]}/v1/traces', ratio: 1}}\n")
        self.restart()
        return received

    def test_f_j10_spans_audit_trail_and_copies_hold_no_content(self):
        spans = self.receive_spans()
        task = self.enqueue(payload=f"{CANARY}-payload", encrypt=True, max_retries=0)
        self.register()
        claimed = self.claim(wait_ms=30000)[0]
        self.report("worker-1", self.element(claimed, "start"),
                    self.element(claimed, "fail", error=f"{CANARY}-error", details={"d": f"{CANARY}-details"}))
        self.expect(200, "POST", f"/v1/tasks/{task['id']}:retry", {})
        claimed = self.claim(wait_ms=30000)[0]
        self.complete("worker-1", claimed, f"{CANARY}-result")
        self.expect(200, "PATCH", f"/v1/tasks/{task['id']}", {"note": "a note is not encrypted"})
        wait_until(lambda: task["id"] in "".join(spans) or "execute" in "".join(spans), what="spans")
        trail = self.request("GET", "/v1/audit").body.decode()
        self.assertIn("task.retry", trail)
        self.assertEqual(self.server.stop(), 0)
        copy = os.path.join(self.keys, "copy.db")
        done = self.perdura("copy", "--from", self.server.store, "--to", copy)
        self.assertEqual(done.returncode, 0, done.stderr)
        places = {"spans": "".join(spans), "trail": trail, "stderr": self.server.log()}
        for path in pathlib.Path(self.keys).glob("copy.db*"):
            places[path.name] = path.read_bytes().decode("latin-1")
        for name, text in places.items():
            self.assertNotIn(CANARY, text, name)
        self.assertIn("pdx1|", places["copy.db"])
        self.server.store = copy
        self.server.start()
        self.assertEqual(self.task(task["id"])["payload"], f"{CANARY}-payload", "the copy opens with the same key")

    def dumped_memory(self, pid):
        """What a core would hold: all that is mapped but for what is kept out of dumps."""
        keep, regions = None, []
        with open(f"/proc/{pid}/smaps", encoding="utf-8") as maps:
            for line in maps:
                head = re.match(r"([0-9a-f]+)-([0-9a-f]+) (r?)", line)
                if head:
                    keep = (int(head[1], 16), int(head[2], 16)) if head[3] else None
                elif line.startswith("VmFlags:") and keep and " dd" not in line:
                    regions.append(keep)
        with open(f"/proc/{pid}/mem", "rb", 0) as memory:
            for begin, end in regions:
                try:
                    memory.seek(begin)
                    yield memory.read(end - begin)
                except (OSError, ValueError, OverflowError):
                    continue

    @unittest.skipUnless(os.geteuid() == 0, "only root reads the memory of a server")
    def test_f_j10_a_core_holds_no_key(self):
        import base64
        for i in range(50):
            self.enqueue(payload=f"{CANARY}-{i}", encrypt=True)
        self.make_key("k2")
        self.configure(["k1", "k2"], "k2")
        self.restart()
        self.register()
        self.assertEqual(len(self.claim(max=50)), 50)
        self.assertEqual(self.key("rotate").returncode, 0)
        secrets = []
        for name in ("k1", "k2"):
            text = pathlib.Path(self.keys, name).read_text().strip()
            secrets += [text.encode(), base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))]
        pid = self.server.process.pid
        known = self.server.store.encode()  # shows that what is there is found
        found = {what for region in self.dumped_memory(pid) for what in [known, *secrets] if what in region}
        self.assertEqual(found, {known})
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        self.assertIn("CoreDumping:\t0", status)


class Members(EncryptionTest):
    def test_only_the_members_named_are_encrypted(self):
        payload = {"card": {"number": "canary-1", "of": "ada"}, "list": [1, "canary-2"]}
        task = self.enqueue(payload=payload, encrypt_fields=["/card/number", "/list/1", "/gone"])
        stored = self.stored("SELECT payload FROM task_specs")[0]
        self.assertIn('"of": "ada"', stored)
        self.assertNotIn("canary", stored)
        self.assertEqual(self.task(task["id"])["payload"], payload)
        self.register()
        claimed = self.claim()[0]
        self.assertEqual(claimed["payload"], payload)
        self.complete("worker-1", claimed, {"card": {"number": "canary-3"}, "ok": True})
        stored = self.stored("SELECT payload FROM task_results")[0]
        self.assertIn('"ok": true', stored)
        self.assertNotIn("canary", stored)
        self.assertEqual(self.task(task["id"])["result"],
                         {"card": {"number": "canary-3"}, "ok": True})

    def test_pointers_that_are_none_are_refused(self):
        for wrong in ("card", "/a~2", "", "/" + "x" * 256):
            self.expect_error(422, "invalid", "POST", "/v1/tasks",
                              {"type": "t", "encrypt_fields": [wrong]}, field="encrypt_fields")
        self.enqueue(encrypt_fields=["/" + "x" * 255] + [f"/{i}" for i in range(31)])
        self.expect_error(422, "invalid", "POST", "/v1/tasks", field="encrypt_fields",
                          body={"type": "t", "encrypt_fields": [f"/{i}" for i in range(33)]})

    def test_a_text_that_looks_encrypted_is_no_way_around(self):
        text = "pdx1|00000000-0000-4000-8000-000000000000|" + "A" * 32 + "|" + "A" * 22
        task = self.enqueue(payload=text)
        self.assertEqual(self.task(task["id"])["payload"], text)
        self.assertNotIn(text, self.stored("SELECT payload FROM task_specs")[0])


class Triggered(EncryptionTest):
    handlers = "handlers:\n  - {type: up, encrypt: true}\n"

    def test_f_j3_a_run_that_an_encrypted_one_triggers_does_not_hold_its_error_in_the_clear(self):
        self.register()
        jobs = [self.expect(201, "POST", "/v1/jobs", {"name": name, "task_type": name, "category": "general",
                                                      "queue": "default", "max_retries": 0})["id"]
                for name in ("down", "up")]
        self.expect(201, "POST", f"/v1/jobs/{jobs[0]}/dependencies",
                    {"depends_on_job_id": jobs[1], "dependency_type": "completion", "dependency_config": {"mode": "trigger"}})
        self.expect(201, "POST", f"/v1/jobs/{jobs[1]}:run", {})
        self.report_ok("worker-1", self.claim()[0], "fail", error="a canary", retryable=False)
        down, = self.expect(200, "GET", "/v1/tasks?type=down")["items"]
        self.assertEqual((down["encrypt"], down["data"]["trigger"]["error"]), (True, "a canary"))
        self.assertNotIn("canary", "".join(self.stored("SELECT data FROM tasks")))
        cancelled = self.expect(201, "POST", f"/v1/jobs/{jobs[1]}:run", {})
        self.configure([], None)
        self.restart()
        self.expect(200, "POST", f"/v1/tasks/{cancelled['id']}:cancel")
        last = self.expect(200, "GET", "/v1/tasks?type=down")["items"][0]
        self.assertEqual((last["encrypt"], last["data"]["trigger"]["status"], last["data"]["trigger"]["error"]),
                         (False, "cancelled", None))

    def test_f_j3_without_the_key_schedules_of_other_types_fire(self):
        schedules = []
        for name in ("up", "down"):
            job = self.expect(201, "POST", "/v1/jobs", {"name": name, "task_type": name, "category": "general"})["id"]
            schedules.append(self.expect(201, "POST", "/v1/schedules", {
                "job_id": job, "schedule_type": "interval", "interval_seconds": 1})["id"])
        self.configure([], None)
        self.restart()
        before = {t["id"] for t in self.expect(200, "GET", "/v1/tasks?limit=1000")["items"]}

        def fired():
            return [t["type"] for t in self.expect(200, "GET", "/v1/tasks?limit=1000")["items"] if t["id"] not in before]
        wait_until(lambda: len(fired()) > 1, what="the schedule of the other type fires")
        self.assertNotIn("up", fired())
        wait_until(lambda: "no key" in str(self.expect(200, "GET", f"/v1/schedules/{schedules[0]}")),
                   what="the schedule says why it does not fire")


class Children(EncryptionTest):
    def test_what_an_encrypted_task_spawns_is_encrypted_unless_it_says_how_it_is_stored(self):
        self.enqueue(payload=1, encrypt=True)
        self.register()
        task = self.claim()[0]
        self.report("worker-1", self.element(task, "start"),
                    self.element(task, "spawn", tasks=[{"type": "child", "payload": "canary"}, {
                        "type": "child", "payload": {"a": "canary", "b": "shown"}, "encrypt_fields": ["/a"]}]))
        text = "".join(self.stored("SELECT payload FROM task_specs"))
        self.assertNotIn("canary", text)
        self.assertIn("shown", text)
        shown = self.expect(200, "GET", "/v1/tasks?type=child")["items"]
        self.assertEqual(sorted((t["encrypt"], t["encrypt_fields"]) for t in shown), [(False, ["/a"]), (True, [])])

    def test_doctor_names_handlers_that_can_read_the_key_files(self):
        store = self.server.store
        self.assertEqual(self.server.stop(), 0)
        handler = "handlers:\n  - type: pay\n    command: [/bin/true]\n"
        for user, told in (("", True), ("    user: nobody\n", False)):
            self.configure(["k1"], "k1", handler + user)
            done = self.perdura("doctor", "--config", self.config, "--store", store)
            self.assertEqual("can read its key files" in done.stdout, told, done.stdout)
        self.configure(["k1"], "k1")
        self.server.start()


class Types(EncryptionTest):
    handlers = ("handlers:\n  - type: \"pay:*\"\n    encrypt: true\n"
                "  - type: \"ship:*\"\n    encrypt_fields: [/address]\n")

    def test_a_type_says_what_of_its_tasks_is_encrypted(self):
        pay = self.enqueue("pay:card", payload={"n": "canary"})
        ship = self.enqueue("ship:box", payload={"address": "canary", "id": 7})
        plain = self.enqueue("other", payload={"n": "shown"})
        self.assertEqual([pay["encrypt"], ship["encrypt_fields"], plain["encrypt"]],
                         [True, ["/address"], False])
        text = "".join(self.stored("SELECT payload FROM task_specs ORDER BY task"))
        self.assertNotIn("canary", text)
        self.assertIn('"id": 7', text)
        self.assertIn("shown", text)


class Everything(EncryptionTest):
    settings = "  all: true\n  per_user: true\n"

    def test_every_task_is_encrypted_and_every_user_has_a_key(self):
        ids = {user: self.enqueue(payload="canary", user_id=user)["id"] for user in ("ada", "bob")}
        nobody = self.enqueue(payload="canary")["id"]
        self.assertNotIn("canary", "".join(self.stored("SELECT payload FROM task_specs")))
        done = self.key("destroy", "--user", "ada")
        self.assertEqual(done.returncode, 2, "a destruction must be confirmed")
        done = self.key("destroy", "--user", "ada", "--yes")
        self.assertIn("1 data keys destroyed", done.stdout, done.stderr)
        self.assertEqual(self.task(ids["ada"])["payload"], {"encrypted": True, "destroyed": True})
        for kept in (ids["bob"], nobody):
            self.assertEqual(self.task(kept)["payload"], "canary")
        self.restart()
        self.assertEqual(self.task(ids["ada"])["payload"], {"encrypted": True, "destroyed": True})
        self.assertEqual(self.task(ids["bob"])["payload"], "canary")
        again = self.enqueue(payload="new", user_id="ada")["id"]
        self.assertEqual(self.task(again)["payload"], "new", "a new task has a new key")

    def test_log_chains_stay_whole_when_their_key_is_destroyed(self):
        self.enqueue(payload=1, user_id="ada")
        self.register()
        task = self.claim()[0]
        self.report("worker-1", self.element(task, "start"),
                    self.element(task, "log", level="INFO", message="canary"))
        self.complete("worker-1", task)
        self.expect(200, "POST", "/v1/keys:destroy", {"user_id": "ada"})
        self.assertEqual(self.parts(task["id"], "logs")[0]["message"],
                         '{"encrypted":true,"destroyed":true}')
        self.assertEqual(self.server.stop(), 0)
        done = self.perdura("verify", "--logs", "--config", self.config, "--store",
                            self.server.store)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.server.start()


class Locked(EncryptionTest):
    def lose_the_key(self, names=(), current=None):
        self.configure(names, current)
        self.restart()

    def test_without_its_key_nothing_is_shown_handed_out_or_stored(self):
        task = self.enqueue(payload={"n": "canary"}, data=[1], encrypt=True)
        plain = self.enqueue(payload="plain")
        before = self.stored("SELECT payload FROM task_specs ORDER BY task")
        self.lose_the_key()
        self.assertEqual(self.task(task["id"])["payload"], {"encrypted": True})
        self.assertEqual(self.task(plain["id"])["payload"], "plain")
        self.expect_error(503, "locked", "POST", "/v1/tasks", {"type": "t", "encrypt": True})
        self.expect_error(503, "locked", "POST", f"/v1/tasks/{task['id']}:fork", {})
        self.register()
        self.assertEqual([t["id"] for t in self.claim(max=10)], [plain["id"]])
        waiting = self.task(task["id"])
        self.assertEqual((waiting["status"], waiting["state"]),
                         ("delayed", "Encrypted, and cannot be opened"))
        self.assertEqual(self.stored("SELECT payload FROM task_specs ORDER BY task"), before)
        self.configure(["k1"], "k1")
        self.restart()
        self.assertEqual(self.task(task["id"])["payload"], {"n": "canary"})
        wait_until(lambda: [t["id"] for t in self.claim(wait_ms=20000)] == [task["id"]],
                   deadline_s=120, what="the task is handed out when the key is back")

    def test_what_cannot_be_opened_outlives_a_change_of_its_task(self):
        task = self.enqueue(payload=1, encrypt=True)
        self.register()
        claimed = self.claim()[0]
        self.report("worker-1", self.element(claimed, "start"),
                    self.element(claimed, "fail", error="canary", retryable=True))
        self.lose_the_key()
        self.expect(200, "POST", f"/v1/tasks/{task['id']}:cancel", {})
        self.assertEqual(self.task(task["id"])["status"], "cancelled")
        self.assertEqual(self.task(task["id"])["last_error"], '{"encrypted":true}')
        self.configure(["k1"], "k1")
        self.restart()
        self.assertEqual(self.task(task["id"])["last_error"], "canary")

    def test_a_key_file_that_is_missing_locks_and_is_told(self):
        task = self.enqueue(payload="canary", encrypt=True)
        os.rename(f"{self.keys}/k1", f"{self.keys}/away")
        self.restart()
        self.assertIn("encryption.key_missing", self.server.log())
        self.assertEqual(self.task(task["id"])["payload"], {"encrypted": True})
        status = self.expect(200, "GET", "/v1/keys")
        self.assertFalse(status["encrypts"])
        self.assertFalse(status["data_keys"][0]["available"])
        self.assertGreater(status["texts"]["locked"], 0)
        os.rename(f"{self.keys}/away", f"{self.keys}/k1")

    def test_a_key_file_that_others_can_read_is_refused(self):
        self.assertEqual(self.server.stop(), 0)
        os.chmod(f"{self.keys}/k1", 0o644)
        done = self.perdura("serve", "--config", self.config, "--listen", "127.0.0.1:0", "--store",
                            self.server.store)
        self.assertEqual(done.returncode, 1)
        self.assertIn("chmod 600", done.stderr)
        os.chmod(f"{self.keys}/k1", 0o600)
        self.server.start()


class Damage(EncryptionTest):
    def test_ciphertexts_that_were_swapped_or_changed_do_not_open(self):
        ids = [self.enqueue(payload=f"canary-{i}", encrypt=True)["id"] for i in range(3)]
        self.assertEqual(self.server.stop(), 0)
        rows = self.stored("SELECT payload FROM task_specs ORDER BY task")
        keys = self.stored("SELECT task FROM task_specs ORDER BY task")
        changed = rows[2][:-3] + ("A" if rows[2][-3] != "A" else "B") + rows[2][-2:]
        for key, text in zip(keys, (rows[1], rows[0], changed)):
            self.stored(f"UPDATE task_specs SET payload = '{text}', payload_sum = NULL "
                        f"WHERE task = {key}")
        done = self.perdura("verify", "--config", self.config, "--store", self.server.store)
        self.assertEqual(done.returncode, 1, done.stdout)
        for task_id in ids:
            self.assertIn(task_id, done.stdout)
        self.server.start()
        for task_id in ids:
            self.assertEqual(self.task(task_id)["payload"], {"encrypted": True, "damaged": True})
        self.register()
        self.assertEqual(self.claim(max=10), [])
        self.assertGreaterEqual(self.expect(200, "GET", "/v1/keys")["texts"]["damaged"], 3)
        metrics = self.request("GET", "/metrics").body.decode()
        self.assertRegex(metrics, r"perdura_encrypted_texts_damaged_total ([3-9]|\d\d)")

    def test_f_j3_a_text_that_did_not_open_is_on_record(self):
        task = self.enqueue(payload="canary", encrypt=True)
        self.assertEqual(self.server.stop(), 0)
        text = self.stored("SELECT payload FROM task_specs")[0]
        changed = text[:-3] + ("A" if text[-3] != "A" else "B") + text[-2:]
        self.stored(f"UPDATE task_specs SET payload = '{changed}'")
        self.server.start()
        self.assertEqual(self.task(task["id"])["payload"], {"encrypted": True, "damaged": True})
        self.assertEqual(self.server.stop(), 0)
        self.assertIn("encryption.texts_damaged", self.server.log())
        self.server.start()
        entries = self.expect(200, "GET", "/v1/audit?outcome=refused")["items"]
        found = [entry for entry in entries if entry["action"] == "text.damaged"]
        self.assertGreaterEqual(sum(entry["change"]["count"] for entry in found), 1)
        self.assertEqual({(entry["principal"], entry["namespace"]) for entry in found}, {("program", "*")})

    # Every stored text of a task: table, column, JSON or not, and where it is shown.
    PLACES = (("task_specs", "payload", True), ("task_data", "data", True), ("task_details", "last_error", False),
              ("task_details", "error_details", True), ("task_results", "payload", True),
              ("execution_rows", "error_data", True), ("task_event_rows", "detail", True),
              ("task_checkpoints", "recoverable_data", True), ("task_checkpoints", "database_state", True),
              ("task_checkpoints", "file_state", True), ("execution_logs", "message", False),
              ("execution_logs", "context", True))

    def lived(self):
        """A task that has left an encrypted text in every place."""
        self.enqueue(payload="canary-0", data="canary-1", encrypt=True, retry_delay_ms=1)
        self.register()
        claimed = self.claim(wait_ms=30000)[0]
        self.report("worker-1", self.element(claimed, "start"),
                    self.element(claimed, "log", level="INFO", message="canary-2", context={"c": "canary-3"}),
                    self.element(claimed, "checkpoint", name="half", progress=50, data={"k": "canary-4"},
                                 database_state={"k": "canary-5"}, file_state={"k": "canary-6"}),
                    self.element(claimed, "fail", error="canary-7", retryable=True, details={"x": "canary-8"}))
        claimed = self.claim(wait_ms=30000)[0]
        self.complete("worker-1", claimed, {"r": "canary-9"})
        return claimed["id"]

    def everything_shown(self, task_id):
        return json.dumps([self.task(task_id), *(self.parts(task_id, part) for part in
                                                 ("logs", "events", "executions", "checkpoints"))])

    def texts(self):
        """(place, row, bare ciphertext) of every stored form."""
        found = []
        for table, column, quoted in self.PLACES:
            key = {"task_results": "hex(task_id)", "execution_rows": "execution", "task_event_rows": "seq",
                   "execution_logs": "hex(id)", "task_checkpoints": "seq"}.get(table, "task")
            for line in self.stored(f"SELECT {key}, {column} FROM {table} "
                                    f"WHERE instr({column}, 'pdx1|') > 0"):
                row, text = line.split("|", 1)
                found.append((table, column, quoted, f"{key} = '{row}'", text.strip('"')))
        return found

    def put(self, places, texts):
        script = "BEGIN;"
        for (table, column, quoted, where, _), text in zip(places, texts):
            value = f'"{text}"' if quoted else text
            script += f"UPDATE {table} SET {column} = '{value}' WHERE {where};"
        self.stored(script + "COMMIT;")

    def test_f_j3_no_ciphertext_opens_in_the_place_of_any_other(self):
        task_id = self.lived()
        self.assertEqual({f"canary-{i}" for i in range(10)} - set(re.findall(r"canary-\d", self.everything_shown(task_id))),
                         set())
        places = self.texts()
        self.assertEqual(len({place[:2] for place in places}), len(self.PLACES))
        bare = [place[4] for place in places]
        for shift in range(1, len(places)):
            self.assertEqual(self.server.stop(), 0)
            self.put(places, bare[shift:] + bare[:shift])
            self.server.start()
            self.assertNotIn("canary", self.everything_shown(task_id), f"shift {shift}")
        self.assertEqual(self.server.stop(), 0)
        self.put(places, bare)
        self.server.start()
        self.assertIn("canary-9", self.everything_shown(task_id))

    def test_f_j3_a_stored_text_with_any_byte_changed_does_not_open(self):
        task = self.enqueue(payload="canary", encrypt=True)
        stored = self.stored("SELECT payload FROM task_specs")[0]
        ids = [task["id"], *(self.enqueue(payload="canary", encrypt=True)["id"] for _ in range(len(stored) - 1))]
        self.assertEqual(self.server.stop(), 0)
        keys = self.stored("SELECT task FROM task_specs ORDER BY task")
        texts = self.stored("SELECT payload FROM task_specs ORDER BY task")
        script = "BEGIN;"
        for at, (key, text) in enumerate(zip(keys, texts)):
            self.assertEqual(len(text), len(stored))
            other = "B" if text[at] != "B" else "C"
            script += f"UPDATE task_specs SET payload = '{text[:at]}{other}{text[at + 1:]}' WHERE task = {key};"
        self.stored(script + "COMMIT;")
        self.server.start()
        for at, task_id in enumerate(ids):
            self.assertEqual(self.task(task_id)["payload"], {"encrypted": True, "damaged": True}, f"byte {at}")

    def test_f_j3_any_changed_byte_of_what_a_file_keeps_is_noticed(self):
        """A file keeps payloads as bytes, not as the text that everything else sees."""
        if self.server.store.startswith("postgres"):
            self.skipTest("PostgreSQL keeps the text")
        first = self.enqueue(payload="canary", encrypt=True)
        with contextlib.closing(sqlite3.connect(self.server.store)) as store:
            [[kept]] = store.execute("SELECT payload FROM task_specs").fetchall()
        self.assertTrue(kept.startswith(b"pdx1|\2"), kept)
        self.assertEqual(len(kept), 5 + 1 + 16 + 24 + len('"canary"') + 16)
        ids = [first["id"], *(self.enqueue(payload="canary", encrypt=True)["id"] for _ in kept[1:])]
        self.assertEqual(self.server.stop(), 0)
        with contextlib.closing(sqlite3.connect(self.server.store)) as store:
            rows = store.execute("SELECT task, payload FROM task_specs ORDER BY task").fetchall()
            for at, (key, text) in enumerate(rows):
                store.execute("UPDATE task_specs SET payload = ?, payload_sum = NULL WHERE task = ?",
                              (text[:at] + bytes([text[at] ^ 1]) + text[at + 1:], key))
            store.commit()
        self.server.start()
        for at, task_id in enumerate(ids):
            self.assertEqual(self.task(task_id)["payload"], {"encrypted": True, "damaged": True}, f"byte {at}")
        self.assertEqual(len(self.expect(200, "GET", "/v1/tasks?limit=1000")["items"]), len(ids))

    def test_f_j2_a_store_of_an_older_version_opens_and_a_rotation_keeps_it_as_bytes(self):
        """Its encrypted texts are text, as a way down leaves them."""
        if self.server.store.startswith("postgres"):
            self.skipTest("PostgreSQL keeps the text")
        task = self.enqueue(payload="canary", data={"a": "canary"}, encrypt=True)
        self.register()
        [held] = self.claim()
        self.complete("worker-1", held, {"r": "canary"})
        before = [self.task(task["id"]), self.parts(task["id"], "executions")]
        kinds = ("SELECT group_concat(DISTINCT typeof(t)) FROM (SELECT payload AS t FROM task_specs UNION ALL "
                 "SELECT data FROM task_data UNION ALL SELECT payload FROM task_results)")
        self.assertEqual(self.stored(kinds), ["blob"])
        self.assertEqual(self.server.stop(), 0)
        sums = self.stored("SELECT payload_sum FROM task_specs")
        done = self.perdura("migrate", "down", "--to", "21", "--lose-data", "--store", self.server.store)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.stored(kinds), ["text"])
        self.assertEqual(self.stored("SELECT payload_sum FROM task_specs"), sums)
        self.server.start()
        self.assertEqual([self.task(task["id"]), self.parts(task["id"], "executions")], before)
        self.assertEqual(self.stored(kinds), ["text"])
        self.assertEqual(self.key("rotate", "--data").returncode, 0)
        self.assertEqual(self.stored(kinds), ["blob"])
        self.assertEqual([self.task(task["id"]), self.parts(task["id"], "executions")], before)
        self.assertEqual(self.server.stop(), 0)
        self.assertEqual(self.perdura("verify", "--store", self.server.store).returncode, 0)
        self.server.start()

    def test_clear_text_in_place_of_what_is_encrypted_counts_as_damaged(self):
        task = self.enqueue(payload="canary", encrypt=True)
        self.assertEqual(self.server.stop(), 0)
        self.stored("UPDATE task_specs SET payload = '\"forged\"', payload_sum = NULL")
        self.server.start()
        self.assertEqual(self.task(task["id"])["payload"], {"encrypted": True, "damaged": True})


class Rotation(EncryptionTest):
    def test_a_new_key_takes_over_and_the_old_one_can_go(self):
        task = self.enqueue(payload="canary", encrypt=True, hash_input=True)
        self.make_key("k2")
        self.configure(["k1", "k2"], "k2")
        self.restart()
        self.assertEqual(self.task(task["id"])["payload"], "canary")
        self.assertGreater(self.expect(200, "GET", "/v1/keys")["left"], 0)
        done = self.key("rotate")
        self.assertEqual((done.returncode, done.stdout),
                         (0, "3 data keys wrapped again, 0 left\n"), done.stderr)
        self.configure(["k2"], "k2")
        self.restart()
        self.assertEqual(self.task(task["id"])["payload"], "canary")
        reply = self.request("POST", "/v1/tasks", {"type": "test", "payload": "canary",
                                                   "encrypt": True, "hash_input": True})
        self.assertEqual((reply.status, reply.json["id"]), (200, task["id"]),
                         "hashes of inputs outlive a rotation")

    def test_rotation_without_the_old_key_is_refused(self):
        self.enqueue(payload="canary", encrypt=True)
        self.make_key("k2")
        self.configure(["k2"], "k2")
        self.restart()
        self.expect_error(503, "locked", "POST", "/v1/keys:rotate", {})

    def test_keys_are_never_shown(self):
        self.enqueue(payload=1, encrypt=True)
        key = pathlib.Path(self.keys, "k1").read_text().strip()
        places = [self.server.log(), self.request("GET", "/v1/keys").body.decode(),
                  self.request("GET", "/metrics").body.decode(), self.key("status").stdout,
                  self.key("list").stdout]
        for text in places:
            self.assertNotIn(key, text)


class DataKeys(Canaries):
    """New data keys, and content encrypted again with them."""
    test_nothing_that_is_encrypted_is_left_behind_in_the_clear = None
    test_the_same_task_leaves_all_of_it_where_it_is_not_encrypted = None
    test_the_archive_keeps_what_is_stored = None

    def dump(self):
        """The rows of all tables, by table."""
        if self.server.store.startswith("postgres"):
            from server import programs
            text = subprocess.run([f"{programs()}/pg_dump", "--inserts", "--data-only", "-n", self.schema,
                                   self.postgres.url], check=True, capture_output=True).stdout.decode()
        else:
            text = subprocess.run(["sqlite3", self.server.store, ".dump"], check=True,
                                  capture_output=True).stdout.decode()
            text = re.sub("X'(706478317c0[12][0-9a-f]+)'", lambda kept: f"'{unpacked(bytes.fromhex(kept[1]))}'", text)
        tables = {}
        for line in text.splitlines():
            if line.startswith("INSERT INTO "):
                name = line.split(" ")[2].strip('"').split(".")[-1].split("(")[0]
                tables[name] = tables.get(name, "") + line + "\n"
        return tables

    def used_keys(self, skip=("execution_logs", "data_keys")):
        """Ids of the data keys that stored texts name."""
        return {match for table, text in self.dump().items() if table not in skip
                for match in re.findall(r"pdx1\|([0-9a-f-]{36})\|", text)}

    def rotate_data(self):
        done = self.key("rotate", "--data", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["content"]

    def test_all_content_gets_new_data_keys_and_reads_as_before(self):
        task_id = self.live(encrypt=True)
        members = self.enqueue(payload={"a": "canary", "b": 1}, encrypt_fields=["/a"], hash_input=True)
        mark = self.enqueue(payload="pdx1|00000000-0000-4000-8000-000000000000|x")
        old = self.used_keys()
        self.assertTrue(old)
        content = self.rotate_data()
        self.assertEqual((content["done"], content["percent"], content["closed"]), (True, 100, 0))
        self.assertGreater(content["texts"], 10)
        now = self.used_keys()
        self.assertEqual(old & now, set(), "all but log lines is under new keys")
        self.assertTrue(now)
        self.shown_in_the_clear(task_id)
        self.assertEqual(self.task(members["id"])["payload"], {"a": "canary", "b": 1})
        self.assertEqual(self.task(mark["id"])["payload"], "pdx1|00000000-0000-4000-8000-000000000000|x")
        again = self.request("POST", "/v1/tasks", {"type": "test", "payload": {"a": "canary", "b": 1},
                                                   "encrypt_fields": ["/a"], "hash_input": True})
        self.assertEqual((again.status, again.json["id"]), (200, members["id"]), "hashes keep their key")
        self.enqueue(payload="new", encrypt=True)
        self.assertEqual(self.used_keys() & old, set(), "nor does a new task use an old one")
        self.assertEqual(self.server.stop(), 0)
        done = self.perdura("verify", "--config", self.config, "--store", self.server.store)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.server.start()
        self.shown_in_the_clear(task_id)
        self.assertGreater(self.rotate_data()["texts"], 10, "a second rotation starts over")
        self.assertEqual(self.used_keys() & now, set())

    def test_a_task_that_is_held_meanwhile_does_not_bring_the_old_key_back(self):
        self.enqueue(payload="canary", data={"d": "canary"}, encrypt=True, retry_delay_ms=1)
        self.register()
        claimed = self.claim(wait_ms=30000)[0]
        self.report("worker-1", self.element(claimed, "start"),
                    self.element(claimed, "checkpoint", name="half", progress=50, data={"k": "canary"}),
                    self.element(claimed, "fail", error="canary-1", retryable=True))
        claimed = self.claim(wait_ms=30000)[0]
        old = self.used_keys()
        self.rotate_data()
        self.report("worker-1", self.element(claimed, "start"),
                    self.element(claimed, "checkpoint", name="more", progress=60, data={"k": "canary"}))
        self.complete("worker-1", claimed, {"r": "canary"})
        self.assertEqual(self.used_keys() & old, set())
        task = self.task(claimed["id"])
        self.assertEqual((task["last_error"], task["data"]), ("canary-1", {"d": "canary"}))

    def test_what_cannot_be_opened_stays_as_it_is(self):
        task = self.enqueue(payload="canary", encrypt=True)
        self.expect(200, "POST", "/v1/keys:destroy", {"namespace": "default"})
        stored = self.stored("SELECT payload FROM task_specs")
        self.enqueue(payload="other", encrypt=True)
        self.rotate_data()
        self.assertIn(stored[0], self.stored("SELECT payload FROM task_specs"))
        self.assertEqual(self.task(task["id"])["payload"], {"encrypted": True, "destroyed": True})

    def test_it_says_how_far_it_is_and_goes_on_after_a_restart(self):
        self.enqueue_all([{"type": "test", "payload": f"canary-{i}", "encrypt": True} for i in range(1000)])
        self.assertIsNone(self.expect(200, "GET", "/v1/keys")["content"])
        first = self.expect(200, "POST", "/v1/keys:rotate", {"data": True})["content"]
        self.assertFalse(first["done"])
        self.assertTrue(0 < first["percent"] < 100, first)
        self.restart()
        self.assertEqual(self.expect(200, "GET", "/v1/keys")["content"], first)
        content = self.rotate_data()
        self.assertEqual((content["since"], content["texts"]), (first["since"], 1000))
        self.assertEqual(len(self.used_keys()), 1)
        self.expect_error(422, "invalid", "POST", "/v1/keys:rotate", {"data": True, "since": "soon"},
                          field="since")

    def enqueue_all(self, tasks):
        self.expect(201, "POST", "/v1/tasks", tasks)


class Trail(EncryptionTest):
    settings = "  per_user: true\n"

    def entries(self):
        return [(e["action"], e["principal"], e["object_kind"], e["object_id"])
                for e in self.expect(200, "GET", "/v1/audit?action=key")["items"][::-1]]

    def test_keys_added_rotated_and_destroyed_are_in_the_audit_trail(self):
        self.assertEqual(self.entries(), [("key.add", "configuration", "key", "k1"),
                                          ("key.current", "configuration", "key", "k1")])
        self.restart()
        self.assertEqual(len(self.entries()), 2, "nothing changed")
        self.enqueue(payload="canary", encrypt=True, user_id="ada")
        self.make_key("k2")
        self.configure(["k1", "k2"], "k2")
        self.restart()
        self.assertEqual(self.key("rotate", "--data").returncode, 0)
        self.expect(200, "POST", "/v1/keys:destroy", {"user_id": "ada"})
        self.configure(["k2"], "k2")
        self.restart()
        self.assertEqual(self.entries()[2:],
                         [("key.add", "configuration", "key", "k2"),
                          ("key.current", "configuration", "key", "k2"), ("key.rotate", "local", "key", "k2"),
                          ("key.rotate", "local", "content", ""), ("key.rotate", "local", "content", ""),
                          ("key.destroy", "local", "user", "ada"), ("key.remove", "configuration", "key", "k1")])
        self.assertEqual(self.server.stop(), 0)
        done = self.perdura("verify", "--audit", "--config", self.config, "--store", self.server.store)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.server.start()


class Off(ApiTest):
    def test_without_keys_nothing_is_encrypted_and_what_must_be_is_refused(self):
        self.enqueue(payload=1)
        self.expect_error(503, "locked", "POST", "/v1/tasks", {"type": "t", "encrypt": True})
        status = self.expect(200, "GET", "/v1/keys")
        self.assertEqual((status["encrypts"], status["data_keys"]), (False, []))
        self.expect_error(409, "conflict", "POST", "/v1/keys:rotate", {})


if __name__ == "__main__":
    unittest.main()
