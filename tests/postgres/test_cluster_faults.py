"""Several nodes on one PostgreSQL in trouble: leaders that are killed, stopped or frozen (E4, F-B5,
F-F1, F-F2), nodes that are lost with what they held (E5, F-A19, F-B1, F-E7), connections that are
cut and databases that go away (F-E1, F-E2, F-E4). Nothing is lost, nothing is done twice, and all
of it comes back by itself (V10)."""
import collections
import datetime
import json
import os
import pathlib
import signal
import statistics
import subprocess
import threading
import time
import unittest

import harness
from cluster import CALM, LEASE_S, SLACK_S, STALE, ClusterTest, at_once, begin_module
from harness import Background, wait_until


def setUpModule():
    begin_module()


class Leadership(ClusterTest):
    def watch_leaders(self, cluster):
        """How many leaders each answer of a live node names, as long as the test runs."""
        counts, stop = collections.Counter(), threading.Event()

        def watch():
            while not stop.wait(0.02):
                for node in cluster.nodes:
                    if not node.lives or node.frozen:
                        continue
                    try:
                        counts[sum(w["is_leader"] for w in node.workers())] += 1
                    except (OSError, harness.http.client.HTTPException):
                        pass  # killed meanwhile

        thread = Background(watch)

        def end():
            stop.set()
            thread.result()
            return counts

        self.addCleanup(end)
        return end

    def wait_other_leader(self, cluster, before, deadline_s=harness.DEADLINE_S):
        return wait_until(lambda: (lambda i: i not in (None, before) and (i,))(cluster.leader()),
                          deadline_s, "another leader")[0]

    def claim_all(self, node, worker, count, seen):
        while len(seen) < count:
            for task in node.claim(worker, max=count, wait_ms=500):
                seen.append((time.time(), task))
                node.complete(worker, task)

    def test_e4_f_f1_when_the_leader_is_killed_another_leads_after_its_lease_and_delayed_tasks_come(
            self):
        cluster = self.cluster(3, *CALM)
        first = cluster.wait_leader()
        counts = self.watch_leaders(cluster)
        survivors = cluster.others(first)
        tasks = survivors[0].expect(201, "POST", "/v1/tasks", [
            {"type": "t", "delay_ms": 250 * i} for i in range(20)])["items"]
        seen = []
        survivors[1].register("w")
        worker = Background(self.claim_all, survivors[1], "w", 20, seen)
        cluster.kill(first)
        killed = time.monotonic()
        self.wait_other_leader(cluster, first)
        self.assertLess(time.monotonic() - killed, LEASE_S + 1 + SLACK_S)
        worker.result()
        self.assertEqual(sorted(task["id"] for _, task in seen), sorted(t["id"] for t in tasks))
        self.assertEqual({task["attempts"] for _, task in seen}, {1})
        late = [when - seconds_of(task["scheduled_at"]) for when, task in seen[-3:]]
        self.assertLess(max(late), 0.5 + SLACK_S, "in time again under the new leader")
        self.assertEqual(max(counts()), 1)
        wait_until(lambda: sum(w["is_leader"] for w in survivors[0].workers()) == 1,
                   what="the new leader in the list")

    def test_e4_f_f2_a_leader_that_stops_hands_over_at_once(self):
        cluster = self.cluster(3, *CALM, "--leader-lease", "60s")
        first = cluster.wait_leader()
        for _ in range(2):
            self.assertEqual(cluster.stop(first), 0)
            stopped = time.monotonic()
            second = self.wait_other_leader(cluster, first)
            self.assertLess(time.monotonic() - stopped, 1 + SLACK_S)
            node = cluster.node(second)
            node.register("w")
            task = node.enqueue(delay_ms=100)
            [claimed] = node.claim("w", wait_ms=30000)
            self.assertEqual(claimed["id"], task["id"])
            node.complete("w", claimed)
            first = second

    def test_f_b10_every_node_has_an_id_of_its_own_and_one_of_them_leads(self):
        cluster = self.cluster(3)
        cluster.wait_leader()
        rows = cluster.sql("SELECT id, is_leader FROM workers")
        self.assertEqual(len({row[0] for row in rows}), 3)
        for row in rows:
            self.assertRegex(row[0], r"-[0-9]+-[0-9a-f]{16,}$")
        wait_until(lambda: cluster.sql("SELECT count(*) FROM workers WHERE is_leader") == [["1"]],
                   what="one row that leads")

    def test_f_b5_f_b11_a_leader_frozen_beyond_its_lease_leads_no_more_and_does_no_harm(self):
        cluster = self.cluster(3, *CALM, "--leader-lease", "5s")  # no other node loses its lease
        first = cluster.wait_leader()
        counts = self.watch_leaders(cluster)
        other = cluster.others(first)[0]
        tasks = other.expect(201, "POST", "/v1/tasks", [
            {"type": "t", "delay_ms": 300 * i} for i in range(20)])["items"]
        other.register("w")
        seen = []
        worker = Background(self.claim_all, other, "w", 20, seen)
        wait_until(lambda: len(seen) > 2, what="the first delayed tasks")
        cluster.freeze(first)
        second = self.wait_other_leader(cluster, first)
        cluster.thaw(first)
        worker.result()
        self.assertEqual(sorted(t["id"] for _, t in seen), sorted(t["id"] for t in tasks))
        for task in tasks:
            self.assertEqual(other.statuses(task["id"]).count("pending"), 1)
        self.assertEqual(cluster.leader(), second)
        self.assertEqual(max(counts()), 1)
        wait_until(lambda: [w["is_leader"] for w in cluster.node(first).workers()].count(True) == 1,
                   what="the old leader's view of the new one")
        [[epoch]] = cluster.sql("SELECT epoch FROM leadership")
        self.assertEqual(int(epoch), 2)


def seconds_of(text):
    """RFC 3339 with Z as seconds."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


# Says when it starts and ends; the first attempt takes as long as it shall, later ones no time.
HANDLER = """#!/usr/bin/env python3
import json, os, sys, time
def mark(what):
    with open({marks!r}, "a") as file:
        file.write(json.dumps(dict(what=what, pid=os.getpid(), task=os.environ["PERDURA_TASK_ID"],
                                   attempt=int(os.environ["PERDURA_ATTEMPT"]))) + "\\n")
mark("start")
attempt = int(os.environ["PERDURA_ATTEMPT"])
if attempt == 1:
    time.sleep(float(sys.argv[1]))
os.write(3, json.dumps(dict(result=attempt)).encode() + b"\\n")
mark("end")
"""


class LostNodes(ClusterTest):
    def pools(self, count, first_attempt_s):
        """Nodes with a pool of one slot each."""
        folder = self.temporary_folder()
        self.marks = os.path.join(folder, "marks")
        script = pathlib.Path(folder, "handler.py")
        script.write_text(HANDLER.format(marks=self.marks))
        script.chmod(0o755)
        config = pathlib.Path(folder, "perdura.yaml")
        config.write_text(f'workers: 1\nhandlers:\n  - type: "t"\n    command: ["{script}", '
                          f'"{first_attempt_s}"]\n')
        return self.cluster(count, "--config", str(config))

    def marked(self, what):
        try:
            lines = pathlib.Path(self.marks).read_text().splitlines()
        except OSError:
            return []
        return [mark for mark in map(json.loads, lines) if mark["what"] == what]

    def holder_of(self, cluster, task_id):
        """The index of the node whose pool runs it."""
        task = self.wait_status(cluster.nodes[0], task_id, "running")
        return next(i for i, n in enumerate(cluster.nodes) if n.leads_by(task["worker_id"]))

    def test_e5_f_a19_the_task_of_a_killed_nodes_pool_runs_again_once_elsewhere(self):
        cluster = self.pools(3, 60)
        task = cluster.node(0).enqueue("t")
        wait_until(lambda: self.marked("start"), what="the first attempt")
        holder = self.holder_of(cluster, task["id"])
        cluster.kill(holder)
        killed = time.monotonic()
        other = cluster.others(holder)[0]
        done = self.wait_status(other, task["id"], "completed")
        # The killed node may have led, and the next leader gives every worker a lease.
        self.assertLess(time.monotonic() - killed, 2 * LEASE_S + 1 + SLACK_S)
        self.assertEqual((done["result"], done["attempts"], done["crash_count"]), (2, 2, 1))
        self.assertEqual([m["attempt"] for m in self.marked("start")], [1, 2])
        self.assertEqual(other.statuses(task["id"]), [
            "pending", "claimed", "running", "orphaned", "recovering", "pending", "claimed",
            "running", "completed"])
        wait_until(lambda: len(other.workers()) == 2, what="the dead node's row gone")

    def test_f_e7_a_worker_whose_node_was_killed_goes_on_at_another_with_the_same_lease(self):
        lease_s = 2 * LEASE_S
        cluster = self.cluster(3, "--lease", f"{lease_s}s")
        first = cluster.wait_leader()
        cluster.node(first).register("w")
        task = cluster.node(first).enqueue()
        [held] = cluster.node(first).claim("w")
        cluster.node(first).report_ok("w", held, "start")
        cluster.kill(first)
        other, third = cluster.others(first)
        end = time.monotonic() + 2 * lease_s
        while time.monotonic() < end:
            self.assertEqual(other.heartbeat("w", held)["lost"], [])
            time.sleep(lease_s / 4)
        third.complete("w", held, "kept")
        done = other.task(task["id"])
        self.assertEqual((done["status"], done["result"], done["attempts"], done["crash_count"]),
                         ("completed", "kept", 1, 0))

    def test_e3_f_e17_heartbeats_go_on_while_somebodys_lock_holds_the_claims(self):
        lease_s = 2 * LEASE_S
        cluster = self.cluster(1, "--lease", f"{lease_s}s")
        [node] = cluster.nodes
        node.expect(200, "PATCH", "/v1/queues/default", {"concurrency": 2})
        node.register("w")
        task = node.enqueue()
        [held] = node.claim("w")
        node.report_ok("w", held, "start")
        with subprocess.Popen(["psql", "-X", "-q", "-A", "-t", cluster.store], text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as session:
            session.stdin.write(f"SET search_path = {cluster.schema}; BEGIN;\n"
                                "SELECT name FROM queues WHERE name = 'default' FOR UPDATE;\n")
            session.stdin.flush()
            self.assertEqual(session.stdout.readline().strip(), "default")
            claiming = Background(node.request, "POST", "/v1/workers/w:claim",
                                  {"queues": ["default"], "max": 1, "wait_ms": 0})
            took, end = [], time.monotonic() + 1.5 * lease_s
            while time.monotonic() < end:
                began = time.monotonic()
                self.assertEqual(node.heartbeat("w", held)["lost"], [])
                took.append(time.monotonic() - began)
                self.assertTrue(claiming.thread.is_alive(), "the claim does not wait for the lock")
                time.sleep(lease_s / 8)
            self.assertLess(statistics.median(took), LEASE_S / 2)
            session.stdin.write("ROLLBACK;\n")
            session.stdin.close()
        self.assertIn(claiming.result().status, (200, 503))
        node.complete("w", held, "kept")
        done = node.task(task["id"])
        self.assertEqual((done["status"], done["result"], done["attempts"], done["crash_count"]),
                         ("completed", "kept", 1, 0))

    def test_e5_the_tasks_of_a_silent_worker_come_back_once_through_another_node(self):
        cluster = self.cluster(3, "--lease", "4s")
        first = cluster.wait_leader()
        cluster.node(first).register("silent")
        tasks = cluster.node(first).expect(201, "POST", "/v1/tasks", [{"type": "t"}] * 10)["items"]
        held = cluster.node(first).claim("silent", max=10)
        self.assertEqual(len(held), 10)
        cluster.kill(first)
        killed = time.monotonic()
        again = []
        others = cluster.others(first)
        for i, node in enumerate(others):
            node.register(f"w{i}")
        while len(again) < 10:
            claims = at_once(*[lambda n=node, w=f"w{i}": n.claim(w, max=3, wait_ms=500)
                               for i, node in enumerate(others)])
            again += [task for claim in claims for task in claim]
            self.assertLess(time.monotonic() - killed, harness.DEADLINE_S)
        self.assertEqual(sorted(t["id"] for t in again), sorted(t["id"] for t in tasks))
        self.assertEqual({(t["attempts"], t["crash_count"]) for t in again}, {(2, 1)})

    def test_f_b1_what_a_frozen_node_says_when_it_wakes_up_takes_no_effect(self):
        cluster = self.pools(3, 6)
        cluster.node(0).register("zombie", queues=["remote"])
        task = cluster.node(0).enqueue("t")
        remote = cluster.node(0).enqueue("r", queue="remote")
        wait_until(lambda: self.marked("start"), what="the first attempt")
        holder = self.holder_of(cluster, task["id"])
        frozen = cluster.node(holder)
        [old] = frozen.claim("zombie", wait_ms=10000)
        cluster.freeze(holder)
        # Sent to the frozen node, which reads it when it wakes up.
        late = Background(frozen.report_one, "zombie", old, "complete")
        other = cluster.others(holder)[0]
        done = self.wait_status(other, task["id"], "completed")
        self.assertEqual((done["result"], done["crash_count"]), (2, 1))
        other.register("owner", queues=["remote"])
        [new] = other.claim("owner", wait_ms=30000)
        self.assertEqual(new["id"], remote["id"])
        other.complete("owner", new, "new")
        wait_until(lambda: len(self.marked("end")) == 2, what="the first attempt's end, unheard")
        other.register("zombie", queues=["remote"])  # it was forgotten: not what is asked here
        cluster.thaw(holder)
        item = late.result()
        self.assertEqual((item["ok"], item["error"]["code"]), (False, STALE))
        self.wait_status(frozen, frozen.enqueue("t")["id"], "completed")
        for node in cluster.nodes:
            self.assertEqual(node.task(task["id"])["result"], 2)
            self.assertEqual(node.task(remote["id"])["result"], "new")
        for task_id in (task["id"], remote["id"]):
            self.assertEqual(other.statuses(task_id).count("completed"), 1)


class Load:
    """Producers and workers at every node that continue whatever happens: an enqueue is repeated
    with the same key until it is acknowledged, a report until it has a definite answer."""

    AWAY = (OSError, harness.http.client.HTTPException)

    def __init__(self, test, cluster):
        self.test = test
        self.cluster = cluster
        self.stopping = threading.Event()
        self.lock = threading.Lock()
        self.keys = {}                # acknowledged: key -> task
        self.done = collections.Counter()  # completions that were answered with ok, by task
        self.refusals = collections.Counter()  # other answers than success, by status
        self.threads = []
        for i, node in enumerate(cluster.nodes):
            node.register(f"load-{i}")
            self.threads += [Background(self.produce, node, i), Background(self.work, node, i)]

    def ask(self, node, path, body):
        """None when there was no answer or one that says to ask again."""
        try:
            reply = node.request("POST", path, body)
        except self.AWAY:
            self.refusals["no answer"] += 1
            return None
        if reply.status in (200, 201):
            return reply.json
        self.refusals[reply.status] += 1
        if reply.status == 503:
            self.test.assertIn("Retry-After", reply.headers)
        else:
            self.test.assertEqual(reply.status, 404, reply.body)  # the worker was given up
        time.sleep(0.02)
        return reply.status

    def produce(self, node, i):
        n = 0
        while not self.stopping.is_set():
            key = f"{i}-{n}"
            task = self.ask(node, "/v1/tasks", {"type": "t", "idempotency_key": key})
            if isinstance(task, dict):
                self.keys[key] = task["id"]
                n += 1

    def work(self, node, i):
        worker = f"load-{i}"
        while not self.stopping.is_set() or len(self.done) < len(self.keys):
            claim = self.ask(node, f"/v1/workers/{worker}:claim", {"max": 5, "wait_ms": 200})
            if claim == 404:
                self.ask(node, "/v1/workers", {"id": worker, "queues": ["default"]})
            for task in claim["tasks"] if isinstance(claim, dict) else ():
                self.complete(node, worker, task)
            if self.stopping.is_set() and time.monotonic() > self.end:
                return

    def complete(self, node, worker, task):
        element = [node.element(task, "complete", result=1)]
        for _ in range(2000):
            answer = self.ask(node, f"/v1/workers/{worker}:report", element)
            if answer == 404:
                self.ask(node, "/v1/workers", {"id": worker, "queues": ["default"]})
            elif isinstance(answer, dict):
                if answer["items"][0]["ok"]:
                    with self.lock:
                        self.done[task["id"]] += 1
                return

    def finish(self):
        """Everything that was acknowledged was stored once and completed once."""
        self.end = time.monotonic() + harness.DEADLINE_S
        self.stopping.set()
        for thread in self.threads:
            thread.result(2 * harness.DEADLINE_S)
        test, cluster = self.test, self.cluster
        test.assertGreater(len(self.keys), 50)
        test.assertEqual(len(set(self.keys.values())), len(self.keys))
        rows = dict(cluster.sql("SELECT idempotency_key, id FROM tasks"))
        test.assertEqual({k: rows.get(k) for k in self.keys}, self.keys, "nothing is lost")
        statuses = cluster.sql("SELECT status, count(*) FROM tasks GROUP BY status")
        test.assertEqual(statuses, [["completed", str(len(rows))]])
        test.assertEqual(set(self.done.values()), {1}, "nothing is completed twice")
        twice = cluster.sql("SELECT task_id FROM task_events WHERE status = 'completed' "
                            "GROUP BY task_id HAVING count(*) > 1")
        test.assertEqual(twice, [])


def cpu_s(cluster):
    """Seconds of all nodes."""
    ticks = 0
    for node in cluster.nodes:
        stat = pathlib.Path(f"/proc/{node.process.pid}/stat").read_text()
        ticks += sum(map(int, stat.rsplit(")", 1)[1].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


class LostDatabase(ClusterTest):
    def test_a_node_that_starts_while_the_database_stands_still_waits_for_it(self):
        """No client waits for its answers yet, so it retries a database that is silent for seconds
        (F-E7)."""
        cluster = self.cluster(1)
        cluster.stop(0)
        database = cluster.postgres.process
        database.send_signal(signal.SIGSTOP)  # who connects is not answered
        try:
            start = Background(cluster.start, 0)
            time.sleep(4)  # longer than a connection is given
        finally:
            database.send_signal(signal.SIGCONT)
        start.result()
        cluster.node(0).enqueue()

    def test_f_e1_connections_ended_while_idle_are_made_again_and_clients_see_nothing(self):
        cluster = self.cluster(3)
        task = cluster.node(0).enqueue()
        for _ in range(3):
            for node in cluster.nodes:
                node.task(task["id"])
            self.assertGreaterEqual(cluster.cut_connections(), 6)
            for node in cluster.nodes:
                self.assertEqual(node.task(task["id"])["status"], "pending")
                node.enqueue()
        self.assertEqual([node.lives for node in cluster.nodes], [True] * 3)

    def test_f_e2_connections_ended_under_load_lose_and_double_nothing(self):
        cluster = self.cluster(3)
        load = Load(self, cluster)
        for n in range(8):
            wanted = len(load.done) + 40
            wait_until(lambda: len(load.done) > wanted, what=f"work after cut {n}")
            cluster.cut_connections()
        wanted = len(load.done) + 40
        wait_until(lambda: len(load.done) > wanted, what="work after the last cut")
        load.finish()
        self.assertEqual([node.lives for node in cluster.nodes], [True] * 3)

    def restarted(self, how):
        """V10: every node serves again within two seconds of the database's return."""
        cluster = self.cluster(3)
        load = Load(self, cluster)
        wait_until(lambda: len(load.done) > 50, what="load")
        self.postgres.stop(how)
        try:
            for node in cluster.nodes:
                reply = wait_until(lambda n=node: (lambda r: r.status == 503 and r)(
                    n.request("POST", "/v1/tasks", {"type": "probe"})), what="503")
                self.assertIn("Retry-After", reply.headers)
                self.assertEqual(node.request("GET", "/healthz").status, 200)
        finally:
            self.postgres.start()
        back = time.monotonic()
        for node in cluster.nodes:
            body = {"type": "t", "idempotency_key": f"back-{node.url}"}
            reply = wait_until(lambda n=node, b=body: (lambda r: r.status in (200, 201) and r)(
                n.request("POST", "/v1/tasks", b)), what="service again")
            load.keys[body["idempotency_key"]] = reply.json["id"]
        self.assertLess(time.monotonic() - back, 2 + SLACK_S)
        wanted = len(load.done) + 50
        wait_until(lambda: len(load.done) > wanted, what="work again")
        cluster.wait_leader()
        load.finish()
        self.assertEqual([node.lives for node in cluster.nodes], [True] * 3)

    def test_f_e4_a_database_away_longer_than_a_lease_leaves_everybody_one_to_come_back(self):
        lease_s = 2 * LEASE_S
        cluster = self.cluster(3, "--lease", f"{lease_s}s", "--leader-lease", f"{lease_s}s")
        node = cluster.node(cluster.wait_leader())
        node.register("w")
        task = node.enqueue()
        [held] = node.claim("w")
        node.report_ok("w", held, "start")
        self.postgres.stop()
        before = cpu_s(cluster)
        time.sleep(1.5 * lease_s)  # every lease in the store is over
        self.assertLess(cpu_s(cluster) - before, 0.5 * lease_s, "no node spins")
        self.assertLess(cluster.logs().count("batch.failed"), 3 * 40)
        self.postgres.start()
        cluster.wait_leader()
        time.sleep(lease_s / 4)  # workers heartbeat every third of a lease, and had to notice
        end = time.monotonic() + 1.5 * lease_s
        while time.monotonic() < end:
            for other in cluster.nodes:
                wait_until(lambda n=other: n.request("POST", "/v1/workers/w:heartbeat",
                                                     {}).status == 200, what="service again")
            self.assertEqual(node.task(task["id"])["status"], "running")
            time.sleep(lease_s / 8)
        node.complete("w", held, "kept")
        done = node.task(task["id"])
        self.assertEqual((done["result"], done["attempts"], done["crash_count"]), ("kept", 1, 0))

    def test_f_e4_a_fast_restart_of_the_database_under_load_loses_and_doubles_nothing(self):
        self.restarted(signal.SIGINT)

    def test_f_e4_an_immediate_restart_of_the_database_under_load_loses_and_doubles_nothing(self):
        self.restarted(signal.SIGQUIT)


if __name__ == "__main__":
    unittest.main()
