"""A short run of the random kill loop: kill -9 of server, process workers and library workers under
all kinds of load (V1-V7, F-A1 ... F-A19, F-A21). Long ones: `make faults`, kill_loop.py."""
import os
import random
import unittest

import embedded_kills
import kill_loop


class KillLoop(unittest.TestCase):
    def test_after_forty_random_kills_everything_acknowledged_is_there_and_nothing_ran_twice(self):
        seed = os.environ.get("PERDURA_SEED", str(random.randrange(10 ** 6)))
        findings = kill_loop.campaign(40, seed)
        self.assertEqual(findings, [], f"seed {seed}")

    def test_v1_what_the_library_told_a_program_that_was_killed_is_in_its_store(self):
        seed = os.environ.get("PERDURA_SEED", str(random.randrange(10 ** 6)))
        line = embedded_kills.Embedded(seed).run(12)
        self.assertEqual(line["findings"], [], f"seed {seed}")
        self.assertGreater(line["told"].get("completed", 0), 0)


if __name__ == "__main__":
    unittest.main()
