"""The table of seeded bugs (tests/campaign/seeded_bugs.py) is true: every row has its patch and the
other way round, every patch still applies to the tree, and the test that has to catch the bug
exists. That they are caught is shown by `make faults`."""
import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "campaign"))
from seeded_bugs import BUGS, PATCHES, patch, patch_of  # noqa: E402


def files_of(bug):
    """What the patch changes."""
    return re.findall(r"^\+\+\+ b/(\S+)", patch_of(bug).read_text(), flags=re.M)


def functions_of(program):
    """The tests of a C program; those of the stores' conformance suite are in several files."""
    pattern = "conformance*.c" if program.startswith("conformance") else f"{program}.c"
    text = "".join(p.read_text() for p in (ROOT / "tests").rglob(pattern))
    return set(re.findall(r"^(?:static )?void (\w+)\(void \*\*state\)", text, flags=re.M))


class SeededTable(unittest.TestCase):
    def test_table_and_patches_name_the_same_bugs(self):
        self.assertEqual(sorted(path.stem for path in PATCHES.iterdir()),
                         sorted(bug.name for bug in BUGS))
        self.assertGreaterEqual(len(BUGS), 20)

    def test_every_patch_applies_to_sources_as_they_are(self):
        for bug in BUGS:
            with self.subTest(bug=bug.name):
                self.assertTrue(files_of(bug))
                for name in files_of(bug):
                    self.assertTrue(name.startswith("src/"), name)
                self.assertIsNone(patch(bug, ROOT, "--dry-run"))

    def test_a_patch_that_fits_no_more_is_refused(self):
        bug = BUGS[0]
        with tempfile.TemporaryDirectory() as folder:
            for name in files_of(bug):
                path = pathlib.Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("/* written again from the beginning */\n")
            self.assertIn("FAILED", patch(bug, folder, "--dry-run") or "")

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
