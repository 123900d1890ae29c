"""GET /metrics, and the alert rules and the dashboard that are made of it (D14). promtool, from
Debian's package prometheus, says whether they are well formed; where it is missing and can be
installed it is."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import unittest

from harness import ROOT, ApiTest, wait_until
from token_harness import ROOT_TOKEN, TokenTest, bearer, unknown_token

RULES = ROOT / "deploy" / "prometheus" / "alerts.yml"
DASHBOARD = ROOT / "deploy" / "grafana" / "perdura.json"
SAMPLE = re.compile(r'^(\w+)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def promtool():
    """The program, or None where it cannot be had."""
    if not shutil.which("promtool") and os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(["apt-get", "install", "-y", "-q", "--no-install-recommends",
                        "prometheus"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, check=False)
    return shutil.which("promtool")


def check(*words, text=None):
    program = promtool()
    if not program:
        raise unittest.SkipTest("promtool is missing (apt-get install prometheus)")
    return subprocess.run([program, "check", *words], input=text, capture_output=True, text=True,
                          timeout=120, check=False)


def parse(text):
    """[(name, {label: value}, number)]"""
    samples = []
    for line in text.splitlines():
        if not line.startswith("#"):
            name, labels, value = SAMPLE.match(line).groups()
            samples.append((name, dict(LABEL.findall(labels or "")), float(value)))
    return samples


class Open(TokenTest):
    """access.open_metrics: what a scraper without a credential sees (D14, D12)."""
    environment = {**TokenTest.environment, "PERDURA_ACCESS_OPEN_METRICS": "true"}

    def test_d12_open_metrics_need_no_credential_and_name_no_namespace(self):
        self.root(201, "POST", "/v1/namespaces", {"name": "acme"})
        plain = self.token("tasks:enqueue")
        hidden = self.token("tasks:enqueue", namespace="acme")
        self.as_token(plain, 201, "POST", "/v1/tasks", {"type": "mine", "queue": "orders"})
        self.as_token(hidden, 201, "POST", "/v1/tasks", {"type": "secret-type", "queue": "secret-queue"})
        reply = self.alone("GET", "/metrics")
        self.assertEqual(reply.status, 200)
        samples = parse(reply.body.decode())
        self.assertIn(("perdura_tasks", {"queue": "orders", "status": "pending"}, 1.0), samples)
        self.assertIn(("perdura_tasks", {"queue": "other", "status": "pending"}, 1.0), samples)
        self.assertFalse([labels for _, labels, _ in samples if "namespace" in labels])
        for word in (b"acme", b"secret", b"\x1e"):
            self.assertNotIn(word, reply.body)
        whole = self.alone("GET", "/metrics", headers=bearer(ROOT_TOKEN)).body
        self.assertIn(b'namespace="acme",queue="secret-queue"', whole, "who may see them does")

    def test_d12_nothing_else_is_open_and_a_wrong_credential_is_still_wrong(self):
        for method, path, headers, status in (
                ("HEAD", "/metrics", {}, 200), ("GET", "/metrics", bearer(unknown_token()), 401),
                ("GET", "/metrics", bearer(self.token("tasks:read")), 403), ("GET", "/metrics/", {}, 401),
                ("POST", "/metrics", {}, 405), ("GET", "/v1/stats", {}, 401),
                ("GET", "/metrics", {"Sec-Fetch-Site": "cross-site"}, 403)):
            self.assertEqual(self.alone(method, path, headers=headers).status, status, (method, path, headers))


class Metrics(ApiTest):
    arguments = ("--allow-changed-schema",)  # a table is taken away for a while

    def text(self):
        reply = self.request("GET", "/metrics")
        self.assertEqual(reply.status, 200)
        return reply.body.decode()

    def samples(self, name, **labels):
        return [(found, value) for sample, found, value in parse(self.text())
                if sample == f"perdura_{name}" and labels.items() <= found.items()]

    def one(self, name, **labels):
        found = self.samples(name, **labels)
        self.assertEqual(len(found), 1, (name, labels, found))
        return found[0][1]

    def run_one(self, op="complete", queue="default", type="test", **fields):
        self.enqueue(type, queue=queue, max_retries=0)
        task = self.claim()[0]
        self.report_ok("worker-1", task, "start")
        self.report_ok("worker-1", task, op, **fields)

    def given_work(self):
        self.register(queues=("default", 'odd "name"\\', "bad"))
        for _ in range(4):
            self.run_one()
        self.run_one("fail", "bad", error="no")
        self.run_one(queue='odd "name"\\')

    def test_d14_promtool_has_no_complaint(self):
        self.given_work()
        done = check("metrics", text=self.text())
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_d14_no_sample_is_there_twice(self):
        self.given_work()
        self.enqueue("other", queue="other")
        self.enqueue("x", queue="other")
        self.enqueue("other")
        seen = set()
        for name, labels, _ in parse(self.text()):
            key = (name, tuple(sorted(labels.items())))
            self.assertNotIn(key, seen)
            seen.add(key)

    def test_d14_what_became_of_tasks_is_counted_by_queue_type_target_and_outcome(self):
        self.given_work()
        self.assertEqual(self.one("task_outcomes_total", queue="default", type="test",
                                  target="worker", outcome="completed"), 4)
        self.assertEqual(self.one("task_outcomes_total", queue="bad", type="test",
                                  outcome="dead_letter"), 1)
        self.assertEqual(self.one("queue_enqueued_total", queue="default"), 4)
        self.assertEqual(self.one("queue_started_total", queue="bad"), 1)
        self.assertEqual(self.one("queue_served", queue="bad"), 1)

    def test_d14_histograms_have_buckets_that_grow_up_to_the_count(self):
        self.given_work()
        for name, count in (("task_wait_seconds", 4), ("task_run_seconds", 4),
                            ("enqueue_seconds", 4)):
            buckets = self.samples(f"{name}_bucket", queue="default")
            values = [value for _, value in buckets]
            self.assertEqual(values, sorted(values))
            self.assertEqual(buckets[-1][0]["le"], "+Inf")
            self.assertEqual(values[-1], count)
            self.assertEqual(self.one(f"{name}_count", queue="default"), count)
            self.assertGreater(self.one(f"{name}_sum", queue="default"), 0)
        self.assertEqual(self.one("target_run_seconds_count", target="worker"), 6)

    def test_d14_names_beyond_the_bounds_are_counted_as_other(self):
        self.expect(201, "POST", "/v1/tasks",
                    [{"type": f"t{n}", "queue": "many"} for n in range(600)])
        self.expect(201, "POST", "/v1/tasks",
                    [{"type": "t", "queue": f"q{n}"} for n in range(100)])
        queues = self.samples("queue_enqueued_total")
        self.assertEqual(len(queues), 65)
        self.assertEqual(sum(value for _, value in queues), 700)
        self.assertEqual(self.one("queue_enqueued_total", queue="other"), 37)
        types = {labels["type"] for labels, _ in self.samples("task_outcomes_total", queue="many")}
        self.assertLessEqual(len(types), 513)
        self.assertIn("other", types)

    def test_d14_a_queue_without_a_worker_and_its_oldest_task_are_seen(self):
        self.enqueue(queue="lonely")
        self.assertEqual(self.one("queue_served", queue="lonely"), 0)
        wait_until(lambda: self.one("queue_oldest_wait_seconds", queue="lonely") > 0.05)

    def test_d14_stats_say_when_they_do_not_show_all_queues(self):
        self.assertFalse(self.expect(200, "GET", "/v1/stats")["cut"])
        self.expect(201, "POST", "/v1/tasks",
                    [{"type": "t", "queue": f"q{n}"} for n in range(1001)])
        stats = self.expect(200, "GET", "/v1/stats")
        self.assertEqual((len(stats["queues"]), stats["counts"]["pending"], stats["cut"]),
                         (1000, 1001, True))

    def test_d14_figures_that_were_not_read_are_left_out_and_not_zero(self):
        self.given_work()
        whole = self.expect(200, "GET", "/v1/stats")
        self.assertGreaterEqual(len(whole["executions"]), 3)
        self.assertNotIn("figures_missing", self.alerts_of(whole))
        with contextlib.closing(sqlite3.connect(self.server.store, timeout=60)) as db:
            db.execute("ALTER TABLE execution_hours RENAME TO away")
            without = self.expect(200, "GET", "/v1/stats")
            db.execute("ALTER TABLE away RENAME TO execution_hours")
        self.assertEqual(without["executions"], [])
        self.assertIn("figures_missing", self.alerts_of(without))

    def alerts_of(self, stats):
        """The dead letter of given_work is one, too, as soon as the server has counted it."""
        return [alert["code"] for alert in stats["alerts"]]


class Shipped(ApiTest):
    """What is shipped is made of metrics that are there."""
    arguments = ("--config", "p.yaml")

    def write_configuration(self):
        path = pathlib.Path(self.folder, "p.yaml")
        path.write_text("services: [{name: s, url: 'http://127.0.0.1:9'}]\n")
        path.chmod(0o600)

    def names(self):
        self.register()
        self.enqueue()
        self.report_ok("worker-1", self.claim()[0], "complete")
        text = self.request("GET", "/metrics").body.decode()
        names = {name for name, _, _ in parse(text)}
        return names | {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}

    def assert_known(self, text, also=()):
        used = set(re.findall(r"\bperdura_\w+", text))
        self.assertTrue(used)
        self.assertEqual(used - self.names() - set(also), set())

    def test_d14_promtool_accepts_the_alert_rules(self):
        done = check("rules", str(RULES))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"\d+ rules found")

    def test_d14_wrong_tokens_raise_an_alert(self):
        if not promtool():
            self.skipTest("promtool is missing (apt-get install prometheus)")
        series = 'perdura_wrong_tokens_total{instance="a"}'
        tests = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [
            {"interval": "1m", "input_series": [{"series": series, "values": values}],
             "alert_rule_test": [{"eval_time": "10m", "alertname": "PerduraWrongTokens",
                                  "exp_alerts": alerts}]}
            for values, alerts in (
                ("0+1x20", []),
                ("0+50x20", [{"exp_labels": {"severity": "warning", "instance": "a"},
                              "exp_annotations": {"summary": "250 wrong tokens in 5 min on a: "
                                                             "a client may be guessing"}}]))]}
        path = os.path.join(self.folder, "tests.yml")
        pathlib.Path(path).write_text(json.dumps(tests))
        done = subprocess.run([promtool(), "test", "rules", path], capture_output=True, text=True,
                              timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def alerts(self, name, eval_time, series, labels, summary, quiet):
        """With these series the alert is raised, with the others it is not."""
        wanted = {"exp_labels": labels, "exp_annotations": {"summary": summary}}
        tests = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [
            {"interval": "1m",
             "input_series": [{"series": key, "values": value} for key, value in given.items()],
             "alert_rule_test": [{"eval_time": eval_time, "alertname": name, "exp_alerts": alerts}]}
            for given, alerts in ((series, [wanted]), (quiet, []))]}
        path = os.path.join(self.folder, f"{name}.yml")
        pathlib.Path(path).write_text(json.dumps(tests))
        done = subprocess.run([promtool(), "test", "rules", path], capture_output=True, text=True,
                              timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_d14_the_alerts_about_services_queues_and_data_are_raised_when_they_should(self):
        if not promtool():
            self.skipTest("promtool is missing (apt-get install prometheus)")
        of = 'instance="a",service="s"'
        calls = 'perdura_service_calls_total{instance="a",service="s",method="m",outcome="%s"}'
        self.alerts("ServiceUnavailable", "5m", {f"perdura_service_up{{{of}}}": "0x10"},
                    {"severity": "critical", "instance": "a", "service": "s"},
                    "Service s is down for a: its tasks wait or are retried",
                    {f"perdura_service_up{{{of}}}": "1x10",
                     f"perdura_service_breaker_open{{{of}}}": "0x10"})
        self.alerts("HighFailureRate", "20m",
                    {calls % "done": "0+5x30", calls % "failed": "0+5x30"},
                    {"severity": "warning", "instance": "a", "service": "s"},
                    "50% of the calls of service s fail",
                    {calls % "done": "0+9x30", calls % "failed": "0+1x30", calls % "wait": "0+99x30"})
        waiting = 'perdura_tasks{instance="a",queue="q",status="pending"}'
        paused = 'perdura_queue_paused{instance="a",queue="q"}'
        self.alerts("QueueBacklog", "60m", {waiting: "2000+10x60", paused: "0x60"},
                    {"severity": "warning", "queue": "q"},
                    "2600 tasks wait in queue q, and there are more and more of them",
                    {waiting: "5000-10x60", paused: "0x60"})
        timeouts = f"perdura_service_timeouts_total{{{of}}}"
        self.alerts("ExecutionTimeout", "30m", {timeouts: "0+1x40"},
                    {"severity": "warning", "instance": "a", "service": "s"},
                    "15 calls of service s took too long in 15 minutes", {timeouts: "0x20 3x20"})
        findings = 'perdura_inconsistencies{instance="a"}'
        self.alerts("DataInconsistency", "5m", {findings: "3x10"},
                    {"severity": "critical", "instance": "a"},
                    "The store of a does not agree with itself in 3 places: run 'perdura verify'",
                    {findings: "0x10"})

    def test_d14_alert_rules_name_metrics_that_exist(self):
        # Only where queues are routed to several stores.
        self.assert_known(RULES.read_text(), also={"perdura_stores_down", "perdura_encrypted_texts_damaged_total"})

    def test_d14_the_dashboard_names_metrics_that_exist(self):
        dashboard = json.loads(DASHBOARD.read_text())
        panels = dashboard["panels"]
        self.assertEqual(len({panel["id"] for panel in panels}), len(panels))
        self.assert_known(json.dumps(dashboard))

    def test_every_metric_is_described_for_operators(self):
        described = pathlib.Path(ROOT, "docs", "operations.md").read_text()
        text = self.request("GET", "/metrics").body.decode()
        names = re.findall(r"^# TYPE perdura_(\w+)", text, re.MULTILINE)
        self.assertGreater(len(names), 50)
        self.assertEqual([x for x in names if not re.search(rf"`{x}[`{{]", described)], [])


class Consistency(ApiTest):
    """The store is checked against itself on a timer (D13, D14)."""
    arguments = ("--config", "p.yaml")

    def write_configuration(self):
        path = pathlib.Path(self.folder, "p.yaml")
        path.write_text("check_every: 5ms\n")
        path.chmod(0o600)

    def figures(self):
        samples = parse(self.request("GET", "/metrics").body.decode())
        done = [value for name, labels, value in samples
                if name == "perdura_consistency_checks_total" and labels["result"] == "done"]
        found = [value for name, _, value in samples if name == "perdura_inconsistencies"]
        return done[0], found[0]

    def test_d14_a_store_that_does_not_agree_with_itself_is_counted(self):
        for _ in range(20):
            self.enqueue()
        self.register()
        self.complete("worker-1", self.claim()[0])
        wait_until(lambda: self.figures()[0] > 40, what="all checks, more than once")
        self.assertEqual(self.figures()[1], 0)
        self.assertNotIn("store.inconsistent", self.server.log())
        self.server.stop()
        with contextlib.closing(sqlite3.connect(self.server.store)) as db, db:
            db.execute("UPDATE lane_counts SET tasks = tasks + 1")
        self.server.start()
        wait_until(lambda: self.figures()[1] > 0, what="the findings")
        self.assertIn("store.inconsistent", self.server.log())


if __name__ == "__main__":
    unittest.main()
