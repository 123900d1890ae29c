"""kill -9 in every state of an agent's step (C9, C3, B3): the conversation continues behind its last
stored message, a model call is repeated, a tool call only where that is safe; else a person is asked."""
import contextlib
import http.client
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "crash"))
from crash_harness import fault_binary  # noqa: E402
from agent_harness import FINAL, AgentTest
from harness import binary, wait_until
from test_agents import tool

POINTS = ("agent.call", "agent.answered", "agent.kept", "agent.tool", "agent.tool_ended")
SEND = """  - name: send
    command: [sh, -c, 'echo "$PERDURA_IDEMPOTENCY_KEY" >> sent; sleep 300']
  - name: quick
    command: [sh, -c, 'echo "$PERDURA_IDEMPOTENCY_KEY" >> quick']
  - name: look
    command: [sh, -c, 'echo "$PERDURA_IDEMPOTENCY_KEY" >> looked; test -e go || sleep 300']
    safe_to_retry: true
"""


class KillTest(AgentTest):
    tools = SEND
    arguments = ("--config", "p.yaml", "--lease", "2s")
    lines = [{"turn": 0, "when": "about send", "tools": [tool("quick"), tool("send")]},
             {"turn": 0, "when": "about look", "tools": [tool("look")]},
             {"turn": 0, "when": "about stall", "tools": [tool("quick")]},
             {"turn": 1, "when": "", "stall": True, "final": "x", "times": 0}]

    def lines_of(self, name):
        return self.read(name).split()


class UnsafeToolTest(KillTest):
    lines = [{"turn": 0, "tools": [tool("quick"), tool("send")]}, {"turn": 1, "final": "sent"}]

    def killed_in_the_tool(self):
        task_id = self.research("send")
        wait_until(lambda: self.lines_of("sent") and len(self.said(task_id, "tool")) == 1,
                   what="the tool, and the stored result of the other")
        self.restart()
        task = self.reaches(task_id, "paused")
        self.assertIn("Tool send may have run before a crash", task["state"])
        self.assertEqual(self.mock.requests, 1)
        return task_id

    def finish(self, task_id, decision):
        self.write_yaml_with_quick_send()
        self.expect(200, "POST", f"/v1/tasks/{task_id}:resume", {"decision": decision})
        return self.reaches(task_id, *FINAL)

    def write_yaml_with_quick_send(self):
        """From now on the tool ends at once."""
        text = self.read("p.yaml").replace("; sleep 300'", "'")
        self.write("p.yaml", text)
        self.server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "config.reloaded" in self.server.log(), what="the reload")

    def test_an_unsafe_tool_is_repeated_only_if_a_person_says_so(self):
        task = self.finish(self.killed_in_the_tool(), "retry")
        self.assertEqual((task["status"], task["result"]), ("completed", "sent"))
        keys = self.lines_of("sent")
        self.assertEqual((len(keys), len(set(keys)), len(self.lines_of("quick"))), (2, 1, 1))

    def test_skipped_the_model_learns_that_it_may_have_happened(self):
        task_id = self.killed_in_the_tool()
        self.assertEqual(self.finish(task_id, "skip")["result"], "sent")
        self.assertEqual((len(self.lines_of("sent")), len(self.lines_of("quick"))), (1, 1))
        self.assertIn("skipped by a person", self.said(task_id, "tool")[1])

    def test_a_person_may_end_the_task(self):
        task = self.finish(self.killed_in_the_tool(), "fail")
        self.assertEqual((task["status"], task["error_details"]["details"]["code"]),
                         ("failed", "tool_uncertain"))
        self.assertEqual(len(self.lines_of("sent")), 1)


class SafeToolTest(KillTest):
    lines = [{"turn": 0, "tools": [tool("look")]}, {"turn": 1, "final": "seen"}]

    def test_a_safe_tool_is_repeated_with_the_same_key(self):
        task_id = self.research("look")
        wait_until(lambda: self.lines_of("looked"), what="the tool")
        self.write("go", "")
        self.restart()
        task = self.reaches(task_id, *FINAL)
        self.assertEqual((task["status"], task["result"]), ("completed", "seen"))
        keys = self.lines_of("looked")
        self.assertEqual((len(keys), len(set(keys))), (2, 1))
        self.assertIn(self.mock.requests, (2, 3))  # the answer may not have been stored yet


class ModelCallTest(KillTest):
    lines = [{"turn": 0, "tools": [tool("quick")]},
             {"turn": 1, "stall": True, "final": "x", "times": 1}, {"turn": 1, "final": "whole"}]

    def test_a_model_call_that_was_cut_is_repeated_and_nothing_else(self):
        task_id = self.research("stall")
        wait_until(lambda: self.mock.requests == 2, what="the second call")
        self.restart()
        task = self.reaches(task_id, *FINAL)
        self.assertEqual((task["status"], task["result"]), ("completed", "whole"))
        self.assertEqual((self.mock.requests, len(self.lines_of("quick"))), (3, 1))

    def test_a_pause_keeps_the_conversation_and_gives_the_call_up(self):
        task_id = self.research("stall")
        wait_until(lambda: self.mock.requests == 2, what="the second call")
        self.expect(200, "POST", f"/v1/tasks/{task_id}:pause", {})
        self.reaches(task_id, "paused")
        self.expect(200, "POST", f"/v1/tasks/{task_id}:resume", {})
        self.assertEqual(self.reaches(task_id, *FINAL)["result"], "whole")
        self.assertEqual(len(self.lines_of("quick")), 1)

    def test_a_cancel_ends_the_call(self):
        task_id = self.research("stall")
        wait_until(lambda: self.mock.requests == 2, what="the second call")
        self.expect(200, "POST", f"/v1/tasks/{task_id}:cancel", {})
        wait_until(lambda: not self.expect(200, "GET", "/v1/stats")["running"]
                   if "running" in self.expect(200, "GET", "/v1/stats") else True, what="the end")
        self.assertEqual(self.task(task_id)["status"], "cancelled")


class WorkerTest(KillTest):
    """The same with `perdura worker`: the server lives, its worker is killed."""
    arguments = ("--workers", "0", "--lease", "2s")
    lines = ModelCallTest.lines

    def worker(self):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PERDURA_T")}
        with open(os.path.join(self.folder, "worker.log"), "ab") as log:
            process = subprocess.Popen(
                [binary(), "worker", "--server", "http://%s:%d" % self.server.address, "--config",
                 "p.yaml"], cwd=self.folder, stdout=log, stderr=log, env=environment)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_another_worker_continues_the_conversation(self):
        first = self.worker()
        task_id = self.research("stall")
        wait_until(lambda: self.mock.requests == 2, what="the second call")
        first.kill()
        self.worker()
        task = self.reaches(task_id, *FINAL)
        self.assertEqual((task["status"], task["result"], task["crash_count"]),
                         ("completed", "whole", 1))
        self.assertEqual((self.mock.requests, len(self.lines_of("quick"))), (3, 1))


class AnyMomentTest(KillTest):
    """A step of several calls and tools, killed at random moments until it ends."""
    tools = """  - name: once
    command: [sh, -c, 'echo "$PERDURA_IDEMPOTENCY_KEY" >> once']
  - name: often
    command: [sh, -c, 'echo "$PERDURA_IDEMPOTENCY_KEY" >> often']
    safe_to_retry: true
"""
    model = "    stream: false\n"
    lines = [*({"turn": i, "tools": [tool("often"), tool("once")], "delay_ms": 20} for i in range(6)),
             {"turn": 6, "final": "done"}]
    kills = 3

    def test_no_unsafe_call_is_made_twice_unasked(self):
        chance = random.Random(os.environ.get("PERDURA_SEED", "7"))
        fields = {"max_crashes": 100}
        ids = [self.research(f"t{i}", **fields) for i in range(4)]
        for _ in range(self.kills):
            wait_for = self.mock.requests + chance.randrange(1, 6)
            wait_until(lambda: self.mock.requests >= wait_for or self.ended(ids),
                       what="further requests")
            self.restart()
        for task_id in ids:
            task = self.reaches(task_id, "paused", *FINAL)
            while task["status"] == "paused":
                self.expect(200, "POST", f"/v1/tasks/{task_id}:resume", {"decision": "skip"})
                version = task["version"]
                task = wait_until(lambda: (now := self.task(task_id))["version"] > version and
                                  now["status"] in ("paused", *FINAL) and now,
                                  what="the end of the task")
            self.assertEqual((task["status"], task["result"]), ("completed", "done"))
            roles = [x["role"] for x in self.conversation(task_id)["messages"]]
            self.assertEqual(roles, ["system", "user", *["assistant", "tool", "tool"] * 6,
                                     "assistant"])
        once = self.lines_of("once")
        self.assertEqual(len(once), len(set(once)))
        self.assertGreaterEqual(len(set(self.lines_of("often"))), 24)

    def ended(self, ids):
        return all(self.task(x)["status"] in ("paused", *FINAL) for x in ids)


class AtPointTest(KillTest):
    """Killed at a named point of a step: the n-th time that the server comes by it."""
    tools = AnyMomentTest.tools
    lines = AnyMomentTest.lines
    model = AnyMomentTest.model

    def setUp(self):
        if not fault_binary():
            self.skipTest("PERDURA_FAULTS_BUILD names no build with fault points")
        super().setUp()

    def killed_at(self, point):
        self.server.stop()
        with unittest.mock.patch.dict(os.environ, PERDURA_BINARY=fault_binary()):
            self.server.environment = {"PERDURA_FAULT": point}
            self.server.start()
        self.server.environment = {}
        self.local.__dict__.clear()
        body = json.dumps({"type": "research:t", "payload": {"topic": "t"}, "idempotency_key": "t",
                           "max_crashes": 100, "max_retries": 0}).encode()
        with contextlib.suppress(OSError, http.client.HTTPException):  # killed before it answered
            self.request("POST", "/v1/tasks", body)
        self.assertEqual(self.server.process.wait(60), -signal.SIGKILL, point)
        self.restart()
        return self.request("POST", "/v1/tasks", body).json["id"]

    def check(self, point):
        task_id = self.killed_at(point)
        task = self.reaches(task_id, "paused", *FINAL)
        if task["status"] == "paused":
            self.assertIn("Tool once may have run", task["state"])
            self.expect(200, "POST", f"/v1/tasks/{task_id}:resume", {"decision": "skip"})
            task = self.reaches(task_id, *FINAL)
        self.assertEqual((task["status"], task["result"]), ("completed", "done"), point)
        once = self.lines_of("once")
        self.assertEqual(len(once), len(set(once)), point)
        self.assertGreaterEqual(len(once), 5, point)
        self.assertLessEqual(self.mock.requests, 8, point)

    def test_killed_after_an_answer_that_was_not_stored(self):
        self.check("agent.answered:2")

    def test_killed_before_a_tool_that_was_noted(self):
        self.check("agent.tool:4")

    def test_killed_after_a_tool_whose_result_was_not_stored(self):
        self.check("agent.tool_ended:3")

    def campaign(self):
        self.check(os.environ["PERDURA_AGENT_POINT"])


if __name__ == "__main__":
    unittest.main()
