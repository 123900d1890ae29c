"""Measures Perdura itself for bench/run.py: over HTTP against a real `perdura serve`, and through
the library in one process. Every measurement has a fresh store in a temporary folder on the disk
that is measured; servers are stopped and folders removed at the end, also after a failure. What is
said to be done is checked by the load programs (http_load.c, lib_load.c): a refused task or report
ends them. Not run by itself: see run.py."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import urllib.request

STEP_SECONDS_MAX = 600
SAMPLE_SECONDS = 0.05
PARKED_CONNECTIONS = 2000
SETTLE_SECONDS_MAX = 10
BATCHES = ((100, 4), (1000, 1), (1000, 4), (5000, 2))  # tasks per request, connections
# What a user can turn: handlers at once and tasks claimed ahead of each.
TUNED = ((2, 128), (4, 128), (4, 256))
TUNED_HTTP = ((2, 500), (2, 1000), (4, 250))  # connections, tasks per claim


class BenchError(Exception):
    """A measurement failed; the text says which and why."""


def memory_mib(pid, file="status", field="VmRSS"):
    """0 when the process is gone."""
    try:
        with open(f"/proc/{pid}/{file}", encoding="ascii") as handle:
            for line in handle:
                if line.startswith(field + ":"):
                    return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0


def stop_process(process):
    """Ends a process that was started here; a stubborn one is killed."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def run_lines(command, watch=None, seconds_max=STEP_SECONDS_MAX):
    """Runs a load program to its end; the lines of JSON it printed. watch(pid) is called now and
    then while it runs."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        over = threading.Event()

        def look():
            while not over.is_set():
                watch(process.pid)
                over.wait(SAMPLE_SECONDS)

        watcher = threading.Thread(target=look) if watch else None
        try:
            if watcher:
                watcher.start()
            printed, errors = process.communicate(timeout=seconds_max)
        finally:
            over.set()
            if watcher:
                watcher.join()
            stop_process(process)
    if process.returncode != 0:
        raise BenchError(f"{' '.join(command)}: {errors.strip() or process.returncode}")
    return [json.loads(line) for line in printed.splitlines()]


class Watch:
    """The most memory a worker and its server had. Resident memory counts the pages of shared
    libraries for each of them; the proportional share of both counts them once."""

    def __init__(self, server_pid):
        self.server_pid, self.worker, self.server, self.share = server_pid, 0, 0, 0

    def __call__(self, worker_pid):
        shares = [memory_mib(pid, "smaps_rollup", "Pss") for pid in (worker_pid, self.server_pid)]
        self.worker = max(self.worker, memory_mib(worker_pid))
        self.server = max(self.server, memory_mib(self.server_pid))
        self.share = max(self.share, sum(shares))


class Server:
    """A `perdura serve` with its defaults, on a free port, in a folder that goes away with it. Its
    store is a file there, or the named PostgreSQL, of which it is a node then."""

    def __init__(self, build, handlers="", store="", tls=False):
        self.build, self.handlers, self.store, self.tls = build, handlers, store, tls
        self.ca = []

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="bench-", dir=self.build)
        with open(os.path.join(self.folder, "perdura.yaml"), "w", encoding="utf-8") as handle:
            handle.write("log_level: error\n" + (f"store: {self.store}\n" if self.store else "") +
                         self.handlers.replace("FOLDER", self.folder))
        if self.tls:
            self.make_certificate()
        self.errors = open(os.path.join(self.folder, "stderr"), "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [os.path.join(self.build, "perdura"), "serve", "--listen", "127.0.0.1:0",
             *(("--tls-cert", "cert.pem", "--tls-key", "key.pem") if self.tls else ())],
            cwd=self.folder, stdout=subprocess.PIPE, stderr=self.errors, text=True)
        match = re.match(r"listening on https?://(\S+)", self.process.stdout.readline())
        if not match:
            self.errors.seek(0)
            text = self.errors.read()
            self.__exit__()
            raise BenchError(f"perdura serve did not start: {text}")
        self.address = match.group(1)
        self.url = "http://" + self.address
        return self

    def __exit__(self, *_):
        stop_process(self.process)
        self.process.stdout.close()
        self.errors.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def make_certificate(self):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-nodes", "-keyout", "key.pem", "-out",
                        "cert.pem", "-subj", "/CN=bench", "-days", "2", "-addext",
                        "subjectAltName=IP:127.0.0.1"],
                       cwd=self.folder, check=True, capture_output=True)
        self.ca = ["--ca", os.path.join(self.folder, "cert.pem")]

    def http(self, mode, connections=1, batch=1, tasks=1, extra=()):
        """The last line of JSON: the one about the whole."""
        return run_lines([os.path.join(self.build, "http_load"), self.address, mode,
                          "--connections", str(connections), "--batch", str(batch),
                          "--tasks", str(tasks), *self.ca, *extra])[-1]

    def stats(self):
        with urllib.request.urlopen(self.url + "/v1/stats", timeout=30) as reply:
            return json.load(reply)

    def memory_mib(self):
        return memory_mib(self.process.pid)


def lib(build, mode, where, watch=None, **options):
    arguments = [item for key, value in options.items() for item in (f"--{key}", str(value))]
    return run_lines([os.path.join(build, "lib_load"), mode, where, *arguments], watch)[-1]


@contextlib.contextmanager
def store_file(build):
    folder = tempfile.mkdtemp(prefix="bench-", dir=build)
    try:
        yield os.path.join(folder, "bench.db")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# ---- over HTTP ----


def measure_enqueue(build, scale, say):
    with Server(build) as server:
        say("perdura: enqueue over HTTP")
        server.http("enqueue", tasks=500)  # a store that has seen work, as in service
        one = server.http("enqueue", tasks=int(8000 * scale))
        many = server.http("enqueue", 32, tasks=int(60000 * scale))
        ways = {way: server.http("enqueue", way[1], way[0], int(120000 * scale))
                for way in BATCHES}
        best = max(ways, key=lambda way: ways[way]["per_second"])
        return {"one_by_one": one["per_second"], "one_by_one_p50_ms": one["p50_us"] / 1000,
                "one_by_one_p99_ms": one["p99_us"] / 1000, "in_flight_32": many["per_second"],
                "in_flight_32_p50_ms": many["p50_us"] / 1000,
                "in_flight_32_p99_ms": many["p99_us"] / 1000,
                "best_batch": ways[best]["per_second"], "best_batch_size": best[0],
                "best_batch_in_flight": best[1]}


def measure_nothing(build, scale, say):
    with Server(build) as server:
        say("perdura: 64 connections, the route that does nothing and enqueue")
        server.http("nothing", 64, tasks=int(50000 * scale))
        nothing = server.http("nothing", 64, tasks=int(200000 * scale))
        enqueue = server.http("enqueue", 64, tasks=int(60000 * scale))
        return {"nothing_64": nothing["per_second"], "enqueue_64": enqueue["per_second"],
                "enqueue_64_ratio": enqueue["per_second"] / nothing["per_second"]}


def measure_life(build, scale, say):
    """Whole audited life over HTTP, in batches of 100; like the bare program all in, then out."""
    say("perdura: whole life over HTTP, batches of 100")
    with Server(build) as server:
        server.http("life", 4, 100, int(4000 * scale))
        life = server.http("life", 4, 100, int(60000 * scale))
        return {"http_life_100": life["per_second"]}


def drain_once(build, scale, tasks=60000, **options):
    """A worker in a process of its own claims from the server what another one has enqueued."""
    tasks = int(tasks * scale)
    with Server(build) as server:
        server.http("enqueue", 1, 100, tasks)
        watch = Watch(server.process.pid)
        result = lib(build, "drain", server.url, watch, tasks=tasks, filled=1, **options)
        completed = server.stats()["counts"]["completed"]
    if completed != tasks:
        raise BenchError(f"{tasks} tasks were drained and {completed} are completed")
    return {"rate": result["per_second"], "worker_mib": watch.worker, "server_mib": watch.server,
            "share_mib": watch.share}


def drain_http_once(build, scale, connections, batch):
    with Server(build) as server:
        server.http("enqueue", 2, 1000, int(60000 * scale))
        return server.http("drain", connections, batch)["per_second"]


def measure_drain(build, scale, say):
    say("perdura: drain, a C worker with the defaults")
    shipped = drain_once(build, scale)
    tuned = []
    for concurrency, batch in TUNED:
        say(f"perdura: drain, {concurrency} threads, {batch} claimed ahead of each")
        tuned.append((drain_once(build, scale, concurrency=concurrency, batch=batch),
                      f"C worker, concurrency {concurrency}, batch {batch}"))
    for connections, batch in TUNED_HTTP:
        say(f"perdura: drain, own loop over HTTP, {connections} connections, claims of {batch}")
        tuned.append(({"rate": drain_http_once(build, scale, connections, batch),
                       "worker_mib": shipped["worker_mib"], "server_mib": shipped["server_mib"]},
                      f"own HTTP loop, {connections} connections, claims of {batch}"))
    tuned.append((shipped, "the defaults"))
    best, settings = max(tuned, key=lambda one: one[0]["rate"])
    http = max(one["rate"] for one, name in tuned if name.startswith("own"))
    return {"drain_default": shipped["rate"], "drain_default_settings": "C worker, no option set",
            "drain_tuned": best["rate"], "drain_tuned_settings": settings, "drain_http": http,
            "worker_mib": shipped["worker_mib"], "server_mib": shipped["server_mib"],
            "drain_share_mib": shipped["share_mib"]}


def listen_and_offer(build, listen_at, offer_at, tasks, rate=100, batch=1,
                     seconds_max=STEP_SECONDS_MAX):
    """Producer and worker are processes of their own; both clocks are CLOCK_MONOTONIC. What the
    worker printed."""
    program = os.path.join(build, "lib_load")
    with subprocess.Popen([program, "listen", listen_at, "--tasks", str(tasks)], text=True,
                          stdout=subprocess.PIPE) as listener:
        try:
            listener.stdout.readline()
            run_lines([program, "offer", offer_at, "--tasks", str(tasks), "--rate", str(rate),
                       "--batch", str(batch)], seconds_max=seconds_max)
            printed = listener.stdout.readline()
        finally:
            stop_process(listener)
    if not printed:
        raise BenchError("the worker of a latency measurement failed")
    return json.loads(printed)


def measure_latency(build, scale, say):
    say("perdura: start latency at 100/s, worker over HTTP")
    with Server(build) as server:
        result = listen_and_offer(build, server.url, server.url, max(100, int(1000 * scale)))
    return {"start_p50_ms": result["p50_ms"], "start_p99_ms": result["p99_ms"],
            "start_settings": "C worker, no option set"}


def measure_process_latency(build, scale, say):
    say("perdura: start latency at 100/s, a process per task")
    tasks = max(100, int(500 * scale))
    program = os.path.join(os.path.abspath(build), "clock_handler")
    handlers = ("handlers:\n  - type: clock\n"
                f"    command: [\"{program}\", \"FOLDER/times\"]\n")
    with Server(build, handlers) as server:
        path = os.path.join(server.folder, "times")
        run_lines([os.path.join(build, "lib_load"), "offer", server.url, "--tasks", str(tasks),
                   "--rate", "100"])
        deadline = time.monotonic() + 60
        times = []
        while len(times) < tasks and time.monotonic() < deadline:
            time.sleep(0.05)
            with open(path, encoding="ascii") as handle:
                times = [int(line) / 1e6 for line in handle if line.endswith("\n")]
    if len(times) < tasks:
        raise BenchError(f"{len(times)} of {tasks} processes ran")
    times.sort()
    return {"process_p50_ms": times[tasks // 2], "process_p99_ms": times[tasks * 99 // 100]}


# ---- in one process ----


def measure_library(build, scale, say):
    say("perdura: the library in one process")
    row = {}
    with store_file(build) as path:
        row["one_by_one"] = lib(build, "enqueue", path, tasks=int(8000 * scale))["per_second"]
        row["in_flight_32"] = lib(build, "enqueue", path, tasks=int(60000 * scale),
                                  concurrency=32)["per_second"]
        ways = {way: lib(build, "enqueue", path, tasks=int(120000 * scale), batch=way[0],
                         concurrency=way[1])["per_second"] for way in BATCHES}
        best = max(ways, key=ways.get)
        row.update(best_batch=ways[best], best_batch_size=best[0], best_batch_in_flight=best[1])
    with store_file(build) as path:
        shipped = lib(build, "drain", path, tasks=int(60000 * scale))
    row.update(drain_default=shipped["per_second"], worker_mib=shipped["worker_mib"], server_mib=0)
    tuned = {"the defaults": shipped["per_second"]}
    for concurrency, batch in TUNED:
        with store_file(build) as path:
            tuned[f"concurrency {concurrency}, batch {batch}"] = lib(
                build, "drain", path, tasks=int(60000 * scale), concurrency=concurrency,
                batch=batch)["per_second"]
    with store_file(build) as path:
        tuned["own loop, claims of 1000"] = lib(build, "consume", path, tasks=int(60000 * scale),
                                                batch=1000)["per_second"]
    best = max(tuned, key=tuned.get)
    row.update(drain_tuned=tuned[best], drain_tuned_settings=best)
    with store_file(build) as path:
        started = lib(build, "latency", path, tasks=max(100, int(1000 * scale)), rate=100)
    row.update(start_p50_ms=started["p50_ms"], start_p99_ms=started["p99_ms"])
    return row


def measure_whole_life(build, scale, say):
    """`perdura bench`: the queue without handlers, for the ratio against the bare program."""
    say("perdura: whole life in one process")
    done = subprocess.run([os.path.join(build, "perdura"), "bench", "--json", "--folder", build,
                           "--tasks", str(int(40000 * scale))], stdout=subprocess.PIPE, text=True,
                          timeout=STEP_SECONDS_MAX, check=False)
    if done.returncode != 0:
        raise BenchError("perdura bench failed")
    row = {}
    for item in json.loads(done.stdout)["items"]:
        if item["name"] == "whole life":
            row[f"life_{item['batch']}"] = item["tasks_per_second"]
        elif item["name"] == "enqueue, in batches" and item["batch"] > 1:
            row[f"enqueue_{item['batch']}"] = item["tasks_per_second"]
        elif item["name"] == "enqueue, one by one":
            row.update(enqueue_1=item["tasks_per_second"], enqueue_1_p50_ms=item["p50_us"] / 1000,
                       enqueue_1_p99_ms=item["p99_us"] / 1000)
    return row


# ---- memory ----


def settled_mib(server):
    """Memory once it does not grow any more."""
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    last = -1
    while time.monotonic() < deadline:
        now = server.memory_mib()
        if now == last:
            break
        last = now
        time.sleep(0.3)
    return server.memory_mib()


def measure_parked(build, mode):
    """Idle MiB, and KiB per long-poll claim that waits, with its connection."""
    with Server(build) as server:
        before = settled_mib(server)
        with subprocess.Popen([os.path.join(build, "http_load"), server.address, mode,
                               "--connections", str(PARKED_CONNECTIONS)], text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parker:
            try:
                if "parked" not in parker.stdout.readline():
                    raise BenchError("the long-polls could not be parked")
                deadline = time.monotonic() + SETTLE_SECONDS_MAX
                while server.stats()["waiting_claims"] < PARKED_CONNECTIONS:
                    if time.monotonic() > deadline:
                        raise BenchError("not all long-polls are waiting")
                    time.sleep(0.05)
                parked = settled_mib(server)
            finally:
                parker.stdin.close()
                stop_process(parker)
    return before, (parked - before) * 1024 / PARKED_CONNECTIONS


def measure_memory(build, waiting, say):
    say("perdura: memory, idle and with 2,000 long-polls")
    idle, parked = measure_parked(build, "park")
    row = {"idle_mib": idle, "parked_kib": parked,
           "parked_worker_kib": measure_parked(build, "park-workers")[1]}
    say(f"perdura: memory with {waiting:,} tasks waiting")
    with Server(build) as server:
        server.http("enqueue", 2, 1000, waiting)
        row.update(waiting=waiting, waiting_mib=settled_mib(server))
    return row


def measure(build, say, quick=False):
    """One turn. Returns {section: {figure: value}}."""
    scale = 0.1 if quick else 1
    http = {}
    for step in (measure_enqueue, measure_nothing, measure_life, measure_drain, measure_latency,
                 measure_process_latency):
        http.update(step(build, scale, say))
    return {"perdura": http, "perdura_library": measure_library(build, scale, say),
            "perdura_bench": measure_whole_life(build, scale, say)}
