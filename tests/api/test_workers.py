"""The work protocol over HTTP: register, claim, report, heartbeat, leave."""
import json
import socket
import time
import unittest
import urllib.parse

from harness import ApiTest, wait_until

NOBODY = "01890000-0000-7000-8000-000000000000"


class CategoriesTest(ApiTest):
    """D12: workers by category."""

    def test_d12_two_workers_each_get_the_tasks_of_their_category(self):
        self.register("r", categories=["reports"])
        self.register("g", categories=["general", "analytics"])
        kinds = {self.enqueue(queue="default", category=name)["id"]: name
                 for name in ("reports", "general", "reports", "analytics")}
        kinds[self.enqueue()["id"]] = "general"
        self.assertEqual({kinds[task["id"]] for task in self.claim("r", 10)}, {"reports"})
        self.assertEqual({kinds[task["id"]] for task in self.claim("g", 10)},
                         {"general", "analytics"})
        shown = self.expect(200, "GET", "/v1/workers/r")
        self.assertEqual(shown["categories"], ["reports"])
        self.assertEqual(len(shown["current_tasks"]), 2)
        self.assertNotIn("unknown_categories", shown)

    def test_d12_a_claim_that_waits_gets_no_other_category(self):
        self.register("r", categories=["reports"])
        waiting = self.in_thread(self.claim, "r", 1, 50000)
        self.wait_for_waiting("waiting_claims", 1)
        self.enqueue()
        self.enqueue(queue="default", category="analytics")
        wanted = self.enqueue(queue="default", category="reports")
        self.assertEqual([task["id"] for task in waiting.result()], [wanted["id"]])

    def test_d12_a_category_that_is_not_there_is_told_and_waited_for(self):
        reply = self.expect(201, "POST", "/v1/workers", {
            "id": "l", "queues": ["default"], "categories": ["later", "general"]})
        self.assertEqual(reply["unknown_categories"], ["later"])
        self.assertEqual(self.expect(200, "GET", "/v1/workers/l")["unknown_categories"], ["later"])
        waiting = self.in_thread(self.claim, "l", 1, 50000)
        self.wait_for_waiting("waiting_claims", 1)
        self.expect(201, "POST", "/v1/categories", {"name": "later"})
        wanted = self.enqueue(queue="default", category="later")
        self.assertEqual([task["id"] for task in waiting.result()], [wanted["id"]])
        self.assertNotIn("unknown_categories", self.expect(200, "GET", "/v1/workers/l"))

    def test_d12_a_spawned_child_has_the_category_it_names_not_its_parents(self):
        self.register("r", categories=["reports"])
        self.register("g", categories=["general"])
        self.enqueue(queue="default", category="reports")
        [parent] = self.claim("r")
        self.report_ok("r", parent, "start")
        self.report_ok("r", parent, "spawn", tasks=[{"type": "child"}])
        self.complete("r", parent)
        self.assertEqual(self.claim("r"), [])
        self.assertEqual([task["type"] for task in self.claim("g")], ["child"])

    def test_d12_why_names_the_category_no_live_worker_takes(self):
        self.register("m", categories=["analytics"])
        task = self.enqueue(queue="default", category="reports")
        why = self.expect(200, "GET", f"/v1/tasks/{task['id']}/why")
        self.assertEqual(why["reason"], "no_worker")
        self.assertIn('No live worker takes category "reports" in queue "default"', why["text"])
        self.assertEqual(why["detail"]["category"], "reports")


class UnclaimedCategoriesTest(ApiTest):
    config = "unclaimed_after: 1s\n"

    def setUp(self):
        super().setUp()
        self.server.stop()
        path = f"{self.folder}/perdura.yaml"
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.config)
        self.server.arguments = [*self.server.arguments, "--config", path]
        self.server.start()

    def alerts(self):
        alerts = self.expect(200, "GET", "/v1/stats")["alerts"]
        return [alert for alert in alerts if alert["code"] == "unclaimed"]

    def test_d14_a_category_no_live_worker_takes_is_an_alert(self):
        self.register("a", categories=["analytics"])
        self.enqueue("odd", queue="default", category="reports")
        [alert] = wait_until(self.alerts, what="the alert")
        self.assertIn('category "reports"', alert["text"])
        self.register("r", categories=["reports"])
        wait_until(lambda: not self.alerts(), what="no alert")


class RegisterTest(ApiTest):
    def test_E3_a_worker_registers_and_is_listed(self):
        reply = self.expect(201, "POST", "/v1/workers", {
            "hostname": "h", "pool_size": 3, "queues": ["a", "b"], "types": ["x:*"],
            "version": "9"})
        self.assertTrue(reply["id"])
        self.assertGreater(reply["lease_ms"], reply["heartbeat_ms"])
        items = self.expect(200, "GET", "/v1/workers")["items"]
        [worker] = [w for w in items if w["id"] == reply["id"]]  # the node has a row, too
        self.assertFalse(worker["is_leader"])
        self.assertLessEqual([w["is_leader"] for w in items].count(True), 1)
        self.assertEqual((worker["id"], worker["hostname"], worker["pool_size"],
                          worker["queues"], worker["types"], worker["status"],
                          worker["current_tasks"]),
                         (reply["id"], "h", 3, ["a", "b"], ["x:*"], "idle", []))
        self.assertEqual(self.expect(200, "GET", "/v1/workers/" + reply["id"])["version"], "9")

    def test_an_id_made_from_any_hostname_can_be_used(self):
        worker = self.expect(201, "POST", "/v1/workers",
                             {"hostname": "a" + "\u00e9" * 60, "queues": ["default"]})["id"]
        self.assertEqual(self.claim(urllib.parse.quote(worker)), [])
        self.expect_error(422, "invalid", "POST", "/v1/workers", {"hostname": "a\x1b[31m"},
                          field="hostname")

    def test_a_worker_that_holds_a_task_is_working(self):
        self.enqueue()
        self.register()
        [held] = self.claim()
        worker = self.expect(200, "GET", "/v1/workers/worker-1")
        self.assertEqual(worker["status"], "working")
        self.assertEqual([t["task_id"] for t in worker["current_tasks"]], [held["id"]])

    def test_pages_of_workers(self):
        for i in range(5):
            self.register(f"w{i}")
        seen, cursor = [], ""
        while cursor is not None:
            page = self.expect(200, "GET", "/v1/workers?limit=2" + cursor)
            self.assertLessEqual(len(page["items"]), 2)
            seen += [w["id"] for w in page["items"]]
            cursor = page["next_cursor"] and "&cursor=" + page["next_cursor"]
        self.assertEqual(len(seen), len(set(seen)))
        self.assertLessEqual({f"w{i}" for i in range(5)}, set(seen))
        self.expect_error(422, "invalid", "GET", "/v1/workers?cursor=n1", field="cursor")

    def test_wrong_registrations_are_refused(self):
        for body, field in [({"pool_size": 0}, "pool_size"), ({"queues": "a"}, "queues"),
                            ({"queues": [1]}, "queues"), ({"id": ""}, "id"),
                            ({"colour": 1}, "colour"), ({"id": "x" * 201}, "id")]:
            self.expect_error(422, "invalid", "POST", "/v1/workers", body, field=field)

    def test_c2_only_the_queue_changes_a_status_or_counts_attempts(self):
        """C2: a worker says what happened; what follows from it is the queue's business."""
        self.register()
        self.enqueue()
        task = self.claim()[0]
        for field, value in (("status", "completed"), ("attempts", 0), ("retry_count", 0)):
            item = self.report_one("worker-1", task, "progress", **{field: value})
            self.assertEqual((item["ok"], item["error"]["code"]), (False, "invalid"))
        shown = self.expect(200, "GET", f"/v1/tasks/{task['id']}")
        self.assertEqual((shown["status"], shown["attempts"]), ("claimed", 1))

    def test_an_unknown_worker_gets_404_everywhere(self):
        for method, path, body in [("POST", ":claim", {}), ("POST", ":heartbeat", {}),
                                   ("POST", ":report", []), ("GET", "", None),
                                   ("DELETE", "", None)]:
            self.expect_error(404, "not_found", method, "/v1/workers/nobody" + path, body)

    def test_leaving_gives_the_tasks_back(self):
        self.enqueue()
        self.register()
        [held] = self.claim()
        self.assertEqual(self.request("DELETE", "/v1/workers/worker-1").status, 204)
        self.assertEqual(self.task(held["id"])["status"], "pending")
        self.register("worker-2")
        [again] = self.claim("worker-2")
        self.assertEqual(again["id"], held["id"])


class ClaimTest(ApiTest):
    def test_E1_a_claimed_task_carries_its_lease(self):
        self.enqueue(payload={"a": 1})
        self.register()
        [held] = self.claim()
        self.assertEqual((held["status"], held["worker_id"], held["payload"], held["checkpoint"]),
                         ("claimed", "worker-1", {"a": 1}, None))
        self.assertGreater(held["lease_token"], 0)
        self.assertGreater(held["lease_ms"], 0)
        self.assertIn("attempt", held)
        self.assertIsNotNone(held["claimed_at"])
        self.assertIsNone(held["started_at"])
        self.report_ok("worker-1", held, "start")
        running = self.task(held["id"])
        self.assertEqual(running["status"], "running")
        self.assertIsNotNone(running["started_at"])
        self.assertEqual(running["attempts"], 1)

    def test_E2_claims_go_by_priority_then_age_over_all_queues(self):
        made = [self.enqueue("t", queue=q, priority=p)["id"]
                for q, p in [("a", 0), ("b", 5), ("a", 5), ("b", "critical")]]
        self.register(queues=["a", "b"])
        self.assertEqual([t["id"] for t in self.claim(max=10)],
                         [made[3], made[1], made[2], made[0]])

    def test_a13_a_claim_by_id_gets_that_task_or_is_told_why_not(self):
        first, second = self.enqueue()["id"], self.enqueue(payload={"a": 1})["id"]
        self.register()
        self.register("worker-2")
        path = "/v1/workers/worker-1:claim"
        [held] = self.expect(200, "POST", path, {"task_id": second})["tasks"]
        self.assertEqual((held["id"], held["payload"]), (second, {"a": 1}))
        error = self.expect_error(409, "conflict", "POST", "/v1/workers/worker-2:claim",
                                  {"task_id": second}, field="task_id")
        self.assertIn("held by worker 'worker-1'", error["message"])
        self.complete("worker-1", held)
        error = self.expect_error(409, "invalid_transition", "POST", path, {"task_id": second})
        self.assertIn("has ended", error["message"])
        self.expect_error(404, "not_found", "POST", path,
                          {"task_id": "01890000-0000-7000-8000-000000000000"}, field="task_id")
        self.expect(200, "POST", "/v1/queues/default:pause")
        reply = self.request("POST", path, {"task_id": first})
        self.assertEqual((reply.status, reply.json["error"]["code"]), (429, "rate_limited"))
        self.assertEqual(reply.headers["Retry-After"], "1")
        for body in ({"task_id": "x"}, {"task_id": first, "max": 2},
                     {"task_id": first, "wait_ms": 1}):
            self.expect_error(422, "invalid", "POST", path, body, field="task_id")

    def test_E2_two_workers_never_hold_one_task(self):
        self.expect(201, "POST", "/v1/tasks", [{"type": "t"}] * 200)
        workers = [self.register(f"w{i}") for i in range(8)]

        def drain(worker):
            seen = []
            while True:
                tasks = self.claim(worker, max=7)
                if not tasks:
                    return seen
                seen += [t["id"] for t in tasks]
        seen = [i for call in [self.in_thread(drain, w) for w in workers] for i in call.result()]
        self.assertEqual(len(seen), 200)
        self.assertEqual(len(set(seen)), 200)

    def test_only_the_queues_and_types_asked_for_are_claimed(self):
        mail, other = self.enqueue("mail:send", queue="q"), self.enqueue("report", queue="q")
        self.register(queues=["q"], types=["mail:*"])
        self.assertEqual([t["id"] for t in self.claim(max=9)], [mail["id"]])
        self.assertEqual([t["id"] for t in self.claim(max=9, types=["report"])], [other["id"]])
        self.assertEqual(self.claim(max=9, queues=["nothing"]), [])

    def test_a_claim_waits_for_the_enqueue(self):
        self.register()
        call = self.in_thread(self.claim, "worker-1", 1, 30000)
        self.wait_for_waiting("waiting_claims", 1)
        task = self.enqueue()
        self.assertEqual([t["id"] for t in call.result()], [task["id"]])

    def test_a_claim_answers_empty_at_its_timeout(self):
        self.register()
        self.assertEqual(self.claim(wait_ms=20), [])

    def test_F_H8_many_waiting_workers_one_task_one_gets_it(self):
        calls = []
        for i in range(50):
            self.register(f"w{i}")
            calls.append(self.in_thread(self.claim, f"w{i}", 1, 60000))
        self.wait_for_waiting("waiting_claims", 50)
        self.enqueue()
        wait_until(lambda: any(not c.thread.is_alive() for c in calls), what="a claim that is served")
        self.assertEqual(self.expect(200, "GET", "/v1/stats")["waiting_claims"], 49)
        self.server.stop()  # lets the others go
        self.assertEqual(sum(len(c.result()) for c in calls), 1)

    def test_a_client_that_leaves_a_claim_holds_no_task_back(self):
        self.register()
        self.register("worker-2")
        connection = self.connection()
        connection.request("POST", "/v1/workers/worker-1:claim", json.dumps({"wait_ms": 60000}))
        self.wait_for_waiting("waiting_claims", 1)
        connection.close()
        task = self.enqueue()
        got = wait_until(lambda: self.claim("worker-2", wait_ms=1000))
        self.assertEqual(got[0]["id"], task["id"])

    def test_a_client_that_shuts_its_side_down_leaves_its_claim(self):
        self.register()
        self.register("worker-2")
        body = b'{"wait_ms":60000}'
        with socket.create_connection(self.server.address) as sock:
            sock.sendall(b"POST /v1/workers/worker-1:claim HTTP/1.1\r\nHost: localhost\r\n"
                         b"Content-Length: %d\r\n\r\n" % len(body) + body)
            sock.shutdown(socket.SHUT_WR)
            self.enqueue()
            wait_until(lambda: self.claim("worker-2", wait_ms=1000))

    def test_V9_a_claim_too_large_for_one_reply_leaves_the_rest_to_the_next(self):
        text = "y" * (1024 * 1024 - 2)
        made = {self.enqueue(payload=text, data=text)["id"] for _ in range(40)}
        self.register()
        got = [t["id"] for t in self.claim(max=1000)]
        self.assertLess(len(got), 40)
        while more := [t["id"] for t in self.claim(max=1000)]:
            got += more
        self.assertEqual((len(got), set(got)), (40, made))

    def test_wrong_claims_are_refused(self):
        self.register()
        for body, field in [({"max": 0}, "max"), ({"max": 1001}, "max"), ({"wait_ms": -1},
                            "wait_ms"), ({"queues": "a"}, "queues"), ({"x": 1}, "x")]:
            self.expect_error(422, "invalid", "POST", "/v1/workers/worker-1:claim", body,
                              field=field)

    def test_a_server_that_stops_lets_claims_go(self):
        self.register()
        call = self.in_thread(self.claim, "worker-1", 1, 60000)
        self.wait_for_waiting("waiting_claims", 1)
        self.assertEqual(self.server.stop(), 0)
        self.assertEqual(call.result(), [])


class ReportTest(ApiTest):
    def hold(self, **fields):
        self.enqueue(**fields)
        self.register()
        return self.claim()[0]

    def test_C3_complete_stores_the_result(self):
        held = self.hold()
        self.complete("worker-1", held, {"ok": [1, 2]})
        task = self.task(held["id"])
        self.assertEqual((task["status"], task["result"]), ("completed", {"ok": [1, 2]}))
        self.assertIsNotNone(task["completed_at"])

    def test_A4_progress_changes_what_it_says_and_raises_the_version(self):
        held = self.hold(metadata={"a": 1})
        self.report_ok("worker-1", held, "start")
        before = self.task(held["id"])
        self.report_ok("worker-1", held, "progress", progress=40, state="Half", data={"step": 2},
                       metadata={"b": 2}, detail={"d": 1})
        task = self.task(held["id"])
        self.assertGreater(task["version"], before["version"])
        self.assertEqual((task["progress"], task["state"], task["data"]),
                         (40, "Half", {"step": 2}))
        event = self.events(held["id"])[0]
        self.assertEqual((event["actor"], event["state"], event["detail"]),
                         ("WORKER", "Half", {"d": 1}))

    def test_C3_continue_goes_on_later_with_its_data(self):
        held = self.hold()
        self.report_ok("worker-1", held, "continue", data={"page": 2}, delay_ms=0)
        [again] = self.claim(wait_ms=30000)
        self.assertEqual((again["id"], again["data"], again["continuations"]),
                         (held["id"], {"page": 2}, 1))

    def test_C3_fail_is_retried_by_policy_and_ends_as_dead_letter(self):
        held = self.hold(max_retries=1, retry_delay_ms=1)
        self.report_ok("worker-1", held, "fail", error="first", details={"code": 1})
        [again] = self.claim(wait_ms=30000)
        self.report_ok("worker-1", again, "fail", error="second")
        task = self.task(held["id"])
        self.assertEqual((task["status"], task["retry_count"] >= 1, task["last_error"]),
                         ("dead_letter", True, "second"))

    def test_A6_a_failure_that_is_not_retryable_keeps_its_detail(self):
        held = self.hold()
        self.report_ok("worker-1", held, "fail", error="no", details={"code": 9},
                       retryable=False)
        task = self.task(held["id"])
        self.assertEqual((task["status"], task["last_error"]), ("failed", "no"))
        self.assertEqual(task["error_details"]["details"], {"code": 9})

    def test_C4_F_H12_spawned_children_are_awaited_and_their_outputs_found(self):
        held = self.hold()
        self.report_ok("worker-1", held, "spawn",
                       tasks=[{"type": "child", "queue": "kids", "payload": i} for i in range(30)])
        self.report_ok("worker-1", held, "continue", wait_children=True)
        self.assertEqual(self.task(held["id"])["status"], "blocked")
        kids = self.claim(max=100, queues=["kids"])
        self.assertEqual({k["parent_id"] for k in kids}, {held["id"]})
        self.report("worker-1", *[self.element(k, "complete", result=k["payload"])
                                  for k in kids])
        [parent] = self.claim()
        self.assertEqual(parent["id"], held["id"])
        self.assertEqual(sorted(c["result"] for c in parent["data"]["children"].values()),
                         list(range(30)))
        self.assertEqual(len(self.expect(200, "GET", f"/v1/tasks?parent_id={held['id']}")
                             ["items"]), 30)

    def test_F_K3_reports_on_what_is_not_held_are_refused_one_by_one(self):
        held = self.hold()
        loose = self.enqueue()
        items = self.report(
            "worker-1",
            {"task_id": NOBODY, "lease_token": 1, "op": "complete"},
            {"task_id": loose["id"], "lease_token": 1, "op": "complete"},
            {"task_id": held["id"], "lease_token": held["lease_token"] + 1, "op": "complete"},
            self.element(held, "complete", result=1))
        self.assertEqual([i["ok"] for i in items], [False, False, False, True])
        self.assertIn(items[0]["error"]["code"], ("not_found", "stale_lease"))
        self.assertEqual(items[1]["error"]["code"], "stale_lease")
        self.assertEqual(items[2]["error"]["code"], "stale_lease")
        self.assertEqual(self.task(loose["id"])["status"], "pending")

    def test_F_K3_the_same_outcome_again_is_ok_and_another_is_a_conflict(self):
        held = self.hold()
        self.complete("worker-1", held, {"a": 1})
        version = self.task(held["id"])["version"]
        self.complete("worker-1", held, {"a": 1})
        item = self.report_one("worker-1", held, "complete", result={"a": 2})
        self.assertEqual((item["ok"], item["error"]["code"]), (False, "conflict"))
        item = self.report_one("worker-1", held, "fail", error="x")
        self.assertEqual((item["ok"], item["error"]["code"]), (False, "conflict"))
        self.assertEqual(self.task(held["id"])["version"], version)

    def test_elements_with_a_seq_already_seen_change_nothing(self):
        held = self.hold()
        self.report_ok("worker-1", held, "progress", seq=1, progress=10)
        self.report_ok("worker-1", held, "progress", seq=2, progress=20)
        self.report_ok("worker-1", held, "progress", seq=1, progress=10)
        self.assertEqual(self.task(held["id"])["progress"], 20)

    def test_malformed_elements_get_their_own_errors(self):
        held = self.hold()
        items = self.report(
            "worker-1", 7, {}, {"task_id": "x", "lease_token": 1, "op": "start"},
            self.element(held, "dance"), self.element(held, "progress", progress=101),
            self.element(held, "complete", error="no"), self.element(held, "checkpoint"),
            self.element(held, "start", colour=1), self.element(held, "spawn", tasks=[{"x": 1}]),
            self.element(held, "start"))
        self.assertEqual([i["ok"] for i in items], [False] * 9 + [True])
        for item in items[:9]:
            self.assertEqual(item["error"]["code"], "invalid", item)
            self.assertTrue(item["error"]["message"])
        self.assertEqual(items[2]["task_id"], "x")
        self.assertIsNone(items[0]["task_id"])
        self.assertEqual(self.task(held["id"])["status"], "running")

    def test_malformed_bodies(self):
        self.register()
        path = "/v1/workers/worker-1:report"
        self.expect_error(400, "malformed", "POST", path, b"[{]")
        self.expect_error(400, "malformed", "POST", path, b"")
        self.expect_error(422, "invalid", "POST", path, {})
        self.expect_error(413, "too_large", "POST", path, [1] * 10001)
        self.assertEqual(self.expect(200, "POST", path, [])["items"], [])

    def test_A5_a_result_that_is_too_large_is_refused(self):
        held = self.hold()
        item = self.report_one("worker-1", held, "complete", result="x" * (256 * 1024))
        self.assertEqual((item["ok"], item["error"]["code"]), (False, "too_large"))
        self.assertEqual(self.task(held["id"])["status"], "claimed")


class LeaseTest(ApiTest):
    lease_s = 3
    arguments = ("--lease", f"{lease_s}s")

    def test_E5_a_lost_workers_task_goes_back_through_orphaned_and_recovering(self):
        self.enqueue()
        self.register()
        [held] = self.claim()
        said = self.report("worker-1", self.element(held, "start"),
                           self.element(held, "checkpoint", name="one", data={"n": 1}))
        self.assertTrue(all(item["ok"] for item in said), said)
        wait_until(lambda: self.task(held["id"])["status"] == "pending")
        self.assertEqual([e["status"] for e in self.events(held["id"])][:3],
                         ["pending", "recovering", "orphaned"])
        self.register("worker-2")
        [again] = self.claim("worker-2")
        self.assertGreater(again["lease_token"], held["lease_token"])
        self.assertEqual(again["checkpoint"]["name"], "one")
        self.assertEqual(again["crash_count"], 1)
        item = self.report_one("worker-1", held, "complete", result=1) \
            if self.api("GET", "/v1/workers/worker-1")[0] == 200 else None
        if item:
            self.assertEqual(item["error"]["code"], "stale_lease")
        self.assertEqual(self.task(held["id"])["worker_id"], "worker-2")

    def test_e2_a_lease_token_is_shown_to_its_holder_only_and_is_of_use_to_nobody_else(self):
        self.register()
        self.register("other")
        task = self.enqueue(callback_url=None)
        [held] = self.claim()
        for path in (f"/v1/tasks/{task['id']}", "/v1/tasks", f"/v1/tasks/{task['id']}/events",
                     f"/v1/tasks/{task['id']}/executions", "/v1/executions", "/v1/workers",
                     f"/v1/tasks/{task['id']}/why", f"/v1/tasks/{task['id']}/wait?timeout_ms=1"):
            self.assertNotIn(b"lease_token", self.request("GET", path).body, path)
        for op in ("start", "complete", "release", "log"):
            fields = {"message": "m"} if op == "log" else {}
            [item] = self.report("other", self.element(held, op, **fields))
            self.assertEqual(item["error"]["code"], "stale_lease", op)
        lost = self.expect(200, "POST", "/v1/workers/other:heartbeat",
                           {"tasks": [{"task_id": held["id"], "lease_token": held["lease_token"]}]})
        self.assertEqual(lost["lost"], [held["id"]])
        self.assertEqual(self.task(held["id"])["status"], "claimed")
        self.complete("worker-1", held)

    def test_heartbeats_keep_a_lease_and_tell_of_lost_ones(self):
        self.enqueue()
        self.register()
        [held] = self.claim()
        beats, begun = [], time.monotonic()

        def beat():
            body = {"tasks": [{"task_id": held["id"], "lease_token": held["lease_token"]},
                              {"task_id": NOBODY, "lease_token": 1}]}
            beats.append(self.expect(200, "POST", "/v1/workers/worker-1:heartbeat", body))
            return time.monotonic() > begun + 2 * self.lease_s
        wait_until(beat)
        self.assertEqual(self.task(held["id"])["status"], "claimed")
        self.assertEqual(beats[-1]["lost"], [NOBODY])
        self.expect_error(422, "invalid", "POST", "/v1/workers/worker-1:heartbeat",
                          {"tasks": [{"task_id": "x", "lease_token": 1}]}, field="tasks[0]")


if __name__ == "__main__":
    unittest.main()
