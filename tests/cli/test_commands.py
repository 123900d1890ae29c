"""Every client command as a person uses it: results, exit codes, help, colours, the terminal."""
import contextlib
import json
import re
import sqlite3
import subprocess
import unittest

from cli_harness import GATE, NO_TASK, FolderTest, ServerTest, binary, wait_until

CONFIG = r"""
grace: 300ms
handlers:
  - type: hello
    command: ["sh", "-c", "echo out; echo warned >&2; echo '{\"checkpoint\":{\"name\":\"one\",\"progress\":30,\"data\":{\"a\":1}}}' >&3; echo '{\"result\":{\"greeting\":\"hello\"}}' >&3"]
  - type: bad
    command: ["sh", "-c", "echo '{\"fail\":{\"error\":\"no good\",\"retryable\":false}}' >&3"]
  - type: gated
    command: ["sh", "-c", "echo '{\"progress\":40,\"state\":\"Waiting\"}' >&3; GATE"]
""".replace("GATE", GATE)


def command_paths():
    """Every command and subcommand, as the completions know them."""
    text = subprocess.run([binary(), "completion", "bash"], capture_output=True, text=True,
                          check=True).stdout
    return re.findall(r"^    '([^']+)'\) words=", text, re.M)


class Help(FolderTest):
    def test_every_command_has_help_with_an_example_of_itself(self):
        paths = command_paths()
        for path in ("serve", "worker", "enqueue", "task show", "task events", "task logs",
                     "task list", "task cancel", "task retry", "task pause", "task resume",
                     "task priority", "task delete", "task why", "task fork", "queue list", "queue pause", "queue resume",
                     "queue limit", "queue delete", "workers", "migrate status", "migrate up", "migrate down",
                     "migrate sql", "copy", "backup", "verify", "bench", "doctor", "job create",
                     "job run", "job depend", "job history", "schedule create", "schedule explain",
                     "schedule import", "recurring create", "category create", "forecast",
                     "recovery list", "recovery candidates", "recovery run", "recovery validate"):
            self.assertIn(path, paths)
        for path in paths:
            with self.subTest(path):
                help_text = self.perdura(*path.split(), "--help").stdout
                self.assertRegex(help_text, rf"(?s)Examples\n.*perdura {path}")
                self.assertEqual(self.perdura(*path.split(), "-h").stdout, help_text)
                self.assertEqual(self.perdura("help", *path.split()).stdout, help_text)
                self.assertTrue(all(len(line) <= 140 for line in help_text.splitlines()))

    def test_no_arguments_show_the_commands(self):
        text = self.perdura().stdout
        self.assertIn("Commands", text)
        self.assertEqual(self.perdura("--help").stdout, text)

    def test_version(self):
        self.assertRegex(self.perdura("version").stdout, r"^perdura \d+\.\d+\.\d+\n$")
        self.assertEqual(self.perdura("--version").stdout, self.perdura("version").stdout)
        self.assertIn("version", json.loads(self.perdura("version", "--json").stdout))
        features = json.loads(self.perdura("version", "--features", "--json").stdout)["features"]
        self.assertEqual(sorted(features), ["dashboard", "faults", "grpc", "rabbitmq"])
        for name, there in features.items():
            self.assertRegex(self.perdura("version", "--features").stdout,
                             rf"(?m)^{name} +{'yes' if there else 'no'}$")


class Usage(FolderTest):
    """Wrong usage is exit code 2 and one sentence, whether or not a server runs."""

    def test_mistyped_words_get_the_nearest_one(self):
        for words, meant in ((["enqeue", "x"], "'enqueue'"), (["task", "shw", NO_TASK], "'show'"),
                             (["queue", "puase", "q"], "'pause'"),
                             (["enqueue", "x", "--prioritee", "3"], "'--priority'"),
                             (["serve", "--lisen", "x"], "'--listen'")):
            with self.subTest(words):
                sentence = self.refused(2, *words)
                self.assertIn("did you mean " + meant, sentence)

    def test_wrong_usage_is_refused_with_two(self):
        for words in (["xyzzy"], ["task"], ["task", "show"], ["enqueue"], ["enqueue", "a", "b"],
                      ["queue", "limit", "q"], ["queue", "limit", "q", "--rate", "fast"],
                      ["enqueue", "a", "--payload", "{bad"], ["enqueue", "a", "--payload"],
                      ["enqueue", "a", "--priority", "urgent"],
                      ["enqueue", "a", "--priority", "5000"], ["enqueue", "a", "--delay", "soon"],
                      ["enqueue", "a", "--at", "yesterday"],
                      ["enqueue", "a", "--delay", "1s", "--at", "+1s"],
                      ["enqueue", "a", "--wait=yes"], ["enqueue", "a", "-q", "x"],
                      ["task", "list", "--status", "done"], ["task", "list", "--limit", "0"],
                      ["task", "priority", NO_TASK, "urgent"], ["completion", "tcsh"],
                      ["migrate", "down", "--to", "x"], ["serve", "--workers", "many"],
                      ["stats", "--server", "127.0.0.1:7070"], ["help", "nothing"]):
            with self.subTest(words):
                self.refused(2, *words)

    def test_a_server_that_is_not_there_is_one_and_says_what_to_do(self):
        for words in (["stats"], ["enqueue", "x"], ["task", "list"], ["workers"],
                      ["backup", "b.db"], ["task", "wait", NO_TASK]):
            with self.subTest(words):
                sentence = self.refused(1, *words, "--server", "http://127.0.0.1:1")
                self.assertIn("perdura serve", sentence)


class Enqueue(ServerTest):
    config = CONFIG

    def enqueued(self, *arguments, **more):
        done = self.perdura("enqueue", *arguments, **more)
        self.assertRegex(done.stdout, r"^[0-9a-f-]{36}\n$")
        self.assertEqual(done.stderr, "")
        return self.task(done.stdout.strip())

    def test_payload_inline_from_a_file_and_from_stdin(self):
        self.assertEqual(self.enqueued("a", "--payload", '{"n":1}')["payload"], {"n": 1})
        self.write("in.json", '{"n":2}\n')
        self.assertEqual(self.enqueued("a", "--payload", "@in.json")["payload"], {"n": 2})
        self.assertEqual(self.enqueued("a", "--payload", "-", text='{"n":3}\n')["payload"],
                         {"n": 3})
        self.assertIsNone(self.enqueued("a")["payload"])

    def test_every_flag_reaches_its_field(self):
        flags = {"--queue": ("mail", "queue", "mail"), "--priority": ("high", "priority", 10),
                 "--name": ("A name", "name", "A name"), "--data": ('{"d":1}', "data", {"d": 1}),
                 "--timeout": ("7s", "timeout_ms", 7000),
                 "--max-retries": ("4", "max_retries", 4),
                 "--max-crashes": ("6", "max_crashes", 6),
                 "--max-continuations": ("8", "max_continuations", 8),
                 "--retry-policy": ("linear", "retry_policy", "linear"),
                 "--retry-delay": ("2s", "retry_delay_ms", 2000),
                 "--max-retry-delay": ("1m", "max_retry_delay_ms", 60000),
                 "--user-id": ("u", "user_id", "u"), "--external-id": ("e", "external_id", "e"),
                 "--context-key": ("c", "context_key", "c"), "--note": ("o", "note", "o"),
                 "--correlation-id": ("r", "correlation_id", "r"),
                 "--tag": ("x,y", "tags", ["x", "y"]),
                 "--metadata": ('{"m":1}', "metadata", {"m": 1}),
                 "--limit-key": ("l", "limit_key", "l"),
                 "--workflow-id": (NO_TASK, "workflow_id", NO_TASK),
                 "--unique-until": ("ended", "unique_until", "ended"),
                 "--on-unsatisfied": ("run", "on_unsatisfied", "run"),
                 "--stall-after": ("9s", "stall_after_ms", 9000),
                 "--recovery-priority": ("3", "recovery_priority", 3),
                 "--callback-url": ("http://127.0.0.1:9/x", "callback_url",
                                    "http://127.0.0.1:9/x")}
        words = [word for flag, (value, _, _) in flags.items() for word in (flag, value)]
        task = self.enqueued("all", *words, "--no-auto-recovery", "--delay", "1h", "--key", "k")
        for flag, (_, field, expected) in flags.items():
            self.assertEqual(task[field], expected, flag)
        self.assertEqual(task["status"], "delayed")
        self.assertFalse(task["auto_recovery"])
        self.assertEqual(task["idempotency_key"], "k")
        task = self.enqueued("all", "--category", "cleanup")
        self.assertEqual((task["queue"], task["priority"], task["timeout_ms"]),
                         ("low-priority", -10, 300000))
        self.refused(1, "enqueue", "all", "--category", "nothing")

    def test_a_note_is_shown_changed_and_taken_away(self):
        """A10"""
        tasks = [self.enqueued("a", "--note", "as agreed")["id"], self.enqueued("b")["id"]]
        self.assertRegex(self.perdura("task", "show", tasks[0]).stdout, r"\nnote +as agreed\n")
        self.assertNotIn("note", self.perdura("task", "show", tasks[1]).stdout)
        self.perdura("task", "cancel", tasks[0])
        done = self.perdura("task", "update", *tasks, "--note", "looked \"at\"")
        self.assertEqual(done.stdout.splitlines(), [f"{tasks[0]} cancelled", f"{tasks[1]} pending"])
        for task_id in tasks:
            task = json.loads(self.perdura("task", "show", task_id, "--json").stdout)
            self.assertEqual(task["note"], "looked \"at\"")
        self.assertIn('"note":"looked', self.perdura("task", "events", tasks[0]).stdout)
        self.assertRegex(self.perdura("task", "show", tasks[0], "--at", "+1d").stdout, r"\nnote +looked")
        task = json.loads(self.perdura("task", "update", tasks[0], "--unset", "note", "--json").stdout)
        self.assertIsNone(task["note"])
        self.refused(1, "task", "update", tasks[0], "--note", "x" * 1025)
        self.assertIn("colour", self.refused(1, "task", "update", tasks[0], "--unset", "colour"))
        self.refused(1, "task", "update", tasks[0], "--note", "x", "--if-version", "1")
        self.assertIn("nothing to change", self.refused(2, "task", "update", tasks[0]))
        self.refused(2, "task", "update", tasks[0], "--note", "")

    def test_times_are_rfc_3339_or_relative(self):
        task = self.enqueued("a", "--at", "2035-01-02T03:04:05Z")
        self.assertEqual((task["status"], task["run_at"][:19]), ("delayed", "2035-01-02T03:04:05"))
        for words in (["--at", "+5m"], ["--delay", "5m"]):
            task = self.enqueued("a", *words)
            self.assertEqual(task["status"], "delayed", words)
            self.assertGreater(task["scheduled_at"], task["created_at"])
            self.assertLess(task["scheduled_at"], "2035")

    def test_the_same_key_is_the_same_task(self):
        first = self.enqueued("a", "--key", "k1", "--payload", "1")
        again = self.enqueued("a", "--key", "k1", "--payload", "1")
        self.assertEqual(first["id"], again["id"])
        reply = json.loads(self.perdura("enqueue", "a", "--key", "k1", "--json").stdout)
        self.assertTrue(reply["duplicate"])
        self.assertIn("was there already", self.on_terminal("enqueue", "a", "--key", "k1"))

    def test_equal_input_is_the_same_task_where_asked_for(self):
        words = ("a", "--hash-field", "/order", "--payload")
        first = self.enqueued(*words, '{"order":7,"at":1}')
        self.assertEqual(self.enqueued(*words, '{"order":7,"at":2}')["id"], first["id"])
        one = self.enqueued("b", "--hash-input", "--payload", '{"x":1,"y":2}')
        self.assertEqual(self.enqueued("b", "--hash-input", "--payload", '{"y":2,"x":1}')["id"],
                         one["id"])

    def test_dependencies_of_every_kind(self):
        parent = self.enqueued("nobody", "--delay", "1h")["id"]
        child = self.enqueued("b", "--depends-on", parent)
        self.assertEqual((child["status"], len(child["depends_on"])), ("blocked", 1))
        child = self.enqueued("b", "--depends-on", parent + ":failure", "--depends-on",
                              child["id"] + ":completion")
        self.assertEqual(len(child["depends_on"]), 2)
        second = self.enqueued("nobody", "--delay", "1h")["id"]
        for ids in ([f"{parent},{second}"], [parent, second], [parent, "--depends-on", second]):
            child = self.enqueued("b", "--depends-on", *ids)
            self.assertEqual({wanted["task"] for wanted in child["depends_on"]}, {parent, second})
        self.assertIn("does not know", self.refused(2, "enqueue", "b", second))
        self.assertIn("not a type", self.refused(2, "enqueue", "--depends-on", parent, second))
        self.assertIn("does not know", self.refused(2, "enqueue", "b", "--depends-on", parent, "c"))
        self.refused(1, "enqueue", "b", "--depends-on", NO_TASK)
        self.refused(1, "enqueue", "b", "--depends-on", parent + ":sometimes")

    def test_a_list_takes_words_and_refuses_patterns(self):
        task_id = self.enqueued("report:build", "--delay", "1h")["id"]
        self.assertIn("--type takes a whole value, no wildcards",
                      self.refused(1, "task", "list", "--type", "report:*"))
        self.assertIn(task_id, self.perdura("task", "list", "--q", "report:*").stdout)

    def test_wait_prints_the_result(self):
        done = self.perdura("enqueue", "hello", "--wait")
        task_id, result = done.stdout.splitlines()
        self.assertEqual(json.loads(result), {"greeting": "hello"})
        self.assertEqual(self.task(task_id)["status"], "completed")
        self.assertEqual(done.stderr, "", "no bar in a pipe")
        task = json.loads(self.perdura("enqueue", "hello", "--wait", "--json").stdout)
        self.assertEqual(task["result"], {"greeting": "hello"})

    def test_wait_is_one_when_the_task_fails(self):
        sentence = self.refused(1, "enqueue", "bad", "--wait")
        self.assertRegex(sentence, "ended as failed: no good$")
        task = json.loads(self.perdura("enqueue", "bad", "--wait", "--json", code=1).stdout)
        self.assertEqual(task["status"], "failed")
        self.assertRegex(self.refused(1, "enqueue", "gated", "--wait", "--wait-timeout", "50ms"),
                         "has not ended yet")

    def test_what_the_server_refuses_is_one(self):
        self.assertIn("type", self.refused(1, "enqueue", ""))
        self.refused(1, "enqueue", "a", "--metadata", "[1]")
        self.assertIn("/nonexistent", self.refused(1, "enqueue", "a", "--payload",
                                                   "@/nonexistent/file"))
        self.refused(1, "enqueue", "a", "--callback-url", "http://10.1.2.3/x")

    def test_the_bar_is_drawn_on_a_terminal_only(self):
        seen = []

        def watch():
            seen.append(self.on_terminal("enqueue", "gated", "--wait"))
        waiting = self.in_thread(watch)
        wait_until(lambda: any(task["progress"] == 40 for task in
                               self.expect(200, "GET", "/v1/tasks")["items"]))
        self.wait_for_waiting("waiting_waits", 1)
        self.open_gate()
        waiting.result()
        self.assertIn("\r", seen[0])
        self.assertRegex(seen[0], "running: Waiting|[█▏]")


class Task(ServerTest):
    config = CONFIG
    arguments = ("--lease", "5s")  # a running handler learns within a third of it
    keeps_port = True

    def done_task(self):
        return self.perdura("enqueue", "hello", "--wait").stdout.splitlines()[0]

    def test_looking_at_a_task(self):
        task_id = self.done_task()
        for word, expected in (("show", "completed"), ("events", "Queued"), ("logs", "warned"),
                               ("executions", "completed"), ("checkpoints", '{"a":1}'),
                               ("result", '{"greeting":"hello"}'),
                               ("wait", '{"greeting":"hello"}')):
            with self.subTest(word):
                self.assertIn(expected, self.perdura("task", word, task_id).stdout)
                value = json.loads(self.perdura("task", word, task_id, "--json").stdout)
                self.assertTrue("items" in value or "status" in value, value)
        self.assertEqual(json.loads(self.perdura("task", "result", task_id).stdout),
                         {"greeting": "hello"})

    def test_logs_are_filtered_by_level(self):
        task_id = self.done_task()
        self.assertNotIn("out\n", self.perdura("task", "logs", task_id, "--level", "WARN").stdout)
        self.assertIn("WARN  warned", self.perdura("task", "logs", task_id).stdout)
        self.assertEqual(self.perdura("task", "logs", task_id, "--after", "+1h").stdout, "")

    def test_a_task_that_is_not_there_is_three(self):
        for word in ("show", "events", "logs", "executions", "checkpoints", "result", "wait",
                     "cancel", "retry", "pause", "resume", "delete"):
            with self.subTest(word):
                self.refused(3, "task", word, NO_TASK)
                self.refused(3, "task", word, "no-id")
        self.refused(3, "task", "priority", NO_TASK, "high")

    def test_lists_are_filtered_and_paged(self):
        ids = [self.enqueue("list", queue="q", tags=["even"] if i % 2 == 0 else [])["id"]
               for i in range(5)]
        text = self.perdura("task", "list", "--type", "list").stdout
        self.assertEqual([line.split()[0] for line in text.splitlines()[1:]], ids[::-1])
        page = json.loads(self.perdura("task", "list", "--limit", "2", "--json").stdout)
        self.assertEqual([task["id"] for task in page["items"]], [ids[4], ids[3]])
        text = self.perdura("task", "list", "--limit", "2", "--cursor", page["next_cursor"]).stdout
        self.assertIn(ids[2], text)
        text = self.perdura("task", "list", "--limit", "2", "--all").stdout
        self.assertEqual([line.split()[0] for line in text.splitlines()[1:]], ids[::-1])
        text = self.perdura("task", "list", "--all", "--limit", "2", "--json").stdout
        self.assertEqual([task["id"] for task in json.loads(text)["items"]], ids[::-1])
        text = self.perdura("task", "list", "--order", "oldest", "--limit", "2", "--all").stdout
        self.assertEqual([line.split()[0] for line in text.splitlines()[1:]], ids)
        text = self.perdura("task", "list", "--tag", "even", "--queue", "q", "--status", "pending",
                            "--created-after", "-1h").stdout
        self.assertEqual(len(text.splitlines()), 4)
        none = self.perdura("task", "list", "--created-before", "-1h")
        self.assertRegex(none.stdout, r"^ID +TYPE.*\n$")
        self.assertEqual(none.stderr, "no tasks match\n")

    def test_controlling_tasks(self):
        task_id = self.enqueue("later", queue="unserved", delay_ms=3600000)["id"]

        def control(word, *more):
            return self.perdura("task", word, task_id, *more).stdout.strip()
        self.assertEqual(control("priority", "high"), f"{task_id} delayed")
        self.assertEqual(self.task(task_id)["priority"], 10)
        self.assertEqual(control("priority", "-5"), f"{task_id} delayed")
        self.assertEqual(self.task(task_id)["priority"], -5)
        self.assertEqual(control("pause"), f"{task_id} paused")
        self.assertEqual(control("resume"), f"{task_id} delayed")
        version = self.task(task_id)["version"]
        self.refused(1, "task", "cancel", task_id, "--if-version", str(version - 1))
        self.assertEqual(control("cancel", "--if-version", str(version)), f"{task_id} cancelled")
        self.refused(1, "task", "cancel", task_id)
        self.assertEqual(control("retry"), f"{task_id} pending")
        self.assertEqual(json.loads(control("cancel", "--json"))["status"], "cancelled")
        self.assertEqual(control("delete"), f"{task_id} deleted")
        task_id = self.enqueue("later", queue="unserved", delay_ms=3600000)["id"]
        control("cancel")
        self.assertEqual(json.loads(control("delete", "--json")), {"id": task_id, "deleted": True})
        self.refused(3, "task", "show", task_id)

    def test_a_running_task_is_paused_and_cancelled(self):
        task_id = self.enqueue("gated")["id"]
        self.wait_status(task_id, "running")
        self.assertIn("pause requested", self.perdura("task", "pause", task_id).stdout)
        self.wait_status(task_id, "paused")
        self.perdura("task", "resume", task_id)
        self.wait_status(task_id, "running")
        self.perdura("task", "cancel", task_id)
        self.wait_status(task_id, "cancelled")

    def test_several_ids_are_all_tried_and_the_first_failure_decides(self):
        ids = [self.enqueue("later", delay_ms=3600000)["id"] for _ in range(2)]
        done = self.perdura("task", "cancel", ids[0], NO_TASK, ids[1], code=3)
        self.assertEqual([line.split()[0] for line in done.stdout.splitlines()], ids)
        self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_wait_has_a_timeout_and_tells_how_it_ended(self):
        task_id = self.enqueue("gated")["id"]
        self.assertIn("has not ended yet",
                      self.refused(1, "task", "wait", task_id, "--timeout", "50ms"))
        waiting = self.in_thread(lambda: self.perdura("task", "wait", task_id))
        self.wait_for_waiting("waiting_waits", 1)
        self.open_gate()
        waiting.result()
        failed = self.enqueue("bad")["id"]
        self.assertIn("no good", self.refused(1, "task", "wait", failed))

    def test_wait_outlives_a_restart_of_the_server(self):
        task_id = self.enqueue("later", delay_ms=3600000)["id"]
        waiting = self.in_thread(lambda: self.perdura("task", "wait", task_id, code=1))
        self.wait_for_waiting("waiting_waits", 1)
        self.restart(same_port=True)
        self.wait_for_waiting("waiting_waits", 1)
        self.perdura("task", "cancel", task_id)
        self.assertIn("ended as cancelled", waiting.result().stderr)


class QueueRecords(ServerTest):
    config = """
on_no_handler: fail
handlers:
  - {type: nothing, command: ["true"]}
queues:
  - {name: mail, serve: true, on_no_handler: wait, dead_letter_queue: lost, stall_after: 90s,
     type_limits: [{type: bulk, concurrency: 2, rate: 20/h}]}
"""

    def test_E3_a_queue_is_shown_in_words_with_all_its_properties(self):
        self.enqueue("a", queue="mail")
        shown = self.perdura("queue", "show", "mail").stdout
        for label, value in (("paused", "no"), ("concurrency", "no limit"), ("rate", "no limit"),
                             ("concurrency per key", "no limit"), ("rate per key", "no limit"),
                             ("priority order", "high_first"), ("ageing", "off"),
                             ("stall after", "1m 30s"), ("dead letter queue", "lost"),
                             ("served by the pool", "yes"), ("on no handler", "wait"),
                             ("pending", "1"), ("running", "0")):
            self.assertRegex(shown, f"(?m)^{label}  +{value}$")
        self.assertRegex(shown, r"(?m)^bulk  +2  +20/h$")
        self.assertNotRegex(shown, r"_ms|counts|failed")
        limited = self.perdura("queue", "limit", "other", "--concurrency", "5", "--rate", "7/10s",
                               "--key-rate", "5/s burst 10", "--ageing", "10s").stdout
        for label, value in (("concurrency", "5"), ("rate", "7/10s"), ("ageing", "10.0s"),
                             ("rate per key", "5/s burst 10"), ("served by the pool", "no"),
                             ("on no handler", "fail")):
            self.assertRegex(limited, f"(?m)^{label}  +{value}$")
        queue = json.loads(self.perdura("queue", "show", "mail", "--json").stdout)
        self.assertEqual((queue["serve"], queue["on_no_handler"]), (True, "wait"))

    def test_a_wrong_rate_names_every_form(self):
        line = self.refused(2, "queue", "limit", "q", "--rate", "fast")
        for form in ("100/s", "20/m", "5/10s", "'5/s burst 10'", "none"):
            self.assertIn(form, line)
            self.perdura("queue", "limit", "q", "--rate", form.strip("'"))


class QueuesAndWorkers(ServerTest):
    config = CONFIG

    def test_queues(self):
        self.refused(3, "queue", "show", "mail")
        self.enqueue("a", queue="mail")
        self.assertIn("mail", self.perdura("queue", "list").stdout)
        queue = json.loads(self.perdura("queue", "pause", "mail", "--json").stdout)
        self.assertTrue(queue["paused"])
        self.assertRegex(self.perdura("queue", "list").stdout, r"mail +yes")
        self.assertFalse(json.loads(self.perdura("queue", "resume", "mail", "--json").stdout)
                         ["paused"])
        queue = json.loads(self.perdura(
            "queue", "limit", "mail", "--concurrency", "5", "--rate", "100/s",
            "--key-concurrency", "2", "--key-rate", "3/m", "--priority-order", "low_first",
            "--ageing", "10s", "--json").stdout)
        self.assertEqual((queue["concurrency"], queue["key_concurrency"], queue["ageing_ms"],
                          queue["priority_order"]), (5, 2, 10000, "low_first"))
        self.assertEqual((queue["rate"]["count"], queue["rate"]["per_ms"]), (100, 1000))
        self.assertEqual((queue["key_rate"]["count"], queue["key_rate"]["per_ms"]), (3, 60000))
        self.perdura("queue", "limit", "mail", "--key-rate", "5/s burst 10")
        self.assertRegex(self.perdura("queue", "list").stdout, r"mail .* 100/s .* 5/s burst 10 ")
        queue = json.loads(self.perdura("queue", "limit", "mail", "--rate", "none",
                                        "--concurrency", "0", "--json").stdout)
        self.assertFalse(queue["rate"] or queue["concurrency"])
        self.assertEqual(queue["key_concurrency"], 2)
        items = json.loads(self.perdura("queue", "list", "--json").stdout)["items"]
        self.assertEqual([queue["name"] for queue in items], ["mail"])
        self.perdura("queue", "limit", "old", "--concurrency", "1")
        self.assertEqual(self.perdura("queue", "delete", "old").stdout, "old deleted\n")
        self.refused(3, "queue", "delete", "old")

    def test_workers_and_who_leads(self):
        self.register("other", queues=("mail",))
        text = self.perdura("workers").stdout
        self.assertIn("other", text)
        workers = json.loads(self.perdura("workers", "--json").stdout)["items"]
        self.assertEqual(sum(worker["is_leader"] for worker in workers), 1)

    def test_E3_workers_show_the_types_they_take(self):
        self.register("some", types=("mail:*", "invoice"))
        self.register("any")
        text = self.perdura("workers").stdout
        self.assertRegex(text, r"QUEUES +TYPES ")
        self.assertRegex(text, r"(?m)^some .* default +mail:\*,invoice ")
        self.assertRegex(text, r"(?m)^any .* default +\* ")
        self.assertRegex(text, r"(?m) default +hello,bad,gated ")
        many = [f"type-number-{i}" for i in range(40)]
        self.register("many", types=many)
        narrow = self.on_terminal("workers", columns=80, NO_COLOR="1").replace("\r", "")
        self.assertLessEqual(max(map(len, narrow.splitlines())), 80, narrow)
        self.assertRegex(narrow, r"(?m)^many .* type-\S*…")
        workers = json.loads(self.perdura("workers", "--json").stdout)["items"]
        self.assertIn(many, [worker["types"] for worker in workers])

    def test_stats(self):
        self.perdura("enqueue", "hello", "--wait")
        stats = json.loads(self.perdura("stats", "--json").stdout)
        self.assertEqual(stats["counts"]["completed"], 1)
        text = self.perdura("stats").stdout
        self.assertRegex(text, r"counts\.completed +1")
        self.assertRegex(text, r"QUEUE +PAUSED +WAITING +RUNNING")
        self.assertRegex(text, r"\ndefault\b.* 0 +0 +0 +1 +1 +0 +0\b")  # done just now, and counted

    def test_stats_shows_alerts_first_and_how_executions_ended(self):
        self.perdura("enqueue", "hello", "--wait")
        self.server.stop()
        with contextlib.closing(sqlite3.connect(self.server.store)) as store:
            store.execute("INSERT INTO schedules (id, job_id, schedule_type, is_active, error, "
                          "created_at, updated_at) VALUES (randomblob(16), randomblob(16), 'cron', "
                          "1, 'no such zone', 1, 1)")
            store.commit()
        self.server.start()
        self.url = "http://{}:{}".format(*self.server.address)
        text = self.perdura("stats").stdout
        self.assertRegex(text, r"^ALERT +SEVERITY .*\nschedules_in_error +warning ")
        self.assertRegex(text, r"\n1h +1 +1 +0 +100\.0% ")


class Colours(ServerTest):
    config = CONFIG

    def test_colours_appear_on_a_terminal_only(self):
        task_id = self.perdura("enqueue", "hello", "--wait").stdout.split()[0]
        self.assertNotIn("\x1b", self.perdura("task", "list").stdout)
        self.assertIn("\x1b[", self.on_terminal("task", "list"))
        self.assertNotIn("\x1b[3", self.on_terminal("task", "list", NO_COLOR="1"))
        self.assertNotIn("\x1b", self.perdura("task", "show", NO_TASK, code=3).stderr)
        self.assertIn("\x1b[31m", self.on_terminal("task", "show", NO_TASK, code=3))
        self.assertNotIn("\x1b[3", self.on_terminal("task", "show", task_id, NO_COLOR="1"))

    def test_tables_fit_a_narrow_terminal_but_ids_stay_whole(self):
        task_id = self.enqueue("a-type-with-a-rather-long-name", name="x" * 100,
                               queue="a-queue-with-a-long-name-too")["id"]
        text = self.on_terminal("task", "list", columns=80, NO_COLOR="1")
        self.assertIn(task_id, text)
        self.assertIn("…", text)

    def test_text_of_a_task_cannot_steer_the_terminal(self):
        evil = "\x1b]0;owned\x07\x1b[2J"
        task_id = self.enqueue("evil", queue="evil", data={"x": evil})["id"]
        self.register("w", queues=("evil",))
        task = self.claim("w")[0]
        self.report_ok("w", task, "start")
        self.report_ok("w", task, "log", level="ERROR", message=evil)
        self.report_ok("w", task, "fail", error=evil, retryable=False)
        for words in (["show", task_id], ["show", task_id, "--json"], ["logs", task_id],
                      ["logs", task_id, "--json"], ["executions", task_id]):
            text = self.on_terminal("task", *words)
            for sequence in ("\x1b]", "\x1b[2J", "\x07"):
                self.assertNotIn(sequence, text, words)
        self.assertNotIn("\x1b", self.perdura("task", "wait", task_id, code=1).stderr)
        task = json.loads(self.perdura("task", "show", task_id, "--json").stdout)
        self.assertEqual((task["error"], task["data"]), (evil, {"x": evil}))


if __name__ == "__main__":
    unittest.main()
