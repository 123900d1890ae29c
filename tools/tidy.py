#!/usr/bin/env python3
"""Checks what a compiler does not: include direction, that core/ is pure, unique file names, opening
comments, line length, open ends; error sentences (tidy_errors.py), sizes (tidy_sizes.py) and plain
words (tidy_words.py). Prints one line per finding and exits 1 when there is any."""
import os
import re
import sys

import tidy_errors
import tidy_sizes
import tidy_words

root = sys.argv[1] if len(sys.argv) > 1 else "."
source = os.path.join(root, "src")

# Who may include whom: each folder names the folders below it. No folder includes a backend.
ALLOWED = {
    "base": set(),
    "calendar": {"base"},
    "core": {"base", "calendar"},
    "store": {"base", "calendar", "core"},
    "store/rows": {"base", "calendar", "core", "store"},
    "store/sealed": {"base", "calendar", "core", "store", "store/rows"},
    "store/sqlite": {"base", "calendar", "core", "store", "store/rows"},
    "store/postgres": {"base", "calendar", "core", "store", "store/rows"},
    "engine": {"base", "calendar", "core", "store", "store/sealed"},
    "net": {"base"},
    "spawn": {"worker"},
    "worker": {"base", "calendar", "core", "store", "engine", "net"},
    "worker/handlers": {"base", "core", "worker", "net"},
    "outbound": {"base", "core", "store", "engine", "net"},
    "brokers": {"base", "core", "store", "engine"},
    "view": {"base", "calendar", "core", "store", "engine"},
    "server": {"base", "calendar", "core", "store", "store/sealed", "engine", "view", "net", "outbound"},
    "node": {"base", "calendar", "core", "store", "store/sealed", "engine", "view", "net", "worker", "outbound",
             "brokers", "server"},
    "cli": {"base", "calendar", "core", "net", "node"},
    "lib": {"base", "calendar", "core", "store", "store/sealed", "engine", "view", "net", "worker",
            "worker/handlers", "outbound"},
}
EXCEPTIONS = {
    ("store/store_open.c", "store/postgres"),
    ("store/store_open.c", "store/sqlite"),  # the opener names the backends
    ("store/store_open.c", "store/sealed"),  # and puts encryption above what it opened
    ("worker/worker.h", "worker/handlers"),  # the kinds of handlers a worker is configured with
}
# What a pure function does not do: it asks no clock, environment or system. redact.c bounds its time.
IMPURE = re.compile(r"(?<![\w.>])(clock_(?:wall|boot|gettime)\w*|gettimeofday|getenv|fopen|popen|"
                    r"socket|connect|getaddrinfo|pthread_create|thread_start|rand|random|"
                    r"getrandom)\(|#include <(?:unistd|fcntl|sys/\w+|netdb|poll)\.h>")
IMPURE_ALLOWED = {("core/log/redact.c", "clock_gettime")}
findings = []


def say(path, line, text):
    findings.append(f"{os.path.relpath(path, root)}:{line}: {text}")


def layer(folder):
    """The layer a folder belongs to: the longest of its beginnings that ALLOWED names."""
    while folder not in ALLOWED and "/" in folder:
        folder = os.path.dirname(folder)
    return folder


def check_includes(path, name, lines):
    folder = layer(os.path.dirname(name))
    for number, line in enumerate(lines, 1):
        match = re.match(r'#include "([^"]+)"', line)
        if not match or "/" not in match.group(1):
            continue
        target = layer(os.path.dirname(match.group(1)))
        if target == folder or target in ALLOWED.get(folder, set()):
            continue
        if (name, target) in EXCEPTIONS or target.startswith("worker/handlers") and folder == "worker":
            continue
        say(path, number, f"{folder}/ must not include {target}/")


def check_pure(path, name, lines):
    for number, line in enumerate(lines, 1):
        match = IMPURE.search(line)
        if match and (name, match.group(1)) not in IMPURE_ALLOWED:
            say(path, number, f"core/ is pure: {match.group().strip('(')}")


def check_text(path, lines):
    if not lines or not lines[0].startswith(("/*", "//", "#include", "#ifndef")):
        say(path, 1, "a file opens with what it is for")
    for number, line in enumerate(lines, 1):
        if len(line.rstrip("\n")) > 100:
            say(path, number, "longer than 100 columns")
        if re.search(r"\b(TODO|FIXME|XXX|HACK)\b", line):
            say(path, number, "an open end")
        if "SEEDED_BUG" in line:
            say(path, number, "a seeded bug: it belongs into a patch in tests/bugs")
        if "\t" in line:
            say(path, number, "a tab")


names = {}
identifiers = set()
for folder, _, files in sorted(os.walk(source)):
    for file in sorted(files):
        if not file.endswith((".c", ".h")):
            continue
        path = os.path.join(folder, file)
        name = os.path.relpath(path, source)
        with open(path, encoding="utf-8") as handle:
            lines = handle.readlines()
        check_includes(path, name, lines)
        if name.startswith("core/"):
            check_pure(path, name, lines)
        check_text(path, lines)
        identifiers.update(re.findall(r"\w+", "".join(lines)))
        if file in names:
            say(path, 1, f"the name is used by {names[file]} too")
        names[file] = name

# A folder that can be read at a glance; the store's backends and base are flat on purpose.
FILES_MAX = 32
FLAT = {"base", "store/sqlite", "store/postgres"}
for folder, _, files in sorted(os.walk(source)):
    name = os.path.relpath(folder, source)
    count = sum(file.endswith((".c", ".h")) for file in files)
    if count > FILES_MAX and name not in FLAT:
        say(folder, 1, f"{count} files: more than {FILES_MAX}")

# Unit tests lie where the module they test lies.
unit = os.path.join(root, "tests", "unit")
for folder, _, files in sorted(os.walk(unit)):
    name = os.path.relpath(folder, unit)
    if any(file.endswith(".c") for file in files) and not os.path.isdir(os.path.join(source, name)):
        say(folder, 1, f"src/ has no {name}/")

# Both stores have the statements of the row layer.
with open(os.path.join(source, "store", "rows", "rows_statements.h"), encoding="utf-8") as handle:
    parts = re.split(r"#define ROWS_(\w+)_STATEMENTS\(X\)", handle.read())
statements = {part: re.findall(r"X\((\w+)\)", text.split("\n\n")[0])
              for part, text in zip(parts[1::2], parts[2::2])}
for store in ("sqlite", "postgres"):
    folder = os.path.join(source, "store", store, "sql")
    stated = set()
    for file in sorted(os.listdir(folder)):
        with open(os.path.join(folder, file), encoding="utf-8") as handle:
            text = handle.read()
        identifiers.update(re.findall(r"\w+", text))
        stated.update(re.findall(r"^-- name: (\w+)$", text, re.MULTILINE))
    for part, listed in statements.items():
        for statement in sorted(set(listed) - stated - {"X"}):
            if part != "SHARED" or store == "postgres":
                say(folder, 1, f"no statement {statement}, which the row layer has")

# What the maps of the tree mention is there: files, folders, tests, and what make can do.
FOLDERS = ("src", "tests", "tools", "docs", "dashboard/src", "include", "model", "examples", "deploy",
           "bench", "cmake", "reports")
places = set(os.listdir(root))
for start in FOLDERS:
    for folder, folders, files in os.walk(os.path.join(root, start)):
        folders[:] = [name for name in folders if name != "node_modules"]
        place = os.path.relpath(folder, root).replace(os.sep, "/")
        places.update([place], (f"{place}/{file}" for file in files))
tests = {os.path.splitext(os.path.basename(place))[0] for place in places}
with open(os.path.join(root, "Makefile"), encoding="utf-8") as handle:
    goals = set(re.findall(r"^([a-z-]+):", handle.read(), re.MULTILINE))


def is_there(mention):
    pattern = re.compile(r"(?:.*/)?" + re.escape(mention.rstrip("/")).replace(r"\*", "[^/]*"))
    return any(pattern.fullmatch(place) for place in places)


for document in ("ARCHITECTURE.md", "CONTRIBUTING.md"):
    path = os.path.join(root, document)
    with open(path, encoding="utf-8") as handle:
        for number, line in enumerate(handle, 1):
            for mention in re.findall(r"`(\w[\w*./-]*)`", line):
                is_place = "/" in mention or re.search(r"\w\.(?:[ch]|py|js|mjs|json|md)$", mention)
                is_test = re.fullmatch(r"\w+_test|test_\w+", mention)
                if is_place and not is_there(mention) or is_test and mention not in tests:
                    say(path, number, f"there is no {mention}")
                is_name = document == "ARCHITECTURE.md" and re.fullmatch(r"[a-z]+(?:_\w+)+", mention)
                if is_name and not is_test and mention not in identifiers:
                    say(path, number, f"no source has {mention}")
            for goal in re.findall(r"(?:`|^)make ([a-z-]+)", line):
                if goal not in goals:
                    say(path, number, f"make has no {goal}")

for store in ("sqlite", "postgres"):  # of two migrations with one number only one would be applied
    folder = os.path.join(root, "src", "store", store, "migrations")
    ups = sorted(name for name in os.listdir(folder) if name.endswith(".up.sql"))
    for before, name in zip(ups, ups[1:]):
        if name[:4] == before[:4]:
            say(os.path.join(folder, name), 1, f"has the number of {before}")
tidy_errors.check(root, say)
tidy_sizes.check(root, say)
tidy_words.check(root, say)
for finding in findings:
    print(finding)
print(f"{len(names)} files, {len(findings)} findings")
sys.exit(1 if findings else 0)
