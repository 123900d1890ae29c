"""Workers that are stopped longer than their lease and then continue (F-B1, F-B2): process workers,
programs of the C library and HTTP clients, many at once, while others take over what they lost.
Everything a holder says carries its lease token, so the store itself shows whether a stale word
took effect.

    python3 tests/crash/stop_loop.py --stops 200 --seed 7
"""
import argparse
import collections
import json
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
import uuid

from crash_harness import ENDED, CrashServer
from kill_check import verify
from kill_clients import Client, Target
from kill_loop import free_port
from kill_workers import WorkerProcess

HERE = pathlib.Path(__file__).resolve().parent
LEASE_MS = 250
EACH = 5            # workers of each kind
SETTLE_S = 180       # only ever reached when something does not end
# The slow ones take longer than a lease: who has lost one speaks while the next one holds it.
KINDS = ("process:slow", "process:slow", "process:steps", "process:parent", "library:slow",
         "library:slow", "library:steps", "library:parent", "http:task", "http:task", "http:task")
FILL = 60           # tasks that wait, at least


class HttpClient(WorkerProcess):
    def command(self, url, binary):
        return [sys.executable, str(HERE / "stopped_client.py"), url, self.name,
                os.path.join(self.folder, "refused"), self.name]


class Stops:
    def __init__(self, seed):
        self.rng = random.Random(f"{seed}-stops")
        self.folder = tempfile.mkdtemp(prefix="perdura-stops-")
        self.server = CrashServer(self.folder)
        marks = os.path.join(self.folder, "marks")
        self.workers = [kind(name, n, self.folder, marks)
                        for kind, name in ((WorkerProcess, "process"), (WorkerProcess, "library"),
                                           (HttpClient, "http")) for n in range(EACH)]
        self.client = Client(Target())
        self.findings = []
        self.stopped = collections.Counter()
        self.made = 0

    def call(self, method, path, body=None):
        return self.client.once(method, path, None if body is None else json.dumps(body))[1]

    def start(self):
        port = free_port()
        self.server.start("--listen", f"127.0.0.1:{port}", lease=f"{LEASE_MS}ms",
                          config="workers: 0\ngrace: 200ms\nlog_level: warn\n")
        self.client.target.address = self.server.address
        self.fill()
        for worker in self.workers:
            worker.start(f"http://127.0.0.1:{port}")

    def fill(self):
        pending = self.call("GET", "/v1/stats")["counts"].get("pending", 0)
        if pending < FILL:
            specs = [{"type": kind, "queue": kind.split(":")[0], "max_crashes": 100000,
                      "max_retries": 100000, "retry_delay_ms": 5, "max_retry_delay_ms": 20}
                     for kind in KINDS for _ in range(6)]
            self.made += len(self.call("POST", "/v1/tasks", specs)["items"])

    def stop_some(self, most):
        """Two thirds of all workers, each kind, for one to three leases."""
        chosen = self.rng.sample(self.workers, min(most, 2 * len(self.workers) // 3))
        for worker in chosen:
            worker.process.send_signal(signal.SIGSTOP)
            self.stopped[worker.kind] += 1
        time.sleep((1.4 + self.rng.random()) * LEASE_MS / 1000)
        for worker in chosen:
            worker.process.send_signal(signal.SIGCONT)
        self.fill()
        time.sleep((0.3 + self.rng.random() / 2) * LEASE_MS / 1000)
        for worker in self.workers:
            if worker.process.poll() is not None:
                self.findings.append(f"{worker.name} ended with {worker.process.returncode}")
                worker.start(f"http://127.0.0.1:{self.server.address[1]}")

    def settle(self):
        end = time.monotonic() + SETTLE_S
        while time.monotonic() < end:
            counts = self.call("GET", "/v1/stats")["counts"]
            if not any(count for status, count in counts.items() if status not in ENDED):
                return
            time.sleep(0.05)
        self.findings.append(f"not everything ended: {counts}")

    def end(self):
        for worker in self.workers:
            worker.kill()
        self.client.close()
        self.server.kill()
        self.server.close()

    def run(self, stops):
        try:
            self.start()
            while sum(self.stopped.values()) < stops:
                self.stop_some(stops - sum(self.stopped.values()))
            self.settle()
        except Exception as error:
            self.findings.append(f"the round ended with {error!r}: {self.server.log()[-1000:]}")
        except BaseException:  # interrupted
            self.end()
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        self.end()
        found = check(self.server.store)
        refused = self.refused()
        self.findings += found.pop("findings")
        if not self.findings:
            shutil.rmtree(self.folder, ignore_errors=True)
        return {"stops": sum(self.stopped.values()), "stopped": dict(self.stopped),
                "tasks": self.made, "refused": refused, **found, "findings": self.findings[:50]}

    def refused(self):
        """What HTTP clients were refused, by operation; anything but a lost lease is a finding."""
        try:
            lines = pathlib.Path(self.folder, "refused").read_text().splitlines()
        except OSError:
            return {}
        refused = collections.Counter()
        for line in lines:
            op, code = line.split()
            if code in ("stale_lease", "conflict"):
                refused[op] += 1
            else:
                self.findings.append(f"a zombie's {op}: {code}")
        return dict(refused)


class Leases:
    """Of one store: when each token and attempt of each task was the valid one."""

    def __init__(self, db):
        rows = collections.defaultdict(list)
        for task, token, attempt, begin, completed, failed, error, worker, execution in db.execute(
                "SELECT task_id, lease_token, attempt_number, created_at, completed_at, failed_at, "
                "error_data, worker_id, id FROM executions ORDER BY lease_token"):
            rows[task].append([token, attempt, begin, completed or failed, error, execution])
        self.spans, self.lost = {}, 0
        self.executions = {}
        for task, runs in rows.items():
            for i, (token, attempt, begin, end, error, execution) in enumerate(runs):
                until = [t for t in (end, runs[i + 1][2] if i + 1 < len(runs) else None) if t]
                span = (begin, min(until) if until else float("inf"))
                self.spans[task, "token", token] = span
                self.spans.setdefault((task, "attempt", attempt), span)
                self.executions[execution] = {"token": token, "attempt": attempt}
                self.lost += "worker_lost" in (error or "")

    def is_stale(self, task, content, at):
        """Whether a word with this token (or attempt) was taken outside of its time."""
        kind = "token" if "token" in content else "attempt"
        begin, end = self.spans.get((task, kind, content.get(kind)), (None, None))
        return begin is None or not begin <= at <= end


def words(text):
    """'token 5' as {'token': 5}; None for other texts."""
    parts = (text or "").split()
    if len(parts) == 2 and parts[0] in ("token", "attempt"):
        return {parts[0]: int(parts[1])}
    return None


def check(store):
    """Every stored word against the lease under which it may have been said."""
    findings = verify(store)
    checked = collections.Counter()
    stale = 0

    def judge(what, task, wrong):
        nonlocal stale
        checked[what] += 1
        if wrong:
            stale += 1
            findings.append(f"a stale {what} took effect on task {uuid.UUID(bytes=task)}")

    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as db:
        leases = Leases(db)
        for task, data, at in db.execute("SELECT task_id, recoverable_data, created_at FROM "
                                         "task_checkpoints"):
            judge("checkpoint", task, leases.is_stale(task, json.loads(data), at))
        for execution, message in db.execute("SELECT execution_id, message FROM execution_logs"):
            said = words(message)
            if said:
                own = leases.executions[execution]
                judge("log", execution, any(own[k] != v for k, v in said.items()))
        for task, state, at in db.execute("SELECT task_id, state, created_at FROM task_events"):
            said = words(state) if state else None
            if said:
                judge("progress", task, leases.is_stale(task, said, at) and
                      not inherited(db, task, state, at))
        for parent, payload, at in db.execute("SELECT parent_id, payload, created_at FROM tasks "
                                              "WHERE type = 'child'"):
            judge("spawn", parent, leases.is_stale(parent, json.loads(payload), at))
        for task, kind, status, payload, token, attempt in db.execute(
                "SELECT t.id, t.type, t.status, r.payload, t.lease_token, t.attempts FROM tasks t "
                "JOIN task_results r ON r.task_id = t.id WHERE t.type <> 'child'"):
            said = json.loads(payload)
            own = {"token": token, "attempt": attempt}
            judge("complete", task, any(own[k] != v for k, v in said.items()))
        for task, token, error in db.execute("SELECT task_id, lease_token, error_data FROM "
                                             "executions WHERE error_data LIKE '%token %'"):
            said = words(json.loads(error).get("message"))
            if said:
                judge("fail", task, said["token"] != token)
    return {"lost_leases": leases.lost, "checked": dict(checked), "stale": stale,
            "findings": findings}


def inherited(db, task, state, at):
    """An event shows the state words set before it: only the first one with them said them."""
    return db.execute("SELECT 1 FROM task_events WHERE task_id = ? AND state = ? AND "
                      "created_at < ?", (task, state, at)).fetchone() is not None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--stops", type=int, default=100)
    parser.add_argument("--seed", default="1")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    line = Stops(arguments.seed).run(arguments.stops)
    print(json.dumps(line), flush=True)
    sys.exit(1 if line["findings"] else 0)


if __name__ == "__main__":
    main()
