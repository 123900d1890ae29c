"""Error sentences: they begin in lower case (or with a name) and have no full stop, because other
sentences are put around them. tidy.py calls `check`."""
import os
import re

CALL = re.compile(r"\berr_set(?:_field)?\(")
TEXT = re.compile(r'"((?:\\.|[^"\\])*)"')
# Words that are written with a capital everywhere.
NAMES = ("PostgreSQL", "SQLite", "Perdura", "OpenSSL", "Content-Length", "If-Match")


def arguments(code, at):
    """What stands between the parenthesis that opens before `at` and the one that closes it."""
    depth, begin = 1, at
    for match in re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])+\'|[()]').finditer(code, at):
        depth += {"(": 1, ")": -1}.get(match.group(), 0)
        if depth == 0:
            return code[begin:match.start()]
    return code[begin:]


def is_wrong(given):
    """Whether a text in the arguments begins or ends like a sentence of its own."""
    texts = [match for match in TEXT.finditer(given) if " " in match.group(1)]
    if not texts:
        return False
    first = texts[0].group(1)
    for text in texts:
        goes_on = re.match(r'\s*(?:"|STR_FMT|PRI)', given[text.end():])
        if not goes_on and re.search(r"[^.]\.$", text.group(1)):
            return True
    joined = re.search(r'(?:"|STR_FMT)\s*$', given[:texts[0].start()])
    return bool(re.match(r"[A-Z][a-z]*[ ,]", first)) and not first.startswith(NAMES) and not joined


def check(root, say):
    """Calls say(path, line, text) for every error sentence of another form."""
    for folder, _, files in sorted(os.walk(os.path.join(root, "src"))):
        for file in sorted(files):
            if not file.endswith((".c", ".h")):
                continue
            path = os.path.join(folder, file)
            with open(path, encoding="utf-8") as handle:
                code = handle.read()
            for match in CALL.finditer(code):
                if is_wrong(arguments(code, match.end())):
                    say(path, code.count("\n", 0, match.start()) + 1,
                        "an error sentence begins in lower case and has no full stop")
