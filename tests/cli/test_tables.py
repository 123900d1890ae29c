"""Lists as people see them: on a terminal of 80 columns no row wraps and nothing that matters is cut; into a
pipe everything goes, and a list that is not whole says so (E3)."""
import json
import re
import unittest

from cli_harness import ServerTest

TYPE = "invoice:send-reminder"
CRON = "*/15 8-18 * * 1-5"


class Tables(ServerTest):
    def lines(self, *command, columns=80):
        text = self.on_terminal(*command, columns=columns, NO_COLOR="1")
        lines = text.replace("\r", "").rstrip("\n").split("\n")
        for line in lines:
            self.assertLessEqual(len(line), columns, f"{' '.join(command)}: {line}")
        return lines

    def test_tasks_show_id_type_and_status_whole(self):
        for kind, name in ((TYPE, "reminder of march"), ("short", None)):
            task_id = self.enqueue(kind, name=name, queue="a-queue-with-a-long-name-too")["id"]
        lines = self.lines("task", "list")
        self.assertRegex(lines[0], r"^ID +TYPE +STATUS")
        self.assertIn(TYPE, lines[2])
        self.assertRegex(lines[1], f"^{task_id}  short +pending")
        self.assertRegex(lines[-1], r"^\(no room for .*QUEUE.*\)$")
        wide = self.lines("task", "list", columns=180)
        self.assertRegex(wide[0], r"QUEUE +PRIORITY +ATTEMPTS +AGE +NAME$")
        self.assertTrue(wide[2].endswith("reminder of march"), wide[2])
        self.assertEqual(len(wide), 3)

    def test_schedules_show_their_expression_whole(self):
        self.perdura("job", "create", "reminders", "--type", TYPE)
        self.perdura("schedule", "create", "--job", "reminders", "--cron", CRON, "--tz", "Europe/Berlin")
        lines = self.lines("schedule", "list")
        self.assertRegex(lines[0], "JOB +WHEN")
        self.assertIn(f"reminders  {CRON}", lines[1])
        wide = self.lines("schedule", "list", columns=160)
        self.assertRegex(wide[1], r"Europe/Berlin .*20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ")

    def test_no_list_wraps_at_80_columns(self):
        self.perdura("job", "create", "a-job-with-a-rather-long-name", "--type", TYPE)
        self.perdura("schedule", "create", "--job", "a-job-with-a-rather-long-name", "--cron", CRON)
        self.perdura("queue", "limit", "a-queue-with-a-long-name-too", "--concurrency", "5", "--rate",
                     "100/s", "--key-rate", "5/s burst 10", "--key-concurrency", "2")
        self.register("a-worker-on-some-host.example.org-12345", queues=("default", "mail", "reports"))
        task_id = self.enqueue(TYPE)["id"]
        self.perdura("job", "run", "a-job-with-a-rather-long-name")
        claimed = self.claim("a-worker-on-some-host.example.org-12345")[0]
        self.report_ok("a-worker-on-some-host.example.org-12345", claimed, "start")
        for command in (("queue", "list"), ("workers",), ("job", "list"), ("schedule", "list"),
                        ("category", "list"), ("task", "list"), ("task", "events", task_id),
                        ("task", "executions", task_id), ("recurring", "list"), ("stats",),
                        ("job", "history", "a-job-with-a-rather-long-name")):
            with self.subTest(command=command):
                self.lines(*command)

    def test_a_pipe_gets_everything_and_learns_when_there_is_more(self):
        self.expect(201, "POST", "/v1/tasks", [{"type": TYPE, "name": f"n{i}"} for i in range(150)])
        done = self.perdura("task", "list")
        self.assertEqual(len(done.stdout.splitlines()), 101)
        self.assertRegex(done.stdout, rf"\S{{36}} +{TYPE} +pending +0% +default +0 +0 +\S+ +n149\n")
        self.assertRegex(done.stderr, r"^\(more: --all, or --cursor \S+\)\n$")
        self.assertRegex(self.perdura("task", "list", "--json").stderr, "more: --all")
        whole = self.perdura("task", "list", "--all")
        self.assertEqual((len(whole.stdout.splitlines()), whole.stderr), (151, ""))
        self.assertEqual(len(json.loads(self.perdura("task", "list", "--all", "--json").stdout)
                             ["items"]), 150)

    def test_queues_and_workers_are_listed_to_the_last(self):
        self.expect(201, "POST", "/v1/tasks", [{"type": "t", "queue": f"q{i}"} for i in range(1100)])
        done = self.perdura("queue", "list")
        self.assertEqual((len(re.findall(r"(?m)^q\d+ ", done.stdout)), done.stderr), (1100, ""))
        self.assertEqual(len(json.loads(self.perdura("queue", "list", "--json").stdout)["items"]), 1100)


if __name__ == "__main__":
    unittest.main()
