"""Both stores in lockstep, every answer checked against openapi.json, and a small oracle of the status machine
(A1, B1, B6, E1): one seeded walk over the whole API. PERDURA_SEED sets the seed, PERDURA_STEPS how many calls; the campaign
(tests/campaign/differential.py) walks with others, and much longer. Run: PERDURA_BUILD=build python3 -m unittest tests/postgres/test_differential.py"""
import os
import shutil
import subprocess
import tempfile
import unittest

import harness
import lockstep
import operations
from server import Postgres, programs

STEPS = int(os.environ.get("PERDURA_STEPS", "20000"))
SEED = int(os.environ.get("PERDURA_SEED", "1"))
CALLS_PER_STORE = 2500  # small stores keep lists short
WORK = ("--lease", "1h", "--workers", "0")


def memory_folder():
    """What a disk does to commits is not asked here."""
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    return tempfile.mkdtemp(prefix="perdura-differential-", dir=place)


class Stores:
    """Two servers on fresh stores."""

    def __init__(self, postgres, schema):
        self.folder = memory_folder()
        self.servers = []
        subprocess.run([f"{programs()}/psql", "-qX", postgres.url, "-c", f"CREATE SCHEMA {schema}"], check=True)
        for name, store in (("first", None), ("second", f"{postgres.url}?options=-csearch_path%3D{schema}")):
            folder = os.path.join(self.folder, name)
            os.mkdir(folder)
            server = harness.Server(folder, *WORK)
            server.store = store or server.store
            self.servers.append(server)

    def __enter__(self):
        for server in self.servers:
            server.start()
        return lockstep.Pair(*[server.address for server in self.servers])

    def __exit__(self, *_):
        try:
            for server in self.servers:
                server.stop()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


def walk(postgres, seed, calls, name):
    """Raises lockstep.Difference. Returns how many calls were made."""
    with Stores(postgres, name) as pair:
        operations.Walk(pair, seed).run(calls)
        pair.close()
        return pair.calls


class Differential(unittest.TestCase):
    def test_a1_e1_both_stores_the_document_and_the_oracle_agree(self):
        done = 0
        with Postgres({"synchronous_commit": "off"}) as postgres:
            while done < STEPS:
                done += walk(postgres, SEED + done, min(CALLS_PER_STORE, STEPS - done), f"walk_{done}")


if __name__ == "__main__":
    unittest.main()
