"""Logs hold no payloads and no secrets (F-J10): strings that must never show are put everywhere a
user or an operator can put one, everything that can happen to a task happens at debug level, and all
output of server and worker is searched. Run: PERDURA_BUILD=build python3 -m unittest
tests/cli/test_canary.py"""
import http.server
import json
import os
import pathlib
import signal
import subprocess
import threading
import unittest

import cli_harness
import test_tracing
from cli_harness import DEADLINE_S, binary, environment, wait_until


def canary(name):
    return f"canary-{name}-8f3a"


CONFIG = f"""
log_level: debug
callbacks:
  secret: {canary("callback-secret")}
  allow: ["http://127.0.0.1"]
tracing: {{otlp: '{{receiver}}'}}
handlers:
  - type: ok
    command: ["sh", "-c", "cat > /dev/null; echo {canary("output")}"]
    environment: {{SECRET: {canary("handler-environment")}}}
  - type: bad
    command: ["sh", "-c", "cat >&2; exit 3"]
    retry_delay: 1ms
    max_retries: 1
  - type: gone
    command: ["/nowhere/{canary("command")}"]
    max_retries: 0
  - type: slow
    command: ["sleep", "100"]
    timeout: 100ms
    max_retries: 0
  - type: spawn
    command:
      - sh
      - -c
      - >-
        cat > /dev/null;
        echo '{{"spawn":[{{"type":"ok","{canary("spawn-member")}":1}}]}}' >&3;
        echo '{{"spawn":[{{"type":"ok","category":"{canary("spawn-category")}"}}]}}' >&3;
        echo '{{"{canary("control-word")}":1}}' >&3;
        echo '{canary("control-line")}' >&3
"""


class CanaryTest(cli_harness.FolderTest):
    def setUp(self):
        super().setUp()
        self.receiver = test_tracing.Receiver()
        self.addCleanup(self.receiver.stop)
        self.write("perdura.yaml", CONFIG.replace("{receiver}", self.receiver.url))
        self.server = self.serve("--config", "perdura.yaml", PERDURA_TOKEN=canary("token"))
        self.url = "http://%s:%d" % self.server.address

    def ask(self, method, path, body=None, token=canary("token"), **headers):
        connection = cli_harness.harness.http.client.HTTPConnection(*self.server.address,
                                                                    timeout=DEADLINE_S)
        try:
            if body is not None and not isinstance(body, bytes):
                body = json.dumps(body).encode()
            connection.request(method, path, body,
                               {"Authorization": f"Bearer {token}", **headers})
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text else None
        finally:
            connection.close()

    def enqueue(self, type, **fields):
        status, task = self.ask("POST", "/v1/tasks", {
            "type": type, "payload": {"password": canary("payload")},
            "data": {"d": canary("data")}, "metadata": {"secret": canary("metadata")},
            "idempotency_key": canary("key") + type, "user_id": canary("user"),
            "context_key": canary("context"), "name": canary("name"), "note": canary("note"),
            **fields})
        self.assertEqual(status, 201, task)
        return task["id"]

    def wait_ended(self, *ids):
        for task_id in ids:
            wait_until(lambda i=task_id: self.ask("GET", f"/v1/tasks/{i}")[1]["status"] in
                       ("completed", "failed", "dead_letter", "cancelled"), what=task_id)

    def callbacks(self):
        """A receiver that refuses at first, and a URL without a server."""
        class Handler(http.server.BaseHTTPRequestHandler):
            tries = 0

            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                Handler.tries += 1
                self.send_response(500 if Handler.tries == 1 else 200)
                self.send_header("X-Answer", canary("receiver-header"))
                self.end_headers()
                self.wfile.write(canary("receiver-body").encode())

            def log_message(self, *_):
                pass

        receiver = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=receiver.serve_forever, args=(0.01,), daemon=True).start()
        self.addCleanup(receiver.server_close)
        self.addCleanup(receiver.shutdown)
        self.wait_ended(self.enqueue("ok", idempotency_key="c1", callback_url="http://127.0.0.1:%d/%s"
                                     % (receiver.server_address[1], canary("callback-path"))))
        wait_until(lambda: Handler.tries >= 2, what="the callback")
        self.wait_ended(self.enqueue("ok", idempotency_key="c2", callback_url="http://127.0.0.1:1/x?"
                                     + canary("callback-query")))

    def refusals(self):
        bodies = [b'{"type": ' + canary("malformed").encode(),
                  {"type": "ok", canary("member"): 1}, {"type": canary("refused-type") * 20},
                  {"type": "ok", "payload": canary("large") * 100000},
                  {"type": "ok", "callback_url": "http://" + canary("host") + "/"},
                  {"type": "ok", "priority": canary("priority")},
                  {"type": "ok", "category": canary("category")},
                  {"type": "ok", "depends_on": [canary("dependency")]}]
        for body in bodies:
            self.assertGreaterEqual(self.ask("POST", "/v1/tasks", body)[0], 400)
        self.assertEqual(self.ask("GET", "/v1/stats", token=canary("wrong-token"))[0], 401)
        for path in (f"/v1/tasks/{canary('path')}", f"/v1/tasks?tag={canary('query')}&x=1",
                     f"/{canary('route')}", f"/v1/queues/{canary('queue')}"):
            self.ask("GET", path)
        self.ask("POST", f"/v1/workers/{canary('worker')}:claim", {"max": canary("claim")})
        self.ask("POST", f"/v1/workers/{canary('worker')}:report",
                 [{"op": canary("op"), "task_id": canary("id")}])

    def by_hand(self):
        """A worker over HTTP: results, errors, checkpoints, lines, a stale report."""
        self.ask("POST", "/v1/workers", {"id": "w", "queues": ["hands"], "pool_size": 1})
        task_id = self.enqueue("hand", queue="hands", max_retries=0)
        [task] = self.ask("POST", "/v1/workers/w:claim", {"max": 1})[1]["tasks"]
        lease = {"task_id": task_id, "lease_token": task["lease_token"]}
        self.ask("POST", "/v1/workers/w:report", [
            {**lease, "op": "start"},
            {**lease, "op": "log", "level": "ERROR", "message": canary("log-line"),
             "context": {"c": canary("log-context")}},
            {**lease, "op": "checkpoint", "name": "c", "progress": 5,
             "data": {"x": canary("checkpoint")}},
            {**lease, "op": "progress", "progress": 7, "state": canary("state")},
            {**lease, "op": "spawn", "tasks": [{"type": "ok", canary("spawn"): 1}]},
            {**lease, "lease_token": 999, "op": "complete", "result": canary("stale-result")},
            {**lease, "op": "fail", "error": canary("error"), "details": {"d": canary("details")},
             "retryable": False}])
        self.wait_ended(task_id)

    def worker_output(self):
        self.write("worker.yaml", "handlers:\n  - type: remote\n    command: "
                   "['sh', '-c', 'cat; exit 1']\n    max_retries: 0\n")
        with open(os.path.join(self.folder, "worker.log"), "wb") as log:
            worker = subprocess.Popen(
                [binary(), "worker", "--config", "worker.yaml", "--queues", "far", "--log-level",
                 "debug"], cwd=self.folder, stdout=log, stderr=log,
                env=environment(PERDURA_TOKEN=canary("token"), PERDURA_SERVER=self.url))
        try:
            self.wait_ended(self.enqueue("remote", queue="far"))
        finally:
            worker.send_signal(signal.SIGTERM)
            worker.wait(DEADLINE_S)
        return pathlib.Path(self.folder, "worker.log").read_text()

    def assert_clean(self, text, where):
        found = [line for line in text.splitlines() if "canary-" in line]
        self.assertEqual(found, [], where)

    def test_no_output_holds_a_payload_or_a_secret(self):
        ids = [self.enqueue(type) for type in ("ok", "bad", "gone", "slow", "spawn")]
        cancelled = self.enqueue("ok", idempotency_key="later", delay_ms=3600000)
        self.ask("POST", f"/v1/tasks/{cancelled}:cancel", {"reason": canary("reason")})
        self.callbacks()
        self.refusals()
        self.by_hand()
        worker_log = self.worker_output()
        self.wait_ended(*ids)
        wait_until(lambda: len(self.receiver.of(ids[0])) == 3, what="spans")
        self.assertEqual(self.server.stop(), 0)
        log = self.server.log()
        for event in ("http.answered", "webhook.failed", "webhook.delivered", "report.refused",
                      "node.stopping"):
            self.assertIn(f'"event":"{event}"', log)  # the search has something to search
        self.assert_clean(log, "the server's log")
        self.assert_clean(worker_log, "the worker's output")
        self.assert_clean(json.dumps(self.receiver.spans), "spans")
        self.assertEqual(self.receiver.faults, [])

    def test_a_password_of_the_database_is_not_shown(self):
        self.server.stop()
        os.unlink(os.path.join(self.folder, "perdura.yaml"))  # doctor names commands of handlers
        stores = [({}, f"postgres://u:{canary('password')}@127.0.0.1:1/db"),
                  ({}, f"postgres://u@127.0.0.1:1/db?password={canary('password')}"),
                  ({}, f"postgres://u:x@127.0.0.1:1/db?password=y&password={canary('password')}"),
                  ({}, f"postgres://u@127.0.0.1:1/db?passwor%64={canary('password')}"),
                  ({}, f"postgres://u@127.0.0.1:1/db?sslpassword={canary('password')}"),
                  ({}, f"postgres://u@127.0.0.1:1/db?nonsense={canary('password')}"),
                  ({}, f"postgres://u@127.0.0.1:1/db?password={canary('password')}%zz"),
                  ({}, f"postgres://u:{canary('password')}/x@127.0.0.1:1/db"),
                  ({}, f"postgres://u:x@{canary('password')}@127.0.0.1:1/db"),
                  ({}, f"postgres://u:%zz{canary('password')}@127.0.0.1:1/db"),
                  ({}, f"postgres:/u:{canary('password')}@127.0.0.1:1/db"),
                  ({}, f"host=127.0.0.1 password={canary('password')}"),
                  ({"DB_HOST": "127.0.0.1", "DB_PORT": "1", "DB_NAME": "d", "DB_USER": "u",
                    "DB_PASSWORD_FILE": self.write("password", canary("password"))}, None),
                  ({"DB_HOST": "127.0.0.1", "DB_PORT": "1", "DB_NAME": "d", "DB_USER": "u",
                    "DB_PASSWORD": canary("password")}, None)]
        for variables, store in stores:
            for command in (("serve", "--listen", "127.0.0.1:0", "--log-level", "debug"),
                            ("migrate", "status"), ("doctor",)):
                done = subprocess.run([binary(), *command, *(("--store", store) if store else ())],
                                      cwd=self.folder, capture_output=True, text=True, timeout=60,
                                      env=environment(**variables))
                self.assertNotEqual(done.returncode, 0, command)
                self.assert_clean(done.stdout + done.stderr, command)


if __name__ == "__main__":
    unittest.main()
