"""Figures on PostgreSQL: every case of their API tests once more, each on a schema of its own, and how
executions ended over several nodes and their runs (C7, D14)."""
import unittest

import harness
import on_postgres
import test_stats_history
from cluster import CALM, ClusterTest, begin_module
from on_postgres import OnPostgres


def setUpModule():
    on_postgres.begin_module()
    begin_module()


class Figures(OnPostgres):
    def make_older(self):
        self.sql("UPDATE task_states SET updated_at = updated_at - interval '10 minutes'")


for name in ("History", "Seconds", "Executions", "Alerts"):
    globals()[name] = type(name, (Figures, getattr(test_stats_history, name)),
                           {"__module__": __name__})
del name


class Nodes(ClusterTest):
    def total(self, node, period="24h"):
        stats = node.expect(200, "GET", "/v1/stats")
        return next(x["total"] for x in stats["executions"]
                    if x["period"] == period and x["category"] is None)

    def run_at(self, node, worker, count):
        node.register(worker)
        for _ in range(count):
            node.enqueue()
            node.report_ok(worker, node.claim(worker)[0], "complete")

    def test_d14_every_node_tells_what_all_of_them_did(self):
        cluster = self.cluster(2, *CALM)
        self.run_at(cluster.node(0), "worker-1", 3)
        self.run_at(cluster.node(1), "worker-2", 4)
        for n in (0, 1):
            harness.wait_until(lambda: self.total(cluster.node(n)) == 7, what="seven ends")
        rows = cluster.sql("SELECT run, sum(successful) FROM execution_hours GROUP BY run")
        self.assertEqual(sorted(int(row[1]) for row in rows), [3, 4])  # each has rows of its own

    def test_d14_a_crash_loses_the_last_seconds_of_counts_and_nothing_else(self):
        cluster = self.cluster(1, *CALM)
        node = cluster.node(0)
        self.run_at(node, "worker-1", 5)
        harness.wait_until(lambda: self.total(node) == 5, what="five ends")
        cluster.kill(0)
        cluster.start(0)
        node = cluster.node(0)
        self.assertEqual(self.total(node), 5)
        self.run_at(node, "worker-2", 2)
        harness.wait_until(lambda: self.total(node) == 7, what="seven ends")

    def test_d14_only_one_node_leads_and_the_others_know(self):
        cluster = self.cluster(2)

        def leaders():
            found = []
            for n in (0, 1):
                text = cluster.node(n).request("GET", "/metrics").body.decode()
                figures = dict(line.split(" ") for line in text.splitlines()
                               if line.startswith(("perdura_leader ", "perdura_no_leader ")))
                found.append((figures["perdura_leader"], figures["perdura_no_leader"]))
            return sorted(found)
        harness.wait_until(lambda: leaders() == [("0", "0"), ("1", "0")], what="one leader")


if __name__ == "__main__":
    unittest.main()
