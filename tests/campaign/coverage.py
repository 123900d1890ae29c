"""Part of the fault campaign: how much of src/ the whole test suite runs (`make coverage`). One
line of the ledger per measured commit; the figures per file are in reports/coverage.json."""
import json
import os
import subprocess
import sys

import ledger as ledger_module

NAME = "coverage"
ROOT = ledger_module.ROOT
LINES_GOAL, BRANCHES_GOAL = 90, 80


def run(ledger, say):
    if ledger.rows(NAME, commit=ledger.commit) and not ledger.commit.endswith("+"):
        return
    command = [sys.executable, str(ROOT / "tools" / "coverage.py")]
    given = os.environ.get("PERDURA_COVERAGE_BUILD")
    command += ["--build", given] if given else []
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    for line in done.stdout.splitlines()[-20:]:
        say(line)
    if done.returncode == 1:
        raise SystemExit("the tests fail in the coverage build; fix them first")
    add(ledger)


def add(ledger):
    """The figures of reports/coverage.json as a line of the ledger."""
    result = json.loads((ROOT / "reports" / "coverage.json").read_text())
    total = result["total"]
    findings = []
    if total["lines_percent"] < LINES_GOAL:
        findings.append(f"lines {total['lines_percent']} %, below {LINES_GOAL} %")
    if total["branches_percent"] < BRANCHES_GOAL:
        findings.append(f"branches {total['branches_percent']} %, below {BRANCHES_GOAL} %")
    ledger.add(NAME, total=total, folders=result["folders"], findings=findings)


def newest(ledger):
    rows = ledger.rows(NAME)
    return rows[-1] if rows else None


def report(ledger):
    row = newest(ledger)
    if not row:
        return "## Coverage\n\nNot measured yet.\n"
    lines = ["## Coverage", "", f"`make coverage` at {row['commit']}, {row['date']}: every test of "
             "`make test` once, gcc and gcov at -O0, with the fault points. A branch is one "
             "outcome of a conditional jump; only the outcomes of `ASSERT` are left out. "
             "Processes killed from outside count for nothing; the test without memory (F-D16) is left out, since gcov itself needs some.", "",
             "| folder of `src/` | lines | run | branches | taken |", "|---|---:|---:|---:|---:|"]
    for name, sums in [*row["folders"].items(), ("**in total**", row["total"])]:
        lines.append(f"| {name} | {sums['lines']:,} | {sums['lines_percent']} % | "
                     f"{sums['branches']:,} | {sums['branches_percent']} % |")
    return "\n".join(lines) + "\n"


def summary(ledger):
    row = newest(ledger)
    if not row:
        return [("", "coverage of src/", "not measured")]
    total = row["total"]
    return [("", f"coverage of src/ by `make test` (goal {LINES_GOAL} % and {BRANCHES_GOAL} %)",
             f"{total['lines_percent']} % of lines, {total['branches_percent']} % of branches")]
