"""Who has no token takes little from those who have one (D12, F-H1, F-H4, F-H6): neither its
connections nor its bodies nor its guesses."""
import resource
import select
import socket
import subprocess
import tempfile
import time
import unittest

import harness
from harness import ApiTest, wait_until

TOKEN = "0123456789abcdef0123456789abcdef"
RIGHT = {"Authorization": f"Bearer {TOKEN}"}


class TokenTest(ApiTest):
    environment = {"PERDURA_TOKEN": TOKEN}

    def connect(self, address=None):
        sock = socket.create_connection(self.server.address, timeout=harness.DEADLINE_S,
                                        source_address=(address, 0) if address else None)
        self.addCleanup(sock.close)
        return sock

    def send(self, sock, path="/healthz", token=None, method="GET", more=""):
        port = self.server.address[1]
        held = f"Authorization: Bearer {token}\r\n" if token else ""
        sock.sendall(f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{held}{more}\r\n"
                     .encode())

    def status(self, sock):
        line = sock.makefile("rb").readline()
        return int(line.split()[1]) if line else None

    def metric(self, name):
        text = self.request("GET", "/metrics", headers=RIGHT).body.decode()
        return float(next(x for x in text.splitlines() if x.startswith(f"perdura_{name} "))
                     .split()[1])


class Connections(TokenTest):
    def setUp(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))  # the server's: 256 strangers
        try:
            super().setUp()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    def test_a_crowd_of_strangers_does_not_lock_out_who_has_the_token(self):
        self.expect(200, "GET", "/v1/stats", headers=RIGHT)
        crowd = []
        for _ in range(600):
            sock = self.connect()
            self.send(sock)
            self.assertEqual(self.status(sock), 200)
            crowd.append(sock)
        self.expect(200, "GET", "/v1/stats", headers=RIGHT)  # on the connection it had
        self.assertLessEqual(self.metric("http_strangers"), 256)
        self.assertLessEqual(self.metric("http_connections"), 300)
        late = self.connect()
        self.send(late, "/v1/stats", TOKEN)
        self.assertEqual(self.status(late), 200)
        ready, _, _ = select.select([crowd[0]], [], [], harness.DEADLINE_S)
        self.assertEqual(ready, [crowd[0]], "the oldest stranger was closed")

    def test_no_body_of_a_stranger_is_read(self):
        for length in ("Content-Length: 60000", "Content-Length: 1", "Transfer-Encoding: chunked"):
            for path in ("/v1/tasks", "/healthz"):
                sock = self.connect()
                self.send(sock, path, method="POST", more=f"{length}\r\n")  # and nothing behind
                self.assertIn(self.status(sock), (401, 405), (path, length))


class Guesses(TokenTest):
    def guess(self, token, sock=None):
        sock = sock or self.connect()
        self.send(sock, "/v1/stats", token)
        return sock

    def test_wrong_tokens_wait_are_counted_and_told_and_the_right_one_is_served(self):
        self.expect(200, "GET", "/v1/stats", headers=RIGHT)
        start = time.monotonic()
        for i in range(10):
            self.assertEqual(self.status(self.guess(f"wrong-{i}")), 401)
        waiting = self.guess("wrong-11")
        self.assertEqual(self.status(self.guess(TOKEN)), 200)
        before = time.monotonic()
        self.assertEqual(self.status(waiting), 401)
        self.assertGreaterEqual(time.monotonic() - start, 0.9)
        self.assertEqual(self.metric("wrong_tokens_total"), 11)
        self.assertEqual(self.server.log().count("auth.wrong_tokens"), 1)
        self.assertNotIn("wrong-", self.server.log())
        self.assertLess(before - start, harness.DEADLINE_S)

    def test_who_guesses_on_and_on_is_not_even_looked_at(self):
        def crowd():
            held = [self.guess(f"wrong-{i}") for i in range(80)]
            statuses = {self.status(sock) for sock in held}
            self.assertLessEqual(statuses, {401, 429})
            return 429 in statuses
        wait_until(crowd, what="a refusal without a look")  # at once, unless the machine stalls
        wait_until(lambda: self.status(self.guess(TOKEN)) == 200, what="the right token again")

    def test_a_guesser_behind_a_proxy_does_not_lock_out_the_others(self):
        self.expect(200, "GET", "/v1/stats", headers=RIGHT)
        held = [self.guess(f"wrong-{i}") for i in range(60)]
        self.assertEqual(self.status(self.guess(TOKEN)), 200)  # a connection of its own
        self.assertEqual({self.status(sock) for sock in held}, {401})

    def test_a_server_that_stops_answers_those_that_wait(self):
        held = [self.guess(f"wrong-{i}") for i in range(30)]
        for sock in held[:10]:
            self.assertEqual(self.status(sock), 401)
        self.assertEqual(self.server.stop(), 0)
        self.assertLessEqual({self.status(sock) for sock in held[10:]}, {401, None})


class Listen(unittest.TestCase):
    def test_beyond_loopback_a_short_token_is_refused(self):
        with tempfile.TemporaryDirectory(prefix="perdura-api-") as folder:
            done = subprocess.run([harness.binary(), "serve", "--listen", "0.0.0.0:0", "--store",
                                   f"{folder}/perdura.db"], cwd=folder, capture_output=True,
                                  text=True, timeout=harness.DEADLINE_S,
                                  env={"PATH": "/usr/bin:/bin", "PERDURA_TOKEN": "x"})
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("at least 16", done.stderr)
        self.assertNotIn("listening on", done.stdout)


@unittest.skipIf(resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 13500, "too few open files")
class Full(TokenTest):
    """All 12,000 places are taken by those who have a token."""

    def take_all_places(self, token):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        self.local.connection.close()
        crowd, start = [], time.monotonic()
        while len(crowd) < 12000:
            some = [self.connect(f"127.0.0.{2 + len(crowd) // 1500}") for _ in range(200)]
            for sock in some:
                self.send(sock, "/openapi.json", token, method="HEAD")
            for sock in some:
                self.assertTrue(sock.recv(65536).startswith(b"HTTP/1.1 200"))
            crowd += some
        if time.monotonic() - start > 40:
            self.skipTest("the machine is too slow: the first ones are idle for too long")

    def test_v8_one_namespace_does_not_take_the_places_of_the_others(self):
        tokens = {}
        for name in ("a", "b"):
            self.expect(201, "POST", "/v1/namespaces", {"name": name}, headers=RIGHT)
            tokens[name] = self.expect(201, "POST", "/v1/tokens", {"name": name, "namespace": name, "role": "viewer"},
                                       headers=RIGHT)["token"]
        self.take_all_places(tokens["a"])
        for token in (tokens["b"], TOKEN):
            for _ in range(20):
                other = self.connect()
                self.send(other, "/v1/whoami", token)
                self.assertEqual(self.status(other), 200)

    def test_a_worker_with_a_lease_is_heard_when_all_places_are_taken(self):
        self.expect(201, "POST", "/v1/workers", {"id": "w", "queues": ["default"]}, headers=RIGHT)
        self.take_all_places(TOKEN)
        beat = self.connect()
        self.send(beat, "/v1/workers/w:heartbeat", TOKEN, method="POST")
        self.assertEqual(self.status(beat), 200)
        for path in ("/v1/stats", "/healthz"):
            other = self.connect()
            self.send(other, path, TOKEN)
            self.assertEqual(self.status(other), 503, path)


if __name__ == "__main__":
    unittest.main()
