"""Clients and yardsticks for the load part of the fault campaign: a server in a folder of its own,
raw HTTP connections, a probe that measures what a normal client feels, and crowds. Probe and
crowds are processes of their own, so that they take no time from each other; they are this file:

    python3 load_clients.py probe|idle|slow '{"address": [...], ...}'

Each prints JSON lines and ends when its standard input is closed.
"""
import contextlib
import ctypes
import json
import os
import pathlib
import resource
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "crash"), str(HERE.parent / "api")]
from crash_harness import CrashServer, plain_binary  # noqa: E402


# Connections.

def request_bytes(method, path, body=None):
    """body: bytes as they are, anything else as JSON."""
    if body is None:
        return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return (f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(text)}\r\n\r\n").encode() + text


class Wire:
    """One kept-alive connection. Requests may be sent first and read later."""

    def __init__(self, address, timeout=120, receive_bytes=None):
        self.sock = socket.socket()
        if receive_bytes:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.sock.settimeout(timeout)
        self.sock.connect(tuple(address))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.data = b""

    def send(self, method, path, body=None):
        self.sock.sendall(request_bytes(method, path, body))

    def reply_bytes(self):
        while (head_end := self.data.find(b"\r\n\r\n")) < 0:
            self.more()
        head = self.data[:head_end].lower()
        length = int(head.split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
        parts, have = [self.data[head_end + 4:]], len(self.data) - head_end - 4
        self.data = b""
        while have < length:
            got = self.sock.recv(1 << 20)
            if not got:
                raise ConnectionError("closed")
            parts.append(got)
            have += len(got)
        body = b"".join(parts)
        self.data = body[length:]
        return int(head.split(None, 2)[1]), body[:length]

    def more(self):
        got = self.sock.recv(65536)
        if not got:
            raise ConnectionError("closed")
        self.data += got

    def call(self, method, path, body=None):
        self.send(method, path, body)
        status, text = self.reply_bytes()
        return status, json.loads(text) if text else None

    def expect(self, status, method, path, body=None):
        got, reply = self.call(method, path, body)
        if got != status:
            raise AssertionError(f"{method} {path}: {got} {str(reply)[:300]}")
        return reply

    def close(self):
        self.sock.close()


# Yardsticks.

def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else 0.0


def ms(seconds):
    return round(seconds * 1e3, 3)


def rss_mb(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return round(int(line.split()[1]) / 1024, 1)
    return 0.0


def peak_mb(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return round(int(line.split()[1]) / 1024, 1)
    return 0.0


def cpu_us(pid):
    """Processor time of all its threads, in microseconds and finer than clock ticks."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError):
            total += int(pathlib.Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split()[0])
    return total / 1000


def raise_descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG = 1


def on_its_own():
    """For a child process: Ctrl-C is for the campaign alone, but no child outlives the campaign."""
    os.setpgrp()
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Site:
    """A server with a store in a temporary folder; both are gone at the end, whatever happens."""

    def __init__(self, config="", lease="30s", arguments=()):
        self.folder = tempfile.mkdtemp(prefix="perdura-load-")
        self.server = CrashServer(self.folder)
        self.config, self.lease, self.arguments = config, lease, arguments
        self.processes = []

    def __enter__(self):
        raise_descriptors()
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        try:
            self.server.kill()
        finally:
            self.server.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    def start(self):
        self.server.start(*self.arguments, lease=self.lease, config=self.config,
                          preexec=on_its_own)

    def kill(self):
        self.server.kill()

    @property
    def pid(self):
        return self.server.pid

    @property
    def address(self):
        return self.server.address

    def wire(self, **options):
        return Wire(self.address, **options)

    def stats(self):
        with contextlib.closing(self.wire()) as wire:
            return wire.expect(200, "GET", "/v1/stats")

    def workers(self):
        """Rows, also of those that are silent and not removed yet; no further than a page."""
        with contextlib.closing(self.wire()) as wire:
            return len(wire.expect(200, "GET", "/v1/workers?limit=10")["items"])

    def register(self, wire, worker, queues):
        wire.expect(201, "POST", "/v1/workers", {"id": worker, "hostname": "h", "pool_size": 1,
                                                 "queues": queues, "version": "1"})

    def worker(self, config, *arguments):
        """A `perdura worker` process of this server."""
        path = pathlib.Path(self.folder, f"worker-{len(self.processes)}.yaml")
        path.write_text(config)
        env = {k: v for k, v in os.environ.items() if not k.startswith("PERDURA_")}
        with open(os.path.join(self.folder, "worker.log"), "ab") as log:
            process = subprocess.Popen(
                [plain_binary(), "worker", "--server", "http://%s:%d" % self.address, "--config",
                 str(path), *arguments], stdout=subprocess.DEVNULL, stderr=log, env=env,
                cwd=self.folder, preexec_fn=on_its_own)
        self.processes.append(process)
        return process

    def verify(self, timeout=3600):
        """"" when `perdura verify` finds nothing, else what it says."""
        done = subprocess.run([plain_binary(), "verify", "--store", self.server.store, "--json"],
                              capture_output=True, text=True, timeout=timeout)
        return "" if done.returncode == 0 else (done.stdout + done.stderr)[-500:]


class Helper:
    """One process of this file. Closing its input ends it; every line it prints is JSON."""

    def __init__(self, role, nice=0, **options):
        self.process = subprocess.Popen(
            ["nice", "-n", str(nice), sys.executable, __file__, role, json.dumps(options)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=on_its_own)

    def line(self):
        text = self.process.stdout.readline()
        if not text:
            raise AssertionError("a helper process ended too early")
        return json.loads(text)

    def finish(self):
        self.process.stdin.close()
        last = None
        for text in self.process.stdout:
            last = json.loads(text)
        self.process.wait()
        return last

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Probe(Helper):
    """What a normal client feels: it enqueues, claims and completes one task after the other."""

    def __init__(self, address, **options):
        super().__init__("probe", address=address, **options)
        self.line()  # it is running


def felt(address, seconds):
    """The figures of a probe that runs for so long."""
    with Probe(address) as probe:
        time.sleep(seconds)
        return probe.finish()


def until_closed():
    """Set when this process is no longer needed."""
    over = threading.Event()

    def watch():
        while os.read(0, 4096):  # not sys.stdin: its lock would be held at the exit
            pass
        over.set()

    threading.Thread(target=watch, daemon=True).start()
    return over


def tell(**fields):
    print(json.dumps(fields), flush=True)


def run_probe(address, pause_ms=3):
    over = until_closed()
    wire = Wire(address)
    name = f"probe-{os.getpid()}"
    wire.expect(201, "POST", "/v1/workers", {"id": name, "hostname": "h", "pool_size": 1,
                                             "queues": [name], "version": "1"})
    enqueue = request_bytes("POST", "/v1/tasks", {"type": "probe", "queue": name})
    claim = request_bytes("POST", f"/v1/workers/{name}:claim", {"max": 1})
    times, failures = [], 0

    def timed(data):
        began = time.monotonic()
        wire.sock.sendall(data)
        status, body = wire.reply_bytes()
        times.append(time.monotonic() - began)
        return status, body

    tell(running=True)
    while not over.wait(pause_ms / 1000):
        status, _ = timed(enqueue)
        failures += status != 201
        status, body = timed(claim)
        tasks = json.loads(body)["tasks"] if status == 200 else []
        failures += len(tasks) != 1
        for task in tasks:
            element = {"task_id": task["id"], "lease_token": task["lease_token"], "op": "complete"}
            status, body = timed(request_bytes("POST", f"/v1/workers/{name}:report", [element]))
            failures += status != 200 or b'"ok":true' not in body
    tell(requests=len(times), failures=failures, p50_ms=ms(percentile(times, 0.5)),
         p99_ms=ms(percentile(times, 0.99)), worst_ms=ms(max(times, default=0)))


# Crowds.

def open_many(address, count, **options):
    return [Wire(address, **options) for _ in range(count)]


def run_idle(address, count, lease_s, holding):
    """`count` workers parked in long-polls; the first `holding` of them hold a task each. All send
    heartbeats three times per lease over a few connections, as worker processes do. Prints what
    went wrong: answers that came later than the lease allows, workers that were forgotten."""
    raise_descriptors()
    over = until_closed()
    wires = open_many(address, count)
    for i, wire in enumerate(wires):
        wire.send("POST", "/v1/workers", {"id": f"idle-{i}", "hostname": "h", "pool_size": 1,
                                          "queues": ["idle"], "version": "1"})
    refused = sum(wire.reply_bytes()[0] != 201 for wire in wires)
    for i in range(holding):
        task = wires[i].expect(200, "POST", f"/v1/workers/idle-{i}:claim",
                               {"max": 1, "queues": ["held"]})["tasks"][0]
        wires[i].expect(200, "POST", f"/v1/workers/idle-{i}:report",
                        [{"task_id": task["id"], "lease_token": task["lease_token"],
                          "op": "start"}])
    beats = Beats(address, count, lease_s, over)
    beats.start()
    tell(connected=count, refused=refused)
    answered, gone = park_until(over, wires, int(lease_s * 1000 * 2 / 3))
    beats.join()
    tell(refused=refused, polls=answered, gone=gone, beats=beats.sent, beats_late=beats.late,
         beats_refused=beats.refused, worst_beat_s=round(beats.worst_s, 3))


def park_until(over, wires, wait_ms):
    """Long-polls on all of them, again whenever one is answered. How often, and how many broke."""
    polls = selectors.DefaultSelector()
    answered = gone = 0

    def poll(i):
        wires[i].send("POST", f"/v1/workers/idle-{i}:claim", {"max": 1, "wait_ms": wait_ms})

    for i, wire in enumerate(wires):
        polls.register(wire.sock, selectors.EVENT_READ, i)
        poll(i)
    while not over.is_set():
        for key, _ in polls.select(0.2):
            try:
                status, _ = wires[key.data].reply_bytes()
                answered += 1
                gone += status != 200
                poll(key.data)
            except OSError:
                gone += 1
                polls.unregister(key.fileobj)
    return answered, gone


class Beats(threading.Thread):
    def __init__(self, address, count, lease_s, over):
        super().__init__(daemon=True)
        self.count, self.over, self.every_s = count, over, lease_s / 3
        self.lease_s = lease_s
        self.wires = open_many(address, 8)
        self.sent = self.late = self.refused = 0
        self.worst_s = 0.0

    def run(self):
        """A round of all workers takes a third of a lease, a few on each wire at a time."""
        due = time.monotonic()
        step = len(self.wires) * 4
        while True:
            for first in range(0, self.count, step):
                if self.over.wait(max(0, due - time.monotonic())):
                    return
                self.send(range(first, min(first + step, self.count)), due)
                due += self.every_s * step / self.count

    def send(self, workers, due):
        for i in workers:
            self.wires[i % len(self.wires)].send("POST", f"/v1/workers/idle-{i}:heartbeat", {})
        for i in workers:
            status, _ = self.wires[i % len(self.wires)].reply_bytes()
            late_s = time.monotonic() - due
            self.sent += 1
            self.refused += status != 200
            self.worst_s = max(self.worst_s, late_s)
            self.late += late_s > self.lease_s * 2 / 3


def run_slow(address, headers, bodies, readers):
    """Clients that send a byte a second, or take one, until the server ends them. The readers ask
    for more than the kernel keeps for them (about 3 MB)."""
    raise_descriptors()
    over = until_closed()
    wires = open_many(address, headers + bodies) + open_many(address, readers, receive_bytes=4096)
    for wire in wires[:headers]:
        wire.sock.sendall(b"GET /v1/tasks HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
    for wire in wires[headers:headers + bodies]:
        wire.sock.sendall(b"POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                          b"application/json\r\nContent-Length: 1000000\r\n\r\n")
    for wire in wires[headers + bodies:]:
        wire.send("GET", "/v1/tasks?type=big&limit=5")
    tell(connected=len(wires))
    for wire in wires:
        wire.sock.setblocking(False)
    while not over.is_set():
        for i, wire in enumerate(wires):
            if i % 64 == 0:
                time.sleep(64 / len(wires))  # a round takes a second
            slow_step(wire, i < headers + bodies)


def slow_step(wire, sends):
    """One byte further; that the server has ended the connection is of no interest here."""
    with contextlib.suppress(OSError):
        if sends:
            wire.sock.send(b"x")
        else:
            wire.sock.recv(1)


if __name__ == "__main__":
    {"probe": run_probe, "idle": run_idle, "slow": run_slow}[sys.argv[1]](
        **json.loads(sys.argv[2]))
