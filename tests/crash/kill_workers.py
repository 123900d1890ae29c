"""Worker processes that are killed: `perdura worker` with a process handler and programs of the C
library. Both write marks (worker, task, token or attempt, what, microseconds of the monotonic
clock, process), of which two things are read: how long a task whose worker was killed waited for
its next start, and that nothing of a killed worker lived on into the next attempt (F-A19, F-I3)."""
import atexit
import collections
import functools
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import crash_harness
from harness import sanitizer

HERE = pathlib.Path(__file__).resolve().parent
WORKER_POINTS = ("worker.claimed", "worker.start", "worker.ended", "worker.report",
                 "worker.reported")
Mark = collections.namedtuple("Mark", "worker task token what at_us pid")


@functools.lru_cache(maxsize=1)
def programs():
    """The folder with the programs that are killed, built once per process of the loop."""
    folder = tempfile.mkdtemp(prefix="perdura-killed-")
    atexit.register(shutil.rmtree, folder, True)
    build = os.path.dirname(os.path.abspath(crash_harness.plain_binary()))
    include = HERE.parents[1] / "include"
    library = [f"-I{include}", f"-L{build}", "-lperdura", f"-Wl,-rpath,{build}"]
    if sanitizer():
        library.append(f"-fsanitize={sanitizer()}")
    for name, extra in (("killed_handler", []), ("killed_library_worker", library),
                        ("killed_embedder", library)):
        subprocess.run(["cc", "-std=gnu11", "-O1", str(HERE / f"{name}.c"), "-o",
                        os.path.join(folder, name), *extra], check=True)
    return folder


class WorkerProcess:
    """One place for a worker: a killed one is replaced under a new name."""

    def __init__(self, kind, number, folder, marks, concurrency=2):
        self.kind, self.number, self.folder, self.marks = kind, number, folder, marks
        self.concurrency = concurrency
        self.lives = 0
        self.process = None
        self.point = None       # at which the present one kills itself, if it gets there
        self.killed_at_us = {}  # name -> when; not of those that killed themselves

    def start(self, url, point=None):
        self.lives += 1
        self.name = f"{self.kind}-{self.number}-{self.lives}"
        self.point = None
        env = {k: v for k, v in os.environ.items() if not k.startswith("PERDURA_")}
        binary = crash_harness.plain_binary()
        if point and self.kind == "process" and crash_harness.fault_binary():
            self.point = point.split(":")[0]
            env["PERDURA_FAULT"] = point
            binary = crash_harness.fault_binary()
        with open(os.path.join(self.folder, "workers.log"), "ab") as log:
            self.process = subprocess.Popen(self.command(url, binary), env=env, stderr=log,
                                            stdout=subprocess.DEVNULL, cwd=self.folder)

    def command(self, url, binary):
        if self.kind == "library":
            return [os.path.join(programs(), "killed_library_worker"), url, self.marks, self.name,
                    str(self.concurrency)]
        path = os.path.join(self.folder, f"{self.name}.yaml")
        pathlib.Path(path).write_text(
            'grace: 200ms\nhandlers:\n  - type: "process:*"\n    command: '
            f'["{os.path.join(programs(), "killed_handler")}", "{self.marks}", "{self.name}"]\n')
        return [binary, "worker", "--server", url, "--config", path, "--queues", "process",
                "--concurrency", str(self.concurrency), "--log-level", "warn"]

    def ended(self):
        """At its point: the point; by itself, since the server was away: ''; else None."""
        code = self.process.poll() if self.process else 0
        if code is None:
            return None
        if code == -signal.SIGKILL and self.point:
            return self.point
        return ""

    def kill(self):
        if self.process and self.process.poll() is None:
            self.killed_at_us[self.name] = now_us()
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        if self.process:
            self.process.wait()


def now_us():
    return time.monotonic_ns() // 1000


def read_marks(path):
    try:
        lines = pathlib.Path(path).read_text().splitlines()
    except OSError:
        return []
    marks = []
    for line in lines:
        worker, task, token, what, at_us, pid = line.split()
        marks.append(Mark(worker, task, int(token), what, int(at_us), int(pid)))
    return marks


def reruns_ms(marks, killed_at_us, restarts_us):
    """From the kill of a worker to the next start of a task it ran; two lists: the server lived
    all the while, or it was killed too in between."""
    by_task = collections.defaultdict(list)
    for mark in marks:
        by_task[mark.task].append(mark)
    alone, together = [], []
    for task in by_task.values():
        for mark in task:
            died_us = killed_at_us.get(mark.worker)
            if mark.what != "start" or died_us is None or mark.at_us > died_us:
                continue
            if any(m.what == "end" and m.token == mark.token and m.worker == mark.worker
                   for m in task):
                continue
            later = [m.at_us for m in task if m.what == "start" and m.token > mark.token]
            if later:
                disturbed = any(died_us - 400_000 < at < min(later) for at in restarts_us)
                (together if disturbed else alone).append((min(later) - died_us) / 1000)
    return alone, together


def survivors(marks, killed_at_us):
    """Marks of killed workers' handlers after the next attempt began: there must be none."""
    starts = collections.defaultdict(list)
    for mark in marks:
        if mark.what == "start":
            starts[mark.task].append(mark)
    found = []
    for mark in marks:
        if mark.worker not in killed_at_us:
            continue
        for start in starts[mark.task]:
            if start.token > mark.token and start.at_us < mark.at_us and \
                    mark.at_us > killed_at_us[mark.worker]:
                found.append(f"{mark.what} of {mark.task} under token {mark.token} by the killed "
                             f"{mark.worker}, after token {start.token} had started")
    return found
