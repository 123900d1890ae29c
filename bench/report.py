"""Writes docs/benchmarks.md from the figures run.py keeps. Only words and tables: every number on
the page comes from reports/bench.json, and a part that was not measured says so. Not run by itself:
`python3 bench/run.py --report-only`. What was measured on PostgreSQL is written by report_pg.py."""
import report_pg
from report_words import figures, number, ratio, table, when

PEERS = (  # key, name on the page, what a crash of the machine may lose
    ("bullmq-always", "BullMQ, Redis appendfsync always", "nothing"),
    ("bullmq-everysec", "BullMQ, Redis appendfsync everysec", "1 s"),
    ("graphile-worker", "graphile-worker, PostgreSQL", "nothing"),
    ("pg-boss", "pg-boss, PostgreSQL", "nothing"),
    ("beanstalkd", "beanstalkd -f0", "nothing"),
)
# key, heading, whether more is better
COLUMNS = (("one_by_one", "enqueue, one by one", True),
           ("in_flight_32", "32 in flight", True),
           ("best_batch", "best batch", True),
           ("drain_default", "drain, defaults", True),
           ("drain_tuned", "drain, best tuned", True),
           ("start_p50_ms", "start p50 ms", False),
           ("start_p99_ms", "start p99 ms", False))
BATCHES = (1, 10, 100, 1000)


# ---- the big table ----


def all_rows(results):
    """(name, what may be lost, figures), ours first."""
    rows = [("**Perdura**, server over HTTP", "nothing", figures(results, "perdura")),
            ("**Perdura**, library in one process", "nothing", figures(results, "perdura_library"))]
    found = figures(results, "peers")
    rows += [(f"{name} ({found[key].get('version', '')})", lost, found[key])
             for key, name, lost in PEERS if key in found]
    return [row for row in rows if row[2]]


def best_values(rows):
    """The best of each column among those that lose nothing."""
    best = {}
    for key, _, more in COLUMNS:
        values = [row[key] for _, lost, row in rows if lost == "nothing" and row.get(key)]
        if values:
            best[key] = max(values) if more else min(values)
    return best


def cell(row, key, more, best):
    text = number(row.get(key), 0 if more else 2)
    if key == "best_batch" and row.get("best_batch_size"):
        text += f" ({row['best_batch_size']:,.0f})"
    return f"**{text}**" if row.get(key) is not None and row.get(key) == best.get(key) else text


def memory_cell(row):
    if row.get("worker_mib") is None:
        return "–"
    if not row.get("server_mib"):
        return number(row["worker_mib"])
    return f"{number(row['worker_mib'])} + {number(row['server_mib'])}"


def comparison(results):
    rows = all_rows(results)
    if not rows:
        return when(results, "peers")
    best = best_values(rows)
    head = ["jobs/s", "a crash loses"] + [name for _, name, _ in COLUMNS] + ["MiB worker + server"]
    lines = [[name, lost] + [cell(row, key, more, best) for key, _, more in COLUMNS] +
             [memory_cell(row)] for name, lost, row in rows]
    tuned = [f"{name.replace('*', '')}: {row['drain_tuned_settings']}" for name, _, row in rows
             if row.get("drain_tuned_settings")]
    return (table(head, lines) + "\nBold: the best of those that lose nothing when the machine "
            "crashes. Tuned means: " + "; ".join(tuned) + ".\n")


# ---- the other parts ----


def against_sqlite(results):
    raw, library = figures(results, "raw"), figures(results, "perdura_bench")
    http = figures(results, "perdura")
    if not raw or not library:
        return when(results, "perdura_bench")
    rows = []
    for what, name in (("enqueue", "enqueue"), ("life", "whole life")):
        rows.append([f"{name}, bare SQLite"] + [number(raw.get(f"{what}_{n}")) for n in BATCHES])
        rows.append([f"{name}, Perdura"] + [number(library.get(f"{what}_{n}")) for n in BATCHES])
        rows.append([f"**{name}, ratio**"] +
                    [f"**{number(ratio(library.get(f'{what}_{n}'), raw.get(f'{what}_{n}')), 2)}**"
                     for n in BATCHES])
    life = http.get("http_life_100")
    rows.append(["whole life over HTTP", "–", "–", number(life), "–"])
    rows.append(["**ratio**", "–", "–", f"**{number(ratio(life, raw.get('life_100')), 2)}**", "–"])
    return table(["tasks/s", "batch 1", "10", "100", "1,000"], rows)


def latency(results):
    http, library = figures(results, "perdura"), figures(results, "perdura_library")
    bench, beanstalkd = figures(results, "perdura_bench"), \
        figures(results, "peers").get("beanstalkd", {})
    if not http:
        return when(results, "perdura")
    raw = figures(results, "raw")
    rows = [["bare: 4 KiB written and synced, 100 in a second", raw.get("sync_rested_p50_ms"),
             raw.get("sync_rested_p99_ms")],
            ["enqueue → C function entered, library in one process", library.get("start_p50_ms"),
             library.get("start_p99_ms")],
            ["enqueue → C function entered, worker over HTTP", http.get("start_p50_ms"),
             http.get("start_p99_ms")],
            ["enqueue → process started (its first line runs)", http.get("process_p50_ms"),
             http.get("process_p99_ms")],
            ["beanstalkd -f0: put → reserved", beanstalkd.get("start_p50_ms"),
             beanstalkd.get("start_p99_ms")],
            ["bare: 4 KiB written and synced, one after the other", raw.get("sync_p50_ms"), None],
            ["enqueue acknowledged, library", bench.get("enqueue_1_p50_ms"),
             bench.get("enqueue_1_p99_ms")],
            ["enqueue acknowledged, HTTP, one client", http.get("one_by_one_p50_ms"),
             http.get("one_by_one_p99_ms")],
            ["enqueue acknowledged, HTTP, 32 clients at full speed",
             http.get("in_flight_32_p50_ms"), http.get("in_flight_32_p99_ms")]]
    text = table(["ms", "p50", "p99"],
                 [[name, number(p50, 2), number(p99, 2)] for name, p50, p99 in rows])
    return (text + "\nWith 64 connections the server acknowledges "
            f"{number(http.get('enqueue_64'))} single enqueues per second: "
            f"{number(http.get('enqueue_64_ratio'), 2)} of what it answers on a route that does "
            f"nothing ({number(http.get('nothing_64'))}/s); each figure is a median of the turns, "
            "the ratio too.\n")


def services(results):
    row = figures(results, "services")
    if not row:
        return when(results, "services")
    lines = [[name, *(cell for held in (1, 256) for cell in (
        number(row.get(f"{kind}_{held}")), number(row.get(f"{kind}_{held}_bare")),
        number(row.get(f"{kind}_{held}_ratio"), 2)))]
        for kind, name in (("http", "HTTP/1.1"), ("https", "HTTPS"), ("grpc", "gRPC"), ("grpcs", "gRPC over TLS"))]
    return (table(["calls per second", "1 in flight", "bare", "ratio", "256 in flight", "bare", "ratio"], lines) +
            "\nThe bare clients send the same payload and headers of the same size, and store nothing; the gRPC one sends hundreds of calls in one write.\n"
            f"\nA call that waits for its answer takes {number(row.get('held_kib'), 1)} KiB with its task (aim: at most "
            f"16 KiB). From the call that enqueues to the request at the target it takes "
            f"{number(row.get('start_p50_ms'), 2)} ms, 99 of 100 times at most {number(row.get('start_p99_ms'), 2)} ms "
            f"(aim: half of them within 1.5 ms). {number(row.get('scheduled'))} schedules that are due in the same second "
            f"have all called their target {number(row.get('scheduled_s'), 1)} s after it began (aim: 5 s). A step of an "
            f"agent takes {number(row.get('agent_ms'), 2)} ms, with what the stand-in for the model takes (aim: 3 ms).\n\n" +
            when(results, "services"))


def access(results):
    row = figures(results, "access")
    if not row:
        return when(results, "access")
    kinds = (("guarded", "tokens, a namespace and the audit trail", "0.95"),
             ("many", "10,000 tokens and 1,000 namespaces, against a handful", "1"),
             ("tls", "TLS on kept connections", "0.85"),
             ("sealed", "payloads of 1 KiB encrypted", "0.90"),
             ("policies", "row-level security on PostgreSQL", "0.95"))
    lines = [[name, *(f"{number(row.get(f'{kind}_{step}_ratio'), 2)} ({number(row.get(f'{kind}_{step}_cpu_ratio'), 2)})"
                      for step in ("enqueue", "claim", "life")), aim] for kind, name, aim in kinds]
    return (table(["rate with, of the rate without", "enqueue, 32 in flight", "claim and complete",
                   "whole life", "aim"], lines) +
            "\nIn brackets: processor time without it, as a part of that with it (of the server, and of its sessions in the "
            "database). On a busy machine rates say little; these are within a tenth.\n"
            f"\nBeside a namespace with {number(row.get('neighbour_backlog'))} waiting tasks, 99 of 100 "
            f"claims of an idle one are answered within {number(row.get('neighbour_waiting_p99_us') / 1000, 2)} ms; "
            f"alone it was {number(row.get('neighbour_alone_p99_us') / 1000, 2)} ms (ratio "
            f"{number(row.get('neighbour_waiting_ratio'), 2)}, aim: 2; of the medians "
            f"{number(row.get('neighbour_median_ratio'), 2)}), and while two clients of the other "
            f"claim and report as fast as they can {number(row.get('neighbour_working_p99_us') / 1000, 2)} ms. An "
            f"idle server with TLS, tokens, namespaces, audit trail and encryption has "
            f"{number(row.get('idle_mib'), 1)} MiB (aim: below 24), after 2,000 tasks "
            f"{number(row.get('idle_after_work_mib'), 1)} MiB.\n\n" + when(results, "access"))


def memory(results):
    row, http = figures(results, "memory"), figures(results, "perdura")
    if not row:
        return when(results, "memory")
    rows = [["server, idle", f"{number(row.get('idle_mib'), 1)} MiB", "below 20 MiB"],
            [f"server, {number(row.get('waiting'))} tasks waiting",
             f"{number(row.get('waiting_mib'), 1)} MiB", "below 100 MiB"],
            ["server and C worker together in a drain, shared libraries counted once",
             f"{number(http.get('drain_share_mib'), 1)} MiB", "below 30 MiB"],
            ["a long-poll that waits, with its connection",
             f"{number(row.get('parked_kib'), 1)} KiB", "below 10 KiB"],
            ["the same with a worker of its own", f"{number(row.get('parked_worker_kib'), 1)} KiB",
             ""]]
    return table(["resident memory", "measured", "aim"], rows)


def growth(results):
    row = figures(results, "growth")
    if not row:
        return when(results, "growth") + "\n`make bench-growth` measures it.\n"
    rows = [[name, number(row[key]), number(row[key + "_ratio"], 2), number(row[key + "_mib"])]
            for key, name in (("waiting_10k", "10,000 waiting"),
                              ("waiting_1m", f"{number(row['waiting'])} waiting"),
                              ("ended_5m", f"10,000 waiting, {number(row['ended'])} ended"))]
    return (table(["in the store", "claim and complete /s", "ratio", "file MiB"], rows) + "\n" +
            when(results, "growth"))


def unserved(results):
    row = figures(results, "unserved")
    if not row:
        return when(results, "unserved") + "\n`make bench-unserved` measures it.\n"
    names = (("batch_100", "claim and complete /s, batches of 100", 0),
             ("one_by_one", "claim and complete /s, one by one", 0),
             ("worker", "worker with defaults /s", 0),
             ("start", "enqueue → handler entered, p50 ms", 2))
    costs = (("batch_100_cost", "batches of 100", 1), ("one_by_one_cost", "one by one", 1),
             ("worker_cost", "worker with defaults", 1))
    rows = []
    by_category = row.get("category", {})
    for beside, kind, store, cost in (
            (row, "sqlite", "SQLite", "processor µs per task"),
            (row, "postgres", "PostgreSQL", "pages looked at per task"),
            (by_category, "sqlite", "SQLite, categories", "processor µs per task"),
            (by_category, "postgres", "PostgreSQL, categories", "pages looked at per task")):
        if kind not in beside:
            continue
        lines = [*names, *((key, f"{cost}, {name}", digits) for key, name, digits in costs)]
        rows += [[store, name, number(beside[kind][key + "_alone"], digits),
                  number(beside[kind][key + "_beside"], digits), number(beside[kind][key + "_ratio"], 2)]
                 for key, name, digits in lines]
    backlog = number(row["sqlite"]["backlog"])
    return (table(["store", "what", "alone", f"beside {backlog}", "ratio"], rows) + "\n" +
            when(results, "unserved"))


def instructions(results):
    row = figures(results, "instructions")
    if not row or not row.get("per_task"):
        return when(results, "instructions")
    return (table(["", "enqueue", "claim", "complete"],
                  [["instructions per task"] + [number(row["per_task"][step]) for step in
                                                ("enqueue", "claim", "complete")]]) +
            f"\nCounted by callgrind through the library in batches of 100 ({row['compiler']}, "
            f"SQLite {row['sqlite']}). A test fails when one of them grows by more than 20 % over "
            "[the baseline](../bench/instructions.json).\n")


def calendar(results):
    row = figures(results, "calendar")
    if not row:
        return when(results, "calendar")
    lines = []
    for nasty, name in ((False, "everyday"), (True, "nasty")):
        some = [line for line in row["expressions"] if line["nasty"] == nasty]
        slow = max(some, key=lambda line: line["max_ns"])
        counts = [line["instructions"] for line in some if line["instructions"]]
        lines.append([f"{len(some)} {name} expressions",
                      number(max(line["median_ns"] for line in some)), number(slow["max_ns"]),
                      number(max(line["max_middle_ns"] for line in some)),
                      number(max(counts) if counts else None),
                      f"`{slow['cron']}`, {slow['dst']}, {slow['zone']}"])
    return (table(["ns", "slowest median", "slowest place", "the same, middle of the rounds",
                   "instructions", "slowest"], lines) +
            "\nFrom 400 places of 2000 to 2100 each, nine rounds of all of them in turns; a place "
            "counts with its fastest round. Nasty are days that come every 40 years and times that "
            "clocks always jump over, found by a search over expressions and all zones (`cron_next "
            "--search`). The aims are 1 µs for the median and 20 µs for the slowest.\n\n" +
            when(results, "calendar"))


def dashboard(results):
    row = figures(results, "dashboard")
    if not row:
        return when(results, "dashboard")
    paint, idle, watched = row.get("paint", {}), row["idle"], row["watched"]
    lines = [["first paint", number(paint.get("first_ms")), "–"],
             ["figures painted: of use", number(paint.get("useful_ms")),
              number(paint.get("useful_max_ms"))],
             ["charts painted", number(paint.get("charts_ms")), "–"]]
    text = table(["ms from the start of a cold load", "median", "slowest"], lines)
    if paint:
        text += (f"\nThe home page in Chromium, {paint['loads']} loads with an empty cache, a server with "
                 f"{number(paint['tasks'])} tasks. {number(paint['files'])} files, "
                 f"{number(paint['bytes'] / 1000)} kB as sent; the aim is below 100 kB.\n")
    text += "\n" + table([f"whole life /s, {watched['open']} home pages open", "without", "with", "ratio"],
                         [["batches of 100 over HTTP", number(watched["without"]),
                           number(watched["with"]), f"**{number(watched['ratio'], 2)}**"]])
    return (text + f"\nMedians of {watched['pairs']} pairs of turns, one with and one without; the clients "
            "that hold the pages open run on the same machine, and what they take is in the ratio. "
            f"Without work {watched['open']} home pages take {number(idle['idle_cpu_percent'], 1)} % "
            f"of a core of the server and {number(idle['open_kib'], 1)} KiB each.\n\n" +
            when(results, "dashboard"))


PAGE = """# Benchmarks

Written by `make bench` from [reports/bench.json](../reports/bench.json); do not edit. It measures
the bare limit, Perdura and its peers one after the other, several turns of all of them, on the same
disk of the same machine, and keeps the medians. Read ratios and factors, not percents: another
machine has other numbers, and a shared one is never quite idle.

{when}
## Beside its peers

Jobs do nothing and carry 107 bytes. Every peer is set up as durable as the column says, with the
versions of Debian and npm, and runs its worker in a process of its own.

{comparison}
- **one by one**: one client, which waits for each job to be stored. **32 in flight**: 32 of them.
- **best batch**: the bulk call with the best of several sizes (in brackets).
- **drain**: a full queue, one worker process, no-op jobs, until all are completed and stored: with
  the settings as shipped, and with the fastest that were found.
- **start**: from the call that enqueues to the first line of the handler, at 100 jobs per second.
- **MiB**: resident memory in the drain.

Perdura keeps more than they do: events, executions and results of every task, for 30 days.
graphile-worker deletes a job that is done, beanstalkd too.

## Against bare SQLite

[bench/raw_sqlite.c](../bench/raw_sqlite.c) writes the rows of a whole audited life in the plain
layout (a wide task row, three events, an execution, a result), each batch of each step durable. It
decides, parses and guards nothing: what a straightforward program would reach at best. `perdura
bench` does the same through the queue: enqueue, claim, start and complete, with leases, guards and
counts; the aim is 1.0 at batches of 100 and more. Over HTTP the same with four connections and JSON
both ways; the aim is 0.5.

{against_sqlite}
## Latency

{latency}
## Memory

{memory}
## Access, TLS and encryption

Servers with and without, in turns of which every second has the other order; the ratio is the median over
five turns. Claims and whole lives are in batches of 100 over four connections.

{access}
## Calls of services

Tasks that are calls of a target that does nothing, beside a bare client (libcurl, nghttp2) of the same
target in the same turn; the ratio is the median over three turns, the aim is 0.6. Each of our calls is a task that is
claimed, started and completed on disk, so with one call in flight the disk is what is measured.

{services}
## Growth

The rate of claim and complete, in batches of 100, as the store grows; the aim is 0.9 of the small
store.

{growth}
### Beside tasks that no worker serves

Tasks of another type wait in the same queue, before all that come. The ratio is the median over five
turns, each of which measures both stores. Rates and times vary with whatever else the machine does; the
cost per task hardly does, but for single claims on PostgreSQL: there it varies from turn to turn, with
the dead rows that vacuum has not removed yet. The aim is a cost of 1.2 at most: an index of a million
has one level more. On SQLite a task that finds an idle worker is handed over before it is stored; beside
tasks that are ready, however few, it goes through the line, and starts a little later.

{unserved}
## On PostgreSQL

{postgres}
## Instructions

{instructions}
## The next instant of a cron expression

{calendar}
## Dashboard

{dashboard}
## What is not measured

Other file systems and disks than the one named, machines with many cores, payloads other than small
ones, handlers that do work, networks: clients and servers talk over loopback. Peers with other
clients than their own. Tails beyond p99.

## How to run it

```sh
make bench                        # half an hour or so; installs the peers from Debian and npm
make bench ARGS="--only raw,own"  # parts; --turns N, --quick, --report-only
make bench ARGS="--only calendar" # seconds
make bench ARGS="--only dashboard" # two minutes; wants Chromium and Node.js for the page
make bench ARGS="--only pg"       # what is above under PostgreSQL, but growth and churn
make bench-growth                 # SQLite and PostgreSQL: half an hour, and 12 GB for a while
make bench-unserved               # SQLite and PostgreSQL: ten minutes, and 2 GB for a while
make bench-churn CHURN_MINUTES=30 # on PostgreSQL
```
"""


def page(results):
    return PAGE.format(when=when(results, "perdura"), comparison=comparison(results),
                       against_sqlite=against_sqlite(results), latency=latency(results),
                       memory=memory(results), access=access(results), services=services(results),
                       growth=growth(results),
                       unserved=unserved(results),
                       postgres=report_pg.section(results), instructions=instructions(results),
                       calendar=calendar(results), dashboard=dashboard(results))
