"""What the PostgreSQL parts of the fault campaign share: several nodes on one schema, clients that
talk to whichever node answers, and what the store is held to while they run and at the end. The
clients and their memory of the answers are those of the kill loop (tests/crash)."""
import collections
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid

import ledger as ledger_module

for folder in ("postgres", "crash", "api"):
    sys.path.insert(0, str(ledger_module.ROOT / "tests" / folder))
import crash_harness  # noqa: E402
import kill_check  # noqa: E402
import kill_clients  # noqa: E402
import kill_workers  # noqa: E402
import pq  # noqa: E402
from crash_harness import ENDED, CrashServer  # noqa: E402

LEASE_MS = 400
SETTLE_S = 90     # only ever reached when something does not end
ANSWER_S = 2.5    # a client asks another node after that
CONFIG = """workers: {pool}
lease: {lease_ms}ms
leader_lease: {leader_ms}ms
grace: 200ms
allow_changed_schema: true  # a scene disturbs by a trigger
retention:
  archive: "archive"
queues:
  - name: process
    serve: true
handlers:
  - type: "brief"
    command: ["/bin/true"]
    retention: 300ms
  - type: "process:*"
    command: ["{handler}", "{marks}", "pool"]
"""


def psql(url, text):
    """Rows as lists of texts."""
    try:
        return pq.rows(url, text)
    except pq.Failed as error:
        raise OSError(str(error)) from None


class Nodes:
    """Several `perdura serve` on one schema. ports: where each of them finds the database."""
    schemas = 0

    def __init__(self, postgres, ports, pool=1, lease_ms=LEASE_MS, leader_ms=None, config=CONFIG,
                 schema=None):
        Nodes.schemas += 1
        self.postgres = postgres
        self.schema = schema or f"nodes_{os.getpid()}_{Nodes.schemas}"
        self.options = "" if schema else f"?options=-csearch_path%3D{self.schema}"
        self.folder = tempfile.mkdtemp(prefix="perdura-nodes-")
        self.marks = os.path.join(self.folder, "marks")
        self.config = config.format(
            pool=pool, lease_ms=lease_ms, leader_ms=leader_ms or lease_ms, marks=self.marks,
            handler=os.path.join(kill_workers.programs(), "killed_handler"))
        self.lock = threading.Lock()
        self.starting = {}   # index -> thread
        self.stopped = set()  # by SIGSTOP
        self.points = {}     # index -> where the present process kills itself
        if not schema:
            psql(postgres.url, f"CREATE SCHEMA {self.schema}")
        self.nodes = []
        for i, port in enumerate(ports):
            os.mkdir(os.path.join(self.folder, f"node-{i}"))
            node = CrashServer(os.path.join(self.folder, f"node-{i}"))
            node.store = self.url(port)
            self.nodes.append(node)

    def url(self, port):
        return f"postgres://perdura@127.0.0.1:{port}/postgres{self.options}"

    def sql(self, text):
        return psql(self.url(self.postgres.port), text)

    def __len__(self):
        return len(self.nodes)

    def lives(self, i):
        process = self.nodes[i].process
        return process is not None and process.poll() is None

    def addresses(self):
        return [node.address for i, node in enumerate(self.nodes)
                if self.lives(i) and i not in self.starting and node.address]

    def start(self, i, point=None):
        self.points[i] = point
        self.nodes[i].start(config=self.config, fault=point, lease=self.lease_text())

    def lease_text(self):
        return self.config.split("\nlease: ")[1].split("\n")[0]

    def start_all(self):
        for i in range(len(self)):
            self.start_later(i)
        self.wait_started()

    def start_later(self, i, point=None, failed=None):
        """In a thread of its own; failed(error) when it did not start."""
        def run():
            try:
                self.start(i, point)
            except AssertionError as error:
                if failed:
                    failed(error)
            finally:
                self.starting.pop(i, None)

        thread = threading.Thread(target=run, daemon=True)
        self.starting[i] = thread
        thread.start()

    def wait_started(self, deadline_s=30):
        for thread in list(self.starting.values()):
            thread.join(deadline_s)

    def kill(self, i, signum=signal.SIGKILL):
        self.stopped.discard(i)
        return self.nodes[i].kill(signum)

    def freeze(self, i):
        self.stopped.add(i)
        os.kill(self.nodes[i].pid, signal.SIGSTOP)

    def thaw(self, i):
        self.stopped.discard(i)
        if self.lives(i):
            os.kill(self.nodes[i].pid, signal.SIGCONT)

    def leader(self):
        """The index of the node whose lease is valid; None while there is none."""
        rows = self.sql("SELECT holder FROM leadership WHERE until > clock_timestamp()")
        for i in range(len(self)):
            if rows and self.lives(i) and f"-{self.nodes[i].pid}-" in rows[0][0]:
                return i
        return None

    def events(self, i, *names):
        """Of its log: (name, line as a dict)."""
        path = pathlib.Path(self.nodes[i].folder, "stderr.log")
        found = []
        for line in path.read_text(errors="replace").splitlines() if path.exists() else ():
            if any(f'"{name}"' in line for name in names):
                try:
                    entry = json.loads(line)
                except ValueError:
                    continue  # cut by a kill
                if entry.get("event") in names:
                    found.append(entry)
        return found

    def verify(self):
        done = subprocess.run([crash_harness.plain_binary(), "verify", "--store",
                               self.url(self.postgres.port), "--json"],
                              capture_output=True, text=True, timeout=120, check=False)
        return [] if done.returncode == 0 else [f"verify: {(done.stdout + done.stderr)[:2000]}"]

    def close(self, keep=False):
        self.wait_started()
        for i, node in enumerate(self.nodes):
            self.kill(i)
            node.close()
        try:
            if not keep:
                psql(self.postgres.url, f"DROP SCHEMA {self.schema} CASCADE")
        except OSError:
            pass  # the database is away or thrown away itself
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)


class AnyNode:
    """The target of clients: whichever node answers."""

    def __init__(self, nodes, seed):
        self.nodes = nodes
        self.rng = random.Random(f"{seed}-target")
        self.up, self.over = threading.Event(), threading.Event()
        self.up.set()

    @property
    def address(self):
        addresses = self.nodes.addresses()
        if not addresses:
            raise ConnectionRefusedError("no node is up")
        return self.rng.choice(addresses)


class NodeClient(kill_clients.Client):
    """Asks another node when one does not answer, and now and then anyway. Counts what an enqueue
    that was not answered had come to when it was asked again."""

    def __init__(self, target, told):
        super().__init__(target)
        self.told = told
        self.rng = random.Random()

    def once(self, method, path, text):
        if self.connection is None:
            self.connection = kill_clients.http.client.HTTPConnection(*self.target.address,
                                                                      timeout=ANSWER_S)
        return super().once(method, path, text)

    def call(self, method, path, body=None):
        if self.rng.random() < 0.03:
            self.close()
        text = None if body is None else json.dumps(body)
        doubts = 0
        while True:
            if self.target.over.is_set():
                raise kill_clients.Stopped
            try:
                status, answer = self.once(method, path, text)
                if status != 503:
                    break
                self.told.count("503")
            except kill_clients.BROKEN:
                self.told.count("no answer")
            doubts += 1
            self.close()
            time.sleep(0.01)
        if doubts and path == "/v1/tasks" and isinstance(body, dict):
            self.told.count("asked again, was there" if status == 200 else
                            "asked again, was not there")
        return status, answer


class NodeProducer(kill_clients.Producer):
    KINDS = ("plain", "plain", "plain", "flaky", "parent", "brief", "long", "process:plain")


class Round:
    """Nodes under load while something is done to them; afterwards everything acknowledged is
    there, nothing ended twice, and everything has ended (V1-V6)."""

    producers, workers = 2, 3
    pause_s = 0.0  # of each client between requests, on slow stores

    def __init__(self, seed, postgres, ports, **options):
        self.seed = seed
        self.rng = random.Random(f"{seed}-faults")
        self.nodes = Nodes(postgres, ports, **options)
        self.told = kill_clients.Told()
        self.target = AnyNode(self.nodes, seed)
        self.receiver = kill_clients.Receiver()
        self.stop, self.calm = threading.Event(), threading.Event()
        self.threads = []
        self.counts = collections.Counter()
        self.before = {}
        self.began = time.monotonic()

    # To be said by the kinds of rounds.

    def work(self):
        raise NotImplementedError

    def heal(self):
        """Before everything is to end."""

    # The course of a round.

    def run(self):
        """The row for the ledger."""
        try:
            self.nodes.start_all()
            self.start_clients()
            self.work()
            self.settle()
            self.check()
        except Exception as error:
            self.told.find(f"round {self.seed} ended with {error!r}: {self.logs()[-1500:]}")
        finally:
            self.end()
        return self.row()

    def logs(self):
        return "\n".join(node.log()[-3000:] for node in self.nodes.nodes)

    def start_clients(self, first=0):
        """first: their numbers, and with them their keys, begin there."""
        actors = [NodeProducer(first + n, self.seed, self.target, self.told, self.stop,
                               self.receiver.url) for n in range(self.producers)]
        actors += [kill_clients.Worker(first + n, self.seed, self.target, self.told, self.calm)
                   for n in range(self.workers)]
        actors.append(kill_clients.Operator(self.seed, self.target, self.told, self.stop))
        for actor in actors:
            actor.client = NodeClient(self.target, self.told)
            thread = threading.Thread(target=self.act, args=(actor,), daemon=True)
            thread.start()
            self.threads.append(thread)

    def act(self, actor):
        try:
            actor.run()
        except kill_clients.Stopped:
            pass
        except BaseException as error:  # a client that broke would hide what comes after
            self.told.find(f"{type(actor).__name__} ended with {error!r}")
        finally:
            actor.client.close()

    def progress(self):
        """Something that grows as long as work is done."""
        return len(self.told.acknowledged_log) + len(self.told.completed_log)

    def wait_progress(self, more, deadline_s, what):
        """Until so much more was done; False and a finding when it was not."""
        wanted, end = self.progress() + more, time.monotonic() + deadline_s
        while self.progress() < wanted:
            if time.monotonic() > end:
                self.told.find(f"{what}: no work for {deadline_s} s: {self.logs()[-1500:]}")
                return False
            time.sleep(0.005)
        return True

    def restart_dead(self):
        """Nodes that ended by themselves, at their points."""
        for i in range(len(self.nodes)):
            if i in self.nodes.starting or self.nodes.lives(i):
                continue
            code = self.nodes.nodes[i].process.poll() if self.nodes.nodes[i].process else None
            if code == -signal.SIGKILL and self.nodes.points.get(i):
                self.counts["kills"] += 1
                self.counts["kills at points"] += 1
            elif code not in (None, -signal.SIGKILL):
                self.told.find(f"node {i} ended with {code}: {self.nodes.nodes[i].log()[-1500:]}")
            self.start_node(i)

    def start_node(self, i, point=None):
        def failed(error):
            code = self.nodes.nodes[i].wait()
            if not point or code != -signal.SIGKILL:
                self.told.find(f"node {i} did not start: {str(error)[-1500:]}")

        self.nodes.start_later(i, point, failed)

    def settle(self):
        """No more faults, no more input: everything must end."""
        self.heal()
        self.stop.set()
        self.calm.set()
        for i in list(self.nodes.stopped):
            self.nodes.thaw(i)
        self.nodes.wait_started()
        for i, point in self.nodes.points.items():
            if point:  # it would kill itself at its end
                self.nodes.kill(i)
                self.nodes.points[i] = None
        self.restart_dead()
        self.nodes.wait_started()
        end = time.monotonic() + SETTLE_S
        while self.open_tasks():
            if time.monotonic() > end:
                self.told.find("not everything ended (V3): " + str(self.nodes.sql(
                    "SELECT status, type, count(*), min(id::text) FROM tasks WHERE status NOT IN "
                    f"{ENDED} GROUP BY 1, 2")))
                return
            time.sleep(0.1)
        while time.monotonic() < end and [t for t in self.told.callbacks
                                          if t not in self.receiver.received]:
            time.sleep(0.05)

    def open_tasks(self):
        [[count]] = self.nodes.sql("SELECT count(*) FROM task_states WHERE status NOT IN "
                                   f"{ENDED}")
        return int(count)

    # What must hold.

    def snapshot(self):
        """Beside the running nodes: V1 so far, V2, V5."""
        told = self.told
        acknowledged = told.acknowledged_log[:]
        ended = [(told.completed_log[:], "completed"), (told.cancelled_log[:], "cancelled")]
        stored = {uuid.UUID(row[0]).bytes: (row[1], int(row[2] or 0)) for row in self.nodes.sql(
            "SELECT id, status, coalesce(lease_token, 0) FROM task_states")}
        for task, kind in acknowledged:
            if task not in stored and kind not in kill_check.VANISH:
                told.find_lost(f"task {uuid.UUID(bytes=task)} was acknowledged and is not there")
        for log, status in ended:
            for task in log:
                if task in stored and stored[task][0] != status:
                    told.find_lost(f"task {uuid.UUID(bytes=task)} was acknowledged as {status}, "
                                   f"is {stored[task][0]}")
        for task, (status, token) in self.before.items():
            now = stored.get(task)
            if now and status in ENDED and now[0] != status:
                told.find(f"task {uuid.UUID(bytes=task)} had ended as {status}, is {now[0]}")
            if now and token > now[1]:
                told.find(f"task {uuid.UUID(bytes=task)} had token {token}, has {now[1]}")
        self.before = stored
        self.counts["snapshots"] += 1

    def verify(self):
        for text in self.nodes.verify():
            self.told.find(text)
        self.counts["verified"] += 1

    def check(self):
        self.snapshot()
        self.target.over.set()
        for thread in self.threads:
            thread.join(ANSWER_S + 10)
        for i in range(len(self.nodes)):
            code = self.nodes.kill(i, signal.SIGTERM)
            if code != 0 or "Sanitizer" in self.nodes.nodes[i].log():
                self.told.find(f"node {i} ended with {code}: {self.nodes.nodes[i].log()[-1500:]}")
        self.verify()
        check_end(self.nodes, self.told, self.receiver.received)
        self.check_epochs()

    def check_epochs(self):
        """F-B5, F-B11: an epoch belongs to one leader."""
        holders = collections.defaultdict(set)
        for i in range(len(self.nodes)):
            for entry in self.nodes.events(i, "node.leads"):
                holders[entry["epoch"]].add(i)
        for epoch, nodes in holders.items():
            if len(nodes) > 1:
                self.told.find(f"epoch {epoch} was led by nodes {sorted(nodes)}")
        self.counts["leaders"] += len(holders)

    def end(self):
        self.stop.set()
        self.target.over.set()
        for i in list(self.nodes.stopped):
            self.nodes.thaw(i)
        self.nodes.close(keep=bool(self.told.findings))
        for thread in self.threads:
            thread.join(15)
        self.receiver.close()

    def row(self):
        told = self.told
        row = {"seed": self.seed, **self.counts, "acknowledged": len(told.types),
               "tasks": told.counts["tasks"], "completed": told.counts["completed"],
               "cancelled": len(told.cancelled), "lost": told.lost, "twice": told.twice,
               "stale_refused": told.counts["stale_lease"],
               "removed": told.counts["removed"], "callbacks": told.counts["callbacks"],
               "unanswered": told.counts["no answer"], "answered_503": told.counts["503"],
               "found": told.counts["asked again, was there"],
               "not_found": told.counts["asked again, was not there"],
               "seconds": round(time.monotonic() - self.began, 1), "findings": told.findings}
        if told.findings:
            row["folder"] = self.nodes.folder
        return row


def check_end(nodes, told, received):
    """After everything has ended: V1, V2, V5, V6, callbacks, archive."""
    rows = nodes.sql("SELECT id, idempotency_key, type, status, parent_id, attempts, lease_token "
                     "FROM tasks")
    tasks = {row[0]: (*row[:5], int(row[5]), int(row[6])) for row in rows}
    results = dict(nodes.sql("SELECT task_id, payload FROM task_results"))
    ends = collections.Counter({row[0]: int(row[1]) for row in nodes.sql(
        f"SELECT task_id, count(*) FROM task_events WHERE status IN {ENDED} GROUP BY 1")})
    kill_check.check_keys(told, tasks)
    kill_check.check_ends(told, tasks, results, ends)
    kill_check.check_processes(told, tasks, results)
    kill_check.check_children(told, tasks)
    kill_check.check_callbacks(told, tasks, received)
    told.counts["tasks"] = len(tasks)
    told.counts["completed"] = sum(row[3] == "completed" for row in tasks.values())
    removed = set(told.ids.values()) - set(tasks)
    told.counts["removed"] = len(removed)
    gather_archives(nodes)
    kill_check.check_archive(told, os.path.join(nodes.folder, "archive"), removed)
    [[held]] = nodes.sql("SELECT count(*) FROM held_rows")
    if held != "0":
        told.find(f"{held} tasks are still held (V3)")


def gather_archives(nodes):
    """Each node that led has one of its own."""
    os.makedirs(os.path.join(nodes.folder, "archive"), exist_ok=True)
    for i, node in enumerate(nodes.nodes):
        for path in pathlib.Path(node.folder, "archive").glob("*"):
            shutil.copyfile(path, os.path.join(nodes.folder, "archive", f"{i}-{path.name}"))
