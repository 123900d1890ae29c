"""What a server promises whose queues live in two stores (C8), whatever these are: the queue `mail` is
routed to another store than all the others. Test files mix RoutesCases into a class that says where
`mail` is (mail_store)."""
import json
import os
import signal
import threading

import harness
from harness import wait_until

LEASE_S = 30  # nothing a test holds is lost while the machine is busy
SHORT_LEASE_S = 2
QUEUES = ("default", "mail")


class RoutesCases(harness.ApiTest):
    handlers = ""  # YAML
    lease_s = LEASE_S

    def mail_store(self):
        raise NotImplementedError

    def setUp(self):
        self.folder = harness.tempfile.mkdtemp(prefix="perdura-routes-")
        self.config = os.path.join(self.folder, "perdura.yaml")
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(f"backup_dir: {json.dumps(self.folder)}\n"
                       f"queues:\n  - name: mail\n    serve: true\n"
                       f"    store: {json.dumps(self.mail_store())}\n"
                       + self.handlers)
        self.server = harness.Server(self.folder, "--config", self.config, "--leader-lease",
                                     f"{SHORT_LEASE_S}s", "--lease", f"{self.lease_s}s")
        self.local = threading.local()
        self.addCleanup(self.tear_server_down)
        self.server.start()

    def enqueue_both(self):
        return [self.enqueue(queue=queue)["id"] for queue in QUEUES]

    def heartbeat(self, worker, *tasks):
        named = [{"task_id": t["id"], "lease_token": t["lease_token"]} for t in tasks]
        return self.expect(200, "POST", f"/v1/workers/{worker}:heartbeat", {"tasks": named})

    def claim_both(self, worker):
        claimed = []
        while len(claimed) < 2:
            more = self.claim(worker, max=10, wait_ms=30000)
            self.assertTrue(more, "a claim that waits brought nothing")
            claimed += more
        return claimed

    def kill(self, lease_s=None):
        """And starts it again, with another lease where one is named."""
        self.server.stop(signal.SIGKILL)
        if lease_s:
            self.server.arguments = (*self.server.arguments[:-1], f"{lease_s}s")
        self.server.start()


class CommonRoutes(RoutesCases):
    def test_c8_tasks_of_both_stores_are_claimed_and_completed_through_one_server(self):
        ids = self.enqueue_both()
        self.register(queues=QUEUES)
        claimed = self.claim_both("worker-1")
        self.assertCountEqual([t["id"] for t in claimed], ids)
        items = self.report("worker-1", *[self.element(t, "complete", result=t["queue"])
                                          for t in claimed])
        self.assertTrue(all(item["ok"] for item in items), items)
        for task_id, queue in zip(ids, QUEUES):
            task = self.task(task_id)
            self.assertEqual((task["status"], task["result"]), ("completed", queue))
            self.assertEqual(self.events(task_id)[0]["status"], "completed")
            self.assertEqual(len(self.expect(200, "GET", f"/v1/tasks/{task_id}/executions")
                                 ["items"]), 1)

    def test_c8_a_waiting_claim_is_woken_by_either_store_and_what_the_other_brings_is_not_lost(self):
        self.register(queues=QUEUES)
        for queue in QUEUES * 3:
            waiting = self.in_thread(lambda: self.claim(wait_ms=30000))
            self.wait_for_waiting("waiting_claims", 1)
            task_id = self.enqueue(queue=queue)["id"]
            task, = waiting.result()
            self.assertEqual((task["id"], task["attempts"]), (task_id, 1))
            self.complete("worker-1", task)
        for _ in range(10):
            waiting = self.in_thread(lambda: self.claim(wait_ms=30000))
            self.wait_for_waiting("waiting_claims", 1)
            both = [self.in_thread(lambda q=queue: self.enqueue(queue=q)) for queue in QUEUES]
            ids = {call.result()["id"] for call in both}
            first, = waiting.result()
            second, = self.claim(wait_ms=30000)
            self.assertEqual({first["id"], second["id"]}, ids)
            self.assertEqual((first["attempts"], second["attempts"]), (1, 1))
            for task in (first, second):
                self.complete("worker-1", task)

    def test_c8_a_claim_that_waits_in_both_stores_is_one_claim(self):
        self.register(queues=QUEUES)
        waiting = [self.in_thread(lambda q=queues: self.claim(wait_ms=30000, queues=list(q)))
                   for queues in (QUEUES, QUEUES[:1], QUEUES[1:])]
        self.wait_for_waiting("waiting_claims", 3)
        for _ in range(20):  # also when the shares have arrived
            self.assertEqual(self.expect(200, "GET", "/v1/stats")["waiting_claims"], 3)
        for queue in QUEUES:
            for _ in range(3):
                self.enqueue(queue=queue)
        for one in waiting:
            self.assertEqual(len(one.result()), 1)

    def test_c8_claims_take_turns_so_that_no_store_starves(self):
        for _ in range(20):
            self.enqueue_both()
        self.register(queues=QUEUES)
        seen = [self.claim()[0]["queue"] for _ in range(20)]
        self.assertGreaterEqual(min(seen.count(queue) for queue in QUEUES), 8, seen)

    def test_c8_a_unit_over_two_stores_is_refused_as_a_whole(self):
        error = self.expect_error(422, "invalid", "POST", "/v1/tasks",
                                  [{"type": "a"}, {"type": "b", "queue": "mail"}], field="queue")
        self.assertIn("different stores", error["message"])
        parent = self.enqueue()["id"]
        error = self.expect_error(422, "invalid", "POST", "/v1/tasks",
                                  {"type": "b", "queue": "mail", "depends_on": [parent]},
                                  field="depends_on")
        self.assertIn("in the store of this queue", error["message"])
        self.assertEqual(len(self.expect(200, "GET", "/v1/tasks")["items"]), 1)
        self.register(queues=QUEUES)
        task, = self.claim()
        item = self.report_one("worker-1", task, "spawn", tasks=[{"type": "c", "queue": "mail"}])
        self.assertFalse(item["ok"])
        self.assertIn("another store", item["error"]["message"])
        self.report_ok("worker-1", task, "spawn", tasks=[{"type": "c"}])

    def test_c8_lists_show_both_stores_the_newest_first_page_by_page(self):
        ids = [self.enqueue(queue=QUEUES[i // 2 % 2])["id"] for i in range(23)]
        seen, cursor = [], ""
        while True:
            page = self.expect(200, "GET", f"/v1/tasks?limit=5{cursor}")
            seen += [task["id"] for task in page["items"]]
            if not page["next_cursor"]:
                break
            if len(seen) == 5:  # is newer than the page before: belongs to none behind it
                self.enqueue(queue="mail")
                self.enqueue()
            cursor = "&cursor=" + page["next_cursor"]
        self.assertEqual(seen, sorted(ids, reverse=True))  # the stores' clocks differ a little
        ids, cursor = sorted(seen), ""
        for turn in range(4):  # the oldest first: what is new comes behind all
            page = self.expect(200, "GET", f"/v1/tasks?order=oldest&limit=5{cursor}")
            self.assertEqual([task["id"] for task in page["items"]], ids[5 * turn:5 * turn + 5])
            cursor = "&cursor=" + page["next_cursor"]
        mail = self.expect(200, "GET", "/v1/tasks?queue=mail&limit=1000")["items"]
        self.assertEqual({task["queue"] for task in mail}, {"mail"})
        self.assertEqual(len(mail), 12)
        self.expect_error(422, "invalid", "GET", "/v1/tasks?cursor=t0000000000000001",
                          field="cursor")

    def test_c8_all_tasks_that_fit_are_cancelled_and_retried_in_both_stores(self):
        for queue in QUEUES:
            self.expect(201, "POST", "/v1/tasks",
                        [{"type": "test", "queue": queue, "tags": ["out"]} for _ in range(300)])
        self.enqueue(queue="mail")
        path = "/v1/tasks:cancel?status=pending&tag=out"
        self.assertEqual(self.expect(200, "POST", path + "&dry_run=true"),
                         {"dry_run": True, "matched": 600, "changed": 0, "refused": 0,
                          "refusal": None, "stopped": None, "next_cursor": None})
        self.assertEqual(self.expect(200, "POST", path + "&queue=mail&dry_run=true")["matched"], 300)
        changed, cursor, calls = 0, "", 0
        while cursor is not None:
            reply = self.expect(200, "POST", path + "&limit=250" + cursor)
            self.assertEqual((reply["matched"], reply["refused"]), (reply["changed"], 0))
            changed, calls = changed + reply["changed"], calls + 1
            cursor = reply["next_cursor"] and "&cursor=" + reply["next_cursor"]
        self.assertEqual((changed, calls), (600, 3))
        for queue in QUEUES:
            counts = self.expect(200, "GET", f"/v1/queues/{queue}")["counts"]
            self.assertEqual(counts["cancelled"], 300)
        self.assertEqual(self.expect(200, "GET", "/v1/stats")["counts"]["pending"], 1)
        reply = self.expect(200, "POST", "/v1/tasks:retry?status=cancelled&queue=mail")
        self.assertEqual((reply["matched"], reply["changed"]), (300, 300))
        reply = self.expect(200, "POST", "/v1/tasks:retry?status=cancelled")
        self.assertEqual((reply["matched"], reply["changed"]), (300, 300))
        self.assertEqual(self.expect(200, "GET", "/v1/stats")["counts"]["pending"], 601)

    def test_c8_a_workflow_over_both_stores_is_shown_as_one(self):
        ids = set()
        for queue in QUEUES:
            items = self.expect(201, "POST", "/v1/tasks", [
                {"type": "a", "ref": "a", "queue": queue, "workflow_id": "nightly"},
                {"type": "b", "queue": queue, "workflow_id": "nightly",
                 "depends_on": [{"ref": "a"}]}])["items"]
            ids |= {task["id"] for task in items}
            shown = self.expect(200, "GET", f"/v1/workflows/{items[1]['id']}")["items"]
            self.assertEqual([task["id"] for task in shown], [items[1]["id"], items[0]["id"]])
            self.assertEqual(shown[0]["depends_on"], [{"task": items[0]["id"], "type": "success"}])
        self.register(queues=QUEUES)
        for held in self.claim_both("worker-1"):
            self.report_ok("worker-1", held, "spawn",
                           tasks=[{"type": "c", "queue": held["queue"]} for _ in range(120)])
        reply = self.expect(200, "GET", "/v1/workflows/nightly")
        self.assertLessEqual(ids, {task["id"] for task in reply["items"]})
        self.assertEqual((len(reply["items"]), reply["cut"]), (244, False))
        self.assertEqual(len({task["id"] for task in reply["items"]}), 244)
        cut = self.expect(200, "GET", "/v1/workflows/nightly?limit=100")
        self.assertEqual((len(cut["items"]), cut["cut"]), (100, True))
        self.expect_error(404, "not_found", "GET", "/v1/workflows/nothing")

    def test_c8_control_waits_and_deletes_find_the_store_of_the_task(self):
        for task_id in self.enqueue_both():
            waiting = self.in_thread(
                lambda t=task_id: self.expect(200, "GET", f"/v1/tasks/{t}/wait?timeout_ms=30000"))
            self.wait_for_waiting("waiting_waits", 1)
            self.expect(200, "POST", f"/v1/tasks/{task_id}:cancel")
            self.assertEqual(waiting.result()["status"], "cancelled")
            self.expect(200, "POST", f"/v1/tasks/{task_id}:retry")
            self.expect(200, "POST", f"/v1/tasks/{task_id}:cancel")
            self.expect(204, "DELETE", f"/v1/tasks/{task_id}")
            self.expect_error(404, "not_found", "GET", f"/v1/tasks/{task_id}")
            self.expect_error(404, "not_found", "POST", f"/v1/tasks/{task_id}:cancel")

    def test_c8_figures_queues_and_workers_are_those_of_both(self):
        self.enqueue_both()
        self.register(queues=QUEUES)
        self.claim_both("worker-1")
        stats = self.expect(200, "GET", "/v1/stats")
        self.assertEqual((stats["counts"]["claimed"], stats["totals"]["enqueued"],
                          stats["stores"], stats["stores_down"]), (2, 2, 2, 0))
        names = [q["name"] for q in self.expect(200, "GET", "/v1/queues")["items"]]
        self.assertCountEqual(names, set(names))
        self.assertLessEqual(set(QUEUES), set(names))
        worker = self.expect(200, "GET", "/v1/workers/worker-1")
        self.assertEqual(len(worker["current_tasks"]), 2)
        self.assertEqual(worker["status"], "working")
        text = self.request("GET", "/metrics").body.decode()
        self.assertIn('perdura_tasks{queue="mail",status="claimed"} 1', text)
        self.assertIn('perdura_tasks{queue="default",status="claimed"} 1', text)
        self.assertIn("perdura_stores_down 0", text)
        self.assertEqual(self.expect(200, "GET", "/readyz")["status"], "ready")

    def test_c8_pause_and_limits_act_in_the_store_of_their_queue(self):
        self.register(queues=QUEUES)
        self.expect(200, "POST", "/v1/queues/mail:pause")
        self.enqueue_both()
        self.assertEqual([t["queue"] for t in self.claim(max=10)], ["default"])
        self.assertEqual(self.claim(max=10), [])
        self.assertEqual(self.expect(200, "GET", "/v1/queues/mail")["counts"]["pending"], 1)
        self.expect(200, "POST", "/v1/queues/mail:resume")
        self.assertEqual([t["queue"] for t in self.claim(max=10)], ["mail"])

    def test_c8_heartbeats_keep_tasks_of_both_and_tell_what_is_cancelled_or_lost(self):
        self.enqueue_both()
        self.register(queues=QUEUES)
        tasks = self.claim_both("worker-1")
        self.assertEqual(self.heartbeat("worker-1", *tasks),
                         {"cancel": [], "pause": [], "lost": [], "lost_leases": []})
        for task in tasks:
            self.expect(200, "POST", f"/v1/tasks/{task['id']}:cancel")
        answer = self.heartbeat("worker-1", *tasks)
        self.assertCountEqual(answer["cancel"], [t["id"] for t in tasks])
        strangers = [{**t, "lease_token": t["lease_token"] + 1} for t in tasks]
        answer = self.heartbeat("worker-1", *strangers)
        self.assertCountEqual(answer["lost"], [t["id"] for t in tasks])
        self.expect(204, "DELETE", "/v1/workers/worker-1")
        self.expect_error(404, "not_found", "POST", "/v1/workers/worker-1:heartbeat", {})

    def test_c8_e5_after_a_kill_both_stores_recover_and_workers_go_on(self):
        ids = self.enqueue_both()
        self.register(queues=QUEUES)
        tasks = self.claim_both("worker-1")
        self.kill()
        self.assertEqual(self.heartbeat("worker-1", *tasks)["lost"], [])
        for task in tasks:
            self.complete("worker-1", task)
        self.kill(SHORT_LEASE_S)
        self.register("worker-3", queues=QUEUES)  # never comes back
        left = self.enqueue_both()
        claimed = self.claim_both("worker-3")
        self.kill()
        self.register("worker-2", queues=QUEUES)
        again = self.claim_both("worker-2")
        self.assertCountEqual([t["id"] for t in again], left)
        for task in claimed:
            self.assertEqual(self.report_one("worker-2", task, "complete")["error"]["code"],
                             "stale_lease")
        for task in again:
            self.complete("worker-2", task)
        for task_id in ids + left:
            self.assertEqual(self.task(task_id)["status"], "completed")


    def test_c8_d4_what_is_planned_lives_in_the_main_store_and_fires_there(self):
        job = self.expect(201, "POST", "/v1/jobs", {"name": "report"})
        path = f"/v1/jobs/{job['id']}"
        schedule = self.expect(201, "POST", f"{path}/schedules",
                               {"cron_expression": "* * * * * *"})
        self.register(queues=QUEUES)
        for _ in range(2):
            task, = self.claim(wait_ms=30000)
            self.assertEqual((task["job_id"], task["schedule_id"]), (job["id"], schedule["id"]))
            self.complete("worker-1", task)
        self.expect(204, "DELETE", f"/v1/schedules/{schedule['id']}")
        mail = self.enqueue(queue="mail")["id"]
        while self.complete("worker-1", self.claim(wait_ms=30000)[0]) \
                and self.task(mail)["status"] != "completed":
            pass
        self.assertEqual(self.expect(200, "GET", path)["last_execution"]["status"], "completed")
        self.assertGreaterEqual(self.expect(200, "GET", f"{path}/stats")["completed"], 2)
        found = self.expect(200, "GET", f"/v1/executions?job_id={job['id']}&limit=1")
        self.assertEqual(found["items"][0]["job_id"], job["id"])
        self.assertTrue(found["next_cursor"])
        execution, = self.expect(200, "GET", f"/v1/tasks/{mail}/executions")["items"]
        self.assertEqual(self.expect(200, "GET", f"/v1/executions/{execution['id']}"), execution)
        self.expect_error(422, "invalid", "PATCH", path, {"queue": "mail"}, field="queue")
        self.expect(201, "POST", f"{path}:run")
        self.assertEqual(self.expect(200, "GET", "/v1/forecast")["owners"], 0)


class PoolRoutes(RoutesCases):
    """The pool inside the server."""
    lease_s = SHORT_LEASE_S
    handlers = "handlers:\n  - type: test\n    command: [\"/bin/true\"]\nworkers: 2\n"

    def ended(self, ids):
        return all(self.task(task_id)["status"] == "completed" for task_id in ids)

    def test_c8_the_pool_works_for_both_stores_and_again_after_a_kill(self):
        ids = [task_id for _ in range(5) for task_id in self.enqueue_both()]
        wait_until(lambda: self.ended(ids), what="all of them completed")
        ids = [task_id for _ in range(10) for task_id in self.enqueue_both()]
        self.kill()
        wait_until(lambda: self.ended(ids), what="all of them completed after a kill")
        workers = self.expect(200, "GET", "/v1/workers")["items"]
        self.assertEqual(len({w["id"] for w in workers}), len(workers))
        self.assertTrue(any(w["is_leader"] and w["pool_size"] == 2 for w in workers), workers)
