"""The day of an agent with the store on PostgreSQL (C9): every case of DayTest in tests/api/test_agents.py."""
import unittest

import on_postgres
import test_agents
from harness import wait_until
from on_postgres import OnPostgres


def setUpModule():
    on_postgres.begin_module()


class Day(OnPostgres, test_agents.DayTest):
    def told(self, calls):
        def sum_of():
            lines = self.sql("SELECT value FROM store_info WHERE name = 'agent_day:default/researcher'")[1:]
            return sum(int(line.split()[1]) for line in lines if line) == calls
        wait_until(sum_of, what=f"{calls} calls in the store")


if __name__ == "__main__":
    unittest.main()
