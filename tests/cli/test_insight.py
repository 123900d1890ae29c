"""perdura task why, fork and show --at, as a person uses them."""
import json
import signal
import subprocess
import unittest

from cli_harness import DEADLINE_S, NO_TASK, ServerTest, binary, environment, wait_until

CONFIG = r"""
handlers:
  - type: hello
    command: ["true"]
  - type: count
    command: ["sh", "-c", "for step in $(seq $((${PERDURA_CHECKPOINT:-0} + 1)) 3); do echo \"{\\\"checkpoint\\\":{\\\"name\\\":\\\"$step\\\"}}\" >&3; done; echo \"{\\\"result\\\":\\\"from ${PERDURA_CHECKPOINT:-0}\\\"}\" >&3"]
  - type: partly
    command: ["sh", "-c", "echo '{\"partial\":1}' >&3"]
  - type: mute
    command: ["sh", "-c", "echo '{\"fail\":{\"error\":\"no good\",\"retryable\":false}}' >&3"]
  - type: noisy
    command: ["sh", "-c", "echo heard; echo '{\"fail\":{\"error\":\"no good\",\"retryable\":false}}' >&3"]
  - type: wordy
    command: ["sh", "-c", "echo '{\"fail\":{\"error\":\"LONG\",\"retryable\":false}}' >&3"]
  - type: silent
    command: ["sleep", "300"]
    stall_after: 500ms
    validate:
      command: ["sh", "-c", "echo 'order 7 is closed'; exit 1"]
""".replace("LONG", 300 * "n")


class Why(ServerTest):
    config = CONFIG

    def why(self, task):
        return self.perdura("task", "why", task).stdout

    def test_why_explains_words_of_its_own_and_repeats_none(self):
        partial = self.perdura("enqueue", "partly").stdout.strip()
        told = self.perdura("task", "wait", partial, code=1)
        self.assertIn(f"ended as partial; 'perdura recovery run {partial}' continues", told.stderr)
        self.assertRegex(self.why(partial), r"^Ended as partial at \S+Z \(\S+ ago\)\n$")
        missing = self.perdura("enqueue", "unhandled").stdout.strip()
        self.assertRegex(self.why(missing), "^No worker of the queue 'default' has a handler for the "
                         "type 'unhandled'")

    def test_why_tells_what_a_validator_said_of_a_lost_task(self):
        """B6: it only waits for the user's decision."""
        task = self.perdura("enqueue", "silent").stdout.strip()
        wait_until(lambda: "could not be recovered" in self.why(task), what="the refusal")
        self.assertRegex(self.why(task), r"Lost its worker .*, and could not be recovered: "
                         r"order 7 is closed.*; recover or retry it\n$")
        detail = json.loads(self.perdura("task", "why", task, "--json").stdout)["detail"]
        self.assertTrue(detail["recovery_refused"])
        self.assertIn("order 7 is closed", detail["recovery_error"])
        [line] = self.perdura("recovery", "list", "--task", task).stdout.splitlines()[1:]
        self.assertIn("order 7 is closed", line)

    def test_why_is_one_line(self):
        task = self.perdura("enqueue", "hello", "--delay", "1h").stdout.strip()
        text = self.perdura("task", "why", task).stdout
        self.assertRegex(text, r"^Scheduled to run at \S+Z \(in 59m \d\ds\)\n$")
        done = self.perdura("enqueue", "hello", "--wait").stdout.split()[0]
        self.assertTrue(self.perdura("task", "why", done).stdout.startswith("Ended as completed"))
        other = self.perdura("enqueue", "hello", "--queue", "elsewhere").stdout.strip()
        self.assertEqual(self.perdura("task", "why", other).stdout,
                         "No worker serves the queue 'elsewhere' (1 worker serves other queues)\n")

    def test_why_says_what_to_do_as_a_wait_does(self):
        """B6: the sentence on stdout, the hint on stderr, and none where there is nothing to do."""
        missing = self.perdura("enqueue", "unhandled").stdout.strip()
        behind = self.perdura("enqueue", "hello", "--depends-on", missing).stdout.strip()
        hint = ("hint: add a handler for unhandled under 'handlers:' in perdura.yaml and send SIGHUP "
                "to the server, or start a worker that has one\n")
        for task in (missing, behind):
            told = self.perdura("task", "why", task)
            self.assertEqual((told.stdout.count("\n"), told.stderr), (1, hint))
        self.perdura("queue", "pause", "held")
        held = self.perdura("enqueue", "hello", "--queue", "held").stdout.strip()
        self.assertEqual(self.perdura("task", "why", held).stderr,
                         "hint: 'perdura queue resume held' resumes it\n")
        later = self.perdura("enqueue", "hello", "--delay", "1h").stdout.strip()
        self.assertEqual(self.perdura("task", "why", later).stderr, "")
        self.assertEqual(self.perdura("task", "why", missing, "--json").stderr, "")

    def test_why_as_json_is_the_answer_of_the_api(self):
        task = self.perdura("enqueue", "hello", "--delay", "1h").stdout.strip()
        answer = json.loads(self.perdura("task", "why", task, "--json").stdout)
        self.assertEqual(answer["reason"], "delayed")
        self.assertEqual(answer["detail"]["status"], "delayed")

    def test_why_of_no_task_is_3(self):
        self.assertIn("no task", self.refused(3, "task", "why", NO_TASK))
        self.refused(3, "task", "why", "nonsense")
        self.refused(2, "task", "why")


class Waiting(ServerTest):
    """A wait that takes long tells why (B6): once, and again when the reason is another."""
    config = CONFIG

    def begin(self, *arguments):
        process = subprocess.Popen([binary(), *arguments], cwd=self.folder, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=environment(PERDURA_SERVER=self.url))
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def test_a_wait_tells_once_why_the_task_does_not_run_and_when_that_changes(self):
        task = self.perdura("enqueue", "hello", "--queue", "elsewhere").stdout.strip()
        waiting = self.begin("task", "wait", task)
        self.assertEqual(waiting.stderr.readline(), "waiting: No worker serves the queue "
                         "'elsewhere' (1 worker serves other queues); add a handler for hello with "
                         "'queues: [elsewhere]' under 'handlers:' in perdura.yaml and send SIGHUP to "
                         "the server, or start a worker that has one with --queues elsewhere\n")
        self.perdura("queue", "pause", "elsewhere")
        self.assertRegex(waiting.stderr.readline(), "^waiting: The queue 'elsewhere' has been paused "
                         "since .*; 'perdura queue resume elsewhere' resumes it\n$")
        self.perdura("task", "cancel", task)
        self.assertEqual(waiting.wait(DEADLINE_S), 1)
        self.assertEqual(waiting.stderr.read(), f"perdura: task {task} ended as cancelled\n")

    def test_enqueue_and_fork_and_a_run_of_a_job_tell_it_too(self):
        done = self.perdura("enqueue", "hello", "--wait").stdout.split()[0]
        self.perdura("job", "create", "nightly", "--type", "unhandled")
        for words in (("enqueue", "unhandled", "--wait"),
                      ("task", "fork", done, "--queue", "elsewhere", "--wait"),
                      ("job", "run", "nightly", "--wait")):
            waiting = self.begin(*words)
            self.assertRegex(waiting.stderr.readline(), "^waiting: No worker .*; add a handler for ")

    def test_an_interrupted_wait_says_that_the_task_continues(self):
        """B6: and how to wait for it again or to cancel it."""
        waiting = self.begin("enqueue", "unhandled", "--wait")
        self.assertRegex(waiting.stderr.readline(), "^waiting: ")
        waiting.send_signal(signal.SIGINT)
        self.assertEqual(waiting.wait(DEADLINE_S), -signal.SIGINT)
        task, = self.expect(200, "GET", "/v1/tasks")["items"]
        self.assertEqual(waiting.stderr.read(), f"perdura: task {task['id']} continues; 'perdura "
                         f"task wait {task['id']}' waits for it, 'perdura task cancel "
                         f"{task['id']}' cancels it\n")
        self.assertEqual(task["status"], "pending")

    def test_a_person_at_a_terminal_reads_it_beside_the_bar(self):
        seen = self.on_terminal("enqueue", "unhandled", "--wait", "--wait-timeout", "3s", code=1)
        self.assertEqual(seen.count("waiting: No worker of the queue 'default' has a handler for the "
                                    "type 'unhandled'"), 1, seen)
        self.assertRegex(seen, "it is pending; 'perdura task why .*' says what it is waiting for")

    def test_the_log_is_pointed_at_only_where_it_has_lines(self):
        self.assertRegex(self.perdura("enqueue", "mute", "--wait", code=1).stderr,
                         r"^perdura: task \S+ ended as failed: no good\n$")
        self.assertRegex(self.perdura("enqueue", "noisy", "--wait", code=1).stderr,
                         r"ended as failed: no good; 'perdura task logs \S+' shows why\n$")
        self.assertRegex(self.perdura("enqueue", "wordy", "--wait", code=1).stderr,
                         r"ended as failed: n{250}; 'perdura task show \S+' shows all of it\n$")


class Fork(ServerTest):
    config = CONFIG

    def test_b7_a_fork_begins_where_it_was_told(self):
        task, result = self.perdura("enqueue", "count", "--wait").stdout.split("\n", 1)
        self.assertEqual(result, '"from 0"\n')
        for flags, start in (((), 3), (("--from", "1"), 1), (("--from", "2"), 2),
                             (("--from", "0"), 0)):
            made, result = self.perdura("task", "fork", task, *flags, "--wait").stdout.split(
                "\n", 1)
            self.assertNotEqual(made, task)
            self.assertEqual(result, f'"from {start}"\n')

    def test_a_fork_takes_wishes_and_prints_its_id(self):
        task = self.perdura("enqueue", "hello", "--wait").stdout.split()[0]
        made = self.perdura("task", "fork", task, "--payload", '{"n":1}', "--queue", "elsewhere",
                            "--name", "again", "--priority", "high").stdout.strip()
        forked = json.loads(self.perdura("task", "show", made, "--json").stdout)
        self.assertEqual((forked["payload"], forked["queue"], forked["name"],
                          forked["metadata"]["forked_from"]), ({"n": 1}, "elsewhere", "again", task))
        whole = json.loads(self.perdura("task", "fork", task, "--queue", "elsewhere",
                                        "--json").stdout)
        self.assertEqual(whole["state"], "Forked")

    def test_what_cannot_be_forked_is_refused(self):
        task = self.perdura("enqueue", "hello", "--wait").stdout.split()[0]
        self.assertIn("no checkpoint named 'x'", self.refused(1, "task", "fork", task, "--from",
                                                              "x"))
        self.refused(3, "task", "fork", NO_TASK)


class Past(ServerTest):
    config = CONFIG

    def test_a10_a_task_is_shown_as_it_was(self):
        task = self.perdura("enqueue", "count", "--wait").stdout.split()[0]
        for event in self.events(task):
            shown = self.perdura("task", "show", task, "--at", event["created_at"]).stdout
            self.assertRegex(shown, rf"(?m)^as it was at +{event['created_at']}$")
            past = json.loads(self.perdura("task", "show", task, "--json", "--at",
                                           event["created_at"]).stdout)
            self.assertGreaterEqual(past["event_seq"], event["seq"])
        self.assertIn("completed", self.perdura("task", "show", task, "--at", "+1h").stdout)
        self.assertIn("did not exist yet", self.refused(3, "task", "show", task, "--at", "-1h"))
        self.refused(2, "task", "show", task, "--at", "yesterday")


if __name__ == "__main__":
    unittest.main()
