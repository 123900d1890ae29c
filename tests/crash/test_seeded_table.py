"""The table of seeded bugs (tests/campaign/seeded_bugs.py) is true: every bug that src/ can be built
with is listed and the other way round, sits in the file that is named, and the test that has to
catch it exists. That they are caught is shown by `make faults`."""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "campaign"))
from seeded_bugs import BUGS  # noqa: E402


def seeded_in_source():
    """{(name, file)} of every SEEDED_BUG in src/."""
    found = set()
    for path in sorted((ROOT / "src").rglob("*.c")):
        for name in re.findall(r'SEEDED_BUG\("(\w+)"\)', path.read_text()):
            found.add((name, str(path.relative_to(ROOT))))
    return found


def functions_of(program):
    """The tests of a C program; those of the stores' conformance suite are in several files."""
    pattern = "conformance*.c" if program.startswith("conformance") else f"{program}.c"
    text = "".join(p.read_text() for p in (ROOT / "tests").rglob(pattern))
    return set(re.findall(r"^(?:static )?void (\w+)\(void \*\*state\)", text, flags=re.M))


class SeededTable(unittest.TestCase):
    def test_source_and_table_name_the_same_bugs_in_the_same_files(self):
        self.assertEqual(seeded_in_source(), {(bug.name, bug.file) for bug in BUGS})
        self.assertEqual(len({bug.name for bug in BUGS}), len(BUGS))
        self.assertGreaterEqual(len(BUGS), 20)

    def test_every_bug_names_a_test_that_exists(self):
        for bug in BUGS:
            with self.subTest(bug=bug.name):
                place, name = bug.test.split(": ")
                if "/" not in place:
                    self.assertIn(name, functions_of(place))
                    continue
                text = (ROOT / "tests" / f"{place}.py").read_text()
                group, method = name.split(".")
                self.assertIn(f"class {group}(", text)
                self.assertIn(f"    def {method}(self)", text)


if __name__ == "__main__":
    unittest.main()
