"""What the command line says where a person slips: names that are new, patterns, empty lists, tasks that can only fail."""
import json
import unittest

from cli_harness import FolderTest, ServerTest


class Queues(ServerTest):
    config = "queues:\n  - {name: mail, rate: 5/s}\n"

    def test_C7_G2_a_pattern_makes_no_queue(self):
        for words in (("limit", "*", "--rate", "5/s"), ("pause", "q*"), ("resume", "*q")):
            self.assertIn("patterns do not work here", self.refused(1, "queue", *words))
        for words in (("foo*",), ("foo", "--queue", "q*")):
            self.assertIn("patterns do not work here", self.refused(1, "enqueue", *words))
        self.assertNotIn("*", self.perdura("queue", "list").stdout)

    def test_C7_a_queue_that_a_command_makes_is_called_new(self):
        self.perdura("enqueue", "a")
        self.assertEqual(self.perdura("queue", "pause", "defalt").stderr,
                         "queue 'defalt' is new; did you mean 'default'?\n")
        self.assertEqual(self.perdura("queue", "limit", "other", "--concurrency", "1").stderr, "queue 'other' is new\n")
        for words in (("pause", "defalt"), ("limit", "other", "--concurrency", "2"), ("resume", "default")):
            self.assertEqual(self.perdura("queue", *words).stderr, "")
        done = self.perdura("queue", "pause", "third", "--json")
        self.assertEqual((json.loads(done.stdout)["name"], done.stderr), ("third", "queue 'third' is new\n"))

    def test_G2_a_queue_that_does_not_exist_gets_the_nearest_name(self):
        self.perdura("enqueue", "a")
        for verb in ("show", "delete"):
            self.assertEqual(self.refused(3, "queue", verb, "defualt"), "perdura: there is no queue 'defualt'; "
                             "'perdura queue list' shows what there is; did you mean 'default'?")
        self.assertNotIn("did you mean", self.refused(3, "queue", "show", "xyzzy"))

    def test_C8_limits_that_the_configuration_sets_again_are_told(self):
        for name, configured in (("mail", True), ("other", False)):
            done = self.perdura("queue", "limit", name, "--rate", "9/s", "--json")
            self.assertEqual(json.loads(done.stdout)["configured"], configured)
            self.assertEqual("sets the limits given there again" in done.stderr, configured)
        self.assertEqual(self.perdura("queue", "pause", "mail").stderr, "")


class Configured(FolderTest):
    def test_C7_a_pattern_is_no_queue_of_the_configuration(self):
        for text in ("queues:\n  - {name: 'q*', rate: 5/s}\n", "queues:\n  - {name: q, dead_letter_queue: '*q'}\n",
                     "handlers:\n  - {type: a, command: [true], queues: ['*']}\n"):
            self.write("perdura.yaml", text)
            self.assertIn("patterns do not work here", self.refused(1, "serve", "--listen", "127.0.0.1:0"))


class Flags(ServerTest):
    def test_G2_a_refused_field_is_called_by_its_flag(self):
        self.assertIn("--type takes a whole value, no wildcards", self.refused(1, "task", "list", "--type", "a*"))
        self.assertIn("--external-id takes", self.refused(1, "task", "list", "--external-id", "a*"))
        self.assertIn("--queue must not contain a slash", self.refused(1, "enqueue", "a", "--queue", "a/b"))
        task_id = self.perdura("enqueue", "a", "--tag", "x*").stdout.strip()
        self.assertIn(task_id, self.perdura("task", "list", "--tag", '"x*"').stdout)


if __name__ == "__main__":
    unittest.main()
