"""Recurring patterns (D6): tasks made of a template job. Each test has a server of its own."""
import unittest

from harness import wait_until
from planning import NOBODY, PlanningTest


class RecurringTest(PlanningTest):
    def test_d1_a_pattern_is_made_shown_changed_and_deleted(self):
        job = self.job()
        config = {"timezone": "Europe/Berlin", "time": "09:00", "weekdays": ["monday", "FRI"]}
        reply = self.request("POST", "/v1/recurring",
                             {"name": "mornings", "pattern_type": "weekly",
                              "pattern_config": config, "template_job_id": job["id"]})
        made = reply.json
        self.assertEqual(reply.status, 201, made)
        path = f"/v1/recurring/{made['id']}"
        self.assertEqual(reply.headers["Location"], path)
        self.assertEqual((made["name"], made["pattern_type"], made["pattern_config"],
                          made["template_job_id"], made["is_active"], made["last_generated"],
                          made["error"]),
                         ("mornings", "weekly", config, job["id"], True, None, None))
        self.assertGreater(made["next_generation"], made["created_at"])
        self.assertEqual(self.expect(200, "GET", path), made)
        self.assertEqual(self.expect(200, "GET", "/v1/recurring/mornings"), made)
        changed = self.expect(200, "PATCH", path, {"pattern_type": "yearly", "name": "new year",
                                                   "pattern_config": {"month": 1, "day": 1}})
        self.assertEqual((changed["name"], changed["pattern_type"]), ("new year", "yearly"))
        self.assertTrue(changed["next_generation"].endswith("-01-01T00:00:00.000000Z"))
        self.expect(204, "DELETE", path)
        for method in ("GET", "DELETE", "PATCH"):
            self.expect_error(404, "not_found", method, path)

    def test_lists_are_filtered_and_paged(self):
        first, second = self.job("first"), self.job("second")
        made = [self.recurring(first, "a"), self.recurring(second, "b", is_active=False),
                self.recurring(second, "c", "yearly", {"month": 1, "day": 1})]
        ids = self.ids(made)
        self.assertEqual(self.ids(self.items("/v1/recurring")), ids[::-1])
        self.assertEqual(self.ids(self.items("/v1/recurring", template_job_id=second["id"])),
                         [ids[2], ids[1]])
        self.assertEqual(self.ids(self.items("/v1/recurring", name="a")), [ids[0]])
        self.assertEqual(self.ids(self.items("/v1/recurring", is_active="false")), [ids[1]])
        self.assertEqual(self.items("/v1/recurring", has_error="true"), [])
        self.assertEqual(self.items("/v1/recurring", next_before="2001-01-01T00:00:00Z"), [])
        for limit in (1, 2, 3):
            self.assertEqual(self.ids(self.pages("/v1/recurring", limit)), ids[::-1])

    def test_what_makes_no_sense_is_refused_with_its_field(self):
        job = self.job()
        base = {"name": "a", "pattern_type": "daily", "template_job_id": job["id"]}
        self.check_refusals("POST", "/v1/recurring", base, [
            ({"name": None}, "name"), ({"pattern_type": None}, "pattern_type"),
            ({"pattern_type": "hourly"}, "pattern_type"),
            ({"template_job_id": None}, "template_job_id"),
            ({"template_job_id": NOBODY}, "template_job_id"),
            ({"template_job_id": "report"}, "template_job_id"),
            ({"pattern_config": []}, "pattern_config"),
            ({"pattern_config": {"time": "25:00"}}, "pattern_config.time"),
            ({"pattern_config": {"timezone": "A/B"}}, "pattern_config.timezone"),
            ({"pattern_config": {"colour": 1}}, "pattern_config"),
            ({"pattern_type": "rrule", "pattern_config": {"rrule": "FREQ=NEVER"}},
             "pattern_config.rrule"),
            ({"pattern_type": "rrule", "pattern_config":
              {"rrule": "DTSTART:20200101T000000Z\nRRULE:FREQ=DAILY;COUNT=3"}}, "pattern_config"),
            ({"next_generation": None}, "next_generation")])
        made = self.recurring(job)
        self.check_refusals("PATCH", f"/v1/recurring/{made['id']}", {}, [
            ({"pattern_config": {"time": "x"}}, "pattern_config.time"), ({"name": None}, "name"),
            ({"pattern_type": None}, "pattern_type"),
            ({"template_job_id": None}, "template_job_id"),
            ({"template_job_id": NOBODY}, "template_job_id")])
        self.assertEqual(self.items("/v1/recurring"), [made])

    def test_unknown_ids_and_parameters_are_refused(self):
        for path in (f"/v1/recurring/{NOBODY}", "/v1/recurring/nobody"):
            for method, end in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("GET", "/upcoming"),
                                ("POST", ":pause"), ("POST", ":resume"), ("POST", ":run")):
                self.expect_error(404, "not_found", method, path + end)
        for query, field in (("colour=red", "colour"), ("template_job_id=x", "template_job_id"),
                             ("is_active=x", "is_active"), ("cursor=r", "cursor")):
            self.expect_error(422, "invalid", "GET", f"/v1/recurring?{query}", field=field)

    def test_d6_upcoming_and_preview_agree_and_explain(self):
        job = self.job()
        cases = [("daily", {"time": "02:30", "timezone": "Europe/Berlin"},
                  ["2027-03-27T01:30:00Z", "2027-03-28T01:00:00Z", "2027-03-29T00:30:00Z"]),
                 ("monthly", {"day": "last", "time": "09:00"},
                  ["2027-03-31T09:00:00Z", "2027-04-30T09:00:00Z", "2027-05-31T09:00:00Z"]),
                 ("rrule", {"rrule": "FREQ=WEEKLY;BYDAY=MO;BYHOUR=9;BYMINUTE=0;BYSECOND=0"},
                  ["2027-03-29T09:00:00Z", "2027-04-05T09:00:00Z", "2027-04-12T09:00:00Z"])]
        query = "count=3&from=2027-03-27T00:00:00Z"
        for kind, config, items in cases:
            with self.subTest(kind=kind):
                made = self.recurring(job, kind, kind, config)
                shown = self.expect(200, "GET", f"/v1/recurring/{made['id']}/upcoming?{query}")
                self.assertEqual(shown["items"], items)
                self.assertTrue(shown["explain"])
                preview = self.expect(200, "POST", f"/v1/recurring:preview?{query}",
                                      {"pattern_type": kind, "pattern_config": config})
                self.assertEqual(preview, shown)
        self.expect_error(422, "invalid", "POST", "/v1/recurring:preview", {},
                          field="pattern_type")

    def test_a_paused_pattern_has_nothing_planned_until_it_is_resumed(self):
        made = self.recurring(self.job())
        path = f"/v1/recurring/{made['id']}"
        self.assertFalse(self.expect(200, "POST", f"{path}:pause")["is_active"])
        self.assertEqual(self.expect(200, "GET", f"{path}/upcoming")["items"], [])
        resumed = self.expect(200, "POST", f"{path}:resume")
        self.assertEqual((resumed["is_active"], resumed["next_generation"]),
                         (True, made["next_generation"]))

    def test_a_pattern_can_be_run_now(self):
        job = self.job(payload=1)
        made = self.recurring(job)
        task = self.expect(201, "POST", f"/v1/recurring/{made['id']}:run")
        self.assertEqual((task["job_id"], task["payload"]), (job["id"], 1))

    def test_d6_a_pattern_makes_tasks_of_its_template(self):
        job = self.job(payload={"a": 1})
        made = self.recurring(job, "seconds", "rrule", {"rrule": "FREQ=SECONDLY"})
        tasks = wait_until(lambda: (found := self.items("/v1/tasks", job_id=job["id"]))
                           and len(found) >= 3 and found)
        for task in tasks:
            self.assertEqual((task["recurring_job_id"], task["payload"], task["schedule_id"]),
                             (made["id"], {"a": 1}, None))
        self.assertEqual(len({task["scheduled_at"] for task in tasks}), len(tasks))
        shown = self.expect(200, "GET", f"/v1/recurring/{made['id']}")
        self.assertGreaterEqual(shown["last_generated"], tasks[0]["scheduled_at"])
        self.assertGreater(shown["next_generation"], shown["last_generated"])


if __name__ == "__main__":
    unittest.main()
