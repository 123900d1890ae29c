"""Pauses: workers and servers that were stopped and come back (F-B1 ... F-B9). A lost lease
stays lost whatever its old holder says; a server that slept declares no worker dead."""
import os
import signal
import threading
import unittest

from crash_harness import LEASE_MS, LEASE_S, CrashTest, alive, json_lines, pause_s, wait_until

STALE = "stale_lease"


class Zombies(CrashTest):
    def lost_and_taken(self, **fields):
        """A task whose first holder slept too long and whose second one has it now."""
        self.start()
        self.register("zombie")
        self.enqueue(**fields)
        old = self.claim("zombie")[0]
        self.report_ok("zombie", old, "start")
        self.register("owner")
        new = self.claim("owner", wait_ms=30000)[0]
        self.assertEqual(new["id"], old["id"])
        self.register("zombie")
        return old, new

    def test_f_b1_a_zombie_that_completes_is_refused_and_the_new_owner_decides(self):
        old, new = self.lost_and_taken()
        item = self.report_one("zombie", old, "complete", result="old")
        self.assertEqual(item["error"]["code"], STALE)
        self.complete("owner", new, "new")
        item = self.report_one("zombie", old, "complete", result="old")
        self.assertEqual(item["error"]["code"], STALE)
        task = self.task(old["id"])
        self.assertEqual((task["status"], task["result"]), ("completed", "new"))
        self.assertEqual(self.ends_of(old["id"]), ["completed"])
        metrics = self.request("GET", "/metrics").body.decode()
        line = [x for x in metrics.splitlines()
                if x.startswith("perdura_stale") and 'op="complete"' in x]
        self.assertEqual([x.split()[-1] for x in line], ["2"], metrics)
        errors = [e["error_data"] for e in self.executions(old["id"]) if e["status"] == "failed"]
        self.assertEqual([e["reason"] for e in errors], ["worker_lost"])

    def test_f_b2_every_report_of_a_zombie_is_refused_and_changes_nothing(self):
        old, new = self.lost_and_taken()
        beats = self.beating("owner", [new])
        before = self.task(old["id"])
        operations = [("start", {}), ("progress", {"progress": 99, "state": "Zombie"}),
                      ("checkpoint", {"name": "z", "progress": 9}),
                      ("log", {"level": "INFO", "message": "z"}),
                      ("spawn", {"tasks": [{"type": "z"}]}), ("complete", {"result": 1}),
                      ("continue", {"data": {"z": 1}}), ("fail", {"error": "z"}),
                      ("partial", {"result": 1}), ("release", {})]
        for op, fields in operations:
            item = self.report_one("zombie", old, op, **fields)
            self.assertEqual((op, item["ok"], item["error"]["code"]), (op, False, STALE))
        self.assertEqual(self.heartbeat("zombie", [old])["lost"], [old["id"]])
        after = self.task(old["id"])
        for volatile in ("last_heartbeat", "lease_until"):
            before.pop(volatile, None)
            after.pop(volatile, None)
        self.assertEqual(before, after)
        self.assertEqual(len(self.all_tasks()), 1)
        path = f"/v1/tasks/{old['id']}"
        self.assertEqual(self.expect(200, "GET", path + "/checkpoints")["items"], [])
        self.assertEqual(self.expect(200, "GET", path + "/logs")["items"], [])
        beats.stop()

    def test_f_b3_of_zombie_and_owner_at_the_same_moment_exactly_one_wins_each_time(self):
        tries = 300
        self.start(lease="3s")
        for worker in ("zombie", "owner"):
            self.register(worker)
        self.expect(201, "POST", "/v1/tasks", [{"type": "t"} for _ in range(tries)])
        old = {t["id"]: t for t in self.claim("zombie", max=tries)}
        new = []
        while len(new) < tries:
            new += self.claim("owner", max=tries, wait_ms=30000)
        self.register("zombie")
        barrier = threading.Barrier(2)
        answers = {"zombie": [], "owner": []}

        def complete(worker, tasks):
            for task in tasks:
                barrier.wait(60)
                answers[worker].append(self.report_one(worker, task, "complete", result=worker))

        threads = [self.in_thread(complete, "zombie", [old[t["id"]] for t in new]),
                   self.in_thread(complete, "owner", new)]
        for thread in threads:
            thread.result(200)
        self.assertTrue(all(a["ok"] for a in answers["owner"]))
        self.assertEqual({a["error"]["code"] for a in answers["zombie"]}, {STALE})
        for task in new[::25]:
            self.assertEqual(self.task(task["id"])["result"], "owner")
        counts = self.expect(200, "GET", "/v1/stats")["counts"]
        self.assertEqual(counts["completed"], tries)

    def test_f_b3_two_outcomes_of_one_lease_at_the_same_moment_store_one(self):
        tries = 200
        self.start(lease="30s")
        self.register()
        self.expect(201, "POST", "/v1/tasks", [{"type": "t"} for _ in range(tries)])
        tasks = self.claim(max=tries)
        barrier = threading.Barrier(2)
        answers = {"a": [], "b": []}

        def complete(name):
            for task in tasks:
                barrier.wait(60)
                answers[name].append(self.report_one("worker-1", task, "complete", result=name))

        threads = [self.in_thread(complete, name) for name in answers]
        for thread in threads:
            thread.result(200)
        for task, a, b in zip(tasks, answers["a"], answers["b"]):
            self.assertEqual(sorted((a["ok"], b["ok"])), [False, True])
            self.assertEqual((b if a["ok"] else a)["error"]["code"], "conflict")
        for i in range(0, tries, 20):
            winner = "a" if answers["a"][i]["ok"] else "b"
            self.assertEqual(self.task(tasks[i]["id"])["result"], winner)


class StoppedWorkers(CrashTest):
    def config(self, command, extra=""):
        return f'grace: 300ms\nhandlers:\n  - type: "t"\n    command: ["{command}"]\n{extra}'

    def test_f_b4_a_worker_that_learns_of_its_loss_kills_the_handler_within_its_grace(self):
        marks = os.path.join(self.folder, "marks")
        command = self.script("stubborn.sh", f"""#!/bin/bash
trap '' TERM
echo "{{\\"pid\\":$$,\\"task\\":\\"$PERDURA_TASK_ID\\",\\"attempt\\":\\"$PERDURA_ATTEMPT\\",\\
\\"token\\":\\"$PERDURA_LEASE_TOKEN\\"}}" >> {marks}
while :; do sleep 0.05; done
""")
        self.start()
        worker = self.start_worker(self.config(command), "--concurrency", "1")
        task = self.enqueue("t")
        first = wait_until(lambda: json_lines(marks), what="the handler")[0]
        self.assertEqual((first["task"], first["attempt"]), (task["id"], "1"))
        self.assertTrue(int(first["token"]) > 0)
        worker.send_signal(signal.SIGSTOP)
        self.wait_status(task["id"], "pending")
        self.register("owner")
        new = self.claim("owner")[0]
        self.assertGreater(new["lease_token"], int(first["token"]))
        beats = self.beating("owner", [new])
        self.assertTrue(alive(first["pid"]))
        worker.send_signal(signal.SIGCONT)
        wait_until(lambda: not alive(first["pid"]), what="the handler's end")
        self.complete("owner", new, "owner")
        beats.stop()
        self.assertEqual(self.task(task["id"])["result"], "owner")

    def test_f_b9_a_worker_that_slept_over_its_claim_does_not_start_it(self):
        marks = os.path.join(self.folder, "marks")
        command = self.script("mark.sh", f"#!/bin/sh\necho $PERDURA_ATTEMPT >> {marks}\n")
        self.start()
        worker = self.start_worker(self.config(command), "--concurrency", "1")
        wait_until(lambda: self.expect(200, "GET", "/v1/stats")["waiting_claims"] == 1,
                   what="the worker's long-poll")
        worker.send_signal(signal.SIGSTOP)
        task = self.enqueue("t")  # granted to the long-poll of the stopped worker
        self.wait_status(task["id"], "claimed")
        lost = self.task(task["id"])["attempts"]
        self.wait_status(task["id"], "pending")
        pause_s(LEASE_S)
        worker.send_signal(signal.SIGCONT)
        done = self.wait_status(task["id"], "completed")
        self.assertGreater(done["attempts"], lost)
        with open(marks) as file:  # a later attempt may be lost, too, on a busy machine
            self.assertGreater(min(int(attempt) for attempt in file.read().split()), lost)

    def test_f_b9_a_task_that_comes_after_an_idle_wait_longer_than_the_lease_is_started(self):
        command = self.script("quick.sh", "#!/bin/sh\nexit 0\n")
        self.start(lease=f"{2 * LEASE_MS}ms")
        self.start_worker(self.config(command), "--concurrency", "1")
        wait_until(lambda: self.expect(200, "GET", "/v1/stats")["waiting_claims"] == 1,
                   what="the worker's long-poll")
        for _ in range(2):
            pause_s(2.8 * LEASE_S)
            done = self.wait_status(self.enqueue("t")["id"], "completed")
            self.assertEqual((done["attempts"], done["crash_count"]), (1, 0))


class StoppedServer(CrashTest):
    def test_f_b6_a_server_that_slept_takes_nothing_from_workers_that_live(self):
        count = 200
        self.start()
        self.register("alive")
        self.register("dead", queues=("dead",))
        self.expect(201, "POST", "/v1/tasks", [{"type": "t"} for _ in range(count)])
        self.expect(201, "POST", "/v1/tasks", [{"type": "t", "queue": "dead"}] * 5)
        held = self.claim("alive", max=count)
        gone = self.claim("dead", max=5, queues=["dead"])
        self.assertEqual((len(held), len(gone)), (count, 5))
        beats = self.beating("alive", held)
        os.kill(self.server.pid, signal.SIGSTOP)
        pause_s(5 * LEASE_S)
        os.kill(self.server.pid, signal.SIGCONT)
        for task in gone:
            self.wait_status(task["id"], "pending")
        beats.stop()
        self.assertEqual(beats.lost, set())
        items = self.report("alive", *[self.element(t, "complete") for t in held])
        self.assertTrue(all(item["ok"] for item in items))
        self.assertEqual({t["attempts"] for t in self.all_tasks(queue="default")}, {1})

    def test_f_b8_handlers_that_burn_all_processors_lose_no_lease(self):
        burner = self.script("burn.sh", "#!/bin/bash\nend=$((SECONDS+5))\n"
                             "while [ $SECONDS -lt $end ]; do :; done\n")
        count = 2 * (os.cpu_count() or 2) + 2
        self.start("--workers", str(count), lease="2s", config=(
            f'handlers:\n  - type: "t"\n    command: ["{burner}"]\n'))
        self.expect(201, "POST", "/v1/tasks", [{"type": "t"} for _ in range(count)])
        wait_until(lambda: self.expect(200, "GET", "/v1/stats")["counts"].get("completed")
                   == count, 120, "all burners done")
        for task in self.all_tasks():
            self.assertEqual((task["attempts"], task["crash_count"]), (1, 0))


if __name__ == "__main__":
    unittest.main()
