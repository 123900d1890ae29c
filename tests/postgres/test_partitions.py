"""D8: events and executions are kept by month on PostgreSQL. The months are made ahead by the
leader, and dropped when nothing of them is kept; what has to stay stays, no request waits for it,
and rows without a month have a place all the same."""
import contextlib
import os
import subprocess
import time
import unittest

import harness
import months
from cluster import CALM, SLACK_S, ClusterTest, begin_module
from months import TABLES, month, name, there

setUpModule = begin_module

KEEP_TASKS = """
workers: 0
handlers:
  - {type: kept, command: ["true"], retention: 0}
retention: {completed: 30d, failed: 0, events: 30d, executions: 30d, logs: 30d}
"""
TRIES = 5
LOCK_S = 0.1  # as long as tidying may delay a request


def ahead():
    return {name(table, -n) for table in TABLES for n in range(4)}


@contextlib.contextmanager
def held(cluster, statement):
    """Another session's open transaction holds what it locks until the end."""
    with subprocess.Popen(["psql", "-X", "-q", cluster.store], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as holder:
        holder.stdin.write(f"BEGIN;\n{statement};\nSELECT 'held';\n")
        holder.stdin.flush()
        while "held" not in holder.stdout.readline():
            pass
        yield
        holder.stdin.close()


class Months(ClusterTest):
    def cluster(self, count, *arguments):
        return super().cluster(count, *CALM, *arguments)

    def configured(self, text):
        path = os.path.join(self.temporary_folder(), "perdura.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return "--config", path

    def wait_months(self, cluster, what):
        """Until there are this one and those to come, and no others."""
        try:
            harness.wait_until(lambda: there(cluster) == ahead(), 2 * harness.DEADLINE_S, what)
        except AssertionError as failure:
            logs = "".join(node.log() for node in cluster.nodes)
            raise AssertionError(f"{failure}: {sorted(there(cluster) ^ ahead())}\n{logs}") from None

    def completed(self, node, count, type="test", log=False):
        ids = []
        for _ in range(count):
            node.enqueue(type)
            task = node.claim()[0]
            node.report_ok("worker-1", task, "start")
            if log:
                node.report_ok("worker-1", task, "log", level="INFO", message="line")
            node.complete("worker-1", task, 1)
            ids.append(task["id"])
        return ids

    def cancelled(self, node, count):
        ids = [node.enqueue()["id"] for _ in range(count)]
        for task_id in ids:
            node.expect(200, "POST", f"/v1/tasks/{task_id}:cancel")
        return ids

    def given_back(self, node):
        """A task that waits and has a run behind it."""
        node.enqueue("kept")
        task = node.claim()[0]
        node.report_ok("worker-1", task, "start")
        node.report_ok("worker-1", task, "release")
        return task["id"]


class Ahead(Months):
    def drop(self, cluster, back):
        for table in TABLES:
            cluster.sql(f"DROP TABLE {name(table, back)}")

    def test_d8_a_new_store_has_this_month_and_three_more(self):
        cluster = self.cluster(1)
        self.assertEqual(there(cluster), ahead())
        self.drop(cluster, -3)
        cluster.stop(0)
        cluster.start(0)
        self.assertEqual(there(cluster), ahead(), "also one that opens it makes what is missing")

    def test_d8_whoever_leads_makes_the_months_that_are_missing_as_the_others_are(self):
        cluster = self.cluster(2)
        cluster.wait_leader()
        leader = cluster.leader()
        before = self.shape(cluster)
        self.drop(cluster, -3)
        self.drop(cluster, -2)
        cluster.kill(leader)
        self.wait_months(cluster, "months by the new leader")
        self.assertEqual(cluster.node(1 - leader).log().count("store.month_made"), 4)
        self.assertEqual(self.shape(cluster), before, "with settings and indexes")

    def shape(self, cluster):
        """Settings, indexes and checks of every month, without its name."""
        return sorted(cluster.sql(
            "SELECT c.relname, (SELECT array_agg(o ORDER BY o) FROM unnest(c.reloptions) o), "
            "(SELECT array_agg(pg_get_indexdef(indexrelid) ORDER BY indexrelid::regclass::text) "
            "FROM pg_index WHERE indrelid = c.oid AND indisvalid), (SELECT "
            "array_agg(pg_get_constraintdef(k.oid) ORDER BY conname) FROM pg_constraint k WHERE "
            "conrelid = c.oid) FROM pg_class c WHERE c.relispartition AND c.relkind = 'r'"))

    def test_d8_rows_of_a_month_that_was_not_there_move_to_it(self):
        cluster = self.cluster(1)
        node = cluster.node(0)
        node.register()
        ids = self.completed(node, 3)
        cluster.stop(0)
        self.drop(cluster, -3)
        ids = months.shift(cluster, -3, ids)
        self.assertEqual(months.rows(cluster, "execution_rows_other"), 3)
        cluster.start(0)
        self.assertEqual(months.rows(cluster, "execution_rows_other"), 0)
        self.assertEqual(months.rows(cluster, name("execution_rows", -3)), 3)
        for task_id in ids:
            self.assertEqual([e["status"] for e in node.executions(task_id)], ["completed"])

    def test_d8_a_month_with_very_many_strays_stays_where_it_is_and_nodes_serve(self):
        cluster = self.cluster(1)
        cluster.stop(0)
        self.drop(cluster, -3)
        stray = (f"perdura_first_id(timestamptz '{month(-3)} 00:00Z')")
        cluster.sql("INSERT INTO task_event_rows (task, seq, id, status, actor, created_at) SELECT "
                    f"-1, n, {stray}, 'pending', 'API', now() FROM generate_series(1, 10001) n")
        cluster.start(0)
        self.assertEqual(there(cluster), ahead() - {name("task_event_rows", -3)})
        self.assertIn("store.months_not_made", cluster.node(0).log())
        self.assertIn("too many rows", cluster.node(0).log())
        cluster.node(0).enqueue()
        cluster.sql("DELETE FROM task_event_rows WHERE task = -1")

    def test_d8_nobody_waits_long_while_a_reader_keeps_months_from_being_made_and_dropped(self):
        """As `verify` does, which looks at one state of the store however long it takes."""
        cluster = self.cluster(2)
        leader = cluster.wait_leader()
        node = cluster.node(1 - leader)
        node.register()
        self.drop(cluster, -3)
        months.make(cluster, 6)
        with held(cluster, "LOCK TABLE task_event_rows, execution_rows IN ACCESS SHARE MODE"):
            cluster.kill(leader)
            longest = 0
            while "store.months_not_tidied" not in node.log():
                began = time.monotonic()
                self.completed(node, 1)
                longest = max(longest, time.monotonic() - began)
        self.assertLess(longest, 4 * LOCK_S + SLACK_S)
        self.assertEqual(there(cluster) ^ ahead(), {name(table, n) for table in TABLES
                                                    for n in (-3, 6)})
        cluster.start(leader)
        cluster.stop(1 - leader)
        self.wait_months(cluster, "all done when it was over")


class Old(Months):
    def test_d8_a_month_of_which_nothing_is_kept_is_dropped_with_its_rows(self):
        cluster = self.cluster(1, *self.configured(KEEP_TASKS))
        node = cluster.node(0)
        node.register()
        kept = self.completed(node, 20, "kept")
        gone = self.completed(node, 20)
        cancelled = self.cancelled(node, 20)
        cluster.stop(0)
        months.make(cluster, 6, 5)
        kept, gone, cancelled = (months.shift(cluster, 6, x) for x in (kept, gone, cancelled))
        for table in TABLES:
            self.assertGreater(months.rows(cluster, name(table, 6)), 0)
        cluster.start(0)
        self.wait_months(cluster, "old months gone")
        self.assertEqual(node.log().count("store.month_dropped"), 4, "an empty one, too")
        harness.wait_until(lambda: months.rows(cluster, "task_states") == 40,
                           what="what is not kept is removed")
        for task_id in gone:
            node.expect(404, "GET", f"/v1/tasks/{task_id}")
        for task_id in kept + cancelled:
            self.assertIn(node.task(task_id)["status"], ("completed", "cancelled"))
            self.assertEqual(node.events(task_id), [])
            self.assertEqual(node.executions(task_id), [])

    def test_d8_what_a_task_that_has_not_ended_did_long_ago_is_kept(self):
        cluster = self.cluster(1, *self.configured(KEEP_TASKS))
        node = cluster.node(0)
        node.register()
        over_id = self.given_back(node)
        node.complete("worker-1", node.claim()[0])
        ended = self.completed(node, 10, "kept")
        long_id = self.given_back(node)
        cluster.stop(0)
        months.make(cluster, 7, 6)
        long_id, over_id, *ended = months.shift(cluster, 7, [long_id, over_id, *ended])
        months.shift_end(cluster, over_id, 7, 6)
        before = cluster.sql(f"SELECT seq, status FROM task_events WHERE task_id = '{long_id}' "
                             "ORDER BY seq")
        self.assertEqual(len({row[0] for row in before}), len(before))
        cluster.start(0)
        harness.wait_until(lambda: name("execution_rows", 6) not in there(cluster)
                           and months.rows(cluster, name("execution_rows", 7)) == 1,
                           what="only what has to stay is left")
        self.assertEqual([[str(e["seq"]), e["status"]] for e in reversed(node.events(long_id))],
                         before)
        for task_id in ended:
            self.assertEqual(node.events(task_id), [])
        [task] = node.claim(wait_ms=30000)
        self.assertEqual(task["id"], long_id)
        node.complete("worker-1", task)
        cluster.stop(0)
        cluster.start(0)
        self.wait_months(cluster, "now it has ended")
        self.assertEqual([e["status"] for e in node.executions(long_id)], ["completed"])

    def test_d8_a_month_goes_in_the_same_round_when_what_was_in_its_way_is_over_soon(self):
        cluster = self.cluster(1, *self.configured(KEEP_TASKS))
        node = cluster.node(0)
        node.register()
        kept = self.completed(node, 3, "kept")
        cluster.stop(0)
        months.make(cluster, 6)
        months.shift(cluster, 6, kept)

        def waits():
            return cluster.sql("SELECT pid FROM pg_locks WHERE NOT granted")

        def gave_up():
            return node.log().count("store.months_not_tidied")

        for _ in range(TRIES):  # the machine may be too busy to let go of it soon
            before = gave_up()
            with held(cluster, "LOCK TABLE task_event_rows IN ACCESS SHARE MODE"):
                cluster.start(0)
                harness.wait_until(lambda: waits() or gave_up() > before,
                                   what="the round waits for the table")
                harness.wait_until(lambda: not waits(), what="it gives up for now")
            harness.wait_until(lambda: there(cluster) == ahead() or gave_up() > before,
                               what="gone, or given up")
            if gave_up() == before:
                return
            cluster.stop(0)
        self.fail("it never went in the same round")

    def test_d8_what_keeps_a_month(self):
        cluster = self.cluster(1)
        node = cluster.node(0)
        node.register()
        ended, logged, waiting = (self.completed(node, 1)[0], self.completed(node, 1, log=True)[0],
                                  self.given_back(node))
        cluster.stop(0)
        months.make(cluster, 3, 4, 5, 6)
        [ended] = months.shift(cluster, 3, [ended])
        months.shift(cluster, 4, [logged])
        months.shift(cluster, 5, [waiting])
        self.assertEqual(self.dropped(cluster, 3, False), "has rows")
        self.assertEqual(self.dropped(cluster, 3, True), "has first events")
        cluster.sql(f"UPDATE task_specs SET opened = NULL WHERE task = perdura_key('{ended}')")
        self.assertEqual(self.dropped(cluster, 4, True), "has logs")
        self.assertEqual(self.dropped(cluster, 5, True), "has open tasks")
        self.assertEqual(self.dropped(cluster, 6, False), "")
        self.assertEqual(self.dropped(cluster, 3, True), "")
        self.assertEqual(self.dropped(cluster, 3, True), "is not there")
        self.assertEqual(there(cluster) - ahead(), {
            *(name("task_event_rows", n) for n in (3, 4, 5, 6)),
            name("execution_rows", 4), name("execution_rows", 5)})
        cluster.sql("DELETE FROM execution_logs; DELETE FROM log_anchors")  # of other ids

    def dropped(self, cluster, back, whole):
        return cluster.sql("SELECT coalesce(perdura_month_drop('execution_rows', "
                           f"date '{month(back)}', {whole}), '')")[0][0]


if __name__ == "__main__":
    unittest.main()
