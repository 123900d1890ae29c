"""Tamper-evident logs on PostgreSQL: several nodes write, one order of lines and of records
comes of it, and changes by hand are named (D9, F-J5, F-J6, F-J8, F-J9, V7)."""
import json
import os
import pathlib
import subprocess

import harness
from cluster import CALM, ClusterTest, begin_module

setUpModule = begin_module
NODES, ROUNDS = 3, 12
# A node that writes such a line waits until the gate is open.
GATE = """CREATE TABLE public.gate (is_open int);
CREATE FUNCTION public.gate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    WHILE NOT EXISTS (SELECT FROM public.gate) LOOP PERFORM pg_sleep(0.02); END LOOP;
    RETURN new;
END $$;
CREATE TRIGGER gate BEFORE INSERT ON execution_logs FOR EACH ROW
    WHEN (new.message LIKE '%was refused%') EXECUTE FUNCTION public.gate()"""


class LogChains(ClusterTest):
    def setUp(self):
        super().setUp()
        self.folder = self.temporary_folder()
        self.anchor = os.path.join(self.folder, "anchor")
        config = os.path.join(self.folder, "node.yaml")
        pathlib.Path(config).write_text(f"log_key: {self.folder}/key\nlog_anchor: {self.anchor}\n"
                                        "log_anchor_every: 100ms\n"
                                        "allow_changed_schema: true\n")  # a test has a trigger
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

    def is_closed(self):
        return self.nodes.sql("SELECT count(*) FROM log_heads WHERE closed = ''") == [["0"]]

    def waits_for(self, event):
        return self.nodes.sql("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE "
                              f"'perdura%' AND {event}") != [["0"]]

    def test_f_j5_no_run_is_closed_while_another_node_writes_a_line_of_it(self):
        """What it says itself, and what it says of a report that was refused."""
        node, other = self.nodes.node(0), self.nodes.node(1)
        refused = {"op": "checkpoint", "name": "n" * 201, "progress": 1}
        self.nodes.sql(GATE)
        for said in (refused, {"op": "log", "level": "INFO", "message": "line 2 was refused"}):
            task = self.held()
            self.say(other, task, 1)  # it is ready for lines then
            self.nodes.sql("DELETE FROM public.gate")
            element = {"task_id": task["id"], "lease_token": task["lease_token"], **said}
            told = other.in_thread(other.request, "POST", "/v1/workers/worker-1:report", [element])
            harness.wait_until(lambda: self.waits_for("wait_event = 'PgSleep'"), what="the line")
            ended = node.in_thread(node.request, "POST", "/v1/workers/worker-1:report", [
                {"op": "complete", "task_id": task["id"], "lease_token": task["lease_token"]}])
            harness.wait_until(lambda: self.is_closed() or self.waits_for("wait_event_type = 'Lock'"),
                               what="the end of the run, or a node that waits for the line")
            self.nodes.sql("INSERT INTO public.gate VALUES (1)")
            told.result()
            ended.result()
            node.complete("worker-1", task)  # the same again, should it have waited too long
        self.nodes.sql("DROP TRIGGER gate ON execution_logs; DROP FUNCTION public.gate(); "
                       "DROP TABLE public.gate")
        self.assertEqual(self.nodes.sql("SELECT count(*) FROM execution_logs"), [["4"]])
        harness.wait_until(self.is_closed, what="the end of both runs")
        self.verify(0)
        self.verify(0, "--anchor", self.anchor)

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
