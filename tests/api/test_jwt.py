"""JWTs as credentials over a live socket (D12): what is taken and what is refused, keys that
change, an issuer that is slow, gone or odd, and requests that end with their JWT."""
import base64
import hashlib
import hmac
import http.client
import json
import os
import pathlib
import signal
import tempfile
import threading
import time
import unittest

import certificates
from harness import ApiTest, wait_until
from jwts import AUDIENCE, ISSUER, Issuer, Key, b64, bearer

CONFIG = """
access:
  jwt:
    issuer: {issuer}
    audience: {audience}
    {keys}
"""


class Jwts(ApiTest):
    kinds = ("ES256",)
    more = ""

    def setUp(self):
        self.secrets = tempfile.mkdtemp(prefix="perdura-jwt-")
        self.addCleanup(lambda: __import__("shutil").rmtree(self.secrets, ignore_errors=True))
        self.keys = [Key(self.secrets, kind, kind + "-1") for kind in self.kinds]
        self.key = self.keys[0]
        self.issuer = self.make_issuer()
        self.addCleanup(self.issuer.close)
        self.config = os.path.join(self.secrets, "perdura.yaml")
        self.write_config(self.keys_line())
        self.arguments = ("--config", self.config)
        super().setUp()

    def make_issuer(self):
        return Issuer(*self.keys)

    def keys_line(self):
        return "jwks_url: " + self.issuer.url

    def write_config(self, keys, more=None):
        text = CONFIG.format(issuer=ISSUER, audience=AUDIENCE, keys=keys)
        pathlib.Path(self.config).write_text(text + (self.more if more is None else more))

    def who(self, token, status=200):
        return self.expect(status, "GET", "/v1/whoami", headers=bearer(token))

    def refusal(self, token, status=401):
        return self.fresh("GET", "/v1/whoami", token, status)["error"]["message"]

    def fresh(self, method, path, token, status):
        """On a connection of its own: a wrong credential closes it."""
        connection = http.client.HTTPConnection(*self.server.address, timeout=60)
        self.addCleanup(connection.close)
        connection.request(method, path, headers=bearer(token))
        answer = connection.getresponse()
        body = answer.read()
        self.assertEqual(answer.status, status, body)
        return json.loads(body)

    def metric(self, name, token=None):
        text = self.request("GET", "/metrics", headers=bearer(token or self.key.token())).body
        for line in text.decode().splitlines():
            if line.startswith(f"perdura_{name} "):
                return float(line.split()[1])
        raise AssertionError(name + " is not shown")


class Taken(Jwts):
    kinds = ("ES256", "RS256", "EdDSA")

    def test_each_algorithm_is_taken_and_says_who_asks(self):
        for key in self.keys:
            shown = self.who(key.token(sub="bob", scope="openid viewer tasks:control", exp=4000000000,
                                       namespace="default"))
            self.assertEqual((shown["principal"], shown["kind"], shown["name"]),
                             ("jwt:bob", "jwt", "bob"))
            self.assertEqual(sorted(shown["scopes"]),
                             ["metrics:read", "plans:read", "tasks:control", "tasks:read"])
            self.assertEqual(shown["namespace"], "default")
            self.assertEqual(shown["expires_at"], "2096-10-02T07:07:10.000000Z")  # and half a minute

    def test_scopes_are_rights(self):
        reader = bearer(self.key.token(scope=["viewer"], namespace="default"))
        self.expect(200, "GET", "/v1/tasks", headers=reader)
        error = self.expect_error(403, "forbidden", "POST", "/v1/tasks", {"type": "t"},
                                  headers=reader)
        self.assertIn("tasks:enqueue", error["message"])
        maker = bearer(self.key.token(scope="producer"))
        self.expect(201, "POST", "/v1/tasks", {"type": "t"}, headers=maker)

    def test_without_scopes_it_is_403_that_names_what_is_missing(self):
        self.assertIn("'scope' is missing", self.refusal(self.key.token(drop=["scope"]), 403))
        said = self.refusal(self.key.token(scope="openid profile"), 403)
        self.assertIn("openid profile", said)
        self.assertIn("tasks:enqueue", said)
        self.assertIn("'namespace'", self.refusal(self.key.token(namespace="-no-"), 403))
        self.assertIn("'sub'", self.refusal(self.key.token(drop=["sub"]), 403))

    def test_nobody_is_local_any_more(self):
        self.expect_error(401, "unauthorized", "GET", "/v1/tasks")
        self.expect(200, "GET", "/healthz")

    def test_a_namespace_of_another_is_refused(self):
        error = self.expect_error(403, "forbidden", "GET", "/v1/tasks", headers={
            **bearer(self.key.token(namespace="default")), "Perdura-Namespace": "other"})
        self.assertIn("other", error["message"])

    def test_a_known_JWT_is_not_verified_again(self):
        token = self.key.token()
        self.who(token)
        before = self.metric("jwts_verified_total", token)
        for _ in range(20):
            self.who(token)
        self.assertEqual(self.metric("jwts_verified_total", token), before)
        self.assertGreaterEqual(self.metric("jwts_known", token), 1)
        self.assertEqual(self.metric("jwks_keys", token), 3)
        self.assertGreaterEqual(self.metric("jwks_age_seconds", token), 0)


class Refused(Jwts):
    kinds = ("ES256", "RS256")

    def test_what_is_wrong_is_refused_and_named(self):
        key, rsa, now = self.key, self.keys[1], int(time.time())
        stranger = Key(self.secrets, "ES256", "stranger")
        stranger.kid = key.kid
        good = key.token()
        head, body, signature = good.split(".")
        raw = bytearray(base64.urlsafe_b64decode(signature + "=="))
        raw[10] ^= 1
        cases = {
            "expired": key.token(exp=now - 40),
            "does not say when": key.token(drop=["exp"]),
            "not valid yet": key.token(nbf=now + 100),
            "issuer (iss)": key.token(iss=ISSUER + "/"),
            "audience (aud)": key.token(aud=["others", "perdura2"]),
            "algorithm": b64(json.dumps({"alg": "none"}).encode()) + "." + body + ".AA",
            "its signature is wrong": ".".join((head, body, b64(bytes(raw)))),
            "no signature": ".".join((head, body, "")),
            "crit": key.token(header={"crit": ["b64"]}),
            "8192 bytes": key.token(padding="x" * 9000),
        }
        for word, token in cases.items():
            self.assertIn(word, self.refusal(token), token[:200])
        for token in (stranger.token(), key.token(der=True), self.hmac_of(rsa),
                      ".".join((head, b64(b'{"sub":"root"}'), signature)), key.token() + "A",
                      head + "." + body, "a.b.c", rsa.token(header={"alg": "PS256"}),
                      rsa.token(header={"alg": "ES256"}), key.token(header={"alg": "none"})):
            self.refusal(token)
        self.who(good)

    def hmac_of(self, key):
        """The old attack: HMAC with the public key, which everyone has, as the secret."""
        head = b64(json.dumps({"alg": "HS256", "kid": key.kid}).encode())
        body = key.token().split(".")[1]
        secret = key.pem()
        return f"{head}.{body}." + b64(hmac.new(secret, f"{head}.{body}".encode(),
                                                hashlib.sha256).digest())

    def test_a_whole_head_too_large_is_refused_before_it_is_looked_at(self):
        reply = self.raw(b"GET /v1/whoami HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " +
                         b"eyJ" + b"A" * 20000 + b".a.b\r\n\r\n")
        self.assertEqual(reply.status, 431)


class Rotation(Jwts):
    def test_a_new_key_is_fetched_once_and_an_old_one_ends(self):
        before = self.key.token()
        self.who(before)
        new = Key(self.secrets, "EdDSA", "new")
        self.issuer.keys = [new]
        count = self.issuer.requests
        self.who(new.token())
        self.assertEqual(self.issuer.requests, count + 1)
        self.refusal(before)  # its key is gone, though the JWT was known

    def test_two_hundred_unknown_keys_make_one_fetch_at_most(self):
        good = self.key.token()
        self.who(good)
        count = self.issuer.requests
        head, body, signature = good.split(".")
        lock, statuses = threading.Lock(), []

        def ask(number):
            other = b64(json.dumps({"alg": "ES256", "kid": f"unknown-{number}"}).encode())
            connection = http.client.HTTPConnection(*self.server.address, timeout=60)
            connection.request("GET", "/v1/whoami", headers=bearer(f"{other}.{body}.{signature}"))
            status = connection.getresponse().status
            connection.close()
            with lock:
                statuses.append(status)

        threads = [threading.Thread(target=lambda n=n: [ask(i) for i in range(n, 200, 8)])
                   for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(statuses), 200)
        self.assertEqual(set(statuses), {401})  # slowly: they count as guesses
        self.assertEqual(self.issuer.requests, count + 1)
        self.who(good)


class Slow(Jwts):
    def test_a_request_waits_for_the_keys_and_others_do_not(self):
        good = self.key.token()
        self.who(good)
        self.issuer.open.clear()
        new = Key(self.secrets, "ES256", "new")
        self.issuer.keys.append(new)
        count = self.issuer.requests
        waiting = [self.in_thread(self.fresh, "GET", "/v1/whoami", new.token(sub=f"w{i}"), 200)
                   for i in range(5)]
        body = self.in_thread(self.post_as, new.token(), b'{"type":"t"}')
        wait_until(lambda: self.issuer.requests == count + 1)
        for _ in range(20):
            self.who(good)  # the loop does not wait
        self.assertTrue(all(x.thread.is_alive() for x in waiting))
        self.issuer.open.set()
        self.assertEqual([x.result()["name"] for x in waiting], [f"w{i}" for i in range(5)])
        self.assertEqual(body.result(), 201)
        self.assertEqual(self.issuer.requests, count + 1)

    def post_as(self, token, body):
        connection = http.client.HTTPConnection(*self.server.address, timeout=60)
        connection.request("POST", "/v1/tasks", body, bearer(token))
        status = connection.getresponse().status
        connection.close()
        return status

    def test_a_large_body_is_not_read_for_keys_that_are_not_there(self):
        self.who(self.key.token())
        self.issuer.open.clear()
        new = Key(self.secrets, "ES256", "new")
        self.issuer.keys.append(new)
        body = json.dumps({"type": "t", "metadata": {}, "payload": "x" * 100000}).encode()
        self.assertEqual(self.post_as(new.token(), body), 503)
        self.issuer.open.set()
        wait_until(lambda: self.post_as(new.token(), body) == 201)

    def test_a_fetch_that_takes_too_long_ends_and_the_old_keys_stay(self):
        good = self.key.token()
        self.who(good)
        self.issuer.open.clear()
        new = Key(self.secrets, "ES256", "new")
        begun = time.monotonic()
        self.refusal(new.token(), 503)
        self.assertLess(time.monotonic() - begun, 30)
        self.who(good)
        self.assertIn("jwks.not_loaded", self.server.log())
        self.assertGreaterEqual(self.metric("jwks_failures_total", good), 1)

    def test_a_stop_does_not_wait_for_a_fetch(self):
        self.who(self.key.token())
        self.issuer.open.clear()
        new = Key(self.secrets, "ES256", "new")
        waiting = self.in_thread(self.fresh, "GET", "/v1/whoami", new.token(), 503)
        count = self.issuer.requests
        wait_until(lambda: self.issuer.requests == count + 1)
        begun = time.monotonic()
        self.assertEqual(self.server.stop(), 0)
        self.assertLess(time.monotonic() - begun, 4.5)
        waiting.result()


class Odd(Jwts):
    """Whatever the issuer answers in place of its keys leaves the old ones in force."""

    def check(self, answer, word):
        good = self.key.token()
        self.who(good)
        self.issuer.answer = answer
        self.refusal(Key(self.secrets, "ES256", "new").token(), 503)
        self.who(good)
        self.assertIn("jwks.not_loaded", self.server.log())
        self.assertIn(word, self.server.log())

    def test_errors(self):
        self.check(lambda h: self.issuer.send(h, 500, b"no"), "status 500")

    def test_redirects_are_not_followed(self):
        def redirect(handler):
            handler.send_response(302)
            handler.send_header("Location", "/keys")
            handler.send_header("Content-Length", "0")
            handler.end_headers()
        self.check(redirect, "status 302")

    def test_huge_answers(self):
        def flood(handler):
            handler.send_response(200)
            handler.end_headers()
            for _ in range(1000):
                handler.wfile.write(b" " * 65536)
        self.check(flood, "larger than")

    def test_no_keys_at_all(self):
        self.check(lambda h: self.issuer.send(h, 200, b'{"keys":[]}'), "no public key")


class Down(Jwts):
    """An issuer that is not there when the server starts."""

    def make_issuer(self):
        issuer = super().make_issuer()
        issuer.answer = lambda handler: issuer.send(handler, 503, b"")
        return issuer

    def test_the_server_starts_and_takes_JWTs_once_the_keys_are_there(self):
        wait_until(lambda: "jwks.not_loaded" in self.server.log())
        self.issuer.answer = None
        self.who(self.key.token())  # asks again at once


class File(Jwts):
    def keys_line(self):
        self.file = os.path.join(self.secrets, "jwks.json")
        pathlib.Path(self.file).write_bytes(self.issuer.document())
        return "jwks_file: " + self.file

    def write_keys(self, data):
        pathlib.Path(self.file + ".new").write_bytes(data)
        os.rename(self.file + ".new", self.file)

    def test_a_changed_file_is_read_and_a_bad_one_is_not(self):
        good = self.key.token()
        self.who(good)
        new = Key(self.secrets, "RS256", "new")
        self.refusal(new.token())
        self.issuer.keys.append(new)
        self.write_keys(self.issuer.document())
        wait_until(lambda: self.server.log().count('"jwks.loaded"') >= 2)
        self.who(new.token())
        self.write_keys(b"{}")
        wait_until(lambda: "jwks.not_loaded" in self.server.log())
        self.who(good)
        self.who(new.token())

    def test_a_reload_refuses_a_wrong_section_as_a_whole(self):
        good = self.key.token()
        self.who(good)
        for keys, word in (("jwks_file: /nowhere.json", "/nowhere.json"),
                           ("jwks_url: http://id.example/keys", "https://"),
                           ("audience_: x", "unknown key"),
                           ("jwks_file: a\n    jwks_url: https://b/", "either")):
            self.write_config(keys)
            count = self.server.log().count("config.refused")
            self.server.process.send_signal(signal.SIGHUP)
            wait_until(lambda: self.server.log().count("config.refused") > count)
            self.assertIn(word, self.server.log())
            self.who(good)

    def test_a_reload_takes_other_claims_and_forgets_what_was_known(self):
        token = self.key.token(realm={"roles": ["viewer"]}, upn="carol", tenant="default",
                               owner="u-1")
        self.assertEqual(self.who(token)["name"], "alice")
        self.write_config(self.keys_line(), "    claims: {user: upn, namespace: tenant, "
                          "scopes: /realm/roles, user_id: owner}\n")
        count = self.server.log().count("config.reloaded")
        self.server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: self.server.log().count("config.reloaded") > count)
        shown = self.who(token)
        self.assertEqual((shown["name"], shown["namespace"], shown["user_id"]),
                         ("carol", "default", "u-1"))
        self.assertNotIn("admin", shown["scopes"])
        self.assertIn("'owner'", self.refusal(self.key.token(realm={"roles": ["viewer"]},
                                                             upn="carol"), 403))


class OverTls(Jwts):
    def make_issuer(self):
        self.authority = certificates.Authority(self.secrets)
        return Issuer(*self.keys, certificate=self.authority.sign("issuer", "IP:127.0.0.1"))

    def keys_line(self):
        return f"jwks_url: {self.issuer.url}\n    ca: {self.authority.pem}"

    def test_keys_come_over_https_from_an_issuer_of_that_CA(self):
        self.assertTrue(self.issuer.url.startswith("https://"))
        self.who(self.key.token())


class UnknownCa(OverTls):
    def keys_line(self):
        other = certificates.Authority(self.secrets, "other")
        return f"jwks_url: {self.issuer.url}\n    ca: {other.pem}"

    def test_keys_come_over_https_from_an_issuer_of_that_CA(self):
        self.refusal(self.key.token(), 503)
        self.assertIn("unknown CA", self.server.log())


class Ends(Jwts):
    """What waits ends with its JWT; half a minute of difference between clocks is allowed."""

    def short(self):
        return self.key.token(exp=int(time.time()) - 27)

    def check_end(self, begun):
        self.assertLess(time.monotonic() - begun, 15)

    def test_a_stream_ends(self):
        begun = time.monotonic()
        connection = http.client.HTTPConnection(*self.server.address, timeout=60)
        self.addCleanup(connection.close)
        connection.request("GET", "/v1/stream", headers=bearer(self.short()))
        answer = connection.getresponse()
        self.assertEqual(answer.status, 200)
        self.assertIn(b"token_expired", answer.read())
        self.check_end(begun)

    def test_a_waiting_claim_ends(self):
        token = self.short()
        self.expect(201, "POST", "/v1/workers", {
            "id": "w", "hostname": "h", "pool_size": 1, "queues": ["default"], "version": "1"},
            headers=bearer(token))
        begun = time.monotonic()
        error = self.expect(401, "POST", "/v1/workers/w:claim", {"max": 1, "wait_ms": 60000},
                            headers=bearer(token))["error"]
        self.assertIn("expired", error["message"])
        self.check_end(begun)


if __name__ == "__main__":
    unittest.main()
