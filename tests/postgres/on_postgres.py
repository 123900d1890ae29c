"""Test classes of the API once more with their store on PostgreSQL, each case on a schema of its own.

    def setUpModule():
        on_postgres.begin_module()

    class Bulk(OnPostgres, test_bulk.BulkTest):
        pass
"""
import os
import subprocess
import unittest

import harness
from server import Postgres, programs

SCHEMAS = iter(range(1, 1000000))


def begin_module():
    """One database for all tests of the module."""
    OnPostgres.postgres = Postgres().__enter__()
    unittest.addModuleCleanup(OnPostgres.postgres.__exit__)


class OnPostgres:
    """The same test class with its store there."""
    postgres = None

    def setUp(self):
        self.schema = f"api_{os.getpid()}_{next(SCHEMAS)}"
        self.sql(f"CREATE SCHEMA {self.schema}", "public")
        start = harness.Server.start

        def elsewhere(server):
            server.store = f"{self.postgres.url}?options=-csearch_path%3D{self.schema}"
            return start(server)

        harness.Server.start = elsewhere
        self.addCleanup(setattr, harness.Server, "start", start)
        super().setUp()
        token = (self.environment or {}).get("PERDURA_TOKEN")
        headers = {"Authorization": f"Bearer {token}"} if token else None
        self.assertEqual(self.expect(200, "GET", "/v1/stats", headers=headers)["store"], "postgres")

    def sql(self, text, schema=None):
        """The lines of the answer."""
        done = subprocess.run([f"{programs()}/psql", "-qAtX", self.postgres.url, "-c",
                               f"SET search_path = {schema or self.schema}", "-c", text],
                              check=True, capture_output=True, text=True)
        return done.stdout.splitlines()
