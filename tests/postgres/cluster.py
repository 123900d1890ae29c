"""Several nodes of `perdura serve` on one schema of a PostgreSQL: started together, killed,
stopped, frozen and started again one by one. Each has a folder of its own for its log; close() ends
them all. ClusterTest is for the tests that use it.

    cluster = Cluster(postgres, 3)
    cluster.node(0).enqueue("type")         what a client can do, at this node (see harness.ApiTest)
    cluster.kill(0), .stop(0), .start(0), .freeze(0), .thaw(0)
"""
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import unittest

import harness
import pq
from server import Postgres

LEASE_S = 2
LEASES = ("--lease", f"{LEASE_S}s", "--leader-lease", f"{LEASE_S}s")
SLACK_S = 15  # beyond what is promised, for a machine that does other things too
CALM = ("--lease", "30s")  # nothing a worker holds is lost meanwhile
STALE = "stale_lease"


class Node(harness.ApiTest):
    """One node, and its client: the words of ApiTest, said to this node. Not a test itself."""

    def __init__(self, folder, store, arguments):
        super().__init__()
        os.mkdir(folder)
        self.server = harness.Server(folder, *arguments)
        self.server.store = store
        self.local = threading.local()
        self.frozen = False

    @property
    def url(self):
        host, port = self.server.address
        return f"http://{host}:{port}"

    @property
    def process(self):
        return self.server.process

    @property
    def lives(self):
        return self.process is not None and self.process.poll() is None

    def log(self):
        return self.server.log()

    def leads_by(self, holder):
        """Ids are host-pid-random."""
        return self.lives and f"-{self.process.pid}-" in holder

    def signal(self, signum):
        self.process.send_signal(signum)
        self.frozen = signum == signal.SIGSTOP

    def end(self, signum):
        if self.frozen:
            self.signal(signal.SIGCONT)
        self.doCleanups()  # its connections
        return self.server.stop(signum)

    def heartbeat(self, worker, *tasks):
        named = [{"task_id": t["id"], "lease_token": t["lease_token"]} for t in tasks]
        return self.expect(200, "POST", f"/v1/workers/{worker}:heartbeat", {"tasks": named})

    def workers(self):
        return self.expect(200, "GET", "/v1/workers?limit=1000")["items"]

    def executions(self, task_id):
        return self.expect(200, "GET", f"/v1/tasks/{task_id}/executions")["items"]

    def statuses(self, task_id):
        """All it went through, oldest first."""
        return [event["status"] for event in reversed(self.events(task_id))]


class Cluster:
    schemas = 0  # every cluster has one of its own
    live = []

    def __init__(self, postgres, count, *arguments):
        Cluster.schemas += 1
        self.postgres = postgres
        self.schema = f"cluster_{Cluster.schemas}"
        self.store = f"{postgres.url}?options=-csearch_path%3D{self.schema}"
        self.folder = tempfile.mkdtemp(prefix="perdura-cluster-")
        self.nodes, self.starts = [], []
        Cluster.live.append(self)
        self.sql(f"CREATE SCHEMA {self.schema}")
        self.nodes = [Node(os.path.join(self.folder, f"node-{i}"), self.store,
                           (*LEASES, *arguments)) for i in range(count)]
        try:
            self.start_all()
        except BaseException:
            self.close()
            raise

    def close(self):
        for start in self.starts:
            start.thread.join(harness.DEADLINE_S)
        for node in self.nodes:
            if node.lives:
                node.end(signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)
        if self in Cluster.live:
            Cluster.live.remove(self)

    # Nodes.

    def node(self, i):
        return self.nodes[i]

    def others(self, i):
        return [node for node in self.nodes if node is not self.nodes[i] and node.lives]

    def start(self, i):
        self.nodes[i].server.start()

    def start_all(self):
        self.starts = [harness.Background(node.server.start) for node in self.nodes]
        for start in self.starts:
            start.result()

    def kill(self, i):
        self.nodes[i].end(signal.SIGKILL)

    def stop(self, i):
        return self.nodes[i].end(signal.SIGTERM)

    def stop_all(self):
        """The exit codes."""
        ends = [harness.Background(node.end, signal.SIGTERM) for node in self.nodes if node.lives]
        return [end.result() for end in ends]

    def freeze(self, i):
        self.nodes[i].signal(signal.SIGSTOP)

    def thaw(self, i):
        self.nodes[i].signal(signal.SIGCONT)

    def logs(self):
        return "\n".join(node.log() for node in self.nodes
                         if os.path.exists(os.path.join(node.server.folder, "stderr.log")))

    # The database, past all nodes.

    def sql(self, text):
        """Rows as lists of texts."""
        return pq.rows(self.store, text)

    def leader(self):
        """The index of the node that holds the lease; None while no node does."""
        rows = self.sql("SELECT holder FROM leadership WHERE until > clock_timestamp()")
        return next((i for i, node in enumerate(self.nodes)
                     if rows and node.leads_by(rows[0][0])), None)

    def wait_leader(self, deadline_s=harness.DEADLINE_S):
        return harness.wait_until(lambda: (lambda i: i is not None and (i,))(self.leader()),
                                  deadline_s, "a leader")[0]

    def cut_connections(self):
        """Ends every connection of the nodes, busy or not; how many there were."""
        [[count]] = self.sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                             "WHERE application_name LIKE 'perdura%'")
        return int(count)

    def verify(self):
        """Exit code and output of `perdura verify`."""
        done = subprocess.run([harness.binary(), "verify", "--store", self.store, "--json"],
                              capture_output=True, text=True, timeout=240, check=False)
        return done.returncode, done.stdout + done.stderr


def end_everything(*_):
    """The tests shall end: no node and no database outlives them."""
    for cluster in list(Cluster.live):
        cluster.close()
    if ClusterTest.postgres:
        ClusterTest.postgres.__exit__()
    for folder in ClusterTest.folders:
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


def begin_module():
    """For setUpModule: a PostgreSQL for its tests, gone at their end, also after a signal."""
    ClusterTest.postgres = Postgres()
    signal.signal(signal.SIGTERM, end_everything)
    unittest.enterModuleContext(ClusterTest.postgres)


def at_once(*calls):
    """Runs them in threads that begin at the same moment; what they returned, in order."""
    barrier = threading.Barrier(len(calls))

    def run(call):
        barrier.wait(harness.DEADLINE_S)
        return call()

    return [thread.result() for thread in [harness.Background(run, call) for call in calls]]


class ClusterTest(unittest.TestCase):
    """Makes clusters, and looks at what is left of them at the end."""

    postgres = None  # the module's
    folders = []     # of all tests; each is removed with its test

    def cluster(self, count, *arguments):
        cluster = Cluster(self.postgres, count, *arguments)
        self.addCleanup(cluster.close)
        self.addCleanup(self.check, cluster)
        return cluster

    def check(self, cluster):
        """Whatever was done: nodes that run stop cleanly, and the store is as it must be."""
        codes = cluster.stop_all()
        log = cluster.logs()
        self.assertEqual([code for code in codes if code != 0], [], log[-3000:])
        self.assertNotIn("Sanitizer", log)
        code, text = cluster.verify()
        self.assertEqual(code, 0, text[:3000])

    def temporary_folder(self):
        folder = tempfile.mkdtemp(prefix="perdura-cluster-test-")
        ClusterTest.folders.append(folder)
        self.addCleanup(shutil.rmtree, folder, True)
        return folder

    def wait_status(self, node, task_id, *statuses, deadline_s=harness.DEADLINE_S):
        def look():
            task = node.task(task_id)
            return task["status"] in statuses and task

        return harness.wait_until(look, deadline_s, f"task {task_id} in {statuses}")
