"""A short run of the random kill loop (V1-V7 under all kinds of load). Long ones: kill_loop.py."""
import os
import random
import unittest

import kill_loop


class KillLoop(unittest.TestCase):
    def test_after_forty_random_kills_everything_acknowledged_is_there_and_nothing_ran_twice(self):
        seed = os.environ.get("PERDURA_SEED", str(random.randrange(10 ** 6)))
        findings = kill_loop.campaign(40, seed)
        self.assertEqual(findings, [], f"seed {seed}")


if __name__ == "__main__":
    unittest.main()
