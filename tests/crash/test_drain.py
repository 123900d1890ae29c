"""SIGTERM and what comes after it (F-A18), and kill -9 of the processes that run handlers (F-A19,
F-I3): handlers never outlive their attempt into the next one."""
import os
import signal
import subprocess
import threading
import time
import unittest

from crash_harness import CrashTest, alive, json_lines, wait_until

LEASE_S = 3

# Writes a line at its start and, if it gets that far, at its end: after so many seconds, or when the
# test opens the gate. A daemonised grandchild writes one line every few milliseconds for as long as
# it lives.
HANDLER = """#!/usr/bin/env python3
import json, os, sys, time
marks = {marks!r}
def mark(**fields):
    with open(marks, "a") as file:
        file.write(json.dumps(dict(fields, pid=os.getpid(), at=time.monotonic(),
                                   token=int(os.environ["PERDURA_LEASE_TOKEN"]))) + "\\n")
mark(what="start")
seconds = float(sys.argv[1])
if len(sys.argv) > 2:
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.close(3)
        end = time.monotonic() + 20
        mark(what="daemon")
        while time.monotonic() < end:
            mark(what="alive")
            time.sleep(0.004)
        os._exit(0)
end = time.monotonic() + seconds
while time.monotonic() < end and not os.path.exists(marks + ".gate"):
    time.sleep(0.005)
mark(what="end")
"""


class HandlerTest(CrashTest):
    def handler(self):
        self.marks = os.path.join(self.folder, "marks")
        return self.script("handler.py", HANDLER.format(marks=self.marks))

    def marked(self, what):
        return [m for m in json_lines(self.marks) if m["what"] == what]

    def start(self, *arguments, **options):
        return super().start(*arguments, lease=f"{LEASE_S}s", **options)

    def config(self, *arguments, grace="300ms"):
        words = ", ".join(f'"{word}"' for word in (self.handler(), *arguments))
        return f'grace: {grace}\nhandlers:\n  - type: "t"\n    command: [{words}]\n'


class Drain(HandlerTest):
    def test_f_a18_after_sigterm_nothing_is_claimed_and_handlers_within_grace_finish(self):
        self.start("--workers", "2", config=self.config("300", grace="100s"))
        self.expect(201, "POST", "/v1/tasks", [{"type": "t"} for _ in range(6)])
        wait_until(lambda: len(self.marked("start")) == 2, what="two running handlers")
        self.register("remote")
        self.server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: "node.stopping" in self.server.log(), what="the server's drain")
        code, reply = self.try_claim("remote")
        self.assertFalse(code == 200 and reply["tasks"], "a claim was granted after SIGTERM")
        open(self.marks + ".gate", "w", encoding="ascii").close()
        self.assertEqual(self.server.wait(), 0, self.server.log())
        self.assertEqual((len(self.marked("start")), len(self.marked("end"))), (2, 2))
        self.start()
        statuses = sorted(t["status"] for t in self.all_tasks())
        self.assertEqual(statuses, ["completed"] * 2 + ["pending"] * 4)
        self.assertEqual(sum(t["attempts"] for t in self.all_tasks()), 2)

    def try_claim(self, worker):
        try:
            return self.api("POST", f"/v1/workers/{worker}:claim", {"max": 1, "wait_ms": 0})
        except (OSError, AssertionError):
            return 0, None
        except Exception as error:  # http.client: the connection was closed
            self.assertIn("http", type(error).__module__)
            return 0, None

    def test_f_a18_handlers_beyond_grace_are_handed_back_without_an_attempt(self):
        self.start("--workers", "2", config=self.config("30"))
        self.expect(201, "POST", "/v1/tasks", [{"type": "t"} for _ in range(2)])
        wait_until(lambda: len(self.marked("start")) == 2, what="two running handlers")
        self.server.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.server.wait(), 0, self.server.log())
        for mark in self.marked("start"):
            self.assertFalse(alive(mark["pid"]))
        self.start()
        for task in self.all_tasks():
            self.assertEqual((task["status"], task["attempts"], task["crash_count"],
                              task["retry_count"]), ("pending", 0, 0, 0))

    def test_f_a18_killed_in_the_drain_it_is_as_after_any_crash(self):
        self.start("--workers", "2", config=self.config("30", grace="10s"))
        self.expect(201, "POST", "/v1/tasks", [{"type": "t"} for _ in range(4)])
        wait_until(lambda: len(self.marked("start")) == 2, what="two running handlers")
        stop = threading.Event()
        acknowledged = []
        producer = self.in_thread(self.produce, stop, acknowledged)
        wait_until(lambda: len(acknowledged) > 20, what="load")
        self.server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: "node.stopping" in self.server.log(), what="the server's drain")
        self.server.kill()
        stop.set()
        producer.result()
        pids = [m["pid"] for m in self.marked("start")]
        wait_until(lambda: not any(alive(p) for p in pids), what="the handlers' end")
        self.start()
        stored = {t["id"]: t for t in self.all_tasks()}
        self.assertEqual([i for i in acknowledged if i not in stored], [])
        wait_until(lambda: all(t["status"] == "pending" for t in self.all_tasks(type="t")),
                   what="the handlers' tasks back")
        self.assertEqual(sorted(t["crash_count"] for t in self.all_tasks(type="t")), [0, 0, 1, 1])

    def produce(self, stop, acknowledged):
        while not stop.is_set():
            try:
                status, task = self.api("POST", "/v1/tasks", {"type": "load", "queue": "load"})
            except Exception:
                return
            if status == 201:
                acknowledged.append(task["id"])


class KilledHosts(HandlerTest):
    def assert_no_overlap(self, count):
        """Nothing of an attempt, also no daemonised grandchild, lives when the next one starts."""
        marks = json_lines(self.marks)
        starts = {m["token"]: m["at"] for m in marks if m["what"] == "start"}
        self.assertGreaterEqual(len(starts), count, marks[-3:])
        for token in sorted(starts)[1:]:
            before = [m for m in marks if m["token"] < token]
            late = [m for m in before if m["at"] > starts[token]]
            self.assertEqual(late, [], "an earlier attempt still ran")

    def end_of_daemons(self):
        for mark in self.marked("daemon"):
            wait_until(lambda pid=mark["pid"]: not alive(pid), what="the daemon's end")

    def test_f_a19_a_killed_worker_takes_its_handlers_along_and_its_task_runs_again(self):
        self.start()
        config = self.config("30", "daemon")
        worker = self.start_worker(config, "--concurrency", "1")
        task = self.enqueue("t", max_crashes=10)
        wait_until(lambda: self.marked("alive"), what="the daemonised grandchild")
        second = self.start_worker(config, "--concurrency", "1")
        killed_at = time.monotonic()
        worker.kill()
        again = wait_until(lambda: len(self.marked("start")) == 2 and self.marked("start")[1],
                           what="the second attempt")
        self.assertLess(again["at"] - killed_at, LEASE_S + LEASE_S / 6 + 15)  # not minutes
        wait_until(lambda: len(self.marked("daemon")) == 2, what="the second grandchild")
        self.expect(200, "POST", f"/v1/tasks/{task['id']}:cancel", {})
        self.end_of_daemons()
        second.kill()
        self.assert_no_overlap(2)
        self.assertEqual(self.task(task["id"])["crash_count"], 1)

    def test_f_i3_a_killed_server_takes_its_pools_handlers_along_before_the_next_attempt(self):
        config = self.config("30", "daemon")
        self.start("--workers", "1", config=config)
        task = self.enqueue("t", max_crashes=100)
        for kills in range(1, 6):
            wait_until(lambda n=kills: len(self.marked("daemon")) >= n, what="the grandchild")
            self.server.kill()
            self.start("--workers", "1", config=config)
        wait_until(lambda: len(self.marked("daemon")) >= 6, what="the last attempt")
        self.expect(200, "POST", f"/v1/tasks/{task['id']}:cancel", {})
        self.end_of_daemons()
        self.assert_no_overlap(6)
        self.assertEqual(self.task(task["id"])["crash_count"], 5)

    def test_f_i3_a_killed_worker_that_starts_again_at_once_has_no_double_either(self):
        self.start()
        config = self.config("30", "daemon")
        task = self.enqueue("t", max_crashes=100)
        for count in range(1, 4):
            worker = self.start_worker(config, "--concurrency", "1")
            wait_until(lambda n=count: len(self.marked("daemon")) >= n, what="the grandchild")
            worker.kill()
            worker.wait()
        self.end_of_daemons()
        self.assert_no_overlap(3)
        self.expect(200, "POST", f"/v1/tasks/{task['id']}:cancel", {})

    def test_f_i1_no_process_of_an_ended_task_is_left(self):
        config = self.config("0.05", "daemon")
        self.start("--workers", "4", config=config)
        self.expect(201, "POST", "/v1/tasks", [{"type": "t"} for _ in range(8)])
        wait_until(lambda: self.expect(200, "GET", "/v1/stats")["counts"].get("completed") == 8,
                   what="eight ended tasks")
        self.end_of_daemons()

        def children(pid, column):
            return subprocess.run(["ps", "--ppid", str(pid), "-o", column], capture_output=True,
                                  text=True).stdout.split()

        self.assertEqual(children(self.server.pid, "comm="), ["perdura-spawn"])
        [spawner] = children(self.server.pid, "pid=")
        wait_until(lambda: not children(spawner, "stat="), what="no child of the spawner")


if __name__ == "__main__":
    unittest.main()
