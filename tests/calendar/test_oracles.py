"""A sample of the comparison with other calendars (D2, D3, D6), for `make test`: zones against
Python's zoneinfo, recurrences against brute force and dateutil, cron against croniter and
cron-parser, where they are installed (`make calendar-proof` fetches cron-parser).
PERDURA_BUILD is the folder with calendar_probe. Run as: python3 -m unittest test_oracles"""
import os
import unittest

import oracles

BUILD = os.environ.get("PERDURA_BUILD", os.path.join(oracles.HERE, "..", "..", "build"))


class Oracles(unittest.TestCase):
    def setUp(self):
        self.probe = oracles.Probe(os.path.join(BUILD, "calendar_probe"))
        self.addCleanup(self.probe.close)

    def check(self, found):
        if "skipped" in found:
            self.skipTest(found["skipped"])
        self.assertGreater(found["compared"], 0)
        self.assertEqual(found["mismatches"][:oracles.SHOWN], [])

    def test_d2_every_zone_of_the_system_has_the_offsets_python_says(self):
        names = oracles.zone_names()
        self.assertGreater(len(names), 300)
        self.check(oracles.zones(self.probe, names, 10))

    def test_d6_recurrences_fire_as_those_of_dateutil(self):
        self.check(oracles.rules(self.probe, 120))

    def test_d6_weeks_are_those_of_the_iso_calendar(self):
        self.check(oracles.iso_weeks(self.probe))

    def test_d2_expressions_fire_as_those_of_croniter_in_utc(self):
        self.check(oracles.croniter_expressions(self.probe, 200))

    def test_d2_expressions_fire_as_those_of_cron_parser(self):
        self.check(oracles.cron_parser(self.probe, os.path.join(BUILD, "calendar-oracles"), 200))

    def test_d6_f_c4_f_c5_recurrences_around_changes_of_zones_fire_as_brute_force_says(self):
        self.check(oracles.rules_in_zones(self.probe, 30))


if __name__ == "__main__":
    unittest.main()
