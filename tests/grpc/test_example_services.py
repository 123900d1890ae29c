"""examples/services as its README says: five services in two languages, mutual TLS with certificates made on
the spot, jobs that call each of them; and nothing for callers who are not Perdura (D10, D13, F-G7)."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import unittest
import urllib.request

import harness
from harness import wait_until

EXAMPLE = harness.ROOT / "examples/services"
PACKAGES = os.environ.get("PERDURA_GRPC_PACKAGES", "")
JOBS = json.loads((EXAMPLE / "jobs.json").read_text())
SERVICES = {"messaging", "notification", "media", "user", "auth"}


class ExampleServices(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="perdura-example-"))
        self.addCleanup(shutil.rmtree, self.folder, True)

    def start(self, *more):
        return subprocess.Popen(
            [sys.executable, EXAMPLE / "start.py", "--perdura", harness.binary(), "--folder", self.folder,
             "--free-ports", *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "EXAMPLE_PACKAGES": os.path.join(PACKAGES, "node_modules")})

    def started(self):
        """The program, its API's address, once all is there."""
        process = self.start()
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        line = process.stdout.readline()
        found = re.search(r"dashboard: (\S+)/", line)
        self.assertTrue(found, line or process.stderr.read())
        return process, found.group(1)

    def ask(self, url, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.load(reply)

    def effects(self, name):
        lines = [json.loads(line) for line in (self.folder / f"{name}.log").read_text().splitlines()
                 if line.startswith("{")]
        return [line["key"] for line in lines if line.get("new")]

    def test_every_job_runs_and_does_its_work_once(self):
        for round in (1, 2):  # the second start finds its jobs, certificates and store
            process = self.start("--run-all")
            out, err = process.communicate(timeout=300)
            self.assertEqual(process.returncode, 0, out + err)
            for job in JOBS:
                self.assertRegex(out, rf"(?m)^{job['name']} +completed +\{{")
            keys = [key for name in SERVICES for key in self.effects(name)]
            self.assertEqual(len(keys), len(set(keys)))
            self.assertEqual(len(keys), len(JOBS), f"in round {round}")

    def test_services_are_up_and_refuse_those_who_are_not_perdura(self):
        process, url = self.started()
        names = {f"{name}-service" for name in SERVICES}

        def shown():
            return {item["name"]: item for item in self.ask(f"{url}/v1/services")["items"]}
        self.assertEqual(set(shown()), names)
        self.ask(f"{url}/v1/jobs/cleanup-sessions:run", {})
        wait_until(lambda: self.effects("auth"))
        for name, item in shown().items():
            self.assertNotEqual(item["status"], "down", item)
            port = int(item["url"].rsplit(":", 1)[1].split("/")[0])
            self.refused(name, port, None)
        auth = int(shown()["auth-service"]["url"].rsplit(":", 1)[1])
        context = self.context("media")  # a certificate of the same CA, of another service
        request = urllib.request.Request(f"https://localhost:{auth}/CleanupSessions", b"{}",
                                         {"Idempotency-Key": "k", "Perdura-Attempt": "1"})
        with self.assertRaises(urllib.error.HTTPError) as raised:
            urllib.request.urlopen(request, context=context, timeout=60)
        raised.exception.close()
        self.assertEqual(raised.exception.code, 403)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(120), 0, process.stderr.read())
        with self.assertRaises(OSError):  # nothing is left behind
            socket.create_connection(("127.0.0.1", auth), timeout=10).close()

    def context(self, name):
        context = ssl.create_default_context(cafile=self.folder / "ca.pem")
        if name:
            context.load_cert_chain(self.folder / f"{name}.pem", self.folder / f"{name}.key")
        return context

    def refused(self, name, port, certificate):
        """TLS ends before anything is answered."""
        with self.assertRaises((ssl.SSLError, ConnectionError), msg=name):
            with socket.create_connection(("127.0.0.1", port), timeout=60) as plain, \
                    self.context(certificate).wrap_socket(plain, server_hostname="localhost") as tls:
                tls.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                if not tls.recv(1):
                    raise ConnectionError("closed")


if __name__ == "__main__":
    unittest.main()
