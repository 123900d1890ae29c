"""perdura inbox, the section `inboxes:` of the configuration and what the doctor says of it (A15)."""
import json
import re
import sqlite3
import subprocess
import unittest

import harness
from cli_harness import FolderTest
from inbox_tables import sqlite_box

PAGE = harness.ROOT / "docs" / "inboxes.md"


class InboxCommands(FolderTest):
    def configured(self, *entries):
        self.write("perdura.yaml", "inboxes:\n" + "".join(f"  - {json.dumps(entry)}\n" for entry in entries))

    def refusal(self, *entries):
        self.configured(*entries)
        return self.refused(1, "serve", "--listen", "127.0.0.1:0")

    def test_a15_the_statements_make_a_table_of_any_name(self):
        self.assertIn("for sqlite", self.refused(2, "inbox", "sql"))
        self.refused(2, "inbox", "sql", "--for", "oracle")
        for name in ("a.b", "x;", "1x", "x" * 51):
            self.assertIn("must have a name", self.refused(2, "inbox", "sql", "--for", "sqlite", "--table", name))
        text = self.perdura("inbox", "sql", "--for", "sqlite", "--table", "Outgoing_2").stdout
        db = sqlite3.connect(":memory:")
        db.executescript(text)
        db.execute("INSERT INTO Outgoing_2 (type) VALUES ('t')")
        self.assertEqual(db.execute("SELECT id, payload, options, taken_at, task_id, error FROM Outgoing_2").fetchall(),
                         [(1, None, "{}", None, None, None)])
        db.close()
        self.assertIn('CREATE TRIGGER "box_tell" AFTER INSERT OR UPDATE OF error ON "app"."box"',
                      self.perdura("inbox", "sql", "--for", "postgres", "--table", "app.box").stdout)

    def test_a15_what_cannot_be_an_inbox_is_refused_and_no_password_shown(self):
        good = {"name": "a", "store": "sqlite:shop.db"}
        secret = "postgres://u:hunter2@127.0.0.1/db"
        self.assertIn("two entries of inboxes have the name 'a'", self.refusal(good, {**good, "table": "b"}))
        self.assertIn("are the same table", self.refusal(good, {**good, "name": "b"}))
        for store in ("shop.db", "mysql://u:hunter2@h/db", "sqlite:"):
            line = self.refusal({**good, "store": store})
            self.assertIn("must be postgres://… or sqlite:PATH", line)
            self.assertNotIn("hunter2", line)
        self.assertIn("letters, digits", self.refusal({**good, "table": "a.b"}))
        self.assertIn("has no password", self.refusal({**good, "password_env": "X"}))
        self.assertIn("(password of inbox a) is not set", self.refusal(
            {"name": "a", "store": "postgres://127.0.0.1/db", "password_env": "NOT_SET"}))
        line = self.refusal({"name": "a", "store": secret, "password_env": "HOME"})
        self.assertIn("has a password already", line)
        self.assertNotIn("hunter2", line)
        self.assertIn("table", self.refusal({**good, "tables": "x"}))

    def test_a15_the_doctor_and_the_list_say_how_each_is(self):
        box = sqlite_box(f"{self.folder}/shop.db")
        row = box.put()
        self.configured({"name": "shop", "store": f"sqlite:{self.folder}/shop.db"},
                        {"name": "away", "store": "postgres://u:hunter2@127.0.0.1:1/db"})
        done = self.perdura("doctor", "--json", "--server", "http://127.0.0.1:1")
        self.assertNotIn("hunter2", done.stdout + done.stderr)
        checks = [check for check in json.loads(done.stdout)["checks"] if check["name"] == "inbox"]
        self.assertEqual([check["verdict"] for check in checks], ["ok", "warning"])
        self.assertIn("shop: perdura_inbox in sqlite:", checks[0]["detail"])
        self.assertIn("away: the database does not answer", checks[1]["detail"])
        self.assertEqual(box.rows(), [(row, 0, None, None)])  # it has only looked
        server = self.serve()
        self.url = "http://%s:%d" % server.address
        box.emptied()

        def listed():
            return {line.split()[0]: line for line in self.perdura("inbox", "list").stdout.splitlines()}

        lines = harness.wait_until(lambda: re.match("shop +ready +1 +0 ", listed()["shop"]) and listed(),
                                   what="the list to tell of the row")
        self.assertRegex(lines["away"], r"^away +(failed|connecting) +0 +0 ")
        self.assertNotIn("hunter2", self.perdura("inbox", "list", "--json").stdout + server.log())
        box.close()

    def test_a15_the_examples_of_the_page_work(self):
        page = PAGE.read_text()
        [made], [configured], [insert] = (re.findall(f"```{kind}\n(.*?)```", page, re.S)
                                          for kind in ("sh", "yaml", "sql"))
        words = made.splitlines()[0].split("|")[0].split()[1:]
        db = sqlite3.connect(f"{self.folder}/shop.db", isolation_level=None)
        db.executescript(self.perdura(*words).stdout)
        self.write("billing.password", "x\n")
        self.write("perdura.yaml", configured.replace("/srv/shop", self.folder).replace(
            "/etc/perdura", self.folder).replace("db.example.com", "127.0.0.1:1"))
        subprocess.run(["chmod", "600", f"{self.folder}/billing.password"], check=True)
        server = self.serve()
        self.url = "http://%s:%d" % server.address
        db.executescript(insert)
        harness.wait_until(lambda: db.execute("SELECT task_id FROM perdura_inbox").fetchall() != [(None,)])
        [(task,)] = db.execute("SELECT task_id FROM perdura_inbox").fetchall()
        shown = json.loads(self.perdura("task", "show", task, "--json").stdout)
        self.assertEqual((shown["type"], shown["queue"], shown["payload"]), ("order:confirm", "mail", {"order": 1}))
        db.close()


if __name__ == "__main__":
    unittest.main()
