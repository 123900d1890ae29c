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
            return re.sub(r"\bperdura\.(?=enqueue|complete)", cluster.schema + ".", text)

        for text in examples("sql"):
            subprocess.run(["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", url], input=named(text), text=True, check=True)
        enqueues, completes = examples("python")
        subprocess.run([sys.executable, "-c", named(enqueues)], check=True, env=environment)
        packages = os.environ.get("PERDURA_CLIENTS")
        if packages:
            with tempfile.NamedTemporaryFile("w", suffix=".mjs", dir=packages) as script:
                for text in examples("js"):
                    script.write(named(text))
                script.flush()
                subprocess.run(["node", script.name], check=True, env=environment)
        wanted = [["tea", "high"], ["coffee", "medium"], ["milk", "medium"]][:3 if packages else 2]
        harness.wait_until(lambda: cluster.sql("SELECT count(*) FROM task_states") == [[str(len(wanted))]],
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
