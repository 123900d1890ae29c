"""Categories, jobs and schedules written with SQL (A14, D1, D2, D5): the statements of the source documents run as they
are written but for their errors, and nodes notice the rows."""
import json
import pathlib
import re
import time
import unittest

import psycopg2

import harness
from cluster import CALM, begin_module
from sql_programs import SqlTest

setUpModule = begin_module
TEXT = (pathlib.Path(__file__).parent / "source_statements.sql").read_text(encoding="utf-8")
# What does not run, and why: what a statement makes is there already, or it is one of the errors that
# Perdura does not take over (payloads are text, executions are partitioned by id, rows have owners).
REFUSED = {
    r"CREATE TABLE (?!executions_)": "already exists",
    r"CREATE TYPE (execution_status|log_level|task_status)": "already exists",
    r"CREATE TABLE executions_": "is not a table|not partitioned|is a view",
    r"CREATE (UNIQUE )?INDEX \w+\s+ON (tasks|task_events|executions)\b": "cannot create index on relation",
    r"CREATE INDEX idx_(jobs_payload|execution_logs_context)_gin": "data type text has no default operator class",
    r"ALTER TABLE executions ENABLE": "not a table|not supported for views|is not a",
    r"CREATE POLICY": "does not exist",
    r"CREATE TRIGGER update_tasks_updated_at": "is a view",
    r"INSERT INTO tasks .*\sON CONFLICT \(type": "no unique or exclusion constraint",
}


def statements():
    """Without comments; a dollar quote hides its semicolons."""
    text = re.sub(r"^\s*--.*$", "", TEXT, flags=re.MULTILINE).replace(r"d\'analytics", "d''analytics")  # 003's error
    found, at = [], ""
    for part in re.split(r"(;\s*\n)", text):
        at += part
        if part.startswith(";") and at.count("$$") % 2 == 0:
            found.append(at.strip())
            at = ""
    return found


class Catalog(SqlTest):
    def begin(self, *arguments):
        return super().begin(1, *arguments, *CALM)

    def sql(self, text):
        return self.nodes.sql(text)

    def category(self):
        return self.sql("SELECT id FROM job_categories WHERE name = 'messaging'")[0][0]

    def job(self, **columns):
        columns = {"name": "send", "category_id": self.category(), "target_service": "messaging-service",
                   "target_method": "Send", "task_type": "t", **columns}
        columns = {k: v for k, v in columns.items() if v is not None}
        values = ", ".join("'" + v + "'" for v in columns.values())
        return self.sql(f"INSERT INTO jobs ({', '.join(columns)}) VALUES ({values}) RETURNING id")[0][0]

    def run_of(self, job, deadline_s=30):
        return harness.wait_until(lambda: self.sql(f"SELECT id, status FROM tasks WHERE job_id = '{job}'"), deadline_s,
                                  "a run of the job")

    def planned(self, schedule):
        return harness.wait_until(lambda: [r for r in self.sql(
            f"SELECT next_fire_at, error FROM schedules WHERE id = '{schedule}'") if not r[1].startswith("written")],
            what="a node to plan it")[0]

    def test_a14_the_statements_of_the_sources_run_as_written_but_for_their_errors(self):
        self.begin()
        before = self.sql("SELECT name, id, default_priority, default_timeout, configuration FROM job_categories")
        self.nodes.stop(0)  # it waits for no index
        connection = self.connect()
        ran = 0
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL search_path = {self.nodes.schema}")
            for text in statements():
                reason = next((why for pattern, why in REFUSED.items() if re.match(pattern, text, re.DOTALL)), None)
                cursor.execute("SAVEPOINT one")
                with self.subTest(statement=text.split("\n")[0]):
                    if reason:
                        with self.assertRaisesRegex(psycopg2.Error, reason):
                            cursor.execute(text)
                        cursor.execute("ROLLBACK TO one")
                    else:
                        cursor.execute(text)
                        ran += 1
            cursor.execute("SELECT name, id::text, default_priority, default_timeout::text, configuration::text FROM "
                           "job_categories")
            self.assertEqual([list(row) for row in cursor.fetchall()], before)
        connection.rollback()  # nodes do not start where a schema has more than Perdura made
        self.assertGreater(ran, 25)
        self.nodes.start(0)

    def test_a14_004s_statement_without_its_conflict_clause_does_what_004_says(self):
        self.begin()
        [text] = [s for s in statements() if s.startswith("INSERT INTO tasks")]
        plain = re.sub(r"ON CONFLICT.*(?=RETURNING)", "", text, flags=re.DOTALL)
        ids = {self.sql(t)[0][0] for t in (plain, plain, re.sub(r"ON CONFLICT.*(?=RETURNING)", "ON CONFLICT DO NOTHING ",
                                                                 text, flags=re.DOTALL))}
        self.assertEqual(len(ids), 1)
        self.assertNotEqual(self.sql(plain.replace("email:send", "sms:send"))[0][0], next(iter(ids)))
        self.taken_in()
        self.assertEqual(self.sql("SELECT count(*) FROM tasks"), [["2"]])

    def test_d5_d2_a_category_a_job_and_schedules_written_with_sql_make_tasks(self):
        self.begin()
        [[category]] = self.sql("INSERT INTO job_categories (name, default_priority, default_timeout, configuration) VALUES "
                                "('letters', 'high', 7, '{\"queue\": \"post\"}') RETURNING id")
        job = self.job(category_id=category, payload='{"to": "all"}', created_by="u")
        self.sql(f"INSERT INTO schedules (job_id, schedule_type) VALUES ('{job}', 'immediate')")
        [[made, status]] = self.run_of(job)
        task = self.node.task(made)
        self.assertEqual((status, task["queue"], task["priority"], task["timeout_ms"], task["payload"]),
                         ("pending", "post", 10, 7000, {"to": "all"}))
        for kind, column, value in (("cron", "cron_expression", "*/5 * * * *"), ("interval", "interval_seconds", "3600"),
                                    ("once", "scheduled_at", "2099-01-01 00:00Z")):
            [[schedule]] = self.sql(f"INSERT INTO schedules (job_id, schedule_type, {column}) VALUES ('{job}', '{kind}', "
                                    f"'{value}') RETURNING id")
            at, error = self.planned(schedule)
            self.assertTrue(at, kind)
            self.assertEqual(error, "")
            shown = self.node.expect(200, "GET", f"/v1/schedules/{schedule}")
            self.assertTrue(shown["next_fire_at"])
        self.sql(f"INSERT INTO schedules (job_id, schedule_type, interval_seconds) VALUES ('{job}', 'interval', 1)")
        harness.wait_until(lambda: len(self.run_of(job)) > 2, what="runs of the interval")

    def test_d2_times_that_are_changed_with_sql_count_from_now(self):
        self.begin()
        job = self.job()
        [[schedule]] = self.sql(f"INSERT INTO schedules (job_id, schedule_type, cron_expression) VALUES ('{job}', 'cron', "
                                "'0 0 1 1 *') RETURNING id")
        first, _ = self.planned(schedule)
        self.sql(f"UPDATE schedules SET cron_expression = '0 0 2 1 *' WHERE id = '{schedule}'")
        second, _ = self.planned(schedule)
        self.assertEqual((first[5:10], second[5:10]), ("01-01", "01-02"))
        self.sql(f"UPDATE schedules SET is_active = false WHERE id = '{schedule}'")
        self.assertEqual(self.planned(schedule), ["", ""])
        self.sql(f"UPDATE schedules SET is_active = true, cron_expression = 'nonsense' WHERE id = '{schedule}'")
        at, error = self.planned(schedule)
        self.assertEqual(at, "")
        self.assertIn("cron", error)

    def test_d6_a_pattern_written_with_sql_makes_tasks(self):
        self.begin()
        job = self.job()
        [[pattern]] = self.sql("INSERT INTO recurring_jobs (name, pattern_type, pattern_config, template_job_id) VALUES "
                               f"('p', 'daily', '{{\"time\": \"09:00\"}}', '{job}') RETURNING id")
        at, error = harness.wait_until(lambda: [r for r in self.sql(
            f"SELECT next_generation, error FROM recurring_jobs WHERE id = '{pattern}'")
            if not r[1].startswith("written")], what="a node to plan it")[0]
        self.assertTrue(at, error)

    def test_d1_what_is_wrong_is_refused_by_the_checks_of_003(self):
        self.begin()
        job = self.job()
        for text, why in (
                (f"INSERT INTO schedules (job_id, schedule_type) VALUES ('{job}', 'cron')", "chk_schedule_config"),
                (f"INSERT INTO schedules (job_id, schedule_type) VALUES ('{job}', 'interval')", "chk_schedule_config"),
                (f"INSERT INTO schedules (job_id, schedule_type) VALUES ('{job}', 'once')", "chk_schedule_config"),
                (f"INSERT INTO schedules (job_id, schedule_type) VALUES ('{job}', 'yearly')", "chk_schedule_config"),
                ("INSERT INTO job_categories (name, default_priority) VALUES ('x', 'urgent')", "chk_category_priority"),
                ("INSERT INTO job_categories (name, default_timeout) VALUES ('messaging', 9)", "duplicate key"),
                ("INSERT INTO jobs (name, priority) VALUES ('x', 'urgent')", "chk_job_priority"),
                ("INSERT INTO jobs (name, payload) VALUES ('x', '{')", "invalid input syntax for type json"),
                (f"INSERT INTO job_dependencies (job_id, depends_on_job_id, dependency_type) VALUES ('{job}', '{job}', "
                 "'success')", "job_dependencies_check")):
            with self.assertRaisesRegex(AssertionError, why):
                self.sql(text)

    def test_d1_idle_nodes_that_do_not_poll_hear_of_it(self):
        super().begin(2, *CALM)
        self.nodes.wait_leader()
        time.sleep(1)
        job = self.job()
        began = time.monotonic()
        self.sql(f"INSERT INTO schedules (job_id, schedule_type) VALUES ('{job}', 'immediate')")
        self.run_of(job)
        self.assertLess(time.monotonic() - began, 10)

    def test_d1_a_rollback_leaves_nothing_and_tells_no_node(self):
        self.begin()
        before = self.sql("SELECT value FROM store_info WHERE name = 'catalog_version'")
        self.sql("BEGIN; INSERT INTO jobs (name, task_type) VALUES ('x', 't'); ROLLBACK")
        self.assertEqual(self.sql("SELECT value FROM store_info WHERE name = 'catalog_version'"), before)

    def test_d1_what_nodes_write_themselves_is_not_taken_for_a_change_of_a_person(self):
        self.begin()
        job = self.node.expect(201, "POST", "/v1/jobs", {"name": "j", "task_type": "t", "payload": {"a": 1}})["id"]
        made = self.node.expect(201, "POST", "/v1/schedules", {"job_id": job, "schedule_type": "cron",
                                                               "cron_expression": "*/5 * * * *"})
        self.node.expect(200, "PATCH", f"/v1/schedules/{made['id']}", {"cron_expression": "*/7 * * * *"})
        self.assertEqual(self.sql("SELECT 1 FROM store_info WHERE name = 'catalog_by_hand'"), [])
        self.assertEqual(self.sql("SELECT error FROM schedules"), [[""]])
        self.assertEqual(json.loads(self.sql("SELECT payload FROM jobs")[0][0]), {"a": 1})


if __name__ == "__main__":
    unittest.main()
