"""Jobs, schedules, recurring patterns, categories and dependencies from the command line, against a
real server (D1, D2, D4 to D8)."""
import json
import unittest

from cli_harness import NO_TASK, ServerTest, wait_until

CONFIG = r"""
handlers:
  - type: "report:*"
    command: ["sh", "-c", "read -r task; echo '{\"result\":{\"made\":true}}' >&3"]
  - type: bad
    command: ["sh", "-c", "exit 3"]
    max_retries: 0
"""


class JobTest(ServerTest):
    config = CONFIG

    def json(self, *arguments, **variables):
        return json.loads(self.perdura(*arguments, "--json", **variables).stdout)

    def items(self, *arguments):
        return self.json(*arguments)["items"]


class InForce(JobTest):
    config = CONFIG + """
  - type: slow
    command: ["true"]
    max_retries: 9
    timeout: 1500ms
rules:
  - type: ruled
    priority: 77
"""

    def test_d5_a_job_shows_what_its_runs_get_and_who_says_so(self):
        for name, flags in (("slow", []), ("own", ["--type", "slow", "--max-retries", "2"]),
                            ("ruled", [])):
            self.perdura("job", "create", name, *flags)
            job = self.json("job", "show", name)
            task = self.json("job", "run", name)
            self.assertEqual((job["max_retries"], job["timeout_ms"], job["queue"]),
                             (task["max_retries"], task["timeout_ms"], task["queue"]), name)
        self.assertEqual((task["priority"], job["priority"], job["value_from"]["priority"]),
                         (77, 77, "rule"))
        slow = self.perdura("job", "show", "slow").stdout
        self.assertRegex(slow, r"(?m)^max retries +9$")
        self.assertRegex(slow, r"(?m)^retries set by +the handler's configuration$")
        self.assertRegex(slow, r"(?m)^timeout +1.5s$")
        self.assertRegex(slow, r"(?m)^timeout set by +the handler's configuration$")
        own = self.json("job", "show", "own")["value_from"]
        self.assertEqual((own["max_retries"], own["timeout_seconds"], own["priority"]),
                         ("job", "handler", "category"))


class Jobs(JobTest):
    def test_d1_a_job_is_made_shown_changed_and_deleted(self):
        job_id = self.perdura("job", "create", "report", "--type", "report:daily", "--payload",
                              '{"of":"day"}', "--category", "reports", "--timeout", "10m",
                              "--description", "the daily one").stdout.strip()
        job = self.json("job", "show", "report")
        self.assertEqual(job["id"], job_id)
        self.assertEqual((job["task_type"], job["payload"], job["timeout_seconds"], job["queue"]),
                         ("report:daily", {"of": "day"}, 600, "medium-priority"))
        self.assertEqual(self.json("job", "show", job_id), job)
        text = self.perdura("job", "show", "report").stdout
        self.assertRegex(text, r"(?m)^timeout +10m 00s$")
        self.assertRegex(self.perdura("job", "list").stdout, r"(?m)^report +" + job_id)
        changed = self.json("job", "update", "report", "--priority", "high", "--unset",
                            "timeout", "--inactive", "--name", "daily")
        self.assertEqual((changed["priority"], changed["timeout_seconds"], changed["is_active"],
                          changed["name"]), ("high", 120, False, "daily"))
        self.assertTrue(self.json("job", "update", "daily", "--active")["is_active"])
        gone = json.loads(self.perdura("job", "delete", "daily", "--json").stdout)
        self.assertEqual(set(gone), {"id", "deleted"})
        self.assertIn("there is no job 'daily'", self.refused(3, "job", "show", "daily"))
        self.assertEqual(self.items("job", "list"), [])
        self.assertEqual(len(self.items("job", "list", "--with-deleted")), 1)

    def test_d1_a_deleted_job_is_marked_and_its_history_stays(self):
        job_id = self.perdura("job", "create", "old", "--type", "nothing").stdout.strip()
        self.perdura("job", "run", "old")
        self.perdura("job", "delete", "old")
        self.assertRegex(self.perdura("job", "list", "--with-deleted").stdout, rf"(?m)^old +{job_id} .* deleted ")
        self.assertRegex(self.perdura("job", "show", job_id).stdout, r"(?m)^deleted +2")
        self.assertIsNotNone(self.json("job", "show", job_id)["deleted_at"])
        self.assertIn("attempts since", self.perdura("job", "history", job_id).stdout)
        for words in (("show", "old"), ("history", "old"), ("run", job_id), ("update", job_id, "--name", "x")):
            self.refused(3, "job", *words)

    def test_a_job_and_its_schedule_are_made_in_one_go(self):
        done = self.perdura("job", "create", "report", "--type", "report:daily", "--payload", "{}",
                            "--cron", "0 9 * * *", "--tz", "Europe/Paris", "--jitter", "30s")
        schedule = self.json("schedule", "show", "report")
        self.assertEqual(schedule["job_id"], done.stdout.strip())
        self.assertIn(f"schedule {schedule['id']} fires next at {schedule['next_fire_at']}",
                      done.stderr)
        self.assertEqual((schedule["cron_expression"], schedule["timezone"],
                          schedule["jitter_ms"]), ("0 9 * * *", "Europe/Paris", 30000))
        self.assertIn("0 9 * * *", self.perdura("job", "show", "report").stdout)

    def test_a_job_whose_schedule_is_refused_is_not_left_behind(self):
        self.assertIn("time zone", self.refused(1, "job", "create", "report", "--cron", "@daily",
                                                "--tz", "Nowhere/X"))
        self.assertEqual(self.items("job", "list"), [])
        done = self.perdura("job", "create", "report", "--cron", "0 25 * * *", code=1)
        self.assertIn("    ^~\nperdura: the hour (field 2", done.stderr)
        self.assertIn("belongs to a schedule",
                      self.refused(2, "job", "create", "report", "--jitter", "5s"))

    def test_jobs_go_by_name_where_only_one_has_it(self):
        ids = [self.perdura("job", "create", "twin").stdout.strip()]
        self.assertIn(f"there is a job of that name ({ids[0]}); --another makes a second one",
                      self.refused(1, "job", "create", "twin"))
        ids.append(self.perdura("job", "create", "twin", "--another").stdout.strip())
        sentence = self.refused(1, "job", "show", "twin")
        for job_id in ids:
            self.assertIn(job_id, sentence)
        self.assertEqual(self.json("job", "show", ids[0])["id"], ids[0])
        self.assertIn("there is no job", self.refused(3, "job", "run", "nobody"))
        self.refused(3, "job", "show", NO_TASK)

    def test_a_job_that_is_not_active_promises_nothing(self):
        done = self.perdura("job", "create", "idle", "--inactive", "--cron", "0 9 * * *")
        self.assertIn("fires once the job is active", done.stderr)
        self.assertIsNone(self.json("job", "show", "idle")["next_execution"])
        self.assertNotIn("NEXT", self.perdura("job", "show", "idle").stdout)
        self.assertIsNotNone(self.json("job", "update", "idle", "--active")["next_execution"])
        self.assertIn("NEXT", self.perdura("job", "show", "idle").stdout)
        self.perdura("category", "update", "general", "--inactive")
        self.assertIsNone(self.json("job", "show", "idle")["next_execution"])
        done = self.perdura("job", "create", "idle too", "--cron", "0 9 * * *")
        self.assertIn("fires once the job's category is active", done.stderr)
        self.assertIn("--ends-at", self.refused(1, "schedule", "create", "--job", "idle", "--every",
                                              "1h", "--ends-at", "2020-01-01"))

    def test_a_run_is_waited_for_and_history_says_how_runs_went(self):
        """D8"""
        self.perdura("job", "create", "report", "--type", "report:daily")
        self.perdura("job", "create", "broken", "--type", "bad")
        done = self.perdura("job", "run", "report", "--wait", "--payload", '{"now":1}')
        task_id, result = done.stdout.splitlines()
        self.assertEqual(json.loads(result), {"made": True})
        task = self.task(task_id)
        self.assertEqual(task["payload"], {"now": 1})
        self.perdura("job", "run", "report", "--wait")
        self.perdura("job", "run", "broken", "--wait", code=1)
        history = self.perdura("job", "history", "report").stdout
        self.assertRegex(history, r"2 attempts since \S+: 2 completed; 100\.0% succeeded; \S+ on "
                                  r"average, \S+ at most")
        self.assertIn(task_id, history)
        failed = self.perdura("job", "history", "broken", "--status", "failed").stdout
        self.assertIn("1 attempt since", failed)
        self.assertIn("0.0% succeeded", failed)
        self.assertEqual(self.items("job", "history", "broken", "--status", "completed"), [])
        self.assertEqual(self.items("job", "history", "report", "--since", "+1h"), [])
        self.assertEqual(self.json("job", "show", "broken")["last_execution"]["status"],
                         "dead_letter")


class Schedules(JobTest):
    def setUp(self):
        super().setUp()
        self.job_id = self.perdura("job", "create", "report", "--type",
                                   "report:daily").stdout.strip()

    def create(self, *arguments):
        return self.perdura("schedule", "create", "--job", "report", *arguments).stdout.strip()

    def test_d2_each_kind_of_schedule_is_made_by_a_flag(self):
        for arguments, kind in ((("--cron", "0 9 * * 1-5"), "cron"), (("--every", "5m"), "interval"),
                                (("--at", "+1d"), "once"), (("--now",), "immediate")):
            with self.subTest(kind):
                schedule = self.json("schedule", "show", self.create(*arguments))
                self.assertEqual(schedule["schedule_type"], kind)
        self.assertEqual(len(self.items("schedule", "list", "--job", "report")), 4)
        self.assertEqual(len(self.items("schedule", "list", "--type", "cron")), 1)
        self.assertIn("several have the name", self.refused(1, "schedule", "show", "report"))

    def test_d4_what_a_schedule_fires_runs(self):
        schedule_id = self.create("--now")
        def fired():
            tasks = self.items("task", "list", "--schedule-id", schedule_id)
            return tasks if tasks and tasks[0]["status"] == "completed" else None
        tasks = wait_until(fired, what="the task of the schedule")
        self.assertEqual((len(tasks), tasks[0]["job_id"]), (1, self.job_id))

    def test_d8_history_has_the_planned_beside_the_started_time(self):
        self.create("--now")
        [attempt] = wait_until(lambda: self.items("job", "history", "report", "--status",
                                                  "completed"))
        self.assertLess(attempt["planned_at"], attempt["started_at"])
        header, line = self.perdura("job", "history", "report").stdout.splitlines()[-2:]
        self.assertEqual(header.split()[:3], ["PLANNED", "STARTED", "STATUS"])
        self.assertEqual(line.split()[:3],
                         [attempt["planned_at"], attempt["started_at"], "completed"])

    def test_all_fields_arrive_and_can_be_changed(self):
        schedule_id = self.create("--cron", "30 2 * * *", "--tz", "America/New_York", "--misfire",
                                  "fire_all", "--misfire-grace", "5m", "--misfire-cap", "7",
                                  "--overlap", "queue", "--dst", "both", "--jitter", "10s",
                                  "--starts-at", "2030-01-01T00:00:00Z", "--ends-at",
                                  "2031-01-01T00:00:00Z", "--paused")
        schedule = self.json("schedule", "show", schedule_id)
        self.assertEqual({key: schedule[key] for key in
                          ("misfire", "misfire_grace_ms", "misfire_cap", "overlap", "dst",
                           "jitter_ms", "is_active")},
                         {"misfire": "fire_all", "misfire_grace_ms": 300000, "misfire_cap": 7,
                          "overlap": "queue", "dst": "both", "jitter_ms": 10000,
                          "is_active": False})
        self.assertTrue(schedule["ends_at"].startswith("2031-01-01T00:00:00"))
        text = self.perdura("schedule", "update", "report", "--every", "90m", "--unset",
                            "ends_at,starts_at").stdout
        self.assertRegex(text, r"(?m)^every +1h 30m$")
        self.assertRegex(text, r"(?m)^job +report$")
        schedule = self.json("schedule", "show", "report")
        self.assertEqual((schedule["schedule_type"], schedule["cron_expression"],
                          schedule["ends_at"]), ("interval", None, None))
        self.assertIsNone(schedule["next_fire_at"])
        self.assertTrue(self.json("schedule", "resume", "report")["next_fire_at"])
        self.assertFalse(self.json("schedule", "pause", "report")["is_active"])
        self.perdura("schedule", "delete", schedule_id)
        self.assertEqual(self.items("schedule", "list"), [])

    def test_upcoming_and_preview_list_instants_as_clocks_show_them(self):
        self.create("--cron", "30 1 * * *", "--tz", "America/New_York", "--dst", "both")
        at = ("--from", "2027-11-07T00:00:00Z", "--count", "3")
        expected = ["2027-11-07T05:30:00Z", "2027-11-07T06:30:00Z", "2027-11-08T06:30:00Z"]
        self.assertEqual(self.items("schedule", "upcoming", "report", *at), expected)
        self.assertEqual(self.items("schedule", "preview", "--cron", "30 1 * * *", "--tz",
                                    "America/New_York", "--dst", "both", *at), expected)
        lines = self.perdura("schedule", "upcoming", "report", *at).stdout.splitlines()
        self.assertEqual(lines[0], "At 01:30, America/New_York")
        self.assertTrue(lines[4].startswith("Sun 2027-11-07 01:30:00  -05:00 EST"), lines[4])
        self.assertIn("the first of two 01:30", lines[3])
        self.assertIn("the second of two 01:30", lines[4])
        self.assertEqual(len(self.items("schedule", "list")), 1)

    def test_times_without_a_zone_are_those_of_the_schedules(self):
        schedule = self.json("schedule", "create", "--job", "report", "--at", "2031-07-01T09:00",
                             "--tz", "Europe/Paris", "--ends-at", "2031-07-02")
        self.assertEqual((schedule["scheduled_at"], schedule["ends_at"]),
                         ("2031-07-01T07:00:00.000000Z", "2031-07-01T22:00:00.000000Z"))
        self.assertIn("--every 5m", self.refused(2, "schedule", "create", "--job", "report",
                                                 "--cron", "@every 5m"))

    def test_what_a_schedule_runs_can_be_run_now(self):
        self.create("--cron", "0 0 1 1 *")
        task_id = self.perdura("schedule", "run", "report").stdout.strip()
        self.assertEqual(self.task(task_id)["job_id"], self.job_id)

    def test_d2_a_mistyped_zone_is_told_which_one_may_be_meant(self):
        for words in (["schedule", "create", "--job", "report", "--cron", "@daily"],
                      ["schedule", "preview", "--cron", "@daily"],
                      ["category", "create", "nightly", "--windows", "22:00-06:00"],
                      ["recurring", "create", "monthly", "--job", "report", "--pattern", "daily"]):
            with self.subTest(words):
                self.assertTrue(self.refused(1, *words, "--tz", "Europe/Pari")
                                .endswith("; did you mean 'Europe/Paris'?"))

    def test_the_zone_of_this_machine_can_be_meant(self):
        schedule_id = self.perdura("schedule", "create", "--job", "report", "--cron", "@daily",
                                   "--tz", "local", TZ="Asia/Tokyo").stdout.strip()
        self.assertEqual(self.json("schedule", "show", schedule_id)["timezone"], "Asia/Tokyo")

    def test_wrong_usage_is_refused(self):
        for words in (["create", "--cron", "@daily"], ["create", "--job", "report"],
                      ["create", "--job", "report", "--cron", "@daily", "--every", "5m"],
                      ["create", "--job", "report", "--every", "500ms"],
                      ["create", "--job", "report", "--now", "--overlap", "maybe"],
                      ["update", "report"], ["preview"]):
            with self.subTest(words):
                self.refused(2, "schedule", *words)
        self.refused(3, "schedule", "show", NO_TASK)
        self.refused(3, "schedule", "show", "nobody")


class Recurring(JobTest):
    def setUp(self):
        super().setUp()
        self.perdura("job", "create", "pay", "--type", "report:pay")

    def test_d6_patterns_are_made_from_flags(self):
        for name, arguments, words in (
                ("a", ("daily", "--time", "09:30"), "Every day at 09:30"),
                ("b", ("weekly", "--weekdays", "MON,THU"), "Every week on Monday and Thursday"),
                ("c", ("monthly", "--day", "-1", "--time", "17:00"),
                 "Every month on the last day of the month at 17:00"),
                ("d", ("monthly", "--weekday", "fri", "--nth", "2"), "second Friday"),
                ("e", ("yearly", "--month", "3", "--day", "1"), "March"),
                ("f", ("rrule", "--rrule", "FREQ=MONTHLY;BYDAY=2TU"), "second Tuesday")):
            with self.subTest(name):
                self.perdura("recurring", "create", name, "--job", "pay", "--pattern", *arguments)
                text = self.perdura("recurring", "upcoming", name, "--count", "2").stdout
                self.assertIn(words, text)
        self.assertEqual(len(self.items("recurring", "list")), 6)
        self.assertRegex(self.perdura("recurring", "list").stdout, r"(?m)^f +\S+ +pay +rrule")

    def test_upcoming_is_told_in_the_zone_of_the_rule_with_what_clocks_do(self):
        rule = "DTSTART;TZID=America/New_York:20270312T023000\nRRULE:FREQ=DAILY"
        self.perdura("recurring", "create", "early", "--job", "pay", "--pattern", "rrule",
                     "--rrule", rule)
        lines = self.perdura("recurring", "upcoming", "early", "--from", "2027-03-13T00:00:00Z",
                             "--count", "2").stdout.splitlines()
        self.assertTrue(lines[3].startswith("Sat 2027-03-13 02:30:00  -05:00 EST"), lines[3])
        self.assertIn("02:30 does not exist that day", lines[4])
        task_id = self.perdura("recurring", "run", "early").stdout.strip()
        self.assertEqual(self.task(task_id)["type"], "report:pay")

    def test_count_counts_what_is_still_to_come(self):
        """D6: whenever it is made, midnight of that day has passed."""
        self.perdura("recurring", "create", "thrice", "--job", "pay", "--pattern", "rrule",
                     "--rrule", "FREQ=DAILY;COUNT=3")
        self.assertEqual(len(self.items("recurring", "upcoming", "thrice")), 3)
        self.perdura("recurring", "create", "soon", "--job", "pay", "--pattern", "rrule",
                     "--rrule", "FREQ=DAILY;COUNT=1")
        self.assertEqual(len(self.items("recurring", "upcoming", "soon")), 1)

    def test_a_change_keeps_what_was_not_named(self):
        self.perdura("recurring", "create", "payroll", "--job", "pay", "--pattern", "monthly",
                     "--day", "-1", "--time", "17:00", "--tz", "Europe/Paris")
        changed = self.json("recurring", "update", "payroll", "--time", "16:00")
        self.assertEqual(changed["pattern_config"],
                         {"time": "16:00", "timezone": "Europe/Paris", "day": -1})
        changed = self.json("recurring", "update", "payroll", "--pattern", "daily", "--time",
                            "08:00")
        self.assertEqual((changed["pattern_type"], changed["pattern_config"]),
                         ("daily", {"time": "08:00"}))
        self.assertFalse(self.json("recurring", "pause", "payroll")["is_active"])
        self.assertTrue(self.json("recurring", "resume", "payroll")["is_active"])
        self.assertIn("delete the pattern first", self.refused(1, "job", "delete", "pay"))
        self.perdura("recurring", "delete", "payroll")
        self.refused(3, "recurring", "show", "payroll")

    def test_wrong_usage_is_refused(self):
        self.refused(2, "recurring", "create", "x", "--pattern", "daily")
        self.refused(2, "recurring", "create", "x", "--job", "pay")
        self.assertIn("time", self.refused(1, "recurring", "create", "x", "--job", "pay",
                                           "--pattern", "daily", "--time", "25:00"))


class Categories(JobTest):
    def test_d5_the_first_ones_are_there(self):
        names = {category["name"] for category in self.items("category", "list")}
        self.assertLessEqual({"messaging", "notifications", "maintenance", "cleanup", "reports",
                              "analytics", "general"}, names)
        self.assertRegex(self.perdura("category", "list").stdout,
                         r"(?m)^maintenance +yes .*02:00-06:00")

    def test_a_category_is_made_changed_and_deleted(self):
        self.perdura("category", "create", "nightly", "--queue", "low", "--windows",
                     "22:00-06:00,SAT-SUN 10:00-12:00", "--tz", "Europe/Paris", "--timeout", "1h",
                     "--priority", "low", "--max-retries", "2")
        category = self.json("category", "show", "nightly")
        self.assertEqual((category["default_timeout"], category["default_priority"],
                          category["default_max_retries"]), (3600, "low", 2))
        self.assertEqual(category["configuration"]["allowed_windows"],
                         ["22:00-06:00", "SAT-SUN 10:00-12:00"])
        changed = self.json("category", "update", "nightly", "--batch-size", "5", "--inactive")
        self.assertEqual(changed["configuration"],
                         {"queue": "low", "timezone": "Europe/Paris", "batch_size": 5,
                          "allowed_windows": ["22:00-06:00", "SAT-SUN 10:00-12:00"]})
        self.assertFalse(changed["is_active"])
        for windows, stored in (
                ("SAT,SUN 00:00-24:00", ["SAT,SUN 00:00-24:00"]),
                ("MON-FRI 18:00-24:00; SAT,SUN 00:00-24:00",
                 ["MON-FRI 18:00-24:00", "SAT,SUN 00:00-24:00"]),
                ("none", None)):
            changed = self.json("category", "update", "nightly", "--windows", windows)
            self.assertEqual(changed["configuration"]["allowed_windows"], stored)
        changed = self.json("category", "update", "nightly", "--windows", "01:00-02:00", "--tz",
                            "local", TZ="Asia/Tokyo")
        self.assertEqual(changed["configuration"]["timezone"], "Asia/Tokyo")
        changed = self.json("category", "update", "nightly", "--unset", "windows,tz,timeout")
        self.assertEqual(changed["configuration"], {"queue": "low", "batch_size": 5})
        self.assertEqual(changed["default_timeout"], 300)
        self.assertIn('did you mean "batch_size"',
                      self.refused(1, "category", "update", "nightly", "--configuration",
                                   '{"batchsize":5}'))
        changed = self.json("category", "update", "nightly", "--active", "--configuration",
                            '{"queue":"x","mine":1}')
        self.assertEqual(changed["configuration"], {"queue": "x", "mine": 1})
        self.perdura("job", "create", "uses", "--category", "nightly")
        self.refused(1, "category", "delete", "nightly")
        self.perdura("job", "update", "uses", "--category", "general")
        self.assertEqual(self.perdura("category", "delete", "nightly").stdout, "")
        self.refused(3, "category", "show", "nightly")
        self.refused(2, "category", "update", "general")


class Dependencies(JobTest):
    def setUp(self):
        super().setUp()
        for name in ("import", "report", "mail"):
            self.perdura("job", "create", name, "--type", "report:" + name)

    def test_d7_a_job_depends_on_another_until_it_does_not(self):
        self.perdura("job", "depend", "report", "--on", "import", "--within", "1h")
        text = self.perdura("job", "show", "report").stdout
        self.assertRegex(text, r"(?m)^import +success +gate +1h 00m ")
        text = self.perdura("job", "show", "import").stdout
        self.assertNotIn("DEPENDS ON", text)
        self.assertRegex(text, r"(?m)^NEEDED BY .*\nreport +success +gate ")
        self.perdura("job", "undepend", "report", "--on", "import")
        self.assertNotIn("DEPENDS ON", self.perdura("job", "show", "report").stdout)
        self.assertIn("does not depend on",
                      self.refused(3, "job", "undepend", "report", "--on", "import"))

    def test_d7_a_cycle_is_refused_with_its_path(self):
        self.perdura("job", "depend", "report", "--on", "import")
        self.perdura("job", "depend", "mail", "--on", "report", "--trigger")
        sentence = self.refused(1, "job", "depend", "import", "--on", "mail")
        for name in ("import", "report", "mail"):
            self.assertIn(name, sentence)

    def test_d7_the_end_of_one_starts_the_other(self):
        self.perdura("job", "depend", "mail", "--on", "report", "--trigger")
        self.perdura("job", "run", "report", "--wait")
        wait_until(lambda: [run for run in self.items("job", "history", "mail")
                            if run["status"] == "completed"], what="the job that was started")

    def test_wrong_usage_is_refused(self):
        self.refused(2, "job", "depend", "report")
        self.refused(2, "job", "depend", "report", "--on", "import", "--trigger", "--within", "1h")
        self.refused(3, "job", "depend", "report", "--on", "nobody")


if __name__ == "__main__":
    unittest.main()
