"""perdura schedule import crontab: a crontab becomes jobs that really run, line by line told what was
taken and what not; importing again changes only what changed (D2, D4)."""
import json
import os
import pathlib
import pwd
import subprocess
import unittest

from cli_harness import FolderTest, ServerTest, binary, environment, wait_until

ME = pwd.getpwuid(os.geteuid()).pw_name

HANDLERS = """
handlers:
  - type: cron:run
    command: ["PERDURA", "exec-cron"]
""".replace("PERDURA", binary())

CRONTAB = r"""# what a crontab has
SHELL=/bin/bash
MAILTO=ada@example.org
GREETING="good morning"

0 9 * * 1-5  /usr/bin/report --all
30 2 * * *   date +\%F > {folder}/date
@daily       backup
@reboot      start-everything
@every 90m   ping
61 * * * *   never
CRON_TZ=Europe/Paris
5 4 * * sun  echo paris
CRON_TZ=Mars/Olympus
5 4 * * sun  echo mars
"""


class DryRun(FolderTest):
    """Needs no server."""

    def rows(self, text, *arguments, code=0, name="crontab"):
        path = self.write(name, text)
        done = self.perdura("schedule", "import", "crontab", path, "--dry-run", "--json",
                            *arguments, code=code)
        return {row["line"]: row for row in json.loads(done.stdout)["items"]}

    def test_d2_every_line_is_told_what_becomes_of_it(self):
        rows = self.rows(CRONTAB)
        self.assertEqual({line: row["result"] for line, row in rows.items()},
                         {3: "note", 6: "planned", 7: "planned", 8: "planned", 9: "refused",
                          10: "planned", 11: "refused", 13: "planned", 15: "refused"})
        self.assertIn("no mail is sent", rows[3]["note"])
        self.assertIn("@reboot", rows[9]["note"])
        self.assertIn("the minute (field 1", rows[11]["note"])
        self.assertIn("Mars/Olympus", rows[15]["note"])
        payload = rows[7]["payload"]
        self.assertEqual(payload["command"], "date +%F > {folder}/date")
        self.assertEqual((payload["shell"], payload["stdin"], payload["user"]),
                         ("/bin/bash", None, ME))
        self.assertEqual(payload["env"]["GREETING"], "good morning")
        self.assertEqual(rows[13]["timezone"], "Europe/Paris")

    def test_the_report_is_a_table_a_summary_and_a_handler(self):
        path = self.write("crontab", CRONTAB)
        text = self.perdura("schedule", "import", "crontab", path, "--dry-run",
                            TZ="America/New_York").stdout
        self.assertRegex(text, r"(?m)^ +6  would be taken  0 9 \* \* 1-5 +/usr/bin/report --all +"
                               r"crontab:/.*/crontab:report-[0-9a-f]{12}$")
        self.assertIn("5 would be taken, 3 refused; times are those of America/New_York", text)
        self.assertIn('  - type: cron:run\n    command: ["', text)
        self.assertIn('"exec-cron"]', text)

    def test_the_zone_is_the_machines_unless_said_otherwise(self):
        path = self.write("crontab", "0 1 * * * x\n")
        for arguments, variables, zone in (((), {"TZ": "Asia/Tokyo"}, "Asia/Tokyo"),
                                           (("--tz", "Europe/Rome"), {}, "Europe/Rome")):
            done = self.perdura("schedule", "import", "crontab", path, "--dry-run", "--json",
                                *arguments, **variables)
            self.assertEqual(json.loads(done.stdout)["items"][0]["timezone"], zone)

    def test_the_systems_form_is_known_by_its_place(self):
        text = "17 * * * * root cd / && run-parts /etc/cron.hourly\n5 5 * * * nobody-here x\n"
        folder = os.path.join(self.folder, "cron.d")
        os.mkdir(folder)
        rows = self.rows(text, name="cron.d/system")
        self.assertEqual(rows[1]["payload"]["user"], "root")
        self.assertEqual(rows[1]["payload"]["command"], "cd / && run-parts /etc/cron.hourly")
        self.assertEqual(rows[2]["result"], "refused")
        self.assertIn("no user 'nobody-here'", rows[2]["note"])
        rows = self.rows(text, "--system", name="elsewhere")
        self.assertEqual(rows[1]["payload"]["user"], "root")
        rows = self.rows(text, name="mine")
        self.assertEqual(rows[1]["payload"]["command"],
                         "root cd / && run-parts /etc/cron.hourly")

    def test_a_users_crontab_runs_as_that_user(self):
        spool = os.path.join(self.folder, "spool", "cron", "crontabs")
        os.makedirs(spool)
        rows = self.rows("@daily x\n", name="spool/cron/crontabs/root")
        self.assertEqual(rows[1]["payload"]["user"], "root")
        rows = self.rows("@daily x\n", "--user", "daemon")
        self.assertEqual(rows[1]["payload"]["user"], "daemon")
        self.assertEqual(self.rows("@daily x\n")[1]["payload"]["user"], ME) # who imports

    def test_the_same_command_twice_is_two_jobs(self):
        rows = self.rows("0 1 * * * x\n0 2 * * * x\n0 3 * * * y\n")
        names = [rows[line]["job"] for line in (1, 2, 3)]
        self.assertEqual(names[1], names[0] + ":2")
        self.assertEqual(len(set(names)), 3)

    def test_nothing_to_take_is_exit_code_one(self):
        for text in ("", "# only a comment\n", "@reboot x\n", "A=b\n"):
            with self.subTest(text):
                self.rows(text, code=1)

    def test_strict_minds_refused_lines_and_users_before_commands_are_noticed(self):
        path = self.write("crontab", "@daily root x\n@reboot y\n")
        done = self.perdura("schedule", "import", "crontab", path, "--dry-run")
        self.assertIn("1 of the commands begins with the name of a user", done.stderr)
        self.assertIn("--system", done.stderr)
        self.perdura("schedule", "import", "crontab", path, "--dry-run", "--strict", code=1)

    def test_stdin_and_refusals(self):
        done = self.perdura("schedule", "import", "crontab", "-", "--dry-run", "--json",
                            text="@daily x\n")
        row = json.loads(done.stdout)["items"][0]
        self.assertTrue(row["job"].startswith("crontab:stdin:x-"))
        self.assertEqual(row["payload"]["user"], ME)
        done = self.perdura("schedule", "import", "crontab", "-", "--dry-run", "--json", "--name",
                            "mine", text="@daily x\n")
        self.assertTrue(json.loads(done.stdout)["items"][0]["job"].startswith("crontab:mine:x-"))
        self.assertIn("--name", self.refused(2, "schedule", "import", "crontab", "-", "--prune"))
        self.assertIn("crontab FILE", self.refused(2, "schedule", "import", "crontab"))
        self.assertIn("crontab FILE", self.refused(2, "schedule", "import", "icalendar", "x"))
        self.assertIn("cannot read", self.refused(1, "schedule", "import", "crontab", "missing"))
        path = self.write("crontab", "@daily x\n")
        self.assertIn("cannot reach", self.refused(1, "schedule", "import", "crontab", path,
                                                   PERDURA_SERVER="http://127.0.0.1:9"))
        path = self.write("large", "#" * (1024 * 1024 + 1))
        self.assertIn("more than", self.refused(1, "schedule", "import", "crontab", path))


class ExecCron(FolderTest):
    """The handler alone, as a worker runs it: the task on stdin."""

    def run_task(self, payload, code=0, **variables):
        payload = {"user": ME, **payload}
        return self.perdura("exec-cron", code=code, text=json.dumps({"payload": payload}),
                            **variables)

    def test_a_command_has_the_surroundings_cron_gives_it(self):
        done = self.run_task({"command": "echo $0; pwd; cat; env", "shell": "/bin/bash",
                              "stdin": "one\ntwo\n",
                              "env": {"HOME": self.folder, "X": "a b", "LOGNAME": "other",
                                      "PERDURA_TASK_ID": "8", "PERDURA_TOKEN": "mine"}},
                             PERDURA_TASK_ID="7", SECRET="no", LANG="C.UTF-8")
        lines = done.stdout.splitlines()
        self.assertEqual(lines[:4], ["/bin/bash", self.folder, "one", "two"])
        for line in (f"HOME={self.folder}", "X=a b", "PATH=/usr/bin:/bin", "SHELL=/bin/sh",
                     f"LOGNAME={ME}", f"USER={ME}", "PERDURA_TASK_ID=7", "LANG=C.UTF-8"):
            self.assertIn(line, lines)
        for line in ("SECRET=no", "PERDURA_TASK_ID=8", "PERDURA_TOKEN=mine"):
            self.assertNotIn(line, lines)

    def test_exit_codes_and_signals_are_those_of_the_command(self):
        self.run_task({"command": "exit 7"}, code=7)
        self.run_task({"command": "kill -TERM $$"}, code=-15)
        self.assertEqual(self.run_task({"command": "cat"}).stdout, "")

    @unittest.skipIf(os.geteuid(), "only root can become another user")
    def test_root_becomes_the_user_of_the_line(self):
        done = self.run_task({"command": "id -un; id -G; pwd", "user": "daemon"})
        account = pwd.getpwnam("daemon")
        self.assertEqual(done.stdout.splitlines(), ["daemon", str(account.pw_gid),
                                                    account.pw_dir])

    @unittest.skipIf(os.geteuid(), "needs root to become another user")
    def test_nobody_but_root_becomes_another(self):
        task = json.dumps({"payload": {"command": "id", "user": "root"}})
        copy = os.path.join(self.folder, "perdura")
        subprocess.run(["cp", binary(), copy], check=True)
        os.chmod(self.folder, 0o755)
        done = subprocess.run([copy, "exec-cron"], input=task, capture_output=True, text=True,
                              user="daemon", env=environment(), check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("only a worker that runs as root", done.stderr)

    @unittest.skipIf(os.geteuid(), "only root may do everything")
    def test_root_runs_nothing_that_names_no_user(self):
        for user in ({"user": None}, {"user": ""}):
            with self.subTest(user):
                done = self.run_task({"command": "echo ran", **user}, code=1)
                self.assertIn("user", done.stderr)
                self.assertNotIn("ran", done.stdout)
        self.assertIn("name root, too",
                      self.run_task({"command": "x", "user": None}, code=1).stderr)
        self.assertEqual(self.run_task({"command": "id -u", "user": "root"}).stdout, "0\n")

    def test_what_cannot_run_says_why(self):
        for payload, words in (({}, "no 'command'"), ({"command": 5}, "must be text"),
                               ({"command": "x", "user": "nobody-here"}, "no user"),
                               ({"command": "x", "shell": "/no/shell"}, "cannot run the shell"),
                               ({"command": "x", "env": {"A": 1}}, "names and texts")):
            with self.subTest(payload):
                self.assertIn(words, self.run_task(payload, code=1).stderr)
        self.assertIn("not a task", self.perdura("exec-cron", code=1, text="hello").stderr)


class Import(ServerTest):
    config = HANDLERS

    def bring(self, text, *arguments, code=0):
        path = self.write("crontab", text)
        done = self.perdura("schedule", "import", "crontab", path, "--json", *arguments, code=code)
        reply = json.loads(done.stdout)
        return {row["line"]: row for row in reply["items"]}, reply["gone"]

    def jobs(self):
        return json.loads(self.perdura("job", "list", "--all", "--json").stdout)["items"]

    def schedules(self):
        return json.loads(self.perdura("schedule", "list", "--all", "--json").stdout)["items"]

    def test_an_imported_command_really_runs_by_its_schedule(self):
        """F-A11: what the schedule fires is a task that runs the line's command."""
        out = os.path.join(self.folder, "out")
        rows, _ = self.bring(f"WORD=hello\n@every 1s (printf '\\%s,' $WORD; cat) > {out}.$$; "
                             f"mv {out}.$$ {out}%from%stdin\n")
        self.assertEqual(rows[2]["result"], "taken")
        wait_until(lambda: os.path.exists(out) and
                   pathlib.Path(out).read_text() == "hello,from\nstdin\n",
                   what="the command having written its file")
        job = self.jobs()[0]
        self.assertEqual(job["task_type"], "cron:run")
        self.assertEqual((job["max_retries"], job["timeout_seconds"]), (0, 86400))
        wait_until(lambda: json.loads(self.perdura("job", "history", job["name"], "--json").stdout)
                   ["items"][-1]["status"] == "completed", what="the end of the first run")

    def test_a_command_that_fails_is_a_task_that_failed_and_is_not_retried(self):
        rows, _ = self.bring("0 0 1 1 * echo so it goes; exit 3\n")
        done = self.perdura("job", "run", rows[1]["job"], "--wait", code=1)
        task = self.task(done.stdout.split()[0])
        self.assertEqual((task["status"], task["attempts"]), ("dead_letter", 1))
        logs = self.perdura("task", "logs", task["id"]).stdout
        self.assertIn("so it goes", logs)

    def test_importing_again_changes_nothing(self):
        text = CRONTAB.replace("{folder}", self.folder)
        first, _ = self.bring(text)
        before = (self.jobs(), self.schedules())
        again, gone = self.bring(text)
        for line, row in first.items():
            expected = {"taken": "already_there"}.get(row["result"], row["result"])
            self.assertEqual(again[line]["result"], expected)
            self.assertEqual(again[line]["job_id"], row["job_id"])
        self.assertEqual((self.jobs(), self.schedules(), gone), (*before, []))
        self.assertEqual(len(before[0]), 5)

    def test_changed_lines_change_their_jobs_and_lost_ones_are_told(self):
        first, _ = self.bring("0 1 * * * one\n0 2 * * * two\n0 3 * * * three\n")
        again, gone = self.bring("TOKEN=x\n30 1 * * * one\n@every 2h two\n")
        self.assertEqual([again[2]["result"], again[3]["result"]], ["changed", "changed"])
        self.assertEqual(again[2]["job_id"], first[1]["job_id"])
        self.assertEqual([row["job"] for row in gone], [first[3]["job"]])
        self.assertFalse(gone[0]["deleted"])
        by_job = {row["job_id"]: row for row in self.schedules()}
        self.assertEqual(len(by_job), 3)
        self.assertEqual(by_job[first[1]["job_id"]]["cron_expression"], "30 1 * * *")
        self.assertEqual(by_job[first[2]["job_id"]]["interval_seconds"], 7200)
        self.assertIsNone(by_job[first[2]["job_id"]]["cron_expression"])
        env = {job["id"]: job["payload"]["env"] for job in self.jobs()}
        self.assertEqual(env[first[1]["job_id"]], {"TOKEN": "x"})
        _, gone = self.bring("TOKEN=x\n30 1 * * * one\n@every 2h two\n", "--prune")
        self.assertTrue(gone[0]["deleted"])
        self.assertEqual({job["id"] for job in self.jobs()},
                         {first[1]["job_id"], first[2]["job_id"]})
        again, gone = self.bring("TOKEN=x\n30 1 * * * one\n@every 2h two\n")
        self.assertEqual(([row["result"] for row in again.values()], gone),
                         (["already_there"] * 2, []))

    def test_an_import_that_was_cut_short_is_completed(self):
        rows, _ = self.bring("0 1 * * * one\n")
        self.perdura("schedule", "delete", self.schedules()[0]["id"])
        again, _ = self.bring("0 1 * * * one\n")
        self.assertEqual((again[1]["result"], again[1]["job_id"]),
                         ("changed", rows[1]["job_id"]))
        self.assertEqual(len(self.schedules()), 1)

    def test_a_schedule_that_somebody_paused_stays_paused(self):
        rows, _ = self.bring("0 1 * * * one\n")
        self.perdura("schedule", "pause", rows[1]["job"])
        again, _ = self.bring("0 1 * * * one\n")
        self.assertEqual(again[1]["result"], "already_there")
        self.assertFalse(self.schedules()[0]["is_active"])

    def test_flags_and_variables_become_fields_of_the_schedule(self):
        self.bring("RANDOM_DELAY=5\n0 1 * * * one\n", "--misfire", "skip", "--overlap", "skip",
                   "--tz", "Europe/Rome", "--timeout", "2h", "--queue", "crons")
        schedule = self.schedules()[0]
        self.assertEqual((schedule["jitter_ms"], schedule["misfire"], schedule["overlap"],
                          schedule["timezone"]), (300000, "skip", "skip", "Europe/Rome"))
        job = self.jobs()[0]
        self.assertEqual((job["queue"], job["timeout_seconds"]), ("crons", 7200))


if __name__ == "__main__":
    unittest.main()
