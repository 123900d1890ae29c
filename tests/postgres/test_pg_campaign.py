"""A short run of what `make faults` does with PostgreSQL and several nodes: nodes killed under
load, commits cut between COMMIT and answer, a silent network, a standby that takes over. V1 to V6
hold afterwards. Long ones: tests/campaign/pg_nodes.py."""
import http.server
import os
import pathlib
import random
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "campaign"))
import pg_rounds  # noqa: E402
import pg_scenes  # noqa: E402
import pg_standby  # noqa: E402
from cluster import CALM, ClusterTest, Node, begin_module  # noqa: E402
from harness import wait_until  # noqa: E402
from proxy import Proxy  # noqa: E402


def setUpModule():
    begin_module()


class Campaign(ClusterTest):
    seed = os.environ.get("PERDURA_SEED", str(random.randrange(10 ** 6)))

    def test_f_b5_f_f1_nodes_killed_and_stopped_under_load_lose_and_double_nothing(self):
        row = pg_rounds.one("kills", f"smoke.{self.seed}", 6, self.postgres)
        self.assertEqual(row["findings"], [], f"seed {self.seed}")
        self.assertGreater(row["completed"], 20)

    def test_f_e3_commits_cut_before_their_answer_under_load_lose_and_double_nothing(self):
        row = pg_rounds.one("cuts", f"smoke.{self.seed}", 8, self.postgres)
        self.assertEqual(row["findings"], [], f"seed {self.seed}")
        self.assertGreater(row["settled: took"], 0)

    def test_f_e5_f_e14_leases_of_before_a_promotion_are_void_and_the_nodes_go_on(self):
        row = pg_standby.one("async", f"smoke.{self.seed}")
        self.assertEqual(row["findings"], [], f"seed {self.seed}")
        self.assertGreater(row["old leases refused"], 0)

    def test_f_e7_a_silent_network_is_noticed_and_its_worker_goes_on_elsewhere(self):
        row = pg_scenes.one("F-E7", 0)
        self.assertEqual(row["findings"], [])


class CutCommit(ClusterTest):
    def test_f_e3_an_enqueue_whose_commit_is_cut_has_a_definite_answer_and_is_stored_once(self):
        with Proxy(self.postgres.port) as proxy:
            cluster = self.cluster(0)
            cluster.nodes.append(Node(os.path.join(cluster.folder, "node-0"), cluster.store.replace(
                f":{self.postgres.port}/", f":{proxy.port}/"), ("--lease", "30s")))
            cluster.start(0)
            for how in ("answered", "sent", "reset", "unsent"):
                proxy.arm(how)
                body = {"type": "t", "idempotency_key": how}
                reply = cluster.node(0).request("POST", "/v1/tasks", body)
                self.assertTrue(proxy.wait_cut(1, 60), how)
                self.assertIn(reply.status, (201, 503), reply.body)
                again = cluster.node(0).expect(200 if reply.status == 201 or how == "answered"
                                               else 201, "POST", "/v1/tasks", body)
                if reply.status == 201:
                    self.assertEqual(reply.json["id"], again["id"])
                self.assertEqual(cluster.sql("SELECT count(*) FROM tasks WHERE idempotency_key = "
                                             f"'{how}'"), [["1"]])
                proxy.cuts.clear()
            cluster.stop_all()


class Callbacks(ClusterTest):
    def test_f_a14_a_callback_of_a_task_that_ended_where_nobody_leads_is_sent_soon(self):
        told = threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()
                told.set()

            def log_message(self, *arguments):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        cluster = self.cluster(2, *CALM)
        node = cluster.others(cluster.wait_leader())[0]
        node.register("w")
        for _ in range(3):  # also when the leader has looked and found nothing
            told.clear()
            node.enqueue(callback_url=f"http://127.0.0.1:{server.server_port}/ended")
            [task] = node.claim("w", wait_ms=30000)
            node.complete("w", task)
            self.assertTrue(told.wait(20), "no callback came")  # a node without a hint looks after 60
        wait_until(lambda: cluster.sql("SELECT count(*) FROM outbox") == [["0"]],
                   what="the outbox to be empty")


if __name__ == "__main__":
    unittest.main()
