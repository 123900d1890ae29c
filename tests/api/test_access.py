"""Who asks, and what that allows (D12, F-J1): the principal of a request, and `perdura whoami`."""
import json
import os
import subprocess
import unittest

from harness import ApiTest, binary

EVERYTHING = {"name": None, "namespace": "*", "scopes": ["admin"], "token_id": None, "user_id": None,
              "queues": [], "types": [], "categories": [], "max_tasks": None, "expires_at": None}


class WhoAmI(ApiTest):
    def whoami(self, *arguments, token=None):
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith("PERDURA_T")}
        environment |= {"PERDURA_TOKEN": token} if token else {}
        return subprocess.run(
            [binary(), "whoami", "--server", "http://%s:%d" % self.server.address, *arguments],
            capture_output=True, text=True, env=environment, cwd=self.folder, timeout=60,
            check=False)


class OnLoopback(WhoAmI):
    def test_without_a_token_the_caller_is_local_and_may_do_everything(self):
        self.assertEqual(self.expect(200, "GET", "/v1/whoami"),
                         {"principal": "local", "kind": "local", **EVERYTHING})
        shown = self.whoami()
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("local", shown.stdout)
        self.assertIn("admin", shown.stdout)


class WithAToken(WhoAmI):
    environment = {"PERDURA_TOKEN": "s3cret-token"}

    def test_the_servers_token_is_root(self):
        reply = self.request("GET", "/v1/whoami", headers={"Authorization": "Bearer s3cret-token"})
        self.assertEqual(reply.json, {"principal": "root", "kind": "root", **EVERYTHING})
        shown = self.whoami("--json", token="s3cret-token")
        self.assertEqual(json.loads(shown.stdout)["principal"], "root")

    def test_without_it_there_is_no_principal(self):
        reply = self.request("GET", "/v1/whoami")
        self.assertEqual(reply.status, 401)
        self.assertEqual(reply.headers["WWW-Authenticate"], 'Bearer realm="perdura"')
        shown = self.whoami(token="wrong")
        self.assertEqual(shown.returncode, 1)
        self.assertIn("token", shown.stderr)


if __name__ == "__main__":
    unittest.main()
