"""/v1/tasks and what belongs to a task, over HTTP."""
import json
import re
import unittest
import urllib.parse
import uuid

from harness import ApiTest, wait_until

NOBODY = "01890000-0000-7000-8000-000000000000"
TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")


class EnqueueTest(ApiTest):
    def test_A2_a_new_task_is_pending_with_its_first_event(self):
        task = self.enqueue("email:send", payload={"to": "a"}, name="mail")
        self.assertEqual(task["status"], "pending")
        self.assertEqual((task["state"], task["progress"], task["queue"], task["priority"]),
                         ("Queued", 0, "default", 0))
        self.assertEqual(task["payload"], {"to": "a"})
        self.assertRegex(task["created_at"], TIME)
        self.assertEqual(uuid.UUID(task["id"]).version, 7)
        self.assertEqual(task["depends_on"], [])
        self.assertIsNone(task["result"])
        events = self.events(task["id"])
        self.assertEqual(len(events), 1)
        self.assertEqual((events[0]["actor"], events[0]["status"]), ("API", "pending"))
        self.assertIsNotNone(events[0]["detail"])

    def test_A2_the_reply_says_where_the_task_is_and_its_version(self):
        reply = self.request("POST", "/v1/tasks", {"type": "t"})
        self.assertEqual(reply.status, 201)
        self.assertEqual(reply.headers["Location"], "/v1/tasks/" + reply.json["id"])
        self.assertEqual(reply.headers["ETag"], f'"{reply.json["version"]}"')
        again = self.request("GET", reply.headers["Location"])
        self.assertEqual(again.headers["ETag"], f'"{again.json["version"]}"')
        self.assertEqual(again.json["id"], reply.json["id"])

    def test_C1_payload_and_data_come_back_byte_for_byte(self):
        body = b'{"type":"t","payload":{"b":1.10, "a":9223372036854775808 ,"\\u00e9":"\xc3\xa9"},' \
               b'"data":[ 1,2 ]}'
        task = self.expect(201, "POST", "/v1/tasks", body)
        text = self.request("GET", f"/v1/tasks/{task['id']}").body
        self.assertIn(b'{"b":1.10, "a":9223372036854775808 ,"\\u00e9":"\xc3\xa9"}', text)
        self.assertIn(b"[ 1,2 ]", text)

    def test_an_array_is_answered_in_order(self):
        items = self.expect(201, "POST", "/v1/tasks",
                            [{"type": f"t{i}", "payload": i} for i in range(50)])["items"]
        self.assertEqual([i["type"] for i in items], [f"t{i}" for i in range(50)])
        self.assertEqual(len({i["id"] for i in items}), 50)

    def test_an_array_is_one_unit_all_or_none(self):
        self.expect_error(422, "invalid", "POST", "/v1/tasks", [{"type": "a"}, {"type": ""}])
        self.expect_error(422, "invalid", "POST", "/v1/tasks",
                          [{"type": "a"}, {"type": "b", "depends_on": [NOBODY]}])
        self.assertEqual(self.expect(200, "GET", "/v1/tasks")["items"], [])

    def test_an_array_above_10000_is_413(self):
        self.expect_error(413, "too_large", "POST", "/v1/tasks", [{"type": "a"}] * 10001)

    def test_unknown_fields_are_422_with_the_field(self):
        self.expect_error(422, "invalid", "POST", "/v1/tasks", {"type": "t", "prioritty": 1},
                          field="prioritty")
        self.expect_error(422, "invalid", "POST", "/v1/tasks", {"payload": 1}, field="type")

    def test_A3_the_same_input_hash_gives_the_first_task(self):
        first = self.enqueue("t", payload={"a": 1, "b": 2}, hash_input=True)
        self.assertRegex(first["input_hash"], "^[0-9a-f]{64}$")
        status, second = self.api("POST", "/v1/tasks", b'{"type":"t","hash_input":true,'
                                  b'"payload":{"b":2.0,"a":1}}')
        self.assertEqual((status, second["id"], second["duplicate"]), (200, first["id"], True))
        other = self.enqueue("u", payload={"a": 1, "b": 2}, hash_input=True)
        self.assertNotEqual(other["id"], first["id"])

    def test_F_A2_the_same_key_gives_the_first_task_and_tells_of_another_payload(self):
        first = self.enqueue("t", idempotency_key="k", payload=1)
        status, same = self.api("POST", "/v1/tasks",
                                {"type": "t", "idempotency_key": "k", "payload": 1})
        self.assertEqual((status, same["id"], same["duplicate"]), (200, first["id"], True))
        self.assertNotIn("payload_differs", same)
        status, other = self.api("POST", "/v1/tasks",
                                 {"type": "t", "idempotency_key": "k", "payload": 2})
        self.assertEqual((status, other["id"], other["payload_differs"]), (200, first["id"], True))
        self.assertEqual(other["payload"], 1)

    def test_A6_a_duplicate_of_an_ended_task_shows_its_result(self):
        first = self.enqueue("t", idempotency_key="k")
        self.register()
        self.complete("worker-1", self.claim()[0], {"x": 1})
        status, again = self.api("POST", "/v1/tasks", {"type": "t", "idempotency_key": "k"})
        self.assertEqual((status, again["id"], again["status"], again["result"]),
                         (200, first["id"], "completed", {"x": 1}))

    def test_F_H1_parallel_enqueues_with_one_key_make_one_task(self):
        def enqueue():
            return [self.api("POST", "/v1/tasks", {"type": "t", "idempotency_key": "k"})
                    for _ in range(25)]
        replies = [r for t in [self.in_thread(enqueue) for _ in range(20)] for r in t.result()]
        self.assertEqual(len({body["id"] for _, body in replies}), 1)
        self.assertEqual([status for status, _ in replies].count(201), 1)
        self.assertEqual(len(self.expect(200, "GET", "/v1/tasks")["items"]), 1)

    def test_delay_and_run_at_make_a_task_wait(self):
        self.assertEqual(self.enqueue("t", delay_ms=60000)["status"], "delayed")
        task = self.enqueue("t", run_at="2099-01-01T00:00:00+01:00")
        self.assertEqual(task["status"], "delayed")
        self.assertEqual(task["run_at"], "2098-12-31T23:00:00.000000Z")
        soon = self.enqueue("t", delay_ms=50)
        wait_until(lambda: self.task(soon["id"])["status"] == "pending")


class DependencyTest(ApiTest):
    def test_C4_a_task_waits_for_its_parents_and_finds_their_outputs(self):
        parent, child = self.expect(201, "POST", "/v1/tasks", [
            {"type": "parent", "ref": "p"},
            {"type": "child", "depends_on": [{"ref": "p"}]}])["items"]
        self.assertEqual(child["status"], "blocked")
        self.assertEqual(self.task(child["id"])["depends_on"],
                         [{"task": parent["id"], "type": "success", "status": "pending",
                           "met": None}])
        self.register()
        [claimed] = self.claim(max=10)
        self.complete("worker-1", claimed, {"n": 7})
        [claimed] = self.claim(max=10)
        self.assertEqual(claimed["id"], child["id"])
        self.assertEqual(claimed["data"]["dependencies"][parent["id"]],
                         {"ref": "p", "status": "completed", "result": {"n": 7}})

    def test_C4_a_single_task_shows_what_it_depends_on(self):
        parent = self.enqueue("p")
        child = self.enqueue("c", depends_on=[{"task": parent["id"], "type": "completion"}])
        self.assertEqual(child["depends_on"], [{"task": parent["id"], "type": "completion"}])

    def test_C4_an_unsatisfied_dependency_cancels_the_child(self):
        parent = self.enqueue("p")
        child = self.enqueue("c", depends_on=[parent["id"]])
        self.expect(200, "POST", f"/v1/tasks/{parent['id']}:cancel")
        self.assertEqual(self.task(child["id"])["status"], "cancelled")

    def test_F_H11_a_cycle_is_422_and_names_its_path(self):
        error = self.expect_error(422, "invalid", "POST", "/v1/tasks", [
            {"type": "a", "ref": "first", "depends_on": [{"ref": "second"}]},
            {"type": "b", "ref": "second", "depends_on": [{"ref": "first"}]}])
        self.assertIn("first", error["message"])
        self.assertIn("second", error["message"])
        self.expect_error(422, "invalid", "POST", "/v1/tasks",
                          [{"type": "a", "ref": "x", "depends_on": [{"ref": "x"}]}])

    def test_F_H13_parallel_ends_of_two_parents_release_the_child_once(self):
        self.register()
        for _ in range(20):
            items = self.expect(201, "POST", "/v1/tasks", [
                {"type": "p", "ref": "a"}, {"type": "p", "ref": "b"},
                {"type": "c", "queue": "children",
                 "depends_on": [{"ref": "a"}, {"ref": "b"}]}])["items"]
            claimed = self.claim(max=2)
            for call in [self.in_thread(self.complete, "worker-1", t) for t in claimed]:
                call.result()
            events = self.events(items[2]["id"])
            self.assertEqual([e["status"] for e in events], ["pending", "blocked"])


class ListTest(ApiTest):
    def test_filters_find_exactly_their_tasks(self):
        fields = {"queue": "q1", "user_id": "u1", "external_id": "e1", "context_key": "c1",
                  "workflow_id": "w1", "correlation_id": "x1"}
        wanted = self.enqueue("wanted", tags=["red", "blue"], **fields)
        self.enqueue("other")
        for query in [*(f"{k}={v}" for k, v in fields.items()), "type=wanted", "tag=blue",
                      "status=pending&type=wanted", "created_after=2001-01-01T00:00:00Z&tag=red"]:
            items = self.expect(200, "GET", "/v1/tasks?" + query)["items"]
            self.assertEqual([t["id"] for t in items], [wanted["id"]], query)
        for query in ["status=completed", "queue=nobody", "created_before=2001-01-01T00:00:00Z",
                      f"parent_id={NOBODY}", f"job_id={NOBODY}", f"schedule_id={NOBODY}"]:
            self.assertEqual(self.expect(200, "GET", "/v1/tasks?" + query)["items"], [], query)

    def test_G2_words_find_names_types_tags_and_ids_and_every_word_counts(self):
        march = self.enqueue("invoice:send", name="Invoice of March", tags=["paper"])["id"]
        april = self.enqueue("invoice:send", name="invoice of April", external_id="order-4711")["id"]
        other = self.enqueue("sweep", queue="march")["id"]
        for words, found in [("invoice", [april, march]), ("MARCH", [other, march]),
                             ("march invoice", [march]), ("invoice may", []), ("4711", [april]),
                             ("paper", [march]), ('"of march"', [march]), ('"march of"', []),
                             (other[-12:], [other]), ('  ""  ', [other, april, march])]:
            query = "/v1/tasks?q=" + urllib.parse.quote(words)
            page = self.expect(200, "GET", query)
            self.assertEqual([t["id"] for t in page["items"]], found, words)
            self.assertIsNone(page["next_cursor"], words)
        page = self.expect(200, "GET", "/v1/tasks?q=send&limit=1&status=pending")
        self.assertEqual([t["id"] for t in page["items"]], [april])
        page = self.expect(200, "GET", "/v1/tasks?q=send&limit=1&cursor=" + page["next_cursor"])
        self.assertEqual([t["id"] for t in page["items"]], [march])
        self.expect_error(422, "invalid", "GET", "/v1/tasks?q=" + "+".join("abcdefghijklmnopq"),
                          field="q")
        self.expect_error(422, "invalid", "POST", "/v1/tasks:cancel?q=send")

    def test_G2_a_pattern_as_a_filter_is_refused_instead_of_finding_nothing(self):
        self.enqueue("report:build")
        for name in ("type", "queue", "tag", "user_id", "external_id", "context_key",
                     "workflow_id", "correlation_id"):
            for method, path in (("GET", "/v1/tasks?"), ("POST", "/v1/tasks:cancel?all=true&")):
                error = self.expect_error(422, "invalid", method, f"{path}{name}=report:*",
                                          field=name)
                self.assertIn("no wildcards", error["message"])
        self.expect_error(422, "invalid", "GET", "/v1/tasks?type=*", field="type")
        self.expect_error(422, "invalid", "GET", "/v1/tasks?status=pend*", field="status")
        self.expect_error(422, "invalid", "DELETE", "/v1/tasks?user_id=u*", field="user_id")
        for name in ("queue", "type"):
            self.expect_error(422, "invalid", "GET", f"/v1/stream?{name}=report:*", field=name)
        self.assertEqual(len(self.expect(200, "GET", "/v1/tasks?q=report:*")["items"]), 1)

    def test_G2_what_has_a_star_at_an_end_is_found_in_quotes(self):
        fields = {name: "x*" for name in ("user_id", "external_id", "context_key", "workflow_id", "correlation_id")}
        made = self.enqueue("report:build", tags=["x*"], **fields)["id"]
        for name in (*fields, "tag"):
            found = self.expect(200, "GET", f"/v1/tasks?{name}=%22x*%22")["items"]
            self.assertEqual([task["id"] for task in found], [made], name)
        self.assertEqual(self.expect(200, "GET", "/v1/tasks?tag=%22*%22")["items"], [])
        self.assertEqual(self.expect(200, "DELETE", "/v1/tasks?user_id=%22*%22")["removed"], 0)

    def test_C7_G2_names_that_look_like_patterns_are_refused_when_they_are_new(self):
        for name in ("*", "q*", "*q"):
            for field in ("type", "queue"):
                error = self.expect_error(422, "invalid", "POST", "/v1/tasks", {"type": "t", field: name}, field=field)
                self.assertIn("patterns do not work here", error["message"])
            self.expect_error(422, "invalid", "POST", "/v1/jobs", {"name": "j", "task_type": name}, field="task_type")
            self.expect_error(422, "invalid", "POST", "/v1/jobs", {"name": "j", "queue": name}, field="queue")
            self.expect_error(422, "invalid", "POST", "/v1/jobs", {"name": name}, field="name")
            self.expect_error(422, "invalid", "POST", "/v1/categories",
                              {"name": "c", "configuration": {"queue": name}}, field="configuration.queue")
            for method, path, body in (("PATCH", "", {"concurrency": 1}), ("POST", ":pause", None),
                                       ("POST", ":resume", None)):
                error = self.expect_error(422, "invalid", method, f"/v1/queues/{name}{path}", body, field="name")
                self.assertIn("patterns do not work here", error["message"])
        self.assertEqual([q["name"] for q in self.expect(200, "GET", "/v1/queues")["items"] if "*" in q["name"]], [])
        self.enqueue("a*b", queue="a*b")

    def test_pages_are_newest_first_and_complete(self):
        made = [self.enqueue("t", payload=i)["id"] for i in range(7)]
        seen, cursor = [], ""
        while cursor is not None:
            page = self.expect(200, "GET", "/v1/tasks?limit=3" + cursor)
            seen += [t["id"] for t in page["items"]]
            cursor = page["next_cursor"] and "&cursor=" + page["next_cursor"]
        self.assertEqual(seen, made[::-1])

    def test_pages_are_oldest_first_where_that_is_asked_for(self):
        made = [self.enqueue("t", payload=i)["id"] for i in range(7)]
        seen, cursor = [], ""
        while cursor is not None:
            page = self.expect(200, "GET", "/v1/tasks?order=oldest&status=pending&limit=3" + cursor)
            seen += [t["id"] for t in page["items"]]
            cursor = page["next_cursor"] and "&cursor=" + page["next_cursor"]
        self.assertEqual(seen, made)
        cursor = self.expect(200, "GET", "/v1/tasks?order=oldest&limit=1")["next_cursor"]
        self.expect_error(422, "invalid", "GET", f"/v1/tasks?cursor={cursor}", field="cursor")
        self.expect_error(422, "invalid", "GET", "/v1/tasks?order=largest", field="order")

    def test_a_page_that_ends_exactly_has_no_next(self):
        for _ in range(4):
            self.enqueue()
        self.assertIsNone(self.expect(200, "GET", "/v1/tasks?limit=4")["next_cursor"])
        self.assertIsNotNone(self.expect(200, "GET", "/v1/tasks?limit=3")["next_cursor"])

    def test_F_H20_limits_are_clamped_and_bad_ones_refused(self):
        self.enqueue()
        for limit in ("1000000000", "1e9", "99999999999999999999999"):
            self.assertEqual(len(self.expect(200, "GET", f"/v1/tasks?limit={limit}")["items"]), 1)
        for query, field in [("limit=0", "limit"), ("limit=-1", "limit"), ("limit=x", "limit"),
                             ("cursor=zzz", "cursor"), ("status=nope", "status"),
                             ("job_id=7", "job_id"), ("created_after=yesterday", "created_after"),
                             ("days=9999999", "days"), ("type=a&type=b", "type")]:
            self.expect_error(422, "invalid", "GET", "/v1/tasks?" + query, field=field)

    def test_purge_removes_the_ended_tasks_of_a_user(self):
        ids = [self.enqueue("t", user_id="u")["id"] for _ in range(3)]
        other = self.enqueue("t", user_id="v")["id"]
        for task_id in ids[:2]:
            self.expect(200, "POST", f"/v1/tasks/{task_id}:cancel")
        self.assertEqual(self.expect(200, "DELETE", "/v1/tasks?user_id=u"), {"removed": 2})
        self.expect(404, "GET", f"/v1/tasks/{ids[0]}")
        self.assertEqual(self.task(ids[2])["status"], "pending")
        self.assertEqual(self.task(other)["status"], "pending")
        self.expect_error(422, "invalid", "DELETE", "/v1/tasks", field="user_id")


class ControlTest(ApiTest):
    def test_A8_cancel_says_so_and_tells_the_worker(self):
        self.enqueue()
        self.register()
        [held] = self.claim()
        self.report_ok("worker-1", held, "start")
        task = self.expect(200, "POST", f"/v1/tasks/{held['id']}:cancel", {"reason": "why not"})
        self.assertEqual((task["status"], task["state"]), ("cancelled", "Cancelled by user"))
        beat = self.expect(200, "POST", "/v1/workers/worker-1:heartbeat", {})
        self.assertEqual(beat["cancel"], [held["id"]])
        item = self.report_one("worker-1", held, "progress", progress=5)
        self.assertTrue(item.get("cancel"), item)
        self.assertEqual(self.task(held["id"])["status"], "cancelled")
        self.assertEqual(self.events(held["id"])[0]["detail"], {"reason": "why not"})

    def test_F_H14_cancel_of_an_ended_task_is_409(self):
        task = self.enqueue()
        self.expect(200, "POST", f"/v1/tasks/{task['id']}:cancel")
        self.expect_error(409, "invalid_transition", "POST", f"/v1/tasks/{task['id']}:cancel")

    def test_F_H14_cancel_against_complete_ends_once(self):
        self.register()
        for _ in range(20):
            self.enqueue()
            [held] = self.claim()
            cancel = self.in_thread(self.api, "POST", f"/v1/tasks/{held['id']}:cancel")
            item = self.report_one("worker-1", held, "complete", result=1)
            status, _ = cancel.result()
            self.assertNotEqual(item["ok"], status == 200)
            self.assertEqual(self.task(held["id"])["status"],
                             "completed" if item["ok"] else "cancelled")

    def test_A4_versions_guard_a_change(self):
        task = self.enqueue()
        path = f"/v1/tasks/{task['id']}"
        self.expect_error(409, "version_mismatch", "POST", path + ":cancel",
                          {"if_version": task["version"] + 1})
        self.expect_error(412, "precondition_failed", "POST", path + ":cancel",
                          headers={"If-Match": f'"{task["version"] + 1}"'})
        self.expect_error(412, "precondition_failed", "POST", path + ":cancel",
                          headers={"If-Match": "nonsense"})
        self.assertEqual(self.task(task["id"])["status"], "pending")
        done = self.expect(200, "POST", path + ":pause",
                           headers={"If-Match": f'"{task["version"]}"'})
        self.assertGreater(done["version"], task["version"])
        self.expect(200, "POST", path + ":cancel", {"if_version": done["version"]})

    def test_A7_retry_puts_an_ended_task_back_with_its_counts_at_zero(self):
        self.enqueue("t", max_retries=0)
        self.register()
        [held] = self.claim()
        self.report_ok("worker-1", held, "fail", error="broken", details={"code": 7})
        dead = self.task(held["id"])
        self.assertEqual((dead["status"], dead["last_error"]), ("dead_letter", "broken"))
        task = self.expect(200, "POST", f"/v1/tasks/{held['id']}:retry")
        self.assertEqual((task["status"], task["retry_count"], task["crash_count"]),
                         ("pending", 0, 0))
        [again] = self.claim()
        self.assertGreater(again["lease_token"], held["lease_token"])

    def test_pause_and_resume(self):
        task = self.enqueue()
        path = f"/v1/tasks/{task['id']}"
        self.assertEqual(self.expect(200, "POST", path + ":pause")["status"], "paused")
        self.register()
        self.assertEqual(self.claim(), [])
        self.assertEqual(self.expect(200, "POST", path + ":resume")["status"], "pending")
        [held] = self.claim()
        asked = self.expect(200, "POST", path + ":pause")
        self.assertEqual((asked["status"], asked["pause_requested"]), ("claimed", True))
        beat = self.expect(200, "POST", "/v1/workers/worker-1:heartbeat", {})
        self.assertEqual(beat["pause"], [task["id"]])
        self.report_ok("worker-1", held, "release")
        self.assertEqual(self.task(task["id"])["status"], "paused")

    def test_C5_priority_can_change_while_a_task_waits(self):
        first, second = self.enqueue("a"), self.enqueue("b")
        task = self.expect(200, "POST", f"/v1/tasks/{second['id']}:prioritize",
                           {"priority": "high"})
        self.assertEqual(task["priority"], 10)
        self.register()
        self.assertEqual([t["id"] for t in self.claim(max=2)], [second["id"], first["id"]])
        self.expect_error(422, "invalid", "POST", f"/v1/tasks/{first['id']}:prioritize",
                          {"priority": 1001}, field="priority")
        self.expect_error(422, "invalid", "POST", f"/v1/tasks/{first['id']}:prioritize", {},
                          field="priority")

    def test_recover_takes_up_a_partial_task(self):
        self.enqueue()
        self.register()
        [held] = self.claim()
        self.report_ok("worker-1", held, "partial", result={"half": 1})
        self.assertEqual(self.task(held["id"])["status"], "partial")
        self.expect_error(422, "invalid", "POST", f"/v1/tasks/{held['id']}:recover",
                          {"method": "pray"}, field="method")
        task = self.expect(200, "POST", f"/v1/tasks/{held['id']}:recover",
                           {"method": "resume_checkpoint"})
        self.assertEqual(task["status"], "pending")
        self.assertEqual([e["status"] for e in self.events(held["id"])][:2],
                         ["pending", "recovering"])

    def test_delete_removes_an_ended_task(self):
        task = self.enqueue()
        path = f"/v1/tasks/{task['id']}"
        self.expect(200, "POST", path + ":cancel")
        reply = self.request("DELETE", path)
        self.assertEqual((reply.status, reply.body), (204, b""))
        self.expect_error(404, "not_found", "GET", path)
        self.expect_error(404, "not_found", "DELETE", path)

    def test_wrong_bodies_and_unknown_tasks(self):
        task = self.enqueue()
        path = f"/v1/tasks/{task['id']}"
        self.expect_error(422, "invalid", "POST", path + ":cancel", {"why": 1}, field="why")
        self.expect_error(422, "invalid", "POST", path + ":cancel", {"priority": 1},
                          field="priority")
        self.expect_error(422, "invalid", "POST", path + ":cancel", [1])
        self.expect_error(400, "malformed", "POST", path + ":cancel", b"{")
        for verb in ("cancel", "retry", "pause", "resume", "recover"):
            self.expect_error(404, "not_found", "POST", f"/v1/tasks/{NOBODY}:{verb}")
        self.expect_error(404, "not_found", "POST", "/v1/tasks/not-an-id:cancel")


class PartsTest(ApiTest):
    def test_A10_events_are_newest_first_and_at_most_100(self):
        self.enqueue()
        self.register()
        [held] = self.claim()
        self.report("worker-1", *[self.element(held, "progress", progress=i % 100, state=f"s{i}")
                                  for i in range(150)])
        page = self.expect(200, "GET", f"/v1/tasks/{held['id']}/events?limit=1000")
        self.assertEqual(len(page["items"]), 100)
        seqs = [e["seq"] for e in page["items"]]
        self.assertEqual(seqs, sorted(seqs, reverse=True))
        self.assertEqual(page["items"][0]["state"], "s149")
        self.assertEqual(page["items"][0]["actor"], "WORKER")
        rest = self.expect(200, "GET", f"/v1/tasks/{held['id']}/events?cursor="
                           + page["next_cursor"])["items"]
        self.assertEqual(rest[-1]["seq"], 1)
        self.assertEqual(len(rest) + 100, seqs[0])

    def test_E1_executions_tell_of_every_attempt(self):
        self.enqueue("t", retry_delay_ms=0)
        self.register()
        [held] = self.claim()
        self.report_ok("worker-1", held, "start")
        self.report_ok("worker-1", held, "fail", error="once")
        [held] = self.claim(wait_ms=30000)
        self.complete("worker-1", held, 1)
        items = self.expect(200, "GET", f"/v1/tasks/{held['id']}/executions")["items"]
        self.assertEqual([(e["attempt_number"], e["status"]) for e in items],
                         [(2, "completed"), (1, "failed")])
        self.assertEqual(items[0]["worker_id"], "worker-1")

    def test_checkpoints_and_the_next_attempt(self):
        self.enqueue("t", retry_delay_ms=0)
        self.register()
        [held] = self.claim()
        self.report_ok("worker-1", held, "checkpoint", name="one", progress=30,
                       description="first", data={"at": 1}, file_state={"f": 2})
        items = self.expect(200, "GET", f"/v1/tasks/{held['id']}/checkpoints")["items"]
        self.assertEqual((items[0]["checkpoint_name"], items[0]["progress_percent"],
                          items[0]["recoverable_data"], items[0]["is_valid"]),
                         ("one", 30, {"at": 1}, True))
        self.report_ok("worker-1", held, "release")
        [again] = self.claim()
        self.assertEqual(again["checkpoint"], {"name": "one", "progress": 30, "data": {"at": 1},
                                               "database_state": None, "file_state": {"f": 2}})

    def test_logs_are_found_by_level_text_and_page(self):
        self.enqueue()
        self.register()
        [held] = self.claim()
        self.report_ok("worker-1", held, "start")
        self.report("worker-1", *[self.element(held, "log", message=f"line {i}",
                                               level="ERROR" if i == 3 else "INFO",
                                               context={"i": i}) for i in range(6)])
        path = f"/v1/tasks/{held['id']}/logs"
        lines = self.expect(200, "GET", path)["items"]
        self.assertEqual([line["message"] for line in lines], [f"line {i}" for i in range(6)])
        self.assertEqual(lines[0]["context"], {"i": 0})
        lines = self.expect(200, "GET", path + "?level=warn")["items"]
        self.assertEqual([(line["message"], line["log_level"]) for line in lines],
                         [("line 3", "ERROR")])
        lines = self.expect(200, "GET", path + "?q=line%205")["items"]
        self.assertEqual(len(lines), 1)
        page = self.expect(200, "GET", path + "?limit=4")
        rest = self.expect(200, "GET", path + "?limit=4&cursor=" + page["next_cursor"])
        self.assertEqual([line["message"] for line in page["items"] + rest["items"]],
                         [f"line {i}" for i in range(6)])
        self.expect_error(422, "invalid", "GET", path + "?level=loud", field="level")
        self.expect_error(422, "invalid", "GET", path + "?cursor=l00", field="cursor")

    def test_result(self):
        task = self.enqueue()
        self.expect_error(404, "not_found", "GET", f"/v1/tasks/{task['id']}/result")
        self.register()
        self.complete("worker-1", self.claim()[0], {"answer": 42})
        result = self.expect(200, "GET", f"/v1/tasks/{task['id']}/result")
        self.assertEqual((result["result"], result["payload"], result["task_id"]),
                         ({"answer": 42}, {"answer": 42}, task["id"]))

    def test_parts_of_an_unknown_task_are_404(self):
        for part in ("events", "executions", "checkpoints", "logs", "result", "wait"):
            self.expect_error(404, "not_found", "GET", f"/v1/tasks/{NOBODY}/{part}")


class WaitTest(ApiTest):
    def test_C7_wait_answers_as_soon_as_the_task_has_ended(self):
        task = self.enqueue()
        call = self.in_thread(self.expect, 200, "GET", f"/v1/tasks/{task['id']}/wait")
        self.wait_for_waiting("waiting_waits", 1)
        self.register()
        self.complete("worker-1", self.claim()[0], [1])
        ended = call.result()
        self.assertEqual((ended["status"], ended["result"]), ("completed", [1]))

    def test_C7_wait_answers_at_its_timeout_with_the_task_as_it_is(self):
        task = self.enqueue()
        self.assertEqual(self.expect(200, "GET", f"/v1/tasks/{task['id']}/wait?timeout_ms=30")
                         ["status"], "pending")
        self.expect_error(422, "invalid", "GET", f"/v1/tasks/{task['id']}/wait?timeout_ms=-1",
                          field="timeout_ms")

    def test_a_client_that_leaves_a_wait_is_forgotten(self):
        task = self.enqueue()
        connection = self.connection()
        connection.request("GET", f"/v1/tasks/{task['id']}/wait")
        self.wait_for_waiting("waiting_waits", 1)
        connection.close()
        wait_until(lambda: self.api("GET", "/v1/stats")[1]["waiting_waits"] == 0)

    def test_a_server_that_stops_lets_waits_go(self):
        task = self.enqueue()
        call = self.in_thread(self.api, "GET", f"/v1/tasks/{task['id']}/wait")
        self.wait_for_waiting("waiting_waits", 1)
        self.assertEqual(self.server.stop(), 0)
        status, body = call.result()
        self.assertEqual((status, body["status"]), (200, "pending"))


class RestartTest(ApiTest):
    def test_V1_what_was_acknowledged_is_there_after_a_kill(self):
        ids = [self.enqueue("t", payload=i)["id"] for i in range(20)]
        self.server.stop(9)
        self.server.start()
        found = [t["id"] for t in self.expect(200, "GET", "/v1/tasks")["items"]]
        self.assertEqual(found, ids[::-1])


if __name__ == "__main__":
    unittest.main()
