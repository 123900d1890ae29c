"""kill -9 at every single write of a checkpoint, before it, in its middle and after it (F-A16): the
store must be whole and hold everything that was acknowledged. The writes are counted by
kill_at_write.c, which is loaded before the C library of the ordinary binary."""
import collections
import http.client
import json
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import uuid

import crash_harness
from kill_clients import BROKEN

HERE = pathlib.Path(__file__).resolve().parent
WHEN = ("before", "middle", "after")
FILES = ("perdura.db", "perdura.db-wal")


def shim(folder):
    path = os.path.join(folder, "kill_at_write.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", str(HERE / "kill_at_write.c"), "-o", path,
                    "-ldl"], check=True)
    return path


class WriteKills:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="perdura-writes-")
        self.shim = shim(self.folder)
        self.kept = set()
        self.server = crash_harness.CrashServer(self.folder)
        self.findings = []
        self.kills = 0

    def close(self):
        self.server.kill()
        self.server.close()
        if not self.findings:
            shutil.rmtree(self.folder, ignore_errors=True)

    def kill_at(self, file, nth, when, rng):
        """True if it died there. Large payloads make a WAL that is checkpointed when idle."""
        before = self.server.log()
        try:
            self.server.start(config="workers: 0\nlog_level: warn\n", environment={
                "LD_PRELOAD": self.shim, "KILL_AT_WRITE": str(nth), "KILL_FILE": "/" + file,
                "KILL_WHEN": when})
            self.produce(rng)
        except BROKEN:
            pass
        except AssertionError:
            if self.server.wait() != -signal.SIGKILL:
                raise
        code = self.server.kill() if self.server.process.poll() is None else None
        died = code is None and self.server.process.returncode == -signal.SIGKILL
        if code is None and not died:
            self.findings.append(f"the server ended with {self.server.process.returncode}: "
                                 f"{self.server.log()[len(before):][-500:]}")
        self.kills += died
        return died

    def produce(self, rng):
        """Until it dies: a few large arrays, each followed by idleness, in which it checkpoints."""
        connection = http.client.HTTPConnection(*self.server.address, timeout=60)
        try:
            for _ in range(8):
                specs = [{"type": "t", "payload": "x" * rng.randrange(3000, 9000)}
                         for _ in range(400)]
                connection.request("POST", "/v1/tasks", json.dumps(specs))
                reply = connection.getresponse()
                answer = json.loads(reply.read())
                self.kept.update(item["id"] for item in answer["items"])
                for _ in range(3):
                    connection.request("GET", "/v1/stats")
                    connection.getresponse().read()
        finally:
            connection.close()

    def check(self, what):
        code, text = self.server.verify()
        if code != 0:
            self.findings.append(f"{what}: verify: {text[:500]}")
        with sqlite3.connect(f"file:{self.server.store}?mode=ro", uri=True) as db:
            stored = {str(uuid.UUID(bytes=row[0])) for row in db.execute("SELECT id FROM tasks")}
        missing = self.kept - stored
        if missing:
            self.findings.append(f"{what}: {len(missing)} acknowledged tasks are not there")


def run(kills, seed, say=lambda text: None):
    """So many kills at growing and at random writes. Returns kills and findings."""
    rng = random.Random(f"{seed}-writes")
    total, findings = 0, []
    of = collections.Counter()
    while total < kills and not findings:
        work = WriteKills()
        try:
            for _ in range(12):  # then a new store: verifying a large one takes long
                file = FILES[0] if rng.random() < 0.8 else FILES[1]
                nth, when = rng.randrange(1, 900), rng.choice(WHEN)
                what = f"write {nth} of {file}, killed {when}"
                if work.kill_at(file, nth, when, rng):
                    of[f"{file}, {when}"] += 1
                    work.check(what)
                if work.findings or total + work.kills >= kills:
                    break
        finally:
            work.close()
        total += work.kills
        findings += work.findings
        say(f"{total} kills at single writes of {kills}")
    return {"kills": total, "at": dict(of), "findings": findings}
