"""What crash tests need beyond the API harness: servers that are killed and started again on the
same store, fault points, worker processes, and the check of the whole store at the end of every
test (invariants V1-V7, `perdura verify`). PERDURA_BUILD names the folder of the binary,
PERDURA_FAULTS_BUILD that of the binary with fault points."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "api"))
import harness  # noqa: E402
from harness import wait_until  # noqa: E402, F401

ENDED = ("completed", "failed", "dead_letter", "cancelled", "partial")
LEASE_MS = 2000  # a busy machine answers within it
LEASE_S = LEASE_MS / 1000


def plain_binary():
    folder = os.environ.get("PERDURA_BUILD")
    return os.path.join(folder, "perdura") if folder else harness.binary()


def fault_binary():
    """None where there is no build with fault points."""
    folder = os.environ.get("PERDURA_FAULTS_BUILD", str(harness.ROOT / "build-faults"))
    path = os.path.join(folder, "perdura")
    return path if os.access(path, os.X_OK) else None


needs_fault_points = unittest.skipUnless(
    fault_binary(), "PERDURA_FAULTS_BUILD names no folder with a build of -DPERDURA_FAULTS=ON")


class CrashServer:
    """`perdura serve` on one store; started, killed and started again."""

    def __init__(self, folder):
        self.folder = folder
        self.store = os.path.join(folder, "perdura.db")
        self.process = None
        self.address = None

    def start(self, *arguments, fault=None, lease=f"{LEASE_MS}ms", config=None, preexec=None,
              environment=None, binary=None):
        assert self.process is None or self.process.poll() is not None
        command = [binary or (fault_binary() if fault else plain_binary()), "serve", "--listen",
                   "127.0.0.1:0", "--store", self.store, "--lease", lease, *arguments]
        if config is not None:
            path = os.path.join(self.folder, "server.yaml")
            pathlib.Path(path).write_text(config)
            command += ["--config", path]
        env = {k: v for k, v in os.environ.items() if not k.startswith("PERDURA_")}
        env.update(environment or {})
        if fault:
            env["PERDURA_FAULT"] = fault
        self.close()
        with open(os.path.join(self.folder, "stderr.log"), "ab") as log:
            self.process = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE,
                                            stderr=log, env=env, text=True, preexec_fn=preexec)
        for line in self.process.stdout:
            if line.startswith("listening on http://"):
                host, port = line.split("//")[1].strip().rsplit(":", 1)
                self.address = (host, int(port))
                return self
        raise AssertionError("the server did not start: " + self.log())

    @property
    def pid(self):
        return self.process.pid

    def log(self):
        path = pathlib.Path(self.folder, "stderr.log")
        return path.read_text(errors="replace")[-20000:] if path.exists() else ""

    def kill(self, signum=signal.SIGKILL):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(signum)
        return self.wait()

    def wait(self, deadline_s=harness.DEADLINE_S):
        if self.process is None:
            return None
        try:
            return self.process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError("the server did not end: " + self.log()) from None

    stop = kill

    def close(self):
        if self.process and self.process.stdout:
            self.process.stdout.close()

    def verify(self):
        """Exit code and output of `perdura verify`; the server may run or not."""
        done = subprocess.run([plain_binary(), "verify", "--store", self.store, "--json"],
                              capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout + done.stderr


class CrashTest(harness.ApiTest):
    """Does not start a server by itself: every test says how."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="perdura-crash-")
        self.local = threading.local()
        self.server = CrashServer(self.folder)
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.addCleanup(self.end_server)

    def end_server(self):
        """Whatever a test did: killed here, the store is as it must be (V2, V5, V6, V7)."""
        self.server.kill()
        self.server.close()
        self.assertNotIn("Sanitizer", self.server.log())
        if os.path.exists(self.server.store):
            self.assert_verified()

    def assert_verified(self):
        code, text = self.server.verify()
        self.assertEqual(code, 0, text)

    def start(self, *arguments, **options):
        return self.server.start(*arguments, **options)

    def restart(self, *arguments, **options):
        self.server.kill()
        return self.start(*arguments, **options)

    def broken(self, method, path, body=None):
        """A request whose answer never comes because the server dies in it."""
        with self.assertRaises(Exception) as caught:
            self.request(method, path, body)
        self.assertIsInstance(caught.exception, (OSError, harness.http.client.HTTPException))
        self.assertEqual(self.server.wait(), -signal.SIGKILL, self.server.log())

    def element_of(self, task, op, **fields):
        return [self.element(task, op, **fields)]

    def broken_report(self, worker, task, op, **fields):
        self.broken("POST", f"/v1/workers/{worker}:report", [self.element(task, op, **fields)])

    def heartbeat(self, worker="worker-1", tasks=None):
        body = {} if tasks is None else {
            "tasks": [{"task_id": t["id"], "lease_token": t["lease_token"]} for t in tasks]}
        return self.expect(200, "POST", f"/v1/workers/{worker}:heartbeat", body)

    def beating(self, worker="worker-1", tasks=None, every_s=LEASE_S / 3):
        """A live worker: heartbeats until .stop() is called, across restarts of the server."""
        return Beats(self, worker, tasks, every_s)

    def wait_status(self, task_id, *statuses, deadline_s=harness.DEADLINE_S):
        return wait_until(lambda: (lambda t: t["status"] in statuses and t)(self.task(task_id)),
                          deadline_s, f"task {task_id} in {statuses}")

    def all_tasks(self, **filters):
        query = "".join(f"&{k}={v}" for k, v in filters.items())
        items, cursor = [], None
        while True:
            page = self.expect(200, "GET", "/v1/tasks?limit=1000" + query +
                               (f"&cursor={cursor}" if cursor else ""))
            items += page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                return items

    def executions(self, task_id):
        return self.expect(200, "GET", f"/v1/tasks/{task_id}/executions")["items"]

    def ends_of(self, task_id):
        return [e["status"] for e in self.events(task_id) if e["status"] in ENDED]

    def start_worker(self, config, *arguments, environment=None):
        """A `perdura worker` process of this server."""
        path = os.path.join(self.folder, "worker.yaml")
        pathlib.Path(path).write_text(config)
        env = {k: v for k, v in os.environ.items() if not k.startswith("PERDURA_")}
        env.update(environment or {})
        host, port = self.server.address
        with open(os.path.join(self.folder, "worker.log"), "ab") as log:
            process = subprocess.Popen(
                [plain_binary(), "worker", "--server", f"http://{host}:{port}", "--config", path,
                 *arguments], stdout=subprocess.DEVNULL, stderr=log, env=env, cwd=self.folder)
        self.addCleanup(end_process, process)
        return process

    def script(self, name, text):
        path = pathlib.Path(self.folder, name)
        path.write_text(text)
        path.chmod(0o755)
        return str(path)


class Beats:
    def __init__(self, test, worker, tasks, every_s):
        self.stopping = threading.Event()
        self.lost = set()

        def run():
            while not self.stopping.wait(every_s):
                try:
                    self.lost.update(test.heartbeat(worker, tasks)["lost"])
                except (OSError, AssertionError, harness.http.client.HTTPException):
                    continue  # the server is stopped, starting again or away

        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()
        test.addCleanup(self.stop)

    def stop(self):
        self.stopping.set()
        self.thread.join(harness.DEADLINE_S)


def end_process(process):
    if process.poll() is None:
        process.send_signal(signal.SIGCONT)
        process.kill()
    process.wait()


def alive(pid):
    """Also false for a zombie: it runs no more."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] not in ("Z", "X")


def rss_kb(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def cpu_s(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def pause_s(seconds):
    """Crash tests wait for leases to pass; nothing can be asked meanwhile."""
    time.sleep(seconds)


def json_lines(path):
    try:
        return [json.loads(line) for line in pathlib.Path(path).read_text().splitlines() if line]
    except OSError:
        return []
