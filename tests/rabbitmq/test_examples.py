"""The consumers of examples/rabbitmq: tasks whose ids come as messages are claimed by id (A13, A6)."""
import os
import shutil
import subprocess
import unittest

import rabbit
from broker_harness import BrokerTest
from harness import ROOT, wait_until

EXAMPLES = ROOT / "examples" / "rabbitmq"
PACKAGES = os.environ.get("PERDURA_RABBITMQ_PACKAGES")


def setUpModule():
    BrokerTest.broker = rabbit.begin_module()


class Examples(BrokerTest):
    def run_consumer(self, command):
        work = self.queue + ".work"
        done = self.enqueue(payload=[1, 2])["id"]
        self.register("other")
        [held] = self.claim("other")
        self.complete("other", held)
        again = [self.enqueue(payload=[n, 40])["id"] for n in range(3)]
        server = "http://%s:%d" % self.server.address
        with open(f"{self.folder}/consumer.log", "w", encoding="utf-8") as log:
            process = subprocess.Popen([*command, server, self.broker.url(), work], stdout=log,
                                       stderr=log, cwd=self.folder)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

        def said():
            with open(f"{self.folder}/consumer.log", encoding="utf-8") as log:
                return log.read()
        wait_until(lambda: process.poll() is not None or "ready" in said(), what="the consumer")
        self.assertIsNone(process.poll(), said())
        self.publish(*[{"task_id": task} for task in [done, *again, *again]], queue=work)
        wait_until(lambda: all(self.task(task)["status"] == "completed" for task in again),
                   what="the ends: " + said())
        wait_until(lambda: said().count("leaves it") == 4, what="the doubled messages")
        self.assertEqual([self.task(task)["result"] for task in again],
                         [{"sum": 40 + n} for n in range(3)])
        self.assertEqual({self.task(task)["attempts"] for task in [done, *again]}, {1})

    def test_a13_the_consumer_in_python(self):
        self.run_consumer(["/usr/bin/python3", str(EXAMPLES / "consumer.py")])

    @unittest.skipUnless(PACKAGES, "needs amqplib from npm")
    def test_a13_the_consumer_in_javascript(self):
        consumer = shutil.copy(EXAMPLES / "consumer.mjs", PACKAGES)
        self.run_consumer(["node", consumer])
