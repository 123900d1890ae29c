"""Writes docs/faults.md of the ledger and of nothing else; `make faults` calls it at its end, and
`python3 tests/campaign/faults.py --report-only` alone."""
import datetime
import os
import platform
import sqlite3
import subprocess

PROMISES = (
    "A task's handler runs at least once; a task's state changes exactly once; a schedule makes at "
    "most one task per planned instant, and exactly one where its misfire policy says so; what was "
    "acknowledged is never lost.")

INVARIANTS = """| | |
|---|---|
| V1 | what was acknowledged is stored, once per idempotency key |
| V2 | a task ends once; an end never changes |
| V3 | nothing stays running without a live worker, nothing is stuck |
| V5 | lease tokens never repeat or go back |
| V6 | a dependent or parent is released once, when all it waits for has ended |
| V7 | every event of a task is in its history, in order |"""

# What no part can say of itself, since no part tests it.
NEVER_TESTED = (
    "real power loss: the shim drops and reorders what was not synced, disks may do worse",
    "suspend and resume of the machine (F-B7): only stopped processes, which look the same to the "
    "engine's clock",
    "network file systems and network block devices: refused at the start (F-D11), not endured",
    "other file systems than the one of this machine, and other kernels",
    "brokers and caches (table G): not built yet",
    "machines with many cores: races that need them may be missing here",
)


def section(part, name, ledger):
    """What a part offers; a part that cannot tell says so instead of breaking the report."""
    function = getattr(part, name, None)
    if function is None:
        return None
    try:
        return function(ledger)
    except Exception as error:
        if name != "report":
            return None
        return f"## {part.NAME}\n\nNo report: {type(error).__name__}: {error}.\n"


def machine():
    model, memory = "unknown processor", 0
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    with open("/proc/meminfo") as file:
        memory = int(file.readline().split()[1]) / 2 ** 20
    return (f"{os.cpu_count()} cores ({model}), {memory:.0f} GiB, {platform.system()} "
            f"{platform.release()}, file system {file_system('/tmp')}")


def file_system(path):
    done = subprocess.run(["findmnt", "-n", "-o", "FSTYPE", "--target", path], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def rows_of(ledger, parts):
    return [row for part in parts for row in ledger.rows(part.NAME)]


def head(ledger, parts):
    rows = rows_of(ledger, parts)
    days = sorted({row["date"] for row in rows})
    commits = []
    for row in rows:
        if row["commit"] not in commits:
            commits.append(row["commit"])
    span = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}" if days else "never"
    today = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    return [
        "# Faults", "",
        f"Written {today} by `make faults` from its ledger ({len(rows):,} lines, run {span}); "
        "started again, it continues where it stopped. The codes are explained in "
        "[requirements.md](requirements.md).", "",
        f"**What is promised.** {PROMISES}", "",
        f"Machine: {machine()}; SQLite {sqlite3.sqlite_version}. Commits: "
        f"{', '.join(commits[-8:]) or 'none'} (+ marks changes that were not committed).", ""]


def table(ledger, parts):
    lines = ["| faults | what was done | result |", "|---|---|---|"]
    for part in parts:
        for faults, done, result in section(part, "summary", ledger) or ():
            lines.append(f"| {faults} | {done} | {result} |")
    return lines + [""]


def findings(ledger, parts):
    """Everything that was ever found wrong and is in the ledger, newest last."""
    lines = []
    for part in parts:
        for row in ledger.rows(part.NAME):
            for text in row.get("findings", ()):
                words = " ".join(str(text).split())
                lines.append(f"- {part.NAME}, {row['commit']}: {words[:300]}")
    if not lines:
        return ["## Findings", "", "None.", ""]
    return ["## Findings", "", *lines[-30:], ""]


def not_tested(ledger, parts):
    lines = ["## What was not tested", ""]
    for part in parts:
        lines += [f"- {text}" for text in section(part, "not_tested", ledger) or ()]
        if not ledger.rows(part.NAME):
            lines.append(f"- part `{part.NAME}` of the campaign: no run is in the ledger")
    return lines + [f"- {text}" for text in NEVER_TESTED] + [""]


def found_by_people():
    """The items of reports/found.md, which people write; an item may continue on indented lines."""
    path = os.path.join(os.path.dirname(__file__), "..", "..", "reports", "found.md")
    items = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("- "):
                items.append(line.rstrip())
            elif items and line.strip():
                items[-1] += " " + line.strip()
    return items


def settled(ledger, parts):
    """Findings of earlier runs and of people that are none any more, and why."""
    told = [f"- {row['part']} at {row['commit']}, {word}: {row[key]}"
            for row in rows_of(ledger, parts)
            for key, word in (("mended", "fixed"), ("explained", "explained")) if row.get(key)]
    told += found_by_people()
    return ["## Found on the way", "", *told, ""] if told else []


def write(ledger, parts):
    """The whole page, markdown: first the overview, then the details of each part."""
    lines = head(ledger, parts) + table(ledger, parts)
    lines += ["After every fault these must hold:", "", INVARIANTS, ""]
    lines += findings(ledger, parts) + settled(ledger, parts) + not_tested(ledger, parts)
    lines += ["---", "", "The rest of this page has the details of each part.",
              ""]
    for part in parts:
        text = section(part, "report", ledger)
        if text:
            lines += [text.rstrip(), ""]
    return "\n".join(lines).rstrip() + "\n"
