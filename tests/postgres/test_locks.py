"""Advisory locks may be taken by every role that can connect. A role without rights on the tables
of a store stops nothing with them: nodes start and migrate, and records about logs are made
(A11)."""
import os
import re
import subprocess
import tempfile
import unittest

import harness
from harness import wait_until
from server import Postgres, programs

LOCKS = """
SELECT pg_advisory_lock(7298170365);
SELECT pg_advisory_lock(72981703, hashtext('{schema}'));
SELECT pg_advisory_lock(hashtextextended('{schema}.log_anchors', 0));
"""
OF_MONTHS = """
SELECT pg_advisory_lock(72981704, hashtext('{schema}.' || t || to_char(now() + n * interval '1 month', '_YYYY_MM')))
    FROM generate_series(0, 4) n, unnest(ARRAY['task_event_rows', 'execution_rows']) t;
"""


class Locks(unittest.TestCase):
    def setUp(self):
        self.postgres = self.enterContext(Postgres())
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="perdura-locks-"))
        self.schema = f"locks_{os.getpid()}"
        self.sql(f"CREATE SCHEMA {self.schema}; CREATE ROLE stranger LOGIN")
        self.url = f"{self.postgres.url}?options=-csearch_path%3D{self.schema}"

    def sql(self, text):
        done = subprocess.run([f"{programs()}/psql", "-qAtX", self.postgres.url, "-c", text],
                              check=True, capture_output=True, text=True)
        return done.stdout.splitlines()

    def hold(self, url, locks):
        """A session that has them until its input ends."""
        session = subprocess.Popen([f"{programs()}/psql", "-qAtX", url], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(session.wait, 60)
        self.addCleanup(session.stdout.close)
        self.addCleanup(session.stdin.close)
        session.stdin.write(locks.format(schema=self.schema) + "\\echo held\n")
        session.stdin.flush()
        for line in session.stdout:
            if line == "held\n":
                return session
        raise AssertionError("the locks were not taken")

    def test_locks_of_a_stranger_stop_neither_a_start_nor_records_about_logs(self):
        stranger = re.sub(r"//[^@]*@", "//stranger@", self.postgres.url)
        self.hold(stranger, LOCKS)
        subprocess.run([harness.binary(), "migrate", "up", "--store", self.url], check=True,
                       capture_output=True, timeout=120)
        self.hold(stranger, OF_MONTHS)
        self.sql(f"DROP TABLE {self.schema}.execution_rows_" + self.sql(
            "SELECT to_char(now() + interval '3 months', 'YYYY_MM')")[0])
        key = os.path.join(self.folder, "key")
        config = os.path.join(self.folder, "perdura.yaml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"log_key: {key}\nlog_anchor_every: 100ms\nhandlers:\n"
                       "  - {type: says, command: [echo, hello]}\n")
        server = harness.Server(self.folder, "--config", config)
        server.store = self.url
        self.addCleanup(server.stop)
        server.start()
        done = subprocess.run([harness.binary(), "enqueue", "says", "--wait", "--server",
                               "http://%s:%d" % server.address], capture_output=True, text=True,
                              check=False, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr + server.log())
        wait_until(lambda: self.sql(f"SELECT 1 FROM {self.schema}.log_anchors LIMIT 1"),
                   what="a record about logs")
        months = self.sql("SELECT count(*) FROM pg_class WHERE relname ~ 'execution_rows_[0-9]{4}' "
                          f"AND relnamespace = '{self.schema}'::regnamespace AND relkind = 'r'")
        self.assertGreaterEqual(int(months[0]), 4)
        self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    unittest.main()
