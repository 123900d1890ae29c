"""Part `points` of the fault campaign: every fault point of the source is reached and the server is
killed at it, again and again (F-A1 to F-A18, F-A21); a point that cannot be reached is a finding.
Then kill -9 at single writes of commits and checkpoints (F-A16), and abort() with a million tasks
stored (F-A20).

    python3 tests/campaign/faults.py --parts points
"""
import collections
import http.client
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

import ledger as ledger_module

sys.path.insert(0, str(ledger_module.ROOT / "tests" / "crash"))
import crash_harness  # noqa: E402
import intake_kills  # noqa: E402
import point_work  # noqa: E402
import write_kills  # noqa: E402

NAME = "points"
KILLS_EACH = int(os.environ.get("PERDURA_POINT_KILLS", "12"))
WRITE_KILLS = int(os.environ.get("PERDURA_WRITE_KILLS", "200"))
STORED = int(os.environ.get("PERDURA_STORED", "1000000"))
LAPS = 6            # a point not reached in so many laps is not reached at all
FIRST_CLAIM_S = 5   # F-A20
MIGRATIONS = ("before.migration", "after.migration", "migrate.statement")


def run(ledger, say):
    if not crash_harness.fault_binary():
        raise SystemExit("points: PERDURA_FAULTS_BUILD names no build with fault points")
    done = {row["point"] for row in ledger.rows(NAME, kind="point")}
    names = point_work.names_in(ledger_module.ROOT / "src")
    for name in names:
        if name not in done:
            row = kills_of(name)
            ledger.add(NAME, kind="point", point=name, **row)
            say(f"{name}: {row['kills']} kills, {row['seconds']} s"
                + (f", FINDINGS: {row['findings']}" if row["findings"] else ""))
    missing = WRITE_KILLS - ledger.total(NAME, "kills", kind="writes")
    if missing > 0:
        seed = f"writes.{len(ledger.rows(NAME, kind='writes'))}"
        ledger.add(NAME, kind="writes", seed=seed, **write_kills.run(missing, seed, say))
    if not ledger.rows(NAME, kind="abort"):
        ledger.add(NAME, kind="abort", **abort_with_many(say))


# ---- every point ----

def kills_of(name):
    began = time.monotonic()
    folder = tempfile.mkdtemp(prefix="perdura-point-")
    try:
        kills, findings = killer_of(name)(name, folder)
    except Exception as error:
        kills, findings = 0, [f"{name}: {error!r}"]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if kills == 0 and not findings:
        findings = [f"point {name} was never reached"]
    return {"kills": kills, "findings": findings, "seconds": round(time.monotonic() - began, 1)}


def killer_of(name):
    if name in MIGRATIONS:
        return migration_kills
    return sql_kills if name.startswith("intake.") else server_kills


def sql_kills(name, folder):
    """Only a store on PostgreSQL passes them."""
    return intake_kills.kills(name, folder, KILLS_EACH)


def server_kills(name, folder):
    work = point_work.PointWork(folder)
    kills, findings = 0, []
    try:
        work.run_until_killed(None, 0, 1)  # something to recover and to remove
        for i in range(KILLS_EACH):
            nth = 1 if name.startswith(point_work.ONCE) else 1 + i % 3
            kills += work.run_until_killed(name, nth, LAPS)
            findings += [f"{name}:{nth}: {text}" for text in work.findings()]
            if findings or (i == 2 and kills == 0):
                break
    finally:
        work.close()
    return kills, findings


def migrate(binary, store, *words, fault=None):
    env = {k: v for k, v in os.environ.items() if not k.startswith("PERDURA_")}
    if fault:
        env["PERDURA_FAULT"] = fault
    return subprocess.run([binary, "migrate", *words, "--store", store], env=env,
                          capture_output=True, text=True, timeout=60)


def migration_kills(name, folder):
    """Killed in `migrate up` of a new store: the next one finishes it, and the store is whole."""
    kills, findings = 0, []
    for i in range(KILLS_EACH):
        nth = 1 + i * 5 if name == "migrate.statement" else 1
        store = os.path.join(folder, f"{i}.db")
        done = migrate(crash_harness.fault_binary(), store, "up", fault=f"{name}:{nth}")
        kills += done.returncode == -signal.SIGKILL
        for command in (["migrate", "up"], ["verify"]):
            again = subprocess.run([crash_harness.plain_binary(), *command, "--store", store],
                                   capture_output=True, text=True, timeout=60)
            if again.returncode != 0:
                findings.append(f"{name}:{nth}: {command[0]} after it: {again.stderr[:300]}")
    return kills, findings


# ---- abort() with a million tasks stored ----

def abort_with_many(say):
    folder = tempfile.mkdtemp(prefix="perdura-abort-")
    server = crash_harness.CrashServer(folder)
    try:
        return abort_once(server, say)
    finally:
        server.kill()
        server.close()
        shutil.rmtree(folder, ignore_errors=True)


def post(server, path, body):
    connection = http.client.HTTPConnection(*server.address, timeout=120)
    try:
        connection.request("POST", path, json.dumps(body))
        reply = connection.getresponse()
        text = reply.read()
        assert reply.status in (200, 201), f"POST {path} answered {reply.status}: {text[:300]}"
        return json.loads(text)
    finally:
        connection.close()


def claim(server, worker, count):
    post(server, "/v1/workers", {"id": worker, "hostname": "h", "pool_size": 9,
                                 "queues": ["default"], "version": "1"})
    return post(server, f"/v1/workers/{worker}:claim", {"max": count, "wait_ms": 0})["tasks"]


def abort_once(server, say):
    """A tenth ended, some held, the rest waits; SIGABRT; the first claim after the next start."""
    server.start(lease="30s")
    specs = [{"type": "t", "payload": {"n": i}} for i in range(10000)]
    acknowledged = 0
    while acknowledged < STORED:
        count = min(len(specs), STORED - acknowledged)
        acknowledged += len(post(server, "/v1/tasks", specs[:count])["items"])
        if acknowledged % 200000 == 0:
            say(f"{acknowledged:,} tasks stored")
    completed = 0
    while completed < STORED // 10:
        tasks = claim(server, "w", 1000)
        post(server, "/v1/workers/w:report", [
            {"task_id": t["id"], "lease_token": t["lease_token"], "op": "complete", "result": 1}
            for t in tasks])
        completed += len(tasks)
    held = len(claim(server, "w", 500))
    return restart_after(server, signal.SIGABRT, acknowledged, completed, held)


def restart_after(server, signum, acknowledged, completed, held):
    wal = pathlib.Path(server.store + "-wal")
    wal_bytes = wal.stat().st_size
    server.kill(signum)
    began = time.monotonic()
    server.start(lease="30s")
    listening_ms = 1000 * (time.monotonic() - began)
    tasks = claim(server, "x", 1)
    first_ms = 1000 * (time.monotonic() - began)
    server.kill()
    findings = []
    if first_ms > 1000 * FIRST_CLAIM_S or not tasks:
        findings.append(f"F-A20: the first claim took {first_ms:.0f} ms")
    with sqlite3.connect(f"file:{server.store}?mode=ro", uri=True) as db:
        counts = collections.Counter(dict(db.execute(
            "SELECT status, count(*) FROM tasks GROUP BY status")))
    expected = {"completed": completed, "claimed": held + len(tasks),
                "pending": acknowledged - completed - held - len(tasks)}
    if dict(counts) != expected:
        findings.append(f"F-A20: stored are {dict(counts)}, expected {expected}")
    code, text = server.verify()
    if code != 0:
        findings.append(f"F-A20: verify: {text[:500]}")
    return {"stored": acknowledged, "listening_ms": round(listening_ms, 1),
            "first_claim_ms": round(first_ms, 1), "wal_bytes": wal_bytes, "findings": findings}


# ---- the report ----

def killed_at(ledger):
    """Kills per point, of this part and of the kill loop."""
    at = collections.Counter()
    for row in ledger.rows(NAME, kind="point"):
        at[row["point"]] += row["kills"]
    for row in ledger.rows("kills", kind="round"):
        at.update({k: v for k, v in row.get("at_points", {}).items() if k != "any moment"})
    return at


def summary(ledger):
    at = killed_at(ledger)
    if not at:
        return []
    names = point_work.names_in(ledger_module.ROOT / "src")
    rows = [("F-A1–A18, F-A21", f"a kill at each of the {len(names)} fault points of the source, "
             f"{sum(at.values()):,} in all",
             f"{sum(at[name] > 0 for name in names)} of {len(names)} reached, "
             f"findings {len(ledger.findings(NAME, kind='point'))}")]
    writes = ledger.total(NAME, "kills", kind="writes")
    if writes:
        rows.append(("F-A16", f"{writes} kills at single writes of commits and checkpoints",
                     f"stores damaged {len(ledger.findings(NAME, kind='writes'))}"))
    for row in ledger.rows(NAME, kind="abort")[-1:]:
        rows.append(("F-A20", f"abort() with {row['stored']:,} tasks stored, restart",
                     f"first claim after {row['first_claim_ms'] / 1000:.2f} s (limit "
                     f"{FIRST_CLAIM_S} s)"))
    return rows


def report(ledger):
    at = killed_at(ledger)
    if not at:
        return ""
    names = point_work.names_in(ledger_module.ROOT / "src")
    lines = ["## Every fault point", "",
             "A point is a place in the source where a test build can be killed. `before.` and "
             "`after.` stand around the commit of a batch with such a request; the others are "
             "inside transactions, timers, retention, the outbox, migrations, the start, the drain "
             "and the worker. Kills at each, the kill loop's included:", ""]
    lines += [", ".join(f"{name} {at[name]}" for name in names) + ".", ""]
    never = [name for name in names if not at[name]]
    lines += [f"Never reached: {', '.join(never) if never else 'none'}.", ""]
    for row in ledger.rows(NAME, kind="abort")[-1:]:
        lines += [f"With {row['stored']:,} tasks stored and a WAL of "
                  f"{row['wal_bytes'] / 2 ** 20:.0f} MiB the server was aborted: it listened again "
                  f"after {row['listening_ms']:.0f} ms and had answered a first claim after "
                  f"{row['first_claim_ms']:.0f} ms (F-A20).", ""]
    at_writes = collections.Counter()
    for row in ledger.rows(NAME, kind="writes"):
        at_writes.update(row.get("at", {}))
    if at_writes:
        lines += ["Kills at a single write of the store's files (F-A16): "
                  + ", ".join(f"{what}: {count}" for what, count in sorted(at_writes.items()))
                  + ".", ""]
    return "\n".join(lines)
