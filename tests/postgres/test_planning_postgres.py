"""The scheduling service on PostgreSQL: every case of its API tests once more (D1 to D8, F-H11), each
on a schema of its own."""
import unittest

import harness
import on_postgres
import test_categories
import test_executions
import test_forecast
import test_jobs
import test_recurring
import test_schedules
from on_postgres import OnPostgres


def setUpModule():
    on_postgres.begin_module()


class Planned(OnPostgres):
    """A node that is killed is followed by the next one soon."""
    arguments = ("--leader-lease", "2s")


for module in (test_categories, test_executions, test_forecast, test_jobs, test_recurring,
               test_schedules):
    for name, case in list(vars(module).items()):
        if isinstance(case, type) and issubclass(case, harness.ApiTest) and \
                case.__module__ == module.__name__:
            globals()[name] = type(name, (Planned, case), {"__module__": __name__})
del case, module, name

if __name__ == "__main__":
    unittest.main()
