"""Tables of inboxes as their owners see them: in an SQLite file (sqlite3 of Python), in a database of PostgreSQL
(psycopg2). Made with the statements that `perdura inbox sql` prints."""
import json
import sqlite3
import subprocess

import harness


def statements(kind, table="perdura_inbox"):
    return subprocess.run([harness.binary(), "inbox", "sql", "--for", kind, "--table", table], check=True,
                          capture_output=True, text=True).stdout


class Box:
    """connection: one with autocommit off, whose transactions are the program's."""

    mark = "?"

    def __init__(self, connection, table="perdura_inbox"):
        self.connection = connection
        self.table = table

    def run(self, text, *values):
        cursor = self.connection.cursor()
        cursor.execute(text.replace("@", self.table).replace("?", self.mark), values)
        return cursor.fetchall() if cursor.description else []

    def put(self, type="t", payload='{"a": 1}', options="{}", commit=True):
        """The id of the row."""
        [[row]] = self.run("INSERT INTO @ (type, payload, options) VALUES (?, ?, ?) RETURNING id", type, payload,
                           options if isinstance(options, str) or options is None else json.dumps(options))
        if commit:
            self.connection.commit()
        return row

    def rows(self, columns="id, taken_at IS NOT NULL, task_id, error"):
        found = self.run(f"SELECT {columns} FROM @ ORDER BY id")
        self.connection.commit()
        return found

    def waiting(self):
        [[count]] = self.run("SELECT count(*) FROM @ WHERE taken_at IS NULL AND error IS NULL")
        self.connection.commit()
        return count

    def emptied(self):
        harness.wait_until(lambda: self.waiting() == 0, what="every row to be taken or set aside")

    def close(self):
        self.connection.close()


def sqlite_box(path, wal=False, make=True, table="perdura_inbox"):
    connection = sqlite3.connect(path, timeout=60, check_same_thread=False)
    connection.execute(f"PRAGMA journal_mode = {'wal' if wal else 'delete'}")
    if make:
        connection.executescript(statements("sqlite", table))
    return Box(connection, table)


class PostgresBox(Box):
    mark = "%s"


def postgres_box(url, make=True, table="perdura_inbox"):
    import psycopg2  # pylint: disable=import-outside-toplevel

    connection = psycopg2.connect(url)
    box = PostgresBox(connection, table)
    if make:
        box.run(statements("postgres", table).replace("@", "@"))
        connection.commit()
    return box
