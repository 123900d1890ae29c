"""Part `pg_nodes` of the fault campaign: three nodes on one PostgreSQL under load while nodes are
killed and stopped, the database restarts and crashes, commits are cut, networks fail, a standby is
promoted (tables E and F, F-B5, F-B10, F-B11, F-H13); and how long take-over and recovery take. One
row of the ledger per round, given by its seed:

    python3 tests/campaign/pg_rounds.py kills pg_kills.3 50
    python3 tests/campaign/pg_standby.py pg_async.0
    python3 tests/campaign/pg_timing.py 2 40
    python3 tests/campaign/pg_scenes.py F-E10
"""
import collections
import os
import time

import pg_rounds
import pg_scenes
import pg_standby
import pg_timing

NAME = "pg_nodes"
SCALE = float(os.environ.get("PERDURA_PG_SCALE", "1"))
# kind, what is counted, goal, how many per round
GOALS = (("kills", "kills", int(1000 * SCALE), 50),
         ("restarts", "restarts", int(200 * SCALE), 20),
         ("cuts", "cuts", int(500 * SCALE), 50),
         ("nets", "networks", int(48 * SCALE), 12))
PROMOTIONS = (("async", int(20 * SCALE)), ("sync", int(10 * SCALE)))
TIMINGS = (("timing 2 s", 2, int(240 * SCALE)), ("timing 30 s", 30, int(20 * SCALE)))


def run(ledger, say):
    for kind, field, goal, size in GOALS:
        run_rounds(ledger, say, kind, field, goal, size)
    for kind, goal in PROMOTIONS:
        run_promotions(ledger, say, kind, goal)
    for kind, lease_s, goal in TIMINGS:
        run_timings(ledger, say, kind, lease_s, goal)
    for name, function in pg_scenes.SCENES.items():
        if not ledger.rows(NAME, kind="scene", scene=name):
            began = time.monotonic()
            row = pg_scenes.one(name, SCALE)
            ledger.add(NAME, kind="scene", scene=name,
                       seconds=round(time.monotonic() - began, 1), **row)
            say(f"{name}: {row['result']}, findings: {len(row['findings'])}")


def run_rounds(ledger, say, kind, field, goal, size):
    done = ledger.total(NAME, field, kind=kind)
    number = len(ledger.rows(NAME, kind=kind))
    while done < goal:
        seed = f"pg_{kind}.{number}"
        row = pg_rounds.one(kind, seed, min(size, goal - done))
        ledger.add(NAME, kind=kind, **row)
        done, number = done + row.get(field, 0), number + 1
        say(f"{done} {field} of {goal}; round {seed}: {row['acknowledged']} acknowledged, "
            f"{row['seconds']} s, findings: {len(row['findings'])}")
        if row["findings"]:
            raise SystemExit(f"round {seed}: {row['findings'][0][:2000]}")


def run_promotions(ledger, say, kind, goal):
    done = len(ledger.rows(NAME, kind=kind))
    while done < goal:
        row = pg_standby.one(kind, f"pg_{kind}.{done}")
        ledger.add(NAME, kind=kind, **row)
        done += 1
        say(f"{done} {kind} promotions of {goal}: {row['gone']} acknowledged words gone with the "
            f"lag, findings: {len(row['findings'])}")
        if row["findings"]:
            raise SystemExit(f"{row['seed']}: {row['findings'][0][:2000]}")


def run_timings(ledger, say, kind, lease_s, goal):
    done = ledger.total(NAME, "kills", kind=kind)
    while done < goal:
        row = pg_timing.sample(lease_s, min(40, goal - done))
        ledger.add(NAME, kind=kind, **row)
        done += row["kills"]
        say(f"{kind}: {done} kills of {goal}, take-over {percentiles(row['take_over_ms'])}, "
            f"recovery {percentiles(row['recovery_ms'])} ms, findings: {len(row['findings'])}")
        if not row["kills"]:
            raise SystemExit(f"{kind}: nothing was killed")


# ---- the report ----

def percentiles(values):
    """'p50 / p99 / max'."""
    if not values:
        return "–"
    ordered = sorted(values)
    return " / ".join(f"{ordered[min(len(ordered) - 1, int(share * len(ordered)))]:,.0f}"
                      for share in (0.5, 0.99, 1))


def samples(ledger, kind, field):
    return [value for row in ledger.rows(NAME, kind=kind) for value in row.get(field, ())]


def total(ledger, field, *kinds):
    return sum(ledger.total(NAME, field, kind=kind) for kind in kinds)


LOADED = ("kills", "restarts", "cuts", "nets")


def outcome(ledger, *kinds):
    return (f"lost {total(ledger, 'lost', *kinds)}, completed twice "
            f"{total(ledger, 'twice', *kinds)}")


def summary(ledger):
    if not ledger.rows(NAME):
        return []
    lines = [
        ("F-B5, F-B10, F-B11, F-F1, V1–V6",
         f"three nodes on PostgreSQL: {total(ledger, 'kills', 'kills'):,} kill -9 and "
         f"{total(ledger, 'stops', 'kills'):,} SIGSTOP of nodes under load, "
         f"{total(ledger, 'acknowledged', 'kills'):,} tasks acknowledged",
         outcome(ledger, "kills")),
        ("F-E1, F-E2, F-E4",
         f"{total(ledger, 'restarts', 'restarts'):,} restarts and crashes of the database, "
         f"{total(ledger, 'terminated', 'restarts'):,} connections ended by it",
         outcome(ledger, "restarts")),
        ("F-E3", f"{total(ledger, 'cuts', 'cuts'):,} commits cut between COMMIT and its answer",
         outcome(ledger, "cuts")),
        ("F-E7, F-E8", f"{total(ledger, 'networks', 'nets'):,} networks that delay, lose 30 % of "
         "the packets, or fall silent", outcome(ledger, "nets"))]
    if ledger.rows(NAME, kind="async"):
        lines.append((
            "F-E5", f"{len(ledger.rows(NAME, kind='async'))} asynchronous and "
            f"{len(ledger.rows(NAME, kind='sync'))} synchronous standbys promoted under load",
            f"acknowledged words gone with the lag {total(ledger, 'gone', 'async')} (none is "
            f"promised), synchronous {total(ledger, 'gone', 'sync')}; leases valid twice "
            f"{total(ledger, 'leases_twice', 'async', 'sync')}"))
    for row in latest_scenes(ledger):
        what = pg_scenes.SCENES.get(row["scene"], (row["what"], None))[0]
        lines.append((row["scene"], what, row["result"]))
    return lines


def latest_scenes(ledger):
    rows = {row["scene"]: row for row in ledger.rows(NAME, kind="scene")}
    return [rows[name] for name in pg_scenes.SCENES if name in rows]


def report(ledger):
    if not ledger.rows(NAME):
        return ""
    words = collections.Counter()
    for row in ledger.rows(NAME):
        for field, value in row.items():
            if isinstance(value, (int, float)):
                words[row["kind"], field] += value
    lines = [
        "## PostgreSQL and several nodes", "",
        "Three nodes with a pool each, two producers, three HTTP workers and a user who cancels; "
        "plain, failing, checkpointing and fan-out tasks, dependencies, callbacks, archive and "
        f"retention; leases of {pg_rounds.LEASE_MS} ms. Clients go to whichever node answers and "
        "repeat what was not answered. While it runs and at the end every acknowledged enqueue, "
        "completion and cancel is looked up in the database, and `perdura verify` compares the "
        "store with itself. Commits are cut by a proxy that reads the protocol; packets vanish "
        "in the kernel, unacknowledged.", "",
        "| | |", "|---|---:|",
        f"| kill -9 of nodes / of these at a named point | {words['kills', 'kills']:,} / "
        f"{words['kills', 'kills at points']:,} |",
        "| leaders among those killed or stopped / leaders in all | "
        f"{words['kills', 'leaders killed or stopped']:,} / {words['kills', 'leaders']:,} |",
        f"| nodes stopped longer than their lease, then continued | {words['kills', 'stops']:,} |",
        "| database restarts: fast / immediate / kill -9 of the postmaster | "
        + " / ".join(f"{words['restarts', how]:,}" for how in pg_rounds.Restarts.HOWS) + " |",
        f"| connections ended by pg_terminate_backend | {words['restarts', 'terminated']:,} |",
        "| commits cut: the database said it committed / it only received it / it may not have "
        "read it | " + " / ".join(f"{words['cuts', 'cut ' + how]:,}"
                                  for how in ("answered", "sent", "reset")) + " |",
        f"| commits that were sent and never arrived | {words['cuts', 'cut unsent']:,} |",
        "| outcomes looked up by the node: took / did not | "
        f"{words['cuts', 'settled: took']:,} / {words['cuts', 'settled: did not take']:,} |",
        "| enqueues asked again by clients: were there / were not | "
        + " / ".join(f"{sum(words[kind, field] for kind in LOADED):,}"
                     for field in ("found", "not_found")) + " |",
        "| tasks acknowledged / completed / cancelled | "
        + " / ".join(f"{sum(words[kind, field] for kind in LOADED):,}"
                     for field in ("acknowledged", "completed", "cancelled")) + " |",
        "| reports refused because the lease was lost | "
        f"{sum(words[kind, 'stale_refused'] for kind in LOADED):,} |",
        f"| **acknowledged and lost** | **{sum(words[kind, 'lost'] for kind in LOADED)}** |",
        f"| **completed twice** | **{sum(words[kind, 'twice'] for kind in LOADED)}** |", ""]
    lines += times(ledger) + promotions(ledger)
    return "\n".join(lines)


def times(ledger):
    lines = ["### How long it takes", "",
             "In milliseconds, p50 / p99 / max, with everything on this machine's two cores.", "",
             "| from | to | samples | ms |", "|---|---|---:|---:|"]
    for kind, lease_s, _ in TIMINGS:
        for field, what in (("take_over_ms", "another node leads"),
                            ("recovery_ms", "the task it ran has started elsewhere"),
                            ("recovery_leader_ms", "the task it ran, and it led, has started "
                             "elsewhere")):
            values = samples(ledger, kind, field)
            lines.append(f"| kill of a node, leases of {lease_s} s | {what} | {len(values)} | "
                         f"{percentiles(values)} |")
    back = samples(ledger, "restarts", "back_ms")
    lines.append(f"| the database accepts connections again | each node takes a task | "
                 f"{len(back)} | {percentiles(back)} |")
    back = samples(ledger, "nets", "back_ms")
    lines.append(f"| a network heals | work continues | {len(back)} | {percentiles(back)} |")
    return lines + [""]


def promotions(ledger):
    rows = ledger.rows(NAME, kind="async")
    if not rows:
        return []
    back = samples(ledger, "async", "back_ms") + samples(ledger, "sync", "back_ms")
    return [
        "### A standby takes over", "",
        "What an asynchronous standby had not received is gone with the old primary; that window "
        "is PostgreSQL's replication lag, here made long on purpose. What is promised is what "
        "comes after: nodes notice the new timeline, forget what they knew, void every lease of "
        "before (`stale_lease`), and continue; no lease token is given twice. With a synchronous "
        "standby nothing is gone.", "",
        "| | asynchronous | synchronous |", "|---|---:|---:|",
        "| promotions | " + " | ".join(f"{len(ledger.rows(NAME, kind=k))}"
                                       for k in ("async", "sync")) + " |",
        "| acknowledged before | " + " | ".join(f"{total(ledger, 'acknowledged', k):,}"
                                                for k in ("async", "sync")) + " |",
        "| acknowledged words that are gone | " + " | ".join(f"{total(ledger, 'gone', k):,}"
                                                             for k in ("async", "sync")) + " |",
        "| lease tokens given twice | " + " | ".join(f"{total(ledger, 'leases_twice', k):,}"
                                                     for k in ("async", "sync")) + " |",
        f"| promotion to the first task taken, ms | {percentiles(back)} | |", ""]


def not_tested(ledger):
    return [
        "F-E13 (millions of dead rows, an hour's snapshot): a matter of `make bench`, not of this "
        "campaign",
        "F-E18 with two released versions: there is only one; nodes that start while others run "
        "on the same schema are tested",
        "something between node and database that acknowledges packets for ever and carries no "
        "answers: the node waits as long as that lasts (six seconds here); packets that vanish are "
        "noticed (F-E7)",
        "nodes on different machines: all of them, PostgreSQL and the clients share one, and its "
        "clock",
        "fail-over managers (Patroni and others) and split brain of two primaries: one primary is "
        "killed before the other is promoted"]
