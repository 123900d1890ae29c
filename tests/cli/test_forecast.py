"""perdura forecast: what will fire, day by day as clocks show it, with marks (D2, D3, D5)."""
import json
import unittest

from cli_harness import ServerTest


class Forecast(ServerTest):
    def forecast(self, *arguments, **variables):
        return self.perdura("forecast", *arguments, **variables).stdout

    def plan(self, name, *arguments):
        self.perdura("job", "create", name, *arguments)

    def test_days_are_told_with_clock_times_of_the_zone(self):
        self.plan("report", "--cron", "0 9 * * *", "--tz", "Europe/Paris")
        self.plan("night", "--cron", "30 23 * * *", "--tz", "Europe/Paris")
        lines = self.forecast("--from", "2027-01-05T00:00:00Z", "--to", "2027-01-06T12:00:00Z",
                              "--tz", "Europe/Paris").splitlines()
        self.assertEqual([line.split()[:2] for line in lines if line],
                         [["Tue", "2027-01-05"], ["09:00:00", "report"], ["23:30:00", "night"],
                          ["Wed", "2027-01-06"], ["09:00:00", "report"]])
        self.assertIn("Europe/Paris +01:00", lines[0])
        there = self.forecast("--from", "2027-01-05T00:00:00Z", "--to", "2027-01-06T00:00:00Z",
                              TZ="Asia/Tokyo")
        self.assertIn("Asia/Tokyo +09:00", there)
        self.assertIn("17:00:00  report", there)

    def test_d3_clocks_that_change_are_marked(self):
        self.plan("gap", "--cron", "30 2 * * *", "--tz", "Europe/Paris")
        self.plan("noon", "--cron", "0 12 * * *", "--tz", "Europe/Paris")
        text = self.forecast("--from", "2027-03-27T11:30:00Z", "--to", "2027-03-28T23:00:00Z",
                             "--tz", "Europe/Paris")
        self.assertRegex(text, r"(?m)^03:00:00  gap +its time does not exist that day")
        self.assertRegex(text, r"clocks change +from \+01:00 to \+02:00")
        items = json.loads(self.forecast("--from", "2027-03-27T11:30:00Z", "--to",
                                         "2027-03-28T23:00:00Z", "--json"))["items"]
        self.assertEqual([item["dst"] for item in items if item["job"] == "gap"], ["shifted"])

    def test_dates_a_length_and_one_job_can_be_asked_for(self):
        self.plan("report", "--cron", "0 9 * * *", "--tz", "Europe/Paris")
        self.plan("other", "--cron", "0 10 * * *", "--tz", "Europe/Paris")
        reply = json.loads(self.forecast("--from", "2027-03-27", "--to", "+3d", "--tz",
                                         "Europe/Paris", "--job", "report", "--json"))
        self.assertEqual((reply["from"], reply["to"]), ("2027-03-26T23:00:00.000000Z",
                                                        "2027-03-29T23:00:00.000000Z"))
        self.assertEqual([item["job"] for item in reply["items"]], ["report"] * 3)

    def test_a_mistyped_job_or_zone_is_not_answered_with_nothing(self):
        self.plan("report", "--cron", "0 9 * * *")
        self.assertIn("there is no job 'reprot'", self.refused(3, "forecast", "--job", "reprot"))
        self.assertTrue(self.refused(1, "forecast", "--tz", "Europe/Pari")
                        .endswith("; did you mean 'Europe/Paris'?"))
        self.perdura("job", "create", "report", "--another", "--cron", "0 9 * * *")
        self.assertIn("09:00:00  report", self.forecast("--job", "report", "--tz", "UTC"))

    def test_d3_clocks_that_change_are_told_once_a_day_in_their_own_zone(self):
        for name in ("one", "two"):
            self.plan(name, "--cron", "0 12 * * *", "--tz", "Europe/Paris")
        text = self.forecast("--from", "2027-03-28", "--to", "+1d", "--tz", "UTC")
        self.assertEqual(text.count("clocks change at Sun 2027-03-28 03:00:00 in Europe/Paris"), 1)

    def test_d3_a_time_that_comes_twice_is_marked(self):
        self.plan("twice", "--cron", "30 2 * * *", "--tz", "Europe/Paris", "--dst", "both")
        text = self.forecast("--from", "2027-10-30T22:00:00Z", "--to", "2027-10-31T22:00:00Z",
                             "--tz", "Europe/Paris")
        self.assertRegex(text, r"(?m)^02:30:00  twice +its time comes twice that day: the first")
        self.assertRegex(text, r"(?m)^02:30:00  twice +its time comes twice that day: the second")

    def test_what_fires_often_is_one_line_unless_all_are_wanted(self):
        self.plan("ping", "--cron", "*/5 * * * *")
        arguments = ("--from", "2027-01-05T00:00:00Z", "--to", "2027-01-06T00:00:00Z", "--tz",
                     "UTC")
        lines = self.forecast(*arguments).splitlines()
        self.assertEqual(len(lines), 2)
        self.assertRegex(lines[1], r"^00:00:00  ping  288 times, every 5m 00s, until "
                                   r"Tue 2027-01-05 23:55:00$")
        self.assertEqual(len(self.forecast(*arguments, "--all").splitlines()), 1 + 288)

    def test_many_at_once_and_closed_windows_are_marked(self):
        """D5"""
        for i in range(12):
            self.plan(f"job{i}", "--cron", "0 9 * * *")
        self.plan("clean", "--category", "maintenance", "--cron", "0 12 * * *")
        text = self.forecast("--from", "2027-01-05T00:00:00Z", "--to", "2027-01-06T00:00:00Z",
                             "--tz", "UTC")
        self.assertRegex(text, r"(?m)^09:00:00  job3 +12 in this minute")
        self.assertRegex(text, r"(?m)^12:00:00  clean +waits for its window, which opens at "
                               r"Wed 2027-01-06 02:00:00")

    def test_a_list_that_was_cut_says_how_to_go_on(self):
        self.plan("hourly", "--cron", "0 * * * *")
        done = self.perdura("forecast", "--from", "2027-01-05T00:00:00Z", "--to",
                            "2027-01-06T00:00:00Z", "--limit", "3", "--tz", "UTC")
        self.assertEqual(len(done.stdout.splitlines()), 1 + 3)
        self.assertIn("(more: --limit, or --from 2027-01-05T0", done.stderr)

    def test_nothing_planned_is_said_and_wrong_times_are_refused(self):
        self.assertIn("Nothing fires", self.forecast())
        self.refused(2, "forecast", "--to", "soon")
        self.assertIn("'to'", self.refused(1, "forecast", "--to", "-1d"))
        self.assertIn("no time zone", self.refused(1, "forecast", "--tz", "Nowhere/X"))


if __name__ == "__main__":
    unittest.main()
