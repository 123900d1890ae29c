"""Calls of services, for bench/run.py: tasks that Perdura makes as calls of a target that does nothing (call_peer.c),
beside a bare client (libcurl, nghttp2: call_load.c) that calls the same target in the same turn. Every call of ours
is a durable task: claimed, started and completed on disk. Also what a call in flight takes of memory, how soon after
its enqueue a call is at the target, how long ten thousand schedules of one second take, and a step of an agent.

Not run by itself: `make bench ARGS="--only services"`."""
import datetime
import http.client
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

import own

TURNS = 3
KINDS = ("http", "https", "grpc", "grpcs")
IN_FLIGHT = (1, 256)
HELD = 2000
SCHEDULES = 10000
SCHEDULES_AHEAD_S = 60  # until they are due: so long they may take to make
AGENT_CALLS = 200


def field(number, data):
    """A field of protobuf with bytes in it."""
    length, out = len(data), b""
    while length > 127:
        out, length = out + bytes([length % 128 + 128]), length // 128
    return bytes([number * 8 + 2]) + out + bytes([length]) + data


def descriptor():
    """A FileDescriptorSet: a message as the load programs' payload is, an empty answer, one method."""
    text = bytes([0x20, 1, 0x28, 9])  # optional, string
    fields = b"".join(field(2, field(1, name) + bytes([0x18, number]) + text)
                      for number, name in enumerate((b"to", b"subject", b"body"), 1))
    method = field(1, b"Do") + field(2, b".bench.Ask") + field(3, b".bench.Done")
    file = (field(1, b"bench.proto") + field(2, b"bench") + field(4, field(1, b"Ask") + fields) +
            field(4, field(1, b"Done")) + field(6, field(1, b"Peer") + field(2, method)) + field(12, b"proto3"))
    return field(1, file)


class Peer:
    def __init__(self, build, kind, folder):
        self.kind = kind
        files = (os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")) if kind.endswith("s") else ()
        self.process = subprocess.Popen([os.path.join(build, "call_peer"), kind.rstrip("s"), *files],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())

    @property
    def url(self):
        return f"{ {'hold': 'grpc', 'clock': 'http'}.get(self.kind, self.kind)}://127.0.0.1:{self.port}"

    def close(self):
        """What it printed at its end."""
        self.process.stdin.close()
        with self.process.stdout:
            printed = self.process.stdout.read()
        self.process.wait(20)
        return printed


class Folder:
    """With a certificate and the descriptor."""

    def __init__(self, build):
        self.server = own.Server(build, tls=True)

    def __enter__(self):
        self.path = self.server.folder = tempfile.mkdtemp(prefix="bench-", dir=self.server.build)
        self.server.make_certificate()
        with open(os.path.join(self.path, "bench.pb"), "wb") as handle:
            handle.write(descriptor())
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


def settings(peer, folder, in_flight):
    lines = ["services:", f"  - name: s\n    url: {peer.url}\n    concurrency: {in_flight}\n    timeout: 600s"]
    if peer.url.split(":")[0].endswith("s"):
        lines.append(f"    tls: {{ca: {folder.path}/cert.pem}}")
    if peer.url.startswith("grpc"):
        lines.append(f"    descriptor: {folder.path}/bench.pb\n    package: bench.Peer")
    return "\n".join([*lines, "handlers:", *(f"  - {{type: {kind}, service: s, method: Do}}" for kind in ("bench", "clock")),
                      ""])


def post(server, path):
    request = urllib.request.Request(server.url + path, data=b"{}", method="POST",
                                     headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.load(reply)


def completed(server):
    return server.stats()["totals"]["completed"]


def in_flight_of(server):
    with urllib.request.urlopen(server.url + "/v1/services/s", timeout=60) as reply:
        return json.load(reply)["in_flight"]


def ours(build, peer, folder, in_flight, tasks):
    """Calls per second, from the moment the queue is open to the last completion."""
    with own.Server(build, settings(peer, folder, in_flight)) as server:
        post(server, "/v1/queues/default:pause")
        server.http("enqueue", 4, 1000, tasks)
        begun = time.monotonic()
        post(server, "/v1/queues/default:resume")
        while completed(server) < tasks:
            if time.monotonic() - begun > own.STEP_SECONDS_MAX:
                raise own.BenchError(f"{peer.kind}: {completed(server)} of {tasks} calls")
            time.sleep(0.02)
        return tasks / (time.monotonic() - begun)


def bare(build, peer, folder, in_flight, calls):
    url = peer.url + ("/Do" if peer.url.startswith("http") else "")
    ca = [f"{folder.path}/cert.pem"] if peer.url.split(":")[0].endswith("s") else []
    command = [os.path.join(build, "call_load"), url, str(calls), str(in_flight), *ca]
    return own.run_lines(command)[-1]["per_second"]


def held_kib(build, folder):
    """Memory of a call that waits for its answer, with its task."""
    peer = Peer(build, "hold", folder.path)
    try:
        with own.Server(build, settings(peer, folder, HELD)) as server:
            idle = server.memory_mib()
            server.http("enqueue", 4, 500, HELD)
            deadline = time.monotonic() + 120
            while in_flight_of(server) < HELD:
                if time.monotonic() > deadline:
                    raise own.BenchError("not all calls are in flight")
                time.sleep(0.05)
            time.sleep(1)
            return (server.memory_mib() - idle) * 1024 / HELD
    finally:
        peer.close()


def start_latency(build, folder, tasks):
    """From the call of the library that enqueues, at 100 in a second, to the request at the target."""
    peer = Peer(build, "clock", folder.path)
    try:
        with own.Server(build, settings(peer, folder, 256)) as server:
            own.run_lines([os.path.join(build, "lib_load"), "offer", server.url, "--tasks", str(tasks), "--rate", "100"])
            wait_completed(server, tasks)
    finally:
        printed = peer.close()
    figures = json.loads(printed)
    return {"start_p50_ms": figures["p50_ms"], "start_p99_ms": figures["p99_ms"]}


def wait_completed(server, tasks):
    deadline = time.monotonic() + own.STEP_SECONDS_MAX
    while completed(server) < tasks:
        if time.monotonic() > deadline:
            raise own.BenchError(f"{completed(server)} of {tasks} calls")
        time.sleep(0.1)


def make_schedules(server, count, due):
    """One job, and so many schedules of it that fire once, all at that moment."""
    connection = http.client.HTTPConnection(server.address, timeout=60)

    def call(path, body):
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        reply = connection.getresponse()
        text = reply.read()
        if reply.status != 201:
            raise own.BenchError(f"{path}: {reply.status} {text[:300]}")
        return json.loads(text)

    job = call("/v1/jobs", {"name": "bench", "category": "reports", "task_type": "bench", "queue": "default",
                            "payload": {}})["id"]
    at = datetime.datetime.fromtimestamp(due, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    for _ in range(count):
        call("/v1/schedules", {"job_id": job, "scheduled_at": at})
    connection.close()


def scheduled(build, folder, count, ahead_s):
    """Seconds from the moment when all schedules are due to the last request at the target."""
    peer = Peer(build, "clock", folder.path)
    try:
        with own.Server(build, settings(peer, folder, 256)) as server:
            due = int(time.time()) + ahead_s
            make_schedules(server, count, due)
            if time.time() > due - 1:
                raise own.BenchError(f"{count} schedules took longer than {ahead_s} s to make")
            wait_completed(server, count)
    finally:
        printed = peer.close()
    figures = json.loads(printed)
    if figures["calls"] != count or figures["first_us"] < due * 1e6:
        raise own.BenchError(f"not {count} calls at their time: {figures}")
    return {"scheduled": count, "scheduled_s": figures["last_us"] / 1e6 - due}


def agent_ms(build, calls):
    """Milliseconds per call of a model, with what the stand-in for the model takes itself."""
    done = subprocess.run([sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "agents.py"),
                           str(calls)], stdout=subprocess.PIPE, text=True, timeout=own.STEP_SECONDS_MAX, check=True,
                          env={**os.environ, "PERDURA_BUILD": build})
    return float(done.stdout.split()[0])


def measure(build, say, quick):
    row = {}
    with Folder(build) as folder:
        for kind in KINDS:
            peer = Peer(build, kind, folder.path)
            try:
                for in_flight in IN_FLIGHT:
                    tasks = (400 if quick else 4000) if in_flight == 1 else (2000 if quick else 40000)
                    pairs = []
                    for turn in range(1 if quick else TURNS):
                        say(f"services: {kind}, {in_flight} in flight, turn {turn + 1}")
                        pairs.append((bare(build, peer, folder, in_flight, tasks),
                                      ours(build, peer, folder, in_flight, tasks)))
                    name = f"{kind}_{in_flight}"
                    row[f"{name}_bare"] = statistics.median(pair[0] for pair in pairs)
                    row[name] = statistics.median(pair[1] for pair in pairs)
                    row[f"{name}_ratio"] = statistics.median(pair[1] / pair[0] for pair in pairs)
            finally:
                peer.close()
        say("services: memory of calls in flight")
        row["held_kib"] = held_kib(build, folder)
        say("services: start latency")
        row.update(start_latency(build, folder, 200 if quick else 1000))
        say("services: schedules of one second")
        row.update(scheduled(build, folder, SCHEDULES // 10 if quick else SCHEDULES, 10 if quick else SCHEDULES_AHEAD_S))
        say("services: steps of an agent")
        row["agent_ms"] = agent_ms(build, AGENT_CALLS)
    return row
