"""The server as a service: what it tells its manager (sd_notify), signs of life, and the form of its
log. Run: PERDURA_BUILD=build python3 -m unittest tests/cli/test_service.py"""
import json
import os
import pathlib
import pty
import signal
import socket
import subprocess
import unittest

import cli_harness
import harness
from cli_harness import DEADLINE_S, binary, environment, wait_until

UNITS = harness.ROOT / "deploy"


class Manager:
    """The socket a service manager listens on."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.settimeout(DEADLINE_S)

    def next(self):
        return self.socket.recv(4096).decode().split("\n")

    def next_with(self, word):
        while True:
            lines = self.next()
            if word in lines:
                return lines


class NotifyTest(cli_harness.FolderTest):
    def setUp(self):
        super().setUp()
        self.manager = Manager(self.folder)
        self.addCleanup(self.manager.socket.close)

    def test_ready_comes_when_it_serves_and_stopping_when_it_stops(self):
        server = self.serve(NOTIFY_SOCKET=self.manager.path)
        lines = self.manager.next()
        self.assertEqual(lines[0], "READY=1")
        self.assertIn("STATUS=serving on http://%s:%d" % server.address, lines[1])
        self.assertEqual(server.stop(), 0)
        self.assertEqual(self.manager.next()[0], "STOPPING=1")

    def test_signs_of_life_come_while_loop_and_queue_live(self):
        server = self.serve(NOTIFY_SOCKET=self.manager.path, WATCHDOG_USEC="600000")
        for _ in range(5):
            self.manager.next_with("WATCHDOG=1")
        server.process.send_signal(signal.SIGSTOP)
        wait_until(lambda: "T (stopped)" in
                   pathlib.Path(f"/proc/{server.process.pid}/status").read_text(),
                   what="the stop")
        self.manager.socket.setblocking(False)
        try:
            while self.manager.socket.recv(4096):
                pass  # what was sent before
        except BlockingIOError:
            pass
        self.manager.socket.settimeout(1.0)
        with self.assertRaises(socket.timeout):  # longer than the manager waits
            self.manager.next()
        self.manager.socket.settimeout(DEADLINE_S)
        server.process.send_signal(signal.SIGCONT)
        self.manager.next_with("WATCHDOG=1")

    def test_a_watchdog_of_another_process_is_left_alone(self):
        server = self.serve(NOTIFY_SOCKET=self.manager.path, WATCHDOG_USEC="100000",
                            WATCHDOG_PID="1")
        self.assertEqual(self.manager.next()[0], "READY=1")
        server.stop()
        self.assertEqual(self.manager.next()[0], "STOPPING=1")

    def test_handlers_cannot_speak_for_the_server(self):
        self.write("perdura.yaml", "handlers:\n  - type: t\n    command: [\"env\"]\n")
        server = self.serve("--config", "perdura.yaml", NOTIFY_SOCKET=self.manager.path,
                            WATCHDOG_USEC="10000000")
        self.url = "http://%s:%d" % server.address
        self.perdura("enqueue", "t", "--wait")
        task = json.loads(self.perdura("task", "list", "--json").stdout)["items"][0]
        lines = self.perdura("task", "logs", task["id"]).stdout
        self.assertIn("PERDURA_TASK_ID=", lines)
        self.assertNotIn("NOTIFY_SOCKET", lines)
        self.assertNotIn("WATCHDOG", lines)

    def test_a_worker_tells_it_too(self):
        server = self.serve()
        self.write("worker.yaml", "handlers:\n  - type: t\n    command: [\"true\"]\n")
        worker = subprocess.Popen(
            [binary(), "worker", "--config", "worker.yaml"], cwd=self.folder,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=environment(NOTIFY_SOCKET=self.manager.path, WATCHDOG_USEC="300000",
                            PERDURA_SERVER="http://%s:%d" % server.address))
        self.addCleanup(worker.wait)
        self.addCleanup(worker.kill)
        self.assertEqual(self.manager.next()[0], "READY=1")
        self.manager.next_with("WATCHDOG=1")
        worker.send_signal(signal.SIGTERM)
        self.manager.next_with("STOPPING=1")
        self.assertEqual(worker.wait(DEADLINE_S), 0)

    def test_the_units_say_what_the_programs_do(self):
        for name in ("perdura.service", "perdura-worker.service"):
            text = (UNITS / name).read_text()
            self.assertIn("\nType=notify\n", text, name)
            self.assertIn("\nWatchdogSec=", text, name)
            self.assertIn("\nNotifyAccess=main\n", text, name)


class LogFormatTest(cli_harness.FolderTest):
    def log_of(self, *arguments):
        server = self.serve(*arguments)
        server.stop()
        return server.log().splitlines()

    def test_a_pipe_gets_json_and_a_person_may_ask_for_text(self):
        for line in self.log_of():
            self.assertIn("event", json.loads(line))
        pathlib.Path(self.folder, "stderr.log").unlink()
        lines = self.log_of("--log-format", "text")
        self.assertTrue(any(" info  node.started address=127.0.0.1:" in line for line in lines),
                        lines)
        self.assertFalse(any("\033" in line for line in lines), lines)

    def start_on_terminal(self, *arguments, **variables):
        master, slave = pty.openpty()
        process = subprocess.Popen(
            [binary(), "serve", "--listen", "127.0.0.1:0", "--store", "t.db", *arguments],
            cwd=self.folder, stdin=slave, stdout=subprocess.PIPE, stderr=slave,
            env=environment(TERM="xterm", **variables))
        os.close(slave)
        self.assertIn(b"listening", process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        seen = b""
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:
                break
            seen += part
        os.close(master)
        process.stdout.close()
        self.assertEqual(process.wait(DEADLINE_S), 0)
        return seen.decode()

    def test_a_terminal_gets_text_in_colour_unless_told_otherwise(self):
        seen = self.start_on_terminal()
        self.assertRegex(seen, r"\d\d:\d\d:\d\d \033\[32minfo \033\[0m node\.started")
        seen = self.start_on_terminal(NO_COLOR="1")
        self.assertRegex(seen, r"info  node\.started")
        self.assertNotIn("\033", seen)
        seen = self.start_on_terminal("--log-format", "json")
        self.assertIn('"event":"node.started"', seen)

    def test_requests_are_logged_at_debug_level_with_their_id_and_without_their_names(self):
        server = self.serve("--log-level", "debug")
        connection = harness.http.client.HTTPConnection(*server.address)
        connection.request("GET", "/v1/tasks?user_id=ada", headers={"X-Request-Id": "req-9"})
        connection.getresponse().read()
        connection.close()
        server.stop()
        lines = [json.loads(line) for line in server.log().splitlines()]
        [line] = [line for line in lines if line["event"] == "http.answered"]
        self.assertEqual((line["route"], line["status"], line["correlation_id"]),
                         ("/v1/tasks", 200, "req-9"))
        self.assertNotIn("ada", server.log())


if __name__ == "__main__":
    unittest.main()
