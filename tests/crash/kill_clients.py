"""The clients of the kill loop: producers, workers, an operator who cancels, a receiver of
callbacks, and the answers all of them got. Every client repeats a request, byte for byte, until it
is answered, as a client of a server that comes back should."""
import collections
import http.client
import http.server
import json
import random
import threading
import time
import uuid

LEASE_MS = 250
BROKEN = (OSError, http.client.HTTPException)


class Stopped(Exception):
    """The round is over; a call that waits for the server gives up."""


class Target:
    """Where the server is and whether it is up; clients ask again after every broken connection."""

    def __init__(self):
        self.address = None
        self.up = threading.Event()
        self.over = threading.Event()


class Client:
    """One connection."""

    def __init__(self, target):
        self.target = target
        self.connection = None

    def once(self, method, path, text):
        if self.connection is None:
            self.connection = http.client.HTTPConnection(*self.target.address, timeout=60)
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


class Told:
    """The answers clients got, in order: what the store is held to. All
    methods may be called from any thread."""

    def __init__(self):
        self.lock = threading.Lock()
        self.findings = []
        self.lost = 0                                      # acknowledged, not there
        self.twice = 0                                     # completed under several leases
        self.ids = {}                                      # idempotency key -> id
        self.types = {}                                    # id -> type
        self.tried = set()                                 # keys that were sent
        self.acknowledged_log = []                         # (id as bytes, type)
        self.completed_log = []                            # id as bytes
        self.cancelled_log = []
        self.completed = collections.defaultdict(dict)     # id -> {token: result}
        self.leases = set()                                # (id, token) handed out
        self.newest = collections.Counter()                # id -> newest token handed out
        self.cancelled = set()
        self.callbacks = set()                             # keys with a callback
        self.counts = collections.Counter()

    def find(self, text):
        with self.lock:
            if len(self.findings) < 50:
                self.findings.append(text)

    def find_lost(self, text):
        self.lost += 1
        self.find(text)

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def sent(self, specs):
        with self.lock:
            self.tried.update(spec["idempotency_key"] for spec in specs)

    def acknowledged(self, spec, task):
        key = spec["idempotency_key"]
        with self.lock:
            known = self.ids.setdefault(key, task["id"])
            if known != task["id"] and spec["type"] == "brief":
                self.ids[key] = task["id"]  # retention removed the first, and its key with it
            elif known != task["id"]:
                self.findings.append(f"key {key} was acknowledged as {known} and {task['id']}")
            if task["id"] not in self.types:
                self.types[task["id"]] = spec["type"]
                self.acknowledged_log.append((uuid.UUID(task["id"]).bytes, spec["type"]))
            if "callback_url" in spec:
                self.callbacks.add(task["id"])

    def some_id(self, rng):
        with self.lock:
            if not self.acknowledged_log:
                return None
            return str(uuid.UUID(bytes=rng.choice(self.acknowledged_log[-20:])[0]))

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
                self.completed_log.append(uuid.UUID(task).bytes)
                if len(self.completed[task]) > 1:
                    self.twice += 1
                    self.findings.append(f"task {task} completed under several leases: "
                                         f"{self.completed[task]}")

    def was_cancelled(self, task):
        with self.lock:
            if task not in self.cancelled:
                self.cancelled.add(task)
                self.cancelled_log.append(uuid.UUID(task).bytes)


class Producer:
    KINDS = ("plain", "plain", "flaky", "parent", "brief", "long", "process:plain",
             "process:steps", "process:parent", "library:plain", "library:steps",
             "library:parent")

    def __init__(self, number, seed, target, told, stop, callback_url):
        self.rng = random.Random(f"{seed}-producer-{number}")
        self.number, self.told, self.stop = number, told, stop
        self.callback_url = callback_url
        self.client = Client(target)
        self.made = 0

    def spec(self):
        self.made += 1
        kind = self.rng.choice(self.KINDS)
        queue = kind.split(":")[0] if ":" in kind else "work"
        spec = {"type": kind, "queue": queue, "idempotency_key": f"{self.number}:{self.made}",
                "payload": {"n": self.made}, "max_crashes": 100000, "max_retries": 100000,
                "retry_delay_ms": 5, "max_retry_delay_ms": 20}
        if self.rng.random() < 0.1:
            spec["delay_ms"] = self.rng.randrange(200)
        if self.rng.random() < 0.05:
            spec["callback_url"] = self.callback_url
        return spec

    def run(self):
        while not self.stop.is_set():
            if self.rng.random() < 0.6:
                self.one()
            else:
                self.several()
            time.sleep(self.rng.random() * 0.03)

    def one(self):
        spec = self.spec()
        self.told.sent([spec])
        for _ in range(2 if self.rng.random() < 0.2 else 1):  # some ask again after the answer
            status, task = self.client.call("POST", "/v1/tasks", spec)
            if status not in (200, 201):
                self.told.find(f"enqueue answered {status}: {task}")
                return
            self.told.acknowledged(spec, task)

    def several(self):
        specs = [self.spec() for _ in range(self.rng.randrange(2, 9))]
        for i, spec in enumerate(specs):
            spec["ref"] = f"r{i}"
            if i and self.rng.random() < 0.4:
                spec["depends_on"] = [{"ref": f"r{self.rng.randrange(i)}", "type": "completion"}]
        self.told.sent(specs)
        status, answer = self.client.call("POST", "/v1/tasks", specs)
        if status not in (200, 201) or len(answer["items"]) != len(specs):
            self.told.find(f"enqueue of an array answered {status}: {answer}")
            return
        for spec, task in zip(specs, answer["items"]):
            self.told.acknowledged(spec, task)


class Worker:
    """Claims and reports over HTTP, and sometimes dies or sleeps with tasks in its hands."""
    QUEUES = ["work", "children"]

    def __init__(self, number, seed, target, told, calm):
        self.rng = random.Random(f"{seed}-worker-{number}")
        self.number, self.told, self.calm = number, told, calm
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
                {"queues": self.QUEUES + (["probe"] if self.calm.is_set() else []),
                 "max": self.rng.randrange(1, 5), "wait_ms": 100})
            if status == 404:
                self.register(same=True)
                continue
            if status != 200:
                self.told.find(f"claim answered {status}: {answer}")
                return
            self.told.claimed(answer["tasks"])
            for task in answer["tasks"]:
                if not self.calm.is_set() and self.rng.random() < 0.03:
                    self.told.count("vanished clients")
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
                          "queues": self.QUEUES, "version": "1"})

    def report(self, task, *elements):
        base = {"task_id": task["id"], "lease_token": task["lease_token"]}
        while True:
            status, answer = self.client.call("POST", f"/v1/workers/{self.id}:report",
                                              [{**base, **element} for element in elements])
            if status == 404:  # forgotten while the server was away: the lease decides
                self.register(same=True)
                continue
            if status != 200:
                self.told.find(f"report answered {status}: {answer}")
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
            self.told.outcome(task["id"], task["lease_token"], outcome["op"],
                              outcome.get("result"))
        else:
            self.refused(task, item)

    def refused(self, task, item):
        code = item["error"]["code"]
        self.told.count(code)
        if code == "not_found" and task["type"] == "brief":
            return  # ended, answer lost, removed by retention
        if code != "stale_lease":
            self.told.find(f"report of {task['id']} was refused: {item['error']}")


class Operator:
    """Cancels what it can."""

    def __init__(self, seed, target, told, stop):
        self.rng = random.Random(f"{seed}-operator")
        self.told, self.stop = told, stop
        self.client = Client(target)

    def run(self):
        while not self.stop.wait(0.02 + self.rng.random() * 0.08):
            task = self.told.some_id(self.rng)
            if task is None:
                continue
            status, answer = self.client.call("POST", f"/v1/tasks/{task}:cancel", {})
            if status == 200:
                self.told.was_cancelled(task)
            elif status == 404 and self.told.types.get(task) != "brief":
                self.told.find_lost(f"task {task} was acknowledged and is not there")
            elif status not in (404, 409):
                self.told.find(f"cancel answered {status}: {answer}")


class Receiver:
    """Gets callbacks. received: task -> set of message ids."""

    def __init__(self):
        self.received = received = collections.defaultdict(collections.Counter)

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                received[body["id"]][self.headers["Perdura-Event-Id"]] += 1
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/ended"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
