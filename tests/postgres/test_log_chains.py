"""Logs nobody can change unseen on PostgreSQL: several nodes write, one order of lines and of records
comes of it, and changes by hand are named (D9, F-J5, F-J6, F-J8, F-J9, V7)."""
import json
import os
import pathlib
import subprocess

import harness
from cluster import CALM, ClusterTest, begin_module

setUpModule = begin_module
NODES, ROUNDS = 3, 12


class LogChains(ClusterTest):
    def setUp(self):
        super().setUp()
        self.folder = self.temporary_folder()
        self.anchor = os.path.join(self.folder, "anchor")
        config = os.path.join(self.folder, "node.yaml")
        pathlib.Path(config).write_text(f"log_key: {self.folder}/key\nlog_anchor: {self.anchor}\n"
                                        "log_anchor_every: 100ms\n")
        self.nodes = self.cluster(NODES, *CALM, "--config", config)

    def verify(self, code, *more):
        done = subprocess.run([harness.binary(), "verify", "--logs", "--json", "--store",
                               self.nodes.store, *more], capture_output=True, text=True,
                              timeout=240, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def held(self):
        node = self.nodes.node(0)
        node.register()
        node.enqueue("a")
        return node.claim()[0]

    def say(self, node, task, number):
        node.report_ok("worker-1", task, "log", level="INFO", message=f"line {number}")

    def test_f_j9_nodes_that_write_to_one_log_make_one_chain(self):
        task = self.held()
        for number in range(ROUNDS):
            threads = [node.in_thread(self.say, node, task, number) for node in self.nodes.nodes]
            for thread in threads:
                thread.result()
        lines = self.nodes.sql("SELECT count(*), max(seq) FROM execution_logs")[0]
        self.assertEqual([int(value) for value in lines], [NODES * ROUNDS] * 2)
        self.verify(0)
        harness.wait_until(lambda: self.nodes.sql("SELECT count(*) FROM log_heads WHERE lines > 0") == [["0"]],
                           what="a record")
        self.nodes.node(0).complete("worker-1", task)
        for i in range(NODES):
            self.nodes.stop(i)
        report = self.verify(0, "--anchor", self.anchor)
        self.assertEqual(report["checked"]["log lines"], NODES * ROUNDS)
        self.assertNotIn("unsigned records", report["checked"])
        self.assertEqual(len(report["public_key"]), 64)

    def test_f_j5_changes_by_hand_are_named(self):
        task = self.held()
        for number in range(5):
            self.say(self.nodes.node(number % NODES), task, number)
        self.nodes.node(0).complete("worker-1", task)
        for i in range(NODES):
            self.nodes.stop(i)
        self.verify(0, "--anchor", self.anchor)
        self.nodes.sql("UPDATE execution_logs SET message = 'another' WHERE seq = 3")
        finding, = self.verify(1)["findings"]
        self.assertTrue(finding["subject"].endswith(" line 3"), finding)
        self.nodes.sql("DELETE FROM execution_logs; DELETE FROM log_anchors; "
                       "DELETE FROM log_heads")
        self.assertEqual(self.verify(1)["findings"][0]["kind"], "anchor")  # a key, and no record
        self.nodes.sql("DELETE FROM store_info WHERE name = 'log_public_key'")
        self.verify(0)  # whole again, alone
        kinds = {finding["kind"] for finding in self.verify(1, "--anchor", self.anchor)["findings"]}
        self.assertEqual(kinds, {"regression", "log"})

    def test_f_j5_an_execution_given_to_another_task_is_named(self):
        task = self.held()
        self.say(self.nodes.node(1), task, 1)
        self.nodes.node(0).complete("worker-1", task)
        self.nodes.node(0).enqueue("a")
        self.verify(0)
        self.nodes.sql("UPDATE execution_rows SET task = (SELECT max(task) FROM task_states)")
        finding, = self.verify(1)["findings"]
        self.assertTrue(finding["subject"].endswith(" line 1"), finding)
        self.nodes.sql("UPDATE execution_rows SET task = (SELECT min(task) FROM task_states)")
        self.verify(0)

    def test_f_j8_a_deleted_task_leaves_a_record(self):
        task = self.held()
        self.say(self.nodes.node(1), task, 1)
        self.nodes.node(0).complete("worker-1", task)
        self.nodes.node(2).expect(204, "DELETE", f"/v1/tasks/{task['id']}")
        self.assertEqual(self.verify(0)["checked"]["log lines"], 0)

    def test_v7_a_killed_leader_leaves_whole_chains(self):
        task = self.held()
        for number in range(5):
            self.say(self.nodes.node(0), task, number)
        for i in range(NODES - 1):
            self.nodes.kill(i)
            self.verify(0, *(("--anchor", self.anchor) if os.path.exists(self.anchor) else ()))
        self.say(self.nodes.node(NODES - 1), task, 6)
        self.verify(0)
