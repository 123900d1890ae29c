"""Rows of users and rights checked again before execution (D12, V8), on PostgreSQL: every case of their API tests once
more, each on a schema of its own, and over two nodes."""
import unittest

import on_postgres
import test_revoked
import test_user_rows
from cluster import CALM, ClusterTest, begin_module
from harness import wait_until
from on_postgres import OnPostgres
from token_harness import ROOT_TOKEN, bearer


def setUpModule():
    on_postgres.begin_module()
    begin_module()


class UserRows(OnPostgres, test_user_rows.UserRows):
    pass


class Held(OnPostgres, test_revoked.Held):
    pass


class Plans(OnPostgres, test_revoked.Plans):
    pass


class Children(OnPostgres, test_revoked.Children):
    pass


class Limits(OnPostgres, test_revoked.Limits):
    pass


class Nodes(ClusterTest):
    def root(self, node, status, method, path, body=None):
        return node.expect(status, method, path, body, headers=bearer(ROOT_TOKEN))

    def two(self, **environment):
        cluster = self.cluster(2, *CALM)
        cluster.stop_all()
        for i in (0, 1):
            cluster.node(i).server.environment.update({"PERDURA_TOKEN": ROOT_TOKEN, **environment})
        cluster.start_all()
        return cluster.node(0), cluster.node(1)

    def test_d12_what_one_node_revoked_the_other_holds_within_a_second(self):
        one, other = self.two()
        self.root(other, 201, "POST", "/v1/workers", {"id": "w", "queues": ["default"]})
        best = 99
        for _ in range(5):
            made = self.root(one, 201, "POST", "/v1/tokens", {"name": "shop", "scopes": ["tasks:enqueue"]})
            tasks = one.expect(201, "POST", "/v1/tasks", [{"type": "t", "delay_ms": 20 * i} for i in range(100)],
                               headers=bearer(made["token"]))["items"]
            self.root(one, 204, "DELETE", f"/v1/tokens/{made['id']}")
            ids = {task["id"] for task in tasks}
            wait_until(lambda: self.root(other, 200, "POST", "/v1/workers/w:claim", {"max": 100}) is not None
                       and self.root(one, 200, "GET", f"/v1/tasks/{tasks[-1]['id']}")["status"] == "paused",
                       what="the hold")
            shown = self.root(one, 200, "GET", "/v1/tasks?limit=100")["items"]
            ran = [task for task in shown if task["id"] in ids and task["status"] not in ("paused", "delayed")]
            best = min(best, len(ran) * 0.02)
        self.assertLess(best, 1.0)

    def test_the_store_counts_the_tasks_of_a_user_for_all_nodes(self):
        one, other = self.two(PERDURA_ACCESS_USER_TASKS="10/h")
        for node in (one, other):
            self.root(node, 201, "POST", "/v1/tasks", [{"type": "t", "user_id": "ada"}] * 5)
        for node in (one, other):
            reply = node.request("POST", "/v1/tasks", {"type": "t", "user_id": "ada"}, bearer(ROOT_TOKEN))
            self.assertEqual(reply.status, 429, reply.body)


if __name__ == "__main__":
    unittest.main()
