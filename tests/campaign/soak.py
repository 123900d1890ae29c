"""The soak: an hour at half of the highest rate with everything that happens in a long life, and
the question whether anything grows. `make soak [MINUTES=60]`, or

    nice python3 tests/campaign/soak.py [--minutes 60] [--ledger FILE] [--samples reports/soak.csv]

First the highest rate is measured for some seconds, then tasks come at half of it: in batches of
all sizes, with priorities, delays, failures and retries, children, cancels, logs and checkpoints;
two workers over HTTP do them, and `perdura worker` runs a process handler at a low rate. Retention
removes what ended half a minute before, so that the store reaches a steady state. Every ten
seconds memory, descriptors, threads, WAL, store, waiting tasks and latency are sampled; after the
warm-up the last quarter is compared with the first. Ctrl-C ends it with a verdict on what was run.
"""
import argparse
import contextlib
import csv
import os
import pathlib
import random
import signal
import sys
import threading
import time

import ledger as ledger_module
from load_clients import Probe, Site, rss_mb
from load_crowds import wait_for
from load_volumes import element

NAME = "soak"
MINUTES = 60
EVERY_S = 10
ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "reports" / "soak.csv"
FIELDS = ("seconds", "rss_mb", "worker_rss_mb", "fds", "threads", "wal_mb", "store_mb", "waiting",
          "ended_total", "pruned_total", "p50_ms", "p99_ms", "worst_ms")
CONFIG = """handlers:
  - type: "process"
    command: ["/bin/sh", "-c", "echo one line; echo '{\\"progress\\":50}' >&3"]
retention:
  completed: 30s
  failed: 30s
  events: 30s
  executions: 30s
  logs: 30s
"""
WORKER = """handlers:
  - type: "process"
    command: ["/bin/sh", "-c", "echo one line; echo '{\\"progress\\":50}' >&3"]
"""
# How much the last quarter may be above the first one: a share of it, and never less than so much.
FLAT = {"rss_mb": (0.10, 4), "worker_rss_mb": (0.10, 3), "fds": (0.05, 4), "threads": (0, 1),
        "wal_mb": (0.25, 4), "store_mb": (0.10, 8), "waiting": (0.50, 500),
        "p99_ms": (1.00, 10)}


def spec(chance, n):
    """One task of the mix; what becomes of it is in its payload."""
    fate = chance.random()
    task = {"type": f"soak:{n % 5}", "queue": f"soak-{n % 4}", "payload": {"n": n},
            "priority": chance.randrange(-5, 6), "retry_policy": "fixed", "retry_delay_ms": 500,
            "max_retries": 2, "tags": ["soak"]}
    if fate < 0.05:
        task["payload"]["fate"] = "fail"
    elif fate < 0.055:
        task["payload"]["fate"] = "spawn"
    elif fate < 0.15:
        task["payload"]["fate"] = "talk"
    elif fate < 0.20:
        task["delay_ms"] = chance.randrange(100, 3000)
    elif fate < 0.22:
        task["idempotency_key"] = f"key-{n // 10}"
    return task


class Producer(threading.Thread):
    """Enqueues at a given rate; a few of its tasks are cancelled again, a few are processes."""

    def __init__(self, site, rate, over, errors):
        super().__init__(daemon=True)
        self.site, self.rate, self.over, self.errors = site, rate, over, errors
        self.sent = 0

    def run(self):
        try:
            self.produce()
        except (OSError, AssertionError) as error:
            if not self.over.is_set():
                self.errors.append(f"producer: {error}")

    def produce(self):
        chance, wire = random.Random(7), self.site.wire()
        began = process_due = time.monotonic()
        while not self.over.is_set():
            size = chance.choice((1, 1, 5, 20, 50, 100, 200))
            specs = [spec(chance, self.sent + i) for i in range(size)]
            items = wire.expect(201, "POST", "/v1/tasks", specs)["items"]
            if chance.random() < 0.1:
                status, _ = wire.call("POST", f"/v1/tasks/{items[0]['id']}:cancel", {})
                if status not in (200, 409):
                    raise AssertionError(f"cancel answered {status}")
            if time.monotonic() >= process_due:
                wire.expect(201, "POST", "/v1/tasks", {"type": "process"})
                process_due += 0.5
            self.sent += size
            ahead_s = self.sent / self.rate - (time.monotonic() - began) if self.rate else 0
            if ahead_s > 0:
                self.over.wait(ahead_s)
        wire.close()


class Worker(threading.Thread):
    """Claims, and does what the payload says."""

    def __init__(self, site, name, over, errors):
        super().__init__(daemon=True)
        self.site, self.name_, self.over, self.errors = site, name, over, errors
        self.done = 0

    def run(self):
        try:
            self.work()
        except (OSError, AssertionError) as error:
            if not self.over.is_set():
                self.errors.append(f"{self.name_}: {error}")

    def work(self):
        wire = self.site.wire()
        queues = [f"soak-{n}" for n in range(4)]
        self.site.register(wire, self.name_, queues)
        while not self.over.is_set():
            tasks = wire.expect(200, "POST", f"/v1/workers/{self.name_}:claim",
                                {"max": 200, "wait_ms": 500})["tasks"]
            if not tasks:
                continue
            elements = [x for task in tasks for x in outcome(task)]
            wire.expect(200, "POST", f"/v1/workers/{self.name_}:report", elements)
            self.done += len(tasks)
        wire.close()


def outcome(task):
    fate = (task["payload"] or {}).get("fate")
    if fate == "fail":
        return [element(task, "fail", error="as planned")]
    if fate == "spawn" and not (task["data"] or {}).get("children"):
        return [element(task, "spawn", tasks=[{"type": "soak:child", "queue": "soak-0",
                                               "ref": str(i)} for i in range(3)]),
                element(task, "continue", wait_children=True)]
    if fate == "talk":
        return [element(task, "progress", progress=10, state="Reading"),
                element(task, "checkpoint", name="half", data={"at": 50}),
                element(task, "log", level="INFO", message="half of it is done" * 4),
                element(task, "complete", result={"ok": True})]
    return [element(task, "complete", result={"n": 1})]


class Crew:
    """The producer and the workers over HTTP. rate 0 = as fast as it goes."""

    def __init__(self, site, rate, errors):
        self.over = threading.Event()
        self.producer = Producer(site, rate, self.over, errors)
        self.workers = [Worker(site, f"soak-worker-{n}", self.over, errors) for n in range(2)]

    def __enter__(self):
        for thread in (self.producer, *self.workers):
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in (self.producer, *self.workers):
            thread.join(20)

    def done(self):
        return sum(worker.done for worker in self.workers)


def highest_rate(site, errors, seconds=15):
    """Tasks per second that are done when the producer does not pause."""
    with Crew(site, 0, errors) as crew:
        time.sleep(3)
        done, began = crew.done(), time.monotonic()
        time.sleep(seconds)
        rate = (crew.done() - done) / (time.monotonic() - began)
    return rate


def empty(site):
    """The backlog of the measurement goes before the soak begins."""
    errors = []
    over = threading.Event()
    worker = Worker(site, "soak-worker-0", over, errors)
    worker.start()
    wait_for(lambda: site.stats()["counts"]["pending"] < 100, 600, "the end of the backlog")
    over.set()
    worker.join(20)


def used_mb(path):
    """Pages of an SQLite file that hold something: the file itself never shrinks, and keeps the size
    of the largest backlog retention ever had."""
    with open(path, "rb") as file:
        head = file.read(100)
    page_bytes, pages, free = (int.from_bytes(head[at:at + size], "big")
                               for at, size in ((16, 2), (28, 4), (36, 4)))
    return round((pages - free) * page_bytes / 1e6, 2)


def file_mb(path):
    with contextlib.suppress(OSError):
        return round(os.path.getsize(path) / 1e6, 2)
    return 0.0


def sample(site, worker, seconds, felt):
    counts = site.stats()
    return {"seconds": round(seconds), "rss_mb": rss_mb(site.pid),
            "worker_rss_mb": rss_mb(worker.pid), "fds": len(os.listdir(f"/proc/{site.pid}/fd")),
            "threads": len(os.listdir(f"/proc/{site.pid}/task")),
            "wal_mb": file_mb(site.server.store + "-wal"), "store_mb": used_mb(site.server.store),
            "waiting": counts["counts"]["pending"] + counts["counts"]["delayed"],
            "ended_total": counts["totals"]["completed"] + counts["totals"]["failed"] +
            counts["totals"]["cancelled"], "pruned_total": counts["totals"]["pruned"],
            "p50_ms": felt["p50_ms"], "p99_ms": felt["p99_ms"], "worst_ms": felt["worst_ms"]}


def watch(site, worker, minutes, path, errors, interrupted, say):
    """Samples until the time is over, a signal comes or something fails."""
    samples = []
    began = time.monotonic()
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        while time.monotonic() - began < minutes * 60 and not errors:
            with Probe(site.address, pause_ms=20) as probe:
                stopped = interrupted.wait(EVERY_S)
                felt = probe.finish()
            if stopped:
                break
            samples.append(sample(site, worker, time.monotonic() - began, felt))
            writer.writerow(samples[-1])
            file.flush()
            if len(samples) % 6 == 0:
                now = samples[-1]
                say(f"minute {len(samples) * EVERY_S // 60}: {now['rss_mb']} MB, {now['fds']} fds, "
                    f"WAL {now['wal_mb']} MB, store {now['store_mb']} MB, {now['waiting']} "
                    f"waiting, {now['ended_total']} ended, p99 {now['p99_ms']} ms")
    return samples


def median(values):
    return sorted(values)[len(values) // 2]


def slope_per_hour(samples, field):
    """Of the line that fits best."""
    xs, ys = [s["seconds"] / 3600 for s in samples], [s[field] for s in samples]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - mean_x) ** 2 for x in xs) or 1
    return sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys)) / spread


def judge(samples):
    """After the warm-up (a quarter of the time, at least two minutes): the medians of the first
    and of the last quarter of the rest, and what grew."""
    total_s = samples[-1]["seconds"] if samples else 0
    warm_s = max(120, total_s / 4)
    rest = [s for s in samples if s["seconds"] > warm_s]
    if len(rest) < 12:
        return {}, ["too short for a verdict: less than two minutes are left after the warm-up"]
    quarter = len(rest) // 4
    figures, findings = {}, []
    for field, (share, least) in FLAT.items():
        first = median([s[field] for s in rest[:quarter]])
        last = median([s[field] for s in rest[-quarter:]])
        figures[field] = {"first": first, "last": last,
                          "most": max(s[field] for s in rest),
                          "slope_per_hour": round(slope_per_hour(rest, field), 2)}
        if last > first + max(first * share, least):
            findings.append(f"{field} went from {first} to {last}")
    return figures, findings


def soak(minutes, path, interrupted, say):
    """One run: the line for the ledger."""
    errors = []
    with Site(config=CONFIG, arguments=("--workers", "0")) as site:
        worker = site.worker(WORKER)
        rate = highest_rate(site, errors)
        say(f"{rate:.0f} tasks/s at most; half of it for {minutes:g} minutes")
        empty(site)
        before = site.stats()["totals"]
        began = time.monotonic()
        with Crew(site, rate / 2, errors):
            samples = watch(site, worker, minutes, path, errors, interrupted, say)
            ran_s = time.monotonic() - began
        totals = site.stats()["totals"]
        log = pathlib.Path(site.folder, "stderr.log").read_text(errors="replace")
        bad_lines = sum('"level":"error"' in line for line in log.splitlines())
        wrong = site.verify()
    figures, findings = judge(samples)
    findings += errors
    if wrong:
        findings.append("verify: " + wrong)
    if bad_lines:
        findings.append(f"{bad_lines} errors in the log of the server")
    if totals["lost_leases"]:
        findings.append(f"{totals['lost_leases']} leases were lost")
    done = totals["completed"] - before["completed"]
    return {"minutes": round(ran_s / 60, 1), "asked_minutes": minutes,
            "rate_highest": round(rate), "rate": round(done / max(ran_s, 1)), "completed": done,
            "retried": totals["retried"] - before["retried"],
            "cancelled": totals["cancelled"] - before["cancelled"],
            "pruned": totals["pruned"] - before["pruned"], "samples": len(samples),
            "figures": figures, "findings": findings}


def run(ledger, say, minutes=None, path=SAMPLES, interrupted=None):
    minutes = minutes or float(os.environ.get("PERDURA_SOAK_MINUTES", MINUTES))
    if any(row["minutes"] >= minutes * 0.99 for row in ledger.rows(NAME)):
        say("in the ledger")
        return None
    row = soak(minutes, path, interrupted or threading.Event(), say)
    return ledger.add(NAME, **row)


def newest(ledger):
    rows = ledger.rows(NAME)
    return max(reversed(rows), key=lambda row: row["minutes"]) if rows else None


def words(row):
    if not row["figures"]:
        return "too short for a verdict"
    f = row["figures"]
    return (f"memory {f['rss_mb']['first']:.1f} → {f['rss_mb']['last']:.1f} MB, descriptors "
            f"{f['fds']['first']} → {f['fds']['last']}, WAL {f['wal_mb']['first']:.1f} → "
            f"{f['wal_mb']['last']:.1f} MB, store {f['store_mb']['first']:.0f} → "
            f"{f['store_mb']['last']:.0f} MB")


def summary(ledger):
    row = newest(ledger)
    if not row:
        return []
    return [("soak", f"{row['minutes']:g} minutes at half load, {row['rate']} tasks/s",
             "grew: " + "; ".join(row["findings"]) if row["findings"] else words(row))]


def report(ledger):
    row = newest(ledger)
    return section(row) if row else "## Soak\n\nNot run.\n"


def section(row):
    lines = ["## Soak", "",
             f"{row['minutes']:g} minutes at {row['rate']} tasks/s, half of the "
             f"{row['rate_highest']} tasks/s this mix reached on this machine with its clients on "
             f"it: batches of 1 to 200, priorities, delays, failures with retries, children, "
             f"cancels, logs, checkpoints, process handlers; retention removes what ended 30 s "
             f"before. {row['completed']} completed, {row['retried']} retried, "
             f"{row['cancelled']} cancelled, {row['pruned']} removed by retention. Medians of the "
             f"first and the last quarter after the warm-up; samples in `reports/soak.csv`.", "",
             "| what | first quarter | last quarter | most | slope per hour |",
             "|---|---:|---:|---:|---:|"]
    for field, f in row["figures"].items():
        lines.append(f"| `{field}` | {f['first']} | {f['last']} | {f['most']} | "
                     f"{f['slope_per_hour']:+} |")
    verdict = "; ".join(row["findings"]) or "nothing grew, no lease was lost, `perdura verify` " \
        "finds nothing"
    return "\n".join(lines + ["", f"Verdict: {verdict}.", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--ledger", default=str(ROOT / "reports" / "faults.jsonl"))
    parser.add_argument("--samples", default=str(SAMPLES))
    options = parser.parse_args()
    interrupted = threading.Event()
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, lambda *_: interrupted.set())
    ledger = ledger_module.Ledger(options.ledger)
    row = soak(options.minutes, pathlib.Path(options.samples), interrupted,
               lambda text: print(text, flush=True))
    if row["figures"]:
        ledger.add(NAME, **row)
    print(section(row))
    return 1 if row["findings"] else 0


if __name__ == "__main__":
    sys.exit(main())
