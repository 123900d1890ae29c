"""The audit trail on PostgreSQL (D18): the API's tests once more, two nodes that write one chain, and
what verification says of changed rows."""
import json
import subprocess
import unittest

import harness
import on_postgres
import test_audit
from on_postgres import OnPostgres


def setUpModule():
    on_postgres.begin_module()


class Changes(OnPostgres, test_audit.Changes):
    arguments = ("--leader-lease", "2s")


class Lists(OnPostgres, test_audit.Lists):
    arguments = ("--leader-lease", "2s")


class Refusals(OnPostgres, test_audit.Refusals):
    arguments = ("--leader-lease", "2s")


class Chain(OnPostgres, test_audit.AuditTest):
    arguments = ("--leader-lease", "2s")

    def verify(self):
        done = subprocess.run([harness.binary(), "verify", "--store", self.server.store, "--audit", "--json"],
                              capture_output=True, text=True, check=False)
        return json.loads(done.stdout)

    def test_d18_two_nodes_write_one_chain_and_changed_rows_are_named(self):
        other = harness.Server(self.folder, *self.arguments, environment=self.environment)
        self.addCleanup(other.stop)
        other.start()
        for number in range(10):
            server = (self.server, other)[number % 2]
            reply = self.ask(server, "POST", f"/v1/queues/q{number}:pause")
            self.assertEqual(reply, 200)
        entries = self.trail()
        self.assertEqual([entry["seq"] for entry in entries], list(range(1, 11)))
        other.stop()
        self.server.stop()
        self.assertEqual(self.verify()["findings"], [])
        self.assertEqual(self.verify()["checked"]["audit entries"], 10)
        for change, seq in (("UPDATE audit_log SET principal = 'mallory' WHERE seq = 4", 4),
                            ("DELETE FROM audit_log WHERE seq = 6", 6),
                            ("DELETE FROM audit_log WHERE seq > 8", 9)):
            self.sql("CREATE TABLE public.kept AS SELECT * FROM audit_log")
            self.sql(change)
            finding, *_ = self.verify()["findings"]
            self.assertEqual((finding["kind"], finding["subject"]), ("audit", f"entry {seq}"), change)
            self.sql("DELETE FROM audit_log")
            self.sql("INSERT INTO audit_log SELECT * FROM public.kept")
            self.sql("DROP TABLE public.kept")
        self.assertEqual(self.verify()["findings"], [])

    def ask(self, server, method, path):
        done = subprocess.run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-X", method, "-H",
                               f"Authorization: Bearer {test_audit.TOKEN}",
                               "http://%s:%d%s" % (*server.address, path)],
                              capture_output=True, text=True, check=True)
        return int(done.stdout)


if __name__ == "__main__":
    unittest.main()
