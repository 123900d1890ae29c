"""Encryption at rest where the store is PostgreSQL: the cases of tests/api/test_encryption.py once more.
Run: PERDURA_BUILD=build python3 -m unittest test_encryption_postgres"""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "api"))
import on_postgres  # noqa: E402
import test_calls_access  # noqa: E402
import test_content  # noqa: E402
import test_encryption  # noqa: E402
from on_postgres import OnPostgres  # noqa: E402


def setUpModule():
    on_postgres.begin_module()


class Canaries(OnPostgres, test_encryption.Canaries):
    pass


class Members(OnPostgres, test_encryption.Members):
    pass


class Everything(OnPostgres, test_encryption.Everything):
    pass


class Locked(OnPostgres, test_encryption.Locked):
    pass


class Damage(OnPostgres, test_encryption.Damage):
    test_f_j3_no_ciphertext_opens_in_the_place_of_any_other = None  # its tables are those of SQLite


class Rotation(OnPostgres, test_encryption.Rotation):
    pass


class DataKeys(OnPostgres, test_encryption.DataKeys):
    pass


class Trail(OnPostgres, test_encryption.Trail):
    pass


class Secret(OnPostgres, test_calls_access.Secret):
    pass


class Content(OnPostgres, test_content.Content):
    pass


class OpenSecret(OnPostgres, test_calls_access.OpenSecret):
    pass


if __name__ == "__main__":
    unittest.main()
