"""A worker over HTTP, a separate process that is stopped at any moment (SIGSTOP) and continues
later as if nothing had happened. Everything it says about a task carries its lease token. What was
refused is written to a file, a line each: operation and error code. Once one report was refused it
insists: it tries all operations under the lost lease.

    python3 stopped_client.py URL NAME REFUSED SEED        (tests/crash/stop_loop.py)
"""
import http.client
import json
import random
import sys
import time

TRIED_BY_A_ZOMBIE = ("start", "progress", "checkpoint", "log", "spawn", "continue", "fail",
                     "partial", "release", "complete")


class StoppedClient:
    def __init__(self, url, name, refused, seed):
        host, port = url.split("//")[1].split(":")
        self.connection = http.client.HTTPConnection(host, int(port), timeout=30)
        self.name = name
        self.refused = open(refused, "a", buffering=1)
        self.rng = random.Random(seed)

    def call(self, path, body):
        while True:
            try:
                self.connection.request("POST", path, json.dumps(body))
                reply = self.connection.getresponse()
                text = reply.read()
                return reply.status, json.loads(text) if text else None
            except (OSError, http.client.HTTPException):
                self.connection.close()  # timed out while it was stopped
                time.sleep(0.01)

    def register(self):
        self.call("/v1/workers", {"id": self.name, "hostname": "h", "pool_size": 3,
                                  "queues": ["http", "children"], "version": "1"})

    def run(self):
        self.register()
        while True:
            status, answer = self.call(f"/v1/workers/{self.name}:claim",
                                       {"max": 3, "wait_ms": 100})
            if status == 404:
                self.register()
                continue
            for task in answer["tasks"]:
                self.handle(task)

    def report(self, task, op):
        """True when it was taken."""
        element = {"task_id": task["id"], "lease_token": task["lease_token"], "op": op,
                   **self.content(op, task["lease_token"])}
        while True:
            status, answer = self.call(f"/v1/workers/{self.name}:report", [element])
            if status != 404:
                break
            self.register()
        item = answer["items"][0]
        if not item["ok"]:
            self.refused.write(f"{op} {item['error']['code']}\n")
        return item["ok"]

    def content(self, op, token):
        words = f"token {token}"
        return {"progress": {"progress": self.rng.randrange(100), "state": words},
                "checkpoint": {"name": "c", "progress": 50, "data": {"token": token}},
                "log": {"level": "INFO", "message": words},
                "spawn": {"tasks": [{"type": "child", "queue": "children",
                                     "ref": f"c{i}-{token}", "max_crashes": 100000,
                                     "payload": {"token": token}} for i in range(2)]},
                "continue": {"data": {"token": token}},
                "fail": {"error": words, "retryable": True},
                "partial": {"result": {"token": token}},
                "complete": {"result": {"token": token}}}.get(op, {})

    def handle(self, task):
        steps = ["start"]
        if task["type"] != "child":
            steps += self.rng.choices(("progress", "checkpoint", "log", "spawn"), k=5)
        steps.append(self.rng.choice(("complete", "complete", "complete", "fail", "continue",
                                      "release")) if task["type"] != "child" else "complete")
        for op in steps:
            time.sleep(self.rng.random() * 0.08)
            if not self.report(task, op):
                self.insist(task)
                return

    def insist(self, task):
        lease = {"task_id": task["id"], "lease_token": task["lease_token"]}
        status, answer = self.call(f"/v1/workers/{self.name}:heartbeat", {"tasks": [lease]})
        if status == 200 and task["id"] in answer["lost"] + answer.get("cancel", []):
            self.refused.write("heartbeat stale_lease\n")
        for op in TRIED_BY_A_ZOMBIE:
            if self.report(task, op):
                self.refused.write(f"{op} TAKEN-{task['id']}-{task['lease_token']}\n")


if __name__ == "__main__":
    StoppedClient(*sys.argv[1:5]).run()
