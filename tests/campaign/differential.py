"""Part `differential` of the fault campaign: walks of tests/postgres/operations.py with seeds of their own, both stores in
lockstep, every answer checked against openapi.json and by the oracle of the status machine. A row of the ledger is one
database with several walks; a difference is a finding with its seed, and the next walk starts."""
import os
import random
import sys

import ledger as ledger_module

for folder in ("api", "postgres"):
    sys.path.insert(0, str(ledger_module.ROOT / "tests" / folder))
import lockstep  # noqa: E402
import test_differential  # noqa: E402
from server import Postgres  # noqa: E402

NAME = "differential"
SCALE = float(os.environ.get("PERDURA_DIFFERENTIAL_SCALE", "1"))
GOAL = int(2000000 * SCALE)
WALKS, CALLS = 10, 2500  # of a row


def one_row(seed):
    """Calls made, and what differed."""
    calls, findings = 0, []
    with Postgres({"synchronous_commit": "off"}) as postgres:
        for number in range(WALKS):
            try:
                calls += test_differential.walk(postgres, seed + number, CALLS, f"walk_{number}")
            except lockstep.Difference as difference:
                findings.append(str(difference)[:4000])
    return calls, findings


def run(ledger, say):
    while ledger.total(NAME, "calls") < GOAL:
        seed = random.SystemRandom().randrange(1, 2 ** 31)
        calls, findings = one_row(seed)
        ledger.add(NAME, seed=seed, walks=WALKS, calls=calls, findings=findings)
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
