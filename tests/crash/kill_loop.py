"""The random kill loop: producers, workers, cancels, children, dependencies and retention go on
while the server is killed at random moments; afterwards everything acknowledged must be there,
nothing may have completed twice, everything must end, and `perdura verify` must find nothing.

    python3 tests/crash/kill_loop.py --kills 5000 --seed 7 --ledger kills.jsonl

A campaign is a series of rounds, each with a store of its own. Every round appends one line to
the ledger; started again with the same seed and ledger, the campaign goes on where it stopped.
Half of the kills are at a named fault point where PERDURA_FAULTS_BUILD has a binary, the others
at any moment.
"""
import argparse
import collections
import http.client
import json
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import threading
import time
import uuid

import crash_harness
from crash_harness import ENDED, LEASE_MS, CrashServer

KILLS_PER_ROUND = 100
SETTLE_S = 60  # only ever reached when something does not end
POINTS = ("before.commit", "after.commit", "before.enqueue", "after.enqueue", "before.claim",
          "after.claim", "before.report", "after.report", "before.control", "after.control",
          "sweep.lose")
CONFIG = f"""workers: 0
lease: {LEASE_MS}ms
grace: 200ms
handlers:
  - type: "brief"
    command: ["/bin/true"]
    retention: 400ms
"""
BROKEN = (OSError, http.client.HTTPException)


class Stopped(Exception):
    """The round is over; a call that waits for the server gives up."""


class Target:
    """Where the server is now; clients ask anew after every broken connection."""

    def __init__(self):
        self.address = None
        self.up = threading.Event()
        self.over = threading.Event()

    def set(self, address):
        self.address = address
        self.up.set()


class Client:
    """One connection. Repeats a request, byte for byte, until it is answered."""

    def __init__(self, target):
        self.target = target
        self.connection = None

    def once(self, method, path, text):
        if self.connection is None:
            self.connection = http.client.HTTPConnection(*self.target.address, timeout=10)
        self.connection.request(method, path, text)
        reply = self.connection.getresponse()
        body = reply.read()
        return reply.status, json.loads(body) if body else None

    def call(self, method, path, body=None):
        text = None if body is None else json.dumps(body)
        while True:
            if self.target.over.is_set():
                raise Stopped
            if not self.target.up.wait(0.05):
                continue
            try:
                status, answer = self.once(method, path, text)
                if status != 503:
                    return status, answer
            except BROKEN:
                self.close()
            time.sleep(0.004)

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None


class Ledger:
    """What clients were told. All methods may be called from any thread."""

    def __init__(self):
        self.lock = threading.Lock()
        self.findings = []
        self.ids = {}                                      # idempotency key -> id
        self.types = {}                                    # id -> type
        self.tried = set()                                 # keys that were sent
        self.completed = collections.defaultdict(dict)     # id -> {token: result}
        self.leases = set()                                # (id, token) handed out
        self.newest = collections.Counter()                # id -> newest token handed out
        self.cancelled = set()
        self.counts = collections.Counter()

    def find(self, text):
        with self.lock:
            self.findings.append(text)

    def sent(self, specs):
        with self.lock:
            self.tried.update(spec["idempotency_key"] for spec in specs)

    def acknowledged(self, spec, task):
        key = spec["idempotency_key"]
        with self.lock:
            known = self.ids.setdefault(key, task["id"])
            if known != task["id"]:
                self.findings.append(f"key {key} was acknowledged as {known} and {task['id']}")
            self.types[task["id"]] = spec["type"]
            self.counts["acknowledged"] += 1

    def some_id(self, rng):
        with self.lock:
            return rng.choice(list(self.ids.values())[-20:]) if self.ids else None

    def claimed(self, tasks):
        with self.lock:
            for task in tasks:
                lease = (task["id"], task["lease_token"])
                if lease in self.leases:
                    self.findings.append(f"lease {lease} was handed out twice")
                self.leases.add(lease)
                self.newest[task["id"]] = max(self.newest[task["id"]], task["lease_token"])

    def outcome(self, task, token, op, result):
        with self.lock:
            self.counts[op] += 1
            if op == "complete":
                self.completed[task][token] = result
                if len(self.completed[task]) > 1:
                    self.findings.append(f"task {task} completed under several leases: "
                                         f"{self.completed[task]}")


class Producer:
    def __init__(self, number, seed, target, ledger, stop):
        self.rng = random.Random(f"{seed}-producer-{number}")
        self.number, self.ledger, self.stop = number, ledger, stop
        self.client = Client(target)
        self.made = 0

    def spec(self):
        self.made += 1
        kind = self.rng.choice(("plain", "plain", "flaky", "parent", "brief", "long"))
        return {"type": kind, "queue": "work", "idempotency_key": f"{self.number}:{self.made}",
                "payload": {"n": self.made}, "max_crashes": 100000, "max_retries": 100000,
                "retry_delay_ms": 5, "max_retry_delay_ms": 20,
                **({"delay_ms": self.rng.randrange(200)} if self.rng.random() < 0.1 else {})}

    def run(self):
        while not self.stop.is_set():
            if self.rng.random() < 0.6:
                self.one()
            else:
                self.several()
            time.sleep(self.rng.random() * 0.01)

    def one(self):
        spec = self.spec()
        self.ledger.sent([spec])
        for _ in range(2 if self.rng.random() < 0.2 else 1):  # some ask again after the answer
            status, task = self.client.call("POST", "/v1/tasks", spec)
            if status not in (200, 201):
                self.ledger.find(f"enqueue answered {status}: {task}")
                return
            self.ledger.acknowledged(spec, task)

    def several(self):
        specs = [self.spec() for _ in range(self.rng.randrange(2, 9))]
        for i, spec in enumerate(specs):
            spec["ref"] = f"r{i}"
            if i and self.rng.random() < 0.4:
                spec["depends_on"] = [{"ref": f"r{self.rng.randrange(i)}", "type": "completion"}]
        self.ledger.sent(specs)
        status, answer = self.client.call("POST", "/v1/tasks", specs)
        if status not in (200, 201) or len(answer["items"]) != len(specs):
            self.ledger.find(f"enqueue of an array answered {status}: {answer}")
            return
        for spec, task in zip(specs, answer["items"]):
            self.ledger.acknowledged(spec, task)


class Worker:
    """Claims, reports, and sometimes dies with tasks in its hands."""

    def __init__(self, number, seed, target, ledger, calm):
        self.rng = random.Random(f"{seed}-worker-{number}")
        self.number, self.ledger, self.calm = number, ledger, calm
        self.client = Client(target)
        self.lives = 0
        self.id = None
        self.beaten = 0

    def run(self):
        self.register()
        while True:
            self.beat()
            status, answer = self.client.call(
                "POST", f"/v1/workers/{self.id}:claim",
                {"queues": ["work", "children"], "max": self.rng.randrange(1, 5), "wait_ms": 100})
            if status == 404:
                self.register(same=True)
                continue
            if status != 200:
                self.ledger.find(f"claim answered {status}: {answer}")
                return
            self.ledger.claimed(answer["tasks"])
            for task in answer["tasks"]:
                if not self.calm.is_set() and self.rng.random() < 0.03:
                    self.ledger.counts["worker deaths"] += 1
                    self.register()
                    break  # with all it held
                if not self.calm.is_set() and self.rng.random() < 0.01:
                    time.sleep(1.5 * LEASE_MS / 1000)  # and is a zombie then
                self.handle(task)

    def beat(self):
        """Holds nothing: a claim whose answer was lost comes back."""
        if time.monotonic() - self.beaten > LEASE_MS / 3000:
            self.beaten = time.monotonic()
            self.client.call("POST", f"/v1/workers/{self.id}:heartbeat", {"tasks": []})

    def register(self, same=False):
        if not same:
            self.lives += 1
            self.id = f"w{self.number}-{self.lives}"
        self.client.call("POST", "/v1/workers",
                         {"id": self.id, "hostname": "loop", "pool_size": 4,
                          "queues": ["work", "children"], "version": "1"})

    def report(self, task, *elements):
        base = {"task_id": task["id"], "lease_token": task["lease_token"]}
        while True:
            status, answer = self.client.call("POST", f"/v1/workers/{self.id}:report",
                                              [{**base, **element} for element in elements])
            if status == 404:  # forgotten while the server was away: the lease decides
                self.register(same=True)
                continue
            if status != 200:
                self.ledger.find(f"report answered {status}: {answer}")
                return [{"ok": False, "error": {"code": "refused"}}] * len(elements)
            return answer["items"]

    def handle(self, task):
        if task["type"] == "long":
            for step in range(1, 4):
                item = self.report(task, {"op": "checkpoint", "seq": step, "name": f"s{step}",
                                          "progress": step * 20, "data": {"step": step}})[0]
                if not item["ok"]:
                    self.refused(task, item)
                    return
                self.report(task, {"op": "log", "seq": 10 + step, "level": "INFO",
                                   "message": f"step {step}"})
        if task["type"] == "parent" and not (task.get("data") or {}).get("children"):
            self.spawn(task)
            return
        if task["type"] == "flaky" and self.rng.random() < 0.3:
            self.end(task, {"op": "fail", "error": "flaky", "retryable": True})
            return
        result = f"{self.id}:{task['lease_token']}:{uuid.uuid4()}"
        self.end(task, {"op": "complete", "result": result})

    def spawn(self, task):
        children = [{"type": "child", "queue": "children", "ref": f"c{i}", "max_crashes": 100000}
                    for i in range(3)]
        item = self.report(task, {"op": "spawn", "seq": 1, "tasks": children})[0]
        if item["ok"]:
            self.end(task, {"op": "continue", "wait_children": True})
        else:
            self.refused(task, item)

    def end(self, task, outcome):
        item = self.report(task, outcome)[0]
        if item["ok"]:
            self.ledger.outcome(task["id"], task["lease_token"], outcome["op"],
                                outcome.get("result"))
        else:
            self.refused(task, item)

    def refused(self, task, item):
        code = item["error"]["code"]
        self.ledger.counts[code] += 1
        if code == "not_found" and task["type"] == "brief":
            return  # ended, answer lost, removed by retention
        if code != "stale_lease":
            self.ledger.find(f"report of {task['id']} was refused: {item['error']}")


class Canceller:
    def __init__(self, seed, target, ledger, stop):
        self.rng = random.Random(f"{seed}-canceller")
        self.ledger, self.stop = ledger, stop
        self.client = Client(target)

    def run(self):
        while not self.stop.wait(0.01 + self.rng.random() * 0.05):
            task = self.ledger.some_id(self.rng)
            if task is None:
                continue
            status, answer = self.client.call("POST", f"/v1/tasks/{task}:cancel", {})
            if status == 200:
                self.ledger.cancelled.add(task)
            elif status == 404 and self.ledger.types.get(task) != "brief":
                self.ledger.find(f"task {task} was acknowledged and is not there")
            elif status not in (404, 409):
                self.ledger.find(f"cancel answered {status}: {answer}")


class Round:
    def __init__(self, kills, seed):
        self.kills, self.seed = kills, seed
        self.rng = random.Random(f"{seed}-killer")
        self.folder = tempfile.mkdtemp(prefix="perdura-kills-")
        self.server = CrashServer(self.folder)
        self.target = Target()
        self.ledger = Ledger()
        self.stop = threading.Event()   # producers and cancels
        self.calm = threading.Event()   # workers do not die any more
        self.threads = []

    def run(self):
        """Kills, lets everything end, checks. Returns what was found wrong."""
        try:
            self.start_server()
            self.start_clients()
            for _ in range(self.kills):
                self.kill_once()
            self.settle()
            self.check()
        finally:
            self.stop.set()
            self.target.over.set()
            self.target.up.set()
            for thread in self.threads:
                thread.join(15)
            self.server.kill()
            self.server.close()
            if not self.ledger.findings:
                shutil.rmtree(self.folder, ignore_errors=True)
        return self.ledger.findings

    def start_server(self, fault=None):
        try:
            self.server.start(config=CONFIG, fault=fault)
        except AssertionError:
            if not fault or self.server.wait() != -signal.SIGKILL:
                raise
            self.ledger.counts["killed while starting"] += 1
            self.server.start(config=CONFIG)
        self.target.set(self.server.address)

    def start_clients(self):
        actors = [Producer(n, self.seed, self.target, self.ledger, self.stop) for n in range(2)]
        actors += [Worker(n, self.seed, self.target, self.ledger, self.calm) for n in range(4)]
        actors.append(Canceller(self.seed, self.target, self.ledger, self.stop))
        for actor in actors:
            thread = threading.Thread(target=self.act, args=(actor,), daemon=True)
            thread.start()
            self.threads.append(thread)

    def act(self, actor):
        try:
            actor.run()
        except Stopped:
            pass
        except BaseException as error:  # a client that broke would hide what comes after
            self.ledger.find(f"{type(actor).__name__} ended with {error!r}")
        finally:
            actor.client.close()

    def kill_once(self):
        how = self.rng.random()
        wait_s = 0.02 + self.rng.random() * 0.25
        if how < 0.1:  # paused before it dies: clients time nothing out, leases pass
            time.sleep(wait_s)
            os.kill(self.server.pid, signal.SIGSTOP)
            time.sleep(self.rng.random() * 3 * LEASE_MS / 1000)
        elif how < 0.2:  # long enough alive for leases to end
            time.sleep(wait_s + 4 * LEASE_MS / 1000)
        elif how < 0.3:  # in the drain
            time.sleep(wait_s)
            os.kill(self.server.pid, signal.SIGTERM)
            time.sleep(self.rng.random() * 0.02)
        else:  # at its fault point, or at any moment
            end = time.monotonic() + wait_s
            while time.monotonic() < end and self.server.process.poll() is None:
                time.sleep(0.002)
        self.target.up.clear()
        code = self.server.kill()
        if code not in (-signal.SIGKILL, 0) or "Sanitizer" in self.server.log():
            self.ledger.find(f"the server ended with {code}: {self.server.log()[-2000:]}")
        if self.rng.random() < 0.1:
            self.verify()
        fault = None
        if crash_harness.fault_binary() and self.rng.random() < 0.5:
            fault = f"{self.rng.choice(POINTS)}:{self.rng.randrange(1, 60)}"
        self.start_server(fault)

    def verify(self):
        code, text = self.server.verify()
        if code != 0:
            self.ledger.find(f"verify: {text[:2000]}")

    def settle(self):
        """No more kills, no more input: everything must end."""
        self.stop.set()
        self.calm.set()
        self.target.up.clear()
        self.server.kill()
        self.start_server()
        client = Client(self.target)
        end = time.monotonic() + SETTLE_S
        while time.monotonic() < end:
            counts = client.call("GET", "/v1/stats")[1]["counts"]
            if not any(count for status, count in counts.items() if status not in ENDED):
                client.close()
                return
            time.sleep(0.05)
        client.close()
        self.ledger.find(f"not everything ended: {counts}")

    def check(self):
        self.target.over.set()
        self.server.kill()
        self.verify()
        with sqlite3.connect(f"file:{self.server.store}?mode=ro", uri=True) as db:
            rows = db.execute("SELECT lower(hex(id)), idempotency_key, type, status, "
                              "lower(hex(parent_id)), attempts FROM tasks").fetchall()
            results = dict(db.execute("SELECT lower(hex(task_id)), payload FROM task_results"))
            ends = collections.Counter(
                row[0] for row in db.execute(
                    "SELECT lower(hex(task_id)) FROM task_events WHERE status IN "
                    "('completed','failed','dead_letter','cancelled','partial')"))
        tasks = {str(uuid.UUID(row[0])): row for row in rows}
        self.check_keys(tasks)
        self.check_ends(tasks, {str(uuid.UUID(k)): v for k, v in results.items()},
                        {str(uuid.UUID(k)): v for k, v in ends.items()})
        self.check_children(tasks)
        self.ledger.counts["tasks"] = len(tasks)
        self.ledger.counts["cancelled"] = len(self.ledger.cancelled)
        self.ledger.counts["removed"] = len(set(self.ledger.ids.values()) - set(tasks))

    def check_keys(self, tasks):
        """V1: acknowledged is stored, once per key; nothing came from nowhere."""
        stored = collections.defaultdict(list)
        for task, row in tasks.items():
            if row[2] != "child":
                stored[row[1]].append(task)
        for key, ids in stored.items():
            if len(ids) > 1:
                self.ledger.find(f"key {key} is stored {len(ids)} times: {ids}")
            if key not in self.ledger.tried:
                self.ledger.find(f"key {key} was never sent")
        for key, task in self.ledger.ids.items():
            if self.ledger.types[task] != "brief" and stored.get(key) != [task]:
                self.ledger.find(f"key {key}, acknowledged as {task}, is {stored.get(key)}")

    def check_ends(self, tasks, results, ends):
        """V2: one end each, and the one that was acknowledged, under the newest lease."""
        for task, row in tasks.items():
            if row[3] in ENDED and ends.get(task) != 1:
                self.ledger.find(f"task {task} ({row[3]}) ended {ends.get(task)} times")
        for task, completions in self.ledger.completed.items():
            row = tasks.get(task)
            if min(completions) < self.ledger.newest[task]:
                self.ledger.find(f"task {task} was completed under {sorted(completions)}, lease "
                                 f"{self.ledger.newest[task]} had been handed out")
            if row is None:
                if self.ledger.types.get(task) != "brief":
                    self.ledger.find(f"completed task {task} is not there")
                continue
            if row[3] != "completed":
                self.ledger.find(f"task {task} was completed, is {row[3]}")
            elif json.loads(results.get(task, "null")) not in completions.values():
                self.ledger.find(f"task {task} has result {results.get(task)}, "
                                 f"acknowledged was {completions}")
        for task in self.ledger.cancelled:
            row = tasks.get(task)
            if row is not None and row[3] != "cancelled":
                self.ledger.find(f"task {task} was cancelled, is {row[3]}")

    def check_children(self, tasks):
        """V6: a parent that completed had all its children, each once."""
        children = collections.Counter(str(uuid.UUID(row[4])) for row in tasks.values()
                                       if row[2] == "child" and row[4])
        for task, row in tasks.items():
            if row[2] != "parent":
                continue
            if row[3] == "completed" and children[task] != 3:
                self.ledger.find(f"parent {task} has {children[task]} children")
            if children[task] not in (0, 3):
                self.ledger.find(f"parent {task} has {children[task]} of 3 children")


def done_before(path, seed):
    """Kills and rounds of this seed that the ledger has already."""
    kills = rounds = 0
    for line in crash_harness.json_lines(path) if path else []:
        if line["seed"] == seed:
            kills += line["kills"]
            rounds += 1
    return kills, rounds


def campaign(kills, seed, ledger_path=None, tell=None):
    """Returns the findings of all rounds."""
    findings = []
    done, number = done_before(ledger_path, seed)
    while done < kills:
        began = time.monotonic()
        a_round = Round(min(KILLS_PER_ROUND, kills - done), f"{seed}.{number}")
        found = a_round.run()
        line = {"seed": seed, "round": number, "kills": a_round.kills, "findings": found,
                "seconds": round(time.monotonic() - began, 1), **a_round.ledger.counts}
        if found:
            line["folder"] = a_round.folder
        if ledger_path:
            with open(ledger_path, "a") as file:
                file.write(json.dumps(line) + "\n")
        if tell:
            tell(json.dumps(line))
        findings += found
        done += a_round.kills
        number += 1
    return findings


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", default=str(random.randrange(10 ** 6)))
    parser.add_argument("--ledger", help="file that gets one line of JSON per round")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    findings = campaign(arguments.kills, arguments.seed, arguments.ledger,
                        lambda line: print(line, flush=True))
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
