"""Commands and workers that come in by a client certificate or a JWT (D12): they do what its rights
allow, and say what is missing."""
import json
import os
import subprocess
import sys
import unittest

from cli_harness import binary, environment
from test_tls_clients import HANDLER, TlsFolder

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
from jwts import AUDIENCE, ISSUER, Issuer, Key  # noqa: E402

RULES = """access:
  certificates:
    - {san: "spiffe://example.org/worker", scopes: [worker]}
    - {san: "shop.example.org", scopes: [producer]}
    - {san: "ops.example.org", namespace: "*", scopes: [admin]}
"""


class Certificates(TlsFolder):
    def setUp(self):
        super().setUp()
        self.write("server.yaml", RULES)
        self.serve_tls("--tls-client-ca", self.clients.pem, "--config", "server.yaml",
                       "--workers", "0")

    def as_name(self, name, san):
        cert, key = self.clients.sign(name, san)
        return (*self.ca, "--cert", cert, "--cert-key", key)

    def test_a_worker_runs_what_a_shop_enqueues(self):
        worker = self.as_name("worker", "URI:spiffe://example.org/worker")
        shop = self.as_name("shop", "DNS:shop.example.org")
        self.write("worker.yaml", HANDLER)
        with open(os.path.join(self.folder, "worker.log"), "wb") as log:
            process = subprocess.Popen([binary(), "worker", "--server", self.url, "--config",
                                        "worker.yaml", *worker], cwd=self.folder, stdout=log,
                                       stderr=log, env=environment())
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        made = self.perdura("enqueue", "t", "--wait", *shop).stdout.strip()
        shown = self.perdura("task", "show", made, "--json",
                             *self.as_name("ops", "DNS:ops.example.org"))
        task = json.loads(shown.stdout)
        self.assertEqual((task["status"], task["created_by_principal"]),
                         ("completed", "certificate:shop.example.org"))
        self.assertIn("tasks:enqueue", self.refused(1, "enqueue", "t", *worker))
        self.assertIn("access.certificates",
                      self.refused(1, "stats", *self.as_name("eve", "DNS:eve.example.org")))
        who = self.perdura("whoami", *shop).stdout
        self.assertIn("certificate:shop.example.org", who)


class Jwts(TlsFolder):
    def test_a_JWT_is_a_token_of_every_command(self):
        key = Key(self.folder, "EdDSA", "k")
        issuer = Issuer(key)
        self.addCleanup(issuer.close)
        self.write("server.yaml", f"access:\n  jwt: {{issuer: {ISSUER}, audience: {AUDIENCE}, "
                                  f"jwks_url: '{issuer.url}'}}\n")
        self.serve_tls("--config", "server.yaml", "--workers", "0", PERDURA_ACCESS_REQUIRED="true")
        token = {"PERDURA_TOKEN": key.token(sub="alice", scope="producer", namespace="default")}
        self.perdura("enqueue", "t", *self.ca, **token)
        self.assertIn("jwt:alice", self.perdura("whoami", *self.ca, **token).stdout)
        self.assertIn("tasks:read", self.refused(1, "task", "list", *self.ca, **token))
        self.refused(1, "stats", *self.ca, PERDURA_TOKEN=key.token(exp=1))


if __name__ == "__main__":
    unittest.main()
