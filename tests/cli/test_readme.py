"""The tables of the README have the columns and the times that a terminal shows."""
import re
import unittest

from cli_harness import ServerTest, harness

CONFIG = r"""
handlers:
  - type: bad
    command: ["sh", "-c", "exit 3"]
    max_retries: 0
"""
README = harness.ROOT / "README.md"


def header_of(text):
    """The first line with nothing but titles."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    return next(line.split() for line in text.splitlines() if re.fullmatch(r"[A-Z ]+", line.strip())
                and line.strip())


class Readme(ServerTest):
    config = CONFIG

    def test_its_tables_have_the_columns_of_the_commands(self):
        task = self.perdura("enqueue", "bad", "--wait", code=1).stdout.split()[0]
        headers = [line.split() for line in README.read_text().splitlines()]
        for words in (("task", "list"), ("task", "executions", task), ("workers",)):
            shown = header_of(self.on_terminal(*words, columns=160))
            self.assertIn(shown, headers, words)

    def test_its_times_are_to_the_second_where_a_terminal_cuts_them(self):
        task = self.perdura("enqueue", "bad", "--wait", code=1).stdout.split()[0]
        shown = self.on_terminal("task", "executions", task, columns=160)
        self.assertRegex(shown, r"T\d\d:\d\d:\d\dZ ")
        rows = re.findall(r"(?m)^ +\d+  (?:failed|completed)  .*$", README.read_text())
        self.assertGreaterEqual(len(rows), 5)
        for row in rows:
            self.assertRegex(row, r"T\d\d:\d\d:\d\dZ ")


if __name__ == "__main__":
    unittest.main()
