"""What the command line says where a person slips: names that are new, patterns, empty lists, tasks that can only fail."""
import json
import unittest

from cli_harness import FolderTest, ServerTest, wait_until


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


    def test_C8_a_limit_is_taken_away_by_the_same_word(self):
        self.perdura("queue", "limit", "mail", "--concurrency", "3", "--key-concurrency", "2", "--rate", "5/s burst 3")
        done = self.perdura("queue", "limit", "mail", "--concurrency", "none", "--key-concurrency", "none",
                            "--rate", "none", "--json")
        queue = json.loads(done.stdout)
        self.assertEqual((queue["concurrency"], queue["key_concurrency"], queue["rate"]), (None, None, None))
        self.assertIn("from 0 to 1000000, or none", self.refused(2, "queue", "limit", "mail", "--concurrency", "no"))

    def test_C8_a_rate_that_is_refused_is_told_the_bounds(self):
        for rate in ("0/s", "99999999999/s", "5/s  burst  10", "5/s burst 0", "5/99999d"):
            self.assertIn("1 to 1000000000, the period is 1ms to 3650d",
                          self.refused(2, "queue", "limit", "mail", "--rate", rate))


class Configured(FolderTest):
    def test_C7_a_pattern_is_no_queue_of_the_configuration(self):
        for text in ("queues:\n  - {name: 'q*', rate: 5/s}\n", "queues:\n  - {name: q, dead_letter_queue: '*q'}\n",
                     "handlers:\n  - {type: a, command: [true], queues: ['*']}\n"):
            self.write("perdura.yaml", text)
            self.assertIn("patterns do not work here", self.refused(1, "serve", "--listen", "127.0.0.1:0"))


class Dependencies(ServerTest):
    config = """
handlers:
  - {type: bad, command: ["false"], max_retries: 0}
"""

    def chain(self):
        """Three tasks of which the first was cancelled and the others for it."""
        gate = self.perdura("enqueue", "a", "--delay", "1h").stdout.strip()
        second = self.perdura("enqueue", "b", "--depends-on", gate).stdout.strip()
        third = self.perdura("enqueue", "c", "--depends-on", second).stdout.strip()
        self.perdura("task", "cancel", gate)
        wait_until(lambda: self.task(third)["status"] == "cancelled", what="the end of the chain")
        return gate, second, third

    def test_B7_several_tasks_are_retried_in_the_order_they_depend_on_each_other(self):
        first, second, third = self.chain()
        done = self.perdura("task", "retry", third, second, first)
        self.assertEqual(sorted(line.split()[0] for line in done.stdout.splitlines()), sorted([first, second, third]))
        self.assertEqual(done.stderr, "")
        self.assertEqual([self.task(id)["status"] for id in (second, third)], ["blocked", "blocked"])

    def test_B7_each_refused_task_is_named_and_the_way_out_is_a_flag(self):
        first, second, third = self.chain()
        done = self.perdura("task", "retry", third, second, code=1)
        self.assertEqual(done.stdout, "")
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 2)
        for line, task, cause in zip(sorted(lines), sorted([second, third]),
                                     [cause for _, cause in sorted([(second, first), (third, second)])]):
            self.assertRegex(line, f"^perdura: task {task}: its dependencies are not met: {cause} .cancelled.; "
                                   "retry them first, or retry it with --ignore-dependencies$")
        self.assertNotIn("ignore_dependencies", self.refused(1, "task", "retry", second))

    def test_B7_a_word_is_not_said_twice(self):
        first, second, third = self.chain()
        self.assertRegex(self.perdura("task", "why", second).stdout,
                         f"dependency_unsatisfied: task {first} ended as cancelled$")
        self.assertNotIn("cancelled: cancelled", self.perdura("task", "why", third).stdout)

    def test_B7_one_call_retries_a_whole_chain_oldest_first(self):
        first, second, third = self.chain()
        reply = self.expect(200, "POST", "/v1/tasks:retry?status=cancelled")
        self.assertEqual((reply["changed"], reply["refused"]), (3, 0))
        self.assertEqual([self.task(id)["status"] for id in (second, third)], ["blocked", "blocked"])

    def test_B7_a_task_that_is_cancelled_at_birth_is_told(self):
        dead = self.perdura("enqueue", "bad", "--wait", code=1).stdout.strip()
        for words, end in (((), "was cancelled at once"), (("--on-unsatisfied", "fail"), "failed at once")):
            done = self.perdura("enqueue", "b", "--depends-on", dead, *words)
            self.assertEqual(done.stderr, f"task {done.stdout.strip()} {end}: dependency_unsatisfied: task {dead} "
                                          "ended as dead_letter\n")
        done = self.perdura("enqueue", "b", "--depends-on", f"{dead}:failure")
        self.assertEqual(done.stderr, "")


class Empty(ServerTest):
    def test_G2_an_empty_list_has_its_titles_and_says_so(self):
        for words, told in ((("task", "list"), "no tasks"), (("task", "list", "--type", "x"), "no tasks match"),
                            (("job", "list"), "no jobs"), (("schedule", "list"), "no schedules"),
                            (("recurring", "list"), "no recurring patterns"),
                            (("recovery", "list", "--status", "failed"), "no recoveries match")):
            with self.subTest(words):
                done = self.perdura(*words)
                self.assertRegex(done.stdout, r"^[A-Z]+ .*\n$")
                self.assertEqual(done.stderr, told + "\n")
                self.assertIn(told, self.on_terminal(*words))
                done = self.perdura(*words, "--json")
                self.assertEqual((json.loads(done.stdout)["items"], done.stderr), ([], ""))

    def test_G2_a_wait_takes_either_name_of_its_time_out(self):
        task_id = self.perdura("enqueue", "nobody", "--delay", "1h").stdout.strip()
        for flag in ("--timeout", "--wait-timeout"):
            self.assertIn("has not ended yet", self.refused(1, "task", "wait", task_id, flag, "50ms"))


class Flags(ServerTest):
    def test_G2_a_refused_field_is_called_by_its_flag(self):
        self.assertIn("--type takes a whole value, no wildcards", self.refused(1, "task", "list", "--type", "a*"))
        self.assertIn("--external-id takes", self.refused(1, "task", "list", "--external-id", "a*"))
        self.assertIn("--queue must not contain a slash", self.refused(1, "enqueue", "a", "--queue", "a/b"))
        task_id = self.perdura("enqueue", "a", "--tag", "x*").stdout.strip()
        self.assertIn(task_id, self.perdura("task", "list", "--tag", '"x*"').stdout)


if __name__ == "__main__":
    unittest.main()
