"""The part of docs/benchmarks.md about PostgreSQL, for report.py. As there, every number comes from
reports/bench.json, what was not measured says so, and what falls short of its aim is said to."""
from report_words import figures, number, ratio, table, when

PEERS = (("graphile-worker", "graphile-worker"), ("pg-boss", "pg-boss"))
DEFAULTS = "the defaults"


def outcome(value, aim):
    if value is None:
        return "–"
    return "reached" if value >= aim else "**falls short**"


def best_of(row):
    """The settings whose drain has the highest median."""
    return max(row["drains"], key=row["drains"].get)


def best_life(row):
    return max(row["lives"], key=row["lives"].get)


# ---- against the bare program ----


def against_bare(row):
    best = best_of(row)
    lines = []

    def line(name, bare, mine, share):
        lines.append([name, number(bare), number(mine), f"**{number(share, 2)}**",
                      outcome(share, 0.7)])

    line("enqueue", row["raw_enqueue"], row["enqueue"], row["enqueue_ratio"])
    for name, drained, lived in (("defaults", DEFAULTS, DEFAULTS),
                                 ("best settings", best, best_life(row))):
        line(f"claim and complete, {name}", row["raw_drain"], row["drains"][drained],
             row["drain_ratios"][drained])
        line(f"whole life, {name}", row["raw_life"], row["lives"][lived],
             row["life_ratios"][lived])
    others = "; ".join(f"{name}: {number(rate)}" for name, rate in row["drains"].items())
    return (table(["tasks/s", "bare program", "Perdura", "ratio", "aim 0.7"], lines) +
            "\n[bench/raw_pg.c](../bench/raw_pg.c) writes the same rows in the plain layout with "
            "bare libpq, set-based, over four connections in batches of 1,000, and guards nothing "
            "but who takes which task. Perdura enqueues in batches of 1,000 on four threads; the "
            f"best settings of a drain are {best}. All that were tried: {others}.\n")


# ---- beside the peers ----


def peer_line(name, row, keys):
    return [name] + [number(row.get(key), 2 if key.endswith("_ms") else 0) for key in keys]


def beside_peers(row):
    keys = ("one_by_one", "in_flight_32", "drain_default", "drain_tuned", "start_p50_ms",
            "start_p99_ms")
    best = row["drains"][best_of(row)]
    http = {"one_by_one": row["http_one_by_one"], "in_flight_32": row["http_in_flight_32"],
            "drain_default": row["http_drain_default"],
            "start_p50_ms": row["start_http_same_p50_ms"],
            "start_p99_ms": row["start_http_same_p99_ms"]}
    library = {"drain_default": row["drains"][DEFAULTS], "drain_tuned": best,
               "start_p50_ms": row["start_library_same_p50_ms"],
               "start_p99_ms": row["start_library_same_p99_ms"]}
    lines = [peer_line("**Perdura**, server over HTTP", http, keys),
             peer_line("**Perdura**, library, a node itself", library, keys)]
    lines += [peer_line(f"{name} ({row['peers'][key].get('version', '')})", row["peers"][key], keys)
              for key, name in PEERS if key in row["peers"]]
    return (table(["jobs/s", "enqueue, one by one", "32 in flight", "drain, defaults",
                   "drain, best", "start p50 ms", "start p99 ms"], lines) + "\n" +
            "\n".join(peer_sentences(row, best)) + "\n")


def peer_sentences(row, best):
    for key, name in PEERS:
        if key not in row["peers"]:
            continue
        in_flight = row.get(f"in_flight_factor_{key}")
        shipped = row.get(f"drain_default_factor_{key}")
        tuned = ratio(best, row["peers"][key].get("drain_tuned"))
        singly = ratio(row["http_in_flight_32"], row["peers"][key].get("one_by_one"))
        yield (f"- {name}: Perdura stores {number(in_flight, 1)} times as many single tasks with "
               f"32 in flight on both sides (aim 10: {outcome(in_flight, 10)}; "
               f"{number(singly, 1)} times what the peer stores one by one), drains {number(shipped, 1)} "
               "times as many with the defaults of both" +
               (f" (aim 10: {outcome(shipped, 10)})" if key == "graphile-worker" else "") +
               f" and {number(tuned, 2)} times as many with the best settings of both, where the "
               f"peer's are {row['peers'][key].get('drain_tuned_settings', 'not known')}.")


# ---- nodes ----


def nodes(row):
    lines = [[name, number(row[f"nodes_one_{what}"]), number(row[f"nodes_three_{what}"]),
              f"**{number(row[f'nodes_{what}_ratio'], 2)}**",
              outcome(row[f"nodes_{what}_ratio"], 0.8)]
             for what, name in (("enqueue", "enqueue"), ("drain", "claim and complete, defaults"),
                                ("life", "whole life"))]
    starts = [[name, number(row[f"start_{key}_p50_ms"], 2), number(row[f"start_{key}_p99_ms"], 2)]
              for key, name in (("library_same", "library, one node"),
                                ("http_same", "over HTTP, one node"),
                                ("library_across", "library, enqueued on another node"),
                                ("http_across", "over HTTP, enqueued through another node"))]
    return (table(["tasks/s", "one node", "three nodes together", "ratio", "aim 0.8"], lines) +
            "\nAll nodes, PostgreSQL and the load share this machine's cores: the question is what "
            "nodes cost each other, not what more machines bring.\n\n" +
            table(["enqueue → handler entered, ms, at 100/s", "p50", "p99"], starts))


# ---- growth and churn ----


def growth(results):
    row = figures(results, "pg_growth")
    if not row:
        return when(results, "pg_growth") + "\n`make bench-growth` measures it.\n"
    lines = [[name, number(row[key]), number(row[key + "_ratio"], 2),
              outcome(row[key + "_ratio"], 0.9), number(row[key + "_mib"])]
             for key, name in (("waiting_10k", "10,000 waiting"),
                               ("waiting_1m", f"{number(row['waiting'])} waiting"),
                               ("ended_5m", f"10,000 waiting, {number(row['ended'])} ended"))]
    return (table(["in the store", "claim and complete /s", "ratio", "aim 0.9", "database MiB"],
                  lines) +
            "\nClaims of 100 by one consumer. Those that have ended were enqueued, claimed and "
            "completed like any others; autovacuum as shipped.\n\n" + when(results, "pg_growth"))


def churn(results):
    row = figures(results, "churn")
    if not row:
        return when(results, "churn") + "\n`make bench-churn` measures it.\n"
    start, end = row["start"], row["end"]

    def sizes(name, kind, part, unit=1):
        return [name, number(start[kind][part], unit), number(end[kind][part], unit)]

    lines = [["completed per second", number(start["per_second"]), number(end["per_second"])],
             ["enqueue → handler entered, p50 ms", number(row["first_p50_ms"], 2),
              number(row["last_p50_ms"], 2)],
             ["enqueue → handler entered, p99 ms", number(row["first_p99_ms"], 2),
              number(row["last_p99_ms"], 2)],
             ["drain of 20,000, defaults, per second", number(row["burst_start"]),
              number(row["burst_end"])],
             sizes("what waits and runs: tables, MiB", "lines", "table_mib"),
             sizes("what waits and runs: indexes, MiB", "lines", "index_mib"),
             sizes("what waits and runs: dead rows", "lines", "dead", 0),
             sizes("what is kept: tables, MiB", "history", "table_mib"),
             sizes("what is kept: indexes, MiB", "history", "index_mib"),
             sizes("what is kept: dead rows", "history", "dead", 0)]
    return (table([f"{number(row['rate'])} tasks/s for {number(row['minutes'])} minutes", "start",
                   "end"], lines) +
            "\nThe start is one minute in. "
            f"{number(row['ended'])} tasks came and went, in batches of 20 from one node, run "
            f"on another. What is kept of one takes {number(row['history_bytes_per_task'])} bytes "
            f"with its indexes until retention removes it. At most "
            f"{number(row['most_dead_lines'])} dead rows were in the tables of what waits and "
            f"runs, {number(row['most_dead_history'])} in those of what is kept. The drain at the "
            f"end is {number(row['burst_ratio'], 2)} of the one at the start.\n\n" +
            when(results, "churn"))


INTRO = """{when}
{server} with its settings as shipped, so that every commit is synced, on the same disk; peers have
one of their own that is set up the same way. Ratios are taken within a turn, with the bare program
run before and after, and are medians of the turns.

"""


def section(results):
    row = figures(results, "pg")
    if row:
        text = INTRO.format(when=when(results, "pg"), server=row["server"])
        parts = [("Against the bare program", against_bare(row)),
                 ("Beside the peers on PostgreSQL", beside_peers(row)),
                 ("Several nodes", nodes(row))]
    else:
        text, parts = when(results, "pg") + "\n", []
    parts += [("Growth on PostgreSQL", growth(results)), ("Churn on PostgreSQL", churn(results))]
    return text + "\n".join(f"### {title}\n\n{body}" for title, body in parts)
