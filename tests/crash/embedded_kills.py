"""kill -9 of a program that has the store in its own process by the C library: what the library
told it before each kill must be in the store (V1, V2), and everything must end at last.

    python3 tests/crash/embedded_kills.py --kills 100 --seed 7
"""
import argparse
import collections
import json
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid

from crash_harness import ENDED
from kill_check import verify
from kill_workers import programs

SETTLE_S = 120  # only ever reached when something does not end


class Embedded:
    def __init__(self, seed):
        self.rng = random.Random(f"{seed}-embedded")
        self.folder = tempfile.mkdtemp(prefix="perdura-embedded-")
        self.store = os.path.join(self.folder, "tasks.db")
        self.told = os.path.join(self.folder, "told")
        self.findings = []
        self.kills = 0
        self.process = None

    def start(self):
        lines = self.lines()
        first = 1 + max((int(number) for _, number, _ in lines), default=-1)
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(
                [os.path.join(programs(), "killed_embedder"), self.store, self.told,
                 str(max(0, first - self.rng.randrange(4)))],  # some keys are asked again
                stderr=log)

    def lines(self):
        try:
            return [line.split() for line in pathlib.Path(self.told).read_text().splitlines()]
        except OSError:
            return []

    def kill(self):
        ended = self.process.poll()
        self.process.kill()
        self.process.wait()
        if ended is not None:
            log = pathlib.Path(self.folder, "log").read_text()[-500:]
            self.findings.append(f"the program ended with {ended}: {log}")
        self.kills += 1

    def check(self):
        """On a copy: the next start finds the files as the kill left them."""
        folder = os.path.join(self.folder, "copy")
        os.mkdir(folder)
        for end in ("", "-wal"):
            if os.path.exists(self.store + end):
                shutil.copyfile(self.store + end, os.path.join(folder, "tasks.db" + end))
        store = os.path.join(folder, "tasks.db")
        self.findings += verify(store)
        with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as db:
            stored = {str(uuid.UUID(bytes=row[0])): row[1:] for row in
                      db.execute("SELECT id, idempotency_key, status FROM tasks")}
        shutil.rmtree(folder)
        for what, number, task in self.lines():
            key, status = stored.get(task, (None, None))
            if key != f"k{number}" or (what != "enqueued" and status != what):
                self.findings.append(f"told was {what} of {task} (k{number}), stored is "
                                     f"{status} under {key}")
        keys = collections.Counter(key for key, _ in stored.values()
                                   if key and not key.startswith("perdura:spawn:"))
        self.findings += [f"key {key} is stored {count} times" for key, count in keys.items()
                          if count > 1]
        return stored

    def settle(self):
        """Started once more, everything but what it enqueues meanwhile must end."""
        before = set(self.check())
        self.start()
        end = time.monotonic() + SETTLE_S
        while time.monotonic() < end:
            time.sleep(0.3)
            with sqlite3.connect(f"file:{self.store}?mode=ro", uri=True, timeout=60) as db:
                open_ids = {str(uuid.UUID(bytes=row[0])) for row in db.execute(
                    "SELECT id, status FROM tasks") if row[1] not in ENDED}
            if not before & open_ids and any(line[0] == "completed" for line in self.lines()):
                break
        else:
            self.findings.append(f"{len(before & open_ids)} tasks did not end")
        self.kill()
        self.kills -= 1  # not one of the campaign's

    def run(self, kills):
        try:
            while self.kills < kills and not self.findings:
                self.start()
                time.sleep(0.02 + self.rng.random() * 0.25)
                self.kill()
                if os.path.exists(self.store) and self.lines():
                    self.check()
            if not self.findings:
                self.settle()
        except BaseException:  # interrupted, or a bug of the loop
            if self.process:
                self.process.kill()
                self.process.wait()
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        told = collections.Counter(what for what, _, _ in self.lines())
        if not self.findings:
            shutil.rmtree(self.folder, ignore_errors=True)
        return {"kills": self.kills, "told": dict(told), "findings": self.findings[:20]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", default="1")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    line = Embedded(arguments.seed).run(arguments.kills)
    print(json.dumps(line), flush=True)
    sys.exit(1 if line["findings"] else 0)


if __name__ == "__main__":
    main()
