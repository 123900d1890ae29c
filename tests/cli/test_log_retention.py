"""Retention of logs by level as people meet it (D9, F-J8): what is removed is shown as removed and is
found by no search, verification stays green, and a copy takes it along."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import unittest

import cli_harness
from cli_harness import wait_until

SECRET = "canary-4711"


class LogRetention(cli_harness.ServerTest):
    config = """log_anchor: perdura.anchor
log_anchor_every: 100ms
"""

    def ask(self, statement):
        with contextlib.closing(sqlite3.connect(self.server.store)) as db:
            return db.execute(statement).fetchone()[0]

    def verify(self, store):
        done = self.perdura("verify", "--store", store, "--logs", "--json", code=0)
        return json.loads(done.stdout)["checked"]

    def emptied(self):
        """A task with a line of each of two levels; the server was started again with a rule for one."""
        self.register("worker-1")
        self.enqueue("a")
        task = self.claim()[0]
        for level, message in (("DEBUG", SECRET), ("ERROR", "kept")):
            self.report_ok("worker-1", task, "log", level=level, message=message,
                           context={"text": message})
        self.complete("worker-1", task)
        path = os.path.join(self.gates, "server.yaml")
        pathlib.Path(path).write_text(self.config + "retention: {log_levels: {debug: 1ms}}\n")
        self.restart()
        wait_until(lambda: self.ask("SELECT count(*) FROM execution_logs WHERE removed_hash IS NOT "
                                    "NULL") == 1, what="retention")
        return task

    def test_d9_an_emptied_line_is_shown_as_one_and_found_by_no_search(self):
        task = self.emptied()
        path = f"/v1/tasks/{task['id']}/logs"
        gone, kept = self.expect(200, "GET", path)["items"]
        self.assertEqual((gone["seq"], gone["log_level"], gone["message"], gone["context"],
                          gone["removed"]), (1, "DEBUG", None, None, True))
        self.assertEqual(len(gone["chain_hash"]), 64)
        self.assertEqual(kept["message"], "kept")
        self.assertNotIn("removed", kept)
        for query in (f"q={SECRET}", "q=e", f"context=/text:{SECRET}"):
            found = self.expect(200, "GET", f"{path}?{query}")["items"]
            self.assertNotIn(1, [line["seq"] for line in found], query)
        text = self.perdura("task", "logs", task["id"]).stdout.splitlines()
        self.assertIn("(removed by retention)", text[0])
        self.assertIn("kept", text[1])
        execution = gone["execution_id"]
        lines = self.expect(200, "GET", f"/v1/executions/{execution}/logs")["items"]
        self.assertTrue(lines[0]["removed"])

    def test_f_j8_verification_stays_green_also_in_a_copy(self):
        self.emptied()
        self.server.stop()
        checked = self.verify(self.server.store)
        self.assertEqual((checked["log lines"], checked["emptied log lines"]), (2, 1))
        target = os.path.join(self.folder, "other.db")
        said = self.perdura("copy", "--from", self.server.store, "--to", target).stderr
        self.assertEqual(self.verify(target)["emptied log lines"], 1)
        [command] = re.findall(r"run: (cp -p .*)", said)
        subprocess.run(command, shell=True, check=True, cwd=self.folder)
        self.assertEqual(pathlib.Path(target + ".log-key").read_bytes(),
                         pathlib.Path(self.server.store + ".log-key").read_bytes())
        self.assertEqual(self.verify(target)["emptied log lines"], 1)

    def test_f_j8_a_copy_says_how_its_log_key_comes_along(self):
        self.emptied()
        self.server.stop()
        source, key = self.server.store, self.server.store + ".log-key"

        def said(name, *more):
            target = os.path.join(self.folder, name)
            return self.perdura("copy", "--again", "--from", source, "--to", target, *more).stderr

        self.assertIn(f"run: cp -p '{key}'", said("none.db"))
        self.write("other.db.log-key", "another key")
        self.assertIn(f"run: cp -p '{key}'", said("other.db", "--json"))
        shutil.copy(key, os.path.join(self.folder, "same.db.log-key"))
        self.assertNotIn("log key", said("same.db"))
        config = self.write("key.yaml", f"log_key: {key}\n")
        self.assertNotIn("log key", said("configured.db", "--config", config))
        os.unlink(key)
        self.assertIn("Serve the copy with the log_key", said("lost.db"))


if __name__ == "__main__":
    unittest.main()
