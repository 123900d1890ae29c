"""Tasks that a language model works on (C9): steps, tools, budgets, and models and tools that
misbehave."""
import asyncio
import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import time
import unittest

from agent_harness import FINAL, AgentTest
from harness import binary, wait_until
from service_target import Target, reply

SEARCH = """  - name: search
    description: Look something up
    parameters: {type: object, properties: {q: {type: string}}, required: [q], additionalProperties: false}
    command: [sh, -c, 'read line; echo "found $line"']
    safe_to_retry: true
"""


def tool(name, **arguments):
    return {"name": name, "arguments": arguments}


class StepTest(AgentTest):
    tools = SEARCH
    lines = [{"turn": 0, "tools": [tool("search", q="tea")], "tokens": [100, 10]},
             {"turn": 1, "when": "found", "final": "Tea is a drink.", "tokens": [200, 20]}]

    def test_a_step_is_several_calls_and_ends_with_the_final_answer(self):
        task = self.outcome()
        self.assertEqual((task["status"], task["result"]), ("completed", "Tea is a drink."))
        digest = task["data"]["conversation"]
        self.assertEqual((digest["agent"], digest["calls"], digest["input_tokens"],
                          digest["output_tokens"], digest["cost"]),
                         ("researcher", 2, 300, 30, 0.00036))
        talk = self.conversation(task["id"])
        self.assertEqual([x["role"] for x in talk["messages"]],
                         ["system", "user", "assistant", "tool", "assistant"])
        self.assertEqual(talk["messages"][1]["content"], "Find out about tea.")
        self.assertEqual(talk["messages"][3]["content"], 'found {"q": "tea"}\n')
        self.assertEqual(digest["messages"], 5)
        log = self.server.log()
        self.assertEqual(log.count('"event":"agent.call"'), 2)
        self.assertIn('"input_tokens":200,"output_tokens":20,"cost":"0.000240"', log)
        lines = self.expect(200, "GET", f"/v1/tasks/{task['id']}/logs")["items"]
        self.assertEqual([x["message"].split()[0] for x in lines], ["model", "tool", "model"])

    def test_an_agent_works_on_its_own_queue_whatever_the_type(self):
        task = self.reaches(self.enqueue("anything", queue="researcher", payload=1)["id"], *FINAL)
        self.assertEqual(task["result"], "Tea is a drink.")
        self.assertEqual(self.said(task["id"], "user"), ["1"])

    def test_a_reload_brings_other_prompts_and_agents(self):
        self.outcome()
        self.write("prompt.md", "Now about {{payload.topic}}!")
        yaml = self.read("p.yaml").replace("agents:", "agents:\n  - id: writer\n    tools: [search]", 1)
        self.write("p.yaml", yaml)
        self.server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "config.reloaded" in self.server.log(), what="the reload")
        task = self.outcome(topic="milk")
        self.assertEqual(self.said(task["id"], "user"), ["Now about milk!"])
        written = self.reaches(self.enqueue("x", queue="writer")["id"], *FINAL)
        self.assertEqual(written["data"]["conversation"]["agent"], "writer")


class ContinuationTest(AgentTest):
    lines = [{"turn": 0, "final": "half", "finished": False},
             {"turn": 1, "final": {"all": [1, 2]}}]

    def test_an_unfinished_step_continues_with_its_conversation(self):
        task = self.outcome()
        self.assertEqual((task["status"], task["result"]), ("completed", {"all": [1, 2]}))
        self.assertEqual((task["continuations"], task["attempts"], task["retry_count"]), (1, 2, 0))
        self.assertEqual(task["data"]["conversation"]["step"], 2)
        self.assertEqual(self.said(task["id"], "user"),
                         ["Find out about tea.", "Continue with the task."])


class WrongAnswersTest(AgentTest):
    tools = SEARCH
    lines = [{"when": "about text", "text": "It is just text."},
             {"when": "A further text", "text": "It is still text."},
             {"when": "about wrong", "tools": [tool("nosuch"), {"name": "search", "arguments": "{oops"},
                                              tool("search", q=7), tool("search", q="a", z=1),
                                              tool("finalAnswer", answer="x"), tool("search", q="fine")]},
             {"when": 'found {"q": "fine"}', "final": "told"},
             {"when": "about many", "tools": [tool("search", q=str(i)) for i in range(200)]},
             {"when": 'found {"q": "199"}', "final": "all"},
             {"when": "found", "final": "all"},
             {"when": "about flood", "tools": [tool("search", q=str(i)) for i in range(257)]}]

    def test_text_is_asked_about_once_and_then_it_is_the_answer(self):
        task = self.outcome(topic="text")
        self.assertEqual((task["status"], task["result"]), ("completed", "It is still text."))
        self.assertEqual(self.mock.requests, 2)

    def test_a_wrong_call_goes_back_to_the_model(self):
        task = self.outcome(topic="wrong")
        self.assertEqual(task["result"], "told")
        said = self.said(task["id"], "tool")
        for at, words in enumerate(("there is no tool 'nosuch'", "no valid JSON",
                                    "/q must be of the type", "has 'z', which is not a parameter",
                                    "needs 'taskFinished'", 'found {"q": "fine"}')):
            self.assertIn(words, said[at])

    def test_200_calls_in_one_answer_are_all_made(self):
        task = self.outcome(topic="many")
        self.assertEqual((task["status"], task["result"]), ("completed", "all"))
        self.assertEqual(len(self.said(task["id"], "tool")), 200)

    def test_more_calls_than_an_answer_may_have_fail_the_attempt(self):
        task = self.outcome(topic="flood")
        self.assertEqual(task["error_details"]["details"]["code"], "invalid_answer")
        self.assertEqual(self.mock.requests, 3)


class SideBySideTest(AgentTest):
    tools = """  - name: slow
    command: [sh, -c, 'echo begin >> order; sleep 0.4; echo end >> order']
    safe_to_retry: true
"""
    lines = [{"turn": 0, "tools": [tool("slow")] * 8}, {"turn": 1, "final": "ok"}]

    def test_at_most_four_calls_of_an_answer_run_side_by_side(self):
        self.assertEqual(self.outcome()["status"], "completed")
        now = most = 0
        for line in self.read("order").split():
            now += 1 if line == "begin" else -1
            most = max(most, now)
        self.assertEqual((now, most), (0, 4))


class BudgetTest(AgentTest):
    tools = SEARCH
    agent = "    budget: {calls: 5}\n"
    lines = [{"tools": [tool("search", q="again")]}]

    def test_a_loop_ends_at_its_budget_to_the_call_and_a_person_raises_it(self):
        task_id = self.research()
        task = self.reaches(task_id, "paused")
        self.assertEqual(self.mock.requests, 5)
        self.assertIn("used up its budget (calls)", task["state"])
        self.assertEqual(task["data"]["conversation"]["question"], task["state"])
        warnings = [x for x in self.said(task_id, "user") if "nearly used up" in x]
        self.assertEqual(len(warnings), 1)
        self.expect(200, "POST", f"/v1/tasks/{task_id}:resume", {})
        wait_until(lambda: self.task(task_id)["attempts"] == 2, what="the second attempt")
        self.reaches(task_id, "paused")
        self.assertEqual(self.mock.requests, 5)  # nothing was raised
        self.expect(200, "POST", f"/v1/tasks/{task_id}:resume", {"budget": {"calls": 7}})
        wait_until(lambda: self.mock.requests == 7, what="two calls more")
        self.reaches(task_id, "paused")
        self.assertEqual(self.mock.requests, 7)

    def test_a_body_of_resume_is_checked(self):
        task_id = self.research()
        self.reaches(task_id, "paused")
        for body in ({"budget": {}}, {"budget": {"calls": 0}}, {"budget": {"calls": 1.5}}, {"budget": []},
                     {"budget": {"time": "soon"}}, {"budget": {"cost": -1}}, {"budget": {"x": 1}},
                     {"decision": "maybe"}, {"decision": 1}):
            self.expect(422, "POST", f"/v1/tasks/{task_id}:resume", body)
        self.assertEqual(self.task(task_id)["status"], "paused")


class CommandsTest(AgentTest):
    tools = SEARCH
    agent = "    budget: {calls: 2}\n"
    lines = BudgetTest.lines

    def perdura(self, *words):
        environment = {**os.environ, "PERDURA_SERVER": "http://%s:%d" % self.server.address}
        return subprocess.run([binary(), *words], cwd=self.folder, env=environment, capture_output=True,
                              text=True, timeout=60)

    def test_a_person_answers_on_the_command_line(self):
        task_id = self.research()
        self.reaches(task_id, "paused")
        self.assertIn("used up its budget", self.perdura("task", "show", task_id).stdout)
        done = self.perdura("task", "resume", task_id, "--budget-calls", "3", "--budget-cost", "0.5",
                            "--budget-time", "5m", "--decision", "retry")
        self.assertEqual(done.returncode, 0, done.stderr)
        wait_until(lambda: self.mock.requests == 3, what="one call more")
        raised = {"calls": 3, "cost": 0.5, "time": "5m"}
        resume = self.reaches(task_id, "paused")["data"]["resume"]
        self.assertEqual((resume["decision"], resume["budget"]), ("retry", raised))
        self.assertEqual(self.perdura("task", "resume", task_id, "--budget-cost", "much").returncode, 2)

    def test_a_script_that_cannot_be_is_refused(self):
        for text, words in (("{", "malformed"), ("[]", '{"lines":'), ('{"lines":[{"txt":1}]}', "'txt'"),
                            ('{"lines":[{"turn":-1}]}', "'turn'")):
            done = self.perdura("mock-model", "--script", str(self.write("s.json", text)))
            self.assertEqual(done.returncode, 1)
            self.assertIn(words, done.stderr)


class OtherBudgetsTest(AgentTest):
    tools = SEARCH
    agent = "    budget: {tokens: 1000, on_exceeded: fail, day: {cost: 0.003}}\n"
    lines = [{"tools": [tool("search", q="again")], "tokens": [300, 100]}]

    def test_tokens_end_a_task_and_the_day_ends_an_agent(self):
        task = self.outcome()
        self.assertEqual((task["status"], task["error_details"]["details"]["code"]),
                         ("failed", "budget_exceeded"))
        self.assertEqual(self.mock.requests, 3)  # 400 tokens each
        task = self.outcome()
        self.assertEqual(self.mock.requests, 6)
        task = self.outcome()  # 0.0005 each: nothing is left of 0.003
        self.assertIn("of the day", task["error"])
        self.assertEqual(self.mock.requests, 6)


class DayTest(AgentTest):
    """One day for all processes of a store: a server, its next life, and a `perdura worker`."""
    tools = SEARCH
    agent = "    budget: {on_exceeded: fail, day: {calls: 6}}\n"
    lines = [{"when": "about short", "turn": 0, "final": "done"}, {"tools": [tool("search", q="again")]}]

    def test_c9_the_day_of_an_agent_goes_on_after_a_kill(self):
        for _ in range(3):
            self.assertEqual(self.outcome(topic="short")["status"], "completed")
        self.told(3)
        self.restart()
        self.assertIn("of the day", self.outcome()["error"])
        self.assertEqual(self.mock.requests, 6)

    def test_c9_the_day_of_an_agent_is_that_of_all_processes(self):
        for _ in range(3):
            self.assertEqual(self.outcome(topic="short")["status"], "completed")
        self.told(3)
        self.server.stop()
        self.server.arguments = (*self.arguments, "--workers", "0")
        self.server.start()
        self.local.__dict__.clear()
        worker = subprocess.Popen([binary(), "worker", "--server", "http://%s:%d" % self.server.address, "--config", "p.yaml"],
                                  cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(worker.wait)
        self.addCleanup(worker.kill)
        self.assertIn("of the day", self.outcome()["error"])
        self.assertEqual(self.mock.requests, 6)

    def told(self, calls):
        """What the store has of it."""
        def sum_of():
            with contextlib.closing(sqlite3.connect(f"file:{self.server.store}?mode=ro", uri=True)) as store:
                rows = store.execute("SELECT value FROM store_info WHERE name = 'agent_day:default/researcher'").fetchall()
            return rows and sum(int(line.split()[1]) for line in rows[0][0].splitlines()[1:]) == calls
        wait_until(sum_of, what=f"{calls} calls in the store")


class TimeBudgetTest(AgentTest):
    agent = "    budget: {time: 500ms}\n"
    model = "    timeout: 1s\n"
    lines = [{"delay_ms": 30000, "final": "late"}]

    def test_time_holds_to_one_call_also_if_that_failed(self):
        task = self.reaches(self.research(), "paused")
        self.assertIn("used up its budget (time)", task["state"])
        self.assertEqual(self.mock.requests, 1)


class SilentModelTest(AgentTest):
    model = "    timeout: 500ms\n"
    lines = TimeBudgetTest.lines

    def test_a_model_that_says_nothing_is_a_timeout(self):
        task = self.outcome()
        self.assertEqual(task["error_details"]["details"]["code"], "model_timeout")
        self.assertEqual(self.mock.requests, 3)


class BadModelsTest(AgentTest):
    model = "    stall: 300ms\n    timeout: 20s\n"
    lines = [{"when": "about limited", "status": 429, "retry_after": 1, "times": 2},
             {"when": "about limit", "status": 429, "times": 1},
             {"when": "about minutes", "status": 429, "retry_after": 600},
             {"when": "about shaky", "status": 500, "times": 2},
             {"when": "about down", "status": 500, "error": "out of order"},
             {"when": "about refused", "status": 400, "error": "context too long"},
             {"when": "about stalled", "stall": True, "final": "x", "times": 1},
             {"when": "about cut", "cut": True, "final": "x", "times": 2},
             {"when": "about whole", "cut": True, "stream": False, "final": "x", "times": 1},
             {"when": "about mad", "raw": "<html>", "times": 2},
             {"when": "about nostream", "stream": False, "final": "whole"},
             {"final": "at last"}]

    def test_a_call_that_went_wrong_is_repeated_without_a_retry(self):
        for topic in ("limited", "limit", "shaky", "stalled", "cut", "whole", "mad"):
            task = self.outcome(topic=topic)
            self.assertEqual((topic, task["status"], task["result"], task["retry_count"]),
                             (topic, "completed", "at last", 0))
        self.assertEqual(self.outcome(topic="nostream")["result"], "whole")

    def test_a_limit_of_minutes_gives_the_slot_to_others(self):
        task_id = self.research("minutes")
        task = self.reaches(task_id, "delayed")
        self.assertEqual((task["retry_count"], task["continuations"]), (0, 1))
        self.assertIn("agent.model_asks_to_wait", self.server.log())

    def test_a_model_that_stays_down_fails_the_attempt(self):
        task = self.outcome(topic="down", max_retries=1, retry_delay_ms=1)
        self.assertEqual((task["status"], task["retry_count"]), ("dead_letter", 2))
        self.assertEqual(task["error_details"]["details"]["code"], "model_error")
        self.assertIn("status 500: out of order", task["last_error"])
        self.assertEqual(self.mock.requests, 6)

    def test_a_refusal_is_final(self):
        task = self.outcome(topic="refused", max_retries=5)
        self.assertEqual((task["status"], self.mock.requests), ("failed", 1))
        self.assertIn("context too long", task["error"])


class EndlessAnswersTest(AgentTest):
    """An API that never ends, as a whole or as a stream (F-G8)."""
    model = "    timeout: 60s\n"

    def setUp(self):
        self.sent = 0
        event = b'data: {"choices":[{"delta":{"content":"' + b"x" * 60000 + b'"}}]}\n\n'

        async def answer(call, writer):
            stream = b"stream" in call.body.split(b'"messages"')[1].split(b"Find out about ")[1][:10]
            kind = b"text/event-stream" if stream else b"application/json"
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: " + kind + b"\r\n\r\n")
            while True:
                writer.write(event)
                await writer.drain()
                self.sent += len(event)
        self.target = Target(answer)
        self.addCleanup(self.target.close)
        super().setUp()

    def write_yaml(self):
        self.mock.url = self.target.url
        super().write_yaml()

    def test_an_answer_without_end_is_cut(self):
        for topic in ("stream", "whole"):
            task = self.outcome(topic=topic)
            self.assertEqual(task["error_details"]["details"]["code"], "invalid_answer", topic)
        self.assertLess(self.sent, 200_000_000)


class BadToolsTest(AgentTest):
    tools = """  - {name: hang, command: [sleep, '60'], timeout: 300ms}
  - {name: crash, command: [sh, -c, 'echo half; kill -SEGV $$']}
  - {name: refuse, command: [sh, -c, 'echo no access >&2; exit 3']}
  - {name: missing, command: [/no/such/program]}
  - {name: flood, command: [sh, -c, 'yes 0123456789 | head -c 1073741824']}
  - {name: bytes, command: [sh, -c, 'printf "a\\377\\001b"']}
"""
    lines = [{"turn": 0, "tools": [tool(x) for x in ("hang", "crash", "refuse", "missing", "flood", "bytes")]},
             {"turn": 1, "final": "told"}]

    def test_a_tool_that_fails_is_told_to_the_model(self):
        task = self.outcome()
        self.assertEqual((task["status"], task["result"]), ("completed", "told"))
        talk = self.conversation(task["id"])["messages"]
        by_id = {x["tool_call_id"]: x["content"] for x in talk if x["role"] == "tool"}
        hang, crash, refuse, missing, flood, text = (by_id[f"call_0_{i}"] for i in range(6))
        self.assertIn("error: no end within 300 ms", hang)
        self.assertRegex(crash, r"error: killed by SIGSEGV\s+half")
        self.assertRegex(refuse, r"error: exit code 3\s+no access")
        self.assertIn("error:", missing)
        self.assertLess(len(flood), 66000)
        self.assertRegex(flood, r"\[output cut: 655\d\d of \d{10} bytes are here\]$")
        self.assertEqual(text, "a\ufffdb\n")


class RemoteToolsTest(AgentTest):
    lines = [{"turn": 0, "tools": [tool("lookup", id="a/b"), tool("post", x=1), tool("bad"), tool("echo")]},
             {"turn": 1, "final": "ok"}]
    environment = {"SERVICE_KEY": "s3cret-of-the-service"}

    def setUp(self):
        def answer(call):
            if call.path == "/bad":
                return reply(500, b"broken")
            return reply(200, {"path": call.path, "got": call.headers.get("authorization", "")}
                         if call.path == "/echo" else {"path": call.path})
        self.target = Target(answer)
        self.addCleanup(self.target.close)
        self.tools = f"""  - {{name: lookup, service: s, method: 'GET /things/{{payload/id}}'}}
  - {{name: post, url: '{self.target.url}/hook'}}
  - {{name: bad, url: '{self.target.url}/bad'}}
  - {{name: echo, service: s, method: /echo}}
"""
        self.more = f"""
services:
  - name: s
    url: {self.target.url}
    headers: {{Authorization: {{env: SERVICE_KEY}}}}
"""
        super().setUp()

    def test_tools_may_be_services_and_urls(self):
        task = self.outcome()
        self.assertEqual(task["status"], "completed")
        by_id = {x["tool_call_id"]: x["content"]
                 for x in self.conversation(task["id"])["messages"] if x["role"] == "tool"}
        self.assertEqual(json.loads(by_id["call_0_0"]), {"path": "/things/a%2Fb"})
        self.assertEqual(json.loads(by_id["call_0_1"]), {"path": "/hook"})
        self.assertIn("error: status 500", by_id["call_0_2"])
        self.assertIn("repeats a secret", by_id["call_0_3"])
        self.assertEqual(self.target.seen("/hook")[0].json, {"x": 1})
        keys = {x.headers["idempotency-key"] for x in self.target.calls}
        self.assertEqual(len(keys), 4)
        self.assertTrue(all(x.startswith(task["id"]) for x in keys))


class SharedServiceTest(AgentTest):
    """Tools count among all calls of their service: concurrency, breaker, figures; and lead nowhere else."""
    lines = [{"when": "about crowd", "turn": 0, "tools": [tool("post", n=i) for i in range(4)]},
             {"when": "about ruin", "turn": 0, "tools": [tool("bad", n=i) for i in range(2)]},
             {"when": "status 500", "turn": 1, "tools": [tool("post", n=1)]},
             {"when": "about escape", "turn": 0, "tools": [tool("lookup", id=".."), tool("lookup", id="a/../../admin"),
                                                           tool("lookup", id="x\r\nX-Evil: 1")]},
             {"final": "ok"}]

    def setUp(self):
        async def answer(call, writer):
            await asyncio.sleep(0.1)
            return reply(500 if call.path == "/bad" else 200)
        self.target = Target(answer)
        self.addCleanup(self.target.close)
        self.tools = """  - {name: post, service: s, method: /hook, timeout: 10s, safe_to_retry: true}
  - {name: bad, service: s, method: /bad}
  - {name: lookup, service: s, method: 'GET /things/{payload/id}'}
"""
        self.more = f"""
services:
  - {{name: s, url: '{self.target.url}', concurrency: 1, breaker: {{failures: 2, open: 60s}}}}
"""
        super().setUp()

    def results(self, topic):
        task = self.outcome(topic=topic)
        self.assertEqual(task["status"], "completed", task["error"])
        return self.said(task["id"], "tool")

    def test_d10_tools_wait_for_the_concurrency_of_the_service_and_are_in_its_figures(self):
        self.assertEqual(self.results("crowd"), ["{}"] * 4)
        self.assertEqual((self.target.most, len(self.target.seen("/hook"))), (1, 4))
        self.assertEqual(self.expect(200, "GET", "/v1/services/s")["calls"]["done"], 4)
        self.assertIn('perdura_service_calls_total{service="s",method="/hook",outcome="done"} 4',
                      self.request("GET", "/metrics").body.decode())

    def test_d10_tools_open_the_breaker_of_the_service_and_are_stopped_by_it(self):
        said = self.results("ruin")
        self.assertEqual(sum("status 500" in text for text in said), 2)
        self.assertIn("service s is down; the next try is in", said[-1])
        self.assertEqual(self.target.seen("/hook"), [])
        shown = self.expect(200, "GET", "/v1/services/s")
        self.assertEqual((shown["status"], shown["breaker"], shown["last_error"]),
                         ("down", "open", "service s answered with status 500"))

    def test_f_g9_no_argument_leads_out_of_the_address_or_into_the_headers(self):
        said = self.results("escape")  # in the order in which the calls ended
        self.assertEqual(sum("would change the path" in text for text in said), 2, said)
        self.assertEqual([text for text in said if "would change" not in text], ["{}"])
        (call,) = self.target.seen()
        self.assertEqual(call.path, "/things/x%0D%0AX-Evil%3A%201")
        self.assertNotIn("x-evil", call.headers)


class SecretsTest(AgentTest):
    key = "sk-very-secret"
    environment = {"MODEL_KEY": "sk-very-secret"}
    model = "    key: {env: MODEL_KEY}\n"
    lines = [{"when": "about leak", "status": 400, "error": "bad key sk-very-secret"},
             {"when": "about echo", "final": "your key is sk-very-secret"},
             {"final": "fine"}]

    def test_the_key_is_sent_and_shown_nowhere(self):
        self.assertEqual(self.outcome()["result"], "fine")
        leak, echo = self.outcome(topic="leak"), self.outcome(topic="echo")
        self.assertEqual(leak["status"], "failed")
        self.assertIn("repeats its API key", echo["last_error"])
        shown = [json.dumps([leak, echo]), self.server.log()]
        for task in (leak, echo):
            for part in ("checkpoints", "events", "executions", "logs"):
                shown.append(json.dumps(self.expect(200, "GET", f"/v1/tasks/{task['id']}/{part}")))
        shown.append(self.request("GET", "/metrics").body)
        shown.append(self.doctor())
        for text in shown:
            text = text if isinstance(text, str) else text.decode()
            self.assertNotIn("sk-very-secret", text)

    def doctor(self):
        environment = {**os.environ, **self.environment}
        return subprocess.run([binary(), "doctor", "--json", "--config", "p.yaml", "--store",
                               self.server.store], cwd=self.folder, env=environment,
                              capture_output=True, text=True).stdout


class FiguresTest(AgentTest):
    """What a node with agents tells others: metrics, and spans by the conventions for generative models."""
    tools = SEARCH
    lines = StepTest.lines

    def write_yaml(self):
        self.spans = []

        def receive(call):
            for one in call.json["resourceSpans"]:
                for scope in one["scopeSpans"]:
                    self.spans += scope["spans"]
            return reply()
        receiver = Target(receive)
        self.addCleanup(receiver.close)
        self.more = f"tracing: {{otlp: '{receiver.url}', ratio: 1}}"
        super().write_yaml()

    def test_calls_tokens_and_cost_are_counted_and_each_call_is_a_span(self):
        self.assertEqual(self.outcome()["status"], "completed")
        text = self.request("GET", "/metrics").body.decode()
        labels = 'agent="researcher",model="default"'
        for line in (f'perdura_agent_calls_total{{{labels},outcome="answered"}} 2',
                     f'perdura_agent_tokens_total{{{labels},kind="input"}} 300',
                     f'perdura_agent_tokens_total{{{labels},kind="output"}} 30',
                     f'perdura_agent_cost_total{{{labels}}} 0.00036'):
            self.assertIn(line, text)
        spans = wait_until(lambda: len(found := [x for x in self.spans if x["name"] == "chat mock"]) == 2
                           and found, what="two spans")
        run = wait_until(lambda: next((x for x in self.spans if x["name"].startswith("run ")), None),
                         what="the span of the run")
        for span in spans:
            values = {x["key"]: x["value"].get("stringValue", x["value"].get("intValue"))
                      for x in span["attributes"]}
            self.assertEqual((span["kind"], span["traceId"], span["parentSpanId"]),
                             (3, run["traceId"], run["spanId"]))
            self.assertEqual((values["gen_ai.operation.name"], values["gen_ai.request.model"]),
                             ("chat", "mock"))
        self.assertEqual(sorted(x["value"]["intValue"] for span in spans for x in span["attributes"]
                                if x["key"] == "gen_ai.usage.input_tokens"), ["100", "200"])


if __name__ == "__main__":
    unittest.main()
