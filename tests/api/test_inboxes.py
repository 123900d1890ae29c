"""Inboxes in SQLite files (A15): rows that a program writes in its own transactions become tasks, each once and in
their order; what is damaged is set aside, and what happens to the file."""
import json
import os
import signal
import sqlite3
import threading
import unittest

import harness
from harness import wait_until
from inbox_tables import sqlite_box


class SqliteInboxes(harness.ApiTest):
    wal = False
    more = ""

    def write_configuration(self):
        self.path = os.path.join(self.folder, "shop.db")
        self.box = sqlite_box(self.path, wal=self.wal)
        self.addCleanup(self.box.close)
        self.configure()
        self.server.arguments = ("--config", os.path.join(self.folder, "perdura.yaml"))

    def configure(self, more="", **others):
        lines = [f"inboxes:\n  - name: shop\n    store: sqlite:{self.path}\n{self.more}{more}"]
        lines += [f"  - name: {name}\n    store: sqlite:{path}\n" for name, path in others.items()]
        with open(os.path.join(self.folder, "perdura.yaml"), "w", encoding="utf-8") as file:
            file.write("".join(lines))

    def inbox(self, name="shop"):
        return next(item for item in self.expect(200, "GET", "/v1/inboxes")["items"] if item["name"] == name)

    def ready(self, name="shop"):
        return wait_until(lambda: self.inbox(name)["state"] == "ready" and self.inbox(name),
                          what=f"the inbox to be ready: {self.inbox(name)}")

    def fails(self, *words, name="shop"):
        wait_until(lambda: all(word in (self.inbox(name)["error"] or "") for word in words),
                   what=f"the inbox to say {words}")
        self.assertEqual((self.inbox(name)["state"], self.inbox(name)["connected"]), ("failed", False))

    def counts(self, taken, damaged):
        """A row is marked a moment before it is counted."""
        wait_until(lambda: (self.inbox()["taken"], self.inbox()["damaged"]) == (taken, damaged),
                   what=f"{taken} rows taken, {damaged} damaged: {self.inbox()}")

    def tasks(self):
        """Oldest first."""
        items, cursor = [], ""
        while cursor is not None:
            page = self.expect(200, "GET", f"/v1/tasks?limit=1000{cursor}")
            items += page["items"]
            cursor = page["next_cursor"] and f"&cursor={page['next_cursor']}"
        return items[::-1]


class FromSqlite(SqliteInboxes):
    def test_a15_a_row_becomes_the_task_it_describes(self):
        payload = '{"order" : 7,\n "item": "ü"}'
        row = self.box.put("order:confirm", payload, {"queue": "mail", "priority": 7, "tags": ["x"],
                                                      "idempotency_key": "k"})
        self.box.emptied()
        [task] = self.tasks()
        self.assertEqual(self.box.rows(), [(row, 1, task["id"], None)])
        self.assertEqual((task["type"], task["queue"], task["priority"], task["tags"], task["idempotency_key"]),
                         ("order:confirm", "mail", 7, ["x"], "k"))
        self.assertIn(payload.encode(), self.request("GET", f"/v1/tasks/{task['id']}").body)
        self.counts(1, 0)
        wait_until(lambda: self.inbox()["lag_ms"] == 0)

    def test_a15_a_worker_gets_it_while_it_waits(self):
        self.ready()
        self.register()
        for _ in range(20):
            waiting = self.in_thread(self.claim, "worker-1", 1, 30000)
            row = self.box.put()
            [task] = waiting.result()
            self.complete("worker-1", task)
            self.box.emptied()
            self.assertEqual(self.box.rows()[-1][:3], (row, 1, task["id"]))

    def test_a15_a_rollback_leaves_nothing_and_a_late_commit_comes_late(self):
        self.ready()
        for _ in range(30):
            self.box.put(commit=False)
            self.box.connection.rollback()
        first = self.box.put("late", commit=False)
        self.assertEqual(self.tasks(), [])
        self.box.connection.commit()
        self.box.emptied()
        self.assertEqual([task["type"] for task in self.tasks()], ["late"])
        self.assertEqual(self.box.rows()[0][0], first)

    def test_a15_ten_thousand_rows_keep_their_order(self):
        self.box.connection.executemany("INSERT INTO perdura_inbox (type, payload) VALUES ('t', ?)",
                                        [(json.dumps(i),) for i in range(10000)])
        self.box.connection.commit()
        self.box.emptied()
        tasks = self.tasks()
        self.assertEqual([task["payload"] for task in tasks], list(range(10000)))
        self.assertEqual([row[2] for row in self.box.rows()], [task["id"] for task in tasks])

    def test_a15_two_programs_write_while_it_takes(self):
        def write(worker):
            other = sqlite_box(self.path, wal=self.wal, make=False)
            for i in range(150):
                other.put(payload=json.dumps([worker, i]))
            other.close()

        threads = [threading.Thread(target=write, args=(worker,)) for worker in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.box.emptied()
        payloads = [task["payload"] for task in self.tasks()]
        for worker in range(2):
            self.assertEqual([i for w, i in payloads if w == worker], list(range(150)))
        self.assertEqual(len(payloads), 300)

    def test_a15_damaged_rows_are_set_aside_and_the_rest_goes_on(self):
        self.box.run("DROP TABLE @")
        self.box.run("CREATE TABLE @ (id INTEGER PRIMARY KEY, type, payload, options, created_at, taken_at, task_id, "
                     "error)")
        cases = [("t", '{"a": ', "{}", "payload is no JSON"), ("t", '1, "queue": "x"', "{}", "payload is no JSON"),
                 ("t", "{}", "[]", "options must be a JSON object"), ("t", "{}", '{"a": ', "malformed at byte 6"),
                 ("t", "{}", '{"surprise": 1}', "surprise"), (None, "{}", "{}", "no type"),
                 ("t", '{}', '{"type": "u"}', ""), ("t", "{}", '{"priority": "no"}', "priority"),
                 ("x" * 5000, "{}", "{}", "type is longer"), (b"\xff\xfe", "{}", "{}", "UTF-8"),
                 ("t", "{}", json.dumps({"metadata": {"a": "x" * 3000000}}), "larger than 2 MiB"),
                 ("t", json.dumps("x" * (64 << 20)), "{}", "larger than 1 MiB")]
        for kind, payload, options, _ in cases:
            self.box.put(kind, payload, options)
        good = [self.box.put("good", None, None), self.box.put("good", "{}", "{}")]
        self.box.emptied()
        rows = {row[0]: row for row in self.box.rows()}
        for number, (*_, words) in enumerate(cases, 1):
            self.assertEqual(rows[number][1:3], (0, None), rows[number])
            self.assertIn(words, rows[number][3])
        self.assertEqual([rows[row][3] for row in good], [None, None])
        self.assertEqual([task["type"] for task in self.tasks()], ["good", "good"])
        self.counts(2, len(cases))

    def test_a15_a_row_that_was_repaired_is_taken(self):
        row = self.box.put(options={"surprise": 1})
        self.box.emptied()
        self.box.run("UPDATE @ SET options = '{}', error = NULL WHERE id = ?", row)
        self.box.connection.commit()
        self.box.emptied()
        self.assertEqual(self.box.rows(), [(row, 1, self.tasks()[0]["id"], None)])

    def test_a15_a_key_that_clients_took_gives_the_first_task(self):
        """A row has no key that a client could take before it: only the one that its options name."""
        first = self.enqueue("t", idempotency_key="mine")
        for key in ("1", "2", "inbox:shop", "shop:1"):
            self.enqueue("t", idempotency_key=key)
        same, own = self.box.put("t", options={"idempotency_key": "mine"}), self.box.put("t")
        self.box.emptied()
        rows = {row[0]: row[2] for row in self.box.rows()}
        self.assertEqual(rows[same], first["id"])
        self.assertEqual(len(self.tasks()), 6)
        self.assertIn(rows[own], {task["id"] for task in self.tasks()})

    def test_a15_a_locked_file_is_waited_for(self):
        """Also between our commit and the mark, where readers are let in: there is one task for the row."""
        self.ready()
        self.server.process.send_signal(signal.SIGSTOP)
        self.box.put("first")
        other = sqlite3.connect(self.path, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        other.execute("INSERT INTO perdura_inbox (type) VALUES ('second')")
        self.server.process.send_signal(signal.SIGCONT)
        self.fails("locked")
        other.execute("COMMIT")
        other.close()
        self.box.emptied()
        self.assertEqual([task["type"] for task in self.tasks()], ["first", "second"])

    def test_a15_marks_that_a_trigger_keeps_out_double_nothing(self):
        self.ready()
        self.box.run("CREATE TRIGGER no BEFORE UPDATE ON @ BEGIN SELECT raise(IGNORE); END")
        self.box.put("first")
        self.fails("cannot be marked", "trigger")
        self.box.put("second")
        self.fails("cannot be marked", "trigger")
        self.assertEqual([task["type"] for task in self.tasks()], ["first"])
        self.box.run("DROP TRIGGER no")
        self.box.connection.commit()
        self.box.emptied()
        self.assertEqual([task["type"] for task in self.tasks()], ["first", "second"])

    def test_a15_another_file_in_its_place_is_read_and_nothing_is_doubled(self):
        for _ in range(3):
            self.box.put("old")
        self.box.emptied()
        fresh = sqlite_box(self.path + ".new", wal=self.wal)
        for _ in range(3): # the same ids
            fresh.put("new")
        fresh.close()
        self.box.close()
        for end in ("-wal", "-shm"):
            if os.path.exists(self.path + end):
                os.unlink(self.path + end)
        os.replace(self.path + ".new", self.path)
        self.box = sqlite_box(self.path, wal=self.wal, make=False)
        self.addCleanup(self.box.close)
        self.box.emptied()
        self.assertEqual([task["type"] for task in self.tasks()], ["old"] * 3 + ["new"] * 3)

    def test_a15_a_file_or_a_table_that_is_missing_is_said_and_found_later(self):
        other = os.path.join(self.folder, "other.db")
        self.configure(other=other)
        self.server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: len(self.expect(200, "GET", "/v1/inboxes")["items"]) == 2)
        self.fails("other.db", "No such file", name="other")
        sqlite3.connect(other).execute("CREATE TABLE perdura_inbox (id INTEGER)").connection.close()
        self.fails("is no inbox", "type", name="other")
        sqlite3.connect(other).execute("DROP TABLE perdura_inbox").connection.close()
        self.fails("there is no table", "perdura inbox sql", name="other")
        box = sqlite_box(other)
        box.put("found")
        box.emptied()
        box.close()
        self.assertEqual([task["type"] for task in self.tasks()], ["found"])
        self.ready("other")
        self.ready("shop")

    def test_a15_a_reload_takes_an_inbox_away_and_brings_it_back(self):
        self.ready()
        os.rename(os.path.join(self.folder, "perdura.yaml"), os.path.join(self.folder, "kept.yaml"))
        with open(os.path.join(self.folder, "perdura.yaml"), "w", encoding="utf-8") as file:
            file.write("inboxes: []\n")
        self.server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: not self.expect(200, "GET", "/v1/inboxes")["items"])
        self.box.put()
        os.replace(os.path.join(self.folder, "kept.yaml"), os.path.join(self.folder, "perdura.yaml"))
        self.server.process.send_signal(signal.SIGHUP)
        self.box.emptied()
        self.assertEqual(len(self.tasks()), 1)

    def test_a15_metrics_say_how_far_it_is(self):
        self.box.put()
        self.box.put(options={"surprise": 1})
        self.box.emptied()
        self.counts(1, 1)
        text = self.request("GET", "/metrics").body.decode()
        for line in ('perdura_inbox_connected{inbox="shop"} 1', 'perdura_inbox_rows_taken_total{inbox="shop"} 1',
                     'perdura_inbox_rows_damaged_total{inbox="shop"} 1', 'perdura_inbox_lag_seconds{inbox="shop"} '):
            self.assertIn(line, text)


class FromWal(FromSqlite):
    wal = True


class Limited(SqliteInboxes):
    more = "    after: delete\n    namespace: acme\n    queues: [mail, 'in-*']\n    types: ['order:*']\n"

    def test_a15_rows_go_into_the_namespace_of_the_inbox_within_its_lists_and_bounds(self):
        self.fails("acme")
        self.expect(201, "POST", "/v1/namespaces", {"name": "acme", "limits": {"waiting": 3}})
        for queue, kind in (("mail", "order:a"), ("in-1", "order:b"), ("default", "order:c"), ("mail", "other")):
            self.box.put(kind, options={"queue": queue})
        wait_until(lambda: len(self.box.rows()) == 2)
        self.assertEqual([row[3] for row in self.box.rows()], ["the configuration of this inbox lists other queues",
                                                               "the configuration of this inbox lists other types"])
        self.assertEqual(self.tasks(), [])
        in_acme = {"Perdura-Namespace": "acme"}
        tasks = self.expect(200, "GET", "/v1/tasks", headers=in_acme)["items"]
        self.assertEqual([task["type"] for task in tasks], ["order:b", "order:a"])
        for _ in range(3): # the bound lets one of them in
            self.box.put("order:d", options={"queue": "mail"})
        wait_until(lambda: len(self.box.rows()) == 4)
        for task in tasks:
            self.expect(200, "POST", f"/v1/tasks/{task['id']}:cancel", {}, headers=in_acme)
        wait_until(lambda: len(self.box.rows()) == 2)


if __name__ == "__main__":
    unittest.main()
