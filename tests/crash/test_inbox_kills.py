"""kill -9 of a server that takes rows of an inbox (A15, F-A1, F-A2), at any moment and at each point between reading a
row, our commit and the mark: each row that was committed becomes one task, in order, and no other does. The campaign
does it a thousand times (tests/campaign/inboxes.py)."""
import json
import os
import pathlib
import random
import signal
import sys
import time
import unittest

from crash_harness import CrashTest, needs_fault_points

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "postgres"))
from inbox_tables import postgres_box, sqlite_box  # noqa: E402
from server import Postgres  # noqa: E402

POINTS = {"inbox.read": 2, "inbox.row": 20, "before.inbox": 3, "after.inbox": 3, "inbox.taken": 2, "inbox.marked": 2}
MOMENT_S = 0.3  # a kill at no point comes so soon after the start


class InboxKills:
    kills, seed, after = 10, 0, "mark"

    def test_a15_killed_between_commit_and_mark_each_row_is_one_task(self):
        self.rng = random.Random(f"inbox {self.seed}")
        self.sent, self.dropped, self.points = [], 0, {}
        self.box = self.make_box()
        self.addCleanup(self.box.close)
        self.config = f"inboxes:\n  - name: box\n    store: {self.address}\n    after: {self.after}\n"
        self.lap = 0
        while self.lap < self.kills:
            self.one_lap()
        self.begin(None)
        self.box.emptied()
        self.check()

    def begin(self, fault):
        """False where it died before it listened."""
        try:
            self.start(fault=fault, config=self.config)
        except AssertionError:
            if self.server.wait() != -signal.SIGKILL:
                raise
            return False
        return True

    def one_lap(self):
        point = self.rng.choice([*POINTS, None])
        fault = point and f"{point}:{self.rng.randint(1, POINTS[point])}"
        dies_at = time.monotonic() + self.rng.uniform(0, MOMENT_S)
        self.write()
        lives = self.begin(fault)
        while lives and self.server.process.poll() is None:
            if not point and time.monotonic() > dies_at:
                self.server.kill()
            else:
                self.write()
        self.assertEqual(self.server.wait(), -signal.SIGKILL, self.server.log())
        self.lap += 1
        self.points[point or "any moment"] = self.points.get(point or "any moment", 0) + 1

    def write(self):
        """A transaction of a program; the other program's rows are rolled back."""
        numbers = range(len(self.sent), len(self.sent) + self.rng.randint(1, 8))
        keep = self.rng.random() < 0.8
        for number in numbers:
            self.box.put(payload=json.dumps(number if keep else "dropped"), commit=False)
        if keep:
            self.box.connection.commit()
            self.sent += numbers
        else:
            self.box.connection.rollback()
            self.dropped += len(numbers)

    def check(self):
        tasks = self.all_tasks()
        made = sorted(tasks, key=lambda task: task["id"])
        self.assertEqual([task["payload"] for task in made], self.sent)
        rows = self.box.rows()
        self.assertEqual([str(row[2]) for row in rows], [] if self.after == "delete" else
                         [task["id"] for task in made])
        self.assertEqual([row[3] for row in rows if row[3]], [])


@needs_fault_points
class SqliteKills(InboxKills, CrashTest):
    def make_box(self):
        path = os.path.join(self.folder, "box.db")
        self.address = f"sqlite:{path}"
        return sqlite_box(path, wal=self.seed % 2 == 0)


@needs_fault_points
class SqliteDeleteKills(SqliteKills):
    after, seed, kills = "delete", 1, 6


@needs_fault_points
class PostgresKills(InboxKills, CrashTest):
    kills = 14

    @classmethod
    def setUpClass(cls):
        cls.postgres = Postgres()
        cls.enterClassContext(cls.postgres)

    def make_box(self):
        self.address = self.postgres.url
        box = postgres_box(self.address, make=False)
        box.run("DROP TABLE IF EXISTS perdura_inbox")
        box.run("DROP FUNCTION IF EXISTS perdura_inbox_tell()")
        box.connection.commit()
        box.close()
        return postgres_box(self.address)


if __name__ == "__main__":
    unittest.main()
