"""Calls of services, for bench/run.py: tasks that Perdura makes as calls of a target that does nothing (call_peer.c),
beside a bare client (libcurl, nghttp2: call_load.c) that calls the same target in the same turn. Every call of ours
is a durable task: claimed, started and completed on disk. Also what a call in flight takes of memory.

Not run by itself: `make bench ARGS="--only services"`."""
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
import urllib.request

import own

TURNS = 3
KINDS = ("http", "https", "grpc", "grpcs")
IN_FLIGHT = (1, 256)
HELD = 2000


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
        return f"{'grpc' if self.kind == 'hold' else self.kind}://127.0.0.1:{self.port}"

    def close(self):
        self.process.stdin.close()
        self.process.wait(20)
        self.process.stdout.close()


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
    return "\n".join([*lines, "handlers:", "  - {type: bench, service: s, method: Do}", ""])


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
        row["held_kib"] = held_kib(build, folder)
    return row
