"""Command lines and surroundings that are wrong in every way the program knows: each ends with the
exit code 2 (how it was called) or 1 (what it met), one sentence, and nothing done."""
import json
import os
import resource
import socket
import sqlite3
import subprocess
import unittest

import cli_harness
from cli_harness import NO_TASK, FolderTest, ServerTest, binary


class CommandLines(FolderTest):
    def test_words_that_are_no_command_or_flag(self):
        for command, word in (
                (("zzzzzz",), "unknown command 'zzzzzz'"),
                (("task", "zzzzzz"), "unknown command 'task zzzzzz'"),
                (("task",), "needs a subcommand"),
                (("stats", "--zzzzzzzz"), "has no flag '--zzzzzzzz'"),
                (("stats", "--sever", "x"), "did you mean '--server'?"),
                (("stats", "-x"), "unknown flag '-x'"),
                (("stats", "extra"), "does not know what to do with 'extra'"),
                (("task", "show"), "needs ID"),
                (("task", "show", "a", "b"), "does not know what to do with 'b'"),
                (("stats", "--json=yes"), "--json"),
                (("stats", "--server"), "--server"),
                (("enqueue", "a", "--delay", "1s", "--at", "+5m"), "give one of them"),
                (("queue", "limit", "q"), "nothing to change"),
                (("completion", "cobol"), "bash, zsh and fish")):
            with self.subTest(command=command):
                self.assertIn(word, self.refused(2, *command))

    def test_values_that_are_none_of_their_kind(self):
        for flag, value, word in (
                ("--delay", "5", "a duration"), ("--delay", "-5s", "a duration"),
                ("--delay", "", "a duration"), ("--at", "tomorrow", "a time"),
                ("--at", "+200000d", "a time"), ("--at", "+", "a time"),
                ("--priority", "urgent", "a number from -1000 to 1000"),
                ("--priority", "1001", "a number from -1000 to 1000"),
                ("--max-retries", "many", "a whole number from 0"),
                ("--max-retries", "99999999999999999999", "a whole number from 0"),
                ("--queue", "", "valid UTF-8 and not empty"),
                ("--retry-policy", "often", "one of "),
                ("--payload", "{", "not valid JSON"), ("--payload", "@missing", "cannot read")):
            with self.subTest(flag=flag, value=value):
                code = 1 if value.startswith("@") else 2
                self.assertIn(word, self.refused(code, "enqueue", "a", flag, value))
        self.assertIn("valid UTF-8", self.refused(2, "enqueue", "a", "--queue", "\udcff"))
        for rate in ("fast", "0/s", "5", "5/", "/s", "1/" + "1" * 40 + "s", "2000000000/s"):
            with self.subTest(rate=rate):
                self.assertIn("a rate such as", self.refused(2, "queue", "limit", "q", "--rate",
                                                             rate))

    def test_input_without_end_is_refused(self):
        done = self.perdura("enqueue", "a", "--payload", "-", code=1, text="[" + " " * 3000000)
        self.assertIn("is larger than 2097152 bytes", done.stderr)
        self.write("folder.json", "1")
        os.mkdir(os.path.join(self.folder, "folder"))
        self.assertIn("cannot read", self.refused(1, "enqueue", "a", "--payload", "@folder"))

    def test_behind_two_dashes_everything_is_an_argument(self):
        done = self.perdura("task", "show", "--", "--help", code=3)
        self.assertIn("no task '--help'", done.stderr)

    def test_a_value_may_be_joined_to_its_flag(self):
        self.assertIn("cannot reach the server at http://127.0.0.1:1",
                      self.refused(1, "stats", "--server=http://127.0.0.1:1"))

    def test_more_words_than_a_command_takes(self):
        self.assertIn("words; split", self.refused(2, "task", "cancel", *["x"] * 2500))


class Doctor(FolderTest):
    def checks(self, *arguments, code=0, **variables):
        done = self.perdura("doctor", "--json", "--server", "http://127.0.0.1:1", *arguments,
                            code=code, **variables)
        return {check["name"]: check for check in json.loads(done.stdout)["checks"]}

    def test_the_token_of_an_open_address_is_judged(self):
        self.write("perdura.yaml", "listen: 0.0.0.0:7070\n")
        self.assertIn("clear text", self.checks(code=1)["listen"]["detail"])
        self.write("perdura.yaml", "listen: 0.0.0.0:7070\nallow_clear_text: true\n")
        self.assertEqual(self.checks(code=1)["listen"]["verdict"], "failure")
        short = self.checks(PERDURA_TOKEN="short")["listen"]
        self.assertEqual(short["verdict"], "warning")
        self.assertIn("openssl rand", short["fix"])
        good = self.checks(PERDURA_TOKEN="0123456789abcdef0123456789abcdef")["listen"]
        self.assertEqual(good["verdict"], "ok")

    def test_stores_of_every_kind_are_looked_at(self):
        found = self.checks("--store", "postgres://127.0.0.1:1/d", code=1)["store"]["detail"]
        self.assertIn("cannot connect", found)
        self.serve().stop()
        self.assertEqual(self.checks("--store", "sqlite:perdura.db")["integrity"]["verdict"], "ok")
        self.write("text.db", "this is no database, but long enough to be looked at twice\n" * 40)
        self.assertEqual(self.checks("--store", "text.db", code=1)["store"]["verdict"], "failure")
        server = self.serve()
        self.url = "http://%s:%d" % server.address
        self.perdura("enqueue", "a")
        server.stop()
        db = sqlite3.connect(os.path.join(self.folder, "perdura.db"))
        db.execute("UPDATE lane_counts SET tasks = tasks + 5")
        db.commit()
        db.close()
        damaged = self.checks("--store", "perdura.db", code=1)["integrity"]
        self.assertEqual(damaged["verdict"], "failure")
        self.assertIn("perdura verify", damaged["fix"])

    def test_few_open_files_are_a_warning(self):
        def few():
            resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
        done = subprocess.run([binary(), "doctor", "--json", "--server", "http://127.0.0.1:1"],
                              cwd=self.folder, capture_output=True, text=True, preexec_fn=few,
                              env=cli_harness.environment())
        checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
        self.assertEqual(checks["open files"]["verdict"], "warning")
        self.assertIn("ulimit -n", checks["open files"]["fix"])

    def test_missing_time_zones_are_a_warning(self):
        checks = self.checks(TZDIR=os.path.join(self.folder, "no-zones"))
        self.assertEqual(checks["time zones"]["verdict"], "warning")

    def test_handlers_are_looked_for_as_they_would_be_run(self):
        self.write("perdura.yaml", "services:\n  - {name: s, url: http://127.0.0.1:9}\n"
                                   "handlers:\n  - {type: a, command: [sh]}\n"
                                   "  - {type: b, command: [./here.sh]}\n"
                                   "  - {type: c, command: [not-anywhere]}\n"
                                   "  - {type: d, service: s}\n")
        os.chmod(self.write("here.sh", "#!/bin/sh\n"), 0o755)
        done = self.perdura("doctor", "--json", "--server", "http://127.0.0.1:1", code=1)
        failures = [check["detail"] for check in json.loads(done.stdout)["checks"]
                    if check["name"] == "handler" and check["verdict"] == "failure"]
        self.assertEqual(len(failures), 1, failures)
        self.assertIn("not-anywhere", failures[0])
        service = next(check for check in json.loads(done.stdout)["checks"]
                       if check["name"] == "service")
        self.assertEqual(service["verdict"], "warning")
        self.assertIn("Service s is not available: ", service["detail"])
        done = self.perdura("doctor", "--json", "--server", "http://127.0.0.1:1", code=1, PATH="")
        self.assertIn("not-anywhere", done.stdout)


@unittest.skipUnless(socket.has_ipv6 and os.path.exists("/proc/net/if_inet6") and
                     "00000000000000000000000000000001" in
                     open("/proc/net/if_inet6", encoding="ascii").read(), "there is no ::1 here")
class VersionSix(FolderTest):
    def test_an_address_of_version_six_is_served_and_is_loopback(self):
        process = subprocess.Popen([binary(), "serve", "--listen", "[::1]:0", "--store", "v6.db"],
                                   cwd=self.folder, stdout=subprocess.PIPE, text=True,
                                   stderr=subprocess.DEVNULL, env=cli_harness.environment())
        try:
            line = process.stdout.readline()
            self.assertRegex(line, r"^listening on http://\[::1\]:\d+$")
            self.url = line.split()[2]
            task_id = self.perdura("enqueue", "a").stdout.strip()
            self.assertIn("pending", self.perdura("task", "show", task_id).stdout)
        finally:
            process.terminate()
            process.wait(cli_harness.DEADLINE_S)
            process.stdout.close()

    def test_addresses_that_are_none_are_refused(self):
        for address in ("[::1]", "[]:80", "::1:80", "127.0.0.1:99999", ":80x", "256.1.1.1:0",
                        "no.such.host.invalid:0"):
            with self.subTest(address=address):
                done = subprocess.run([binary(), "serve", "--listen", address, "--store", "x.db"],
                                      cwd=self.folder, capture_output=True, text=True, timeout=60,
                                      env=cli_harness.environment())
                self.assertIn(done.returncode, (1, 2), done.stderr)
                self.assertIn("perdura: ", done.stderr)


class Terminals(ServerTest):
    def test_a_duplicate_is_told_on_a_terminal_only(self):
        self.perdura("enqueue", "a", "--key", "k", "--payload", "1")
        self.assertIn("it was there already; nothing",
                      self.on_terminal("enqueue", "a", "--key", "k", "--payload", "1"))
        self.assertIn("with another payload",
                      self.on_terminal("enqueue", "a", "--key", "k", "--payload", "2"))
        self.assertEqual(self.perdura("enqueue", "a", "--key", "k").stderr, "")

    def test_a_terminal_without_colours_or_utf8_gets_plain_text(self):
        self.perdura("enqueue", "a")
        for variables in ({"NO_COLOR": "1"},):
            self.assertNotIn("\x1b[3", self.on_terminal("task", "list", **variables))
        self.assertIn("pending", self.perdura("task", "list", TERM="dumb", COLUMNS="50",
                                              LC_ALL="C").stdout)

    def test_ids_that_cannot_be_ids_are_not_asked_for(self):
        for verb in ("cancel", "retry", "pause", "resume", "delete"):
            self.assertIn("no task 'x'", self.refused(3, "task", verb, "x"))
        done = self.perdura("task", "cancel", "x", NO_TASK, "y" * 300, code=3)
        self.assertEqual(len(done.stderr.splitlines()), 3)


if __name__ == "__main__":
    unittest.main()
