"""The configuration read again on SIGHUP, for servers and workers, and stopping in a hurry (F-A18)."""
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import unittest

import cli_harness
from cli_harness import DEADLINE_S, ServerTest, binary, environment, harness, wait_until

FIRST = r"""
handlers:
  - type: first
    command: ["sh", "-c", "echo '{\"result\":\"one\"}' >&3"]
"""
SECOND = r"""
log_level: debug
handlers:
  - type: first
    max_retries: 7
    command: ["sh", "-c", "echo '{\"result\":\"two\"}' >&3"]
  - type: second
    command: ["sh", "-c", "echo '{\"result\":\"new\"}' >&3"]
  - type: quick
    command: ["true"]
queues:
  - name: default
    concurrency: 3
  - name: other
    serve: true
    key_concurrency: 2
    dead_letter_queue: dead
"""
# Wrong in its last line only: nothing before it may be in force.
WRONG = r"""
log_level: error
handlers:
  - type: second
    command: ["true"]
queues:
  - name: default
    concurrency: 9
retention: {completed: yesterday}
"""
HELD = r"""
grace: 60s
handlers:
  - type: held
    command: ["sh", "-c", "trap '' TERM; echo $$ >> {folder}/pid; while :; do sleep 0.05; done"]
"""


def entries(text, event):
    found = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return [entry for entry in found if entry["event"] == event]


class ReloadTest(ServerTest):
    config = FIRST

    def configure(self, text):
        pathlib.Path(self.gates, "server.yaml").write_text(text.replace("{folder}", self.gates))

    def hang_up(self, event, log=None, process=None):
        """Sends SIGHUP and waits for what comes of it."""
        log = log or self.server.log
        before = len(entries(log(), event))
        (process or self.server.process).send_signal(signal.SIGHUP)
        return wait_until(lambda: entries(log(), event)[before:], what=event)[0]

    def result(self, kind, **fields):
        return self.wait_ended(self.enqueue(kind, **fields)["id"])["result"]

    def queue(self, name="default"):
        return self.expect(200, "GET", f"/v1/queues/{name}")


class Serving(ReloadTest):
    def test_handlers_limits_and_the_log_level_are_in_force_without_a_restart(self):
        self.assertEqual(self.result("first"), "one")
        pid = self.server.process.pid
        self.configure(SECOND)
        entry = self.hang_up("config.reloaded")
        self.assertEqual((entry["handlers"], entry["queues"]), (3, 2))
        self.assertEqual(self.result("first"), "two")
        self.assertEqual(self.result("second"), "new")
        self.assertEqual(self.result("second", queue="other"), "new")
        self.assertEqual(self.enqueue("first")["max_retries"], 7)
        self.assertEqual(self.queue()["concurrency"], 3)
        self.assertEqual(self.queue("other")["key_concurrency"], 2)
        self.assertEqual(self.queue("other")["dead_letter_queue"], "dead")
        self.assertEqual(self.server.process.pid, pid)
        self.assertIsNone(self.server.process.poll())

    def test_a_wrong_file_changes_nothing_and_says_why(self):
        self.configure(SECOND)
        self.hang_up("config.reloaded")
        self.configure(WRONG)
        entry = self.hang_up("config.refused")
        self.assertIn("server.yaml:9", entry["reason"])
        self.assertEqual(self.queue()["concurrency"], 3)
        self.assertEqual(self.result("first"), "two")
        self.assertEqual(self.result("second"), "new")
        os.remove(os.path.join(self.gates, "server.yaml"))
        self.assertIn("server.yaml", self.hang_up("config.refused")["reason"])
        self.assertEqual(self.result("second"), "new")
        self.configure(FIRST + "callbacks: {allow: [nonsense]}\n")
        self.assertIn("nonsense", self.hang_up("config.refused")["reason"])
        self.assertEqual(self.result("second"), "new")

    def test_settings_that_need_a_restart_are_named_and_stay(self):
        self.configure(FIRST + "lease: 7s\nwriters: 2\nredact:\n  - pattern: abc\n"
                       "queues:\n  - {name: far, serve: true, store: far.db}\n")
        self.server.process.send_signal(signal.SIGHUP)
        entry = wait_until(lambda: entries(self.server.log(), "config.restart_needed"),
                           what="the names")[0]
        self.assertEqual(set(entry["settings"].split(", ")),
                         {"lease", "writers", "redact", "store of the queue far"})
        self.assertEqual(self.result("first", queue="far"), "one")
        self.assertFalse(os.path.exists(os.path.join(self.folder, "far.db")))
        self.assertNotIn("listen", entry["settings"])  # a flag wins over the file as before

    def test_what_runs_is_left_alone_and_counts_no_crash(self):
        self.configure(HELD.replace("trap '' TERM; ", "").replace(
            "while :; do sleep 0.05; done",
            r"while [ ! -e {folder}/go ]; do sleep 0.02; done; echo '{\"result\":\"old\"}' >&3"))
        self.hang_up("config.reloaded")
        task = self.enqueue("held")
        self.wait_status(task["id"], "running")
        self.configure(FIRST)
        self.hang_up("config.reloaded")
        self.assertEqual(self.task(task["id"])["status"], "running")
        self.assertEqual(self.result("first"), "one")
        self.open_gate()
        ended = self.wait_ended(task["id"])
        self.assertEqual((ended["result"], ended["attempts"], ended["crash_count"]), ("old", 1, 0))

    @unittest.skipIf(harness.sanitizer(), "sanitizers keep what was freed")
    def test_a_configuration_that_says_nothing_new_takes_no_memory(self):
        """And is in force again: what was changed by hand meanwhile is as the file says."""
        more = "".join(f"  - {{type: kind-{i}, command: ['true'], max_retries: 3}}\n"
                       for i in range(200))
        many = SECOND.replace("queues:", more + "queues:")
        self.configure(many)
        self.hang_up("config.reloaded")
        for _ in range(3):
            self.hang_up("config.reloaded")
        before = self.data_kib()
        for _ in range(20):
            self.hang_up("config.reloaded")
        same = self.data_kib() - before
        self.expect(200, "PATCH", "/v1/queues/default", {"concurrency": 9})
        self.hang_up("config.reloaded")
        self.assertEqual(self.queue()["concurrency"], 3)
        self.assertEqual(self.result("second"), "new")
        before = self.data_kib()
        for i in range(20):
            self.configure(many.replace("max_retries: 3", f"max_retries: {i % 2}"))
            self.hang_up("config.reloaded")
        self.assertLess(same, (self.data_kib() - before) / 4)

    def data_kib(self):
        status = pathlib.Path(f"/proc/{self.server.process.pid}/status").read_text()
        return int(re.search(r"VmData:\s+(\d+)", status).group(1))

    def test_a_second_word_before_the_first_is_done_is_not_lost(self):
        self.configure(SECOND)
        for _ in range(20):
            self.server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: entries(self.server.log(), "config.reloaded"), what="a reload")
        self.assertEqual(self.result("second"), "new")
        self.configure(FIRST)
        self.hang_up("config.reloaded")
        self.assertEqual(self.result("first"), "one")


# Its programs: one found in PATH, one in the handler's own PATH, one in its folder; the others are
# nowhere.
PROGRAMS = r"""
handlers:
  - {type: here, command: ["true"]}
  - {type: own, command: ["tool"], environment: {PATH: "{folder}"}}
  - {type: beside, command: ["./tool"], directory: "{folder}"}
  - {type: nowhere, command: ["no-such-program-anywhere"]}
  - {type: text, command: ["{folder}/text"]}
"""


class Programs(ReloadTest):
    config = FIRST

    def missing(self, log):
        return [(entry["type"], entry["setting"]) for entry in
                entries(log, "handler.program_missing")]

    def test_a_handler_without_its_program_is_warned_of_at_the_start_and_after_a_reload(self):
        tool = pathlib.Path(self.gates, "tool")
        tool.write_text("#!/bin/sh\n")
        tool.chmod(0o755)
        pathlib.Path(self.gates, "text").write_text("no program\n")
        expected = [("nowhere", "command"), ("text", "command")]
        self.configure(PROGRAMS)
        self.hang_up("config.reloaded")
        self.assertEqual(self.missing(self.server.log()), expected)
        doctor = self.perdura("doctor", "--config", os.path.join(self.gates, "server.yaml"),
                              code=1).stdout
        for kind in ("here", "own", "beside"):
            self.assertNotIn(f"handler: {kind}: ", doctor)
        self.assertIn("nowhere: no-such-program-anywhere cannot be run", doctor)
        before = len(self.server.log())
        self.restart()
        self.assertEqual(self.missing(self.server.log()[before:]), expected)


LESS = r"""
handlers:
  - {type: kept, command: ["true"], queues: [stays]}
"""
MORE = LESS + r"""
  - {type: gone:*, command: ["true"], queues: [left]}
queues:
  - {name: limited, concurrency: 2, serve: true}
  - {name: plain, serve: true}
"""


class Less(ReloadTest):
    config = MORE

    def test_a_reload_names_what_it_takes_away_and_what_it_leaves(self):
        self.configure(LESS)
        self.hang_up("config.reloaded")
        log = self.server.log()
        self.assertEqual(entries(log, "config.types_not_handled")[0]["types"], "gone:*")
        self.assertEqual(entries(log, "config.queues_not_served")[0]["queues"],
                         "left, limited, plain")
        [kept] = entries(log, "config.limits_kept")
        self.assertEqual(kept["queues"], "limited")
        self.assertIn("perdura queue limit", kept["hint"])
        self.assertEqual(self.queue("limited")["concurrency"], 2)
        self.hang_up("config.reloaded")  # nothing changed: nothing more is said
        self.assertEqual(len(entries(self.server.log(), "config.limits_kept")), 1)
        self.assertEqual(len(entries(self.server.log(), "config.queues_not_served")), 1)


class WithoutHandlers(ReloadTest):
    config = "# nothing yet\n"

    def test_the_first_handler_starts_the_pool(self):
        task = self.enqueue("first")
        self.configure(FIRST)
        self.hang_up("config.reloaded")
        self.assertEqual(self.wait_ended(task["id"])["result"], "one")

    def test_the_first_validator_needs_a_restart(self):
        self.configure(FIRST + "    validate: {command: [\"true\"]}\n")
        self.assertIn("validator", self.hang_up("config.refused")["reason"])


class WithoutHandlers(ReloadTest):
    """B6, C8: a pool that can run nothing takes nothing, and everything that tells of it says so."""
    config = FIRST + "unclaimed_after: 1s\n"

    def pool(self):
        row, = self.expect(200, "GET", "/v1/workers")["items"]
        return row["types"]

    def check_takes_nothing(self):
        task = self.enqueue("first")["id"]
        self.assertEqual(self.pool(), [])
        self.assertRegex(self.perdura("workers").stdout.splitlines()[1], r" default +- ")
        self.assertIn("has a handler for the type 'first'", self.perdura("task", "why", task).stdout)
        told = self.perdura("task", "wait", task, "--timeout", "3s", code=1).stderr
        self.assertIn("waiting: No worker of the queue 'default' has a handler for the type", told)
        wait_until(lambda: [alert for alert in self.expect(200, "GET", "/v1/stats")["alerts"]
                            if alert["code"] == "unclaimed"], what="the alert")
        self.assertRegex(self.perdura("queue", "show", "default").stdout,
                         r"(?m)^served by the pool +no$")
        self.configure(self.config)
        self.hang_up("config.reloaded")
        self.assertEqual(self.pool(), ["first"])
        self.assertRegex(self.perdura("queue", "show", "default").stdout,
                         r"(?m)^served by the pool +yes$")
        self.assertEqual(self.wait_ended(task)["result"], "one")

    def test_a_pool_whose_handlers_were_all_removed_takes_nothing(self):
        self.configure("handlers: []\nunclaimed_after: 1s\n")
        self.hang_up("config.reloaded")
        self.check_takes_nothing()

    def test_a_pool_whose_handlers_have_no_command_takes_nothing(self):
        self.configure("handlers:\n  - {type: first, max_retries: 2}\nunclaimed_after: 1s\n")
        self.hang_up("config.reloaded")
        self.check_takes_nothing()


class NoPool(ReloadTest):
    config = "# nothing yet\n"

    def test_a_node_without_a_pool_takes_nothing(self):
        row, = self.expect(200, "GET", "/v1/workers")["items"]
        self.assertEqual((row["pool_size"], row["types"]), (0, []))
        self.assertNotIn("*", self.perdura("workers").stdout)
        self.enqueue("any")
        self.assertFalse(self.queue()["serve"])


class NoFile(ReloadTest):
    config = None

    def test_without_a_file_there_is_nothing_to_read(self):
        self.assertIn("no configuration file", self.hang_up("config.refused")["reason"])
        self.expect(200, "GET", "/healthz")


class Several(ReloadTest):
    config = FIRST + "queues:\n  - {name: far, serve: true, store: far.db}\n"

    def test_queues_in_other_stores_get_their_limits(self):
        self.configure(SECOND.replace("- name: other", "- name: far\n    store: far.db")
                       .replace("    dead_letter_queue: dead\n", ""))
        self.hang_up("config.reloaded")
        self.assertEqual(entries(self.server.log(), "config.restart_needed"), [])
        self.assertEqual(self.result("second", queue="far"), "new")
        self.assertEqual(self.queue("far")["key_concurrency"], 2)


class Hurry(ReloadTest):
    config = HELD

    def held(self, count=1):
        ids = [self.enqueue("held")["id"] for _ in range(count)]
        path = pathlib.Path(self.gates, "pid")
        wait_until(lambda: path.exists() and path.read_text().count("\n") == count,
                   what="the handlers' start")
        for task_id in ids:
            self.wait_status(task_id, "running")
        return ids

    def check_given_back(self, ids):
        for task_id in ids:
            task = self.task(task_id)
            self.assertEqual((task["status"], task["crash_count"], task["attempts"]),
                             ("pending", 0, 0), task)

    def test_f_a18_a_second_signal_gives_tasks_back_at_once_and_counts_no_crash(self):
        ids = self.held(3)
        self.server.process.send_signal(signal.SIGINT)
        [first] = wait_until(lambda: entries(self.server.log(), "node.stopping"),
                             what="the first word")
        self.assertEqual(first["running"], 3)
        self.assertRegex(first["hint"], "waits up to 60s for running tasks .* a second Ctrl-C")
        self.server.process.send_signal(signal.SIGINT)
        self.assertEqual(self.server.process.wait(40), 0)  # the grace is a minute
        [stopped] = entries(self.server.log(), "node.stopped")
        self.assertEqual((stopped["finished"], stopped["handed_back"]), (0, 3))
        self.configure("# none\n")
        self.server.process.stdout.close()
        self.server.start()
        self.local.connection = None
        self.url = "http://%s:%d" % self.server.address
        self.check_given_back(ids)
        [attempt] = self.perdura("task", "executions", ids[0]).stdout.splitlines()[1:]
        self.assertEqual(attempt.split()[1], "released")

    def test_what_ends_within_the_grace_is_counted_as_finished(self):
        self.configure(HELD.replace("while :; do", "while [ ! -e {folder}/go ]; do"))
        self.hang_up("config.reloaded")
        self.held(2)
        self.server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: entries(self.server.log(), "node.stopping"), what="the signal's line")
        self.open_gate()
        self.assertEqual(self.server.process.wait(DEADLINE_S), 0)
        [stopped] = entries(self.server.log(), "node.stopped")
        self.assertEqual((stopped["finished"], stopped["handed_back"]), (2, 0))
        [pool] = entries(self.server.log(), "worker.stopped")
        self.assertEqual((pool["finished"], pool["handed_back"]), (2, 0))

    def test_with_nothing_to_wait_for_nothing_is_said_of_waiting(self):
        self.server.process.send_signal(signal.SIGINT)
        self.assertEqual(self.server.process.wait(DEADLINE_S), 0)
        [first] = entries(self.server.log(), "node.stopping")
        self.assertEqual((first["running"], "hint" in first), (0, False))


class Worker(ReloadTest):
    config = "# nothing\n"

    def worker(self, handlers):
        self.handlers = self.write("worker.yaml", handlers.replace("{folder}", self.gates))
        log = open(os.path.join(self.folder, "worker.log"), "ab")
        self.addCleanup(log.close)
        process = subprocess.Popen(
            [binary(), "worker", "--server", self.url, "--config", self.handlers],
            cwd=self.folder, stdout=subprocess.PIPE, stderr=log, text=True, env=environment())
        self.addCleanup(self.end, process)
        self.assertRegex(process.stdout.readline(), "^worker .* claims from http")
        return process

    def end(self, process):
        if process.poll() is None:
            process.kill()
        process.wait(DEADLINE_S)
        process.stdout.close()

    def log(self):
        return pathlib.Path(self.folder, "worker.log").read_text()

    arguments = ("--lease", "4s")

    def test_a_worker_reads_its_configuration_again(self):
        process = self.worker(FIRST)
        self.assertEqual(self.result("first"), "one")
        self.write("worker.yaml", SECOND + "lease: 9s\n")
        self.hang_up("config.reloaded", self.log, process)
        self.assertEqual(entries(self.log(), "config.restart_needed")[0]["settings"], "lease")
        self.assertEqual(self.result("first"), "two")
        self.assertEqual(self.result("second"), "new")
        self.assertEqual(self.result("second", queue="other"), "new")
        self.write("worker.yaml", FIRST + "  - {type: nowhere, command: [no-such-program]}\n")
        self.hang_up("config.reloaded", self.log, process)
        self.assertEqual(entries(self.log(), "config.types_not_handled")[0]["types"],
                         "second, quick")
        self.assertEqual(entries(self.log(), "config.queues_not_served")[0]["queues"], "other")
        self.assertEqual(entries(self.log(), "config.limits_kept"), [])  # the server's to say
        self.assertEqual(entries(self.log(), "handler.program_missing")[0]["type"], "nowhere")
        self.write("worker.yaml", SECOND)
        self.hang_up("config.reloaded", self.log, process)
        self.write("worker.yaml", WRONG)
        self.assertIn("worker.yaml:9", self.hang_up("config.refused", self.log,
                                                    process)["reason"])
        self.write("worker.yaml", "handlers: []\n")
        self.hang_up("config.refused", self.log, process)
        self.assertEqual(self.result("second"), "new")

    def test_f_a18_a_second_signal_gives_its_tasks_back(self):
        process = self.worker(HELD)
        ids = Hurry.held(self, 2)
        process.send_signal(signal.SIGTERM)
        [first] = wait_until(lambda: entries(self.log(), "worker.stopping"), what="the first word")
        self.assertEqual(first["running"], 2)
        self.assertRegex(first["hint"], "waits up to 60s for running tasks .* a second Ctrl-C")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(40), 0)
        [stopped] = entries(self.log(), "worker.stopped")
        self.assertEqual((stopped["finished"], stopped["handed_back"]), (0, 2))
        Hurry.check_given_back(self, ids)


class Ending(cli_harness.FolderTest):
    def test_f_a18_a_second_signal_in_any_moment_of_the_end_leaves_a_clean_exit(self):
        for wait_ms in range(0, 24, 2):
            server = self.serve()
            before = len(entries(server.log(), "node.stopping"))
            server.process.send_signal(signal.SIGTERM)
            wait_until(lambda: len(entries(server.log(), "node.stopping")) > before,
                       what="the first word")
            until = time.monotonic() + wait_ms / 1000
            while time.monotonic() < until:
                pass
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(server.process.wait(40), 0, server.log())


class Manager(cli_harness.FolderTest):
    def test_the_service_manager_is_told_of_a_reload(self):
        import socket
        path = os.path.join(self.folder, "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(path)
            manager.settimeout(DEADLINE_S)
            self.write("perdura.yaml", FIRST)
            server = self.serve(NOTIFY_SOCKET=path)
            said = [manager.recv(4096).decode()]
            self.assertTrue(said[0].startswith("READY=1"))
            server.process.send_signal(signal.SIGHUP)
            said = [manager.recv(4096).decode() for _ in range(2)]
            self.assertRegex(said[0], r"^RELOADING=1\nMONOTONIC_USEC=\d+$")
            self.assertRegex(said[1], r"^READY=1\nSTATUS=serving .* read again$")
            self.write("perdura.yaml", "nonsense: 1\n")
            server.process.send_signal(signal.SIGHUP)
            said = [manager.recv(4096).decode() for _ in range(2)]
            self.assertRegex(said[1], r"^READY=1\nSTATUS=configuration refused: .*nonsense")
        for unit in ("perdura.service", "perdura-worker.service"):
            self.assertIn("ExecReload=/bin/kill -HUP $MAINPID",
                          (harness.ROOT / "deploy" / unit).read_text())


if __name__ == "__main__":
    unittest.main()
