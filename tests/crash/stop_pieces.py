"""Pauses that need their own arrangement: zombie and owner in the same millisecond (F-B3), a
handler whose worker learns of its loss (F-B4), a server that slept (F-B6), a worker paused between
claim and start (F-B9). Each function makes so many tries and returns counts, figures and findings.
Used by tests/campaign/stops.py."""
import contextlib
import json
import os
import shutil
import signal
import sqlite3
import tempfile
import threading
import time

import crash_harness
from crash_harness import alive, wait_until
from kill_check import verify
from kill_clients import Client, Target
from kill_loop import free_port
from kill_workers import WorkerProcess, read_marks

LEASE_MS = 250
GRACE_MS = 200
SLACK_MS = 15000    # a busy machine; a handler that is forgotten lives on for ever
RACES_AT_ONCE = 500
SILENT_S = 90       # without any worker that stops itself: there is no such point


class Scene:
    """A server and the calls of its clients."""

    def __init__(self, lease_ms):
        self.folder = tempfile.mkdtemp(prefix="perdura-pauses-")
        self.marks = os.path.join(self.folder, "marks")
        self.server = crash_harness.CrashServer(self.folder)
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.server.start("--listen", f"127.0.0.1:{port}", lease=f"{lease_ms}ms", config=(
            f"workers: 0\ngrace: {GRACE_MS}ms\nlog_level: warn\n"))
        self.client = self.connect()
        self.workers = []

    def connect(self):
        client = Client(Target())
        client.target.address = self.server.address
        return client

    def call(self, method, path, body=None, client=None):
        status, answer = (client or self.client).once(method, path,
                                                      None if body is None else json.dumps(body))
        assert status in (200, 201), f"{method} {path} answered {status}: {answer}"
        return answer

    def register(self, worker, queues):
        self.call("POST", "/v1/workers", {"id": worker, "hostname": "h", "pool_size": 1,
                                          "queues": queues, "version": "1"})

    def enqueue(self, kind, queue, count):
        return self.call("POST", "/v1/tasks", [{"type": kind, "queue": queue,
                                                "max_crashes": 100000}] * count)["items"]

    def claim(self, worker, count, wait_ms=0):
        return self.call("POST", f"/v1/workers/{worker}:claim",
                         {"max": count, "wait_ms": wait_ms})["tasks"]

    def report(self, worker, tasks, client=None, **element):
        return self.call("POST", f"/v1/workers/{worker}:report", [
            {"task_id": t["id"], "lease_token": t["lease_token"], **element} for t in tasks],
            client)["items"]

    def start_workers(self, kind, count, concurrency, point=None):
        for n in range(count):
            worker = WorkerProcess(kind, n, self.folder, self.marks, concurrency)
            self.workers.append(worker)
            worker.start(self.url, point)

    def marked(self, what="start"):
        return [mark for mark in read_marks(self.marks) if mark.what == what]

    def close(self):
        for worker in self.workers:
            worker.kill()
        self.client.close()
        self.server.kill()
        self.server.close()


@contextlib.contextmanager
def scene(findings, lease_ms=LEASE_MS):
    """The store is verified at the end."""
    one = Scene(lease_ms)
    try:
        yield one
    finally:
        one.close()
        findings += verify(one.server.store)
        if not findings:
            shutil.rmtree(one.folder, ignore_errors=True)


# ---- F-B3 ----

def races(tries, seed=None, lease_ms=1000):
    """Zombie and owner complete at the same moment: the owner's is stored each time. And two
    different outcomes of one lease at the same moment: one is stored."""
    findings = []
    done = 0
    with scene(findings, lease_ms) as one:
        one.register("owner", ["q"])
        while done < tries and not findings:
            count = min(RACES_AT_ONCE, tries - done)
            one.register("zombie", ["q"])
            one.enqueue("t", "q", count)
            old = {t["id"]: t for t in one.claim("zombie", count)}
            new = []
            end = time.monotonic() + 60
            while len(new) < count and time.monotonic() < end:
                new += one.claim("owner", count, 3000)
            one.register("zombie", ["q"])
            findings += race(one, [(old[t["id"]], t) for t in new])
            done += len(new)
        findings += race_outcomes(one, RACES_AT_ONCE if tries >= RACES_AT_ONCE else tries)
    return {"tries": done, "findings": findings[:20]}


def at_once(one, pairs, elements):
    """Both sides of every pair send at the same moment; their answers."""
    barrier = threading.Barrier(2)
    answers = [[], []]

    def side(number):
        client = one.connect()
        try:
            for pair in pairs:
                worker, task, element = elements(number, pair)
                barrier.wait(90)
                answers[number].append(one.report(worker, [task], client, **element)[0])
        finally:
            client.close()

    threads = [threading.Thread(target=side, args=(n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(240)
    return zip(pairs, *answers)


def race(one, pairs):
    findings = []
    names = ("zombie", "owner")

    def elements(number, pair):
        return names[number], pair[number], {"op": "complete", "result": names[number]}

    for pair, zombie, owner in at_once(one, pairs, elements):
        if not owner["ok"] or zombie["ok"] or zombie["error"]["code"] != "stale_lease":
            findings.append(f"task {pair[0]['id']}: zombie {zombie}, owner {owner}")
    with sqlite3.connect(f"file:{one.server.store}?mode=ro", uri=True) as db:
        wrong = db.execute("SELECT count(*) FROM task_results WHERE payload <> '\"owner\"' AND "
                           "payload NOT LIKE '\"side%'").fetchone()[0]
    if wrong:
        findings.append(f"{wrong} results are not the owner's")
    return findings


def race_outcomes(one, count):
    one.enqueue("t", "q", count)
    tasks = one.claim("owner", count)

    def elements(number, task):
        return "owner", task, {"op": "complete", "result": f"side {number}"}

    findings = []
    for task, first, second in at_once(one, tasks, elements):
        if first["ok"] == second["ok"]:
            findings.append(f"two outcomes of task {task['id']}: {first}, {second}")
    return findings


# ---- F-B4 ----

def learned_losses(cycles, seed=None, at_once_count=6, lease_ms=LEASE_MS):
    """From SIGCONT of a worker that lost its task to the end of its stubborn handler."""
    findings, ended_ms = [], []
    limit_ms = lease_ms / 3 + GRACE_MS + SLACK_MS
    with scene(findings, lease_ms) as one:
        one.start_workers("process", at_once_count, 1)
        one.register("owner", ["process"])
        for _ in range(cycles):
            ended_ms += learn_once(one, at_once_count, limit_ms, findings)
    return {"stops": cycles * at_once_count, "ended_ms": [round(x, 1) for x in ended_ms],
            "findings": findings}


def learn_once(one, count, limit_ms, findings):
    before = len(one.marked())
    one.enqueue("process:stubborn", "process", count)
    wait_until(lambda: len(one.marked()) >= before + count, 90, "the handlers")
    running = {mark.task: mark for mark in one.marked()[before:]}
    for worker in one.workers:
        worker.process.send_signal(signal.SIGSTOP)
    taken = []
    end = time.monotonic() + 60
    while len(taken) < count and time.monotonic() < end:
        taken += one.claim("owner", count, 100)
        if taken:
            one.call("POST", "/v1/workers/owner:heartbeat", {})
    woken = time.monotonic()
    for worker in one.workers:
        worker.process.send_signal(signal.SIGCONT)
    left, ended_ms = dict(running), []
    while left and time.monotonic() < woken + limit_ms / 1000:
        one.call("POST", "/v1/workers/owner:heartbeat", {})
        for task in [t for t, mark in left.items() if not alive(mark.pid)]:
            ended_ms.append(1000 * (time.monotonic() - woken))
            del left[task]
        time.sleep(0.005)
    findings += [f"F-B4: the handler of {task} lived {limit_ms:.0f} ms after its worker woke up"
                 for task in left]
    findings += [f"F-B4: the owner's report was refused: {item}"
                 for item in one.report("owner", taken, op="complete", result="owner")
                 if not item["ok"]]
    return ended_ms


# ---- F-B6 ----

def slept_servers(cycles, seed=None, running=500, lease_ms=LEASE_MS):
    """The server sleeps ten leases; running tasks of live workers stay, dead ones run again."""
    findings, back_ms = [], []
    with scene(findings, lease_ms) as one:
        one.start_workers("library", 2, running // 2)
        one.enqueue("library:long", "library", running)
        wait_until(lambda: len(one.marked()) == running, 120, "all running")
        for cycle in range(cycles):
            one.register(f"dead-{cycle}", ["dead"])
            one.enqueue("t", "dead", 5)
            gone = one.claim(f"dead-{cycle}", 5)
            os.kill(one.server.pid, signal.SIGSTOP)
            time.sleep(10 * lease_ms / 1000)
            os.kill(one.server.pid, signal.SIGCONT)
            woken = time.monotonic()
            one.register("heir", ["dead"])
            again = []
            while len(again) < len(gone) and time.monotonic() < woken + 60:
                again += one.claim("heir", 5, 200)
            back_ms.append(1000 * (time.monotonic() - woken))
            one.report("heir", again, op="complete")
            if len(again) != len(gone):
                findings.append(f"F-B6: {len(again)} of {len(gone)} dead tasks came back")
        reruns = len(one.marked()) - running
        if reruns:
            findings.append(f"F-B6: {reruns} live tasks were run again")
    return {"stops": cycles, "running": running, "reruns": reruns,
            "dead_back_ms": [round(x, 1) for x in back_ms], "findings": findings}


# ---- F-B9 ----

def state_of(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "X"


def paused_claims(stops, seed=None, at_once_count=8, lease_ms=LEASE_MS):
    """Workers stop themselves when a claim has come, before they start it. Woken after the lease
    they must drop it; every fourth is woken at once and starts it."""
    findings = []
    done = brief = 0
    point = ",".join(f"worker.claimed:{n}:stop" for n in range(1, 200))
    with scene(findings, lease_ms) as one:
        one.start_workers("process", at_once_count, 1, point)
        asleep = {}  # worker -> since
        heard = time.monotonic()
        while done < stops and time.monotonic() < heard + SILENT_S:
            if one.call("GET", "/v1/stats")["counts"].get("pending", 0) < 2 * at_once_count:
                one.enqueue("process:plain", "process", 2 * at_once_count)
            for worker in one.workers:
                since = asleep.get(worker)
                if since is None and state_of(worker.process.pid) == "T":
                    asleep[worker] = heard = time.monotonic()
                    if (done + brief) % 4 == 3:
                        worker.process.send_signal(signal.SIGCONT)
                        del asleep[worker]
                        brief += 1
                elif since and time.monotonic() > since + (2 + 1 / 6) * lease_ms / 1000:
                    worker.process.send_signal(signal.SIGCONT)
                    del asleep[worker]
                    done += 1
            time.sleep(0.01)
        starts = {(mark.task, mark.token): mark.at_us for mark in one.marked()}
        findings += started_after_loss(one.server.store, starts)
        if done < stops:
            findings.append(f"F-B9: no worker stopped itself for {SILENT_S} s; does the build "
                            "with fault points have worker.claimed?")
        if brief > 8 and not starts:
            findings.append("F-B9: those woken at once did not start either")
    return {"stops": done, "brief_stops": brief, "started": len(starts),
            "findings": findings[:20]}


def started_after_loss(store, starts):
    """Starts of a token that the store had declared lost before."""
    offset_us = time.time_ns() // 1000 - time.monotonic_ns() // 1000
    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as db:
        lost = {(task, token): at for task, token, at in db.execute(
            "SELECT lower(hex(task_id)), lease_token, coalesce(failed_at, completed_at) FROM "
            "executions WHERE error_data LIKE '%worker_lost%'")}
    found = []
    for (task, token), at_us in starts.items():
        lost_us = lost.get((task.replace("-", ""), token))
        if lost_us is not None and at_us + offset_us > lost_us:
            found.append(f"F-B9: {task} was started under token {token} "
                         f"{(at_us + offset_us - lost_us) / 1000:.1f} ms after it was lost")
    return found
