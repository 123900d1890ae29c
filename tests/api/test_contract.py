"""The names that programs rely on, in replies and in the database (A1, B1, D1, E1, E3): a column or field that is
renamed or lost fails here, on both kinds of store (tests/postgres/test_contract_postgres.py)."""
import sqlite3
import unittest

from harness import ApiTest

TASK = """id namespace external_id type name queue payload data metadata note tags user_id context_key correlation_id job_id
schedule_id recurring_job_id category_id workflow_id parent_id status previous_status state progress version created_at
updated_at priority scheduled_at idempotency_key input_hash unique_until attempts retry_count crash_count continuations
max_retries max_crashes max_continuations retry_policy retry_delay_ms max_retry_delay_ms timeout_ms next_retry_at
worker_id lease_token lease_until last_heartbeat claimed_at started_at pause_requested limit_key checkpoint_data
resumed_from recovery_priority auto_recovery_enabled recovery_metadata stall_after_ms completed_at error last_error
error_details callback_url on_unsatisfied""".split()
COLUMNS = {name: columns.split() for name, columns in {
    "task_events": "id task_id seq status state detail actor created_at",
    "task_results": "task_id payload created_at",
    "task_dependencies": "task_id depends_on_task_id dependency_type",
    "task_checkpoints": "id task_id seq checkpoint_name progress_percent step_description recoverable_data "
                        "database_state file_state checkpoint_hash is_valid created_at",
    "recovery_queue": "id task_id recovery_method recovery_priority scheduled_for processing_started "
                      "processing_completed status attempts max_attempts recovery_result error_message created_at",
    "executions": "id task_id job_id schedule_id status attempt_number lease_token worker_id correlation_id "
                  "started_at completed_at failed_at duration_ms result_data error_data created_at",
    "execution_logs": "id execution_id seq log_level message context logged_at chain_hash",
    "job_categories": "id name description default_priority default_timeout default_max_retries configuration "
                      "is_active created_at updated_at",
    "jobs": "id name description category_id task_type target_service target_method payload priority max_retries "
            "timeout_seconds callback_url is_active created_by created_at updated_at deleted_at",
    "schedules": "id job_id schedule_type cron_expression interval_seconds scheduled_at timezone starts_at ends_at "
                 "is_active misfire misfire_grace_ms misfire_cap overlap dst jitter_ms next_fire_at last_fire_at "
                 "created_at updated_at",
    "schedule_fires": "schedule_id fire_at task_id",
    "recurring_jobs": "id name pattern_type pattern_config template_job_id last_generated next_generation is_active "
                      "created_at updated_at",
    "job_dependencies": "id job_id depends_on_job_id dependency_type dependency_config created_at",
    "workers": "id hostname started_at last_heartbeat pool_size version queues types categories status "
               "current_tasks is_leader leader_until",
    "leadership": "holder epoch until",
}.items()}
COLUMNS["tasks"] = TASK
MIGRATIONS = "id description executed_at checksum".split()
# A spec with everything in it: each is taken, and shown under the same name or as said below.
SPEC = {"type": "full", "payload": {"b": 1, "a": [1, 2]}, "data": {"x": 1}, "queue": "q", "name": "n", "priority": 7,
        "max_retries": 2, "max_crashes": 2, "max_continuations": 5, "retry_policy": "exponential",
        "retry_delay_ms": 100, "max_retry_delay_ms": 1000, "timeout_ms": 1000, "idempotency_key": "k",
        "unique_until": "ended", "metadata": {"m": 1}, "note": "o", "tags": ["g"], "user_id": "u", "external_id": "e",
        "context_key": "c", "correlation_id": "r", "limit_key": "l", "on_unsatisfied": "fail",
        "workflow_id": "01941f29-7c00-7000-8000-0000000000aa", "recovery_priority": 3, "auto_recovery": False,
        "stall_after_ms": 1000, "callback_url": "http://127.0.0.1:9/x", "run_at": "2035-01-02T03:04:05.000000Z"}


class ContractTest(ApiTest):
    def columns_of(self, table):
        database = sqlite3.connect(f"file:{self.server.store}?mode=ro", uri=True)
        try:
            return {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
        finally:
            database.close()

    def has(self, reply, names, what):
        self.assertEqual(set(names) - set(reply), set(), what)

    def test_a1_d1_e3_tables_and_views_have_their_columns(self):
        for table, columns in COLUMNS.items():
            self.has(self.columns_of(table), [*columns, "namespace"], table)
        self.has(self.columns_of("schema_migrations"), MIGRATIONS, "schema_migrations")

    def test_b1_a_task_shows_what_it_was_asked_for_and_all_its_columns(self):
        made = self.expect(201, "POST", "/v1/tasks", {**SPEC, "hash_input": True, "hash_fields": ["/a"],
                                                      "category": "maintenance", "depends_on": []})
        shown = self.task(made["id"])
        self.assertEqual({name: shown[name] for name in SPEC}, SPEC)
        self.has(shown, {*TASK, "result", "depends_on"} - {"lease_token"}, "the task")
        self.assertEqual((shown["scheduled_at"], shown["auto_recovery_enabled"], shown["state"]),
                         (SPEC["run_at"], False, "Queued"))
        for name in ("type", "queue", "user_id", "external_id", "context_key", "workflow_id", "correlation_id"):
            found = self.expect(200, "GET", f"/v1/tasks?{name}={SPEC[name]}")["items"]
            self.assertEqual([task["id"] for task in found], [made["id"]], name)

    def test_e1_what_belongs_to_a_task_shows_its_columns(self):
        self.register(types=["t"], categories=["general"])
        task = self.enqueue("t")
        [claimed] = self.claim()
        self.has(claimed, ["lease_token", "lease_ms", "attempt", "checkpoint"], "a claim")
        self.report_ok("worker-1", claimed, "start")
        self.report_ok("worker-1", claimed, "log", level="WARN", message="m", context={"a": 1})
        self.report_ok("worker-1", claimed, "checkpoint", name="one", progress=5, data=1, database_state=2,
                       file_state=3, description="d")
        self.report_ok("worker-1", claimed, "partial", result={"half": 1})
        entry = self.expect(201, "POST", "/v1/recovery", {"task_id": task["id"], "method": "validate_only"})
        self.has(entry, COLUMNS["recovery_queue"], "recovery_queue")
        for part, table in (("events", "task_events"), ("executions", "executions"),
                            ("checkpoints", "task_checkpoints"), ("logs", "execution_logs")):
            items = self.expect(200, "GET", f"/v1/tasks/{task['id']}/{part}")["items"]
            self.has(items[0], set(COLUMNS[table]) - {"lease_token"}, table)
        result = self.expect(200, "GET", f"/v1/tasks/{task['id']}/result")
        self.has(result, COLUMNS["task_results"], "task_results")
        for worker in self.expect(200, "GET", "/v1/workers")["items"]:
            self.has(worker, COLUMNS["workers"], "workers")

    def test_d1_plans_show_their_fields(self):
        category = self.expect(201, "POST", "/v1/categories", {"name": "c", "configuration": {
            "queue": "q", "allowed_windows": ["00:00-24:00"], "batch_size": 2, "batch_processing": True}})
        self.has(category, COLUMNS["job_categories"], "job_categories")
        job = self.expect(201, "POST", "/v1/jobs", {"name": "j", "category": "c", "created_by": "me"})
        self.has(job, [*COLUMNS["jobs"], "category", "last_execution", "next_execution"], "jobs")
        schedule = self.expect(201, "POST", f"/v1/jobs/{job['id']}/schedules",
                               {"schedule_type": "cron", "cron_expression": "30 2 * * *",
                                "callback_url": "http://127.0.0.1:9/x", "dst": "both"})
        self.has(schedule, [*COLUMNS["schedules"], "callback_url"], "schedules")
        template = self.expect(201, "POST", "/v1/jobs", {"name": "template"})
        recurring = self.expect(201, "POST", "/v1/recurring",
                                {"name": "r", "pattern_type": "daily", "pattern_config": {"time": "09:00"},
                                 "template_job_id": template["id"]})
        self.has(recurring, COLUMNS["recurring_jobs"], "recurring_jobs")
        dependency = self.expect(201, "POST", f"/v1/jobs/{job['id']}/dependencies",
                                 {"depends_on_job_id": template["id"], "dependency_type": "completion",
                                  "dependency_config": {"mode": "gate"}})
        self.has(dependency, COLUMNS["job_dependencies"], "job_dependencies")


if __name__ == "__main__":
    unittest.main()
