"""The recovery queue, discovery and validation over HTTP (B4, B5, B6, B9), and validators of task types.
Each test has a server of its own."""
import http.server
import json
import signal
import threading
import time
import unittest

import harness
from harness import wait_until

LEASE_S = 2  # a busy machine keeps it
NOBODY = "0197f6a2-5c3e-7b11-9d2f-3a4b5c6d7e8f"


class RecoveryTest(harness.ApiTest):
    arguments = ("--lease", f"{LEASE_S}s", "--leader-lease", "2s")

    def silent(self, checkpoint=None, type="test", **fields):
        """A task whose worker stays silent until its lease is over."""
        task = self.enqueue(type, queue="q", **fields)
        self.register("lost", queues=("q",))
        [claimed] = self.claim("lost", wait_ms=30000)
        self.assertEqual(claimed["id"], task["id"])
        said = [self.element(claimed, "start")]
        if checkpoint:
            said.append(self.element(claimed, "checkpoint", **checkpoint))
        self.assertTrue(all(item["ok"] for item in self.report("lost", *said)))
        return task

    def lost(self, **fields):
        task = self.silent(**fields)
        return wait_until(lambda: self.when(task["id"], "pending", "orphaned", "dead_letter"),
                          what="the end of the lease")

    def when(self, task_id, *statuses):
        task = self.task(task_id)
        return task if task["status"] in statuses else None

    def orphan(self, **fields):
        task = self.lost(auto_recovery=False, **fields)
        self.assertEqual(task["status"], "orphaned")
        return task

    def partial(self, **fields):
        task = self.enqueue(queue="p", **fields)
        self.register("p", queues=("p",))
        [claimed] = self.claim("p", wait_ms=30000)
        self.report_ok("p", claimed, "partial", result={"done": 3})
        return task

    def recover(self, task, **fields):
        return self.expect(201, "POST", "/v1/recovery", {"task_id": task["id"], **fields})

    def ended(self, entry, *statuses):
        def reached():
            shown = self.expect(200, "GET", f"/v1/recovery/{entry['id']}")
            return shown if shown["status"] in (statuses or ("completed", "failed")) else None
        return wait_until(reached, what="the recovery")

    def validate(self, task_id, **fields):
        verdict = self.expect(200, "POST", "/v1/recovery/validate",
                              {"task_id": task_id, **fields})
        self.assertEqual(set(verdict), {"valid", "reason", "detail"})
        self.assertEqual(verdict["valid"], verdict["reason"] is None)
        return verdict["reason"]

    def candidates(self, **filters):
        query = "&".join(f"{key}={value}" for key, value in filters.items())
        return self.expect(200, "GET", f"/v1/recovery/candidates?{query}")["items"]


class MemoryTest(RecoveryTest):
    def peak_kib(self):
        with open(f"/proc/{self.server.process.pid}/status", encoding="ascii") as handle:
            [line] = [line for line in handle if line.startswith("VmHWM")]
        return int(line.split()[1])

    @unittest.skipIf(harness.sanitizer(), "sanitizers keep what was freed")
    def test_b4_entries_judged_in_one_commit_hold_one_checkpoint_at_a_time(self):
        large = {"d": "x" * 900000}
        self.register("p", queues=("p",))
        tasks = []
        for _ in range(40):
            self.enqueue(queue="p")
            [claimed] = self.claim("p", wait_ms=30000)
            self.report_ok("p", claimed, "checkpoint", name="a", progress=1, data=large,
                           database_state=large)
            self.report_ok("p", claimed, "partial", result=1)
            tasks.append(claimed)
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3))
        entries = [self.recover(task, scheduled_for=at) for task in tasks]
        before = self.peak_kib()
        for entry in entries:
            self.assertEqual(self.ended(entry)["status"], "completed")
        self.assertLess(self.peak_kib() - before, 40 * 1024)  # all of them: 72 MB


class QueueTest(RecoveryTest):
    def test_b4_what_the_sweep_takes_back_is_in_the_queue(self):
        task = self.lost(checkpoint={"name": "half", "progress": 50, "data": {"n": 1}},
                         recovery_priority=4)
        [entry] = self.expect(200, "GET", f"/v1/recovery?task_id={task['id']}")["items"]
        self.assertEqual((entry["recovery_method"], entry["status"], entry["recovery_priority"],
                          entry["attempts"], entry["max_attempts"], entry["error_message"]),
                         ("resume_checkpoint", "completed", 4, 1, 3, None))
        self.assertEqual(entry["recovery_result"]["reason"], "worker_lost")
        self.assertEqual(entry["task_id"], task["id"])
        self.assertTrue(entry["processing_started"] <= entry["processing_completed"])
        self.assertEqual(task["recovery_metadata"]["entry_id"], entry["id"])
        self.register("next", queues=("q",))
        [claimed] = self.claim("next")
        self.assertEqual(claimed["checkpoint"]["data"], {"n": 1})
        self.assertEqual(self.task(task["id"])["resumed_from"], "half")  # B7

    def test_b4_a_recovery_that_is_asked_for_puts_the_task_back(self):
        for method in ("resume_checkpoint", "restart_clean"):
            task = self.orphan(checkpoint={"name": "half", "progress": 50})
            self.assertEqual(self.expect(200, "GET", f"/v1/recovery?task_id={task['id']}")["items"],
                             [])  # B9
            entry = self.recover(task, method=method, priority=9)
            self.assertEqual((entry["status"], entry["recovery_priority"]), ("pending", 9))
            entry = self.ended(entry)
            self.assertEqual((entry["status"], entry["recovery_result"]["valid"]),
                             ("completed", True))
            task = self.task(task["id"])
            self.assertEqual((task["status"], task["previous_status"]), ("pending", "recovering"))
            self.assertEqual(task["checkpoint_data"] is None, method == "restart_clean")
            self.expect(200, "POST", f"/v1/tasks/{task['id']}:cancel")

    def test_b4_an_entry_is_asked_for_under_the_names_of_its_columns_too(self):
        task = self.orphan()
        entry = self.recover(task, recovery_method="validate_only", recovery_priority=-4)
        self.assertEqual((entry["recovery_method"], entry["recovery_priority"]),
                         ("validate_only", -4))
        self.expect(200, "POST", f"/v1/tasks/{task['id']}:cancel")

    def test_b6_recover_that_only_validates_answers_with_its_verdict(self):
        self.register("once")
        task = self.enqueue("once")
        [held] = self.claim("once")
        self.complete("once", held)
        reply = self.expect(200, "POST", f"/v1/tasks/{task['id']}:recover", {"method": "validate_only"})
        self.assertEqual((reply["status"], reply["recovery"]["valid"], reply["recovery"]["reason"]),
                         ("completed", False, "already_completed"))

    def test_b4_validate_only_says_what_it_found_and_touches_nothing(self):
        task = self.orphan()
        entry = self.ended(self.recover(task, method="validate_only"))
        self.assertEqual((entry["status"], entry["recovery_result"]["valid"]), ("completed", True))
        self.assertEqual(self.task(task["id"])["version"], task["version"])
        self.expect(200, "POST", f"/v1/tasks/{task['id']}:cancel")
        entry = self.ended(self.recover(task, method="validate_only"))
        self.assertEqual(entry["recovery_result"]["reason"], "ended")

    def test_b4_what_is_found_done_is_completed_and_what_cannot_be_fails_with_its_reason(self):
        done = self.enqueue(queue="d")
        self.register("d", queues=("d",))
        [claimed] = self.claim("d")
        self.complete("d", claimed)
        entry = self.ended(self.recover(done))
        self.assertEqual((entry["status"], entry["recovery_result"]["reason"]),
                         ("completed", "already_completed"))
        cancelled = self.enqueue(queue="e")
        self.expect(200, "POST", f"/v1/tasks/{cancelled['id']}:cancel")
        entry = self.ended(self.recover(cancelled))
        self.assertEqual(entry["status"], "failed")
        self.assertIn("ended", entry["error_message"])

    def test_b4_an_entry_waits_for_its_time_also_over_a_restart(self):
        task = self.orphan()
        entry = self.recover(task, scheduled_for="2099-01-01T00:00:00Z")
        self.server.stop()
        self.server.start()
        self.assertEqual(self.ended(entry, "pending")["scheduled_for"],
                         "2099-01-01T00:00:00.000000Z")
        self.assertEqual(self.task(task["id"])["status"], "orphaned")

    def test_the_queue_is_listed_newest_first_and_paged(self):
        tasks = [self.partial() for _ in range(5)]
        entries = [self.recover(task, method="validate_only") for task in tasks]
        for entry in entries:
            self.ended(entry)
        seen, cursor = [], ""
        while cursor is not None:
            page = self.expect(200, "GET", f"/v1/recovery?limit=2&cursor={cursor}")
            seen += [entry["id"] for entry in page["items"]]
            cursor = page["next_cursor"]
        self.assertEqual(seen, [entry["id"] for entry in entries][::-1])
        for query, count in (("status=completed", 5), ("status=pending", 0),
                             ("method=validate_only", 5), ("method=restart_clean", 0),
                             (f"task_id={tasks[0]['id']}", 1), (f"task_id={NOBODY}", 0)):
            self.assertEqual(len(self.expect(200, "GET", f"/v1/recovery?{query}")["items"]), count)

    def test_b9_a_task_that_is_recovered_by_hand_has_its_entry(self):
        task = self.orphan()
        recovered = self.expect(200, "POST", f"/v1/tasks/{task['id']}:recover",
                                {"method": "restart_clean"})
        self.assertEqual(recovered["status"], "pending")
        [entry] = self.expect(200, "GET", f"/v1/recovery?task_id={task['id']}")["items"]
        self.assertEqual((entry["status"], entry["recovery_method"]),
                         ("completed", "restart_clean"))
        self.expect_error(409, "invalid_transition", "POST", f"/v1/tasks/{task['id']}:recover")

    def test_wrong_requests_are_refused_with_the_field(self):
        task = self.enqueue()
        for body, field in (({}, "task_id"), ({"task_id": "x"}, "task_id"),
                            ({"task_id": task["id"], "method": "magic"}, "method"),
                            ({"task_id": task["id"], "recovery_method": "magic"},
                             "recovery_method"),
                            ({"task_id": task["id"], "recovery_method": "restart_clean",
                              "method": "validate_only"}, "recovery_method"),
                            ({"task_id": task["id"], "priority": 1001}, "priority"),
                            ({"task_id": task["id"], "scheduled_for": "soon"}, "scheduled_for"),
                            ({"task_id": task["id"], "when": 1}, "when")):
            self.expect_error(422, "invalid", "POST", "/v1/recovery", body, field=field)
        self.expect_error(404, "not_found", "POST", "/v1/recovery", {"task_id": NOBODY})
        self.expect_error(404, "not_found", "GET", f"/v1/recovery/{NOBODY}")
        self.expect_error(404, "not_found", "GET", "/v1/recovery/nothing")
        for query, field in (("status=done", "status"), ("method=x", "method"),
                             ("cursor=r12", "cursor"), ("limit=0", "limit"), ("x=1", "x")):
            self.expect_error(422, "invalid", "GET", f"/v1/recovery?{query}", field=field)
        for query, field in (("auto_recovery=maybe", "auto_recovery"), ("cursor=c1", "cursor")):
            self.expect_error(422, "invalid", "GET", f"/v1/recovery/candidates?{query}",
                              field=field)


class DiscoveryTest(RecoveryTest):
    def test_b5_candidates_come_by_priority_then_the_least_recently_updated(self):
        first, second = self.partial(), self.partial(user_id="ada")
        low = self.partial(recovery_priority=-1)
        high = self.partial(recovery_priority=5)
        lost = self.orphan(recovery_priority=9)
        found = self.candidates()
        self.assertEqual([c["id"] for c in found],
                         [task["id"] for task in (high, first, second, low)])
        self.assertEqual({c["reason"] for c in found}, {"partial"})
        self.assertEqual((found[2]["user_id"], found[2]["task_id"]), ("ada", second["id"]))
        self.assertEqual([c["id"] for c in self.candidates(auto_recovery="any")][0], lost["id"])
        self.assertEqual([(c["id"], c["reason"]) for c in self.candidates(auto_recovery="false")],
                         [(lost["id"], "orphaned")])
        seen, cursor = [], ""
        while cursor is not None:
            page = self.expect(200, "GET", f"/v1/recovery/candidates?limit=1&cursor={cursor}")
            seen += [c["id"] for c in page["items"]]
            cursor = page["next_cursor"]
        self.assertEqual(seen, [c["id"] for c in found])

    def test_b5_a_silent_handler_loses_its_task_where_stall_after_says_so(self):
        quick = self.enqueue(queue="s", stall_after_ms=1500)
        slow = self.enqueue(queue="s")
        self.register("s", queues=("s",))
        claimed = self.claim("s", max=2)
        self.report("s", *(self.element(task, "start") for task in claimed))
        heartbeat = lambda: self.expect(200, "POST", "/v1/workers/s:heartbeat", {})
        wait_until(lambda: heartbeat() and self.task(quick["id"])["status"] == "pending",
                   what="the stalled task")
        self.assertEqual(self.task(quick["id"])["last_error"], "stalled")
        self.assertEqual(self.task(slow["id"])["status"], "running")
        [entry] = self.expect(200, "GET", "/v1/recovery")["items"]
        self.assertEqual((entry["task_id"], entry["recovery_result"]["reason"]),
                         (quick["id"], "stalled"))
        stale = self.report_one("s", claimed[0], "complete")  # B4: it learns that it lost it
        self.assertEqual(stale["error"]["code"], "stale_lease")

    def lines_of(self, event):
        lines = (line for line in self.server.log().splitlines() if line.startswith("{"))
        return [line for line in map(json.loads, lines) if line["event"] == event]

    def test_c6_the_log_tells_of_what_was_taken_back_and_of_the_first_that_became_poison(self):
        self.expect(201, "POST", "/v1/tasks", [
            {"type": "test", "queue": "q", "max_crashes": 1, "correlation_id": f"order {number}"}
            for number in range(7)])
        self.register("gone", queues=("q",), pool_size=20)
        self.assertEqual(len(self.claim("gone", max=20)), 7)
        wait_until(lambda: self.lines_of("tasks.taken_back"), what="the line in the log")
        [back] = self.lines_of("tasks.taken_back")
        self.assertEqual((back["level"], back["tasks"], back["poison"], back["from"]),
                         ("info", 7, 7, "7 of gone (worker_lost)"))
        poison = self.lines_of("task.poison")
        self.assertEqual(len(poison), 4)
        task = self.task(poison[0]["task"])
        self.assertEqual((poison[0]["level"], task["status"], poison[0]["type"],
                          poison[0]["queue"], poison[0]["correlation_id"]),
                         ("warn", "dead_letter", "test", "q", task["correlation_id"]))
        [more] = self.lines_of("tasks.poison")
        self.assertEqual(more["more"], 3)

    def test_d4_a_server_that_was_killed_tells_what_it_took_back(self):
        task = self.enqueue(queue="q")
        self.register("gone", queues=("q",))
        self.assertEqual(len(self.claim("gone")), 1)
        self.server.stop(signal.SIGKILL)
        self.server.start()
        self.local.connection = None
        wait_until(lambda: self.when(task["id"], "pending"), what="the recovery")
        wait_until(lambda: self.lines_of("tasks.taken_back"), what="the line in the log")
        [back] = self.lines_of("tasks.taken_back")
        self.assertEqual((back["tasks"], back["poison"], back["from"]),
                         (1, 0, "1 of gone (worker_lost)"))

    def test_b6_a_task_is_judged(self):
        self.assertEqual(self.validate(NOBODY), "not_found")
        waiting = self.enqueue(queue="w")
        self.assertEqual(self.validate(waiting["id"]), "not_lost")
        self.assertIsNone(self.validate(self.partial()["id"]))
        poison = self.lost(max_crashes=1)
        self.assertEqual((poison["status"], self.validate(poison["id"])),
                         ("dead_letter", "attempts_exhausted"))
        task = self.orphan()
        self.assertIsNone(self.validate(task["id"]))
        self.register("lost", queues=("q",))  # it may be forgotten by now
        self.expect(204, "DELETE", "/v1/workers/lost")
        self.register("typed", queues=("q",), types=["other", "some:*"])
        self.assertEqual(self.validate(task["id"]), "handler_gone")
        error = self.expect_error(409, "conflict", "POST", f"/v1/tasks/{task['id']}:recover")
        self.assertIn("handler_gone", error["message"])
        self.register("all", queues=("q",))
        self.assertIsNone(self.validate(task["id"]))
        self.expect_error(422, "invalid", "POST", "/v1/recovery/validate", {}, field="task_id")


class Target(http.server.BaseHTTPRequestHandler):
    """A validator: refuses what its payload says."""
    asked = []
    slow = threading.Event()

    def do_POST(self):  # noqa: N802
        task = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        Target.asked.append((self.path, task["id"]))
        status, body = task["payload"]["say"]
        if task["payload"].get("slow"):
            Target.slow.wait(60)
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments):
        pass


COMMAND = """import json, os, sys
task = json.load(sys.stdin)
assert task["id"] == os.environ["PERDURA_TASK_ID"]
print(task["payload"]["say"])
sys.exit(task["payload"]["exit"])"""


class ValidatorTest(RecoveryTest):
    def setUp(self):
        self.target = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Target)
        threading.Thread(target=self.target.serve_forever, daemon=True).start()
        self.addCleanup(self.target.server_close)
        self.addCleanup(self.target.shutdown)
        folder = harness.tempfile.mkdtemp(prefix="perdura-validators-")
        self.addCleanup(harness.shutil.rmtree, folder, ignore_errors=True)
        config = f"{folder}/perdura.yaml"
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"""workers: 0
handlers:
  - type: "cmd"
    command: ["true"]
    validate: {{command: {json.dumps(["python3", "-c", COMMAND])}}}
  - type: "web"
    command: ["true"]
    validate:
      url: http://127.0.0.1:{self.target.server_address[1]}/check
""")
        self.arguments = (*self.arguments, "--config", config)
        super().setUp()

    def entry(self, task):
        [entry] = self.expect(200, "GET", f"/v1/recovery?task_id={task['id']}&status=completed"
                              )["items"] or \
            self.expect(200, "GET", f"/v1/recovery?task_id={task['id']}")["items"]
        return entry

    def test_b6_a_command_decides_whether_a_lost_task_is_put_back(self):
        yes = self.lost(type="cmd", payload={"say": "", "exit": 0})
        wait_until(lambda: self.when(yes["id"], "pending"), what="the word of the validator")
        self.assertEqual(self.entry(yes)["status"], "completed")
        self.expect(200, "POST", f"/v1/tasks/{yes['id']}:cancel")
        no = self.lost(type="cmd", payload={"say": "the invoice is gone\nmore", "exit": 1})
        wait_until(lambda: self.entry(no)["status"] == "failed", what="its refusal")
        self.assertIn("the invoice is gone", self.entry(no)["error_message"])
        self.assertEqual(self.entry(no)["recovery_result"]["reason"], "the invoice is gone")
        self.assertEqual(self.task(no["id"])["status"], "orphaned")
        self.assertEqual([c["id"] for c in self.candidates()], [no["id"]])
        done = self.lost(type="cmd", payload={"say": "already_completed", "exit": 1})
        wait_until(lambda: self.when(done["id"], "completed"), what="it being found done")
        self.assertEqual(self.events(done["id"])[0]["actor"], "RECOVERY")

    def test_b6_an_http_target_decides_too(self):
        Target.asked.clear()
        yes = self.orphan(type="web", payload={"say": [200, {"valid": True}]})
        self.assertIsNone(self.validate(yes["id"]))
        self.assertEqual(Target.asked, [("/check", yes["id"])])
        self.expect(200, "POST", f"/v1/tasks/{yes['id']}:recover")
        wait_until(lambda: self.when(yes["id"], "pending"), what="the word of the validator")
        self.expect(200, "POST", f"/v1/tasks/{yes['id']}:cancel")
        no = self.orphan(type="web", payload={"say": [409, {"reason": "paid by hand"}]})
        self.assertEqual(self.validate(no["id"]), "paid by hand")
        entry = self.ended(self.recover(no))
        self.assertEqual((entry["status"], entry["recovery_result"]["reason"]),
                         ("failed", "paid by hand"))
        self.assertEqual(self.task(no["id"])["status"], "orphaned")

    def test_b6_a_validator_that_does_not_answer_is_asked_again_later(self):
        task = self.orphan(type="web", payload={"say": [503, {}]})
        entry = self.recover(task)
        shown = wait_until(lambda: next(iter(
            e for e in [self.expect(200, "GET", f"/v1/recovery/{entry['id']}")]
            if e["attempts"] == 1 and e["status"] == "pending"), None), what="the first attempt")
        self.assertIn("503", shown["error_message"])
        self.assertGreater(shown["scheduled_for"], shown["created_at"])
        self.assertEqual(self.task(task["id"])["status"], "orphaned")

    def test_b6_questions_hold_up_no_lost_task_and_leave_nothing_behind(self):
        Target.slow.clear()
        self.addCleanup(Target.slow.set)
        asked_about = self.orphan(type="web", payload={"say": [409, {"reason": "no"}], "slow": True})
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(self.validate(asked_about["id"])))
                   for _ in range(3)]
        lost = self.silent(type="web", payload={"say": [200, {"valid": True}]})
        for thread in threads:
            thread.start()
        wait_until(lambda: (("/check", asked_about["id"]) in Target.asked), what="the question")
        wait_until(lambda: self.when(lost["id"], "pending"), what="a lost task beside questions")
        self.assertEqual(answers, [], "it did not wait for them")
        Target.slow.set()
        for thread in threads:
            thread.join(harness.DEADLINE_S)
        self.assertEqual(answers, ["no"] * 3)
        self.assertEqual([entry["task_id"] for entry in
                          self.expect(200, "GET", "/v1/recovery")["items"]], [lost["id"]])

    def test_types_without_a_validator_are_recovered_as_ever(self):
        task = self.lost()
        self.assertEqual(task["status"], "pending")
        self.expect(200, "POST", f"/v1/tasks/{task['id']}:cancel")
        orphan = self.orphan()
        self.assertEqual(self.ended(self.recover(orphan))["status"], "completed")


if __name__ == "__main__":
    unittest.main()
