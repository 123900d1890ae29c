"""A server of its own for every test: started in a temporary folder on a free port, stopped at the
end. Standard library only. PERDURA_BUILD names the folder of the
binary, PERDURA_BINARY the binary itself; build/perdura otherwise."""
import http.client
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

import openapi_check

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEADLINE_S = 60  # only ever reached when a test fails


def binary():
    folder = os.environ.get("PERDURA_BUILD", str(ROOT / "build"))
    return os.environ.get("PERDURA_BINARY", os.path.join(folder, "perdura"))


def sanitizer():
    """What the binary was built with: "", "address,undefined" or "thread"."""
    cache = pathlib.Path(binary()).parent / "CMakeCache.txt"
    lines = cache.read_text().splitlines() if cache.exists() else []
    return next((x.split("=", 1)[1] for x in lines if x.startswith("PERDURA_SANITIZE:")), "")


def free_port():
    """For a server that is started later, or again: below the ports the system gives to clients, so
    that no other program takes it meanwhile."""
    while True:
        port = random.SystemRandom().randrange(10000, 30000)
        with socket.socket() as sock:
            try:
                sock.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


def wait_until(predicate, deadline_s=DEADLINE_S, what="the condition"):
    """Asks until the answer is true and returns it."""
    end = time.monotonic() + deadline_s
    while True:
        value = predicate()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not come true within {deadline_s} s")
        time.sleep(0.01)


class Server:
    """One process of `perdura serve`."""

    def __init__(self, folder, *arguments, environment=None):
        self.folder = folder
        self.store = os.path.join(folder, "perdura.db")
        self.arguments = arguments
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("PERDURA_T")}
        self.environment.update(environment or {})
        self.process = None
        self.address = None

    def start(self):
        command = [binary(), "serve", "--listen", "127.0.0.1:0", "--store", self.store]
        with open(os.path.join(self.folder, "stderr.log"), "ab") as log:
            self.process = subprocess.Popen([*command, *self.arguments], cwd=self.folder,
                                            stdout=subprocess.PIPE, stderr=log,
                                            env=self.environment, text=True)
        for line in self.process.stdout:
            if line.startswith(("listening on http://", "listening on https://")):
                host, port = line.split("//")[1].strip().rsplit(":", 1)
                self.address = (host, int(port))
                return self
        raise AssertionError("the server did not start: " + self.log())

    def log(self):
        return pathlib.Path(self.folder, "stderr.log").read_text(errors="replace")

    def stop(self, signum=signal.SIGTERM):
        if self.process is None:
            return 0
        if self.process.poll() is None:
            self.process.send_signal(signum)
        try:
            code = self.process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError("the server did not stop: " + self.log()) from None
        finally:
            self.process.stdout.close()
        self.process = None
        return code


class Reply:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self):
        return json.loads(self.body) if self.body else None


class ApiTest(unittest.TestCase):
    arguments = ()
    environment = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="perdura-api-")
        self.server = Server(self.folder, *self.arguments, environment=self.environment)
        self.local = threading.local()
        self.addCleanup(self.tear_server_down)
        self.write_configuration()
        self.server.start()

    def write_configuration(self):
        """Files in self.folder that the server reads when it starts."""

    def tear_server_down(self):
        try:
            code = self.server.stop()
            log = self.server.log()
            self.assertNotIn("Sanitizer", log, log)
            self.assertIn(code, (0, -signal.SIGKILL), log)
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    # Requests. Each thread has one connection that is kept alive.

    def connection(self, timeout=90):
        return http.client.HTTPConnection(*self.server.address, timeout=timeout)

    def request(self, method, path, body=None, headers=None):
        """body: bytes as they are, anything else as JSON. Returns a Reply."""
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        connection = getattr(self.local, "connection", None)
        if connection is None or connection.port != self.server.address[1]:
            connection = self.local.connection = self.connection()
            self.addCleanup(connection.close)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            reply = Reply(answer.status, answer.headers, answer.read())
        except Exception:
            connection.close()
            self.local.connection = None
            raise
        self.check_described(method, path, body, reply)
        return reply

    def check_described(self, method, path, body, reply):
        """Requests that are taken, and all answers, are as openapi.json says."""
        kind = reply.headers.get_content_type() if reply.body else None
        answer = reply.json if kind == "application/json" else reply.body or None
        problems = openapi_check.check(method, path, reply.status, answer)
        if 200 <= reply.status < 300:
            problems += openapi_check.check_request(method, path, body, answer)
        self.assertEqual(problems, [], "not as openapi.json says")

    def api(self, method, path, body=None, headers=None):
        reply = self.request(method, path, body, headers)
        return reply.status, reply.json

    def raw(self, data, timeout=DEADLINE_S):
        """Sends bytes, reads until the server closes or has sent one whole reply."""
        with socket.create_connection(self.server.address, timeout=timeout) as sock:
            sock.sendall(data)
            answer = http.client.HTTPResponse(sock)
            answer.begin()
            return Reply(answer.status, answer.headers, answer.read())

    def expect(self, status, method, path, body=None, headers=None):
        reply = self.request(method, path, body, headers)
        self.assertEqual(reply.status, status, f"{method} {path}: {reply.body[:500]!r}")
        return reply.json

    def expect_error(self, status, code, method, path, body=None, headers=None, field=None):
        error = self.expect(status, method, path, body, headers)["error"]
        self.assertEqual(error["code"], code, error)
        self.assertTrue(error["message"])
        if field is not None:
            self.assertEqual(error.get("field"), field, error)
        return error

    # Domain words.

    def enqueue(self, type="test", **fields):
        return self.expect(201, "POST", "/v1/tasks", {"type": type, **fields})

    def task(self, task_id):
        return self.expect(200, "GET", f"/v1/tasks/{task_id}")

    def events(self, task_id):
        return self.expect(200, "GET", f"/v1/tasks/{task_id}/events")["items"]

    def register(self, worker="worker-1", queues=("default",), **fields):
        body = {"id": worker, "hostname": "host", "pool_size": 4, "queues": list(queues),
                "version": "1", **fields}
        return self.expect(201, "POST", "/v1/workers", body)["id"]

    def claim(self, worker="worker-1", max=1, wait_ms=0, **fields):
        body = {"max": max, "wait_ms": wait_ms, **fields}
        return self.expect(200, "POST", f"/v1/workers/{worker}:claim", body)["tasks"]

    def report(self, worker, *elements):
        reply = self.expect(200, "POST", f"/v1/workers/{worker}:report", list(elements))
        self.assertEqual(len(reply["items"]), len(elements))
        return reply["items"]

    def element(self, task, op, **fields):
        return {"task_id": task["id"], "lease_token": task["lease_token"], "op": op, **fields}

    def report_one(self, worker, task, op, **fields):
        return self.report(worker, self.element(task, op, **fields))[0]

    def report_ok(self, worker, task, op, **fields):
        item = self.report_one(worker, task, op, **fields)
        self.assertTrue(item["ok"], item)
        return item

    def complete(self, worker, task, result=None):
        return self.report_ok(worker, task, "complete", result=result)

    def in_thread(self, function, *arguments):
        """Runs it; .result() waits and hands on what it returned or raised."""
        return Background(function, *arguments)

    def wait_for_waiting(self, what, count):
        """Until so many claims ('waiting_claims') or waits ('waiting_waits') are parked."""
        wait_until(lambda: self.api("GET", "/v1/stats")[1][what] >= count, what=what)


class Background:
    def __init__(self, function, *arguments):
        self.value = self.error = None
        self.thread = threading.Thread(target=self.run, args=(function, *arguments), daemon=True)
        self.thread.start()

    def run(self, function, *arguments):
        try:
            self.value = function(*arguments)
        except BaseException as error:  # handed on in result()
            self.error = error

    def result(self, deadline_s=DEADLINE_S):
        self.thread.join(deadline_s)
        if self.thread.is_alive():
            raise AssertionError("the background call did not end")
        if self.error:
            raise self.error
        return self.value
