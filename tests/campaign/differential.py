"""Part `differential` of the fault campaign: walks of tests/postgres/operations.py with seeds of their own, both stores in
lockstep, every answer checked against openapi.json and by the oracle of the status machine. A row of the ledger is some
walks; a difference is a finding with its seed, and the next walk starts."""
import os
import random
import sys

import ledger as ledger_module

for folder in ("api", "postgres"):
    sys.path.insert(0, str(ledger_module.ROOT / "tests" / folder))
import test_differential  # noqa: E402

NAME = "differential"
SCALE = float(os.environ.get("PERDURA_DIFFERENTIAL_SCALE", "1"))
GOAL = int(2000000 * SCALE)
WALKS = 10  # of a row
AT_ONCE = 4 * (os.cpu_count() or 1)  # beside others each waits for its turn most of the time
TEXT_MAX = 4000


def run(ledger, say):
    calls_of_row = WALKS * test_differential.CALLS_PER_STORE
    rows = -(-max(0, GOAL - ledger.total(NAME, "calls")) // calls_of_row)
    firsts = [random.SystemRandom().randrange(1, 2 ** 31) for _ in range(rows)]
    seeds = [first + number for first in firsts for number in range(WALKS)]
    with test_differential.walks(seeds, at_once=AT_ONCE) as results:
        for first in firsts:
            done = [next(results) for _ in range(WALKS)]
            ledger.add(NAME, seed=first, walks=WALKS, calls=sum(calls for calls, _ in done),
                       findings=[difference[:TEXT_MAX] for _, difference in done if difference])
            say(f"{ledger.total(NAME, 'calls')} calls of {GOAL}, {len(ledger.findings(NAME))} differences")


def report(ledger):
    calls, walks = ledger.total(NAME, "calls"), ledger.total(NAME, "walks")
    return ("## Both stores in lockstep\n\n"
            f"{walks} seeded walks over the whole API, {calls} calls, each to a server on SQLite and to one on PostgreSQL. "
            "Their answers are compared, checked against openapi.json with closed schemas, and against an oracle of "
            "the status machine that predicts status and counters of every task "
            f"(`tests/postgres/operations.py`). Differences: {len(ledger.findings(NAME))}.\n")


def summary(ledger):
    return [("A1, B1, B6, E1", f"{ledger.total(NAME, 'calls')} calls to both stores in lockstep, with the document and an "
             "oracle of the status machine", f"{len(ledger.findings(NAME))} differences")]


def not_tested(ledger):
    return ["the two stores in lockstep where a clock decides: delays and retries that come due, leases that end, plans that fire"]
