"""A process of the same user cannot open the memory of a program that starts (F-J10). Between exec and
main a program has closed nothing itself; one whose file its user cannot read is closed by the kernel.
Here the loader is held in that instant: it has to say what it does into a pipe that is full."""
import contextlib
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

from cli_harness import DEADLINE_S, FolderTest, binary, environment, wait_until

HERE = pathlib.Path(__file__).resolve().parent
IS_ROOT = os.geteuid() == 0
NOBODY = 65534
BECOME = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if IS_ROOT else {}
RUN_ONLY = 0o711 if IS_ROOT else 0o111  # its user cannot read it
SECRET = "canary-of-the-start-77e2"
HANDLERS = "handlers:\n  - {type: t, command: ['true']}\n"
PYTHON = shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable


def full_pipe():
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    for size in (1 << 16, 1):
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(writer, b" " * size)
    os.set_blocking(writer, True)
    return reader, writer


class Started:
    """A program that is held before its main, and a spy that has looked into it meanwhile."""

    def __init__(self, test, program, *arguments, **variables):
        self.test, self.said = test, b""
        reader, writer = full_pipe()
        self.process = subprocess.Popen(
            [program, *arguments], cwd=test.data, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=writer, text=True, env=environment(LD_DEBUG="files", **variables), **BECOME)
        os.close(writer)
        test.addCleanup(self.end)
        self.drain = threading.Thread(target=self.read_all, args=(reader,))
        name = os.path.basename(program)
        wait_until(lambda: pathlib.Path(f"/proc/{self.process.pid}/comm").read_text().strip()
                   == name, what="the program")
        self.spy = subprocess.Popen([PYTHON, os.path.join(test.folder, "start_spy.py"),
                                     str(self.process.pid), SECRET], stdin=subprocess.PIPE,
                                    stdout=subprocess.PIPE, text=True, **BECOME)
        self.opened = json.loads(self.spy.stdout.readline())

    def read_all(self, reader):
        while piece := os.read(reader, 1 << 16):
            self.said += piece
        os.close(reader)

    def go_on(self):
        self.drain.start()

    def found(self):
        """Where the spy finds the secret now."""
        return json.loads(self.spy.communicate("\n", DEADLINE_S)[0])

    def end(self):
        if not self.drain.ident:
            self.go_on()
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(DEADLINE_S)
        self.drain.join(DEADLINE_S)
        if self.spy.poll() is None:
            self.spy.communicate("\n", DEADLINE_S)
        self.process.stdout.close()
        self.spy.stdout.close()
        self.spy.stdin.close()


class StartTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="perdura-start-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        os.chmod(self.folder, 0o755)
        self.data = os.path.join(self.folder, "data")
        os.mkdir(self.data)
        for name in ("perdura", "perdura-spawn"):
            shutil.copy(os.path.join(os.path.dirname(binary()), name), self.folder)
            os.chmod(os.path.join(self.folder, name), RUN_ONLY)
        self.write("start_spy.py", pathlib.Path(HERE / "start_spy.py").read_text())
        self.token = self.write("data/token", SECRET + "\n")
        os.chmod(self.token, 0o600)
        self.config = self.write("perdura.yaml", f"token_file: {self.token}\n{HANDLERS}")
        if IS_ROOT:
            for path in (self.data, self.token):
                os.chown(path, NOBODY, NOBODY)
        self.program = os.path.join(self.folder, "perdura")

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        pathlib.Path(path).write_text(text)
        os.chmod(path, 0o644)
        return path

    def serve(self):
        started = Started(self, self.program, "serve", "--listen", "127.0.0.1:0", "--store",
                          os.path.join(self.data, "perdura.db"), "--config", self.config)
        started.go_on()
        line = started.process.stdout.readline()
        self.assertIn("listening on ", line, started.said[-2000:])
        self.url = line.split()[-1]
        return started

    def test_f_j10_a_server_that_starts_is_closed_from_its_first_instruction_on(self):
        server = self.serve()
        self.assertEqual((server.opened, server.found()), ([], []))
        self.assertNotIn(b"handlers.program_readable", server.said)
        exe = os.readlink(f"/proc/{self.starter(server)}/exe") if IS_ROOT else "perdura-spawn"
        self.assertEqual(os.path.basename(exe), "perdura-spawn")  # it need not be read either

    def starter(self, server):
        pid = server.process.pid
        return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0]

    def test_f_j10_a_server_whose_file_can_be_read_says_what_that_means(self):
        """And the spy would find the secret if it were there to be found."""
        os.chmod(self.program, 0o755)
        server = self.serve()
        self.assertIn("mem", server.opened)
        self.assertEqual(server.found(), ["mem"])
        self.assertIn(b"handlers.program_readable", server.said)
        doctor = subprocess.run([self.program, "doctor", "--config", self.config, "--store", "x.db"],
                                cwd=self.data, capture_output=True, text=True, check=False,
                                timeout=DEADLINE_S, env=environment(), **BECOME)
        self.assertIn("mode 0711", doctor.stdout)

    def test_f_j10_a_worker_that_starts_is_closed_as_well(self):
        self.serve()
        worker = Started(self, self.program, "worker", "--config", self.config,
                         PERDURA_SERVER=self.url)
        worker.go_on()
        self.assertIn("claims from", worker.process.stdout.readline())
        self.assertEqual((worker.opened, worker.found()), ([], []))

    def test_f_j10_commands_and_what_starts_handlers_are_closed_as_well(self):
        command = Started(self, self.program, "version", PERDURA_TOKEN=SECRET)
        starter = Started(self, os.path.join(self.folder, "perdura-spawn"))
        for started in (command, starter):
            self.assertEqual((started.opened, started.found()), ([], []))


def unlimited_cores():
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


@unittest.skipUnless(resource.getrlimit(resource.RLIMIT_CORE)[1] == resource.RLIM_INFINITY,
                     "this machine allows no cores")
class Cores(FolderTest):
    """A crash leaves no picture of the memory, in which payloads and tokens would be."""

    def crash(self, process):
        """Whether the kernel wrote a core."""
        process.send_signal(signal.SIGSEGV)
        _, status = os.waitpid(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertTrue(os.WIFSIGNALED(status))
        return os.WCOREDUMP(status)

    def start(self, *command, **variables):
        return subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                env=environment(**variables), preexec_fn=unlimited_cores)

    def test_f_j10_a_server_and_a_worker_that_crash_leave_no_core(self):
        self.write("perdura.yaml", HANDLERS)
        server = self.start(binary(), "serve", "--listen", "127.0.0.1:0", "--workers", "0",
                            PERDURA_TOKEN=SECRET)
        self.addCleanup(server.stdout.close)
        url = server.stdout.readline().split()[-1]
        worker = self.start(binary(), "worker", "--server", url, PERDURA_TOKEN=SECRET)
        self.addCleanup(worker.stdout.close)
        self.perdura("enqueue", "t", "--payload", json.dumps(SECRET), "--server", url,
                     PERDURA_TOKEN=SECRET)
        self.assertIn("claims from", worker.stdout.readline())
        for process in (worker, server):
            self.assertFalse(self.crash(process))
        other = self.start("sleep", "60")
        self.addCleanup(other.stdout.close)
        if not self.crash(other):
            self.skipTest("this machine writes no cores at all")
        for path in pathlib.Path(self.folder).glob("core*"):
            self.assertNotIn(SECRET.encode(), path.read_bytes(), path.name)


if __name__ == "__main__":
    unittest.main()
