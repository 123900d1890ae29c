"""Services by name: a name that leads to another address the next time is followed within seconds, and clear
text beyond loopback only where the configuration says so (D10). Needs root, for a hosts file of its own."""
import os
import pathlib
import subprocess
import tempfile
import unittest
import unittest.mock

from harness import binary
from service_target import Target, reply
from test_services import ServiceTest

NAME = "orders.mesh.example"


def may_mount():
    return subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0


@unittest.skipUnless(may_mount(), "a mount namespace needs root")
class NameTest(ServiceTest):
    service = "    clear_text: mesh\n    breaker: {failures: 0}\n    timeout: 2s\n"

    def configuration(self):
        return super().configuration().replace(self.target.url, f"http://{NAME}:{self.target.port}")

    def write_configuration(self):
        super().write_configuration()
        self.hosts = pathlib.Path(self.folder, "hosts")
        self.lead_to("127.0.0.1")
        wrapper = pathlib.Path(self.folder, "perdura")
        wrapper.write_text(f"#!/bin/sh\nexec unshare -m sh -c 'mount --bind {self.hosts} /etc/hosts && "
                           f"exec {binary()} \"$@\"' perdura \"$@\"\n")
        wrapper.chmod(0o755)
        patch = unittest.mock.patch.dict(os.environ, PERDURA_BINARY=str(wrapper))
        patch.start()
        self.addCleanup(patch.stop)

    def lead_to(self, address):
        self.hosts.write_text(f"{address} {NAME}\n")

    def test_f_g9_a_name_that_leads_elsewhere_the_next_time_is_followed(self):
        self.assertEqual(self.outcome("Do")["status"], "completed")
        other = Target(lambda call: reply(200, {"other": True}), port=self.target.port, host="127.0.0.2")
        self.addCleanup(other.close)
        self.target.close()
        self.lead_to("127.0.0.2")
        task = self.ended(self.enqueue("call:x", max_retries=15, retry_policy="fixed", retry_delay_ms=1000)["id"])
        self.assertEqual((task["status"], task["result"]), ("completed", {"other": True}), task["error"])
        self.assertLess(task["retry_count"], 12)


class RefusedTest(unittest.TestCase):
    def test_d10_clear_text_to_a_name_must_be_asked_for(self):
        for words in ("", ", clear_text: loopback"):
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder, "p.yaml")
                path.write_text(f"services: [{{name: s, url: 'http://{NAME}'{words}}}]\n")
                path.chmod(0o600)
                done = subprocess.run([binary(), "serve", "--config", path, "--store", os.path.join(folder, "x.db"),
                                       "--listen", "127.0.0.1:0"], capture_output=True, text=True, timeout=60, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("set clear_text to mesh", done.stderr)


if __name__ == "__main__":
    unittest.main()
