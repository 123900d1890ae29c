"""Part `mutations` of the fault campaign: a store with logs, checkpoints and an anchor file, changed
by SQL in one random way, again and again, each time in a fresh copy; `perdura verify` must find every
change and name the execution (F-J5 to F-J8, V7). The forger knows how hashes are made and makes
them again where that helps, but does not have the key. Between the changes, untouched copies must
be found whole."""
import collections
import hashlib
import json
import os
import pathlib
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import uuid

import ledger as ledger_module

sys.path.insert(0, str(ledger_module.ROOT / "tests" / "api"))
import harness  # noqa: E402

NAME = "mutations"
SCALE = float(os.environ.get("PERDURA_MUTATIONS_SCALE", "1"))
GOAL, CHUNK = int(1500 * SCALE), 100
RUNS, LINES_MAX = 40, 12
LEVELS = ("DEBUG", "INFO", "WARN", "ERROR", "FATAL")
EMPTIED = "DEBUG"  # the level whose lines retention has emptied


# ---- the store that is changed ----

class Maker(harness.ApiTest):
    """Fills a store as workers do: some tasks with lines and checkpoints, one of them deleted."""
    arguments = ("--config", "server.yaml")

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="perdura-mutations-")
        pathlib.Path(self.folder, "server.yaml").write_text(
            "log_anchor: perdura.anchor\nlog_anchor_every: 100ms\n")
        self.server = harness.Server(self.folder, *self.arguments)
        self.local = threading.local()
        self.addCleanup(self.tear_server_down)
        self.server.start()

    def runTest(self):
        pass

    def fill(self, rng):
        self.register("worker-1")
        last = None
        for run in range(RUNS):
            self.enqueue("a", payload={"run": run})
            task = self.claim()[0]
            self.report_ok("worker-1", task, "start")
            for line in range(rng.randint(1, LINES_MAX)):
                context = {"line": line, "user": {"id": run}} if rng.random() < 0.6 else None
                more = {"context": context} if context else {}
                self.report_ok("worker-1", task, "log", level=rng.choice(LEVELS),
                               message=f"run {run} says {rng.randint(0, 9999)}", **more)
            for step in range(rng.randint(0, 3)):
                self.report_ok("worker-1", task, "checkpoint", name=f"step {step}",
                               progress=10 * step, data={"at": rng.randint(0, 9999)})
            self.complete("worker-1", task, run)
            if run == RUNS // 2:
                self.request("DELETE", f"/v1/tasks/{last['id']}")
                self.server.stop()
                shutil.copy(self.server.store, self.folder + "/older.db")
                self.server.start()
                self.local.connection = None
            last = task
        self.server.stop()
        self.empty()

    def empty(self):
        """By retention, with the server's own key."""
        pathlib.Path(self.folder, "server.yaml").write_text(
            "log_anchor: perdura.anchor\nlog_anchor_every: 100ms\n"
            f"retention:\n  log_levels: {{{EMPTIED.lower()}: 1ms}}\n")
        self.server.start()
        with sqlite3.connect(self.server.store) as db:
            harness.wait_until(lambda: db.execute(
                "SELECT count(*) FROM execution_logs WHERE log_level = ? AND removed_hash IS NULL",
                (EMPTIED,)).fetchone() == (0,), what="retention")
        db.close()
        self.server.stop()


class Base:
    """The store as it was left, what it holds, and its copies."""

    def __init__(self, folder):
        self.folder = folder
        self.store = os.path.join(folder, "perdura.db")
        self.anchor = os.path.join(folder, "perdura.anchor")
        self.copy_path = os.path.join(folder, "copy.db")
        with sqlite3.connect(self.store) as db:
            self.lines = db.execute(
                "SELECT execution_id, seq, log_level, message, context, logged_at, chain_hash, id, "
                "removed_hash FROM execution_logs ORDER BY execution_id, seq").fetchall()
        db.close()
        self.runs = collections.defaultdict(list)
        for line in self.lines:
            self.runs[line[0]].append(line)

    def copy(self):
        for suffix in ("", "-wal", "-shm"):
            pathlib.Path(self.copy_path + suffix).unlink(missing_ok=True)
        shutil.copy(self.store, self.copy_path)
        db = sqlite3.connect(self.copy_path)
        db.execute("PRAGMA synchronous = OFF")
        return db

    def verify(self, *what):
        done = subprocess.run([harness.binary(), "verify", "--store", self.copy_path, "--json", *what],
                              capture_output=True, text=True, cwd=self.folder, timeout=60)
        if done.returncode not in (0, 1) or not done.stdout:
            raise AssertionError(f"verify: {done.returncode}: {done.stderr}")
        return json.loads(done.stdout)

    def verify_logs(self):
        return self.verify("--logs", "--anchor", self.anchor)


# ---- the chain, made again by the forger ----

def field(data):
    return (2 ** 64 - 1 if data is None else len(data)).to_bytes(8, "big") + (data or b"")


def content_hash(message, context):
    return hashlib.sha256(field(message.encode()) + field(
        None if context is None else context.encode())).digest()


def about_hash(attempt, worker, correlation):
    texts = (text.encode() if text else None for text in (worker, correlation))
    return hashlib.sha256(field(attempt.to_bytes(8, "big")) + b"".join(map(field, texts))).digest()


def chain_hash(before, execution, task, seq, level, content, logged_at, line_id=None, about=None):
    """Without what is shown beside a line: as older versions made it."""
    parts = (bytes.fromhex(before) if before else execution, execution, task, seq.to_bytes(8, "big"),
             level.encode(), logged_at.to_bytes(8, "big", signed=True), content)
    if about:
        parts += (line_id, about)
    return hashlib.sha256(b"".join(field(part) for part in parts)).hexdigest()


def chain_again(db, execution):
    """Numbers and hashes of an execution's lines, as if they had been written like this."""
    rows = db.execute("SELECT seq, log_level, message, context, logged_at, removed_hash, id FROM "
                      "execution_logs WHERE execution_id = ? ORDER BY seq", (execution,)).fetchall()
    task, *beside = db.execute("SELECT task_id, attempt_number, worker_id, correlation_id FROM "
                               "executions WHERE id = ?", (execution,)).fetchone() or [None]
    about = about_hash(*beside) if beside else None
    before = None
    for at, (seq, level, message, context, logged_at, removed, line_id) in enumerate(rows, 1):
        content = bytes.fromhex(removed) if removed else content_hash(message, context)
        before = chain_hash(before, execution, task or bytes(16), at, level, content, logged_at,
                            line_id, about)
        db.execute("UPDATE execution_logs SET seq = ?, chain_hash = ? WHERE execution_id = ? AND "
                   "seq = ?", (at, before, execution, seq))


# ---- changes: each makes one and returns the executions that must be named (none: any finding) ----

def at(line):
    return line[0], line[1]


def change_text(text, rng):
    if not text:
        return "all is well"
    place = rng.randrange(len(text))
    return text[:place] + chr((ord(text[place]) - 31) % 90 + 33) + text[place + 1:]


def change_message(base, db, rng):
    line = rng.choice(base.lines)
    db.execute("UPDATE execution_logs SET message = ? WHERE execution_id = ? AND seq = ?",
               (change_text(line[3], rng), *at(line)))
    return [line[0]]


def change_context(base, db, rng):
    line = rng.choice(base.lines)
    new = None if line[4] and rng.random() < 0.3 else json.dumps({"other": rng.random()})
    db.execute("UPDATE execution_logs SET context = ? WHERE execution_id = ? AND seq = ?",
               (new, *at(line)))
    return [line[0]]


def change_level(base, db, rng):
    line = rng.choice(base.lines)
    db.execute("UPDATE execution_logs SET log_level = ? WHERE execution_id = ? AND seq = ?",
               (rng.choice([x for x in LEVELS if x != line[2]]), *at(line)))
    return [line[0]]


def change_time(base, db, rng):
    line = rng.choice(base.lines)
    db.execute("UPDATE execution_logs SET logged_at = logged_at + ? WHERE execution_id = ? AND "
               "seq = ?", (rng.choice((-1, 1, 3600000000)), *at(line)))
    return [line[0]]


def change_id(base, db, rng):
    line = rng.choice(base.lines)
    db.execute("UPDATE execution_logs SET id = ? WHERE execution_id = ? AND seq = ?",
               (uuid.uuid4().bytes, *at(line)))
    return [line[0]]


def change_beside(base, db, rng):
    """What is shown beside the lines of a run."""
    execution = rng.choice(list(base.runs))
    db.execute("UPDATE execution_rows SET " + rng.choice((
        "attempt_number = attempt_number + 1", "worker_id = 'worker-2'")) + " WHERE id = ?",
        (execution,))
    return [execution]


def change_hash(base, db, rng):
    line = rng.choice(base.lines)
    new = rng.choice((None, "", line[6].upper(), line[6][:-1] + ("0" if line[6][-1] != "0" else "1")))
    if new == line[6]:
        new = None
    db.execute("UPDATE execution_logs SET chain_hash = ? WHERE execution_id = ? AND seq = ?",
               (new, *at(line)))
    return [line[0]]


def change_and_chain_again(base, db, rng):
    return [done for done in change_message(base, db, rng) for _ in [chain_again(db, done)]]


def delete_line(base, db, rng):
    line = rng.choice(base.lines)
    db.execute("DELETE FROM execution_logs WHERE execution_id = ? AND seq = ?", at(line))
    return [line[0]]


def delete_and_chain_again(base, db, rng):
    return [done for done in delete_line(base, db, rng) for _ in [chain_again(db, done)]]


def delete_tail(base, db, rng):
    line = rng.choice(base.lines)
    db.execute("DELETE FROM execution_logs WHERE execution_id = ? AND seq >= ?", at(line))
    return [line[0]]


def delete_front(base, db, rng):
    line = rng.choice(base.lines)
    db.execute("DELETE FROM execution_logs WHERE execution_id = ? AND seq <= ?", at(line))
    return [line[0]]


def delete_task(base, db, rng):
    """With all that belongs to it, as an attacker who knows the tables would."""
    execution = rng.choice(list(base.runs))
    task, = db.execute("SELECT task FROM execution_rows WHERE id = ?", (execution,)).fetchone()
    task_id, lane = db.execute("SELECT id, lane FROM task_states WHERE task = ?", (task,)).fetchone()
    for table, key in (("task_states", task), ("task_specs", task), ("execution_rows", task),
                       ("task_event_rows", task)):
        db.execute(f"DELETE FROM {table} WHERE task = ?", (key,))
    for table in ("task_checkpoints", "task_results"):
        db.execute(f"DELETE FROM {table} WHERE task_id = ?", (task_id,))
    db.execute("UPDATE lane_counts SET tasks = tasks - 1 WHERE lane = ? AND status = 'completed'",
               (lane,))
    db.execute("DELETE FROM execution_logs WHERE execution_id = ?", (execution,))
    return [execution]


def insert_line(base, db, rng):
    """In the middle, with all that follows moved on and chained again; or at the end."""
    execution = rng.choice(list(base.runs))
    lines = base.runs[execution]
    place = rng.randint(1, len(lines) + 1)
    for seq in range(len(lines), place - 1, -1):
        db.execute("UPDATE execution_logs SET seq = seq + 1 WHERE execution_id = ? AND seq = ?",
                   (execution, seq))
    db.execute("INSERT INTO execution_logs (id, execution_id, seq, log_level, message, logged_at) "
               "VALUES (?, ?, ?, 'INFO', 'all is well', ?)",
               (uuid.uuid4().bytes, execution, place, lines[0][5]))
    chain_again(db, execution)
    return [execution]


def insert_execution(base, db, rng):
    """Lines of a run that never was."""
    execution = bytearray(rng.choice(list(base.runs)))
    execution[15] ^= rng.randint(1, 255)
    execution = bytes(execution)
    for seq in range(1, rng.randint(2, 5)):
        db.execute("INSERT INTO execution_logs (id, execution_id, seq, log_level, message, logged_at) "
                   "VALUES (?, ?, ?, 'INFO', 'never said', 5)", (uuid.uuid4().bytes, execution, seq))
    chain_again(db, execution)
    return [execution]


def exchange(db, a, b):
    for line, other in ((a, b), (b, a)):
        db.execute("UPDATE execution_logs SET log_level = ?, message = ?, context = ?, logged_at = ?, "
                   "id = ?, removed_hash = ? WHERE execution_id = ? AND seq = ?",
                   (*other[2:6], *other[7:9], *at(line)))


def reorder(base, db, rng):
    lines = rng.choice([lines for lines in base.runs.values() if len(lines) > 1])
    a, b = rng.sample(lines, 2)
    exchange(db, a, b)
    if rng.random() < 0.5:
        chain_again(db, a[0])
    return [a[0]]


def swap_executions(base, db, rng):
    one, other = rng.sample(list(base.runs), 2)
    a, b = rng.choice(base.runs[one]), rng.choice(base.runs[other])
    exchange(db, a, b)
    if rng.random() < 0.5:
        chain_again(db, one)
        chain_again(db, other)
    return [one, other]


def swap_tasks(base, db, rng):
    """Two runs change their tasks, and nothing else."""
    one, other = ((run, db.execute("SELECT task FROM execution_rows WHERE id = ?", (run,)).fetchone()[0])
                  for run in rng.sample(list(base.runs), 2))
    for (run, _), (_, task) in ((one, other), (other, one)):
        db.execute("UPDATE execution_rows SET task = ? WHERE id = ?", (task, run))
    return [one[0], other[0]]


def swap_all(base, db, rng):
    """The whole logs of two runs change places."""
    one, other = rng.sample(list(base.runs), 2)
    db.execute("UPDATE execution_logs SET execution_id = zeroblob(16) WHERE execution_id = ?", (one,))
    db.execute("UPDATE execution_logs SET execution_id = ? WHERE execution_id = ?", (one, other))
    db.execute("UPDATE execution_logs SET execution_id = ? WHERE execution_id = zeroblob(16)",
               (other,))
    chain_again(db, one)
    chain_again(db, other)
    return [one, other]


def empty(db, line, level):
    """As retention does it, with the right hash of what the line said."""
    db.execute("UPDATE execution_logs SET log_level = ?, message = '', context = NULL, "
               "removed_hash = ? WHERE execution_id = ? AND seq = ?",
               (level, content_hash(line[3], line[4]).hex(), *at(line)))


def empty_line(base, db, rng):
    """One that retention has not emptied; perhaps with a level that it may."""
    line = rng.choice([line for line in base.lines if not line[8]])
    empty(db, line, rng.choice((line[2], EMPTIED)))
    if rng.random() < 0.3:
        chain_again(db, line[0])
    return [line[0]]


def change_emptied(base, db, rng):
    """Another level or time, another text in its place or beside its hash, another hash."""
    line = rng.choice([line for line in base.lines if line[8]])
    column, value = rng.choice((("log_level", rng.choice([x for x in LEVELS if x != EMPTIED])),
                                ("logged_at", line[5] + 1), ("message", "all is well"),
                                ("context", "{}"), ("removed_hash", content_hash("x", None).hex()),
                                ("removed_hash", "zz"), ("removed_hash", None)))
    db.execute(f"UPDATE execution_logs SET {column} = ? WHERE execution_id = ? AND seq = ?",
               (value, *at(line)))
    if value is None and rng.random() < 0.7:
        db.execute("UPDATE execution_logs SET message = 'it was well' WHERE execution_id = ? AND "
                   "seq = ?", at(line))
    return [line[0]]


def trade_emptied(base, db, rng):
    """Hides one line as if it were an emptied one of the same run, which is shown in its place."""
    runs = [lines for lines in base.runs.values()
            if any(line[8] for line in lines) and any(not line[8] for line in lines)]
    lines = rng.choice(runs)
    hidden = rng.choice([line for line in lines if not line[8]])
    shown = rng.choice([line for line in lines if line[8]])
    empty(db, hidden, EMPTIED)
    db.execute("UPDATE execution_logs SET log_level = ?, message = 'all is well', "
               "removed_hash = NULL WHERE execution_id = ? AND seq = ?", (hidden[2], *at(shown)))
    if rng.random() < 0.5:
        chain_again(db, hidden[0])
    return [hidden[0]]


def delete_blanks(base, db, rng):
    """The records that say what was emptied, and perhaps all behind them."""
    found = [row[0] for row in db.execute(
        "SELECT serial FROM log_anchors WHERE record LIKE '%\"kind\":\"blanks\"%'")]
    db.execute("DELETE FROM log_anchors WHERE serial = ?" if rng.random() < 0.5 else
               "DELETE FROM log_anchors WHERE serial >= ?", (rng.choice(found),))
    return []


def change_record(base, db, rng):
    serial, record = rng.choice(db.execute("SELECT serial, record FROM log_anchors").fetchall())
    new = change_text(record, rng)
    db.execute("UPDATE log_anchors SET record = ?, record_hash = ? WHERE serial = ?",
               (new, hashlib.sha256(new.encode()).hexdigest(), serial))
    return []


def change_signature(base, db, rng):
    db.execute("UPDATE log_anchors SET signature = ? WHERE serial = (SELECT serial FROM log_anchors "
               "ORDER BY random() LIMIT 1)", (rng.choice(("", "00" * 64)),))
    return []


def delete_records(base, db, rng):
    serials = [row[0] for row in db.execute("SELECT serial FROM log_anchors ORDER BY serial")]
    first = rng.choice(serials)
    last = rng.choice([x for x in serials if x >= first] + [serials[-1]] * 5)
    db.execute("DELETE FROM log_anchors WHERE serial BETWEEN ? AND ?", (first, last))
    return []


def forge_cut(base, db, rng):
    """Removes a run and says, without the key, that retention did."""
    execution = rng.choice(list(base.runs))
    lines = base.runs[execution]
    serial, before = db.execute("SELECT serial, record_hash FROM log_anchors ORDER BY serial DESC "
                                "LIMIT 1").fetchone()
    record = json.dumps({"serial": serial + 1, "previous": before,
                         "at": "2026-11-15T12:00:00.000000Z", "kind": "cuts", "lines": 1,
                         "reason": "retention",
                         "items": [[str(uuid.UUID(bytes=execution)), len(lines), lines[-1][6],
                                    len(lines)]]}, separators=(",", ":"))
    db.execute("DELETE FROM execution_logs WHERE execution_id = ?", (execution,))
    db.execute("INSERT INTO log_anchors (serial, record, record_hash, signature, created_at) "
               "VALUES (?, ?, ?, '', 1794744000000000)",
               (serial + 1, record, hashlib.sha256(record.encode()).hexdigest()))
    return [execution]


def set_back(base, db, rng):
    """The whole store as it was some time ago."""
    db.close()
    shutil.copy(base.folder + "/older.db", base.copy_path)
    return []


def change_checkpoint(base, db, rng):
    column = rng.choice(("checkpoint_name", "progress_percent", "recoverable_data", "seq",
                         "checkpoint_hash", "file_state", "step_description"))
    row, = rng.choice(db.execute("SELECT rowid FROM task_checkpoints").fetchall())
    old, = db.execute(f"SELECT {column} FROM task_checkpoints WHERE rowid = ?", (row,)).fetchone()
    new = (old + 50 if isinstance(old, int) else change_text(old, rng) if old else '{"made":"up"}')
    db.execute(f"UPDATE task_checkpoints SET {column} = ? WHERE rowid = ?", (new, row))
    return []


def swap_checkpoints(base, db, rng):
    rows = db.execute("SELECT rowid, recoverable_data, checkpoint_hash FROM task_checkpoints"
                      ).fetchall()
    a, b = rng.sample([row for row in rows], 2)
    if a[1] == b[1]:
        b = (b[0], '{"at":-1}', b[2])
    for row, other in ((a, b), (b, a)):
        db.execute("UPDATE task_checkpoints SET recoverable_data = ?, checkpoint_hash = ? WHERE "
                   "rowid = ?", (other[1], other[2], row[0]))
    return []


LOG_CHANGES = (change_message, change_id, change_beside, change_context, change_level, change_time, change_hash,
               change_and_chain_again, delete_line, delete_and_chain_again, delete_tail, delete_front,
               delete_task, insert_line, insert_execution, reorder, swap_executions, swap_tasks, swap_all,
               empty_line, change_emptied, trade_emptied, delete_blanks, change_record,
               change_signature, delete_records, forge_cut, set_back)
CHECKPOINT_CHANGES = (change_checkpoint, swap_checkpoints)
CHANGES = LOG_CHANGES + CHECKPOINT_CHANGES


# ---- rounds ----

def one_change(base, change, rng, row):
    db = base.copy()
    state = rng.getstate()
    named = change(base, db, rng)
    if change is not set_back:
        db.commit()
        db.close()
    report = base.verify("--checkpoints") if change in CHECKPOINT_CHANGES else base.verify_logs()
    told = " ".join(finding["subject"] for finding in report["findings"])
    row["mutations"] += 1
    row["kinds"][change.__name__] = row["kinds"].get(change.__name__, 0) + 1
    if report["ok"]:
        row["findings"].append(f"{change.__name__} was not found; random state {hash(state)}")
    elif not all(str(uuid.UUID(bytes=execution)) in told for execution in named):
        row["findings"].append(f"{change.__name__} was found, but another execution was named: "
                               f"{told[:200]}")
    else:
        row["found"] += 1


def untouched(base, row):
    base.copy().close()
    row["untouched"] += 1
    for report in (base.verify_logs(), base.verify()):
        if not report["ok"]:
            row["findings"].append(f"an untouched copy: {report['findings'][:2]}")


def chunk(seed, count):
    rng = random.Random(seed)
    row = {"mutations": 0, "found": 0, "untouched": 0, "kinds": {}, "findings": []}
    maker = Maker()
    maker.setUp()
    try:
        maker.fill(rng)
        base = Base(maker.folder)
        row["lines"] = len(base.lines)
        began = time.monotonic()
        for number in range(count):
            if number % 20 == 0:
                untouched(base, row)
            one_change(base, CHANGES[number % len(CHANGES)], rng, row)
        row["seconds"] = round(time.monotonic() - began, 1)
    finally:
        maker.doCleanups()
    return row


def run(ledger, say):
    while ledger.total(NAME, "mutations") < GOAL:
        seed = f"mutations.{len(ledger.rows(NAME))}"
        row = chunk(seed, min(CHUNK, GOAL))
        ledger.add(NAME, kind="F-J5", seed=seed, **row)
        say(f"{row['mutations']} changes of {row['lines']} lines, found {row['found']}, "
            f"{row['untouched']} untouched copies, findings: {len(row['findings'])}")


def summary(ledger):
    done, found = ledger.total(NAME, "mutations"), ledger.total(NAME, "found")
    if not done:
        return []
    return [("F-J5, F-J6, F-J7, F-J8, V7", f"{done:,} random changes of logs, signed records and "
             "checkpoints by SQL, verified with the anchor file", f"not found {done - found}, "
             f"false alarms on {ledger.total(NAME, 'untouched'):,} untouched copies "
             f"{sum('untouched' in text for text in ledger.findings(NAME))}")]


def report(ledger):
    rows = ledger.rows(NAME)
    if not rows:
        return ""
    kinds = collections.Counter()
    for row in rows:
        kinds.update(row["kinds"])
    lines = ["## Changes of logs and checkpoints", "",
             "One change per copy of a store, by SQL, by an attacker who knows the tables and makes "
             "hashes again where that helps, but does not have the key. Found means: exit code 1, and the "
             "execution is named where it is one.", "", "| change | times |", "|---|---:|"]
    lines += [f"| {kind.replace('_', ' ')} | {count:,} |" for kind, count in sorted(kinds.items())]
    return "\n".join(lines + ["", f"Found {ledger.total(NAME, 'found'):,} of "
                              f"{ledger.total(NAME, 'mutations'):,}.", ""])


def not_tested(ledger):
    return ["lines removed from the end of a run before their first record, by an attacker who writes "
            "to the store: up to `log_anchor_every` nothing outside the store knows of them"]
