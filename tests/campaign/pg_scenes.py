"""Single scenes of the PostgreSQL campaign: faults of tables E and F that are not a matter of
thousands of repetitions, each with its figure. Each makes one row of the ledger:

    python3 tests/campaign/pg_scenes.py F-E10 [SCALE]
"""
import collections
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

import pg_load
import pg_rounds

import harness  # noqa: E402  (tests/api, by pg_load)
from cluster import Cluster, Node, at_once  # noqa: E402  (tests/postgres)
from harness import Background, wait_until  # noqa: E402
from proxy import Proxy  # noqa: E402
from server import Postgres  # noqa: E402
from test_pooler import Pooler  # noqa: E402

SCENES = {}


def scene(name, what):
    """Registers a function (scale, find) -> (result, counts)."""
    def register(function):
        SCENES[name] = (what, function)
        return function
    return register


def one(name, scale=1.0):
    what, function = SCENES[name]
    findings = []
    try:
        result, counts = function(scale, findings.append)
    except Exception as error:
        result, counts = f"ended with {error!r}", {}
        findings.append(f"{name}: {error!r}")
    return {"what": what, "result": result, **counts, "findings": findings}


class Proxied(Cluster):
    """A cluster whose nodes have a proxy each."""

    def __init__(self, postgres, count, *arguments):
        super().__init__(postgres, 0)
        self.proxies = [Proxy(postgres.port) for _ in range(count)]
        self.nodes = [
            Node(os.path.join(self.folder, f"node-{i}"),
                 self.store.replace(f":{postgres.port}/", f":{proxy.port}/"),
                 ("--lease", "2s", "--leader-lease", "2s", *arguments))
            for i, proxy in enumerate(self.proxies)]
        try:
            self.start_all()
        except BaseException:
            self.close()
            raise

    def close(self):
        super().close()
        for proxy in self.proxies:
            proxy.close()


def in_cluster(kind, count, *arguments, settings=None):
    """Runs a scene in a cluster of its own, and looks at what is left of it."""
    def decorate(function):
        def run(scale, find):
            with Postgres(settings) as postgres:
                cluster = kind(postgres, count, *arguments)
                try:
                    answer = function(cluster, scale, find)
                    for proxy in getattr(cluster, "proxies", ()):
                        proxy.pass_on()
                    codes = cluster.stop_all()
                    if any(codes):
                        find(f"nodes ended with {codes}: {cluster.logs()[-1500:]}")
                    code, text = cluster.verify()
                    if code != 0:
                        find(f"verify: {text[:2000]}")
                finally:
                    cluster.close()
            return answer
        return run
    return decorate


def ms(values):
    ordered = sorted(values)
    return (f"p50 {1000 * ordered[len(ordered) // 2]:,.0f}, max {1000 * ordered[-1]:,.0f} ms"
            if ordered else "never")


def until(predicate, deadline_s, what):
    """Seconds until it came true."""
    began = time.monotonic()
    wait_until(predicate, deadline_s, what)
    return time.monotonic() - began


# ---- rounds under load with something special ----

class Conflicts(pg_rounds.Round):
    """Every n-th statement that changes tasks fails as deadlocks and serialization failures do."""

    EVERY = 20

    def work(self):
        self.nodes.sql(f"""
            CREATE SEQUENCE changes; CREATE SEQUENCE raised;
            CREATE FUNCTION disturb() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                IF nextval('changes') % {self.EVERY} = 0 THEN
                    IF nextval('raised') % 2 = 0 THEN
                        RAISE EXCEPTION 'disturbed' USING ERRCODE = '40001';
                    END IF;
                    RAISE EXCEPTION 'disturbed' USING ERRCODE = '40P01';
                END IF;
                RETURN NULL;
            END $$;
            CREATE TRIGGER disturb BEFORE INSERT OR UPDATE ON task_states
            FOR EACH STATEMENT EXECUTE FUNCTION disturb()""")
        for _ in range(10):
            self.wait_progress(100, 30, "disturbed")
            self.snapshot()

    def heal(self):
        [[raised]] = self.nodes.sql("SELECT last_value FROM raised")
        self.counts["raised"] = int(raised)
        self.nodes.sql("DROP TRIGGER disturb ON task_states")


@scene("F-E6", "every 20th statement that changes tasks fails with 40001 or 40P01, under load")
def conflicts(_scale, find):
    with Postgres() as postgres:
        row = Conflicts("pg_conflicts", postgres, [postgres.port] * 3).run()
    for text in row["findings"]:
        find(text)
    if row["answered_503"] > row["raised"] / 20:
        find(f"{row['answered_503']} requests were answered 503")
    return (f"{row['raised']} raised, {row['answered_503']} of "
            f"{row['acknowledged'] + row['completed']} requests answered 503; lost {row['lost']}, "
            f"completed twice {row['twice']}", {"raised": row["raised"]})


class Flapping(pg_rounds.Round):
    """The leader loses its lease at once."""

    def work(self):
        while self.counts["flaps"] < 60 and not self.told.findings:
            time.sleep(0.3)
            self.nodes.sql("UPDATE leadership SET holder = 'nobody', epoch = epoch + 1, "
                           "until = clock_timestamp() - interval '1 second'")
            self.counts["flaps"] += 1
            if self.counts["flaps"] % 20 == 0:
                self.snapshot()


@scene("F-F3", "leadership taken away three times a second for 20 s, under load with delayed tasks")
def flapping(_scale, find):
    with Postgres() as postgres:
        row = Flapping("pg_flapping", postgres, [postgres.port] * 3).run()
    for text in row["findings"]:
        find(text)
    return (f"{row['flaps']} times, {row['leaders']} leaders; {row['completed']} tasks, lost "
            f"{row['lost']}, completed twice {row['twice']}", {"flaps": row["flaps"]})


class Pooled(pg_rounds.Round):
    """PgBouncer in transaction mode between nodes and database, killed now and then."""

    CONFIG = pg_load.CONFIG + "pooler: transaction\n"

    def __init__(self, postgres, pooler):
        self.pooler = pooler
        super().__init__("pg_pooled", postgres, [pooler.port] * 3, config=self.CONFIG,
                         schema="public")

    def work(self):
        for _ in range(20):
            self.wait_progress(30, 40, "behind a pooler")
            self.nodes.sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE "
                           "pid <> pg_backend_pid() AND backend_type = 'client backend' AND "
                           "random() < 0.5")
            i = self.rng.randrange(3)
            self.nodes.kill(i)
            self.counts["kills"] += 1
            self.start_node(i)
            self.nodes.wait_started()
        self.snapshot()


@scene("F-E11", "nodes behind PgBouncer in transaction mode: kills of nodes, server connections "
       "ended, under load")
def pooled(_scale, find):
    with Postgres() as postgres, Pooler(postgres) as pooler:
        row = Pooled(postgres, pooler).run()
    for text in row["findings"]:
        find(text)
    return (f"{row.get('kills', 0)} kills, {row['acknowledged']} acknowledged; lost {row['lost']}, "
            f"completed twice {row['twice']}", {"kills": row.get("kills", 0)})


# ---- networks ----

@scene("F-E7", "the network of the leader falls silent: packets vanish without an error")
@in_cluster(Proxied, 3, "--lease", "30s")
def silent_network(cluster, scale, find):
    noticed, took_over, back = [], [], []
    for turn in range(max(1, int(5 * scale))):
        leader = cluster.wait_leader()
        node, other = cluster.node(leader), cluster.others(leader)[0]
        node.register(f"w{turn}")
        task = node.enqueue(queue="default")
        [held] = node.claim(f"w{turn}", wait_ms=2000)
        cluster.proxies[leader].blackhole()
        began = time.monotonic()
        refused = Background(lambda n=node, b=began: refusal_after(n, b))
        took_over.append(until(lambda: cluster.leader() not in (None, leader), 20, "a leader"))
        if other.heartbeat(f"w{turn}", held)["lost"]:
            find("the worker's lease was lost at the other node")
        other.complete(f"w{turn}", held)
        noticed.append(refused.result(60))
        if cluster.leader() == leader:
            find("the node that is cut off leads")
        cluster.proxies[leader].pass_on()
        back.append(until(lambda n=node: n.request("POST", "/v1/tasks", {
            "type": "t", "queue": "other"}).status == 201, 40, "service again"))
        done = other.task(task["id"])
        if (done["status"], done["attempts"]) != ("completed", 1):
            find(f"the task of the silent node was run {done['attempts']} times")
    if max(noticed) > 12:
        find(f"a silent network was noticed after {max(noticed):.1f} s")
    if max(took_over) > 4:
        find(f"another node led after {max(took_over):.1f} s")
    return (f"{len(noticed)} times: another node leads after {ms(took_over)} (lease 2 s); the "
            f"silence was noticed after {ms(noticed)}; service {ms(back)} after it ended; the "
            "worker continued elsewhere under the same lease", {"holes": len(noticed)})


def refusal_after(node, began):
    """When an enqueue at the silent node was answered, with 503."""
    connection = harness.http.client.HTTPConnection(*node.server.address, timeout=60)
    connection.request("POST", "/v1/tasks", json.dumps({"type": "t", "queue": "other"}))
    status = connection.getresponse().status
    connection.close()
    assert status == 503, status
    return time.monotonic() - began


@scene("F-F4", "the leader's writing connection falls silent, its renewals continue")
@in_cluster(Proxied, 3)
def silent_writer(cluster, _scale, find):
    leader = cluster.wait_leader()
    other = cluster.others(leader)[0]
    other.register("w")
    if cluster.proxies[leader].silence(lambda link: link.writes) == 0:
        find("no writing connection was found")
    began = time.monotonic()
    other.enqueue(delay_ms=500)
    wait_until(lambda: other.claim("w", wait_ms=500), 30, "the delayed task")
    late_s = time.monotonic() - began - 0.5
    if late_s > 12:
        find(f"a delayed task came {late_s:.1f} s late")
    return f"a delayed task came {late_s:.1f} s late (limit 12 s)", {"late_s": round(late_s, 1)}


@scene("F-E12", "the connection that hears of work falls silent")
@in_cluster(Proxied, 2)
def deaf_nodes(cluster, scale, find):
    a, b = cluster.nodes
    b.register("w")
    waits = []
    for _ in range(max(2, int(10 * scale))):
        cluster.proxies[1].silence(lambda link: link.name == "perdura keeper")
        claim = Background(b.claim, "w", 1, 5000)
        b.wait_for_waiting("waiting_claims", 1)
        began = time.monotonic()
        task = a.enqueue()
        [found] = claim.result()
        waits.append(time.monotonic() - began)
        b.complete("w", found)
        if found["id"] != task["id"]:
            find("another task was claimed")
    if max(waits) > 1.5:
        find(f"work without a hint was found after {max(waits):.2f} s")
    return f"work was found by looking, after {ms(waits)}", {"tries": len(waits)}


@scene("F-E9", "every answer of the database takes a second")
@in_cluster(Proxied, 2, "--lease", "9s", "--leader-lease", "9s")
def slow_database(cluster, _scale, find):
    a, b = cluster.nodes
    a.register("w")
    task = a.enqueue()
    [held] = a.claim("w", wait_ms=2000)
    for proxy in cluster.proxies:
        proxy.delay(0.5)
    beats, end = [], time.monotonic() + 27
    enqueued = 0
    while time.monotonic() < end:
        began = time.monotonic()
        if a.heartbeat("w", held)["lost"]:
            find("a lease was lost although its worker heartbeats")
        beats.append(time.monotonic() - began)
        enqueued += b.request("POST", "/v1/tasks", {"type": "x", "queue": "x"}).status == 201
    for proxy in cluster.proxies:
        proxy.pass_on()
    a.complete("w", held)
    if a.task(task["id"])["attempts"] != 1:
        find("the task was run again")
    return (f"27 s, three leases of 9 s: heartbeats answered after {ms(beats)}, {enqueued} "
            "enqueues taken, leases lost 0", {"heartbeats": len(beats)})


# ---- the database ----

def startup(port):
    """A connection that does nothing."""
    sock = socket.create_connection(("127.0.0.1", port))
    words = b"user\0perdura\0database\0postgres\0application_name\0filler\0\0"
    sock.sendall(struct.pack("!ii", 8 + len(words), 196608) + words)
    sock.recv(4000)
    return sock


@scene("F-E10", "all connections the database allows are taken by others")
@in_cluster(Cluster, 2, settings={"max_connections": 24, "superuser_reserved_connections": 0})
def no_connections(cluster, _scale, find):
    port = cluster.postgres.port
    a, b = cluster.nodes
    a.register("w")
    fillers = []
    while len(fillers) < 24:
        fillers.append(startup(port))
    done = 0
    end = time.monotonic() + 6  # three leases: heartbeats and leadership continue
    leader = cluster_leader_by_api(a)
    while time.monotonic() < end:
        task = b.enqueue()
        [held] = a.claim("w", wait_ms=2000)
        a.complete("w", held)
        done += task["id"] == held["id"]
    if cluster_leader_by_api(a) != leader:
        find("the leader changed")
    for sock in fillers:
        sock.close()
    cluster.cut_connections()
    back = until(lambda: a.request("POST", "/v1/tasks", {"type": "z", "queue": "z"}).status == 201,
                 20, "service")
    return (f"{done} tasks in 6 s over the connections the nodes hold, same leader; after all were "
            f"cut, service again in {1000 * back:.0f} ms", {"tasks": done})


def cluster_leader_by_api(node):
    return [worker["id"] for worker in node.workers() if worker["is_leader"]]


class Session:
    """psql with a transaction that stays open."""

    def __init__(self, url, *statements):
        self.process = subprocess.Popen(["psql", "-X", "-q", "-A", "-t", url], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for statement in (*statements, "SELECT 'ready'"):
            self.process.stdin.write(statement + ";\n")
        self.process.stdin.flush()
        while self.process.stdout.readline().strip() != "ready":
            pass

    def end(self):
        self.process.stdin.close()
        self.process.wait()


@scene("F-E17", "another session's open transaction holds the rows of running and of waiting tasks")
@in_cluster(Cluster, 2, "--lease", "30s")
def foreign_lock(cluster, _scale, find):
    a, b = cluster.nodes
    a.register("w")
    a.expect(201, "POST", "/v1/tasks", [{"type": "t"}] * 4)
    [held] = a.claim("w")
    session = Session(cluster.store, f"SET search_path = {cluster.schema}", "BEGIN",
                      f"SELECT task FROM task_states WHERE id = '{held['id']}' FOR UPDATE",
                      "SELECT task FROM ready_rows ORDER BY task LIMIT 1 FOR UPDATE")
    began = time.monotonic()
    others = []
    while len(others) < 2 and time.monotonic() - began < 10:
        others += b.claim("w", max=4, wait_ms=500)
    skipped_s = time.monotonic() - began
    if len(others) != 2:
        find(f"{len(others)} of the 2 free tasks were claimed")
    began = time.monotonic()
    reply = a.request("POST", "/v1/workers/w:report", [a.element(held, "complete")])
    waited_s = time.monotonic() - began
    session.end()
    if reply.status == 200 and not reply.json["items"][0]["ok"]:
        find(f"the completion was refused: {reply.body!r}")
    if reply.status not in (200, 503):
        find(f"the completion was answered {reply.status}")
    if reply.status == 503:
        a.complete("w", held)
    if a.task(held["id"])["status"] != "completed":
        find("the completion was lost")
    [last] = b.claim("w", wait_ms=3000)
    for task in (*others, last):
        b.complete("w", task)
    return (f"other tasks claimed after {skipped_s:.1f} s; the completion waited {waited_s:.1f} s, "
            f"answered {reply.status}, then took", {"waited_s": round(waited_s, 1)})


# ---- races of two nodes ----

@scene("F-E16", "two nodes insert the same key at once, and the first one's transaction is undone")
@in_cluster(Proxied, 2, "--lease", "30s")
def undone_key(cluster, scale, find):
    a, b = cluster.nodes
    tries = max(10, int(200 * scale))
    undone = 0
    for n in range(tries):
        body = {"type": "t", "idempotency_key": f"k{n}"}
        cluster.proxies[0].arm("unsent")
        before = len(cluster.proxies[0].cuts)
        first, second = at_once(lambda: a.api("POST", "/v1/tasks", body),
                                lambda: b.api("POST", "/v1/tasks", body))
        undone += len(cluster.proxies[0].cuts) > before
        cluster.proxies[0].pass_on()
        ids = {answer.get("id") for status, answer in (first, second) if status in (200, 201)}
        again = a.request("POST", "/v1/tasks", body)
        ids.add(again.json.get("id") if again.status in (200, 201) else None)
        if len(ids - {None}) > 1 or not ids - {None}:
            find(f"key k{n}: {first} {second}")
    [[count, keys]] = cluster.sql("SELECT count(*), count(DISTINCT idempotency_key) FROM tasks")
    if (int(count), int(keys)) != (tries, tries):
        find(f"{count} tasks of {keys} keys, {tries} were sent")
    return f"{tries} tries, {undone} transactions undone, {count} tasks", {"tries": tries}


@scene("F-E15", "completions that arrive in the moment their lease ends, at another node than the "
       "one that sweeps")
@in_cluster(Cluster, 2, "--lease", "1s", "--leader-lease", "2s")
def sweep_race(cluster, scale, find):
    leader = cluster.wait_leader()
    node = cluster.others(leader)[0]
    took = stale = number = 0
    for _ in range(max(1, int(10 * scale))):
        held = []
        for _ in range(50):  # one worker each: a report renews what its worker holds
            number += 1
            worker, queue = f"w{number}", f"q{number % 50}"
            node.register(worker, queues=[queue])
            node.enqueue("t", queue=queue, max_crashes=1000)
            held += [(worker, time.monotonic(), task) for task in node.claim(worker)]
        for i, (worker, claimed, task) in enumerate(held):
            wait_s = claimed + 1.0 + 0.01 * (i - 10) - time.monotonic()
            if wait_s > 0:
                time.sleep(wait_s)
            reply = node.request("POST", f"/v1/workers/{worker}:report",
                                 [node.element(task, "complete")])
            ok = reply.status == 200 and reply.json["items"][0]["ok"]
            took, stale = took + ok, stale + (not ok)
    wrong = cluster.sql(
        "SELECT task_id FROM task_events GROUP BY task_id HAVING count(*) FILTER (WHERE status = "
        "'completed') > 1")
    ended = cluster.sql("SELECT count(*) FROM tasks WHERE status = 'completed'")
    if wrong or int(ended[0][0]) != took:
        find(f"{took} completions were acknowledged, {ended} are stored, twice: {wrong}")
    return f"{took} took, {stale} came too late, both 0", {"tries": took + stale}


@scene("F-H13", "the last two children of a task end at two nodes in the same moment")
@in_cluster(Cluster, 2, "--lease", "60s")
def last_children(cluster, scale, find):
    a, b = cluster.nodes
    a.register("wa")
    b.register("wb")
    done = 0
    goal = max(200, int(10000 * scale))
    while done < goal:
        done += children_round(a, b, min(500, goal - done), find)
    released = cluster.sql(
        "SELECT count(*), count(*) FILTER (WHERE n <> 2) FROM (SELECT count(*) FILTER (WHERE "
        "e.status = 'pending') AS n FROM task_events e JOIN tasks t ON t.id = e.task_id WHERE "
        "t.type = 'parent' GROUP BY t.id) x")[0]
    if released != [str(done), "0"]:
        find(f"of {done} parents {released[1]} were not released exactly once")
    return f"{done} tries, released more or less than once {released[1]}", {"tries": done}


def children_round(a, b, count, find):
    a.expect(201, "POST", "/v1/tasks", [{"type": "parent"}] * count)
    parents = claim_all(a, "wa", count)
    elements = []
    for parent in parents:
        elements += [a.element(parent, "spawn", tasks=[{"type": "child"}] * 2),
                     a.element(parent, "continue", wait_children=True)]
    if not all(item["ok"] for item in a.report("wa", *elements)):
        find("parents could not be made")
    pairs = collections.defaultdict(list)
    for child in claim_all(b, "wb", 2 * count):
        pairs[child["parent_id"]].append(child)
    barrier = threading.Barrier(2)

    def end(node, side):
        for pair in pairs.values():
            barrier.wait(30)
            node.complete("wb", pair[side])

    for thread in (Background(end, a, 0), Background(end, b, 1)):
        thread.result(300)
    again = claim_all(b, "wb", count)
    if {task["id"] for task in again} != set(pairs):
        find("other tasks than the parents came back")
    b.report("wb", *[b.element(task, "complete") for task in again])
    return count


def claim_all(node, worker, count):
    tasks = []
    while len(tasks) < count:
        more = node.claim(worker, max=min(1000, count - len(tasks)), wait_ms=5000)
        assert more, f"{len(tasks)} of {count} tasks came"
        tasks += more
    return tasks


# ---- nodes ----

@scene("F-F2", "the leader gets SIGTERM")
@in_cluster(Cluster, 3, "--leader-lease", "30s")
def resigning(cluster, scale, find):
    times = []
    for _ in range(max(2, int(20 * scale))):
        leader = cluster.wait_leader()
        if cluster.stop(leader) != 0:
            find("the leader did not end cleanly")
        times.append(until(lambda: cluster.leader() not in (None, leader), 20, "another leader"))
        cluster.start(leader)
    if max(times) > 1:
        find(f"another node led {max(times):.2f} s after the leader had ended")
    return f"{len(times)} times, another node leads after {ms(times)} (limit 1 s)", {
        "resigned": len(times)}


@scene("F-F5", "20 nodes start at once, and come back together after the database was away")
@in_cluster(Proxied, 20, "--log-level", "warn")
def many_nodes(cluster, _scale, find):
    for i, node in enumerate(cluster.nodes):
        node.enqueue(queue=f"q{i}")
    before = sum(len(proxy.links) for proxy in cluster.proxies)
    cluster.postgres.stop(signal.SIGQUIT)
    time.sleep(3)
    for proxy in cluster.proxies:
        proxy.most_links = 0
    pg_rounds.start_again(cluster.postgres)
    began = time.monotonic()
    for i, node in enumerate(cluster.nodes):
        wait_until(lambda n=node, i=i: n.request("POST", "/v1/tasks", {
            "type": "t", "queue": f"q{i}"}).status == 201, 30, f"node {i}")
    back = time.monotonic() - began
    most = sum(proxy.most_links for proxy in cluster.proxies)
    cluster.wait_leader()
    if most > 20 * 6:
        find(f"{most} connections of 20 nodes")
    if back > 6:
        find(f"20 nodes were back after {back:.1f} s")
    return (f"all of them serve {back:.1f} s after the database accepts connections; {most} "
            f"connections at most (before: {before})", {"nodes": 20})


@scene("F-F6", "a leader without handlers sweeps tasks of types it does not know")
def unknown_types(_scale, find):
    with Postgres() as postgres, tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(postgres, 1)  # it leads and knows no type
        try:
            config = pathlib.Path(folder, "perdura.yaml")
            config.write_text('workers: 4\nhandlers:\n  - type: "t"\n    command: ["sleep", '
                              '"3600"]\n')
            knows = Node(os.path.join(cluster.folder, "node-1"), cluster.store,
                         ("--lease", "2s", "--leader-lease", "2s", "--config", str(config)))
            cluster.nodes.append(knows)
            cluster.start(1)
            tasks = cluster.node(0).expect(201, "POST", "/v1/tasks", [
                {"type": "t", "max_crashes": 100}] * 4)["items"]
            turns = 3
            for _ in range(turns):
                wait_until(lambda: [cluster.node(0).task(t["id"])["status"] for t in tasks] ==
                           ["running"] * 4, what="all of them to run")
                cluster.kill(1)
                wait_until(lambda: [cluster.node(0).task(t["id"])["status"] for t in tasks] ==
                           ["pending"] * 4, what="all of them to be returned")
                cluster.start(1)
            code, text = cluster.verify()
            if code != 0:
                find(f"verify: {text[:2000]}")
        finally:
            cluster.close()
    return f"{turns * len(tasks)} lost tasks returned, discarded 0", {"tasks": turns * len(tasks)}


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    names = list(SCENES) if sys.argv[1] == "all" else sys.argv[1].split(",")
    bad = 0
    for name in names:
        began = time.monotonic()
        row = one(name, float(sys.argv[2]) if len(sys.argv) > 2 else 1.0)
        print(name, f"{time.monotonic() - began:.1f} s", json.dumps(row), flush=True)
        bad += len(row["findings"])
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
