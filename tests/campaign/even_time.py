"""Whether time tells of a row that a caller must not know of (V8): 10,000 refusals for another user's ids and as many
for ids of nothing, in a random order, five runs per route. A run in which a test tells the two apart (p < 0.01, Mann and
Whitney) is a failure. Takes 25 minutes; each run is a line of reports/even_time.jsonl.

    nice python3 tests/campaign/even_time.py [--requests 10000] [--runs 5]"""
import argparse
import datetime
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "api"))
from test_even_time import ROUTES, EvenTime, told_apart  # noqa: E402

REPORT = ROOT / "reports" / "even_time.jsonl"
MEANS_TOLD_APART = 0.01


class Campaign(EvenTime):
    def runTest(self):
        """Only its parts are used."""

    def one(self, method, path, body, requests):
        foreign, missing = self.measure(method, path, body, requests)
        return {"at": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                "route": f"{method} {path}", "requests": requests, "p": round(told_apart(foreign, missing), 4),
                "median_ms": {name: round(sorted(took)[len(took) // 2] * 1000, 3)
                              for name, took in (("foreign", foreign), ("missing", missing))}}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    campaign, failed = Campaign(), 0
    campaign.setUp()
    try:
        for method, path, body in ROUTES:
            for _ in range(arguments.runs):
                line = campaign.one(method, path, body, arguments.requests)
                failed += line["p"] < MEANS_TOLD_APART
                print(json.dumps(line), flush=True)
                with REPORT.open("a") as report:
                    report.write(json.dumps(line) + "\n")
    finally:
        campaign.doCleanups()
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
