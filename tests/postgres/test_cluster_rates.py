"""A strict rate holds over all nodes of a PostgreSQL together (C8): whichever window of its period is
looked at, no more than so many tasks started in it, at whatever nodes, and also where a node had to
wait for the queue's row."""
import datetime
import subprocess
import time
import unittest

from cluster import CALM, ClusterTest, begin_module
from harness import DEADLINE_S, Background, wait_until

RATE = {"count": 10, "per_ms": 500}
TASKS = 50
HELD_S = 1.5
SLOW = {"count": 2, "per_ms": 2000}
CLOCKS_S = 0.05  # a node knows the database's clock that well


def setUpModule():
    begin_module()


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class Rates(ClusterTest):
    def cluster(self, count):
        return super().cluster(count, *CALM)

    def drain(self, cluster, queue, count):
        """Two workers per node take all tasks; when each of them was claimed, sorted."""
        claimed = []
        end = time.monotonic() + 3 * DEADLINE_S

        def work(node, worker):
            node.register(worker, queues=[queue])
            while len(claimed) < count and time.monotonic() < end:
                for task in node.claim(worker, max=3, wait_ms=300):
                    claimed.append(task["id"])
                    node.complete(worker, task)

        for worker in [Background(work, node, f"w{i}") for i, node in enumerate(cluster.nodes * 2)]:
            worker.result(4 * DEADLINE_S)
        self.assertEqual(len(set(claimed)), count)
        return sorted(seconds(run["created_at"]) for task in claimed
                      for run in cluster.node(0).executions(task))

    def test_c8_a_strict_rate_holds_over_three_nodes_in_every_window(self):
        cluster = self.cluster(3)
        a, b, _ = cluster.nodes
        for queue, rule in (("whole", {"rate": RATE}), ("key", {"key_rate": RATE}),
                            ("type", {"type_limits": [{"type": "t", "rate": RATE}]})):
            with self.subTest(queue):
                a.expect(200, "PATCH", f"/v1/queues/{queue}", rule)
                b.expect(201, "POST", "/v1/tasks", [
                    {"type": "t", "queue": queue, "limit_key": "k"}] * TASKS)
                starts = self.drain(cluster, queue, TASKS)
                for first, beyond in zip(starts, starts[RATE["count"]:]):
                    self.assertGreaterEqual(round(beyond - first, 6), RATE["per_ms"] / 1000, starts)

    def hold_row(self, cluster):
        """As a node does whose commit takes long; ends when its input does."""
        holder = subprocess.Popen(["psql", "-XqAt", cluster.store], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        holder.stdin.write("BEGIN;\nSELECT 'held' FROM queues WHERE name = 'paced' FOR UPDATE;\n")
        holder.stdin.flush()
        self.assertEqual(holder.stdout.readline(), "held\n")
        return holder

    def test_c8_what_waited_for_another_node_started_when_it_went_on(self):
        """Else its tokens were back too early: others would start soon after it."""
        cluster = self.cluster(2)
        a, b = cluster.nodes
        a.expect(200, "PATCH", "/v1/queues/paced", {"rate": SLOW})
        a.expect(201, "POST", "/v1/tasks", [{"type": "t", "queue": "paced"}] * 4)
        for node, worker in ((a, "wa"), (b, "wb")):
            node.register(worker, queues=["paced"])
        holder = self.hold_row(cluster)
        waiting = Background(a.claim, "wa", 2, 0)
        wait_until(lambda: cluster.sql("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = "
                                       "'Lock' AND application_name LIKE 'perdura%'"),
                   what="a claim that waits")
        time.sleep(HELD_S)
        released = time.monotonic()
        holder.communicate("ROLLBACK;\n", DEADLINE_S)
        self.assertEqual(len(waiting.result()), 2)
        self.assertGreater(len(b.claim("wb", 2, 30000)), 0)
        self.assertGreater(time.monotonic() - released, SLOW["per_ms"] / 1000 - CLOCKS_S)


if __name__ == "__main__":
    unittest.main()
