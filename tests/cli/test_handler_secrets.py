"""Handlers do not learn the secrets of those who run them (F-J10, F-I7): a handler looks into every
process and file it can reach, as the server's own user and as another. Also where secrets may come
from (files, systemd's credentials), and whose configuration is trusted."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import cli_harness
from cli_harness import DEADLINE_S, binary, environment, wait_until

SECRET = "canary-of-the-server-5d1c"
NOBODY = 65534
HERE = pathlib.Path(__file__).resolve().parent
IS_ROOT = os.geteuid() == 0
RUN_ONLY = 0o711 if IS_ROOT else 0o111  # the server's user cannot read it
SECRETS = {"PERDURA_TOKEN": SECRET, "DB_PASSWORD": SECRET, "API_PG_DB_PASSWORD": SECRET,
           "PGPASSWORD": SECRET, "OTEL_EXPORTER_OTLP_HEADERS": f"authorization={SECRET}",
           "SOME_API_KEY": SECRET}


class PryingTest(unittest.TestCase):
    """Everything lies in a folder that every user may enter, the programs too."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="perdura-pry-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        os.chmod(self.folder, 0o755)
        self.data = os.path.join(self.folder, "data")
        os.mkdir(self.data)
        for name in ("perdura", "perdura-spawn"):
            shutil.copy(os.path.join(os.path.dirname(binary()), name), self.folder)
            os.chmod(os.path.join(self.folder, name), RUN_ONLY)
        shutil.copy(HERE / "prying_handler.py", self.folder)
        os.chmod(os.path.join(self.folder, "prying_handler.py"), 0o644)
        self.program = os.path.join(self.folder, "perdura")

    def command(self):
        store = os.path.join(self.data, "perdura.db")
        return [shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable,
                os.path.join(self.folder, "prying_handler.py"), SECRET, store,
                store + ".log-key", os.path.join(self.data, "token")]

    def handler(self, *lines):
        return "\n    ".join(["  - type: pry", f"command: {json.dumps(self.command())}",
                              "max_retries: 0", *lines])

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        pathlib.Path(path).write_text(text)
        os.chmod(path, 0o644)
        return path

    def run_as(self, uid, *arguments, **variables):
        log = open(os.path.join(self.folder, f"{arguments[0]}.log"), "ab")
        self.addCleanup(log.close)
        become = {"user": uid, "group": uid, "extra_groups": []} if IS_ROOT and uid else {}
        process = subprocess.Popen([self.program, *arguments], cwd=self.data, text=True,
                                   stdout=subprocess.PIPE, stderr=log,
                                   env=environment(**variables), **become)
        self.addCleanup(process.stdout.close)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(DEADLINE_S), 0, self.log("serve"))

    def log(self, name):
        return pathlib.Path(self.folder, f"{name}.log").read_text()

    def serve_as(self, uid, config, **variables):
        if IS_ROOT and uid:
            os.chown(self.data, uid, uid)
        process = self.run_as(uid, "serve", "--listen", "127.0.0.1:0", "--store",
                              os.path.join(self.data, "perdura.db"), "--config", config,
                              **variables)
        line = process.stdout.readline()
        self.assertIn("listening on ", line, self.log("serve"))
        self.url = line.split()[-1]
        return process

    def perdura(self, *arguments, code=0, **variables):
        done = subprocess.run([self.program, *arguments], cwd=self.folder, capture_output=True,
                              text=True, timeout=DEADLINE_S,
                              env=environment(PERDURA_SERVER=self.url, **variables))
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def pry(self, **variables):
        variables = variables or {"PERDURA_TOKEN": SECRET}
        done = self.perdura("enqueue", "pry", "--wait", "--json", **variables)
        return json.loads(done.stdout)["result"]

    def assert_hidden(self, seen, *parts):
        self.assertGreaterEqual(seen["processes"], 3, seen)
        self.assertEqual(seen["found"], [], seen)
        for name in parts:  # closed as a whole: what is secret later is not found either
            for what in ("environ", "memory", "descriptors"):
                self.assertNotIn(f"{name} {what}", seen["readable"], seen)

    def test_f_j10_a_handler_of_the_same_user_finds_nothing_in_the_processes_above_it(self):
        config = self.write("perdura.yaml", "handlers:\n" + self.handler())
        self.serve_as(NOBODY, config, **SECRETS)
        seen = self.pry()
        self.assert_hidden(seen, "server", "perdura-spawn", "perdura-shim")
        self.assertIn("perdura.db", seen["readable"])  # as the documentation says
        if IS_ROOT:
            self.assertEqual(seen["uid"], NOBODY)
            self.assertIn('"event":"handlers.share_user"', self.log("serve"))

    def test_f_j10_a_handler_finds_nothing_in_a_worker(self):
        empty = self.write("server.yaml", "log_level: info\n")
        self.serve_as(NOBODY, empty, PERDURA_TOKEN=SECRET)
        config = self.write("perdura.yaml", "handlers:\n" + self.handler())
        worker = self.run_as(NOBODY, "worker", "--config", config, PERDURA_SERVER=self.url,
                             **SECRETS)
        self.assertIn("claims from", worker.stdout.readline())
        self.assert_hidden(self.pry(), "server", "perdura-spawn", "perdura-shim")

    def test_f_j10_a_tool_of_an_agent_finds_nothing_either(self):
        script = self.write("script.json", json.dumps({"key": SECRET, "lines": [
            {"turn": 0, "tools": [{"name": "pry", "arguments": {}}]}, {"turn": 1, "final": "done"}]}))
        model = subprocess.Popen([binary(), "mock-model", "--script", script, "--port", "0"],
                                 cwd=self.data, stdout=subprocess.PIPE, text=True)
        self.addCleanup(model.stdout.close)
        self.addCleanup(model.wait)
        self.addCleanup(model.kill)
        url = re.search(r"http://\S+", model.stdout.readline()).group(0)
        prompt = self.write("prompt.md", "Look around.")
        config = self.write("perdura.yaml", f"""
models: [{{name: default, url: '{url}', model: mock, key: {{env: SOME_API_KEY}}}}]
tools:
  - {{name: pry, command: {json.dumps(self.command())}, timeout: 60s, safe_to_retry: true}}
agents:
  - {{id: a, tools: [pry], types: [{{type: pry, prompt: {prompt}}}]}}
handlers:
  - {{type: pry, agent: a}}
""")
        self.serve_as(NOBODY, config, **SECRETS)
        done = self.perdura("enqueue", "pry", "--wait", "--json", PERDURA_TOKEN=SECRET)
        task = json.loads(done.stdout)["id"]
        held = json.loads(self.perdura("task", "checkpoints", task, "--json", PERDURA_TOKEN=SECRET).stdout)
        said = re.search(r'"role":"tool".*?"content":("(?:[^"\\]|\\.)*")', json.dumps(held, separators=(",", ":")))
        self.assert_hidden(json.loads(json.loads(said.group(1))), "server", "perdura-spawn", "perdura-shim")

    @unittest.skipUnless(IS_ROOT, "only root may change users")
    def test_f_j10_a_handler_of_another_user_reads_no_file_and_kills_nobody(self):
        token = os.path.join(self.data, "token")
        pathlib.Path(token).write_text(SECRET + "\n")
        os.chmod(token, 0o600)
        config = self.write("perdura.yaml", f"token_file: {token}\nhandlers:\n"
                            + self.handler("user: nobody"))
        os.chmod(self.data, 0o755)
        self.serve_as(0, config, **{name: value for name, value in SECRETS.items()
                                    if name != "PERDURA_TOKEN"})
        seen = self.pry(PERDURA_TOKEN_FILE=token)
        self.assert_hidden(seen, "server", "perdura-spawn", "perdura-shim")
        self.assertEqual((seen["uid"], seen["killable"]), (NOBODY, []))
        self.assertNotIn(0, seen["groups"])
        self.assertNotEqual(seen["home"], os.environ.get("HOME", "/root"))
        for name in ("perdura.db", "perdura.db.log-key", "token"):
            self.assertNotIn(name, seen["readable"])
        self.assertNotRegex(self.log("serve"), r'"level":"warn[^\n]*"event":"handlers\.')

    @unittest.skipUnless(IS_ROOT, "only root may change users")
    def test_a_user_that_cannot_be_changed_to_stops_the_start(self):
        for uid, user, words in ((NOBODY, "root", "CAP_SETUID"),
                                 (0, "no-such-user-5d1c", "does not exist"),
                                 (0, "54321", "needs a group too")):
            config = self.write("perdura.yaml", "handlers:\n" + self.handler(f"user: '{user}'"))
            os.chown(self.data, uid, uid)
            process = self.run_as(uid, "serve", "--listen", "127.0.0.1:0", "--config", config)
            self._cleanups.pop()  # it ends by itself, and not with 0
            self.assertNotEqual(process.wait(DEADLINE_S), 0)
            self.assertIn(words, self.log("serve"))

    @unittest.skipUnless(IS_ROOT, "needs root")
    def test_handlers_as_root_without_a_token_are_warned_about(self):
        config = self.write("perdura.yaml", "handlers:\n" + self.handler())
        self.serve_as(0, config)
        self.assertIn('"event":"handlers.run_as_root"', self.log("serve"))
        self.assertIn('"event":"handlers.open_as_root"', self.log("serve"))
        doctor = self.perdura("doctor", "--config", config).stdout
        self.assertIn("run as root", doctor)
        self.assertIn("without one every user of this machine can start handlers as root", doctor)

    def test_a_program_without_its_spawner_beside_it_starts_handlers_itself(self):
        os.unlink(os.path.join(self.folder, "perdura-spawn"))
        config = self.write("perdura.yaml", "handlers:\n" + self.handler())
        self.serve_as(NOBODY, config, **SECRETS)
        self.assert_hidden(self.pry(), "server", "perdura-spawn", "perdura-shim")

    def test_a_spawner_that_others_may_write_is_not_run(self):
        path = self.write("perdura-spawn", "#!/bin/sh\nexit 9\n")
        os.chmod(path, 0o777)
        config = self.write("perdura.yaml", "handlers:\n" + self.handler())
        self.serve_as(NOBODY, config, **SECRETS)
        self.assertGreater(self.pry()["processes"], 0)


class SecretFilesTest(cli_harness.FolderTest):
    def start(self, **variables):
        self.server = self.serve(**variables)
        self.url = "http://%s:%d" % self.server.address

    def test_a_token_comes_from_a_file_or_from_systemd(self):
        path = self.write("perdura.token", SECRET + "\n")
        for variables in ({"PERDURA_TOKEN_FILE": path}, {"CREDENTIALS_DIRECTORY": self.folder}):
            self.start(**variables)
            self.refused(1, "stats")
            self.perdura("stats", **variables)
            self.perdura("stats", PERDURA_TOKEN=SECRET)
            self.server.stop()

    def test_a_token_file_that_cannot_be_right_is_refused(self):
        path = self.write("token", "two\nlines\n")
        self.assertIn("one line", self.refused(1, "serve", PERDURA_TOKEN_FILE=path))
        os.chmod(self.write("token", SECRET), 0o666)
        self.assertIn("other users can write to",
                      self.refused(1, "serve", PERDURA_TOKEN_FILE=path))
        os.unlink(path)
        self.assertIn("cannot open", self.refused(1, "serve", PERDURA_TOKEN_FILE=path))

    def test_a_configuration_that_others_may_write_is_refused(self):
        path = self.write("perdura.yaml", "workers: 0\n")
        for mode in (0o666, 0o602):
            os.chmod(path, mode)
            self.assertIn("chmod go-w", self.refused(1, "migrate", "status"))
            self.assertIn("chmod go-w", self.refused(1, "migrate", "status", "--config", path))
        os.chmod(path, 0o644)
        self.perdura("migrate", "status")

    @unittest.skipUnless(IS_ROOT, "only root may give files away")
    def test_a_configuration_of_another_user_counts_only_when_it_is_named(self):
        path = self.write("perdura.yaml", "workers: 0\n")
        os.chown(path, NOBODY, NOBODY)
        self.assertIn("belongs to another user", self.refused(1, "migrate", "status"))
        self.perdura("migrate", "status", "--config", path)
        os.chown(path, 0, NOBODY)
        os.chmod(path, 0o664)
        self.assertIn("chmod go-w", self.refused(1, "migrate", "status"))

    @unittest.skipUnless(IS_ROOT, "only root may give files away")
    def test_a_configuration_that_another_user_can_swap_counts_only_when_it_is_named(self):
        """A pipe of his, a link of his, and any file in a folder of his."""
        real = self.write("real.yaml", "workers: 0\n")
        place = os.path.join(self.folder, "perdura.yaml")
        os.mkfifo(place)
        self.assertIn("not a plain file", self.refused(1, "migrate", "status"))
        os.chown(place, NOBODY, NOBODY)
        self.assertIn("belongs to another user", self.refused(1, "migrate", "status"))
        os.unlink(place)
        os.symlink(real, place)
        self.perdura("migrate", "status")
        os.lchown(place, NOBODY, NOBODY)
        self.assertIn("belongs to another user", self.refused(1, "migrate", "status"))
        os.lchown(place, 0, 0)
        for owner, mode, taken in ((NOBODY, 0o700, False), (0, 0o777, False), (0, 0o1777, True)):
            os.chown(self.folder, owner, 0)
            os.chmod(self.folder, mode)
            if taken:
                self.perdura("migrate", "status")
            else:
                self.assertIn("current folder", self.refused(1, "migrate", "status"))
                self.perdura("migrate", "status", "--config", place)

    def test_a_password_on_the_command_line_is_not_shown_for_long(self):
        self.write("perdura.yaml", "handlers:\n  - {type: t, command: ['true']}\n")
        process = subprocess.Popen(
            [binary(), "worker", "--server", f"http://u:{SECRET}@127.0.0.1:9"], cwd=self.folder,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment())
        try:
            wait_until(lambda: "://***" in pathlib.Path(f"/proc/{process.pid}/cmdline").read_text(),
                       what="a command line without the password")
        finally:
            process.kill()
            process.wait()


if __name__ == "__main__":
    unittest.main()
