"""docs/security.md says what the program does: scopes and roles (D12, F-J1)."""
import pathlib
import re
import unittest

import openapi_check
from harness import ROOT
from token_harness import SCOPES, TokenTest

PAGE = (ROOT / "docs/security.md").read_text(encoding="utf-8")


def rows(title):
    """The rows of the table with this first column title: the first cell's code, and the second cell."""
    table = PAGE.split(f"| {title} |")[1].split("\n\n")[0]
    return dict(re.findall(r"^\| `([^`]+)` \| (.*) \|$", table, re.M))


class Page(TokenTest):
    def test_f_j1_the_tables_of_scopes_and_roles_are_those_of_the_program(self):
        source = (ROOT / "src/core/access/scope.h").read_text(encoding="utf-8")
        self.assertEqual(rows("scope"), dict(re.findall(r'X\([A-Z_]+, "([^"]+)", "([^"]+)"\)', source)))
        self.assertEqual(tuple(rows("scope")), SCOPES)
        roles = openapi_check.document().document["components"]["schemas"]["TokenRequest"]["properties"]["role"]["enum"]
        self.assertEqual([*rows("role"), None], roles)
        for role, scopes in rows("role").items():
            made = self.root(201, "POST", "/v1/tokens", {"name": role, "role": role})
            self.assertEqual(made["scopes"], re.findall(r"`([^`]+)`", scopes))

    def test_f_j1_its_commands_are_commands(self):
        commands = re.findall(r"^perdura (token [a-z]+)", PAGE, re.M)
        source = pathlib.Path(ROOT, "src/cli/commands/cmd_token.c").read_text(encoding="utf-8")
        for command in commands:
            self.assertIn(f'.name = "{command.split()[1]}"', source)
        self.assertGreater(len(commands), 4)

    def test_d12_the_tests_it_names_are_there(self):
        names = re.findall(r"`(tests/[^`]+)`", PAGE)
        self.assertEqual([name for name in names if not (ROOT / name).is_file()], [])
        self.assertGreater(len(names), 30)


if __name__ == "__main__":
    unittest.main()
