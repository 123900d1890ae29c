"""The loops of docs/handlers.md, 'A checkpoint in one line', run as they stand there (sh, Python,
Node) and killed at every step: after each the server, or the worker, gets SIGKILL. Every step is
counted where it is done: each is done once (B7, E5)."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import unittest

from cli_harness import DEADLINE_S, ServerTest, binary, environment, harness, wait_until

STEPS = 10
MANY_CRASHES = 100  # a task that is killed at every step is no poison
# Waits for its signal to begin, then leaves a line: a kill between steps never meets one.
WORK = """#!/bin/sh
while [ ! -e go-$1 ]; do sleep 0.01; done
echo "$1" >> steps
"""


def loops():
    """Language to program, from the page."""
    text = (harness.ROOT / "docs" / "handlers.md").read_text()
    section = text.split("### A checkpoint in one line\n")[1].split("\n### ")[0]
    return dict(re.findall(r"```(\w+)\n(#!.*?)```", section, re.S))


class LoopTest(ServerTest):
    """A server in a folder with the loops and what they call; no tests of its own."""

    arguments = ("--config", "loops.yaml")

    def setUp(self):
        start = harness.Server.start

        def prepared(server):  # the folder is there, the server is not: its programs come first
            harness.Server.start = start
            self.prepare(server.folder)
            return start(server)
        harness.Server.start = prepared
        super().setUp()

    def prepare(self, folder):
        programs = {"work": WORK, **{f"loop.{kind}": text for kind, text in loops().items()}}
        for name, text in programs.items():
            path = pathlib.Path(folder, name)
            path.write_text(text)
            path.chmod(0o755)
        rules = "".join(f"  - type: loop.{kind}\n    command: [\"./loop.{kind}\"]\n"
                        for kind in loops())
        pathlib.Path(folder, "loops.yaml").write_text("handlers:\n" + rules)
        pathlib.Path(folder, "none.yaml").write_text("workers: 0\n")

    def steps(self):
        path = pathlib.Path(self.folder, "steps")
        return path.read_text().split() if path.exists() else []

    def at_checkpoint(self, task_id, step):
        data = self.task(task_id)["checkpoint_data"]
        return data is not None and data["name"] == str(step)

    def run_and_kill(self, kind, kill):
        """Lets it do one step after the other; kill() comes after each. The task at its end."""
        task_id = self.enqueue(f"loop.{kind}", max_crashes=MANY_CRASHES)["id"]
        for step in range(1, STEPS + 1):
            pathlib.Path(self.folder, f"go-{step}").touch()
            wait_until(lambda: self.at_checkpoint(task_id, step),
                       what=f"checkpoint {step} of {kind}")
            if step < STEPS:  # behind the last one it ends by itself
                kill()
        task = self.wait_ended(task_id)
        self.assertEqual(task["status"], "completed", task)
        self.assertEqual(self.steps(), [str(step) for step in range(1, STEPS + 1)])
        return task


class Pool(LoopTest):
    def test_the_page_has_a_loop_for_each_language(self):
        self.assertEqual(set(loops()), {"sh", "python", "js"})

    def killed_server(self, kind):
        task = self.run_and_kill(kind, lambda: self.restart(signal.SIGKILL))
        self.assertEqual((task["attempts"], task["crash_count"]), (STEPS, STEPS - 1))
        self.assertEqual(task["resumed_from"], str(STEPS - 1))

    def test_b7_a_shell_loop_does_each_step_once_though_its_server_is_killed_after_every_one(self):
        self.killed_server("sh")

    @unittest.skipUnless(shutil.which("python3"), "python3 is not installed")
    def test_b7_a_python_loop_does_each_step_once_though_its_server_is_killed(self):
        self.killed_server("python")

    @unittest.skipUnless(shutil.which("node"), "node is not installed")
    def test_b7_a_node_loop_does_each_step_once_though_its_server_is_killed(self):
        self.killed_server("js")


class WorkerTest(LoopTest):
    """The loops run in workers apart from the server."""

    def worker(self):
        log = open(os.path.join(self.folder, "worker.log"), "ab")
        self.addCleanup(log.close)
        process = subprocess.Popen(
            [binary(), "worker", "--server", self.url, "--config", "loops.yaml"], cwd=self.folder,
            stdout=subprocess.PIPE, stderr=log, text=True, env=environment())
        self.addCleanup(self.end, process)
        self.assertRegex(process.stdout.readline(), "^worker .* claims from http")
        return process

    def end(self, process, signum=signal.SIGKILL):
        if process.poll() is None:
            process.send_signal(signum)
        process.wait(DEADLINE_S)
        process.stdout.close()


class KilledWorkers(WorkerTest):
    arguments = ("--lease", "2s", "--config", "none.yaml")

    def test_e5_a_loop_does_each_step_once_though_its_worker_is_killed_after_every_one(self):
        workers = [self.worker()]

        def kill():
            self.end(workers.pop())
            workers.append(self.worker())
        task = self.run_and_kill("sh", kill)
        self.assertGreaterEqual(task["crash_count"], STEPS - 1)  # more where leases ended early


class KilledServers(WorkerTest):
    arguments = ("--lease", "30s", "--config", "none.yaml")
    keeps_port = True

    def test_b7_a_loop_does_not_notice_that_the_server_of_its_worker_is_killed(self):
        self.worker()
        task = self.run_and_kill("sh", lambda: self.restart(signal.SIGKILL, same_port=True))
        self.assertEqual((task["attempts"], task["crash_count"]), (1, 0))


if __name__ == "__main__":
    unittest.main()
