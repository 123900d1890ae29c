"""What a checkpoint costs beside a plain progress report: one remote worker reports on one running task
over HTTP, one request after the other, either one element per request or a hundred; checkpoints of 1 kB
and progress in turns (a round of each, again and again), so that both meet the same machine. Medians of
the rounds, in reports per second. Run by itself:

    python3 bench/checkpoints.py --build build [--seconds 2] [--rounds 5] [--store sqlite|postgres|both]
"""
import argparse
import json
import os
import pathlib
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "tests" / "api"), str(ROOT / "tests" / "postgres")]

BATCHES = (1, 100)
DATA = {"rows": "x" * 1000}


def element(task, kind, step):
    base = {"task_id": task["id"], "lease_token": task["lease_token"], "progress": step % 100}
    if kind == "checkpoint":
        return {**base, "op": "checkpoint", "name": f"step {step}", "data": DATA}
    return {**base, "op": "progress"}


def measure(server, task, kind, batch, seconds):
    """Reports per second of one round."""
    done, began = 0, time.monotonic()
    while time.monotonic() - began < seconds:
        body = [element(task, kind, done + i) for i in range(batch)]
        items = server.expect(200, "POST", "/v1/workers/bench:report", body)["items"]
        if not all(item["ok"] for item in items):
            raise SystemExit(f"refused: {items[0]}")
        done += batch
    return done / (time.monotonic() - began)


def measure_all(server, seconds, rounds):
    server.register("bench", queues=("bench",))
    server.enqueue("bench", queue="bench", timeout_ms=3600 * 1000)
    [task] = server.claim("bench", wait_ms=5000)
    server.report_ok("bench", task, "start")
    figures = {}
    for batch in BATCHES:
        rates = {"progress": [], "checkpoint": []}
        for _ in range(rounds):
            for kind, found in rates.items():
                found.append(measure(server, task, kind, batch, seconds))
        for kind, found in rates.items():
            figures[f"{kind}, {batch} per request"] = round(statistics.median(found))
    return figures


def on_store(kind, seconds, rounds):
    import harness

    class Bench(harness.ApiTest):
        arguments = ("--lease", "60s")

        def runTest(self):
            self.figures = measure_all(self, seconds, rounds)

    def run():
        case = Bench()
        case.setUp()
        try:
            case.runTest()
        finally:
            case.doCleanups()
        return case.figures

    if kind == "sqlite":
        return run()
    from server import Postgres
    start = harness.Server.start
    with Postgres({"fsync": "on"}) as postgres:  # as in earnest
        def elsewhere(server):
            server.store = postgres.url
            return start(server)
        harness.Server.start = elsewhere
        try:
            return run()
        finally:
            harness.Server.start = start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=str(ROOT / "build"))
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--store", choices=("sqlite", "postgres", "both"), default="both")
    options = parser.parse_args()
    os.environ["PERDURA_BUILD"] = os.path.abspath(options.build)
    kinds = ("sqlite", "postgres") if options.store == "both" else (options.store,)
    print(json.dumps({kind: on_store(kind, options.seconds, options.rounds) for kind in kinds},
                     indent=1))


if __name__ == "__main__":
    main()
