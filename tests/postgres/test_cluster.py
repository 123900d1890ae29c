"""Several nodes on one PostgreSQL, none of them in trouble: work and news cross from node to node,
and what happens at two of them at the same moment has one order (E2, E3, C4, F-H1, F-H13, F-H14);
limits hold over all nodes (C8); many may start at once (A11, F-F5). Trouble is in
test_cluster_faults.py."""
import collections
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
import unittest

import harness
from cluster import CALM, SLACK_S, STALE, ClusterTest, at_once, begin_module
from harness import Background, wait_until

SOON_S = 0.15  # in the middle of some tries: with a hint; without one a node polls every 0.5 s
SERIES = 3     # of tries: the machine may be busy for some seconds


def setUpModule():
    begin_module()


class CalmTest(ClusterTest):
    def cluster(self, count, *arguments):
        return super().cluster(count, *CALM, *arguments)


class AcrossNodes(CalmTest):
    def assert_soon(self, one_try, count):
        """one_try(number) returns the seconds it took."""
        for series in range(SERIES):
            seconds = [one_try(series * count + i) for i in range(count)]
            self.assertLess(max(seconds), 2 + SLACK_S, seconds)
            if statistics.median(seconds) < SOON_S:
                return
        self.fail(f"the middle is not below {SOON_S}: {seconds}")

    def claim_across(self, here, there, queue, kind):
        """Seconds from the answer to an enqueue here to the answer of a claim that waits there."""
        waiting = Background(there.claim, "w", 1, 50000)
        there.wait_for_waiting("waiting_claims", 1)
        task = here.enqueue(kind, queue=queue)
        began = time.monotonic()
        [claimed] = waiting.result()
        seconds = time.monotonic() - began
        self.assertEqual(claimed["id"], task["id"])
        there.complete("w", claimed)
        return seconds

    def test_e2_a_task_enqueued_at_one_node_is_claimed_at_once_by_a_claim_waiting_at_another(self):
        cluster = self.cluster(2)
        a, b = cluster.nodes
        b.register("w", queues=["default", "q"])
        self.assert_soon(lambda _: self.claim_across(a, b, "default", "t"), 9)
        self.assert_soon(lambda _: self.claim_across(b, b, "default", "t"), 3)

    def test_e2_also_when_neither_queue_nor_type_was_ever_seen_there(self):
        cluster = self.cluster(2)
        a, b = cluster.nodes
        b.register("w", queues=[f"q{i}" for i in range(5 * SERIES)])
        self.assert_soon(lambda i: self.claim_across(a, b, f"q{i}", "t"), 5)
        self.assert_soon(lambda i: self.claim_across(a, b, "q0", f"t{i}"), 5)

    def claim_category(self, here, there, name):
        """An enqueue here is claimed by a worker of its category that waits there."""
        waiting = Background(there.claim, "c", 1, 50000)
        there.wait_for_waiting("waiting_claims", 1)
        here.enqueue(queue="default")
        wanted = here.enqueue(queue="default", category=name)
        self.assertEqual([task["id"] for task in waiting.result()], [wanted["id"]])

    def test_d12_a_worker_at_one_node_gets_its_categories_from_another(self):
        cluster = self.cluster(2)
        a, b = cluster.nodes
        b.register("c", categories=["reports", "later"])
        self.claim_category(a, b, "reports")
        made = a.expect(201, "POST", "/v1/categories", {"name": "later"})
        self.claim_category(a, b, "later")
        old = a.expect(201, "POST", "/v1/categories", {"name": "old"})
        waits = a.enqueue(queue="default", category="old")
        self.assertIn('category "old"',
                      b.expect(200, "GET", f"/v1/tasks/{waits['id']}/why")["text"])
        a.expect(204, "DELETE", f"/v1/categories/{made['id']}")
        waiting = Background(b.claim, "c", 1, 50000)
        b.wait_for_waiting("waiting_claims", 1)
        a.expect(200, "PATCH", f"/v1/categories/{old['id']}", {"name": "later"})
        self.assertEqual([task["id"] for task in waiting.result()], [waits["id"]])

    def heard_while(self, cluster, act):
        """Payloads of all notifications in a few seconds, with act() among them."""
        channel = cluster.sql("SELECT value FROM store_info WHERE name = 'hints'")[0][0]
        listening = subprocess.Popen(
            ["psql", "-XqAt", cluster.store, "-c", f'LISTEN "{channel}"',
             "-c", "SELECT 'listens'", "-c", "SELECT pg_sleep(2)", "-c", "SELECT 1"],
            stdout=subprocess.PIPE, text=True)
        self.assertIn("listens\n", iter(listening.stdout.readline, ""))  # behind what comes first
        act()
        return re.findall(r'with payload "([^"]*)"', listening.communicate()[0])

    def test_d12_hints_are_heard_only_by_who_may_read_the_store(self):
        """Every role of a database may LISTEN; the name of the channel is not to be guessed."""
        cluster = self.cluster(2)
        names = [row[0] for row in cluster.sql("SELECT value FROM store_info WHERE name = 'hints'")]
        self.assertEqual(len(names), 1)
        self.assertRegex(names[0], r"^perdura_[0-9a-f]{32}$")
        self.assertNotEqual(names[0], f"perdura_{cluster.schema}")
        other = self.cluster(1).sql("SELECT value FROM store_info WHERE name = 'hints'")[0][0]
        self.assertNotEqual(names[0], other)
        self.assertTrue(any("busy" in text for text in self.heard_while(
            cluster, lambda: cluster.nodes[0].enqueue(queue="busy"))))

    def test_e2_a_node_alone_tells_nobody_and_whoever_joins_it_is_told_at_once(self):
        cluster = self.cluster(2)
        a, b = cluster.nodes

        def tells():
            return [text for text in self.heard_while(cluster, lambda: a.enqueue(queue="busy"))
                    if "busy" in text]
        self.assertTrue(tells(), "while there are two")
        cluster.stop(1)
        wait_until(lambda: not tells(), what="silence")
        cluster.start(1)
        b.register("w", queues=["default"])
        self.assert_soon(lambda _: self.claim_across(a, b, "default", "t"), 5)
        cluster.stop(0)
        cluster.start(0)
        self.assertTrue(tells(), "one that begins tells those that were there before")

    def test_c7_a_wait_at_one_node_is_answered_soon_after_the_task_ended_at_another(self):
        cluster = self.cluster(2)
        a, b = cluster.nodes
        b.register("w")

        def wait_across(i):
            task = b.enqueue()
            waiting = Background(a.expect, 200, "GET",
                                 f"/v1/tasks/{task['id']}/wait?timeout_ms=50000")
            a.wait_for_waiting("waiting_waits", 1)
            b.complete("w", b.claim("w")[0], i)
            began = time.monotonic()
            answer = waiting.result()
            seconds = time.monotonic() - began
            self.assertEqual((answer["status"], answer["result"]), ("completed", i))
            return seconds

        self.assert_soon(wait_across, 9)

    def test_e3_a_worker_is_known_at_every_node(self):
        cluster = self.cluster(3)
        a, b, c = cluster.nodes
        a.register("w")
        task = c.enqueue()
        [held] = b.claim("w", wait_ms=30000)
        self.assertEqual(held["id"], task["id"])
        a.report_ok("w", held, "start")
        self.assertEqual(b.task(task["id"])["status"], "running")
        self.assertEqual(c.heartbeat("w", held),
                         {"cancel": [], "pause": [], "lost": [], "lost_leases": []})
        for node in cluster.nodes:
            [row] = [w for w in node.workers() if w["id"] == "w"]
            self.assertEqual((row["status"], [t["task_id"] for t in row["current_tasks"]]),
                             ("working", [task["id"]]))
        a.complete("w", held, "done")
        for node in cluster.nodes:
            shown = node.task(task["id"])
            self.assertEqual((shown["status"], shown["result"]), ("completed", "done"))
        b.expect(204, "DELETE", "/v1/workers/w")
        for node in cluster.nodes:
            self.assertNotIn("w", [w["id"] for w in node.workers()])
            node.expect_error(404, "not_found", "POST", "/v1/workers/w:claim", {})

    def test_e2_a_report_with_an_old_lease_is_refused_at_every_node(self):
        cluster = self.cluster(3)
        a, b, c = cluster.nodes
        a.register("w")
        task = a.enqueue()
        [old] = b.claim("w", wait_ms=30000)
        c.report_ok("w", old, "release")
        [new] = a.claim("w", wait_ms=30000)
        self.assertGreater(new["lease_token"], old["lease_token"])
        for node in cluster.nodes:
            for op in ("start", "progress", "complete", "fail"):
                item = node.report_one("w", old, op)
                self.assertEqual((item["ok"], item["error"]["code"]), (False, STALE))
            node.report_ok("w", old, "release")  # said again: nothing changes
            self.assertEqual(node.heartbeat("w", old, new)["lost"], [task["id"]])
        b.complete("w", new, "new")
        for node in cluster.nodes:
            self.assertFalse(node.report_one("w", old, "complete", result="old")["ok"])
            self.assertTrue(node.report_one("w", new, "complete", result="new")["ok"])
            self.assertEqual(node.task(task["id"])["result"], "new")
        self.assertEqual(a.statuses(task["id"]).count("completed"), 1)

    def test_a8_a_cancel_at_one_node_reaches_the_holder_at_another(self):
        cluster = self.cluster(2)
        a, b = cluster.nodes
        b.register("w")
        task = b.enqueue()
        [held] = b.claim("w")
        a.expect(200, "POST", f"/v1/tasks/{task['id']}:cancel", {})
        self.assertEqual(b.heartbeat("w", held)["cancel"], [task["id"]])
        self.assertFalse(b.report_one("w", held, "complete")["ok"])
        self.assertEqual(b.task(task["id"])["status"], "cancelled")

    def test_b8_a_task_deleted_at_two_nodes_at_once_is_counted_down_once(self):
        cluster = self.cluster(2)
        nodes = [cluster.node(i) for i in (0, 1)]
        for _ in range(15):
            task_id = nodes[0].enqueue()["id"]
            nodes[0].expect(200, "POST", f"/v1/tasks/{task_id}:cancel")
            answers = at_once(*[lambda node=node: node.request("DELETE", f"/v1/tasks/{task_id}").status
                                for node in nodes])
            self.assertEqual(sorted(answers), [204, 404])
        self.assertEqual(cluster.sql("SELECT lane, status FROM lane_counts "
                                     "GROUP BY 1, 2 HAVING sum(tasks) <> 0"), [])

    def test_f_h1_the_same_key_enqueued_at_all_nodes_at_once_makes_one_task(self):
        cluster = self.cluster(3)
        for key in range(10):
            body = {"type": "t", "idempotency_key": f"k{key}"}
            replies = at_once(*[lambda n=node: n.api("POST", "/v1/tasks", body)
                                for node in cluster.nodes * 5])
            self.assertEqual({reply["id"] for _, reply in replies}, {replies[0][1]["id"]})
            self.assertEqual(sorted(status for status, _ in replies), [200] * 14 + [201])
        self.assertEqual(cluster.sql("SELECT count(*) FROM tasks"), [["10"]])


class Recovering(CalmTest):
    def test_b6_a_validator_is_asked_wherever_the_question_comes_in(self):
        """Only the leader asks; it hears at once of what other nodes put into the recovery queue."""
        folder = tempfile.mkdtemp(prefix="perdura-cluster-")
        self.addCleanup(shutil.rmtree, folder)
        config = pathlib.Path(folder, "validate.yaml")
        config.write_text('workers: 0\nhandlers:\n  - type: "v"\n    command: ["true"]\n'
                          '    validate: {command: ["true"]}\n')
        cluster = self.cluster(2, "--config", str(config))
        other = cluster.node(1 - cluster.wait_leader())
        other.register("w", queues=("q",))
        for _ in range(2):
            other.enqueue("v", queue="q")
            [task] = other.claim("w", wait_ms=30000)
            other.report_ok("w", task, "partial", result=1)
            verdict = other.expect(200, "POST", "/v1/recovery/validate", {"task_id": task["id"]})
            self.assertTrue(verdict["valid"], verdict)
        other.expect(200, "POST", f"/v1/tasks/{task['id']}:recover", {})
        wait_until(lambda: other.task(task["id"])["status"] == "pending", what="the recovery")


class Families(CalmTest):
    TRIES = 50

    def work(self, cluster):
        """Two nodes, and a worker each that is not declared dead meanwhile."""
        for node, worker in zip(cluster.nodes, ("wa", "wb")):
            node.register(worker)
        return cluster.nodes

    def claim_all(self, node, worker, count):
        tasks = []
        while len(tasks) < count:
            more = node.claim(worker, max=count, wait_ms=30000)
            self.assertTrue(more, f"{len(tasks)} of {count} tasks came")
            tasks += more
        return tasks

    def test_f_h13_c4_two_last_children_that_end_at_two_nodes_at_once_release_a_parent_once(self):
        cluster = self.cluster(2)
        a, b = self.work(cluster)
        a.expect(201, "POST", "/v1/tasks", [{"type": "parent"}] * self.TRIES)
        parents = self.claim_all(a, "wa", self.TRIES)
        elements = []
        for parent in parents:
            elements += [a.element(parent, "spawn", tasks=[{"type": "child"}] * 2),
                         a.element(parent, "continue", wait_children=True)]
        self.assertTrue(all(item["ok"] for item in a.report("wa", *elements)))
        pairs = collections.defaultdict(list)
        for child in self.claim_all(b, "wb", 2 * self.TRIES):
            pairs[child["parent_id"]].append(child)
        self.assertEqual(set(pairs), {parent["id"] for parent in parents})
        for left, right in pairs.values():
            at_once(lambda t=left: a.complete("wb", t), lambda t=right: b.complete("wb", t))
        again = self.claim_all(b, "wb", self.TRIES)
        self.assertEqual({task["id"] for task in again}, set(pairs))
        self.assertEqual(a.claim("wa", max=10), [])
        for task in again:
            self.assertEqual([child["status"] for child in task["data"]["children"].values()],
                             ["completed"] * 2)
            self.assertEqual(a.statuses(task["id"]).count("pending"), 2)  # enqueued, released
        self.assertTrue(all(item["ok"] for item in b.report(
            "wb", *[b.element(task, "complete") for task in again])))

    def test_c4_a_task_enqueued_while_its_dependency_ends_at_another_node_is_not_forgotten(self):
        cluster = self.cluster(2)
        a, b = self.work(cluster)
        b.expect(201, "POST", "/v1/tasks", [{"type": "first"}] * self.TRIES)
        dependents = []
        for first in self.claim_all(b, "wb", self.TRIES):
            _, task = at_once(lambda t=first: b.complete("wb", t, "out"),
                              lambda t=first: a.enqueue("then", depends_on=[t["id"]]))
            dependents.append(task["id"])
        claimed = self.claim_all(a, "wa", self.TRIES)
        self.assertEqual({task["id"] for task in claimed}, set(dependents))
        for task in claimed:
            [output] = task["data"]["dependencies"].values()
            self.assertEqual((output["status"], output["result"]), ("completed", "out"))

    def test_f_h14_cancel_and_complete_at_two_nodes_at_once_have_one_order(self):
        cluster = self.cluster(2)
        a, b = self.work(cluster)
        a.expect(201, "POST", "/v1/tasks", [{"type": "t"}] * self.TRIES)
        for task in self.claim_all(b, "wb", self.TRIES):
            (status, _), item = at_once(
                lambda t=task: a.api("POST", f"/v1/tasks/{t['id']}:cancel", {}),
                lambda t=task: b.report_one("wb", t, "complete"))
            self.assertEqual((status, item["ok"]), (200, False) if status == 200 else (409, True))
            ends = [s for s in a.statuses(task["id"]) if s in ("cancelled", "completed")]
            self.assertEqual(ends, ["cancelled" if status == 200 else "completed"])


class Limits(CalmTest):
    def run_all(self, cluster, count, limits):
        """Two workers per node; the most that were held at once, of each group of `limits`."""
        lock = threading.Lock()
        held, most, done = collections.Counter(), collections.Counter(), []
        end = time.monotonic() + 2 * harness.DEADLINE_S

        def work(node, worker):
            node.register(worker, queues=["narrow"])
            while len(done) < count and time.monotonic() < end:
                for task in node.claim(worker, max=2, wait_ms=300):
                    group = limits(task)
                    with lock:
                        held[group] += 1
                        most[group] = max(most[group], held[group])
                    node.report_ok(worker, task, "start")
                    with lock:
                        held[group] -= 1
                        done.append(task["id"])
                    node.complete(worker, task)

        workers = [Background(work, node, f"w{i}") for i, node in enumerate(cluster.nodes * 2)]
        for worker in workers:
            worker.result(3 * harness.DEADLINE_S)
        self.assertEqual(len(set(done)), count, "all are done")
        self.assertEqual(len(done), count, "once each")
        return most

    def test_c8_the_concurrency_of_a_queue_holds_over_three_nodes(self):
        cluster = self.cluster(3)
        a, b, _ = cluster.nodes
        a.expect(200, "PATCH", "/v1/queues/narrow", {"concurrency": 3})
        b.expect(201, "POST", "/v1/tasks", [{"type": "t", "queue": "narrow"}] * 90)
        most = self.run_all(cluster, 90, lambda task: "all")
        self.assertLessEqual(most["all"], 3)
        self.assertGreaterEqual(most["all"], 2, "and is made use of")

    def test_c8_rules_set_at_two_nodes_at_once_are_both_kept_and_soon_known_everywhere(self):
        cluster = self.cluster(3)
        a, b, c = cluster.nodes
        for i in range(10):
            path = f"/v1/queues/q{i}"
            at_once(lambda: a.expect(200, "PATCH", path, {"concurrency": 7}),
                    lambda: b.expect(200, "PATCH", path, {"key_concurrency": 5}),
                    lambda: c.enqueue(queue=f"q{i}"))
            for node in cluster.nodes:
                wait_until(lambda n=node: (lambda q: (q["concurrency"], q["key_concurrency"]))(
                    n.expect(200, "GET", path)) == (7, 5), what="both rules")
        a.register("w", queues=["q0"])
        b.expect(200, "POST", "/v1/queues/q0:pause", {})
        wait_until(lambda: a.expect(200, "GET", "/v1/queues/q0")["paused_at"], what="the pause")
        self.assertEqual(a.claim("w"), [])

    def test_c8_the_concurrency_of_a_key_holds_over_three_nodes(self):
        cluster = self.cluster(3)
        a, b, _ = cluster.nodes
        a.expect(200, "PATCH", "/v1/queues/narrow", {"key_concurrency": 1})
        b.expect(201, "POST", "/v1/tasks", [
            {"type": "t", "queue": "narrow", "limit_key": f"k{i % 4}"} for i in range(60)])
        most = self.run_all(cluster, 60, lambda task: task["limit_key"])
        self.assertEqual(set(most.values()), {1})
        self.assertEqual(cluster.sql("SELECT count(*) FROM parked_rows"), [["0"]])


class Starts(CalmTest):
    def test_a11_f_f5_ten_nodes_that_start_at_once_on_an_empty_database_all_serve(self):
        cluster = self.cluster(10)
        applied = re.findall(r'"store.migrated","migrations":(\d+)', cluster.logs())
        rows = cluster.sql("SELECT id FROM schema_migrations")
        self.assertEqual(sum(map(int, applied)), len(rows), "each ran once, on any node")
        ids = [task["id"] for task in at_once(*[node.enqueue for node in cluster.nodes])]
        self.assertEqual(len(set(ids)), 10)
        for node in cluster.nodes:
            self.assertEqual({node.task(i)["status"] for i in ids}, {"pending"})
        [[connections]] = cluster.sql("SELECT count(*) FROM pg_stat_activity WHERE "
                                      "application_name LIKE 'perdura%'")
        self.assertLessEqual(int(connections), 10 * 7)

    def test_f_h8_nodes_that_have_nothing_to_do_hardly_ask_the_database(self):
        cluster = self.cluster(3)
        for i, node in enumerate(cluster.nodes):
            node.register(f"w{i}")
        waiting = [Background(node.claim, f"w{i}", 1, 8000)
                   for i, node in enumerate(cluster.nodes)]
        for node in cluster.nodes:
            node.wait_for_waiting("waiting_claims", 1)
        count = ("SELECT xact_commit + xact_rollback FROM pg_stat_database "
                 "WHERE datname = current_database()")
        time.sleep(1.5)  # timers of the start have passed; statistics are a second late
        before, began = int(cluster.sql(count)[0][0]), time.monotonic()
        time.sleep(2)
        asked = int(cluster.sql(count)[0][0]) - before
        self.assertLess(asked / (time.monotonic() - began), 3 * 25)
        self.assertEqual([claim.result() for claim in waiting], [[]] * 3)

    def test_a11_f_a15_a_database_of_a_newer_version_is_refused_in_one_line(self):
        cluster = self.cluster(1)
        cluster.stop(0)
        cluster.sql("INSERT INTO schema_migrations (id, description, executed_at, checksum) "
                    "VALUES ('9999_later', 'from a later version', now(), 'x')")
        done = subprocess.run([harness.binary(), "serve", "--listen", "127.0.0.1:0", "--store",
                               cluster.store], capture_output=True, text=True, timeout=120,
                              cwd=cluster.folder, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        lines = [line for line in done.stderr.splitlines() if not line.startswith("{")]
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertIn("9999", lines[0])
        cluster.sql("DELETE FROM schema_migrations WHERE id = '9999_later'")


if __name__ == "__main__":
    unittest.main()
