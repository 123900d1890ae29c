"""kill -9 of the server at named points around its commits (F-A1 ... F-A17): what was acknowledged
is there, what was not may be asked again with the same key or lease, nothing is half done."""
import http.client
import http.server
import os
import signal
import sqlite3
import subprocess
import threading
import unittest

from crash_harness import (LEASE_S, CrashTest, fault_binary, needs_fault_points, pause_s,
                           plain_binary, wait_until)

KEYED = {"type": "mail", "payload": {"to": "a"}, "idempotency_key": "k-1"}


@needs_fault_points
class KillAroundEnqueue(CrashTest):
    def test_f_a1_killed_before_the_commit_nothing_is_there_and_a_retry_makes_exactly_one(self):
        self.start(fault="before.enqueue:1")
        self.broken("POST", "/v1/tasks", KEYED)
        self.start()
        self.assertEqual(self.all_tasks(), [])
        made = self.expect(201, "POST", "/v1/tasks", KEYED)
        again = self.expect(200, "POST", "/v1/tasks", KEYED)
        self.assertTrue(again["duplicate"])
        self.assertEqual([t["id"] for t in self.all_tasks()], [made["id"]])

    def test_f_a2_killed_after_the_commit_it_is_there_once_and_a_retry_finds_it(self):
        self.start(fault="after.enqueue:1")
        self.broken("POST", "/v1/tasks", KEYED)
        self.start()
        stored = self.all_tasks()
        self.assertEqual(len(stored), 1)
        again = self.expect(200, "POST", "/v1/tasks", KEYED)
        self.assertEqual(again["id"], stored[0]["id"])
        self.assertTrue(again["duplicate"])
        self.assertFalse(again.get("payload_differs", False))
        other = self.expect(200, "POST", "/v1/tasks", {**KEYED, "payload": {"to": "b"}})
        self.assertEqual(other["id"], stored[0]["id"])
        self.assertTrue(other["duplicate"])
        self.assertTrue(other["payload_differs"])
        self.assertEqual(len(self.all_tasks()), 1)

    def test_f_a3_an_array_is_stored_whole_or_not_at_all(self):
        tasks = [{"type": "t", "ref": f"r{i}", "idempotency_key": f"key-{i}",
                  **({"depends_on": [{"ref": f"r{i - 1}"}]} if i % 7 == 6 else {})}
                 for i in range(500)]
        for point, expected in (("before", 0), ("after", 500)):
            with self.subTest(point=point):
                self.restart(fault=f"{point}.enqueue:1")
                self.broken("POST", "/v1/tasks", tasks)
                self.start()
                self.assertEqual(len(self.all_tasks()), expected)
        items = self.expect(201, "POST", "/v1/tasks", tasks)["items"]
        self.assertEqual(len({t["id"] for t in items}), 500)
        self.assertEqual(len(self.all_tasks()), 500)


@needs_fault_points
class KillAroundClaim(CrashTest):
    def test_f_a4_killed_before_the_commit_of_a_claim_the_task_is_claimable_at_once(self):
        self.start(fault="before.claim:1")
        self.register()
        task = self.enqueue()
        self.broken("POST", "/v1/workers/worker-1:claim", {"max": 1, "wait_ms": 0})
        self.start()
        stored = self.task(task["id"])
        self.assertEqual((stored["status"], stored["attempts"]), ("pending", 0))
        claimed = self.claim()
        self.assertEqual(claimed[0]["attempt"], 1)
        self.complete("worker-1", claimed[0])

    def test_f_a5_killed_after_the_commit_of_a_claim_it_comes_back_and_its_token_is_dead(self):
        self.start(fault="after.claim:1")
        self.register()
        task = self.enqueue(max_retries=0)
        self.broken("POST", "/v1/workers/worker-1:claim", {"max": 1, "wait_ms": 0})
        self.start()
        self.assertIn(self.task(task["id"])["status"], ("claimed", "running"))
        lost_token = self.stored_token()
        self.register("worker-2")
        claimed = self.claim("worker-2", wait_ms=30000)
        self.assertEqual(len(claimed), 1, "the lost claim never came back")
        now = self.task(task["id"])
        self.assertGreater(claimed[0]["lease_token"], lost_token)
        self.assertEqual((now["crash_count"], now["retry_count"]), (1, 0))
        dead = {"id": task["id"], "lease_token": lost_token}
        self.assertEqual(self.report_one("worker-2", dead, "complete")["error"]["code"],
                         "stale_lease")
        self.complete("worker-2", claimed[0])

    def stored_token(self):
        """Of the only task; answers show a token to its holder alone."""
        with sqlite3.connect(f"file:{self.server.store}?mode=ro", uri=True) as db:
            [(token,)] = db.execute("SELECT lease_token FROM tasks").fetchall()
        db.close()
        return token

    def test_f_a5_a_worker_that_lives_on_but_never_saw_the_claim_gives_it_up_by_heartbeat(self):
        self.start(fault="after.claim:1")
        self.register()
        task = self.enqueue()
        self.broken("POST", "/v1/workers/worker-1:claim", {"max": 1, "wait_ms": 0})
        self.start()
        beats = self.beating(tasks=[])
        self.wait_status(task["id"], "pending")
        beats.stop()


@needs_fault_points
class KillAroundReport(CrashTest):
    def claimed_task(self, fault, **fields):
        self.start(fault=fault)
        self.register()
        task = self.enqueue(**fields)
        claimed, = self.claim(types=[task["type"]])  # not one whose lease ended on a busy machine
        self.assertEqual(claimed["id"], task["id"])
        return claimed

    def test_f_a6_a_heartbeat_that_was_not_committed_costs_no_rerun(self):
        task = self.claimed_task("before.heartbeat:2")
        self.report_ok("worker-1", task, "start")
        self.heartbeat(tasks=[task])
        self.broken("POST", "/v1/workers/worker-1:heartbeat",
                    {"tasks": [{"task_id": task["id"], "lease_token": task["lease_token"]}]})
        self.start()
        beats = self.beating(tasks=[task])
        pause_s(3 * LEASE_S)
        beats.stop()
        self.assertEqual(beats.lost, set())
        self.assertEqual(self.task(task["id"])["attempts"], task["attempts"])
        self.complete("worker-1", task)
        self.assertEqual(len(self.executions(task["id"])), 1)

    def test_f_a7_a_checkpoint_whose_answer_was_lost_is_stored_once_and_resumed_from(self):
        task = self.claimed_task("after.report:2")
        self.report_ok("worker-1", task, "checkpoint", seq=1, name="one", progress=10)
        self.broken_report("worker-1", task, "checkpoint", seq=2, name="two", progress=20,
                           data={"row": 7})
        self.start()
        self.report_ok("worker-1", task, "checkpoint", seq=2, name="two", progress=20,
                       data={"row": 7})
        self.report_ok("worker-1", task, "checkpoint", seq=1, name="one", progress=10)
        path = f"/v1/tasks/{task['id']}/checkpoints"
        names = sorted(c["checkpoint_name"] for c in self.expect(200, "GET", path)["items"])
        self.assertEqual(names, ["one", "two"])
        self.register("worker-2")
        again = self.claim("worker-2", wait_ms=30000)[0]
        self.assertEqual(again["checkpoint"]["name"], "two")
        self.assertEqual(again["checkpoint"]["data"], {"row": 7})
        self.complete("worker-2", again)

    def test_f_a8_killed_before_the_commit_of_complete_the_same_report_completes_it(self):
        task = self.claimed_task("before.report:1")
        self.broken_report("worker-1", task, "complete", result=1)
        self.start()
        self.assertIn(self.task(task["id"])["status"], ("claimed", "running"))
        self.complete("worker-1", task, 1)
        self.assertEqual(self.ends_of(task["id"]), ["completed"])

    def test_f_a8_beyond_the_lease_the_new_attempt_decides(self):
        task = self.claimed_task("before.report:1")
        self.broken_report("worker-1", task, "complete", result="old")
        self.start()
        self.register("worker-2")
        again = self.claim("worker-2", wait_ms=30000)[0]
        self.register()
        item = self.report_one("worker-1", task, "complete", result="old")
        self.assertEqual(item["error"]["code"], "stale_lease")
        self.complete("worker-2", again, "new")
        self.assertEqual(self.task(task["id"])["result"], "new")

    def test_f_a9_killed_after_the_commit_of_complete_the_same_is_ok_another_is_a_conflict(self):
        self.start(fault="after.report:1")
        self.register()
        parent = self.enqueue()
        child = self.enqueue(depends_on=[parent["id"]])
        task = self.claim()[0]
        self.assertEqual(task["id"], parent["id"])
        self.broken_report("worker-1", task, "complete", result={"n": 1})
        self.start()
        self.assertEqual(self.task(parent["id"])["status"], "completed")
        self.complete("worker-1", task, {"n": 1})
        item = self.report_one("worker-1", task, "complete", result={"n": 2})
        self.assertEqual((item["ok"], item["error"]["code"]), (False, "conflict"))
        item = self.report_one("worker-1", task, "fail", error="no")
        self.assertEqual(item["error"]["code"], "conflict")
        self.assertEqual(self.task(parent["id"])["result"], {"n": 1})
        self.assertEqual(self.ends_of(parent["id"]), ["completed"])
        released = [e for e in self.events(child["id"]) if e["status"] == "pending"]
        self.assertEqual(len(released), 1)

    def test_f_a10_a_failure_counts_once_and_backs_off_once(self):
        for point in ("before", "after"):
            with self.subTest(point=point):
                self.server.kill()
                task = self.claimed_task(f"{point}.report:1", type=point, max_retries=5,
                                         retry_delay_ms=60000)
                self.broken_report("worker-1", task, "fail", error="boom", retryable=True)
                self.start()
                before = self.task(task["id"])
                self.report_ok("worker-1", task, "fail", error="boom", retryable=True)
                now = self.task(task["id"])
                self.assertEqual((now["status"], now["retry_count"], now["attempts"]),
                                 ("delayed", 1, 1))
                if point == "after":
                    self.assertEqual(now["next_retry_at"], before["next_retry_at"])
                    self.assertEqual(now["version"], before["version"])

    def test_f_a17_events_and_logs_of_a_killed_report_are_whole_or_absent(self):
        for point, expected in (("before", 0), ("after", 100)):
            with self.subTest(point=point):
                self.server.kill()
                task = self.claimed_task(f"{point}.report:1", type=point)
                lines = [self.element(task, "log", level="INFO", message=f"line {i}", seq=i + 1)
                         for i in range(100)]
                self.broken("POST", "/v1/workers/worker-1:report", lines)
                self.start()
                path = f"/v1/tasks/{task['id']}/logs?limit=1000"
                self.assertEqual(len(self.expect(200, "GET", path)["items"]), expected)
                self.report("worker-1", *lines)
                stored = self.expect(200, "GET", path)["items"]
                self.assertEqual(sorted(x["seq"] for x in stored), list(range(1, 101)))
                self.assertEqual(sorted(x["message"] for x in stored),
                                 sorted(f"line {i}" for i in range(100)))
                self.assert_verified()


@needs_fault_points
class KillAroundControl(CrashTest):
    def test_f_a21_a_cancel_is_done_or_not_and_may_be_asked_again(self):
        for point, status in (("before", "claimed"), ("after", "cancelled")):
            with self.subTest(point=point):
                self.restart(fault=f"{point}.control:1")
                self.register()
                parent = self.enqueue(queue=point)
                child = self.enqueue(depends_on=[parent["id"]])
                task = self.claim(queues=[point])[0]
                self.broken("POST", f"/v1/tasks/{parent['id']}:cancel", {})
                self.start()
                self.assertEqual(self.task(parent["id"])["status"], status)
                expected = 200 if point == "before" else 409
                self.expect(expected, "POST", f"/v1/tasks/{parent['id']}:cancel", {})
                self.assertIn(parent["id"], self.heartbeat(tasks=[task])["cancel"])
                self.assertEqual(self.task(child["id"])["status"], "cancelled")
                for one in (parent, child):
                    self.assertEqual(self.ends_of(one["id"]), ["cancelled"])


@needs_fault_points
class KillInTheSweep(CrashTest):
    COUNT = 1200

    def test_f_a13_a_sweep_killed_in_its_middle_counts_nothing_twice_and_goes_on(self):
        self.start(lease="6s")
        self.register()
        self.expect(201, "POST", "/v1/tasks", [{"type": "t", "queue": "lost"}] * self.COUNT)
        live = self.enqueue(queue="live")
        self.register("alive", queues=("live",))
        kept = self.claim("alive", queues=["live"])
        lost = self.claim(max=1000, queues=["lost"]) + self.claim(max=1000, queues=["lost"])
        self.assertEqual(len(lost), self.COUNT)
        for nth in (1, 250, 700):  # in the first chunk, in its middle, in a later one
            self.server.kill()
            self.start(fault=f"sweep.lose:{nth}")
            beats = self.beating("alive", kept)
            self.assertEqual(self.server.wait(), -signal.SIGKILL)
            beats.stop()
            self.assert_verified()
        self.start()
        beats = self.beating("alive", kept)
        wait_until(lambda: self.expect(200, "GET", "/v1/stats")["counts"].get("pending")
                   == self.COUNT, what="all lost tasks pending")
        tasks = self.all_tasks(queue="lost")
        self.assertEqual({t["crash_count"] for t in tasks}, {1})
        self.assertEqual(self.task(live["id"])["attempts"], kept[0]["attempts"])
        self.report_ok("alive", kept[0], "complete")
        beats.stop()


@needs_fault_points
class KillAroundACallback(CrashTest):
    def outbox_count(self):
        with sqlite3.connect(f"file:{self.server.store}?mode=ro", uri=True) as db:
            return db.execute("SELECT count(*) FROM outbox").fetchone()[0]

    def test_f_a14_a_callback_sent_but_not_marked_is_sent_again_under_the_same_id(self):
        received = []

        class Receiver(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                received.append(self.headers["Perdura-Event-Id"])
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments):
                pass

        receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        self.addCleanup(receiver.server_close)
        self.addCleanup(receiver.shutdown)
        self.start(fault="webhook.delivered:1")
        self.register()
        self.enqueue(callback_url=f"http://127.0.0.1:{receiver.server_port}/done")
        task = self.claim()[0]
        try:
            self.report_one("worker-1", task, "complete")
        except (OSError, http.client.HTTPException):
            pass  # it may die before this answer is out
        self.assertEqual(self.server.wait(), -signal.SIGKILL)
        self.assertEqual(len(received), 1)
        self.start()
        wait_until(lambda: len(received) == 2, what="the second delivery")
        self.assertTrue(received[0])
        self.assertEqual(received[0], received[1])
        wait_until(lambda: self.outbox_count() == 0, what="an empty outbox")
        self.restart()
        pause_s(0.2)
        self.assertEqual(len(received), 2)


@needs_fault_points
class KillInAMigration(CrashTest):
    def versions(self):
        with sqlite3.connect(self.server.store) as db:
            has = db.execute("SELECT count(*) FROM sqlite_master WHERE name='schema_migrations'")
            applied = [row[0] for row in db.execute("SELECT id FROM schema_migrations")] \
                if has.fetchone()[0] else []
            tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        return applied, tables

    def migrate(self, binary, *words, fault=None):
        env = {k: v for k, v in os.environ.items() if not k.startswith("PERDURA_")}
        if fault:
            env["PERDURA_FAULT"] = fault
        return subprocess.run([binary, "migrate", *words, "--store", self.server.store], env=env,
                              capture_output=True, text=True, timeout=120)

    def remove_store(self):
        for suffix in ("", "-wal", "-shm"):
            if os.path.exists(self.server.store + suffix):
                os.unlink(self.server.store + suffix)

    def test_f_a15_killed_after_any_statement_the_store_has_the_old_or_the_new_version(self):
        self.assertEqual(self.migrate(fault_binary(), "up").returncode, 0)
        whole, whole_tables = self.versions()
        self.remove_store()
        nth, killed = 1, 0
        while True:
            done = self.migrate(fault_binary(), "up", fault=f"migrate.statement:{nth}")
            if done.returncode == 0:
                break
            killed += 1
            self.assertEqual(done.returncode, -signal.SIGKILL, done.stderr)
            applied, tables = self.versions()
            self.assertIn(len(applied), range(len(whole)))
            if not applied:
                self.assertEqual(tables, 0, "a migration is visible half")
            nth += 7 if nth > 3 else 1  # every seventh: each costs two processes
            if killed % 2:
                self.remove_store()
        self.assertGreater(killed, 3)
        self.assertEqual(self.versions(), (whole, whole_tables))

    def test_f_a15_killed_around_the_commit_the_next_start_finishes(self):
        for point in ("before", "after"):
            done = self.migrate(fault_binary(), "up", fault=f"{point}.migration:1")
            self.assertEqual(done.returncode, -signal.SIGKILL, done.stderr)
            self.assertEqual(len(self.versions()[0]), 0 if point == "before" else 1)
        self.start()
        self.enqueue()

    def test_f_a15_a_store_of_a_newer_version_is_refused_with_one_line(self):
        self.start()
        self.server.kill()
        with sqlite3.connect(self.server.store) as db:
            db.execute("INSERT INTO schema_migrations VALUES ('9000', 'later', 1, 'x')")
        done = subprocess.run([plain_binary(), "serve", "--listen", "127.0.0.1:0", "--store",
                               self.server.store], capture_output=True, text=True, timeout=120)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        self.assertIn("newer", done.stderr)
        with sqlite3.connect(self.server.store) as db:
            db.execute("DELETE FROM schema_migrations WHERE id = '9000'")


if __name__ == "__main__":
    unittest.main()
