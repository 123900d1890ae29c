"""Content that services and agents bring: a viewer, the administrator of another namespace and a thief of the encrypted
store find none of it, on any route that reads (D12, V8, F-J1, F-J10)."""
import http.client
import json
import os
import re
import unittest

import harness
from agent_harness import FINAL, AgentTest
from harness import wait_until
from service_target import Target, reply
import test_encryption
from token_harness import ROOT_TOKEN, bearer

DOCUMENT = json.loads((harness.ROOT / "src/server/assets/openapi.json").read_text())
FOUND = re.compile(r"canary-[a-z]+")
# Where each of them comes from is in its name. All are found by one who may read everything.
CANARIES = {f"canary-{word}" for word in (
    "topic", "argument", "output", "stderr", "final", "payload", "answer", "refusal", "later", "failure", "detail",
    "step", "reason")}


class Content(AgentTest):
    environment = {"PERDURA_TOKEN": ROOT_TOKEN, "PERDURA_ACCESS_OPEN_METRICS": "true"}
    tools = """  - name: search
    description: Look something up
    parameters: {type: object, properties: {q: {type: string}}, required: [q]}
    command: [sh, -c, 'read line; echo canary-output; echo canary-stderr >&2; exit 1']
    safe_to_retry: true
"""
    lines = [{"turn": 0, "tools": [{"name": "search", "arguments": {"q": "canary-argument"}}]},
             {"turn": 1, "final": "canary-final"}]
    left_behind = test_encryption.Canaries.left_behind

    def write_configuration(self):
        self.keys = self.folder
        self.target = Target(self.answer)
        self.addCleanup(self.target.close)
        self.write("k1", os.urandom(32).hex())
        os.makedirs(f"{self.folder}/backups", 0o700, exist_ok=True)
        self.more = (f"  - {{type: 'call:*', service: s, method: Do}}\nservices:\n  - {{name: s, url: '{self.target.url}', "
                     f"breaker: {{failures: 0}}}}\nbackup_dir: {self.folder}/backups\n"
                     "encryption: {keys: [{id: k1, file: k1}], current: k1, all: true}\nworker: {namespaces: [default]}\n")
        super().write_configuration()

    def answer(self, call):
        kind = json.loads(call.body)["kind"]
        if kind == "later":
            self.url = call.headers["perdura-complete-url"]
            return reply(202, b"", None, Perdura_Async="1")
        return reply(200, {"r": "canary-answer"}) if kind == "good" else reply(400, {"message": "canary-refusal"})

    def request(self, method, path, body=None, headers=None):
        return super().request(method, path, body, headers if headers is not None else bearer(ROOT_TOKEN))

    def complete_later(self, body):
        self.assertEqual(self.request("POST", self.url[self.url.index("/v1/"):], body, {}).status, 204)

    def given_tasks(self):
        """One worked on by the agent, and one for each way a call may go."""
        tasks = [self.enqueue("research:x", payload={"topic": "canary-topic"}, max_retries=0)["id"]]
        for kind in ("good", "bad"):
            tasks.append(self.enqueue(f"call:{kind}", payload={"kind": kind, "p": "canary-payload"}, max_retries=0)["id"])
        for end in ({"result": "canary-later"}, {"fail": {"error": "canary-failure", "retryable": False,
                                                          "details": {"d": "canary-detail"}}}):
            self.url = None
            tasks.append(self.enqueue("call:later", payload={"kind": "later"}, max_retries=0)["id"])
            wait_until(lambda: self.url and self.task(tasks[-1])["worker_id"] == "service:s", what="the 202")
            self.complete_later({"checkpoint": {"name": "half", "data": {"c": "canary-step"}}})
            self.complete_later(end)
        tasks.append(self.enqueue("waits", queue="idle", workflow_id="flow", depends_on=tasks[:1])["id"])
        self.expect(200, "POST", f"/v1/tasks/{tasks[-1]}:cancel", {"reason": "canary-reason"})
        for task in tasks:
            self.reaches(task, *FINAL)
        return tasks

    def read_everything(self, headers, tasks):
        """What GET answers on every route and for every object that the tasks lead to: path and text."""
        root = [item for task in tasks for item in
                self.expect(200, "GET", f"/v1/tasks/{task}/executions")["items"]]
        names = {"tasks": tasks, "workflows": [*tasks, "flow"], "executions": [item["id"] for item in root],
                 "workers": [item["id"] for item in self.expect(200, "GET", "/v1/workers")["items"]],
                 "queues": ["default", "researcher", "idle"], "services": ["s"]}
        answers = []
        for path, operations in DOCUMENT["paths"].items():
            if "get" not in operations or path in ("/v1/stream", "/", "/openapi.json") or "/assets/" in path:
                continue
            kinds = re.match(r"/v1/(\w+)/\{", path)
            for name in names.get(kinds.group(1), ["none"]) if kinds else [""]:
                place = re.sub(r"\{\w+\}", name, path) + ("?timeout_ms=0" if path.endswith("/wait") else "")
                answers.append((place, self.request("GET", place, None, headers).body.decode()))
        for task in tasks:
            for query in ("at=2100-01-01T00:00:00Z", "at=2020-01-01T00:00:00Z"):
                place = f"/v1/tasks/{task}?{query}"
                answers.append((place, self.request("GET", place, None, headers).body.decode()))
            body = {"task_id": task}
            answers.append(("validate", self.request("POST", "/v1/recovery/validate", body, headers).body.decode()))
        for word in sorted(CANARIES):
            place = f"/v1/tasks?q={word}"
            reply = self.request("GET", place, None, headers)
            answers.append((place, str(len(reply.json.get("items", [])) and "canary-" + "found")))
        return answers

    def stream(self, headers):
        connection = http.client.HTTPConnection(*self.server.address, timeout=60)
        self.addCleanup(connection.close)
        connection.request("GET", "/v1/stream", headers=headers)
        return connection.getresponse()

    def found(self, headers, tasks):
        return {word: place for place, text in self.read_everything(headers, tasks) for word in FOUND.findall(text)}

    def made(self, **fields):
        return bearer(self.expect(201, "POST", "/v1/tokens", {"name": "t", **fields})["token"])

    def test_f_j1_neither_a_viewer_nor_another_namespace_nor_a_thief_finds_what_services_and_agents_bring(self):
        self.expect(201, "POST", "/v1/namespaces", {"name": "a"})
        viewer, other = self.made(role="viewer"), self.made(role="admin", namespace="a")
        events = self.stream(viewer)
        tasks = self.given_tasks()
        self.assertEqual(set(self.found(bearer(ROOT_TOKEN), tasks)), CANARIES, "the control: they are there")
        self.assertEqual(self.found(viewer, tasks), {})
        self.assertEqual(self.found({}, tasks), {})
        answers = self.read_everything(other, tasks)
        named = {task: place for place, text in answers for task in tasks if task in text and task not in place and
                 place != "validate"}
        self.assertEqual((named, {word: place for place, text in answers for word in FOUND.findall(text)}), ({}, {}))
        seen = b""
        while tasks[-1].encode() not in seen:
            seen += events.readline()
        self.assertNotIn(b"canary", seen)
        for name, text in self.left_behind().items():  # what a person gives as a reason is a detail of an event
            self.assertLessEqual(set(FOUND.findall(text)), {"canary-reason"}, name)


if __name__ == "__main__":
    unittest.main()
