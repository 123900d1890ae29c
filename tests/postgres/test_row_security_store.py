"""Row-level security as a part of the store: who makes it and when, what the schema check and the doctor say
of it, and that the owner's statements pay nothing for it (D12, F-J5)."""
import pathlib
import re
import subprocess
import tempfile
import unittest

import harness
from cluster import ClusterTest, begin_module
from test_row_security import psql

setUpModule = begin_module
SETTINGS = "SET app.current_user_id = 'alice'; SET app.current_namespace = 'default'; "


class Database:
    """A database of its own, its owner who is no superuser, and the name of a role for SQL from outside."""

    made = 0

    def __init__(self):
        Database.made += 1
        self.role, self.owner = f"outside_{Database.made}", f"owner_{Database.made}"
        base = ClusterTest.postgres.url
        psql(base, f"CREATE ROLE {self.owner} LOGIN")
        psql(base, f"CREATE DATABASE own_{Database.made} OWNER {self.owner}")
        self.admin = base[:-len("postgres")] + f"own_{Database.made}"
        self.url = self.admin.replace("perdura@", f"{self.owner}@")

    def sql(self, text, fails=False, url=None):
        return psql(url or self.admin, "SET search_path = perdura; " + text, fails)

    def outside(self, text, fails=False):
        return self.sql(SETTINGS + text, fails, self.admin.replace("perdura@", f"{self.role}@"))

    def config(self, folder, text=""):
        path = pathlib.Path(folder, "perdura.yaml")
        path.write_text(f"access:\n  sql_role: {self.role}\n{text}")
        return path

    def perdura(self, *words, code=0, store=None):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([harness.binary(), *words, "--store", store or self.url, "--config", self.config(folder)],
                                  text=True, capture_output=True, cwd=folder, check=False)
        if code is not None and done.returncode != code:
            raise AssertionError(f"{words}: {done.returncode} {done.stdout} {done.stderr}")
        return done.stdout + done.stderr

    def doctor(self, store=None):
        return next(line for line in self.perdura("doctor", code=None, store=store).splitlines() if "sql role" in line)

    def task(self, user):
        """One of this user, made past the nodes: rows are what matters here."""
        self.sql("INSERT INTO lanes (namespace, queue, type) VALUES ('default', 'q', 't') ON CONFLICT DO NOTHING; "
                 "WITH k AS (SELECT nextval('task_keys') AS task), p AS (INSERT INTO task_specs (task, lane, user_id, "
                 f"created_at) SELECT task, lane, '{user}', now() FROM k, lanes WHERE queue = 'q') INSERT INTO task_states "
                 "(task, id, lane, status, updated_at, order_key) SELECT task, ('01a1f16ee8b2704d' || to_hex((-9223372036854775808) | "
                 "(task << 22)))::uuid, lane, 'paused', now(), 1 "
                 "FROM k, lanes WHERE queue = 'q'")


class Making(unittest.TestCase):
    def setUp(self):
        self.db = Database()

    def test_d12_the_role_may_be_made_after_the_store(self):
        self.db.perdura("migrate", "up")
        self.assertIn("is not there", self.db.doctor())
        self.assertEqual(self.db.sql("SELECT count(*) FROM pg_policy WHERE polname = 'perdura_rows'"), "0\n")
        self.db.sql(f"CREATE ROLE {self.db.role} LOGIN")
        self.assertIn("lacks", self.db.doctor())
        self.assertIn("permission denied", self.db.outside("TABLE perdura.tasks", fails=True))
        self.db.perdura("migrate", "up")
        self.assertRegex(self.db.doctor(), "^ok .* sees its own rows only")
        for user in ("alice", "bob"):
            self.db.task(user)
        self.assertEqual(self.db.outside("SELECT user_id FROM tasks"), "alice\n")
        before = self.db.sql("SELECT oid, xmin FROM pg_policy ORDER BY oid")
        self.db.perdura("migrate", "up")
        self.assertEqual(self.db.sql("SELECT oid, xmin FROM pg_policy ORDER BY oid"), before, "nothing is made twice")
        self.db.perdura("verify", code=None)

    def test_d12_a_node_makes_it_at_its_start_and_the_role_may_go_again(self):
        self.db.sql(f"CREATE ROLE {self.db.role} LOGIN")
        with tempfile.TemporaryDirectory() as folder:
            server = harness.Server(folder, "--config", str(self.db.config(folder)))
            server.store = self.db.url
            self.addCleanup(server.stop)
            server.start()
            self.assertIn("store.sql_role_shared", server.log())
            self.assertEqual(self.db.outside("SELECT count(*) FROM tasks"), "0\n")
            server.stop()
            self.db.sql(f"DROP OWNED BY {self.db.role}; DROP ROLE {self.db.role}")
            server.start()
            server.stop()
            self.assertIn("is not there", self.db.doctor())
            self.db.sql(f"CREATE ROLE {self.db.role} LOGIN")
            server.start()
            self.assertEqual(self.db.outside("SELECT count(*) FROM tasks"), "0\n")

    def test_d12_another_role_takes_over_and_the_former_one_sees_nothing(self):
        former = self.db.role
        self.db.sql(f"CREATE ROLE {former} LOGIN; CREATE ROLE {former}_new LOGIN")
        self.db.perdura("migrate", "up")
        self.db.task("alice")
        self.assertEqual(self.db.outside("SELECT count(*) FROM tasks"), "1\n")
        self.db.role += "_new"
        self.db.perdura("migrate", "up")
        self.assertEqual(self.db.outside("SELECT count(*) FROM tasks"), "1\n")
        self.db.role = former
        self.assertEqual(self.db.outside("SELECT count(*) FROM tasks"), "0\n")

    def test_d12_a_role_of_another_name_is_still_outside(self):
        self.db.sql(f"CREATE ROLE {self.db.role} LOGIN")
        self.db.perdura("migrate", "up")
        for user in ("alice", "bob"):
            self.db.task(user)
        self.db.sql(f"ALTER ROLE {self.db.role} RENAME TO {self.db.role}_renamed")
        self.db.role += "_renamed"
        self.assertEqual(self.db.outside("SELECT user_id FROM tasks"), "alice\n")

    def test_d12_roles_with_rights_of_their_own_keep_them(self):
        self.db.sql(f"CREATE ROLE {self.db.role} LOGIN; CREATE ROLE {self.db.role}_support LOGIN")
        self.db.perdura("migrate", "up")
        for user in ("alice", "bob"):
            self.db.task(user)
        support = self.db.admin.replace("perdura@", f"{self.db.role}_support@")
        self.db.sql(f"GRANT USAGE ON SCHEMA perdura TO {self.db.role}_support; "
                    f"GRANT SELECT ON ALL TABLES IN SCHEMA perdura TO {self.db.role}_support; "
                    f"GRANT UPDATE ON tasks TO {self.db.role}_support")
        self.assertEqual(self.db.sql("SELECT count(*) FROM tasks", url=support), "2\n")
        self.assertEqual(len(self.db.sql("UPDATE tasks SET priority = 3 RETURNING id", url=support).split()), 2)
        self.db.perdura("verify", "--logs", code=None, store=support)
        self.db.sql(f"GRANT {self.db.role} TO {self.db.role}_support")
        self.assertEqual(self.db.sql(SETTINGS + "SELECT user_id FROM tasks", url=support), "alice\n")

    def test_d12_a_role_that_gets_around_policies_gets_no_rights(self):
        for right, why in (("SUPERUSER", "superuser"), ("BYPASSRLS", "BYPASSRLS"), ("CREATEROLE", "CREATEROLE")):
            self.db.sql(f"CREATE ROLE {self.db.role} LOGIN {right}")
            self.db.perdura("migrate", "up")
            self.assertRegex(self.db.doctor(), f"^warning .*{why}")
            self.assertEqual(self.db.sql("SELECT count(*) FROM pg_policy WHERE polname = 'perdura_rows'"), "0\n")
            self.db.sql(f"DROP ROLE {self.db.role}")
        self.db.sql(f"CREATE ROLE {self.db.role} LOGIN; GRANT {self.db.owner} TO {self.db.role}")
        self.db.perdura("migrate", "up")
        self.assertRegex(self.db.doctor(), "^warning .*the owner of the tables")
        self.db.sql(f"REVOKE {self.db.owner} FROM {self.db.role}; "
                    f"CREATE TABLE mine (); ALTER TABLE mine OWNER TO {self.db.role}")
        self.assertRegex(self.db.doctor(), "^warning .*owns tables")

    def test_d12_the_doctor_names_members_that_get_around_the_policies(self):
        self.db.sql(f"CREATE ROLE {self.db.role}; CREATE ROLE {self.db.role}_app BYPASSRLS IN ROLE {self.db.role}")
        self.db.perdura("migrate", "up")
        self.assertRegex(self.db.doctor(), f"^warning .*{self.db.role}_app has BYPASSRLS")

    def test_d12_views_of_its_own_before_postgresql_15(self):
        self.db.sql(f"CREATE ROLE {self.db.role} LOGIN")
        self.db.perdura("migrate", "up")
        self.db.sql(f"REVOKE ALL ON ALL TABLES IN SCHEMA perdura FROM {self.db.role}")
        for view in ("tasks", "executions", "task_events"):
            self.db.sql(f"ALTER VIEW {view} RESET (security_invoker)")  # as the version that lacks it
        self.db.sql(f"SELECT perdura_share('{self.db.role}', true)")
        for user in ("alice", "bob"):
            self.db.task(user)
        self.assertEqual(self.db.outside("SELECT user_id FROM own_tasks"), "alice\n")
        self.assertEqual(self.db.outside("SELECT count(*) FROM own_executions"), "0\n")
        leak = ("CREATE FUNCTION pg_temp.leak(x text) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS "
                "$$ BEGIN RAISE NOTICE 'leaked %', x; RETURN true; END $$; ")
        self.assertNotIn("bob", self.db.outside(leak + "SELECT user_id FROM own_tasks WHERE pg_temp.leak(user_id)"))
        for view in ("tasks", "executions", "task_events"):
            self.assertIn("permission denied", self.db.outside(f"TABLE {view}", fails=True))
        self.assertEqual(self.db.outside("UPDATE own_tasks SET priority = 4 RETURNING user_id"), "alice\n")

    def test_d12_the_migration_goes_down_and_up_again(self):
        self.db.sql(f"CREATE ROLE {self.db.role} LOGIN")
        self.db.perdura("migrate", "up")
        number = re.search(r"0*(\d+) +row security", self.db.perdura("migrate", "status")).group(1)
        self.db.perdura("migrate", "down", "--to", str(int(number) - 1), "--lose-data")
        self.assertEqual(self.db.sql("SELECT count(*) FROM pg_policy"), "0\n")
        self.assertEqual(self.db.sql("SELECT count(*) FROM pg_class WHERE relrowsecurity"), "0\n")
        self.assertRegex(self.db.outside("TABLE perdura.tasks", fails=True), "permission denied")
        self.db.perdura("migrate", "up")
        self.assertEqual(self.db.outside("SELECT count(*) FROM tasks"), "0\n")
        self.db.perdura("verify")


class Page(unittest.TestCase):
    def test_d12_what_the_page_says_works_word_for_word(self):
        page = pathlib.Path(__file__).resolve().parents[2].joinpath("docs/security.md").read_text(encoding="utf-8")
        section = page.split("## SQL of your own\n")[1].split("\n## ")[0]
        roles, shell, asks = re.findall(r"```(?:sql|sh)\n(.*?)```", section, re.S)
        db = Database()
        db.role = "authenticated_users"
        db.perdura("migrate", "up")
        db.sql(roles)
        shell = shell.replace("postgres://owner@db.internal/perdura", db.url)
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "perdura").symlink_to(harness.binary())
            told = subprocess.run(["sh", "-c", f"PATH={folder}:$PATH; {shell}"], cwd=folder, text=True, capture_output=True,
                                  check=False).stdout
        self.assertIn("the role authenticated_users sees its own rows only", told)
        for user in ("alice", "bob"):
            db.task(user)
        db.sql("UPDATE tasks SET status = 'pending'; UPDATE lanes SET type = 'report:old'")
        seen = psql(db.admin.replace("perdura@", "reports@"), asks)
        self.assertEqual(seen.count("report:old|pending"), 1)
        self.assertEqual(db.sql("SELECT user_id, status FROM tasks ORDER BY user_id"), "alice|cancelled\nbob|pending\n")


class Checking(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.db = Database()
        cls.db.sql(f"CREATE ROLE {cls.db.role}")
        cls.db.perdura("migrate", "up")
        cls.db.perdura("verify")

    def found(self, change, back, what):
        self.db.sql(change)
        try:
            self.assertRegex(self.db.perdura("verify", code=None), what, change)
            self.assertRegex(self.db.perdura("doctor", code=None), what, change)
        finally:
            self.db.sql(back)
        self.db.perdura("verify")

    def test_fj5_foreign_policies_and_changed_ones_of_ours_are_named(self):
        [month] = self.db.sql("SELECT min(relname) FROM pg_class WHERE relname LIKE 'execution\\_rows\\_2%' "
                              "AND relkind = 'r'").split()
        self.found("CREATE POLICY mine ON jobs USING (true)", "DROP POLICY mine ON jobs", "policy mine of jobs was added")
        self.found("CREATE POLICY perdura_rows ON api_tokens USING (true)", "DROP POLICY perdura_rows ON api_tokens",
                   "policy perdura_rows of api_tokens was added")
        self.found(f"CREATE POLICY mine ON {month} USING (true)", f"DROP POLICY mine ON {month}", "policy mine of .* was added")
        self.found("ALTER TABLE outbox DISABLE ROW LEVEL SECURITY", "ALTER TABLE outbox ENABLE ROW LEVEL SECURITY",
                   "table outbox was changed")
        self.found("ALTER TABLE outbox FORCE ROW LEVEL SECURITY", "ALTER TABLE outbox NO FORCE ROW LEVEL SECURITY",
                   "table outbox was changed")
        self.found(f"ALTER TABLE {month} DISABLE ROW LEVEL SECURITY", f"ALTER TABLE {month} ENABLE ROW LEVEL SECURITY",
                   f"{month}.*row security.* was changed")
        self.found("ALTER VIEW tasks RESET (security_invoker)", "ALTER VIEW tasks SET (security_invoker = true)",
                   "view tasks was changed")
        self.found("ALTER POLICY perdura_rows ON jobs TO PUBLIC", f"ALTER POLICY perdura_rows ON jobs TO {self.db.role}",
                   "policy perdura_rows of jobs was changed")
        again = f"DROP POLICY IF EXISTS perdura_rows ON jobs; SELECT perdura_share('{self.db.role}')"
        self.found("ALTER POLICY perdura_rows ON jobs USING (true)", again, "policy perdura_rows of jobs was changed")
        self.found("DROP POLICY perdura_rows ON jobs", again, "policy perdura_rows of jobs is missing; run 'perdura migrate up'")
        others = "CREATE POLICY perdura_others ON jobs USING (NOT (SELECT perdura_outside(current_user)))"
        self.found("DROP POLICY perdura_others ON jobs", others, "policy perdura_others of jobs is missing")
        self.found("ALTER POLICY perdura_others ON jobs USING (true)", "DROP POLICY perdura_others ON jobs; " + others,
                   "policy perdura_others of jobs was changed")

    def test_fj5_a_dropped_policy_is_made_again_by_the_owner(self):
        self.db.sql("DROP POLICY perdura_rows ON schedules")
        self.db.perdura("migrate", "up")
        self.db.perdura("verify")


class Cost(unittest.TestCase):
    def test_d12_statements_of_the_owner_have_no_filter_of_a_policy(self):
        """By the plans of everything that a node runs."""
        db = Database()
        db.sql(f"CREATE ROLE {db.role} LOGIN")
        for name, value in (("session_preload_libraries", "auto_explain"), ("auto_explain.log_min_duration", "0"),
                            ("auto_explain.log_level", "log"), ("auto_explain.log_verbose", "on")):
            for role in (db.owner, db.role):
                db.sql(f"LOAD 'auto_explain'; ALTER ROLE {role} SET {name} = '{value}'")
        log = pathlib.Path(ClusterTest.postgres.folder, "log")
        with tempfile.TemporaryDirectory() as folder:
            server = harness.Server(folder, "--config", str(db.config(folder)))
            server.store = db.url
            self.addCleanup(server.stop)
            db.perdura("migrate", "up")
            begun = log.stat().st_size
            server.start()
            node = harness.ApiTest()
            node.server = server
            node.local = harness.threading.local()
            self.addCleanup(node.doCleanups)
            node.register()
            for _ in range(3):
                node.enqueue("t", user_id="alice", payload={"a": 1})
            for task in node.claim(max=3):
                node.report_ok("worker-1", task, "start")
                node.complete("worker-1", task, 1)
            server.stop()
        text = log.read_text(errors="replace")[begun:]
        plans = [part for part in text.split("duration:") if "plan:" in part and "ready_rows" in part or "task_specs" in part]
        self.assertGreater(len(plans), 5)
        for mark in ("perdura_outside", "app.current_user_id"):
            self.assertEqual([p[:2000] for p in plans if mark in p], [], mark)
        begun = log.stat().st_size
        db.outside("SELECT * FROM tasks")
        self.assertIn("app.current_user_id", log.read_text(errors="replace")[begun:], "as the role it is in the plan")


if __name__ == "__main__":
    unittest.main()
