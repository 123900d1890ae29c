"""The scheduling service on PostgreSQL: every case of its API tests once more (D1 to D8, F-H11), each
on a schema of its own."""
import os
import subprocess
import unittest

import harness
import test_categories
import test_executions
import test_forecast
import test_jobs
import test_recurring
import test_schedules
from server import Postgres, programs

POSTGRES = None
SCHEMAS = iter(range(1, 1000000))


def setUpModule():
    global POSTGRES  # one for all tests of the module
    POSTGRES = Postgres().__enter__()
    unittest.addModuleCleanup(POSTGRES.__exit__)


class OnPostgres:
    """The same test class with its store there."""
    arguments = ("--lease", "2s", "--leader-lease", "2s")

    def setUp(self):
        schema = f"planning_{os.getpid()}_{next(SCHEMAS)}"
        subprocess.run([f"{programs()}/psql", "-q", POSTGRES.url, "-c", f"CREATE SCHEMA {schema}"],
                       check=True)
        start = harness.Server.start

        def elsewhere(server):
            server.store = f"{POSTGRES.url}?options=-csearch_path%3D{schema}"
            return start(server)

        harness.Server.start = elsewhere
        self.addCleanup(setattr, harness.Server, "start", start)
        super().setUp()
        self.assertEqual(self.expect(200, "GET", "/v1/stats")["store"], "postgres")


for module in (test_categories, test_executions, test_forecast, test_jobs, test_recurring,
               test_schedules):
    for name, case in list(vars(module).items()):
        if isinstance(case, type) and issubclass(case, harness.ApiTest) and \
                case.__module__ == module.__name__:
            globals()[name] = type(name, (OnPostgres, case), {"__module__": __name__})
del case, module, name

if __name__ == "__main__":
    unittest.main()
