"""kill -9 of a node between a call and its answer, again and again (D10, D13): no task is lost; with a
lookup every key takes effect exactly once, without one at most once more than its task completed."""
import asyncio
import collections
import contextlib
import http.client
import json
import os
import pathlib
import random
import signal
import sys
import threading
import time
import unittest
import unittest.mock
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "crash"))
from crash_harness import fault_binary  # noqa: E402
from harness import wait_until
from service_target import reply
from test_services import ServiceTest

AWAIT = "report.await"
POINTS = ("service.begin", "service.ended", AWAIT)
TASKS = 6  # of one kill
LOOKUP = "    methods: {Do: {lookup: 'GET /done/{task/id}'}}\n"


class KillTest(ServiceTest):
    """Every first call takes effect at once, or never, or is answered; then it says nothing until its
    connection ends. A call that comes again takes effect and is answered."""
    service = "    timeout: 60s\n"
    arguments = ("--config", "p.yaml", "--lease", "1s")
    kills = int(os.environ.get("PERDURA_SERVICE_KILLS", "4"))
    seed = int(os.environ.get("PERDURA_SEED", "1"))

    async def answer(self, call, writer):
        key = call.headers["idempotency-key"]
        if call.path.startswith("/done/"):
            self.asked[key] += 1
            return reply(200, {"n": 1}) if self.effects[key] else reply(404)
        self.calls[key] += 1
        fate = self.random.choice(("effect", "nothing", "answer")) if self.calls[key] == 1 and self.hold else "answer"
        self.effects[key] += fate != "nothing"
        if fate == "answer":
            return reply(200, {"n": 1})
        await writer.peer.read(1)
        return None

    def setUp(self):
        self.random = random.Random(self.seed)
        self.calls, self.effects, self.asked = (collections.Counter() for _ in range(3))
        self.hold, self.lap, self.interrupted = True, 0, 0
        super().setUp()

    def make(self):
        """The same tasks again when the answer was lost."""
        body = [{"type": "call:x", "max_retries": 3, "retry_delay_ms": 10, "max_crashes": 9,
                 "idempotency_key": f"{self.lap}.{i}"} for i in range(TASKS)]
        return [task["id"] for task in self.expect(201, "POST", "/v1/tasks", body)["items"]]

    def start_again(self):
        self.server.process.wait(60)
        self.server.process.stdout.close()
        self.hold = False
        self.server.environment.pop("PERDURA_FAULT", None)
        self.server.start()
        self.local.__dict__.clear()

    def settle(self):
        """What the kill left ends, and the books agree."""
        for task_id in self.make():
            task = self.ended(task_id)
            self.assertEqual((task["status"], task["result"]), ("completed", {"n": 1}), task["error"])
            self.interrupted += self.calls[task_id] > 1 or self.asked[task_id] > 0
            self.assertGreaterEqual(self.effects[task_id], 1, "completed, and nothing was done")
            self.assertLessEqual(self.effects[task_id], 1 if "lookup" in self.service else 2)
        self.lap += 1
        self.hold = True

    def kill_at_any_moment(self):
        ids = self.make()
        if self.random.random() < 0.7:
            wait_until(lambda: all(self.calls[x] for x in ids), what="all calls at the service")
        self.server.process.kill()
        self.start_again()
        self.settle()

    def kill_at(self, point):
        """Killed where the node itself comes by: before a request is sent, after its answer was read."""
        self.server.stop()
        self.hold = False
        with unittest.mock.patch.dict(os.environ, PERDURA_BINARY=fault_binary()):
            self.server.environment["PERDURA_FAULT"] = point
            self.server.start()
        self.local.__dict__.clear()
        with contextlib.suppress(OSError, http.client.HTTPException):
            self.make()
        self.assertEqual(self.server.process.wait(60), -signal.SIGKILL, point)
        self.start_again()
        self.settle()


class LookupTest(KillTest):
    service = KillTest.service + LOOKUP

    def test_f_g8_every_key_takes_effect_exactly_once(self):
        for _ in range(self.kills):
            self.kill_at_any_moment()


class RepeatTest(KillTest):
    def test_f_g8_a_key_takes_effect_at_most_once_more_than_its_task_completes(self):
        for _ in range(self.kills):
            self.kill_at_any_moment()


class AtPointTest(LookupTest):
    """At the points of a call, with a lookup."""
    points = "service.begin:2,service.ended:3"

    def setUp(self):
        if not fault_binary():
            self.skipTest("PERDURA_FAULTS_BUILD names no build with fault points")
        super().setUp()

    def test_f_g8_every_key_takes_effect_exactly_once(self):
        for point in os.environ.get("PERDURA_SERVICE_POINTS", self.points).split(","):
            self.kill_at(point)


class AwaitPointTest(AtPointTest):
    """The service says 202 and is killed for it: it works on, and says how it ended to the URL of the
    call or lookup that it heard last."""
    points = f"{AWAIT}:2"

    def setUp(self):
        self.again, self.over = threading.Event(), threading.Event()
        super().setUp()
        self.addCleanup(self.again.set)
        self.addCleanup(self.over.set)
        self.server.arguments = (*self.arguments, "--listen", "127.0.0.1:%d" % self.server.address[1])  # the URLs name it

    def start_again(self):
        super().start_again()
        self.again.set()

    async def answer(self, call, writer):
        key = call.headers["idempotency-key"]
        if call.path.startswith("/done/"):
            self.asked[key] += 1
            if not self.effects[key]:
                return reply(404)
        else:
            self.calls[key] += 1
            self.effects[key] += 1
        threading.Thread(target=self.end, args=(call.headers["perdura-complete-url"],), daemon=True).start()
        return reply(202, {}, Perdura_Async="1")

    def end(self, url):
        """Not before the node is there again: then until it is taken, or the test is over."""
        self.again.wait(60)
        body = json.dumps({"result": {"n": 1}}).encode()
        while not self.over.wait(0.05):
            with contextlib.suppress(OSError):
                try:
                    urllib.request.urlopen(urllib.request.Request(url, body, {"Content-Type": "application/json"}), timeout=5)
                    return
                except urllib.error.HTTPError as error:
                    error.close()


if __name__ == "__main__":
    unittest.main()
