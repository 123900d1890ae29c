"""`perdura token …` (F-J1): making, showing, rotating and revoking tokens as people do, and what a wrong one learns."""
import json
import os
import unittest

from cli_harness import ServerTest

SECRET = r"^pdt_[0-9a-f]{16}_[A-Za-z0-9_-]{43}$"


class Tokens(ServerTest):
    def setUp(self):
        super().setUp()
        self.admin = self.perdura("token", "create", "--name", "ops", "--role", "admin", "--quiet").stdout.strip()
        self.assertRegex(self.admin, SECRET)

    def as_admin(self, *arguments, **more):
        return self.perdura(*arguments, PERDURA_TOKEN=self.admin, **more)

    def test_f_j1_create_prints_the_token_alone_and_how_to_use_it_beside(self):
        made = self.as_admin("token", "create", "--name", "media", "--role", "worker", "--queues", "media,mail",
                             "--rate", "100/s", "--expires", "90d")
        self.assertRegex(made.stdout.rstrip("\n"), SECRET)
        self.assertIn(f"PERDURA_TOKEN=… perdura worker --server {self.url} --queues media,mail", made.stderr)
        self.assertNotIn(made.stdout.strip(), made.stderr)
        token = json.loads(self.as_admin("token", "create", "--name", "n", "--scopes", "tasks:read,metrics:read",
                                         "--json").stdout)
        self.assertEqual(token["scopes"], ["tasks:read", "metrics:read"])
        self.assertRegex(token["token"], SECRET)
        whoami = self.perdura("whoami", PERDURA_TOKEN=made.stdout.strip()).stdout
        for words in ("token:media", "work", "media,mail"):
            self.assertIn(words, whoami)

    def test_f_j1_list_fits_a_terminal_and_show_has_the_rest(self):
        made = self.as_admin("token", "create", "--name", "a name of some length", "--role", "operator", "--json",
                             "--queues", "media,mail,images,letters", "--user", "ada@example.org")
        token = json.loads(made.stdout)
        screen = self.on_terminal("token", "list", columns=80, PERDURA_TOKEN=self.admin)
        text = screen if isinstance(screen, str) else screen.stdout
        self.assertIn(token["id"], text)
        self.assertLessEqual(max(len(line) for line in text.splitlines()), 80 + 40, text)  # with colours
        shown = self.as_admin("token", "show", token["id"]).stdout
        for words in ("a name of some length", "media,mail,images,letters", "token:ops"):
            self.assertIn(words, shown)
        self.assertNotIn(token["token"], shown)

    def test_f_j1_rotate_and_revoke_end_what_was_before(self):
        token = json.loads(self.as_admin("token", "create", "--name", "n", "--role", "viewer", "--json").stdout)
        self.perdura("task", "list", PERDURA_TOKEN=token["token"])
        fresh = self.as_admin("token", "rotate", token["id"], "--quiet").stdout.strip()
        self.assertIn("not valid here", self.refused(1, "task", "list", PERDURA_TOKEN=token["token"]))
        self.perdura("task", "list", PERDURA_TOKEN=fresh)
        self.assertEqual(self.as_admin("token", "revoke", token["id"]).stdout, f"{token['id']} revoked\n")
        self.assertIn("was revoked", self.refused(1, "task", "list", PERDURA_TOKEN=fresh))
        self.as_admin("token", "show", "0123456789abcdef", code=3)

    def test_f_j1_refusals_say_what_is_missing(self):
        viewer = self.as_admin("token", "create", "--name", "v", "--role", "viewer", "--quiet").stdout.strip()
        self.assertIn("tasks:enqueue", self.refused(1, "enqueue", "t", PERDURA_TOKEN=viewer))
        self.assertIn("token", self.refused(1, "task", "list"))
        self.assertIn("--role", self.refused(2, "token", "create", "--name", "x", PERDURA_TOKEN=self.admin))

    def test_f_j1_a_store_that_is_served_is_not_written_and_one_at_rest_is(self):
        store = self.server.store
        self.assertIn("in use", self.refused(1, "token", "create", "--store", store, "--name", "x", "--role", "admin"))
        self.server.stop()
        made = self.perdura("token", "create", "--store", store, "--name", "rescue", "--role", "admin", "--quiet")
        self.url, known = None, self.url
        told = self.perdura("token", "create", "--store", store, "--name", "w", "--role", "worker").stderr
        self.url = known
        self.assertIn("perdura worker --server URL", told, "another address would be a guess")
        doctor = json.loads(self.perdura("doctor", "--store", store, "--json").stdout)
        tokens = [check["detail"] for check in doctor["checks"] if check["name"] == "tokens"]
        self.assertEqual(tokens, ["3 valid, 0 expired, 0 revoked"])
        self.perdura("token", "create", "--store", store, "--name", "soon", "--role", "viewer", "--expires", "1d")
        doctor = json.loads(self.perdura("doctor", "--store", store, "--json").stdout)
        self.assertTrue(any("expire within 7 days: soon" in check["detail"] for check in doctor["checks"]), doctor)
        self.server.start()
        self.url = "http://%s:%d" % self.server.address
        self.assertIn("token:rescue", self.perdura("whoami", PERDURA_TOKEN=made.stdout.strip()).stdout)
        self.assertTrue(os.path.exists(store))


if __name__ == "__main__":
    unittest.main()
