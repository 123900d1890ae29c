#!/usr/bin/env python3
"""Compares what users see of two builds: the OpenAPI document, the manual (every command, flag and
setting), completions, metrics, the schema of fresh stores of both kinds, the public header and what the
library exports. Prints a unified diff per part and exits 1 where any differs; then each difference is
either meant (and in CHANGELOG.md) or an accident.

    python3 tools/compare_surface.py BEFORE AFTER    two trees, each built with `make all`"""
import contextlib
import difflib
import json
import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "postgres"))
from server import Postgres  # noqa: E402

START_SECONDS_MAX = 60
# The whole schema in names and words, by PostgreSQL itself.
PG_DUMP = ("--schema-only", "--no-owner", "--no-privileges", "--schema=perdura", "--schema=public")


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr + (f"exit {done.returncode}\n" if done.returncode else "")


def commands_of(binary):
    """Every path of words that has a help of its own, from the completion's table."""
    paths = re.findall(r"'([a-z][a-z -]*)'(?=[|)])", run(binary, "completion", "bash"))
    return [()] + sorted({tuple(path.split()) for path in paths})


def helps(binary):
    return "".join(f"$ perdura {' '.join(path)} --help\n{run(binary, *path, '--help')}"
                   for path in commands_of(binary))


def sqlite_schema(path):
    with contextlib.closing(sqlite3.connect(path)) as db:
        return "".join(f"{kind} {name} on {table}\n{sql or ''}\n" for kind, name, table, sql in db.execute(
            "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"))


def postgres_schema(binary):
    with Postgres() as server:
        run(binary, "migrate", "up", "--store", server.url)
        text = run("pg_dump", *PG_DUMP, server.url)
    return "".join(line + "\n" for line in text.splitlines()
                   if not line.startswith(("\\restrict", "\\unrestrict", "--")))


@contextlib.contextmanager
def serving(binary, folder):
    """The address of a server on a fresh SQLite store."""
    with subprocess.Popen([binary, "serve", "--listen", "127.0.0.1:0", "--store", f"{folder}/store.db"],
                          cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            yield re.search(r"http://\S+", process.stdout.readline()).group(0)
        finally:
            process.terminate()
            process.wait(START_SECONDS_MAX)


def fetch(url):
    with urllib.request.urlopen(url, timeout=START_SECONDS_MAX) as reply:
        return reply.read().decode()


def metrics(text):
    """Names, kinds and labels; the values are of this minute."""
    rows = (line if line.startswith("#") else re.sub(r' \S+$|="[^"]*"', "", line) for line in text.splitlines())
    return "".join(f"{row}\n" for row in sorted(set(rows)))


def surface(tree):
    """{part: text}"""
    build = pathlib.Path(tree).resolve() / "build"
    binary = build / "perdura"
    with tempfile.TemporaryDirectory() as folder:
        with serving(binary, folder) as url:
            parts = {"OpenAPI": json.dumps(json.loads(fetch(url + "/openapi.json")), indent=1) + "\n",
                     "metrics": metrics(fetch(url + "/metrics"))}
        parts["SQLite"] = sqlite_schema(f"{folder}/store.db")
    for shell in ("bash", "zsh", "fish"):
        parts[f"completion {shell}"] = run(binary, "completion", shell)
    exported = run("nm", "-D", "--defined-only", build / "libperdura.so")
    return {**parts, "help": helps(binary), "manual": run(binary, "man"), "PostgreSQL": postgres_schema(binary),
            "header": (build.parent / "include" / "perdura.h").read_text(),
            "library": "".join(line.split()[-1] + "\n" for line in exported.splitlines())}


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    before, after = map(surface, sys.argv[1:])
    differs = 0
    for part, text in before.items():
        lines = list(difflib.unified_diff(text.splitlines(True), after[part].splitlines(True),
                                          f"before: {part}", f"after: {part}"))
        sys.stdout.writelines(lines)
        print(f"{part}: {len(text.splitlines())} lines, {'differs' if lines else 'the same'}", file=sys.stderr)
        differs |= bool(lines)
    sys.exit(int(differs))


if __name__ == "__main__":
    main()
