"""Every file of examples/ is run as its opening comment says: handlers are killed in the middle and
continue from their checkpoint, HTTP workers complete tasks, the C programs build against the
library."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import unittest

from cli_harness import EXAMPLES, ServerTest, binary, compiler, environment, harness, wait_until

BUILD = os.path.dirname(binary())
COVERED = {"perdura.yaml", "handler.sh", "handler.py", "handler.mjs", "handler.c", "worker.py",
           "worker.mjs", "embed.c", "remote.c", "schedule.c"}
TRIES = 5
needs_node = unittest.skipUnless(shutil.which("node"), "node is not installed")


def needs(name):
    return unittest.skipUnless((EXAMPLES / name).exists(), f"examples/{name} is not there")


class Files(unittest.TestCase):
    def test_every_example_has_a_test(self):
        files = {path.name for path in EXAMPLES.iterdir() if path.is_file()}
        self.assertLessEqual(files - {"README.md"}, COVERED)


class Handlers(ServerTest):
    """The configuration of examples/ with all handlers; the server is killed in the middle."""

    arguments = ("--config", "perdura.yaml")
    payloads = {"example:sh": None, "example:c": None, "example:mjs": {"count": 5},
                "example:py": {"items": ["a", "b", "c", "d", "e"]}}

    def setUp(self):
        make = harness.Server.start

        def prepared(server):  # the folder is there, the server is not: bring the examples along
            harness.Server.start = make
            for name in ("perdura.yaml", "handler.sh", "handler.py", "handler.mjs"):
                shutil.copy(EXAMPLES / name, server.folder)
            subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", str(EXAMPLES / "handler.c"),
                            "-o", os.path.join(server.folder, "handler")], check=True)
            return make(server)
        harness.Server.start = prepared
        super().setUp()

    def checkpoints(self, task_id):
        return self.expect(200, "GET", f"/v1/tasks/{task_id}/checkpoints")["items"]

    def types(self):
        return [type for type in self.payloads if type != "example:mjs" or shutil.which("node")]

    def killed_in_the_middle(self, type):
        """Of a task of this type; it may have ended before the kill came."""
        for _ in range(TRIES):
            task_id = self.enqueue(type, payload=self.payloads[type])["id"]
            wait_until(lambda: len(self.checkpoints(task_id)) >= 2)
            self.restart(signal.SIGKILL)
            if self.task(task_id)["status"] != "completed" or self.task(task_id)["attempts"] > 1:
                return task_id
        raise AssertionError("it always ended before the kill")

    def test_each_goes_on_behind_its_last_checkpoint_after_a_kill(self):
        for type in self.types():  # one by one: a fast one would end while a slow one starts
            with self.subTest(type):
                task_id = self.killed_in_the_middle(type)
                task = self.wait_ended(task_id)
                self.assertEqual(task["status"], "completed")
                self.assertEqual((task["attempts"], task["crash_count"]), (2, 1))
                self.assertTrue(task["resumed_from"])
                steps = [(point["checkpoint_name"], point["progress_percent"])
                         for point in self.checkpoints(task_id)]
                stem = "item" if type == "example:py" else "step"
                self.assertEqual(sorted(steps), [(f"{stem}-{i}", i * 20) for i in range(1, 6)],
                                 "each step once")
                result = {"example:sh": {"steps": 5}, "example:c": {"steps": 5},
                          "example:mjs": {"done": 5},
                          "example:py": {"items": ["a", "b", "c", "d", "e"]}}[type]
                self.assertEqual(task["result"], result)

    def test_the_commands_of_the_comments_work(self):
        done = self.perdura("enqueue", "example:sh", "--wait")
        self.assertEqual(json.loads(done.stdout.splitlines()[1]), {"steps": 5})
        done = self.perdura("enqueue", "example:py", "--payload", '{"items":["a"]}', "--wait")
        self.assertEqual(json.loads(done.stdout.splitlines()[1]), {"items": ["a"]})
        self.assertIn("payload.items must be a list",
                      self.refused(1, "enqueue", "example:py", "--payload", '{"items":1}',
                                   "--wait"))
        doctor = json.loads(self.perdura("doctor", "--json").stdout)
        self.assertIn("4, every program is there",
                      [check["detail"] for check in doctor["checks"]])


class HttpWorkers(ServerTest):
    arguments = ("--lease", "5s")

    def run_worker(self, *command):
        log = open(os.path.join(self.folder, "worker.log"), "wb")
        self.addCleanup(log.close)
        process = subprocess.Popen([*command, self.url], stdout=log, stderr=log,
                                   env=environment())

        def end():
            process.kill()
            process.wait()
        self.addCleanup(end)
        return process

    def check(self, *command):
        process = self.run_worker(*command)
        task_id = self.enqueue("example:http", payload={"n": 3})["id"]
        task = self.wait_ended(task_id)
        self.assertEqual((task["status"], task["result"], task["attempts"]),
                         ("completed", {"counted": 3}, 1))
        points = self.expect(200, "GET", f"/v1/tasks/{task_id}/checkpoints")["items"]
        self.assertEqual(sorted(point["checkpoint_name"] for point in points),
                         ["step-1", "step-2", "step-3"])
        # Killed in the middle, another one continues after the last checkpoint.
        task_id = self.enqueue("example:http", payload={"n": 15})["id"]
        wait_until(lambda: self.task(task_id)["checkpoint_data"])
        process.kill()
        second = self.run_worker(*command)
        task = self.wait_ended(task_id)
        self.assertEqual((task["status"], task["result"], task["attempts"]),
                         ("completed", {"counted": 15}, 2))
        self.assertEqual(task["checkpoint_data"]["seq"], 15, "each step once")
        self.stops_at_once(second)

    def stops_at_once(self, process):
        """Ctrl-C leaves the server and gives the task back."""
        task_id = self.enqueue("example:http", payload={"n": 50})["id"]
        wait_until(lambda: self.task(task_id)["checkpoint_data"])
        process.send_signal(signal.SIGINT)
        process.wait(harness.DEADLINE_S)
        task = self.wait_status(task_id, "pending")
        self.assertEqual((task["retry_count"], task["crash_count"]), (0, 0))

    @needs("worker.py")
    def test_in_python(self):
        self.check("python3", str(EXAMPLES / "worker.py"))

    @needs_node
    @needs("worker.mjs")
    def test_in_javascript(self):
        self.check("node", str(EXAMPLES / "worker.mjs"))


@unittest.skipUnless(os.path.exists(os.path.join(BUILD, "libperdura.so")),
                     "libperdura is not built beside the binary")
class Library(ServerTest):
    def build(self, name):
        path = os.path.join(self.folder, name)
        subprocess.run([*compiler(), "-Wall", "-Wextra", "-Werror", str(EXAMPLES / (name + ".c")), "-o", path, "-I",
                        str(harness.ROOT / "include"), "-L", BUILD, "-lperdura",
                        "-Wl,-rpath," + BUILD], check=True)
        return path

    def run_program(self, *command):
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True,
                              timeout=120, env=environment())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    @needs("embed.c")
    def test_embed(self):
        program = self.build("embed")
        self.assertRegex(self.run_program(program), r"^[0-9a-f-]{36} completed 5\n$")
        self.run_program(program, "other.db")
        self.perdura("verify", "--store", "embed.db")

    @needs("remote.c")
    def test_remote(self):
        out = self.run_program(self.build("remote"), self.url)
        self.assertRegex(out, r'report gets .*"result":\[1,2,3\]')
        self.assertRegex(out, r'[0-9a-f-]{36} completed {"sum":6}\n$')

    @needs("schedule.c")
    def test_schedule(self):
        program = self.build("schedule")
        out = self.run_program(program)
        self.assertEqual(len(re.findall(r"will fire at \d+\n", out)), 3)
        self.assertEqual(len(re.findall(r'tick of example:tick with {"hello":"again"}\n', out)), 3)
        again = self.run_program(program)  # what was planned is still there
        self.assertNotIn("will fire", again)
        self.assertGreaterEqual(again.count("tick of"), 3)
        self.perdura("verify", "--store", "schedule.db")
        self.assertIn("tick of", self.run_program(program, self.url))


if __name__ == "__main__":
    unittest.main()
