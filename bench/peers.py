#!/usr/bin/env python3
"""Measures the peers of Perdura on this machine: BullMQ on Redis, graphile-worker and pg-boss on
PostgreSQL, beanstalkd. Whatever is missing is installed from Debian and npm; each server is our
own, on loopback, on a free port, as durable as the peer's column says, with its data in a temporary
folder on the disk of FOLDER, and is stopped and removed at the end.

    python3 bench/peers.py [--peers bullmq-always,beanstalkd] [--quick] [--json FILE] [--folder DIR]

bench/run.py calls prepare() once and measure() in turns with Perdura's own measurements. Jobs do
nothing and have 107 bytes of payload. What the columns mean:

    one_by_one     jobs/s of one caller that waits for each job to be stored
    in_flight_32   the same with 32 callers in one process (beanstalkd: the better of 32 connections
                   and 32 pipelined puts)
    best_batch     the peer's bulk call, the best of BATCHES (beanstalkd has none: pipelined puts)
    drain_default  one worker process with the settings as shipped, a full queue before it
    drain_tuned    the same with the best of a few faster settings that are as durable
    start_*_ms     from the call that enqueues to the entry of the handler, at 100 jobs/s, producer
                   and worker apart, settings for low latency
    *_mib          the most memory seen in the tuned drain of JOBS_TUNED jobs: resident memory of
                   the worker and of the server; for PostgreSQL the proportional share of its
                   processes, which counts shared memory once
"""
import argparse
import glob
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers")
PEERS = ("bullmq-always", "bullmq-everysec", "graphile-worker", "pg-boss", "beanstalkd")
BATCHES = ((100, 4), (1000, 1), (1000, 4), (5000, 2))  # jobs per call, calls in flight
JOBS_DEFAULT = {"bullmq": 50000, "graphile-worker": 20000, "pg-boss": 1000}
JOBS_TUNED = 60000
BEANSTALKD_BURSTS = (100, 1000)  # pipelined commands: the stand-in for a bulk call
BEANSTALKD_DRAINS = ((1, 100), (32, 1))  # connections, pipelined commands of each
SAMPLE_SECONDS = 0.25
START_SECONDS_MAX = 30
STEP_SECONDS_MAX = 120

# Debian starts a server as soon as it is installed; the benchmark does not want that.
INSTALL = """set -eu
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
    trap 'rm -f $policy' EXIT
    printf '#!/bin/sh\\nexit 101\\n' > $policy
    chmod 755 $policy
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
apt-get install -y -q --no-install-recommends "$@"
"""


class PeerError(Exception):
    """A peer could not be installed, started or measured; the text says what to do."""


# ---- what must be there -------------------------------------------------------------------------

def postgres_bin():
    folders = glob.glob("/usr/lib/postgresql/*/bin")
    folders = [folder for folder in folders if os.path.exists(os.path.join(folder, "initdb"))]
    return max(folders, key=lambda folder: int(folder.split("/")[4].split(".")[0]), default=None)


def missing_packages(names):
    missing = []
    if any(name.startswith("bullmq") for name in names) and not shutil.which("redis-server"):
        missing.append("redis-server")
    if {"graphile-worker", "pg-boss"} & set(names) and not postgres_bin():
        missing.append("postgresql")
    if "beanstalkd" in names and not shutil.which("beanstalkd"):
        missing.append("beanstalkd")
    if set(names) - {"beanstalkd"} and not shutil.which("npm"):
        missing.append("npm")
    return missing


def run_quietly(command, what, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **options)
    if done.returncode != 0:
        raise PeerError(f"{what} failed:\n{done.stdout[-2000:]}")
    return done.stdout


def install_packages(names, say):
    missing = missing_packages(names)
    if not missing:
        return
    if not shutil.which("apt-get") or os.geteuid() != 0 and not shutil.which("sudo"):
        raise PeerError("please install these packages (Debian's names): " + " ".join(missing))
    say("installing " + " ".join(missing))
    prefix = [] if os.geteuid() == 0 else ["sudo"]
    run_quietly([*prefix, "sh", "-c", INSTALL, "sh", *missing], "apt-get install")


def install_node_peers(cache, say):
    """The programs run beside node_modules, where Node looks for packages."""
    for path in glob.glob(os.path.join(SOURCES, "*.mjs")) + [os.path.join(SOURCES, "package.json")]:
        shutil.copy(path, cache)
    stamp = os.path.join(cache, "installed.json")
    with open(os.path.join(SOURCES, "package.json"), encoding="utf-8") as handle:
        wanted = handle.read()
    if os.path.exists(stamp) and open(stamp, encoding="utf-8").read() == wanted:
        return
    say("installing BullMQ, graphile-worker, pg-boss and Node from npm")
    run_quietly(["npm", "install", "--no-audit", "--no-fund", "--no-package-lock",
                 "--ignore-scripts"], "npm install", cwd=cache)
    if not os.path.exists(node_path(cache)):
        raise PeerError(f"npm has no Node for this machine: {node_path(cache)} is missing")
    with open(stamp, "w", encoding="utf-8") as handle:
        handle.write(wanted)


def node_path(cache):
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
    return os.path.join(cache, "node_modules", f"node-linux-{machine}", "bin", "node")


def compile_beanstalk(cache):
    source, target = os.path.join(SOURCES, "beanstalk.c"), os.path.join(cache, "beanstalk")
    if not os.path.exists(target) or os.path.getmtime(target) < os.path.getmtime(source):
        run_quietly([os.environ.get("CC", "gcc"), "-std=gnu11", "-O2", "-o", target, source,
                     "-pthread"], "compiling the beanstalkd client")


def prepare(names, folder, say):
    """Installs and compiles what the named peers need. Cheap when all is there."""
    unknown = set(names) - set(PEERS)
    if unknown:
        raise PeerError(f"no such peer: {', '.join(unknown)}; there are {', '.join(PEERS)}")
    cache = os.path.join(os.path.abspath(folder), "bench-peers")
    os.makedirs(cache, exist_ok=True)
    if run_quietly(["stat", "-f", "-c", "%T", cache], "stat").strip() in ("tmpfs", "ramfs"):
        raise PeerError(f"{folder} is in memory; durable servers are measured on a disk")
    install_packages(names, say)
    if set(names) - {"beanstalkd"}:
        install_node_peers(cache, say)
    if "beanstalkd" in names:
        compile_beanstalk(cache)
    return cache


# ---- processes ----------------------------------------------------------------------------------

def end_group(process, first=signal.SIGTERM):
    """Ends a process that was started with its own session, and what it started."""
    if process.poll() is None:
        process.send_signal(first)
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def proc_kib(pid, file, field):
    """A field of /proc/PID/FILE in KiB; 0 when the process is gone."""
    try:
        with open(f"/proc/{pid}/{file}", encoding="ascii") as handle:
            for line in handle:
                if line.startswith(field + ":"):
                    return int(line.split()[1])
    except OSError:
        pass
    return 0


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as handle:
            return [int(child) for child in handle.read().split()]
    except OSError:
        return []


def run_step(command, cwd, server=None):
    """Runs one program that prints a line of JSON. Returns that, and with a server the most memory
    seen of both while it ran."""
    process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, start_new_session=True)
    worker_kib = server_kib = 0
    deadline = time.monotonic() + STEP_SECONDS_MAX
    try:
        while True:
            try:
                out, err = process.communicate(timeout=SAMPLE_SECONDS)
                break
            except subprocess.TimeoutExpired:
                if time.monotonic() > deadline:
                    raise PeerError(f"no answer for {STEP_SECONDS_MAX} s: {command}") from None
            if server:
                worker_kib = max(worker_kib, proc_kib(process.pid, "status", "VmRSS"))
                server_kib = max(server_kib, server.memory_kib())
    finally:
        end_group(process)
    try:
        outcome = json.loads(out.splitlines()[-1])
    except (ValueError, IndexError):
        raise PeerError(f"{command} ended with {process.returncode}:\n{err[-2000:]}") from None
    outcome["worker_mib"] = round(worker_kib / 1024, 1)
    outcome["server_mib"] = round(server_kib / 1024, 1)
    return outcome


# ---- servers ------------------------------------------------------------------------------------

class Server:
    """One server on loopback with its data in a folder of its own below `folder`. Used in a `with`:
    it is stopped and its folder removed whatever happens inside."""
    end_signal = signal.SIGTERM

    def __init__(self, folder):
        self.folder = tempfile.mkdtemp(prefix="server-", dir=folder)
        self.process = None
        self.port = None

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.launch()
        deadline = time.monotonic() + START_SECONDS_MAX
        while not self.is_ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise PeerError(f"{self.describe()} did not start:\n{self.log_tail()}")
            time.sleep(0.02)

    def stop(self):
        if self.process:
            end_group(self.process, self.end_signal)
            self.process = None

    def spawn(self, command, **options):
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, start_new_session=True,
                                            **options)

    def log_tail(self):
        with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as log:
            return log.read()[-2000:]

    def is_ready(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            return True
        except OSError:
            return False

    def memory_kib(self):
        return proc_kib(self.process.pid, "status", "VmRSS")


class Redis(Server):
    def __init__(self, folder, fsync):
        super().__init__(folder)
        self.fsync = fsync

    def launch(self):
        self.url = f"redis://127.0.0.1:{self.port}"
        # No snapshots beside the log: they would only cost it time.
        self.spawn(["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--dir",
                    self.folder, "--appendonly", "yes", "--appendfsync", self.fsync, "--save", ""])

    def describe(self):
        version = subprocess.check_output(["redis-server", "--version"], text=True)
        return f"Redis {version.split('v=')[1].split()[0]}, appendfsync {self.fsync}"


class Postgres(Server):
    """Settings as shipped. PostgreSQL refuses to run as root, so root lends it Debian's user."""
    end_signal = signal.SIGQUIT  # at once: its data is thrown away

    def launch(self):
        self.url = f"postgres://bench@127.0.0.1:{self.port}/postgres"
        data = os.path.join(self.folder, "data")
        user = {}
        if os.geteuid() == 0:
            try:
                entry = pwd.getpwnam("postgres")
            except KeyError:
                raise PeerError("there is no user postgres for PostgreSQL to run as") from None
            os.chown(self.folder, entry.pw_uid, entry.pw_gid)
            user = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        run_quietly([os.path.join(postgres_bin(), "initdb"), "-D", data, "-U", "bench", "-A",
                     "trust", "--no-sync", "--encoding=UTF8", "--locale=C.UTF-8"],
                    f"initdb in {self.folder} (its user must be able to reach that folder)",
                    cwd=self.folder, **user)
        self.spawn([os.path.join(postgres_bin(), "postgres"), "-D", data, "-p", str(self.port),
                    "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="], **user)

    def is_ready(self):
        done = subprocess.run([os.path.join(postgres_bin(), "pg_isready"), "-q", "-h", "127.0.0.1",
                               "-p", str(self.port)], check=False)
        return done.returncode == 0

    def memory_kib(self):
        pids = [self.process.pid, *children(self.process.pid)]
        return sum(proc_kib(pid, "smaps_rollup", "Pss") for pid in pids)

    def describe(self):
        binary = os.path.join(postgres_bin(), "postgres")
        version = subprocess.check_output([binary, "--version"], text=True)
        return "PostgreSQL " + version.split()[2]


class Beanstalkd(Server):
    def launch(self):
        log = os.path.join(self.folder, "binlog")
        os.makedirs(log)
        self.spawn(["beanstalkd", "-l", "127.0.0.1", "-p", str(self.port), "-b", log, "-f0"])

    def reset(self):
        self.stop()
        shutil.rmtree(os.path.join(self.folder, "binlog"))
        self.start()

    def describe(self):
        return subprocess.check_output(["beanstalkd", "-v"], text=True).strip() + " -f0"


# ---- measurements -------------------------------------------------------------------------------

def describe_settings(settings):
    words = []
    for name, value in settings.items():
        if isinstance(value, dict):
            words.append(f"{name} {{{describe_settings(value)}}}")
        else:
            words.append(f"{name} {str(value).lower() if isinstance(value, bool) else value}")
    return ", ".join(words) or "as shipped"


def measure_node(name, cache, folder, say, scale):
    program = "bullmq" if name.startswith("bullmq") else name
    server = Redis(folder, name.split("-")[1]) if program == "bullmq" else Postgres(folder)
    with server:
        def step(what, parameters, watched=None):
            say(f"{name}: {what}")
            command = [node_path(cache), "main.mjs", program, server.url, parameters.pop("step"),
                       json.dumps(parameters)]
            return run_step(command, cache, watched)

        ways = [{"inFlight": 1, "batch": 1, "seconds": 2 * scale},
                {"inFlight": 32, "batch": 1, "seconds": 2 * scale}]
        ways += [{"inFlight": callers, "batch": size, "seconds": 1.5 * scale}
                 for size, callers in BATCHES]
        enqueued = step("enqueue", {"step": "enqueue", "ways": ways, "warmUpSeconds": 0.5})
        settings = enqueued["settings"]
        rates = enqueued["rates"]
        best = max(range(len(BATCHES)), key=lambda i: rates[2 + i])

        def drain(chosen, jobs, seconds):
            text = describe_settings(chosen)
            step("fill for a drain", {"step": "fill", "jobs": jobs, "batch": 1000})
            outcome = step(f"drain, {text}", {"step": "drain", "jobs": jobs, "seconds": seconds,
                                              "settings": chosen}, server)
            return {**outcome, "text": text}

        # pg-boss as shipped takes a job every two seconds: it needs time to take a few.
        shipped = drain(settings["shipped"], int(JOBS_DEFAULT[program] * scale),
                        5 if program == "pg-boss" else 5 * scale)
        tuned = max((drain(chosen, int(JOBS_TUNED * scale), 5 * scale)
                     for chosen in settings["tuned"]), key=lambda outcome: outcome["rate"])
        started = step("start latency", {"step": "latency", "perSecond": 100, "seconds": 20,
                                         "jobs": int(500 * scale), "settings": settings["latency"]})
        with open(os.path.join(cache, "node_modules", program, "package.json"),
                  encoding="utf-8") as handle:
            version = json.load(handle)["version"]
        return {"version": version, "server": server.describe(), "one_by_one": round(rates[0]),
                "in_flight_32": round(rates[1]), "best_batch": round(rates[2 + best]),
                "best_batch_size": BATCHES[best][0], "best_batch_in_flight": BATCHES[best][1],
                "drain_default": round(shipped["rate"], 1),
                "drain_default_settings": shipped["text"],
                "drain_tuned": round(tuned["rate"]),
                "drain_tuned_settings": tuned["text"],
                "start_p50_ms": round(started["p50_ms"], 3),
                "start_p99_ms": round(started["p99_ms"], 3),
                "start_settings": describe_settings(settings["latency"]),
                "worker_mib": tuned["worker_mib"], "server_mib": tuned["server_mib"]}


def measure_beanstalkd(name, cache, folder, say, scale):
    with Beanstalkd(folder) as server:
        def step(what, arguments, watched=None):
            say(f"{name}: {what}")
            command = [os.path.join(cache, "beanstalk"), str(server.port), *map(str, arguments)]
            return run_step(command, cache, watched)

        def put(what, connections, burst):
            server.reset()
            return step(what, ["put", 2 * scale, connections, burst])["rate"]

        def drain(connections, burst):
            text = (f"C client, connections {connections}, pipelined commands of each {burst}"
                    if burst else "C client: reserve, delete, the next")
            server.reset()
            step("fill for a drain", ["put", 8 * scale, 1, 100, int(JOBS_TUNED * scale)])
            outcome = step(f"drain, {text}", ["drain", 5 * scale, connections, burst], server)
            return {**outcome, "text": text}

        one_by_one = put("enqueue one by one", 1, 1)
        in_flight = max(put("enqueue, 32 connections", 32, 1),
                        put("enqueue, 32 pipelined", 1, 32))
        batches = {size: put(f"enqueue, bursts of {size}", 1, size) for size in BEANSTALKD_BURSTS}
        best = max(batches, key=batches.get)
        shipped = drain(1, 0)
        tuned = max((drain(*way) for way in BEANSTALKD_DRAINS), key=lambda each: each["rate"])
        server.reset()
        started = step("start latency", ["latency", 100, int(500 * scale)])
        version = server.describe()
        return {"version": version.split()[1], "server": version, "one_by_one": round(one_by_one),
                "in_flight_32": round(in_flight), "best_batch": round(batches[best]),
                "best_batch_size": best, "best_batch_in_flight": 1,
                "drain_default": round(shipped["rate"], 1),
                "drain_default_settings": shipped["text"],
                "drain_tuned": round(tuned["rate"]),
                "drain_tuned_settings": tuned["text"],
                "start_p50_ms": started["p50_ms"], "start_p99_ms": started["p99_ms"],
                "start_settings": "C client, reserve waits",
                "worker_mib": tuned["worker_mib"], "server_mib": tuned["server_mib"]}


def measure(names, folder, say, quick=False):
    """One turn over the named peers. Returns {peer: {column: value}}; a peer that could not be
    measured raises PeerError. `folder` is a build folder: installed peers are kept below it."""
    cache = prepare(names, folder, say)
    results = {}
    for name in names:
        one = measure_beanstalkd if name == "beanstalkd" else measure_node
        results[name] = one(name, cache, cache, say, 0.25 if quick else 1)
    return results


def print_table(results):
    print("| jobs/s | enqueue 1 by 1 | 32 in flight | best batch | drain, defaults | drain, tuned "
          "| start p50/p99 ms | MiB worker + server |\n|---|---|---|---|---|---|---|---|")
    for name, row in results.items():
        print(f"| {name} {row['version']} | {row['one_by_one']:,} | {row['in_flight_32']:,} "
              f"| {row['best_batch']:,} ({row['best_batch_size']} × {row['best_batch_in_flight']}) "
              f"| {row['drain_default']:,} "
              f"| {row['drain_tuned']:,} ({row['drain_tuned_settings']}) "
              f"| {row['start_p50_ms']} / {row['start_p99_ms']} "
              f"| {row['worker_mib']} + {row['server_mib']} |")


def main():
    parser = argparse.ArgumentParser(description="Measures the peers of Perdura.")
    parser.add_argument("--peers", default=",".join(PEERS), help="names, separated by commas")
    parser.add_argument("--quick", action="store_true", help="a quarter of the time, more noise")
    parser.add_argument("--json", metavar="FILE", help="also writes the figures there")
    parser.add_argument("--folder", default="build", help="where programs and data go (build)")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that servers are stopped
    start = time.monotonic()

    def say(text):
        print(f"{time.monotonic() - start:6.1f} s  {text}", file=sys.stderr, flush=True)

    try:
        results = measure(arguments.peers.split(","), arguments.folder, say, arguments.quick)
    except PeerError as error:
        sys.exit(f"peers: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
    print_table(results)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as handle:
            json.dump(results, handle, indent=2)
            handle.write("\n")
    say("done")


if __name__ == "__main__":
    main()
