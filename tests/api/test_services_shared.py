"""What one worker finds out about a service counts for the others of the store: Retry-After and open
breakers travel with the heartbeats (D10, D13)."""
import os
import pathlib
import subprocess
import time
import unittest

from harness import ApiTest, binary, wait_until
from service_target import Target, reply


class SharedTest(ApiTest):
    """Two workers with the same service and queues of their own."""
    arguments = ("--workers", "0", "--lease", "1s")

    def setUp(self):
        self.bad = None
        self.target = Target(self.answer)
        self.addCleanup(self.target.close)
        super().setUp()
        self.workers = {name: self.start_worker(name) for name in "ab"}
        wait_until(lambda: self.serving() >= {"a", "b"}, what="both workers")

    def serving(self):
        return {item["queues"][0] for item in self.expect(200, "GET", "/v1/workers")["items"]
                if item["types"] == ["service:s/*"]}

    def answer(self, call):
        return self.bad or reply()

    def start_worker(self, name):
        path = pathlib.Path(self.folder, f"{name}.yaml")
        path.write_text(f"services:\n  - {{name: s, url: '{self.target.url}', "
                        "breaker: {failures: 2, open: 4s}}\n")
        path.chmod(0o600)
        log = open(os.path.join(self.folder, f"{name}.log"), "ab")
        self.addCleanup(log.close)
        worker = subprocess.Popen(
            [binary(), "worker", "--server", "http://%s:%d" % self.server.address, "--queues", name,
             "--config", str(path)], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=log)
        self.addCleanup(worker.wait)
        self.addCleanup(worker.kill)
        return worker

    def heard(self, name):
        return "service.held_off" in pathlib.Path(self.folder, f"{name}.log").read_text()

    def ended(self, task):
        return wait_until(lambda: (seen := self.task(task["id"]))["status"] in
                          ("completed", "failed", "dead_letter") and seen, what="the end")

    def check_waits(self, seconds, **fields):
        """Worker a meets the bad answer; b calls nothing until that is over."""
        began = time.monotonic()
        tasks = [self.enqueue("service:s/Do", queue="a", **fields) for _ in range(2)]
        wait_until(lambda: self.heard("b"), what="the other worker hears of it")
        self.assertFalse(self.heard("a"), "its own word is no news")
        self.bad = None
        tasks.append(self.enqueue("service:s/Of-b", queue="b"))
        for task in tasks:
            self.assertEqual(self.ended(task)["status"], "completed")
        self.assertGreater(time.monotonic() - began, seconds)
        called = [call for call in self.target.seen("/Of-b")]
        self.assertEqual([call.headers["perdura-attempt"] for call in called], ["1"])

    def test_retry_after_of_one_worker_holds_up_the_others(self):
        self.bad = reply(429, b"", None, Retry_After="4")
        self.check_waits(3.9)

    def test_an_open_breaker_of_one_worker_holds_up_the_others(self):
        self.bad = reply(500)
        self.check_waits(3.9, max_retries=9, retry_delay_ms=10)

    def test_holds_are_of_a_worker_that_calls_services(self):
        self.register("w")
        told = {"holds": [{"service": "x", "wait_ms": 60000, "is_down": True}]}
        heard = self.expect(200, "POST", "/v1/workers/w:heartbeat", told)["holds"]
        self.assertEqual([(one["service"], one["is_down"]) for one in heard], [("x", True)])
        self.assertTrue(50000 < heard[0]["wait_ms"] <= 60001, heard)
        self.assertNotIn("holds", self.expect(200, "POST", "/v1/workers/w:heartbeat", {}))
        self.assertEqual(len(self.expect(200, "POST", "/v1/workers/w:heartbeat",
                                         {"holds": []})["holds"]), 1)
        for wrong in ([{"service": "a/b", "wait_ms": 1}], [{"wait_ms": 1}], 5,
                      [{"service": "s", "wait_ms": -1}]):
            self.expect_error(422, "invalid", "POST", "/v1/workers/w:heartbeat", {"holds": wrong})


if __name__ == "__main__":
    unittest.main()
