"""The store and the process's own resources at their end: a second server (F-D8), a read-only or
full file system (F-D9, F-D1), no descriptors left (F-D15)."""
import os
import resource
import socket
import subprocess
import time
import unittest

from crash_harness import CrashTest, cpu_s, pause_s, plain_binary, wait_until


def refused_start(store):
    """Exit code and lines of a server that cannot start."""
    done = subprocess.run([plain_binary(), "serve", "--listen", "127.0.0.1:0", "--store", store],
                          capture_output=True, text=True, timeout=20)
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
        wait_until(lambda: self.request("POST", "/v1/tasks", {"type": "t"}).status == 201, 15,
                   "new tasks accepted again")
        wait_until(lambda: self.request("GET", "/readyz").status == 200, 15, "ready again")
        self.restart()
        stored = {t["id"] for t in self.all_tasks()}
        self.assertEqual([i for i in acknowledged if i not in stored], [])
        self.assertEqual(self.task(held["id"])["status"], "completed")

    def fill(self, filler):
        with open(filler, "wb") as file:
            try:
                while True:
                    file.write(b"\0" * 65536)
                    file.flush()
            except OSError:
                pass
        os.truncate(filler, max(0, os.path.getsize(filler) - 3 * 1024 * 1024))


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
        wait_until(lambda: "accept_backoff" in self.server.log() or
                   len(os.listdir(f"/proc/{self.server.pid}/fd")) >= limit - 8, 10,
                   "the descriptors used up")
        pause_s(0.3)
        cpu_before, wall_before = cpu_s(self.server.pid), time.monotonic()
        pause_s(2)
        cpu = (cpu_s(self.server.pid) - cpu_before) / (time.monotonic() - wall_before)
        self.assertLess(cpu, 0.05, "it spins")
        self.enqueue()  # the connection from before lives
        self.assertEqual(len(self.all_tasks()), 2)
        for sock in flood:
            sock.close()
        started = time.monotonic()
        connection = self.connection(timeout=10)
        connection.request("GET", "/healthz")
        self.assertEqual(connection.getresponse().status, 200)
        connection.close()
        self.assertLess(time.monotonic() - started, 5)


if __name__ == "__main__":
    unittest.main()
