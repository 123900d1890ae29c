"""The edges of HTTP: paths, methods, bodies, hosts, tokens, and whether the description is true."""
import concurrent.futures
import json
import pathlib
import re
import socket
import subprocess
import tempfile
import unittest

from harness import ApiTest, ROOT, binary

LOCAL = b"Host: localhost\r\n"
NOBODY = "01890000-0000-7000-8000-000000000000"  # an id that nothing has


class RouteTest(ApiTest):
    def test_unknown_paths_are_404(self):
        for path in ("/nothing", "/v1", "/v1/", "/v1/task", "/v1/tasks/", "/v1/tasks/a/b/c",
                     "/v1/tasks/x/nothing", "/index.html", "//", "/v1//tasks",
                     "/a/b/c/d/e/f/g/h/i/j/k"):
            self.expect_error(404, "not_found", "GET", path)
        self.expect_error(404, "not_found", "POST", "/v1/tasks/x:unknown")

    def test_known_paths_with_another_method_are_405_with_allow(self):
        for method, path, allow in [("PUT", "/v1/tasks", {"GET", "HEAD", "POST", "DELETE"}),
                                    ("GET", "/v1/tasks/x:cancel", {"POST"}),
                                    ("POST", "/v1/stats", {"GET", "HEAD"}),
                                    ("PATCH", "/", {"GET", "HEAD"}),
                                    ("OPTIONS", "/v1/queues/a", {"GET", "HEAD", "PATCH", "DELETE"}),
                                    ("PROPFIND", "/healthz", {"GET", "HEAD"})]:
            reply = self.request(method, path)
            self.assertEqual(reply.status, 405, path)
            self.assertEqual(set(reply.headers["Allow"].split(", ")), allow)
            self.assertEqual(reply.json["error"]["code"], "method_not_allowed")

    def test_head_answers_like_get_without_a_body(self):
        reply = self.request("HEAD", "/healthz")
        self.assertEqual((reply.status, reply.body, reply.headers["Content-Length"]),
                         (200, b"", "16"))

    def test_bad_escapes_are_400(self):
        for path in ("/v1/queues/%zz", "/v1/queues/%ff", "/v1/queues/a%00", "/v1/tasks?type=%f"):
            self.expect_error(400, "malformed", "GET", path)

    def test_unknown_parameters_are_422_everywhere(self):
        for path in ("/v1/stats", "/healthz", "/v1/queues", "/v1/workers", "/", "/metrics"):
            self.expect_error(422, "invalid", "GET", path + "?colour=red", field="colour")

    def test_the_start_page_is_html_with_a_strict_policy(self):
        reply = self.request("GET", "/")
        self.assertEqual(reply.status, 200)
        self.assertEqual(reply.headers["Content-Type"], "text/html; charset=utf-8")
        self.assertIn("default-src 'none'", reply.headers["Content-Security-Policy"])
        self.assertEqual(reply.headers["X-Content-Type-Options"], "nosniff")


# What redacted answers leave out: never required, and there for clients that may see it.
TASK_CONTENTS = {"payload", "data", "checkpoint_data", "recovery_metadata", "error", "last_error", "error_details"}
CONTENTS = {"Task": TASK_CONTENTS, "ClaimedTask": TASK_CONTENTS, "TaskSingle": TASK_CONTENTS | {"result"},
            "Event": {"detail"}, "Execution": {"result_data", "error_data"}, "Log": {"message", "context"},
            "Checkpoint": {"step_description", "recoverable_data", "database_state", "file_state"},
            "Result": {"result", "payload"}}


class OpenApiTest(ApiTest):
    def setUp(self):
        super().setUp()
        self.document = self.expect(200, "GET", "/openapi.json")

    def test_the_description_has_every_route_and_no_other(self):
        routes = (ROOT / "src" / "server" / "router.c").read_text()
        self.assertEqual(self.document["openapi"], "3.1.0")
        for path, methods in self.document["paths"].items():
            for method in methods:
                self.assertIn(f'ROUTE({method.upper()}, "{path}"', routes)
        count = sum(len(methods) for methods in self.document["paths"].values())
        self.assertEqual(count, routes.count("    ROUTE("))

    def test_the_description_names_the_scope_that_each_route_checks(self):  # D12
        routes = (ROOT / "src" / "server" / "router.c").read_text()
        scopes = (ROOT / "src" / "core" / "access" / "scope.h").read_text()
        words = dict(re.findall(r'X\((\w+), "([^"]+)"', scopes)) | {"OPEN": "none", "ANYONE": "any"}
        rows = re.findall(r'ROUTE\((\w+),\s*"([^"]+)",\s*\w+,\s*(?:(SCOPE|OWN|EVERYWHERE)\()?(\w+)', routes)
        rights = {"OWN": "own", "EVERYWHERE": "everywhere"}
        self.assertEqual(len(rows), routes.count("    ROUTE("))
        for method, path, kind, right in rows:
            operation = self.document["paths"][path][method.lower()]
            self.assertEqual(operation["x-perdura-scope"], words[right], f"{method} {path}")
            self.assertEqual(operation.get("x-perdura-right"), rights.get(kind), f"{method} {path}")

    def test_every_described_route_is_served(self):
        for path, methods in self.document["paths"].items():
            real = path.replace("{id}", NOBODY).replace("{name}", "q") \
                       .replace("{dependency_id}", NOBODY)
            reply = self.request("PUT", real)
            self.assertEqual(reply.status, 405, path)
            allowed = {m.lower() for m in reply.headers["Allow"].split(", ")} - {"head"}
            self.assertEqual(allowed, set(methods), path)

    def test_described_parameters_are_the_ones_taken(self):
        components = self.document["components"]["parameters"]
        for path, methods in self.document["paths"].items():
            if "get" not in methods or path == "/v1/stream" or path.endswith("/wait"):
                continue
            real = path.replace("{id}", NOBODY).replace("{name}", "q") \
                       .replace("{dependency_id}", NOBODY)
            for parameter in methods["get"].get("parameters", []):
                if "$ref" in parameter:
                    parameter = components[parameter["$ref"].rsplit("/", 1)[1]]
                if parameter["in"] == "query":
                    status, reply = self.api("GET", f"{real}?{parameter['name']}=")
                    if parameter["name"] != "cursor":  # known, so that it must have a value
                        self.assertEqual(status, 422, (path, parameter["name"]))
                        self.assertIn("is empty", reply["error"]["message"], (path, parameter["name"]))
                    else:
                        self.assertIn(status, (200, 404), path)

    def test_replies_have_the_described_members(self):
        schemas = self.document["components"]["schemas"]
        task = self.enqueue()
        self.register()
        [held] = self.claim()
        self.report("worker-1", self.element(held, "start"),
                    self.element(held, "log", message="m"),
                    self.element(held, "checkpoint", name="c"),
                    self.element(held, "complete", result=1))
        base = f"/v1/tasks/{task['id']}"
        needed = {name: set(schema.get("required", ())) for name, schema in schemas.items()}
        for name, more in (("TaskSingle", "Task"), ("ClaimedTask", "Task")):
            needed[name] = needed[more] | set(schemas[name]["allOf"][1]["required"])
        cases = [(self.task(task["id"]), "TaskSingle"), (held, "ClaimedTask"),
                 (self.expect(200, "GET", base + "/result"), "Result"),
                 (self.expect(200, "GET", "/v1/stats"), "Stats")]
        for path, name in [(base + "/events", "Event"), (base + "/executions", "Execution"),
                           (base + "/checkpoints", "Checkpoint"), (base + "/logs", "Log"),
                           ("/v1/workers", "Worker"), ("/v1/queues", "Queue"),
                           ("/v1/tasks", "Task")]:
            cases.append((self.expect(200, "GET", path)["items"][0], name))
        for got, name in cases:
            self.assertEqual(set(got), needed[name] | CONTENTS.get(name, set()), name)

    def plan(self):
        """One of everything that is planned with; returns the paths it is shown at."""
        job = self.expect(201, "POST", "/v1/jobs", {"name": "job", "category": "reports"})
        other = self.expect(201, "POST", "/v1/jobs", {"name": "other"})
        beneath = f"/v1/jobs/{job['id']}"
        schedule = self.expect(201, "POST", beneath + "/schedules", {"interval_seconds": 3600})
        pattern = self.expect(201, "POST", "/v1/recurring",
                              {"name": "p", "pattern_type": "daily", "template_job_id": job["id"]})
        self.expect(201, "POST", beneath + "/dependencies", {"depends_on_job_id": other["id"]})
        return {"Category": "/v1/categories/reports", "Job": beneath,
                "Schedule": f"/v1/schedules/{schedule['id']}",
                "Recurring": f"/v1/recurring/{pattern['id']}",
                "JobStats": beneath + "/stats", "Dependency": beneath + "/dependencies",
                "Forecast": "/v1/forecast",
                "Upcoming": f"/v1/schedules/{schedule['id']}/upcoming"}

    def test_replies_about_plans_have_the_described_members(self):
        schemas = self.document["components"]["schemas"]
        paths = self.plan()
        for name, path in paths.items():
            shown = self.expect(200, "GET", path)
            shown = shown["items"][0] if name == "Dependency" else shown
            self.assertEqual(set(shown), set(schemas[name]["properties"]) - {"redacted", "warnings"}, name)
        forecast = self.expect(200, "GET", paths["Forecast"])
        for item in forecast["items"]:
            self.assertLessEqual(set(item), set(schemas["ForecastItem"]["properties"]))
            self.assertLessEqual(set(schemas["ForecastItem"]["required"]), set(item))

    def test_described_fields_of_plans_are_the_ones_taken(self):
        schemas = self.document["components"]["schemas"]
        paths = self.plan()
        for name in ("Category", "Job", "Schedule", "Recurring"):
            for field in schemas[name + "Patch"]["properties"]:
                reply = self.request("PATCH", paths[name], {field: None})
                message = reply.json["error"]["message"] if reply.status == 422 else ""
                self.assertIn(reply.status, (200, 422), (name, field))
                self.assertNotIn("has no member", message)
            self.assertIn("has no member",
                          self.expect_error(422, "invalid", "PATCH", paths[name], {"x": 1},
                                            field="x")["message"])


class BodyTest(ApiTest):
    def test_F_H3_hostile_json_is_400(self):
        for body in (b'{"type":"\xff"}', b'{"type":"a\\u0000"}', b'{"type":"a\x00"}',
                     b"[" * 10000 + b"]" * 10000, b'{"type":"a","type":"b"}',
                     b'{"type":"a","payload":1e999}', b'{"type":"a"', b'{"type":"a"} x',
                     b"\xef\xbb\xbf{}", b'{"type":"\\ud800"}', b"nul", b"", b" "):
            self.expect_error(400, "malformed", "POST", "/v1/tasks", body)
        self.assertEqual(self.expect(200, "GET", "/v1/tasks")["items"], [])

    def test_F_H4_wrong_lengths_are_refused_before_the_body(self):
        for length, status in [(b"9223372036854775808", (400, 413)), (b"-1", (400,)),
                               (b"1,2", (400,)), (b"+5", (400,)), (b"0x5", (400,)),
                               (b"33554433", (413,))]:
            reply = self.raw(b"POST /v1/tasks HTTP/1.1\r\n" + LOCAL + b"Content-Length: " + length
                             + b"\r\n\r\n")
            self.assertIn(reply.status, status, length)
            self.assertIn("error", reply.json)
            self.assertEqual(reply.headers["Connection"], "close")

    def test_too_large_parts_are_413(self):
        big = "x" * (1024 * 1024)
        for body, field in [({"type": "t", "payload": big}, "payload"),
                            ({"type": "t", "data": big}, "data"),
                            ({"type": "t", "metadata": {"a": "x" * 16384}}, "metadata")]:
            self.expect_error(413, "too_large", "POST", "/v1/tasks", body, field=field)

    def test_a_large_payload_goes_in_and_comes_back(self):
        payload = "y" * (1024 * 1024 - 2)
        tasks = [self.enqueue(payload=payload, data=payload)["id"] for _ in range(40)]
        tasks += [self.enqueue(payload=i)["id"] for i in range(30)]
        self.assertEqual(len(self.task(tasks[0])["payload"]), len(payload))
        seen, cursor = [], ""
        while cursor is not None:
            page = self.expect(200, "GET", "/v1/tasks?limit=100" + cursor)
            seen += [t["id"] for t in page["items"]]
            cursor = page["next_cursor"] and "&cursor=" + page["next_cursor"]
        self.assertEqual(seen, tasks[::-1])

    def test_F_K5_pipelined_requests_are_answered_in_order(self):
        one = b"GET /v1/queues/q%d HTTP/1.1\r\n" + LOCAL + b"\r\n"
        for i in range(20):
            self.expect(200, "PATCH", f"/v1/queues/q{i}", {})
        with socket.create_connection(self.server.address, timeout=60) as sock:
            sock.sendall(b"".join(one % i for i in range(20)))
            sock.shutdown(socket.SHUT_WR)
            text = b""
            while chunk := sock.recv(65536):
                text += chunk
        names = [json.loads(line.split(b"\r\n\r\n")[1])["name"]
                 for line in text.split(b"HTTP/1.1 200 OK")[1:]]
        self.assertEqual(names, [f"q{i}" for i in range(20)])

    def test_many_clients_at_once(self):
        def work(i):
            task = self.enqueue(payload=i)
            return self.task(task["id"])["payload"] == i
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            self.assertTrue(all(pool.map(work, range(300))))


class HostTest(ApiTest):
    def get(self, headers):
        return self.raw(b"GET /healthz HTTP/1.1\r\n" + headers + b"\r\n").status

    def test_only_known_hosts_are_served(self):
        port = self.server.address[1]
        for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}", "LOCALHOST"):
            self.assertEqual(self.get(b"Host: " + host.encode() + b"\r\n"), 200, host)
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example",
                     "localhost.evil.example", "192.0.2.1"):
            self.assertEqual(self.get(b"Host: " + host.encode() + b"\r\n"), 403, host)

    def test_only_pages_of_this_host_may_ask(self):
        port = self.server.address[1]
        host = f"Host: localhost:{port}\r\nOrigin: ".encode()
        self.assertEqual(self.get(host + f"http://localhost:{port}\r\n".encode()), 200)
        for origin in (b"http://evil.example", b"null", b"http://localhost:1", b"file://"):
            self.assertEqual(self.get(host + origin + b"\r\n"), 403, origin)


class ForeignPages(ApiTest):
    """What a page of another site can make a browser send changes nothing (D12)."""

    def post(self, **headers):
        names = {"kind": "Content-Type", "site": "Sec-Fetch-Site", "origin": "Origin"}
        given = "".join(f"{names[key]}: {value}\r\n" for key, value in headers.items())
        body = '{"type":"t"}'
        reply = self.raw((f"POST /v1/tasks HTTP/1.1\r\nHost: localhost:{self.server.address[1]}\r\n"
                          f"{given}Content-Length: {len(body)}\r\n\r\n{body}").encode())
        return reply.status

    def test_only_json_that_says_so_is_taken(self):
        for kind in ("application/json", "Application/JSON", "application/json; charset=utf-8",
                     "application/json;charset=utf-8"):
            self.assertEqual(self.post(kind=kind), 201, kind)
        for kind in ("application/x-www-form-urlencoded", "text/plain", "multipart/form-data",
                     "text/plain;charset=UTF-8", "application/jsonp", "", "text/json"):
            self.assertEqual(self.post(kind=kind), 415, kind)
        reply = self.raw((f"POST /v1/tasks HTTP/1.1\r\nHost: localhost:{self.server.address[1]}\r\n"
                          "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}").encode())
        self.assertEqual(reply.json["error"]["code"], "unsupported_media_type")
        self.assertIn("Content-Type: application/json", reply.json["error"]["message"])

    def test_a_browser_must_say_what_it_sends(self):
        own = f"http://localhost:{self.server.address[1]}"
        self.assertEqual(self.post(), 201)  # no browser
        self.assertEqual(self.post(site="same-origin"), 415)
        self.assertEqual(self.post(origin=own), 415)
        self.assertEqual(self.post(origin=own, site="same-origin", kind="application/json"), 201)

    def test_other_sites_are_refused_whatever_their_origin_says(self):
        for site in ("cross-site", "same-site", "x"):
            self.assertEqual(self.post(site=site, kind="application/json"), 403, site)
        self.assertEqual(self.post(site="none", kind="application/json"), 201)
        reply = self.request("GET", "/v1/tasks", headers={"Sec-Fetch-Site": "cross-site"})
        self.assertEqual(reply.status, 403)
        reply = self.request("GET", "/", headers={"Sec-Fetch-Site": "cross-site"})  # a link to it
        self.assertEqual(reply.status, 200)

    def test_answers_are_for_this_origin_and_not_kept(self):
        for path in ("/v1/tasks", "/v1/nothing", "/metrics", "/healthz"):
            reply = self.request("GET", path)
            self.assertEqual(reply.headers["Cross-Origin-Resource-Policy"], "same-origin", path)
            self.assertEqual(reply.headers.get_all("Cache-Control"), ["no-store"], path)


class TokenTest(ApiTest):
    environment = {"PERDURA_TOKEN": "s3cret-token"}

    def test_the_token_is_needed_everywhere_but_for_probes_and_the_page_that_asks_for_it(self):
        for path in ("/v1/tasks", "/metrics", "/openapi.json", "/v1/stream", "/nothing"):
            reply = self.request("GET", path)
            self.assertEqual(reply.status, 401, path)
            self.assertTrue(reply.headers["WWW-Authenticate"].startswith("Bearer"))
            self.assertEqual(reply.json["error"]["code"], "unauthorized")
        self.assertEqual(self.request("GET", "/healthz").status, 200)
        self.assertEqual(self.request("GET", "/readyz").status, 200)

    def test_of_all_routes_only_probes_and_the_dashboards_files_are_open(self):
        """D12: every path of the description without a token, and ways around its beginning. Public keys are no secret,
        and a completion URL is its own credential."""
        described = self.request("GET", "/openapi.json", headers={
            "Authorization": "Bearer s3cret-token"}).json["paths"]
        routes = [(method.upper(), path.replace("{", "").replace("}", ""))
                  for path, methods in described.items() for method in methods
                  if method in ("get", "post", "put", "patch", "delete")]
        self.assertGreater(sum(path.startswith("/v1/") for _, path in routes), 60)
        open_paths = set()
        for method, path in routes:
            status = self.request(method, path, {} if method != "GET" else None).status
            if status != 401:
                open_paths.add(path)
        # A completion is asked for its own credential, the URL; keys are public.
        self.assertEqual(self.request("POST", "/v1/completions/id", {"result": 1}).status, 404)
        self.assertLessEqual(open_paths, {"/", "/assets/name", "/healthz", "/readyz",
                                          "/v1/completions/id", "/v1/identity/jwks.json"})
        self.assertEqual(self.request("GET", "/").status, 200)
        self.assertIn(self.request("GET", "/assets/nothing.js").status, (404,))
        for path in ("/assets", "/assets/../v1/tasks", "/assets/..%2fv1/tasks", "/assets//v1/tasks",
                     "//v1/tasks", "/v1/tasks/", "/V1/tasks", "/?/v1/tasks", "/v1", "/v1/completions/../tasks",
                     "/v1/completions/%2e%2e/tasks", "/v1/identity/jwks.json/../../tasks"):
            reply = self.request("GET", path)
            self.assertFalse(b'"items"' in reply.body, path)
            self.assertTrue(reply.status in (400, 401, 404) or path.startswith("/?"), path)

    def test_only_the_right_token_opens(self):
        for value, status in [("Bearer s3cret-token", 200), ("bearer s3cret-token", 200),
                              ("Bearer s3cret-toke", 401), ("Bearer s3cret-token2", 401),
                              ("Basic s3cret-token", 401), ("Bearer ", 401), ("", 401)]:
            reply = self.request("GET", "/v1/tasks", headers={"Authorization": value})
            self.assertEqual(reply.status, status, value)


class ListenTest(unittest.TestCase):
    def test_beyond_loopback_a_token_is_needed_to_start(self):
        with tempfile.TemporaryDirectory(prefix="perdura-api-") as folder:
            store = str(pathlib.Path(folder, "perdura.db"))
            done = subprocess.run([binary(), "serve", "--listen", "0.0.0.0:0", "--store", store],
                                  cwd=folder, capture_output=True, text=True, timeout=60,
                                  env={"PATH": "/usr/bin:/bin"})
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("PERDURA_TOKEN", done.stderr)
        self.assertNotIn("listening on", done.stdout)


if __name__ == "__main__":
    unittest.main()
