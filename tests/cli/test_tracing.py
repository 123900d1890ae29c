"""Traces (D10): the context of a request is kept with its tasks, reaches handlers, children and
callbacks, and a real OTLP receiver gets spans that fit together; one that is away does no harm.
Run: PERDURA_BUILD=build python3 -m unittest tests/cli/test_tracing.py"""
import http.server
import json
import pathlib
import re
import threading
import time
import unittest

import cli_harness
from cli_harness import wait_until

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"
CONTEXT = f"00-{TRACE}-{PARENT}-01"
HEX16, HEX8 = re.compile("[0-9a-f]{32}$"), re.compile("[0-9a-f]{16}$")


class Receiver:
    """An OTLP receiver: checks the form of every request and keeps the spans."""

    def __init__(self, status=200):
        self.spans, self.faults, self.requests, self.status = [], [], 0, status
        self.headers = None  # of the last request
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.take(self, body)
                answer = b"{}"
                self.send_response(receiver.status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d" % self.http.server_address[1]
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def take(self, request, body):
        self.requests += 1
        self.headers = request.headers
        try:
            if self.status != 200:
                return
            assert request.path == "/v1/traces", request.path
            assert request.headers["Content-Type"] == "application/json"
            for resource in json.loads(body)["resourceSpans"]:
                names = {a["key"]: a["value"]["stringValue"]
                         for a in resource["resource"]["attributes"]}
                assert names["service.name"] == "perdura" and names["service.instance.id"]
                for scope in resource["scopeSpans"]:
                    assert scope["scope"]["name"] == "perdura"
                    for span in scope["spans"]:
                        self.check(span)
                        self.spans.append(span)
        except (AssertionError, KeyError, ValueError) as fault:
            self.faults.append(repr(fault))

    @staticmethod
    def check(span):
        assert HEX16.match(span["traceId"]) and HEX8.match(span["spanId"]), span
        assert HEX8.match(span.get("parentSpanId", "0" * 16)), span
        assert span["kind"] in (1, 3, 4, 5), span
        start, end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
        assert 1_600_000_000_000_000_000 < start <= end, span
        assert isinstance(span["startTimeUnixNano"], str)
        for attribute in span["attributes"]:
            [(kind, value)] = attribute["value"].items()
            assert kind in ("stringValue", "intValue") and isinstance(value, str), span

    def of(self, task_id, verb=None):
        found = [span for span in self.spans if attribute(span, "messaging.message.id") == task_id]
        return [span for span in found if not verb or span["name"].split()[0] == verb]

    def stop(self):
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


def attribute(span, key):
    for entry in span["attributes"]:
        if entry["key"] == key:
            return next(iter(entry["value"].values()))
    return None


CONFIG = """
handlers:
  - type: ok
    command: ["sh", "-c", "cat > /dev/null; echo $TRACEPARENT $TRACESTATE $PERDURA_CORRELATION_ID"]
  - type: bad
    command: ["sh", "-c", "exit 3"]
    max_retries: 0
"""


class TracingCase(cli_harness.ServerTest):
    """A server that exports to a receiver of the test's own."""

    config = CONFIG + "tracing: {otlp: '{receiver}', ratio: 1}\n"
    status = 200

    def setUp(self):
        self.receiver = Receiver(self.status)
        self.addCleanup(self.receiver.stop)
        self.config = self.config.replace("{receiver}", self.receiver.url)
        super().setUp()

    def enqueue_with(self, headers, **task):
        reply = self.request("POST", "/v1/tasks", task, headers)
        self.assertEqual(reply.status, 201, reply.body)
        return reply.json

    def spans(self, task_id, count):
        wait_until(lambda: len(self.receiver.of(task_id)) >= count or self.receiver.faults,
                   what=f"{count} spans")
        self.assertEqual(self.receiver.faults, [])
        return self.receiver.of(task_id)

    def lines(self, task_id):
        return [line["message"] for line in
                self.request("GET", f"/v1/tasks/{task_id}/logs").json["items"]]


class TracingTest(TracingCase):
    def test_spans_of_a_task_hang_together_below_the_caller(self):
        task = self.enqueue_with({"traceparent": CONTEXT, "tracestate": "a=b",
                                  "X-Request-Id": "order-7"}, type="ok")
        self.assertEqual((task["traceparent"], task["tracestate"]), (CONTEXT, "a=b"))
        self.assertEqual(task["correlation_id"], "order-7")
        self.wait_ended(task["id"])
        self.assertEqual(len(self.spans(task["id"], 3)), 3)
        [enqueue] = self.receiver.of(task["id"], "enqueue")
        [waited] = self.receiver.of(task["id"], "wait")
        [run] = self.receiver.of(task["id"], "run")
        self.assertEqual({s["traceId"] for s in (enqueue, waited, run)}, {TRACE})
        self.assertEqual({s["traceState"] for s in (enqueue, waited, run)}, {"a=b"})
        self.assertEqual(enqueue["parentSpanId"], PARENT)
        self.assertEqual(waited["parentSpanId"], enqueue["spanId"])
        self.assertEqual(run["parentSpanId"], enqueue["spanId"])
        self.assertEqual((enqueue["kind"], waited["kind"], run["kind"]), (4, 1, 5))
        self.assertLessEqual(int(enqueue["startTimeUnixNano"]), int(waited["startTimeUnixNano"]))
        self.assertLessEqual(int(waited["endTimeUnixNano"]), int(run["startTimeUnixNano"]))
        self.assertEqual(run["status"], {"code": 1})
        self.assertEqual(attribute(run, "messaging.message.conversation_id"), "order-7")
        [line] = self.lines(task["id"])  # the handler belongs under its own run
        self.assertEqual(line, f"00-{TRACE}-{run['spanId']}-01 a=b order-7")

    def test_a_task_without_a_context_has_a_trace_with_its_id(self):
        task = self.enqueue("bad")
        self.wait_ended(task["id"])
        spans = self.spans(task["id"], 3)
        self.assertEqual({span["traceId"] for span in spans}, {task["id"].replace("-", "")})
        [enqueue] = self.receiver.of(task["id"], "enqueue")
        self.assertNotIn("parentSpanId", enqueue)
        [run] = self.receiver.of(task["id"], "run")
        self.assertEqual(run["status"], {"code": 2, "message": "failed"})
        self.assertIsNone(task["traceparent"])

    def test_a_caller_that_does_not_sample_gets_no_spans_and_its_context_unchanged(self):
        quiet = CONTEXT[:-2] + "00"
        task = self.enqueue_with({"traceparent": quiet}, type="ok")
        self.wait_ended(task["id"])
        other = self.enqueue("ok")  # its spans come later: then all of the first would be there
        self.wait_ended(other["id"])
        self.spans(other["id"], 3)
        self.assertEqual(self.receiver.of(task["id"]), [])
        self.assertTrue(self.lines(task["id"])[0].startswith(quiet))

    def test_children_belong_under_the_attempt_that_made_them(self):
        parent = self.enqueue_with({"traceparent": CONTEXT, "tracestate": "a=b"}, type="p",
                                   queue="hands")
        self.register("w", queues=["hands"])
        [held] = self.claim("w")
        run_context = held["traceparent"]
        self.assertTrue(run_context.startswith(f"00-{TRACE}-"))
        self.assertNotEqual(run_context, CONTEXT)
        self.report_ok("w", held, "spawn", tasks=[{"type": "c", "queue": "hands"}])
        self.report_ok("w", held, "complete", result=None)
        [child] = self.request("GET", f"/v1/tasks?parent_id={parent['id']}").json["items"]
        self.assertEqual((child["traceparent"], child["tracestate"]), (run_context, "a=b"))
        self.spans(parent["id"], 3)
        [run] = self.receiver.of(parent["id"], "run")
        [made] = self.spans(child["id"], 1)
        self.assertEqual(made["parentSpanId"], run["spanId"])
        self.assertEqual(made["traceId"], TRACE)

    def test_a_run_that_another_run_triggers_goes_on_with_its_trace(self):
        """D7, D10: the context and the correlation id of the first, as children have them."""
        jobs = [self.expect(201, "POST", "/v1/jobs", {"name": name, "queue": "hands"})["id"]
                for name in ("first", "second", "third")]
        for job, before in zip(jobs[1:], jobs):
            self.expect(201, "POST", f"/v1/jobs/{job}/dependencies",
                        {"depends_on_job_id": before, "dependency_config": {"mode": "trigger"}})
        reply = self.request("POST", f"/v1/jobs/{jobs[0]}:run", None,
                             {"traceparent": CONTEXT, "tracestate": "a=b",
                              "X-Request-Id": "order-7"})
        self.assertEqual(reply.status, 201, reply.body)
        self.assertEqual(reply.json["traceparent"], CONTEXT)
        self.register("w", queues=["hands"])
        context = PARENT
        for job in jobs:
            [held] = self.claim("w", wait_ms=30000)
            task = self.task(held["id"])
            self.assertEqual((held["job_id"], task["correlation_id"], task["tracestate"]),
                             (job, "order-7", "a=b"))
            self.assertEqual(task["traceparent"], f"00-{TRACE}-{context}-01")
            self.report_ok("w", held, "complete", result=None)
            self.spans(held["id"], 3)
            [enqueue] = self.receiver.of(held["id"], "enqueue")
            [run] = self.receiver.of(held["id"], "run")
            self.assertEqual((enqueue["traceId"], enqueue["parentSpanId"]), (TRACE, context))
            context = run["spanId"]  # below which the next one is

    def test_every_attempt_has_spans_of_its_own(self):
        task = self.enqueue("r", queue="hands", retry_delay_ms=0, max_retries=1)
        self.register("w", queues=["hands"])
        for _ in range(2):
            [held] = self.claim("w", wait_ms=30000)
            self.report_ok("w", held, "fail", error="no")
        self.spans(task["id"], 5)
        runs = self.receiver.of(task["id"], "run")
        self.assertEqual({attribute(run, "perdura.task.attempt") for run in runs}, {"1", "2"})
        self.assertEqual(len({span["spanId"] for span in self.receiver.of(task["id"])}), 5)

    def test_a_body_may_say_it_and_nonsense_is_refused_there_and_passed_over_in_headers(self):
        task = self.enqueue("x", queue="hands", traceparent=CONTEXT, tracestate="k=v")
        self.assertEqual(task["traceparent"], CONTEXT)
        for field, value in (("traceparent", "00-zz"), ("tracestate", "k=v"),
                             ("traceparent", 7)):
            reply = self.request("POST", "/v1/tasks", {"type": "x", field: value})
            self.assertEqual((reply.status, reply.json["error"]["field"]), (422, field))
        for bad in ("nonsense", CONTEXT.upper(), "00-" + "0" * 32 + f"-{PARENT}-01"):
            task = self.enqueue_with({"traceparent": bad, "tracestate": "a=b"}, type="x",
                                     queue="hands")
            self.assertEqual((task["traceparent"], task["tracestate"]), (None, None))

    def test_the_command_line_passes_on_the_context_of_its_handler(self):
        done = self.perdura("enqueue", "x", "--queue", "hands", "--json", TRACEPARENT=CONTEXT)
        self.assertEqual(json.loads(done.stdout)["traceparent"], CONTEXT)
        done = self.perdura("enqueue", "x", "--queue", "hands", "--json", TRACEPARENT="nonsense")
        self.assertIsNone(json.loads(done.stdout)["traceparent"])
        other = CONTEXT.replace("4bf9", "1234")
        done = self.perdura("enqueue", "x", "--queue", "hands", "--json", "--traceparent", other,
                            TRACEPARENT=CONTEXT)
        self.assertEqual(json.loads(done.stdout)["traceparent"], other)

    def test_metrics_count_what_was_exported(self):
        task = self.enqueue("ok")
        self.wait_ended(task["id"])
        self.spans(task["id"], 3)
        text = wait_until(lambda: (lambda t: t if "perdura_spans_exported_total 3" in t else None)(
            self.request("GET", "/metrics").body.decode()), what="the counter")
        self.assertIn("perdura_spans_dropped_total 0\n", text)


class CallbackTest(cli_harness.ServerTest):
    config = CONFIG

    def test_callbacks_carry_the_context(self):
        seen = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                seen.append((self.headers["traceparent"], self.headers["tracestate"]))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        receiver = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=receiver.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        self.addCleanup(receiver.server_close)
        self.addCleanup(receiver.shutdown)
        url = "http://127.0.0.1:%d/" % receiver.server_address[1]
        self.enqueue("ok", callback_url=url, traceparent=CONTEXT, tracestate="a=b")
        wait_until(lambda: seen, what="the callback")
        self.assertEqual(seen, [(CONTEXT, "a=b")])  # nothing is exported: passed through
        self.enqueue("ok", callback_url=url)
        wait_until(lambda: len(seen) == 2, what="the second callback")
        self.assertEqual(seen[1], (None, None))

    def test_the_correlation_id_is_in_events_executions_and_log_lines(self):
        reply = self.request("POST", "/v1/tasks", {"type": "ok"}, {"X-Request-Id": "req-1"})
        self.assertEqual(reply.headers["X-Request-Id"], "req-1")
        task = self.wait_ended(reply.json["id"])
        self.assertEqual(task["correlation_id"], "req-1")
        [execution] = self.request("GET", f"/v1/tasks/{task['id']}/executions").json["items"]
        for path in (f"/v1/tasks/{task['id']}/events", f"/v1/tasks/{task['id']}/executions",
                     f"/v1/tasks/{task['id']}/logs", f"/v1/executions/{execution['id']}/logs"):
            items = self.request("GET", path).json["items"]
            self.assertTrue(items, path)
            self.assertEqual({item["correlation_id"] for item in items}, {"req-1"}, path)
        own = self.enqueue_with_id("mine", "req-2")
        self.assertEqual(own["correlation_id"], "mine")
        refused = self.request("GET", "/v1/nothing", headers={"X-Request-Id": "req-3"})
        self.assertEqual((refused.status, refused.headers["X-Request-Id"]), (404, "req-3"))
        odd = self.request("POST", "/v1/tasks", {"type": "ok"}, {"X-Request-Id": "x" * 300})
        self.assertIsNone(odd.json["correlation_id"])
        self.assertIsNone(odd.headers["X-Request-Id"])

    def enqueue_with_id(self, correlation_id, request_id):
        return self.request("POST", "/v1/tasks", {"type": "ok", "correlation_id": correlation_id},
                            {"X-Request-Id": request_id}).json


class ReceiverAwayTest(TracingCase):
    """A receiver that refuses, or is not there: tasks run, spans are counted as dropped."""

    status = 400

    def test_spans_nobody_takes_are_dropped_and_counted_and_harm_nothing(self):
        for _ in range(20):
            self.wait_ended(self.enqueue("ok")["id"])
        wait_until(lambda: "perdura_spans_dropped_total 60\n" in
                   self.request("GET", "/metrics").body.decode(), what="60 dropped spans")
        log = pathlib.Path(self.folder, "stderr.log").read_text()
        self.assertIn('"event":"tracing.export_failed"', log)

    def test_a_receiver_that_is_gone_does_not_hold_up_the_stop(self):
        self.receiver.http.socket.close()
        self.wait_ended(self.enqueue("ok")["id"])


class ReceiverHangsTest(TracingCase):
    """A receiver that takes a request and never answers it."""

    def setUp(self):
        super().setUp()
        self.let_go = threading.Event()
        self.addCleanup(self.let_go.set)

    def test_it_holds_up_neither_tasks_nor_the_stop(self):
        asked = threading.Event()
        self.receiver.take = lambda *_: (asked.set(), self.let_go.wait(2 * cli_harness.DEADLINE_S))
        self.wait_ended(self.enqueue("ok")["id"])
        self.assertTrue(asked.wait(cli_harness.DEADLINE_S))
        self.wait_ended(self.enqueue("ok")["id"])
        begin = time.monotonic()
        self.server.stop()
        self.assertLess(time.monotonic() - begin, 30)  # it would answer after 60


class SettingsTest(cli_harness.FolderTest):
    def test_the_endpoint_may_come_from_opentelemetrys_variables(self):
        receiver = Receiver()
        self.addCleanup(receiver.stop)
        self.write("perdura.yaml", CONFIG)
        server = self.serve("--config", "perdura.yaml",
                            OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url + "/v1/traces",
                            OTEL_TRACES_SAMPLER_ARG="1.0")
        self.url = "http://%s:%d" % server.address
        self.perdura("enqueue", "ok", "--wait")
        wait_until(lambda: len(receiver.spans) == 3 or receiver.faults, what="spans")
        self.assertEqual(receiver.faults, [])

    def exported_with(self, config, *arguments, **variables):
        """The headers of an export, and everything the server and doctor said about it."""
        receiver = Receiver()
        self.addCleanup(receiver.stop)
        self.write("perdura.yaml", CONFIG + config.replace("{receiver}", receiver.url))
        server = self.serve("--config", "perdura.yaml", "--log-level", "debug", *arguments,
                            **variables)
        self.url = "http://%s:%d" % server.address
        self.perdura("enqueue", "ok", "--wait")
        wait_until(lambda: receiver.spans, what="spans")
        receiver.status = 400  # now the log has something to say of the receiver
        self.perdura("enqueue", "ok", "--wait")
        wait_until(lambda: "tracing.export_failed" in server.log(), what="the failure in the log")
        doctor = self.perdura("doctor", "--config", "perdura.yaml", **variables)
        self.assertEqual(server.stop(), 0)
        return receiver.headers, server.log() + doctor.stdout + doctor.stderr

    def test_headers_of_exports_come_from_the_environment_the_file_and_a_file_of_their_own(self):
        """D10: a receiver's token need not stand in the configuration, and no value is ever shown."""
        headers, said = self.exported_with(
            "tracing: {otlp: '{receiver}'}\n",
            OTEL_EXPORTER_OTLP_HEADERS="Authorization=Bearer%20s3cret-env, x-scope = a b ")
        self.assertEqual((headers["authorization"], headers["X-Scope"]),
                         ("Bearer s3cret-env", "a b"))
        self.assertNotIn("s3cret", said)
        self.write("headers", "# of the receiver\nAuthorization: Bearer s3cret-file\n\n"
                              "x-scope:b\r\n")
        headers, said = self.exported_with("tracing: {otlp: '{receiver}', headers_file: headers, "
                                           "headers: 'x-key=s3cret-yaml'}\n")
        self.assertEqual((headers["authorization"], headers["x-scope"], headers["x-key"]),
                         ("Bearer s3cret-file", "b", "s3cret-yaml"))
        self.assertNotIn("s3cret", said)

    def test_a_password_in_the_address_of_a_receiver_is_not_logged(self):
        self.write("perdura.yaml", CONFIG + "tracing: {otlp: 'http://me:s3cret@127.0.0.1:1'}\n")
        server = self.serve("--config", "perdura.yaml", "--log-level", "debug")
        self.url = "http://%s:%d" % server.address
        self.perdura("enqueue", "ok", "--wait")
        wait_until(lambda: "tracing.export_failed" in server.log(), what="the failure in the log")
        self.assertIn("127.0.0.1:1", server.log())
        doctor = self.perdura("doctor", "--config", "perdura.yaml")
        self.assertNotIn("s3cret", server.log() + doctor.stdout + doctor.stderr)

    def test_headers_that_cannot_be_sent_stop_the_start_and_are_not_told(self):
        long = ",".join(f"h{i}=s3cret" for i in range(33))
        self.write("large", "x: s3cret\n" * 2000)
        self.write("bad", "fine: yes\ns3cret without a name\n")
        for setting, word in (("headers: 's3cret'", "header 1 of tracing.headers has"),
                              ("headers: 'a=b,=s3cret'", "header 2 of tracing.headers has no name"),
                              ("headers: 'host=s3cret'", "no name that can be sent"),
                              ("headers: 'a=s3cret%0d%0ab: c'", "cannot be sent"),
                              (f"headers: '{long}'", "more than 32"),
                              ("headers_file: nowhere", "cannot read tracing.headers_file"),
                              ("headers_file: large", "larger than"),
                              ("headers_file: bad", "header 2 of tracing.headers_file has no")):
            path = self.write("bad.yaml", f"tracing: {{otlp: 'http://127.0.0.1:1', {setting}}}\n")
            done = self.perdura("serve", "--config", path, "--listen", "127.0.0.1:0", code=1)
            self.assertIn(word, done.stderr)
            self.assertNotIn("s3cret", done.stderr)

    def test_nothing_is_sampled_with_a_ratio_of_zero(self):
        receiver = Receiver()
        self.addCleanup(receiver.stop)
        self.write("perdura.yaml", CONFIG + f"tracing: {{otlp: '{receiver.url}', ratio: 0}}\n")
        server = self.serve("--config", "perdura.yaml")
        self.url = "http://%s:%d" % server.address
        self.perdura("enqueue", "ok", "--wait")
        self.perdura("enqueue", "ok", "--wait", "--traceparent", CONTEXT)
        wait_until(lambda: len(receiver.spans) == 3, what="the spans of the second")
        self.assertEqual({span["traceId"] for span in receiver.spans}, {TRACE})

    def test_wrong_settings_stop_the_start(self):
        for text, word in (("tracing: {ratio: 2}", "0 to 1"), ("tracing: {ratio: -1}", "0 to 1"),
                           ("tracing: {otlp: '127.0.0.1:4318'}",
                            "bad.yaml:1: tracing.otlp must be an address such as http://"),
                           ("log_format: xml", "auto|text|json")):
            path = self.write("bad.yaml", text + "\n")
            done = self.perdura("serve", "--config", path, "--listen", "127.0.0.1:0", code=1)
            self.assertIn(word, done.stderr)


if __name__ == "__main__":
    unittest.main()
