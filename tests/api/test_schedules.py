"""Schedules (D1 to D4): when jobs make tasks, and that they do. Each test has a server of its own."""
import datetime
import unittest

from harness import wait_until
from planning import NOBODY, PlanningTest

BERLIN = {"schedule_type": "cron", "cron_expression": "30 2 * * *", "timezone": "Europe/Berlin"}


def soon(seconds):
    """A time in so many seconds from now, as requests have it."""
    at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def instant(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


class SchedulesTest(PlanningTest):
    def test_d1_a_schedule_is_made_shown_changed_and_deleted(self):
        job = self.job()
        reply = self.request("POST", f"/v1/jobs/{job['id']}/schedules",
                             {**BERLIN, "jitter_ms": 5, "misfire_cap": 7, "overlap": "skip",
                              "callback_url": "http://127.0.0.1:1/x"})
        made = reply.json
        self.assertEqual(reply.status, 201, made)
        path = f"/v1/schedules/{made['id']}"
        self.assertEqual(reply.headers["Location"], path)
        self.assertEqual((made["job_id"], made["schedule_type"], made["cron_expression"],
                          made["timezone"], made["jitter_ms"], made["misfire"],
                          made["misfire_grace_ms"], made["misfire_cap"], made["overlap"],
                          made["dst"], made["is_active"], made["last_fire_at"], made["error"]),
                         (job["id"], "cron", "30 2 * * *", "Europe/Berlin", 5, "fire_once", 60000,
                          7, "skip", "standard", True, None, None))
        self.assertGreater(made["next_fire_at"], made["created_at"])
        self.assertEqual(self.expect(200, "GET", path), made)
        changed = self.expect(200, "PATCH", path, {"cron_expression": "0 4 1 1 *",
                                                   "timezone": None})
        self.assertEqual((changed["cron_expression"], changed["timezone"], changed["overlap"]),
                         ("0 4 1 1 *", "UTC", "skip"))
        self.assertTrue(changed["next_fire_at"].endswith("-01-01T04:00:00.000000Z"))
        changed = self.expect(200, "PATCH", path, {"schedule_type": "interval",
                                                   "interval_seconds": 90})
        self.assertEqual((changed["cron_expression"], changed["interval_seconds"]), (None, 90))
        self.expect(204, "DELETE", path)
        for method in ("GET", "DELETE"):
            self.expect_error(404, "not_found", method, path)

    def test_a_schedule_is_also_made_beside_its_job(self):
        job = self.job()
        made = self.expect(201, "POST", "/v1/schedules", {"job_id": job["id"], **BERLIN})
        self.assertEqual(made["job_id"], job["id"])
        by_name = self.expect(201, "POST", "/v1/jobs/report/schedules",
                              {"job_id": job["id"], **BERLIN})
        self.assertEqual(self.items("/v1/jobs/report/schedules"), [by_name, made])

    def test_the_type_may_be_left_out_where_a_field_says_it(self):
        job = self.job()
        for fields, kind in (({"cron_expression": "@daily"}, "cron"),
                             ({"interval_seconds": 3600}, "interval"),
                             ({"scheduled_at": soon(3600)}, "once")):
            self.assertEqual(self.schedule(job, **fields)["schedule_type"], kind)
        self.expect_error(422, "invalid", "POST", "/v1/jobs/report/schedules", {},
                          field="schedule_type")

    def test_lists_are_filtered_and_paged(self):
        first, second = self.job("first"), self.job("second")
        made = [self.schedule(first, cron_expression="0 0 1 1 *"),
                self.schedule(first, interval_seconds=3600, is_active=False),
                self.schedule(second, scheduled_at=soon(7200)),
                self.schedule(second, interval_seconds=600)]
        ids = self.ids(made)
        self.assertEqual(self.ids(self.items("/v1/schedules")), ids[::-1])
        self.assertEqual(self.ids(self.items("/v1/schedules", job_id=second["id"])),
                         [ids[3], ids[2]])
        self.assertEqual(self.ids(self.items("/v1/schedules", schedule_type="interval")),
                         [ids[3], ids[1]])
        self.assertEqual(self.ids(self.items("/v1/schedules", is_active="false")), [ids[1]])
        self.assertEqual(self.items("/v1/schedules", has_error="true"), [])
        self.assertEqual(self.ids(self.items("/v1/schedules", next_before=soon(3600))), [ids[3]])
        self.assertEqual(self.ids(self.items(f"/v1/jobs/{first['id']}/schedules",
                                             schedule_type="cron")), [ids[0]])
        for limit in (1, 3, 4):
            self.assertEqual(self.ids(self.pages("/v1/schedules", limit)), ids[::-1])
            self.assertEqual(self.ids(self.pages("/v1/jobs/first/schedules", limit)),
                             [ids[1], ids[0]])

    def test_what_makes_no_sense_is_refused_with_its_field(self):
        job = self.job()
        cases = [
            ({"schedule_type": "weekly"}, "schedule_type"),
            ({"cron_expression": None}, "cron_expression"),
            ({"cron_expression": "61 * * * *"}, "cron_expression"),
            ({"cron_expression": "* * * *"}, "cron_expression"),
            ({"cron_expression": "0 0 30 2 *"}, "cron_expression"),
            ({"timezone": "Mars/Olympus"}, "timezone"), ({"timezone": "../etc"}, "timezone"),
            ({"interval_seconds": 5}, "interval_seconds"), ({"starts_at": "tomorrow"}, "starts_at"),
            ({"starts_at": "2027-01-02T00:00:00Z", "ends_at": "2027-01-01T00:00:00Z"}, "ends_at"),
            ({"misfire": "never"}, "misfire"), ({"misfire_grace_ms": -1}, "misfire_grace_ms"),
            ({"misfire_cap": 0}, "misfire_cap"), ({"overlap": "maybe"}, "overlap"),
            ({"dst": "twice"}, "dst"), ({"jitter_ms": -1}, "jitter_ms"),
            ({"callback_url": "ftp://a"}, "callback_url"), ({"colour": 1}, "colour")]
        self.check_refusals("POST", f"/v1/jobs/{job['id']}/schedules", BERLIN, cases)
        self.check_refusals("POST", "/v1/schedules", {**BERLIN, "job_id": job["id"]}, [
            ({"job_id": None}, "job_id"), ({"job_id": NOBODY}, "job_id"),
            ({"job_id": "report"}, "job_id")])
        made = self.schedule(job, **BERLIN)
        other = self.job("other")
        self.check_refusals("PATCH", f"/v1/schedules/{made['id']}", {}, [
            ({"cron_expression": "x"}, "cron_expression"), ({"timezone": "X/Y"}, "timezone"),
            ({"job_id": other["id"]}, "job_id"), ({"schedule_type": "once"}, "scheduled_at"),
            ({"schedule_type": None}, "schedule_type"), ({"job_id": None}, "job_id"),
            ({"cron_expression": None}, "cron_expression"),
            ({"next_fire_at": soon(5)}, "next_fire_at")])
        self.check_refusals("POST", f"/v1/jobs/{job['id']}/schedules", {}, [
            ({"schedule_type": "interval", "interval_seconds": 0}, "interval_seconds"),
            ({"schedule_type": "once"}, "scheduled_at"),
            ({"schedule_type": "once", "scheduled_at": "2001-01-01T00:00:00Z"}, "scheduled_at"),
            ({**BERLIN, "job_id": other["id"]}, "job_id")])
        self.assertEqual(self.items("/v1/schedules"), [made])

    def test_unknown_ids_and_parameters_are_refused(self):
        for path in (f"/v1/schedules/{NOBODY}", "/v1/schedules/nobody"):
            for method, end in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("GET", "/upcoming"),
                                ("POST", ":pause"), ("POST", ":resume"), ("POST", ":run")):
                self.expect_error(404, "not_found", method, path + end)
            self.expect_error(404, "not_found", "POST", f"{path}:explode")
        for query, field in (("colour=red", "colour"), ("job_id=x", "job_id"),
                             ("schedule_type=x", "schedule_type"), ("is_active=x", "is_active"),
                             ("has_error=x", "has_error"), ("next_before=x", "next_before"),
                             ("cursor=s", "cursor"), ("limit=-1", "limit")):
            self.expect_error(422, "invalid", "GET", f"/v1/schedules?{query}", field=field)
        made = self.schedule(self.job(), **BERLIN)
        for query, field in (("count=0", "count"), ("count=x", "count"), ("from=x", "from"),
                             ("to=x", "to")):
            self.expect_error(422, "invalid", "GET",
                              f"/v1/schedules/{made['id']}/upcoming?{query}", field=field)
        self.expect_error(422, "invalid", "POST", f"/v1/schedules/{made['id']}:pause", {"a": 1},
                          field="a")

    def test_a_paused_schedule_has_nothing_planned_until_it_is_resumed(self):
        made = self.schedule(self.job(), **BERLIN)
        path = f"/v1/schedules/{made['id']}"
        paused = self.expect(200, "POST", f"{path}:pause")
        self.assertFalse(paused["is_active"])
        self.assertEqual(self.expect(200, "GET", f"{path}/upcoming")["items"], [])
        self.assertIsNone(self.expect(200, "GET", "/v1/jobs/report")["next_execution"])
        resumed = self.expect(200, "POST", f"{path}:resume")
        self.assertTrue(resumed["is_active"])
        self.assertEqual(resumed["next_fire_at"], made["next_fire_at"])
        self.assertEqual(self.expect(200, "GET", path), resumed)

    def test_a_schedule_can_be_run_now(self):
        job = self.job(payload=1)
        made = self.schedule(job, **BERLIN)
        task = self.expect(201, "POST", f"/v1/schedules/{made['id']}:run", {"payload": 2})
        self.assertEqual((task["job_id"], task["payload"]), (job["id"], 2))


class PreviewTest(PlanningTest):
    def preview(self, **fields):
        return self.expect(200, "POST", "/v1/schedules:preview", fields)

    def test_F_C4_d3_a_wall_time_that_does_not_exist_fires_at_the_end_of_the_gap(self):
        spring = {**BERLIN, "from": "2027-03-27T00:00:00Z", "count": 3}
        shown = self.preview(**spring)
        self.assertEqual(shown["items"], ["2027-03-27T01:30:00Z", "2027-03-28T01:00:00Z",
                                          "2027-03-29T00:30:00Z"])
        self.assertEqual(shown["explain"], "At 02:30, Europe/Berlin")
        self.assertEqual(self.preview(**spring, dst="skip")["items"],
                         ["2027-03-27T01:30:00Z", "2027-03-29T00:30:00Z", "2027-03-30T00:30:00Z"])

    def test_F_C5_d3_a_wall_time_that_comes_twice_fires_once_or_twice(self):
        autumn = {**BERLIN, "from": "2027-10-31T00:00:00Z", "count": 2}
        self.assertEqual(self.preview(**autumn)["items"],
                         ["2027-10-31T00:30:00Z", "2027-11-01T01:30:00Z"])
        self.assertEqual(self.preview(**autumn, dst="both")["items"],
                         ["2027-10-31T00:30:00Z", "2027-10-31T01:30:00Z"])

    def test_from_is_the_first_instant_that_counts(self):
        for start, first in (("2027-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
                             ("2027-01-01T00:00:00.000001Z", "2027-01-02T00:00:00Z"),
                             ("2027-01-01T01:00:00+01:00", "2027-01-01T00:00:00Z")):
            self.assertEqual(self.preview(cron_expression="@daily", count=1, **{"from": start})
                             ["items"], [first])

    def test_F_C7_a_leap_day_is_found_over_a_century(self):
        self.assertEqual(self.preview(cron_expression="0 0 29 2 *", count=2,
                                      **{"from": "2096-02-29T00:00:01Z"})["items"],
                         ["2104-02-29T00:00:00Z", "2108-02-29T00:00:00Z"])

    def test_all_kinds_are_previewed_and_explained(self):
        start = "2027-05-01T00:00:00Z"
        for fields, items, words in (
                ({"interval_seconds": 5400, "starts_at": start},
                 ["2027-05-01T00:00:00Z", "2027-05-01T01:30:00Z"],
                 "Every 90 minutes, UTC, from 2027-05-01 00:00"),
                ({"scheduled_at": "2027-05-02T12:00:00Z"}, ["2027-05-02T12:00:00Z"],
                 "Once, at 2027-05-02 12:00, UTC"),
                ({"schedule_type": "immediate"}, [start], "Once, at 2027-05-01 00:00, UTC"),
                ({"cron_expression": "0 9 * * MON-FRI"},
                 ["2027-05-03T09:00:00Z", "2027-05-04T09:00:00Z"],
                 "At 09:00, Monday to Friday, UTC"),
                ({"cron_expression": "*/30 * * * * *", "ends_at": "2027-05-01T00:00:30Z"},
                 ["2027-05-01T00:00:00Z", "2027-05-01T00:00:30Z"],
                 "Every 30 seconds, UTC, until 2027-05-01 00:00:30")):
            with self.subTest(fields=fields):
                shown = self.preview(**fields, count=2, **{"from": start})
                self.assertEqual(shown, {"items": items, "explain": words})

    def test_a_preview_saves_nothing_and_refuses_what_a_schedule_refuses(self):
        self.assertEqual(len(self.preview(**BERLIN)["items"]), 10)
        self.assertEqual(len(self.preview(**BERLIN, count=1000)["items"]), 1000)
        self.check_refusals("POST", "/v1/schedules:preview", BERLIN, [
            ({"cron_expression": "x"}, "cron_expression"), ({"timezone": "A/B"}, "timezone"),
            ({"count": 0}, "count"), ({"from": "x"}, "from"), ({"colour": 1}, "colour"),
            ({"interval_seconds": 5}, "interval_seconds")])
        self.expect_error(422, "invalid", "POST", "/v1/schedules:preview", {},
                          field="schedule_type")
        self.expect_error(400, "malformed", "POST", "/v1/schedules:preview", b"[")
        self.expect_error(405, "method_not_allowed", "GET", "/v1/schedules:preview")
        self.assertEqual(self.items("/v1/schedules"), [])

    def test_upcoming_is_what_the_preview_said(self):
        made = self.schedule(self.job(), **BERLIN)
        path = f"/v1/schedules/{made['id']}/upcoming"
        shown = self.expect(200, "GET", f"{path}?count=3&from=2027-03-27T00:00:00Z")
        self.assertEqual(shown, self.preview(**BERLIN, count=3, **{"from": "2027-03-27T00:00:00Z"}))
        shown = self.expect(200, "GET", path)["items"]
        self.assertEqual(len(shown), 10)
        self.assertEqual(instant(shown[0]), instant(made["next_fire_at"]))
        self.assertEqual(len(self.expect(200, "GET", f"{path}?count=5000")["items"]), 1000)


class FiringTest(PlanningTest):
    def fired(self, schedule, count):
        """Tasks of the schedule, oldest first, as soon as there are so many."""
        return wait_until(lambda: (found := self.items("/v1/tasks", schedule_id=schedule["id"]))
                          and len(found) >= count and found[::-1])

    def test_d4_a_schedule_with_seconds_fires_every_second_each_once(self):
        job = self.job(payload={"a": 1}, task_type="tick")
        made = self.schedule(job, cron_expression="* * * * * *")
        tasks = self.fired(made, 4)
        instants = [instant(task["scheduled_at"]) for task in tasks]
        self.assertEqual([b - a for a, b in zip(instants, instants[1:])],
                         [datetime.timedelta(seconds=1)] * (len(instants) - 1))
        self.assertTrue(all(at.microsecond == 0 for at in instants))
        for task in tasks:
            self.assertEqual((task["job_id"], task["schedule_id"], task["type"], task["payload"]),
                             (job["id"], made["id"], "tick", {"a": 1}))
            self.assertEqual(self.events(task["id"])[-1]["actor"], "SCHEDULER")
        self.assertGreaterEqual(self.work_off()["scheduled_at"], made["created_at"])
        shown = self.expect(200, "GET", f"/v1/schedules/{made['id']}")
        self.assertGreaterEqual(shown["last_fire_at"], tasks[-1]["scheduled_at"])
        self.expect(200, "POST", f"/v1/schedules/{made['id']}:pause")
        count = len(self.items("/v1/tasks", schedule_id=made["id"]))
        other = self.schedule(job, cron_expression="* * * * * *")
        self.fired(other, 2)  # two seconds later the paused one has made nothing more
        self.assertEqual(len(self.items("/v1/tasks", schedule_id=made["id"])), count)

    def test_d2_immediate_fires_at_once_and_once_only(self):
        job = self.job()
        made = self.schedule(job, schedule_type="immediate")
        [task] = self.fired(made, 1)
        self.assertEqual(self.work_off()["id"], task["id"])
        shown = wait_until(lambda: (s := self.expect(200, "GET", f"/v1/schedules/{made['id']}"))
                           and s["last_fire_at"] and s)
        self.assertIsNone(shown["next_fire_at"])
        self.assertEqual(self.expect(200, "GET", f"/v1/schedules/{made['id']}/upcoming")["items"],
                         [])
        self.fired(self.schedule(job, cron_expression="* * * * * *"), 2)
        self.assertEqual(len(self.items("/v1/tasks", schedule_id=made["id"])), 1)

    def test_what_fired_and_what_did_not_is_counted(self):
        made = self.request("POST", f"/v1/jobs/{self.job()['id']}/schedules",
                            {"schedule_type": "immediate"}).json
        wait_until(lambda: self.request("GET", f"/v1/schedules/{made['id']}").json["last_fire_at"])
        text = self.request("GET", "/metrics").body.decode()
        self.assertIn("\nperdura_schedules_fired_total 1\n", text)
        self.assertIn("\nperdura_schedules_missed_total 0\n", text)
        self.assertIn("\nperdura_schedules_skipped_total 0\n", text)

    def test_d2_what_would_never_fire_is_refused(self):
        path = f"/v1/jobs/{self.job()['id']}/schedules"
        for times in ({**BERLIN, "ends_at": "2020-01-01T00:00:00Z"},
                      {"interval_seconds": 7200, "ends_at": soon(3600)}):
            with self.subTest(times):
                self.expect_error(422, "invalid", "POST", path, times, field="ends_at")
        self.assertEqual(self.items("/v1/schedules"), [])

    def test_d2_once_fires_at_its_time(self):
        at = soon(4)
        made = self.schedule(self.job(), scheduled_at=at)
        self.assertEqual(self.items("/v1/tasks"), [])
        [task] = self.fired(made, 1)
        self.assertEqual(task["scheduled_at"], at)
        self.assertGreaterEqual(task["created_at"], at)

    def test_d5_an_inactive_job_lets_its_instants_pass(self):
        job = self.job(is_active=False)
        made = self.schedule(job, cron_expression="* * * * * *")
        active = self.schedule(self.job("other"), cron_expression="* * * * * *")
        self.fired(active, 3)
        self.assertEqual(self.items("/v1/tasks", schedule_id=made["id"]), [])
        woken = soon(0)
        self.expect(200, "PATCH", f"/v1/jobs/{job['id']}", {"is_active": True})
        for task in self.fired(made, 2):
            self.assertGreater(instant(task["scheduled_at"]),
                               instant(woken) - datetime.timedelta(seconds=1))

    def test_d4_overlap_skip_makes_no_second_run_while_one_is_open(self):
        made = self.schedule(self.job(), cron_expression="* * * * * *", overlap="skip")
        self.fired(made, 1)
        other = self.schedule(self.job("other"), cron_expression="* * * * * *")
        self.fired(other, 3)
        self.assertEqual(len(self.items("/v1/tasks", schedule_id=made["id"])), 1)

    def test_d4_a_killed_server_fires_nothing_twice_and_misses_nothing_within_the_grace(self):
        made = self.schedule(self.job(), cron_expression="* * * * * *")
        self.fired(made, 2)
        self.server.stop(9)
        self.server.start()
        tasks = self.fired(made, 5)
        instants = [instant(task["scheduled_at"]) for task in tasks]
        self.assertEqual([b - a for a, b in zip(instants, instants[1:])],
                         [datetime.timedelta(seconds=1)] * (len(instants) - 1))


if __name__ == "__main__":
    unittest.main()
