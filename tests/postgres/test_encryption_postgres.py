"""Encryption at rest where the store is PostgreSQL: the cases of tests/api/test_encryption.py once more.
Run: PERDURA_BUILD=build python3 -m unittest test_encryption_postgres"""
import unittest

import on_postgres
import test_encryption
from on_postgres import OnPostgres


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
    pass


class Rotation(OnPostgres, test_encryption.Rotation):
    pass


if __name__ == "__main__":
    unittest.main()
