"""Queues that appear and disappear on PostgreSQL: the cases of tests/api/test_queues.py once more,
and over two nodes (C8, F-H4). Run: PERDURA_BUILD=build python3 -m unittest
tests/postgres/test_queues_postgres.py"""
import unittest

import cluster
import on_postgres
import test_queues
from cluster import CALM, ClusterTest
from harness import wait_until
from on_postgres import OnPostgres


def setUpModule():
    on_postgres.begin_module()
    cluster.begin_module()


class NewQueues(OnPostgres, test_queues.NewQueues):
    def make_old(self):
        self.sql("UPDATE queues SET created_at = created_at - interval '1 hour', "
                 "updated_at = updated_at - interval '1 hour'")


class Nodes(ClusterTest):
    def names(self, node):
        return {queue["name"] for queue in node.expect(200, "GET", "/v1/queues")["items"]}

    def test_c8_a_queue_deleted_at_one_node_is_gone_at_the_other(self):
        first, second = self.cluster(2, *CALM).nodes
        first.expect(200, "PATCH", "/v1/queues/a", {"concurrency": 1})
        self.assertEqual(self.names(second), {"a"})
        first.expect(204, "DELETE", "/v1/queues/a")
        self.assertEqual(self.names(second), set())
        second.enqueue("t", queue="a")
        # A writer that has not heard of the deletion yet makes the row again once it has.
        wait_until(lambda: (self.names(first), self.names(second)) == ({"a"}, {"a"}), what="the queue")
        self.assertIsNone(first.expect(200, "GET", "/v1/queues/a")["concurrency"])
        second.expect_error(409, "conflict", "DELETE", "/v1/queues/a")

    def test_c8_a_queue_that_is_used_at_one_node_and_deleted_at_the_other_loses_no_task(self):
        first, second = self.cluster(2, *CALM).nodes
        second.register("w", queues=["a"], pool_size=1000)
        deleting = first.in_thread(lambda: [first.request("DELETE", "/v1/queues/a").status for _ in range(60)])
        done = 0
        while done < 30 or deleting.thread.is_alive():
            task = second.enqueue("t", queue="a")["id"]
            [held] = wait_until(lambda: second.claim("w", wait_ms=1000), what="the task")
            second.complete("w", held)
            second.expect(204, "DELETE", f"/v1/tasks/{task}")
            done += 1
        self.assertLessEqual(set(deleting.result()), {204, 404, 409})


if __name__ == "__main__":
    unittest.main()
