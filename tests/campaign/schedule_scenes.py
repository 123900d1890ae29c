"""Scenes of the part `schedules`: clocks that are set (F-C1 to F-C3), zones that vanish (F-C9), many
schedules at one instant (F-H9), days without a server (F-H10), and 100,000 schedules. Clocks are set
for the processes of the scene only (wall_clock.c).

    python3 tests/campaign/schedule_scenes.py F-C1
"""
import collections
import concurrent.futures
import datetime
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

import ledger as ledger_module

for folder in ("postgres", "api"):
    sys.path.insert(0, str(ledger_module.ROOT / "tests" / folder))
import harness  # noqa: E402
from cluster import Cluster  # noqa: E402
from server import Postgres  # noqa: E402

SCENES = {}
SECOND_US = 1000000
MANY = 10000
VERY_MANY = 100000
CPU_SHARE_MAX = 0.05  # of one core, with nothing to do
ZONEINFO = "/usr/share/zoneinfo"


def scene(ids, what):
    def keep(function):
        SCENES[ids] = (what, function)
        return function
    return keep


def one(ids):
    """The row of one scene."""
    what, function = SCENES[ids]
    findings = []
    result, figures = function(lambda text: findings.append(f"{ids}: {text}"))
    return {"what": what, "result": result, "findings": findings, **figures}


class Clock:
    """The wall clock of programs started with its environment (wall_clock.c)."""

    def __init__(self, folder, offset_s=0):
        library = os.path.join(folder, "wall_clock.so")
        self.path = os.path.join(folder, "wall_offset")
        source = pathlib.Path(__file__).parent / "wall_clock.c"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
        self.set(offset_s)
        self.environment = {"LD_PRELOAD": library, "PERDURA_WALL_OFFSET": self.path}

    def set(self, offset_s):
        self.offset_s = offset_s
        with open(self.path, "r+b" if os.path.exists(self.path) else "wb") as file:
            file.write(offset_s.to_bytes(8, sys.byteorder, signed=True))

    def now_us(self):
        return int((time.time() + self.offset_s) * SECOND_US)


class Alone(harness.ApiTest):
    """A server on SQLite and its client; not a test itself."""

    def __init__(self, *arguments, environment=None):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="perdura-scene-")
        self.clock = Clock(self.folder.name)
        self.server = harness.Server(self.folder.name, *arguments,
                                     environment={**self.clock.environment, **(environment or {})})
        self.local = threading.local()
        self.server.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.stop(signal.SIGKILL)
        self.folder.cleanup()

    def schedule(self, cron, **fields):
        job = self.expect(201, "POST", "/v1/jobs", {"name": f"job {cron} {fields}"})["id"]
        return self.expect(201, "POST", f"/v1/jobs/{job}/schedules",
                           {"schedule_type": "cron", "cron_expression": cron, **fields})["id"]

    def fires(self, schedule):
        """Planned instants that were fired, in microseconds, oldest first."""
        with sqlite3.connect(f"file:{self.server.store}?mode=ro", uri=True) as db:
            return [at for at, in db.execute(
                "SELECT fire_at FROM schedule_fires WHERE schedule_id = ? ORDER BY fire_at",
                (bytes.fromhex(schedule.replace("-", "")),))]

    def tasks(self, schedule):
        with sqlite3.connect(f"file:{self.server.store}?mode=ro", uri=True) as db:
            return db.execute("SELECT count(*) FROM tasks WHERE schedule_id = ?",
                              (bytes.fromhex(schedule.replace("-", "")),)).fetchone()[0]

    def cpu_s(self):
        with open(f"/proc/{self.server.process.pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def cpu_share(self, seconds):
        before = self.cpu_s()
        time.sleep(seconds)
        return (self.cpu_s() - before) / seconds

    def rss_mib(self):
        with open(f"/proc/{self.server.process.pid}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024


@scene("F-C1", "the clock of a server with schedules is set an hour and five years ahead, and an "
       "hour back")
def clock_set(find):
    shares = {}
    with Alone() as server:
        ticks = server.schedule("* * * * * *", misfire="fire_once", misfire_grace_ms=1000)
        minutes = server.schedule("* * * * *", misfire="fire_once")
        harness.wait_until(lambda: len(server.fires(ticks)) > 3, 20, "the first instants")
        ahead = 0
        for step, word in ((3600, "an hour ahead"), (5 * 365 * 86400, "five years ahead")):
            before = set(server.fires(ticks) + server.fires(minutes))
            ahead += step
            server.clock.set(ahead)
            since = server.clock.now_us()
            harness.wait_until(lambda s=since: server.fires(ticks)[-1] > s, 30, "instants " + word)
            late = [at for at in server.fires(minutes)
                    if at not in before and at < since - 60 * SECOND_US]  # beyond the grace
            if len(late) != 1:
                find(f"{word}: {len(late)} late instants of the minutes fired, not one")
            shares[word] = round(server.cpu_share(5), 3)
        fired = server.fires(ticks)
        server.clock.set(ahead - 3600)
        shares["an hour back"] = round(server.cpu_share(5), 3)
        harness.wait_until(lambda: len(server.fires(ticks)) > len(fired), 90,
                           "instants of the hour that was jumped over, which never fired")
        new = [at for at in server.fires(ticks) if at not in fired]
        if server.tasks(ticks) > len(server.fires(ticks)):  # read after: they keep firing
            find("set back: instants fired twice")
        if [at for at in new if at > server.clock.now_us()]:
            find("set back: instants of the future fired")
        for word, share in shares.items():
            if share > CPU_SHARE_MAX:
                find(f"{word}: {100 * share:.0f} % of a core")
    return ("one late run by fire_once each time, none twice, not silent when set back; processor "
            + ", ".join(f"{100 * share:.1f} %" for share in shares.values()), {"shares": shares})


@scene("F-C2", "the clock is set back over a minute that has just fired")
def clock_back(find):
    with Alone() as server:
        now_s = int(time.time())
        server.clock.set(57 - now_s % 60)  # three seconds before a minute
        minutes = server.schedule("* * * * *")
        harness.wait_until(lambda: server.fires(minutes), 20, "the minute")
        first = server.fires(minutes)
        server.clock.set(server.clock.offset_s - 10)  # before it again
        time.sleep(15)
        fired = server.fires(minutes)
        if fired != first or server.tasks(minutes) != len(fired):
            find(f"fired {len(fired)} times, {server.tasks(minutes)} tasks")
    return "it came by twice and fired once", {}


@scene("F-C3", "three nodes whose clocks are five minutes apart on one PostgreSQL")
def clocks_apart(find):
    with Postgres() as postgres:
        folder = tempfile.mkdtemp(prefix="perdura-clocks-")
        cluster = Cluster(postgres, 0)
        try:
            from cluster import LEASES, Node
            for i, offset_s in enumerate((-300, 0, 300)):
                os.mkdir(os.path.join(folder, str(i)))
                node = Node(os.path.join(cluster.folder, f"node-{i}"), cluster.store, LEASES)
                node.server.environment.update(
                    Clock(os.path.join(folder, str(i)), offset_s).environment)
                cluster.nodes.append(node)
            cluster.start_all()
            job = cluster.node(0).expect(201, "POST", "/v1/jobs", {"name": "tick"})["id"]
            cluster.node(2).expect(201, "POST", f"/v1/jobs/{job}/schedules",
                                   {"cron_expression": "* * * * * *", "schedule_type": "cron"})
            leaders = 0
            for _ in range(4):  # each of them leads once
                leader = cluster.wait_leader()
                time.sleep(4)
                cluster.stop(leader)
                harness.wait_until(lambda old=leader: cluster.leader() not in (None, old), 20,
                                   "another leader")
                cluster.start(leader)
                leaders += 1
            rows = [(int(at), int(made)) for at, made in cluster.sql(
                "SELECT (extract(epoch FROM scheduled_at) * 1000000)::bigint, "
                "(extract(epoch FROM created_at) * 1000000)::bigint FROM tasks ORDER BY 1")]
            instants = [at for at, _ in rows]
            missing = (instants[-1] - instants[0]) // SECOND_US + 1 - len(set(instants))
            early = sum(made < at for at, made in rows)
            doubled = len(instants) - len(set(instants))
            if missing or early or doubled:
                find(f"missed {missing}, early {early}, doubled {doubled}")
            cluster.stop_all()
        finally:
            cluster.close()
            shutil.rmtree(folder, ignore_errors=True)
    return (f"{len(rows)} instants under {leaders} leaders by the database's clock: early {early}, "
            f"missed {missing}, doubled {doubled}", {})


@scene("F-C9", "a zone's file vanishes, comes back, and changes")
def zone_vanishes(find):
    zones = tempfile.mkdtemp(prefix="perdura-zones-")
    try:
        for name in ("Europe/Paris", "Asia/Tokyo", "America/New_York"):
            os.makedirs(os.path.join(zones, os.path.dirname(name)), exist_ok=True)
            shutil.copy(os.path.join(ZONEINFO, name), os.path.join(zones, name))
        shutil.copy(os.path.join(ZONEINFO, "Etc/UTC"), os.path.join(zones, "UTC"))
        with Alone(environment={"PERDURA_ZONEINFO": zones}) as server:
            paris = server.schedule("* * * * * *", timezone="Europe/Paris")
            tokyo = server.schedule("* * * * * *", timezone="Asia/Tokyo")
            daily = server.schedule("0 9 * * *", timezone="America/New_York")
            before = server.expect(200, "GET", f"/v1/schedules/{daily}")["next_fire_at"]
            harness.wait_until(lambda: server.fires(paris), 20, "Paris")
            os.remove(os.path.join(zones, "Europe/Paris"))
            error = harness.wait_until(
                lambda: server.expect(200, "GET", f"/v1/schedules/{paris}")["error"], 60,
                "an error at the schedule")
            fired = len(server.fires(tokyo))
            harness.wait_until(lambda: len(server.fires(tokyo)) > fired + 2, 20, "Tokyo to fire again")
            shutil.copy(os.path.join(ZONEINFO, "Europe/Paris"), os.path.join(zones, "Europe/Paris"))
            fired = len(server.fires(paris))
            harness.wait_until(lambda: len(server.fires(paris)) > fired + 1, 60, "Paris again")
            if server.expect(200, "GET", f"/v1/schedules/{paris}")["error"]:
                find("the error stays although the zone is back")
            changed = os.path.join(zones, "America/New_York")
            shutil.copy(os.path.join(ZONEINFO, "Asia/Tokyo"), changed + ".new")
            os.replace(changed + ".new", changed)
            harness.wait_until(lambda: server.expect(200, "GET", f"/v1/schedules/{daily}")
                               ["next_fire_at"] != before, 60, "the changed zone")
    finally:
        shutil.rmtree(zones, ignore_errors=True)
    return f"its schedule says '{error}', others continue; back by itself; changes are noticed", {}


def many_schedules(server, job, count, fields):
    """Over several connections."""
    body = json.dumps(fields)

    def some(number):
        connection = server.connection()
        for _ in range(number):
            connection.request("POST", f"/v1/jobs/{job}/schedules", body,
                               {"Content-Type": "application/json"})
            reply = connection.getresponse()
            reply.read()
            if reply.status != 201:
                raise AssertionError(f"a schedule was refused: {reply.status}")
        connection.close()

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        for done in [pool.submit(some, count // 16 + (i < count % 16)) for i in range(16)]:
            done.result()


def at_text(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).isoformat().replace(
        "+00:00", "Z")


@scene("F-H9", f"{MANY:,} schedules at one instant, a worker with a lease of two seconds, and "
       "a client that enqueues")
def one_instant(find):
    with Alone("--lease", "2s") as server:
        job = server.expect(201, "POST", "/v1/jobs", {"name": "midnight"})["id"]
        server.register("w")
        held_task = server.enqueue("long")
        [held] = server.claim("w")
        server.report_ok("w", held, "start")
        beats, over, waits = [], threading.Event(), []

        def beat():
            while not over.wait(0.5):
                beats.append(server.expect(200, "POST", "/v1/workers/w:heartbeat",
                                           {"tasks": [{"task_id": held["id"], "lease_token":
                                                       held["lease_token"]}]})["lost"])

        def offer():
            while not over.wait(0.01):
                began = time.monotonic()
                server.enqueue("other")
                waits.append(1000 * (time.monotonic() - began))

        threads = [threading.Thread(target=beat)]
        threads[0].start()
        at = int(time.time()) + 60
        many_schedules(server, job, MANY, {"schedule_type": "once", "scheduled_at": at_text(at)})
        if time.time() > at - 1:
            find("the machine is too slow to make so many schedules in a minute")
        threads.append(threading.Thread(target=offer))
        threads[1].start()

        def rows():
            with sqlite3.connect(f"file:{server.server.store}?mode=ro", uri=True) as db:
                return db.execute("SELECT created_at - scheduled_at FROM tasks WHERE schedule_id "
                                  "IS NOT NULL").fetchall()

        harness.wait_until(lambda: len(rows()) >= MANY, 120, "all of them")
        over.set()
        for thread in threads:
            thread.join()
        late = sorted(us / 1000 for us, in rows())
        if len(late) != MANY:
            find(f"{len(late)} tasks")
        if any(beats) or server.task(held_task["id"])["status"] != "running":
            find("a lease was lost meanwhile")
    waits.sort()
    return (f"all {len(late):,} fired, p50 / p99 / max {late[len(late) // 2]:,.0f} / "
            f"{late[int(len(late) * 0.99)]:,.0f} / {late[-1]:,.0f} ms late; leases lost 0; other "
            f"enqueues p99 {waits[int(len(waits) * 0.99)]:,.0f} ms",
            {"late_ms_p99": late[int(len(late) * 0.99)], "late_ms_max": late[-1]})


@scene("F-H10", "no server for three days, with schedules that fire every minute")
def three_days(find):
    with Alone() as server:
        plans = {"skip": server.schedule("* * * * *", misfire="skip"),
                 "fire_once": server.schedule("* * * * *", misfire="fire_once"),
                 "fire_all": server.schedule("* * * * *", misfire="fire_all", misfire_cap=50)}
        server.server.stop()
        server.clock.set(3 * 86400)
        since = server.clock.now_us()
        began = time.monotonic()
        server.server.start()
        late = collections.Counter()

        def count():
            for word, plan in plans.items():
                late[word] = len([at for at in server.fires(plan) if at < since - 60 * SECOND_US])
            return late["fire_all"] >= 50 and late["fire_once"] >= 1

        harness.wait_until(count, 30, "what is late")
        took = time.monotonic() - began
        time.sleep(2)
        count()
        if (late["skip"], late["fire_once"], late["fire_all"]) != (0, 1, 50):
            find(f"late runs: {dict(late)}")
    return (f"of 4,320 missed skip fired {late['skip']}, fire_once {late['fire_once']}, fire_all "
            f"with a cap of 50 {late['fire_all']}; {took:.1f} s after the start", {})


@scene("D4", f"{VERY_MANY:,} active schedules beside one that fires every second")
def very_many(find):
    figures = {}
    with Alone() as server:
        job = server.expect(201, "POST", "/v1/jobs", {"name": "far away"})["id"]
        server.schedule("* * * * * *")
        for count in (100, VERY_MANY):
            many_schedules(server, job, count, {"schedule_type": "cron",
                                                "cron_expression": "0 3 1 1 *",
                                                "timezone": "Europe/Paris"})
            time.sleep(3)
            figures[count] = {"cpu": server.cpu_share(20), "rss_mib": round(server.rss_mib(), 1)}
        server.server.stop()
        began = time.monotonic()
        server.server.start()
        start_s = time.monotonic() - began
        if figures[VERY_MANY]["cpu"] > 2 * figures[100]["cpu"] + 0.01:
            find(f"a tick costs more: {figures}")
        fresh = server.rss_mib()
    few, all_of_them = figures[100], figures[VERY_MANY]
    return (f"processor with one firing per second {100 * few['cpu']:.2f} % with 100, "
            f"{100 * all_of_them['cpu']:.2f} % with all; memory {few['rss_mib']} and "
            f"{all_of_them['rss_mib']} MiB (after a restart {fresh:.1f}); start {start_s:.1f} s",
            {"few": few, "many": all_of_them, "start_s": round(start_s, 2)})


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    os.environ.setdefault("PERDURA_BUILD", str(ledger_module.ROOT / "build"))
    for name in sys.argv[1:] or SCENES:
        row = one(name)
        print(json.dumps({"scene": name, **row}))
        if row["findings"]:
            sys.exit(1)


if __name__ == "__main__":
    main()
