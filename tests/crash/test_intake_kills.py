"""Killed between the commit of a program that uses SQL and the commit that takes its work in, a node loses nothing and
does nothing twice (A14, F-A1)."""
import shutil
import tempfile
import unittest

import intake_kills
from crash_harness import needs_fault_points

POINTS = ("intake.row", "intake.report", "intake.ask")


@needs_fault_points
class IntakeKills(unittest.TestCase):
    def test_a14_killed_while_it_takes_in_what_was_committed_a_node_loses_nothing_and_does_nothing_twice(self):
        for point in POINTS:
            with self.subTest(point=point):
                folder = tempfile.mkdtemp(prefix="perdura-intake-")
                self.addCleanup(shutil.rmtree, folder, True)
                self.assertEqual(intake_kills.kills(point, folder, 3), (3, []))


if __name__ == "__main__":
    unittest.main()
