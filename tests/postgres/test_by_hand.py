"""What people do to a store on PostgreSQL with SQL while nodes run: changes through the view `tasks` (E6),
and the functions that are there for them (B5, B6) with any search_path."""
import json
import unittest

from cluster import ClusterTest, begin_module

setUpModule = begin_module


class ByHand(ClusterTest):
    def setUp(self):
        cluster = self.cluster(1)
        self.node = cluster.nodes[0]
        self.sql = cluster.sql
        self.look = cluster.verify

    def verify(self):
        code, text = self.look()
        self.assertEqual(code, 0, text)

    def test_e6_updated_at_and_version_follow_a_change_of_a_person(self):
        task, other = (self.node.enqueue("t", metadata={"b": 1, "a": 2}) for _ in range(2))
        self.sql(f"UPDATE tasks SET state = 'by hand', progress = 7 WHERE id = '{task['id']}'")
        after = self.node.task(task["id"])
        self.assertEqual((after["state"], after["progress"], after["version"], after["status"]),
                         ("by hand", 7, task["version"] + 1, "pending"))
        self.assertGreater(after["updated_at"], task["updated_at"])
        self.assertEqual(json.dumps(after["metadata"]), json.dumps(task["metadata"]))
        self.assertEqual(self.node.task(other["id"]), other)
        self.verify()

    def test_e6_a_status_that_a_person_sets_holds_for_the_nodes(self):
        first, second = (self.node.enqueue("t")["id"] for _ in range(2))
        self.sql(f"UPDATE tasks SET status = 'cancelled' WHERE id = '{first}'")
        self.verify()
        self.node.register()
        [claimed] = self.node.claim(max=5)
        self.assertEqual(claimed["id"], second)
        self.sql(f"UPDATE tasks SET status = 'failed', error = 'no use' WHERE id = '{second}'")
        self.verify()
        self.assertEqual(self.node.task(second)["previous_status"], "claimed")
        self.sql(f"UPDATE tasks SET status = 'pending' WHERE id = '{first}'")
        self.verify()
        [claimed] = self.node.claim(max=5, wait_ms=10000)
        self.assertEqual(claimed["id"], first)
        self.node.complete("worker-1", claimed)
        self.verify()

    def test_e6_every_waiting_status_keeps_its_place(self):
        task = self.node.enqueue("t", limit_key="k")["id"]
        for status in ("delayed", "paused", "blocked", "pending", "orphaned", "partial", "delayed",
                       "dead_letter"):
            self.sql(f"UPDATE tasks SET status = '{status}', scheduled_at = now() + interval '1 day' "
                     f"WHERE id = '{task}'")
            self.assertEqual(self.node.task(task)["status"], status)
            self.verify()

    def test_e6_nobody_makes_a_task_run_with_sql(self):
        task = self.node.enqueue("t")["id"]
        with self.assertRaisesRegex(AssertionError, "through a worker only"):
            self.sql(f"UPDATE tasks SET status = 'running' WHERE id = '{task}'")
        self.assertEqual(self.node.task(task)["status"], "pending")

    def test_b5_b6_functions_find_their_tables_with_any_search_path(self):
        task = self.node.enqueue("t", external_id="outside")["id"]
        self.sql(f"UPDATE tasks SET status = 'orphaned' WHERE id = '{task}'")
        [[schema]] = self.sql("SELECT current_schema()")
        rows = self.sql(f"SET search_path = pg_catalog; SELECT task_id, current_state FROM "
                        f"{schema}.discover_recoverable_tasks()")
        self.assertIn(["outside", "orphaned"], rows)
        rows = self.sql(f"SET search_path = pg_catalog; "
                        f"SELECT {schema}.validate_task_recovery('{task}')->>'valid'")
        self.assertIn(["true"], rows)


if __name__ == "__main__":
    unittest.main()
