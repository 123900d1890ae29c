#!/usr/bin/env python3
"""Fills the column 'tested in' of docs/requirements.md from the tests, in place. Running it again
changes nothing. Exits 1 when a test names a code that the page does not explain.

    python3 tools/requirements.py docs/requirements.md [--check]

--check writes nothing and exits 1 when the column is out of date.

A test names a code in a comment (A2, F-H5) or at the start of its name (a2_..., f_h5_...,
test_f_h5_...). A range ("F-A1 ... F-A17") counts for none of its codes: it says what a file is
about, not what it proves.
"""
import collections
import os
import re
import sys

SUFFIXES = (".c", ".h", ".py", ".sh")
FILES_MAX = 3

CODE = r"(?:F-[A-K]|[A-EV])[1-9][0-9]?"
ROW = re.compile(r"^\| (" + CODE + r") \|(.*)\|[^|]*\|$")
RANGE = re.compile(r"\b" + CODE + r"(?: ?(?:\.\.\.|…|–|-) ?| to )" + CODE + r"\b")
# Not the second half of F-A1, nor a byte in hexadecimal: %C3, \xC3, 0xC3.
WORD = re.compile(r"(?<![\w%\\-])" + CODE + r"(?![\w%])")
FAULT_IN_NAME = re.compile(r"(?<![A-Za-z0-9])[fF]_([a-kA-K][1-9][0-9]?)(?![A-Za-z0-9])")
TEST_NAME = re.compile(r"^(?:static void|\s*def test_?) ?(\w+)\(")
PLAIN_IN_NAME = re.compile(r"([a-ev][1-9][0-9]?)_")


def codes_in_line(line):
    found = WORD.findall(RANGE.sub("", line))
    found += ["F-" + code.upper() for code in FAULT_IN_NAME.findall(line)]
    name = TEST_NAME.match(line)
    rest = name.group(1) if name else ""
    while match := PLAIN_IN_NAME.match(rest):
        found.append(match.group(1).upper())
        rest = rest[match.end():]
    return found


def test_files(folder):
    for path, _, names in os.walk(folder):
        for name in names:
            if name.endswith(SUFFIXES):
                yield os.path.join(path, name)


def count_codes(folder):
    """How often each file names each code: {code: {path: count}}."""
    counts = collections.defaultdict(collections.Counter)
    for path in test_files(folder):
        with open(path, encoding="utf-8", errors="replace") as handle:
            for line in handle:
                for code in codes_in_line(line):
                    counts[code][path] += 1
    return counts


def cell(paths):
    """Those that name the code most often come first, tests before what they share."""
    if not paths:
        return "—"
    stems = {path: os.path.splitext(os.path.basename(path))[0] for path in paths}
    order = sorted(paths, key=lambda path: ("test" not in stems[path], -paths[path], path))
    text = ", ".join(f"`{stems[path]}`" for path in order[:FILES_MAX])
    more = len(order) - FILES_MAX
    return f"{text} and {more} more" if more > 0 else text


def main():
    check = "--check" in sys.argv[1:]
    pages = [argument for argument in sys.argv[1:] if argument != "--check"]
    if len(pages) != 1:
        sys.exit("usage: python3 tools/requirements.py docs/requirements.md [--check]")
    with open(pages[0], encoding="utf-8") as handle:
        before = handle.read()
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    counts = count_codes(os.path.join(root, "tests"))
    lines, known = [], []
    for line in before.splitlines():
        row = ROW.match(line)
        if row:
            known.append(row.group(1))
            line = f"| {row.group(1)} |{row.group(2)}| {cell(counts.get(row.group(1)))} |"
        lines.append(line)
    after = "\n".join(lines) + "\n"

    unknown = sorted(set(counts) - set(known))
    for code in unknown:
        print(f"{code} is not explained in {pages[0]}, but named in {', '.join(counts[code])}")
    tested = sum(1 for code in known if code in counts)
    print(f"{len(known)} codes, {tested} named by tests, "
          f"{'unchanged' if after == before else 'out of date' if check else 'written'}")
    if after != before and not check:
        with open(pages[0], "w", encoding="utf-8") as handle:
            handle.write(after)
    sys.exit(1 if unknown or (check and after != before) else 0)


if __name__ == "__main__":
    main()
