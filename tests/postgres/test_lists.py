"""Lists are newest first by creation on PostgreSQL, too (E1): whichever part of a node made a task, and over nodes but
for a second. Run: PERDURA_BUILD=build python3 -m unittest tests/postgres/test_lists.py"""
import datetime
import time
import unittest

import cluster
import on_postgres
from cluster import CALM, ClusterTest
from harness import ApiTest
from on_postgres import OnPostgres

BETWEEN_NODES_S = 1  # what docs/api.md promises


def setUpModule():
    on_postgres.begin_module()
    cluster.begin_module()


def ids_of(test, path):
    """Of all pages."""
    ids, cursor = [], ""
    while cursor is not None:
        page = test.expect(200, "GET", f"{path}limit=1000&cursor={cursor}")
        ids += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]
    return ids


class OneNode(OnPostgres, ApiTest):
    arguments = ("--lease", "60s")

    def make(self, job, way):
        """The ids of new tasks, in the order they were made. Each way is another writer of the node."""
        if way == "array":
            return [t["id"] for t in self.expect(201, "POST", "/v1/tasks", [{"type": "t"}] * 150)["items"]]
        if way == "one":
            return [self.enqueue("t")["id"]]
        if way == "job":
            return [self.expect(201, "POST", f"/v1/jobs/{job}:run")["id"]]
        if way == "fork":
            return [self.expect(200, "POST", f"/v1/tasks/{self.parent['id']}:fork", {})["id"]]
        self.report_ok("worker-1", self.parent, "spawn", tasks=[{"type": "child"}, {"type": "child"}])
        children = self.expect(200, "GET", f"/v1/tasks?parent_id={self.parent['id']}&limit=2")["items"]
        return [child["id"] for child in reversed(children)]

    def test_e1_tasks_stand_in_the_order_in_which_they_were_made_whoever_made_them(self):
        job = self.expect(201, "POST", "/v1/jobs", {"name": "j"})["id"]
        self.register(queues=["own"])
        parent = self.enqueue(queue="own")
        [self.parent] = self.claim()
        made = [parent["id"]]
        for way in ("array", "job", "one", "child", "array", "child", "one", "job", "fork", "one", "child", "job",
                    "array", "one", "job"):
            made += self.make(job, way)
        self.assertEqual(ids_of(self, "/v1/tasks?"), list(reversed(made)))
        self.assertEqual(ids_of(self, "/v1/tasks?order=oldest&"), made)
        pending = ids_of(self, "/v1/tasks?status=pending&queue=default&")
        self.assertEqual(pending, [i for i in reversed(made) if i in set(pending)])

    def test_e1_executions_of_a_node_stand_in_the_order_of_their_claims(self):
        self.register(pool_size=100)
        claimed = []
        for turn in range(6):
            self.expect(201, "POST", "/v1/tasks", [{"type": "t"}] * 10)
            claimed += [task["id"] for task in self.claim(max=10)]
            self.enqueue("t")
            claimed += [task["id"] for task in self.claim(max=1)]
        listed = [e["task_id"] for e in self.expect(200, "GET", "/v1/executions?limit=1000")["items"]]
        self.assertEqual(listed, list(reversed(claimed)))


class Nodes(ClusterTest):
    def test_e1_two_nodes_differ_by_a_second_at_most(self):
        nodes = self.cluster(2, *CALM).nodes
        made, slowest = {}, 0
        at, first = None, None
        while first is None or at - first < datetime.timedelta(seconds=3 * BETWEEN_NODES_S):
            for node in nodes:
                begun = time.monotonic()
                task = node.enqueue("t")
                slowest = max(slowest, time.monotonic() - begun)
                at = datetime.datetime.fromisoformat(task["created_at"].replace("Z", "+00:00"))
                first = first or at
                made[task["id"]] = at
        listed = ids_of(nodes[0], "/v1/tasks?")
        self.assertEqual(listed, ids_of(nodes[1], "/v1/tasks?"))
        self.assertCountEqual(listed, made)
        oldest_above = None
        worst = datetime.timedelta()
        for each in listed:  # nothing below is much newer than the oldest above it
            if oldest_above is not None:
                worst = max(worst, made[each] - oldest_above)
            oldest_above = min(oldest_above or made[each], made[each])
        # A task has the time at which its request was taken up, and its key a moment later.
        self.assertLess(worst.total_seconds(), BETWEEN_NODES_S + 0.1 + 2 * slowest)

    def test_e1_attempts_of_a_task_stand_in_order_whichever_node_gave_them_out(self):
        nodes = self.cluster(2, *CALM).nodes
        for number, node in enumerate(nodes):
            node.register(f"w{number}")
        task = nodes[0].enqueue("t", max_retries=1000, retry_delay_ms=0)
        for turn in range(12):
            node, worker = nodes[turn % 2], f"w{turn % 2}"
            [held] = node.claim(worker, wait_ms=30000)
            node.report_ok(worker, held, "log", level="INFO", message=str(turn))
            node.report_ok(worker, held, "fail", error="again")
        attempts = [e["attempt_number"] for e in nodes[0].executions(task["id"])]
        self.assertEqual(attempts, list(range(12, 0, -1)))
        lines = nodes[1].expect(200, "GET", f"/v1/tasks/{task['id']}/logs")["items"]
        self.assertEqual([line["message"] for line in lines], [str(turn) for turn in range(12)])


if __name__ == "__main__":
    unittest.main()
