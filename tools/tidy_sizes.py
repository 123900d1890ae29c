"""Sizes: lines of a file, functions of a header, fields of a struct, words of a document. A part that
grows beyond them has a second noun in it. tidy.py calls `check`."""
import os
import re

LINES_MAX = {"src": 600, "tests": 700}  # of a file in C
FUNCTIONS_MAX = 40  # declared or defined in one internal header (src, not include)
FIELDS_MAX = 30     # of one struct; those of a named struct inside it count for that one
WORDS_MAX = {"README.md": 2000, "ARCHITECTURE.md": 3300}

# What is larger today, and how large it may be. The list only shrinks: an entry that is no longer
# needed is a finding.
EXCEPTIONS = {
    "catalog_store.h: catalog_verbs": 55,
    "store.h: store_verbs": 93,
}


def code_of(text):
    """C without comments, texts, directives and values of enums; line breaks stay."""
    text = re.sub(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'""",
                  lambda match: re.sub(r"[^\n]", " ", match.group()), text, flags=re.DOTALL)
    text = re.sub(r"\benum\b\s*\w*\s*\{[^{}]*\}",
                  lambda match: "enum" + re.sub(r"[^\n]", " ", match.group()[4:]), text)
    return re.sub(r"(?m)^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda match: "\n" * match.group().count("\n"),
                  text)


def closing(code, at):
    """Where the brace that opens at `at` closes."""
    depth = 0
    for match in re.compile(r"[{}]").finditer(code, at):
        depth += 1 if match.group() == "{" else -1
        if depth == 0:
            return match.start()
    return len(code)


def statements(code):
    """(start, text, body) of what stands at the outer level; body is None or the place of the
    braces that belong to it."""
    at = start = 0
    while at < len(code):
        if code[at] == ";":
            yield start, code[start:at], None
            start = at + 1
        elif code[at] == "{":
            end = closing(code, at)
            head = code[start:at]
            after = re.compile(r"\s*").match(code, end + 1).end()
            if re.search(r"\)\s*$", head) or after < len(code) and code[after] not in ";=,_*" \
                    and not code[after].isalpha():
                yield start, head, (at, end)  # a function, or a block without a semicolon
                start = end + 1
            elif re.search(r"\b(?:struct|union)\b[^=()]*$", head):
                stop = code.find(";", end)
                yield start, head + " " + code[end + 1:stop], (at, end)
                start = (stop if stop >= 0 else len(code)) + 1
                end = start - 1
            at = end
        at += 1


def functions(code):
    """How many functions a header declares or defines."""
    count = 0
    for _, text, _ in statements(code):
        text = text.strip()
        if re.match(r"typedef\b|static\s+const\b[^(]*=", text) or "=" in text.split("(")[0]:
            continue
        count += bool(re.match(r"(?:[\w*]+\s+|\*)+\**\w+\s*\(", text))
    return count


def fields(code, begin, end):
    """How many fields the struct between two braces has."""
    count = 0
    for _, text, body in statements(code[begin + 1:end]):
        names = re.sub(r"\[[^\]]*\]|:\s*\w+", "", text)
        while re.search(r"\([^()]*\)", names):
            names = re.sub(r"\([^()]*\)", " f ", names)
        if body and not re.search(r"\w", re.sub(r"\b(?:struct|union|const|_Atomic)\b", "", names)):
            count += fields(code, begin + 1 + body[0], begin + 1 + body[1])  # without a name
        elif names.strip():
            count += names.count(",") + 1
    return count


def structs(code):
    """(name, place, fields) of every struct with a name."""
    for match in re.finditer(r"\bstruct\s+(\w+)\s*\{", code):
        brace = match.end() - 1
        yield match.group(1), match.start(), fields(code, brace, closing(code, brace))


def check(root, say):
    """Calls say(path, line, text) for everything that is too large."""
    needed = set()

    def judge(path, line, key, count, limit, what):
        allowed = EXCEPTIONS.get(key, limit)
        if count > limit:
            needed.add(key)
        if count > allowed:
            say(path, line, f"{count} {what}: more than {allowed}")

    for document, limit in WORDS_MAX.items():
        path = os.path.join(root, document)
        with open(path, encoding="utf-8") as handle:
            judge(path, 1, document, len(handle.read().split()), limit, "words")
    for folder, _, files in sorted(os.walk(os.path.join(root, "src"))):
        for file in sorted(files):
            if not file.endswith((".c", ".h")):
                continue
            path = os.path.join(folder, file)
            with open(path, encoding="utf-8") as handle:
                text = handle.read()
            judge(path, 1, file, text.count("\n"), LINES_MAX["src"], "lines")
            code = code_of(text)
            if file.endswith(".h"):
                judge(path, 1, file, functions(code), FUNCTIONS_MAX, "functions")
            for name, at, count in structs(code):
                judge(path, code.count("\n", 0, at) + 1, f"{file}: {name}", count, FIELDS_MAX,
                      f"fields in struct {name}")
    for folder, _, files in sorted(os.walk(os.path.join(root, "tests"))):
        for file in sorted(files):
            path = os.path.join(folder, file)
            if file.endswith((".c", ".h")):
                with open(path, encoding="utf-8") as handle:
                    judge(path, 1, file, handle.read().count("\n"), LINES_MAX["tests"], "lines")
    for key in sorted(set(EXCEPTIONS) - needed):
        say(os.path.join(root, "tools", "tidy_sizes.py"), 1, f"the exception '{key}' is not needed")
