"""Schedules on a cluster (D4, E4): a leader that is killed, stopped or frozen while one fires every
second. The next leader continues: no instant is missed and none fires twice (V4; F-F1, F-F2,
F-B11)."""
import time
import unittest

import harness
from cluster import LEASE_S, SLACK_S, ClusterTest, begin_module

KILLS = 3


def setUpModule():
    begin_module()


class Leaders(ClusterTest):
    def every_second(self, node):
        """A job that runs every second; a schedule and a recurring pattern are planned alike."""
        jobs = [node.expect(201, "POST", "/v1/jobs", {"name": name})
                for name in ("schedule", "pattern")]
        node.expect(201, "POST", f"/v1/jobs/{jobs[0]['id']}/schedules",
                    {"schedule_type": "interval", "interval_seconds": 1})
        node.expect(201, "POST", "/v1/recurring",
                    {"name": "p", "pattern_type": "rrule", "template_job_id": jobs[1]["id"],
                     "pattern_config": {"rrule": "FREQ=SECONDLY"}})
        return jobs

    def instants(self, cluster, job):
        """Seconds at which the runs of the job were planned, in order."""
        rows = cluster.sql("SELECT extract(epoch FROM scheduled_at)::numeric FROM tasks "
                           f"WHERE job_id = '{job['id']}' ORDER BY scheduled_at")
        return [float(row[0]) for row in rows]

    def wait_more(self, cluster, jobs, deadline_s=harness.DEADLINE_S):
        before = [len(self.instants(cluster, job)) for job in jobs]
        harness.wait_until(lambda: all(len(self.instants(cluster, job)) > count + 1
                                       for job, count in zip(jobs, before)),
                           deadline_s, "runs of every job")

    def assert_every_second_once(self, cluster, jobs):
        for job in jobs:
            instants = self.instants(cluster, job)
            self.assertEqual(len(set(instants)), len(instants), f"{job['name']} fired twice")
            steps = {round(b - a, 6) for a, b in zip(instants, instants[1:])}
            self.assertEqual(steps, {1.0}, f"{job['name']} missed instants")

    def test_f_f1_when_leaders_are_killed_nothing_is_missed_and_nothing_fires_twice(self):
        cluster = self.cluster(2)
        jobs = self.every_second(cluster.node(0))
        self.wait_more(cluster, jobs)
        for _ in range(KILLS):
            leader = cluster.wait_leader()
            began = time.monotonic()
            cluster.kill(leader)
            self.wait_more(cluster, jobs)
            self.assertLess(time.monotonic() - began, LEASE_S + 3 + SLACK_S)
            cluster.start(leader)
        self.assert_every_second_once(cluster, jobs)
        self.assertEqual(cluster.verify()[0], 0)

    def test_f_f2_a_leader_that_stops_misses_nothing_at_the_seam(self):
        cluster = self.cluster(2)
        jobs = self.every_second(cluster.node(0))
        self.wait_more(cluster, jobs)
        for _ in range(2):
            leader = cluster.wait_leader()
            self.assertEqual(cluster.stop(leader), 0)
            self.wait_more(cluster, jobs)
            cluster.start(leader)
        self.assert_every_second_once(cluster, jobs)

    def test_f_b11_a_leader_frozen_beyond_its_lease_fires_nothing_when_it_wakes(self):
        cluster = self.cluster(2)
        jobs = self.every_second(cluster.node(0))
        self.wait_more(cluster, jobs)
        leader = cluster.wait_leader()
        cluster.freeze(leader)
        self.wait_more(cluster, jobs)
        cluster.thaw(leader)
        self.wait_more(cluster, jobs)
        self.assert_every_second_once(cluster, jobs)


if __name__ == "__main__":
    unittest.main()
