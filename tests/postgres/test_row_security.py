"""Row-level security on PostgreSQL: what the role for SQL from outside can read and change, however wrong
its statements are (D12, F-J5). Two nodes run on the store; the statements go past them."""
import os
import subprocess
import unittest

from cluster import Cluster, ClusterTest, begin_module
from test_pooler import Pooler

ROLE = "authenticated_users"
VIEWS = ("tasks", "executions", "task_events")
TABLES = ("jobs", "schedules", "recurring_jobs", "job_categories", "job_dependencies", "execution_logs",
          "task_checkpoints", "task_dependencies")
BEHIND = ("lanes", "intake_rows", "task_specs", "task_states", "task_data", "task_event_rows", "execution_rows", "task_results",
          "held_rows", "settled_rows", "workers")
SECRETS = ("secret-bob", "secret-other")


def setUpModule():
    begin_module()
    psql(ClusterTest.postgres.url, f"CREATE ROLE {ROLE}; CREATE ROLE app LOGIN IN ROLE {ROLE}")
    global WORLD
    WORLD = World()
    unittest.addModuleCleanup(WORLD.cluster.close)


def psql(url, text, fails=False, schema=None):
    """What it printed: results and errors; checks whether it failed."""
    environment = {**os.environ, **({"PGOPTIONS": f"-csearch_path={schema}"} if schema else {})}
    done = subprocess.run(["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", url], input=text, text=True,
                          capture_output=True, check=False, env=environment)
    if fails is not None and (done.returncode != 0) != fails:
        raise AssertionError(f"{text}: {done.returncode} {done.stdout[:500]} {done.stderr}")
    return done.stdout + done.stderr


def settings(user, namespace="default"):
    return "".join(f"SET LOCAL app.current_{name} = '{value}'; " for name, value in
                   (("user_id", user), ("namespace", namespace)) if value is not None)


class World:
    """A store with rows of alice, of bob, without a user, and of alice in another namespace."""

    def __init__(self):
        self.cluster = Cluster(ClusterTest.postgres, 2, "--lease", "600s")
        self.node = self.cluster.node(0)
        self.owner = self.cluster.sql
        self.app = ClusterTest.postgres.url.replace("perdura@", "app@")
        self.ids = {}
        self.node.register(queues=("default", "elsewhere"))
        for name, user, queue in (("alice", "alice", "default"), ("bob", "bob", "default"),
                                  ("nobody", None, "default"), ("other", "alice", "elsewhere")):
            self.make_rows(name, user, queue)
        # A namespace of its own, for who reads past the nodes; no node writes meanwhile.
        self.owner("UPDATE lanes SET namespace = 'other' WHERE queue = 'elsewhere'; "
                   "UPDATE jobs SET namespace = 'other' WHERE description = 'secret-other'; "
                   "UPDATE job_categories SET namespace = 'other' WHERE name = 'category-other'")

    def make_rows(self, name, user, queue):
        node, secret = self.node, f"secret-{name}"
        fields = {"queue": queue, "payload": {"word": secret}, "user_id": user, "limit_key": secret,
                  "external_id": secret, "metadata": {"word": secret}}
        first = node.enqueue("t", **{k: v for k, v in fields.items() if v})["id"]
        task = next(t for t in node.claim(max=10) if t["id"] == first)
        node.report_ok("worker-1", task, "start")
        node.report_ok("worker-1", task, "log", level="INFO", message=secret)
        node.report_ok("worker-1", task, "checkpoint", name=secret, progress=30, data={"at": secret})
        node.complete("worker-1", task, {"word": secret})
        held = node.enqueue("t", **{k: v for k, v in {**fields, "external_id": None}.items() if v})["id"]
        node.report_ok("worker-1", next(t for t in node.claim(max=10) if t["id"] == held), "start")
        waits = node.enqueue("t", queue=queue, depends_on=[held], **({"user_id": user} if user else {}))["id"]
        node.expect(201, "POST", "/v1/categories", {"name": f"category-{name}"})
        jobs = [node.expect(201, "POST", "/v1/jobs", {"name": f"job-{name}-{i}", "task_type": "t", "payload":
                            {"word": secret}, "category": f"category-{name}"})["id"] for i in range(2)]
        self.owner(f"UPDATE jobs SET created_by = {repr(user) if user else 'NULL'}, description = '{secret}' "
                   f"WHERE id IN ('{jobs[0]}', '{jobs[1]}')")
        node.expect(201, "POST", "/v1/schedules",
                    {"job_id": jobs[0], "schedule_type": "cron", "cron_expression": "0 0 1 1 *"})
        self.owner("INSERT INTO recurring_jobs (id, name, pattern_type, template_job_id, created_at, updated_at, "
                   f"is_active) VALUES (gen_random_uuid(), '{secret}', 'daily', '{jobs[0]}', now(), now(), false); "
                   "INSERT INTO job_dependencies (id, job_id, depends_on_job_id, dependency_type, created_at) "
                   f"VALUES (gen_random_uuid(), '{jobs[1]}', '{jobs[0]}', 'success', now())")
        self.ids[name] = {first, held, waits}

    def ask(self, text, user="alice", namespace="default", fails=False):
        """As the role, in a transaction that says for whom."""
        return psql(self.app, f"BEGIN; {settings(user, namespace)}{text}; COMMIT;", fails, self.cluster.schema)

    def rows(self, text, **who):
        return self.ask(text, **who).split("\n")[:-1]

    def everything(self):
        """All that statements could change, as the owner sees it."""
        return self.owner("SELECT md5(string_agg(t::text, '' ORDER BY t::text)) FROM (SELECT tasks::text FROM tasks "
                          "UNION ALL SELECT jobs::text FROM jobs UNION ALL SELECT schedules::text FROM schedules "
                          "UNION ALL SELECT task_specs::text FROM task_specs) AS t (t)")


def unprotected(world):
    """Relations of the schema that the role can read, or part of them, and that no policy holds."""
    return [name for [name] in world.owner(
        f"SELECT c.relname FROM pg_class c WHERE c.relnamespace = '{world.cluster.schema}'::regnamespace "
        f"AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND has_any_column_privilege('app', c.oid, 'SELECT, INSERT, UPDATE') "
        "AND NOT CASE c.relkind WHEN 'v' THEN coalesce(c.reloptions::text LIKE '%security_invoker=true%', false) "
        "ELSE c.relrowsecurity AND EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid "
        f"AND p.polname = 'perdura_rows' AND p.polroles = ARRAY['{ROLE}'::regrole::oid]) END")]


def readable(world):
    return [name for [name] in world.owner(
        f"SELECT c.relname FROM pg_class c WHERE c.relnamespace = '{world.cluster.schema}'::regnamespace "
        "AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND has_any_column_privilege('app', c.oid, 'SELECT')")]


class Reading(unittest.TestCase):
    def test_d12_what_was_enqueued_with_sql_just_now_is_seen_by_its_user_only(self):
        for user, rows in (("alice", "0"), ("bob", "1")):
            seen = psql(WORLD.cluster.postgres.url, "BEGIN; SELECT enqueue('new', '{}', '{\"user_id\": \"bob\"}'); "
                        f"SET LOCAL ROLE app; {settings(user)}SELECT count(*) FROM tasks WHERE type = 'new'; "
                        f"SELECT count(*) FROM intake_rows; ROLLBACK", fails=None, schema=WORLD.cluster.schema)
            self.assertEqual(seen.split("\n")[1], rows, seen)

    def test_d12_a_user_sees_what_is_his_and_what_is_nobodys_in_his_namespace(self):
        expected = WORLD.ids["alice"] | WORLD.ids["nobody"]
        self.assertEqual(set(WORLD.rows("SELECT id FROM tasks")), expected)
        self.assertEqual(set(WORLD.rows("SELECT DISTINCT task_id FROM task_events")), expected)
        self.assertEqual(len(WORLD.rows("SELECT id FROM executions")), 4)
        self.assertEqual(set(WORLD.rows("SELECT DISTINCT description FROM jobs")), {"secret-alice", "secret-nobody"})
        for table in ("schedules", "recurring_jobs", "execution_logs", "task_dependencies", "job_dependencies"):
            self.assertEqual(WORLD.rows(f"SELECT count(*) FROM {table}"), ["2"], table)
        self.assertIn("secret-alice", WORLD.ask("SELECT result_data FROM executions"))
        self.assertIn("secret-alice", WORLD.ask("SELECT payload, recoverable_data FROM tasks t JOIN task_checkpoints c "
                                                "ON c.task_id = t.id"))
        self.assertEqual(set(WORLD.rows("SELECT id FROM tasks", namespace="other")), WORLD.ids["other"])
        self.assertEqual(set(WORLD.rows("SELECT id FROM tasks", user="bob")), WORLD.ids["bob"] | WORLD.ids["nobody"])
        self.assertEqual(set(WORLD.rows("SELECT name FROM job_categories WHERE name LIKE 'category-%'",
                                        namespace="other")), {"category-other"})

    def test_d12_held_tasks_have_their_lease_and_no_other_worker_is_seen(self):
        WORLD.node.register("worker-2")
        self.assertEqual(len(WORLD.rows("SELECT id FROM tasks WHERE lease_until > now()")), 2)
        self.assertEqual(WORLD.rows("SELECT id FROM workers"), ["worker-1"])
        self.assertIn("permission denied", WORLD.ask("SELECT hostname FROM workers", fails=True))

    def test_d12_without_settings_or_with_empty_or_foreign_ones_there_are_no_rows(self):
        relations = readable(WORLD)
        self.assertEqual(set(relations), {*VIEWS, *TABLES, *BEHIND})
        text = "; ".join(f"SELECT '{r}', count(*) FROM {r}" for r in relations)
        for user, namespace in ((None, None), ("", ""), ("alice", None), ("alice", ""), (None, "default"),
                                ("", "default"), ("alice", "nowhere"), ("alice", "Default"), ("alice", "default ")):
            self.assertEqual(set(WORLD.rows(text, user=user, namespace=namespace)), {f"{r}|0" for r in relations},
                             (user, namespace))
        nothing_own = WORLD.rows("SELECT id FROM tasks", user="ALICE")
        self.assertEqual(set(nothing_own), WORLD.ids["nobody"])

    def test_d12_tables_that_nobody_outside_needs_cannot_be_read(self):
        tables = [name for [name] in WORLD.owner(
            f"SELECT relname FROM pg_class WHERE relnamespace = '{WORLD.cluster.schema}'::regnamespace "
            "AND relkind IN ('r', 'p', 'v')")]
        closed = set(tables) - set(readable(WORLD))
        for name in ("api_tokens", "audit_log", "data_keys", "log_heads", "log_anchors", "store_info", "outbox"):
            self.assertIn(name, closed)
        self.assertTrue(any(name.startswith("execution_rows_2") for name in closed), "months are reached through tables")
        for name in closed:
            self.assertIn("permission denied", WORLD.ask(f"SELECT count(*) FROM {name}", fails=True), name)

    def test_d12_no_relation_that_the_role_reads_is_without_a_policy(self):
        self.assertEqual(unprotected(WORLD), [])
        [[open_tables]] = WORLD.owner(
            "SELECT count(*) FROM pg_class c WHERE relkind IN ('r', 'p') AND NOT relrowsecurity "
            f"AND relnamespace = '{WORLD.cluster.schema}'::regnamespace")
        self.assertEqual(open_tables, "0", "every table has row security")

    def test_d12_a_planted_table_or_view_without_a_policy_is_found(self):
        plants = ("CREATE TABLE planted (x text)", "CREATE VIEW planted AS SELECT * FROM tasks",
                  "CREATE TABLE planted (x text); ALTER TABLE planted ENABLE ROW LEVEL SECURITY; "
                  f"CREATE POLICY perdura_rows ON planted TO app USING (true)")
        for plant in plants:
            kind = "VIEW" if "VIEW" in plant else "TABLE"
            WORLD.owner(f"{plant}; GRANT SELECT ON planted TO {ROLE}")
            self.assertEqual(unprotected(WORLD), ["planted"], plant)
            WORLD.owner(f"DROP {kind} planted")

    def test_d12_even_rights_on_every_table_show_no_foreign_row(self):
        schema = WORLD.cluster.schema
        WORLD.owner(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {ROLE}")
        try:
            seen = WORLD.ask("; ".join(f"SELECT * FROM {name}" for name in readable(WORLD)))
            for secret in SECRETS:
                self.assertNotIn(secret, seen)
            for table in ("api_tokens", "store_info", "data_keys", "outbox", "ready_rows"):
                self.assertEqual(WORLD.rows(f"SELECT count(*) FROM {table}"), ["0"])
            months = [n for n in readable(WORLD) if "_rows_2" in n or n.endswith("_other")]
            self.assertTrue(months)
            for month in months:
                self.assertEqual(WORLD.rows(f"SELECT count(*) FROM {month}"), ["0"])
        finally:
            WORLD.owner(f"REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM {ROLE}; "
                        f"SELECT perdura_share('{ROLE}')")

    def test_d12_functions_run_with_the_rights_of_the_caller(self):
        definers = WORLD.owner(
            f"SELECT proname FROM pg_proc WHERE pronamespace = '{WORLD.cluster.schema}'::regnamespace AND prosecdef "
            "AND has_function_privilege('app', oid, 'EXECUTE')")
        self.assertEqual(definers, [["perdura_outside"]], "it says of which role a role is a member")
        WORLD.owner("UPDATE task_states SET last_heartbeat = now() - interval '1 day' WHERE held")
        everything = WORLD.owner("SELECT count(*) FROM discover_recoverable_tasks()")
        self.assertEqual(everything, [["4"]])
        self.assertEqual(len(WORLD.rows("SELECT task_id FROM discover_recoverable_tasks()")), 2)
        for call in ("validate_task_recovery(gen_random_uuid())", "perdura_mark('x', 1)",
                     f"perdura_share('{ROLE}')", "perdura_partition('task_event_rows', '2030-01-01')",
                     "perdura_month_drop('task_event_rows', '2030-01-01', true)"):
            self.assertIn("permission denied", WORLD.ask(f"SELECT {call}", fails=True), call)


LEAK = ("CREATE FUNCTION pg_temp.leak(x text) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS "
        "$$ BEGIN RAISE NOTICE 'leaked %', x; RETURN true; END $$; ")
OPERATOR = LEAK + "CREATE OPERATOR pg_temp.<<<< (FUNCTION = pg_temp.leak, RIGHTARG = text); "
WRONG = (
    "SELECT * FROM tasks", "SELECT * FROM tasks WHERE true OR user_id = 'bob'",
    "SELECT * FROM executions e LEFT JOIN tasks t ON true", "SELECT * FROM task_events, jobs",
    "SELECT * FROM task_specs", "SELECT task, payload, user_id FROM task_specs WHERE user_id = 'bob'",
    "SELECT t.* FROM task_states s FULL JOIN tasks t ON s.id <> t.id",
    "SELECT (SELECT string_agg(payload, ',') FROM tasks), (SELECT max(payload) FROM task_specs)",
    "SELECT * FROM jobs WHERE id IN (SELECT job_id FROM schedules)", "SELECT row_to_json(t) FROM tasks t",
    "SELECT * FROM task_results JOIN task_data ON true", "SELECT * FROM execution_logs CROSS JOIN lanes",
    "SELECT count(*), min(payload), max(payload) FROM task_specs", "TABLE tasks", "TABLE jobs",
    "WITH t AS MATERIALIZED (SELECT * FROM tasks) SELECT * FROM t",
    "WITH RECURSIVE r (id, payload) AS (SELECT id, payload FROM tasks UNION SELECT t.id, t.payload FROM tasks t, r) "
    "SELECT * FROM r", "SELECT * FROM tasks t, LATERAL (SELECT * FROM task_events e WHERE e.task_id <> t.id) x",
    "SELECT * FROM tasks UNION ALL SELECT * FROM tasks EXCEPT SELECT * FROM tasks WHERE user_id = 'alice'",
    "SELECT payload, lag(payload) OVER (), first_value(payload) OVER (ORDER BY user_id DESC) FROM tasks",
    "SELECT * FROM task_checkpoints TABLESAMPLE SYSTEM (100)", "SELECT query_to_xml('SELECT * FROM tasks', true, false, '')",
    "SELECT table_to_xml('task_specs'::regclass, true, false, '')", "SELECT schema_to_xml(current_schema(), true, false, '')",
    LEAK + "SELECT count(*) FROM tasks WHERE pg_temp.leak(payload)",
    LEAK + "SELECT count(task) FROM task_specs WHERE pg_temp.leak(payload)",
    LEAK + "SELECT count(*) FROM task_specs p JOIN task_states s ON pg_temp.leak(p.payload) AND p.task = s.task",
    LEAK + "SELECT count(*) FROM jobs WHERE pg_temp.leak(description)",
    LEAK + "SELECT count(*) FROM execution_logs WHERE pg_temp.leak(message)",
    LEAK + "SELECT count(*) FROM executions WHERE pg_temp.leak(result_data)",
    OPERATOR + "SELECT count(*) FROM tasks WHERE OPERATOR(pg_temp.<<<<) payload",
    OPERATOR + "SELECT count(task) FROM task_specs WHERE OPERATOR(pg_temp.<<<<) payload",
    "COPY (SELECT * FROM tasks) TO STDOUT", "COPY task_specs (task, user_id, payload) TO STDOUT", "COPY jobs TO STDOUT",
    "DECLARE c CURSOR FOR SELECT * FROM tasks; FETCH ALL FROM c",
    "DECLARE c SCROLL CURSOR FOR SELECT * FROM jobs; SET LOCAL app.current_user_id = 'carol'; FETCH ALL FROM c; "
    "MOVE ABSOLUTE 0 FROM c; FETCH ALL FROM c",
    "EXPLAIN (ANALYZE, VERBOSE, BUFFERS OFF) SELECT * FROM tasks",
    "SELECT * FROM pg_stats WHERE schemaname = current_schema()",
    "SELECT * FROM pg_stats WHERE attname IN ('user_id', 'payload', 'description', 'limit_key', 'external_id')",
    "SELECT * FROM tasks ORDER BY payload DESC, user_id DESC LIMIT 1000", "SELECT payload FROM tasks FOR SHARE",
    "SELECT DISTINCT ON (user_id) user_id, payload FROM task_specs ORDER BY user_id, payload",
    "CREATE TEMP TABLE mine AS SELECT * FROM tasks; TABLE mine",
    "CREATE TEMP VIEW mine AS SELECT * FROM tasks; TABLE mine",
    "UPDATE tasks SET priority = priority RETURNING *", "SET LOCAL row_security = off; SELECT * FROM tasks",
    "SET LOCAL row_security = off; SELECT * FROM jobs", "SELECT * FROM task_tags", "SELECT * FROM task_uniques",
    "DELETE FROM tasks RETURNING *", "DELETE FROM task_specs RETURNING payload", "SELECT payload FROM task_specs FOR UPDATE",
    "PREPARE p AS SELECT * FROM tasks; EXECUTE p; SET LOCAL app.current_user_id = 'carol'; EXECUTE p",
    "SELECT lo_import('/etc/passwd'), * FROM tasks", "SELECT pg_read_file('postgresql.conf'), payload FROM tasks",
    "SET LOCAL jit = off; SET LOCAL enable_indexscan = off; SET LOCAL enable_hashjoin = off; SELECT * FROM tasks",
    "SET LOCAL max_parallel_workers_per_gather = 4; SET LOCAL parallel_setup_cost = 0; SET LOCAL parallel_tuple_cost = 0; "
    "SET LOCAL min_parallel_table_scan_size = 0; SET LOCAL force_parallel_mode = on; SELECT * FROM tasks; TABLE jobs",
)
PROBES = (  # each would fail, or not, by the value of a row that is not the asker's
    "SELECT count(*) FROM tasks WHERE 1 / (CASE WHEN payload LIKE '%secret-bob%' THEN 0 ELSE 1 END) = 1",
    "SELECT count(task) FROM task_specs WHERE 1 / (CASE WHEN payload LIKE '%secret-bob%' THEN 0 ELSE 1 END) = 1",
    "SELECT count(task) FROM task_specs WHERE user_id = 'bob' AND (payload || 'x')::integer = 1",
    "SELECT count(*) FROM jobs WHERE created_by = 'bob' AND description::uuid IS NULL",
    "SELECT count(*) FROM tasks WHERE user_id = 'bob' AND payload::integer = 1",
    "SELECT count(*) FROM execution_logs WHERE message LIKE '%bob%' AND message::date < now()",
    "SELECT count(*) FROM task_specs p WHERE user_id = 'bob' AND "
    "(SELECT 1 / (count(*) - 1) FROM generate_series(1, length(p.payload) / length(p.payload))) = 1",
    "SELECT count(*) FROM task_states s JOIN task_specs p ON p.task = s.task AND p.user_id = 'bob' "
    "AND to_date(p.payload, 'YYYY') IS NULL",
    "SELECT count(*) FROM tasks WHERE user_id = 'bob' GROUP BY payload::integer",
    "SELECT sum(payload::integer) FROM task_specs WHERE user_id = 'bob'",
)


def check_secrets(test, text, what):
    for secret in (*SECRETS, *WORLD.ids["bob"], *WORLD.ids["other"]):
        test.assertNotIn(secret, text, what)


def harmless(statement):
    return statement.replace("priority = priority", "priority = 1") + "; ROLLBACK"


class WrongStatements(unittest.TestCase):
    def setUp(self):
        self.before = WORLD.everything()

    def tearDown(self):
        self.assertEqual(WORLD.everything(), self.before)

    def test_d12_no_wrong_statement_shows_a_foreign_row(self):
        WORLD.owner("ANALYZE")
        own = 0
        for statement in WRONG:
            seen = WORLD.ask(harmless(statement), fails=None)
            check_secrets(self, seen, statement)
            own += "secret-alice" in seen
        self.assertGreater(own, 30, "the statements do show the rows of who asks")

    def test_d12_as_the_owner_the_same_statements_show_everything(self):
        for statement in ("TABLE tasks", "TABLE jobs", "COPY task_specs (task, user_id, payload) TO STDOUT",
                          LEAK + "SELECT count(*) FROM tasks WHERE pg_temp.leak(payload)"):
            self.assertIn("secret-bob", psql(WORLD.cluster.store, f"BEGIN; {statement}; ROLLBACK"), statement)

    def test_d12_no_error_depends_on_a_foreign_row(self):
        for probe in PROBES:
            self.assertRegex(WORLD.ask(probe), r"^[0-9]*\n?$", probe)
            self.assertRegex(psql(WORLD.cluster.store, probe, fails=True), "ERROR", "the probe works")

    def test_d12_what_is_written_past_the_policies_is_refused(self):
        for statement in (
                "INSERT INTO jobs (id, namespace, name, created_by, created_at, updated_at) "
                "VALUES (gen_random_uuid(), 'other', 'x', 'alice', now(), now())",
                "INSERT INTO task_specs (task, lane, created_at, user_id) VALUES (1, 1, now(), 'alice')",
                "INSERT INTO task_specs (task, lane, created_at) SELECT 1, 1, now() ON CONFLICT DO NOTHING",
                "INSERT INTO tasks (id, type) VALUES (gen_random_uuid(), 't')",
                "INSERT INTO lanes (namespace, queue, type) VALUES ('other', 'elsewhere', 't')",
                "UPDATE task_specs SET user_id = 'alice'", "UPDATE jobs SET created_by = 'alice'",
                "UPDATE tasks SET user_id = 'alice'", "UPDATE tasks SET error = 'x'", "UPDATE task_states SET rev = 0",
                "DELETE FROM jobs", "DELETE FROM tasks", "TRUNCATE jobs", "LOCK TABLE jobs IN EXCLUSIVE MODE",
                "COPY jobs FROM STDIN", "CREATE TABLE mine ()", "ALTER TABLE jobs DISABLE ROW LEVEL SECURITY",
                "DROP POLICY perdura_rows ON jobs", f"GRANT SELECT ON jobs TO {ROLE}", "SET ROLE perdura",
                "SET SESSION AUTHORIZATION perdura", "CREATE POLICY mine ON jobs USING (true)",
                "MERGE INTO jobs j USING tasks t ON j.id = t.job_id WHEN MATCHED THEN DELETE",
                "ALTER VIEW tasks RESET (security_invoker)", "CREATE ROLE mine SUPERUSER",
                "SELECT setval('task_keys', 1)", "NOTIFY x; SELECT nextval('task_keys')",
                "CREATE TEMP TABLE mine (id uuid REFERENCES jobs (id))"):
            seen = WORLD.ask(statement, fails=None)
            self.assertRegex(seen, "ERROR.*(permission denied|must be|cannot be|cannot insert|cannot delete|temporary tables)|"
                             "no privileges were granted", statement)
            check_secrets(self, seen, statement)

    def test_d12_one_statement_has_one_user_whatever_it_sets_meanwhile(self):
        for setting in ("WHERE set_config('app.current_user_id', 'bob', true) IS NOT NULL",
                        "WHERE set_config('app.current_user_id', user_id, true) IS NOT NULL"):
            seen = set(WORLD.rows(f"SELECT id FROM tasks {setting}")) - WORLD.ids["nobody"]
            self.assertTrue(seen <= WORLD.ids["alice"] or seen <= WORLD.ids["bob"], seen)

    def test_d12_a_prepared_statement_follows_the_settings(self):
        seen = WORLD.ask("SET LOCAL plan_cache_mode = force_generic_plan; PREPARE p AS SELECT DISTINCT user_id FROM tasks "
                         "WHERE user_id IS NOT NULL; EXECUTE p; SET LOCAL app.current_user_id = 'bob'; EXECUTE p; "
                         "SET LOCAL app.current_user_id = ''; EXECUTE p")
        self.assertEqual(seen.split(), ["alice", "bob"])

    def test_d12_a_plan_of_the_owner_is_not_used_for_the_role(self):
        seen = psql(WORLD.cluster.store, f"BEGIN; {settings('alice')} PREPARE p AS SELECT user_id FROM tasks; "
                    f"SELECT 'owner', count(*) FROM tasks; SET LOCAL ROLE {ROLE}; EXECUTE p; RESET ROLE; ROLLBACK")
        self.assertIn("owner|12", seen)
        self.assertIn("alice", seen)
        self.assertNotIn("bob", seen)

    def test_d12_what_explain_counts_is_not_what_is_shown(self):
        plan = WORLD.ask("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT id FROM tasks")
        self.assertRegex(plan.split("\n")[0], r"actual rows=6 ")


class Writing(unittest.TestCase):
    def test_d12_a_user_changes_own_tasks_only_and_every_node_follows(self):
        nodes = WORLD.cluster.nodes
        mine, foreign, free = (WORLD.node.enqueue("w", queue="writing", **({"user_id": user} if user else {}))["id"]
                               for user in ("alice", "bob", None))
        seen = WORLD.rows("UPDATE tasks SET priority = 7 WHERE type = 'w' RETURNING id")
        self.assertEqual(seen, [mine])
        self.assertEqual([nodes[1].task(t)["priority"] for t in (mine, foreign, free)], [7, 0, 0])
        WORLD.ask(f"UPDATE tasks SET status = 'cancelled' WHERE id IN ('{foreign}', '{free}')")
        self.assertEqual([nodes[1].task(t)["status"] for t in (foreign, free)], ["pending", "pending"])
        WORLD.ask(f"UPDATE tasks SET status = 'cancelled' WHERE id = '{mine}'", user="bob")
        self.assertEqual(nodes[1].task(mine)["status"], "pending")
        WORLD.ask(f"UPDATE tasks SET status = 'cancelled' WHERE id = '{mine}'")
        self.assertEqual([node.task(mine)["status"] for node in nodes], ["cancelled", "cancelled"])
        for user, namespace in ((None, None), ("", ""), ("alice", "other")):
            WORLD.ask("UPDATE tasks SET priority = 9 WHERE type = 'w'", user=user, namespace=namespace)
        self.assertEqual([nodes[1].task(t)["priority"] for t in (mine, foreign, free)], [7, 0, 0])
        for task in (foreign, free):
            WORLD.node.expect(200, "POST", f"/v1/tasks/{task}:cancel", {})
        for task in (mine, foreign, free):
            WORLD.node.expect(204, "DELETE", f"/v1/tasks/{task}")


class Pooling(unittest.TestCase):
    """PgBouncer in transaction mode with one connection, which all clients share."""

    def setUp(self):
        self.pooler = self.enterContext(Pooler(ClusterTest.postgres, "app", 1))

    def ask(self, text):
        return psql(self.pooler.url, text).split()

    def count(self, settings_text):
        table = f"{WORLD.cluster.schema}.tasks"
        return self.ask(f"BEGIN; {settings_text} SELECT DISTINCT user_id FROM {table} WHERE user_id IS NOT NULL; COMMIT")

    def test_d12_settings_of_a_transaction_end_with_it(self):
        self.assertEqual(self.count(settings("bob")), ["bob"])
        self.assertEqual(self.count(""), [])
        self.assertEqual(self.ask("SELECT current_setting('app.current_user_id', true) IS NOT DISTINCT FROM ''"), ["t"],
                         "the connection was used before: what remains is empty, not absent")
        self.assertEqual(self.count(settings("alice")), ["alice"])
        self.assertEqual(self.count(""), [])

    def test_d12_no_wrong_statement_shows_a_row_of_the_client_before(self):
        own = 0
        for number, statement in enumerate(WRONG):
            for user in ("bob", "alice") if number % 5 == 0 else ("alice",):
                seen = psql(self.pooler.url, f"BEGIN; SET LOCAL search_path = {WORLD.cluster.schema}; "
                            f"{settings(user)}{harmless(statement)}", None)
            check_secrets(self, seen, statement)
            own += "secret-alice" in seen
        self.assertGreater(own, 30)

    def test_d12_a_setting_left_behind_does_not_reach_who_sets_both(self):
        self.ask("SET app.current_user_id = 'bob'; SET app.current_namespace = 'default'")
        self.assertEqual(self.count(""), ["bob"], "this is why SET LOCAL is asked for")
        self.assertEqual(self.count(settings("alice")), ["alice"])
        self.assertEqual(self.count(settings("")), [])
        self.ask("RESET app.current_user_id; RESET app.current_namespace")
        self.assertEqual(self.count(""), [])


if __name__ == "__main__":
    unittest.main()
