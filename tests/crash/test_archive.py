"""The archive of removed tasks when the server is killed while it writes it (F-A21): it can be read
to its end, and nothing that was removed is missing."""
import os
import pathlib
import signal
import unittest

from crash_harness import CrashTest, needs_fault_points, wait_until
from kill_check import archived_ids

KEEPS = "workers: 0\n"
REMOVES = """workers: 0
retention:
  archive: "archive"
handlers:
  - type: "brief"
    command: ["/bin/true"]
    retention: 1ms
"""


class Archive(CrashTest):
    def make_ended(self, count):
        """So many tasks that a server with retention removes when it starts."""
        self.restart(config=KEEPS, lease="30s")
        self.register()
        self.expect(201, "POST", "/v1/tasks", [{"type": "brief"}] * count)
        tasks = self.claim(max=count)
        self.report("worker-1", *[self.element(task, "complete", result=1) for task in tasks])
        self.server.kill()
        return {task["id"] for task in tasks}

    def archive(self):
        return os.path.join(self.folder, "archive")

    def remove(self):
        self.start(config=REMOVES)
        wait_until(lambda: not self.all_tasks(type="brief"), what="the removal")
        self.server.kill()

    def test_f_a21_a_frame_that_a_kill_left_half_written_hides_nothing_after_it(self):
        made = self.make_ended(20)
        self.remove()
        path = next(pathlib.Path(self.archive()).glob("*.zst"))
        frame = path.read_bytes()
        tails = [frame[:kept] for kept in (1, 5, len(frame) // 2, len(frame) - 1)]
        tails += [bytes(1), bytes(len(frame)), frame[:5] + bytes(len(frame))]
        for tail in tails:
            with self.subTest(tail=len(tail), zeros=tail.count(0)):
                path.write_bytes(path.read_bytes() + tail)
                made |= self.make_ended(3)
                self.remove()
                self.assertEqual(set(archived_ids(self.archive())), made)

    @needs_fault_points
    def test_f_a21_killed_between_archive_and_removal_they_are_archived_again_not_lost(self):
        made = self.make_ended(20)
        for point in ("retention.archived", "retention.remove"):
            with self.subTest(point=point):
                try:
                    self.start(config=REMOVES, fault=f"{point}:1")
                except AssertionError:
                    pass  # it died before it listened
                self.assertEqual(self.server.wait(), -signal.SIGKILL)
                self.assertEqual(set(archived_ids(self.archive())), made)
        self.remove()
        ids = archived_ids(self.archive())
        self.assertEqual((set(ids), len(ids)), (made, 3 * len(made)))


if __name__ == "__main__":
    unittest.main()
