"""Both stores in lockstep, every answer checked against openapi.json, and a small oracle of the status machine
(A1, B1, B6, E1): seeded walks over the whole API, several at a time. PERDURA_SEED sets the first seed, PERDURA_STEPS how
many calls; the campaign (tests/campaign/differential.py) walks with others, and much longer.
Run: PERDURA_BUILD=build python3 -m unittest tests/postgres/test_differential.py"""
import contextlib
import ctypes
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

import harness
import lockstep
import operations
from server import Postgres, make_template, programs

STEPS = int(os.environ.get("PERDURA_STEPS", "20000"))
SEED = int(os.environ.get("PERDURA_SEED", "1"))
CALLS_PER_STORE = 2500  # small stores keep lists short
WALKS_AT_ONCE = 2 * (os.cpu_count() or 1)  # each waits for one store or the other half of the time
WORK = ("--lease", "1h", "--workers", "0")
PR_SET_PDEATHSIG = 1


def memory_folder():
    """What a disk does to commits is not asked here."""
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    return tempfile.mkdtemp(prefix="perdura-differential-", dir=place)


class Stores:
    """Two servers on fresh stores. database: a name for the one on PostgreSQL, a copy of the template's."""

    def __init__(self, url, database):
        self.url, self.database = url, database
        self.folder = memory_folder()
        self.sql(f"CREATE DATABASE {database} TEMPLATE perdura_template")
        self.servers = []
        for name, store in (("first", None), ("second", url.replace("/postgres", f"/{database}"))):
            folder = os.path.join(self.folder, name)
            os.mkdir(folder)
            server = harness.Server(folder, *WORK)
            server.store = store or server.store
            self.servers.append(server)

    def sql(self, text):
        subprocess.run([f"{programs()}/psql", "-qX", self.url, "-c", text], check=True)

    def __enter__(self):
        for server in self.servers:
            server.start()
        return lockstep.Pair(*[server.address for server in self.servers])

    def __exit__(self, *_):
        try:
            for server in self.servers:
                server.stop()
            self.sql(f"DROP DATABASE {self.database} (FORCE)")
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


def walk(plan):
    """plan: URL of the database, seed, number of calls. The calls made, and the difference or None."""
    url, seed, calls = plan
    with Stores(url, f"walk_{os.getpid()}") as pair:
        difference = None
        try:
            operations.Walk(pair, seed).run(calls)
        except lockstep.Difference as found:
            difference = str(found)
        pair.close()
        return pair.calls, difference


def end_with_parent():
    """A walk that is ended stops its servers."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


@contextlib.contextmanager
def walks(seeds, calls=CALLS_PER_STORE, at_once=WALKS_AT_ONCE):
    """The results of walk() with each of the seeds."""
    postgres = Postgres({"synchronous_commit": "off", "autovacuum": "off", "wal_level": "minimal", "max_wal_senders": "0",
                         "max_connections": 20 * at_once + 20})
    postgres.settings["unix_socket_directories"] = postgres.folder
    with postgres:
        make_template(postgres, os.environ.get("PERDURA_BUILD", str(harness.ROOT / "build")))
        url = f"postgres://perdura@{urllib.parse.quote(postgres.folder, safe='')}:{postgres.port}/postgres"
        with multiprocessing.get_context("fork").Pool(at_once, end_with_parent) as pool:
            yield pool.imap(walk, ((url, seed, calls) for seed in seeds))


class LateServer:
    """In place of the pair, when the second server hears of a task a moment later."""
    other = {"early": "frühe", "late": "späte"}

    def ask_one(self, side, *_):
        return 200, {"tasks": [{"id": ("late", "späte")[side]}]}


class Differential(unittest.TestCase):
    def test_b1_a_task_that_one_of_them_serves_a_moment_later_has_no_place(self):
        walk = operations.Walk(LateServer(), SEED)
        answers = [(200, {"tasks": [{"id": "late"}, {"id": "early"}]}), (200, {"tasks": [{"id": "frühe"}]})]
        (_, first), (_, second) = walk.claim_rest("w0", {"max": 2}, answers)
        self.assertEqual([task["id"] for task in first["tasks"]], ["late", "early"])
        self.assertEqual([task["id"] for task in second["tasks"]], ["späte", "frühe"])

    def test_a1_answers_that_differ_in_one_place_are_no_twins(self):
        pair = lockstep.Pair.__new__(lockstep.Pair)
        pair.other, pair.back, pair.cursors = {}, {}, {}
        one, two, three = (b"01a1f655-a6b9-7cd9-8000-00000000000%d" % number for number in (1, 2, 3))
        text = b'{"id":"%s","parent":"%s","at":"2026-01-0%dT00:00:00Z","n":%d,"duration_ms":%d,"error":"task %s","next_cursor":"%s"}'
        first = text % (one, one, 1, 1, 1, one, b"x")
        self.assertTrue(pair.are_twins(first, text % (two, two, 2, 1, 7, two, b"y")))
        self.assertEqual(pair.cursors, {"x": "y"})
        for other in (text % (three, two, 2, 1, 7, two, b"y"), text % (two, three, 2, 1, 7, two, b"y"),
                      text % (two, two, 2, 2, 7, two, b"y"), text % (two, two, 2, 1, 7, three, b"y"),
                      text.replace(b'"n"', b'"m"') % (two, two, 2, 1, 7, two, b"y"),
                      text.replace(b'"2026-01-0%dT00:00:00Z"', b'"%d"') % (two, two, 2, 1, 7, two, b"y"),
                      text.replace(b'"duration_ms":%d', b'"duration_ms":%d.') % (two, two, 2, 1, 7, two, b"y")):
            self.assertFalse(pair.are_twins(first, other), other)

    def test_a1_e1_both_stores_the_document_and_the_oracle_agree(self):
        done = 0
        with walks(range(SEED, SEED - (-STEPS // CALLS_PER_STORE)), min(STEPS, CALLS_PER_STORE)) as results:
            for calls, difference in results:
                done += calls
                self.assertIsNone(difference, difference)
        self.assertGreaterEqual(done, STEPS)


if __name__ == "__main__":
    unittest.main()
