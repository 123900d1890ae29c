"""A server with an agent, and `perdura mock-model` beside it. Standard library only."""
import json
import os
import pathlib
import re
import signal
import subprocess

from harness import ApiTest, binary, wait_until

FINAL = ("completed", "failed", "dead_letter", "cancelled", "partial")


class MockModel:
    """One process of `perdura mock-model`; its lines of output are kept in a file."""

    def __init__(self, folder, lines, key=None, port=0):
        self.log = pathlib.Path(folder, f"mock-{os.urandom(4).hex()}.log")
        script = pathlib.Path(folder, f"{self.log.stem}.json")
        script.write_text(json.dumps({"lines": lines, **({"key": key} if key else {})}))
        with open(self.log, "wb") as out:
            self.process = subprocess.Popen(
                [binary(), "mock-model", "--script", str(script), "--port", str(port)],
                stdout=out, stderr=subprocess.STDOUT)
        self.url = wait_until(self.address, what="the address of the mock model")

    def address(self):
        found = re.search(r"listening on (http://\S+)\n", self.log.read_text())
        if not found and self.process.poll() is not None:
            raise AssertionError("the mock model ended: " + self.log.read_text())
        return found and found.group(1)

    @property
    def requests(self):
        return self.log.read_text().count("\nrequest ")

    def close(self):
        self.process.kill()
        self.process.wait()


class AgentTest(ApiTest):
    """`lines` is what the model answers; tools, model, budget and more are YAML."""
    lines = ()
    tools = ""
    model = ""
    agent = ""
    more = ""
    key = None
    arguments = ("--config", "p.yaml", "--lease", "5s")

    def write_configuration(self):
        self.mock = MockModel(self.folder, list(self.lines), self.key)
        self.addCleanup(self.mock.close)
        self.write_yaml()

    def write_yaml(self):
        names = re.findall(r"- \{?name: (\w+)", self.tools)
        tools = f"tools:\n{self.tools}" if self.tools else ""
        self.write("prompt.md", "Find out about {{payload.topic}}.")
        self.write("p.yaml", f"""
models:
  - name: default
    url: {self.mock.url}
    model: mock
    price: {{input: 1, output: 2}}
{self.model}
agents:
  - id: researcher
    tools: [{", ".join(names)}]
    types:
      - {{type: "research:*", prompt: prompt.md}}
{self.agent}
{tools}
handlers:
  - type: "research:*"
    agent: researcher
{self.more}
""")

    def write(self, name, text):
        path = pathlib.Path(self.folder, name)
        path.write_text(text)
        path.chmod(0o600)
        return path

    def read(self, name):
        path = pathlib.Path(self.folder, name)
        return path.read_text() if path.exists() else ""

    def research(self, topic="tea", **fields):
        fields = {"max_retries": 0, **fields}
        return self.enqueue("research:" + topic, payload={"topic": topic}, **fields)["id"]

    def reaches(self, task_id, *statuses):
        return wait_until(lambda: (task := self.task(task_id))["status"] in statuses and task,
                          what=f"{statuses} of the task")

    def outcome(self, **fields):
        return self.reaches(self.research(**fields), *FINAL)

    def conversation(self, task_id):
        newest = self.expect(200, "GET", f"/v1/tasks/{task_id}/checkpoints?limit=100")["items"]
        return max(newest, key=lambda x: x["seq"])["recoverable_data"]

    def said(self, task_id, role):
        return [x["content"] for x in self.conversation(task_id)["messages"] if x["role"] == role]

    def restart(self):
        """As after a crash: everything of it is killed at once."""
        self.server.stop(signal.SIGKILL)
        self.server.start()
        self.local.__dict__.clear()
