"""An attacker who can write everything in a store, knows every format and makes every hash again
that needs no key, but has neither the log key nor the anchor file. `Stand` is a store with logs
that a server made; `Case` is a copy of it that he changes, that a server serves with the key
afterwards, and that is verified with nothing but the public key and the anchor file. On SQLite and
PostgreSQL."""
import collections
import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import uuid

import ledger as ledger_module

sys.path.insert(0, str(ledger_module.ROOT / "tests" / "api"))
sys.path.insert(0, str(ledger_module.ROOT / "tests" / "postgres"))
import harness  # noqa: E402
import pq  # noqa: E402
from mutations import about_hash, chain_hash, content_hash  # noqa: E402

RUNS, SILENT, HELD = 26, 6, 6
HOUR_MS = 3600 * 1000  # a run stays open as long as the test takes
GONE = 55  # deleted ones: so many records that old ones are trimmed
LEVELS = ("DEBUG", "INFO", "WARN", "ERROR")
KEY = "5e" * 32  # the seed; only servers have it
BACK_US = 40 * 86400 * 1000000
CONFIG = """log_key: {folder}/key
log_anchor: {folder}/anchor
log_anchor_every: {every}
retention:
  completed: 30d
  failed: 30d
  logs: 30d
"""
FORGET = ("DELETE FROM log_anchors", "DELETE FROM log_heads",
          "DELETE FROM store_info WHERE name IN ('log_public_key', 'log_level_DEBUG')")
STRICT = """  log_levels: {debug: 1ms}
handlers:
  - {type: short, command: ["true"], retention_logs: 1ms}
"""


class Client(harness.ApiTest):
    """What a worker does, said to one server."""

    def __init__(self, server):
        super().__init__()
        self.server = server
        self.local = threading.local()

    def runTest(self):
        pass

    def logged(self, kind, lines, rng, end="complete"):
        self.enqueue(kind, tags=["logged"], correlation_id=f"order-{kind}", timeout_ms=HOUR_MS)
        task = self.claim()[0]
        for number in range(lines):
            self.say(task, rng.choice(LEVELS), f"{kind} says {number}")
        if end == "complete":
            self.complete("worker-1", task)
        elif end == "fail":
            self.report_ok("worker-1", task, "fail", error="no", retryable=False)
        return task

    def say(self, task, level, text):
        self.report_ok("worker-1", task, "log", level=level, message=text, context={"n": 1})


# ---- dialects ----

class Sqlite:
    """One file; copies of it are copies."""
    name = "sqlite"
    specs = "task_options"  # where correlation ids are,
    link = "options"  # and what leads there

    def new(self, folder, base=None):
        store = os.path.join(folder, "store.db")
        if base:
            shutil.copy(base, store)
        return store

    def drop(self, store):
        pass

    def verified(self, store, folder):
        """Without a key beside it."""
        copy = os.path.join(folder, "alone.db")
        for suffix in ("", "-wal"):
            pathlib.Path(copy + suffix).unlink(missing_ok=True)
            if os.path.exists(store + suffix):
                shutil.copy(store + suffix, copy + suffix)
        return copy

    def run(self, store, statements):
        with contextlib.closing(sqlite3.connect(store, timeout=60)) as db:
            for statement in statements:
                db.execute(statement)
            db.commit()

    def rows(self, store, query):
        with contextlib.closing(sqlite3.connect(store, timeout=60)) as db:
            return [[value.hex() if isinstance(value, bytes) else value for value in row]
                    for row in db.execute(query)]

    def uid(self, hex_id):
        return f"x'{hex_id}'"

    def columns(self, table):
        return f"SELECT name FROM pragma_table_info('{table}')"

    def time(self, at_us):
        return str(at_us)

    def micros(self, column):
        return column


class Postgres:
    """A database; copies are made with it as the template."""
    name = "postgres"
    specs = "task_specs"
    link = "correlation_id"

    def __init__(self, server):
        self.server, self.count = server, 0

    def url(self, name):
        return self.server.url.rsplit("/", 1)[0] + "/" + name

    def new(self, folder, base=None):
        self.count += 1
        name = f"forged_{os.getpid()}_{self.count}"
        template = f" TEMPLATE {base.rsplit('/', 1)[1]}" if base else ""
        pq.rows(self.server.url, f"CREATE DATABASE {name}{template}")
        return self.url(name)

    def drop(self, store):
        pq.rows(self.server.url, f"DROP DATABASE {store.rsplit('/', 1)[1]} WITH (FORCE)")

    def verified(self, store, folder):
        return store

    def run(self, store, statements):
        pq.rows(store, "BEGIN;" + ";".join(statements) + ";COMMIT", fresh=True)

    def rows(self, store, query):
        (text,), = pq.rows(store, f"SELECT coalesce(json_agg(to_json(x)), '[]') FROM ({query}) x")
        return [[self.plain(value) for value in row.values()] for row in json.loads(text)]

    def plain(self, value):
        try:
            return uuid.UUID(value).hex if isinstance(value, str) and len(value) == 36 else value
        except ValueError:
            return value

    def uid(self, hex_id):
        return f"'{uuid.UUID(hex_id)}'"

    def columns(self, table):
        return f"SELECT column_name AS name FROM information_schema.columns WHERE table_name = '{table}'"

    def time(self, at_us):
        return f"(timestamptz 'epoch' + {at_us} * interval '1 microsecond')"

    def micros(self, column):
        return f"(extract(epoch FROM {column}) * 1000000)::bigint"


def quote(text):
    return "NULL" if text is None else "'" + str(text).replace("'", "''") + "'"


# ---- the store ----

class Stand:
    """Runs that ended with lines, runs that said nothing, runs under way; adopted: all of them from
    before the key."""

    def __init__(self, dialect, rng, adopted=False):
        self.dialect = dialect
        self.folder = tempfile.mkdtemp(prefix="perdura-forger-")
        self.store = dialect.new(self.folder)
        pathlib.Path(self.folder, "key").write_text(KEY + "\n")
        os.chmod(os.path.join(self.folder, "key"), 0o600)
        self.anchor = os.path.join(self.folder, "anchor")
        self.fill(rng)
        if adopted:
            self.adopt()

    def close(self):
        self.dialect.drop(self.store)
        shutil.rmtree(self.folder, ignore_errors=True)

    def server(self, folder, store, more="", every="100ms"):
        path = os.path.join(folder, "server.yaml")
        pathlib.Path(path).write_text(CONFIG.format(folder=folder, every=every) + more)
        server = harness.Server(folder, "--config", path, "--lease", "1h")
        server.store = store
        return server.start()

    def settled(self, store):
        return self.dialect.rows(store, "SELECT count(*) AS n FROM log_heads WHERE lines > 0 AND "
                                 "closed = ''") == [[0]]

    def fill(self, rng):
        server = self.server(self.folder, self.store)
        client = Client(server)
        try:
            client.register()
            for _ in range(GONE):
                gone = client.logged("gone", 1, rng)
                client.expect(204, "DELETE", f"/v1/tasks/{gone['id']}")
            for number in range(RUNS):
                client.logged(f"run{number}", rng.randint(2, 7), rng,
                              "fail" if number % 5 == 4 else "complete")
            for number in range(SILENT):
                client.logged(f"silent{number}", 0, rng)
            self.held = [client.logged(f"held{number}", rng.randint(2, 5), rng, "")
                         for number in range(HELD)]
            harness.wait_until(lambda: self.settled(self.store), what="a record")
            self.earlier = self.dialect.rows(self.store, self.notes_query())
            for task in self.held:
                client.say(task, "ERROR", "and it failed")
            harness.wait_until(lambda: self.settled(self.store) and self.dialect.rows(
                self.store, "SELECT count(*) AS n FROM log_heads WHERE closed = ''") == [[HELD]],
                what="the end of all runs that ended")
        finally:
            client.doCleanups()
            server.stop()
        report = self.verify(self.store, self.folder)
        if not report["ok"]:
            raise AssertionError(f"untouched: {report}")
        self.public_key = report["public_key"]

    def adopt(self):
        self.dialect.run(self.store, FORGET)
        open(self.anchor, "w", encoding="utf-8").close()
        server = self.server(self.folder, self.store)
        try:
            harness.wait_until(lambda: self.dialect.rows(
                self.store, "SELECT count(*) AS n FROM log_heads WHERE closed NOT IN ('', 'named')") == [[RUNS]],
                what="the end of all runs that ended")
        finally:
            server.stop()
        report = self.verify(self.store, self.folder)
        if not report["ok"] or not report["checked"]["log lines from before the key"]:
            raise AssertionError(f"adopted: {report}")

    def notes_query(self):
        return ("SELECT execution_id, seq, chain_hash, lines, task_id, task_type, "
                f"{self.dialect.micros('logged_at')} AS at, closed, mac, from_hash FROM log_heads "
                "ORDER BY execution_id, seq")

    def verify(self, store, folder, *more):
        """With the public key and the anchor file, and nothing else."""
        keys = ("--public-key", self.public_key) if hasattr(self, "public_key") else ()
        done = subprocess.run([harness.binary(), "verify", "--json", "--logs", "--anchor",
                               os.path.join(folder, "anchor"), *keys, *more, "--store",
                               self.dialect.verified(store, folder)],
                              capture_output=True, text=True, cwd=folder, timeout=240, check=False)
        if done.returncode not in (0, 1) or not done.stdout:
            raise AssertionError(f"verify: {done.returncode}: {done.stderr}")
        return json.loads(done.stdout)


class Case:
    """A copy, and what it holds."""

    def __init__(self, stand):
        self.stand, self.dialect = stand, stand.dialect
        self.folder = tempfile.mkdtemp(prefix="perdura-forged-")
        self.store = self.dialect.new(self.folder, stand.store)
        for name in ("key", "anchor"):
            shutil.copy(os.path.join(stand.folder, name), self.folder)
        self.statements = []
        self.deleted = []  # tasks that a user deletes while it is served, not knowing
        self.finished = []  # runs under way that then end, and whose tasks are deleted
        self.dark = {}  # runs under way, and what he does about them beside a server
        self.harmless = set()  # where that changed nothing
        self.load()

    def close(self):
        self.dialect.drop(self.store)
        shutil.rmtree(self.folder, ignore_errors=True)

    def load(self):
        micros = self.dialect.micros
        self.runs, self.tasks, self.status = {}, {}, {}
        for execution, task, status in self.rows(
                "SELECT e.id, s.id AS task_id, e.status FROM execution_rows e "
                "JOIN task_states s ON s.task = e.task ORDER BY e.id"):
            self.runs[execution], self.tasks[execution] = [], task
            self.status[execution] = status
        self.ids, self.beside = {}, {}
        for execution, *line, line_id in self.rows(
                "SELECT execution_id, seq, log_level, message, context, "
                f"{micros('logged_at')} AS at, id FROM execution_logs ORDER BY execution_id, seq"):
            self.runs[execution].append(tuple(line))
            self.ids[execution, line[0]] = line_id
        for execution, *beside in self.rows("SELECT id, attempt_number, worker_id, correlation_id "
                                            "FROM execution_rows"):
            self.beside[execution] = about_hash(*beside)
        self.notes = {note[0]: note for note in self.rows(self.stand.notes_query())}
        self.ended = [e for e, lines in self.runs.items() if lines and self.status[e] != "running"]
        self.silent = [e for e, lines in self.runs.items() if not lines]
        self.held = [e for e, lines in self.runs.items() if lines and self.status[e] == "running"]
        self.now = max(line[4] for lines in self.runs.values() for line in lines)

    def rows(self, query):
        return self.dialect.rows(self.store, query)

    def put(self, *statements):
        self.statements += statements

    def apply(self):
        self.dialect.run(self.store, self.statements)
        self.statements = []

    def verify(self, *more):
        return self.stand.verify(self.store, self.folder, *more)

    def uid(self, hex_id):
        return self.dialect.uid(hex_id)

    def where(self, execution):
        return f"execution_id = {self.uid(execution)}"

    def write(self, execution, lines, task=None):
        """All lines of an execution in place of what it had, chained as a server would; the hash of
        the last one."""
        self.put(f"DELETE FROM execution_logs WHERE {self.where(execution)}")
        before = None
        for seq, (old_seq, level, message, context, at) in enumerate(lines, 1):
            line_id = self.ids.get((execution, old_seq), uuid.uuid4().hex)
            before = chain_hash(before, bytes.fromhex(execution),
                                bytes.fromhex(task or self.tasks[execution]), seq, level,
                                content_hash(message, context), at, bytes.fromhex(line_id),
                                self.beside[execution])
            self.insert(execution, seq, level, message, context, at, before, line_id)
        return before

    def insert(self, execution, seq, level, message, context, at, chained, line_id=None):
        self.put("INSERT INTO execution_logs (id, execution_id, seq, log_level, message, context, "
                 f"logged_at, chain_hash) VALUES ({self.uid(line_id or uuid.uuid4().hex)}, "
                 f"{self.uid(execution)}, {seq}, '{level}', {quote(message)}, {quote(context)}, {self.dialect.time(at)}, "
                 f"{quote(chained)})")

    def note(self, execution, seq, chained, lines, at, closed="", mac=""):
        """In place of all notes there are of it."""
        old = self.notes.get(execution)
        self.put_notes(execution, [[execution, seq, chained, lines, self.tasks[execution],
                                    old[5] if old else "x", at, closed, mac, None]])

    def put_notes(self, execution, notes):
        """As notes_query gives them, in place of all notes there are of it but those of cuts."""
        self.put(f"DELETE FROM log_heads WHERE {self.where(execution)} AND closed <> 'cut'")
        for _, seq, chained, lines, task, kind, at, closed, mac, from_hash in notes:
            self.put("INSERT INTO log_heads (execution_id, seq, chain_hash, lines, task_id, task_type, "
                     f"logged_at, closed, mac, from_hash) VALUES ({self.uid(execution)}, {seq}, "
                     f"{quote(chained)}, {lines}, {self.uid(task) if task else 'NULL'}, {quote(kind)}, "
                     f"{self.dialect.time(at)}, {quote(closed)}, {quote(mac)}, {quote(from_hash)})")

    def notes_of(self, execution):
        return [note for note in self.rows(self.stand.notes_query())
                if note[0] == execution and note[7] != "cut"]

    def forget_records(self):
        """A store from before there was a key, with an anchor file that begins."""
        self.put(*FORGET)
        open(os.path.join(self.folder, "anchor"), "w", encoding="utf-8").close()

    def unsigned_record(self, serial, at, items):
        """Heads, as a server without a key writes them; in the place of the one there is."""
        text = json.dumps({"serial": serial, "previous": "00" * 32, "at": at, "kind": "heads",
                           "lines": 0, "items": items}, separators=(",", ":"))
        self.put(f"DELETE FROM log_anchors WHERE serial = {serial}",
                 "INSERT INTO log_anchors (serial, record, record_hash, signature, created_at) VALUES "
                 f"({serial}, {quote(text)}, '{hashlib.sha256(text.encode()).hexdigest()}', '', "
                 f"{self.dialect.time(self.now - BACK_US)})")

    # A server with the key.

    def serve(self, during=None, retention=True, more="", config=STRICT, every="100ms"):
        """From its start until signing, and retention by the records that are there, are done;
        during(client) in between. every: so often a record is made."""
        server = self.stand.server(self.folder, self.store, config + more, every)
        client = Client(server)
        try:
            harness.wait_until(lambda: self.stand.settled(self.store) and (not retention or self.rows(
                "SELECT 1 AS one FROM store_info WHERE name = 'log_level_DEBUG'")), what="retention")
            if during:
                during(client)
                harness.wait_until(lambda: self.stand.settled(self.store), what="a record")
        finally:
            client.doCleanups()
            server.stop()
        return server.log()

    def kept(self, execution):
        """Are all its lines there as they were, but for what retention may empty?"""
        stored = self.rows("SELECT seq, log_level, message, removed_hash FROM execution_logs WHERE "
                           f"{self.where(execution)} ORDER BY seq")
        return len(stored) == len(self.runs[execution]) and all(
            new[:2] == list(old[:2]) and (new[2] == old[2] or (old[1] == "DEBUG" and new[3]))
            for new, old in zip(stored, self.runs[execution]))


# ---- the frame of both campaigns: forgeries.py, schemas.py ----


def run(ledger, say, name, goal, attack):
    """Rounds of attacks on each store until half of the goal is in the ledger."""
    for store in ("sqlite", "postgres"):
        while ledger.total(name, "attacks", store=store) < goal / 2:
            seed = f"{name}.{store}.{len(ledger.rows(name, store=store))}"
            row = attack(store, seed)
            ledger.add(name, kind="F-J5", seed=seed, **row)
            say(f"{store}: {row['attacks']} attacks, found {row['found']}, findings: "
                f"{len(row['findings'])}, {row['seconds']} s")


def report(ledger, name, title, text):
    """How often each attack was tried, as a section of the fault report."""
    rows = ledger.rows(name)
    if not rows:
        return ""
    kinds = collections.Counter()
    for row in rows:
        kinds.update(row["kinds"])
    lines = [title, "", text, "", "| attack | times |", "|---|---:|"]
    lines += [f"| {kind.replace('_', ' ')} | {count:,} |" for kind, count in sorted(kinds.items())]
    return "\n".join(lines + ["", f"Found {ledger.total(name, 'found'):,} of "
                              f"{ledger.total(name, 'attacks'):,}.", ""])
