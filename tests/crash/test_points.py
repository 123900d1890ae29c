"""A short run of the campaign over all fault points (F-A1 ... F-A21): a few of them are reached
and killed at, the store is whole afterwards; and kill -9 at single writes of a store's files
(F-A16)."""
import shutil
import tempfile
import unittest

import point_work
import write_kills
from crash_harness import needs_fault_points
from harness import ROOT, sanitizer


LAPS_MAX = 40  # one that a busy machine spoilt is followed by another


@needs_fault_points
class Points(unittest.TestCase):
    def test_the_source_names_its_points(self):
        names = point_work.names_in(ROOT / "src")
        self.assertIn("before.enqueue", names)
        self.assertIn("retention.remove", names)
        self.assertGreater(len(names), 60)

    def test_killed_at_rare_points_the_store_is_whole_and_all_acknowledged_is_there(self):
        folder = tempfile.mkdtemp(prefix="perdura-point-")
        self.addCleanup(shutil.rmtree, folder, True)
        work = point_work.PointWork(folder)
        self.addCleanup(work.close)
        self.assertFalse(work.run_until_killed(None, 0, 1))
        for point in ("retention.remove", "retention.archived", "before.recover", "after.recover",
                      "report.spawn", "ended.parent", "ended.dependent", "sweep.timeout",
                      "sweep.worker", "backup.copied", "before.checkpoint", "control.retry",
                      "after.purge", "drain.begin", "fire.after_insert", "runs.trigger",
                      "after.catalog", "claim.put_off", "before.access", "after.access",
                      "audit.insert", "before.audit"):  # for keys there is test_encryption_kills
            with self.subTest(point=point):
                self.assertTrue(work.run_until_killed(point, 1, LAPS_MAX), f"{point} was not reached")
                self.assertEqual(work.findings(), [])


@unittest.skipIf(sanitizer(), "a sanitizer must be the first library that is loaded")
class Writes(unittest.TestCase):
    def test_f_a16_killed_at_single_writes_of_checkpoints_the_store_is_whole(self):
        self.assertEqual(write_kills.run(4, "test")["findings"], [])


if __name__ == "__main__":
    unittest.main()
