"""The load part of the fault campaign: crowds, hostile clients and large volumes (F-H1 ... F-H19),
each with its figures beside those of the same server undisturbed, in the same run.

    python3 tests/campaign/load.py [--pieces F-H6,F-H19] [--scale 0.05] [--ledger FILE]

PERDURA_BUILD names the folder of the binary. A piece that is in the ledger at this scale or more
is not run again. On a busy machine a figure may be missed by chance: a piece that misses one is
tried up to three times, and the ledger says how often.
"""
import argparse
import os
import pathlib
import sys
import time

import ledger as ledger_module
import load_crowds
import load_logs
import load_volumes
import load_weak

NAME = "load"
TRIES = 3
PIECES = load_crowds.PIECES + load_volumes.PIECES + load_logs.PIECES + load_weak.PIECES
ROOT = pathlib.Path(__file__).resolve().parents[2]


def done(ledger, piece, scale):
    return any(row["scale"] >= scale for row in ledger.rows(NAME, piece=piece.ids))


def run_piece(piece, scale, say):
    for tries in range(1, TRIES + 1):
        began = time.monotonic()
        try:
            row = piece.run(scale, say)
        except (OSError, AssertionError, ValueError, KeyError, IndexError) as error:
            row = {"result": "did not end", "figures": {},
                   "findings": [f"{piece.ids}: {type(error).__name__}: {error}"]}
        row.update(tries=tries, seconds=round(time.monotonic() - began, 1), scale=scale)
        say(f"{piece.ids}: {row['result']} ({row['seconds']} s)")
        for text in row["findings"]:
            say(f"  missed: {text}")
        if not row["findings"]:
            break
    return row


def run(ledger, say, scale=None, pieces=None):
    scale = scale or float(os.environ.get("PERDURA_LOAD_SCALE", "1"))
    for piece in PIECES:
        if pieces and piece.ids not in pieces:
            continue
        if done(ledger, piece, scale):
            say(f"{piece.ids}: in the ledger")
            continue
        say(f"{piece.ids}: {piece.what}")
        row = run_piece(piece, scale, say)
        ledger.add(NAME, piece=piece.ids, what=piece.what, **row)


def newest(ledger):
    """The last line of every piece, in the order of the pieces."""
    rows = {}
    for row in ledger.rows(NAME):
        rows[row["piece"]] = row
    return [rows[piece.ids] for piece in PIECES if piece.ids in rows]


def summary(ledger):
    return [(row["piece"], row["what"],
             "missed: " + "; ".join(row["findings"]) if row["findings"] else row["result"])
            for row in newest(ledger)]


def report(ledger):
    lines = ["## Load", "",
             "A normal client (the probe) enqueues, claims and completes one task after the other. "
             "What it feels under load stands beside what it felt on the same server just before. "
             "`make faults` runs it again; the machine and what else ran on it show in the "
             "figures, the ratios much less.", "",
             "| fault | what was done | figures |", "|---|---|---|"]
    for row in newest(ledger):
        what = row["what"] if row["scale"] == 1 else f"{row['what']} (at {row['scale']:g} of it)"
        result = row["result"]
        if row["findings"]:
            result += " **Missed:** " + "; ".join(row["findings"])
        lines.append(f"| {row['piece']} | {what} | {result} |")
    lines += ["", "Not tested here: tenants (F-H21), which this version does not have; F-H9 and "
              "F-H10 are in the part about schedules; F-H2 to F-H4, F-H7, F-H11, F-H13, F-H14 and F-H18 are tests that run with `make test`.", ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--pieces", help="such as F-H6,F-H19")
    parser.add_argument("--scale", type=float, default=1.0, help="1 is the full size")
    parser.add_argument("--ledger", default=str(ROOT / "reports" / "faults.jsonl"))
    options = parser.parse_args()
    ledger = ledger_module.Ledger(options.ledger)
    wanted = options.pieces.split(",") if options.pieces else None
    run(ledger, lambda text: print(text, flush=True), options.scale, wanted)
    print(report(ledger))
    return 1 if any(row["findings"] for row in newest(ledger)) else 0


if __name__ == "__main__":
    sys.exit(main())
