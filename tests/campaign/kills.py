"""Part `kills` of the fault campaign: at least 10,000 kill -9 of server and worker processes under
full load (F-A1 to F-A19, F-A21), in rounds of 100, two rounds side by side; and a few kills with
the default lease of 30 s, and kills of a program that embeds the store. One line of the ledger per
round; a round is given by its seed:

    python3 tests/crash/kill_loop.py --round --kills 100 --seed kills.17
"""
import collections
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import ledger as ledger_module

sys.path.insert(0, str(ledger_module.ROOT / "tests" / "crash"))
import crash_harness  # noqa: E402
import embedded_kills  # noqa: E402
import kill_loop  # noqa: E402
import kill_workers  # noqa: E402

NAME = "kills"
GOAL = int(os.environ.get("PERDURA_KILLS", "10000"))
EMBEDDED_GOAL = max(20, GOAL // 50)
EMBEDDED_ROUND = 50
SIDE_BY_SIDE = 2
DEFAULT_LEASE_S = 30
SAMPLES = 20  # with the default lease


def run(ledger, say):
    if not ledger.rows(NAME, kind="default lease"):
        ledger.add(NAME, kind="default lease", **default_lease_samples(say))
    run_embedded(ledger, say)
    rounds = Rounds(ledger, say)
    try:
        rounds.run()
    finally:
        rounds.end()


def run_embedded(ledger, say):
    done = ledger.total(NAME, "kills", kind="embedded")
    while done < EMBEDDED_GOAL:
        seed = f"embedded.{len(ledger.rows(NAME, kind='embedded'))}"
        row = embedded_kills.Embedded(seed).run(min(EMBEDDED_ROUND, EMBEDDED_GOAL - done))
        ledger.add(NAME, kind="embedded", seed=seed, **row)
        done += row["kills"]
        say(f"{done} kills of {EMBEDDED_GOAL} of a program that embeds the store, findings: "
            f"{len(row['findings'])}")
        if row["findings"]:
            break


class Rounds:
    """Keeps so many rounds running until the goal is in the ledger."""

    def __init__(self, ledger, say):
        self.ledger, self.say = ledger, say
        rows = ledger.rows(NAME, kind="round")
        self.kills = sum(row["kills"] for row in rows)
        self.used = {row["seed"] for row in rows}
        self.running = {}  # process -> seed

    def run(self):
        while self.kills < GOAL or self.running:
            while self.kills + 100 * len(self.running) < GOAL and \
                    len(self.running) < SIDE_BY_SIDE:
                self.start()
            ended = [p for p in self.running if p.poll() is not None]
            for process in ended:
                self.finish(process)
            if not ended:
                time.sleep(0.1)

    def start(self):
        number = next(n for n in range(10 ** 6) if f"kills.{n}" not in self.used)
        seed = f"kills.{number}"
        self.used.add(seed)
        process = subprocess.Popen(
            [sys.executable, kill_loop.__file__, "--round", "--kills",
             str(kill_loop.KILLS_PER_ROUND), "--seed", seed],
            stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.running[process] = seed

    def finish(self, process):
        seed = self.running.pop(process)
        text = process.stdout.read()
        if not text.strip():
            self.ledger.add(NAME, kind="round", seed=seed, kills=0,
                            findings=[f"round {seed} ended with {process.returncode}"])
            raise SystemExit(f"round {seed} ended with {process.returncode}")
        row = self.ledger.add(NAME, kind="round", **json.loads(text))
        self.kills += row["kills"]
        self.say(f"{self.kills} kills of {GOAL}; round {seed}: {row['acknowledged']} acknowledged,"
                 f" {row['seconds']} s, findings: {len(row['findings'])}")

    def end(self):
        for process in self.running:
            process.send_signal(signal.SIGTERM)  # it ends its servers and workers
        for process in self.running:
            process.wait()


# ---- with the default lease ----

def default_lease_samples(say):
    """A worker that is killed: its tasks run again after the lease. A server that is killed: the
    tasks of workers that live are not run again."""
    say(f"{SAMPLES} samples with the default lease, about 45 s")
    folder = tempfile.mkdtemp(prefix="perdura-default-lease-")
    server = crash_harness.CrashServer(folder)
    marks = os.path.join(folder, "marks")
    workers = [kill_workers.WorkerProcess(kind, n, folder, marks, concurrency=1)
               for kind in ("process", "library") for n in range(SAMPLES // 2)]
    try:
        return sample_default_lease(server, marks, workers)
    finally:
        for worker in workers:
            worker.kill()
        server.kill()
        server.close()
        shutil.rmtree(folder, ignore_errors=True)


def sample_default_lease(server, marks, workers):
    port = kill_loop.free_port()
    url = f"http://127.0.0.1:{port}"
    start = dict(lease=f"{DEFAULT_LEASE_S}s", config="workers: 0\n")
    server.start("--listen", f"127.0.0.1:{port}", **start)
    client = kill_loop.Client(kill_loop.Target())
    client.target.address = server.address
    kinds = [worker.kind for worker in workers]
    client.once("POST", "/v1/tasks", json.dumps(
        [{"type": f"{kind}:long", "queue": kind} for kind in kinds]))
    for worker in workers:
        worker.start(url)

    def started():
        return [m for m in kill_workers.read_marks(marks) if m.what == "start"]

    crash_harness.wait_until(lambda: len(started()) == SAMPLES, 30, "all samples to run")
    server.kill()  # no task is run again for this
    client.close()
    server.start("--listen", f"127.0.0.1:{port}", **start)
    victims = workers[0:6] + workers[SAMPLES // 2:SAMPLES // 2 + 6]
    for worker in victims:
        worker.kill()
        worker.process = None
    for worker in victims:
        worker.start(url)
    deadline_s = 2 * DEFAULT_LEASE_S + DEFAULT_LEASE_S / 6 + 10  # a lease of grace after a restart
    end = time.monotonic() + deadline_s
    while time.monotonic() < end and len(started()) < SAMPLES + len(victims):
        time.sleep(0.1)
    return judge_samples(started(), victims, len(workers) - len(victims))


def judge_samples(starts, victims, spared):
    killed_at_us = {name: at for worker in victims for name, at in worker.killed_at_us.items()}
    alone, together = kill_workers.reruns_ms(starts, killed_at_us, [])
    reruns = alone + together
    per_task = collections.Counter(mark.task for mark in starts)
    findings = []
    if len(reruns) != len(victims):
        findings.append(f"{len(reruns)} of {len(victims)} tasks of killed workers ran again")
    if sum(count == 1 for count in per_task.values()) != spared:
        findings.append("a task of a worker that lived was run again after the server's kill")
    return {"kills": len(victims) + 1, "spared": spared, "rerun_ms": kill_loop.rounded(reruns),
            "findings": findings}


# ---- the report ----

def percentiles(values):
    """'p50 / p99 / max' in ms."""
    if not values:
        return "–"
    ordered = sorted(values)
    return " / ".join(f"{ordered[min(len(ordered) - 1, int(share * len(ordered)))]:,.0f}"
                      for share in (0.5, 0.99, 1))


def samples(rows, field):
    return [value for row in rows for value in row.get(field, ())]


def totals(ledger):
    rows = ledger.rows(NAME, kind="round")
    total = collections.Counter()
    points = collections.Counter()
    for row in rows:
        for field in ("kills", "acknowledged", "completed", "cancelled", "lost", "twice", "checks",
                      "stale_refused", "removed", "callbacks", "callbacks_repeated", "seconds"):
            total[field] += row.get(field, 0)
        for who, count in row.get("killed", {}).items():
            total[f"killed {who}"] += count
        points.update(row.get("at_points", {}))
    total["any moment"] = points.pop("any moment", 0)
    total["at points"] = sum(points.values())
    return rows, total, points


def summary(ledger):
    rows, total, _ = totals(ledger)
    if not rows:
        return []
    return [("F-A1–A19, F-A21, V1–V7",
             f"{total['kills']:,} kill -9 of server and workers under load, "
             f"{total['acknowledged']:,} tasks acknowledged",
             f"lost {total['lost']}, completed twice {total['twice']}"),
            ("V1, V2", f"{ledger.total(NAME, 'kills', kind='embedded')} kill -9 of a program that "
             "embeds the store by the C library",
             f"told and not stored {len(ledger.findings(NAME, kind='embedded'))}")]


def report(ledger):
    rows, total, points = totals(ledger)
    if not rows:
        return ""
    default = ledger.rows(NAME, kind="default lease")
    default_ms = samples(default, "rerun_ms")
    lines = [
        "## kill -9", "",
        f"{len(rows)} rounds, each on a store of its own: two producers, three HTTP workers, two "
        "`perdura worker` with process handlers and two programs of the C library work on plain, "
        "failing, checkpointing and fan-out tasks, with dependencies, cancels, callbacks, archive "
        "and retention. After every kill of the server a copy of its store is checked (`perdura "
        "verify`, SQLite's own check, every acknowledged enqueue, completion and cancel, ends that "
        "changed, tokens that went back) while it already runs again; at the end of a round "
        "everything must end, once.", "",
        "| | |", "|---|---:|",
        f"| kills of the server | {total['killed server']:,} |",
        f"| kills of process workers | {total['killed process']:,} |",
        f"| kills of library workers | {total['killed library']:,} |",
        f"| of these at a named point / at any moment | {total['at points']:,} / "
        f"{total['any moment']:,} |",
        f"| whole stores checked after a kill | {total['checks']:,} |",
        f"| tasks acknowledged | {total['acknowledged']:,} |",
        f"| completed / cancelled | {total['completed']:,} / {total['cancelled']:,} |",
        f"| reports refused because the lease was lost | {total['stale_refused']:,} |",
        f"| callbacks sent / of these again, under the same id | {total['callbacks']:,} / "
        f"{total['callbacks_repeated']:,} |",
        f"| removed by retention, all of them found in the archive | {total['removed']:,} |",
        f"| **acknowledged and lost** | **{total['lost']}** |",
        f"| **completed twice** | **{total['twice']}** |", ""]
    lines += recovery(rows, default_ms)
    return "\n".join(lines)


def recovery(rows, default_ms):
    first, alone = samples(rows, "first_claim_ms"), samples(rows, "rerun_ms")
    both = samples(rows, "rerun_with_server_kill_ms")
    return [
        "### Recovery times", "",
        "In milliseconds, p50 / p99 / max, with all of this on the machine's cores at once; a "
        f"lease of {kill_loop.LEASE_MS} ms unless another one is named.", "",
        "| from | to | samples | ms |", "|---|---|---:|---:|",
        f"| start of the server after its kill | first claim answered | {len(first):,} | "
        f"{percentiles(first)} |",
        f"| kill of a worker | its task started again | {len(alone):,} | {percentiles(alone)} |",
        "| kill of a worker, and of the server in between | its task started again | "
        f"{len(both):,} | {percentiles(both)} |",
        f"| kill of a worker, lease {DEFAULT_LEASE_S} s (default) | its task started again | "
        f"{len(default_ms):,} | {percentiles(default_ms)} |", "",
        "A server that starts gives every worker one lease to come back, so kills of the server "
        "in between make the last but one row longer.", ""]

