"""The programs and the library are built so that faults in memory are hard to use: read from the
binaries, not from the flags. Sanitizer and debug builds are other programs."""
import os
import platform
import re
import subprocess
import unittest

from cli_harness import binary

BUILD = os.path.dirname(binary())


def cache(name):
    with open(os.path.join(BUILD, "CMakeCache.txt"), encoding="utf-8") as file:
        found = re.search(rf"^{name}:\w+=(.*)$", file.read(), re.MULTILINE)
    return found.group(1) if found else ""


@unittest.skipIf(cache("PERDURA_SANITIZE") or cache("CMAKE_BUILD_TYPE") == "Debug",
                 "another kind of build")
class HardeningTest(unittest.TestCase):
    programs = ("perdura", "perdura-spawn")
    library = "libperdura.so"
    modules = [name for name in ("perdura-grpc.so",) if os.path.exists(os.path.join(BUILD, name))]

    def read(self, what, name):
        done = subprocess.run(["readelf", "-W", what, os.path.join(BUILD, name)], check=True,
                              capture_output=True, text=True)
        return done.stdout

    def each(self, *names):
        for name in names or (*self.programs, self.library, *self.modules):
            with self.subTest(name):
                yield name

    def test_programs_are_loaded_at_any_address(self):
        for name in self.each(*self.programs):
            self.assertRegex(self.read("-h", name), r"Type: +DYN")
            self.assertRegex(self.read("-d", name), r"FLAGS_1.*PIE")

    def test_no_memory_can_be_both_written_and_run(self):
        for name in self.each():
            segments = self.read("-l", name)
            self.assertRegex(segments, r"GNU_STACK .* RW +0x")
            self.assertNotRegex(segments, r"LOAD .* RWE ")

    def test_tables_of_functions_are_read_only_from_the_start(self):
        for name in self.each():
            self.assertRegex(self.read("-l", name), "GNU_RELRO")
            self.assertRegex(self.read("-d", name), r"\(FLAGS\).*BIND_NOW")

    def test_nothing_is_searched_for_in_folders_of_the_build(self):
        for name in self.each():
            self.assertNotRegex(self.read("-d", name), r"RPATH|RUNPATH")

    def test_a_stack_that_was_overrun_is_noticed(self):
        for name in self.each():
            self.assertIn("__stack_chk_fail", self.read("--dyn-syms", name))

    def test_calls_of_the_c_library_check_the_size_of_buffers(self):
        for name in self.each("perdura", self.library):
            self.assertRegex(self.read("--dyn-syms", name), r"__\w+_chk@GLIBC")

    @unittest.skipUnless(platform.machine() == "x86_64", "of this processor")
    def test_functions_are_entered_at_their_beginning_only(self):
        for name, function in (("perdura", "main"), ("perdura-spawn", "main"),
                               (self.library, "pd_open")):
            with self.subTest(name):
                code = subprocess.run(["objdump", "-d", f"--disassemble={function}",
                                       os.path.join(BUILD, name)], check=True,
                                      capture_output=True, text=True).stdout
                self.assertRegex(code, rf"<{function}>:\n.*endbr64")


if __name__ == "__main__":
    unittest.main()
