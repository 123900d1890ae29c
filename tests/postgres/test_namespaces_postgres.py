"""Namespaces on PostgreSQL (D12): the cases of tests/api/namespace_cases.py, and over two nodes. Run:
PERDURA_BUILD=build python3 -m unittest tests/postgres/test_namespaces_postgres.py"""
import unittest

import cluster
import on_postgres
from cluster import CALM, ClusterTest
from harness import ApiTest, wait_until
from namespace_cases import A, NamespaceCases
from on_postgres import OnPostgres


def setUpModule():
    on_postgres.begin_module()
    cluster.begin_module()


class Namespaces(OnPostgres, NamespaceCases, ApiTest):
    pass


class TwoNodes(ClusterTest):
    def test_d12_a_namespace_is_there_at_every_node_at_once_and_gone_with_its_purge(self):
        first, second = self.cluster(2, *CALM).nodes
        first.expect(201, "POST", "/v1/namespaces", {"name": "a", "limits": {"waiting": 5}})
        second.expect(201, "POST", "/v1/tasks", [{"type": "t"}] * 3, A)
        first.expect(201, "POST", "/v1/tasks", [{"type": "t"}] * 2, A)
        for node in (first, second):
            node.expect_error(429, "rate_limited", "POST", "/v1/tasks", {"type": "t"}, A)
        second.expect(202, "DELETE", "/v1/namespaces/a?purge=true")
        self.assertIn(first.api("POST", "/v1/tasks", {"type": "t"}, A)[0], (404, 409))
        for node in (first, second):
            wait_until(lambda: node.api("GET", "/v1/namespaces/a")[0] == 404,
                       what="the end of the purge")
        first.expect_error(404, "not_found", "POST", "/v1/tasks", {"type": "t"}, A)


if __name__ == "__main__":
    unittest.main()
