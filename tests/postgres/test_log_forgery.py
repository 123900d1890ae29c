"""Logs of a PostgreSQL store that somebody writes to who has not the key (F-J5, F-J8, D9): see
tests/campaign/forgery_cases.py."""
import pathlib
import sys
import unittest

from server import Postgres

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "campaign"))
import schemas  # noqa: E402
from forgery_cases import ForgeryCases  # noqa: E402


class LogForgeryPostgres(ForgeryCases, unittest.TestCase):
    changes = (schemas.added_trigger, schemas.view_in_place, schemas.rule, schemas.row_security,
               schemas.nearer_function, schemas.heir, schemas.on_month, schemas.shadow_schema)

    @classmethod
    def setUpClass(cls):
        postgres = Postgres()
        postgres.__enter__()
        cls.addClassCleanup(postgres.__exit__)
        cls.make_stand(schemas.Postgres(postgres))


if __name__ == "__main__":
    unittest.main()
