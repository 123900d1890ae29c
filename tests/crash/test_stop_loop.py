"""Short runs of what `make faults` does thousands of times: workers that are stopped longer than
their lease and then continue (F-B1, F-B2, F-B3, F-B4, F-B6, F-B9)."""
import os
import random
import unittest

import stop_loop
import stop_pieces
from crash_harness import needs_fault_points

LEASE_MS = 3000  # a busy machine keeps it; `make faults` has shorter ones

class StopLoop(unittest.TestCase):
    def test_f_b1_f_b2_no_word_of_a_worker_that_slept_over_its_lease_takes_effect(self):
        seed = os.environ.get("PERDURA_SEED", str(random.randrange(10 ** 6)))
        line = stop_loop.Stops(seed).run(40)
        self.assertEqual(line["findings"], [], f"seed {seed}")
        self.assertEqual(line["stale"], 0)
        self.assertGreater(line["lost_leases"], 0)
        self.assertGreater(sum(line["refused"].values()), 0)
        for what in ("checkpoint", "log", "progress", "spawn", "complete"):
            self.assertGreater(line["checked"].get(what, 0), 0, what)

    def test_f_b3_of_zombie_and_owner_at_the_same_moment_the_owner_wins_each_time(self):
        self.assertEqual(stop_pieces.races(100, lease_ms=LEASE_MS)["findings"], [])

    def test_f_b4_stubborn_handlers_die_when_their_worker_learns_of_its_loss(self):
        self.assertEqual(stop_pieces.learned_losses(1, lease_ms=LEASE_MS)["findings"], [])

    def test_f_b6_running_tasks_survive_a_server_that_slept_ten_leases(self):
        row = stop_pieces.slept_servers(1, running=100, lease_ms=LEASE_MS // 2)
        self.assertEqual((row["findings"], row["reruns"]), ([], 0))

    @needs_fault_points
    def test_f_b9_a_claim_that_was_slept_over_is_dropped_unstarted(self):
        self.assertEqual(stop_pieces.paused_claims(12, lease_ms=LEASE_MS // 2)["findings"], [])


if __name__ == "__main__":
    unittest.main()
