"""Clients over TLS (D12): commands, workers and the library with --ca, --cert and --cert-key; what
they say when it fails; and that nothing crosses a network in clear text by mistake."""
import ctypes
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading
import unittest
from http.server import BaseHTTPRequestHandler, HTTPServer

import certificates
import harness
from cli_harness import DEADLINE_S, FolderTest, binary, environment, wait_until
from certificates import Authority

TOKEN = "0123456789abcdef0123456789abcdef"
HANDLER = "handlers:\n  - type: t\n    command: [/bin/echo, done]\n"


class TlsFolder(FolderTest):
    def setUp(self):
        super().setUp()
        self.authority = Authority(self.folder)
        self.clients = Authority(self.folder, "clients")
        self.files = self.authority.sign("server")
        self.ca = ("--ca", self.authority.pem)

    def serve_tls(self, *arguments, files=None, **variables):
        cert, key = files or self.files
        server = self.serve("--tls-cert", cert, "--tls-key", key, *arguments, **variables)
        self.url = "https://%s:%d" % server.address
        return server

    def identity(self, name="client", **options):
        cert, key = self.clients.sign(name, "URI:spiffe://example.org/worker", **options)
        return ("--cert", cert, "--cert-key", key)


class Commands(TlsFolder):
    def test_commands_work_with_flags_and_with_variables(self):
        self.serve_tls(PERDURA_TOKEN=TOKEN)
        self.perdura("enqueue", "t", *self.ca, PERDURA_TOKEN=TOKEN)
        done = self.perdura("task", "list", "--json", PERDURA_TOKEN=TOKEN,
                            PERDURA_CA=self.authority.pem)
        self.assertEqual(len(json.loads(done.stdout)["items"]), 1)
        self.perdura("top", "--once", *self.ca, PERDURA_TOKEN=TOKEN)

    def test_commands_show_a_client_certificate(self):
        self.serve_tls("--tls-client-ca", self.clients.pem)
        identity = self.identity()
        self.perdura("enqueue", "t", "--key", "a-key-of-the-task", *self.ca, *identity)
        both = os.path.join(self.folder, "both.pem")
        pathlib.Path(both).write_text(pathlib.Path(identity[1]).read_text() +
                                      pathlib.Path(identity[3]).read_text())
        self.perdura("task", "list", PERDURA_CA=self.authority.pem, PERDURA_CERT=both)

    def check(self, *words, arguments=(), server=None):
        said = self.refused(1, "stats", "--server", server or self.url, *arguments)
        for word in words:
            self.assertIn(word, said)

    def test_errors_say_what_failed_and_what_to_do(self):
        server = self.serve_tls("--tls-client-ca", self.clients.pem,
                                files=self.authority.sign("address", "IP:127.0.0.1"))
        port = server.address[1]
        good = self.identity()
        self.check("unknown CA", "--ca FILE", arguments=good)
        self.check("unknown CA", "--ca FILE", arguments=("--ca", self.clients.pem, *good))
        self.check("wants a client certificate", "--cert FILE", arguments=self.ca)
        foreign = self.authority.sign("foreign")
        self.check("refused the client certificate",
                   arguments=(*self.ca, "--cert", foreign[0], "--cert-key", foreign[1]))
        self.check("refused the client certificate", "valid now",
                   arguments=(*self.ca, *self.identity("old", since=-9, until=-2)))
        self.check("use https://", server=f"http://127.0.0.1:{port}")
        self.check("another name", server=f"https://localhost:{port}",
                   arguments=(*self.ca, *good))
        self.check("belong together", arguments=(*self.ca, "--cert", good[1], "--cert-key", foreign[1]))
        self.check("must hold PEM", arguments=("--ca", os.path.join(self.folder, "clients/config"),
                                               *good))
        self.check("cannot read the CA file", arguments=("--ca", "nowhere.pem"))
        self.check("without its certificate", arguments=(*self.ca, "--cert-key", foreign[1]))

    def test_a_certificate_of_another_time_is_named(self):
        self.serve_tls(files=self.authority.sign("old", since=-9, until=-2))
        self.check("expired certificate", "renew", arguments=self.ca)

    def test_a_certificate_of_the_future_is_named(self):
        self.serve_tls(files=self.authority.sign("young", since=2, until=9))
        self.check("not valid yet", "clock", arguments=self.ca)

    def test_a_server_in_clear_text_is_named(self):
        server = self.serve()
        self.check("does not speak TLS", "http://", server="https://%s:%d" % server.address)


class Workers(TlsFolder):
    def setUp(self):
        super().setUp()
        self.bundle = os.path.join(self.folder, "bundle.pem")
        shutil.copy(self.clients.pem, self.bundle)
        self.server = self.serve_tls("--tls-client-ca", self.bundle, "--workers", "0")
        self.admin = (*self.ca, *self.identity("admin"))
        self.write("worker.yaml", HANDLER)

    def start_worker(self, *arguments):
        log = open(os.path.join(self.folder, "worker.log"), "ab")
        self.addCleanup(log.close)
        process = subprocess.Popen([binary(), "worker", "--server", self.url, "--config",
                                    "worker.yaml", *arguments], cwd=self.folder, stdout=log,
                                   stderr=log, env=environment())
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        return process

    def run_task(self):
        done = self.perdura("enqueue", "t", "--wait", *self.admin)
        shown = self.perdura("task", "show", done.stdout.strip(), "--json", *self.admin)
        self.assertEqual(json.loads(shown.stdout)["status"], "completed")

    def test_a_worker_runs_tasks_and_takes_a_new_certificate_without_a_restart(self):
        identity = self.identity("worker")
        worker = self.start_worker(*self.ca, *identity)
        self.run_task()
        fresh = Authority(self.folder, "fresh")
        cert, key = fresh.sign("worker")
        pathlib.Path(self.bundle).write_text(pathlib.Path(self.clients.pem).read_text() +
                                             pathlib.Path(fresh.pem).read_text())
        wait_until(lambda: "tls.reloaded" in self.server.log())
        shutil.copy(cert, identity[1])
        shutil.copy(key, identity[3])
        self.run_task()
        self.server.stop()  # no connection outlives it, and the old CA is trusted no more
        shutil.copy(fresh.pem, self.bundle)
        cert, key = fresh.sign("admin")
        self.admin = (*self.ca, "--cert", cert, "--cert-key", key)
        self.server.arguments = (*self.server.arguments, "--listen",
                                 "%s:%d" % self.server.address)
        self.server.start()
        self.run_task()
        self.perdura("whoami", *self.ca, "--cert", cert, "--key", key)  # where that means no task
        self.assertIsNone(worker.poll())


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("token", ctypes.c_char_p),
                ("timeout_ms", ctypes.c_int64), ("lease_ms", ctypes.c_int64),
                ("keep_completed_ms", ctypes.c_int64), ("keep_failed_ms", ctypes.c_int64),
                ("callbacks_allow", ctypes.c_void_p), ("callbacks_allow_count", ctypes.c_size_t),
                ("log_fd", ctypes.c_int), ("allow_network_fs", ctypes.c_int),
                ("tls_ca", ctypes.c_char_p), ("tls_cert", ctypes.c_char_p),
                ("tls_key", ctypes.c_char_p)]


class Spec(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("type", ctypes.c_char_p)]


@unittest.skipIf(harness.sanitizer(), "a program without the sanitizer cannot load the library")
class Library(TlsFolder):
    def setUp(self):
        super().setUp()
        self.lib = ctypes.CDLL(os.path.join(os.path.dirname(binary()), "libperdura.so"))
        self.lib.pd_error.restype = ctypes.c_char_p
        self.lib.pd_error.argtypes = self.lib.pd_close.argtypes = [ctypes.c_void_p]
        self.lib.pd_enqueue.argtypes = [ctypes.c_void_p, ctypes.POINTER(Spec), ctypes.c_char_p]

    def enqueue(self, **files):
        handle, task_id = ctypes.c_void_p(), ctypes.create_string_buffer(64)
        options = Options(ctypes.sizeof(Options), **{k: v.encode() for k, v in files.items()})
        spec = Spec(ctypes.sizeof(Spec), b"t")
        rc = self.lib.pd_open(self.url.encode(), ctypes.byref(options), ctypes.byref(handle))
        if rc == 0:
            rc = self.lib.pd_enqueue(handle, ctypes.byref(spec), task_id)
        said = self.lib.pd_error(handle).decode() if rc else ""
        self.lib.pd_close(handle)
        return said or task_id.value.decode()

    def test_a_program_enqueues_over_TLS(self):
        self.serve_tls("--tls-client-ca", self.clients.pem)
        _, cert, _, key = self.identity()
        ca = self.authority.pem
        self.assertRegex(self.enqueue(tls_ca=ca, tls_cert=cert, tls_key=key), r"^[0-9a-f-]{36}$")
        self.assertIn("unknown CA", self.enqueue(tls_cert=cert, tls_key=key))
        self.assertIn("wants a client certificate", self.enqueue(tls_ca=ca))


class Webhooks(TlsFolder):
    def test_receivers_with_a_certificate_of_a_private_CA_are_reached(self):
        received = threading.Event()

        class Receiver(BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(204)
                self.end_headers()
                received.set()

            def log_message(self, *_):
                pass
        context = certificates.ssl.SSLContext(certificates.ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.files)
        receiver = HTTPServer(("127.0.0.1", 0), Receiver)
        receiver.socket = context.wrap_socket(receiver.socket, server_side=True)
        self.addCleanup(receiver.server_close)
        self.addCleanup(receiver.shutdown)
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        url = f"https://127.0.0.1:{receiver.server_address[1]}/hook"
        self.write("perdura.yaml", HANDLER + f"callbacks:\n  allow: [\"https://127.0.0.1\"]\n"
                   f"  ca: {self.authority.pem}\n")
        server = self.serve()
        self.url = "http://%s:%d" % server.address
        self.perdura("enqueue", "t", "--callback-url", url)
        self.assertTrue(received.wait(DEADLINE_S), server.log())


class ClearText(TlsFolder):
    def test_beyond_loopback_it_must_be_asked_for(self):
        said = self.refused(2, "serve", "--listen", "0.0.0.0:0", PERDURA_TOKEN=TOKEN)
        for word in ("in clear text", "tls.cert", "allow_clear_text", "127.0.0.1"):
            self.assertIn(word, said)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "perdura.db")))
        for more in (("--allow-clear-text",), ("--tls-cert", self.files[0], "--tls-key",
                                               self.files[1])):
            self.serve("--listen", "0.0.0.0:0", *more, PERDURA_TOKEN=TOKEN).stop()
        self.serve("--listen", "0.0.0.0:0", PERDURA_TOKEN=TOKEN,
                   PERDURA_ALLOW_CLEAR_TEXT="true").stop()

    def test_a_start_refuses_files_it_cannot_use(self):
        cert, key = self.files
        other = self.authority.sign("other")
        for arguments, word, code in (
                (("--tls-cert", cert), "tls.key", 2), (("--tls-key", key), "tls.cert", 2),
                (("--tls-client-ca", self.clients.pem), "tls.cert", 2),
                (("--tls-cert", cert, "--tls-key", other[1]), "does not belong", 1),
                (("--tls-cert", "nowhere", "--tls-key", key), "cannot read tls.cert", 1),
                (("--tls-cert", cert, "--tls-key", key, "--tls-client-ca", key),
                 "no certificate", 1)):
            self.assertIn(word, self.refused(code, "serve", "--listen", "127.0.0.1:0", *arguments))


class Manual(TlsFolder):
    def test_the_recipe_in_the_manual_works(self):
        """docs/operations.md, TLS: the first commands, word for word."""
        text = pathlib.Path(harness.ROOT, "docs", "operations.md").read_text()
        recipe = text.split("\n## TLS\n")[1].split("```sh\n")[1].split("```")[0]
        subprocess.run(["sh", "-ec", recipe], cwd=self.folder, check=True, timeout=DEADLINE_S,
                       stdin=subprocess.DEVNULL, capture_output=True)
        self.serve_tls("--tls-client-ca", "ca.pem", files=("server.pem", "server.key"))
        self.perdura("enqueue", "t", "--ca", "ca.pem", "--cert", "worker.pem", "--cert-key",
                     "worker.key")


class Doctor(TlsFolder):
    def check(self, files, verdict, *words, mode=0o600):
        cert, key = files
        os.chmod(key, mode)
        self.write("perdura.yaml", f"tls: {{cert: {cert}, key: {key}}}\n{HANDLER}")
        done = subprocess.run([binary(), "doctor", "--json"], cwd=self.folder, text=True,
                              capture_output=True, env=environment(), check=False)
        checks = json.loads(done.stdout)["checks"]
        name = "secrets" if mode != 0o600 else "certificate"
        found = next(c for c in checks if c["name"] == name)
        self.assertEqual(found["verdict"], verdict, found)
        for word in words:
            self.assertIn(word, found["detail"])

    def test_doctor_looks_at_the_files(self):
        self.check(self.files, "ok", "valid for")
        self.check(self.authority.sign("soon", until=20), "warning", "expires in")
        self.check(self.authority.sign("old", since=-9, until=-1), "failure", "expired")
        self.check(self.authority.sign("young", since=3), "failure", "not valid yet")
        self.check((self.files[0], self.clients.sign("x")[1]), "failure", "does not belong")
        self.check(self.files, "warning", "every user", mode=0o644)


if __name__ == "__main__":
    unittest.main()
