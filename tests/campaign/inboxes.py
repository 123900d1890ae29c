"""Part `inboxes` of the fault campaign: kill -9 of a server that takes rows out of tables of others (A15), in SQLite
files and in PostgreSQL, at any moment and at each point between reading a row, the commit and the mark.

    python3 tests/campaign/faults.py --parts inboxes
"""
import collections
import os
import sys
import unittest

import ledger as ledger_module

sys.path.insert(0, str(ledger_module.ROOT / "tests" / "api"))
sys.path.insert(0, str(ledger_module.ROOT / "tests" / "crash"))

NAME = "inboxes"
KILLS = int(os.environ.get("PERDURA_INBOX_KILLS", "1000"))  # over both kinds
ROUND = int(os.environ.get("PERDURA_INBOX_ROUND", "50"))
KINDS = ("sqlite", "postgres")


def run(ledger, say):
    import test_inbox_kills as kills
    cases = dict(zip(KINDS, (kills.SqliteKills, kills.PostgresKills)))
    for kind, case in cases.items():
        while ledger.total(NAME, "kills", kind=kind) < KILLS // len(KINDS):
            findings = one_round(ledger, kind, case)
            say(f"{kind}: {ledger.total(NAME, 'kills', kind=kind)} kills")
            if findings:
                raise SystemExit(findings[0][:2000])


def one_round(ledger, kind, case):
    rounds = len(ledger.rows(NAME, kind=kind))
    again = type(case.__name__, (case,), {"kills": ROUND, "seed": rounds, "after": "delete" if rounds % 4 == 3 else "mark"})
    test = again(next(iter(unittest.defaultTestLoader.getTestCaseNames(again))))
    result = unittest.TestResult()
    unittest.TestSuite([test]).run(result)
    findings = [text[-400:] for _, text in result.failures + result.errors]
    findings += [f"left out: {why}" for _, why in result.skipped]
    ledger.add(NAME, kind=kind, seed=rounds, kills=getattr(test, "lap", 0), rows=len(getattr(test, "sent", ())),
               dropped=getattr(test, "dropped", 0), points=getattr(test, "points", {}), findings=findings)
    return findings


def killed_at(ledger):
    """Kills per fault point."""
    counts = collections.Counter()
    for row in ledger.rows(NAME):
        counts.update(row["points"])
    return dict(counts)


def summary(ledger):
    return [("A15, F-A1, F-A2", f"{ledger.total(NAME, 'kills', kind=kind):,} kill -9 of a server that takes rows of an "
             f"inbox in {'an SQLite file' if kind == 'sqlite' else 'PostgreSQL'}, between the commit and the mark too",
             f"{ledger.total(NAME, 'rows', kind=kind):,} rows: lost or doubled {len(ledger.findings(NAME, kind=kind))}")
            for kind in KINDS if ledger.rows(NAME, kind=kind)]


def report(ledger):
    lines = ["## Inboxes", "",
             "A program writes rows into its own table, in transactions of which every fifth is rolled back, while the "
             "server that takes them is killed. At the end each committed row is one task, in order, and no other is.",
             "", "| | kills | rows | rolled back | findings |", "|---|---:|---:|---:|---:|"]
    for kind in KINDS:
        sums = [ledger.total(NAME, field, kind=kind) for field in ("kills", "rows", "dropped")]
        lines.append(f"| {kind} | " + " | ".join(f"{x:,}" for x in sums) + f" | {len(ledger.findings(NAME, kind=kind))} |")
    at = ", ".join(f"{point} {count}" for point, count in sorted(killed_at(ledger).items()))
    return "\n".join([*lines, "", f"Killed at: {at}.", ""])
