"""Tasks whose handler is another party's HTTP service (D10, D13): what is sent, what answers mean,
what waits, and what hostile or broken services cannot do (F-G8, F-G9)."""
import asyncio
import os
import pathlib
import signal
import socket
import struct
import subprocess
import time
import unittest

from harness import ApiTest, binary, wait_until
from service_target import Target, reply

FINAL = ("completed", "failed", "dead_letter", "cancelled", "partial")


class ServiceTest(ApiTest):
    """A server whose configuration has the service `s` at the target's address."""
    service = ""  # further lines of the service
    more = ""     # further sections
    arguments = ("--config", "p.yaml", "--lease", "5s")

    def answer(self, call):
        return reply()

    def setUp(self):
        self.target = self.new_target()
        self.addCleanup(self.target.close)
        super().setUp()

    def new_target(self):
        return Target(self.answer)

    def configuration(self):
        return (f"services:\n  - name: s\n    url: {self.target.url}\n{self.service}"
                f"handlers:\n  - {{type: 'call:*', service: s, method: Do}}\n{self.more}")

    def write_configuration(self):
        path = pathlib.Path(self.folder, "p.yaml")
        path.write_text(self.configuration())
        path.chmod(0o600)

    def ended(self, task_id):
        return wait_until(lambda: (task := self.task(task_id))["status"] in FINAL and task,
                          what="the end of the task")

    def run_job(self, method, service="s", **fields):
        """Makes a job with this target and runs it; the task that came of it."""
        job = self.expect(201, "POST", "/v1/jobs", {
            "name": f"job {os.urandom(4).hex()}", "target_service": service,
            "target_method": method, "max_retries": 0, **fields})
        return self.expect(201, "POST", f"/v1/jobs/{job['id']}:run", {})

    def outcome(self, method, **fields):
        return self.ended(self.run_job(method, **fields)["id"])


class CallTest(ServiceTest):
    service = "    timeout: 20s\n    headers: {X-Team: billing}\n"

    def answer(self, call):
        return reply(200, {"did": call.path})

    def test_a_call_carries_the_payload_and_who_asks(self):
        task = self.enqueue("call:x", payload={"n": 1})
        ended = self.ended(task["id"])
        self.assertEqual(ended["status"], "completed")
        self.assertEqual(ended["result"], {"did": "/Do"})
        call = self.target.seen("/Do")[0]
        self.assertEqual((call.method, call.json), ("POST", {"n": 1}))
        self.assertEqual(call.headers["idempotency-key"], task["id"])
        self.assertEqual(call.headers["perdura-task-id"], task["id"])
        self.assertEqual(call.headers["perdura-attempt"], "1")
        self.assertTrue(0 < int(call.headers["perdura-deadline-ms"]) <= 20000)
        self.assertEqual(call.headers["x-team"], "billing")
        self.assertEqual(call.headers["content-type"], "application/json")

    def test_a_job_with_a_target_needs_no_handler(self):
        task = self.run_job("PUT /orders/{payload/id}", payload={"id": "a/..b c"})
        self.assertEqual(task["type"], "service:s/PUT /orders/{payload/id}")
        self.assertEqual(self.ended(task["id"])["status"], "completed")
        call = self.target.seen()[-1]
        self.assertEqual((call.method, call.path), ("PUT", "/orders/a%2F..b%20c"))

    def test_f_g9_no_task_leads_out_of_the_address_of_a_service(self):
        payload = {"a": "x/../../admin", "b": "..\\admin"}
        for method in ("..", "/../admin", "/%2e%2e/admin", "/x/..;v=1/admin", "x/../../admin", "PUT /{payload/a}",
                       "PUT /{payload/b}"):
            task = self.expect(201, "POST", "/v1/tasks", {"type": f"service:s/{method}", "payload": payload})["id"]
            self.assertEqual(self.ended(task)["error_details"]["code"], "invalid_request", method)
        self.assertEqual(self.target.calls, [])

    def test_f_g9_no_value_of_a_task_becomes_a_header(self):
        evil = "1\r\nX-Evil: 1\r\n\r\nGET /admin HTTP/1.1"
        task = self.enqueue("service:s/PUT /{payload/a}/{task/id}", payload={"a": evil}, name="n", correlation_id="c",
                            idempotency_key="k", context_key="x", metadata={"Host": evil})
        self.assertEqual(self.ended(task["id"])["status"], "completed")
        for field in ("correlation_id", "idempotency_key", "traceparent", "tracestate", "type"):
            self.expect(422, "POST", "/v1/tasks", {"type": "call:x", field: evil})
        (call,) = self.target.calls
        self.assertTrue(call.path.startswith("/1%0D%0AX-Evil%3A%201"), call.path)
        self.assertNotIn("x-evil", call.headers)

    def test_a_payload_that_does_not_fit_the_method_fails_before_any_call(self):
        for payload in ({}, {"id": ".."}, {"id": {"a": 1}}, {"id": None}):
            task = self.outcome("GET /orders/{payload/id}", payload=payload, max_retries=3)
            self.assertEqual(task["status"], "failed")
            self.assertIn("payload/id", task["error"])
            self.assertEqual(task["error_details"]["code"], "invalid_request")
        self.assertEqual(self.target.seen(), [])

    def test_targets_that_cannot_be_called_are_refused_with_the_job(self):
        for method in ("FETCH /x", "GET /{payload}", "Name*", "x" * 101):
            self.expect_error(422, "invalid", "POST", "/v1/jobs", {
                "name": "j", "target_service": "s", "target_method": method},
                field="target_method")
        self.expect_error(422, "invalid", "POST", "/v1/jobs", {
            "name": "j", "target_service": "a/b", "target_method": "m"}, field="target_service")


class StatusTest(ServiceTest):
    service = "    breaker: {failures: 0}\n"

    def answer(self, call):
        status = int(call.path.split("/")[1])
        return reply(status, {"message": f"said {status}"})

    def test_statuses_end_or_repeat_a_task(self):
        wanted = {200: ("completed", 1), 201: ("completed", 1), 299: ("completed", 1),
                  301: ("failed", 1), 302: ("failed", 1), 307: ("failed", 1), 400: ("failed", 1),
                  401: ("failed", 1), 403: ("failed", 1), 404: ("failed", 1), 409: ("failed", 1),
                  422: ("failed", 1), 408: ("dead_letter", 2), 425: ("dead_letter", 2),
                  429: ("dead_letter", 2), 500: ("dead_letter", 2), 501: ("dead_letter", 2),
                  502: ("dead_letter", 2), 503: ("dead_letter", 2), 504: ("dead_letter", 2)}
        tasks = {status: self.enqueue(f"service:s/GET /{status}", max_retries=1, retry_delay_ms=10)
                 for status in wanted}
        for status, task in tasks.items():
            ended = self.ended(task["id"])
            self.assertEqual((ended["status"], len(self.target.seen(f"/{status}"))),
                             wanted[status], status)
            if ended["status"] != "completed":
                details = ended["error_details"]
                self.assertEqual((details["service"], details["method"], details["status"]),
                                 ("s", f"GET /{status}", status))
                self.assertIn(f"said {status}", details["message"])
                for member in ("code", "attempt", "duration_ms", "reason"):
                    self.assertIn(member, details)

    def test_errors_keep_their_correlation_id_and_figures_no_words_of_the_service(self):
        task = self.ended(self.enqueue("service:s/GET /500", max_retries=0,
                                       correlation_id="order-7")["id"])
        self.assertEqual(task["error_details"]["correlation_id"], "order-7")
        self.assertIn("said 500", task["error"])
        shown = self.expect(200, "GET", "/v1/services/s")["last_error"]
        self.assertEqual(shown, "service s answered with status 500")
        self.assertNotIn("said 500", self.server.log())
        self.assertNotIn("said 500", self.request("GET", "/metrics").body.decode())


class ResultTest(ServiceTest):
    def answer(self, call):
        return {"/json": reply(200, b'{"a": [1, 2]}'),
                "/problem": reply(200, b'{"a":1}', "application/problem+json; charset=utf-8"),
                "/text": reply(200, "grüß".encode(), "text/plain"),
                "/bytes": reply(200, b"\xff\xfe", "application/octet-stream"),
                "/broken": reply(200, b'{"a":'),
                "/nothing": reply(204, b"", None),
                "/large": reply(200, b'"' + b"x" * 300000 + b'"')}[call.path]

    def test_answers_become_results(self):
        wanted = {"json": {"a": [1, 2]}, "problem": {"a": 1},
                  "text": {"body": "grüß", "content_type": "text/plain"},
                  "bytes": {"body_base64": "__4", "content_type": "application/octet-stream"},
                  "broken": {"body": '{"a":', "content_type": "application/json"},
                  "nothing": None}
        for name, result in wanted.items():
            task = self.outcome(name)
            self.assertEqual((task["status"], task["result"]), ("completed", result), name)

    def test_a_result_that_is_too_large_fails_clearly(self):
        task = self.outcome("large", max_retries=3)
        self.assertEqual(task["status"], "failed")
        self.assertEqual(task["error_details"]["code"], "too_large")
        self.assertEqual(len(self.target.seen("/large")), 1)


class HostileTest(ServiceTest):
    service = "    timeout: 2s\n    breaker: {failures: 0}\n    concurrency: 50\n"

    async def answer(self, call, writer):
        kind = call.path[1:]
        if kind == "endless":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10737418240\r\n\r\n")
            for _ in range(10240):
                writer.write(b"x" * 1048576)
                await writer.drain()
                if writer.is_closing() or writer.peer.at_eof() or writer.peer.exception():
                    break
        elif kind == "chunks":
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in range(10240):
                writer.write(b"100000\r\n" + b"x" * 1048576 + b"\r\n")
                await writer.drain()
                if writer.is_closing() or writer.peer.at_eof() or writer.peer.exception():
                    break
        elif kind == "rst":
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                                       struct.pack("ii", 1, 0))
            writer.write(b"HTTP/1.1 200 OK\r\n")
            await writer.drain()
            writer.transport.abort()
        elif kind == "drip":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
            for _ in range(1000):
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(1)
        elif kind == "silent":
            while not writer.peer.at_eof():
                await asyncio.sleep(0.02)
        elif kind == "half":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Le")
            await writer.drain()
            await asyncio.sleep(60)
        elif kind == "headers":
            writer.write(b"HTTP/1.1 200 OK\r\n")
            for i in range(10000):
                writer.write(b"X-%d: y\r\n" % i)
            await writer.drain()
        elif kind == "redirect":
            return reply(302, b"", None, Location="http://169.254.169.254/latest/meta-data/")
        elif kind == "late":
            await asyncio.sleep(3 if call.headers["perdura-attempt"] == "1" else 0)
            return reply(200, {"attempt": call.headers["perdura-attempt"]})
        elif kind == "reset":
            writer.transport.abort()
        elif kind == "garbage":
            writer.write(b"\x16\x03\x01 this is not HTTP\r\n\r\n")
            await writer.drain()
        elif kind == "cut":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
            await writer.drain()
        return None

    def test_no_service_can_hold_up_or_fool_the_worker(self):
        wanted = {"endless": ("failed", "too_large"), "chunks": ("failed", "too_large"),
                  "rst": ("dead_letter", "connection_lost"), "drip": ("dead_letter", "timeout"),
                  "silent": ("dead_letter", "timeout"), "half": ("dead_letter", "timeout"),
                  "headers": ("dead_letter", "invalid_answer"),
                  "redirect": ("failed", "redirect_refused"),
                  "reset": ("dead_letter", "connection_lost"),
                  "garbage": ("dead_letter", "invalid_answer"),
                  "cut": ("dead_letter", "connection_lost")}
        began = time.monotonic()
        tasks = {kind: self.run_job(kind) for kind in wanted}
        for kind, task in tasks.items():
            ended = self.ended(task["id"])
            self.assertEqual((ended["status"], ended["error_details"]["code"]), wanted[kind], kind)
        self.assertLess(time.monotonic() - began, 40)
        self.assertNotIn("169.254.169.254", str(self.target.seen()))

    def test_an_answer_after_our_timeout_is_a_timeout_and_the_repeat_has_the_same_key(self):
        task = self.enqueue("service:s/late", max_retries=1, retry_delay_ms=10)
        ended = self.ended(task["id"])
        self.assertEqual((ended["status"], ended["result"]), ("completed", {"attempt": "2"}))
        calls = self.target.seen("/late")
        self.assertEqual([call.headers["idempotency-key"] for call in calls], [task["id"]] * 2)
        runs = self.expect(200, "GET", f"/v1/tasks/{task['id']}/executions")["items"]
        self.assertEqual(sorted(run["status"] for run in runs), ["completed", "timeout"])

    def test_a_cancel_ends_the_call(self):
        task = self.enqueue("service:s/silent", timeout_ms=60000)
        wait_until(lambda: self.target.seen("/silent"))
        self.expect(200, "POST", f"/v1/tasks/{task['id']}:cancel", {})
        wait_until(lambda: self.target.under_way == 0, what="the end of the connection")
        self.assertEqual(self.task(task["id"])["status"], "cancelled")


class WaitTest(ServiceTest):
    service = "    concurrency: 2\n"

    def answer(self, call):
        if len(self.target.calls) == 1:
            return reply(429, {}, Retry_After="2")
        return reply()

    def test_retry_after_holds_up_all_tasks_and_uses_up_no_retry(self):
        first = self.enqueue("call:a", max_retries=0)
        wait_until(lambda: self.task(first["id"])["status"] == "delayed")
        asked = time.monotonic()
        others = [self.enqueue("call:b", max_retries=0) for _ in range(5)]
        for task in [first, *others]:
            ended = self.ended(task["id"])
            self.assertEqual((ended["status"], ended["retry_count"]), ("completed", 0))
        self.assertGreater(time.monotonic() - asked, 1.5)
        self.assertEqual(len(self.target.seen()), 7)


class BoundsTest(ServiceTest):
    service = "    concurrency: 3\n    timeout: 30s\n"
    more = "workers: 1\n"

    async def answer(self, call, writer):
        await asyncio.sleep(0.2)
        return reply()

    def test_no_more_calls_than_the_service_takes_and_none_takes_a_slot(self):
        tasks = [self.enqueue("call:x") for _ in range(12)]
        wait_until(lambda: self.target.most == 3)
        counts = self.expect(200, "GET", "/v1/stats")["counts"]
        self.assertLessEqual(counts["claimed"] + counts["running"], 3)
        for task in tasks:
            self.assertEqual(self.ended(task["id"])["status"], "completed")
        self.assertEqual(self.target.most, 3)


class ManyTest(ServiceTest):
    service = "    concurrency: 2000\n    timeout: 120s\n"

    async def answer(self, call, writer):
        if call.path == "/Hang":
            await self.go.wait()
        return reply()

    def setUp(self):
        super().setUp()
        self.go = asyncio.Event()

    def test_two_thousand_calls_wait_at_once_on_one_thread(self):
        items = [{"type": "service:s/Hang"} for _ in range(2000)]
        self.expect(201, "POST", "/v1/tasks", items)
        wait_until(lambda: self.target.under_way == 2000, what="all calls at the service")
        threads = len(os.listdir(f"/proc/{self.server.process.pid}/task"))
        self.assertLess(threads, 60)
        self.target.loop.call_soon_threadsafe(self.go.set)
        wait_until(lambda: self.expect(200, "GET", "/v1/stats")["counts"]["completed"]
                   == 2000, what="the ends of all tasks")


class CrowdTest(ServiceTest):
    """Many services, one of which hangs: the others do not notice."""

    async def answer(self, call, writer):
        while call.path.startswith("/0/") and not writer.peer.at_eof():
            await asyncio.sleep(0.05)
        return reply()

    def configuration(self):
        return "services:\n" + "".join(
            f"  - {{name: s{i}, url: '{self.target.url}/{i}', concurrency: 2, timeout: 60s}}\n"
            for i in range(500))

    def test_five_hundred_services_work_beside_one_that_hangs(self):
        items = [{"type": f"service:s{i}/Do"} for i in range(500) for _ in range(3)]
        self.expect(201, "POST", "/v1/tasks", items)
        counts = lambda: self.expect(200, "GET", "/v1/stats")["counts"]
        ended = 0
        while ended < 3 * 499:  # however slow the machine is, there are always more
            ended = wait_until(lambda: (now := counts()["completed"]) > ended and now,
                               what=f"an end of the others after {ended}")
        self.assertEqual(ended, 3 * 499)
        self.assertEqual(len(self.target.seen("/0/Do")), 2)


class BreakerTest(ServiceTest):
    service = "    breaker: {failures: 3, open: 2s}\n    concurrency: 1\n"

    def answer(self, call):
        return reply(500 if self.broken else 200)

    def setUp(self):
        self.broken = True
        super().setUp()

    def test_an_open_breaker_makes_tasks_wait_without_using_up_attempts(self):
        for _ in range(3):
            self.enqueue("call:x", max_retries=0)
        wait_until(lambda: "service.down" in self.server.log())
        waiting = self.enqueue("call:y", max_retries=0)
        time.sleep(1)  # the breaker is open for two seconds
        task = wait_until(lambda: (now := self.task(waiting["id"]))["status"] == "pending" and now)
        self.assertEqual(task["attempts"], 0)
        self.assertEqual(len(self.target.seen()), 3)
        self.broken = False
        ended = self.ended(waiting["id"])
        self.assertEqual((ended["status"], ended["attempts"]), ("completed", 1))
        wait_until(lambda: "service.up" in self.server.log())


class ReloadTest(ServiceTest):
    def test_services_change_with_the_configuration(self):
        self.assertEqual(self.outcome("One")["status"], "completed")
        other = Target(lambda call: reply(200, {"other": True}))
        self.addCleanup(other.close)
        before, self.target = self.target, other
        self.write_configuration()
        self.server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "config.reloaded" in self.server.log())
        self.assertEqual(self.outcome("Two")["result"], {"other": True})
        self.target = before
        pathlib.Path(self.folder, "p.yaml").write_text("services: [{name: s, url: 'ftp://x'}]\n")
        self.server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "config.refused" in self.server.log())
        self.target = other
        self.assertEqual(self.outcome("Three")["result"], {"other": True})


class SecretTest(ServiceTest):
    service = ("    headers: {Authorization: {env: TARGET_KEY}, X-Key: {file: key.txt}}\n"
               "    breaker: {failures: 0}\n")
    environment = {"TARGET_KEY": "Bearer sesame-of-the-test"}

    def answer(self, call):
        if call.path == "/Token":  # without the word in front of it
            return reply(500, {"message": "wrong: " + call.headers["authorization"].removeprefix("Bearer ")})
        if call.path == "/Card":
            return reply(500, {"message": "the card 4111 is wrong"})
        said = call.headers["authorization"] + call.headers["x-key"]
        return reply(500, {"message": f"you sent {said}"})

    def write_configuration(self):
        super().write_configuration()
        pathlib.Path(self.folder, "key.txt").write_text("open-up-from-a-file\n")

    def test_secrets_reach_the_service_and_nothing_else(self):
        task = self.outcome("Echo")
        call = self.target.seen()[0]
        self.assertEqual(call.headers["authorization"], "Bearer sesame-of-the-test")
        self.assertEqual(call.headers["x-key"], "open-up-from-a-file")
        shown = [str(task), self.server.log(), self.doctor()]
        for path in ("logs", "events", "executions", "checkpoints", "why"):
            shown.append(self.request("GET", f"/v1/tasks/{task['id']}/{path}").body.decode())
        for path in ("/v1/workers", "/v1/services", "/v1/services/s", "/v1/jobs", "/v1/audit", "/v1/stats", "/metrics"):
            shown.append(self.request("GET", path).body.decode())
        for text in shown:
            self.assertNotIn("sesame", text)
            self.assertNotIn("open-up", text)
        self.assertNotIn("sesame", str(self.outcome("Token")))

    def doctor(self):
        done = subprocess.run([binary(), "doctor", "--json", "--config", "p.yaml", "--store", self.server.store],
                              cwd=self.folder, env={**os.environ, **self.environment}, capture_output=True, text=True,
                              check=False)
        self.assertIn("service", done.stdout)
        return done.stdout + done.stderr

    def test_f_j1_everyone_sees_that_a_service_failed_and_only_who_sees_the_task_what_it_said(self):
        self.assertIn("the card 4111 is wrong", self.outcome("Card")["error"])
        shown = self.expect(200, "GET", "/v1/services/s")["last_error"]
        self.assertEqual(shown, "service s answered with status 500")


class StopTest(ServiceTest):
    service = "    timeout: 60s\n"
    more = "grace: 1s\n"

    async def answer(self, call, writer):
        await asyncio.sleep(0 if self.quick else 60)
        return reply()

    def setUp(self):
        self.quick = False
        super().setUp()

    def test_a_stop_gives_calls_back_that_do_not_end(self):
        task = self.enqueue("call:x", timeout_ms=60000)
        wait_until(lambda: self.target.seen())
        began = time.monotonic()
        self.assertEqual(self.server.stop(), 0)
        self.assertLess(time.monotonic() - began, 30)
        self.quick = True
        self.server.start()
        ended = self.ended(task["id"])
        self.assertEqual((ended["status"], ended["attempts"]), ("completed", 1))


class UnknownTest(ServiceTest):
    arguments = ("--config", "p.yaml", "--lease", "1s")

    def test_a_job_with_an_unknown_service_is_taken_with_a_warning_and_its_runs_fail(self):
        job = self.expect(201, "POST", "/v1/jobs", {
            "name": "j", "target_service": "elsewhere", "target_method": "Do"})
        self.assertIn("Unknown target service: elsewhere", job["warnings"][0])
        task = self.expect(201, "POST", f"/v1/jobs/{job['id']}:run", {})
        ended = self.ended(task["id"])
        self.assertEqual((ended["status"], ended["error"]),
                         ("failed", "Unknown target service: elsewhere"))
        details = ended["error_details"]
        self.assertEqual((details["code"], details["service"], details["method"]),
                         ("unknown_service", "elsewhere", "Do"))
        known = self.expect(201, "POST", "/v1/jobs", {
            "name": "k", "target_service": "s", "target_method": "Do"})
        self.assertNotIn("warnings", known)


class CategoryTest(ServiceTest):
    def test_a_category_names_the_service_of_its_jobs(self):
        self.expect(201, "POST", "/v1/categories", {"name": "calls", "configuration": {"service": "s"}})
        job = self.expect(201, "POST", "/v1/jobs", {
            "name": "j", "category": "calls", "target_method": "Do"})
        self.assertEqual((job["target_service"], job["target_method"]), ("s", "Do"))
        self.assertNotIn("warnings", job)
        own = self.expect(201, "POST", "/v1/jobs", {
            "name": "own", "category": "calls", "target_service": "elsewhere", "target_method": "Do"})
        plain = self.expect(201, "POST", "/v1/jobs", {"name": "plain", "category": "calls"})
        self.assertIsNone(plain["target_service"], "it may have a handler")
        task = self.expect(201, "POST", f"/v1/jobs/{job['id']}:run", {})
        self.assertEqual(task["type"], "service:s/Do")
        self.assertEqual(self.ended(task["id"])["status"], "completed")

        def jobs(service):
            found = self.expect(200, "GET", f"/v1/jobs?target_service={service}")["items"]
            return [item["name"] for item in found]
        self.assertEqual((jobs("s"), jobs("elsewhere"), jobs("none")), (["j"], [own["name"]], []))
        warned = self.expect(201, "POST", "/v1/categories", {
            "name": "far", "configuration": {"service": "nowhere"}})
        job = self.expect(201, "POST", "/v1/jobs", {
            "name": "w", "category": "far", "target_method": "Do"})
        self.assertIn("Unknown target service: nowhere", job["warnings"][0])
        self.expect_error(422, "invalid", "PATCH", f"/v1/categories/{warned['id']}", {
            "configuration": {"service": "a/b"}})
        self.expect_error(422, "invalid", "POST", "/v1/jobs", {
            "name": "m", "target_method": "Do"}, field="target_method")


class SightTest(ServiceTest):
    """What is shown of a service: /v1/services, metrics, why."""
    service = ("    breaker: {failures: 2, open: 60s}\n    concurrency: 1\n"
               "    health: {path: /healthz, every: 200ms}\n")

    def answer(self, call):
        return reply(500 if self.broken else 200)

    def setUp(self):
        self.broken = False
        super().setUp()

    def one(self):
        return self.expect(200, "GET", "/v1/services/s")

    def test_a_service_is_shown_as_it_is(self):
        wait_until(lambda: self.one()["status"] == "up")
        self.outcome("Do")
        shown = self.one()
        self.assertEqual((shown["url"], shown["breaker"], shown["calls"]["done"]),
                         (self.target.url, "closed", 1))
        self.assertEqual(shown["success_rate_1h"], 1)
        self.assertEqual([x["name"] for x in self.expect(200, "GET", "/v1/services")["items"]],
                         ["s"])
        self.expect_error(404, "not_found", "GET", "/v1/services/t")
        metrics = self.request("GET", "/metrics").body.decode()
        self.assertIn('perdura_service_up{service="s"} 1', metrics)
        self.assertIn('perdura_service_calls_total{service="s",method="Do",outcome="done"} 1',
                      metrics)
        self.assertIn('perdura_service_call_seconds_count{service="s"} 1', metrics)

    def test_a_failing_health_check_makes_tasks_wait_and_why_says_so(self):
        self.broken = True
        wait_until(lambda: self.one()["breaker"] == "open")
        self.assertEqual(self.one()["status"], "down")
        task = self.enqueue("call:x")
        # A claim that was under way may bring it, and give it back.
        why = wait_until(lambda: (told := self.expect(200, "GET", f"/v1/tasks/{task['id']}/why"))
                         ["reason"] == "service_down" and told)
        self.assertIn("service s is down since", why["text"])
        self.assertIn("next try", why["text"])
        self.assertIn('perdura_service_breaker_open{service="s"} 1',
                      self.request("GET", "/metrics").body.decode())
        self.broken = False
        self.assertEqual(self.ended(task["id"])["attempts"], 1)


class AwayTest(ServiceTest):
    def new_target(self):
        target = super().new_target()
        target.close()
        return target

    def test_a_service_that_is_not_there_at_the_start_is_a_warning(self):
        wait_until(lambda: "service.not_available" in self.server.log())
        self.assertEqual(self.expect(200, "GET", "/v1/services/s")["status"], "down")
        self.expect(200, "GET", "/healthz")


class LookupTest(ServiceTest):
    """A node that dies between a call and its answer: the service is asked before a repeat."""
    service = "    timeout: 60s\n    methods: {Pay: {lookup: 'GET /paid/{task/id}'}}\n"
    arguments = ("--config", "p.yaml", "--lease", "1s")

    async def answer(self, call, writer):
        if call.path.startswith("/paid/"):
            done = call.path[6:] in self.paid
            return reply(200, {"paid": "found"}) if done else reply(404)
        if call.path == "/Pay" and self.loses:
            if self.loses == "answer":
                self.paid.append(call.headers["idempotency-key"])
            self.held.append(call)
            await asyncio.sleep(60)
        if call.path == "/Pay":
            self.paid.append(call.headers["idempotency-key"])
        return reply(200, {"paid": "now"})

    def setUp(self):
        self.paid, self.held, self.loses = [], [], None
        super().setUp()

    def crash(self, loses, method="Pay"):
        self.loses = loses
        tasks = [self.run_job(method, max_retries=3) for _ in range(10)]
        wait_until(lambda: len(self.held) == 10, what="all calls at the service")
        self.server.process.kill()
        self.server.process.wait()
        self.server.process.stdout.close()
        self.loses = None
        self.server.start()
        return [self.ended(task["id"]) for task in tasks]

    def test_a_call_whose_answer_was_lost_is_found_and_not_repeated(self):
        for task in self.crash("answer"):
            self.assertEqual((task["status"], task["result"]), ("completed", {"paid": "found"}),
                             [(c.path, c.headers["perdura-attempt"]) for c in self.target.seen()
                              if c.headers["idempotency-key"] == task["id"]])
        self.assertEqual(len(self.paid), len(set(self.paid)), "no key is paid twice")

    def test_a_call_that_was_not_done_is_made_again_with_the_same_key(self):
        tasks = self.crash("call")
        for task in tasks:
            self.assertEqual((task["status"], task["result"]), ("completed", {"paid": "now"}), task["error"])
        self.assertEqual(sorted(self.paid), sorted(task["id"] for task in tasks))


class RepeatTest(LookupTest):
    """The same without a lookup: the call is repeated, with the same key."""
    service = "    timeout: 60s\n"

    def test_a_call_whose_answer_was_lost_is_found_and_not_repeated(self):
        tasks = self.crash("answer")
        for task in tasks:
            self.assertEqual((task["status"], task["result"]), ("completed", {"paid": "now"}), task["error"])
            self.assertEqual(self.paid.count(task["id"]), 2)


if __name__ == "__main__":
    unittest.main()
