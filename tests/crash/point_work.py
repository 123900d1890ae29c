"""Work that passes every fault point of the server: one lap does every kind of request, report and
control once, ends some tasks by their timeout and lets leases and workers be lost. Used by
tests/campaign/points.py, which kills the server at each point in turn."""
import http.client
import itertools
import json
import os
import pathlib
import re
import signal
import sqlite3
import time
import uuid

import crash_harness
from kill_clients import BROKEN, Receiver

LEASE_MS = 120
ROOT = "root-token-of-the-work"
CONFIG = f"""workers: 1
lease: {LEASE_MS}ms
grace: 20ms
backup_dir: "."
log_level: warn
worker_timeout: 300ms
retention:
  archive: "archive"
encryption:
  per_user: true
  keys: [{{id: k1, file: "k1"}}, {{id: k2, file: "k2"}}]
  current: %s
handlers:
  - type: "brief"
    command: ["/bin/true"]
    retention: 1ms
  - type: "pool"
    command: ["/bin/true"]
  - type: "checked"
    command: ["/bin/true"]
    validate:
      command: ["/bin/true"]
"""


def closed_window():
    """A window that opens in an hour."""
    hour = time.gmtime(time.time() + 3600).tm_hour
    return f"{hour:02}:59-{(hour + 1) % 24:02}:59"


AT_THE_END = ("drain.begin", "store.close", "before.audit", "after.audit")
ONCE = ("before.recover", "after.recover", "retention.", "backup.", *AT_THE_END)


def names_in(source):
    """Every name a fault point can have, as the source says it."""
    names = set()
    for path in sorted(pathlib.Path(source).rglob("*.c")):
        text = path.read_text()
        names.update(re.findall(r'FAULT_POINT\("([^"]+)"\)', text))
        kinds = re.search(r"rows\[REQUEST_KIND_COUNT\] = \{(.*?)\n\};", text, flags=re.S)
        if kinds:
            words = ["commit"] + re.findall(r'"([^"]+)"', kinds.group(1))
            names.update(f"{when}.{word}" for when in ("before", "after") for word in words)
    own = ("agent.", "service.", "report.await", "inbox.", "before.inbox", "after.inbox")  # parts of their own
    return sorted(x for x in names if not x.startswith(own))


class Refused(Exception):
    """An answer the work did not expect."""


class Spoilt(Exception):
    """A lease or a worker was lost in the lap, since the machine was slow: the next one begins."""


class PointWork:
    """A store, its server, and what it acknowledged."""

    def __init__(self, folder):
        self.folder = folder
        self.server = crash_harness.CrashServer(folder)
        self.receiver = Receiver()
        self.connection = None
        self.kept = set()
        self.numbers = itertools.count()
        self.starts = 0
        for name in ("k1", "k2"):
            path = pathlib.Path(folder, name)
            path.write_text(os.urandom(32).hex())
            path.chmod(0o600)

    def close(self):
        self.disconnect()
        self.server.kill()
        self.server.close()
        self.receiver.close()

    # Requests. BROKEN when the server died.

    def disconnect(self):
        if self.connection:
            self.connection.close()
        self.connection = None

    def call(self, method, path, body=None, expected=(200, 201), token=ROOT):
        if self.connection is None:
            self.connection = http.client.HTTPConnection(*self.server.address, timeout=60)
        self.connection.request(method, path, None if body is None else json.dumps(body),
                                {"Authorization": f"Bearer {token}"})
        reply = self.connection.getresponse()
        text = reply.read()
        if reply.status not in expected:
            if reply.status in (404, 409, 503):
                raise Spoilt
            raise Refused(f"{method} {path} answered {reply.status}: {text[:300]}")
        return json.loads(text) if text else None

    def report(self, worker, task, *elements):
        base = {"task_id": task["id"], "lease_token": task["lease_token"]}
        return self.call("POST", f"/v1/workers/{worker}:report",
                         [{**base, **element} for element in elements])

    def register(self, worker, queues):
        self.call("POST", "/v1/workers", {"id": worker, "hostname": "h", "pool_size": 4,
                                          "queues": queues, "version": "1"})

    # One kill.

    def run_until_killed(self, point, nth, laps):
        """Whether the server killed itself at the nth pass of the point."""
        self.starts += 1  # with another key each time, so that there are data keys to wrap again
        try:
            self.server.start("--workers", "1", config=CONFIG % f"k{1 + self.starts % 2}",
                              lease=f"{LEASE_MS}ms", environment={"PERDURA_TOKEN": ROOT},
                              fault=f"{point}:{nth}" if point else None)
        except AssertionError:
            if self.server.wait() != -signal.SIGKILL:
                raise
            return True
        try:
            for _ in range(laps):
                self.try_lap(slow=point is None or point.startswith("sweep."),
                             large="checkpoint" in (point or ""))
            if point in AT_THE_END:
                self.server.process.send_signal(signal.SIGTERM)
                self.server.wait()
        except BROKEN:
            self.server.wait()
        finally:
            self.disconnect()
        ended = self.server.process.poll()
        self.server.kill()
        if ended not in (None, 0, -signal.SIGKILL):
            raise AssertionError(f"the server ended with {ended}: {self.server.log()[-1500:]}")
        return ended == -signal.SIGKILL

    def findings(self):
        """The store after the kill: whole, and with everything acknowledged."""
        code, text = self.server.verify()
        found = [] if code == 0 else [f"verify: {text[:1000]}"]
        with sqlite3.connect(f"file:{self.server.store}?mode=ro", uri=True) as db:
            stored = {str(uuid.UUID(bytes=row[0])) for row in db.execute("SELECT id FROM tasks")}
        return found + [f"task {task} was acknowledged and is not there"
                        for task in self.kept - stored]

    # One lap.

    def try_lap(self, slow, large):
        try:
            self.lap(slow, large)
        except (Spoilt, KeyError):  # KeyError: a task of the lap was not claimed
            pass

    def lap(self, slow, large):
        lap = next(self.numbers)
        worker = f"worker-{lap}"
        self.register(worker, ["work"])
        self.enqueue(lap, large)
        for path in ("/v1/stats", "/v1/workers", "/v1/queues"):
            self.call("GET", path)
        self.call("PATCH", "/v1/queues/work", {"concurrency": 1000 + lap})
        self.server.process.send_signal(signal.SIGHUP)  # a reload, which nothing here waits for
        tasks = {t["type"]: t for t in
                 self.call("POST", f"/v1/workers/{worker}:claim", {"max": 1000})["tasks"]}
        self.report_all(worker, tasks)
        self.call("POST", f"/v1/workers/{worker}:heartbeat", {})
        self.control(tasks)
        self.guard(lap)
        name = f"backup-{lap}-{uuid.uuid4()}.db"
        self.call("POST", "/v1/backup", {"name": name})
        os.unlink(os.path.join(self.folder, name))
        if slow:
            self.lose(worker, lap)
        self.call("DELETE", f"/v1/workers/{worker}", expected=(200, 204))
        if large:
            time.sleep(0.01)  # idle: it checkpoints now
        self.plan(lap, f"planner-{lap}")

    def enqueue(self, lap, large):
        url = self.receiver.url
        specs = [{"type": kind, "queue": "work", "max_retries": 0, "user_id": "gone"}
                 for kind in ("fails", "released", "partial", "cancelled", "deleted")]
        specs += [{"type": "brief", "queue": "work"},
                  {"type": "completes", "queue": "work", "ref": "first", "callback_url": url},
                  {"type": "after", "queue": "later", "depends_on": [{"ref": "first"}]},
                  {"type": "delayed", "queue": "later", "delay_ms": 1},
                  {"type": "parent", "queue": "work"},
                  {"type": "checked", "queue": "work"},
                  {"type": "unchecked", "queue": "work"},
                  {"type": "pool", "queue": "default"}]
        if large:
            specs += [{"type": "large", "queue": "large", "payload": "x" * 20000}] * 300
        items = self.call("POST", "/v1/tasks", specs)["items"]
        self.kept.update(item["id"] for item, spec in zip(items, specs)
                         if spec.get("user_id") != "gone" and spec["type"] != "brief")

    def report_all(self, worker, tasks):
        first = tasks["completes"]
        self.report(worker, first, {"op": "start"}, {"op": "progress", "progress": 5})
        self.report(worker, first, {"op": "checkpoint", "name": "c", "progress": 10},
                    {"op": "log", "level": "INFO", "message": "m"})
        self.report(worker, tasks["parent"], {"op": "spawn", "tasks": [
            {"type": "child", "queue": "work", "ref": f"c{i}"} for i in range(2)]})
        self.report(worker, tasks["parent"], {"op": "continue", "wait_children": True})
        self.report(worker, tasks["fails"], {"op": "fail", "error": "e", "retryable": False})
        self.report(worker, tasks["partial"], {"op": "partial", "result": 1})
        for kind in ("checked", "unchecked"):
            self.report(worker, tasks[kind], {"op": "partial", "result": 1})
        self.report(worker, tasks["released"], {"op": "release"})
        self.report(worker, first, {"op": "complete", "result": 1})
        self.report(worker, tasks["brief"], {"op": "complete"})
        for child in self.call("POST", f"/v1/workers/{worker}:claim", {"max": 1000})["tasks"]:
            self.report(worker, child, {"op": "complete"})
        self.call("GET", f"/v1/tasks/{first['id']}/wait?timeout_ms=50")
        self.call("GET", f"/v1/tasks/{first['id']}/why")
        self.kept.add(self.call("POST", f"/v1/tasks/{first['id']}:fork", {"queue": "later"})["id"])

    def control(self, tasks):
        for kind in ("checked", "unchecked"):
            self.call("POST", "/v1/recovery", {"task_id": tasks[kind]["id"]})
        self.call("POST", f"/v1/tasks/{tasks['fails']['id']}:retry", {})
        self.call("POST", f"/v1/tasks/{tasks['cancelled']['id']}:cancel", {})
        self.call("DELETE", f"/v1/tasks/{tasks['partial']['id']}", expected=(200, 204))
        self.call("DELETE", "/v1/tasks?user_id=gone")

    def guard(self, lap):
        """Tokens, namespaces and keys are made, changed and go; something is refused."""
        made = self.call("POST", "/v1/tokens", {"name": f"t{lap}", "role": "producer"})
        again = self.call("POST", f"/v1/tokens/{made['id']}:rotate", {"overlap_ms": 0})
        user = f"sealed-{uuid.uuid4()}"
        sealed = {"type": "sealed", "queue": "later", "encrypt": True, "payload": "x"}
        self.kept.update(task["id"] for task in self.call(
            "POST", "/v1/tasks", [sealed, {**sealed, "user_id": user}], token=again["token"])["items"])
        self.call("GET", "/v1/stats", expected=(403,), token=again["token"])
        self.call("DELETE", f"/v1/tokens/{made['id']}", expected=(204,))
        while self.call("POST", "/v1/keys:rotate", {})["left"]:
            pass
        content = {"done": False}
        while not content["done"]:
            since = {"since": content["since"]} if "since" in content else {}
            content = self.call("POST", "/v1/keys:rotate", {"data": True, **since})["content"]
        self.call("POST", "/v1/keys:destroy", {"user_id": user})
        name = f"n-{uuid.uuid4()}"
        self.call("POST", "/v1/namespaces", {"name": name})
        self.call("DELETE", f"/v1/namespaces/{name}", expected=(200, 202, 204))

    def plan(self, lap, worker):
        """A schedule fires, a run waits at a gate, an end starts another, a window closes."""
        queue = f"plan-{lap}"
        self.register(worker, [queue])
        open_now, closed = {"queue": queue}, {"queue": queue, "allowed_windows": [closed_window()]}
        category = self.call("POST", "/v1/categories", {"name": f"{queue}-{uuid.uuid4()}",
                                                        "configuration": open_now})
        jobs = [self.call("POST", "/v1/jobs", {"name": name, "queue": queue,
                                               "category": category["name"]})
                for name in ("first", "gated", "started")]
        first, gated, started = (job["id"] for job in jobs)
        self.call("POST", f"/v1/jobs/{gated}/dependencies", {"depends_on_job_id": first})
        self.call("POST", f"/v1/jobs/{started}/dependencies",
                  {"depends_on_job_id": first, "dependency_config": {"mode": "trigger"}})
        self.kept.add(self.call("POST", f"/v1/jobs/{gated}:run", {})["id"])
        self.call("POST", f"/v1/jobs/{first}/schedules", {"schedule_type": "immediate"})
        [run] = self.claim_of(worker, queue, 1)
        self.report(worker, run, {"op": "complete"})
        self.call("PATCH", f"/v1/categories/{category['id']}", {"configuration": closed})
        self.claim_of(worker, queue, 0)
        for job in (started, gated, first):
            self.call("DELETE", f"/v1/jobs/{job}", expected=(200, 204))
        self.call("DELETE", f"/v1/workers/{worker}", expected=(200, 204))

    def claim_of(self, worker, queue, count):
        tasks = self.call("POST", f"/v1/workers/{worker}:claim",
                          {"max": 10, "queues": [queue], "wait_ms": 2000 if count else 0})["tasks"]
        if len(tasks) != count:
            raise Spoilt
        return tasks

    def lose(self, worker, lap):
        """A worker that vanishes with a task, and a task beyond its timeout."""
        self.register(f"gone-{lap}", ["lost"])
        lost = self.call("POST", "/v1/tasks", {"type": "lost", "queue": "lost", "max_crashes": 99})
        slow = self.call("POST", "/v1/tasks", {"type": "slow", "queue": "slow", "timeout_ms": 10})
        self.kept.update((lost["id"], slow["id"]))
        self.call("POST", f"/v1/workers/gone-{lap}:claim", {"max": 1000})
        for task in self.call("POST", f"/v1/workers/{worker}:claim",
                              {"max": 50, "queues": ["slow"]})["tasks"]:
            self.report(worker, task, {"op": "start"})
        end = time.monotonic() + 5 * LEASE_MS / 1000
        while time.monotonic() < end:
            self.call("POST", f"/v1/workers/{worker}:heartbeat", {})
            time.sleep(LEASE_MS / 6000)
