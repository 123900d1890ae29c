"""What tests of the scheduling service share: a server of its own for every test (harness.py), and
the words for making categories, jobs, schedules, patterns and dependencies."""
import urllib.parse

import harness

NOBODY = "01890000-0000-7000-8000-000000000000"  # an id that nothing has


class PlanningTest(harness.ApiTest):
    # Making.

    def category(self, name, **fields):
        return self.expect(201, "POST", "/v1/categories", {"name": name, **fields})

    def job(self, name="report", **fields):
        return self.expect(201, "POST", "/v1/jobs", {"name": name, **fields})

    def schedule(self, job, **fields):
        return self.expect(201, "POST", f"/v1/jobs/{job['id']}/schedules", fields)

    def recurring(self, job, name="pattern", pattern_type="daily", config=None, **fields):
        return self.expect(201, "POST", "/v1/recurring",
                           {"name": name, "pattern_type": pattern_type,
                            "pattern_config": config or {}, "template_job_id": job["id"],
                            **fields})

    def depend(self, job, on, **fields):
        return self.expect(201, "POST", f"/v1/jobs/{job['id']}/dependencies",
                           {"depends_on_job_id": on["id"], **fields})

    # Looking.

    def items(self, path, **query):
        text = urllib.parse.urlencode(query)
        return self.expect(200, "GET", f"{path}?{text}" if text else path)["items"]

    def pages(self, path, limit, **query):
        """All items, page by page; no page is longer than asked for, and none is empty."""
        seen, cursor = [], None
        while True:
            asked = {**query, "limit": limit, **({"cursor": cursor} if cursor else {})}
            page = self.expect(200, "GET", f"{path}?{urllib.parse.urlencode(asked)}")
            self.assertLessEqual(len(page["items"]), limit)
            self.assertTrue(page["items"] or not seen, "an empty page after others")
            seen += page["items"]
            cursor = page["next_cursor"]
            if not cursor:
                return seen

    def ids(self, items):
        return [item["id"] for item in items]

    # Working.

    def work_off(self, worker="worker-1", queues=("default",), op="complete", **fields):
        """Claims one task of these queues, waiting for it, and reports its outcome."""
        if not getattr(self, "registered", None):
            self.registered = self.register(worker, queues=queues)
        [task] = self.claim(worker, wait_ms=30000, queues=list(queues))
        self.report_ok(worker, task, op, **fields)
        return task

    def check_refusals(self, method, path, base, cases):
        """Each case: fields beside `base`, and the field the 422 names."""
        for fields, field in cases:
            with self.subTest(fields=fields):
                self.expect_error(422, "invalid", method, path, {**base, **fields}, field=field)
