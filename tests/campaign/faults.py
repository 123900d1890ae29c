"""The fault campaign, `make faults`: runs every part until its goal is in the ledger, then writes
docs/faults.md of what the ledger says.

    python3 tests/campaign/faults.py [--parts kills,disk] [--ledger FILE] [--report-only]

A part is a module of this folder with
    NAME      the word that stands in the ledger and behind --parts
    run(ledger, say)     works until the goal is reached; say(text) shows progress
    report(ledger)       its section of the report, markdown, beginning with '## '
    summary(ledger)      rows for the table at the top: (fault ids, what was done, result)
    not_tested(ledger)   lines for 'What was not tested'; may be missing
PERDURA_BUILD and PERDURA_FAULTS_BUILD name the folders of the ordinary build and of the one with
fault points, build/ and build-faults/ otherwise.
It may be interrupted at any moment: finished pieces are in the ledger.
"""
import argparse
import importlib
import os
import pathlib
import signal
import sys
import time

import ledger as ledger_module

PARTS = ("kills", "stops", "points", "disk", "store_faults", "load", "seeded", "fuzzing",
         "coverage", "soak", "pg_nodes", "schedules", "mutations", "forgeries", "schemas", "recovery",
         "differential", "even_time", "agents", "services", "inboxes")


def load_parts(names):
    """Parts that are not there are left out; one that is there must load."""
    parts = []
    for name in names:
        if (pathlib.Path(__file__).parent / f"{name}.py").exists():
            parts.append(importlib.import_module(name))
        else:
            print(f"part {name}: there is no tests/campaign/{name}.py", file=sys.stderr)
    return parts


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--ledger", default=str(ledger_module.ROOT / "reports" / "faults.jsonl"))
    parser.add_argument("--report", default=str(ledger_module.ROOT / "docs" / "faults.md"))
    parser.add_argument("--report-only", action="store_true")
    options = parser.parse_args()
    for signum in (signal.SIGINT, signal.SIGTERM):  # what was started is ended, also in scripts
        signal.signal(signum, lambda *_: sys.exit(130))
    os.environ.setdefault("PERDURA_BUILD", str(ledger_module.ROOT / "build"))
    os.environ.setdefault("PERDURA_FAULTS_BUILD", str(ledger_module.ROOT / "build-faults"))
    ledger = ledger_module.Ledger(options.ledger)
    if not options.report_only:
        for part in load_parts(options.parts.split(",")):
            started = time.monotonic()
            print(f"{part.NAME}:", flush=True)
            part.run(ledger, lambda text: print("  " + text, flush=True))
            print(f"{part.NAME}: done in {time.monotonic() - started:.0f} s", flush=True)
    import report
    pathlib.Path(options.report).write_text(report.write(ledger, load_parts(PARTS)))
    bad = [text for part in PARTS for text in ledger.findings(part)]
    print(f"{options.report} written; findings: {len(bad)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
