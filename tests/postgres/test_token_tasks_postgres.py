"""A token's limit of open tasks on PostgreSQL: the cases of tests/api/test_token_tasks.py once more, and what is
particular there (D12, F-J1): several nodes, tasks of SQL, a copy from one store to the other."""
import json
import subprocess
import threading
import unittest

import cluster
import harness
import on_postgres
import test_token_tasks
from cluster import CALM, ClusterTest, at_once
from harness import wait_until
from on_postgres import OnPostgres
from token_harness import ROOT_TOKEN, bearer


def setUpModule():
    on_postgres.begin_module()
    cluster.begin_module()


class Limit(OnPostgres, test_token_tasks.Limit):
    pass


class Doors(OnPostgres, test_token_tasks.Doors):
    pass


class Life(OnPostgres, test_token_tasks.Life):
    pass


class ByHand(OnPostgres, test_token_tasks.ByHand):
    def literal(self, task_id):
        return f"'{task_id}'"


class Nodes(ClusterTest):
    def begin(self, count):
        self.nodes = self.cluster(count, *CALM)
        self.nodes.stop_all()
        for node in self.nodes.nodes:
            node.server.environment["PERDURA_TOKEN"] = ROOT_TOKEN
        self.nodes.start_all()
        return self.nodes.nodes

    def root(self, node, status, method, path, body=None):
        return node.expect(status, method, path, body, headers=bearer(ROOT_TOKEN))

    def limited(self, node, most):
        made = self.root(node, 201, "POST", "/v1/tokens", {"name": "shop", "role": "producer", "max_tasks": most})
        for other in self.nodes.nodes:
            wait_until(lambda: other.request("GET", "/v1/whoami", headers=bearer(made["token"])).status == 200, what="the token")
        return made

    def test_d12_two_nodes_together_never_enqueue_one_too_many(self):
        one, other = self.begin(2)
        for most in (1, 7, 30):
            made = self.limited(one, most)

            def enqueue(node):
                replies = [node.request("POST", "/v1/tasks", {"type": "t"}, bearer(made["token"])).status for _ in range(30)]
                self.assertLessEqual(set(replies), {201, 429})
                return replies.count(201)

            self.assertEqual(sum(at_once(*[lambda node=node: enqueue(node) for node in (one, other) * 3])), most)
            self.assertEqual(self.root(other, 200, "GET", f"/v1/tokens/{made['id']}")["open_tasks"], most)

    def test_d12_a_node_that_hears_of_a_token_late_counts_its_tasks_all_the_same(self):
        one, other = self.begin(2)
        self.root(other, 201, "POST", "/v1/workers", {"id": "w", "queues": ["default"]})
        for _ in range(10):
            made = self.root(one, 201, "POST", "/v1/tokens", {"name": "shop", "role": "producer", "max_tasks": 2})
            one.expect(201, "POST", "/v1/tasks", {"type": "t"}, headers=bearer(made["token"]))
            [task] = wait_until(lambda: self.root(other, 200, "POST", "/v1/workers/w:claim", {"max": 1, "wait_ms": 1000})["tasks"],
                                what="the task")
            self.root(other, 200, "POST", "/v1/workers/w:report", [
                {"task_id": task["id"], "lease_token": task["lease_token"], "op": "complete"}])
            self.assertEqual(self.root(one, 200, "GET", f"/v1/tokens/{made['id']}")["open_tasks"], 0)

    def test_d12_tokens_that_enqueue_at_both_nodes_do_not_stop_each_other(self):
        """Every batch holds them in the same order: a deadlock would cost a second each."""
        one, other = self.begin(2)
        tokens = [self.limited(one, 10000)["token"] for _ in range(4)]
        failed = []

        def enqueue(node, token):
            for _ in range(40):
                if node.request("POST", "/v1/tasks", [{"type": "t"}] * 3, bearer(token)).status != 201:
                    failed.append(token)

        threads = [threading.Thread(target=enqueue, args=(node, token)) for node in (one, other) for token in tokens]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [])
        self.assertNotIn("deadlock", self.nodes.logs())

    def test_d12_what_sql_enqueues_has_no_token_and_counts_for_none(self):
        [node] = self.begin(1)
        made = self.limited(node, 1)
        self.nodes.sql("SELECT enqueue('t')")
        wait_until(lambda: self.nodes.sql("SELECT count(*) FROM task_states") == [["1"]], what="the task")
        node.expect(201, "POST", "/v1/tasks", {"type": "t"}, headers=bearer(made["token"]))
        self.assertEqual(node.request("POST", "/v1/tasks", {"type": "t"}, bearer(made["token"])).status, 429)


class Copies(OnPostgres, test_token_tasks.TokenTasksTest):
    def test_d12_a_copy_to_sqlite_and_back_keeps_the_count(self):
        made = self.limited(3)
        self.enqueue(made, [{"type": "t"}] * 3)
        self.worker()
        self.end(self.take()[0])
        self.server.stop()
        home = self.server.store
        self.sql(f"CREATE SCHEMA {self.schema}_back", "public")
        there, back = f"{self.folder}/copy.db", home.replace(self.schema, f"{self.schema}_back")
        for source, target in ((home, there), (there, back)):
            done = subprocess.run([harness.binary(), "copy", "--from", source, "--to", target, "--json"],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertTrue(json.loads(done.stdout)["equal"])
        for place in (there, back):
            checked = subprocess.run([harness.binary(), "verify", "--store", place], capture_output=True, text=True, check=False)
            self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        self.schema += "_back"
        self.server.start()
        self.local = threading.local()
        self.assertEqual(self.count(made), 2)
        self.enqueue(made)
        self.full(made)


if __name__ == "__main__":
    unittest.main()
