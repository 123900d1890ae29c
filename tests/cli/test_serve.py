"""`perdura serve`: what it needs to start, what it refuses, how it stops, what it logs."""
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import unittest

import cli_harness
from cli_harness import FolderTest, ServerTest, binary, wait_until


class Refusals(FolderTest):
    """Each is exit code 1 and one sentence that says what to do."""

    def serve_refused(self, *arguments, **variables):
        return self.refused(1, "serve", "--listen", "127.0.0.1:0", *arguments, **variables)

    def test_a_second_server_on_the_store_is_told_the_pid_of_the_first(self):
        """F-D8"""
        server = self.serve()
        sentence = self.serve_refused("--store", server.store)
        self.assertIn(f"process {server.process.pid}", sentence)
        self.assertEqual(server.stop(), 0)
        self.assertEqual(self.serve().stop(), 0)

    def test_a_lock_left_by_a_killed_server_does_not_block(self):
        server = self.serve()
        server.stop(signal.SIGKILL)
        self.assertEqual(self.serve().stop(), 0)

    def test_a_store_that_cannot_be_made(self):
        """F-D9"""
        self.write("file", "")
        for store in ("file/below.db", "nowhere/perdura.db", "."):
            with self.subTest(store):
                self.assertIn(store, self.serve_refused("--store", store))
                self.assertFalse(os.path.exists(os.path.join(self.folder, "nowhere")))

    def mounted(self, options):
        path = os.path.join(self.folder, "mounted")
        os.mkdir(path)
        mount = ["mount", "-t", "tmpfs", "-o", options, "none", path]
        if os.geteuid() != 0 or not shutil.which("mount") or \
                subprocess.run(mount, capture_output=True).returncode != 0:
            self.skipTest("mounting a file system is not allowed here")
        self.addCleanup(subprocess.run, ["umount", "-l", path], check=True)
        return path

    def test_a_file_system_that_is_read_only(self):
        """F-D9"""
        path = self.mounted("size=8m")
        self.perdura("migrate", "up", "--store", path + "/there.db")
        subprocess.run(["mount", "-o", "remount,ro", path], check=True)
        self.serve_refused("--store", path + "/new.db")
        self.serve_refused("--store", path + "/there.db")

    def test_an_address_that_is_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = "127.0.0.1:%d" % taken.getsockname()[1]
            done = self.perdura("serve", "--listen", address, code=1)
        self.assertRegex(done.stderr, f"perdura: .*{address}.*another port")

    def test_the_world_without_a_token(self):
        done = self.perdura("serve", "--listen", "0.0.0.0:0", code=2)
        self.assertRegex(done.stderr, "perdura: .*set PERDURA_TOKEN")

    def test_wrong_configurations_name_file_and_line(self):
        for text, place, word in (
                ("store: a.db\nlisten_on: x\n", "bad.yaml:2", "listen"),
                ("lease: soon\n", "bad.yaml:1", "lease"),
                ("# c\nworkers: -3\n", "bad.yaml:2", "workers"),
                ("handlers:\n  - type: a\n    comand: [x]\n", "bad.yaml:3", "command"),
                ("handlers:\n  - command: [x]\n", "bad.yaml:2", "type"),
                ("queues:\n  - name: q\n    rate: fast\n", "bad.yaml:3", "rate"),
                ("store: a.db\nstore: b.db\n", "bad.yaml:2", "store"),
                ("store: [unclosed\n", "bad.yaml:", ""),
                ("token: secret\n", "bad.yaml:1", "PERDURA_TOKEN")):
            with self.subTest(text):
                self.write("bad.yaml", text)
                sentence = self.serve_refused("--config", "bad.yaml")
                self.assertIn(place, sentence)
                self.assertIn(word, sentence)
                self.assertEqual(os.listdir(self.folder), ["bad.yaml"], "nothing was made")
        self.assertIn("missing.yaml", self.serve_refused("--config", "missing.yaml"))


class Settings(FolderTest):
    def served(self, *arguments, **variables):
        """Starts, returns address and files, stops with the exit code 0."""
        process = subprocess.Popen([binary(), "serve", *arguments], cwd=self.folder, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=cli_harness.environment(**variables))
        line = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=cli_harness.DEADLINE_S)
        self.assertEqual(process.returncode, 0, stderr)
        return line.strip().split("//")[1]

    def test_flag_beats_environment_beats_file(self):
        ports = [f"127.0.0.1:{cli_harness.harness.free_port()}" for _ in range(3)]
        self.write("perdura.yaml", f"listen: {ports[0]}\nstore: file.db\n")
        self.assertEqual(self.served(), ports[0])
        self.assertTrue(os.path.exists(self.folder + "/file.db"))
        more = {"PERDURA_LISTEN": ports[1], "PERDURA_STORE": "sqlite:env.db"}
        self.assertEqual(self.served(**more), ports[1])
        self.assertTrue(os.path.exists(self.folder + "/env.db"))
        self.assertEqual(self.served("--listen", ports[2], "--store", "flag.db", **more), ports[2])
        self.assertTrue(os.path.exists(self.folder + "/flag.db"))


class Token(FolderTest):
    secret = "canary-token-0123456789abcdef"

    def get(self, port, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/v1/stats", headers=headers)
        status = connection.getresponse().status
        connection.close()
        return status

    def test_beyond_loopback_the_token_is_needed(self):
        server = self.serve("--listen", "0.0.0.0:0", "--allow-clear-text",
                            PERDURA_TOKEN=self.secret)
        port = server.address[1]
        bearer = "Bearer " + self.secret
        self.assertEqual(self.get(port), 401)
        self.assertEqual(self.get(port, Authorization=bearer + "x"), 401)
        self.assertEqual(self.get(port, Authorization=bearer), 200)
        self.url = f"http://127.0.0.1:{port}"
        self.assertIn("PERDURA_TOKEN", self.refused(1, "stats"))
        self.assertIn("PERDURA_TOKEN", self.refused(1, "stats", PERDURA_TOKEN="wrong"))
        self.perdura("stats", PERDURA_TOKEN=self.secret)
        server.stop()
        self.assertNotIn(self.secret, server.log())


class Stopping(ServerTest):
    config = r"""
handlers:
  - type: short
    command: ["sh", "-c", "echo '{\"state\":\"On\"}' >&3; while [ ! -e {folder}/go ]; do sleep 0.02; done"]
"""

    def test_signals_end_it_with_zero(self):
        for signum in (signal.SIGTERM, signal.SIGINT):
            self.assertEqual(self.server.stop(signum), 0)
            self.assertIn("node.stopping", self.server.log())
            self.server.start()

    def test_a_handler_that_ends_within_grace_is_waited_for(self):
        """F-A18"""
        task_id = self.enqueue("short")["id"]
        wait_until(lambda: self.task(task_id)["state"] == "On")
        self.server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: "node.stopping" in self.server.log())
        self.open_gate()
        self.server.process.wait(cli_harness.DEADLINE_S)
        self.assertEqual(self.server.stop(), 0)
        self.server.start()
        self.local.connection = None
        task = self.task(task_id)
        self.assertEqual((task["status"], task["attempts"]), ("completed", 1))


def spawners_of(pid):
    """The processes of this name below that one."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rpartition(") ")[2].split()
            name = (entry / "comm").read_text().strip()
        except (OSError, IndexError):
            continue
        if entry.name.isdigit() and name == "perdura-spawn" and int(fields[1]) == pid:
            found.append(int(entry.name))
    return found


class Spawner(ServerTest):
    """What starts handlers ends with its server, however that ends."""

    config = "handlers: [{type: ok, command: ['true']}]"

    def assert_ends_with(self, signum):
        task_id = self.enqueue("ok")["id"]
        self.wait_ended(task_id)
        spawners = spawners_of(self.server.process.pid)
        self.assertEqual(len(spawners), 1)
        self.server.stop(signum)
        wait_until(lambda: not pathlib.Path(f"/proc/{spawners[0]}").exists(),
                   what="the end of the spawner")

    def test_the_spawner_ends_after_an_orderly_stop(self):
        """F-I3"""
        self.assert_ends_with(signal.SIGTERM)

    def test_the_spawner_ends_after_a_kill(self):
        """F-I3"""
        self.assert_ends_with(signal.SIGKILL)


class Demo(ServerTest):
    arguments = ("--demo",)

    def tasks(self):
        return {task["name"]: task for task in self.expect(200, "GET", "/v1/tasks")["items"]}

    def test_it_shows_success_failure_and_a_workflow(self):
        def shown():
            tasks = self.tasks()
            status = {name: task["status"] for name, task in tasks.items()}
            return tasks if status.get("say hello") == "completed" and \
                status.get("fails, is retried, becomes a dead letter") == "dead_letter" and \
                status.get("load") == "completed" and \
                tasks["twenty steps with checkpoints"]["progress"] > 0 else None
        wait_until(lambda: "in a minute" in self.tasks(), what="the tasks of the demonstration")
        self.assertEqual(self.tasks()["in a minute"]["status"], "delayed")
        tasks = wait_until(shown, 2 * cli_harness.DEADLINE_S, "the demonstration")
        self.assertEqual(tasks["fails, is retried, becomes a dead letter"]["retry_count"], 3)
        self.assertEqual(tasks["transform a"]["status"], "completed")
        count = len(tasks)
        self.server.stop(signal.SIGKILL)
        self.server.start()
        self.local.connection = None
        self.assertEqual(len(self.tasks()), count, "a second start adds nothing")


class Empty(ServerTest):
    def test_a_plain_start_has_no_tasks_and_makes_nothing_up(self):
        self.assertEqual(self.expect(200, "GET", "/v1/tasks")["items"], [])
        self.assertEqual(self.expect(200, "GET", "/v1/queues")["items"], [])
        lines = [json.loads(line) for line in self.server.log().splitlines()]
        self.assertIn("node.started", [line["event"] for line in lines])

    def test_what_it_writes_is_for_its_owner_only(self):
        self.enqueue(payload={"secret": 1})
        written = [p for p in pathlib.Path(self.folder).iterdir() if p.name.startswith("perdura.db")]
        self.assertGreaterEqual({p.name for p in written}, {"perdura.db", "perdura.db-wal"})
        for path in written:
            self.assertEqual(path.stat().st_mode & 0o077, 0, path)


class Canary(ServerTest):
    """F-J10 in part: what belongs to a task or is secret never reaches the log."""

    environment = {"PERDURA_TOKEN": "canary-token-0123456789"}
    arguments = ("--log-level", "debug", "--lease", "600ms")
    config = r"""
handlers:
  - type: leak
    command: ["sh", "-c", "cat; cat >&2; echo '{\"result\":\"canary-result\"}' >&3"]
  - type: fail
    max_retries: 1
    retry_delay: 10ms
    command: ["sh", "-c", "echo '{\"fail\":{\"error\":\"canary-error\"}}' >&3"]
  - type: broken
    command: ["sh", "-c", "echo '{\"canary-key\":1}' >&3; echo canary-broken >&3"]
"""

    def test_logs_hold_no_payload_and_no_token(self):
        headers = {"Authorization": "Bearer " + self.environment["PERDURA_TOKEN"]}
        fields = {"payload": {"secret": "canary-payload"}, "data": {"x": "canary-data"},
                  "metadata": {"x": "canary-metadata"}, "idempotency_key": "canary-key"}
        ids = [self.expect(201, "POST", "/v1/tasks", {"type": type, **fields}, headers)["id"]
               for type in ("leak", "fail", "broken", "no-handler")]
        for task_id in ids:
            self.expect(200, "GET", f"/v1/tasks/{task_id}/wait?timeout_ms=60000", None, headers)
        self.expect(400, "POST", "/v1/tasks", b'{"type":"canary-malformed', headers)
        self.expect(422, "POST", "/v1/tasks", {"type": "a", "canary": "canary"}, headers)
        self.expect(401, "GET", "/v1/tasks", None, {"Authorization": "Bearer canary-wrong"})
        self.expect(404, "GET", "/v1/tasks/canary", None, headers)
        self.expect(422, "GET", "/v1/tasks?canary=canary", None, headers)
        self.server.stop()
        self.assertNotIn("canary", self.server.log())


if __name__ == "__main__":
    unittest.main()
