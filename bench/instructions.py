#!/usr/bin/env python3
"""Counts the instructions a task costs at enqueue, claim and complete, with callgrind, and compares
them with the committed baseline (bench/instructions.json): a jump of more than 20 % fails. Unlike
times they do not depend on how busy the machine is; two runs differ by less than one percent.

    python3 bench/instructions.py [--build build] [--update]

Exits 0 when all is well, 1 on a jump, 77 (skipped) where valgrind is missing or compiler or SQLite
are not those of the baseline: then the figures say nothing about our code. --update writes a new
baseline; do it when a change is meant, and say why in the commit."""
import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

BASELINE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "instructions.json")
STEPS = ("enqueue", "claim", "complete")
JUMP = 0.20
SECONDS_MAX = 600
SKIPPED = 77


class CountError(Exception):
    """It could not be counted; the text says why."""


def toolchain(build):
    """What else than our code decides the figures."""
    compiler = "unknown"
    for path in glob.glob(os.path.join(build, "CMakeFiles", "*", "CMakeCCompiler.cmake")):
        with open(path, encoding="utf-8") as handle:
            text = handle.read()
        name = re.search(r'CMAKE_C_COMPILER_ID "(\w+)"', text)
        version = re.search(r'CMAKE_C_COMPILER_VERSION "(\d+)', text)
        if name and version:
            compiler = f"{name.group(1)} {version.group(1)}"
    sqlite = subprocess.run(["pkg-config", "--modversion", "sqlite3"], stdout=subprocess.PIPE,
                            text=True, check=False).stdout.strip()
    return {"compiler": compiler, "sqlite": sqlite}


def read_dump(path):
    """(what, instructions) of one callgrind dump, or None."""
    with open(path, encoding="utf-8", errors="replace") as handle:
        text = handle.read()
    what = re.search(r"^desc: Trigger: Client Request: (\w+)", text, re.MULTILINE)
    total = re.search(r"^totals: (\d+)", text, re.MULTILINE)
    return (what.group(1), int(total.group(1))) if what and total else None


def count(build):
    """{step: instructions per task}"""
    program = os.path.join(build, "instructions")
    if not shutil.which("valgrind") or not os.path.exists(program):
        raise CountError("valgrind or the program `instructions` is missing (apt-get install "
                         "valgrind, then configure and build again)")
    folder = tempfile.mkdtemp(prefix="bench-", dir=build)
    try:
        done = subprocess.run(["valgrind", "--tool=callgrind", "--quiet",
                               f"--callgrind-out-file={folder}/dump", program,
                               os.path.join(folder, "store.db")], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=SECONDS_MAX, check=False)
        if done.returncode != 0:
            raise CountError(f"the counted program failed: {done.stderr.strip()}")
        dumps = dict(filter(None, map(read_dump, glob.glob(f"{folder}/dump*"))))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if set(dumps) != set(STEPS):
        raise CountError(f"callgrind wrote {sorted(dumps)} instead of {STEPS}")
    tasks = int(done.stdout)
    return {step: round(dumps[step] / tasks) for step in STEPS}


def load_baseline():
    try:
        with open(BASELINE, encoding="utf-8") as handle:
            return json.load(handle)
    except (OSError, ValueError):
        return None


def measure(build, say):
    """For run.py: the figures beside the baseline."""
    say("instructions per task")
    try:
        return {"per_task": count(build), "baseline": load_baseline(), **toolchain(build)}
    except CountError as error:
        say(f"instructions: {error}")
        return {"per_task": None, "baseline": load_baseline(), **toolchain(build)}


def compare(counted, baseline):
    """Prints a line per step; True when none has jumped."""
    fine = True
    for step in STEPS:
        before = baseline["per_task"][step]
        change = counted[step] / before - 1
        fine = fine and change <= JUMP
        print(f"{step:9} {counted[step]:8,} instructions per task, baseline {before:8,}: "
              f"{change:+.1%}{'' if change <= JUMP else '  TOO MANY'}")
    return fine


def main():
    parser = argparse.ArgumentParser(description="Counts instructions per task.")
    parser.add_argument("--build", default="build")
    parser.add_argument("--update", action="store_true", help="write a new baseline")
    arguments = parser.parse_args()
    tools = toolchain(arguments.build)
    baseline = load_baseline()
    if not arguments.update and baseline and {k: baseline[k] for k in tools} != tools:
        print(f"skipped: the baseline is of {baseline['compiler']} and SQLite "
              f"{baseline['sqlite']}, here are {tools['compiler']} and {tools['sqlite']}")
        sys.exit(SKIPPED)
    try:
        counted = count(os.path.abspath(arguments.build))
    except CountError as error:
        print(f"skipped: {error}" if "missing" in str(error) else f"instructions: {error}")
        sys.exit(SKIPPED if "missing" in str(error) else 1)
    if arguments.update:
        with open(BASELINE, "w", encoding="utf-8") as handle:
            json.dump({"per_task": counted, **tools}, handle, indent=1)
            handle.write("\n")
        print(f"new baseline: {counted}")
        return
    if not baseline:
        sys.exit("instructions: there is no baseline; make one with --update")
    if not compare(counted, baseline):
        sys.exit("instructions: a step costs over 20 % more; find out why, or --update")


if __name__ == "__main__":
    main()
