"""Do claims cost more beside tasks that no worker serves? Two stores of one kind, measured in turns:
one without a backlog, one with 1,000,000 tasks that wait in the same queue, before all that come: of
another type, and then the same again with workers by category and a backlog of another category. Each turn measures on both: claim and complete in batches of 100 and one by one, a worker with
the library's defaults, and the time from an enqueue to the handler. The ratios compare turn by turn.
Beside the rates, which other load on the machine disturbs, is what it does not: processor time of the
process on SQLite, which does everything there, and pages the database looked at on PostgreSQL. Not run
by itself: `make bench-unserved`, for SQLite and PostgreSQL."""
import contextlib
import statistics

import growth_pg
import own
import own_pg
import peers

BACKLOG = 1000000
CHUNK = 250000  # tasks between two words of progress
TURNS = 5
SERVED = "served"
# name: how lib_load measures it, and which figure is kept
STEPS = {"batch_100": ("consume", {"tasks": 10000, "batch": 100}, "per_second"),
         "one_by_one": ("consume", {"tasks": 1000, "batch": 1}, "per_second"),
         "worker": ("drain", {"tasks": 10000}, "per_second"),
         "start": ("latency", {"tasks": 300, "rate": 100}, "p50_ms")}


# What the backlog has, and what is measured has. Both categories are in every new store.
KINDS = {"type": ({"type": "unserved"}, {"type": SERVED}),
         "category": ({"type": SERVED, "category": "reports"},
                      {"type": SERVED, "category": "general"})}


def fill(build, where, tasks, kind, say):
    for done in range(0, tasks, CHUNK):
        own.lib(build, "enqueue", where, tasks=min(CHUNK, tasks - done), batch=1000,
                concurrency=4, **KINDS[kind][0])
        say(f"{min(done + CHUNK, tasks):,} tasks wait that no worker serves")


class File:
    """A store in a file: the process that measures does everything, its processor time is the cost."""

    def __init__(self, path):
        self.path = path

    @contextlib.contextmanager
    def open(self):
        yield self.path

    def cost(self, measured, _tasks):
        return measured.get("cpu_us_per_task")


class Node:
    """A database served by a node: pages the database looked at are the cost. A node's connections say
    how many when they end, so each step has a node of its own, and what one costs by itself is known."""

    def __init__(self, build, database):
        self.build, self.database = build, database
        self.before = self.pages()
        with self.open():
            pass
        self.idle, self.before = self.pages() - self.before, self.pages()

    def pages(self):
        return int(own_pg.query(self.database.server.url,
                                "SELECT blks_hit + blks_read FROM pg_stat_database "
                                f"WHERE datname = '{self.database.name}'")[0][0])

    @contextlib.contextmanager
    def open(self):
        with own.Server(self.build, store=self.database.url) as server:
            yield server.url

    def cost(self, _measured, tasks):
        before, self.before = self.before, self.pages()
        return (self.before - before - self.idle) / tasks


def measure_step(build, store, name, kind):
    """The figure, and what a task cost."""
    mode, options, figure = STEPS[name]
    tasks = options["tasks"]
    chosen = KINDS[kind][1]
    with store.open() as where:
        if mode == "consume":
            own.lib(build, "enqueue", where, tasks=tasks, batch=1000, **chosen)
            options = {**options, "filled": 1}
        options = {**options, **chosen}
        if mode == "latency":
            del options["type"]
        measured = own.lib(build, mode, where, **options)
    return measured[figure], store.cost(measured, tasks)


def compare(build, stores, backlog, measured, say):
    """stores: where to measure {alone, beside}."""
    turns = {f"{name}{part}": {where: [] for where in stores}
             for name in STEPS for part in ("", "_cost")}
    for turn in range(TURNS + 1):  # the first fills caches and does not count
        for name in STEPS:
            for where in stores if turn % 2 else reversed(stores):
                value, cost = measure_step(build, stores[where], name, measured)
                say(f"turn {turn} of {TURNS}, {name}, {where}: {value:,.2f}, "
                    f"a task costs {cost or 0:,.2f}")
                if turn:
                    turns[name][where].append(value)
                    turns[name + "_cost"][where].append(cost)
    row = {"backlog": backlog, "turns": turns}
    for name, values in turns.items():
        if None in values["alone"]:
            continue
        row.update({f"{name}_{where}": statistics.median(values[where]) for where in stores})
        row[name + "_ratio"] = statistics.median(
            beside / alone for beside, alone in zip(values["beside"], values["alone"]))
    return row


def measure_sqlite(build, kind, say, quick=False):
    backlog = BACKLOG // (50 if quick else 1)

    def tell(text):
        say(f"unserved {kind}, SQLite: {text}")

    with own.store_file(build) as alone, own.store_file(build) as beside:
        fill(build, beside, backlog, kind, tell)
        return compare(build, {"alone": File(alone), "beside": File(beside)}, backlog, kind, tell)


def measure_postgres(build, kind, say, quick=False):
    backlog = BACKLOG // (50 if quick else 1)

    def tell(text):
        say(f"unserved {kind}, PostgreSQL: {text}")

    with peers.Postgres(build) as server, contextlib.ExitStack() as stack:
        databases = {name: stack.enter_context(own_pg.Database(server))
                     for name in ("alone", "beside")}
        with own.Server(build, store=databases["beside"].url) as node:
            fill(build, node.url, backlog, kind, tell)
        if not quick:
            growth_pg.settle(server.url, tell)
        stores = {name: Node(build, database) for name, database in databases.items()}
        return {**compare(build, stores, backlog, kind, tell), "server": server.describe()}


def measure(build, say, quick=False):
    measured = {kind: {"sqlite": measure_sqlite(build, kind, say, quick),
                       "postgres": measure_postgres(build, kind, say, quick)} for kind in KINDS}
    return {**measured["type"], "category": measured["category"]}
