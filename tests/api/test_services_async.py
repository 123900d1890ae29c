"""Calls that a service takes with 202 and ends later, by a URL that counts for one attempt; and the
JWT by which it knows who calls (D10, D13, F-G8)."""
import base64
import http.client
import json
import os
import pathlib
import signal
import subprocess
import time
import unittest
import urllib.parse

from harness import binary, wait_until
from service_target import reply
from test_services import ServiceTest

# As an outsider would: node's own crypto, a key from the JWKS by its id, no code of ours.
VERIFY = """
const crypto = require('crypto');
const {jwt, jwks} = JSON.parse(require('fs').readFileSync(0));
const [head, claims, signature] = jwt.split('.');
const {alg, kid} = JSON.parse(Buffer.from(head, 'base64url'));
const jwk = jwks.keys.find(key => key.kid === kid && key.alg === alg);
const key = crypto.createPublicKey({key: jwk, format: 'jwk'});
const good = crypto.verify(null, Buffer.from(head + '.' + claims), key, Buffer.from(signature, 'base64url'));
console.log(JSON.stringify({good, alg, claims: JSON.parse(Buffer.from(claims, 'base64url'))}));
"""


def verify(jwt, jwks):
    done = subprocess.run(["node", "-e", VERIFY], input=json.dumps({"jwt": jwt, "jwks": jwks}),
                          capture_output=True, text=True, check=True, timeout=60)
    return json.loads(done.stdout)


class AsyncTest(ServiceTest):
    """The target answers 202 to /Do and remembers the URL."""
    arguments = ("--config", "p.yaml", "--lease", "1s")

    def answer(self, call):
        return reply(202, b"", None, Perdura_Async="1")

    def say(self, url, body, headers=None):
        """What the service says, without any credential: status and error code."""
        place = urllib.parse.urlsplit(url)
        connection = http.client.HTTPConnection(place.hostname, place.port, timeout=60)
        try:
            connection.request("POST", place.path, json.dumps(body),
                               {"Content-Type": "application/json", **(headers or {})})
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        return answer.status, json.loads(text)["error"]["code"] if text else None

    def awaited(self, task, attempt=1):
        """The URL of this attempt, when the task waits for the service."""
        def url():
            for call in self.target.seen("/Do"):
                if (call.headers["perdura-task-id"], call.headers["perdura-attempt"]) == \
                        (task["id"], str(attempt)):
                    return call.headers["perdura-complete-url"]
            return None
        found = wait_until(url, what="the call")
        wait_until(lambda: self.task(task["id"])["worker_id"] == "service:s",
                   what="the service holds the task")
        return found

    def say_with_token(self, method, path, body=None, headers=None):
        return ServiceTest.request(self, method, path, body, {
            "Authorization": "Bearer " + self.environment["PERDURA_TOKEN"], **(headers or {})})

    def kill(self):
        self.server.process.kill()
        self.server.process.wait()
        self.server.process.stdout.close()


class CompletionTest(AsyncTest):
    def test_a_task_runs_until_the_service_says_how_it_ended(self):
        task = self.enqueue("call:x", payload={"n": 1})
        url = self.awaited(task)
        self.assertEqual(self.task(task["id"])["status"], "running")
        self.assertEqual(self.say(url, {"progress": 40, "state": "halfway"})[0], 204)
        seen = self.task(task["id"])
        self.assertEqual((seen["progress"], seen["state"]), (40, "halfway"))
        self.assertEqual(self.say(url, {"checkpoint": {"name": "c", "data": {"at": 7}}})[0], 204)
        kept = self.expect(200, "GET", f"/v1/tasks/{task['id']}/checkpoints")["items"][0]
        self.assertEqual((kept["checkpoint_name"], kept["recoverable_data"]), ("c", {"at": 7}))
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 1))
        self.assertEqual(self.expect(200, "GET", f"/v1/tasks/{task['id']}?at={now}")["worker_id"],
                         "service:s")
        self.assertEqual(self.say(url, {"result": {"did": "it"}})[0], 204)
        ended = self.ended(task["id"])
        self.assertEqual((ended["status"], ended["result"], ended["attempts"]),
                         ("completed", {"did": "it"}, 1))
        self.assertEqual(len(self.target.seen("/Do")), 1)

    def test_one_end_counts_and_the_same_again_does_no_harm(self):
        url = self.awaited(task := self.enqueue("call:x"))
        self.assertEqual(self.say(url, {"result": 1})[0], 204)
        self.assertEqual(self.say(url, {"result": 1})[0], 204, "an answer may be lost")
        self.assertEqual(self.say(url, {"result": 2}), (409, "conflict"))
        self.assertEqual(self.say(url, {"fail": "late"}), (409, "conflict"))
        self.assertEqual(self.say(url, {"progress": 1}), (409, "stale_lease"))
        self.assertEqual(self.ended(task["id"])["result"], 1)

    def test_a_failure_is_retried_and_the_url_before_is_fenced(self):
        task = self.enqueue("call:x", max_retries=1, retry_delay_ms=10)
        first = self.awaited(task)
        self.assertEqual(self.say(first, {"fail": {"error": "no disk", "details": {"a": 1}}})[0], 204)
        second = self.awaited(task, 2)
        self.assertNotEqual(first, second)
        for body in ({"result": "stale"}, {"progress": 5}, {"checkpoint": {"name": "x"}}):
            self.assertEqual(self.say(first, body)[0], 409, body)
        self.assertEqual(self.say(second, {"fail": {"error": "no way", "retryable": False}})[0], 204)
        ended = self.ended(task["id"])
        self.assertEqual((ended["status"], ended["error"]), ("failed", "no way"))

    def test_a_service_that_says_nothing_is_a_timeout_and_called_again(self):
        task = self.enqueue("call:x", timeout_ms=500, max_retries=1, retry_delay_ms=10)
        first = self.awaited(task)
        self.assertEqual(self.say(self.awaited(task, 2), {"result": "now"})[0], 204)
        self.assertEqual(self.say(first, {"result": "late"})[0], 409)
        self.assertEqual(self.ended(task["id"])["result"], "now")

    def test_a_cancel_needs_nobody_to_stop(self):
        self.expect(200, "PATCH", "/v1/queues/default", {"concurrency": 1})
        url = self.awaited(task := self.enqueue("call:x"))
        behind = self.enqueue("call:x")
        self.expect(200, "POST", f"/v1/tasks/{task['id']}:cancel", {})
        self.assertEqual(self.task(task["id"])["status"], "cancelled")
        self.assertEqual(self.say(url, {"result": 1}), (409, "stale_lease"))
        self.awaited(behind) # the place in the queue is free

    def test_a_wrong_url_or_body_is_refused_and_changes_nothing(self):
        url = self.awaited(task := self.enqueue("call:x"))
        base, token = url.rsplit("/", 1)
        for wrong in (token[:-1], token + "A", "A" * 75,
                      ("B" if token[0] != "B" else "C") + token[1:],
                      token[:-1] + ("Q" if token[-1] != "Q" else "g")):
            self.assertEqual(self.say(f"{base}/{wrong}", {"result": 1}), (404, "not_found"), wrong)
        for body in ({}, {"result": 1, "fail": "x"}, {"progress": 101}, {"progress": "x"}, [], 5,
                     {"what": 1}, {"checkpoint": 5}, {"fail": {"reason": 1}}):
            self.assertEqual(self.say(url, body)[0], 422, body)
        self.assertEqual(self.say(url, {"result": "x" * 300000}), (413, "too_large"))
        self.assertEqual(self.say(url, {"result": 1}, {"Origin": "http://evil.example"})[0], 403)
        self.assertEqual(self.task(task["id"])["status"], "running")
        self.assertEqual(self.say(url, {"result": 1})[0], 204)

    def test_the_url_is_shown_nowhere(self):
        url = self.awaited(task := self.enqueue("call:x"))
        token = url.rsplit("/", 1)[1]
        self.say(url, {"result": 1})
        self.say(url, {"result": 2})
        self.ended(task["id"])
        shown = [self.server.log(), self.request("GET", "/metrics").body.decode()]
        for path in ("", "/events", "/executions", "/logs", "/why"):
            shown.append(self.request("GET", f"/v1/tasks/{task['id']}{path}").body.decode())
        shown.append(self.request("GET", "/v1/audit").body.decode())
        for text in shown:
            self.assertNotIn(token, text)
            self.assertNotIn(self.target.seen("/Do")[0].headers["perdura-identity"], text)


class CrashTest(AsyncTest):
    def test_kill_9_after_the_202_loses_nothing_and_calls_nothing_twice(self):
        self.assertEqual(self.server.stop(), 0) # the address stays the same: the URL names it
        self.server.arguments = (*self.arguments, "--listen", "127.0.0.1:%d" % self.server.address[1])
        self.server.start()
        tasks = [self.enqueue("call:x", timeout_ms=120000) for _ in range(20)]
        urls = [self.awaited(task) for task in tasks]
        self.kill()
        self.server.start()
        self.local.connection = None
        self.assertEqual(self.say(urls[0], {"result": 0})[0], 204)
        other = self.enqueue("none:x", timeout_ms=1000) # leases are looked at meanwhile
        self.register("w", types=["none:x"])
        self.assertEqual(self.claim("w")[0]["id"], other["id"])
        wait_until(lambda: self.task(other["id"])["status"] != "claimed", what="a lease is over")
        for i, url in enumerate(urls[1:], 1):
            self.assertEqual(self.say(url, {"result": i})[0], 204)
        for i, task in enumerate(tasks):
            ended = self.ended(task["id"])
            self.assertEqual((ended["status"], ended["result"], ended["attempts"]),
                             ("completed", i, 1))
        self.assertEqual(len(self.target.seen("/Do")), len(tasks))


class TokenTest(AsyncTest):
    """The server wants a token; the service has none, and needs none."""
    environment = {"PERDURA_TOKEN": "0123456789abcdef0123"}

    request = AsyncTest.say_with_token

    def test_the_url_alone_is_enough_and_for_nothing_else(self):
        url = self.awaited(task := self.enqueue("call:x"))
        large = {"result": "x" * 200000} # more than is read of strangers
        self.assertEqual(self.say(url.replace("/v1/completions/", "/v1/tasks/"), {})[0], 401)
        self.assertEqual(self.say(url, large)[0], 204)
        self.assertEqual(len(self.ended(task["id"])["result"]), 200000)

    def test_a_jwt_proves_the_attempt_to_an_outsider(self):
        self.awaited(task := self.enqueue("call:x"))
        jwt = self.target.seen("/Do")[0].headers["perdura-identity"]
        with_no_token = http.client.HTTPConnection(*self.server.address, timeout=60)
        with_no_token.request("GET", "/v1/identity/jwks.json")
        answer = with_no_token.getresponse()
        self.assertEqual(answer.status, 200)
        self.assertIn("max-age", answer.headers["Cache-Control"])
        jwks = json.loads(answer.read())
        with_no_token.close()
        seen = verify(jwt, jwks)
        claims = seen["claims"]
        self.assertTrue(seen["good"])
        self.assertEqual((claims["aud"], claims["task_id"], claims["attempt"], claims["namespace"]),
                         ("s", task["id"], 1, "default"))
        self.assertEqual(claims["exp"] - claims["iat"], 300)
        self.assertLess(abs(claims["iat"] - time.time()), 120)
        self.assertGreater(claims["lease_token"], 0)
        head, body, signature = jwt.split(".")
        forged = f"{head}.{body[:-2]}AA.{signature}"
        self.assertFalse(verify_quietly(forged, jwks))
        self.server.stop()
        self.server.start() # the key is the store's
        self.assertEqual(self.api("GET", "/v1/identity/jwks.json")[1], jwks)


class ManyTest(AsyncTest):
    def test_each_of_many_calls_at_once_has_a_jwt_and_a_url_of_its_own(self):
        self.expect(200, "POST", "/v1/queues/default:pause", {})
        tasks = {self.enqueue("call:x", timeout_ms=120000)["id"] for _ in range(200)}
        self.expect(200, "POST", "/v1/queues/default:resume", {})
        calls = wait_until(lambda: len(seen := self.target.seen("/Do")) == 200 and seen, what="all calls")
        self.assertEqual({call.headers["perdura-task-id"] for call in calls}, tasks)
        jwks = self.api("GET", "/v1/identity/jwks.json")[1]
        for i, call in enumerate(calls):
            task = call.headers["perdura-task-id"]
            body = call.headers["perdura-identity"].split(".")[1]
            claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
            self.assertEqual((claims["task_id"], claims["aud"], claims["attempt"]), (task, "s", 1))
            if i % 25 == 24:
                self.assertTrue(verify(call.headers["perdura-identity"], jwks)["good"])
            self.assertEqual(self.say(call.headers["perdura-complete-url"], {"result": i})[0], 204)
            self.assertEqual(self.task(task)["result"], i)


def verify_quietly(jwt, jwks):
    try:
        return verify(jwt, jwks)["good"]
    except subprocess.CalledProcessError:
        return False # the claims are no JSON any more


class WorkerTest(AsyncTest):
    """The calls are made by `perdura worker`; the URL leads to the server."""
    arguments = ("--workers", "0", "--lease", "1s")

    def setUp(self):
        super().setUp()
        self.worker_log = open(os.path.join(self.folder, "worker.log"), "ab")
        self.addCleanup(self.worker_log.close)

    def start_worker(self):
        worker = subprocess.Popen(
            [binary(), "worker", "--server", "http://%s:%d" % self.server.address,
             "--config", "p.yaml"], cwd=self.folder, stdout=subprocess.DEVNULL,
            stderr=self.worker_log)
        self.addCleanup(worker.wait)
        self.addCleanup(worker.kill)
        return worker

    def workers(self):
        return [item for item in self.expect(200, "GET", "/v1/workers")["items"]
                if item["types"]]

    def test_a_workers_end_does_not_repeat_what_the_service_works_on(self):
        worker = self.start_worker()
        tasks = [self.enqueue("call:x", timeout_ms=120000) for _ in range(3)]
        urls = [self.awaited(task) for task in tasks]
        self.assertIn("%s:%d" % self.server.address, urls[0])
        lost = {item["id"] for item in self.workers()}
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        wait_until(lambda: not lost & {item["id"] for item in self.workers()
                                       if item["status"] != "offline"}, what="its lease is over")
        self.start_worker()
        for i, url in enumerate(urls):
            self.assertEqual(self.say(url, {"result": i})[0], 204)
            self.assertEqual(self.ended(tasks[i]["id"])["result"], i)
        self.assertEqual(len(self.target.seen("/Do")), 3)
        self.assertTrue(verify(self.target.seen("/Do")[0].headers["perdura-identity"],
                               self.api("GET", "/v1/identity/jwks.json")[1])["good"])
        self.assertNotIn(urls[0].rsplit("/", 1)[1],
                         pathlib.Path(self.folder, "worker.log").read_text())


class PublicUrlTest(AsyncTest):
    more = "public_url: https://perdura.example.com/tasks/\n"

    def test_the_url_is_where_the_configuration_says_and_its_host_is_served(self):
        task = self.enqueue("call:x")
        url = self.awaited(task)
        self.assertTrue(url.startswith("https://perdura.example.com/tasks/v1/completions/"), url)
        here = "http://%s:%d/v1/completions/%s" % (*self.server.address, url.rsplit("/", 1)[1])
        self.assertEqual(self.say(here, {"result": 1}, {"Host": "perdura.example.com"})[0], 204)
        self.assertEqual(self.say(here, {"result": 1}, {"Host": "other.example.com"})[0], 403)


class NowhereTest(AsyncTest):
    arguments = ("--config", "p.yaml", "--listen", "0.0.0.0:0")
    more = "allow_clear_text: true\n"
    environment = {"PERDURA_TOKEN": "0123456789abcdef0123"}

    def setUp(self):
        super().setUp()
        self.server.address = ("127.0.0.1", self.server.address[1])

    request = AsyncTest.say_with_token

    def test_a_service_that_was_not_told_where_cannot_end_it_later(self):
        task = self.ended(self.enqueue("call:x", max_retries=3)["id"])
        self.assertEqual((task["status"], task["error_details"]["code"]), ("failed", "not_awaited"))
        self.assertIn("public_url", task["error"])
        self.assertNotIn("perdura-complete-url", self.target.seen("/Do")[0].headers)




if __name__ == "__main__":
    unittest.main()
