"""What an agent's step costs besides the model: a task whose model is asked many times in a row, each answer
stored before the next call. The model is `perdura mock-model`, whose own time is part of the figure.
usage: agents.py [calls]; prints milliseconds per call of the model."""
import json
import os
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "api"))

import test_agents  # noqa: E402
from harness import wait_until  # noqa: E402


class Step(test_agents.AgentTest):
    """Every answer calls a tool that is not there, so no time goes into tools."""
    model = "    stream: false\n"
    agent = "    budget: {calls: 100000}\n"
    calls = 200

    def runTest(self):
        task = self.outcome()
        self.assertEqual(task["status"], "completed")
        began, ended = (test_agents.time.mktime(time.strptime(task[x][:19], "%Y-%m-%dT%H:%M:%S"))
                        + float("0" + task[x][19:-1]) for x in ("started_at", "completed_at"))
        self.took = (ended - began) / self.mock.requests


def measure(calls):
    Step.lines = [*({"turn": i, "tools": [{"name": "none", "arguments": {}}]} for i in range(calls - 1)),
                  {"turn": calls - 1, "final": "done"}]
    step = Step()
    result = test_agents.unittest.TestResult()
    step.run(result)
    for _, trace in result.failures + result.errors:
        sys.exit(trace)
    return step.took * 1000


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    print(f"{measure(number):.2f} ms per call of the model ({number} in a row)")
