"""Callbacks of attempts with the store on PostgreSQL: every case of tests/api/test_callback_events.py (D19)."""
import unittest

import on_postgres
import test_callback_events
from on_postgres import OnPostgres


def setUpModule():
    on_postgres.begin_module()


class CallbackEvents(OnPostgres, test_callback_events.CallbackEventsTest):
    pass


class Lost(OnPostgres, test_callback_events.LostTest):
    pass


if __name__ == "__main__":
    unittest.main()
