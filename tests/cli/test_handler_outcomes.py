"""How the end of a command becomes the end of its task (C3): exit codes, signals, what it said on
its control descriptor and what it said wrongly, environment and folder of its rule, and the pool of
a server that meets a type it has no handler for."""
import os
import unittest

from cli_harness import ServerTest, wait_until

LONG = "printf 'ä%.0s' $(seq 3000)"  # 6000 bytes, cut between characters at 4096


def rule(name, script, extra=""):
    return f"  - type: {name}\n{extra}    command: [\"sh\", \"-c\", {yaml_text(script)}]\n"


def yaml_text(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def says(line, code=0):
    return f"echo '{line}' >&3; exit {code}"


# type: (script, status, error or None). Errors may be a beginning.
OUTCOMES = {
    "nothing": ("true", "completed", None),
    "result": (says('{"result":{"n":1}}'), "completed", None),
    "partial": (says('{"partial":[1]}'), "partial", "partial"),
    "three": ("exit 3", "failed", "exit code 3"),
    "not-found": ("exit 127", "failed", "exit code 127 (command not found)"),
    "not-runnable": ("exit 126", "failed", "exit code 126 (command cannot be run)"),
    "killed": ("kill -KILL $$", "failed", "killed by SIGKILL"),
    "fails": (says('{"fail":{"error":"no luck","retryable":false}}'), "failed", "no luck"),
    "fails-with-code": (says('{"fail":{"error":"no luck"}}', 4), "failed", "no luck"),
    "fails-without-words": (says('{"fail":{}}'), "failed", ""),
    "result-but-code": (says('{"result":1}', 5), "failed", "exit code 5"),
    "long-error": (f"echo \"{{\\\"fail\\\":{{\\\"error\\\":\\\"$({LONG})\\\"}}}}\" >&3", "failed",
                   "ä" * 2048),
    "not-json": (says('{"result":'), "failed", "a control line is not JSON"),
    "wrong-fail": (says('{"fail":{"error":7}}'), "failed", ""),
    "two-keys": (says('{"result":1,"state":"x"}'), "failed", "a control line's 'result'"),
    "last-word": ("echo '{\"result\":' >&3; echo '{\"result\":2}' >&3", "completed", None),
    "unknown-key": (says('{"colour":"red"}'), "completed", None),
    "no-object": (says("[1]"), "completed", None),
    "blank-lines": ("printf '\\n\\r\\n\\n' ; printf '\\n' >&3", "completed", None),
    "too-long": ("printf '{\"result\":\"' >&3; head -c 5000000 /dev/zero | tr '\\0' x >&3;"
                 " echo '\"}' >&3", "failed", "a control line was longer"),
    "missing-program": (None, "failed", ""),
}

CONFIG = "handlers:\n" + "".join(
    rule(name, script, "    max_retries: 0\n    grace: 200ms\n")
    for name, (script, _, _) in OUTCOMES.items() if script) + """
  - type: missing-program
    max_retries: 0
    command: ["no-such-program-anywhere", "-x"]
  - type: no-folder
    max_retries: 0
    directory: "{folder}/not-there"
    command: ["true"]
  - type: fills-the-disk
    max_retries: 0
    file_max: 64KiB
    command: ["dd", "if=/dev/zero", "of={folder}/large", "bs=16k", "count=100"]
  - type: eats-memory
    max_retries: 0
    memory_max: 200MiB
    command: ["python3", "-c", "bytearray(400 << 20)"]
  - type: cannot-even-start
    max_retries: 0
    memory_max: 1MiB
    command: ["true"]
  - type: surroundings
    directory: "{folder}"
    environment: {COLOUR: red, HOME: /nowhere, PERDURA_TOKEN: stolen, PERDURA_TYPE: other}
    command: ["sh", "-c", "echo \\"{\\\\\\"result\\\\\\":\\\\\\"$PWD $COLOUR $HOME $PERDURA_TYPE \
[$PERDURA_TOKEN]\\\\\\"}\\" >&3"]
  - type: goes-on
    retry_delay: 1ms
    command: ["sh", "-c", "[ $PERDURA_ATTEMPT -ge 2 ] || exit 75; \
echo '{\\"result\\":\\"second\\"}' >&3"]
  - type: goes-on-with-words
    command: ["sh", "-c", "[ $PERDURA_ATTEMPT -lt 2 ] || exit 0; \
echo '{\\"continue\\":{\\"delay_ms\\":1,\\"data\\":{\\"step\\":1}}}' >&3; exit 75"]
  - type: spawns-wrongly
    command: ["sh", "-c", "echo '{\\"spawn\\":[{\\"type\\":\\"c\\",\\"depends_on\\":[{\\"ref\\":\\"nobody-knows-me\\"}]}]}' >&3"]
  - type: slow
    timeout: 1500ms
    max_retries: 0
    grace: 100ms
    command: ["sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"]
"""


class Outcomes(ServerTest):
    config = CONFIG

    def test_every_end_of_a_command_is_told_by_its_task(self):
        ids = {name: self.enqueue(name, payload={"a": 1})["id"] for name in OUTCOMES}
        for name, task_id in ids.items():
            _, status, error = OUTCOMES[name]
            with self.subTest(name):
                task = self.wait_ended(task_id)
                seen = "failed" if task["status"] == "dead_letter" else task["status"]
                self.assertEqual(seen, status, task["error"])
                if error is None:
                    self.assertIsNone(task["error"])
                else:
                    self.assertTrue(task["error"].startswith(error), task["error"])
                    self.assertLessEqual(len(task["error"].encode()), 4096)
        self.assertEqual(self.task(ids["last-word"])["result"], 2)
        self.assertEqual(self.task(ids["result"])["result"], {"n": 1})

    def test_what_was_said_wrongly_stands_in_the_log(self):
        for name, word in (("unknown-key", "unknown key 'colour'"), ("no-object", "an object")):
            task_id = self.enqueue(name)["id"]
            self.wait_ended(task_id)
            lines = self.expect(200, "GET", f"/v1/tasks/{task_id}/logs?level=WARN")["items"]
            self.assertTrue(any(word in line["message"] for line in lines), lines)

    def test_why_a_report_was_refused_stands_whole_in_the_log_of_the_task(self):
        """D9: the server's log has no room for names; its author finds them with the task."""
        task_id = self.enqueue("spawns-wrongly")["id"]
        self.wait_ended(task_id)
        [line] = self.expect(200, "GET", f"/v1/tasks/{task_id}/logs?level=WARN")["items"]
        self.assertTrue(line["message"].startswith("spawn was refused: "), line)
        self.assertIn("nobody-knows-me", line["message"])
        wait_until(lambda: "report.refused" in self.server.log(), what="the server's line")
        self.assertNotIn("nobody-knows-me", self.server.log())

    def test_a_folder_that_is_not_there_fails_the_task_with_its_name(self):
        task = self.wait_ended(self.enqueue("no-folder")["id"])
        self.assertNotEqual(task["status"], "completed")
        self.assertIn("not-there", task["error"])

    def test_f_i8_a_command_gets_no_more_than_its_rule_allows(self):
        task = self.wait_ended(self.enqueue("fills-the-disk")["id"])
        self.assertEqual(task["error"], "killed by SIGXFSZ")
        self.assertEqual(os.stat(os.path.join(self.gates, "large")).st_size, 64 * 1024)
        task = self.wait_ended(self.enqueue("eats-memory")["id"])
        self.assertEqual(task["error"], "exit code 1")
        lines = self.expect(200, "GET", f"/v1/tasks/{task['id']}/logs")["items"]
        self.assertIn("MemoryError", lines[-1]["message"])
        task = self.wait_ended(self.enqueue("cannot-even-start")["id"])
        self.assertEqual(task["error"], "exit code 127 (command not found, or memory_max too small)")

    def test_a_rule_gives_folder_and_variables_but_never_the_token(self):
        task = self.wait_ended(self.enqueue("surroundings")["id"])
        self.assertEqual(task["result"], f"{self.gates} red /nowhere surroundings []")

    def test_exit_code_75_goes_on_later(self):
        task = self.wait_ended(self.enqueue("goes-on", retry_delay_ms=1)["id"])
        self.assertEqual((task["status"], task["result"], task["retry_count"]),
                         ("completed", "second", 0))
        task = self.wait_ended(self.enqueue("goes-on-with-words")["id"])
        self.assertEqual((task["status"], task["data"], task["retry_count"]),
                         ("completed", {"step": 1}, 0))

    def test_the_timeout_of_a_rule_counts_where_the_task_has_none(self):
        task = self.wait_ended(self.enqueue("slow")["id"])
        self.assertIn("timeout after 1500ms", task["error"])
        task = self.wait_ended(self.enqueue("slow", timeout_ms=1000)["id"])
        self.assertIn("timeout after 1s", task["error"])


class Triggered(ServerTest):
    config = ("handlers:\n" + rule("import", says('{"fail":{"error":"no luck","retryable":false}}'))
              + rule("alert", "read -r task; echo \"{\\\"result\\\":$task}\" >&3"))

    def test_d7_a_handler_finds_the_run_that_triggered_it_on_stdin(self):
        for name in ("import", "alert"):
            self.perdura("job", "create", name)
        self.perdura("job", "depend", "alert", "--on", "import", "--type", "failure", "--trigger")
        failed = self.perdura("job", "run", "import").stdout.strip()
        run = wait_until(lambda: self.expect(200, "GET", "/v1/tasks?type=alert&status=completed")
                         ["items"], what="the run of alert")[0]
        self.assertEqual(self.task(run["id"])["result"]["data"], {"trigger": {
            "task": failed, "job": "import", "status": "failed", "error": "no luck"}})


class UnknownTypes(ServerTest):
    config = ("handlers:\n  - type: known\n    command: [\"true\"]\n    queues: [strict]\n"
              "lease: 3s\nqueues:\n  - {name: strict, on_no_handler: fail}\n")

    def test_a_type_nobody_knows_waits(self):
        task_id = self.enqueue("unknown")["id"]
        self.wait_ended(self.enqueue("known")["id"])
        self.assertEqual(self.task(task_id)["status"], "pending")

    def test_where_it_is_wanted_a_type_nobody_knows_fails(self):
        task = self.wait_ended(self.enqueue("unknown", queue="strict")["id"])
        self.assertEqual((task["status"], task["error"], task["attempts"]),
                         ("failed", "no_handler", 0))
        self.assertIn("no_handler (no worker of its queue has a handler",
                      self.perdura("task", "why", task["id"]).stdout)

    def test_a_type_another_worker_knows_is_left_to_it(self):
        self.register("other-queue", queues=["elsewhere"], types=["special"])
        self.register("specialist", types=["special"])
        task_id = self.enqueue("special")["id"]

        def claimed():
            tasks = self.claim("specialist", wait_ms=1000, types=["special"])
            return tasks[0] if tasks else None
        task = wait_until(claimed, what="the task being given back to the specialist")
        self.assertEqual(task["id"], task_id)
        self.complete("specialist", task, "mine")
        task = self.task(task_id)
        self.assertEqual((task["status"], task["retry_count"], task["crash_count"]),
                         ("completed", 0, 0))


if __name__ == "__main__":
    unittest.main()
