"""Migrations of a PostgreSQL store (A11, F-A15): forth and back under tasks that wait, are claimed
and run; many nodes that start at once; a schema that is newer than the program; and a database
whose tables another role makes, for a role that may not."""
import re
import subprocess
import pathlib
import unittest

import harness
from cluster import CALM, Cluster, ClusterTest, begin_module
from months import TABLES, name

setUpModule = begin_module

# All that is stored of tasks. Marks, workers and leadership belong to nodes that run.
NEW_COLUMNS = ("removed_hash", "is_decided", "note", "category_id", "from_hash", "principal",
               "encrypt", "encrypt_fields", "callback_events",
               "created_by_principal")
STORED = ("lanes", "task_specs", "task_states", "ready_rows", "parked_rows", "due_rows",
          "held_rows", "settled_rows", "task_data", "task_event_rows", "execution_rows",
          "task_results", "task_dependencies", "task_checkpoints", "execution_logs", "queues",
          "tasks", "executions", "task_events", "schedules", "schedule_fires")
# Every claim, report or end writes to these, so what their rows leave behind is cleared away soon.
HOT = ("writer_marks", "lane_counts", "key_counts", "task_specs", "task_states", "ready_rows",
       "parked_rows", "due_rows", "held_rows", "settled_rows", "task_data", "task_uniques",
       "task_tags", "task_results", "task_dependencies", "task_checkpoints", "execution_logs",
       "workers", "leadership", "outbox", "rate_limits", "jobs", "schedules", "recurring_jobs",
       "schedule_fires", "recurring_fires", "job_runs", "job_waits", *(f"{table}_other" for table in TABLES),
       *(name(table, -n) for table in TABLES for n in range(4)))
REWRITTEN = ("writer_marks", "task_states", "workers", "leadership", "rate_limits",
             *(name("execution_rows", -n) for n in range(4)))


JOB = "01941f29-7c00-7000-8000-0000000000aa"


def perdura(*words, code=0, store):
    done = subprocess.run([harness.binary(), *words, "--store", store], capture_output=True,
                          text=True, timeout=240, check=False)
    if done.returncode != code:
        raise AssertionError(f"{words}: {done.returncode}: {done.stderr}")
    return done.stdout + done.stderr


class Migrations(ClusterTest):
    def applied(self, cluster):
        return [row[0] for row in cluster.sql("SELECT id FROM schema_migrations ORDER BY id")]

    def given_tasks(self, node):
        """One of each: waits, is put off, blocked, failed once, claimed, runs, completed."""
        node.register()
        done = node.enqueue("done", payload={"a": 1})
        task = node.claim()[0]
        node.complete("worker-1", task, {"b": 2})
        again = node.enqueue("again", max_retries=1, retry_delay_ms=1)
        node.report_ok("worker-1", node.claim()[0], "fail", error="once")
        harness.wait_until(lambda: node.task(again["id"])["status"] == "pending", what="a retry")
        again = node.claim()[0]
        node.report_ok("worker-1", again, "start")
        node.report_ok("worker-1", again, "checkpoint", name="half", progress=50, data={"at": 5})
        node.report_ok("worker-1", again, "log", level="INFO", message="a line")
        node.enqueue("claimed")
        claimed = node.claim()[0]
        waits = node.enqueue("waits")
        node.enqueue("later", delay_ms=3600000)
        node.enqueue("blocked", depends_on=[waits["id"]])
        return done["id"], again, claimed, waits["id"]

    def stored(self, cluster):
        """Rows and a sum of every table and view, but for the columns that the newest migrations add."""
        return {row[0]: row[1:] for row in cluster.sql(" UNION ALL ".join(
            f"SELECT '{table}', count(*), md5(string_agg(r, '|' ORDER BY r)) "
            f"FROM (SELECT (to_jsonb(t) - '{{{','.join(NEW_COLUMNS)}}}'::text[])::text AS r FROM {table} t) t"
            for table in STORED))}

    def test_a11_running_tasks_survive_the_newest_migration_taken_back_and_applied_again(self):
        cluster = self.cluster(1, "--lease", "60s")
        node = cluster.node(0)
        done, running, claimed, waits = self.given_tasks(node)
        newest = self.applied(cluster)[-1]
        cluster.stop(0)
        before = self.stored(cluster)
        perdura("migrate", "down", "--lose-data", store=cluster.store)
        self.assertNotIn(newest, self.applied(cluster))
        self.assertEqual(self.stored(cluster), before)
        perdura("verify", store=cluster.store, code=1)  # it is behind: said, not guessed
        cluster.start(0)  # applies it
        self.assertIn(newest, self.applied(cluster))
        node.report_ok("worker-1", running, "log", level="INFO", message="another line")
        node.complete("worker-1", running, {"c": 3})
        node.complete("worker-1", claimed)
        statuses = node.statuses(running["id"])
        self.assertEqual(statuses[-1], "completed")
        self.assertNotIn("orphaned", statuses)
        self.assertEqual(node.expect(200, "GET", f"/v1/tasks/{done}/result")["result"],
                         {"b": 2})
        self.assertEqual(len(node.executions(running["id"])), 2)
        [task] = node.claim()
        self.assertEqual(task["id"], waits)
        node.complete("worker-1", task)
        [task] = node.claim(wait_ms=30000)
        self.assertEqual(task["type"], "blocked")

    def test_d12_waiting_tasks_get_lanes_by_category_and_lose_them_again(self):
        cluster = self.cluster(1)
        node = cluster.node(0)
        waiting = {node.enqueue("t", queue="default", category=name)["id"]: name
                   for name in ("reports", "analytics", "reports")}
        node.register("worker-1")
        [held] = node.claim(max=1)  # the oldest
        del waiting[held["id"]]
        node.enqueue("t")
        cluster.stop(0)
        files = pathlib.Path(__file__).resolve().parents[2] / "src/store/postgres/migrations"
        [lanes] = files.glob("*_lanes_by_category.up.sql")
        for _ in range(2):
            perdura("migrate", "down", "--lose-data", "--to", str(int(lanes.name[:4]) - 1), store=cluster.store)
            self.assertEqual(cluster.sql("SELECT count(*) FROM lanes"), [["1"]])
            perdura("migrate", "up", store=cluster.store)
            perdura("verify", store=cluster.store)
        cluster.start(0)
        node.register("r", categories=["reports"])
        self.assertEqual([waiting[task["id"]] for task in node.claim("r", max=10)], ["reports"])
        node.register("g", categories=["general"])
        self.assertEqual(len(node.claim("g", max=10)), 1)

    def given_job(self, cluster, task_id):
        """A job whose open run the task is."""
        cluster.sql(f"""
            INSERT INTO jobs (id, name, category_id, created_at, updated_at)
                SELECT '{JOB}', 'j', id, now(), now() FROM job_categories WHERE name = 'reports';
            UPDATE task_specs SET job_id = '{JOB}' WHERE task = perdura_key('{task_id}');
            INSERT INTO job_runs (task_id, job_id, created_at)
                SELECT '{task_id}', '{JOB}', created_at FROM task_specs
                WHERE task = perdura_key('{task_id}')""")

    def test_d15_open_runs_and_used_categories_survive_the_way_back_and_forth(self):
        cluster = self.cluster(1)
        task = cluster.node(0).enqueue("t")["id"]
        cluster.stop(0)
        self.given_job(cluster, task)
        runs = cluster.sql("SELECT * FROM job_runs")
        cluster.sql("UPDATE job_categories SET default_timeout = 7, updated_at = now() + '1 s' "
                    "WHERE name = 'cleanup'")
        categories = cluster.sql("SELECT id, name, default_timeout FROM job_categories ORDER BY id")
        perdura("migrate", "down", "--lose-data", "--to", "2", store=cluster.store)
        self.assertEqual(cluster.sql("SELECT name FROM job_categories ORDER BY name"),
                         [["cleanup"], ["reports"]])
        perdura("migrate", "up", store=cluster.store)
        self.assertEqual(cluster.sql("SELECT * FROM job_runs"), runs)
        self.assertEqual(cluster.sql("SELECT id, name, default_timeout FROM job_categories "
                                     "ORDER BY id"), categories)

    def test_d1_changes_by_hand_move_updated_at(self):
        cluster = self.cluster(1)
        old = "updated_at = '2001-01-01'"
        cluster.sql(f"INSERT INTO jobs (id, name, created_at, updated_at) "
                    f"VALUES ('{JOB}', 'j', now(), '2001-01-01')")
        for change, moves in (("last_ended_at = now()", False), ("name = 'k'", True),
                              (f"name = 'l', {old}", False)):
            cluster.sql(f"UPDATE jobs SET {change}")
            self.assertEqual(cluster.sql(f"SELECT {old} FROM jobs"), [["f" if moves else "t"]])
        cluster.sql("UPDATE job_categories SET is_active = false")
        self.assertEqual(cluster.sql("SELECT count(*) FROM job_categories "
                                     "WHERE updated_at = created_at"), [["0"]])

    def test_d15_the_way_back_is_refused_while_runs_wait_for_jobs(self):
        cluster = self.cluster(1)
        parent = cluster.node(0).enqueue("t")["id"]
        task = cluster.node(0).enqueue("t", depends_on=[parent])["id"]
        cluster.stop(0)
        self.given_job(cluster, task)
        perdura("migrate", "down", "--lose-data", "--to", "3", store=cluster.store)
        applied = self.applied(cluster)
        for change, undo in ((f"INSERT INTO job_waits VALUES ('{task}', '{JOB}', 'success')",
                              "DELETE FROM job_waits"),
                             ("UPDATE job_runs SET waits_slot = true",
                              "UPDATE job_runs SET waits_slot = false")):
            cluster.sql(change)
            self.assertIn("runs wait for other jobs",
                          perdura("migrate", "down", "--lose-data", store=cluster.store, code=1))
            self.assertEqual(self.applied(cluster), applied)
            cluster.sql(undo)
        perdura("migrate", "down", "--lose-data", store=cluster.store)
        perdura("migrate", "up", store=cluster.store)

    def test_a11_a_migration_is_not_taken_back_under_a_node(self):
        cluster = self.cluster(1)
        applied = self.applied(cluster)
        self.assertIn("in use", perdura("migrate", "down", "--lose-data", store=cluster.store, code=1))
        self.assertEqual(self.applied(cluster), applied)

    def test_a11_f_f5_nodes_that_start_at_once_on_an_older_store_migrate_it_once(self):
        cluster = self.cluster(5, *CALM)
        self.given_tasks(cluster.node(0))
        cluster.stop_all()
        before = self.stored(cluster)
        perdura("migrate", "down", "--lose-data", store=cluster.store)
        told = cluster.logs().count("store.migrated")
        cluster.start_all()
        self.assertEqual(cluster.logs().count("store.migrated"), told + 1)
        for table in ("task_specs", "task_event_rows", "execution_rows"):
            self.assertEqual(cluster.sql(f"SELECT count(*) FROM {table}")[0][0],
                             before[table][0])

    def test_a11_f_a15_a_schema_one_step_ahead_is_refused_in_one_line(self):
        cluster = self.cluster(1)
        cluster.stop(0)
        later = f"{int(self.applied(cluster)[-1]) + 1:04}"
        cluster.sql(f"INSERT INTO schema_migrations VALUES ('{later}', 'later', now(), 'x')")
        self.addCleanup(cluster.sql, f"DELETE FROM schema_migrations WHERE id = '{later}'")
        for words in (["serve", "--listen", "127.0.0.1:0"], ["verify"], ["migrate", "up"]):
            text = perdura(*words, store=cluster.store, code=1)
            lines = [line for line in text.splitlines() if not line.startswith("{")]
            self.assertEqual(len(lines), 1, text)
            self.assertIn(f"has schema version {later}", lines[0])

    def test_every_table_that_is_written_all_the_time_says_when_it_is_cleared(self):
        cluster = self.cluster(1)
        options = {row[0]: row[1] for row in cluster.sql(
            "SELECT relname, coalesce(array_to_string(reloptions, ','), '') FROM pg_class "
            "WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace")}
        self.assertEqual([t for t in HOT if "autovacuum_vacuum_scale_factor" not in options[t]], [])
        self.assertEqual([t for t in REWRITTEN if "fillfactor" not in options[t]], [])


class ByHand(ClusterTest):
    """A database of its own: the owner of the tables, and a role that may only use them."""

    GRANTS = """CREATE ROLE node LOGIN;
        GRANT USAGE ON SCHEMA public TO node;
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO node;
        REVOKE INSERT, UPDATE, DELETE ON schema_migrations FROM node;
        GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO node;
        GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO node"""

    def psql(self, url, text):
        done = subprocess.run(["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", url],
                              input=text, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.split()

    def test_a11_a_node_without_the_right_to_make_tables_runs_on_what_psql_made(self):
        self.psql(self.postgres.url, "CREATE DATABASE by_hand")
        owner = re.sub(r"/postgres$", "/by_hand?options=-csearch_path%3Dpublic",
                       self.postgres.url)
        store = owner.replace("perdura@", "node@")
        self.psql(owner, perdura("migrate", "sql", store=owner))
        self.psql(owner, self.GRANTS)
        self.psql(owner, f"DROP TABLE {name('execution_rows', -3)}")
        refused = subprocess.run(["psql", "-X", "-q", store, "-c", "CREATE TABLE mine ()"],
                                 capture_output=True, text=True, check=False)
        self.assertIn("permission denied", refused.stderr)
        cluster = self.cluster_on(store)
        node = cluster.node(0)
        node.register()
        node.enqueue("a", payload={"x": 1})
        task = node.claim()[0]
        node.report_ok("worker-1", task, "start")
        node.report_ok("worker-1", task, "log", level="INFO", message="a line")
        node.complete("worker-1", task, 1)
        self.assertNotIn("store.migrated", node.log())
        self.assertNotIn("not_made", node.log())
        self.assertEqual(self.psql(owner, f"SELECT to_regclass('{name('execution_rows', -3)}')"),
                         [name("execution_rows", -3)], "months are made by right of the function")
        self.assertIn("ok       rights", perdura_doctor(store))

    def cluster_on(self, store):
        cluster = OneDatabase(self.postgres, store)
        self.addCleanup(cluster.close)
        self.addCleanup(self.check, cluster)
        return cluster


class OneDatabase(Cluster):
    """One node on a store that is there already."""

    def __init__(self, postgres, store):
        self.given = store
        super().__init__(postgres, 1)

    @property
    def store(self):
        return self.given

    @store.setter
    def store(self, _):
        pass

    def sql(self, text):
        return [] if text.startswith("CREATE SCHEMA") else super().sql(text)


def perdura_doctor(store):
    done = subprocess.run([harness.binary(), "doctor", "--store", store], capture_output=True,
                          text=True, timeout=240, check=False)
    return done.stdout


if __name__ == "__main__":
    unittest.main()
