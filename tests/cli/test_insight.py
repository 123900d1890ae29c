"""perdura task why, as a person uses it."""
import json
import unittest

from cli_harness import NO_TASK, ServerTest

CONFIG = """
handlers:
  - type: hello
    command: ["true"]
"""


class Why(ServerTest):
    config = CONFIG

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


if __name__ == "__main__":
    unittest.main()
