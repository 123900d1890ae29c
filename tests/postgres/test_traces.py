"""Trace contexts on PostgreSQL (D10): kept with the task, the same on every node, spans of one task
from several nodes fit together, and the views have the columns. Run:
PERDURA_BUILD=build python3 -m unittest tests/postgres/test_traces.py"""
import pathlib
import sys
import tempfile
import unittest

from cluster import CALM, ClusterTest, begin_module, harness

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from test_tracing import CONTEXT, PARENT, TRACE, Receiver  # noqa: E402


def setUpModule():
    begin_module()


class Traces(ClusterTest):
    def test_spans_of_a_task_come_from_several_nodes_and_fit_together(self):
        receiver = Receiver()
        self.addCleanup(receiver.stop)
        folder = tempfile.TemporaryDirectory(prefix="perdura-traces-")
        self.addCleanup(folder.cleanup)
        config = pathlib.Path(folder.name, "traces.yaml")
        config.write_text(f"tracing: {{otlp: '{receiver.url}'}}\n")
        cluster = self.cluster(2, *CALM, "--config", str(config))
        first, second = cluster.nodes
        task = first.request("POST", "/v1/tasks", {"type": "t"},
                             {"traceparent": CONTEXT, "tracestate": "a=b"}).json
        self.assertEqual(second.task(task["id"])["traceparent"], CONTEXT)
        second.register("w")
        [held] = second.claim("w", wait_ms=30000)
        self.assertTrue(held["traceparent"].startswith(f"00-{TRACE}-"))
        second.report_ok("w", held, "spawn", tasks=[{"type": "c"}])
        second.complete("w", held)
        [child] = first.request("GET", f"/v1/tasks?parent_id={task['id']}").json["items"]
        self.assertEqual((child["traceparent"], child["tracestate"]), (held["traceparent"], "a=b"))
        harness.wait_until(lambda: len(receiver.of(task["id"])) == 3 or receiver.faults, what="spans")
        self.assertEqual(receiver.faults, [])
        spans = {span["name"].split()[0]: span for span in receiver.of(task["id"])}
        self.assertEqual(spans["enqueue"]["parentSpanId"], PARENT)
        self.assertEqual({spans[name]["parentSpanId"] for name in ("wait", "run")},
                         {spans["enqueue"]["spanId"]})
        self.assertEqual(held["traceparent"].split("-")[2], spans["run"]["spanId"])
        self.assertEqual(cluster.sql(f"SELECT traceparent, tracestate FROM tasks WHERE "
                                     f"id = '{task['id']}'"), [[CONTEXT, "a=b"]])

    def test_a_triggered_run_goes_on_with_the_trace_of_the_one_that_ended_at_another_node(self):
        """D7: with its correlation id, too."""
        first, second = self.cluster(2, *CALM).nodes
        jobs = [first.expect(201, "POST", "/v1/jobs", {"name": name})["id"]
                for name in ("before", "after")]
        first.expect(201, "POST", f"/v1/jobs/{jobs[1]}/dependencies",
                     {"depends_on_job_id": jobs[0], "dependency_config": {"mode": "trigger"}})
        first.expect(201, "POST", f"/v1/jobs/{jobs[0]}:run", headers={
            "traceparent": CONTEXT, "tracestate": "a=b", "X-Request-Id": "order-7"})
        second.register("w")
        for job in jobs:
            [held] = second.claim("w", wait_ms=30000)
            task = first.task(held["id"])
            self.assertEqual((task["job_id"], task["traceparent"], task["tracestate"],
                              task["correlation_id"]), (job, CONTEXT, "a=b", "order-7"))
            second.complete("w", held)


if __name__ == "__main__":
    unittest.main()
