"""Executions over all tasks (D8): found by job, schedule, status and time, with their log lines.
Each test has a server of its own."""
import unittest

from harness import wait_until
from planning import NOBODY, PlanningTest


class ExecutionsTest(PlanningTest):
    def run_job(self, job, op="complete", **fields):
        self.expect(201, "POST", f"/v1/jobs/{job['id']}:run")
        return self.work_off(op=op, **fields)

    def test_d8_executions_are_found_by_job_status_and_time(self):
        first, second = self.job("first", max_retries=0), self.job("second")
        tasks = [self.run_job(first), self.run_job(second), self.run_job(first, "fail", error="e")]
        self.enqueue()
        tasks.append(self.work_off())
        found = self.items("/v1/executions")
        self.assertEqual([e["task_id"] for e in found], [t["id"] for t in tasks][::-1])
        of_first = self.items("/v1/executions", job_id=first["id"])
        self.assertEqual([(e["task_id"], e["status"]) for e in of_first],
                         [(tasks[2]["id"], "failed"), (tasks[0]["id"], "completed")])
        [failed] = self.items("/v1/executions", status="failed")
        self.assertEqual((failed["job_id"], failed["task_id"], failed["attempt_number"]),
                         (first["id"], tasks[2]["id"], 1))
        self.assertEqual(self.items("/v1/executions", job_id=NOBODY), [])
        middle = found[1]["created_at"]
        self.assertEqual(len(self.items("/v1/executions", after=middle)), 2)
        self.assertEqual(len(self.items("/v1/executions", before=middle)), 2)
        self.assertEqual(self.items("/v1/executions", job_id=first["id"], status="completed",
                                    after=middle), [])

    def test_d8_executions_are_found_by_their_schedule(self):
        job = self.job()
        schedule = self.schedule(job, schedule_type="immediate")
        task = self.work_off()
        self.run_job(job)
        [execution] = self.items("/v1/executions", schedule_id=schedule["id"])
        self.assertEqual((execution["task_id"], execution["job_id"], execution["schedule_id"]),
                         (task["id"], job["id"], schedule["id"]))
        self.assertEqual(execution["planned_at"], schedule["next_fire_at"])
        [by_hand, _] = self.items("/v1/executions", job_id=job["id"])
        self.assertIsNone(by_hand["planned_at"])
        [of_task] = self.items(f"/v1/tasks/{task['id']}/executions")
        self.assertEqual(of_task["planned_at"], schedule["next_fire_at"])

    def test_lists_are_paged(self):
        job = self.job()
        for _ in range(20):
            self.run_job(job)
        ids = self.ids(self.items("/v1/executions", job_id=job["id"]))
        self.assertEqual(len(ids), 20)
        for limit in (1, 7, 16, 19, 20):
            self.assertEqual(self.ids(self.pages("/v1/executions", limit)), ids)
            self.assertEqual(self.ids(self.pages("/v1/executions", limit, job_id=job["id"])), ids)

    def test_one_execution_is_shown_with_its_log_lines(self):
        job = self.job()
        self.expect(201, "POST", f"/v1/jobs/{job['id']}:run")
        self.register()
        [task] = self.claim()
        [running] = self.items("/v1/executions")
        self.assertEqual(running["status"], "pending")
        self.report("worker-1", self.element(task, "start"),
                    self.element(task, "log", level="DEBUG", message="one"),
                    self.element(task, "log", level="ERROR", message="two", context={"a": 1}),
                    self.element(task, "log", level="INFO", message="three"))
        self.complete("worker-1", task, {"done": True})
        path = f"/v1/executions/{running['id']}"
        shown = self.expect(200, "GET", path)
        self.assertEqual((shown["id"], shown["status"], shown["worker_id"], shown["result_data"],
                          shown["job_id"]),
                         (running["id"], "completed", "worker-1", {"done": True}, job["id"]))
        self.assertEqual([(e["log_level"], e["message"]) for e in self.items(f"{path}/logs")],
                         [("DEBUG", "one"), ("ERROR", "two"), ("INFO", "three")])
        self.assertEqual([e["message"] for e in self.items(f"{path}/logs", level="WARN")], ["two"])
        self.assertEqual([e["message"] for e in self.items(f"{path}/logs", q="hre")], ["three"])
        self.assertEqual([e["message"] for e in self.pages(f"{path}/logs", 2)],
                         ["one", "two", "three"])
        self.assertEqual(self.items(f"{path}/logs", after="2099-01-01T00:00:00Z"), [])
        for value, found in (("/a:1", ["two"]), ("/a:2", []), ("/b:1", [])):  # as the logs of a task
            self.assertEqual([e["message"] for e in self.items(f"{path}/logs", context=value)], found)
        self.expect_error(422, "invalid", "GET", f"{path}/logs?context=a", field="context")

    def test_log_lines_are_those_of_one_attempt(self):
        job = self.job(max_retries=1)
        self.expect(201, "POST", f"/v1/jobs/{job['id']}:run")
        self.register()
        for attempt in (1, 2):
            [task] = wait_until(lambda: self.claim(wait_ms=30000))
            self.report_ok("worker-1", task, "log", message=f"attempt {attempt}")
            self.report_ok("worker-1", task, "fail", error="no")
        second, first = self.items("/v1/executions")
        for execution, text in ((first, "attempt 1"), (second, "attempt 2")):
            self.assertEqual([e["message"] for e in
                              self.items(f"/v1/executions/{execution['id']}/logs")], [text])

    def test_unknown_ids_and_parameters_are_refused(self):
        for path in (f"/v1/executions/{NOBODY}", "/v1/executions/nobody"):
            self.expect_error(404, "not_found", "GET", path)
            self.expect_error(404, "not_found", "GET", f"{path}/logs")
        for query, field in (("colour=red", "colour"), ("job_id=x", "job_id"),
                             ("schedule_id=x", "schedule_id"), ("status=dead_letter", "status"),
                             ("after=x", "after"), ("before=x", "before"), ("cursor=x", "cursor"),
                             ("limit=0", "limit")):
            self.expect_error(422, "invalid", "GET", f"/v1/executions?{query}", field=field)
        self.expect_error(422, "invalid", "GET", f"/v1/executions/{NOBODY}/logs?level=LOUD",
                          field="level")


if __name__ == "__main__":
    unittest.main()
