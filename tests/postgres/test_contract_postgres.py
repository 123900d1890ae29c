"""The names that programs rely on, on PostgreSQL: every case of tests/api/test_contract.py once more (A1, B1, D1,
E1, E3). Run: PERDURA_BUILD=build python3 -m unittest tests/postgres/test_contract_postgres.py"""
import unittest

import on_postgres
import test_contract
from on_postgres import OnPostgres


def setUpModule():
    on_postgres.begin_module()


class Contract(OnPostgres, test_contract.ContractTest):
    def columns_of(self, table):
        return set(self.sql("SELECT column_name FROM information_schema.columns WHERE table_schema = "
                            f"current_schema() AND table_name = '{table}'"))


if __name__ == "__main__":
    unittest.main()
