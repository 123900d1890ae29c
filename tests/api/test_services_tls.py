"""Calls over TLS: who the service is, and who we are to it. Nothing is ever sent to a service that
could not prove its name (D10, F-G7)."""
import datetime
import os
import pathlib
import shutil
import signal
import ssl
import tempfile
import time
import unittest

from certificates import Authority
from harness import wait_until
from service_target import Target, reply
from test_services import ServiceTest

ID = "spiffe://cluster.local/ns/whispr/sa/messaging"


class TlsTest(ServiceTest):
    sans = "DNS:localhost,IP:127.0.0.1"
    since, until = -1, 365
    client = False
    tls = "ca: {ca}"

    def setUp(self):
        self.keys = tempfile.mkdtemp(prefix="perdura-keys-")
        self.addCleanup(shutil.rmtree, self.keys, True)
        self.authority = Authority(self.keys)
        self.other = Authority(self.keys, "other")
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(*self.authority.sign("target", self.sans, self.since,
                                                          self.until))
        if self.client:
            self.context.load_verify_locations(self.authority.pem)
            self.context.verify_mode = ssl.CERT_REQUIRED
        self.mine = self.authority.sign("perdura", "URI:spiffe://cluster.local/perdura")
        super().setUp()

    @property
    def service(self):
        cert, key = self.mine
        lines = self.tls.format(ca=self.authority.pem, other=self.other.pem, cert=cert, key=key)
        return f"    tls: {{{lines}}}\n    breaker: {{failures: 0}}\n    timeout: 20s\n"

    def new_target(self):
        return Target(self.answer, tls=self.context)

    def refused(self):
        task = self.outcome("Do", payload={"secret": 1})
        self.assertEqual(task["status"], "dead_letter")
        self.assertEqual(task["error_details"]["code"], "tls_failed", task["error"])
        self.assertEqual(self.target.seen(), [])
        return task["error"]


class NameTest(TlsTest):
    def test_a_certificate_of_our_ca_with_the_right_name_is_called(self):
        self.assertEqual(self.outcome("Do")["status"], "completed")


class WrongAuthorityTest(TlsTest):
    tls = "ca: {other}"

    def test_another_ca_is_refused_before_anything_is_sent(self):
        self.assertIn("certificate", self.refused())


class WrongNameTest(TlsTest):
    sans = "DNS:elsewhere.example"

    def test_another_name_is_refused_before_anything_is_sent(self):
        self.refused()


class ServerNameTest(TlsTest):
    sans = "DNS:orders.internal"
    tls = "ca: {ca}, server_name: orders.internal"

    def test_a_name_of_the_configuration_counts_in_place_of_the_host(self):
        self.assertEqual(self.outcome("Do")["status"], "completed")
        self.assertEqual(self.target.seen()[0].headers["host"], f"127.0.0.1:{self.target.port}")


class ExpiredTest(TlsTest):
    since, until = -10, -1

    def test_an_expired_certificate_is_refused(self):
        self.refused()


class ExpiresTest(TlsTest):
    """It is valid for a few seconds, and the service never replaces it."""
    since, until = -1, 6 / 86400

    def answer(self, call):
        return reply(200, {}, Connection="close" if self.closes else "keep-alive")

    def test_a_certificate_that_expires_while_connected_is_refused_by_the_next_connection(self):
        self.closes = False
        first = self.outcome("Do")
        self.assertEqual(first["status"], "completed", first["error"])
        end = datetime.datetime.now() + datetime.timedelta(seconds=7)
        self.closes = True
        self.assertEqual(self.outcome("Do")["status"], "completed", "the connection lives")
        wait_until(lambda: datetime.datetime.now() > end, what="the end of the certificate")
        seen = len(self.target.seen())
        task = self.outcome("Do")
        self.assertEqual((task["status"], task["error_details"]["code"]),
                         ("dead_letter", "tls_failed"), task["error"])
        self.assertIn("expired", task["error"])
        self.assertEqual(len(self.target.seen()), seen, "nothing was sent")


class RenewedTest(TlsTest):
    """The service's certificate ends while calls go over a connection; then all move to another CA."""
    since, until = -1, 20 / 86400
    client = True
    tls = "ca: {ca}, cert: {cert}, key: {key}"
    closes = False

    def answer(self, call):
        return reply(200, {}, Connection="close" if self.closes else "keep-alive")

    def new_target(self):
        self.connections = set()
        target = super().new_target()
        serve = target.serve

        async def noted(reader, writer):
            self.connections.add(writer.get_extra_info("peername"))
            await serve(reader, writer)
        target.serve = noted
        return target

    def test_f_g7_new_certificates_of_both_sides_count_for_the_next_connection(self):
        end = time.monotonic() + 21
        self.assertEqual(self.outcome("Do")["status"], "completed")
        before = set(self.connections)
        wait_until(lambda: time.monotonic() > end, what="the end of the certificate")
        self.closes = True
        self.assertEqual(self.outcome("Do")["status"], "completed")
        self.assertEqual(self.connections, before, "the connection lives")
        wait_until(lambda: "expired" in (self.outcome("Do")["error"] or ""), what="the refusal")
        for path, name in zip(self.mine, self.other.sign("renewed", "DNS:renewed")):
            os.replace(name, path)
        shutil.copy(self.other.pem, self.authority.pem + ".new")
        os.replace(self.authority.pem + ".new", self.authority.pem)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(*self.other.sign("target", self.sans))
        self.context.load_verify_locations(self.other.pem)
        self.context.verify_mode = ssl.CERT_REQUIRED
        self.target.close()
        self.target = Target(self.answer, tls=self.context, port=self.target.port)
        self.addCleanup(self.target.close)
        wait_until(lambda: self.outcome("Do")["status"] == "completed", what="a call with the new certificates")
        self.assertNotIn("config.reloaded", self.server.log())


class SpiffeTest(TlsTest):
    sans = f"URI:{ID}"
    tls = f"ca: {{ca}}, spiffe_id: '{ID}'"

    def test_the_right_spiffe_id_is_called_whatever_the_host(self):
        self.assertEqual(self.outcome("Do")["status"], "completed")


class WrongSpiffeTest(TlsTest):
    sans = f"DNS:localhost,IP:127.0.0.1,URI:{ID}-2"
    tls = f"ca: {{ca}}, spiffe_id: '{ID}'"

    def test_another_spiffe_id_of_the_same_ca_is_refused(self):
        self.refused()


class MutualTest(TlsTest):
    client = True
    tls = "ca: {ca}, cert: {cert}, key: {key}"

    def test_our_certificate_is_shown_and_read_again_for_new_connections(self):
        self.assertEqual(self.outcome("Do")["status"], "completed")
        for path, name in zip(self.mine, self.authority.sign("renewed", "DNS:renewed")):
            os.replace(name, path)
        self.target.close()
        self.target = Target(self.answer, tls=self.context, port=self.target.port)
        self.addCleanup(self.target.close)
        self.assertEqual(self.outcome("Do")["status"], "completed")


class NoCertificateTest(TlsTest):
    client = True

    def test_a_service_that_wants_a_certificate_gets_no_call_without_one(self):
        task = self.outcome("Do")
        self.assertEqual(task["status"], "dead_letter")
        # TLS 1.3: the refusal comes after our side of the handshake has ended.
        self.assertIn(task["error_details"]["code"], ("tls_failed", "connection_lost"))
        self.assertEqual(self.target.seen(), [])


if __name__ == "__main__":
    unittest.main()
