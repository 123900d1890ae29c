"""TLS as others look at it (D12): testssl.sh finds nothing of medium severity or worse. Certificates
are left out, because no browser trusts a CA made for a test."""
import json
import os
import pathlib
import shutil
import subprocess
import unittest

from harness import ApiTest
from test_tls import Tls

SCANNER = shutil.which("testssl") or shutil.which("testssl.sh")
WEAK = {"MEDIUM", "HIGH", "CRITICAL"}


@unittest.skipUnless(SCANNER, "testssl.sh is not installed")
class Scan(Tls, ApiTest):
    def test_testssl_finds_nothing_of_medium_severity_or_worse(self):
        report = os.path.join(self.secrets, "report.json")
        # A page without compression: that of the dashboard holds no secret to guess (BREACH).
        done = subprocess.run(
            [SCANNER, "--quiet", "--color", "0", "--warnings", "batch", "--nodns", "none",
             "--openssl", shutil.which("openssl"), "--protocols", "--std", "--pfs",
             "--vulnerable", "--jsonfile", report,
             "https://127.0.0.1:%d/healthz" % self.server.address[1]],
            cwd=self.secrets, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=600, check=False)
        findings = json.loads(pathlib.Path(report).read_text())
        known = {finding["id"] for finding in findings}
        self.assertLessEqual({"TLS1_1", "TLS1_3", "heartbleed", "secure_client_renego", "LUCKY13"},
                             known, done.stdout)
        self.assertEqual([x for x in findings if x["severity"] in WEAK], [], done.stdout)


if __name__ == "__main__":
    unittest.main()
