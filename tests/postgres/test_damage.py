"""A PostgreSQL that is no longer what it was: a store removed or set back under its nodes (F-D10),
and damage inside of the database that `verify` names (F-D6) as far as the database lets it look."""
import os
import signal
import subprocess
import unittest

import harness
from cluster import ClusterTest, begin_module

setUpModule = begin_module

PAGE_BYTES = 8192


class Replaced(ClusterTest):
    def then_stops(self, cluster, reason):
        node = cluster.node(0)
        code = node.process.wait(harness.DEADLINE_S)
        self.assertNotIn(code, (0, -signal.SIGSEGV, -signal.SIGABRT))
        self.assertIn(reason, node.log())
        node.end(signal.SIGTERM)

    def test_f_d10_a_node_stops_when_its_tables_are_removed(self):
        cluster = self.cluster(1)
        cluster.node(0).enqueue()
        cluster.sql(f"ALTER SCHEMA {cluster.schema} RENAME TO moved_away; "
                    f"CREATE SCHEMA {cluster.schema}")
        self.then_stops(cluster, "removed or replaced")
        cluster.sql(f"DROP SCHEMA {cluster.schema}; "
                    f"ALTER SCHEMA moved_away RENAME TO {cluster.schema}")

    def test_f_d10_a_node_stops_when_the_database_was_set_back_and_starts_again(self):
        cluster = self.cluster(1)
        node = cluster.node(0)
        task = node.enqueue()
        cluster.sql("UPDATE writer_marks SET seq = seq - 1000000")
        self.then_stops(cluster, "set back to an earlier state")
        cluster.start(0)
        self.assertEqual(node.task(task["id"])["status"], "pending")


class Damaged(ClusterTest):
    def doctor(self, cluster):
        done = subprocess.run([harness.binary(), "doctor", "--store", cluster.store],
                              capture_output=True, text=True, timeout=240, check=False)
        return done.stdout

    def test_f_d6_verify_looks_into_indexes_where_it_may(self):
        cluster = self.cluster(1)
        for i in range(3):
            cluster.node(0).enqueue(user_id=f"user-{i}")
        cluster.stop(0)
        self.assertIn("amcheck is not available", self.doctor(cluster))
        [[path]] = cluster.sql("SELECT pg_relation_filepath('task_specs_user')")
        self.zero_page(os.path.join(self.postgres.folder, "data", path), 1)
        self.assertEqual(cluster.verify()[0], 0, "not checked yet")
        cluster.sql("CREATE EXTENSION amcheck SCHEMA public")
        self.assertIn("amcheck is there", self.doctor(cluster))
        code, text = cluster.verify()
        self.assertEqual(code, 1)
        self.assertIn("its index task_specs_user is damaged", text)
        cluster.sql("REINDEX INDEX task_specs_user")
        self.assertEqual(cluster.verify()[0], 0)
        cluster.sql("DROP EXTENSION amcheck")

    def zero_page(self, path, number):
        self.postgres.stop()
        with open(path, "r+b") as file:
            file.seek(number * PAGE_BYTES)
            self.assertEqual(len(file.read(PAGE_BYTES)), PAGE_BYTES)
            file.seek(number * PAGE_BYTES)
            file.write(bytes(PAGE_BYTES))
        self.postgres.start()

    def test_f_d6_an_index_of_a_month_that_is_not_valid_is_named(self):
        cluster = self.cluster(1)
        cluster.stop(0)
        cluster.sql("UPDATE pg_index SET indisvalid = false "
                    "WHERE indexrelid = 'execution_rows_other_task_execution_idx'::regclass")
        code, text = cluster.verify()
        self.assertEqual(code, 1)
        self.assertIn("execution_rows_other_task_execution_idx is not valid", text)
        cluster.sql("UPDATE pg_index SET indisvalid = true "
                    "WHERE indexrelid = 'execution_rows_other_task_execution_idx'::regclass")


if __name__ == "__main__":
    unittest.main()
