"""Does PostgreSQL keep up with tasks that come and go for a long time? One node enqueues at a
steady rate, another one runs a worker with the defaults, autovacuum is as shipped. Once a minute the sizes
of tables and indexes, dead rows and the tasks completed are looked at; before and after, a drain of
20,000 tasks shows what the store can do at its fastest. There are two kinds of tables: those that
hold only what waits or runs (they must stay small), and those that keep what has ended (they grow
by so many bytes per task until retention removes it, 30 days later). Not run by itself: `make
bench-churn CHURN_MINUTES=30`."""
import statistics
import threading
import time

import own
import own_pg
import peers

RATE = 2000
OFFER_BATCH = 20  # tasks per call of the producer: 100 calls per second
BURST_TASKS = 20000
BURSTS = 3
SAMPLE_SECONDS = 60
MINUTES_MAX = 24 * 60
LINES = ("ready_rows", "parked_rows", "due_rows", "held_rows", "lane_counts", "key_counts",
         "writer_marks", "workers", "leadership")
LOOK = ("SELECT relname, pg_table_size(relid), pg_indexes_size(relid), n_dead_tup, autovacuum_count"
        " FROM pg_stat_user_tables")


def look(url):
    """Sizes, dead rows and completed tasks at this moment."""
    sample = {"at": time.monotonic(), "completed": own_pg.completed_tasks(url)}
    for kind in ("lines", "history"):
        sample[kind] = {"table_mib": 0, "index_mib": 0, "dead": 0, "vacuums": 0}
    for name, table, index, dead, vacuums in own_pg.query(url, LOOK):
        kind = sample["lines" if name in LINES else "history"]
        kind["table_mib"] += int(table) / 2**20
        kind["index_mib"] += int(index) / 2**20
        kind["dead"] += int(dead)
        kind["vacuums"] += int(vacuums)
    return sample


def burst(build, url):
    """Tasks per second of a worker with the defaults, the median of a few."""
    rates = [own.lib(build, "drain", url, tasks=BURST_TASKS)["per_second"] for _ in range(BURSTS)]
    return statistics.median(rates)


def watch(url, samples, over, every_seconds, say):
    began = time.monotonic()
    while not over.wait(every_seconds):
        samples.append(look(url))
        now, before = samples[-1], samples[-2]
        now["per_second"] = ((now["completed"] - before["completed"]) /
                             (now["at"] - before["at"]))
        lines = now["lines"]
        say(f"churn on PostgreSQL: {(now['at'] - began) / 60:.1f} minutes, "
            f"{now['per_second']:,.0f}/s, lines {lines['table_mib'] + lines['index_mib']:.1f} MiB, "
            f"{lines['dead']:,} dead rows in them and {now['history']['dead']:,} in the history")


def run_steadily(build, url, seconds, rate, samples, say):
    """What the worker's process printed: latencies of the first and the last tenth."""
    over, failed = threading.Event(), []
    every_seconds = min(SAMPLE_SECONDS, seconds / 5)

    def watch_safely():
        try:
            watch(url, samples, over, every_seconds, say)
        except own.BenchError as error:
            failed.append(error)

    watcher = threading.Thread(target=watch_safely)
    watcher.start()
    try:
        printed = own.listen_and_offer(build, url, url, int(rate * seconds), rate, OFFER_BATCH,
                                       seconds_max=4 * seconds + own.STEP_SECONDS_MAX)
    finally:
        over.set()
        watcher.join()
    if failed or len(samples) < 3:
        raise failed[0] if failed else own.BenchError("the churn was over before it was looked at")
    return printed


def measure(build, say, minutes=30, rate=RATE, quick=False):
    seconds = 20 if quick else minutes * 60
    with peers.Postgres(build) as server, own_pg.Database(server) as database:
        url = database.url
        say("churn on PostgreSQL: how fast it is at the start")
        start_burst = burst(build, url)
        samples = [look(url)]
        printed = run_steadily(build, url, seconds, rate, samples, say)
        say("churn on PostgreSQL: how fast it is at the end")
        end_burst = burst(build, url)
        name = server.describe()
    first, steady = samples[0], samples[1:]
    ended = steady[-1]["completed"] - first["completed"]
    grown = sum(steady[-1]["history"][part] - first["history"][part]
                for part in ("table_mib", "index_mib"))
    began = first["at"]
    for sample in samples:
        sample["at"] = round(sample["at"] - began, 1)
    return {"minutes": seconds / 60, "rate": rate, "server": name, "samples": samples,
            "start": steady[0], "end": steady[-1],
            "most_dead_lines": max(sample["lines"]["dead"] for sample in steady),
            "most_dead_history": max(sample["history"]["dead"] for sample in steady),
            "burst_start": start_burst, "burst_end": end_burst,
            "burst_ratio": end_burst / start_burst, "ended": ended,
            "history_bytes_per_task": grown * 2**20 / ended,
            **{key: printed[key] for key in ("first_p50_ms", "first_p99_ms", "last_p50_ms",
                                             "last_p99_ms")}}
