"""What a principal of one user is answered does not depend on rows of other users (D12, V8): the same questions to a
server on which it is alone, and to one with as many rows of another user before and behind its own. Lists are read to
their end, page by page, with pages of every small size."""
import re
import unittest

from token_harness import ROOT_TOKEN, TokenTest, bearer

LISTS = ("tasks", "executions", "recovery", "recovery/candidates", "jobs", "schedules", "recurring", "categories",
         "tokens")
FILTERS = ("workflow_id=w", "correlation_id=c", "tag=a", "context_key=k", "q=found", "queue=q", "status=pending",
           "user_id=ada", "user_id=bob", "type=foreign", "order=oldest")
PAGES = 20
WHAT_DIFFERS = (  # ids, times, cursors, and which token it was
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID"),
    (r"\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)", "TIME"),
    (r"(token:|worker-)[0-9a-f]{16}|\"[0-9a-f]{16}\"", "TOKEN"),
    (r"\"([a-z])[0-9a-f]{16,}\"", r'"\1 CURSOR"'),
    (r"\d+(\.\d+)?s\b", "SPAN"))


def alike(text):
    for pattern, word in WHAT_DIFFERS:
        text = re.sub(pattern, word, text)
    return text


class AloneOrBeside(TokenTest):
    def ask(self, method, path, body=None):
        return self.request(method, path, body, bearer(self.ada))

    def make_rows(self, user, number):
        """Of everything that lists show."""
        fields = {"user_id": user, "workflow_id": "w", "correlation_id": "c", "tags": ["a"], "context_key": "k"}
        for _ in range(2):
            self.root(201, "POST", "/v1/tasks", {"type": "mine" if user == "ada" else "foreign", "queue": "q",
                                                 "name": "found", **fields})
        worker = self.root(201, "POST", "/v1/workers", {"queues": ["ends"]})["id"]
        ended = self.root(201, "POST", "/v1/tasks", {"type": "ends", "queue": "ends", **fields})["id"]
        task = self.root(200, "POST", f"/v1/workers/{worker}:claim", {"max": 1})["tasks"][0]
        self.root(200, "POST", f"/v1/workers/{worker}:report", [
            {"task_id": ended, "lease_token": task["lease_token"], "op": "partial"}])
        self.root(204, "DELETE", f"/v1/workers/{worker}")
        self.root(201, "POST", "/v1/recovery", {"task_id": ended, "method": "validate_only"})
        job = self.root(201, "POST", "/v1/jobs", {"name": f"job {user} {number}", "task_type": "planned",
                                                  "created_by": user})["id"]
        for path, body in ((f"/v1/jobs/{job}/schedules", {"schedule_type": "interval", "interval_seconds": 86400}),
                           ("/v1/recurring", {"name": f"pattern {user} {number}", "pattern_type": "daily",
                                              "pattern_config": {}, "template_job_id": job})):
            self.root(201, "POST", path, body)

    def questions(self):
        yield from (f"/v1/{name}?limit={limit}" for name in LISTS for limit in (1, 2, 3, 100))
        yield from (f"/v1/tasks?{name}&limit={limit}" for name in FILTERS for limit in (1, 2, 100))
        yield from (f"/v1/workflows/w?limit={limit}" for limit in (1, 2, 3, 4, 1000))
        yield from (f"/v1/forecast?limit={limit}" for limit in (1, 2, 100))
        yield from ("/v1/jobs?name=job%20bob%201", "/v1/jobs/job%20bob%201", "/v1/forecast?job=job%20bob%201",
                    "/v1/schedules?next_before=2999-01-01T00:00:00Z&limit=1", "/v1/jobs?category=general&limit=1",
                    "/v1/workflows/nothing", "/v1/whoami", "/v1/namespaces")

    def answers(self):
        """Each question with the texts of all its pages."""
        answers = {}
        for path in self.questions():
            pages, cursor = [], ""
            while cursor is not None and len(pages) < PAGES:
                reply = self.ask("GET", path + (f"&cursor={cursor}" if cursor else ""))
                pages.append((reply.status, alike(reply.body.decode())))
                cursor = reply.json.get("next_cursor")
            self.assertLess(len(pages), PAGES, path)
            answers[path] = pages
        for path in ("/v1/tasks:cancel?status=pending&dry_run=true&limit=1",
                     "/v1/tasks:retry?status=partial&dry_run=true"):
            reply = self.ask("POST", path)
            answers[path] = [(reply.status, alike(reply.body.decode()))]
        return answers

    def another_server(self):
        self.server.stop()
        self.another_store()
        self.server.start()

    def another_store(self):
        self.server.store += ".other"

    def look(self, *users):
        self.ada = self.token("admin", user_id="ada", namespace="*")
        for number, user in enumerate(users):
            self.make_rows(user, users[:number].count(user) + 1)
        return self.answers()

    def test_d12_v8_answers_are_the_same_whether_others_are_there_or_not(self):
        alone = self.look("ada")
        self.another_server()
        beside = self.look("bob", "ada", "bob")
        self.assertEqual(sum(len(pages[0][1]) > 100 for pages in alone.values()) > 40, True, "they show something")
        for path, pages in alone.items():
            self.assertEqual(pages, beside[path], path)
        self.assertNotEqual(self.request("GET", "/v1/tasks?limit=100", headers=bearer(ROOT_TOKEN)).json,
                            self.ask("GET", "/v1/tasks?limit=100").json)


if __name__ == "__main__":
    unittest.main()
