"""Jobs (D1, D5, D7): definitions that tasks are made of, what they depend on, how their runs went.
Each test has a server of its own."""
import unittest

from harness import wait_until
from planning import NOBODY, PlanningTest


class JobsTest(PlanningTest):
    def test_d1_a_job_is_made_shown_changed_and_deleted(self):
        made = self.job("report", description="numbers", task_type="report:daily",
                        payload={"days": 1}, created_by="ada", max_concurrent=2,
                        callback_url="http://127.0.0.1:1/done")
        self.assertEqual((made["name"], made["description"], made["task_type"], made["payload"],
                          made["created_by"], made["max_concurrent"], made["callback_url"],
                          made["is_active"]),
                         ("report", "numbers", "report:daily", {"days": 1}, "ada", 2,
                          "http://127.0.0.1:1/done", True))
        self.assertIsNone(made["last_execution"])
        self.assertIsNone(made["next_execution"])
        path = f"/v1/jobs/{made['id']}"
        self.assertEqual(self.expect(200, "GET", path), made)
        self.assertEqual(self.expect(200, "GET", "/v1/jobs/report"), made)
        changed = self.expect(200, "PATCH", path, {"name": "other", "task_type": None})
        self.assertEqual((changed["name"], changed["task_type"]), ("other", "other"))
        self.assertEqual(changed["payload"], {"days": 1})
        self.expect(204, "DELETE", path)
        self.expect_error(404, "not_found", "GET", path)
        self.expect_error(404, "not_found", "PATCH", path, {"name": "a"})
        self.expect_error(404, "not_found", "DELETE", path)
        self.expect_error(404, "not_found", "POST", f"{path}:run")
        self.assertEqual(self.items("/v1/jobs"), [])
        [deleted] = self.items("/v1/jobs", with_deleted="true")
        self.assertEqual(deleted["id"], made["id"])
        self.assertIsNotNone(deleted["deleted_at"])
        self.assertEqual(self.expect(200, "GET", f"{path}?with_deleted=true"), deleted)
        self.assertEqual(self.expect(200, "GET", f"{path}/stats?with_deleted=true")["job_id"], made["id"])
        self.expect_error(404, "not_found", "GET", f"{path}?with_deleted=false")
        self.expect_error(404, "not_found", "GET", f"{path}/stats")
        self.expect_error(422, "invalid", "GET", f"{path}?with_deleted=1", field="with_deleted")

    def test_d5_replies_show_the_values_in_force(self):
        job = self.job()
        self.assertEqual((job["category"], job["priority"], job["max_retries"],
                          job["timeout_seconds"], job["queue"], job["task_type"]),
                         ("general", "medium", 3, 300, "default", "report"))
        job = self.job("mail", category="notifications", max_retries=1)
        self.assertEqual((job["category"], job["priority"], job["max_retries"],
                          job["timeout_seconds"], job["queue"]),
                         ("notifications", "high", 1, 15, "high-priority"))
        path = f"/v1/jobs/{job['id']}"
        job = self.expect(200, "PATCH", path, {"priority": 3, "queue": "own", "max_retries": None})
        self.assertEqual((job["priority"], job["queue"], job["max_retries"]), (3, "own", 5))
        job = self.expect(200, "PATCH", path, {"category": None, "priority": None, "queue": None})
        self.assertEqual((job["category"], job["priority"], job["queue"]),
                         ("general", "medium", "default"))
        self.assertEqual(job["value_from"], {"queue": "default", "priority": "category",
                                             "max_retries": "category",
                                             "timeout_seconds": "category"})

    def test_the_payload_comes_back_byte_for_byte(self):
        body = b'{"name":"a","payload":{"b":1.10,"a":[1e2,"\\u00e9"]}}'
        reply = self.request("POST", "/v1/jobs", body)
        self.assertIn(b'"payload":{"b":1.10,"a":[1e2,"\\u00e9"]}', reply.body)
        self.assertEqual(reply.headers["Location"], f"/v1/jobs/{reply.json['id']}")
        run = self.request("POST", f"/v1/jobs/{reply.json['id']}:run")
        self.assertIn(b'"payload":{"b":1.10,"a":[1e2,"\\u00e9"]}', run.body)

    def test_lists_are_filtered_and_paged(self):
        jobs = [self.job(f"job{i}", category="reports" if i % 3 else None, is_active=i != 4)
                for i in range(20)]
        ids = self.ids(jobs)[::-1]
        self.assertEqual(self.ids(self.items("/v1/jobs")), ids)
        self.assertEqual(self.ids(self.items("/v1/jobs", name="job7")), [jobs[7]["id"]])
        reports = [job["id"] for i, job in enumerate(jobs) if i % 3][::-1]
        self.assertEqual(self.ids(self.items("/v1/jobs", category="reports")), reports)
        by_id = self.expect(200, "GET", "/v1/categories/reports")["id"]
        self.assertEqual(self.ids(self.items("/v1/jobs", category=by_id)), reports)
        general = [job["id"] for i, job in enumerate(jobs) if i % 3 == 0][::-1]
        self.assertEqual(self.ids(self.items("/v1/jobs", category="general")), general)
        self.assertEqual(self.items("/v1/jobs", category="nothing"), [])
        self.assertEqual(self.ids(self.items("/v1/jobs", is_active="false")), [jobs[4]["id"]])
        for limit in (1, 7, 16, 19, 20):
            self.assertEqual(self.ids(self.pages("/v1/jobs", limit)), ids)

    def test_large_jobs_are_listed_page_by_page(self):
        big = "x" * (1024 * 1024 - 10)
        ids = self.ids([self.job(f"job{i}", payload=big) for i in range(20)])[::-1]
        page = self.expect(200, "GET", "/v1/jobs?limit=1000")
        self.assertLess(len(page["items"]), 20)
        self.assertTrue(page["next_cursor"])
        self.assertEqual(self.ids(self.pages("/v1/jobs", 1000)), ids)

    def test_a_name_that_two_jobs_have_is_asked_for_by_id(self):
        first, second = self.job("twin"), self.job("twin")
        self.expect_error(409, "conflict", "GET", "/v1/jobs/twin")
        self.expect_error(409, "conflict", "POST", "/v1/jobs/twin:run")
        self.expect(204, "DELETE", f"/v1/jobs/{first['id']}")
        self.assertEqual(self.expect(200, "GET", "/v1/jobs/twin")["id"], second["id"])

    def test_what_makes_no_sense_is_refused_with_its_field(self):
        self.check_refusals("POST", "/v1/jobs", {"name": "a"}, [
            ({"name": None}, "name"), ({"name": "x" * 201}, "name"), ({"kind": 1}, "kind"),
            ({"category": "nothing"}, "category"), ({"priority": "urgent"}, "priority"),
            ({"max_retries": -1}, "max_retries"), ({"timeout_seconds": 0}, "timeout_seconds"),
            ({"max_concurrent": -1}, "max_concurrent"), ({"queue": ""}, "queue"),
            ({"callback_url": "ftp://x"}, "callback_url"), ({"task_type": ""}, "task_type"),
            ({"target_method": "m"}, "target_method")])
        job = self.job()
        self.expect_error(422, "invalid", "PATCH", f"/v1/jobs/{job['id']}", {"category": "none"},
                          field="category")
        self.expect_error(422, "invalid", "PATCH", f"/v1/jobs/{job['id']}", {"id": NOBODY},
                          field="id")
        self.expect_error(413, "too_large", "POST", "/v1/jobs",
                          {"name": "a", "payload": "x" * (1024 * 1024)}, field="payload")
        self.expect_error(400, "malformed", "POST", "/v1/jobs", b"nothing")

    def test_unknown_ids_and_parameters_are_refused(self):
        for path in (f"/v1/jobs/{NOBODY}", "/v1/jobs/nobody"):
            self.expect_error(404, "not_found", "GET", path)
            self.expect_error(404, "not_found", "PATCH", path, {"description": "a"})
            self.expect_error(404, "not_found", "DELETE", path)
            self.expect_error(404, "not_found", "POST", f"{path}:run")
            for part in ("schedules", "dependencies", "stats"):
                self.expect_error(404, "not_found", "GET", f"{path}/{part}")
            self.expect_error(404, "not_found", "POST", f"{path}/schedules",
                              {"schedule_type": "immediate"})
            self.expect_error(404, "not_found", "POST", f"{path}/dependencies",
                              {"depends_on_job_id": NOBODY})
            self.expect_error(404, "not_found", "DELETE", f"{path}/dependencies/{NOBODY}")
        for query, field in (("colour=red", "colour"), ("limit=x", "limit"), ("cursor=x", "cursor"),
                             ("cursor=g" + "0" * 32, "cursor"), ("is_active=maybe", "is_active"),
                             ("with_deleted=1", "with_deleted")):
            self.expect_error(422, "invalid", "GET", f"/v1/jobs?{query}", field=field)
        job = self.job()
        self.expect_error(422, "invalid", "GET", f"/v1/jobs/{job['id']}/stats?since=yesterday",
                          field="since")
        self.expect_error(422, "invalid", "GET", f"/v1/jobs/{job['id']}/dependencies?job_id=a",
                          field="job_id")

    def test_d1_a_deleted_job_takes_its_schedules_and_dependencies_along(self):
        first, second = self.job("first"), self.job("second")
        schedule = self.schedule(first, cron_expression="0 9 * * *")
        self.depend(second, first)
        self.expect(204, "DELETE", f"/v1/jobs/{first['id']}")
        self.expect_error(404, "not_found", "GET", f"/v1/schedules/{schedule['id']}")
        self.assertEqual(self.items(f"/v1/jobs/{second['id']}/dependencies"), [])

    def test_d1_a_template_is_not_deleted_while_a_pattern_uses_it(self):
        job = self.job()
        pattern = self.recurring(job)
        self.expect_error(409, "conflict", "DELETE", f"/v1/jobs/{job['id']}")
        self.expect(204, "DELETE", f"/v1/recurring/{pattern['id']}")
        self.expect(204, "DELETE", f"/v1/jobs/{job['id']}")


class RunsTest(PlanningTest):
    def test_a_run_is_a_task_of_the_job_with_the_values_in_force(self):
        job = self.job("mail", category="notifications", payload={"to": "ada"}, task_type="m:send")
        reply = self.request("POST", f"/v1/jobs/{job['id']}:run")
        self.assertEqual(reply.status, 201, reply.body)
        task = reply.json
        self.assertEqual(reply.headers["Location"], f"/v1/tasks/{task['id']}")
        self.assertEqual((task["job_id"], task["category_id"], task["type"], task["queue"],
                          task["payload"], task["priority"], task["max_retries"],
                          task["timeout_ms"], task["input_hash"], task["status"]),
                         (job["id"], job["category_id"], "m:send", "high-priority", {"to": "ada"},
                          10, 5, 15000, None, "pending"))
        self.assertEqual(self.task(task["id"])["job_id"], job["id"])

    def test_a_run_may_bring_its_own_payload(self):
        job = self.job(payload=1)
        run = f"/v1/jobs/{job['id']}:run"
        self.assertEqual(self.expect(201, "POST", run, {"payload": {"a": 2}})["payload"], {"a": 2})
        self.assertEqual(self.expect(201, "POST", run, {})["payload"], 1)
        self.assertIsNone(self.expect(201, "POST", run, {"payload": None})["payload"])
        self.assertEqual(self.expect(201, "POST", "/v1/jobs/report:run")["payload"], 1)
        self.expect_error(422, "invalid", "POST", run, {"load": 1}, field="load")
        self.expect_error(422, "invalid", "POST", run, [1])
        self.expect_error(400, "malformed", "POST", run, b"{")
        self.expect_error(413, "too_large", "POST", run, {"payload": "x" * (1024 * 1024)},
                          field="payload")
        self.assertEqual(len(self.items("/v1/tasks", job_id=job["id"])), 4)

    def test_d5_an_inactive_job_is_not_run(self):
        job = self.job(is_active=False)
        self.expect_error(409, "conflict", "POST", f"/v1/jobs/{job['id']}:run")
        self.assertEqual(self.items("/v1/tasks"), [])

    def test_tasks_are_found_by_their_job(self):
        first, second = self.job("first"), self.job("second")
        tasks = [self.expect(201, "POST", f"/v1/jobs/{job['id']}:run")
                 for job in (first, second, first)]
        self.assertEqual(self.ids(self.items("/v1/tasks", job_id=first["id"])),
                         [tasks[2]["id"], tasks[0]["id"]])
        self.assertEqual(self.items("/v1/tasks", job_id=NOBODY), [])
        self.assertEqual(self.items("/v1/tasks", schedule_id=NOBODY), [])
        self.expect_error(422, "invalid", "GET", "/v1/tasks?job_id=first", field="job_id")

    def test_a_job_shows_its_last_and_its_next_execution(self):
        job = self.job()
        self.expect(201, "POST", f"/v1/jobs/{job['id']}:run")
        task = self.work_off()
        shown = self.expect(200, "GET", f"/v1/jobs/{job['id']}")
        self.assertEqual((shown["last_execution"]["task_id"], shown["last_execution"]["status"]),
                         (task["id"], "completed"))
        late = self.schedule(job, cron_expression="0 9 1 1 *")
        soon = self.recurring(job, config={"time": "09:00"})
        self.assertLessEqual(soon["next_generation"], late["next_fire_at"])
        for shown in (self.expect(200, "GET", f"/v1/jobs/{job['id']}"), self.items("/v1/jobs")[0]):
            self.assertEqual(shown["next_execution"], soon["next_generation"])

    def test_d8_stats_count_how_runs_went(self):
        job = self.job(max_retries=0)
        path = f"/v1/jobs/{job['id']}/stats"
        stats = self.expect(200, "GET", path)
        self.assertEqual((stats["job_id"], stats["name"], stats["total"], stats["success_rate"],
                          stats["average_duration_ms"], stats["last_started_at"]),
                         (job["id"], "report", 0, None, None, None))
        for op in ("complete", "complete", "complete", "fail"):
            self.expect(201, "POST", f"/v1/jobs/{job['id']}:run")
            self.work_off(op=op)
        self.expect(201, "POST", f"/v1/jobs/{job['id']}:run")
        [open_task] = self.claim()
        stats = self.expect(200, "GET", "/v1/jobs/report/stats")
        self.assertEqual((stats["total"], stats["completed"], stats["failed"], stats["timeout"],
                          stats["cancelled"], stats["open"], stats["success_rate"]),
                         (5, 3, 1, 0, 0, 1, 0.75))
        self.assertGreaterEqual(stats["max_duration_ms"], stats["average_duration_ms"])
        self.assertIsNotNone(stats["last_started_at"])
        self.assertEqual(self.expect(200, "GET", f"{path}?since=2099-01-01T00:00:00Z")["total"], 0)
        self.report_ok("worker-1", open_task, "release")
        stats = self.expect(200, "GET", f"{path}?since=2000-01-01T00:00:00Z")
        self.assertEqual((stats["total"], stats["cancelled"], stats["open"]), (5, 1, 0))

    def test_no_more_runs_of_a_job_are_open_than_it_allows(self):
        job = self.job(max_concurrent=1)
        first, second, third = [self.expect(201, "POST", f"/v1/jobs/{job['id']}:run")
                                for _ in range(3)]
        self.assertEqual([t["status"] for t in (first, second, third)],
                         ["pending", "blocked", "blocked"])
        for task in (first, second, third):
            self.assertEqual(self.work_off()["id"], task["id"])
        self.assertEqual(self.task(third["id"])["status"], "completed")


class DependenciesTest(PlanningTest):
    def test_d7_a_dependency_is_made_listed_and_deleted(self):
        first, second = self.job("first"), self.job("second")
        made = self.depend(second, first, dependency_type="completion",
                           dependency_config={"mode": "trigger", "note": 1})
        self.assertEqual((made["job_id"], made["depends_on_job_id"], made["dependency_type"],
                          made["dependency_config"]),
                         (second["id"], first["id"], "completion", {"mode": "trigger", "note": 1}))
        other = self.depend(second, first)
        self.assertEqual((other["dependency_type"], other["mode"]), ("success", "gate"))
        path = f"/v1/jobs/{second['id']}/dependencies"
        self.assertEqual(self.items(path), [other, made])
        self.assertEqual(self.pages("/v1/jobs/second/dependencies", 1), [other, made])
        self.assertEqual(self.items(f"/v1/jobs/{first['id']}/dependencies"), [])
        self.expect_error(404, "not_found", "DELETE",
                          f"/v1/jobs/{first['id']}/dependencies/{made['id']}")
        self.expect_error(404, "not_found", "DELETE", f"{path}/{NOBODY}")
        self.expect_error(404, "not_found", "DELETE", f"{path}/nothing")
        self.expect(204, "DELETE", f"{path}/{made['id']}")
        self.expect_error(404, "not_found", "DELETE", f"{path}/{made['id']}")
        self.assertEqual(self.items(path), [other])

    def test_what_makes_no_sense_is_refused_with_its_field(self):
        first, second = self.job("first"), self.job("second")
        path = f"/v1/jobs/{second['id']}/dependencies"
        self.check_refusals("POST", path, {"depends_on_job_id": first["id"]}, [
            ({"depends_on_job_id": None}, "depends_on_job_id"),
            ({"depends_on_job_id": NOBODY}, "depends_on_job_id"),
            ({"depends_on_job_id": "first"}, "depends_on_job_id"),
            ({"dependency_type": "never"}, "dependency_type"),
            ({"dependency_config": {"mode": "door"}}, "dependency_config.mode"),
            ({"dependency_config": {"within_ms": -1}}, "dependency_config.within_ms"),
            ({"job_id": first["id"]}, "job_id"), ({"colour": 1}, "colour")])
        self.depend(second, first)
        self.expect_error(409, "conflict", "POST", path, {"depends_on_job_id": first["id"]})

    def test_F_H11_a_cycle_is_refused_and_its_path_is_named(self):
        a, b, c = [self.job(name) for name in "abc"]
        self.depend(b, a)
        self.depend(c, b, dependency_config={"mode": "trigger"})
        for job, on, path in ((a, c, ("a -> c -> b -> a", "a -> b -> c -> a")),
                              (a, b, ("a -> b -> a",)), (a, a, ("a -> a",))):
            error = self.expect_error(422, "invalid", "POST", f"/v1/jobs/{job['id']}/dependencies",
                                      {"depends_on_job_id": on["id"]}, field="depends_on_job_id")
            self.assertTrue(any(words in error["message"] for words in path), error)
        self.assertEqual(self.items(f"/v1/jobs/{a['id']}/dependencies"), [])

    def test_F_H11_of_two_edits_at_once_that_close_a_cycle_one_fails(self):
        for i in range(10):
            a, b = self.job(f"a{i}"), self.job(f"b{i}")
            both = [self.in_thread(self.api, "POST", f"/v1/jobs/{job['id']}/dependencies",
                                   {"depends_on_job_id": on["id"]}) for job, on in ((a, b), (b, a))]
            self.assertEqual(sorted(call.result()[0] for call in both), [201, 422])

    def test_d7_the_end_of_one_job_starts_no_more_than_one_commit_takes(self):
        """All of it is made in the transaction of that end: 500 MiB there took 2 GB and 18 s."""
        trigger = {"mode": "trigger"}
        source, late = self.job("source"), self.job("late", payload="y" * 1000000)
        started = [self.job(f"started-{i}", payload="y" * 1000000) for i in range(16)]
        for job in started:
            self.depend(job, source, dependency_config=trigger)
        path, body = f"/v1/jobs/{late['id']}/dependencies", {"depends_on_job_id": source["id"]}
        self.expect_error(422, "invalid", "POST", path, {**body, "dependency_config": trigger},
                          field="depends_on_job_id")
        self.depend(late, source)  # a gate starts nothing
        small = self.job("small")
        self.depend(small, source, dependency_config=trigger)
        self.expect_error(422, "invalid", "PATCH", f"/v1/jobs/{small['id']}",
                          {"payload": "y" * 1000000}, field="payload")
        self.expect(200, "PATCH", f"/v1/jobs/{started[0]['id']}", {"payload": None})
        self.expect(200, "PATCH", f"/v1/jobs/{small['id']}", {"payload": "y" * 1000000})

    def test_d7_a_run_waits_at_the_gate_until_the_other_job_has_ended_well(self):
        first, second = self.job("first", max_retries=0), self.job("second")
        self.depend(second, first)
        waiting = self.expect(201, "POST", f"/v1/jobs/{second['id']}:run")
        self.assertEqual(waiting["status"], "blocked")
        self.expect(201, "POST", f"/v1/jobs/{first['id']}:run")
        self.assertEqual(self.work_off(op="fail")["job_id"], first["id"])
        self.assertEqual(self.task(waiting["id"])["status"], "blocked")
        self.expect(201, "POST", f"/v1/jobs/{first['id']}:run")
        self.assertEqual(self.work_off()["job_id"], first["id"])
        self.assertEqual(self.work_off()["id"], waiting["id"])

    def test_d7_the_end_of_a_run_triggers_the_job_that_depends_on_it(self):
        first, second = self.job("first", max_retries=0), self.job("second", payload="second")
        self.depend(second, first, dependency_type="failure",
                    dependency_config={"mode": "trigger"})
        self.expect(201, "POST", f"/v1/jobs/{first['id']}:run")
        self.work_off()
        self.assertEqual(self.items("/v1/tasks", job_id=second["id"]), [])
        self.expect(201, "POST", f"/v1/jobs/{first['id']}:run")
        self.work_off(op="fail")
        [task] = wait_until(lambda: self.items("/v1/tasks", job_id=second["id"]))
        self.assertEqual(task["payload"], "second")
        self.assertEqual(self.events(task["id"])[-1]["actor"], "SCHEDULER")


if __name__ == "__main__":
    unittest.main()
