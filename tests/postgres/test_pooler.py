"""PgBouncer in transaction mode, the real one, between the nodes and PostgreSQL (`pooler:
transaction`): every statement may go over another connection of the server."""
import json
import os
import pathlib
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.request

from server import Postgres, free_port

BUILD = pathlib.Path(os.environ.get("PERDURA_BUILD", "build"))


class Pooler:
    def __init__(self, postgres, user="perdura", size=6):
        self.folder = tempfile.mkdtemp(prefix="perdura-pooler-")
        self.port = free_port()
        self.url = f"postgres://{user}@127.0.0.1:{self.port}/postgres"
        path = pathlib.Path(self.folder, "pgbouncer.ini")
        path.write_text(f"[databases]\npostgres = host=127.0.0.1 port={postgres.port} "
                        f"dbname=postgres user={user}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
                        f"listen_port = {self.port}\nauth_type = any\npool_mode = transaction\n"
                        f"default_pool_size = {size}\nunix_socket_dir =\n")
        user = {}
        if os.geteuid() == 0:
            entry = pwd.getpwnam("postgres")
            os.chown(self.folder, entry.pw_uid, entry.pw_gid)
            user = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        self.process = subprocess.Popen([shutil.which("pgbouncer") or "/usr/sbin/pgbouncer", "-q",
                                         str(path)], stderr=subprocess.DEVNULL, **user)

    def __enter__(self):
        end = time.monotonic() + 90
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 10).close()
                return self
            except OSError:
                if time.monotonic() > end or self.process.poll() is not None:
                    self.__exit__()
                    raise
                time.sleep(0.05)

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Node:
    def __init__(self, url, folder):
        self.port = free_port()
        config = pathlib.Path(folder, "perdura.yaml")
        config.write_text("pooler: transaction\n")
        self.process = subprocess.Popen([BUILD / "perdura", "serve", "--config", config, "--store",
                                         url, "--listen", f"127.0.0.1:{self.port}"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 90
        while True:
            try:
                self.ask("GET", "/v1/stats")
                return
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def ask(self, method, path, body=None):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method=method,
                                         data=None if body is None else json.dumps(body).encode(),
                                         headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or b"null")

    def stop(self):
        self.process.terminate()
        self.process.wait()


class TransactionMode(unittest.TestCase):
    def test_two_nodes_behind_a_pooler_do_what_two_nodes_do(self):  # E1, E2, A1
        with Postgres() as postgres, Pooler(postgres) as pooler, \
                tempfile.TemporaryDirectory() as folder:
            nodes = [Node(pooler.url, folder), Node(pooler.url, folder)]
            try:
                self.work(nodes)
            finally:
                for node in nodes:
                    node.stop()
            done = subprocess.run([BUILD / "perdura", "verify", "--store",
                                   postgres.url + "?options=-csearch_path%3Dpublic"],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def work(self, nodes):
        for at, node in enumerate(nodes):
            node.ask("POST", "/v1/tasks", [{"type": "t", "payload": {"n": n},
                                            "idempotency_key": f"{at}-{n}"} for n in range(100)])
        worker = nodes[0].ask("POST", "/v1/workers", {"queues": ["default"]})["id"]
        seen = set()
        turn = 0
        while len(seen) < 200:
            node = nodes[turn % 2]
            turn += 1
            claimed = node.ask("POST", f"/v1/workers/{worker}:claim",
                               {"max": 30, "wait_ms": 10000})["tasks"]
            self.assertTrue(claimed or turn < 50)
            for task in claimed:
                self.assertNotIn(task["id"], seen)
                seen.add(task["id"])
            other = nodes[turn % 2]
            other.ask("POST", f"/v1/workers/{worker}:report", [
                {"task_id": task["id"], "lease_token": task["lease_token"], "seq": 1,
                 "op": "complete", "result": 1} for task in claimed])
        counts = nodes[1].ask("GET", "/v1/stats")["counts"]
        self.assertEqual(counts.get("completed"), 200)


if __name__ == "__main__":
    unittest.main()
