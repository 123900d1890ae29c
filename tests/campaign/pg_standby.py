"""A standby takes over (F-E5, F-E14): nodes under load, the primary killed, its standby promoted,
and the nodes continue there. Replication goes through a proxy of its own that falls silent before
the primary dies, so that an asynchronous standby lacks the last commits; a synchronous one lacks
none.

    python3 tests/campaign/pg_standby.py async|sync SEED
"""
import json
import os
import signal
import subprocess
import sys
import time
import uuid

import pg_load
import pg_rounds
from pg_load import psql

import kill_clients  # noqa: E402  (tests/crash, by pg_load)
from proxy import Proxy  # noqa: E402
from server import Postgres, programs  # noqa: E402

HELD = 10  # leases that are held when the primary dies, of before the silence and in it


class Standby(Postgres):
    """A copy of a running one that follows it through a proxy."""

    def __init__(self, primary, settings):
        super().__init__(settings)
        self.primary = primary
        self.proxy = Proxy(primary.port)

    def make(self):
        self.user = self.primary.user
        if self.user:
            os.chown(self.folder, self.user["user"], self.user["group"])
        subprocess.run([f"{programs()}/pg_basebackup", "-D", f"{self.folder}/data", "-R", "-c",
                        "fast", "-X", "stream", "--no-sync", "-h", "127.0.0.1", "-p",
                        str(self.proxy.port), "-U", "perdura"], check=True, cwd=self.folder,
                       **self.user)

    def __exit__(self, *arguments):
        super().__exit__(*arguments)
        self.proxy.close()

    def wait_received(self, lsn, deadline_s=20):
        end = time.monotonic() + deadline_s
        while psql(self.url, f"SELECT pg_last_wal_replay_lsn() >= '{lsn}'") != [["t"]]:
            if time.monotonic() > end:
                raise OSError(f"the standby did not get {lsn}")
            time.sleep(0.02)

    def promote(self):
        if psql(self.url, "SELECT pg_promote(true, 30)") != [["t"]]:
            raise OSError("the standby was not promoted")


class Promotion(pg_rounds.Proxied):
    def __init__(self, kind, seed, primary, standby):
        super().__init__(seed, primary)
        self.kind, self.standby = kind, standby
        self.back_ms = []
        self.counts.update(gone=0, leases_twice=0)

    def work(self):
        self.wait_progress(150, 30, "before the standby")
        self.register("zombie")
        held = self.hold()
        [[lsn]] = psql(self.nodes.postgres.url, "SELECT pg_current_wal_lsn()")
        safe = [list(log) for log in self.logs_of_words()]
        self.standby.wait_received(lsn)
        if self.kind == "async":
            self.standby.proxy.blackhole()
            self.counts["in the silence"] = -self.progress()
            self.wait_progress(60, 30, "in the silence")
            self.counts["in the silence"] += self.progress()
            held += self.hold()
        self.fail_over()
        self.judge_words(safe)
        self.judge_leases(held)
        self.begin_anew()
        self.wait_progress(100, 30, "on the promoted standby")

    def logs_of_words(self):
        return self.told.acknowledged_log, self.told.completed_log, self.told.cancelled_log

    # Before.

    def ask(self, path, body, i=0):
        client = kill_clients.http.client.HTTPConnection(*self.nodes.nodes[i].address, timeout=10)
        try:
            client.request("POST", path, json.dumps(body))
            reply = client.getresponse()
            return reply.status, json.loads(reply.read() or b"null")
        finally:
            client.close()

    def register(self, worker):
        self.ask("/v1/workers", {"id": worker, "hostname": "h", "pool_size": 50, "version": "1",
                                 "queues": ["held"]})

    def hold(self):
        """Tasks with a lease each."""
        self.ask("/v1/tasks", [{"type": "plain", "queue": "held", "max_crashes": 1000,
                                "idempotency_key": f"held-{uuid.uuid4()}"} for _ in range(HELD)])
        for _ in range(20):  # its lease is short, and the machine may be busy
            status, answer = self.ask("/v1/workers/zombie:claim", {"max": HELD, "wait_ms": 2000})
            if status == 200 and answer["tasks"]:
                break
            self.register("zombie")
        if status != 200 or not answer["tasks"]:
            self.told.find(f"nothing was claimed: {status} {answer}")
            return []
        return answer["tasks"]

    def fail_over(self):
        for proxy in self.proxies:
            proxy.refuse()
        self.nodes.postgres.stop(signal.SIGQUIT)
        self.target.over.set()  # what clients know is final now
        for thread in self.threads:
            thread.join(pg_load.ANSWER_S + 10)
        self.standby.proxy.refuse()
        self.standby.proxy.cut()
        for proxy in self.proxies:
            proxy.cut()
            proxy.target_port = self.standby.port
            proxy.refuse(False)
        if self.rng.random() < 0.5:
            self.use_replica()
        self.nodes.postgres = self.standby
        self.standby.promote()
        self.wait_back(time.monotonic())

    def use_replica(self):
        """F-E14: no node that decides reads what still follows its primary."""
        end = time.monotonic() + 1
        while time.monotonic() < end:
            for i in range(pg_rounds.NODES):
                status, answer = self.ask("/v1/tasks", {"type": "plain", "queue": "work"}, i)
                if status != 503:
                    self.told.find(f"node {i} on a replica answered {status}: {answer}")
            time.sleep(0.05)
        self.counts["replicas refused"] += 1

    def wait_back(self, since):
        for i in range(pg_rounds.NODES):
            while True:
                status, answer = self.ask("/v1/tasks", {
                    "type": "plain", "queue": "work", "idempotency_key": f"back-{i}"}, i)
                if status in (200, 201):
                    break
                if time.monotonic() - since > 30:
                    self.told.find(f"node {i} does not serve 30 s after the promotion: {status} "
                                   f"{answer}: {self.nodes.nodes[i].log()[-1500:]}")
                    return
                time.sleep(0.02)
            self.back_ms.append(round(1000 * (time.monotonic() - since)))

    # After.

    def judge_words(self, safe):
        """Only words of the silence may be gone."""
        stored = {uuid.UUID(row[0]).bytes: row[1] for row in
                  self.nodes.sql("SELECT id, status FROM task_states")}
        now = [[(task, None) for task, kind in self.told.acknowledged_log
                if kind not in pg_load.kill_check.VANISH],
               [(task, "completed") for task in self.told.completed_log],
               [(task, "cancelled") for task in self.told.cancelled_log]]
        kept = [{word[0] for word in safe[0]}, set(safe[1]), set(safe[2])]
        vanish = {task for task, kind in self.told.acknowledged_log
                  if kind in pg_load.kill_check.VANISH}
        for words, before in zip(now, kept):
            for task, status in words:
                if task in vanish or task in stored and status in (None, stored[task]):
                    continue
                if task in before or self.kind == "sync":
                    self.told.find_lost(f"task {uuid.UUID(bytes=task)} was acknowledged "
                                        f"({status or 'enqueued'}) and replicated, is "
                                        f"{stored.get(task)}")
                self.counts["gone"] += 1
        self.counts["words"] = sum(map(len, now))

    def judge_leases(self, held):
        """F-E5: leases of before are void everywhere, and never valid again."""
        for task in held:
            status, answer = self.ask("/v1/workers/zombie:report", [
                {"task_id": task["id"], "lease_token": task["lease_token"], "op": "complete",
                 "result": "zombie"}], self.rng.randrange(pg_rounds.NODES))
            if status == 404:
                self.register("zombie")
                continue
            item = answer["items"][0] if status == 200 else {"ok": False}
            if item["ok"]:
                self.told.find(f"a lease of before the promotion was taken: {task['id']} "
                               f"{task['lease_token']}")
            self.counts["old leases refused"] += not item["ok"]
        self.register("heir")
        before = {task["id"]: task["lease_token"] for task in held}
        end, seen = time.monotonic() + 20, set()
        open_ids = {row[0] for row in self.nodes.sql("SELECT id FROM tasks WHERE queue = 'held'")}
        while seen < open_ids and time.monotonic() < end:
            _, answer = self.ask("/v1/workers/heir:claim", {"max": 50, "wait_ms": 500})
            for task in (answer or {}).get("tasks", ()):
                seen.add(task["id"])
                if task["lease_token"] <= before.get(task["id"], 0):
                    self.counts["leases_twice"] += 1
                    self.told.find(f"task {task['id']} has lease {task['lease_token']} again "
                                   "after the promotion")
                self.ask("/v1/workers/heir:report", [
                    {"task_id": task["id"], "lease_token": task["lease_token"],
                     "op": "complete"}])
        if seen < open_ids:
            self.told.find(f"{len(open_ids - seen)} tasks of before did not come back")

    def begin_anew(self):
        """Other clients; leases they get may not be those of the clients before."""
        before, self.told = self.told, kill_clients.Told()
        self.told.findings, self.told.leases = before.findings, before.leases
        self.told.lost = before.lost
        self.told.types = {task: kind for task, kind in before.types.items()
                           if kind in pg_load.kill_check.VANISH}
        self.counts["acknowledged before"] = len(before.types) - len(self.told.types)
        self.told.tried = before.tried | {f"back-{i}" for i in range(pg_rounds.NODES)} | {
            row[0] for row in self.nodes.sql("SELECT idempotency_key FROM tasks "
                                             "WHERE queue = 'held'")}
        self.before = {}
        self.target = pg_load.AnyNode(self.nodes, f"{self.seed}-after")
        self.threads = []
        self.start_clients(first=10)

    def check_epochs(self):
        """An epoch the standby never heard of is given again, on the other timeline."""

    def row(self):
        row = {**super().row(), "back_ms": self.back_ms}
        row["acknowledged"] += self.counts["acknowledged before"]
        return row


def one(kind, seed):
    settings = {"fsync": "off", "wal_level": "replica", "hot_standby": "on"}
    with Postgres(settings) as primary, Standby(primary, settings) as standby:
        if kind == "sync":
            psql(primary.url, "ALTER SYSTEM SET synchronous_standby_names = '*'")
            psql(primary.url, "SELECT pg_reload_conf()")
        return Promotion(kind, seed, primary, standby).run()


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    row = one(*sys.argv[1:3])
    print(json.dumps(row, indent=1))
    sys.exit(1 if row["findings"] else 0)


if __name__ == "__main__":
    main()
