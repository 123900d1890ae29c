"""The store and the process's own resources at their end: a second server (F-D8), a full or
read-only disk (F-D1, F-D9), a disk that errs (F-D3, F-D4), a foreign lock or reader (F-D7, F-D12),
a deleted file (F-D10), a network file system (F-D11), no descriptors left (F-D15). Service is back
by itself within HEAL_S of the end of a fault (V10). Calls that a real disk fails too rarely are
failed by failing_calls.c, which is loaded before the C library."""
import atexit
import functools
import http.client
import os
import pathlib
import resource
import shutil
import socket
import sqlite3
import subprocess
import tempfile
import time
import unittest

import harness
from crash_harness import CrashTest, cpu_s, pause_s, plain_binary, wait_until

HEAL_S = 15  # generous: the machine may be busy
HERE = pathlib.Path(__file__).resolve().parent
BROKEN = (OSError, http.client.HTTPException)


@functools.lru_cache(maxsize=1)
def failing_calls():
    """The library for LD_PRELOAD, built once."""
    folder = tempfile.mkdtemp(prefix="perdura-calls-")
    atexit.register(shutil.rmtree, folder, True)
    path = os.path.join(folder, "failing_calls.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-D_GNU_SOURCE",
                    str(HERE / "failing_calls.c"), "-o", path], check=True)
    return path


def preload(**orders):
    return {"LD_PRELOAD": failing_calls(), **orders}


can_preload = unittest.skipIf(harness.sanitizer(), "a sanitizer wants to be loaded first")


def refused_start(store):
    """Exit code and lines of a server that cannot start."""
    done = subprocess.run([plain_binary(), "serve", "--listen", "127.0.0.1:0", "--store", store],
                          capture_output=True, text=True, timeout=120)
    return done.returncode, done.stderr.strip().splitlines()


class SecondServer(CrashTest):
    def test_f_d8_a_second_server_on_the_same_file_is_refused_and_told_the_holders_pid(self):
        self.start()
        code, lines = refused_start(self.server.store)
        self.assertNotEqual(code, 0)
        self.assertEqual(len(lines), 1, lines)
        self.assertIn(str(self.server.pid), lines[0])
        self.enqueue()  # the first one is none the worse
        self.server.kill()
        self.start()  # a dead holder holds nothing
        self.assertEqual(len(self.all_tasks()), 1)


class Disks(CrashTest):
    def mount(self, size):
        path = os.path.join(self.folder, "disk")
        os.mkdir(path)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", path],
                              capture_output=True, text=True)
        if done.returncode != 0:
            self.skipTest("cannot mount a small file system here: " + done.stderr.strip())
        self.addCleanup(subprocess.run, ["umount", "-l", path], check=True)
        self.addCleanup(self.end_server)  # before the disk goes
        return path

    def test_f_d9_on_a_read_only_file_system_it_does_not_start_and_says_why(self):
        path = self.mount("4m")
        subprocess.run(["mount", "-o", "remount,ro", path], check=True)
        code, lines = refused_start(os.path.join(path, "perdura.db"))
        self.assertNotEqual(code, 0)
        self.assertEqual(len(lines), 1, lines)
        self.assertIn("Read-only", lines[0])

    def test_f_d9_f_d1_without_space_it_refuses_new_tasks_ends_running_ones_and_heals(self):
        path = self.mount("24m")
        self.server.store = os.path.join(path, "perdura.db")
        self.start(lease="30s")
        self.register()
        self.enqueue("held")
        held = self.claim()[0]
        acknowledged = [held["id"]]
        filler = os.path.join(path, "filler")
        self.fill(filler)

        def is_full():
            """A checkpoint may make room once more after the first refusal."""
            reply = self.request("POST", "/v1/tasks", {"type": "t", "payload": "x" * 200000})
            if reply.status == 201:
                acknowledged.append(reply.json["id"])
                return False
            self.assertEqual((reply.status, reply.json["error"]["code"]), (507, "storage_full"))
            return self.request("GET", "/readyz").status == 503

        wait_until(is_full, what="a full disk")
        self.assertEqual(self.request("GET", "/healthz").status, 200)
        self.assertEqual(self.task(held["id"])["id"], held["id"])
        self.complete("worker-1", held)
        os.unlink(filler)
        wait_until(lambda: self.request("POST", "/v1/tasks", {"type": "t"}).status == 201, HEAL_S,
                   "new tasks accepted again")  # V10
        wait_until(lambda: self.request("GET", "/readyz").status == 200, HEAL_S, "ready again")
        self.restart()
        stored = {t["id"] for t in self.all_tasks()}
        self.assertEqual([i for i in acknowledged if i not in stored], [])
        self.assertEqual(self.task(held["id"])["status"], "completed")

    def fill(self, filler):
        def opened():
            try:
                return open(filler, "wb")
            except OSError:
                return None  # the server just uses all of it

        with wait_until(opened, what="room for a file") as file:
            try:
                while True:
                    file.write(b"\0" * 65536)
                    file.flush()
            except OSError:
                pass
        os.truncate(filler, max(0, os.path.getsize(filler) - 3 * 1024 * 1024))


@can_preload
class FailingCalls(CrashTest):
    """The server's own calls fail while FAIL_CALLS names a file that says which."""

    def start_failing(self, **options):
        self.orders = os.path.join(self.folder, "orders")
        self.start("--workers", "0", environment=preload(FAIL_CALLS=self.orders), **options)

    def order(self, text):
        whole = self.orders + ".new"
        pathlib.Path(whole).write_text(text)
        os.replace(whole, self.orders)

    def heal(self):
        os.unlink(self.orders)

    def post(self):
        return self.request("POST", "/v1/tasks", {"type": "t", "payload": "x" * 3000})

    def test_f_d9_a_store_that_became_read_only_refuses_reads_on_and_heals(self):
        self.start_failing(lease="30s")
        kept = [self.enqueue()["id"] for _ in range(3)]
        for _ in range(3):
            self.order("write EROFS 0 *")
            for _ in range(3):
                reply = self.post()
                self.assertEqual((reply.status, reply.json["error"]["code"]),
                                 (507, "storage_full"), self.server.log())
            self.assertEqual(self.request("GET", "/readyz").status, 503)
            self.assertEqual(self.request("GET", "/healthz").status, 200)
            self.assertEqual(self.task(kept[0])["status"], "pending")
            self.heal()
            wait_until(lambda: self.post().status == 201, HEAL_S, "new tasks accepted again")  # V10
            wait_until(lambda: self.request("GET", "/readyz").status == 200, HEAL_S, "ready again")
        self.restart()
        stored = {t["id"] for t in self.all_tasks()}
        self.assertEqual([i for i in kept if i not in stored], [])

    def test_f_d3_a_failed_sync_ends_the_server_and_loses_nothing_acknowledged(self):
        self.start_failing()
        kept = [self.enqueue()["id"] for _ in range(3)]
        self.order("sync EIO 1 -wal")
        try:
            self.assertGreaterEqual(self.post().status, 500)
        except BROKEN:
            pass  # it may end before it answers
        self.assertGreater(self.server.wait(), 0, self.server.log())
        self.assertIn("store.failed", self.server.log())
        began = time.monotonic()
        self.start()
        stored = {t["id"] for t in self.all_tasks()}
        self.assertLess(time.monotonic() - began, 30)
        self.assertEqual([i for i in kept if i not in stored], [])
        self.enqueue()

    def test_f_d4_a_page_that_cannot_be_read_fails_one_request_and_the_rest_goes_on(self):
        self.start("--workers", "0")
        kept = [self.enqueue(payload="y" * 2000)["id"] for _ in range(400)]

        def one_fails():
            answers = [self.request("GET", f"/v1/tasks/{i}") for i in kept]
            bad = [a for a in answers if a.status != 200]
            self.assertLessEqual(len(bad), 1)
            for answer in bad:
                self.assertEqual((answer.status, answer.json["error"]["code"]),
                                 (500, "storage_error"))
            return bad

        for _ in range(5):  # a chore of the server's own may meet it before a request does
            self.server.kill(signum=15)
            self.start_failing(lease="30s")
            for _ in range(20):  # the chores of the start are done by then
                self.enqueue()
            self.order("read EIO 1 .db")
            if one_fails():
                break
            self.heal()
        else:
            self.fail("no request met the bad page")
        self.enqueue()
        self.assertEqual(self.expect(200, "GET", "/readyz")["status"], "degraded")
        self.assertEqual(self.request("GET", "/healthz").status, 200)
        self.heal()
        self.assertFalse(one_fails())

    def test_f_d2_a_checkpoint_without_space_makes_the_log_longer_and_nothing_worse(self):
        self.start_failing()
        self.order("write ENOSPC 0 .db")
        kept = [self.enqueue(payload="z" * 900000)["id"] for _ in range(6)]
        wait_until(lambda: "store.checkpoint_failed" in self.server.log(), what="the warning")
        kept += [self.enqueue()["id"] for _ in range(3)]
        self.heal()
        kept.append(self.enqueue()["id"])
        self.restart()
        stored = {t["id"] for t in self.all_tasks()}
        self.assertEqual([i for i in kept if i not in stored], [])

    def test_f_d11_a_network_file_system_is_refused_unless_allowed(self):
        for kind, name in (("6969", "NFS"), ("FF534D42", "CIFS"), ("01021997", "9p"),
                           ("FE534D42", "SMB"), ("0BD00BD0", "Lustre"), ("00C36400", "Ceph")):
            environment = {**os.environ, **preload(FAIL_STATFS=kind)}
            done = subprocess.run([plain_binary(), "serve", "--listen", "127.0.0.1:0", "--store",
                                   self.server.store], capture_output=True, text=True, timeout=120,
                                  env=environment)
            self.assertNotEqual(done.returncode, 0)
            lines = done.stderr.strip().splitlines()
            self.assertEqual(len(lines), 1, lines)
            self.assertIn(name, lines[0])
            self.assertIn("--allow-network-fs", lines[0])
            self.assertFalse(os.path.exists(self.server.store))
        self.start("--allow-network-fs", environment=preload(FAIL_STATFS="6969"))
        self.enqueue()


class Foreigners(CrashTest):
    def test_f_d7_a_foreign_lock_is_waited_for_then_answered_with_503_and_passes(self):
        self.start(lease="30s")
        self.enqueue()
        foreign = sqlite3.connect(self.server.store, isolation_level=None)
        self.addCleanup(foreign.close)
        foreign.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        reply = self.request("POST", "/v1/tasks", {"type": "t"})
        took = time.monotonic() - began
        self.assertEqual((reply.status, reply.json["error"]["code"]), (503, "unavailable"))
        self.assertIsNotNone(reply.headers["Retry-After"])
        self.assertGreater(took, 4)
        self.assertLess(took, 60)
        self.assertEqual(len(self.all_tasks()), 1)  # reads continue
        foreign.execute("COMMIT")
        self.enqueue()
        self.assertEqual(len(self.all_tasks()), 2)

    def test_f_d12_a_reader_that_stays_is_shown_and_the_log_is_bounded_once_it_left(self):
        self.start("--workers", "0")
        self.enqueue()
        foreign = sqlite3.connect(f"file:{self.server.store}?mode=ro", uri=True,
                                  isolation_level=None)
        foreign.execute("BEGIN")
        foreign.execute("SELECT count(*) FROM task_specs").fetchone()
        log = self.server.store + "-wal"

        def pages():
            text = self.request("GET", "/metrics").body.decode()
            return next(int(line.split()[1]) for line in text.splitlines()
                        if line.startswith("perdura_store_log_pages "))

        def write(count):
            for _ in range(count):
                self.enqueue(payload="p" * 500000)

        write(20)
        wait_until(lambda: pages() > 1000, what="the log that grows")
        pause_s(0.3)  # checkpoints run when nothing else does
        self.assertGreater(pages(), 1000)
        held_bytes = os.path.getsize(log)
        foreign.close()
        write(1)
        wait_until(lambda: pages() < 1000, what="the log is in the file")
        for _ in range(6):
            write(10)
            wait_until(lambda: pages() < 1000, what="the log is in the file again")
        self.assertLess(os.path.getsize(log), held_bytes + 12 * 1024 * 1024)


class VanishedFile(CrashTest):
    def end_server(self):
        self.server.kill()
        self.server.close()

    def stops(self):
        self.assertGreater(self.server.wait(), 0, self.server.log())
        self.assertIn("deleted or replaced", self.server.log())

    def test_f_d10_a_deleted_file_stops_the_server(self):
        self.start()
        self.enqueue()
        os.unlink(self.server.store)
        self.stops()

    def test_f_d10_a_replaced_file_stops_the_server_and_is_not_written(self):
        self.start()
        self.enqueue()
        other = self.server.store + ".other"
        pathlib.Path(other).write_bytes(b"not a store")
        os.replace(other, self.server.store)
        self.stops()
        self.assertEqual(pathlib.Path(self.server.store).read_bytes(), b"not a store")


class Backups(CrashTest):
    def test_f_d14_a_backup_under_load_restored_has_all_before_it_and_refuses_old_tokens(self):
        self.start(lease="30s")
        self.register()
        self.enqueue("held")
        held = self.claim()[0]
        before = [held["id"]] + [self.enqueue(payload="b" * 5000)["id"] for _ in range(300)]
        stopping = []

        def produce():
            while not stopping:
                self.enqueue(payload="l" * 2000)

        producers = [self.in_thread(produce) for _ in range(3)]
        copy = os.path.join(self.folder, "copy.db")
        try:
            done = subprocess.run([plain_binary(), "backup", copy, "--server",
                                   "http://%s:%d" % self.server.address], capture_output=True,
                                  text=True, timeout=120)
        finally:
            stopping.append(True)
        for producer in producers:
            producer.result()
        self.assertEqual(done.returncode, 0, done.stderr)
        since = self.complete("worker-1", held)
        self.assertTrue(since["ok"])
        self.server.kill()
        self.server.store = copy
        self.start(lease="30s")
        stored = {t["id"]: t for t in self.all_tasks()}
        self.assertEqual([i for i in before if i not in stored], [])
        item = self.report("worker-1", self.element(held, "complete"))[0]
        self.assertFalse(item["ok"], item)
        self.assertEqual(item["error"]["code"], "stale_lease")
        self.assertNotEqual(self.task(held["id"])["status"], "completed")


@unittest.skipIf(os.environ.get("PERDURA_COVERAGE"), "gcov needs memory when a process ends")
@can_preload
class NoMemory(CrashTest):
    """F-D16: the n-th allocation of the whole process fails, its libraries included."""

    def drive(self):
        """Requests of every kind; the ids of tasks that were acknowledged, and those that ended."""
        kept, ended = [], []

        def ask(status, method, path, body=None):
            """The answer with that status, else None."""
            try:
                reply = self.request(method, path, body)
            except BROKEN:
                return None
            return reply.json if reply.status == status else None

        worker = ask(201, "POST", "/v1/workers", {"hostname": "h", "pool_size": 4,
                                                  "queues": ["default"]})
        for turn in range(6):
            reply = ask(201, "POST", "/v1/tasks",
                        [{"type": "t", "payload": {"turn": turn, "i": i}, "tags": ["x"],
                          "idempotency_key": f"{turn}-{i}"} for i in range(3)])
            kept += [t["id"] for t in reply["items"]] if reply else []
            claimed = worker and ask(200, "POST", f"/v1/workers/{worker['id']}:claim", {"max": 2})
            for task in claimed["tasks"] if claimed else ():
                told = ask(200, "POST", f"/v1/workers/{worker['id']}:report",
                           [self.element(task, "start"), self.element(task, "log", message="m"),
                            self.element(task, "complete", result={"of": task["id"]})])
                if told and told["items"][2]["ok"]:
                    ended.append(task["id"])
            ask(200, "GET", "/v1/tasks?limit=5")
            ask(200, "GET", "/v1/stats")
            ask(0, "GET", "/metrics")
        return kept, ended

    def life(self, order):
        """One server with that failure, and the check of what it acknowledged; tasks of it."""
        count = os.path.join(self.folder, "count")
        kept, ended = [], []
        try:
            self.start(environment=preload(FAIL_MALLOC=order, FAIL_MALLOC_COUNT=count))
            kept, ended = self.drive()
        except AssertionError:
            pass  # it did not start
        code = self.server.kill(signum=15)
        self.assertGreaterEqual(code, 0, f"FAIL_MALLOC={order}: {self.server.log()}")
        self.start()
        for task_id in kept:
            self.assertEqual(self.request("GET", f"/v1/tasks/{task_id}").status, 200, order)
        for task_id in ended:
            task = self.task(task_id)
            self.assertEqual((task["status"], task["result"]), ("completed", {"of": task_id}))
        self.assert_verified()
        self.server.kill()
        for suffix in ("", "-wal", "-shm"):
            pathlib.Path(self.server.store + suffix).unlink(missing_ok=True)
        return len(kept)

    def total(self):
        """Allocations of a life in which none fails."""
        self.life("0")
        return int(pathlib.Path(self.folder, "count").read_text())

    def test_f_d16_a_server_without_memory_answers_or_exits_and_keeps_what_it_acknowledged(self):
        total = self.total()
        self.assertGreater(total, 1000)
        for i in range(6):
            self.life(str(total * (2 * i + 1) // 12))
            self.life(f"{total * (i + 4) // 12}+")


class NoDescriptors(CrashTest):
    def test_f_d15_a_flood_of_connections_beyond_the_limit_costs_no_cpu_and_nobody_else(self):
        limit = 128

        def lower():
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))

        self.start(preexec=lower)
        self.enqueue()  # opens this thread's connection, before the flood
        flood = []
        self.addCleanup(lambda: [s.close() for s in flood])
        for _ in range(3 * limit):
            sock = socket.socket()
            sock.setblocking(False)
            sock.connect_ex(self.server.address)
            flood.append(sock)
        self.assertEqual(self.healthz(), 200)  # newcomers displace the oldest that say nothing
        self.assertLess(len(os.listdir(f"/proc/{self.server.pid}/fd")), limit)
        pause_s(0.3)
        cpu_before, wall_before = cpu_s(self.server.pid), time.monotonic()
        pause_s(2)
        cpu = (cpu_s(self.server.pid) - cpu_before) / (time.monotonic() - wall_before)
        self.assertLess(cpu, 0.05, "it spins")
        self.enqueue()
        self.assertEqual(len(self.all_tasks()), 2)
        for sock in flood:
            sock.close()
        started = time.monotonic()
        self.assertEqual(self.healthz(), 200)
        self.assertLess(time.monotonic() - started, 30)

    def healthz(self):
        connection = self.connection()
        connection.request("GET", "/healthz")
        status = connection.getresponse().status
        connection.close()
        return status


if __name__ == "__main__":
    unittest.main()
