"""perdura schedule explain: expressions in words and instants, what daylight saving does to them, and
carets below what is wrong (D2, D3, D6). No server runs here."""
import json
import re
import unittest

from cli_harness import FolderTest


class Explain(FolderTest):
    def explain(self, *arguments, **variables):
        return self.perdura("schedule", "explain", *arguments, **variables).stdout

    def rows(self, *arguments):
        return json.loads(self.explain(*arguments, "--json"))["items"]

    def test_d2_an_expression_is_told_in_words_and_ten_instants(self):
        lines = self.explain("0 9 * * 1-5", "--tz", "Europe/Paris",
                             "--from", "2027-01-01T00:00:00Z").splitlines()
        self.assertEqual(lines[0], "At 09:00, Monday to Friday, Europe/Paris")
        self.assertEqual(lines[2].split(), ["LOCAL", "OFFSET", "UTC", "NOTE"])
        self.assertEqual(len(lines), 3 + 10)
        self.assertEqual(lines[3].split(), ["Fri", "2027-01-01", "09:00:00", "+01:00", "CET",
                                            "2027-01-01T08:00:00Z"])
        self.assertTrue(lines[4].startswith("Mon 2027-01-04 09:00:00"))

    def test_d2_forms_with_at_and_seconds_are_understood(self):
        at = ("--from", "2027-01-01T00:00:00Z", "--count", "2")
        for expression, words, first in (
                ("@daily", "At 00:00, UTC", "2027-01-01T00:00:00Z"),
                ("@hourly", "Every hour, UTC", "2027-01-01T00:00:00Z"),
                ("*/10 * * * * *", "Every 10 seconds, UTC", "2027-01-01T00:00:00Z"),
                ("@every 90m", "Every 90 minutes, UTC", "2027-01-01T01:30:00Z"),
                ("0 0 L * *", "At 00:00, on the last day of the month, UTC", "2027-01-31T00:00:00Z")):
            with self.subTest(expression):
                reply = json.loads(self.explain(expression, *at, "--json"))
                self.assertEqual(reply["explanation"], words)
                self.assertEqual(reply["timezone"], "UTC")
                self.assertEqual(len(reply["items"]), 2)
                self.assertEqual(reply["items"][0]["at"], first)

    def test_d3_a_time_that_does_not_exist_fires_after_the_gap_and_says_so(self):
        at = ("30 2 * * *", "--tz", "America/New_York", "--from", "2027-03-13T12:00:00Z",
              "--count", "2")
        first, second = self.rows(*at)
        self.assertEqual(first["at"], "2027-03-14T07:00:00Z")
        self.assertEqual(first["local"], "2027-03-14T03:00:00-04:00")
        self.assertIn("02:30 does not exist", first["note"])
        self.assertIsNone(second["note"])
        skipped, first, second = self.rows(*at, "--dst", "skip")
        self.assertTrue(skipped["skipped"])
        self.assertEqual(first["at"], "2027-03-15T06:30:00Z")
        self.assertIn("clocks went forward 1h on Sun 2027-03-14", first["note"])

    def test_d3_a_time_that_comes_twice_says_which_one_it_is(self):
        at = ("30 1 * * *", "--tz", "America/New_York", "--from", "2027-11-07T00:00:00Z",
              "--count", "3")
        self.assertEqual([(row["at"], row["note"]) for row in self.rows(*at)],
                         [("2027-11-07T05:30:00Z", "the first of two 01:30"),
                          ("2027-11-08T06:30:00Z", "clocks went back 1h on Sun 2027-11-07"),
                          ("2027-11-09T06:30:00Z", None)])
        self.assertEqual([(row["at"], row["note"]) for row in self.rows(*at, "--dst", "both")],
                         [("2027-11-07T05:30:00Z", "the first of two 01:30"),
                          ("2027-11-07T06:30:00Z", "the second of two 01:30"),
                          ("2027-11-08T06:30:00Z", None)])

    def test_d6_a_rule_has_its_own_zone_and_may_end(self):
        rule = "DTSTART;TZID=Europe/Berlin:20270101T090000\nRRULE:FREQ=DAILY;COUNT=3"
        text = self.explain("--rrule", rule, "--from", "2027-01-01T00:00:00Z")
        self.assertIn("Every day at 09:00, 3 times, Europe/Berlin", text)
        self.assertIn("does not fire any more after that", text)
        self.assertEqual(len(self.rows("FREQ=WEEKLY;BYDAY=MO", "--count", "4")), 4)
        self.assertIn("does not fire any more.",
                      self.explain("--rrule", rule, "--from", "2028-01-01T00:00:00Z"))

    def test_a_rule_without_a_start_is_read_as_a_pattern_made_then(self):
        """D6: midnight has passed, so COUNT begins with the next one; --time sets another time."""
        rule = ("--rrule", "FREQ=DAILY;COUNT=2", "--from", "2027-01-01T22:00:00Z")
        self.assertEqual(re.findall(r"\S+Z", self.explain(*rule)),
                         ["2027-01-02T00:00:00Z", "2027-01-03T00:00:00Z"])
        self.assertEqual(re.findall(r"\S+Z", self.explain(*rule, "--time", "23:30")),
                         ["2027-01-01T23:30:00Z", "2027-01-02T23:30:00Z"])

    def test_the_zone_may_be_that_of_the_machine(self):
        reply = json.loads(self.explain("@daily", "--tz", "local", "--json", TZ="Asia/Tokyo"))
        self.assertEqual(reply["timezone"], "Asia/Tokyo")
        reply = json.loads(self.explain("@daily", "--tz", "local", "--json", TZ="<nonsense>"))
        self.assertEqual(reply["timezone"], "UTC")

    def test_what_is_wrong_is_marked_by_a_caret(self):
        for arguments, mark, words in (
                (["0 25 * * *"], ("  0 25 * * *", "    ^~"), "the hour (field 2"),
                (["0 2 * *"], ("  0 2 * *", "         ^"), "5 fields"),
                (["0 2 * * * * a b"], ("  0 2 * * * * a b", "              ^~~"), "5 fields"),
                (["0 0 30 2 *"], ("  0 0 30 2 *", "  ^~~~~~~~~~"), "never fires"),
                (["ünde 2 * * *"], ("  ünde 2 * * *", "  ^~~~"), "the minute (field 1"),
                (["@every 5x"], ("  @every 5x", "  ^~~~~~~~~"), "whole seconds"),
                (["--rrule", "FREQ=DAILY;BYHOUR=7,26"],
                 ("  FREQ=DAILY;BYHOUR=7,26", "                      ^~"), "BYHOUR=26"),
                (["--rrule", "RRULE:FREQ=DAILY;\nEXDATE:tomorrow"],
                 ("  EXDATE:tomorrow", "         ^~~~~~~~"), "EXDATE"),
                (["--rrule", "FREQ=DAILY;WHEN=1"],
                 ("  FREQ=DAILY;WHEN=1", "             ^~~~"), "WHEN=1")):
            with self.subTest(arguments):
                done = self.perdura("schedule", "explain", *arguments, code=1)
                lines = done.stderr.splitlines()
                self.assertEqual((lines[0], lines[1]), mark)
                self.assertTrue(lines[2].startswith("perdura: "), lines[2])
                self.assertIn(words, lines[2])
                self.assertEqual((len(lines), done.stdout), (3, ""))

    def test_d2_a_mistyped_zone_is_told_which_one_may_be_meant(self):
        for typed, meant in (("Europe/Pariss", "Europe/Paris"), ("europe/paris", "Europe/Paris"),
                             ("Paris", "Europe/Paris"), ("America/New York", "America/New_York")):
            with self.subTest(typed):
                self.assertTrue(self.refused(1, "schedule", "explain", "@daily", "--tz", typed)
                                .endswith(f"; did you mean '{meant}'?"))
        for typed in ("UTC+3", "Nowhere/X", "Europe"):
            with self.subTest(typed):
                self.assertNotIn("did you mean", self.refused(1, "schedule", "explain", "@daily",
                                                              "--tz", typed))

    def test_wrong_usage_is_refused(self):
        self.assertIn("no time zone",
                      self.refused(1, "schedule", "explain", "@daily", "--tz", "Nowhere/X"))
        for words in ([], ["@daily", "--rrule", "FREQ=DAILY"], ["@daily", "--dst", "maybe"],
                      ["@daily", "--count", "0"], ["@daily", "--from", "soon"], ["a", "b"]):
            with self.subTest(words):
                self.refused(2, "schedule", "explain", *words)


if __name__ == "__main__":
    unittest.main()
