#!/usr/bin/env python3
"""`make coverage`: which lines and branches of src/ the whole test suite runs.

    python3 tools/coverage.py [--build FOLDER] [--read-only] [--files] [--missing FILE]

Builds with gcc --coverage at -O0, with the fault points, runs every test once and reads gcov's
counters. Prints a table per folder and writes reports/coverage.json. --read-only reads the counters
of the run before; --files shows every file; --missing shows what a file's tests leave out.

How it is counted. A line counts when gcov has code for it. A branch is one outcome of a conditional
jump: each operand of && and || has two, a switch one per target. C has no exceptions, so there are
no compiler-made exceptional branches; any that gcov marks so ("throw") are left out. The outcomes
of ASSERT are left out: the second one is a bug, ends the process, and no test may reach it.
Everything else is counted: memory that runs out, failing disks and the like.
"""
import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
FLAGS = "--coverage -O0 -fprofile-abs-path -fprofile-update=atomic"
LINES_GOAL, BRANCHES_GOAL = 90, 80


def build(folder):
    folder.mkdir(parents=True, exist_ok=True)
    dump = folder / "coverage_dump.o"
    subprocess.run(["gcc", "-c", "-O0", ROOT / "tools" / "coverage_dump.c", "-o", dump], check=True)
    link = f"--coverage {dump} -Wl,--wrap=_exit -Wl,--wrap=raise"
    subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug",
                    "-DPERDURA_FAULTS=ON", f"-DCMAKE_C_FLAGS={FLAGS}",
                    f"-DCMAKE_EXE_LINKER_FLAGS={link}", f"-DCMAKE_SHARED_LINKER_FLAGS={link}"],
                   check=True, stdout=subprocess.DEVNULL, env=dict(os.environ, CC="gcc"))
    subprocess.run(["cmake", "--build", folder], check=True, stdout=subprocess.DEVNULL)


def run_tests(folder, jobs):
    for path in folder.rglob("*.gcda"):
        path.unlink()
    environment = dict(os.environ, PERDURA_FAULTS_BUILD=str(folder), PERDURA_COVERAGE="1")
    # The two that only read the repository run nothing of src/.
    done = subprocess.run(["ctest", "--test-dir", folder, "--output-on-failure", "-j", str(jobs),
                           "-E", "^(tidy|requirements)$"], env=environment)
    return done.returncode


def assert_lines(path):
    """The lines that an ASSERT(...) spans; its branches are not counted."""
    found = set()
    depth = 0
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        start = re.search(r"\b(ASSERT|_Static_assert)\(", line)
        text = line[start.start():] if start and depth == 0 else line
        if depth > 0 or start:
            found.add(number)
            depth += text.count("(") - text.count(")")
            depth = max(depth, 0)
    return found


def read_counters(folder):
    """{file below src/: {line: [count, [branch counts]]}}, joined over all objects."""
    files = {}
    for notes in sorted(folder.rglob("*.gcno")):
        if "_fuzz" in str(notes) or "_test" in str(notes):
            continue
        done = subprocess.run(["gcov", "--json-format", "--stdout", "--branch-probabilities",
                               notes], capture_output=True, text=True, cwd=folder)
        for text in done.stdout.splitlines():
            for file in json.loads(text)["files"]:
                path = pathlib.Path(file["file"]).resolve()
                if SOURCE in path.parents:
                    join(files.setdefault(str(path.relative_to(SOURCE)), {}), file["lines"])
    for name, lines in files.items():
        for number in assert_lines(SOURCE / name):
            if number in lines:
                lines[number][1] = []
    return files


def join(known, lines):
    for line in lines:
        entry = known.setdefault(line["line_number"], [0, []])
        counts = [branch["count"] for branch in line["branches"] if not branch["throw"]]
        entry[0] += line["count"]
        if len(counts) > len(entry[1]):
            entry[1] += [0] * (len(counts) - len(entry[1]))
        for at, count in enumerate(counts):
            entry[1][at] += count


def add_up(files):
    sums = {"lines": 0, "lines_hit": 0, "branches": 0, "branches_hit": 0}
    for lines in files:
        sums["lines"] += len(lines)
        sums["lines_hit"] += sum(1 for count, _ in lines.values() if count)
        sums["branches"] += sum(len(branches) for _, branches in lines.values())
        sums["branches_hit"] += sum(1 for _, branches in lines.values() for b in branches if b)
    sums["lines_percent"] = round(100 * sums["lines_hit"] / max(sums["lines"], 1), 1)
    sums["branches_percent"] = round(100 * sums["branches_hit"] / max(sums["branches"], 1), 1)
    return sums


def commit():
    done = subprocess.run(["git", "describe", "--always", "--dirty=+", "--exclude=*"], cwd=ROOT,
                          capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def result_of(files):
    folders = {}
    for name, lines in files.items():
        folders.setdefault(os.path.dirname(name), []).append(lines)
    return {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
            "commit": commit(), "compiler": "gcc, gcov, -O0", "total": add_up(files.values()),
            "folders": {name: add_up(folders[name]) for name in sorted(folders)},
            "files": {name: add_up([files[name]]) for name in sorted(files)}}


def show(result, with_files):
    print(f"{'':38} {'lines':>7} {'%':>6} {'branches':>9} {'%':>6}")
    rows = list(result["folders"].items())
    if with_files:
        rows = sorted(result["files"].items(),
                      key=lambda row: row[1]["branches_hit"] - row[1]["branches"])
    for name, sums in [*rows, ("src in total", result["total"])]:
        print(f"{name:38} {sums['lines']:7} {sums['lines_percent']:6} {sums['branches']:9} "
              f"{sums['branches_percent']:6}"
              f"{'  -' + str(sums['branches'] - sums['branches_hit']) if with_files else ''}")


def show_missing(name, lines):
    text = (SOURCE / name).read_text(encoding="utf-8").splitlines()
    for number in sorted(lines):
        count, branches = lines[number]
        if count and all(branches):
            continue
        mark = "-----" if not count else f"{sum(1 for b in branches if b)}/{len(branches)}"
        print(f"{number:5} {mark:>6} {text[number - 1]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build-coverage")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--read-only", action="store_true")
    parser.add_argument("--files", action="store_true")
    parser.add_argument("--missing", metavar="FILE", nargs="+", default=[])
    options = parser.parse_args()
    folder = options.build.resolve()
    failed = 0
    if not options.read_only:
        build(folder)
        failed = run_tests(folder, options.jobs)
    files = read_counters(folder)
    for name in options.missing:
        print(f"== {name}")
        show_missing(name, files[name])
    if options.missing:
        return 0
    result = result_of(files)
    show(result, options.files)
    if failed:
        print("a test failed: the figures are not kept", file=sys.stderr)
        return 1
    report = ROOT / "reports" / "coverage.json"
    report.parent.mkdir(exist_ok=True)
    report.write_text(json.dumps(result, indent=1) + "\n")
    total = result["total"]
    print(f"{report.relative_to(ROOT)} written; goals: lines {LINES_GOAL} %, branches "
          f"{BRANCHES_GOAL} %")
    return 0 if (total["lines_percent"] >= LINES_GOAL and
                 total["branches_percent"] >= BRANCHES_GOAL) else 2


if __name__ == "__main__":
    sys.exit(main())
