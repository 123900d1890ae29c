"""`perdura worker --server`: a worker apart from its server."""
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import unittest

from cli_harness import DEADLINE_S, ServerTest, binary, environment, harness, wait_until

# Each handler leaves its pid in {folder}/pid and says so, then does what its type says.
HANDLERS = r"""
grace: {grace}
handlers:
  - type: hello
    command: ["sh", "-c", "read -r task; echo out; echo err >&2; echo '{\"checkpoint\":{\"name\":\"one\",\"progress\":50,\"data\":{\"n\":1}}}' >&3; echo \"{\\\"result\\\":[\\\"$PERDURA_TYPE\\\",$PERDURA_ATTEMPT,$PERDURA_LEASE_TOKEN]}\" >&3"]
  - type: gated
    command: ["sh", "-c", "echo $$ >> {folder}/pid; echo '{\"state\":\"On\"}' >&3; while [ ! -e {folder}/go ]; do sleep 0.02; done; echo '{\"result\":\"through\"}' >&3"]
  - type: stubborn
    command: ["sh", "-c", "trap '' TERM; echo $$ >> {folder}/pid; echo '{\"checkpoint\":{\"name\":\"here\",\"progress\":10,\"data\":1}}' >&3; while :; do sleep 0.05; done"]
  - type: polite
    command: ["sh", "-c", "trap 'exit 75' TERM; echo $$ >> {folder}/pid; if [ \"$PERDURA_CHECKPOINT\" ]; then echo \"{\\\"result\\\":\\\"from $PERDURA_CHECKPOINT\\\"}\" >&3; exit 0; fi; echo '{\"checkpoint\":{\"name\":\"one\",\"progress\":10,\"data\":1}}' >&3; while :; do sleep 0.02; done"]
  - type: grandchild
    command: ["sh", "-c", "sleep 600 & echo $! >> {folder}/pid; echo '{\"state\":\"On\"}' >&3; wait"]
  - type: loud
    output_max: 1000
    command: ["sh", "-c", "i=0; while [ $i -lt 1000 ]; do echo line-$i; i=$((i + 1)); done; echo '{\"result\":\"done\"}' >&3"]
  - type: stalls
    command: ["sh", "-c", "if [ $PERDURA_ATTEMPT = 1 ]; then echo $$ > {folder}/stalled; exec sleep 300; fi; if kill -0 $(cat {folder}/stalled); then echo '{\"result\":\"beside\"}' >&3; exit 0; fi; i=0; while [ $i -lt 30 ]; do echo \"{\\\"progress\\\":$i}\" >&3; i=$((i+1)); sleep 0.05; done; echo '{\"result\":\"through\"}' >&3"]
  - type: "prefix:*"
    command: ["true"]
queues:
  - name: mail
    serve: true
"""


def alive(pid):
    """Neither gone nor a zombie that another process has yet to reap."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class WorkerTest(ServerTest):
    arguments = ("--lease", "5s")
    grace = "400ms"

    def setUp(self):
        super().setUp()
        self.gates = tempfile.mkdtemp(prefix="perdura-worker-", dir=self.folder)
        self.handlers = self.write("worker.yaml", HANDLERS.replace("{folder}", self.gates)
                                   .replace("{grace}", self.grace))

    def worker(self, *arguments, url=None, **variables):
        """A worker process that has registered; .id is what the server calls it."""
        log = open(os.path.join(self.folder, "worker.log"), "ab")
        self.addCleanup(log.close)
        process = subprocess.Popen(
            [binary(), "worker", "--server", url or self.url, "--config", self.handlers,
             *arguments], cwd=self.folder, stdout=subprocess.PIPE, stderr=log, text=True,
            env=environment(**variables))
        self.addCleanup(self.end, process)
        line = process.stdout.readline()
        self.assertRegex(line, "^worker .* claims from http")
        process.id = line.split()[1]
        return process

    def end(self, process, signum=signal.SIGTERM):
        if process.poll() is None:
            process.send_signal(signum)
        try:
            return process.wait(DEADLINE_S)
        finally:
            process.kill()
            process.stdout.close()

    def log(self):
        return pathlib.Path(self.folder, "worker.log").read_text()

    def pid(self, count=1):
        """Of the count-th handler that was started."""
        path = pathlib.Path(self.gates, "pid")
        wait_until(lambda: path.exists() and path.read_text().count("\n") >= count,
                   what="the handler's start")
        return int(path.read_text().split()[count - 1])


class Running(WorkerTest):
    def test_it_runs_handlers_and_reports_everything(self):
        self.worker()
        task = self.wait_ended(self.enqueue("hello")["id"])
        self.assertEqual((task["status"], task["result"]), ("completed", ["hello", 1, 1]))
        logs = self.expect(200, "GET", f"/v1/tasks/{task['id']}/logs")["items"]
        self.assertEqual({(log["log_level"], log["message"]) for log in logs},
                         {("INFO", "out"), ("WARN", "err")})
        points = self.expect(200, "GET", f"/v1/tasks/{task['id']}/checkpoints")["items"]
        self.assertEqual([point["checkpoint_name"] for point in points], ["one"])
        self.assertEqual(self.wait_ended(self.enqueue("prefix:x")["id"])["status"], "completed")

    def test_it_serves_the_queues_it_is_told(self):
        self.worker()
        self.assertEqual(self.wait_ended(self.enqueue("hello", queue="mail")["id"])["status"],
                         "completed")
        self.worker("--queues", "a,b")
        self.assertEqual(self.wait_ended(self.enqueue("hello", queue="b")["id"])["status"],
                         "completed")

    def test_concurrency_bounds_what_runs_at_once(self):
        self.worker("--concurrency", "2")
        ids = [self.enqueue("gated")["id"] for _ in range(4)]
        self.pid(2)
        wait_until(lambda: self.expect(200, "GET", "/v1/stats")["counts"]["running"] == 2,
                   what="two that run")
        self.assertEqual(self.expect(200, "GET", "/v1/stats")["counts"]["pending"], 2)
        self.assertEqual(len(pathlib.Path(self.gates, "pid").read_text().split()), 2)
        self.open_gate()
        for task_id in ids:
            self.assertEqual(self.wait_ended(task_id)["status"], "completed")

    def test_output_is_kept_up_to_its_limit(self):
        """F-H16"""
        self.worker()
        task = self.wait_ended(self.enqueue("loud")["id"])
        self.assertEqual((task["status"], task["result"]), ("completed", "done"))
        logs = self.expect(200, "GET", f"/v1/tasks/{task['id']}/logs?limit=1000")["items"]
        texts = [log["message"] for log in logs]
        kept = [text for text in texts if text.startswith("line-")]
        self.assertLess(sum(len(text) + 1 for text in kept), 1100)
        marker, = [text for text in texts if "output cut" in text]
        dropped = int(re.search(r"(\d+) bytes", marker)[1])
        whole = sum(len(f"line-{i}\n") for i in range(1000))
        self.assertAlmostEqual(dropped + sum(len(text) + 1 for text in kept), whole, delta=20)


class StoppingTasks(WorkerTest):
    def test_cancel_kills_the_process_within_grace(self):
        """F-H14: told at the next heartbeat, SIGTERM, SIGKILL after grace."""
        self.worker()
        task_id = self.enqueue("stubborn")["id"]
        pid = self.pid()
        self.perdura("task", "cancel", task_id)
        wait_until(lambda: not alive(pid), what="the end of the process")
        self.assertEqual(self.task(task_id)["status"], "cancelled")
        self.assertEqual(self.wait_ended(self.enqueue("hello")["id"])["status"], "completed")

    def test_cancel_takes_grandchildren_too(self):
        """F-I1"""
        self.worker()
        task_id = self.enqueue("grandchild")["id"]
        pid = self.pid()
        self.perdura("task", "cancel", task_id)
        wait_until(lambda: not alive(pid), what="the end of the grandchild")

    def test_pause_gives_the_task_back_and_resume_goes_on(self):
        self.worker()
        task_id = self.enqueue("polite")["id"]
        pid = self.pid()
        wait_until(lambda: self.task(task_id)["checkpoint_data"])
        self.perdura("task", "pause", task_id)
        task = self.wait_status(task_id, "paused")
        self.assertEqual((task["retry_count"], task["crash_count"]), (0, 0))
        wait_until(lambda: not alive(pid))
        self.perdura("task", "resume", task_id)
        task = self.wait_ended(task_id)
        self.assertEqual((task["status"], task["result"]), ("completed", "from one"))

    def test_a_timeout_says_so(self):
        self.worker()
        task_id = self.enqueue("gated", timeout_ms=4000, max_retries=0)["id"]
        task = self.wait_ended(task_id)
        self.assertEqual(task["status"], "dead_letter")
        self.assertIn("timeout", task["error"])
        execution, = self.expect(200, "GET", f"/v1/tasks/{task_id}/executions")["items"]
        self.assertEqual(execution["status"], "timeout")
        pid = self.pid()
        wait_until(lambda: not alive(pid))


class ClaimingAgain(WorkerTest):
    def test_b4_a_stalled_task_that_it_claims_again_runs_through(self):
        """F-A19, F-I3: the second attempt begins when the first has stopped, and is not stopped with it."""
        self.worker()
        task = self.wait_ended(self.enqueue("stalls", stall_after_ms=4000)["id"])
        self.assertEqual((task["status"], task["attempts"], task["result"], task["last_error"]),
                         ("completed", 2, "through", "stalled"))


class ByCategory(WorkerTest):
    """D12: a worker process for some categories."""

    def test_d12_it_runs_tasks_of_its_categories_only(self):
        self.worker("--categories", "reports")
        other = self.enqueue("hello", queue="default", category="analytics")
        plain = self.enqueue("hello")
        self.wait_ended(self.enqueue("hello", queue="default", category="reports")["id"])
        self.assertEqual({self.task(task["id"])["status"] for task in (other, plain)}, {"pending"})
        self.worker("--categories", "analytics,general")
        self.wait_ended(other["id"])
        self.wait_ended(plain["id"])

    def test_d12_the_configuration_names_them_and_unknown_ones_are_told(self):
        with open(self.handlers, "a", encoding="utf-8") as file:
            file.write("worker:\n  categories: [reports, later]\n")
        worker = self.worker()
        wait_until(lambda: "worker.unknown_categories" in self.log(), what="the warning")
        self.assertIn("later", self.log())
        shown = self.expect(200, "GET", f"/v1/workers/{worker.id}")
        self.assertEqual((shown["categories"], shown["unknown_categories"]),
                         (["reports", "later"], ["later"]))
        listed = self.perdura("workers").stdout.splitlines()
        self.assertIn("CATEGORIES", listed[0])
        self.assertIn("UNKNOWN", listed[0])
        self.assertTrue(any("reports" in line and "later" in line for line in listed), listed)
        doctor = self.perdura("doctor", "--config", self.handlers, "--store",
                              self.server.store).stdout
        self.assertIn("worker.categories names 'later'", doctor)
        self.assertNotIn("'reports'", doctor)

    def test_i1_log_and_doctor_say_how_handlers_end(self):
        self.worker()
        wait_until(lambda: "node.handler_ends" in self.log(), what="the line")
        line = next(json.loads(x) for x in self.log().splitlines() if "node.handler_ends" in x)
        doctor = self.perdura("doctor", "--config", self.handlers, "--store", self.server.store).stdout
        self.assertIn(f"a server started here uses {line['by'][:40]}", doctor)
        self.assertRegex(line["by"], r"^cgroup\.kill, .* below /|^the parents of their processes")

    def test_d15_the_migration_gives_waiting_tasks_their_lanes_and_takes_them_back(self):
        waiting = {self.enqueue("hello", queue="default", category=name)["id"]: name
                   for name in ("reports", "analytics", "reports")}
        self.enqueue("hello")
        self.server.stop()
        listed = json.loads(self.perdura("migrate", "status", "--json", "--store", self.server.store).stdout)
        lanes = next(item["number"] for item in listed["items"] if item["name"] == "lanes by category")
        for _ in range(2):
            self.perdura("migrate", "down", "--lose-data", "--to", str(lanes - 1), "--store",
                         self.server.store)
            self.perdura("migrate", "up", "--store", self.server.store)
            self.perdura("verify", "--store", self.server.store)
        self.server.start()
        self.url = "http://%s:%d" % self.server.address
        self.register("r", categories=["reports"])
        self.assertEqual([waiting[task["id"]] for task in self.claim("r", 10)], ["reports"] * 2)
        self.register("g", categories=["general"])
        self.assertEqual(len(self.claim("g", 10)), 1)

    def test_d12_a_queue_listed_only_for_its_limits_is_not_served(self):
        with open(self.handlers, encoding="utf-8") as file:
            text = file.read()
        self.handlers = self.write("limits.yaml", text + "  - name: limited\n    concurrency: 5\n")
        worker = self.worker()
        self.assertEqual(sorted(self.expect(200, "GET", f"/v1/workers/{worker.id}")["queues"]),
                         ["default", "mail"])
        task = self.enqueue("hello", queue="limited")
        self.wait_ended(self.enqueue("hello", queue="mail")["id"])  # serve: true
        self.assertEqual(self.task(task["id"])["status"], "pending")
        self.assertIn("No worker serves the queue 'limited'",
                      self.expect(200, "GET", f"/v1/tasks/{task['id']}/why")["text"])


def nested(levels):
    return "[" * levels + "]" * levels


class DeepTest(WorkerTest):
    def test_f_h3_what_nests_as_deep_as_it_may_stops_no_worker_and_no_list(self):
        """Claims, reports and lists put brackets around payloads and results that were just taken."""
        script = self.write("deep.py", "print('{\"result\":%s}' % ('[' * 63 + ']' * 63), file=open(3, 'w'))\n")
        with open(self.handlers, encoding="utf-8") as file:
            text = file.read()
        command = json.dumps(["/usr/bin/env", "python3", script])
        self.handlers = self.write("deep.yaml", text.replace(
            "handlers:", f"handlers:\n  - {{type: deep, command: {command}}}"))
        for field in ("payload", "metadata"):
            body = '{"type":"deep","%s":%s%s%s}' % (field, '{"a":', nested(62), "}")
            deep = self.expect(201, "POST", "/v1/tasks", body.encode())["id"]
        self.expect(400, "POST", "/v1/tasks", ('{"type":"deep","payload":%s}' % nested(64)).encode())
        fine = self.enqueue("prefix:one")["id"]
        self.worker()
        for task in (fine, deep):
            self.wait_ended(task)
            self.assertEqual(self.task(task)["status"], "completed")
        self.assertIn(deep, self.perdura("task", "list", "--json").stdout)
        self.assertIn(nested(63), self.perdura("task", "show", deep).stdout)

    def test_f_h3_a_report_may_not_nest_what_no_reply_could_hold(self):
        task = self.enqueue("t")
        self.register("w", types=["t"])
        claimed, = self.claim("w", wait_ms=30000)
        report = '[{"task_id":"%s","lease_token":%d,"op":"complete","result":%s}]'
        for levels, status in ((71, 400), (64, 200)):
            self.expect(status, "POST", "/v1/workers/w:report", (
                report % (task["id"], claimed["lease_token"], nested(levels))).encode())
        self.assertIn(nested(64), self.perdura("task", "show", task["id"]).stdout)


class WithoutHandler(WorkerTest):
    def test_a_client_deployed_before_its_worker_loses_nothing(self):
        """B6, C8: the type waits, why says so, and the worker that has it gets it."""
        task_id = self.enqueue("invoice:v2")["id"]
        self.worker()
        self.wait_ended(self.enqueue("prefix:one")["id"])
        task = self.task(task_id)
        self.assertEqual((task["status"], task["attempts"], task["version"]), ("pending", 0, 1))
        self.assertIn("has a handler for the type 'invoice:v2'",
                      self.perdura("task", "why", task_id).stdout)
        self.register("specialist", types=["invoice:*"])
        task, = self.claim("specialist", wait_ms=30000)
        self.assertEqual((task["id"], task["attempts"]), (task_id, 1))
        self.report_ok("specialist", task, "start")
        self.complete("specialist", task, "mine")
        self.assertEqual(self.task(task_id)["status"], "completed")

    def test_it_registers_what_it_has(self):
        shown = self.expect(200, "GET", f"/v1/workers/{self.worker().id}")
        self.assertIn("prefix:*", shown["types"])
        self.assertEqual(shown["queues"], ["default", "mail"])


    def test_one_whose_handlers_have_no_command_takes_nothing_and_warns(self):
        """B6: and a worker that registers no types still takes any."""
        task_id = self.enqueue("idle")["id"]
        pathlib.Path(self.handlers).write_text("handlers:\n  - {type: idle, max_retries: 2}\n")
        worker = self.worker()
        self.assertEqual(self.expect(200, "GET", f"/v1/workers/{worker.id}")["types"], [])
        self.assertIn("worker.takes_nothing", self.log())
        self.assertIn("has a handler for the type 'idle'",
                      self.perdura("task", "why", task_id).stdout)
        self.register("any")
        self.assertIsNone(self.expect(200, "GET", "/v1/workers/any")["types"])
        task, = self.claim("any", wait_ms=30000)
        self.assertEqual(task["id"], task_id)


class LeavingInTime(WorkerTest):
    grace = "40s"

    def test_sigterm_waits_for_what_ends_within_grace(self):
        worker = self.worker()
        task_id = self.enqueue("gated")["id"]
        wait_until(lambda: self.task(task_id)["state"] == "On")
        worker.send_signal(signal.SIGTERM)
        wait_until(lambda: "worker.stopping" in self.log())
        self.open_gate()
        worker.wait(DEADLINE_S)
        self.assertEqual(worker.returncode, 0)
        task = self.task(task_id)
        self.assertEqual((task["status"], task["result"]), ("completed", "through"))
        ids = [item["id"] for item in self.expect(200, "GET", "/v1/workers")["items"]
               if item["status"] in ("idle", "busy")]
        self.assertNotIn(worker.id, ids)


class Leaving(WorkerTest):
    def test_sigterm_gives_back_what_does_not_end(self):
        """F-A18: without burning an attempt."""
        worker = self.worker()
        task_id = self.enqueue("stubborn")["id"]
        pid = self.pid()
        wait_until(lambda: self.task(task_id)["checkpoint_data"])
        self.assertEqual(self.end(worker), 0)
        self.assertFalse(alive(pid))
        task = self.task(task_id)
        self.assertEqual((task["status"], task["retry_count"], task["crash_count"]),
                         ("pending", 0, 0))
        self.assertRegex(self.log(), "waits up to 0.4s for running tasks to end, then sends "
                         "SIGTERM; kills what has not ended 0.4s after that")
        self.assertRegex(self.log(), f"task.killing.*{task_id}")

    def test_a_killed_worker_leaves_no_process_and_its_task_goes_on_elsewhere(self):
        """F-A19, F-I3"""
        worker = self.worker()
        task_id = self.enqueue("polite")["id"]
        pid = self.pid()
        wait_until(lambda: self.task(task_id)["checkpoint_data"])
        self.end(worker, signal.SIGKILL)
        wait_until(lambda: not alive(pid), what="the end of the handler")
        self.worker()
        task = self.wait_ended(task_id)
        self.assertEqual((task["status"], task["result"], task["crash_count"]),
                         ("completed", "from one", 1))


class Reconnecting(WorkerTest):
    arguments = ("--lease", "30s")
    keeps_port = True

    def test_a_restart_of_the_server_does_not_rerun_the_task(self):
        """F-A6: the worker comes back within the lease, with the same token."""
        self.worker()
        task_id = self.enqueue("gated")["id"]
        wait_until(lambda: self.task(task_id)["state"] == "On")
        self.restart(signal.SIGKILL, same_port=True)
        self.open_gate()
        task = self.wait_ended(task_id)
        self.assertEqual((task["status"], task["result"], task["attempts"], task["crash_count"]),
                         ("completed", "through", 1, 0))
        self.assertEqual(self.wait_ended(self.enqueue("hello")["id"])["status"], "completed")

    def test_what_ended_while_the_server_was_away_is_reported_afterwards(self):
        self.worker()
        task_id = self.enqueue("gated")["id"]
        wait_until(lambda: self.task(task_id)["state"] == "On")
        pid = self.pid()
        port = "%s:%d" % self.server.address
        self.server.stop(signal.SIGKILL)
        self.open_gate()
        wait_until(lambda: not alive(pid))
        self.server.arguments = (*self.arguments, "--listen", port)
        self.server.start()
        self.local.connection = None
        task = self.wait_ended(task_id)
        self.assertEqual((task["status"], task["result"], task["attempts"]),
                         ("completed", "through", 1))


class Starting(WorkerTest):
    def test_it_waits_for_a_server_that_is_not_there_yet(self):
        port = f"127.0.0.1:{harness.free_port()}"
        starting = self.in_thread(lambda: self.worker(url="http://" + port))
        wait_until(lambda: os.path.exists(self.folder + "/worker.log") and
                   "worker.waiting_for_server" in self.log())
        self.server.stop()
        self.server.arguments = (*self.arguments, "--listen", port)
        self.server.start()
        self.local.connection = None
        starting.result()
        self.assertEqual(self.wait_ended(self.enqueue("hello")["id"])["status"], "completed")

    def test_what_it_cannot_work_with_is_refused(self):
        empty = self.write("empty.yaml", "workers: 1\n")
        self.assertIn("handlers", self.refused(1, "worker", "--config", empty))
        self.assertIn("did you mean",
                      self.refused(2, "worker", "--config", empty, "--queus", "a"))
        wrong = self.write("wrong.yaml", "handlers:\n  - tipe: a\n")
        self.assertIn("wrong.yaml:2", self.refused(1, "worker", "--config", wrong))


class WithToken(WorkerTest):
    environment = {"PERDURA_TOKEN": "canary-0123456789abcdef"}

    def test_it_brings_the_token_along_and_hides_it_from_handlers(self):
        """F-I7"""
        secret = self.environment["PERDURA_TOKEN"]
        pathlib.Path(self.handlers).write_text(
            'handlers:\n  - type: env\n    command: ["env"]\n')
        done = self.perdura("worker", "--config", self.handlers, code=1, PERDURA_TOKEN="wrong")
        self.assertEqual(len([line for line in done.stderr.splitlines()
                              if line.startswith("perdura: ")]), 1)
        self.worker(PERDURA_TOKEN=secret)
        done = self.perdura("enqueue", "env", "--wait", PERDURA_TOKEN=secret)
        logs = self.perdura("task", "logs", done.stdout.split()[0], PERDURA_TOKEN=secret).stdout
        self.assertIn("PERDURA_TASK_ID=", logs)
        self.assertNotIn(secret, logs + self.log())


if __name__ == "__main__":
    unittest.main()
