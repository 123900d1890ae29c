"""POST /v1/tasks:cancel and :retry: the same for all tasks that fit, counted before, page by page."""
import unittest

from harness import ApiTest


class BulkTest(ApiTest):
    def enqueue_many(self, count, **fields):
        body = [{"type": "test", **fields} for _ in range(count)]
        return self.expect(201, "POST", "/v1/tasks", body)["items"]

    def count(self, status, **filters):
        path = f"/v1/tasks?limit=1000&status={status}"
        return len(self.expect(200, "GET", path + "".join(f"&{k}={v}" for k, v in
                                                          filters.items()))["items"])

    def dead_letters(self, count, queue="default"):
        self.enqueue_many(count, queue=queue, max_retries=0)
        self.register(queues=[queue], pool_size=100)
        held = self.claim(max=count)
        self.report("worker-1", *[self.element(task, "fail", error="no") for task in held])
        self.assertEqual(self.count("dead_letter", queue=queue), count)

    def test_a_dry_run_counts_and_changes_nothing(self):
        self.enqueue_many(700, queue="a")
        self.enqueue_many(5, queue="b")
        reply = self.expect(200, "POST", "/v1/tasks:cancel?status=pending&queue=a&dry_run=true")
        self.assertEqual(reply, {"dry_run": True, "matched": 700, "changed": 0, "refused": 0,
                                 "refusal": None, "stopped": None, "next_cursor": None})
        self.assertEqual(self.count("pending"), 705)

    def test_all_that_fit_are_cancelled_and_no_other(self):
        self.enqueue_many(600, queue="a")
        self.enqueue_many(5, queue="b")
        reply = self.expect(200, "POST", "/v1/tasks:cancel?status=pending&queue=a")
        self.assertEqual((reply["matched"], reply["changed"], reply["refused"]), (600, 600, 0))
        self.assertIsNone(reply["next_cursor"])
        self.assertEqual((self.count("cancelled"), self.count("pending")), (600, 5))

    def test_a_page_ends_at_its_limit_and_the_cursor_goes_on(self):
        self.enqueue_many(10)
        changed, cursor, calls = 0, "", 0
        while cursor is not None:
            reply = self.expect(200, "POST", "/v1/tasks:cancel?status=pending&limit=4"
                                + (f"&cursor={cursor}" if cursor else ""))
            self.assertLessEqual(reply["matched"], 4)
            changed, cursor, calls = changed + reply["changed"], reply["next_cursor"], calls + 1
        self.assertEqual((changed, calls, self.count("cancelled")), (10, 3, 10))

    def test_dead_letters_are_retried_together(self):
        self.dead_letters(30)
        reply = self.expect(200, "POST", "/v1/tasks:retry?status=dead_letter")
        self.assertEqual((reply["matched"], reply["changed"]), (30, 30))
        self.assertEqual((self.count("dead_letter"), self.count("pending")), (0, 30))

    def test_what_is_refused_is_counted_with_the_first_reason_and_stops_no_other(self):
        self.register()
        for number in range(3):
            self.enqueue(idempotency_key=f"k{number}", unique_until="ended", max_retries=0)
        held = self.claim(max=3)
        self.report("worker-1", *[self.element(task, "fail", error="no") for task in held])
        self.enqueue(idempotency_key="k1")  # has the key of one of them now
        reply = self.expect(200, "POST", "/v1/tasks:retry?status=dead_letter")
        self.assertEqual((reply["matched"], reply["changed"], reply["refused"]), (3, 2, 1))
        self.assertIn("idempotency_key", reply["refusal"])

    def test_B6_B7_tasks_are_retried_after_those_they_depend_on(self):
        # An array may name what comes behind: each depends on the next, over more than a chunk of tasks.
        def chain(count):
            body = [{"type": "t", "ref": f"r{i}", "delay_ms": 10 ** 8,
                     **({"depends_on": [{"ref": f"r{i + 1}"}]} if i + 1 < count else {})} for i in range(count)]
            made = self.expect(201, "POST", "/v1/tasks", body)["items"]
            self.expect(200, "POST", f"/v1/tasks/{made[-1]['id']}:cancel")
            return made
        chain(20)
        reply = self.expect(200, "POST", "/v1/tasks:retry?status=cancelled")
        self.assertEqual((reply["changed"], reply["refused"]), (20, 0))
        last = [self.enqueue(delay_ms=10 ** 8)]
        for _ in range(300):
            last.append(self.enqueue(depends_on=[last[-1]["id"]]))
        self.expect(200, "POST", f"/v1/tasks/{last[0]['id']}:cancel")
        changed, cursor = 0, ""
        while cursor is not None:
            reply = self.expect(200, "POST", "/v1/tasks:retry?status=cancelled&limit=100"
                                + (f"&cursor={cursor}" if cursor else ""))
            self.assertEqual(reply["refused"], 0)
            changed, cursor = changed + reply["changed"], reply["next_cursor"]
        self.assertEqual(changed, 301)

    def test_a_refusal_names_its_task(self):
        parent = self.enqueue(delay_ms=10 ** 8)["id"]
        child = self.enqueue("child", depends_on=[parent])["id"]
        self.expect(200, "POST", f"/v1/tasks/{parent}:cancel")
        reply = self.expect(200, "POST", "/v1/tasks:retry?status=cancelled&type=child")
        self.assertEqual((reply["changed"], reply["refused"]), (0, 1))
        self.assertTrue(reply["refusal"].startswith(f"task {child}: its dependencies are not met: {parent}"))

    def test_running_tasks_are_cancelled_and_their_worker_is_told(self):
        self.enqueue_many(2)
        self.register()
        held = self.claim(max=2)
        self.report("worker-1", *[self.element(task, "start") for task in held])
        self.expect(200, "POST", "/v1/tasks:cancel?status=running")
        beat = self.expect(200, "POST", "/v1/workers/worker-1:heartbeat", {})
        self.assertCountEqual(beat["cancel"], [task["id"] for task in held])

    def test_a_status_must_be_named_and_fit(self):
        for query, field in (("", "status"), ("?queue=a", "status"), ("?status=completed", "status"),
                             ("?status=pending&dry_run=1", "dry_run"),
                             ("?status=pending&nothing=1", "nothing"),
                             ("?status=pending&cursor=x", "cursor"),
                             ("?status=pending&limit=0", "limit")):
            self.expect_error(422, "invalid", "POST", "/v1/tasks:cancel" + query, field=field)
        self.expect_error(422, "invalid", "POST", "/v1/tasks:retry?status=pending", field="status")

    def test_an_empty_filter_is_refused_and_changes_nothing(self):
        self.enqueue_many(3, queue="a")
        for verb, status, name in (("cancel", "pending", "queue"), ("cancel", "pending", "tag"),
                                   ("retry", "dead_letter", "type"), ("cancel", "pending", "cursor")):
            self.expect_error(422, "invalid", "POST", f"/v1/tasks:{verb}?status={status}&{name}=",
                              field=name)
        self.assertEqual(self.count("pending"), 3)

    def test_b6_a_filter_in_the_body_is_refused_and_changes_nothing(self):
        self.enqueue_many(3, queue="a", user_id="u")
        for path in ("/v1/tasks:cancel?status=pending", "/v1/tasks:cancel", "/v1/tasks:retry?status=dead_letter",
                     "/v1/tasks:cancel?all=true"):
            for body, field in (({"queue": "b"}, "queue"), ({"status": "pending"}, "status"), ([], None),
                                ({"filter": {"queue": "b"}}, "filter"), ("b", None)):
                self.expect_error(422, "invalid", "POST", path, body, field=field)
        self.expect_error(400, "malformed", "POST", "/v1/tasks:cancel?status=pending", b"queue=b")
        self.expect_error(422, "invalid", "DELETE", "/v1/tasks?user_id=u", {"status": "failed"}, field="status")
        self.expect_error(422, "invalid", "DELETE", "/v1/tasks", {"user_id": "u"}, field="user_id")
        self.assertEqual(self.count("pending"), 3)
        # Clients that send an empty object with every request still work.
        self.assertEqual(self.expect(200, "POST", "/v1/tasks:cancel?status=pending&queue=b", {})["matched"], 0)

    def test_e1_what_takes_no_body_refuses_one_that_says_something(self):
        task = self.enqueue()["id"]
        for method, path in (("GET", "/v1/tasks"), ("GET", f"/v1/tasks/{task}"), ("DELETE", f"/v1/tasks/{task}"),
                             ("POST", "/v1/queues/a:pause"), ("DELETE", "/v1/workers/w")):
            self.expect_error(422, "invalid", method, path, {"queue": "b"}, field="queue")
        self.assertEqual(self.task(task)["status"], "pending")

    def test_b6_all_takes_every_status_that_allows_it_and_no_other(self):
        self.dead_letters(300, queue="a")
        self.enqueue_many(300, queue="a")
        self.enqueue(queue="a", delay_ms=10 ** 8)
        self.enqueue(queue="b")
        self.expect_error(422, "invalid", "POST", "/v1/tasks:cancel?queue=a", field="status")
        self.expect_error(422, "invalid", "POST", "/v1/tasks:cancel?queue=a&all=yes", field="all")
        self.expect_error(422, "invalid", "POST", "/v1/tasks:cancel?queue=a&all=false", field="status")
        dry = self.expect(200, "POST", "/v1/tasks:cancel?queue=a&all=true&dry_run=true")
        self.assertEqual((dry["matched"], dry["next_cursor"]), (301, None))
        reply = self.expect(200, "POST", "/v1/tasks:cancel?queue=a&all=true")
        self.assertEqual((reply["matched"], reply["changed"], reply["refused"], reply["next_cursor"]),
                         (301, 301, 0, None))
        self.assertEqual((self.count("pending"), self.count("dead_letter")), (1, 300))
        reply = self.expect(200, "POST", "/v1/tasks:retry?all=true&limit=1000")
        self.assertEqual((reply["changed"], reply["refused"], reply["next_cursor"]), (601, 0, None))

    def test_what_a_worker_took_meanwhile_is_not_cancelled(self):
        # Claims continue while a call for pending tasks reads and changes them, chunk by chunk.
        self.register(pool_size=1000)
        self.enqueue_many(1000, payload={"pad": "x" * 20000})
        bulk = self.in_thread(lambda: self.expect(200, "POST", "/v1/tasks:cancel?status=pending"))
        held = []
        while bulk.thread.is_alive():
            held += self.claim(max=10)
        reply = bulk.result()
        self.assertEqual(reply["matched"], reply["changed"] + reply["refused"])
        self.assertEqual([t["id"] for t in held if self.task(t["id"])["status"] != "claimed"], [])
        counts = self.expect(200, "GET", "/v1/stats")["counts"]
        self.assertEqual(counts["cancelled"], reply["changed"])

    def test_nothing_that_fits_is_no_error(self):
        reply = self.expect(200, "POST", "/v1/tasks:cancel?status=paused&queue=none")
        self.assertEqual((reply["matched"], reply["next_cursor"]), (0, None))


if __name__ == "__main__":
    unittest.main()
