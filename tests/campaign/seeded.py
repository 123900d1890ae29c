"""Seeded bugs: a part of the fault campaign that asks whether the tests are any good. The patch of
every bug of seeded_bugs.py is applied, one after the other, to a copy of the tree; the test that is
about the promise it breaks has to fail. A crash is no catch, and neither is another test's failure.

    python3 tests/campaign/seeded.py [--bugs NAME,NAME] [--ledger FILE]

Alone it writes a ledger of its own and forgets it; `make faults` runs it as the part `seeded`.
The copy, in a temporary folder, is built once with fault points; a bug then costs a file or two and
the link. ccache is used where it is installed. What was caught at the present commit is not run
again."""
import argparse
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import ledger as ledger_module
from seeded_bugs import BUGS, patch

NAME = "seeded"
GOAL = 20
TEST_S_MAX = 180
LINGER_S = 30  # for the rest of a program whose test has its verdict
BUILD = "build-seeded"  # in the copy
BUILD_S_MAX = 3600
SAID_MAX = 200
ROOT = ledger_module.ROOT


class Broken(Exception):
    """The campaign itself cannot continue: no build, or tests that fail without a bug."""


def copy_tree(to):
    """What git knows of or would: the tree as it is now, without builds."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        source, target = ROOT / name, to / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)


def run_cmake(arguments, tree):
    """Paths of the copy are left out of ccache's keys: the next copy finds what this one built."""
    env = {**os.environ, "CCACHE_BASEDIR": str(tree), "CCACHE_NOHASHDIR": "1"}
    done = subprocess.run(["cmake", *arguments], env=env, capture_output=True, text=True,
                          timeout=BUILD_S_MAX)
    if done.returncode != 0:
        raise Broken(f"cmake {arguments[0]} failed:\n{(done.stdout + done.stderr)[-2000:]}")


def configure(tree):
    options = ["-G", "Ninja", "-DPERDURA_FAULTS=ON", "-DPERDURA_DASHBOARD=OFF"]
    if shutil.which("ccache"):
        options.append("-DCMAKE_C_COMPILER_LAUNCHER=ccache")
    run_cmake(["-S", str(tree), "-B", str(tree / BUILD), *options], tree)


def build(tree, tests):
    """What these tests run: perdura itself, or their own program."""
    targets = sorted({"perdura" if is_python(test) else split(test)[0] for test in tests})
    run_cmake(["--build", str(tree / BUILD), "--target", *targets], tree)


@contextlib.contextmanager
def with_bug(bug, tree):
    """The bug is in the tree, and in what its test runs, for as long as this lasts."""
    refused = patch(bug, tree)
    if refused:
        raise Broken(f"the patch of {bug.name} does not apply:\n{refused}")
    try:
        build(tree, [bug.test])
        yield
    finally:
        if patch(bug, tree, "--reverse"):
            raise Broken(f"the patch of {bug.name} cannot be taken out again")


def split(test):
    """("queue_test", "a_test") of a C program, ("crash/test_x", "Class.test_y") of Python."""
    program, name = test.split(": ")
    return program, name


def is_python(test):
    return "/" in split(test)[0]


def command_of(test, tree):
    """What runs the test, and where. A C program has no way to run one test: all of it runs."""
    program, name = split(test)
    if not is_python(test):
        return [str(tree / BUILD / program)], None
    kind, module = program.split("/")
    return [sys.executable, "-m", "unittest", f"{module}.{name}"], tree / "tests" / kind


def execute(test, tree):
    """Runs the test as the tree is built now and returns its exit code, None when it took too long,
    and all that it printed."""
    command, cwd = command_of(test, tree)
    folder = str(tree / BUILD)
    env = {**os.environ, "PERDURA_BUILD": folder, "PERDURA_FAULTS_BUILD": folder,
           "PYTHONPATH": str(tree / "tests" / "api"), "PYTHONDONTWRITEBYTECODE": "1"}
    with tempfile.TemporaryDirectory(prefix="perdura-seeded-") as scratch:
        env["TMPDIR"] = scratch
        with open(pathlib.Path(scratch) / "output", "w") as output:
            process = subprocess.Popen(command, cwd=cwd or scratch, env=env, stdout=output,
                                       stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                       start_new_session=True)
            try:
                code = wait_for(process, pathlib.Path(output.name), split(test)[1])
            finally:
                end_session(process)
            return code, pathlib.Path(output.name).read_text(errors="replace")


def wait_for(process, output, name):
    """The exit code; None when it was not worth waiting any longer."""
    end = time.monotonic() + TEST_S_MAX
    has_verdict = False
    while time.monotonic() < end:
        try:
            return process.wait(0.1)
        except subprocess.TimeoutExpired:
            if not has_verdict and f"[  FAILED  ] {name}\n" in output.read_text(errors="replace"):
                has_verdict = True
                end = min(end, time.monotonic() + LINGER_S)
    return None


def end_session(process):
    """Also servers that a test left behind when it was cut off."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def c_failure(output, name):
    """Why the test failed by itself, or None: it passed, did not run, or the program crashed."""
    parts = re.split(rf"^\[ RUN      \] {name}$", output, flags=re.M)
    if len(parts) != 2:
        return None
    own = re.split(r"^\[ RUN      \] |^\[==========\]", parts[1], flags=re.M)[0]
    if f"[  FAILED  ] {name}" not in own or "with exception" in own:
        return None
    place = re.search(r"([\w.]+:\d+): error", own)
    reason = re.search(r"^ERROR: (.+)|^\[  ERROR   \] --- (?!\[)(.+)", own, flags=re.M)
    texts = [place.group(1) if place else "", reason.group(1) or reason.group(2) if reason else ""]
    return ": ".join(text for text in texts if text) or "failed"


def python_failure(output, name):
    """The last line of the assertion that failed. An error is none: it says nothing of a promise."""
    parts = re.split(rf"^FAIL: {name.split('.')[-1]} .*$", output, flags=re.M)
    if len(parts) < 2:
        return None
    lines = [line for line in parts[1].split("\n======")[0].splitlines()
             if line.startswith("AssertionError")]
    return lines[-1] if lines else None


def failure_of(test, output):
    name = split(test)[1]
    found = python_failure(output, name) if is_python(test) else c_failure(output, name)
    return found[:SAID_MAX] if found else None


def show_green(tests, tree, say):
    """Without a bug every chosen test passes, and none is skipped: or nothing would be shown."""
    ran = set()
    for test in tests:
        key = test if is_python(test) else split(test)[0]
        if key in ran:
            continue
        ran.add(key)
        code, output = execute(test, tree)
        if code != 0 or (is_python(test) and "OK\n" not in output):
            raise Broken(f"{key} does not pass without a bug:\n{output[-2000:]}")
    say(f"without a bug the {len(tests)} tests pass")


def look_for(bug, tree, ledger, say):
    with with_bug(bug, tree):
        started = time.monotonic()
        code, output = execute(bug.test, tree)
    seconds = round(time.monotonic() - started, 1)
    said = failure_of(bug.test, output)
    findings = []
    if not said:
        how = "took too long" if code is None else f"ended with {code}"
        findings = [f"seeded bug {bug.name} is not caught: {bug.test} {how}"]
    ledger.add(NAME, bug=bug.name, caught_by=bug.test if said else None, seconds=seconds,
               said=said, findings=findings)
    say(f"{bug.name}: caught by {bug.test} ({seconds} s)" if said else findings[0])


def last_rows(ledger):
    """The newest line of every bug that is still in the table."""
    rows = {row["bug"]: row for row in ledger.rows(NAME)}
    return [(bug, rows[bug.name]) for bug in BUGS if bug.name in rows]


def run(ledger, say, names=None):
    caught = {row["bug"] for _, row in last_rows(ledger)
              if row["caught_by"] and row["commit"] == ledger.commit}
    chosen = [bug for bug in BUGS if bug.name not in caught and (not names or bug.name in names)]
    if not chosen:
        say("every bug was caught at this commit already")
        return
    tests = sorted({bug.test for bug in chosen})
    with tempfile.TemporaryDirectory(prefix="perdura-seeded-") as scratch:
        tree = pathlib.Path(scratch) / "tree"
        say(f"building a copy of the tree for {len(tests)} tests")
        copy_tree(tree)
        configure(tree)
        build(tree, tests)
        show_green(tests, tree, say)
        for bug in chosen:
            look_for(bug, tree, ledger, say)


def report(ledger):
    rows = last_rows(ledger)
    caught = [row for _, row in rows if row["caught_by"]]
    lines = ["## Seeded bugs", "",
             f"Bugs put in on purpose, one patch of `tests/bugs` at a time, into a copy of the "
             f"tree: {len(caught)} of {len(BUGS)} were caught (goal: at least {GOAL}, all of "
             "them). The test named is about the promise that the bug breaks, passes without the "
             "bug and fails by an assertion of its own; a crash would not count.", "",
             "| bug | what it does | breaks | caught by | s |", "|---|---|---|---|---|"]
    for bug, row in rows:
        by = f"`{split(row['caught_by'])[1]}`" if row["caught_by"] else "**no test**"
        lines.append(f"| `{bug.name}` | {bug.what} | {bug.breaks} | {by} | {row['seconds']} |")
    missing = [bug.name for bug in BUGS if bug.name not in {b.name for b, _ in rows}]
    if missing:
        lines += ["", "Not run yet: " + ", ".join(missing) + "."]
    return "\n".join(lines) + "\n"


def summary(ledger):
    rows = last_rows(ledger)
    caught = sum(1 for _, row in rows if row["caught_by"])
    return [("all", f"{len(rows)} seeded bugs, each put in in turn",
             f"{caught} caught, {len(BUGS) - caught} not")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bugs", default="", help="names, separated by commas; all otherwise")
    parser.add_argument("--ledger")
    options = parser.parse_args()
    names = {name for name in options.bugs.split(",") if name}
    unknown = names - {bug.name for bug in BUGS}
    if unknown:
        parser.error("no such bug: " + ", ".join(sorted(unknown)))
    with tempfile.TemporaryDirectory(prefix="perdura-seeded-") as scratch:
        ledger = ledger_module.Ledger(options.ledger or pathlib.Path(scratch) / "ledger.jsonl")
        run(ledger, lambda text: print(text, flush=True), names)
        bad = [row for _, row in last_rows(ledger) if row["findings"]]
    return 1 if bad else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Broken as why:
        sys.exit(str(why))
