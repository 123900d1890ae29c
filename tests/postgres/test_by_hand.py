"""What people do to a store on PostgreSQL with SQL while nodes run: changes through the view `tasks` (E6),
and the functions that are there for them (B5, B6) with any search_path."""
import json
import unittest

from cluster import CALM, ClusterTest, begin_module

setUpModule = begin_module


class ByHand(ClusterTest):
    def setUp(self):
        cluster = self.cluster(1, *CALM)
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

    def test_e6_what_is_not_for_sql_is_refused_and_changes_nothing(self):
        first = self.node.enqueue("t", metadata={"a": 1})
        waits = self.node.enqueue("t", depends_on=[first["id"]])["id"]
        key = self.node.enqueue("t", idempotency_key="k", unique_until="ended")["id"]
        job = self.node.expect(201, "POST", "/v1/jobs", {"name": "j", "task_type": "t"})["id"]
        run = self.node.expect(201, "POST", f"/v1/jobs/{job}:run", {})["id"]
        first = self.node.task(first["id"])
        for change, why in (("id = gen_random_uuid()", "id cannot be set"), ("queue = 'x'", "queue cannot"),
                            ("payload = '{}', state = 'x'", "payload cannot"), ("version = 7", "version cannot"),
                            ("status = 'nonsense'", "task_status"), ("status = NULL", "cannot be null"),
                            ("state = NULL", "cannot be null"), ("progress = NULL", "cannot be null"),
                            ("priority = 1001", "task_priority"), ("retry_count = -1", "negative"),
                            ("metadata = '[1]'", "an object"), ("scheduled_at = 'infinity'", "1970 and 9999"),
                            ("scheduled_at = '-infinity'", "1970 and 9999"),
                            ("retry_count = 9223372036854775807", "from 0 to 1000000"),
                            ("crash_count = 1000001", "from 0 to 1000000"),
                            ("state = repeat('x', 5000000)", "longer than 200 bytes"),
                            ("state = repeat('ä', 101)", "longer than 200 bytes"),
                            ("error = repeat('x', 4097)", "longer than 4096 bytes"),
                            ("last_error = repeat('x', 4097)", "longer than 4096 bytes"),
                            ("metadata = jsonb_build_object('a', repeat('x', 16384))", "than 16384 bytes"),
                            ("error_details = to_jsonb(repeat('x', 16383))", "longer than 16384 bytes"),
                            ("recovery_metadata = to_jsonb(repeat('x', 16383))", "than 16384 bytes"),
                            ("error_details = (repeat('[', 65) || repeat(']', 65))::jsonb", "deeper than 64"),
                            ("metadata = (repeat('{\"a\":', 65) || 1 || repeat('}', 65))::jsonb", "deeper than 64"),
                            ("recovery_metadata = '{\"a\": -1e400}'", "range of a double"),
                            ("status = 'completed'", "other tasks wait")):
            with self.assertRaisesRegex(AssertionError, why):
                self.sql(f"UPDATE tasks SET {change} WHERE id = '{first['id']}'")
        for task, status, why in ((key, "cancelled", "its key"), (run, "failed", "run of a job"),
                                  (waits, "running", "through a worker only")):
            with self.assertRaisesRegex(AssertionError, why):
                self.sql(f"UPDATE tasks SET state = 'x' WHERE id = '{first['id']}'; "  # one transaction
                         f"UPDATE tasks SET status = '{status}' WHERE id = '{task}'")
        self.assertEqual(self.node.task(first["id"]), first)
        self.verify()

    def test_e6_what_is_within_the_bounds_is_taken(self):
        task = self.node.enqueue("t")["id"]
        self.sql("UPDATE tasks SET retry_count = 1000000, state = repeat('x', 200), error = repeat('x', 4096), "
                 "last_error = repeat('x', 4096), error_details = to_jsonb(repeat('x', 16382)), "
                 f"metadata = jsonb_build_object('a', repeat('x', 16375)) WHERE id = '{task}'")
        after = self.node.task(task)
        self.assertEqual((after["retry_count"], len(after["state"]), len(after["error_details"])),
                         (1000000, 200, 16382))
        self.sql("UPDATE tasks SET recovery_metadata = (repeat('[', 63) || '[1.5e308]' || repeat(']', 63))::jsonb "
                 f"WHERE id = '{task}'")
        self.sql("UPDATE task_states SET state = repeat('x', 201), retry_count = 1000001; "
                 f"UPDATE tasks SET status = 'cancelled' WHERE id = '{task}'")  # what was beyond hinders nothing
        self.assertEqual(self.node.task(task)["status"], "cancelled")
        self.verify()

    def test_e6_a_priority_that_a_person_sets_moves_a_task_as_the_api_does(self):
        for queue, rules in (("aged", {"ageing_ms": 60000}), ("upside-down", {"priority_order": "low_first"}),
                             ("both", {"ageing_ms": 3153600000, "priority_order": "low_first"})):
            self.node.expect(200, "PATCH", f"/v1/queues/{queue}", rules)
        for queue in ("default", "aged", "upside-down", "both"):
            by_hand, by_api = (self.node.enqueue("t", queue=queue)["id"] for _ in range(2))
            for priority in (5, -1000, 1000):
                self.sql(f"UPDATE tasks SET priority = {priority} WHERE id = '{by_hand}'")
                self.node.expect(200, "POST", f"/v1/tasks/{by_api}:prioritize", {"priority": priority})
                [[places]] = self.sql(
                    "SELECT count(DISTINCT order_key - (extract(epoch FROM created_at) * 1000000)::bigint)"
                    f" FROM tasks WHERE id IN ('{by_hand}', '{by_api}')")
                self.assertEqual(places, "1", (queue, priority))
                self.verify()

    def test_e6_an_end_that_a_person_sets_has_its_time_and_loses_it_again(self):
        task = self.node.enqueue("t")["id"]
        [[version, completed]] = self.sql(f"UPDATE tasks SET status = 'failed' WHERE id = '{task}' "
                                          "RETURNING version, completed_at = updated_at")
        after = self.node.task(task)
        self.assertEqual((str(after["version"]), completed), (version, "t"))
        self.assertEqual(after["completed_at"], after["updated_at"])
        self.sql(f"UPDATE tasks SET status = 'pending' WHERE id = '{task}'")
        self.assertIsNone(self.node.task(task)["completed_at"])
        self.sql(f"BEGIN; UPDATE tasks SET status = 'cancelled', priority = 3 WHERE id = '{task}'; ROLLBACK")
        self.assertEqual(self.node.task(task)["status"], "pending")
        self.verify()

    def test_e6_a_task_that_a_worker_has_waits_again_only_when_that_has_stopped(self):
        task = self.node.enqueue("t")["id"]
        self.node.register()
        [claimed] = self.node.claim()
        for status in ("pending", "delayed", "paused"):
            with self.assertRaisesRegex(AssertionError, "has not stopped"):
                self.sql(f"UPDATE tasks SET status = '{status}' WHERE id = '{task}'")
        self.sql(f"UPDATE tasks SET status = 'cancelled' WHERE id = '{task}'")
        with self.assertRaisesRegex(AssertionError, "has not stopped"):
            self.sql(f"UPDATE tasks SET status = 'pending' WHERE id = '{task}'")
        [execution] = self.node.executions(task)
        self.assertEqual((execution["status"], execution["error_data"]), ("cancelled", {"reason": "by_hand"}))
        self.assertFalse(self.node.report_one("worker-1", claimed, "complete").get("ok"))
        self.verify()

    def test_e6_a_task_that_a_limit_keeps_back_is_moved_and_counted_once(self):
        self.node.expect(200, "PATCH", "/v1/queues/default", {"key_concurrency": 1})
        tasks = [self.node.enqueue("t", limit_key="k")["id"] for _ in range(4)]
        self.node.register()
        [claimed] = self.node.claim(max=4)
        self.assertEqual(self.sql("SELECT count(*) FROM parked_rows"), [["3"]])
        self.sql(f"UPDATE tasks SET priority = 7 WHERE id = '{tasks[3]}'")
        self.sql(f"UPDATE tasks SET status = 'cancelled' WHERE id = '{tasks[1]}'")
        code, text = self.look()
        self.assertEqual((code, json.loads(text)["checked"]["tasks"]), (0, 4), text)
        self.node.complete("worker-1", claimed)
        for expected in (tasks[3], tasks[2]):
            [claimed] = self.node.claim(max=4, wait_ms=10000)
            self.assertEqual(claimed["id"], expected)
            self.node.complete("worker-1", claimed)
        self.verify()

    def test_e6_a_role_needs_rights_to_read_the_tables_and_to_update_the_view(self):
        task = self.node.enqueue("t")["id"]
        [[schema]] = self.sql("SELECT current_schema()")
        self.sql(f"DROP ROLE IF EXISTS support; CREATE ROLE support; GRANT USAGE ON SCHEMA {schema} TO support; "
                 "GRANT SELECT ON tasks, task_states, task_specs, task_data, intake_rows, lanes, workers TO "
                 "support; "
                 "GRANT UPDATE (status, error) ON tasks TO support")
        self.addCleanup(self.sql, "DROP OWNED BY support; DROP ROLE support")
        self.sql(f"SET ROLE support; UPDATE tasks SET status = 'cancelled' WHERE id = '{task}'")
        self.assertEqual(self.node.task(task)["status"], "cancelled")
        for refused in (f"UPDATE tasks SET priority = 1 WHERE id = '{task}'",
                        "CREATE TEMP TABLE mine AS SELECT * FROM tasks; CREATE TRIGGER mine BEFORE UPDATE ON mine "
                        "FOR EACH ROW EXECUTE FUNCTION perdura_task_by_hand()"):
            with self.assertRaisesRegex(AssertionError, "permission denied"):
                self.sql(f"SET ROLE support; {refused}")
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
