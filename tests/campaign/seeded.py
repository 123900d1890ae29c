"""Seeded bugs: a part of the fault campaign that asks whether the tests are any good. Every bug of
seeded_bugs.py is switched on, one after the other, in a build with fault points; the test that is
about the promise it breaks has to fail. A crash is no catch, and neither is another test's failure.

    python3 tests/campaign/seeded.py [--bugs NAME,NAME] [--ledger FILE]

Alone it writes a ledger of its own and forgets it; `make faults` runs it as the part `seeded`.
PERDURA_FAULTS_BUILD names the folder of the build, build-faults otherwise; it is brought up to date
first. What was caught at the present commit is not run again."""
import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import ledger as ledger_module
from seeded_bugs import BUGS

NAME = "seeded"
GOAL = 20
TEST_S_MAX = 60
LINGER_S = 30  # for the rest of a program whose test has its verdict
BUILD_S_MAX = 3600
SAID_MAX = 200
ROOT = ledger_module.ROOT


class Broken(Exception):
    """The campaign itself cannot go on: no build, or tests that fail without a bug."""


def build_folder():
    return pathlib.Path(os.environ.get("PERDURA_FAULTS_BUILD", ROOT / "build-faults"))


def build(folder, programs, say):
    say(f"building {len(programs)} test programs with fault points in {folder}")
    configure = ["cmake", "-S", str(ROOT), "-B", str(folder), "-DPERDURA_FAULTS=ON"]
    if not (folder / "CMakeCache.txt").exists():
        configure += ["-G", "Ninja"]
    for command in (configure, ["cmake", "--build", str(folder), "--target", "perdura",
                                *programs]):
        done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_S_MAX)
        if done.returncode != 0:
            raise Broken(f"{' '.join(command[:2])} failed:\n{(done.stdout + done.stderr)[-2000:]}")


def split(test):
    """("queue_test", "a_test") of a C program, ("crash/test_x", "Class.test_y") of Python."""
    program, name = test.split(": ")
    return program, name


def is_python(test):
    return "/" in split(test)[0]


def command_of(test, folder):
    """What runs the test, and where. A C program has no way to run one test: all of it runs."""
    program, name = split(test)
    if not is_python(test):
        return [str(folder / program)], None
    kind, module = program.split("/")
    return [sys.executable, "-m", "unittest", f"{module}.{name}"], ROOT / "tests" / kind


def execute(test, folder, bug):
    """Runs the test with the bug (or None) and returns its exit code, None when it took too long,
    and all that it printed."""
    command, cwd = command_of(test, folder)
    env = {**os.environ, "PERDURA_BUILD": str(folder), "PERDURA_FAULTS_BUILD": str(folder),
           "PYTHONPATH": str(ROOT / "tests" / "api"), "PYTHONDONTWRITEBYTECODE": "1"}
    env.pop("PERDURA_SEEDED_BUG", None)
    if bug:
        env["PERDURA_SEEDED_BUG"] = bug
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


def show_green(tests, folder, say):
    """Without a bug every chosen test passes, and none is skipped: or nothing would be shown."""
    ran = set()
    for test in tests:
        key = test if is_python(test) else split(test)[0]
        if key in ran:
            continue
        ran.add(key)
        code, output = execute(test, folder, None)
        if code != 0 or (is_python(test) and "OK\n" not in output):
            raise Broken(f"{key} does not pass without a bug:\n{output[-2000:]}")
    say(f"without a bug the {len(tests)} tests pass")


def look_for(bug, folder, ledger, say):
    started = time.monotonic()
    code, output = execute(bug.test, folder, bug.name)
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
    folder = build_folder()
    tests = sorted({bug.test for bug in chosen})
    build(folder, sorted({split(test)[0] for test in tests if not is_python(test)}), say)
    show_green(tests, folder, say)
    for bug in chosen:
        look_for(bug, folder, ledger, say)


def report(ledger):
    rows = last_rows(ledger)
    caught = [row for _, row in rows if row["caught_by"]]
    lines = ["## Seeded bugs", "",
             f"Bugs put in on purpose, one at a time, behind `SEEDED_BUG(\"name\")` in a test "
             f"build: {len(caught)} of {len(BUGS)} were caught (goal: at least {GOAL}, all of "
             "them). The test named is about the promise that the bug breaks, passes without the "
             "bug and fails by an assertion of its own; a crash would not count.", "",
             "| bug | what it does | breaks | caught by | s |", "|---|---|---|---|---|"]
    for bug, row in rows:
        by = f"`{split(row['caught_by'])[1]}`" if row["caught_by"] else "**nobody**"
        lines.append(f"| `{bug.name}` | {bug.what} | {bug.breaks} | {by} | {row['seconds']} |")
    missing = [bug.name for bug in BUGS if bug.name not in {b.name for b, _ in rows}]
    if missing:
        lines += ["", "Not run yet: " + ", ".join(missing) + "."]
    return "\n".join(lines) + "\n"


def summary(ledger):
    rows = last_rows(ledger)
    caught = sum(1 for _, row in rows if row["caught_by"])
    return [("all", f"{len(rows)} seeded bugs, each switched on in turn",
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
