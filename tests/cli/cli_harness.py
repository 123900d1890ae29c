"""What command-line tests need beyond the API harness: the real binary run as a person would, into
a pipe or on a terminal, and servers with a configuration. PERDURA_BUILD names its folder."""
import fcntl
import os
import pathlib
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "api"))
import harness  # noqa: E402
from harness import DEADLINE_S, binary, wait_until  # noqa: E402, F401

EXAMPLES = harness.ROOT / "examples"
NO_TASK = "0197f6a2-5c3e-7b11-9d2f-3a4b5c6d7e8f"


def environment(**variables):
    """Of the caller, without what would change perdura's behaviour."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("PERDURA_", "DB_", "API_PG_")) and
            name not in ("NO_COLOR", "DATABASE_URL", "WORKER_TIMEOUT", "COLUMNS")}
    kept.update(variables)
    return kept


def compiler():
    """The one that made the library, with its sanitizer: programs linked with it need that, too."""
    command = [shutil.which("cc") or "cc"]
    cache = os.path.join(os.path.dirname(harness.binary()), "CMakeCache.txt")
    text = pathlib.Path(cache).read_text() if os.path.exists(cache) else ""
    for name, flag in (("CMAKE_C_COMPILER", ""), ("PERDURA_SANITIZE", "-fsanitize=")):
        found = re.search(rf"^{name}:\w+=(.+)$", text, re.M)
        if found and flag:
            command.append(flag + found[1])
        elif found:
            command[0] = found[1]
    return command


class Cli:
    """Mixin of a TestCase with self.folder: commands run in that folder."""

    url = None

    def perdura(self, *arguments, code=0, text=None, **variables):
        """Runs one command, checks its exit code, returns the finished process."""
        if self.url:
            variables.setdefault("PERDURA_SERVER", self.url)
        done = subprocess.run([binary(), *arguments], cwd=self.folder, input=text or "",
                              capture_output=True, text=True, timeout=120,
                              env=environment(**variables))
        self.assertEqual(done.returncode, code,
                         f"{' '.join(arguments)}\n{done.stdout}\n{done.stderr}")
        return done

    def refused(self, code, *arguments, **variables):
        """The one sentence on stderr of a command that fails with this code."""
        done = self.perdura(*arguments, code=code, **variables)
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertTrue(lines[0].startswith("perdura: "), lines[0])
        return lines[0]

    def on_terminal(self, *arguments, code=0, columns=120, **variables):
        """What a person sees: stdout and stderr on one terminal."""
        if self.url:
            variables.setdefault("PERDURA_SERVER", self.url)
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        process = subprocess.Popen([binary(), *arguments], cwd=self.folder, stdin=slave,
                                   stdout=slave, stderr=slave,
                                   env=environment(TERM="xterm", LC_ALL="C.UTF-8", **variables))
        os.close(slave)
        seen = b""
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:  # EIO: the last process has closed the terminal
                break
            if not part:
                break
            seen += part
        os.close(master)
        self.assertEqual(process.wait(DEADLINE_S), code, seen)
        return seen.decode()

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        pathlib.Path(path).write_text(text)
        return path


class FolderTest(Cli, unittest.TestCase):
    """A folder and commands, no server until one is started."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="perdura-cli-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def serve(self, *arguments, **variables):
        server = harness.Server(self.folder, *arguments, environment=variables)
        self.addCleanup(server.stop)
        return server.start()


class ServerTest(Cli, harness.ApiTest):
    """One server per test; `config` becomes its configuration, {folder} is filled in."""

    config = None
    keeps_port = False  # restart(same_port=True) finds it free

    def setUp(self):
        arguments = list(self.arguments)
        if self.keeps_port:
            arguments += ["--listen", f"127.0.0.1:{harness.free_port()}"]
        if self.config is not None:
            outside = tempfile.mkdtemp(prefix="perdura-cli-")
            self.addCleanup(shutil.rmtree, outside, ignore_errors=True)
            self.gates = outside
            path = os.path.join(outside, "server.yaml")
            pathlib.Path(path).write_text(self.config.replace("{folder}", outside))
            arguments += ["--config", path]
        self.arguments = arguments
        super().setUp()
        self.url = "http://%s:%d" % self.server.address

    def restart(self, signum=signal.SIGTERM, same_port=False):
        """Stops and starts the server; on the same port where clients shall find it again."""
        assert self.keeps_port or not same_port
        self.server.stop(signum)
        if same_port:
            port = "%s:%d" % self.server.address
            self.server.arguments = (*self.arguments, "--listen", port)
        self.server.start()
        self.local.connection = None
        self.url = "http://%s:%d" % self.server.address

    def open_gate(self, name="go"):
        pathlib.Path(self.gates, name).touch()

    def wait_status(self, task_id, *statuses):
        def reached():
            task = self.task(task_id)
            return task if task["status"] in statuses else None
        return wait_until(reached, what=f"{task_id} being {statuses}")

    def wait_ended(self, task_id):
        return self.wait_status(task_id, "completed", "failed", "dead_letter", "cancelled",
                                "partial")


# A handler that says it is there, then waits for a file: no test needs to guess how long.
GATE = """while [ ! -e {folder}/go ]; do sleep 0.02; done"""
