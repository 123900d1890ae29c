"""Where the tables are: in the schema `perdura`, or in the one DB_SCHEMA or the URL names (A12)."""
import os
import pathlib
import subprocess
import tempfile
import unittest

from server import Postgres, programs

BUILD = pathlib.Path(os.environ.get("PERDURA_BUILD", "build"))


def setUpModule():
    global POSTGRES
    POSTGRES = Postgres().__enter__()
    unittest.addModuleCleanup(POSTGRES.__exit__)


def psql(database, text):
    url = POSTGRES.url.replace("/postgres", f"/{database}", 1) if database else POSTGRES.url
    done = subprocess.run([f"{programs()}/psql", "-qXAt", url, "-c", text], check=True,
                          stdout=subprocess.PIPE, text=True)
    return done.stdout.split()


class Schema(unittest.TestCase):
    def database(self, name):
        psql(None, f"CREATE DATABASE {name}")
        return POSTGRES.url[:-len("postgres")] + name

    def perdura(self, *words, code=0, **environment):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([BUILD / "perdura", *words], cwd=folder, check=False, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  env={**os.environ, **environment})
        self.assertEqual(done.returncode, code, done.stdout)
        return done.stdout

    def schemas_with_tasks(self, database):
        return psql(database, "SELECT schemaname FROM pg_tables WHERE tablename = 'task_specs'")

    def test_a12_tables_are_in_a_schema_of_their_own(self):
        store = self.database("own")
        self.perdura("migrate", "up", "--store", store)
        self.assertEqual(self.schemas_with_tasks("own"), ["perdura"])
        self.perdura("verify", "--store", store)

    def test_a12_db_schema_names_another_one(self):
        store = self.database("named")
        self.perdura("migrate", "up", DATABASE_URL=store, DB_SCHEMA="Work")
        self.assertEqual(self.schemas_with_tasks("named"), ["Work"])
        self.perdura("verify", "--store", f"{store}?schema=Work")
        self.perdura("migrate", "status", DATABASE_URL=store, DB_SCHEMA="Work")

    def test_a11_the_sql_for_somebody_elses_hands_makes_the_schema(self):
        store = self.database("by_hand")
        text = self.perdura("migrate", "sql", "--store", f"{store}?schema=tasks")
        self.assertTrue(text.startswith('CREATE SCHEMA IF NOT EXISTS "tasks";'), text[:200])
        subprocess.run([f"{programs()}/psql", "-qX", "-v", "ON_ERROR_STOP=1", store],
                       input="SET client_min_messages = error;\n" + text, text=True, check=True,
                       stdout=subprocess.DEVNULL)
        self.assertEqual(self.schemas_with_tasks("by_hand"), ["tasks"])
        self.perdura("verify", "--store", f"{store}?schema=tasks")

    def test_a_name_that_is_none_is_refused(self):
        store = self.database("refused")
        self.assertIn("letters, digits", self.perdura("verify", "--store", f"{store}?schema=a-b",
                                                      code=1))


if __name__ == "__main__":
    unittest.main()
