"""Services across the nodes of one database: URLs and JWTs of one node count at all, and what a worker
at one node finds out holds up those at the others (D10, D13, E2)."""
import pathlib
import subprocess
import unittest

from cluster import CALM, ClusterTest, begin_module
from harness import binary, wait_until


def setUpModule():
    begin_module()


class Services(ClusterTest):
    def test_d10_an_attempt_that_one_node_granted_is_ended_at_another(self):
        a, b = self.cluster(2, *CALM).nodes
        keys = a.expect(200, "GET", "/v1/identity/jwks.json")
        self.assertEqual(keys, b.expect(200, "GET", "/v1/identity/jwks.json"))
        self.assertEqual(len(keys["keys"]), 1)
        task = a.enqueue("call", timeout_ms=60000)
        a.register("w", types=["call"])
        [claimed] = a.claim("w", types=["call"], services=["orders"])
        self.assertEqual(len(claimed["identity"].split(".")), 3)
        a.report_ok("w", claimed, "await", name="orders")
        self.assertEqual(b.task(task["id"])["worker_id"], "service:orders")
        path = f"/v1/completions/{claimed['complete_token']}"
        b.expect(204, "POST", path, {"progress": 30})
        self.assertEqual(a.task(task["id"])["progress"], 30)
        b.expect(204, "POST", path, {"result": {"at": "b"}})
        a.expect(204, "POST", path, {"result": {"at": "b"}})
        a.expect_error(409, "conflict", "POST", path, {"result": {"at": "a"}})
        ended = a.task(task["id"])
        self.assertEqual((ended["status"], ended["result"]), ("completed", {"at": "b"}))

    def test_f_j10_nodes_that_start_at_once_make_one_secret_of_an_encrypted_store(self):
        folder = self.temporary_folder()
        key, config = f"{folder}/k1", pathlib.Path(folder, "perdura.yaml")
        subprocess.run([binary(), "key", "add", "k1", "--file", key], check=True, capture_output=True)
        config.write_text(f"encryption:\n  keys:\n    - {{id: k1, file: {key}}}\n  current: k1\n")
        cluster = self.cluster(4, "--config", str(config), *CALM)
        shown = [node.expect(200, "GET", "/v1/identity/jwks.json") for node in cluster.nodes]
        self.assertEqual(shown, shown[:1] * 4)
        cluster.stop_all()
        cluster.start_all()
        self.assertEqual(cluster.node(3).expect(200, "GET", "/v1/identity/jwks.json"), shown[0])

    def test_d13_an_awaited_task_outlives_worker_and_node(self):
        a, b = self.cluster(2, "--lease", "2s", "--leader-lease", "2s").nodes
        task = a.enqueue("call", timeout_ms=120000)
        a.register("w", types=["call"])
        [claimed] = a.claim("w", types=["call"], services=["orders"])
        a.report_ok("w", claimed, "await", name="orders")
        a.end(9)
        b.register("other", types=["other"])
        lost = b.enqueue("other", max_crashes=5)
        b.claim("other", types=["other"])
        wait_until(lambda: b.task(lost["id"])["status"] != "claimed", what="leases are looked at")
        self.assertEqual(b.task(task["id"])["status"], "running")
        b.expect(204, "POST", f"/v1/completions/{claimed['complete_token']}", {"result": 1})
        self.assertEqual(b.task(task["id"])["attempts"], 1)

    def test_d13_what_a_worker_learns_of_a_service_is_known_at_the_other_node(self):
        a, b = self.cluster(2, *CALM).nodes
        a.register("w1")
        b.register("w2")
        a.expect(200, "POST", "/v1/workers/w1:heartbeat",
                 {"holds": [{"service": "orders", "wait_ms": 600000, "is_down": True}]})

        def heard():
            holds = b.expect(200, "POST", "/v1/workers/w2:heartbeat", {"holds": []}).get("holds")
            return holds and holds[0]
        hold = wait_until(heard, what="the other node knows it")
        self.assertEqual((hold["service"], hold["is_down"]), ("orders", True))
        self.assertTrue(500000 < hold["wait_ms"] <= 600001, hold)


if __name__ == "__main__":
    unittest.main()
