"""perdura copy: a store moves from SQLite to PostgreSQL and back with everything it holds. What the
API shows is the same before and after, workers continue under the leases they have, the next run
continues a copy that was killed, and what cannot be copied is refused."""
import json
import os
import pty
import random
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
import unittest

import harness
from cluster import Node
from server import Postgres

POSTGRES = None
STATUSES = {"pending", "claimed", "running", "completed", "delayed", "blocked", "paused",
            "orphaned", "recovering", "partial", "failed", "dead_letter", "cancelled"}
# What a start changes: workers get a lease to come back, and a claim that was not started is
# doubted by a node that owns its store alone.
OF_THE_START = ("lease_until", "last_heartbeat")
LONG_LEASE = ("--lease", "10m")  # a busy machine must not lose the workers
PARTS = ("events", "executions", "checkpoints", "logs")
AS_GIVEN = b'{"b" : 1.50,\n  "a":"\\u00e9"}'
LARGE = "x" * 1000000  # a dozen of them is more than one batch
KILLS_MAX = 200
TARGETS_MAX = 10
# Tables that no route fills yet, and what is of the nodes that ran.
RARE_ROWS = """
INSERT INTO job_categories (id, name, configuration, created_at, updated_at)
    VALUES (x'01', 'c', '{"a": [1, 2]}', 1000, 2000);
INSERT INTO jobs (id, name, category_id, payload, max_retries, created_at, updated_at, deleted_at,
    queue, max_concurrent, last_task_id, last_status, last_ended_at)
    VALUES (x'02', 'j', x'01', '{ "b":1 }', 4, 1000, 2000, 3000, 'q', 2, x'05', 'failed', 2500),
        (x'03', 'k', NULL, NULL, NULL, 1000, 2000, NULL, NULL, 0, NULL, NULL, NULL);
INSERT INTO schedules (id, job_id, schedule_type, cron_expression, is_active, next_fire_at,
    created_at, updated_at, error)
    VALUES (x'04', x'02', 'cron', '* * * * *', 0, 5000, 1000, 2000, 'e');
INSERT OR REPLACE INTO log_heads (execution_id, seq, chain_hash, lines, task_id, task_type, logged_at,
    closed, mac)
    SELECT execution_id, max(seq), chain_hash, 1, execution_id, 't', 1000, 'completed', 'm'
    FROM execution_logs GROUP BY execution_id;
INSERT INTO schedule_fires (schedule_id, fire_at, task_id) VALUES (x'04', 4000, x'05'),
    (x'04', 9000, NULL);
INSERT INTO recurring_jobs (id, name, pattern_type, pattern_config, template_job_id, created_at,
    updated_at, error) VALUES (x'06', 'r', 'daily', '{"time": "09:00"}', x'02', 1000, 2000, 'e');
INSERT INTO recurring_fires (recurring_job_id, instant, task_id) VALUES (x'06', 7000, x'05');
INSERT INTO job_dependencies (id, job_id, depends_on_job_id, dependency_type, created_at)
    VALUES (x'07', x'02', x'03', 'success', 1000);
INSERT OR IGNORE INTO task_options (task) SELECT min(task) FROM task_states
    WHERE status = 'blocked';
UPDATE task_options SET job_id = x'03' WHERE task = (SELECT min(task) FROM task_states
    WHERE status = 'blocked');
UPDATE task_specs SET options = task WHERE task = (SELECT min(task) FROM task_states
    WHERE status = 'blocked');
UPDATE task_details SET open_dependencies = coalesce(open_dependencies, 0) + 2
    WHERE task = (SELECT min(task) FROM task_states WHERE status = 'blocked');
INSERT INTO job_runs (task_id, job_id, waits_slot, created_at)
    SELECT id, x'03', 1, 1000 FROM task_states WHERE status = 'blocked' ORDER BY task LIMIT 1;
INSERT INTO job_waits (task_id, depends_on_job_id, dependency_type)
    SELECT task_id, x'02', 'success' FROM job_runs;
UPDATE job_categories SET description = 'changed', updated_at = updated_at + 1
    WHERE name = 'reports';
DELETE FROM job_categories WHERE name = 'analytics';
INSERT INTO api_tokens (id, name, scopes, queues, hash, former_hash, former_until, created_at, created_by,
    last_used_at, generation, max_tasks)
    VALUES ('00000000000000aa', 't', 'tasks:read work', '["a"]', 'h', 'f', 9000, 1000, 'root', 2000, 7, 9);
INSERT INTO token_counts (token, tasks) VALUES ('00000000000000aa', 0);
UPDATE workers SET principal = 'token:00000000000000aa';
INSERT INTO data_keys (id, day, user_id, kek, wrapped, created_at, destroyed_at)
    VALUES (x'0b', '2026-01-01', 'u', 'k1', 'w', 1000, 2000);
INSERT INTO recovery_queue (id, task_id, recovery_method, scheduled_for, recovery_result,
    created_at) SELECT x'09', id, 'restart_clean', 5000, '{"ok": true}', 1000 FROM tasks LIMIT 1;
INSERT INTO outbox (message, id, kind, target, task_id, body, expires_at, created_at)
    VALUES (77, x'0a', 'webhook', 'http://127.0.0.1:1/', x'05', '{"x":1}', 0, 1000)
"""
LEFT_BEHIND = {"leadership", "rate_limits", "schema_migrations"}


def setUpModule():
    global POSTGRES
    POSTGRES = unittest.enterModuleContext(Postgres())


class CopyTest(unittest.TestCase):
    schemas = 0

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="perdura-copy-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.nodes = 0

    def sql(self, text):
        subprocess.run(["psql", "-qX", POSTGRES.url, "-c", text], check=True)

    def schema(self):
        CopyTest.schemas += 1
        name = f"copy_{CopyTest.schemas}"
        self.sql(f"CREATE SCHEMA {name}")
        return f"{POSTGRES.url}?options=-csearch_path%3D{name}"

    def file(self, name):
        return os.path.join(self.folder, name)

    def serve(self, store, *arguments):
        self.nodes += 1
        node = Node(self.file(f"node-{self.nodes}"), store, arguments)
        node.server.start()
        self.addCleanup(lambda: node.lives and node.end(signal.SIGKILL))
        return node

    def stop(self, node):
        self.assertEqual(node.end(signal.SIGTERM), 0, node.log())

    def perdura(self, *arguments):
        return subprocess.run([harness.binary(), *arguments], cwd=self.folder, check=False,
                              capture_output=True, text=True, timeout=240)

    def copy(self, source, target):
        done = self.perdura("copy", "--from", source, "--to", target, "--json")
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        report = json.loads(done.stdout)
        self.said = done.stderr
        self.assertTrue(report["equal"])
        for row in report["tables"]:
            self.assertEqual((row["from_rows"], row["from_hash"], row["equal"]),
                             (row["to_rows"], row["to_hash"], True))
        checked = self.perdura("verify", "--store", target)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        return report

    def refuse(self, part, *arguments, code=1):
        done = self.perdura(*arguments)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertIn(part, done.stderr)
        return done

    # What a store holds, as a client sees it.

    def pages(self, node, path):
        items, cursor = [], ""
        while cursor is not None:
            mark = "&" if "?" in path else "?"
            page = node.expect(200, "GET", path + (mark + cursor if cursor else ""))
            items += page["items"]
            cursor = page.get("next_cursor") and "cursor=" + page["next_cursor"]
        return items

    def picture(self, node):
        tasks = {}
        for item in self.pages(node, "/v1/tasks?limit=1000"):
            task = node.task(item["id"])
            path = f"/v1/tasks/{item['id']}"
            if task["type"] == "bytes":
                self.assertIn(AS_GIVEN, node.request("GET", path).body)
            for part in PARTS:
                task[part] = self.pages(node, f"{path}/{part}")
            tasks[item["id"]] = task
        queues = self.pages(node, "/v1/queues?limit=1000")
        return {"tasks": tasks, "order": list(tasks), "queues": queues}

    def assert_same(self, before, after):
        self.assertEqual(before["order"], after["order"])
        self.assertEqual(before["queues"], after["queues"])
        for key, task in before["tasks"].items():
            other = after["tasks"][key]
            for name in task.keys() | other.keys():
                if name not in OF_THE_START:
                    self.assertEqual(task.get(name), other.get(name),
                                     f"{name} of a {task['status']} task")

    # A store with one of everything.

    def orphan(self, store):
        """Needs leases that end soon, so it has a server of its own."""
        node = self.serve(store, "--lease", "2s")
        task = node.enqueue("lost", auto_recovery=False, queue="lost")
        node.register("gone", queues=["lost"])
        node.report_ok("gone", node.claim("gone", queues=["lost"])[0], "start")
        harness.wait_until(lambda: node.task(task["id"])["status"] == "orphaned")
        self.stop(node)

    def hold(self, node, kind, worker="w", **fields):
        node.enqueue(kind, **fields)
        [task] = node.claim(worker, types=[kind])
        node.report_ok(worker, task, "start")
        return task

    def end_some(self, node):
        for op, fields in (("complete", {"result": {"text": "é", "n": [1, 2.50]}}),
                           ("partial", {"result": {"half": True}}),
                           ("fail", {"error": "no", "retryable": False, "details": {"c": 9}})):
            node.report_ok("w", self.hold(node, f"{op}s", max_retries=0), op, **fields)
        dead = self.hold(node, "dies", max_retries=0)
        node.report_ok("w", dead, "fail", error="broken")
        gone = node.enqueue("cancels")
        node.expect(200, "POST", f"/v1/tasks/{gone['id']}:cancel", {})
        rests = node.enqueue("rests")
        node.expect(200, "POST", f"/v1/tasks/{rests['id']}:pause", {})
        again = self.hold(node, "again", max_retries=5, retry_delay_ms=1)
        node.report_ok("w", again, "fail", error="later", details={"why": "net"})
        changed = node.enqueue("changes", priority=10)
        node.expect(200, "POST", f"/v1/tasks/{changed['id']}:prioritize", {"priority": 77})
        node.expect(200, "PATCH", f"/v1/tasks/{gone['id']}", {"note": "seen, näh"})

    def run_some(self, node):
        """Two that run, with all a handler can say, and one that is claimed."""
        for number in (1, 2):
            task = self.hold(node, f"runs{number}", data={"page": 1}, limit_key="k",
                             payload={"n": number})
            node.report_ok("w", task, "progress", progress=40, state="Half", data={"page": 2},
                           metadata={"m": 1})
            for name in ("one", "two", "three"):
                node.report_ok("w", task, "checkpoint", name=name, progress=30, data={"at": name},
                               description="d", database_state={"t": 1}, file_state={"f": 2})
            for i in range(5):
                node.report_ok("w", task, "log", level="WARN", message=f"line {i} é",
                               context={"i": i})
            self.running[number] = task
        node.enqueue("claims")
        [self.claimed] = node.claim("w", types=["claims"])
        parent = self.hold(node, "parent")
        node.report_ok("w", parent, "spawn", tasks=[{"type": "child", "payload": i}
                                                    for i in range(3)])
        node.report_ok("w", parent, "continue", wait_children=True)

    def wait_some(self, node):
        first = node.enqueue("first", tags=["a", "é"], user_id="u", external_id="outside",
                             context_key="c", correlation_id="r", idempotency_key="same",
                             traceparent="00-" + "ab" * 16 + "-" + "cd" * 8 + "-01",
                             tracestate="a=b",
                             hash_input=True, workflow_id="flow", name="n",
                             callback_url="http://127.0.0.1:1/", retry_policy="fixed",
                             max_crashes=7, timeout_ms=9000, note="for people", metadata={"deep": {"x": 1}})
        node.enqueue("second", depends_on=[first["id"], {"task": self.ended(node),
                                                         "type": "completion"}])
        node.enqueue("delayed", delay_ms=3600000)
        node.enqueue("at", run_at="2099-01-01T00:00:00Z")
        for i in range(12):
            node.enqueue("large", payload={"text": LARGE, "n": i}, queue="large")
        body = b'{"type":"bytes","payload": ' + AS_GIVEN + b" }"
        self.assertEqual(node.request("POST", "/v1/tasks", body).status, 201)
        node.expect(200, "PATCH", "/v1/queues/limited",
                    {"concurrency": 3, "key_concurrency": 1,
                     "rate": {"count": 5, "per_ms": 1000, "burst": 9}})
        node.expect(200, "POST", "/v1/queues/stopped:pause", {})

    def ended(self, node):
        return self.pages(node, "/v1/tasks?status=completed")[0]["id"]

    def fill(self, store):
        self.running = {}
        self.orphan(store)
        node = self.serve(store)
        node.register("w", queues=["default", "limited"])
        self.end_some(node)
        self.run_some(node)
        self.wait_some(node)
        self.park(node)
        self.stop(node)
        with sqlite3.connect(store) as db:  # never seen from outside by itself
            db.execute("UPDATE tasks SET status = 'recovering' WHERE type = 'changes'")
        db.close()

    def park(self, node):
        """One of a limit key runs, so the next of it is set aside."""
        for _ in range(3):
            node.enqueue("parks", queue="limited", limit_key="one")
        [self.parks] = node.claim("w", queues=["limited"], max=5)

    def go_on(self, node, task):
        """The worker does not know that anything happened."""
        node.report_ok("w", task, "progress", progress=60)
        node.report_ok("w", task, "log", level="INFO", message="continued")
        node.report_ok("w", task, "checkpoint", name="four", data={"at": "four"})
        late = dict(task, lease_token=task["lease_token"] + 1)
        self.assertFalse(node.report_one("w", late, "complete")["ok"])
        node.report_ok("w", task, "complete", result={"moved": True})
        self.assertEqual(node.task(task["id"])["result"], {"moved": True})
        names = [item["name"] if "name" in item else item["checkpoint_name"]
                 for item in self.pages(node, f"/v1/tasks/{task['id']}/checkpoints")]
        self.assertEqual(names[0], "four")


class ThereAndBack(CopyTest):
    def test_a_store_moves_there_and_back_and_its_workers_go_on(self):
        here, there, back = self.file("a.db"), self.schema(), self.file("b.db")
        self.fill(here)
        node = self.serve(here, *LONG_LEASE)
        before = self.picture(node)
        self.assertEqual({t["status"] for t in before["tasks"].values()}, STATUSES)
        self.stop(node)
        report = self.copy(here, there)
        self.assertEqual({row["status"] for row in report["statuses"]}, STATUSES)
        self.assertIn(f"configuration of its nodes: log_key: {os.path.realpath(here)}.log-key\n",
                      self.said)
        with open(self.file("key.yaml"), "w", encoding="utf-8") as file:
            file.write(f"log_key: {here}.log-key\n")  # it signs on
        node = self.serve(there, "--config", self.file("key.yaml"), *LONG_LEASE)
        after = self.picture(node)
        self.assert_same(before, after)
        self.go_on(node, self.running[1])
        new = node.enqueue("new")
        again = node.expect(200, "POST", "/v1/tasks", {"type": "first", "idempotency_key": "same"})
        self.assertTrue(again["duplicate"])
        self.assertNotIn(new["id"], before["tasks"])
        self.free_the_parked(node)
        before = self.picture(node)
        self.stop(node)
        self.copy(there, back)
        node = self.serve(back, *LONG_LEASE)
        self.assert_same(before, self.picture(node))
        self.go_on(node, self.running[2])
        self.assertNotIn(node.enqueue("newer")["id"], before["tasks"])
        self.stop(node)

    def free_the_parked(self, node):
        node.report_ok("w", self.parks, "start")
        node.complete("w", self.parks)
        [parked] = node.claim("w", queues=["limited"], wait_ms=30000)
        node.complete("w", parked)

    def test_d12_namespaces_are_copied_with_what_is_in_them(self):
        within = {"Perdura-Namespace": "a"}
        here, there, back = self.file("a.db"), self.schema(), self.file("b.db")
        node = self.serve(here)
        made = node.expect(201, "POST", "/v1/namespaces", {
            "name": "a", "limits": {"waiting": 7}, "retention": {"completed_ms": 5000}})
        task = node.expect(201, "POST", "/v1/tasks", {"type": "t", "queue": "q", "limit_key": "k"}, within)
        self.stop(node)
        self.copy(here, there)
        self.copy(there, back)
        node = self.serve(back)
        self.assertEqual(node.expect(200, "GET", "/v1/namespaces/a"), made)
        self.assertEqual(node.expect(200, "GET", f"/v1/tasks/{task['id']}", None, within)["queue"], "q")
        self.assertEqual(node.expect(200, "GET", "/v1/tasks")["items"], [])
        worker = node.expect(201, "POST", "/v1/workers", {
            "hostname": "h", "queues": ["q"], "pool_size": 1, "version": "1"}, within)["id"]
        [claimed] = node.expect(200, "POST", f"/v1/workers/{worker}:claim", {"max": 1, "wait_ms": 0}, within)["tasks"]
        self.assertEqual(claimed["id"], task["id"])
        self.stop(node)

    def test_stores_of_one_kind_are_copied_as_well(self):
        here = self.file("a.db")
        self.fill(here)
        sums = self.copy(here, self.file("b.db"))["tables"]
        first, second = self.schema(), self.schema()
        self.assertEqual(self.copy(self.file("b.db"), first)["tables"], sums)
        self.assertEqual(self.copy(first, second)["tables"][:-2], sums[:-1])

    def rows(self, store):
        """Every table with every column, but for what is of nodes."""
        tables = {}
        db = sqlite3.connect(store)
        names = [name for name, in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' "
                                              "AND name NOT LIKE 'sqlite_%'")]
        for name in set(names) - LEFT_BEHIND:
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({name})")
                       if row[1] not in ("is_leader", "leader_until")]
            where = {"store_info": "name NOT IN ('copy', 'node_worker', 'moved')",
                     "lane_counts": "tasks <> 0"}.get(name, "1")
            tables[name] = sorted(map(repr, db.execute(
                f"SELECT {', '.join(columns)} FROM {name} WHERE {where}")))
        db.close()
        return tables

    def test_every_table_comes_along_column_by_column(self):
        here, there, back = self.file("a.db"), self.schema(), self.file("b.db")
        self.fill(here)
        with sqlite3.connect(here) as db:
            for statement in RARE_ROWS.replace("x'", "x'" + "00" * 15).split(";\n"):
                db.execute(statement)  # ids have 16 bytes
        db.close()
        before = self.rows(here)
        self.assertEqual([name for name, rows in before.items() if not rows], [])
        self.copy(here, there)
        self.copy(there, back)
        after = self.rows(back)
        self.assertEqual(before.keys(), after.keys())
        for name, rows in before.items():
            self.assertEqual(rows, after[name], name)

    def test_an_empty_store_is_copied(self):
        here, there = self.file("a.db"), self.schema()
        self.assertEqual(self.perdura("migrate", "up", "--store", here).returncode, 0)
        rows = {row["table"]: row["to_rows"] for row in self.copy(here, there)["tables"]}
        self.assertEqual(rows.pop("job_categories"), 7)  # those every store begins with
        self.assertEqual(rows.pop("namespaces"), 1)  # default
        self.assertEqual(rows.pop("store_info"), 1)  # since when logs are chained
        self.assertEqual(set(rows.values()), {0})
        node = self.serve(there)
        node.enqueue("t")
        self.stop(node)


class Killed(CopyTest):
    def make_many(self, store):
        """Keys in an order on which databases do not agree."""
        node = self.serve(store)
        node.register("w")
        letters = "aZéÉß_-z A"
        for chunk in range(6):
            node.expect(201, "POST", "/v1/tasks", [
                {"type": f"t{i % 7}", "idempotency_key": f"{letters[i % 10]}{chunk}-{i}",
                 "tags": [letters[i % 10], str(i % 50)], "payload": {"i": i}}
                for i in range(1000)])
        for task in node.claim("w", max=500):
            node.report("w", node.element(task, "start"),
                        node.element(task, "log", level="INFO", message="m"),
                        node.element(task, "complete", result={"ok": task["payload"]["i"]}))
        self.stop(node)

    def killed_copies(self, source, target, whole_s):
        """Kills it sooner or later behind its first word of rows, until one lives to its end. How many did
        not. The first is killed at that word; whole_s is what all of it takes."""
        seed = random.Random(7)
        for kills in range(KILLS_MAX):
            with subprocess.Popen([harness.binary(), "copy", "--again", "--from", source, "--to", target,
                                   "--json"], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True) as process:
                word = process.stderr.readline()
                while word and not word.startswith("copying"):
                    word = process.stderr.readline()
                try:
                    out, err = process.communicate(timeout=whole_s * seed.uniform(0, kills * 0.1))
                except subprocess.TimeoutExpired:
                    process.kill()
                    continue
                self.assertEqual(process.returncode, 0, err)
                return kills, json.loads(out)
        raise AssertionError("it never came to its end")

    def check_kills(self, source, cut, targets):
        began = time.monotonic()
        report = self.perdura("copy", "--from", source, "--to", cut, "--json").stdout
        whole_s = time.monotonic() - began
        for target in targets:  # the next one, where this machine slept through a whole copy
            kills, last = self.killed_copies(source, target, whole_s)
            if kills > 0:
                break
        self.assertGreater(kills, 0)
        self.assertTrue(last["resumed"])
        self.assertEqual(last["tables"], json.loads(report)["tables"])
        checked = self.perdura("verify", "--store", target)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        node = self.serve(target)
        self.assertEqual(len(self.pages(node, "/v1/tasks?limit=1000&status=completed")), 500)
        self.stop(node)

    def test_a_copy_killed_again_and_again_is_whole_at_its_end(self):
        here, there = self.file("a.db"), self.schema()
        self.make_many(here)
        self.check_kills(here, there, (self.schema() for _ in range(TARGETS_MAX)))
        self.check_kills(there, self.file("b.db"), (self.file(f"c{i}.db") for i in range(TARGETS_MAX)))


class Refused(CopyTest):
    def setUp(self):
        super().setUp()
        self.here, self.there = self.file("a.db"), self.schema()
        with open(self.file("perdura.yaml"), "w", encoding="utf-8") as file:
            file.write("allow_changed_schema: true\n")  # traps are triggers
        node = self.serve(self.here)
        node.enqueue("t")
        self.stop(node)

    def trap(self, target, table, what):
        """A target in which inserts into a table go wrong: plpgsql, or SQLite's own words."""
        self.assertEqual(self.perdura("migrate", "up", "--store", target).returncode, 0)
        if "://" in target:
            self.sql(f"SET search_path = {target.split('%3D')[1]};"
                     f"CREATE FUNCTION trap() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {what}; "
                     f"RETURN new; END $$; CREATE TRIGGER trap BEFORE INSERT ON {table} "
                     "FOR EACH ROW EXECUTE FUNCTION trap()")
        else:
            with sqlite3.connect(target) as db:
                db.execute(f"CREATE TRIGGER trap BEFORE INSERT ON {table} BEGIN {what}; END")
            db.close()

    def stopped(self, target):
        """A copy that ends in its middle."""
        self.trap(target, "task_states", "RAISE EXCEPTION 'trapped'" if "://" in target
                  else "SELECT RAISE(ABORT, 'trapped')")
        self.refuse("trapped", "copy", "--again", "--from", self.here, "--to", target)

    def free(self, target):
        if "://" in target:
            self.sql(f"DROP FUNCTION {target.split('%3D')[1]}.trap() CASCADE")
        else:
            with sqlite3.connect(target) as db:
                db.execute("DROP TRIGGER trap")
            db.close()

    def test_stores_that_are_served_are_refused_by_name(self):
        node = self.serve(self.here)
        done = self.refuse("in use by process", "copy", "--from", self.here, "--to", self.there)
        self.assertNotIn("http", done.stderr)  # copy takes no address
        self.refuse("stop the server and name its store", "copy", "--from",
                    "http://127.0.0.1:7070", "--to", self.there, code=2)
        self.stop(node)
        self.copy(self.here, self.there)
        node = self.serve(self.there)
        self.refuse("stop its nodes first", "copy", "--from", self.there, "--to",
                    self.file("b.db"))
        self.refuse("stop its nodes first", "copy", "--from", self.here, "--to", self.there)
        self.stop(node)
        self.copy(self.there, self.file("c.db"))

    def test_a_target_that_holds_something_else_is_refused(self):
        self.copy(self.here, self.there)
        self.assertEqual(self.copy(self.here, self.there)["rows"], 0)
        node = self.serve(self.there)
        node.enqueue("t")
        self.stop(node)
        self.refuse("served since", "copy", "--from", self.here, "--to", self.there)
        node = self.serve(self.file("b.db"))
        node.enqueue("t")
        self.stop(node)
        self.refuse("not empty (1 rows in lanes)", "copy", "--again", "--from", self.here, "--to",
                    self.file("b.db"))
        edited = self.file("c.db")
        self.assertEqual(self.perdura("migrate", "up", "--store", edited).returncode, 0)
        with sqlite3.connect(edited) as db:
            db.execute("UPDATE job_categories SET default_timeout = 7, updated_at = updated_at + 1 "
                       "WHERE name = 'general'")
        db.close()
        self.refuse("not empty (1 rows in job_categories)", "copy", "--again", "--from", self.here, "--to",
                    edited)
        with sqlite3.connect(edited) as db:
            self.assertEqual(db.execute("SELECT count(*) FROM job_categories").fetchone(), (7,))
        db.close()
        self.refuse("same", "copy", "--from", self.here, "--to", self.here, code=2)
        self.refuse("--to", "copy", "--from", self.here, code=2)

    def test_a_source_that_is_not_there_is_not_made(self):
        self.refuse("no store", "copy", "--from", self.file("none.db"), "--to", self.there, code=3)
        self.assertFalse(os.path.exists(self.file("none.db")))

    def test_an_unfinished_copy_is_neither_served_nor_copied_but_gone_on_with(self):
        for target in (self.there, self.file("b.db")):
            self.stopped(target)
            self.refuse("unfinished copy", "serve", "--store", target, "--listen", "127.0.0.1:0")
            self.refuse("unfinished copy", "copy", "--from", target, "--to", self.file("c.db"))
            self.free(target)
            self.assertTrue(self.copy(self.here, target)["resumed"])
        self.assertFalse(os.path.exists(self.file("c.db")))

    def test_a_copy_is_not_gone_on_with_after_its_source_was_served(self):
        for target in (self.there, self.file("b.db")):
            self.stopped(target)
            node = self.serve(self.here)
            node.enqueue("t")
            self.stop(node)
            self.free(target)
            self.refuse("the source was served since", "copy", "--again", "--from", self.here,
                        "--to", target)

    def test_a_row_that_differs_is_found_and_the_copy_not_served(self):
        self.trap(self.there, "task_specs", "new.name = 'other'")
        done = self.perdura("copy", "--from", self.here, "--to", self.there)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("differs", done.stdout)
        self.assertIn("differs from its source", done.stderr)
        self.refuse("unfinished copy", "serve", "--store", self.there, "--listen", "127.0.0.1:0")


class Moved(CopyTest):
    """Of the two only the copy is served from then on."""

    def check_marked(self, source, target, shown):
        node = self.serve(source)
        task = node.enqueue("runs")
        node.register("w")
        [held] = node.claim("w")
        self.stop(node)
        self.copy(source, target)
        place = f"moved to {shown}"
        self.refuse(place, "serve", "--listen", "127.0.0.1:0", "--store", source)
        self.refuse("--again", "serve", "--listen", "127.0.0.1:0", "--store", source)
        self.assertIn("has moved it", self.perdura("doctor", "--store", source).stdout)
        self.assertEqual(self.perdura("verify", "--store", source).returncode, 0)
        other = self.file("other.db")
        self.refuse("moved already", "copy", "--from", source, "--to", other)
        self.copy(source, target)  # the same once more only compares
        node = self.serve(target)
        node.report_ok("w", held, "start")
        self.stop(node)
        node = self.serve(source, "--again")  # as a restored backup: old leases are void
        self.assertFalse(node.report_one("w", held, "start")["ok"])
        self.assertEqual(node.task(task["id"])["type"], "runs")
        self.stop(node)
        self.stop(self.serve(source))  # the mark is gone

    def test_a_file_that_was_moved_is_served_again_only_on_purpose(self):
        self.check_marked(self.file("a.db"), self.file("b.db"), self.file("b.db"))

    def test_a_database_that_was_moved_is_served_again_only_on_purpose(self):
        self.check_marked(self.schema(), self.file("b.db"), self.file("b.db"))

    def test_a_second_copy_is_made_only_on_purpose(self):
        here = self.file("a.db")
        self.stop(self.serve(here))
        self.copy(here, self.schema())
        done = self.perdura("copy", "--again", "--from", here, "--to", self.file("c.db"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.refuse(self.file("c.db"), "serve", "--listen", "127.0.0.1:0", "--store", here)


    def open_migrations(self, store):
        return self.perdura("migrate", "status", "--store", store).stdout.count("open")

    def refused_unchanged(self, words, store):
        """Refused before anything is migrated."""
        self.assertEqual(self.perdura("migrate", "down", "--lose-data", "--store", store).returncode, 0)
        self.assertGreater(self.open_migrations(store), 0)
        done = self.refuse(words, "serve", "--listen", "127.0.0.1:0", "--store", store)
        self.assertNotIn("store.migrated", done.stderr)
        self.assertGreater(self.open_migrations(store), 0)

    def test_a_moved_store_is_refused_before_it_is_migrated(self):
        here, there = self.file("a.db"), self.schema()
        self.stop(self.serve(here))
        self.copy(here, there)
        self.copy(there, self.file("b.db"))
        os.remove(here + "-ballast")
        for store in (here, there):
            self.refused_unchanged("was moved to", store)
        self.assertFalse(os.path.exists(here + "-ballast"))

    def test_an_unfinished_copy_is_refused_before_it_is_migrated(self):
        here, there = self.file("a.db"), self.schema()
        self.stop(self.serve(here))
        self.copy(here, there)
        with sqlite3.connect(here) as db:
            db.execute("INSERT INTO store_info (name, value) VALUES ('copy', '{}')")
        db.close()
        self.sql(f"UPDATE {there.split('%3D')[1]}.store_info SET value = '{{}}' "
                 "WHERE name = 'copy'")
        for store in (here, there):
            self.refused_unchanged("unfinished copy", store)

    def tables_of(self, target):
        return subprocess.run(["psql", "-qXAt", POSTGRES.url, "-c",
                               "SELECT count(*) FROM pg_tables WHERE schemaname = "
                               f"'{target.split('%3D')[1]}'"], check=True, capture_output=True,
                              text=True).stdout.strip()

    def test_a_refused_copy_makes_no_target(self):
        here, there = self.file("a.db"), self.schema()
        self.stop(self.serve(here))
        self.copy(here, there)
        empty = self.schema()
        self.refuse("moved already", "copy", "--from", here, "--to", self.file("new.db"))
        self.refuse("moved already", "copy", "--from", here, "--to", empty)
        node = self.serve(there)
        self.refuse("stop its nodes first", "copy", "--from", there, "--to", self.file("new.db"))
        self.stop(node)
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("new.db")],
                         [])
        self.assertEqual(self.tables_of(empty), "0")


class LeftBehind(CopyTest):
    """Tables that are not Perdura's do not move, and are named."""

    def test_tables_and_views_in_a_file_are_named(self):
        here = self.file("a.db")
        self.stop(self.serve(here))
        with sqlite3.connect(here) as db:
            db.executescript("CREATE TABLE my_notes (n INTEGER UNIQUE);"
                             "CREATE VIEW my_view AS SELECT n FROM my_notes")
        db.close()
        done = subprocess.run([harness.binary(), "copy", "--from", here, "--to",
                               self.file("b.db")], check=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=240).stdout
        self.assertEqual(done.splitlines()[-1], "This is not Perdura's and stays in the source: "
                                                "my_notes, my_view; move it yourself")
        done = self.perdura("copy", "--again", "--json", "--from", here, "--to", self.schema())
        self.assertEqual(json.loads(done.stdout)["left_behind"], ["my_notes", "my_view"])

    def test_tables_and_views_in_a_database_are_named(self):
        there = self.schema()
        name = there.split("%3D")[1]
        self.stop(self.serve(there))
        self.sql(f"CREATE TABLE {name}.my_notes (n serial PRIMARY KEY); "
                 f"CREATE VIEW {name}.my_view AS SELECT n FROM {name}.my_notes; "
                 f"CREATE MATERIALIZED VIEW {name}.my_sums AS SELECT 1 AS n; "
                 f"CREATE SCHEMA {name}_more; "
                 f"CREATE TABLE {name}_more.refers (task bigint REFERENCES {name}.task_states "
                 "ON DELETE CASCADE)")
        self.assertIn("no table of yours blocks removals",
                      self.perdura("doctor", "--store", there).stdout)
        self.sql(f"ALTER TABLE {name}_more.refers ADD blocks bigint REFERENCES {name}.task_specs")
        self.assertIn(f"block removals: {name}_more.refers",
                      self.perdura("doctor", "--store", there).stdout)
        report = self.copy(there, self.file("b.db"))
        self.assertEqual(report["left_behind"],
                         ["my_notes", "my_sums", "my_view", f"{name}_more.refers"])
        self.assertIn("not Perdura's and stays in the source: my_notes,", self.said)

    def test_a_store_without_them_is_said_nothing_about(self):
        here = self.file("a.db")
        self.stop(self.serve(here))
        self.assertEqual(self.copy(here, self.schema())["left_behind"], [])
        self.assertNotIn("stays in the source", self.said)


class Shown(CopyTest):
    def test_a_terminal_gets_a_bar_and_a_pipe_lines(self):
        here = self.file("a.db")
        node = self.serve(here)
        node.expect(201, "POST", "/v1/tasks", [{"type": "t"}] * 3000)
        self.stop(node)
        done = self.perdura("copy", "--from", here, "--to", self.schema())
        self.assertIn("both stores are equal", done.stdout)
        self.assertIn("tasks/s", done.stdout)
        lines = [line for line in done.stderr.splitlines() if "rows)" in line]
        self.assertRegex(lines[0], r"^copying \w+ \(0 of \d+ rows\)$")
        self.assertLess(len(lines), 15, "one for each half, then one in five seconds")
        self.assertNotIn("\r", done.stderr)
        parent, child = pty.openpty()
        with subprocess.Popen([harness.binary(), "copy", "--again", "--from", here, "--to", self.schema()],
                              stdout=subprocess.PIPE, stderr=child,
                              env={**os.environ, "TERM": "xterm", "COLUMNS": "100"}) as process:
            os.close(child)
            seen = b""
            while True:
                try:
                    part = os.read(parent, 4096)
                except OSError:
                    break
                if not part:
                    break
                seen += part
            process.stdout.read()
        os.close(parent)
        self.assertEqual(process.returncode, 0)
        self.assertIn(b"%", seen)
        self.assertIn(b"\r", seen)
        self.assertIn(b"copying", seen)
        self.assertNotIn(b" rows)", seen)


if __name__ == "__main__":
    unittest.main()
