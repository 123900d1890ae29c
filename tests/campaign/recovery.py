"""Part `recovery` of the fault campaign: tasks that checkpoint after every step, while the workers that
run them and the server that keeps them are killed, at any moment and at named points around
checkpoints, completion and recovery (F-A7, F-A19, F-B4, F-B6, F-H2, F-I3). Afterwards every step was
done, none more than once per kill, no two attempts ran at the same time, what killed its worker every
time was given up, and the recovery queue tells of every loss (B4). How long it took from the kill to
the next attempt is kept. One row of the ledger per round, given by its seed:

    python3 tests/campaign/recovery.py workers recovery_workers.3 50
    python3 tests/campaign/recovery.py pool recovery_pool.3 50
    python3 tests/campaign/recovery.py lease recovery_lease.0 21
"""
import collections
import http.client
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import ledger as ledger_module

sys.path.insert(0, str(ledger_module.ROOT / "tests" / "crash"))
import crash_harness  # noqa: E402
import kill_loop  # noqa: E402

NAME = "recovery"
SCALE = float(os.environ.get("PERDURA_RECOVERY_SCALE", "1"))
# kind, kills wanted, kills per round, rounds side by side
GOALS = (("workers", int(6000 * SCALE), 50, 3), ("pool", int(4000 * SCALE), 50, 3),
         ("quick", max(21, int(300 * SCALE)), 21, 1), ("lease", max(21, int(42 * SCALE)), 21, 1))
LEASE_S = 2
DEFAULT_LEASE_S = 30
WORKERS = 3
OPEN = 12        # tasks under way
STEPS = 12
STEP_S = 0.03
POISON_EVERY = 25
ARMED_S = 3      # a server that shall die at a point may live so long before it is killed
SLACK_S = 5      # of a busy machine, beyond lease and sweep
END_S = 240      # all tasks of a round have ended by then
LOST = ("worker_lost", "service_restart", "stalled")
HANDLER = pathlib.Path(__file__).with_name("recovery_handler.py")
POINTS = ("report.checkpoint", "before.report", "after.report", "before.claim", "after.claim",
          "claim.row", "sweep.lose", "before.commit", "after.commit", "before.recover",
          "after.recover", "before.register", "before.heartbeat")


def run(ledger, say):
    for kind, goal, size, side_by_side in GOALS:
        while ledger.total(NAME, "kills", kind=kind) < goal:
            run_side_by_side(ledger, say, kind, goal, size, side_by_side)


def run_side_by_side(ledger, say, kind, goal, size, count):
    number = len(ledger.rows(NAME, kind=kind))
    seeds = [f"recovery_{kind}.{number + i}" for i in range(count)]
    rows = {}
    threads = [threading.Thread(target=lambda s: rows.update({s: ROUNDS[kind](s).run(size)}),
                                args=(seed,), daemon=True) for seed in seeds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in seeds:
        if seed not in rows:
            raise SystemExit(f"round {seed} ended without a row")
        ledger.add(NAME, kind=kind, **rows[seed])
    findings = [text for row in rows.values() for text in row["findings"]]
    say(f"{kind}: {ledger.total(NAME, 'kills', kind=kind)} kills of {goal}; "
        f"{sum(row['steps'] for row in rows.values())} steps, "
        f"{sum(row['repeated'] for row in rows.values())} repeated, findings: {len(findings)}")
    if findings:
        raise SystemExit(findings[0][:2000])


class Round:
    """Servers, workers, tasks; kills; then a look at every step."""
    lease_s = LEASE_S
    pool = 0

    def __init__(self, seed):
        self.seed, self.rng = seed, random.Random(seed)
        self.row = collections.Counter(kills=0, steps=0, repeated=0, tasks=0)
        self.points = collections.Counter()
        self.findings, self.tasks, self.poisons, self.waits_ms = [], [], [], []
        self.kills = {}    # pid -> when it was killed
        self.workers = []
        self.folder = tempfile.mkdtemp(prefix="perdura-recovery-")
        self.marks = os.path.join(self.folder, "marks")
        self.port = kill_loop.free_port()
        self.server = crash_harness.CrashServer(self.folder)

    def run(self, count):
        began = time.monotonic()
        try:
            self.open()
            while self.row["kills"] < count:
                self.feed()
                time.sleep(self.rng.uniform(0.02, 0.5))
                self.disturb()
            self.settle()
            self.check()
        except Exception as error:  # a round that fails is a finding, not the campaign's end
            self.findings.append(f"{self.seed}: {error!r}")
        finally:
            self.close()
        return {"seed": self.seed, **self.row, "points": dict(self.points),
                "waits_ms": sorted(self.waits_ms), "findings": self.findings,
                "seconds": round(time.monotonic() - began, 1)}

    # The processes.

    def config(self, workers):
        command = json.dumps([sys.executable, str(HANDLER), self.marks,
                              os.path.join(self.folder, "port")])
        return (f"workers: {workers}\ngrace: 200ms\nlog_level: warn\n"
                f"handlers:\n  - type: \"steps\"\n    command: {command}\n")

    def start_server(self, fault=None):
        pathlib.Path(self.folder, "port").write_text(str(self.port))
        for _ in range(50):
            try:
                self.server.start("--listen", f"127.0.0.1:{self.port}", fault=fault,
                                  lease=f"{self.lease_s}s", config=self.config(self.pool))
                return
            except AssertionError:
                if self.server.wait() != -signal.SIGKILL:
                    raise
                self.killed(self.server.pid, fault.split(":")[0])
                fault = self.fault = None

    def open(self):
        self.start_server()
        pathlib.Path(self.folder, "worker.yaml").write_text(self.config(4))
        for _ in range(0 if self.pool else WORKERS):
            self.start_worker()

    def start_worker(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith("PERDURA_")}
        with open(os.path.join(self.folder, "worker.log"), "ab") as log:
            self.workers.append(subprocess.Popen(
                [crash_harness.plain_binary(), "worker", "--server",
                 f"http://127.0.0.1:{self.port}", "--concurrency", str(OPEN), "--config",
                 os.path.join(self.folder, "worker.yaml")], stdout=subprocess.DEVNULL, stderr=log,
                env=env, cwd=self.folder))

    def close(self):
        for worker in self.workers:
            worker.kill()
            worker.wait()
        self.server.kill()
        self.server.close()
        if not self.findings:
            shutil.rmtree(self.folder, ignore_errors=True)

    # Requests; retried while the server does not answer.

    def call(self, method, path, body=None):
        deadline = time.monotonic() + 60
        while True:
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
                connection.request(method, path, None if body is None else json.dumps(body))
                reply = connection.getresponse()
                text = reply.read()
                connection.close()
                if reply.status in (200, 201):
                    return json.loads(text)
                if reply.status != 503:
                    raise RuntimeError(f"{method} {path}: {reply.status} {text[:300]}")
            except (OSError, http.client.HTTPException):
                self.revive()
            if time.monotonic() > deadline:
                raise RuntimeError(f"{method} {path}: no answer")
            time.sleep(0.02)

    def revive(self):
        """A server that died at its fault point is started again."""
        if self.server.process.poll() is None:
            return
        if self.server.process.returncode != -signal.SIGKILL:
            raise RuntimeError(f"the server ended with {self.server.process.returncode}: "
                               + self.server.log()[-1500:])
        self.killed(self.server.pid, self.fault.split(":")[0] if self.fault else "any moment")
        self.fault = None
        self.start_server()

    fault, armed_until = None, 0

    def feed(self):
        ended = sum(self.is_ended(line) for line in self.lines())
        while len(self.tasks) - ended < OPEN:
            number = len(self.tasks) + len(self.poisons)
            self.tasks.append(self.enqueue(number, {"steps": STEPS, "step_s": STEP_S},
                                           max_crashes=1000000))
            if self.poisonous and number % POISON_EVERY == POISON_EVERY // 2:
                self.poisons.append(self.enqueue(f"poison {number}", {"poison": True}))

    poisonous = True

    def enqueue(self, number, payload, **fields):
        return self.call("POST", "/v1/tasks", {
            "type": "steps", "payload": payload, "timeout_ms": 600000,
            "idempotency_key": f"{self.seed} {number}", **fields})["id"]

    @staticmethod
    def is_ended(line):
        return line["what"] == "end"

    def lines(self):
        if not os.path.exists(self.marks):
            return []
        with open(self.marks, encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    # Kills.

    def killed(self, pid, point):
        self.kills[pid] = time.time()
        self.row["kills"] += 1
        self.points[point] += 1

    def kill_worker(self, worker):
        if worker.poll() is None:
            worker.kill()
            self.killed(worker.pid, "worker")
        else:
            self.killed(worker.pid, "worker, by its task")
        worker.wait()
        self.workers.remove(worker)
        self.start_worker()

    def kill_server(self):
        if self.server.process.poll() is None:
            self.server.kill()
            self.killed(self.server.pid, "any moment")
        else:
            self.revive()
            return
        self.fault = None
        if crash_harness.fault_binary() and self.rng.random() < 0.7:
            point = self.rng.choice(POINTS)
            self.fault = f"{point}:{1 if 'recover' in point else self.rng.randint(1, 12)}"
        self.armed_until = time.monotonic() + ARMED_S
        self.start_server(self.fault)

    def disturb(self):
        for worker in [worker for worker in self.workers if worker.poll() is not None]:
            self.kill_worker(worker)
        if self.server.process.poll() is not None:
            self.revive()
        elif self.fault and time.monotonic() < self.armed_until and self.rng.random() < 0.8:
            pass  # it has a chance to die at its point
        elif not self.workers or self.rng.random() < 0.35:
            self.kill_server()
        elif self.rng.random() < 0.03:
            self.stop_server()
        else:
            self.kill_worker(self.rng.choice(self.workers))

    def stop_server(self):
        """F-B6: it sleeps for two leases; who lives loses nothing."""
        self.server.process.send_signal(signal.SIGSTOP)
        time.sleep(2 * self.lease_s + 0.5)
        self.server.process.send_signal(signal.SIGCONT)
        self.row["stops"] += 1

    # The end.

    def settle(self):
        self.kill_server()
        self.server.kill()
        self.fault = None
        self.start_server()
        self.wait_for_ends()

    def wait_for_ends(self):
        deadline = time.monotonic() + END_S
        for task in self.tasks + self.poisons:
            while True:
                for worker in [worker for worker in self.workers if worker.poll() is not None]:
                    self.kill_worker(worker)
                shown = self.call("GET", f"/v1/tasks/{task}/wait?timeout_ms=500")
                if shown["completed_at"]:
                    break
                if time.monotonic() > deadline:
                    raise RuntimeError(f"task {task} is still {shown['status']}")

    def check(self):
        by_task = collections.defaultdict(list)
        for line in self.lines():
            by_task[line["task"]].append(line)
        for task in self.tasks:
            self.check_steps(task, by_task[task])
        for task in self.poisons:
            self.check_poison(task, by_task[task])
        self.row["tasks"] = len(self.tasks) + len(self.poisons)
        code, text = self.server.verify()
        if code != 0:
            self.find(f"verify: {text[:1000]}")

    def find(self, text):
        self.findings.append(f"{self.seed}: {text} (left: {self.folder})")

    def check_steps(self, task, lines):
        shown = self.call("GET", f"/v1/tasks/{task}")
        if (shown["status"], shown["result"]) != ("completed", STEPS):
            self.find(f"task {task} ended as {shown['status']} with {shown['result']}")
        steps = [line["step"] for line in lines if line["what"] == "step"]
        if set(steps) != set(range(STEPS)):
            self.find(f"task {task} lost steps: {sorted(set(range(STEPS)) - set(steps))}")
        self.row["steps"] += len(steps)
        self.row["repeated"] += len(steps) - len(set(steps))
        attempt, last = 0, -1
        for line in lines:
            if line["attempt"] < attempt:
                self.find(f"task {task}: attempt {line['attempt']} lived on in {attempt}")  # F-I3
            if line["what"] == "start":
                self.measure(lines, line)
                attempt = line["attempt"]
            elif line["what"] == "step":
                if line["step"] not in (last, last + 1):
                    self.find(f"task {task}: step {line['step']} after {last}")
                last = max(last, line["step"])
        self.check_entries(task)

    def measure(self, lines, start):
        """From the kill of the process that ran the attempt before to this start."""
        before = [line for line in lines if line["attempt"] == start["attempt"] - 1]
        if not before:
            return
        at = next((when for pid, when in self.kills.items()
                   if f"-{pid}-" in before[-1]["worker"]), None)
        if at and before[-1]["at"] <= at <= start["at"]:
            self.waits_ms.append(round(1000 * (start["at"] - at)))

    def check_entries(self, task):
        """B4: every loss has its entry, and no entry is without one."""
        executions = self.call("GET", f"/v1/tasks/{task}/executions?limit=1000")["items"]
        lost = sum((e["error_data"] or {}).get("reason") in LOST for e in executions)
        entries = self.call("GET", f"/v1/recovery?task_id={task}&limit=1000")["items"]
        if len(entries) != lost:
            self.find(f"task {task} was lost {lost} times and has {len(entries)} recoveries")
        for entry in entries:
            if entry["status"] != "completed":
                self.find(f"task {task}: a recovery is {entry['status']}")

    def check_poison(self, task, lines):
        """F-H2"""
        shown = self.call("GET", f"/v1/tasks/{task}")
        starts = sum(line["what"] == "start" for line in lines)
        if (shown["status"], shown["error"]) != ("dead_letter", "poison") or starts > 3:
            self.find(f"poison {task} ended as {shown['status']} after {starts} starts")
        self.row["poisons"] += 1


class Pool(Round):
    """The server runs the handlers itself: killing it kills them."""
    pool = OPEN + 4


class Lease(Round):
    """All workers are killed at once, again and again, and nothing else: what they ran continues
    when their lease is over (F-A19)."""
    lease_s = DEFAULT_LEASE_S
    poisonous = False

    def disturb(self):
        wait_until(lambda: self.running() >= OPEN // 2, "tasks that run")
        for worker in list(self.workers):
            self.kill_worker(worker)

    def running(self):
        """Tasks whose last line is of a worker that lives."""
        alive = [f"-{worker.pid}-" for worker in self.workers]
        last = {line["task"]: line for line in self.lines()}
        return sum(line["what"] != "end" and any(pid in line["worker"] for pid in alive)
                   for line in last.values())

    def settle(self):
        self.wait_for_ends()

    def check(self):
        super().check()
        late = [ms for ms in self.waits_ms if ms > 1000 * (self.lease_s * 7 / 6 + SLACK_S)]
        if late:
            self.find(f"some continued only after {max(late)} ms")


class Quick(Lease):
    lease_s = LEASE_S


def wait_until(predicate, what):
    deadline = time.monotonic() + 3 * DEFAULT_LEASE_S
    while not predicate():
        if time.monotonic() > deadline:
            raise RuntimeError(f"no {what}")
        time.sleep(0.05)


ROUNDS = {"workers": Round, "pool": Pool, "quick": Quick, "lease": Lease}


# ---- the report ----

def part_of(sorted_ms, part):
    return sorted_ms[min(len(sorted_ms) - 1, int(part * len(sorted_ms)))]


def waits(ledger, kind):
    return sorted(ms for row in ledger.rows(NAME, kind=kind) for ms in row["waits_ms"])


def report(ledger):
    rows = ledger.rows(NAME)
    lines = ["## Recovery\n",
             "Tasks checkpoint after every step while workers and servers are killed; a step is a "
             "line in a file, so that lost and repeated ones can be counted.\n",
             "| what was killed | kills | steps | lost | repeated | poison given up |",
             "|---|---|---|---|---|---|"]
    names = {"workers": "three workers and their server, lease 2 s",
             "pool": "the server with its pool, lease 2 s",
             "quick": "only workers, lease 2 s", "lease": "only workers, lease 30 s"}
    for kind, name in names.items():
        lines.append(f"| {name} | {ledger.total(NAME, 'kills', kind=kind)} | "
                     f"{ledger.total(NAME, 'steps', kind=kind)} | 0 | "
                     f"{ledger.total(NAME, 'repeated', kind=kind)} | "
                     f"{ledger.total(NAME, 'poisons', kind=kind)} |")
    lines += ["", "From the kill to the next attempt, in milliseconds:", "",
              "| | samples | median | 99 of 100 | longest |", "|---|---|---|---|---|"]
    for kind, name in names.items():
        found = waits(ledger, kind)
        if found:
            lines.append(f"| {name} | {len(found)} | {part_of(found, 0.5)} | "
                         f"{part_of(found, 0.99)} | {found[-1]} |")
    points = collections.Counter()
    for row in rows:
        points.update(row["points"])
    lines += ["", "Where: " + ", ".join(f"{name} {count}" for name, count in points.most_common())
              + "."]
    return "\n".join(lines) + "\n"


def summary(ledger):
    kills = ledger.total(NAME, "kills")
    lost = len(ledger.findings(NAME))
    return [("F-A7, F-A19, F-B4, F-B6, F-H2, F-I3", f"{kills} kills around checkpoints and recovery",
             f"{lost} findings; {ledger.total(NAME, 'repeated')} steps repeated, at most one per "
             "kill")] if kills else []


if __name__ == "__main__":
    print(json.dumps(ROUNDS[sys.argv[1]](sys.argv[2]).run(int(sys.argv[3])), indent=1))
