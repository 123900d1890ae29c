"""Recovery on PostgreSQL: every case of its API tests once more, each on a schema of its own, and what
discover_recoverable_tasks() and validate_task_recovery() say beside the API (B5, B6)."""
import json
import unittest

import harness
import on_postgres
import test_recovery
from on_postgres import OnPostgres


def setUpModule():
    on_postgres.begin_module()


for name, case in list(vars(test_recovery).items()):
    if isinstance(case, type) and issubclass(case, harness.ApiTest) and \
            case is not test_recovery.RecoveryTest and case.__module__ == test_recovery.__name__:
        globals()[name] = type(name, (OnPostgres, case), {"__module__": __name__})
del case, name


class FunctionsTest(OnPostgres, test_recovery.RecoveryTest):
    def verdicts(self, task_id):
        """Of the API and of the function."""
        of_api = self.expect(200, "POST", "/v1/recovery/validate", {"task_id": task_id})
        [text] = self.sql(f"SELECT validate_task_recovery('{task_id}')")
        return of_api, json.loads(text)

    def test_b5_the_function_finds_what_the_api_finds_with_six_columns(self):
        tasks = [self.partial(recovery_priority=priority, external_id=external, name=name,
                              user_id="ada")
                 for priority, external, name in ((0, "celery-1", "nightly"), (7, None, None))]
        self.orphan()
        rows = [row.split("|") for row in self.sql(
            "SELECT task_id, task_name, user_id, current_state, last_heartbeat IS NOT NULL, "
            "recovery_priority FROM discover_recoverable_tasks()")]
        self.assertEqual(rows, [[tasks[1]["id"], "test", "ada", "partial", "t", "7"],
                                ["celery-1", "nightly", "ada", "partial", "t", "0"]])
        self.assertEqual([c["id"] for c in self.candidates()], [tasks[1]["id"], tasks[0]["id"]])

    def test_b6_the_function_judges_as_the_api_does(self):
        waiting = self.enqueue(queue="w")
        poison = self.lost(max_crashes=1)
        partial = self.partial()
        text = "ä\"\\\n😀"  # what a hash must not stumble over
        damaged = self.orphan(checkpoint={"name": text, "progress": 5, "description": text,
                                          "data": {"text": text}, "file_state": {"a": 1}})
        ids = [test_recovery.NOBODY, waiting["id"], poison["id"], partial["id"], damaged["id"]]
        reasons = []
        for _ in range(2):
            for task_id in ids:
                of_api, of_function = self.verdicts(task_id)
                self.assertEqual(of_api, of_function)
                reasons.append(of_api["reason"])
            self.sql("UPDATE task_checkpoints SET recoverable_data = '{}'")
        self.assertEqual(reasons[:5], ["not_found", "not_lost", "attempts_exhausted", None, None])
        self.assertEqual(reasons[9], "checkpoint_damaged")
        self.register("lost", queues=("q",))  # it may be forgotten by now
        self.expect(204, "DELETE", "/v1/workers/lost")
        self.sql("UPDATE task_checkpoints SET is_valid = false")
        self.register("typed", queues=("q",), types=["other", "some:*"])
        orphan = self.orphan_by_sql()
        self.assertEqual([v["reason"] for v in self.verdicts(orphan)], ["handler_gone"] * 2)
        self.register("typed", queues=("q",), types=["te*"])
        self.assertEqual([v["reason"] for v in self.verdicts(orphan)], [None] * 2)

    def orphan_by_sql(self):
        """The damaged one without any checkpoint."""
        self.sql("DELETE FROM task_checkpoints")
        self.sql("UPDATE task_states SET checkpoint_data = NULL WHERE status = 'orphaned'")
        [task_id] = self.sql("SELECT id FROM tasks WHERE status = 'orphaned'")
        return task_id


if __name__ == "__main__":
    unittest.main()
