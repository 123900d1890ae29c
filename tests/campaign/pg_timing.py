"""How long it takes until another node leads and until a lost task runs elsewhere, after a node was
killed (E4, E5). Idle clusters side by side; every node holds tasks that would run for ever.

    python3 tests/campaign/pg_timing.py LEASE_S KILLS
"""
import calendar
import json
import pathlib
import random
import signal
import sys
import threading
import time

import pg_load

from server import Postgres  # noqa: E402  (tests/postgres, by pg_load)

NODES = 3
HELD = 6      # tasks that run, two per node
LEADERS = 0.7  # share of kills that are the leader's
CONFIG = """workers: 8
lease: {lease_ms}ms
leader_lease: {leader_ms}ms
handlers:
  - type: "hold"
    timeout: 10h
    command: ["/bin/sh", "-c", "echo $PERDURA_TASK_ID $(date +%s%N) >> {marks}; exec sleep 36000"]
"""


class Timed:
    """One cluster."""

    def __init__(self, postgres, lease_s, seed, over):
        self.over = over
        self.lease_s, self.rng = lease_s, random.Random(seed)
        self.nodes = pg_load.Nodes(postgres, [postgres.port] * NODES, lease_ms=1000 * lease_s,
                                   config=CONFIG)
        self.take_over_ms, self.recovery_ms, self.recovery_leader_ms = [], [], []
        self.kills, self.findings = 0, []

    def run(self, kills):
        try:
            self.nodes.start_all()
            self.wait(lambda: self.nodes.leader() is not None, 2 * self.lease_s + 10, "a leader")
            self.enqueue()
            self.wait(lambda: len(self.marks()) >= HELD, 20, "all tasks to run")
            while self.kills < kills:
                self.one()
        except Exception as error:
            self.findings.append(f"leases of {self.lease_s} s: {error!r}")
        finally:
            self.findings += self.nodes.verify()
            self.nodes.close()

    def enqueue(self):
        client = pg_load.kill_clients.Client(pg_load.AnyNode(self.nodes, 0))
        client.once("POST", "/v1/tasks", json.dumps([{"type": "hold", "max_crashes": 100000}] *
                                                    HELD))
        client.close()

    def marks(self):
        """(task, seconds of the wall clock), one per start."""
        path = pathlib.Path(self.nodes.marks)
        lines = path.read_text().splitlines() if path.exists() else []
        return [(line.split()[0], int(line.split()[1]) / 1e9) for line in lines if " " in line]

    def wait(self, predicate, deadline_s, what):
        end = time.monotonic() + deadline_s
        while not predicate():
            if time.monotonic() > end or self.over.is_set():
                raise AssertionError(f"{what} did not come within {deadline_s} s")
            time.sleep(0.02)

    def held_by(self, i):
        return {row[0] for row in self.nodes.sql(
            "SELECT id FROM tasks WHERE status = 'running' AND worker_id LIKE "
            f"'%-{self.nodes.nodes[i].pid}-%'")}

    def one(self):
        leader = self.nodes.leader()
        if leader is None:
            return time.sleep(0.05)
        holders = [i for i in range(NODES) if i != leader and self.held_by(i)]
        leads = not holders or self.rng.random() < LEADERS
        victim = leader if leads else self.rng.choice(holders)
        held = self.held_by(victim)
        killed = time.time()
        self.nodes.kill(victim)
        self.kills += 1
        if leads:
            self.wait(lambda: self.led_since(victim, killed), 1.5 * self.lease_s + 5,
                      "another leader")
            self.take_over_ms.append(round(1000 * (self.led_since(victim, killed) - killed), 1))
        deadline_s = 2 * self.lease_s + self.lease_s / 6 + (1.5 * self.lease_s if leads else 0) + 5
        self.wait(lambda: held <= {task for task, at in self.marks() if at > killed}, deadline_s,
                  f"{len(held)} tasks of node {victim} elsewhere")
        for task in held:
            at = min(at for mark, at in self.marks() if mark == task and at > killed)
            (self.recovery_leader_ms if leads else self.recovery_ms).append(
                round(1000 * (at - killed), 1))
        self.nodes.start(victim)
        time.sleep(self.rng.random() * self.lease_s / 3)  # at any moment of a renewal

    def led_since(self, victim, since):
        """When the first of the others began to lead; None while none does."""
        times = [seconds_of(entry["time"]) for i in range(NODES) if i != victim
                 for entry in self.nodes.events(i, "node.leads")]
        return min((at for at in times if at > since), default=None)


def seconds_of(text):
    """RFC 3339 with microseconds and Z."""
    whole, part = text.rstrip("Z").split(".")
    return calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) + float("0." + part)


def sample(lease_s, kills):
    """The row of so many kills; long leases have more clusters side by side."""
    count = min(kills, 4 if lease_s < 10 else 10)
    shares = [kills // count + (i < kills % count) for i in range(count)]
    began = time.monotonic()
    with Postgres() as postgres:
        over = threading.Event()
        clusters = [Timed(postgres, lease_s, f"{time.time()}-{i}", over) for i in range(count)]
        threads = [threading.Thread(target=cluster.run, args=(share,))
                   for cluster, share in zip(clusters, shares)]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            over.set()  # interrupted: they end their nodes
            for thread in threads:
                thread.join()
    row = {"lease_s": lease_s, "kills": sum(cluster.kills for cluster in clusters),
           "seconds": round(time.monotonic() - began, 1)}
    for field in ("take_over_ms", "recovery_ms", "recovery_leader_ms", "findings"):
        row[field] = [value for cluster in clusters for value in getattr(cluster, field)]
    return row


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    row = sample(int(sys.argv[1]), int(sys.argv[2]))
    print(json.dumps(row))
    sys.exit(1 if row["findings"] else 0)


if __name__ == "__main__":
    main()
