"""What one task tells of another, and answers that do not depend on rows of other users (D12, V8), on PostgreSQL."""
import unittest

import on_postgres
import test_alone_or_beside
import test_sight
from on_postgres import OnPostgres


def setUpModule():
    on_postgres.begin_module()


class AloneOrBeside(OnPostgres, test_alone_or_beside.AloneOrBeside):
    def another_store(self):
        self.schema += "_other"
        self.sql(f"CREATE SCHEMA {self.schema}", "public")


class Results(OnPostgres, test_sight.Results):
    pass


class TakingOver(OnPostgres, test_sight.TakingOver):
    pass


class Why(OnPostgres, test_sight.Why):
    pass


class Keys(OnPostgres, test_sight.Keys):
    pass


if __name__ == "__main__":
    unittest.main()
