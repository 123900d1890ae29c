"""Changes of all tasks that fit, and workflows, on PostgreSQL: every case of their API tests once more,
each on a schema of its own, and over two nodes (C7). Run:
PERDURA_BUILD=build python3 -m unittest tests/postgres/test_bulk_postgres.py"""
import subprocess
import unittest

import on_postgres
import test_bulk
import test_workflows
from harness import wait_until
from cluster import CALM, ClusterTest, begin_module
from on_postgres import OnPostgres


def setUpModule():
    on_postgres.begin_module()
    begin_module()


class Bulk(OnPostgres, test_bulk.BulkTest):
    pass


class Workflows(OnPostgres, test_workflows.WorkflowTest):
    pass


class Nodes(ClusterTest):
    def test_one_node_cancels_and_retries_what_others_made_and_hold(self):
        first, second = self.cluster(2, *CALM).nodes
        first.expect(201, "POST", "/v1/tasks", [{"type": "t"} for _ in range(300)])
        second.register("w", pool_size=100)
        held = second.claim("w", max=100, wait_ms=30000)  # it may not know of them yet
        self.assertEqual(len(held), 100)
        reply = first.expect(200, "POST", "/v1/tasks:cancel?status=pending&dry_run=true")
        self.assertEqual((reply["matched"], reply["changed"]), (200, 0))
        reply = first.expect(200, "POST", "/v1/tasks:cancel?status=pending")
        self.assertEqual((reply["matched"], reply["changed"], reply["refused"]), (200, 200, 0))
        reply = first.expect(200, "POST", "/v1/tasks:cancel?status=claimed")
        self.assertEqual((reply["changed"], reply["refused"]), (100, 0))
        told = second.heartbeat("w", *held)
        self.assertCountEqual(told["cancel"], [task["id"] for task in held])
        reply = second.expect(200, "POST", "/v1/tasks:retry?status=cancelled&limit=1000")
        self.assertEqual((reply["matched"], reply["changed"]), (300, 300))

    def lock(self, cluster, task_id):
        """Holds the row of the task until the database stops."""
        text = f"BEGIN; SELECT 1 FROM task_states WHERE id = '{task_id}' FOR UPDATE; SELECT pg_sleep(60)"
        holder = subprocess.Popen(["psql", "-X", "-q", "-c", text, cluster.store],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(holder.wait)
        self.addCleanup(holder.kill)
        wait_until(lambda: cluster.sql("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'"),
                   what="the lock")

    def test_f_e4_a_database_that_goes_away_midway_hides_nothing_that_was_changed(self):
        cluster = self.cluster(1)
        node = cluster.nodes[0]
        tasks = node.expect(201, "POST", "/v1/tasks", [{"type": "t"} for _ in range(600)])["items"]
        self.lock(cluster, tasks[-301]["id"])  # of the second chunk of 256
        path = "/v1/tasks:cancel?status=pending"
        call = node.in_thread(lambda: node.expect(200, "POST", path))
        wait_until(lambda: cluster.sql("SELECT 1 FROM task_states WHERE status = 'cancelled' "
                                       "HAVING count(*) >= 256"), what="the first chunk")
        self.postgres.stop()
        try:
            reply = call.result()
            self.assertIn(reply["changed"], range(256, 600))  # the lock may end first of all
            self.assertEqual((reply["refused"], reply["matched"]), (0, reply["changed"]))
            self.assertTrue(reply["stopped"])
            self.assertEqual(node.request("POST", f"{path}&cursor={reply['next_cursor']}").status, 503)
        finally:
            self.postgres.start()
        rest = wait_until(lambda: (lambda r: r.status == 200 and r.json)(
            node.request("POST", f"{path}&cursor={reply['next_cursor']}")), what="the database again")
        self.assertEqual((rest["refused"], rest["stopped"], rest["next_cursor"]), (0, None, None))
        self.assertLessEqual(rest["changed"], 600 - reply["changed"])  # less: an answer got lost
        self.assertEqual(cluster.sql("SELECT count(*) FROM task_states WHERE status = 'cancelled'"),
                         [["600"]])

    def test_a_workflow_is_the_same_at_every_node(self):
        first, second = self.cluster(2).nodes
        items = first.expect(201, "POST", "/v1/tasks", [
            {"type": "a", "ref": "a", "workflow_id": "w"},
            {"type": "b", "workflow_id": "w", "depends_on": [{"ref": "a"}]}])["items"]
        shown = [node.expect(200, "GET", "/v1/workflows/w") for node in (first, second)]
        self.assertEqual(shown[0], shown[1])
        self.assertCountEqual([task["id"] for task in shown[0]["items"]],
                              [task["id"] for task in items])


if __name__ == "__main__":
    unittest.main()
