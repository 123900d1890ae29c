"""The part of the walk (operations.py) that is about queues, jobs, schedules, patterns and recovery."""
from wrong_requests import YEAR

QUEUES = ("default", "a", "b", "plain")
TYPES = ("t0", "t1", "t2:x")
LATER_MS = 10 ** 9


class Plans:
    def queue(self):
        name = self.rng.choice(QUEUES[:3])
        way = self.rng.randrange(6)
        if way == 5:
            self.call("DELETE", f"/v1/queues/{self.rng.choice((*QUEUES, 'e'))}")
            self.call("PATCH", "/v1/queues/e", {})
        elif way == 0:
            self.expect(200, "POST", f"/v1/queues/{name}:{self.rng.choice(('pause', 'resume', 'resume', 'resume'))}")
        elif way == 1:
            self.call("GET", f"/v1/queues/{name}")
        else:
            patch = {"concurrency": self.rng.choice((None, 30, 10, 4)), "key_concurrency": self.rng.choice((None, 3)),
                     "type_limits": self.rng.choice(([], [{"type": "t0", "concurrency": 8}]))}
            self.expect(200, "PATCH", f"/v1/queues/{name}", {k: v for k, v in patch.items() if self.maybe(0.4)})

    def job(self):
        rng = self.rng
        way = rng.randrange(8)
        if not self.jobs or (way == 0 and len(self.jobs) < 15):
            self.named += 1
            body = {"name": f"j{self.named}", "task_type": rng.choice(TYPES)}
            for name, value in (("priority", rng.choice((3, "high"))), ("max_retries", 1), ("timeout_seconds", 50),
                                ("payload", self.value()), ("description", "d"), ("queue", "a"), ("created_by", "me"),
                                ("max_concurrent", 2)):
                if self.maybe(0.25):
                    body[name] = value
            self.jobs.append(self.expect(201, "POST", "/v1/jobs", body))
            return
        job = rng.choice(self.jobs)
        if way in (1, 2):
            if self.full():
                return
            status, answer = self.call("POST", f"/v1/jobs/{job['id']}:run", {"payload": self.value()} if self.maybe() else {})
            if status == 201:
                self.oracle.adopt(answer)
        elif way == 3:
            body = {"priority": rng.choice((None, 5, "low")), "description": rng.choice((None, "other")),
                    "max_retries": rng.choice((None, 2)), "is_active": self.maybe(0.8)}
            self.call("PATCH", f"/v1/jobs/{job['id']}", {k: v for k, v in body.items() if self.maybe()})
        elif way == 4:
            self.call("GET", f"/v1/jobs/{rng.choice((job['id'], job['name']))}")
        elif way == 5:
            other = rng.choice(self.jobs)
            self.call("POST", f"/v1/jobs/{job['id']}/dependencies", {
                "depends_on_job_id": other["id"], "dependency_type": rng.choice(("success", "completion", "failure")),
                "dependency_config": {"mode": "gate"}})
        elif way == 6:
            self.call("GET", f"/v1/jobs/{job['id']}/{rng.choice(('stats', 'dependencies', 'schedules'))}")
        elif way == 7 and self.maybe(0.2):
            if self.call("DELETE", f"/v1/jobs/{job['id']}")[0] == 204:
                self.jobs.remove(job)

    def schedule(self):
        rng = self.rng
        way = rng.randrange(7)
        plan = rng.choice(({"cron_expression": "30 2 1 1 *", "timezone": "Europe/Berlin"}, {"interval_seconds": LATER_MS // 1000 * 300},
                           {"scheduled_at": YEAR}, {"cron_expression": "0 9 29 2 MON", "dst": "both", "jitter_ms": 5}))
        if way == 0:
            self.call("POST", "/v1/schedules:preview", {**plan, "count": 5, "from": "2034-12-01T00:00:00Z"})
        elif way == 1 or not self.schedules:
            if not self.jobs or len(self.schedules) > 25:
                return
            body = {**plan, "job_id": rng.choice(self.jobs)["id"], "misfire": rng.choice(("skip", "fire_once", "fire_all")),
                    "overlap": rng.choice(("allow", "skip", "queue", "replace")), "is_active": self.maybe(0.8)}
            status, answer = self.call("POST", "/v1/schedules", body)
            if status == 201:
                self.schedules.append(answer["id"])
        elif way == 2:
            self.call("GET", f"/v1/schedules/{rng.choice(self.schedules)}/upcoming?count=4&from=2035-03-01T00:00:00Z")
        elif way == 3:
            self.call("POST", f"/v1/schedules/{rng.choice(self.schedules)}:{rng.choice(('pause', 'resume'))}")
        elif way == 4:
            self.call("PATCH", f"/v1/schedules/{rng.choice(self.schedules)}",
                      rng.choice(({"timezone": "UTC"}, {"jitter_ms": 7}, {"ends_at": None}, {"misfire_cap": 3}, {"dst": "skip"})))
        elif way == 5:
            self.call("GET", f"/v1/schedules/{rng.choice(self.schedules)}")
        elif self.maybe(0.3):
            chosen = rng.choice(self.schedules)
            self.call("DELETE", f"/v1/schedules/{chosen}")
            self.schedules.remove(chosen)

    def pattern(self):
        rng = self.rng
        config = rng.choice((("daily", {"time": "09:00", "timezone": "Europe/Berlin"}), ("weekly", {"time": "10:00", "weekdays": ["MON"]}),
                             ("monthly", {"time": "08:00", "day": 31}), ("yearly", {"time": "07:00", "month": 2, "day": 29}),
                             ("rrule", {"rrule": "FREQ=DAILY;INTERVAL=3", "time": "01:00"})))
        body = {"pattern_type": config[0], "pattern_config": {**config[1], "starts_at": "2034-01-01T00:00:00Z"}}
        way = rng.randrange(5)
        if way == 0:
            self.call("POST", "/v1/recurring:preview?count=4&from=2035-01-01T00:00:00Z", body)
        elif way == 1 or not self.patterns:
            if self.jobs and len(self.patterns) < 15:
                self.named += 1
                status, answer = self.call("POST", "/v1/recurring", {**body, "name": f"p{self.named}",
                                                                     "template_job_id": rng.choice(self.jobs)["id"]})
                if status == 201:
                    self.patterns.append(answer["id"])
        elif way == 2:
            self.call("GET", f"/v1/recurring/{rng.choice(self.patterns)}/upcoming?count=3&from=2035-01-01T00:00:00Z")
        elif way == 3:
            self.call("GET", "/v1/forecast?from=2035-01-01T00:00:00Z&to=2035-02-01T00:00:00Z&tz=Europe/Berlin&limit=50")
        else:
            self.call("POST", f"/v1/recurring/{rng.choice(self.patterns)}:{rng.choice(('pause', 'resume'))}")

    def recovery(self):
        task_id = self.some("partial", "failed", "completed", "pending")
        if task_id:
            self.call("POST", "/v1/recovery/validate", {"task_id": task_id})
