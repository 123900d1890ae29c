"""perdura task why, fork and show --at, as a person uses them."""
import json
import unittest

from cli_harness import NO_TASK, ServerTest, wait_until

CONFIG = r"""
handlers:
  - type: hello
    command: ["true"]
  - type: count
    command: ["sh", "-c", "for step in $(seq $((${PERDURA_CHECKPOINT:-0} + 1)) 3); do echo \"{\\\"checkpoint\\\":{\\\"name\\\":\\\"$step\\\"}}\" >&3; done; echo \"{\\\"result\\\":\\\"from ${PERDURA_CHECKPOINT:-0}\\\"}\" >&3"]
  - type: partly
    command: ["sh", "-c", "echo '{\"partial\":1}' >&3"]
  - type: silent
    command: ["sleep", "300"]
    stall_after: 500ms
    validate:
      command: ["sh", "-c", "echo 'order 7 is closed'; exit 1"]
"""


class Why(ServerTest):
    config = CONFIG

    def why(self, task):
        return self.perdura("task", "why", task).stdout

    def test_why_explains_words_of_its_own_and_repeats_none(self):
        partial = self.perdura("enqueue", "partly").stdout.strip()
        told = self.perdura("task", "wait", partial, code=1)
        self.assertIn(f"ended as partial; 'perdura recovery run {partial}' lets", told.stderr)
        self.assertRegex(self.why(partial), r"^Ended as partial at \S+Z \(\S+ ago\)\n$")
        missing = self.perdura("enqueue", "nobody").stdout.strip()
        self.assertRegex(self.why(missing), "^No worker of the queue 'default' takes tasks of the "
                         "type 'nobody'")

    def test_why_tells_what_a_validator_said_of_a_lost_task(self):
        """B6: it waits for nobody but for whoever decides."""
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
        self.assertRegex(text, r"^Is to run at \S+Z \(in 59m \d\ds\)\n$")
        done = self.perdura("enqueue", "hello", "--wait").stdout.split()[0]
        self.assertTrue(self.perdura("task", "why", done).stdout.startswith("Ended as completed"))
        other = self.perdura("enqueue", "hello", "--queue", "elsewhere").stdout.strip()
        self.assertEqual(self.perdura("task", "why", other).stdout,
                         "No worker serves the queue 'elsewhere' (1 live elsewhere)\n")

    def test_why_as_json_is_the_answer_of_the_api(self):
        task = self.perdura("enqueue", "hello", "--delay", "1h").stdout.strip()
        answer = json.loads(self.perdura("task", "why", task, "--json").stdout)
        self.assertEqual(answer["reason"], "delayed")
        self.assertEqual(answer["detail"]["status"], "delayed")

    def test_why_of_no_task_is_3(self):
        self.assertIn("no task", self.refused(3, "task", "why", NO_TASK))
        self.refused(3, "task", "why", "nonsense")
        self.refused(2, "task", "why")


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
        self.assertIn("not there yet", self.refused(3, "task", "show", task, "--at", "-1h"))
        self.refused(2, "task", "show", task, "--at", "yesterday")


if __name__ == "__main__":
    unittest.main()
