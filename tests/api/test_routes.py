"""Queues in a store of their own (C8) with two SQLite files: the cases of routes_cases.py, and what
belongs to files: old tasks of a queue that is routed elsewhere later, stores that cannot be opened,
webhooks, backups."""
import http.server
import os
import signal
import subprocess
import threading
import unittest

import harness
from harness import wait_until
from routes_cases import QUEUES, CommonRoutes, PoolRoutes, RoutesCases


class TwoFiles:
    def mail_store(self):
        return os.path.join(self.folder, "mail.db")


class SqliteRoutes(TwoFiles, CommonRoutes):
    pass


class SqlitePool(TwoFiles, PoolRoutes):
    pass


class Files(TwoFiles, RoutesCases):
    def test_c8_tasks_from_before_a_queue_was_routed_are_worked_off_where_they_are(self):
        self.server.stop()
        arguments = self.server.arguments
        self.server.arguments = arguments[2:]  # no configuration: mail is in the main store
        self.server.start()
        old = self.enqueue(queue="mail")["id"]
        self.server.stop()
        self.server.arguments = arguments
        self.server.start()
        new = self.enqueue(queue="mail")["id"]
        mail = self.expect(200, "GET", "/v1/tasks?queue=mail")["items"]
        self.assertEqual([task["id"] for task in mail], [new, old])
        queue = self.expect(200, "GET", "/v1/queues/mail")
        self.assertEqual(queue["counts"]["pending"], 2)
        lanes = [x for x in self.expect(200, "GET", "/v1/stats")["lanes"] if x["queue"] == "mail"]
        self.assertEqual([(x["status"], x["tasks"]) for x in lanes], [("pending", 2)])
        self.expect(200, "POST", "/v1/queues/mail:pause")
        self.register(queues=["mail"])
        self.assertEqual(self.claim(max=10, queues=["mail"]), [])
        self.expect(200, "POST", "/v1/queues/mail:resume")
        tasks = self.claim(max=10, queues=["mail"]) + self.claim(max=10, queues=["mail"])
        self.assertCountEqual([task["id"] for task in tasks], [old, new])
        for task in tasks:
            self.complete("worker-1", task)

    def test_c8_a_routed_store_that_cannot_be_opened_stops_the_start_with_its_name(self):
        self.server.stop()
        with open(self.mail_store(), "wb") as file:
            file.write(b"not a database" * 1000)
        done = subprocess.run([harness.binary(), "serve", "--listen", "127.0.0.1:0", "--store",
                               self.server.store, *self.server.arguments], cwd=self.folder,
                              capture_output=True, text=True, timeout=harness.DEADLINE_S,
                              check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("mail.db' that queues are routed to cannot be opened", done.stderr)

    def test_c8_a_routed_file_that_is_taken_away_stops_its_queues_and_nothing_else(self):
        mail = self.enqueue(queue="mail")["id"]
        self.register(queues=QUEUES)
        os.rename(self.mail_store(), self.mail_store() + ".away")
        wait_until(lambda: self.request("POST", "/v1/tasks", {"type": "a", "queue": "mail"})
                   .status == 503, what="its queue refused")
        task_id = self.enqueue()["id"]
        task, = self.claim(wait_ms=30000)
        self.assertEqual(task["id"], task_id)
        self.complete("worker-1", task)
        self.assertEqual(self.task(task_id)["status"], "completed")
        self.expect_error(503, "unavailable", "GET", f"/v1/tasks/{mail}")
        self.assertEqual(self.expect(200, "GET", "/readyz")["status"], "degraded")
        self.server.stop()
        os.rename(self.mail_store() + ".away", self.mail_store())
        self.server.start()
        self.assertEqual(self.task(mail)["status"], "pending")

    def test_c8_a_backup_of_several_stores_is_made_of_each_alone(self):
        self.enqueue_both()
        error = self.expect_error(409, "conflict", "POST", "/v1/backup",
                                  {"name": "copy.db"})
        self.assertIn("perdura backup --store", error["message"])
        for name in ("perdura.db", "mail.db"):
            subprocess.run([harness.binary(), "backup", "--store", name, f"copy-{name}"],
                           cwd=self.folder, check=True, stdout=subprocess.DEVNULL)
            self.assertTrue(os.path.exists(os.path.join(self.folder, f"copy-{name}")))

    def test_c8_verify_and_doctor_look_at_every_store(self):
        self.enqueue_both()
        for command in ("verify", "doctor"):
            done = subprocess.run([harness.binary(), command, "--config", self.config, "--store",
                                   self.server.store], cwd=self.folder, capture_output=True,
                                  text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("mail.db" if command == "doctor" else "2 tasks", done.stdout)

    def test_c8_a_purge_removes_what_a_user_has_in_both(self):
        self.register(queues=QUEUES)
        for queue in QUEUES:
            self.enqueue(queue=queue, user_id="u1")
        for task in self.claim_both("worker-1"):
            self.complete("worker-1", task)
        self.assertEqual(self.expect(200, "DELETE", "/v1/tasks?user_id=u1")["removed"], 2)
        self.assertEqual(self.expect(200, "GET", "/v1/tasks")["items"], [])


class Webhooks(TwoFiles, RoutesCases):
    """Callbacks come from the outbox of either store, signed with the same secret."""

    def setUp(self):
        self.told = []
        test = self

        class Receiver(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                test.told.append(self.path)
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        threading.Thread(target=self.receiver.serve_forever, daemon=True).start()
        self.addCleanup(self.receiver.server_close)
        self.addCleanup(self.receiver.shutdown)
        self.url = f"http://127.0.0.1:{self.receiver.server_port}"
        self.handlers = f"callbacks:\n  allow: [\"{self.url}\"]\n"
        super().setUp()

    def test_c8_callbacks_of_both_stores_are_sent(self):
        self.register(queues=QUEUES)
        for queue in QUEUES:
            self.enqueue(queue=queue, callback_url=f"{self.url}/{queue}")
        for task in self.claim_both("worker-1"):
            self.complete("worker-1", task)
        wait_until(lambda: sorted(self.told) == ["/default", "/mail"], what="both callbacks")


class Refusals(unittest.TestCase):
    def test_c8_a_dead_letter_queue_in_another_store_is_refused_at_the_start(self):
        folder = harness.tempfile.mkdtemp(prefix="perdura-routes-")
        self.addCleanup(harness.shutil.rmtree, folder)
        with open(os.path.join(folder, "perdura.yaml"), "w", encoding="utf-8") as file:
            file.write("queues:\n  - name: mail\n    store: mail.db\n    dead_letter_queue: dead\n")
        done = subprocess.run([harness.binary(), "serve", "--listen", "127.0.0.1:0"], cwd=folder,
                              capture_output=True, text=True, timeout=harness.DEADLINE_S,
                              check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("must live in the same store", done.stderr)


del CommonRoutes, PoolRoutes, RoutesCases  # run by the classes above only

if __name__ == "__main__":
    unittest.main()
