"""What access, TLS and encryption cost, for bench/run.py: servers of one kind with and without them, in
turns on one disk, each turn in the other order; ratios are taken turn by turn and their median is kept.

- guarded: tokens, a namespace of its own and the audit trail, against an open server with none of it
- many: the same with 10,000 tokens and 1,000 namespaces, against a handful
- tls: kept connections with TLS, against clear text
- sealed: payloads of 1 KiB encrypted, against the same in the clear
- policies: PostgreSQL with row-level security for a role, against a store without it
- neighbour: how long an idle namespace waits for its claims beside one with a million waiting tasks
- memory of an idle server with all of it

Not run by itself: `make bench ARGS="--only access"`."""
import http.client
import json
import os
import ssl
import statistics
import subprocess
import time

import own
import own_pg
import peers

TURNS = 5
TOKENS, NAMESPACES = 10000, 1000
BACKLOG = 1000000
CLAIMS = 500  # of the idle namespace
NEIGHBOUR_ROUNDS = 10
SEALED_BYTES = 1024
ROLE = "bench_sql_role"
TEAM = "team"


class Guarded(own.Server):
    """A server that wants tokens; what it is asked comes with one of a worker in a namespace."""

    def __init__(self, build, settings="", store="", tls=False, namespace=TEAM):
        super().__init__(build, settings, store, tls)
        self.namespace = namespace

    def __enter__(self):
        super().__enter__()
        self.connection = http.client.HTTPSConnection(
            self.address, timeout=60, context=ssl.create_default_context(cafile=self.ca[1])) \
            if self.tls else http.client.HTTPConnection(self.address, timeout=60)
        self.admin = None
        self.admin = self.call("POST", "/v1/tokens", {"name": "ops", "role": "admin", "namespace": "*"})["token"]
        self.call("POST", "/v1/namespaces", {"name": self.namespace})
        self.token = self.make_token(self.namespace)
        return self

    def __exit__(self, *details):
        self.connection.close()
        super().__exit__(*details)

    def make_token(self, namespace, name="bench"):
        return self.call("POST", "/v1/tokens", {"name": name, "namespace": namespace,
                                                "scopes": ["tasks:enqueue", "work"]})["token"]

    def call(self, method, path, body=None):
        """One request as the administrator, on a connection that is kept."""
        headers = {"Content-Type": "application/json"}
        if self.admin:
            headers["Authorization"] = "Bearer " + self.admin
        self.connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        reply = self.connection.getresponse()
        text = reply.read()
        if reply.status >= 300:
            raise own.BenchError(f"{method} {path}: {reply.status} {text[:300]}")
        return json.loads(text)

    def http(self, mode, connections=1, batch=1, tasks=1, extra=()):
        return super().http(mode, connections, batch, tasks, ("--token", self.token, *extra))


def cpu_seconds(pid):
    """Of the threads of a process, and of the processes below it."""
    total, children = 0, []
    for thread in os.listdir(f"/proc/{pid}/task"):
        place = f"/proc/{pid}/task/{thread}"
        try:
            with open(f"{place}/schedstat", encoding="utf-8") as handle:
                total += int(handle.read().split()[0]) / 1e9
            with open(f"{place}/children", encoding="utf-8") as handle:
                children += handle.read().split()
        except OSError:  # it has ended
            continue
    return total + sum(map(cpu_seconds, children))


def backends(postmaster, url):
    """Processes of PostgreSQL that serve this database; not what it does in the background."""
    name = url.rsplit("/", 1)[1].split("?")[0]
    found = []
    with open(f"/proc/{postmaster}/task/{postmaster}/children", encoding="utf-8") as handle:
        for child in handle.read().split():
            with open(f"/proc/{child}/cmdline", encoding="utf-8") as title:
                if f" {name} " in title.read():
                    found.append(child)
    return found


def compare(name, servers, steps, turns, say, postmaster=None):
    """servers: {"off", "on"}; steps: {name: function of a server that returns a rate}. The ratios of rates, and
    those of the processor time that server and database took: on a busy machine they say more."""
    rates = {step: {side: [] for side in servers} for step in steps}
    times = {step: {side: [] for side in servers} for step in steps}
    for turn in range(turns + 1):  # the first fills caches and does not count
        for step, run in steps.items():
            for side in ("off", "on") if turn % 2 else ("on", "off"):
                pids = [servers[side].process.pid] + (backends(postmaster, servers[side].store) if postmaster else [])
                before = sum(map(cpu_seconds, pids))
                rate = run(servers[side])
                if turn:
                    rates[step][side].append(rate)
                    times[step][side].append(sum(map(cpu_seconds, pids)) - before)
        say(f"access: {name}, turn {turn} of {turns}")
    row = {}
    for step, sides in rates.items():
        row[f"{name}_{step}_ratio"] = statistics.median(
            on / off for on, off in zip(sides["on"], sides["off"]))
        row[f"{name}_{step}_off"] = statistics.median(sides["off"])
        row[f"{name}_{step}_cpu_ratio"] = sum(times[step]["off"]) / sum(times[step]["on"])
    return row


def steps_of(scale, extra=()):
    def enqueue(server):
        return server.http("enqueue", 32, tasks=int(20000 * scale), extra=extra)["per_second"]

    def claim(server):
        return server.http("drain", 4, 100, extra=extra)["per_second"]

    def life(server):
        return server.http("life", 4, 100, int(20000 * scale), extra=extra)["per_second"]

    return {"enqueue": enqueue, "claim": claim, "life": life}


def measure_guarded(build, scale, turns, say):
    with own.Server(build) as off, Guarded(build) as on:
        return compare("guarded", {"off": off, "on": on}, steps_of(scale), turns, say)


def measure_many(build, scale, turns, say):
    with Guarded(build) as off, Guarded(build) as on:
        for number in range(int(NAMESPACES * scale) - 2):
            on.call("POST", "/v1/namespaces", {"name": f"tenant-{number}"})
        for number in range(int(TOKENS * scale)):
            on.make_token(f"tenant-{number % (int(NAMESPACES * scale) - 2)}", f"client-{number}")
        return compare("many", {"off": off, "on": on}, steps_of(scale), turns, say)


def measure_tls(build, scale, turns, say):
    with own.Server(build) as off, own.Server(build, tls=True) as on:
        return compare("tls", {"off": off, "on": on}, steps_of(scale), turns, say)


def sealing():
    """The lines of a configuration that encrypts everything, with a key of this moment."""
    return ("encryption:\n  keys:\n    - {id: bench, command: [echo, " + os.urandom(32).hex() +
            "]}\n  current: bench\n  all: true\n")


def measure_sealed(build, scale, turns, say):
    extra = ("--payload-bytes", str(SEALED_BYTES))
    with own.Server(build) as off, own.Server(build, sealing()) as on:
        return compare("sealed", {"off": off, "on": on}, steps_of(scale, extra), turns, say)


def measure_policies(build, scale, turns, say):
    with peers.Postgres(build) as server, own_pg.Database(server) as plain, \
            own_pg.Database(server) as guarded:
        with own.Server(build, "access:\n  sql_role: bench_nobody\n", plain.url) as off:
            own_pg.query(server.url, f"CREATE ROLE {ROLE} NOLOGIN")
            with own.Server(build, f"access:\n  sql_role: {ROLE}\n", guarded.url) as on:
                policies = own_pg.query(guarded.url, "SELECT count(*) FROM pg_policies WHERE "
                                        f"'{ROLE}' = ANY (roles)")
                if policies[0][0] == "0":
                    raise own.BenchError("there are no policies to measure")
                return compare("policies", {"off": off, "on": on}, steps_of(scale), turns, say,
                               server.process.pid)


def first_claims(server, token, count):
    """Microseconds from asking for a task that waits to having it, one after the other."""
    connection = http.client.HTTPConnection(server.address, timeout=60)

    def call(path, body):
        connection.request("POST", path, json.dumps(body),
                           {"Content-Type": "application/json", "Authorization": "Bearer " + token})
        reply = connection.getresponse()
        text = reply.read()
        if reply.status >= 300:
            raise own.BenchError(f"{path}: {reply.status} {text[:300]}")
        return json.loads(text)

    call("/v1/workers", {"id": "quiet-1", "pool_size": 1000, "queues": ["default"]})
    times = []
    for _ in range(count):
        call("/v1/tasks", {"type": "bench"})
        begin = time.monotonic_ns()
        if len(call("/v1/workers/quiet-1:claim", {"max": 1})["tasks"]) != 1:
            raise own.BenchError("the task of the idle namespace was not handed out")
        times.append((time.monotonic_ns() - begin) / 1000)
    connection.close()
    return times


def percentile_99(times):
    return sorted(times)[len(times) * 99 // 100]


def quiet_namespace(server):
    server.call("POST", "/v1/namespaces", {"name": "quiet"})
    token = server.make_token("quiet", "quiet")
    first_claims(server, token, CLAIMS // NEIGHBOUR_ROUNDS)
    return token


def measure_neighbour(build, scale, _turns, say):
    """Two servers in turns, one of them with a neighbour whose million tasks wait; at the end that neighbour's workers
    claim all the time, as they would."""
    with Guarded(build, namespace="busy") as server, Guarded(build, namespace="busy") as other:
        token, lonely = quiet_namespace(server), quiet_namespace(other)
        server.http("enqueue", 2, 1000, int(BACKLOG * scale))
        say(f"access: {int(BACKLOG * scale):,} tasks of a neighbour wait")
        alone, waiting, took = [], [], {True: 0, False: 0}
        for turn in range(2 * NEIGHBOUR_ROUNDS):
            beside = turn % 4 in (1, 2)
            where = server if beside else other
            before = cpu_seconds(where.process.pid)
            times = first_claims(where, token if beside else lonely, CLAIMS // NEIGHBOUR_ROUNDS)
            took[beside] += cpu_seconds(where.process.pid) - before
            (waiting if beside else alone).extend(times)
        drain = subprocess.Popen([os.path.join(build, "http_load"), server.address, "drain",
                                  "--connections", "2", "--batch", "10", "--token", server.token],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            time.sleep(0.5)
            working = first_claims(server, token, CLAIMS)
            if drain.poll() is not None:
                raise own.BenchError("the neighbour's workers ended too early")
        finally:
            own.stop_process(drain)
    row = {f"neighbour_{name}_p99_us": percentile_99(times)
           for name, times in (("alone", alone), ("waiting", waiting), ("working", working))}
    return {**row, "neighbour_backlog": int(BACKLOG * scale),
            "neighbour_waiting_ratio": row["neighbour_waiting_p99_us"] / row["neighbour_alone_p99_us"],
            "neighbour_median_ratio": statistics.median(waiting) / statistics.median(alone),
            "neighbour_cpu_ratio": took[True] / took[False]}


def measure_memory(build):
    with Guarded(build, sealing(), tls=True) as server:
        row = {"idle_mib": own.settled_mib(server)}
        server.http("life", 4, 100, 2000)
        return {**row, "idle_after_work_mib": own.settled_mib(server)}


def measure(build, say, quick=False):
    scale, turns = (0.05, 1) if quick else (1, TURNS)
    row = measure_memory(build)
    for step in (measure_guarded, measure_many, measure_tls, measure_sealed, measure_policies,
                 measure_neighbour):
        row.update(step(build, scale, turns, say))
    return row
