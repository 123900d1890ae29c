"""Logs of an SQLite store that somebody writes to who has not the key (F-J5, F-J8, D9): see
tests/campaign/forgery_cases.py."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "campaign"))
import forger  # noqa: E402
from forgery_cases import ForgeryCases  # noqa: E402


class LogForgery(ForgeryCases, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.make_stand(forger.Sqlite())


if __name__ == "__main__":
    unittest.main()
