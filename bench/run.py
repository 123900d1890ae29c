#!/usr/bin/env python3
"""`make bench`: measures the bare limit, Perdura and its peers in turns on one machine, keeps the
figures in reports/bench.json and writes docs/benchmarks.md from them.

    python3 bench/run.py [--build build] [--turns 3] [--quick] [--report-only]
                         [--only raw,own,peers,pg,memory,access,services,growth,pg-growth,unserved,
                                 churn,instructions,calendar,dashboard] [--minutes 30]

In a turn everything is measured once, one after the other; then the next turn begins. So a
disturbance of the machine affects all of them, and the median over the turns is kept. A run of some
parts (--only) replaces those in the file and leaves the others as they were, with the date they
have. Growth takes minutes to prepare and is only measured when it is named, or by `make
bench-growth`; unserved likewise, by `make bench-unserved`; the churn takes --minutes, and is
measured by `make bench-churn`. --quick is for trying it out; its figures are noise. It can be
interrupted at any time: what was started is stopped, and nothing is written before all turns are
done."""
import argparse
import datetime
import json
import os
import platform
import re
import signal
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True

import access  # noqa: E402
import churn_pg  # noqa: E402
import dashboard  # noqa: E402
import growth  # noqa: E402
import growth_pg  # noqa: E402
import instructions  # noqa: E402
import own  # noqa: E402
import own_pg  # noqa: E402
import peers  # noqa: E402
import report  # noqa: E402
import schedule  # noqa: E402
import services  # noqa: E402
import unserved  # noqa: E402

PARTS = ("raw", "own", "peers", "pg", "memory", "access", "services", "growth", "pg-growth", "unserved",
         "churn", "instructions", "calendar", "dashboard")
DEFAULT_PARTS = ("raw", "own", "peers", "pg", "memory", "access", "services", "instructions", "calendar",
                 "dashboard")
RESULTS = os.path.join(ROOT, "reports", "bench.json")
PAGE = os.path.join(ROOT, "docs", "benchmarks.md")
WAITING = 1000000


def output_of(command):
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              cwd=ROOT, check=False).stdout.strip()
    except OSError:
        return ""


def first_match(path, pattern, fallback):
    try:
        with open(path, encoding="utf-8") as handle:
            match = re.search(pattern, handle.read(), re.MULTILINE)
    except OSError:
        match = None
    return match.group(1) if match else fallback


def describe_machine(build):
    memory = int(first_match("/proc/meminfo", r"^MemTotal:\s+(\d+)", "0"))
    changed = output_of(["git", "status", "--porcelain", "--", "src", "bench", "include"])
    return {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
            "cpu": first_match("/proc/cpuinfo", r"^model name\s*: (.*)$", platform.machine()),
            "cores": os.cpu_count(), "memory_gib": round(memory / 1024 / 1024),
            "kernel": platform.release(),
            "system": first_match("/etc/os-release", r'^PRETTY_NAME="?([^"\n]*)', "Linux"),
            "filesystem": output_of(["findmnt", "-n", "-o", "FSTYPE", "--target", build]),
            "sqlite": output_of(["sqlite3", "--version"]).split(" ")[0],
            "perdura": output_of([os.path.join(build, "perdura"), "version"]),
            "commit": output_of(["git", "rev-parse", "--short", "HEAD"]) +
                      (" with changes" if changed else ""),
            "load_before": round(os.getloadavg()[0], 2)}


def measure_raw(build, quick, say):
    """What the bare programs printed: of the disk, and of SQLite as {step_batch: tasks/s}."""
    say("bare syncs")
    disk = subprocess.run([os.path.join(build, "raw_sync"), build, "1" if quick else "4"],
                          stdout=subprocess.PIPE, text=True, timeout=own.STEP_SECONDS_MAX,
                          check=True)
    say("bare SQLite")
    done = subprocess.run([os.path.join(build, "raw_sqlite"), build,
                           "4000" if quick else "40000"], stdout=subprocess.PIPE, text=True,
                          timeout=own.STEP_SECONDS_MAX, check=False)
    rows = re.findall(r"batch\s+(\d+): enqueue\s+([\d.]+)/s, claim and complete\s+([\d.]+)/s, "
                      r"whole life\s+([\d.]+)/s", done.stdout)
    if done.returncode != 0 or not rows:
        raise own.BenchError("raw_sqlite failed")
    figures = {f"{what}_{batch}": float(value) for batch, *values in rows
               for what, value in zip(("enqueue", "drain", "life"), values)}
    return {**figures, **json.loads(disk.stdout)}


def median_of(turns):
    """Figures become medians; words are those of the turn whose figure is the median's, or the
    first's: settings are the same in most turns."""
    merged = {}
    for key in turns[0]:
        values = [turn[key] for turn in turns if key in turn]
        if isinstance(values[0], dict):
            merged[key] = median_of(values)
        elif all(isinstance(value, (int, float)) for value in values):
            merged[key] = statistics.median(values)
        else:
            merged[key] = statistics.mode(values)
    return merged


def run_turns(arguments, parts, say):
    names = arguments.peers.split(",") if arguments.peers else list(peers.PEERS)
    turns = []
    if "peers" in parts:
        peers.prepare(names, arguments.build, say)
    if "pg" in parts:
        peers.prepare(own_pg.PEERS, arguments.build, say)
    for turn in range(arguments.turns):
        figures = {}

        def say_turn(text, number=turn + 1):
            say(f"turn {number} of {arguments.turns}: {text}")

        if "raw" in parts:
            figures["raw"] = measure_raw(arguments.build, arguments.quick, say_turn)
        if "own" in parts:
            figures.update(own.measure(arguments.build, say_turn, arguments.quick))
        if "peers" in parts:
            figures["peers"] = peers.measure(names, arguments.build, say_turn, arguments.quick)
        if "pg" in parts:
            figures["pg"] = own_pg.measure(arguments.build, say_turn, arguments.quick,
                                           figures.get("peers"))
        turns.append(figures)
    return turns


def load_results():
    try:
        with open(RESULTS, encoding="utf-8") as handle:
            return json.load(handle)
    except (OSError, ValueError):
        return {}


def save_results(results):
    os.makedirs(os.path.dirname(RESULTS), exist_ok=True)
    with open(RESULTS + ".new", "w", encoding="utf-8") as handle:
        json.dump(results, handle, indent=1, sort_keys=True)
        handle.write("\n")
    os.replace(RESULTS + ".new", RESULTS)


def put(results, section, figures, machine, **extra):
    results[section] = {"figures": figures, "machine": machine, **extra}


def measure(arguments, parts, results, say):
    machine = describe_machine(arguments.build)
    machine["quick"] = arguments.quick
    if {"raw", "own", "peers", "pg"} & set(parts):
        turns = run_turns(arguments, parts, say)
        for section, figures in median_of(turns).items():
            put(results, section, figures, machine, turns=[turn[section] for turn in turns])
    if "memory" in parts:
        put(results, "memory", own.measure_memory(
            arguments.build, WAITING // 20 if arguments.quick else WAITING, say), machine)
    if "access" in parts:
        put(results, "access", access.measure(arguments.build, say, arguments.quick), machine)
    if "services" in parts:
        put(results, "services", services.measure(arguments.build, say, arguments.quick), machine)
    if "growth" in parts:
        put(results, "growth", growth.measure(arguments.build, say, arguments.quick), machine)
    if "pg-growth" in parts:
        put(results, "pg_growth", growth_pg.measure(arguments.build, say, arguments.quick), machine)
    if "unserved" in parts:
        put(results, "unserved", unserved.measure(arguments.build, say, arguments.quick), machine)
    if "churn" in parts:
        put(results, "churn", churn_pg.measure(arguments.build, say, arguments.minutes,
                                               quick=arguments.quick), machine)
    if "instructions" in parts:
        put(results, "instructions", instructions.measure(arguments.build, say), machine)
    if "calendar" in parts:
        put(results, "calendar", schedule.measure(arguments.build, say), machine)
    if "dashboard" in parts:
        put(results, "dashboard", dashboard.measure(arguments.build, say, arguments.quick), machine)


def parse_arguments():
    parser = argparse.ArgumentParser(description="Measures Perdura, its limit and its peers.")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"), help="the built programs")
    parser.add_argument("--turns", type=int, default=3, help="of everything; the median is kept")
    parser.add_argument("--only", help="parts, separated by commas: " + ", ".join(PARTS))
    parser.add_argument("--peers", help="names of peers, separated by commas; default all")
    parser.add_argument("--minutes", type=int, default=30, help="of the churn")
    parser.add_argument("--quick", action="store_true", help="a tenth of the work: noise")
    parser.add_argument("--report-only", action="store_true",
                        help="only write the page from the figures that are kept")
    arguments = parser.parse_args()
    parts = arguments.only.split(",") if arguments.only else list(DEFAULT_PARTS)
    for part in parts:
        if part not in PARTS:
            parser.error(f"there is no part '{part}'; there are {', '.join(PARTS)}")
    if arguments.turns < 1:
        parser.error("at least one turn")
    if not 1 <= arguments.minutes <= churn_pg.MINUTES_MAX:
        parser.error(f"from 1 to {churn_pg.MINUTES_MAX} minutes of churn")
    arguments.build = os.path.abspath(arguments.build)
    return arguments, [] if arguments.report_only else parts


def main():
    arguments, parts = parse_arguments()
    start = time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that servers are stopped

    def say(text):
        print(f"{time.monotonic() - start:6.0f} s  {text}", file=sys.stderr, flush=True)

    if parts and int(first_match("/proc/self/autogroup", r"nice (-?\d+)", "0")) > 0:
        say("this session is niced and the servers, in sessions of their own, are not: clients "
            "that compute look slower than they are")
    results = load_results()
    try:
        if parts:
            measure(arguments, parts, results, say)
            save_results(results)
    except (own.BenchError, peers.PeerError, subprocess.TimeoutExpired) as error:
        sys.exit(f"bench: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
    with open(PAGE, "w", encoding="utf-8") as handle:
        handle.write(report.page(results))
    say(f"figures in {os.path.relpath(RESULTS)}, page in {os.path.relpath(PAGE)}")


if __name__ == "__main__":
    main()
