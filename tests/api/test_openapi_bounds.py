"""The numbers of openapi.json (F-H4): those of bounds.h, and those that the server keeps to. For every member of a
request body that has a bound, the value at the bound is taken and the next one is refused by its name."""
import itertools
import json
import re
import unittest

import openapi_check
from harness import ROOT, ApiTest

SCHEMAS = openapi_check.document().document["components"]["schemas"]
# Where a number stands in the document: the component, the member (or None), the word.
FROM_BOUNDS = {
    "BOUND_NAME_BYTES": [("Name", None, "x-max-bytes"), ("QueueName", None, "x-max-bytes"),
                         ("ReportElement", "name", "x-max-bytes"), ("ReportElement", "state", "x-max-bytes")],
    "BOUND_KEY_BYTES": [("Key", None, "x-max-bytes"), ("WorkerRequest", "hostname", "x-max-bytes")],
    "BOUND_URL_BYTES": [("Url", None, "x-max-bytes")],
    "BOUND_DELAY_MS": [("Delay", None, "maximum"), ("TaskRequest", "timeout_ms", "maximum"),
                       ("Rate", "per_ms", "maximum")],
    "BOUND_PAYLOAD_BYTES": [("Payload", None, "x-max-bytes")],
    "BOUND_DATA_BYTES": [("ReportElement", "database_state", "x-max-bytes"),
                         ("ReportElement", "file_state", "x-max-bytes")],
    "BOUND_METADATA_BYTES": [("TaskRequest", "metadata", "x-max-bytes"), ("CategoryPatch", "configuration", "x-max-bytes"),
                             ("ReportElement", "metadata", "x-max-bytes"), ("ReportElement", "detail", "x-max-bytes")],
    "BOUND_RESULT_BYTES": [("ReportElement", "result", "x-max-bytes")],
    "BOUND_LOG_LINE_BYTES": [("ReportElement", "context", "x-max-bytes")],
    "BOUND_ERROR_BYTES": [("Reason", None, "x-max-bytes"), ("ReportElement", "description", "x-max-bytes")],
    "BOUND_DESCRIPTION_BYTES": [("JobPatch", "description", "x-max-bytes"),
                                ("CategoryPatch", "description", "x-max-bytes")],
    "BOUND_PATTERN_BYTES": [("RecurringPatch", "pattern_config", "x-max-bytes")],
    "BOUND_RETRIES": [("TaskRequest", "max_retries", "maximum"), ("TaskRequest", "max_crashes", "maximum"),
                      ("TaskRequest", "max_continuations", "maximum"), ("JobPatch", "max_retries", "maximum"),
                      ("CategoryPatch", "default_max_retries", "maximum")],
    "BOUND_TAGS": [("TaskRequest", "tags", "maxItems")],
    "BOUND_DEPENDS_ON": [("TaskRequest", "depends_on", "maxItems")],
    "BOUND_ARRAY": [("ReportElement", "tasks", "maxItems")],
    "BOUND_REPORT_ELEMENTS": [("HeartbeatRequest", "tasks", "maxItems")],
    "BOUND_CLAIM_MAX": [("ClaimRequest", "max", "maximum")],
    "BOUND_CLAIM_QUEUES": [("ClaimRequest", "queues", "maxItems"), ("WorkerRequest", "queues", "maxItems")],
    "BOUND_CLAIM_TYPES": [("ClaimRequest", "types", "maxItems"), ("WorkerRequest", "types", "maxItems"),
                          ("WorkerRequest", "categories", "maxItems")],
    "BOUND_JOB_CONCURRENT": [("JobPatch", "max_concurrent", "maximum")],
    "BOUND_MISFIRE_CAP": [("SchedulePatch", "misfire_cap", "maximum")],
    "BOUND_MISFIRE_GRACE_MS": [("SchedulePatch", "misfire_grace_ms", "maximum")],
    "BOUND_JITTER_MS": [("SchedulePatch", "jitter_ms", "maximum")],
    "BOUND_PREVIEW": [("SchedulePreview", "count", "maximum")],
}
# Bounded, but "x" repeated means nothing there: only what is beyond the bound is sent.
HAS_MEANING = {"cron_expression", "timezone", "traceparent", "tracestate", "pattern_config", "dependency_config",
               "depends_on", "tasks", "from_checkpoint", "callback_url", "type_limits"}
WITH = {"target_method": {"target_service": "s"}}  # what goes along


def bounds_h():
    text = (ROOT / "src/core/bounds.h").read_text()
    found = re.findall(r"#define (BOUND_\w+) (\(?[-INT64_C()\d *]+\)?)", text)
    return {name: eval(value.replace("INT64_C", "")) for name, value in found}  # numbers of our own


def plain(schema):
    """Without null and references, and of a choice the number."""
    schema = openapi_check.document().resolve(schema)
    choices = [c for c in schema.get("oneOf", []) if c != {"type": "null"}]
    return plain(choices[0]) if choices else schema


def text_of(count, schema, letter="x"):
    start = "http://h/" if "https?" in schema.get("pattern", "") else ""
    return start + letter * (count - len(start))


def json_of(count, schema):
    """A value whose JSON has this many bytes."""
    if "object" in schema.get("type", ["object"]):
        return {"a": "x" * (count - len(json.dumps({"a": ""})))}
    return "x" * (count - 2)


def items_of(count, schema):
    pointers = plain(schema["items"]).get("minLength") is None
    return [f"/p{i}" if pointers else f"n{i}" for i in range(count)]


def edges(name, schema):
    """(value, is taken) at each bound and behind it."""
    schema = plain(schema)
    kinds = schema.get("type", [])
    if "minimum" in schema:
        yield from ((schema["minimum"], True), (schema["minimum"] - 1, False))
    if "maximum" in schema:
        yield from ((schema["maximum"], True), (schema["maximum"] + 1, False))
    if "maxItems" in schema and name not in HAS_MEANING:
        yield from ((items_of(schema["maxItems"], schema), True), (items_of(schema["maxItems"] + 1, schema), False))
    if schema.get("minLength") and name not in HAS_MEANING:
        yield ("", False)
    bytes_max = schema.get("x-max-bytes")
    if bytes_max is None:
        return
    make = text_of if "string" in kinds else json_of
    if name not in HAS_MEANING:
        yield make(bytes_max, schema), True
    yield make(bytes_max + 1, schema), False
    if "string" in kinds and "pattern" not in schema and name not in HAS_MEANING:  # bytes, not characters
        yield text_of(bytes_max // 2, schema, "é"), True
        yield text_of(bytes_max // 2 + 1, schema, "é"), False


class FromTheHeader(unittest.TestCase):
    def test_bounds_of_the_document_are_those_of_the_header(self):
        bounds = bounds_h()
        for constant, places in FROM_BOUNDS.items():
            for component, member, word in places:
                schema = SCHEMAS[component]
                schema = plain(schema["properties"][member]) if member else schema
                self.assertEqual(schema[word], bounds[constant], (constant, component, member))

    def test_error_codes_and_their_statuses_are_those_of_the_table(self):
        table = re.findall(r'X\(ERR_\w+, (\d+), \d, "(\w+)"\)', (ROOT / "src/base/err.h").read_text())
        self.assertEqual(sorted(SCHEMAS["ErrorCode"]["enum"]), sorted(word for _, word in table))
        document = openapi_check.document().document
        told = {status for item in document["paths"].values() for operation in item.values()
                for status in operation["responses"]} | set(re.findall(r"\b\d{3}\b", document["info"]["description"]))
        self.assertLessEqual({status for status, _ in table}, told)

    def test_a_bound_in_bytes_is_also_one_in_characters(self):
        def walk(node):
            if isinstance(node, dict):
                if "x-max-bytes" in node and "string" in node.get("type", ()):
                    self.assertEqual(node["x-max-bytes"], node.get("maxLength"), node)
                if "maxLength" in node and "A-Z" not in node.get("pattern", ""):  # plain ASCII needs no other bound
                    self.assertIn("x-max-bytes", node)
            for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
                walk(inner)
        walk(openapi_check.document().document)


class ByTheServer(ApiTest):
    def members(self, path, method="POST"):
        document = openapi_check.document()
        schema = document.flatten(plain(document.request_schema(method, path)))
        return schema["properties"].items()

    def try_edges(self, method, path, base, taken=(200, 201), skip=()):
        """Sends every edge; returns how many there were. base: what else must be in the body."""
        count = 0
        for name, schema in self.members(path, method):
            for value, fits in edges(name, schema) if name not in skip else ():
                body = {**base, **WITH.get(name, {}), name: value}
                with self.subTest(method=method, path=path, member=name, fits=fits, value=json.dumps(value)[:60]):
                    reply = self.request(method, path, body)
                    self.assertIn(reply.status, taken if fits else (413, 422), reply.body[:300])
                    if not fits:
                        self.assertIn(name, json.dumps(reply.json["error"]))
                count += 1
        return count

    def name_categories(self):
        """Tasks and jobs may only name categories that are there."""
        for name in ("x" * 200, "é" * 100):
            self.expect(201, "POST", "/v1/categories", {"name": name})

    def test_bounds_of_tasks(self):
        numbers = itertools.count()
        base = {"type": "t"}
        self.name_categories()
        trace = "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-"  # of a version to come: may be longer
        self.expect(201, "POST", "/v1/tasks", {**base, "traceparent": trace.ljust(512, "x")})
        self.expect_error(422, "invalid", "POST", "/v1/tasks", {**base, "traceparent": trace.ljust(513, "x")},
                          field="traceparent")
        self.assertGreater(self.try_edges("POST", "/v1/tasks", base, skip=(
            "external_id", "idempotency_key", "encrypt_fields")), 60)  # the last one needs a key
        for name, bound in (("external_id", 256), ("idempotency_key", 256)):  # each may be there once
            key = f"{next(numbers)}".ljust(bound, "k")
            self.expect(201, "POST", "/v1/tasks", {**base, name: key})
            self.expect_error(422, "invalid", "POST", "/v1/tasks", {**base, name: key + "k"}, field=name)
        self.expect(201, "POST", "/v1/tasks", [base] * 10000)
        self.expect_error(413, "too_large", "POST", "/v1/tasks", [base] * 10001)
        self.expect_error(422, "invalid", "POST", "/v1/tasks", [])

    def test_bounds_of_what_users_do_to_a_task(self):
        task = self.enqueue()["id"]
        for verb, base, taken in (("prioritize", {"priority": 1}, (200, 409)), ("pause", {}, (200, 409)),
                                  ("fork", {}, (200, 409)), ("cancel", {}, (200, 409)), ("recover", {}, (200, 409))):
            self.assertGreater(self.try_edges("POST", f"/v1/tasks/{task}:{verb}", base, taken), 1)
        self.try_edges("POST", "/v1/recovery", {"task_id": task}, (201, 409))

    def test_bounds_of_queues(self):
        self.assertGreater(self.try_edges("PATCH", "/v1/queues/q", {}), 7)
        for field in ("rate", "key_rate"):
            for name, schema in SCHEMAS["Rate"]["properties"].items():
                for value, fits in edges(name, schema):
                    body = {field: {"count": 1, name: value}}
                    self.assertEqual(self.request("PATCH", "/v1/queues/q", body).status, 200 if fits else 422, body)
        limits = [{"type": f"t{i}", "concurrency": 1} for i in range(257)]
        self.expect(200, "PATCH", "/v1/queues/q", {"type_limits": limits[:256]})
        self.expect(200, "PATCH", "/v1/queues/q", {"type_limits": {"t": 1000000, "u": {"concurrency": 1}}})
        for wrong in (limits, [{"type": "t", "concurrency": 1000001}], [{"concurrency": 1}], [5], [None], {"t": 1000001},
                      {"t": {"type": "u", "concurrency": 1}}, {"t": -1}, [{"type": "x" * 201}], {"x" * 201: 1}):
            self.expect_error(422, "invalid", "PATCH", "/v1/queues/q", {"type_limits": wrong})

    def test_bounds_of_what_is_planned(self):
        job = self.expect(201, "POST", "/v1/jobs", {"name": "job"})["id"]
        category = self.expect(201, "POST", "/v1/categories", {"name": "category"})["id"]
        schedule = self.expect(201, "POST", f"/v1/jobs/{job}/schedules", {"interval_seconds": 3600})["id"]
        pattern = self.expect(201, "POST", "/v1/recurring", {"name": "p", "pattern_type": "daily",
                                                             "template_job_id": job})["id"]
        for path, least in ((f"/v1/categories/{category}", 12),
                            (f"/v1/schedules/{schedule}", 8), (f"/v1/recurring/{pattern}", 4)):
            self.assertGreater(self.try_edges("PATCH", path, {}), least, path)
        self.expect(200, "PATCH", f"/v1/categories/{category}", {"name": "category"})
        self.name_categories()
        self.assertGreater(self.try_edges("PATCH", f"/v1/jobs/{job}", {}), 25)
        self.try_edges("POST", "/v1/schedules:preview", {"interval_seconds": 3600})
        self.try_edges("POST", f"/v1/jobs/{job}/dependencies", {"depends_on_job_id": job})
        self.try_edges("POST", f"/v1/jobs/{job}:run", {})

    def test_null_is_taken_where_the_document_says_so_and_nowhere_else(self):
        job = self.expect(201, "POST", "/v1/jobs", {"name": "job"})["id"]
        category = self.expect(201, "POST", "/v1/categories", {"name": "category"})["id"]
        schedule = self.expect(201, "POST", f"/v1/jobs/{job}/schedules",
                               {"cron_expression": "0 0 * * *"})["id"]
        pattern = self.expect(201, "POST", "/v1/recurring", {"name": "p", "pattern_type": "daily",
                                                             "template_job_id": job})["id"]
        needed = {"cron_expression"}  # of this schedule: null takes away when it fires
        for method, path, base in (("PATCH", f"/v1/jobs/{job}", {}), ("PATCH", f"/v1/categories/{category}", {}),
                                   ("PATCH", f"/v1/schedules/{schedule}", {}),
                                   ("PATCH", f"/v1/recurring/{pattern}", {}), ("PATCH", "/v1/queues/q", {}),
                                   ("POST", "/v1/tasks", {"type": "t"}), ("POST", "/v1/workers", {})):
            for name, schema in self.members(path, method):
                fits = not openapi_check.document().problems(schema, None) and name not in needed
                reply = self.request(method, path, {**base, name: None})
                self.assertEqual(reply.status < 300, fits, (method, path, name, reply.body[:200]))

    def test_bounds_of_workers_and_their_reports(self):
        self.assertGreater(self.try_edges("POST", "/v1/workers", {}), 12)
        self.register(queues=["default"])
        self.assertGreater(self.try_edges("POST", "/v1/workers/worker-1:claim", {"types": ["none"]},
                                          skip=("wait_ms",)), 4)
        self.enqueue()
        [held] = self.claim()
        self.report_ok("worker-1", held, "start")
        needed = {"log": {"message": "m"}, "checkpoint": {"name": "n"}, "spawn": {"tasks": []}}
        for name, schema in SCHEMAS["ReportElement"]["properties"].items():
            op = re.match(r"[a-z]*", schema.get("description", ""))[0]
            if name in ("task_id", "lease_token", "op", "seq") or op in ("complete", "continue", "fail"):
                continue  # those end the attempt: test_report_bounds.py
            for value, fits in edges(name, schema):
                item = self.report_one("worker-1", held, op, **{**needed.get(op, {}), name: value})
                self.assertEqual(item["ok"], fits, (name, json.dumps(value)[:60], item))
        for op, name in (("complete", "result"), ("fail", "details"), ("continue", "delay_ms")):
            for value, fits in edges(name, SCHEMAS["ReportElement"]["properties"][name]):
                if not fits:
                    self.assertFalse(self.report_one("worker-1", held, op, **{name: value})["ok"], name)


if __name__ == "__main__":
    unittest.main()
