"""TLS of the API (D12, F-H7): everything works over it, and what is not TLS, or stalls, or breaks off
in the middle, harms no other client."""
import http.client
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import tempfile
import threading
import time
import unittest

import certificates
import harness
import test_queues
import test_tasks
import test_workers
from harness import ApiTest, Reply, wait_until

STALLED = 2000


class Tls:
    """Mixin of an ApiTest: its server has a certificate, its requests go over TLS."""

    more_arguments = ()

    def setUp(self):
        self.secrets = tempfile.mkdtemp(prefix="perdura-tls-")
        self.addCleanup(shutil.rmtree, self.secrets, ignore_errors=True)
        self.authority = certificates.Authority(self.secrets)
        self.files = self.authority.sign("server")
        self.arguments = (*self.arguments, "--tls-cert", self.files[0], "--tls-key", self.files[1],
                          *self.more_arguments)
        self.context = certificates.client_context(self.authority.pem)
        super().setUp()

    def connection(self, timeout=90):
        return http.client.HTTPSConnection(*self.server.address, timeout=timeout,
                                           context=self.context)

    def connect(self, context=None, **options):
        """A socket on which the handshake is done."""
        sock = socket.create_connection(self.server.address, timeout=harness.DEADLINE_S)
        self.addCleanup(sock.close)
        secure = (context or self.context).wrap_socket(sock, server_hostname="127.0.0.1", **options)
        self.addCleanup(secure.close)
        return secure

    def raw(self, data, timeout=harness.DEADLINE_S):
        with self.connect() as sock:
            sock.settimeout(timeout)
            sock.sendall(data)
            answer = http.client.HTTPResponse(sock)
            answer.begin()
            return Reply(answer.status, answer.headers, answer.read())

    def ask(self, sock, path="/healthz"):
        """The status of a request on this socket, which stays open."""
        sock.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        answer = http.client.HTTPResponse(sock)
        answer.begin()
        answer.read()
        return answer.status

    def plain(self):
        sock = socket.create_connection(self.server.address, timeout=harness.DEADLINE_S)
        self.addCleanup(sock.close)
        return sock


# What the API promises in clear text it promises over TLS: verbs, long polls and the stream.

class ControlOverTls(Tls, test_tasks.ControlTest):
    pass


class WaitsOverTls(Tls, test_tasks.WaitTest):
    pass


class ClaimsOverTls(Tls, test_workers.ClaimTest):
    pass


class StreamOverTls(Tls, test_queues.StreamTest):
    pass


class Answers(Tls, ApiTest):
    def test_an_answer_of_20_MB_arrives_whole_at_a_fast_and_at_a_slow_reader(self):
        self.register()
        for _ in range(3):
            self.expect(201, "POST", "/v1/tasks",
                        [{"type": "t", "payload": "x" * 500_000}] * 20)
        self.expect(201, "POST", "/v1/tasks", {"type": "t", "payload": "end"})
        fast = self.claim(max=20)
        self.assertEqual([len(task["payload"]) for task in fast], [500_000] * 20)
        body = b'{"max":41,"wait_ms":0}'
        with self.connect() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            sock.sendall(b"POST /v1/workers/worker-1:claim HTTP/1.1\r\nHost: localhost\r\n"
                         b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                         % (len(body), body))
            answer = http.client.HTTPResponse(sock)
            answer.begin()
            wanted, parts = int(answer.headers["Content-Length"]), []
            while part := answer.read(37_777):
                parts.append(part)
        self.assertEqual(sum(map(len, parts)), wanted)
        self.assertGreater(wanted, 20_000_000)
        self.assertTrue(b"".join(parts).rstrip().endswith(b"}"))
        self.assertEqual(b"".join(parts).count(b'"payload":'), 41)

    def test_requests_sent_ahead_in_one_record_are_all_answered(self):
        with self.connect() as sock:
            sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 300)
            seen = b""
            while seen.count(b'{"status":"ok"}') < 300:
                part = sock.recv(65536)
                self.assertTrue(part, "the connection was closed")
                seen += part

    def test_a_client_that_says_goodbye_first_still_gets_its_answer(self):
        sock = self.connect()
        sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = http.client.HTTPResponse(sock)
        answer.begin()
        self.assertEqual(answer.status, 200)
        answer.read()
        sock.unwrap()  # waits for the server's own goodbye

    def test_a_long_poll_ends_when_its_client_leaves_with_or_without_a_goodbye(self):
        self.register()
        for polite in (True, False):
            sock = self.connect()
            body = b'{"max":1,"wait_ms":60000}'
            sock.sendall(b"POST /v1/workers/worker-1:claim HTTP/1.1\r\nHost: localhost\r\n"
                         b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                         % (len(body), body))
            self.wait_for_waiting("waiting_claims", 1)
            if polite:
                sock.setblocking(False)
                try:
                    sock.unwrap()
                except (ssl.SSLWantReadError, BlockingIOError):
                    pass
            sock.close()
            wait_until(lambda: self.api("GET", "/v1/stats")[1]["waiting_claims"] == 0,
                       what="the claim being given up")

    def test_the_dashboard_asks_browsers_to_stay_on_https_but_not_on_localhost(self):
        port = self.server.address[1]
        here = self.request("GET", "/")
        self.assertEqual(here.headers["Strict-Transport-Security"], "max-age=31536000")
        for name in ("localhost", f"localhost:{port}"):
            there = self.request("GET", "/", headers={"Host": name})
            self.assertNotIn("Strict-Transport-Security", there.headers)
        page = {"Origin": f"https://127.0.0.1:{port}", "Sec-Fetch-Site": "same-origin",
                "Content-Type": "application/json"}
        self.expect(201, "POST", "/v1/tasks", {"type": "t"}, headers=page)


class Strangers(Tls, ApiTest):
    """Of a server with a token: who never shows it is a stranger, with TLS or without."""

    token = "0123456789abcdef0123456789abcdef"
    environment = {"PERDURA_TOKEN": token}

    def check_served(self):
        started = time.monotonic()
        reply = self.request("GET", "/v1/stats",
                             headers={"Authorization": f"Bearer {self.token}"})
        self.assertEqual(reply.status, 200)
        return time.monotonic() - started

    def hello(self):
        """The first message of a handshake."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        try:
            self.context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1").do_handshake()
        except ssl.SSLWantReadError:
            pass
        return outgoing.read()

    def test_2000_stalled_handshakes_harm_no_client(self):
        hello = self.hello()
        crowd = []
        for i in range(STALLED):
            sock = self.plain()
            # nothing, half a greeting, a whole one whose answer is not read, and a bad one
            sock.sendall((b"", hello[:len(hello) // 2], hello, b"\x16\x03\x01\xff\xff")[i % 4])
            crowd.append(sock)
            if i % 500 == 499:
                self.local.connection = None  # a new handshake in the middle of it
                self.assertLess(self.check_served(), 5)
        self.local.connection = None
        self.assertLess(self.check_served(), 5)
        wait_until(lambda: all(self.is_closed(sock) for sock in crowd[:8]), 60,
                   "stalled handshakes being cut off")
        self.assertLess(self.check_served(), 5)

    @staticmethod
    def is_closed(sock):
        sock.setblocking(False)
        try:
            while True:
                if not sock.recv(65536):
                    return True
        except BlockingIOError:
            return False
        except OSError:
            return True

    def test_a_handshake_that_trickles_is_cut_off_by_its_deadline(self):
        hello, sock = self.hello(), self.plain()
        started = time.monotonic()
        for byte in hello:  # four a second, more than two minutes in all
            sock.sendall(bytes([byte]))
            if self.is_closed(sock):
                break
            if time.monotonic() - started > 40:
                self.fail("a handshake may trickle for ever")
            time.sleep(0.25)  # what the test is about: a slow sender
            sock.setblocking(True)
        self.assertGreater(time.monotonic() - started, 5)
        self.check_served()

    def test_garbage_is_cut_off_and_broken_handshakes_leave_nothing_behind(self):
        hello = self.hello()
        for data in (b"\x00" * 100, b"\xff" * 20000, b"\x16\x03\x01\x00\x05hello",
                     b"\x80\x2e\x01\x00\x02", hello[:-1] + b"\x00" + hello,
                     hello + b"\x14\x03\x03\x00\x01\x01" + b"\x17\x03\x03\x40\x00" + b"z" * 16384):
            sock = self.plain()
            sock.sendall(data)
            wait_until(lambda: self.is_closed(sock), what=f"{data[:8]!r} being refused")
        for _ in range(50):  # a reset in the middle
            sock = self.plain()
            sock.sendall(hello)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.close()
        self.check_served()
        wait_until(lambda: self.connections() <= 1, what="their connections being gone")

    def connections(self):
        text = self.request("GET", "/metrics",
                            headers={"Authorization": f"Bearer {self.token}"}).body.decode()
        return float(re.search(r"^perdura_http_connections (\S+)", text, re.M).group(1))

    def test_a_damaged_record_ends_its_own_connection_only(self):
        sock = self.connect()
        self.assertEqual(self.ask(sock), 200)
        raw = socket.socket(fileno=os.dup(sock.fileno()))
        raw.sendall(b"\x17\x03\x03\x00\x40" + b"z" * 64)
        with self.assertRaises((ssl.SSLError, OSError)):
            while sock.recv(1000):
                pass
            raise ssl.SSLError("closed")
        raw.close()
        self.check_served()

    def test_plain_http_gets_a_plain_answer_that_says_what_to_do(self):
        for method in ("GET", "POST", "DELETE"):
            with self.plain() as sock:
                sock.sendall(f"{method} /v1/tasks HTTP/1.1\r\nHost: localhost\r\n"
                             "Content-Length: 3\r\n\r\nabc".encode())
                answer = http.client.HTTPResponse(sock)
                answer.begin()
                self.assertEqual(answer.status, 400)
                self.assertIn(b"use https://", answer.read())
        self.check_served()

    def test_only_modern_TLS_is_spoken(self):
        def attempt(**limits):
            context = certificates.client_context(self.authority.pem)
            context.set_ciphers("ALL:@SECLEVEL=0")
            for name, value in limits.items():
                setattr(context, name, value)
            return self.connect(context).version()
        with self.assertWarns(DeprecationWarning):
            with self.assertRaises(ssl.SSLError):
                attempt(minimum_version=ssl.TLSVersion.TLSv1,
                        maximum_version=ssl.TLSVersion.TLSv1_1)
        self.assertEqual(attempt(maximum_version=ssl.TLSVersion.TLSv1_2), "TLSv1.2")
        self.assertEqual(attempt(), "TLSv1.3")
        weak = certificates.client_context(self.authority.pem)
        weak.maximum_version = ssl.TLSVersion.TLSv1_2
        weak.set_ciphers("AES128-SHA:AES256-SHA256:ECDHE-ECDSA-AES128-SHA:@SECLEVEL=0")
        with self.assertRaises(ssl.SSLError):
            self.connect(weak)


class Renegotiation(Tls, ApiTest):
    def test_a_client_cannot_ask_for_another_handshake(self):
        process = subprocess.Popen(
            ["openssl", "s_client", "-connect", "%s:%d" % self.server.address, "-tls1_2",
             "-CAfile", self.authority.pem], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
        self.addCleanup(process.stdout.close)
        said = b""
        while b"---\n" not in said.split(b"Verify return code", 1)[-1] or b"Verify" not in said:
            said += process.stdout.readline()
        process.stdin.write(b"R\n")
        process.stdin.flush()
        said, _ = process.communicate(timeout=harness.DEADLINE_S)
        self.assertRegex(said, b"no renegotiation|handshake failure")
        self.expect(200, "GET", "/v1/stats")


class OnlyTls13(Tls, ApiTest):
    def setUp(self):
        self.arguments = ("--config", self.write_config())
        super().setUp()

    def write_config(self):
        folder = tempfile.mkdtemp(prefix="perdura-tls-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        path = pathlib.Path(folder, "perdura.yaml")
        path.write_text("tls:\n  min_version: 1.3\n")
        return str(path)

    def test_the_oldest_version_can_be_set(self):
        context = certificates.client_context(self.authority.pem)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with self.assertRaises(ssl.SSLError):
            self.connect(context)
        self.expect(200, "GET", "/healthz")


class Stop(Tls, ApiTest):
    def test_a_stop_ends_connections_with_a_goodbye(self):
        sock = self.connect()
        self.assertEqual(self.ask(sock), 200)
        ended = threading.Thread(target=lambda: self.assertEqual(sock.recv(10), b""))
        self.server.process.send_signal(signal.SIGTERM)
        ended.start()
        ended.join(harness.DEADLINE_S)
        self.assertFalse(ended.is_alive())
        self.assertEqual(self.server.process.wait(harness.DEADLINE_S), 0)


if __name__ == "__main__":
    unittest.main()
