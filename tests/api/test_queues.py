"""/v1/queues, /v1/stats, /metrics and /v1/stream over HTTP."""
import contextlib
import functools
import json
import socket
import sqlite3
import unittest

from harness import ApiTest, wait_until


class QueueTest(ApiTest):
    def test_C7_a_queue_comes_into_being_with_its_first_task_and_counts(self):
        self.expect_error(404, "not_found", "GET", "/v1/queues/mail")
        self.enqueue("t", queue="mail")
        self.enqueue("t", queue="mail", delay_ms=60000)
        queue = self.expect(200, "GET", "/v1/queues/mail")
        self.assertEqual((queue["name"], queue["paused"], queue["concurrency"], queue["rate"],
                          queue["priority_order"]), ("mail", False, None, None, "high_first"))
        self.assertEqual((queue["counts"]["pending"], queue["counts"]["delayed"],
                          queue["counts"]["running"]), (1, 1, 0))
        names = [q["name"] for q in self.expect(200, "GET", "/v1/queues")["items"]]
        self.assertIn("mail", names)

    def test_pause_hands_out_nothing_until_resume(self):
        self.enqueue()
        self.register()
        self.assertTrue(self.expect(200, "POST", "/v1/queues/default:pause")["paused"])
        self.assertEqual(self.claim(), [])
        call = self.in_thread(self.claim, "worker-1", 1, 20000)
        self.wait_for_waiting("waiting_claims", 1)
        self.assertFalse(self.expect(200, "POST", "/v1/queues/default:resume")["paused"])
        self.assertEqual(len(call.result()), 1)

    def test_C8_concurrency_of_a_queue_holds_over_all_workers(self):
        self.expect(200, "PATCH", "/v1/queues/default", {"concurrency": 2})
        for _ in range(4):
            self.enqueue()
        self.register("a")
        self.register("b")
        first = self.claim("a", max=3)
        self.assertEqual((len(first), self.claim("b", max=3)), (2, []))
        self.complete("a", first[0])
        self.assertEqual(len(self.claim("b", max=3)), 1)

    def test_C8_concurrency_per_key(self):
        self.expect(200, "PATCH", "/v1/queues/default", {"key_concurrency": 1})
        for key in ("x", "x", "y"):
            self.enqueue(limit_key=key)
        self.register()
        held = self.claim(max=10)
        self.assertEqual(sorted(t["limit_key"] for t in held), ["x", "y"])
        self.complete("worker-1", next(t for t in held if t["limit_key"] == "x"))
        self.assertEqual([t["limit_key"] for t in self.claim(max=10, wait_ms=30000)], ["x"])

    def test_C8_limits_per_type_as_array_and_as_object(self):
        for limits in ([{"type": "a", "concurrency": 1}], {"a": {"concurrency": 1}}, {"a": 1}):
            queue = self.expect(200, "PATCH", "/v1/queues/default", {"type_limits": limits})
            self.assertEqual(queue["type_limits"],
                             [{"type": "a", "concurrency": 1, "rate": None}])
        for kind in ("a", "a", "b"):
            self.enqueue(kind)
        self.register()
        self.assertEqual(sorted(t["type"] for t in self.claim(max=10)), ["a", "b"])

    def test_C8_a_rate_limits_starts(self):
        self.expect(200, "PATCH", "/v1/queues/default",
                    {"rate": {"count": 2, "per_ms": 3600000, "burst": 2}})
        for _ in range(5):
            self.enqueue()
        self.register()
        self.assertEqual(len(self.claim(max=10)), 2)
        self.assertEqual(self.claim(max=10), [])

    def test_C8_a_rate_is_strict_unless_it_has_a_burst(self):
        for given, shown in (({"count": 5}, {"count": 5, "per_ms": 1000, "burst": None}),
                             ({"count": 5, "burst": None}, {"count": 5, "per_ms": 1000, "burst": None}),
                             ({"count": 5, "burst": 10}, {"count": 5, "per_ms": 1000, "burst": 10})):
            queue = self.expect(200, "PATCH", "/v1/queues/q", {
                "rate": given, "key_rate": given, "type_limits": {"t": {"rate": given}}})
            self.assertEqual((queue["rate"], queue["key_rate"], queue["type_limits"][0]["rate"]),
                             (shown, shown, shown))

    def test_low_first_turns_the_order_round(self):
        self.expect(200, "PATCH", "/v1/queues/default", {"priority_order": "low_first"})
        high, low = self.enqueue(priority=9), self.enqueue(priority=1)
        self.register()
        self.assertEqual([t["id"] for t in self.claim(max=2)], [low["id"], high["id"]])

    def test_a_patch_keeps_what_it_does_not_name_and_null_takes_away(self):
        self.expect(200, "PATCH", "/v1/queues/q", {"concurrency": 5, "ageing_ms": 1000})
        queue = self.expect(200, "PATCH", "/v1/queues/q", {"key_concurrency": 2})
        self.assertEqual((queue["concurrency"], queue["key_concurrency"], queue["ageing_ms"]),
                         (5, 2, 1000))
        queue = self.expect(200, "PATCH", "/v1/queues/q", {"concurrency": None})
        self.assertEqual((queue["concurrency"], queue["key_concurrency"]), (None, 2))
        self.assertEqual(self.expect(200, "GET", "/v1/queues/q")["key_concurrency"], 2)

    def test_wrong_patches_are_422_with_the_field(self):
        for body, field in [({"concurency": 1}, "concurency"), ({"concurrency": -1},
                            "concurrency"), ({"concurrency": "5"}, "concurrency"),
                            ({"rate": 5}, "rate"), ({"rate": {"per_ms": 5}}, "rate"),
                            ({"rate": {"count": 1, "per": 5}}, "rate"),
                            ({"priority_order": "up"}, "priority_order"),
                            ({"type_limits": 1}, "type_limits")]:
            self.expect_error(422, "invalid", "PATCH", "/v1/queues/default", body, field=field)
        self.expect_error(422, "invalid", "POST", "/v1/queues/default:pause", {"x": 1}, field="x")

    def test_names_of_queues_are_decoded_and_may_hold_colons(self):
        self.enqueue("t", queue="a:b c")
        self.assertEqual(self.expect(200, "GET", "/v1/queues/a%3Ab%20c")["name"], "a:b c")
        self.assertEqual(self.expect(200, "POST", "/v1/queues/a:b%20c:pause")["name"], "a:b c")
        self.assertTrue(self.expect(200, "GET", "/v1/queues/a:b%20c")["paused"])

    def test_pages_of_queues(self):
        for i in range(5):
            self.expect(200, "PATCH", f"/v1/queues/q{i}", {"concurrency": 1})
        seen, cursor = [], ""
        while cursor is not None:
            page = self.expect(200, "GET", "/v1/queues?limit=2" + cursor)
            seen += [q["name"] for q in page["items"]]
            cursor = page["next_cursor"] and "&cursor=" + page["next_cursor"]
        self.assertEqual(len(seen), len(set(seen)))
        self.assertLessEqual({f"q{i}" for i in range(5)}, set(seen))


class NewQueues(ApiTest):
    def names(self):
        return {queue["name"] for queue in self.expect(200, "GET", "/v1/queues?limit=1000")["items"]}

    def test_f_h4_what_is_refused_leaves_no_queue_behind(self):
        self.enqueue(queue="here", external_id="taken")
        many = [{"type": "t", "queue": f"q{number}"} for number in range(200)]
        task = "01890000-0000-7000-8000-000000000001"
        for last, status in (({"type": "t", "category": "nowhere"}, 422), ({"type": "t", "external_id": "taken"}, 409),
                             ({"type": "t", "depends_on": [task]}, 422)):
            self.assertEqual(self.request("POST", "/v1/tasks", [*many, last]).status, status)
        self.assertEqual(self.names(), {"here"})

    def test_f_h4_an_array_with_more_queues_than_there_may_be_takes_no_place_from_others(self):
        self.enqueue(queue="here")
        many = [{"type": "t", "queue": f"q{number}"} for number in range(10000)]
        self.expect_error(422, "invalid", "POST", "/v1/tasks", many, field="queue")
        self.assertEqual(self.names(), {"here"})
        self.enqueue(queue="another")

    def test_f_h4_a_refused_spawn_leaves_no_queue_behind(self):
        self.enqueue(queue="here", external_id="taken")
        self.register(queues=["here"])
        [held] = self.claim()
        item = self.report_one("worker-1", held, "spawn", tasks=[{"type": "t", "queue": "new"},
                                                                 {"type": "t", "external_id": "taken"}])
        self.assertFalse(item["ok"])
        self.assertEqual(self.names(), {"here"})

    def test_c8_an_empty_queue_is_deleted_with_its_settings(self):
        self.expect(200, "PATCH", "/v1/queues/a", {"concurrency": 2})
        self.expect(204, "DELETE", "/v1/queues/a")
        self.expect_error(404, "not_found", "GET", "/v1/queues/a")
        self.expect_error(404, "not_found", "DELETE", "/v1/queues/a")
        self.register(queues=["a"])
        waiting = self.in_thread(lambda: self.claim(wait_ms=30000))
        self.wait_for_waiting("waiting_claims", 1)
        self.enqueue(queue="a")  # it comes again, as new, and is served
        self.assertEqual(len(waiting.result()), 1)
        self.assertIsNone(self.expect(200, "GET", "/v1/queues/a")["concurrency"])

    def make_old(self):
        """All queues are an hour older than they are; the server is stopped meanwhile."""
        with contextlib.closing(sqlite3.connect(self.server.store)) as database, database:
            database.execute("UPDATE queues SET created_at = created_at - 3600000000, "
                             "updated_at = updated_at - 3600000000")

    def test_c8_empty_queues_without_settings_go_by_themselves(self):
        self.expect(200, "PATCH", "/v1/queues/limited", {"concurrency": 2})
        self.expect(200, "POST", "/v1/queues/paused:pause")
        self.expect(200, "PATCH", "/v1/queues/empty", {})
        task = self.enqueue(queue="ended")["id"]
        self.expect(200, "POST", f"/v1/tasks/{task}:cancel")
        self.server.stop()
        self.make_old()
        self.server.start()
        self.expect(200, "PATCH", "/v1/queues/young", {})
        wait_until(lambda: "empty" not in self.names(), what="the empty queue gone")
        self.assertEqual(self.names(), {"limited", "paused", "ended", "young"})

    def test_c8_a_queue_with_tasks_stays_also_when_they_have_ended(self):
        task = self.enqueue(queue="a")["id"]
        self.expect_error(409, "conflict", "DELETE", "/v1/queues/a")
        self.expect(200, "POST", f"/v1/tasks/{task}:cancel")
        self.expect_error(409, "conflict", "DELETE", "/v1/queues/a")
        self.expect(204, "DELETE", f"/v1/tasks/{task}")
        self.expect(204, "DELETE", "/v1/queues/a")
        self.assertEqual(self.names(), set())

    def test_c8_deleting_and_using_a_queue_at_once_loses_no_task(self):
        self.register(queues=["a"], pool_size=1000)
        deleting = self.in_thread(lambda: [self.request("DELETE", "/v1/queues/a").status for _ in range(100)])
        for _ in range(100):
            task = self.enqueue(queue="a")["id"]
            [held] = self.claim(wait_ms=30000)
            self.complete("worker-1", held)
            self.expect(204, "DELETE", f"/v1/tasks/{task}")
        self.assertLessEqual(set(deleting.result()), {204, 404, 409})

    def test_a_duplicate_makes_no_queue(self):
        self.enqueue(queue="here", idempotency_key="k")
        self.expect(200, "POST", "/v1/tasks", {"type": "test", "queue": "there", "idempotency_key": "k"})
        self.assertEqual(self.names(), {"here"})


class StatsTest(ApiTest):
    def test_C7_stats_count_tasks_and_what_happened(self):
        self.enqueue("a", queue="x")
        self.enqueue("b", queue="y")
        self.register(queues=["x"])
        self.complete("worker-1", self.claim()[0])
        stats = self.expect(200, "GET", "/v1/stats")
        self.assertEqual((stats["counts"]["pending"], stats["counts"]["completed"]), (1, 1))
        self.assertEqual((stats["totals"]["enqueued"], stats["totals"]["completed"],
                          stats["storage_full"]), (2, 1, False))
        self.assertEqual(stats["workers"], 1)  # the node has no pool
        self.assertEqual({q["name"] for q in stats["queues"]} & {"x", "y"}, {"x", "y"})
        self.assertIn({"queue": "y", "type": "b", "status": "pending", "tasks": 1},
                      stats["lanes"])

    def test_C7_lanes_count_every_task_once_also_those_that_wait_for_their_key(self):
        self.expect(200, "PATCH", "/v1/queues/default", {"key_concurrency": 1})
        for _ in range(3):
            self.enqueue("a", limit_key="k")
        self.register()
        self.assertEqual(len(self.claim(max=3)), 1)
        stats = self.expect(200, "GET", "/v1/stats")
        self.assertEqual({(lane["status"], lane["tasks"]) for lane in stats["lanes"]}, {("pending", 2), ("claimed", 1)})
        self.assertEqual((stats["counts"]["pending"], stats["counts"]["claimed"]), (2, 1))

    def test_C7_metrics_are_prometheus_text(self):
        self.enqueue("t", queue='we"ird')
        reply = self.request("GET", "/metrics")
        self.assertTrue(reply.headers["Content-Type"].startswith("text/plain; version=0.0.4"))
        text = reply.body.decode()
        self.assertIn('perdura_tasks{queue="we\\"ird",status="pending"} 1\n', text)
        self.assertIn("perdura_tasks_enqueued_total 1\n", text)
        self.assertIn('route="/v1/tasks",status="2xx"} 1\n', text)
        self.assertRegex(text, r"perdura_process_resident_memory_bytes [1-9]\d*\n")
        self.assertRegex(text, r"perdura_process_open_fds [1-9]\d*\n")
        self.assertRegex(text, r'perdura_build_info\{version="[^"]+",store="sqlite"\} 1\n')
        for line in text.splitlines():
            self.assertRegex(line, r"^(# (HELP|TYPE) perdura_|perdura_[a-z_]+(\{.*\})? -?[\d.]+$)")

    def test_services_health_and_readiness(self):
        self.assertEqual(self.expect(200, "GET", "/v1/services")["items"], [])
        self.assertEqual(self.expect(200, "GET", "/healthz"), {"status": "ok"})
        self.assertEqual(self.expect(200, "GET", "/readyz"), {"status": "ready"})


def connect_with(receive_bytes, address, timeout, source_address):
    """As http.client connects, also below TLS."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    sock.settimeout(timeout)
    sock.connect(address)
    return sock


class StreamTest(ApiTest):
    def open_stream(self, query="", receive_bytes=0):
        """receive_bytes: what the system may keep for the reader; 0 = as it likes, up to megabytes."""
        connection = self.connection()
        self.addCleanup(connection.close)
        if receive_bytes:
            connection._create_connection = functools.partial(connect_with, receive_bytes)
        connection.request("GET", "/v1/stream" + query)
        answer = connection.getresponse()
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.headers["Content-Type"], "text/event-stream")
        answer.connection = connection
        return answer

    def next_event(self, answer):
        event = None
        while True:
            line = answer.readline().decode()
            self.assertTrue(line, "the stream was closed")
            line = line.rstrip("\n")
            if line.startswith("event: "):
                event = line[7:]
            elif line.startswith("data: "):
                return event, json.loads(line[6:])

    def test_C7_the_stream_tells_of_every_change(self):
        answer = self.open_stream()
        task = self.enqueue("mail", queue="q")
        event, data = self.next_event(answer)
        self.assertEqual(event, "task")
        self.assertEqual(data, {"id": task["id"], "status": "pending", "queue": "q",
                                "type": "mail", "progress": 0, "version": task["version"]})
        self.expect(200, "POST", f"/v1/tasks/{task['id']}:cancel")
        event, data = self.next_event(answer)
        self.assertEqual(data["status"], "cancelled")
        self.assertGreater(data["version"], task["version"])

    def test_C7_filters_choose(self):
        wanted = self.enqueue("a", queue="q", delay_ms=3600000)
        streams = [self.open_stream(q) for q in ("?queue=q", "?type=a",
                                                 f"?task_id={wanted['id']}")]
        self.enqueue("b", queue="other")
        self.expect(200, "POST", f"/v1/tasks/{wanted['id']}:cancel")
        for answer in streams:
            self.assertEqual(self.next_event(answer)[1]["id"], wanted["id"])
        self.expect_error(422, "invalid", "GET", "/v1/stream?task_id=7", field="task_id")
        self.expect_error(422, "invalid", "GET", "/v1/stream?colour=7", field="colour")

    def test_F_H18_a_slow_reader_is_told_how_much_it_missed(self):
        # A reader that takes nothing for ten seconds is dropped. The server sees that it takes
        # something when half of what the system keeps for it has been read: soon, also on a busy
        # machine.
        answer = self.open_stream(receive_bytes=65536)
        made = seen = missed = 0

        def look():
            nonlocal seen, missed
            event, data = self.next_event(answer)
            if event == "gap":
                missed += data["missed"]
            else:
                seen += 1

        for _ in range(600):
            self.expect(201, "POST", "/v1/tasks", [{"type": "x" * 200}] * 100)
            made += 100
            for _ in range(40):
                look()
        self.assertLess(int(self.metric("perdura_process_resident_memory_bytes")), 1 << 30)
        while seen + missed < made:
            look()
        self.assertEqual(seen + missed, made)
        self.assertGreater(missed, 0)
        self.enqueue("after")
        event, data = self.next_event(answer)
        self.assertEqual((event, data["type"]), ("task", "after"))

    def metric(self, name):
        for line in self.request("GET", "/metrics").body.decode().splitlines():
            if line.startswith(name + " "):
                return line.split(" ")[1]
        raise AssertionError(name)

    def test_a_reader_that_leaves_is_forgotten(self):
        answer = self.open_stream()
        wait_until(lambda: self.api("GET", "/v1/stats")[1]["stream_readers"] == 1)
        answer.close()
        answer.connection.close()
        wait_until(lambda: self.api("GET", "/v1/stats")[1]["stream_readers"] == 0)

    def come_back(self, seen, query=""):
        connection = self.connection()
        self.addCleanup(connection.close)
        connection.request("GET", "/v1/stream" + query, headers={"Last-Event-ID": seen})
        return connection.getresponse()

    def next_id(self, answer):
        """The id of the next line that has one."""
        while not (line := answer.readline().decode()).startswith("id: "):
            self.assertTrue(line, "the stream was closed")
        return line[4:].rstrip("\n")

    def leave(self, answer):
        answer.connection.close()
        answer.close()
        wait_until(lambda: self.api("GET", "/v1/stats")[1]["stream_readers"] == 0)

    def test_C7_who_comes_back_gets_what_happened_meanwhile(self):
        first = self.open_stream()
        seen = self.next_id(first)  # before any event
        self.leave(first)
        made = [self.enqueue("t", queue=queue)["id"] for queue in ("a", "b", "a", "b", "a")]
        again = self.come_back(seen)
        self.assertEqual([self.next_event(again)[1]["id"] for _ in made], made)
        last = self.enqueue("t", queue="b")["id"]
        self.assertEqual(self.next_event(again)[1]["id"], last)
        of_queue = self.come_back(seen, "?queue=b")
        self.assertEqual([self.next_event(of_queue)[1]["id"] for _ in range(3)],
                         [made[1], made[3], last])
        newest = self.next_id(of_queue)
        self.enqueue("t", queue="a")
        final = self.enqueue("t", queue="b")["id"]
        self.assertEqual(self.next_event(self.come_back(newest, "?queue=b"))[1]["id"], final)

    def test_C7_who_comes_back_too_late_is_told_of_a_gap(self):
        answer = self.open_stream()
        seen = self.next_id(answer)
        for wrong in ("0", "x", seen + "9", "-" + seen, seen.split("-")[0] + "--1"):
            self.assertEqual(self.next_event(self.come_back(wrong)), ("gap", {"missed": None}))
        for _ in range(10):  # more than is kept
            self.expect(201, "POST", "/v1/tasks", [{"type": "t" * 150}] * 1000)
        self.assertEqual(self.next_event(self.come_back(seen)), ("gap", {"missed": None}))
        self.server.stop()
        self.server.start()
        self.assertEqual(self.next_event(self.come_back(seen)), ("gap", {"missed": None}))

    def test_a_server_that_stops_ends_its_streams(self):
        answer = self.open_stream()
        self.assertEqual(self.server.stop(), 0)
        while answer.readline():
            pass


if __name__ == "__main__":
    unittest.main()
