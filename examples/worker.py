#!/usr/bin/env python3
"""A worker over plain HTTP, standard library only: register, claim, heartbeat, report.

    perdura serve &
    python3 worker.py [http://127.0.0.1:7070]
    perdura enqueue example:http --payload '{"n":3}' --wait

PERDURA_TOKEN is sent if it is set. Ctrl-C or SIGTERM gives unfinished tasks back and leaves.
"""
import json
import os
import signal
import socket
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

SERVER = (sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:7070").rstrip("/")
TYPES = ["example:http"]


def call(method, path, body=None, timeout=30):
    request = urllib.request.Request(SERVER + path, method=method)
    request.add_header("Content-Type", "application/json")
    if os.environ.get("PERDURA_TOKEN"):
        request.add_header("Authorization", "Bearer " + os.environ["PERDURA_TOKEN"])
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(request, data, timeout) as reply:
        text = reply.read()
        return json.loads(text) if text else None


class Worker:
    def __init__(self):
        self.lock = threading.Lock()
        self.held = {}        # task id -> lease token
        self.stopped = set()  # cancelled, paused or lost: work on them no more
        self.register()

    def register(self):
        reply = call("POST", "/v1/workers", {"hostname": socket.gethostname(), "pool_size": 1,
                                             "queues": ["default"], "types": TYPES})
        self.path = "/v1/workers/" + urllib.parse.quote(reply["id"], safe="")
        self.heartbeat_s = reply["heartbeat_ms"] / 1000

    def keep_alive(self):
        """Renews the leases of all tasks at hand; hears which of them to stop."""
        while True:
            time.sleep(self.heartbeat_s)
            with self.lock:
                tasks = [{"task_id": i, "lease_token": t} for i, t in self.held.items()]
            try:
                reply = call("POST", self.path + ":heartbeat", {"tasks": tasks})
            except urllib.error.HTTPError as error:
                if error.code == 404:  # the server forgot us: register again
                    self.register()
            except OSError:
                pass  # away for a moment: the next beat tries again
            else:
                with self.lock:
                    self.stopped.update(reply["cancel"] + reply["pause"] + reply["lost"])

    def report(self, task, *elements):
        """In order and durable when it returns; repeating one is harmless because of its seq."""
        for element in elements:
            task["seq"] = task.get("seq", 0) + 1
            element.update(task_id=task["id"], lease_token=task["lease_token"], seq=task["seq"])
        while True:
            try:
                items = call("POST", self.path + ":report", list(elements))["items"]
                break
            except urllib.error.HTTPError as error:
                if error.code == 404:
                    self.register()
                elif error.code < 500:
                    raise
                time.sleep(1)
            except OSError:
                time.sleep(1)
        if any(not item["ok"] or item.get("cancel") or item.get("pause") for item in items):
            self.stopped.add(task["id"])

    def run(self, task):
        self.held[task["id"]] = task["lease_token"]
        try:
            outcome = work(self, task)
        except Exception as error:  # the server decides whether it is tried again
            outcome = {"op": "fail", "error": repr(error)}
        self.report(task, outcome)
        with self.lock:
            self.held.pop(task["id"], None)
            self.stopped.discard(task["id"])

    def loop(self):
        threading.Thread(target=self.keep_alive, daemon=True).start()
        while True:
            try:
                claim = {"queues": ["default"], "types": TYPES, "max": 1, "wait_ms": 30000}
                tasks = call("POST", self.path + ":claim", claim, timeout=40)["tasks"]
            except urllib.error.HTTPError as error:
                if error.code == 404:
                    self.register()
                time.sleep(1)
                continue
            except OSError:
                time.sleep(1)
                continue
            for task in tasks:
                self.run(task)


def work(worker, task):
    """The work itself: counts up to payload.n, with a checkpoint after each step."""
    count = (task["payload"] or {}).get("n", 3)
    done = (task["checkpoint"] or {}).get("data") or 0
    while done < count:
        if task["id"] in worker.stopped:
            return {"op": "release"}
        time.sleep(0.2)
        done += 1
        progress = done * 100 // count
        worker.report(task, {"op": "progress", "progress": progress, "state": f"Step {done}"},
                      {"op": "checkpoint", "name": f"step-{done}", "progress": progress,
                       "data": done})
    return {"op": "complete", "result": {"counted": done}}


if __name__ == "__main__":
    signal.signal(signal.SIGINT, lambda *_: sys.exit(0))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    worker = Worker()
    try:
        worker.loop()
    finally:
        call("DELETE", worker.path)
