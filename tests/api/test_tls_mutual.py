"""Client certificates, and certificates that change while the server runs (D12): who is let in,
who is not, and that no good client is turned away by a change."""
import os
import pathlib
import shutil
import signal
import ssl
import threading
import unittest

import certificates
from certificates import client_context
from harness import ApiTest, wait_until
from test_tls import Tls


def replace(path, *sources):
    """As an administrator should: a new file in the place of the old one."""
    pathlib.Path(path + ".new").write_bytes(b"".join(pathlib.Path(x).read_bytes() for x in sources))
    os.rename(path + ".new", path)


class Reloads(Tls):
    """Mixin: waits for lines of the log that were written from now on."""

    def count(self, event):
        return self.server.log().count(f'"event":"{event}"')

    def wait_for(self, event, act):
        before = self.count(event)
        act()
        wait_until(lambda: self.count(event) > before, what=event)

    def hang_up(self):
        self.server.process.send_signal(signal.SIGHUP)

    def serial(self):
        """Which certificate a new connection gets."""
        return self.connect().getpeercert()["serialNumber"]


class Mutual(Reloads, ApiTest):
    def setUp(self):
        self.clients = self.own = None
        super().setUp()

    @property
    def more_arguments(self):
        if not self.clients:
            self.clients = certificates.Authority(self.secrets, "clients")
            self.bundle = os.path.join(self.secrets, "bundle.pem")
            shutil.copy(self.clients.pem, self.bundle)
        return ("--tls-client-ca", self.bundle)

    def connection(self, timeout=90):
        if not self.own:
            self.own = self.clients.sign("own", "URI:spiffe://example.org/worker/7,DNS:worker-7")
            self.context.load_cert_chain(*self.own)
        return super().connection(timeout)

    def context_of(self, certificate, **options):
        context = client_context(self.authority.pem, certificate)
        for name, value in options.items():
            setattr(context, name, value)
        return context

    def is_let_in(self, certificate, **options):
        try:
            return self.ask(self.connect(self.context_of(certificate, **options))) == 200
        except (ssl.SSLError, OSError) as error:
            self.refusal = str(error)
            return False

    def test_only_clients_with_a_certificate_of_the_CA_are_let_in(self):
        other = certificates.Authority(self.secrets, "other")
        forged = certificates.Authority(os.path.join(self.secrets, "other"), "clients")
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            limit = {"maximum_version": version}
            for name, certificate, good in (
                    ("good", self.clients.sign("a"), True),
                    ("without any name", self.clients.sign("b", None), True),
                    ("none", None, False),
                    ("of another CA", other.sign("c"), False),
                    ("of another CA with the same name", forged.sign("d"), False),
                    ("self-signed", (other.pem, other.key), False),
                    ("the server's own", self.files, False),
                    ("expired", self.clients.sign("e", since=-9, until=-2), False),
                    ("not yet valid", self.clients.sign("f", since=2, until=9), False)):
                with self.subTest(name, version=version):
                    self.assertEqual(self.is_let_in(certificate, **limit), good)
                    if not good:  # it learns why: an alert, not a reset
                        self.assertIn("alert", self.refusal)
        self.expect(201, "POST", "/v1/tasks", {"type": "t"})
        self.assertGreaterEqual(self.count("tls.handshakes_failed"), 1)

    def test_the_server_is_checked_by_its_clients_too(self):
        good = self.clients.sign("a")
        stranger = certificates.Authority(self.secrets, "stranger")
        with self.assertRaisesRegex(ssl.SSLCertVerificationError, "unable to get local issuer"):
            self.connect(client_context(stranger.pem, good))
        sock = self.plain()
        with self.assertRaisesRegex(ssl.SSLCertVerificationError, "doesn't match|mismatch"):
            self.context_of(good).wrap_socket(sock, server_hostname="elsewhere.example")

    def test_a_session_is_not_resumed_once_its_CA_was_removed(self):
        certificate = self.clients.sign("a")
        fresh = certificates.Authority(self.secrets, "fresh")
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            replace(self.bundle, self.clients.pem)
            self.wait_for("tls.reloaded", self.hang_up)
            context = self.context_of(certificate, maximum_version=version)
            first = self.connect(context)
            self.assertEqual(self.ask(first), 200)
            session = first.session
            self.assertEqual(self.ask(self.connect(context, session=session)), 200)
            self.assertFalse(self.connect(context, session=session).session_reused)
            replace(self.bundle, fresh.pem)
            self.wait_for("tls.reloaded", self.hang_up)
            with self.assertRaises((ssl.SSLError, OSError)):
                self.ask(self.connect(context, session=session))
            self.assertEqual(self.ask(first), 200)  # what was let in stays

    def test_old_and_new_CA_are_trusted_side_by_side(self):
        fresh = certificates.Authority(self.secrets, "fresh")
        old, new = self.clients.sign("old"), fresh.sign("new")
        steps = (((self.clients.pem,), True, False), ((self.clients.pem, fresh.pem), True, True),
                 ((fresh.pem, self.clients.pem), True, True), ((fresh.pem,), False, True))
        for bundle, old_is_good, new_is_good in steps:
            replace(self.bundle, *bundle)
            self.wait_for("tls.reloaded", self.hang_up)
            self.assertEqual((self.is_let_in(old), self.is_let_in(new)),
                             (old_is_good, new_is_good))

    def test_no_good_client_is_refused_while_the_bundle_is_swapped_under_load(self):
        fresh = certificates.Authority(self.secrets, "fresh")
        certs = [self.clients.sign("old"), fresh.sign("new")]
        replace(self.bundle, self.clients.pem, fresh.pem)
        self.wait_for("tls.reloaded", self.hang_up)
        over, refused, served = threading.Event(), [], [0, 0]

        def hammer(number):
            context = self.context_of(certs[number])
            while not over.is_set():
                try:
                    sock = self.connect(context)
                    self.ask(sock)
                    sock.close()
                    served[number] += 1
                except OSError as error:
                    refused.append(error)
        threads = [threading.Thread(target=hammer, args=(n,)) for n in (0, 1)]
        for thread in threads:
            thread.start()
        for turn in range(4):
            order = (self.clients.pem, fresh.pem) if turn % 2 else (fresh.pem, self.clients.pem)
            act = self.hang_up if turn < 2 else lambda: None  # else the files are noticed
            replace(self.bundle, *order)
            self.wait_for("tls.reloaded", act)
        over.set()
        for thread in threads:
            thread.join()
        self.assertEqual(refused, [])
        self.assertGreater(min(served), 5)

    def test_a_damaged_bundle_keeps_the_one_before(self):
        good = self.clients.sign("a")
        whole = pathlib.Path(self.clients.pem).read_bytes()
        for text in (b"", b"no certificate\n", whole + whole[:200],
                     whole.replace(b"M", b"*", 3)):
            pathlib.Path(self.bundle).write_bytes(text)
            self.wait_for("tls.refused", lambda: None)
            self.assertTrue(self.is_let_in(good))
            self.assertFalse(self.is_let_in(None))


class Changes(Reloads, ApiTest):
    def test_a_new_certificate_is_in_force_after_SIGHUP_and_when_the_files_change(self):
        seen = {self.serial()}
        kept = self.connect()
        for number, act in enumerate((self.hang_up, lambda: None)):
            fresh = self.authority.sign(f"fresh{number}")

            def change():
                replace(self.files[0], fresh[0])
                replace(self.files[1], fresh[1])
                act()
            self.wait_for("tls.reloaded", change)
            self.assertNotIn(self.serial(), seen)
            seen.add(self.serial())
        self.assertEqual(self.ask(kept), 200)  # with the certificate it began with
        self.assertEqual(self.count("tls.refused"), 0)

    def test_files_that_cannot_be_used_keep_the_certificate_before_and_say_so_once(self):
        before = self.serial()
        other = self.authority.sign("other")
        cert, key = (pathlib.Path(x) for x in self.files)
        good = cert.read_bytes(), key.read_bytes()
        for number, (path, text, word) in enumerate((
                (key, pathlib.Path(other[1]).read_bytes(), "does not belong"),
                (cert, b"nothing\n", "no certificate chain"),
                (key, b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
                 "no private key"),
                (cert, None, "cannot read"))):
            self.wait_for("tls.refused", lambda: path.write_bytes(text) if text else path.unlink())
            self.assertEqual(self.count("tls.refused"), number + 1)
            line = [x for x in self.server.log().splitlines() if "tls.refused" in x][-1]
            self.assertIn(word, line)
            self.assertIn("the certificate before it stays in force", line)
            self.assertEqual(self.serial(), before)
            cert.write_bytes(good[0])
            key.write_bytes(good[1])
            wait_until(lambda: self.count("tls.reloaded") == number + 1, what="the good files")
        self.expect(200, "GET", "/v1/stats")

    def test_an_expired_certificate_is_used_but_warned_of(self):
        cert, key = self.authority.sign("old", since=-9, until=-2)

        def change():
            replace(self.files[0], cert)
            replace(self.files[1], key)
        self.wait_for("tls.expired", change)
        with self.assertRaisesRegex(ssl.SSLCertVerificationError, "expired"):
            self.connect()


if __name__ == "__main__":
    unittest.main()
