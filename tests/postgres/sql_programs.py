"""Programs that use the functions of a store on PostgreSQL (docs/sql.md), each with connections of its own."""
import json
import subprocess

import psycopg2

import harness
from cluster import ClusterTest


class SqlTest(ClusterTest):
    def begin(self, count=1, *arguments):
        self.nodes = self.cluster(count, *arguments)
        self.node = self.nodes.nodes[0]
        return self.nodes

    def connect(self, role="perdura", port=None):
        url = self.postgres.url.replace("perdura@", f"{role}@")
        if port:
            url = url.replace(f":{self.postgres.port}/", f":{port}/")
        connection = psycopg2.connect(url)
        self.addCleanup(connection.close)
        return connection

    def call(self, cursor, text, *values):
        """Names of the schema stand as @."""
        cursor.execute(text.replace("@", self.nodes.schema + "."), values)
        return cursor.fetchall()

    def one(self, text, *values, role="perdura", port=None):
        """In a transaction of its own."""
        connection = self.connect(role, port)
        with connection, connection.cursor() as cursor:
            [[value]] = self.call(cursor, text, *values)
        connection.close()
        return value

    def enqueue(self, type="t", payload="{}", **options):
        return self.one("SELECT @enqueue(%s, %s, %s::jsonb)", type, payload, json.dumps(options))

    def role(self, name, namespace=None):
        """A role that may enqueue and nothing else; one of its own for each test."""
        role = f"{name}_{self.nodes.schema}"
        self.nodes.sql(f"CREATE ROLE {role} LOGIN")
        self.grant(role)
        return role

    def grant(self, role, *words, code=0):
        """What the command says to stderr."""
        done = subprocess.run([harness.binary(), "migrate", "grant", role, *words, "--store", self.nodes.store],
                              check=False, capture_output=True, text=True)
        self.assertEqual(min(done.returncode, 1), code, done.stderr)
        return done.stderr

    def left(self):
        return self.nodes.sql("SELECT (SELECT count(*) FROM intake_rows), (SELECT count(*) FROM task_specs), "
                              "(SELECT count(*) FROM task_uniques)")[0]

    def taken_in(self):
        harness.wait_until(lambda: self.nodes.sql("SELECT count(*) FROM intake_rows") == [["0"]],
                           what="the nodes to have made every task")
