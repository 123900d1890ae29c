"""Part `schedules` of the fault campaign: schedules that fire every second and every minute, while
the server that fires them is killed (F-A11, F-A12), or the leader of three nodes on PostgreSQL is
killed or stopped (F-F1 to F-F3). Afterwards every planned instant must have been fired, and once
(D4, D6). And the scenes of schedule_scenes.py. One row of the ledger per round, given by its seed:

    python3 tests/campaign/schedules.py sqlite schedules_sqlite.3 50
    python3 tests/campaign/schedule_scenes.py F-C1
"""
import collections
import datetime
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

import ledger as ledger_module
import schedule_scenes

for folder in ("postgres", "api"):
    sys.path.insert(0, str(ledger_module.ROOT / "tests" / folder))
import harness  # noqa: E402
from cluster import Cluster  # noqa: E402
from server import Postgres  # noqa: E402

NAME = "schedules"
SCALE = float(os.environ.get("PERDURA_SCHEDULES_SCALE", "1"))
# kind, what is counted, goal, how many per round
GOALS = (("sqlite", "kills", int(1000 * SCALE), 50), ("leaders", "kills", int(1000 * SCALE), 50),
         ("hand-overs", "stops", int(200 * SCALE), 50))
SIDE_BY_SIDE = {"sqlite": 3, "leaders": 3, "hand-overs": 2}  # they mostly wait
LEADER_LEASE = "1s"
SECOND_US = 1000000
# What fires, and how far apart.
PLANS = {"every second": SECOND_US, "every minute": 60 * SECOND_US,
         "an interval of a second": SECOND_US, "a recurring pattern": SECOND_US}


def run(ledger, say):
    for kind, field, goal, size in GOALS:
        while ledger.total(NAME, field, kind=kind) < goal:
            run_side_by_side(ledger, say, kind, field, goal, size)
    for name in schedule_scenes.SCENES:
        if not ledger.rows(NAME, kind="scene", scene=name):
            row = schedule_scenes.one(name)
            ledger.add(NAME, kind="scene", scene=name, **row)
            say(f"{name}: {row['result']}, findings: {len(row['findings'])}")


def run_side_by_side(ledger, say, kind, field, goal, size):
    number = len(ledger.rows(NAME, kind=kind))
    seeds = [f"schedules_{kind}.{number + i}" for i in range(SIDE_BY_SIDE[kind])]
    rows = {}

    def one(seed):
        rows[seed] = ROUNDS[kind](seed).run(size)

    threads = [threading.Thread(target=one, args=(seed,), daemon=True) for seed in seeds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in seeds:
        if seed not in rows:
            raise SystemExit(f"round {seed} ended without a row")
        ledger.add(NAME, kind=kind, **rows[seed])
    done = ledger.total(NAME, field, kind=kind)
    findings = [text for row in rows.values() for text in row["findings"]]
    say(f"{kind}: {done} {field} of {goal}; "
        f"{sum(row['fired'] for row in rows.values())} instants fired, findings: {len(findings)}")
    if findings:
        raise SystemExit(findings[0][:2000])


class Round:
    """Makes the plans, lets things happen, looks at what was fired."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.row = collections.Counter()
        self.lists = {}
        self.seed, self.findings, self.owners = seed, [], {}

    def run(self, count):
        began = time.monotonic()
        try:
            self.open()
            self.plan()
            for _ in range(count):
                self.disturb()
            self.settle()
            self.check(*self.look())
        except Exception as error:  # a round that fails is a finding, not the campaign's end
            self.findings.append(f"{self.seed}: {error!r}")
            self.row.setdefault("fired", 0)
        finally:
            self.close()
        return {"seed": self.seed, **self.row, **self.lists, "findings": self.findings,
                "seconds": round(time.monotonic() - began, 1)}

    def plan(self):
        job = self.client().expect(201, "POST", "/v1/jobs", {"name": "tick"})["id"]
        ways = {"every second": {"schedule_type": "cron", "cron_expression": "* * * * * *"},
                "every minute": {"schedule_type": "cron", "cron_expression": "* * * * *"},
                "an interval of a second": {"schedule_type": "interval", "interval_seconds": 1}}
        for name, fields in ways.items():
            made = self.client().expect(201, "POST", f"/v1/jobs/{job}/schedules", fields)
            self.owners[made["id"]] = name
        made = self.client().expect(201, "POST", "/v1/recurring", {
            "name": "tick", "pattern_type": "rrule", "template_job_id": job,
            "pattern_config": {"rrule": "FREQ=SECONDLY"}})
        self.owners[made["id"]] = "a recurring pattern"

    def settle(self):
        """The remaining nodes fire what is late, and some more."""
        until_us = time.time() * SECOND_US + 2 * SECOND_US
        harness.wait_until(lambda: min(self.newest().values(), default=0) > until_us, 30,
                           "all plans to continue")

    def newest(self):
        """The last fired instant of every plan but the slow one."""
        last = {owner: 0 for owner, name in self.owners.items() if PLANS[name] == SECOND_US}
        for item in self.client().expect(200, "GET", "/v1/schedules")["items"]:
            if item["id"] in last and item["last_fire_at"]:
                last[item["id"]] = microseconds(item["last_fire_at"])
        for item in self.client().expect(200, "GET", "/v1/recurring")["items"]:
            if item["id"] in last and item["last_generated"]:
                last[item["id"]] = microseconds(item["last_generated"])
        return last

    def check(self, fires, tasks):
        """fires: (owner, instant, task), tasks: (id, owner, scheduled_at, created_at); all times
        in microseconds."""
        made = {task[0]: task for task in tasks}
        late = {"late_ms": []}
        for owner, name in self.owners.items():
            instants = sorted(instant for plan, instant, _ in fires if plan == owner)
            planned = [scheduled for _, plan, scheduled, _ in tasks if plan == owner]
            step = PLANS[name]
            if instants:
                expected = set(range(instants[0], instants[-1] + 1, step))
                self.tell(name, "missed", sorted(expected - set(instants)))
                self.tell(name, "not planned", sorted(set(instants) - expected))
            elif step == SECOND_US:
                self.findings.append(f"{self.seed}: {name}: nothing was fired")
            self.tell(name, "doubled", [at for at, times in collections.Counter(planned).items()
                                        if times > 1])
            self.tell(name, "task without a fire", sorted(set(planned) - set(instants)))
            self.row["fired"] += len(instants)
        for owner, instant, task in fires:
            if task not in made:
                self.tell(self.owners.get(owner), "fire without a task", [instant])
                continue
            if self.owners.get(owner) == "every second":
                late["late_ms"].append(round((made[task][3] - instant) / 1000, 1))
        self.lists.update(late)

    def tell(self, name, what, instants):
        self.row[what] += len(instants)
        if instants:
            self.findings.append(f"{self.seed}: {name}: {what}: {len(instants)}, the first "
                                 f"{instants[0]}")


def microseconds(text):
    at = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return int(at.timestamp()) * SECOND_US + at.microsecond


class OneServer(Round):
    """A server with an SQLite file, killed at any moment, or where it fires."""

    def open(self):
        self.folder = tempfile.TemporaryDirectory(prefix="perdura-schedules-")
        self.node = Alone(self.folder.name)
        self.node.server.start()

    def client(self):
        return self.node

    def disturb(self):
        time.sleep(self.rng.random() * 1.2)
        self.node.server.stop(signal.SIGKILL)
        self.row["kills"] += 1
        time.sleep(self.rng.choice((0, 0, 0.1, 1.5)))  # also longer than an instant
        self.node.server.start()

    def look(self):
        self.node.server.stop()
        verify = subprocess.run([harness.binary(), "verify", "--store", self.node.server.store],
                                capture_output=True, text=True, check=False)
        if verify.returncode != 0:
            self.findings.append(f"{self.seed}: verify: {verify.stdout}{verify.stderr}")
        with sqlite3.connect(self.node.server.store) as db:
            fires = db.execute("SELECT lower(hex(schedule_id)), fire_at, lower(hex(task_id)) FROM "
                               "schedule_fires UNION ALL SELECT lower(hex(recurring_job_id)), "
                               "instant, lower(hex(task_id)) FROM recurring_fires").fetchall()
            tasks = db.execute("SELECT lower(hex(id)), lower(hex(coalesce(schedule_id, "
                               "recurring_job_id))), scheduled_at, created_at FROM "
                               "tasks").fetchall()
        self.owners = {owner.replace("-", ""): name for owner, name in self.owners.items()}
        return fires, tasks

    def close(self):
        if hasattr(self, "node"):
            self.node.server.stop(signal.SIGKILL)
        self.folder.cleanup()


class Alone(harness.ApiTest):
    """A server and its client; not a test itself."""

    def __init__(self, folder):
        super().__init__()
        self.server = harness.Server(folder, "--lease", "2s")
        self.local = threading.local()


class Leaders(Round):
    """Three nodes; the one that leads is killed, and comes back as another one leads."""

    def open(self):
        self.postgres = Postgres()
        self.postgres.__enter__()
        self.cluster = Cluster(self.postgres, 3, "--leader-lease", LEADER_LEASE)
        self.cluster.wait_leader()

    def client(self):
        return next(node for node in self.cluster.nodes if node.lives)

    def end_leader(self, leader):
        self.cluster.kill(leader)
        self.row["kills"] += 1

    def disturb(self):
        leader = self.cluster.wait_leader()
        time.sleep(self.rng.random() * 0.6)
        ended = time.monotonic()
        self.end_leader(leader)
        harness.wait_until(lambda: self.cluster.leader() not in (None, leader), 20,
                           "another leader")
        self.lists.setdefault("take_over_ms", []).append(round(1000 * (time.monotonic() - ended)))
        self.cluster.start(leader)

    def look(self):
        self.cluster.stop_all()
        code, text = self.cluster.verify()
        if code != 0:
            self.findings.append(f"{self.seed}: verify: {text}")
        micros = "(extract(epoch FROM {}) * 1000000)::bigint"
        fires = [(owner, int(at), task) for owner, at, task in self.cluster.sql(
            f"SELECT schedule_id, {micros.format('fire_at')}, task_id FROM schedule_fires UNION "
            f"ALL SELECT recurring_job_id, {micros.format('instant')}, task_id FROM "
            "recurring_fires")]
        tasks = [(task, owner, int(at), int(made)) for task, owner, at, made in self.cluster.sql(
            "SELECT id, coalesce(schedule_id, recurring_job_id), "
            f"{micros.format('scheduled_at')}, {micros.format('created_at')} FROM tasks")]
        return fires, tasks

    def close(self):
        if hasattr(self, "cluster"):
            self.cluster.close()
        self.postgres.__exit__(None, None, None)


class HandOvers(Leaders):
    """The leader is asked to stop, again and again (F-F2, F-F3)."""

    def end_leader(self, leader):
        self.cluster.stop(leader)
        self.row["stops"] += 1


ROUNDS = {"sqlite": OneServer, "leaders": Leaders, "hand-overs": HandOvers}


# ---- the report ----

def percentiles(values):
    if not values:
        return "–"
    ordered = sorted(values)
    return " / ".join(f"{ordered[min(len(ordered) - 1, int(share * len(ordered)))]:,.0f}"
                      for share in (0.5, 0.99, 1))


def samples(ledger, kind, field):
    return [value for row in ledger.rows(NAME, kind=kind) for value in row.get(field, ())]


WHAT = {"sqlite": ("F-A11, F-A12", "kill -9 of the server on SQLite", "kills"),
        "leaders": ("F-F1", "kill -9 of the leader of three nodes on PostgreSQL", "kills"),
        "hand-overs": ("F-F2, F-F3", "stops of the leader of three nodes, one after the other",
                       "stops")}


def summary(ledger):
    lines = []
    for kind, (ids, what, field) in WHAT.items():
        if ledger.rows(NAME, kind=kind):
            lines.append((ids, f"{ledger.total(NAME, field, kind=kind):,} {what}, "
                          f"{ledger.total(NAME, 'fired', kind=kind):,} instants of schedules and "
                          "recurring patterns",
                          f"missed {ledger.total(NAME, 'missed', kind=kind)}, doubled "
                          f"{ledger.total(NAME, 'doubled', kind=kind)}"))
    scenes = {row["scene"]: row for row in ledger.rows(NAME, kind="scene")}
    lines += [(name, what, scenes[name]["result"])
              for name, (what, _) in schedule_scenes.SCENES.items() if name in scenes]
    return lines


def report(ledger):
    if not ledger.rows(NAME):
        return ""
    lines = ["## Schedules", "",
             "Two cron schedules (every second, every minute), an interval of a second and a "
             "recurring pattern, while the process that fires them is ended. At the end every instant from "
             "the first to the last must have one row and one task. Lateness is from the planned "
             "instant to the moment the task was made, of the schedule that fires every second; "
             f"leaders' leases are {LEADER_LEASE}. Milliseconds, p50 / p99 / max.", "",
             "| | ended | fired | missed | doubled | late | take-over |",
             "|---|---:|---:|---:|---:|---:|---:|"]
    for kind, (_, what, field) in WHAT.items():
        if ledger.rows(NAME, kind=kind):
            lines.append(f"| {what} | {ledger.total(NAME, field, kind=kind):,} | "
                         f"{ledger.total(NAME, 'fired', kind=kind):,} | "
                         f"{ledger.total(NAME, 'missed', kind=kind)} | "
                         f"{ledger.total(NAME, 'doubled', kind=kind)} | "
                         f"{percentiles(samples(ledger, kind, 'late_ms'))} | "
                         f"{percentiles(samples(ledger, kind, 'take_over_ms'))} |")
    return "\n".join(lines + [""])


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    os.environ.setdefault("PERDURA_BUILD", str(ledger_module.ROOT / "build"))
    row = ROUNDS[sys.argv[1]](sys.argv[2]).run(int(sys.argv[3]))
    print(json.dumps(row))
    sys.exit(1 if row["findings"] else 0)


if __name__ == "__main__":
    main()
