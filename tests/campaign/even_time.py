"""Part `even_time` of the fault campaign: whether time tells of a row that a caller must not know of (V8). 10,000
refusals for another user's ids and as many for ids of nothing, in a random order, five runs per route. A run in which
a test tells the two apart (p < 0.01, Mann and Whitney) is a finding. Two minutes each.

    python3 tests/campaign/faults.py --parts even_time
"""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "api"))
from test_even_time import ROUTES, EvenTime, told_apart  # noqa: E402

NAME = "even_time"
REQUESTS, RUNS = 10_000, 5
MEANS_TOLD_APART = 0.01


class Campaign(EvenTime):
    def runTest(self):
        """Only its parts are used."""

    def one(self, method, path, body):
        foreign, missing = self.measure(method, path, body, REQUESTS)
        p = told_apart(foreign, missing)
        route = f"{method} {path}"
        return {"route": route, "requests": REQUESTS, "p": round(p, 4),
                "median_ms": {name: round(sorted(took)[len(took) // 2] * 1000, 3)
                              for name, took in (("foreign", foreign), ("missing", missing))},
                "findings": [f"{route}: told apart, p = {p:.4f}"] if p < MEANS_TOLD_APART else []}


def run(ledger, say):
    for method, path, body in ROUTES:
        while len(ledger.rows(NAME, route=f"{method} {path}")) < RUNS:
            campaign = Campaign()
            campaign.setUp()
            try:
                row = ledger.add(NAME, **campaign.one(method, path, body))
            finally:
                campaign.doCleanups()
            say(f"{row['route']}: p = {row['p']}")


def summary(ledger):
    rows = ledger.rows(NAME)
    if not rows:
        return []
    return [("V8", f"{len(rows)} runs of {REQUESTS:,} refusals for foreign ids and as many for missing ones",
             f"told apart by their time in {len(ledger.findings(NAME))}; smallest p {min(r['p'] for r in rows)}")]


def report(ledger):
    rows = ledger.rows(NAME)
    if not rows:
        return ""
    lines = ["## Time of refusals", "", "A principal of one user asks for ids of another user and for ids of nothing, in "
             "a random order. Does the time of the answers tell the two apart (Mann and Whitney)? With runs "
             "that do not differ, one p in a hundred is below 0.01 by chance.", "",
             "| route | runs | p of each | median, foreign | median, missing |", "|---|---:|---|---:|---:|"]
    for route in dict.fromkeys(row["route"] for row in rows):
        of = [row for row in rows if row["route"] == route]
        medians = [sorted(row["median_ms"][kind] for row in of)[len(of) // 2] for kind in ("foreign", "missing")]
        lines.append(f"| `{route}` | {len(of)} | {', '.join(str(row['p']) for row in of)} | {medians[0]:.2f} ms | "
                     f"{medians[1]:.2f} ms |")
    return "\n".join(lines) + "\n"
