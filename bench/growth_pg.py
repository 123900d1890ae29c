"""Does the rate of claim and complete stay flat on PostgreSQL as the store grows? The same as
growth.py has it for SQLite: three databases of one server (10,000 tasks waiting, 1,000,000
waiting, 10,000 waiting beside 5,000,000 that have ended); in each turn 20,000 tasks are added to
every one in turn and as many are claimed and completed, in batches of 100, by one consumer. Tasks
that have ended were enqueued, claimed and completed like any others, in batches of 1,000, so that
tables, indexes and dead rows are what service leaves behind. Autovacuum is on, as shipped; it is given time to
finish before the turns begin. Not run by itself: `make bench-growth`."""
import contextlib
import statistics
import time

import own
import own_pg
import peers

SMALL = 10000
WAITING = 1000000
ENDED = 5000000
CHUNK = 250000  # tasks between two words of progress
TURN_TASKS = 20000
TURNS = 7
SETTLE_SECONDS_MAX = 600
QUIET_SECONDS = 3


def end_tasks(build, url, tasks):
    own.lib(build, "enqueue", url, tasks=tasks, batch=1000, concurrency=4)
    own.lib(build, "consume", url, tasks=tasks, batch=1000, concurrency=4, filled=1)


def fill(build, url, name, waiting, ended, say):
    began = time.monotonic()
    for done in range(0, ended, CHUNK):
        count = min(CHUNK, ended - done)
        end_tasks(build, url, count)
        rate = (done + count) / (time.monotonic() - began)
        say(f"growth on PostgreSQL: {done + count:,} of {ended:,} tasks have ended, {rate:,.0f}/s")
    own.lib(build, "enqueue", url, tasks=waiting, batch=min(1000, waiting), concurrency=4)
    say(f"growth on PostgreSQL: {waiting:,} tasks wait in {name}")


def settle(url, say):
    """Waits until autovacuum has nothing to do any more, or takes too long."""
    say("growth on PostgreSQL: autovacuum finishes")
    own_pg.query(url, "CHECKPOINT")
    quiet = 0
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    while quiet < QUIET_SECONDS and time.monotonic() < deadline:
        busy = own_pg.query(url, "SELECT count(*) FROM pg_stat_activity"
                                 " WHERE backend_type = 'autovacuum worker'")
        quiet = 0 if int(busy[0][0]) else quiet + 1
        time.sleep(1)


def size_mib(url):
    rows = own_pg.query(url, "SELECT pg_database_size(current_database())")
    return round(int(rows[0][0]) / 2**20)


def measure(build, say, quick=False):
    scale = 50 if quick else 1
    plans = {"waiting_10k": (SMALL, 0), "waiting_1m": (WAITING // scale, 0),
             "ended_5m": (SMALL, ENDED // scale)}
    rates = {name: [] for name in plans}
    row = {"waiting": WAITING // scale, "ended": ENDED // scale, "turns": rates}
    with peers.Postgres(build) as server, contextlib.ExitStack() as stack:
        urls = {name: stack.enter_context(own_pg.Database(server)).url for name in plans}
        for name, (waiting, ended) in plans.items():
            fill(build, urls[name], name, waiting, ended, say)
            row[name + "_mib"] = size_mib(urls[name])
        if not quick:
            settle(server.url, say)
        for turn in range(TURNS + 1):  # the first fills caches and does not count
            for name, url in urls.items():
                own.lib(build, "enqueue", url, tasks=TURN_TASKS, batch=1000)
                rate = own.lib(build, "consume", url, tasks=TURN_TASKS, batch=100,
                               filled=1)["per_second"]
                say(f"growth on PostgreSQL: turn {turn} of {TURNS}, {name}: {rate:,.0f}/s")
                if turn:
                    rates[name].append(rate)
        row["server"] = server.describe()
    for name in plans:
        row[name] = statistics.median(rates[name])
        row[name + "_ratio"] = row[name] / row["waiting_10k"]
    return row
