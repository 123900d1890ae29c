"""Where a token comes from, and what is said when it is missing, wrong or badly kept (F-I7): one part says
what is missing, the other how to give it."""
import http.client
import json
import os
import unittest

from cli_harness import FolderTest

SECRET = "canary-token-0123456789abcdef"
OTHER = "another-token-0123456789abcde"


class Tokens(FolderTest):
    def setUp(self):
        super().setUp()
        self.token = self.write("token", SECRET + "\n")
        os.chmod(self.token, 0o600)
        self.server = self.serve(PERDURA_TOKEN_FILE=self.token)
        self.url = "http://%s:%d" % self.server.address

    def message(self, **headers):
        connection = http.client.HTTPConnection(*self.server.address, timeout=60)
        connection.request("GET", "/v1/stats", headers=headers)
        reply = connection.getresponse()
        body = json.loads(reply.read())
        connection.close()
        self.assertEqual((reply.status, body["error"]["code"]), (401, "unauthorized"))
        return body["error"]["message"]

    def test_an_answer_names_what_is_wrong_with_the_header(self):
        how = "send 'Authorization: Bearer TOKEN'"
        missing = self.message()
        self.assertIn("the request has no token; send one as 'Authorization: Bearer TOKEN'", missing)
        self.assertIn("perdura token create", missing)
        for header in (SECRET, "Basic " + SECRET):
            self.assertEqual(self.message(Authorization=header), "the Authorization header does "
                             f"not begin with 'Bearer '; {how}")
        self.assertIn("the token is wrong; send the one the server was started with, or one that "
                      "`perdura token create` made", self.message(Authorization="Bearer " + OTHER))

    def test_every_client_says_what_is_missing_and_how_to_give_it(self):
        handlers = self.write("w.yaml", 'handlers:\n  - {type: a, command: ["true"]}\n')
        for command in (("stats",), ("enqueue", "a"), ("top", "--once"),
                        ("worker", "--config", handlers)):
            with self.subTest(command=command):
                said = self.perdura(*command, code=1).stderr.splitlines()[-1]
                self.assertRegex(said, "^perdura: the server needs a token; set PERDURA_TOKEN ")
                self.assertEqual(said.count("PERDURA_TOKEN "), 1)
                said = self.perdura(*command, code=1, PERDURA_TOKEN=OTHER).stderr.splitlines()[-1]
                self.assertRegex(said, "^perdura: the server refused the token(;| from) .*"
                                       "PERDURA_TOKEN")
                self.assertNotIn(OTHER, said)
        doctor = json.loads(self.perdura("doctor", "--json").stdout)["checks"]
        [check] = [check for check in doctor if check["name"] == "server"]
        self.assertIn("set PERDURA_TOKEN", check["detail"])
        self.assertNotIn("perdura serve", check.get("fix") or "")

    def test_client_commands_find_it_as_a_server_does(self):
        """PERDURA_TOKEN, then PERDURA_TOKEN_FILE, then token_file, then systemd's credential."""
        other = self.write("other", OTHER)
        self.write("perdura.token", OTHER)
        right = {"PERDURA_TOKEN": SECRET, "PERDURA_TOKEN_FILE": self.token}
        wrong = {"PERDURA_TOKEN": OTHER, "PERDURA_TOKEN_FILE": other}
        self.write("perdura.yaml", f"token_file: {self.token}\n")
        self.perdura("stats", CREDENTIALS_DIRECTORY=self.folder)
        self.perdura("top", "--once")
        self.assertIn("PERDURA_TOKEN_FILE (", self.refused(1, "stats", PERDURA_TOKEN_FILE=other))
        self.write("perdura.yaml", f"token_file: {other}\n")
        self.assertIn(f"token_file ({other})", self.refused(1, "stats"))
        self.perdura("stats", PERDURA_TOKEN_FILE=self.token)
        self.perdura("stats", **{**wrong, "PERDURA_TOKEN": SECRET})
        self.refused(1, "stats", **{**right, "PERDURA_TOKEN": OTHER})
        os.unlink(os.path.join(self.folder, "perdura.yaml"))
        self.write("perdura.token", SECRET)
        self.perdura("stats", CREDENTIALS_DIRECTORY=self.folder)
        named = self.write("named.yaml", f"token_file: {self.token}\n")
        doctor = json.loads(self.perdura("doctor", "--json", "--config", named).stdout)["checks"]
        self.assertIn("answers", [c["detail"] for c in doctor if c["name"] == "server"][0])

    def test_a_configuration_that_cannot_be_used_matters_only_where_a_token_is_needed(self):
        open_server = self.serve("--store", "open.db", "--config", "/dev/null")
        url = "http://%s:%d" % open_server.address
        for text, why in (("token_file: /not/there\n", "/not/there"), ("tokn: x\n", "tokn")):
            self.write("perdura.yaml", text)
            self.perdura("stats", PERDURA_SERVER=url)
            said = self.refused(1, "stats")
            self.assertIn(why, said)
            self.assertIn("PERDURA_TOKEN", said)

    def test_a_file_that_everybody_can_read_is_warned_about(self):
        self.assertNotIn("secrets.readable_by_all", self.server.log())
        os.chmod(self.token, 0o644)
        self.server.stop()
        server = self.serve(PERDURA_TOKEN_FILE=self.token)
        self.assertIn('"event":"secrets.readable_by_all"', server.log())
        self.assertIn(f"chmod 600 {self.token}", server.log())
        checks = json.loads(self.perdura("doctor", "--json", PERDURA_TOKEN_FILE=self.token).stdout)
        [check] = [check for check in checks["checks"] if check["name"] == "secrets"]
        self.assertEqual((check["verdict"], check["fix"]),
                         ("warning", f"run 'chmod 600 {self.token}'"))

    def test_a_file_that_is_not_there_is_named_with_its_setting_and_folder(self):
        """Relative paths count from the folder of the command, not of the configuration."""
        path = self.write("p.yaml", "# mine\ntoken_file: nofile\n")
        for command in (("serve", "--config", path), ("worker", "--config", path)):
            said = self.refused(1, *command)
            self.assertRegex(said, r"cannot open nofile \(token_file, .*p\.yaml:2\): .*current "
                                   f"folder, {os.path.realpath(self.folder)}: write the whole path")
        for command in ("serve", "stats"):
            self.assertIn("cannot open nofile (PERDURA_TOKEN_FILE): ",
                          self.refused(1, command, PERDURA_TOKEN_FILE="nofile"))
            self.assertIn("cannot open /no/file (PERDURA_TOKEN_FILE): No such file or directory; "
                          "correct the path", self.refused(1, command,
                                                           PERDURA_TOKEN_FILE="/no/file"))

    def test_beyond_loopback_both_ways_to_give_a_token_are_named(self):
        for variables in ({}, {"PERDURA_TOKEN": "short"}):
            said = self.refused(2, "serve", "--listen", "0.0.0.0:0", "--store", "new.db",
                                **variables)
            self.assertIn("PERDURA_TOKEN", said)
            self.assertIn("token_file", said)

    def test_an_empty_file_says_what_to_put_there(self):
        for text in ("", "\n"):
            path = self.write("empty", text)
            for command in ("serve", "stats"):
                said = self.refused(1, command, PERDURA_TOKEN_FILE=path)
                self.assertIn(f"the file {path} is empty; write the token", said)
                self.assertIn("openssl rand -hex 32", said)

    def test_help_names_where_the_token_comes_from(self):
        for command in (("stats",), ("worker",)):
            text = " ".join(self.perdura(*command, "--help").stdout.split())
            self.assertRegex(text, "PERDURA_TOKEN, else from the file in PERDURA_TOKEN_FILE, else "
                                   "from token_file")


if __name__ == "__main__":
    unittest.main()
