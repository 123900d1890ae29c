"""The library's tests once more, as a client of a server: the same calls do the same on both sides.
PERDURA_BUILD names the build folder (default build)."""
import os
import pathlib
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PERDURA_BUILD", ROOT / "build")).resolve()


class Library(unittest.TestCase):
    def run_tests(self, name):
        environment = {k: v for k, v in os.environ.items() if k != "PERDURA_TOKEN"}
        environment["PERDURA_LIB_SERVER"] = str(BUILD / "perdura")
        result = subprocess.run([BUILD / name], env=environment, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, timeout=280, check=False)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("PASSED", result.stdout)

    def test_tasks_behave_the_same_on_a_server(self):
        self.run_tests("lib_test")

    def test_handlers_behave_the_same_on_a_server(self):
        self.run_tests("lib_handlers_test")

    def test_consumers_behave_the_same_on_a_server(self):
        self.run_tests("lib_consumer_test")

    def test_programs_built_for_another_version_behave_the_same_on_a_server(self):
        self.run_tests("lib_sizes_test")

    def test_planning_behaves_the_same_on_a_server(self):
        self.run_tests("lib_plan_test")


if __name__ == "__main__":
    unittest.main()
