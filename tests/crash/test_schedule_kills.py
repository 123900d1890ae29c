"""kill -9 of the server while schedules fire and runs of jobs end (D4, D6, D7; F-A11, F-A12): every
planned instant has exactly one run (V4), what an end releases or starts is there with the end or not at
all, and no run waits longer than it has to."""
import random
import signal
import unittest

from crash_harness import CrashTest, needs_fault_points, pause_s, wait_until
from planning import PlanningTest

FIRING = ("fire.before_step", "fire.after_insert", "fire.task", "runs.make")


class ScheduleTest(CrashTest, PlanningTest):
    def runs(self, job, **filters):
        """Runs of the job, by their planned instants."""
        return sorted(self.all_tasks(job_id=job["id"], **filters),
                      key=lambda task: (task["scheduled_at"] or "", task["id"]))

    def assert_every_second_once(self, job):
        """Instants of a schedule that fires every second."""
        instants = [task["scheduled_at"] for task in self.runs(job)]
        self.assertEqual(len(set(instants)), len(instants), "an instant fired twice")
        seconds = [int(text[11:13]) * 3600 + int(text[14:16]) * 60 + int(text[17:19])
                   for text in instants]
        gaps = [(a, b) for a, b in zip(seconds, seconds[1:]) if (b - a) % 86400 != 1]
        self.assertEqual(gaps, [], "instants are missing")

    def every_second(self):
        job = self.job("every")
        self.schedule(job, schedule_type="interval", interval_seconds=1)
        return job


@needs_fault_points
class KillAroundFires(ScheduleTest):
    def test_f_a11_killed_between_the_steps_of_a_fire_its_instant_has_one_run(self):
        for point in FIRING:
            with self.subTest(point=point):
                self.restart()
                job = self.every_second()
                wait_until(lambda: self.runs(job), what="the first run")
                self.die_at(f"{point}:1")
                before = self.started_again(job)
                wait_until(lambda: len(self.runs(job)) > before + 1, what="more runs")
                self.assert_every_second_once(job)
                self.expect(204, "DELETE", f"/v1/jobs/{job['id']}")

    def die_at(self, fault):
        """Started again, it fires what came meanwhile, and dies at it; perhaps before it serves."""
        self.server.kill()
        try:
            self.start(fault=fault)
        except AssertionError:
            pass
        self.assertEqual(self.server.wait(), -signal.SIGKILL)

    def started_again(self, job):
        self.start()
        return len(self.runs(job))

    def test_f_a12_what_was_not_committed_fires_after_the_restart_and_says_how_late(self):
        self.start(fault="before.commit:1000000")
        job = self.job("once")
        self.server.kill()
        self.start(fault="fire.task:1")
        self.send_and_die(f"/v1/jobs/{job['id']}/schedules", {"schedule_type": "immediate"})
        pause_s(0.3)
        self.start()
        [run] = wait_until(lambda: self.runs(job), what="the run")
        [schedule] = self.items("/v1/schedules", job_id=job["id"])
        self.assertEqual(run["scheduled_at"], schedule["last_fire_at"])
        self.assertEqual(run["schedule_id"], schedule["id"])
        late_ms = self.events(run["id"])[-1]["detail"]["late_ms"]
        self.assertGreaterEqual(late_ms, 300)

    def send_and_die(self, path, body):
        """The schedule is acknowledged, or not: the server dies when it fires."""
        try:
            self.request("POST", path, body)
        except Exception:
            pass
        self.assertEqual(self.server.wait(), -signal.SIGKILL)

    def test_killed_after_the_commit_of_a_fire_it_does_not_fire_again(self):
        for nth in (2, 3, 4, 5, 6):
            with self.subTest(nth=nth):
                self.restart()
                job = self.every_second()
                wait_until(lambda: self.runs(job), what="the first run")
                self.die_at(f"after.commit:{nth}")
                before = self.started_again(job)
                wait_until(lambda: len(self.runs(job)) > before + 1, what="more runs")
                self.assert_every_second_once(job)
                self.expect(204, "DELETE", f"/v1/jobs/{job['id']}")


@needs_fault_points
class KillAroundEnds(ScheduleTest):
    def chain(self):
        first, second, gated = (self.job(name) for name in ("first", "second", "gated"))
        self.depend(second, first, dependency_config={"mode": "trigger"})
        self.depend(gated, first)
        return first, second, gated

    def claim_run(self, job):
        self.register()
        run = self.expect(201, "POST", f"/v1/jobs/{job['id']}:run", {})
        [task] = self.claim(wait_ms=30000)
        self.assertEqual(task["id"], run["id"])
        return task

    def test_killed_after_the_commit_of_an_end_what_it_starts_is_there(self):
        self.start(fault="after.report:1")
        first, second, gated = self.chain()
        waiting = self.expect(201, "POST", f"/v1/jobs/{gated['id']}:run", {})
        self.assertEqual(waiting["status"], "blocked")
        task = self.claim_run(first)
        self.broken_report("worker-1", task, "complete")
        self.start()
        self.assertEqual(self.task(task["id"])["status"], "completed")
        self.assertEqual(len(self.runs(second)), 1)
        self.assertEqual(self.task(waiting["id"])["status"], "pending")

    def test_killed_before_the_commit_of_an_end_nothing_was_started(self):
        for point in ("before.report", "runs.trigger", "runs.release"):
            with self.subTest(point=point):
                self.restart(fault=f"{point}:1")
                first, second, gated = self.chain()
                waiting = self.expect(201, "POST", f"/v1/jobs/{gated['id']}:run", {})
                task = self.claim_run(first)
                self.broken_report("worker-1", task, "complete")
                self.start()
                self.assertEqual(self.runs(second), [])
                self.assertEqual(self.task(waiting["id"])["status"], "blocked")
                self.report_ok("worker-1", task, "complete")
                self.assertEqual(len(self.runs(second)), 1)
                self.assertEqual(self.task(waiting["id"])["status"], "pending")
                for job in (second, gated, first):
                    self.expect(204, "DELETE", f"/v1/jobs/{job['id']}")
                for run in (self.task(waiting["id"]), *self.runs(second)):
                    self.expect(200, "POST", f"/v1/tasks/{run['id']}:cancel", {})


class KillAtAnyTime(ScheduleTest):
    def test_a_chain_that_is_killed_again_and_again_runs_once_per_instant(self):
        """Every second a run, whose end starts another; the pool does both."""
        config = 'workers: 2\nhandlers:\n  - type: "*"\n    command: ["/bin/true"]\n' \
                 '    max_retries: 100\n'
        self.start(config=config)
        second = self.job("second", max_concurrent=1)
        every = self.every_second()
        self.depend(second, every, dependency_type="completion",
                    dependency_config={"mode": "trigger"})
        chance = random.Random(7)
        for _ in range(8):
            pause_s(chance.uniform(0.05, 1.3))
            self.restart(config=config)
        [schedule] = self.items("/v1/schedules", job_id=every["id"])
        self.expect(200, "PATCH", f"/v1/schedules/{schedule['id']}", {"is_active": False})
        wait_until(lambda: not [t for t in self.all_tasks() if t["status"] not in
                                ("completed", "dead_letter", "failed")], what="all runs to end")
        self.assert_every_second_once(every)
        self.assertEqual(len(self.runs(second)), len(self.runs(every)))


if __name__ == "__main__":
    unittest.main()
