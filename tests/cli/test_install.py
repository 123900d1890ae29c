"""What `cmake --install` puts in place is all a program outside of the tree needs. PERDURA_BUILD names
the build folder (default build)."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PERDURA_BUILD", ROOT / "build")).resolve()
DEADLINE_S = 180

CPLUSPLUS = r"""
#include <perdura.h>
#include <cstdio>
#include <cstring>

static int twice(struct pd_task *task, void *)
{
    return std::strcmp(pd_task_payload(task), "21") ? PD_FAIL
           : pd_task_set_result(task, "42") < 0     ? PD_FAIL
                                                    : PD_DONE;
}

int main(int, char **argv)
{
    struct pd_task_spec spec = PD_TASK_SPEC_INIT;
    struct pd_worker_options options = PD_WORKER_OPTIONS_INIT;
    struct pd_result result = PD_RESULT_INIT;
    struct pd_worker *worker = nullptr;
    struct pd *pd;
    char id[PD_ID_BYTES];

    spec.type = "twice";
    spec.payload = "21";
    options.concurrency = 2;
    int rc = pd_open(argv[1], nullptr, &pd) || pd_worker_new(pd, &options, &worker) ||
             pd_worker_handle(worker, "twice", twice, nullptr) || pd_worker_start(worker) ||
             pd_enqueue(pd, &spec, id) || pd_wait(pd, id, 60000, &result);
    std::printf("%s %s\n", rc ? pd_error(pd) : result.status_word, rc ? "" : result.result);
    pd_result_free(&result);
    pd_close(pd);
    return rc ? 1 : 0;
}
"""

# Any name of the library that is not public would collide with the program's own some day.
CLASHES = """
#include <perdura.h>
#define CLASH(name) int name(void); int name(void) { return 7; }
CLASH(arena_alloc) CLASH(json_check) CLASH(engine_open) CLASH(store_open) CLASH(worker_start)
CLASH(log_write) CLASH(str_compare) CLASH(buf_append) CLASH(err_set) CLASH(spec_parse)
int main(void) { struct pd *pd; pd_open("clash.db", 0, &pd); pd_close(pd);
                 return arena_alloc() + json_check() - 14; }
"""


def run(command, **options):
    result = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, timeout=DEADLINE_S, check=False,
                            **options)
    if result.returncode != 0:
        raise AssertionError(f"{command} failed with {result.returncode}:\n{result.stdout}")
    return result.stdout


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="perdura-install-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.prefix = cls.folder / "prefix"
        run(["cmake", "--install", BUILD, "--prefix", cls.prefix])
        config = next(cls.prefix.glob("lib*/**/perdura.pc"))
        cls.libraries = config.parent.parent
        cls.environment = {**os.environ, "PKG_CONFIG_PATH": str(config.parent),
                           "LD_LIBRARY_PATH": str(cls.libraries)}
        flags = run(["pkg-config", "--cflags", "--libs", "perdura"], env=cls.environment)
        cls.flags = flags.split()
        for line in (BUILD / "CMakeCache.txt").read_text().splitlines():
            if line.startswith("PERDURA_SANITIZE:") and not line.endswith("="):
                cls.flags.append("-fsanitize=" + line.split("=", 1)[1])

    def compile(self, compiler, source, name, *flags):
        program = self.folder / name
        run([compiler, source, "-o", program, "-Wall", "-Wextra", "-Wpedantic", "-Werror", *flags,
             *self.flags], cwd=self.folder, env=self.environment)
        return program

    def run_program(self, program, *arguments):
        return run([program, *arguments], cwd=self.folder, env=self.environment)

    def test_everything_is_in_its_place(self):
        for name in ["bin/perdura", "include/perdura.h",
                     "share/bash-completion/completions/perdura",
                     "share/zsh/site-functions/_perdura",
                     "share/fish/vendor_completions.d/perdura.fish",
                     "share/doc/perdura/examples/embed.c"]:
            self.assertTrue((self.prefix / name).is_file(), name)
        features = json.loads(run([self.prefix / "bin/perdura", "version", "--features", "--json"]))
        self.assertEqual((self.prefix / "libexec/perdura-grpc.so").is_file(), features["features"]["grpc"])
        for name in ["libperdura.so", "libperdura.a"]:
            self.assertTrue((self.libraries / name).is_file(), name)
        self.assertRegex(run([self.prefix / "bin/perdura", "version"]), r"\d+\.\d+\.\d+")

    def test_f_j10_programs_can_be_run_by_everybody_and_read_by_their_owner_only(self):
        for name in ("bin/perdura", "libexec/perdura-spawn"):
            self.assertEqual((self.prefix / name).stat().st_mode & 0o7777, 0o711, name)

    def test_the_installed_program_finds_its_grpc_module(self):
        """A descriptor that is none is refused by the module, and so is a module that others can write."""
        program, module = self.prefix / "bin/perdura", self.prefix / "libexec/perdura-grpc.so"
        if not module.is_file():
            self.skipTest("a build without gRPC")
        (self.folder / "none.pb").write_bytes(b"nothing")
        config = self.folder / "grpc.yaml"
        config.write_text("services:\n  - {name: s, url: 'grpc://127.0.0.1:1', descriptor: none.pb}\n")
        for mode, sentence in ((0o755, "it is no FileDescriptorSet"), (0o777, "perdura-grpc.so")):
            module.chmod(mode)
            said = subprocess.run([program, "doctor", "--config", config, "--store", "grpc.db"], cwd=self.folder,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                                  timeout=DEADLINE_S).stdout
            self.assertIn(sentence, said)

    @unittest.skipUnless(shutil.which("scdoc"), "scdoc is missing")
    def test_manual_pages_are_made_of_this_program(self):
        for page in run([self.prefix / "bin/perdura", "man", "--list"]).split():
            text = (self.prefix / "share/man" / f"man{page[-1]}" / page).read_text()
            self.assertTrue(text.startswith((".\\\"", "'\\\"", ".TH")), page)

    def test_the_examples_compile_as_c99_and_run(self):
        examples = self.prefix / "share/doc/perdura/examples"
        program = self.compile("cc", examples / "embed.c", "embed", "-std=c99")
        for _ in range(2):  # the second time on the store of the first
            self.assertRegex(self.run_program(program, "embed.db"), r"^[0-9a-f-]{36} completed 5\n$")
        self.compile("cc", examples / "remote.c", "remote", "-std=c99")

    def test_a_client_of_a_server_runs_a_workflow(self):
        program = self.compile("cc", ROOT / "examples/remote.c", "client", "-std=c99")
        server = subprocess.Popen([self.prefix / "bin/perdura", "serve", "--listen", "127.0.0.1:0",
                                   "--store", self.folder / "server.db"], cwd=self.folder,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            address = re.match(r"listening on (http://\S+)", server.stdout.readline()).group(1)
            self.assertIn('completed {"sum":6}', self.run_program(program, address))
        finally:
            server.terminate()
            server.wait(DEADLINE_S)
            server.stdout.close()

    @unittest.skipUnless(shutil.which("c++"), "there is no C++ compiler")
    def test_the_header_serves_cplusplus(self):
        source = self.folder / "twice.cpp"
        source.write_text(CPLUSPLUS)
        program = self.compile("c++", source, "twice", "-std=c++11")
        self.assertEqual(self.run_program(program, "twice.db"), "completed 42\n")

    def test_only_public_names_are_exported(self):
        names = run(["nm", "-D", "--defined-only", self.libraries / "libperdura.so"]).split("\n")
        foreign = [n for n in names if n and not n.split()[-1].startswith(("pd_", "_"))]
        self.assertEqual(foreign, [])
        declared = set(re.findall(r"\b(pd_\w+)\(", (ROOT / "include/perdura.h").read_text()))
        exported = {n.split()[-1] for n in names if n and n.split()[-1].startswith("pd_")}
        self.assertEqual(exported - declared, set())
        source = self.folder / "clash.c"
        source.write_text(CLASHES)
        self.run_program(self.compile("cc", source, "clash"))


if __name__ == "__main__":
    unittest.main()
