"""Part `even_time` of the fault campaign: whether time tells of a row that a caller must not know of (V8).

A run makes 10,000 refusals for a foreign id and as many for each of two ids of nothing, in a random order. One
comparison (Mann and Whitney) is between the foreign id and the first missing one; the other, between the two missing
ones, is the control: it shows what chance and this machine do. There are five runs per route. What counts is decided
before them: the differences of a route's runs are summed up (Stouffer), because a leak leads to the same side each
time, and chance does not. A route differs where chance does that in less than one campaign of a hundred, all
routes taken together; a control that differs is a finding about the measure. About two minutes per run.

    python3 tests/campaign/faults.py --parts even_time
"""
import math
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "api"))
from test_even_time import NOTHING, NOTHING_ELSE, ROUTES, EvenTime, by_chance, difference  # noqa: E402

NAME = "even_time"
REQUESTS, RUNS = 10_000, 5
MEANS_DIFFERENT = 0.01 / len(ROUTES)


class Campaign(EvenTime):
    def runTest(self):
        """Only its parts are used."""

    def one(self, route):
        foreign, missing, control = self.measure(route, REQUESTS, NOTHING, NOTHING_ELSE)
        return {"route": name_of(route), "requests": REQUESTS, "z": round(difference(foreign, missing), 3),
                "control_z": round(difference(missing, control), 3),
                "median_ms": {name: round(sorted(took)[len(took) // 2] * 1000, 3)
                              for name, took in (("foreign", foreign), ("missing", missing), ("control", control))}}


def name_of(route):
    who, method, path, _, _ = route
    return f"{method} {path}" + (", another namespace" if who == "namespace" else "")


def runs_of(ledger, route):
    """Those with a control; earlier runs compared once only."""
    return [row for row in ledger.rows(NAME, route=route) if "control_z" in row]


def together(rows, key):
    return by_chance(sum(row[key] for row in rows) / math.sqrt(len(rows)))


def judge(rows):
    """Findings of a route whose runs are all there."""
    found = [(words, together(rows, key))
             for words, key in (("foreign ids differ", "z"), ("the control differs", "control_z"))]
    return [f"{rows[0]['route']}: {words}, p = {p:.5f} over {len(rows)} runs" for words, p in found if p < MEANS_DIFFERENT]


def run(ledger, say):
    for _ in range(RUNS):
        for route in ROUTES:
            rows = runs_of(ledger, name_of(route))
            if len(rows) >= RUNS:
                continue
            campaign = Campaign()
            campaign.setUp()
            try:
                row = campaign.one(route)
            finally:
                campaign.doCleanups()
            ledger.add(NAME, **row, findings=judge([*rows, row]) if len(rows) + 1 == RUNS else [])
            say(f"{row['route']}: z = {row['z']}, of the control {row['control_z']}")


def summary(ledger):
    rows = [row for route in ROUTES for row in runs_of(ledger, name_of(route))]
    if not rows:
        return []
    return [("V8", f"{len(rows)} runs of {REQUESTS:,} refusals for foreign ids and as many for missing ones, on "
             f"{len({row['route'] for row in rows})} routes, each with a control",
             f"routes whose times differ: {len(ledger.findings(NAME))}")]


INTRODUCTION = f"""## Time of refusals

A principal of one user, or of one namespace, asks for an id of another one and for two ids of nothing, in a random
order. Does the time of the answers tell the foreign id from a missing one (Mann and Whitney, in standard deviations)?
The control compares the two missing ones. p is of all runs of a route together (Stouffer); below {MEANS_DIFFERENT:g} it
counts: chance does that on any of the {len(ROUTES)} routes once in a hundred campaigns.

| route | runs | each | p | control, each | p | median, foreign | median, missing |
|---|---:|---|---:|---|---:|---:|---:|
"""


def line_of(rows):
    medians = [sorted(row["median_ms"][kind] for row in rows)[len(rows) // 2] for kind in ("foreign", "missing")]
    each, controls = (", ".join(f"{row[key]:.2f}" for row in rows) for key in ("z", "control_z"))
    return (f"| `{rows[0]['route']}` | {len(rows)} | {each} | {together(rows, 'z'):.3f} | {controls} | "
            f"{together(rows, 'control_z'):.3f} | {medians[0]:.2f} ms | {medians[1]:.2f} ms |\n")


def report(ledger):
    lines = [line_of(rows) for rows in (runs_of(ledger, name_of(route)) for route in ROUTES) if rows]
    return INTRODUCTION + "".join(lines) if lines else ""
