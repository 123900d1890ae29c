"""A configuration read again where the store is PostgreSQL and a node has several writers: the cases of
tests/cli/test_reload.py once more. Run: PERDURA_BUILD=build python3 -m unittest test_reload_postgres"""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
import on_postgres  # noqa: E402
import test_reload  # noqa: E402
from on_postgres import OnPostgres  # noqa: E402


def setUpModule():
    on_postgres.begin_module()


class Serving(OnPostgres, test_reload.Serving):
    pass


class Hurry(OnPostgres, test_reload.Hurry):
    pass


if __name__ == "__main__":
    unittest.main()
