"""Logs of an SQLite store that somebody writes to who has not the key (F-J5, F-J8, D9): see
tests/campaign/forgery_cases.py."""
import pathlib
import sys
import unittest
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "campaign"))
import schemas  # noqa: E402
from forgery_cases import ForgeryCases  # noqa: E402


class LogForgery(ForgeryCases, unittest.TestCase):
    changes = sorted(set(schemas.BOTH + schemas.SQLITE), key=lambda attack: attack.__name__)

    @classmethod
    def setUpClass(cls):
        cls.make_stand(schemas.Sqlite())

    def test_f_j5_a_closed_run_stays_closed_when_its_rows_say_that_it_runs(self):
        """And a worker adds a line to it over HTTP, with the lease that these rows name."""
        case = self.case()
        execution = case.ended[2]
        task, held = case.tasks[execution], case.tasks[case.held[0]]
        lease = ", ".join(f"{name} = (SELECT {name} FROM task_states WHERE id = {case.uid(held)})"
                          for name in ("held", "lease_until"))
        case.put("UPDATE execution_rows SET status = 'running', completed_at = NULL, end_seq = NULL "
                 f"WHERE id = {case.uid(execution)}",
                 "UPDATE task_states SET status = 'running', completed_at = NULL, "
                 f"worker_id = 'worker-1', lease_token = 12345, {lease}, execution = (SELECT execution "
                 f"FROM execution_rows WHERE id = {case.uid(execution)}) WHERE id = {case.uid(task)}")
        case.apply()
        said = {"op": "log", "task_id": str(uuid.UUID(task)), "level": "INFO", "lease_token": 12345,
                "message": "all is well"}
        log = case.serve(lambda client: client.report("worker-1", said), retention=False)
        self.assertFalse(case.kept(execution))  # it was taken
        self.assertIn("log.forged", log)
        self.assert_named(case, execution)


if __name__ == "__main__":
    unittest.main()
