"""Part `stops` of the fault campaign: workers and servers that are stopped (SIGSTOP) longer than
the lease and then continue (F-B1 to F-B4, F-B6, F-B9). Everything a holder says carries its lease
token; a word that was taken outside of its lease is found in the store itself. One line per round
of 200 stops:

    python3 tests/crash/stop_loop.py --stops 200 --seed stops.3
"""
import collections
import os
import sys
import time

import ledger as ledger_module

sys.path.insert(0, str(ledger_module.ROOT / "tests" / "crash"))
import stop_loop  # noqa: E402
import stop_pieces  # noqa: E402

NAME = "stops"
SCALE = float(os.environ.get("PERDURA_STOPS_SCALE", "1"))
GOAL = int(2000 * SCALE)
ROUND = 200
# kind, what makes it, how often
PIECES = (("F-B3", stop_pieces.races, int(10000 * SCALE)),
          ("F-B4", stop_pieces.learned_losses, max(1, int(12 * SCALE))),
          ("F-B6", stop_pieces.slept_servers, max(1, int(10 * SCALE))),
          ("F-B9", stop_pieces.paused_claims, max(8, int(200 * SCALE))))


def run(ledger, say):
    done = ledger.total(NAME, "stops", kind="round")
    number = len(ledger.rows(NAME, kind="round"))
    while done < GOAL:
        began = time.monotonic()
        seed = f"stops.{number}"
        row = stop_loop.Stops(seed).run(min(ROUND, GOAL - done))
        ledger.add(NAME, kind="round", seed=seed,
                   seconds=round(time.monotonic() - began, 1), **row)
        done, number = done + row["stops"], number + 1
        say(f"{done} stops of {GOAL}; round {seed}: {row['lost_leases']} leases lost, "
            f"{sum(row['refused'].values())} words of HTTP zombies refused, stale "
            f"{row['stale']}, findings: {len(row['findings'])}")
    for kind, function, count in PIECES:
        if not ledger.rows(NAME, kind=kind):
            began = time.monotonic()
            row = function(count)
            ledger.add(NAME, kind=kind, seconds=round(time.monotonic() - began, 1), **row)
            say(f"{kind}: {brief(row)}, findings: {len(row['findings'])}")


def brief(row):
    return ", ".join(f"{key} {value}" for key, value in row.items()
                     if isinstance(value, (int, float)))


def total_of(ledger, field):
    total = collections.Counter()
    for row in ledger.rows(NAME, kind="round"):
        total.update(row.get(field, {}))
    return total


def all_stops(ledger):
    return ledger.total(NAME, "stops")


def largest(ledger, kind, field):
    values = [x for row in ledger.rows(NAME, kind=kind) for x in row.get(field, ())]
    return f"{max(values):,.0f} ms" if values else "–"


def summary(ledger):
    rows = ledger.rows(NAME)
    if not rows:
        return []
    lost = ledger.total(NAME, "lost_leases")
    table = [("F-B1, F-B2, F-B4, F-B6, F-B9",
              f"{all_stops(ledger):,} SIGSTOP longer than the lease, {lost:,} leases lost by "
              "workers that continued",
              f"stale writes that took effect {ledger.total(NAME, 'stale')}")]
    tries = ledger.total(NAME, "tries", kind="F-B3")
    if tries:
        table.append(("F-B3", f"{tries:,} times zombie and owner complete at the same moment",
                      f"both or the wrong one stored "
                      f"{len(ledger.findings(NAME, kind='F-B3'))}"))
    return table


def report(ledger):
    if not ledger.rows(NAME):
        return ""
    stopped, refused = total_of(ledger, "stopped"), total_of(ledger, "refused")
    checked = total_of(ledger, "checked")
    slept = ledger.rows(NAME, kind="F-B6")
    lines = [
        "## Pauses", "",
        "Five `perdura worker` with process handlers, five programs of the C library and five HTTP "
        "clients share the work; two thirds of them are stopped at a time for 1.4 to 2.4 leases "
        f"({stop_loop.LEASE_MS} ms) and continue as if nothing had happened. Every word carries its "
        "lease token (or attempt), and every stored word is compared with the time in which that "
        "lease was the valid one.", "",
        "| | |", "|---|---:|",
        "| stops of process workers / library workers / HTTP clients | "
        + " / ".join(f"{stopped[kind]:,}" for kind in ("process", "library", "http")) + " |",
        f"| leases lost by them | {ledger.total(NAME, 'lost_leases'):,} |",
        "| words of HTTP zombies refused, by operation | "
        + ", ".join(f"{op} {count:,}" for op, count in sorted(refused.items())) + " |",
        "| stored words compared | "
        + ", ".join(f"{what} {count:,}" for what, count in sorted(checked.items())) + " |",
        f"| **stale writes that took effect** | **{ledger.total(NAME, 'stale')}** |",
        "| zombie and owner complete at the same moment (F-B3) | "
        f"{ledger.total(NAME, 'tries', kind='F-B3'):,} tries, the owner's result each time |",
        "| stubborn handlers of workers that learned of their loss (F-B4) | "
        f"{ledger.total(NAME, 'stops', kind='F-B4')}, the last one dead "
        f"{largest(ledger, 'F-B4', 'ended_ms')} after the worker woke up |"]
    for row in slept[-1:]:
        lines.append(
            f"| server asleep for ten leases with {row['running']} running tasks (F-B6) | "
            f"{row['stops']} times, live tasks run again {row['reruns']}; tasks of dead workers "
            f"back within {largest(ledger, 'F-B6', 'dead_back_ms')} |")
    for row in ledger.rows(NAME, kind="F-B9")[-1:]:
        lines.append(
            f"| worker asleep between claim and start (F-B9) | {row['stops']} times, started "
            f"after the loss {len(row['findings'])} |")
    return "\n".join(lines + [""])
