"""Plain words: finds words that hide who acts, or that a native technical writer would not use, in
what people read: documents, comments, and texts in programs. tidy.py calls `check`."""
import io
import json
import os
import re
import tokenize

# What to avoid, and what to write instead. At most one line break may stand between two words.
WORDS = (
    (r"whoever", "name the actor"),
    (r"nobody|somebody|everybody|anybody", "name the actor: no worker, a client, every node"),
    (r"himself|herself", "name the actor"),
    (r"(?:is|are|was|were|be|been|being)(?: (?:not|never|only|also|then))? told",
     "say who learns it, or who says it"),
    (r"(?:go|goes|went|gone|going) on", "continue, keep, resume"),
    (r"anew", "again, start over"),
    (r"dear(?:er|est)?", "expensive"),
    (r"mend(?:s|ed|ing)?", "fix"),
    (r"so below", "here and below"),
    (r"in vain", "say what did not happen"),
    (r"(?:is|are) to run", "will run, scheduled to run"),
    (r"fires? no more", "stops firing, is paused"),
    (r"(?:is|are) (?:being )?\w+ed since", "has been ... since"),
)
ROOTS = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile",
         "CMakeLists.txt", "bench", "cmake", "dashboard", "deploy", "docs", "examples", "include",
         "model", "src", "tests", "tools")
WHOLE = (".md", ".mjs", ".js", ".ts", ".sql", ".sh", ".yml", ".yaml", ".cmake", ".pml", ".html",
         ".service", "Makefile", "CMakeLists.txt", "openapi.json", "texts/en.json")
BLANK = r"[ \t]*(?:[ \t]|\n)[ \t]*"
SKIPPED = {"node_modules", "corpus", "__pycache__"}

# Names that look like words: the account, an example of what does not exist, a key of the ledger.
NAMES = re.compile(r"""(\\?["'`])(?:nobody|mended)\1|[/=]nobody\b|\bnobody-[\w-]+|\buser: nobody\b""")

# A migration never changes, because a store keeps its checksum: these are older than the list.
FROZEN = re.compile(r"src/store/(?:sqlite|postgres)/migrations/00(?:0\d|1[0-4])_")
THIS = "tools/tidy_words.py"


def blank(text):
    return re.sub(r"[^\n]", " ", text)


def c_prose(text):
    """Comments and strings of C; all else becomes blanks, so that places stay the same."""
    kept, last = [], 0
    for match in re.finditer(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'""", text,
                             re.DOTALL):
        kept += blank(text[last:match.start()]), match.group()
        last = match.end()
    return "".join(kept) + blank(text[last:])


def python_prose(text):
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    kept, last = [], 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING) or \
                tokenize.tok_name[token.type] == "FSTRING_MIDDLE":
            begin = starts[token.start[0] - 1] + token.start[1]
            end = starts[token.end[0] - 1] + token.end[1]
            kept += blank(text[last:begin]), text[begin:end]
            last = end
    return "".join(kept) + blank(text[last:])


def prose(name, text):
    if name.endswith((".c", ".h")):
        text = c_prose(text)
    elif name.endswith(".py"):
        text = python_prose(text)
    text = NAMES.sub(lambda match: " " * len(match.group()), text)
    return re.sub(r"(?m)^[ \t]*(?:\*|//|#+|--|>)|[\"`*]", lambda match: " " * len(match.group()), text)


def without_ledger(root, text):
    """docs/faults.md without what it quotes from the ledger, which stays as it was recorded."""
    with open(os.path.join(root, "reports", "faults.jsonl"), encoding="utf-8") as rows:
        for row in map(json.loads, rows):
            for key in ("what", "result", "mended", "explained"):
                quoted = row.get(key)
                if isinstance(quoted, str) and quoted:
                    text = text.replace(quoted, blank(quoted))
    return text


def sources(root):
    for start in ROOTS:
        path = os.path.join(root, start)
        if os.path.isfile(path):
            yield path
        for folder, folders, files in os.walk(path):
            folders[:] = sorted(name for name in folders if name not in SKIPPED)
            yield from (os.path.join(folder, file) for file in sorted(files))


def check(root, say):
    """Calls say(path, line, text) for every word to avoid."""
    pattern = re.compile(r"\b(?:%s)\b(?!-)" % "|".join(
        f"({words})" for words, _ in WORDS).replace(" ", BLANK))
    for path in sources(root):
        name = os.path.relpath(path, root).replace(os.sep, "/")
        if not name.endswith((".c", ".h", ".py") + WHOLE) or name == THIS or FROZEN.match(name):
            continue
        with open(path, encoding="utf-8") as handle:
            text = handle.read()
        text = prose(name, without_ledger(root, text) if name == "docs/faults.md" else text)
        for match in pattern.finditer(text.lower()):
            found = " ".join(text[match.start():match.end()].split())
            if found.isupper() or text[:match.start()].endswith("-"):
                continue  # a macro, or a part of a name
            better = WORDS[match.lastindex - 1][1]
            say(path, text.count("\n", 0, match.start()) + 1, f"'{found}': {better}")
