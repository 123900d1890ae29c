"""The examples of docs/sql.md run as they are printed (A14): Node.js where npm brought its packages."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import harness
from cluster import CALM, begin_module, ClusterTest

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "sql.md"

setUpModule = begin_module


def examples(language):
    return re.findall(f"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)


class Examples(ClusterTest):
    def test_a14_the_examples_of_the_page_run(self):
        cluster = self.cluster(1, *CALM)
        url = self.postgres.url
        environment = {**os.environ, "DATABASE_URL": url}

        def named(text):
            return re.sub(r"\bperdura\.(?=\w+\(|tasks|job|schedules)", cluster.schema + ".", text)

        def printed(words, script=None):
            return subprocess.run(words, input=script and named(script), text=True, check=True, env=environment,
                                  stdout=subprocess.PIPE).stdout

        for text in examples("sql"):
            told = printed(["psql", "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", url], text)
            if "wait_for" in text:
                self.assertEqual(told.split(), ["pending", "cancelled"])
        enqueues, completes, asks = examples("python")
        printed([sys.executable, "-c", named(enqueues)])
        self.assertEqual(printed([sys.executable, "-c", named(asks)]), "cancelled\n")
        packages = os.environ.get("PERDURA_CLIENTS")
        if packages:
            for text in examples("js"):
                with tempfile.NamedTemporaryFile("w", suffix=".mjs", dir=packages) as script:
                    script.write(named(text))
                    script.flush()
                    told = printed(["node", script.name])
                    self.assertTrue("wait_for" not in text or told == "cancelled\n", told)
        wanted = [["tea", "high"], ["coffee", "medium"], ["milk", "medium"]][:3 if packages else 2]
        harness.wait_until(lambda: cluster.sql("SELECT count(*) FROM task_states s JOIN lanes USING (lane) "
                                               "WHERE queue = 'mail'") == [[str(len(wanted))]],
                           what="the tasks of the examples")
        self.assertEqual(cluster.sql(
            "SELECT o.item, CASE t.priority WHEN 10 THEN 'high' ELSE 'medium' END FROM tasks t JOIN public.orders o "
            "ON o.id = (t.payload::jsonb ->> 'order')::bigint WHERE t.queue = 'mail' ORDER BY o.id"), wanted)
        node = cluster.node(0)
        node.register(queues=("mail",))
        [task] = node.claim()
        subprocess.run([sys.executable, "-c", named(completes)], check=True, env={
            **environment, "PERDURA_TASK_ID": task["id"], "PERDURA_LEASE_TOKEN": str(task["lease_token"])})
        done = self.wait_status(node, task["id"], "completed")
        self.assertEqual((done["result"], done["payload"]), ({"confirmed": True}, {"order": 1}))
        self.assertEqual(cluster.sql("SELECT item FROM public.orders WHERE id = 1"), [["tea, confirmed"]])


if __name__ == "__main__":
    unittest.main()
