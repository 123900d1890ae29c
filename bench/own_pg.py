"""Measures Perdura on PostgreSQL for bench/run.py, beside the bare program (raw_pg.c) and the peers
that live on PostgreSQL too. One server of our own serves all of it, with its settings as shipped,
on the disk that is measured; every measurement has a fresh database there, dropped at its end,
which also makes a checkpoint before the next one begins. The bare program is measured before and after
Perdura's own steps, and ratios are taken within a turn. Not run by itself: see run.py."""
import contextlib
import json
import os
import re
import subprocess

import own
import peers

PEERS = ("graphile-worker", "pg-boss")
TASKS = 60000
CONNECTIONS, BATCH = 4, 1000  # of the bare program, and of Perdura's enqueue
# What a user can turn: handlers at once and tasks claimed ahead of each; consumers with loops of
# their own and tasks per claim.
WORKERS = ((2, 128), (4, 128), (4, 256), (8, 128))
CONSUMERS = ((1, 1000), (2, 1000), (4, 1000), (3, 500))
NODES = 3
SLACK = 4096  # tasks more than are run where several take from one queue: none must go hungry
QUERY_SECONDS_MAX = 120


class Database:
    """A fresh database on the server, dropped at the end."""
    count = 0

    def __init__(self, server):
        self.server = server
        Database.count += 1
        self.name = f"bench_{Database.count}"
        self.url = re.sub(r"/postgres$", f"/{self.name}?options=-csearch_path%3Dpublic", server.url)

    def __enter__(self):
        query(self.server.url, f"CREATE DATABASE {self.name}")
        return self

    def __exit__(self, *_):
        with contextlib.suppress(own.BenchError):  # it goes away with the server at the latest
            query(self.server.url, f"DROP DATABASE {self.name} WITH (FORCE)")


def query(url, text):
    """The rows psql prints, as lists of text."""
    done = subprocess.run([os.path.join(peers.postgres_bin(), "psql"), "-X", "-q", "-A", "-t", "-F",
                           "\t", "-v", "ON_ERROR_STOP=1", "-c", text, url], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=QUERY_SECONDS_MAX, check=False)
    if done.returncode != 0:
        raise own.BenchError(f"psql: {done.stderr.strip()}")
    return [line.split("\t") for line in done.stdout.splitlines()]


def completed_tasks(url):
    """As the counts have it, which /v1/stats shows."""
    rows = query(url, "SELECT coalesce(sum(tasks), 0) FROM lane_counts WHERE status = 'completed'")
    return int(rows[0][0])


def measure_raw(build, database, scale):
    done = subprocess.run([os.path.join(build, "raw_pg"), database.url, str(int(TASKS * scale)),
                           str(CONNECTIONS), str(BATCH)], stdout=subprocess.PIPE, text=True,
                          timeout=own.STEP_SECONDS_MAX, check=False)
    found = re.search(r"enqueue\s+([\d.]+)/s, claim and complete\s+([\d.]+)/s, "
                      r"whole life\s+([\d.]+)/s", done.stdout)
    if done.returncode != 0 or not found:
        raise own.BenchError("raw_pg failed")
    return dict(zip(("enqueue", "drain", "life"), map(float, found.groups())))


# ---- one node ----


def enqueue(build, url, tasks):
    return own.lib(build, "enqueue", url, tasks=tasks, batch=BATCH,
                   concurrency=CONNECTIONS)["per_second"]


def life(enqueued, drained):
    """The rate of both steps one after the other, as the bare program has it."""
    return 1 / (1 / enqueued + 1 / drained)


def live_once(build, server, scale, mode, **options):
    """Tasks in, then out, both by a process that uses the library: enqueue, drain per second."""
    tasks = int(TASKS * scale)
    with Database(server) as database:
        enqueued = enqueue(build, database.url, tasks)
        drained = own.lib(build, mode, database.url, tasks=tasks, filled=1, **options)
        completed = completed_tasks(database.url)
    if completed != tasks:
        raise own.BenchError(f"{tasks} tasks were drained and {completed} are completed")
    return enqueued, drained["per_second"]


def measure_lives(build, server, scale, say):
    ways = {"the defaults": ("drain", {})}
    for concurrency, batch in WORKERS:
        ways[f"worker, concurrency {concurrency}, batch {batch}"] = (
            "drain", {"concurrency": concurrency, "batch": batch})
    for count, batch in CONSUMERS:
        ways[f"{count} consumer{'s' if count > 1 else ''}, claims of {batch}"] = (
            "consume", {"concurrency": count, "batch": batch})
    enqueues, row = [], {"drains": {}, "lives": {}}
    for name, (mode, options) in ways.items():
        say(f"PostgreSQL, perdura: enqueue, then drain with {name}")
        enqueued, drained = live_once(build, server, scale, mode, **options)
        enqueues.append(enqueued)
        row["drains"][name] = drained
    row["enqueue"] = sorted(enqueues)[len(enqueues) // 2]
    for name, drained in row["drains"].items():
        row["lives"][name] = life(row["enqueue"], drained)
    return row


def add_ratios(row, raw):
    row.update({f"raw_{what}": value for what, value in raw.items()})
    row["enqueue_ratio"] = row["enqueue"] / raw["enqueue"]
    row["drain_ratios"] = {name: rate / raw["drain"] for name, rate in row["drains"].items()}
    row["life_ratios"] = {name: rate / raw["life"] for name, rate in row["lives"].items()}


def measure_http(build, server, scale, say):
    """Through a `perdura serve`: one client and 32 clients, each of which waits for its task to be
    stored; then a worker with the defaults in a process of its own."""
    say("PostgreSQL, perdura: enqueue over HTTP")
    with Database(server) as database, own.Server(build, store=database.url) as node:
        node.http("enqueue", tasks=200)
        one = node.http("enqueue", tasks=int(3000 * scale))
        many = node.http("enqueue", 32, tasks=int(30000 * scale))
    say("PostgreSQL, perdura: drain over HTTP, a C worker with the defaults")
    tasks = int(TASKS * scale)
    with Database(server) as database, own.Server(build, store=database.url) as node:
        node.http("enqueue", CONNECTIONS, BATCH, tasks)
        drained = own.lib(build, "drain", node.url, tasks=tasks, filled=1)
    return {"http_one_by_one": one["per_second"], "http_in_flight_32": many["per_second"],
            "http_in_flight_32_p50_ms": many["p50_us"] / 1000,
            "http_in_flight_32_p99_ms": many["p99_us"] / 1000,
            "http_drain_default": drained["per_second"]}


# ---- several nodes ----


def run_together(build, count, mode, url, tasks, **options):
    """Several processes at once, each with its part of the tasks; the rate of all of them from the
    first one's begin to the last one's end."""
    arguments = [item for key, value in options.items() for item in (f"--{key}", str(value))]
    command = [os.path.join(build, "lib_load"), mode, url, "--tasks", str(tasks // count),
               *arguments]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True) for _ in range(count)]
    try:
        printed = [process.communicate(timeout=own.STEP_SECONDS_MAX) for process in processes]
    finally:
        for process in processes:
            own.stop_process(process)
    for process, (_, errors) in zip(processes, printed):
        if process.returncode != 0:
            raise own.BenchError(f"{' '.join(command)}: {errors.strip() or process.returncode}")
    rows = [json.loads(out.splitlines()[-1]) for out, _ in printed]
    span_ns = max(row["ended_ns"] for row in rows) - min(row["began_ns"] for row in rows)
    return tasks // count * count * 1e9 / span_ns


def measure_nodes(build, server, scale, say):
    tasks = int(TASKS * scale)
    row = {}
    for count, name in ((1, "one"), (NODES, "three")):
        say(f"PostgreSQL, perdura: {name} node{'s' if count > 1 else ''}, enqueue and drain")
        with Database(server) as database:
            own.lib(build, "enqueue", database.url, tasks=SLACK, batch=1024)
            enqueued = run_together(build, count, "enqueue", database.url, tasks, batch=BATCH,
                                    concurrency=CONNECTIONS)
            drained = run_together(build, count, "drain", database.url, tasks, filled=1)
        row.update({f"nodes_{name}_enqueue": enqueued, f"nodes_{name}_drain": drained,
                    f"nodes_{name}_life": life(enqueued, drained)})
    for what in ("enqueue", "drain", "life"):
        row[f"nodes_{what}_ratio"] = row[f"nodes_three_{what}"] / row[f"nodes_one_{what}"]
    return row


def measure_latency(build, server, scale, say):
    """Enqueue to handler entered at 100/s: with one node, and enqueued through another node than
    the handler's; over HTTP and with programs that are nodes themselves."""
    tasks = max(100, int(1000 * scale))
    row = {}

    def keep(name, result):
        row.update({f"start_{name}_p50_ms": result["p50_ms"],
                    f"start_{name}_p99_ms": result["p99_ms"]})

    say("PostgreSQL, perdura: start latency at 100/s, one node")
    with Database(server) as database:
        keep("library_same", own.lib(build, "latency", database.url, tasks=tasks, rate=100))
    with Database(server) as database, own.Server(build, store=database.url) as node:
        keep("http_same", own.listen_and_offer(build, node.url, node.url, tasks))
    say("PostgreSQL, perdura: start latency at 100/s, across nodes")
    with Database(server) as database:
        keep("library_across", own.listen_and_offer(build, database.url, database.url, tasks))
    with Database(server) as database, own.Server(build, store=database.url) as node, \
            own.Server(build, store=database.url) as other:
        keep("http_across", own.listen_and_offer(build, node.url, other.url, tasks))
    return row


# ---- beside the peers ----


def add_peers(row, found):
    """Their figures of the same turn, and how many times as fast Perdura is."""
    row["peers"] = {name: found[name] for name in PEERS if name in found}
    for name, peer in row["peers"].items():
        row[f"in_flight_factor_{name}"] = row["http_in_flight_32"] / peer["in_flight_32"]
        row[f"drain_default_factor_{name}"] = row["drains"]["the defaults"] / peer["drain_default"]


def measure(build, say, quick=False, found=None):
    """One turn. found: what peers.measure() had for this turn; measured here where it is not."""
    scale = 0.1 if quick else 1
    with peers.Postgres(build) as server:
        with Database(server) as database:
            say("PostgreSQL, bare program")
            before = measure_raw(build, database, scale)
        row = measure_lives(build, server, scale, say)
        with Database(server) as database:
            say("PostgreSQL, bare program again")
            after = measure_raw(build, database, scale)
        add_ratios(row, {what: (before[what] + after[what]) / 2 for what in before})
        for step in (measure_http, measure_nodes, measure_latency):
            row.update(step(build, server, scale, say))
        row["server"] = server.describe()
    missing = [name for name in PEERS if name not in (found or {})]
    if missing:
        found = {**(found or {}), **peers.measure(missing, build, say, quick)}
    add_peers(row, found)
    return row
