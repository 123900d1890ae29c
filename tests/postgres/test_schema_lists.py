"""What stores are compared with is what the migrations make (F-J5, A11), and a store that an earlier version
made, or that was set back to one, is the same after its migrations."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import harness
from server import Postgres

ROOT = pathlib.Path(__file__).resolve().parents[2]


class SchemaLists(unittest.TestCase):
    def perdura(self, *words, store):
        done = subprocess.run([harness.binary(), *words, "--store", store], capture_output=True,
                              text=True, timeout=240, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_the_lists_are_what_the_migrations_make(self):
        done = subprocess.run([sys.executable, ROOT / "tools" / "schema_lists.py", "--check"],
                              capture_output=True, text=True, timeout=240, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def back_and_forth(self, store):
        """To every version there was, from the newest to the first."""
        self.perdura("migrate", "up", store=store)
        versions = self.perdura("migrate", "status", store=store).count("applied")
        for back in sorted({1, 2, 3, 5, 8, versions}):
            for _ in range(back):
                self.perdura("migrate", "down", "--lose-data", store=store)
            self.perdura("migrate", "up", store=store)
            self.assertIn("no problems found",
                          self.perdura("verify", "--logs", store=store))

    def test_a_store_of_an_earlier_version_is_ours_after_its_migrations(self):
        with tempfile.TemporaryDirectory() as folder:
            self.back_and_forth(os.path.join(folder, "store.db"))

    def test_a_database_of_an_earlier_version_is_ours_after_its_migrations(self):
        with Postgres() as server:
            self.back_and_forth(server.url)
            self.back_and_forth(server.url + "?schema=Mixed_Case")


if __name__ == "__main__":
    unittest.main()
