#!/usr/bin/env python3
"""Writes what the schema of a store that is just made consists of; `serve` and `verify` compare stores with
it. Run it after every change of the migrations (on PostgreSQL 15); a test compares.

- src/store/postgres/schema.txt: its parts, by the statement schema_parts of sql/schema.sql
- src/store/sqlite/schema.sha256: the hash of sqlite_master. It only spares a start the migrations in memory.

    python3 tools/schema_lists.py [--check]    PERDURA_BUILD names the folder of the program"""
import contextlib
import hashlib
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
STORE = ROOT / "src" / "store"
sys.path.insert(0, str(ROOT / "tests" / "postgres"))
from server import Postgres  # noqa: E402
import harness  # noqa: E402


def migrate(store):
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
        config.write("allow_changed_schema: true\n")  # the list of the build is the one to be written
        config.flush()
        subprocess.run([harness.binary(), "migrate", "up", "--store", store, "--config", config.name],
                       check=True, stdout=subprocess.DEVNULL)


def postgres_parts(url):
    """One line for each part of a store's schema."""
    query = (STORE / "postgres" / "sql" / "schema.sql").read_text().split("-- name: schema_parts\n")[1]
    done = subprocess.run(["psql", "-X", "-q", "-A", "-t", "-F", "|", "-c", query, url], check=True,
                          capture_output=True, text=True,
                          env={**os.environ, "PGOPTIONS": "-csearch_path=perdura,pg_temp"})
    return done.stdout


def postgres_list():
    with Postgres() as server:
        subprocess.run(["psql", "-X", "-q", "-c", "CREATE ROLE authenticated_users", server.url], check=True)
        migrate(server.url)  # with the policies of that role
        return postgres_parts(server.url)


def sqlite_hash():
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "store.db")
        migrate(store)
        with contextlib.closing(sqlite3.connect(store)) as db:
            rows = db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name, type")
            text = "".join((field or "") + "\0" for row in rows for field in row)
    return hashlib.sha256(text.encode()).hexdigest() + "\n"


def main():
    stale = 0
    for path, made in ((STORE / "sqlite" / "schema.sha256", sqlite_hash),
                       (STORE / "postgres" / "schema.txt", postgres_list)):
        lines = made()
        if sys.argv[1:] != ["--check"]:
            path.write_text(lines)
        elif lines != path.read_text():
            print(f"{path.relative_to(ROOT)} is not what the migrations make: run tools/schema_lists.py")
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main())
