"""What one worker finds out about a service counts for the others of the store: Retry-After and open
breakers travel with the heartbeats (D10, D13)."""
import json
import os
import pathlib
import subprocess
import time
import unittest

from harness import ApiTest, binary, wait_until
from service_target import Target, reply
from test_metrics import parse


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

    def shown(self):
        """Once a worker has told of it."""
        return wait_until(lambda: (reply := self.request("GET", "/v1/services/s")).status == 200 and reply.json,
                          what="news of the service")

    def metric(self, name, **labels):
        text = self.request("GET", "/metrics").body.decode()
        return sum(value for found, has, value in parse(text) if found == name and labels.items() <= has.items())

    def test_d13_figures_of_all_workers_are_shown_as_those_of_the_service(self):
        for queue, count in (("a", 3), ("b", 2)):
            for task in [self.enqueue("service:s/Do", queue=queue) for _ in range(count)]:
                self.assertEqual(self.ended(task)["status"], "completed")
        wait_until(lambda: self.shown()["calls"]["done"] == 5, what="both workers told")
        shown = self.shown()
        self.assertEqual((shown["status"], shown["breaker"], shown["concurrency"], shown["url"]),
                         ("up", "closed", 40, self.target.url))
        self.assertTrue(0 < shown["p50_ms"] <= shown["p99_ms"], shown)
        self.assertEqual(shown["success_rate_1h"], 1)
        self.assertEqual(self.metric("perdura_service_calls_total", service="s", method="Do", outcome="done"), 5)
        self.assertEqual(self.metric("perdura_service_call_seconds_count", service="s"), 5)
        listed = subprocess.run([binary(), "services", "--server", "http://%s:%d" % self.server.address],
                                capture_output=True, text=True, check=True)
        self.assertRegex(listed.stdout, r"s\s+up\s")

    def test_d13_the_breaker_and_the_error_of_a_worker_are_shown_and_why_knows_it(self):
        self.bad = reply(500, {"message": "no such order of Mr Smith"})
        for _ in range(2):
            self.enqueue("service:s/Do", queue="a", max_retries=9, retry_delay_ms=10)
        wait_until(lambda: self.shown()["breaker"] == "open", what="the open breaker")
        shown = self.shown()
        self.assertIn(shown["status"], ("down", "degraded"))
        self.assertTrue(shown["next_try"] > shown["down_since"], shown)
        self.assertEqual(shown["last_error"], "service s answered with status 500")
        self.assertEqual(self.metric("perdura_service_breaker_open", service="s"), 1)
        waiting = self.enqueue("service:s/Do", queue="a", max_retries=9, retry_delay_ms=10)["id"]
        wait_until(lambda: "service s is down since" in json.dumps(self.expect(200, "GET", f"/v1/tasks/{waiting}/why")),
                   what="the reason")

    def test_d13_what_a_worker_did_last_is_counted_when_it_leaves(self):
        self.assertEqual(self.ended(self.enqueue("service:s/Do", queue="a"))["status"], "completed")
        for worker in self.workers.values():
            worker.terminate()
            worker.wait(60)
        self.assertEqual(self.shown()["calls"]["done"], 1)
        wait_until(lambda: self.shown()["status"] == "unknown", what="no worker calls it any more")

    def told(self, **fields):
        return {"services_serial": 7, "services": [{"service": "x", "url": "http://x.example", "status": "up", **fields}]}

    def test_f_h4_what_is_told_counts_once_and_within_bounds(self):
        self.register("w")
        done = {"methods": [{"method": "Do", "done": 4}], "durations": [[1000, 3], [2000, 1]], "duration_us": 5000}
        for serial in (7, 7, 8):
            self.expect(200, "POST", "/v1/workers/w:heartbeat", {**self.told(**done), "services_serial": serial})
        shown = self.expect(200, "GET", "/v1/services/x")
        self.assertEqual((shown["calls"]["done"], shown["p50_ms"] <= 1), (8, True))
        for wrong in ({"status": "well"}, {"url": "ftp://x"}, {"service": "a/b"}, {"in_flight": -1},
                      {"methods": [{"method": "m" * 104}]}, {"methods": [{"method": "m"}] * 34},
                      {"durations": [[1]]}, {"durations": [[1, -1]]}, {"durations": [[1, 10**12]]},
                      {"methods": [{"done": 10**12}]}, {"last_error": "e" * 257}, {"wait_ms": 2**62}):
            self.expect_error(422, "invalid", "POST", "/v1/workers/w:heartbeat", self.told(**wrong))
        self.shown()
        many = [{"service": f"s{i}", "methods": [{"method": "Do", "done": 1}]} for i in range(256)]
        self.expect(200, "POST", "/v1/workers/w:heartbeat", {"services_serial": 9, "services": many})
        names = [item["name"] for item in self.expect(200, "GET", "/v1/services?limit=500")["items"]]
        self.assertEqual((len(names), {"x", "s"} <= set(names)), (64, True))
        self.expect_error(413, "too_large", "POST", "/v1/workers/w:heartbeat",
                          {"services": many + many[:1]})

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
