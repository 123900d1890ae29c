#!/usr/bin/env python3
"""Does the rate of claim and complete stay flat as the store grows? Three stores: 10,000 tasks
waiting, 1,000,000 waiting, and 10,000 waiting beside 5,000,000 that have ended. In each turn 20,000
tasks are added to every store in turn and as many are claimed and completed, in batches of 100,
through the library; the medians over the turns are compared.

    python3 bench/growth.py [--build build] [--quick]

Preparing takes some minutes and about 5 GB below the build folder, which are removed at the end.
Usually run as `make bench-growth`, which keeps the figures in reports/bench.json."""
import argparse
import json
import os
import shutil
import signal
import statistics
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import own  # noqa: E402

SMALL = 10000
WAITING = 1000000
ENDED = 5000000
CHUNK = 500000  # tasks between two words of progress
TURN_TASKS = 20000
TURNS = 7


def enqueue(build, store, tasks):
    own.lib(build, "enqueue", store, tasks=tasks, batch=min(5000, tasks))


def drain(build, store, tasks, batch):
    return own.lib(build, "consume", store, tasks=tasks, batch=batch, filled=1)["per_second"]


def fill(build, store, waiting, ended, say):
    """Ended tasks first, through the same queue as ever; then those that wait."""
    for done in range(0, ended, CHUNK):
        count = min(CHUNK, ended - done)
        enqueue(build, store, count)
        drain(build, store, count, 1000)
        say(f"growth: {done + count:,} of {ended:,} tasks have ended")
    for done in range(0, waiting, CHUNK):
        enqueue(build, store, min(CHUNK, waiting - done))
    say(f"growth: {waiting:,} tasks wait in {os.path.basename(store)}")


def measure(build, say, quick=False):
    scale = 50 if quick else 1
    folder = tempfile.mkdtemp(prefix="bench-growth-", dir=build)
    plans = {"waiting_10k": (SMALL, 0), "waiting_1m": (WAITING // scale, 0),
             "ended_5m": (SMALL, ENDED // scale)}
    rates = {name: [] for name in plans}
    row = {"waiting": WAITING // scale, "ended": ENDED // scale, "turns": rates}
    try:
        for name, (waiting, ended) in plans.items():
            fill(build, os.path.join(folder, name + ".db"), waiting, ended, say)
            row[name + "_mib"] = round(os.path.getsize(os.path.join(folder, name + ".db")) / 2**20)
        for turn in range(TURNS + 1):  # the first fills caches and does not count
            for name in plans:
                store = os.path.join(folder, name + ".db")
                enqueue(build, store, TURN_TASKS)
                rate = drain(build, store, TURN_TASKS, 100)
                say(f"growth: turn {turn} of {TURNS}, {name}: {rate:,.0f}/s")
                if turn:
                    rates[name].append(rate)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for name in plans:
        row[name] = statistics.median(rates[name])
        row[name + "_ratio"] = row[name] / row["waiting_10k"]
    return row


def main():
    parser = argparse.ArgumentParser(description="Measures whether growth costs anything.")
    parser.add_argument("--build", default="build")
    parser.add_argument("--quick", action="store_true", help="a fiftieth of the tasks")
    arguments = parser.parse_args()
    start = time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the stores are removed

    def say(text):
        print(f"{time.monotonic() - start:6.0f} s  {text}", file=sys.stderr, flush=True)

    try:
        row = measure(os.path.abspath(arguments.build), say, arguments.quick)
    except own.BenchError as error:
        sys.exit(f"growth: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
    print(json.dumps(row, indent=1))


if __name__ == "__main__":
    main()
