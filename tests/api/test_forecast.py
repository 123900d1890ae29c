"""The forecast: what will fire and when, across daylight saving (D3), with pile-ups (F-H9), closed
windows (D5) and lines for many instants. Each test has a server of its own."""
import unittest
import urllib.parse

from planning import PlanningTest

SPRING = {"from": "2027-03-27T00:00:00Z", "to": "2027-03-30T00:00:00Z"}


class ForecastTest(PlanningTest):
    def forecast(self, **query):
        return self.expect(200, "GET", f"/v1/forecast?{urllib.parse.urlencode(query)}")

    def test_d3_instants_across_daylight_saving_are_marked(self):
        job = self.job("night")
        made = self.schedule(job, cron_expression="30 2 * * *", timezone="Europe/Berlin")
        shown = self.forecast(**SPRING, tz="Europe/Berlin")
        self.assertEqual((shown["from"], shown["to"], shown["timezone"], shown["cut"],
                          shown["owners"], shown["unplanned"]),
                         ("2027-03-27T00:00:00.000000Z", "2027-03-30T00:00:00.000000Z",
                          "Europe/Berlin", False, 1, 0))
        self.assertEqual([(i["at"][:19], i["local"], i.get("dst")) for i in shown["items"]],
                         [("2027-03-27T01:30:00", "2027-03-27T02:30:00+01:00", "clock_change"),
                          ("2027-03-28T01:00:00", "2027-03-28T03:00:00+02:00", "shifted"),
                          ("2027-03-29T00:30:00", "2027-03-29T02:30:00+02:00", None)])
        self.assertEqual(shown["items"][1]["clock_changes_at"], "2027-03-28T01:00:00.000000Z")
        for item in shown["items"]:
            self.assertEqual((item["schedule_id"], item["job_id"], item["job"], item["timezone"]),
                             (made["id"], job["id"], "night", "Europe/Berlin"))
        autumn = self.forecast(**{"from": "2027-10-31T00:00:00Z", "to": "2027-11-01T00:00:00Z"})
        [item] = autumn["items"]
        self.assertEqual((item["local"], item["dst"]), ("2027-10-31T00:30:00+00:00", "first_of_two"))

    def test_all_owners_are_in_time_order_and_from_counts_but_to_does_not(self):
        job = self.job("a")
        self.schedule(job, cron_expression="0 12 * * *")
        self.recurring(self.job("b"), "pattern", "daily", {"time": "06:00"})
        self.schedule(job, scheduled_at="2027-06-01T00:00:00Z")
        shown = self.forecast(**{"from": "2027-06-01T00:00:00Z", "to": "2027-06-02T06:00:00Z"})
        self.assertEqual([(i["at"][:16], i["job"], i.get("name")) for i in shown["items"]],
                         [("2027-06-01T00:00", "a", None), ("2027-06-01T06:00", "b", "pattern"),
                          ("2027-06-01T12:00", "a", None)])

    def test_who_fires_often_is_one_line_unless_asked_otherwise(self):
        self.schedule(self.job(), cron_expression="* * * * *")
        day = {"from": "2027-06-01T00:00:00Z", "to": "2027-06-02T00:00:00Z"}
        [line] = self.forecast(**day)["items"]
        self.assertEqual((line["at"][:16], line["count"], line["last"][:16],
                          line["every_seconds"]),
                         ("2027-06-01T00:00", 1440, "2027-06-01T23:59", 60))
        shown = self.forecast(**day, fold="false")
        self.assertEqual((len(shown["items"]), shown["cut"]), (1000, True))
        rest = self.forecast(**{**day, "from": shown["items"][-1]["at"]}, fold="false")
        self.assertEqual((len(rest["items"]), rest["cut"]), (441, False))
        self.assertEqual(len(self.forecast(**day, fold="false", limit=10000)["items"]), 1440)
        self.assertEqual(len(self.forecast(**day, fold="false", limit=3)["items"]), 3)

    def test_F_H9_many_at_the_same_minute_are_marked(self):
        job = self.job()
        for _ in range(11):
            self.schedule(job, cron_expression="0 0 * * *")
        shown = self.forecast(**{"from": "2027-06-01T00:00:00Z", "to": "2027-06-01T00:01:00Z"})
        self.assertEqual([item["pile_up"] for item in shown["items"]], [11] * 11)

    def test_d5_a_closed_window_is_told(self):
        self.schedule(self.job(category="maintenance"), cron_expression="0 12 * * *")
        [item] = self.forecast(**{"from": "2027-06-01T00:00:00Z",
                                  "to": "2027-06-02T00:00:00Z"})["items"]
        self.assertEqual((item["window_wait"], item["window_opens_at"][:16]),
                         (True, "2027-06-02T02:00"))

    def test_d5_what_is_not_active_is_not_foretold(self):
        day = {"from": "2027-06-01T00:00:00Z", "to": "2027-06-02T00:00:00Z"}
        self.category("off")
        jobs = [self.job("a"), self.job("b"), self.job("c", category="off")]
        made = [self.schedule(job, cron_expression="@daily") for job in jobs]
        self.assertEqual(len(self.forecast(**day)["items"]), 3)
        self.expect(200, "POST", f"/v1/schedules/{made[0]['id']}:pause")
        self.expect(200, "PATCH", f"/v1/jobs/{jobs[1]['id']}", {"is_active": False})
        self.expect(200, "PATCH", "/v1/categories/off", {"is_active": False})
        self.assertEqual(self.forecast(**day)["items"], [])
        self.expect(200, "PATCH", "/v1/categories/off", {"is_active": True})
        self.assertEqual(len(self.forecast(**day)["items"]), 1)

    def test_more_owners_than_a_page_are_all_foretold(self):
        job = self.job()
        for hour in range(24):
            for minute in range(0, 60, 2):
                self.schedule(job, cron_expression=f"{minute} {hour} * * *")
        shown = self.forecast(**{"from": "2027-06-01T00:00:00Z", "to": "2027-06-02T00:00:00Z"})
        self.assertEqual(shown["owners"], 720)
        self.assertEqual([item["at"][11:16] for item in shown["items"]],
                         [f"{h:02}:{m:02}" for h in range(24) for m in range(0, 60, 2)])

    def test_without_parameters_it_is_a_day_from_now_in_utc(self):
        self.schedule(self.job(), cron_expression="0 * * * *")
        shown = self.expect(200, "GET", "/v1/forecast")
        self.assertEqual((len(shown["items"]), shown["timezone"]), (24, "UTC"))
        self.assertGreaterEqual(shown["items"][0]["at"], shown["from"])

    def test_what_makes_no_sense_is_refused_with_its_field(self):
        for query, field in (("from=x", "from"), ("to=x", "to"), ("tz=Mars/Olympus", "tz"),
                             ("limit=0", "limit"), ("fold=maybe", "fold"), ("cursor=x", "cursor"),
                             ("from=2027-01-02T00:00:00Z&to=2027-01-01T00:00:00Z", "to"),
                             ("from=2027-01-01T00:00:00Z&to=2099-01-01T00:00:00Z", "to")):
            self.expect_error(422, "invalid", "GET", f"/v1/forecast?{query}", field=field)


if __name__ == "__main__":
    unittest.main()
