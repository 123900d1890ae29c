#!/usr/bin/env python3
"""`make calendar-proof`: cron_next against brute force in every zone of the system over 2000 to 2100
(proof.c), to the second around every change of some (proof_seconds.c), the calendar against those of
others and recurrences against brute force (oracles.py), and how long cron_next takes
(bench/cron_next.c). Writes docs/calendar-proof.md.

    python3 tests/calendar/proof.py [--build build] [--jobs 2] [--fresh] [--report-only]

About 25 minutes of two cores that have nothing else to do. It can be interrupted at any time and
continues where it stopped: each zone that is done is a line of reports/calendar-proof.jsonl, with a
key made of the zone's file and of the sources, so that a change of either runs it again; lines of
earlier sources are dropped when it starts. --fresh starts over. Exits 1 when there is a mismatch.
cron-parser is fetched with npm into the build folder where that is possible."""
import argparse
import datetime
import glob
import hashlib
import json
import os
import queue
import re
import struct
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
import oracles  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(oracles.HERE))
LEDGER = os.path.join(ROOT, "reports", "calendar-proof.jsonl")
PAGE = os.path.join(ROOT, "docs", "calendar-proof.md")
YEARS = (2000, 2100)
ZONES_FOLDER = os.environ.get("TZDIR") or "/usr/share/zoneinfo"
# Second by second: an hour, half an hour, two hours, midnight, a day left out, Ramadan, negative
# daylight saving, rules that changed, and one that never changes.
SECONDS_ZONES = ("America/New_York", "Europe/Paris", "Europe/Dublin", "Australia/Lord_Howe",
                 "Pacific/Apia", "Africa/Cairo", "Africa/Casablanca", "Antarctica/Troll",
                 "America/Sao_Paulo", "Asia/Beirut", "America/Havana", "Asia/Tehran",
                 "America/Santiago", "Asia/Gaza", "Pacific/Easter", "America/St_Johns",
                 "Europe/Moscow", "Asia/Pyongyang", "America/Caracas", "Asia/Kathmandu",
                 "Pacific/Chatham", "Atlantic/Azores", "America/Godthab", "Pacific/Kiritimati")
CRON_PARSER = "cron-parser@5.10.4"


# Of src/calendar: what an expression's instants do not depend on.
OTHER_SOURCES = re.compile(r"(rrule|recurrence|window|words).*|.*_explain")


def sources_hash():
    total = hashlib.sha256()
    for pattern in ("src/calendar/*.[ch]", "tests/calendar/*.[ch]"):
        for path in sorted(glob.glob(os.path.join(ROOT, pattern))):
            if OTHER_SOURCES.fullmatch(os.path.basename(path)[:-2]):
                continue
            with open(path, "rb") as handle:
                total.update(handle.read())
    return total.hexdigest()


def different_zones(names):
    """One name per file content, and how many names share it: {key: (name, names_count)}."""
    sources = sources_hash()
    found = {}
    for name in names:
        with open(os.path.join(ZONES_FOLDER, name), "rb") as handle:
            key = hashlib.sha256(handle.read() + sources.encode()).hexdigest()[:16]
        first, count = found.get(key, (name, 0))
        found[key] = (first, count + 1)
    return found


def seconds_key(name):
    with open(os.path.join(ZONES_FOLDER, name), "rb") as handle:
        data = handle.read() + sources_hash().encode() + b"seconds"
    return hashlib.sha256(data).hexdigest()[:16]


def behaviour(name):
    """What a zone does from 2000 on: its changes and its rule without names. Zones that do the same
    are compared too, but later: an interrupted run has seen as much as possible."""
    with open(os.path.join(ZONES_FOLDER, name), "rb") as handle:
        data = handle.read()
    at, bytes_each = 0, 4
    for _ in range(2 if data[4] else 1):
        utc, standard, leap, times, types, chars = struct.unpack(">6I", data[at + 20:at + 44])
        start, each = at + 44, bytes_each
        at = start + times * (each + 1) + types * 6 + chars + leap * (each + 4) + standard + utc
        bytes_each = 8
    instants = struct.unpack(f">{times}{'q' if each == 8 else 'i'}", data[start:start + times * each])
    start += times * each
    kinds = data[start:start + times]
    offsets = [struct.unpack(">i", data[start + times + 6 * i:start + times + 6 * i + 4])[0]
               for i in range(types)]
    seen = [offsets[0]]
    for instant, kind in zip(instants, kinds):
        if instant < 941000000:  # in October 1999
            seen = [offsets[kind]]
        else:
            seen.append((instant, offsets[kind]))
    return (tuple(seen), re.sub(rb"<[^>]*>|[A-Za-z]{3,}", b"", data[at:]))


def in_order(zones):
    """Those that behave like none before come first."""
    seen, first, later = set(), [], []
    for key, (name, _) in sorted(zones.items(), key=lambda item: item[1]):
        what = behaviour(name)
        (later if what in seen else first).append((key, name))
        seen.add(what)
    return first, later


def read_ledger(path):
    try:
        with open(path, encoding="utf-8") as handle:
            return [json.loads(line) for line in handle if line.strip()]
    except OSError:
        return []


def drop_old_lines(path, keys):
    """What other sources or other files of zones gave says nothing about these."""
    lines = read_ledger(path)
    kept = [line for line in lines if line["key"] in keys]
    if len(kept) < len(lines):
        with open(path, "w", encoding="utf-8") as handle:
            handle.writelines(json.dumps(line) + "\n" for line in kept)


class Run:
    """The zones that are left, worked off by a few threads that each run a C program."""

    def __init__(self, build, jobs, ledger_path):
        self.build, self.jobs, self.ledger_path = build, jobs, ledger_path
        self.todo = queue.Queue()
        self.lock = threading.Lock()
        self.done = 0
        self.failed = []
        self.processes = set()
        self.stopping = False

    def one(self, program, key, name):
        process = subprocess.Popen([os.path.join(self.build, program), "--from", str(YEARS[0]), "--until",
                                    str(YEARS[1]), name], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        with self.lock:
            self.processes.add(process)
        out, errors = process.communicate()
        with self.lock:
            self.processes.discard(process)
            self.done += 1
            if self.stopping:
                return
            try:
                line = dict(json.loads(out), key=key)
            except ValueError:
                line = {"zone": name, "failed": errors.strip()[-300:]}
            if "failed" in line or line["mismatches"]:
                self.failed.append(name)
                print(errors, file=sys.stderr)
            if "failed" not in line:
                with open(self.ledger_path, "a", encoding="utf-8") as handle:
                    handle.write(json.dumps(line) + "\n")
            compared = line.get("compared", line.get("seconds", 0))
            print(f"{self.done}/{self.total} {name}: {compared:,} compared", flush=True)

    def work(self):
        while not self.stopping:
            try:
                item = self.todo.get_nowait()
            except queue.Empty:
                return
            self.one(*item)

    def all(self, zones):
        for item in zones:
            self.todo.put(item)
        self.total = self.todo.qsize()
        threads = [threading.Thread(target=self.work) for _ in range(self.jobs)]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except KeyboardInterrupt:
            self.stopping = True
            with self.lock:
                for process in self.processes:
                    process.kill()
            for thread in threads:
                thread.join()
            print("stopped; run it again to continue")
            sys.exit(130)


def fetch_cron_parser(folder):
    if os.path.isdir(os.path.join(folder, "node_modules", "cron-parser")):
        return
    try:
        subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", folder,
                        CRON_PARSER], check=False, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=120)
    except (OSError, subprocess.TimeoutExpired):
        pass


def ask_oracles(build, names):
    folder = os.path.join(build, "calendar-oracles")
    os.makedirs(folder, exist_ok=True)
    fetch_cron_parser(folder)
    found = []
    probe = oracles.Probe(os.path.join(build, "calendar_probe"))
    for compare in (lambda: oracles.zones(probe, names, 200),
                    lambda: oracles.rules_in_zones(probe, 400),
                    lambda: oracles.rules(probe, 3000),
                    lambda: oracles.iso_weeks(probe),
                    lambda: oracles.croniter_expressions(probe, 3000),
                    lambda: oracles.cron_parser(probe, folder, 3000)):
        found.append(compare())
        line = found[-1]
        print(f"{line['oracle']}: " + (line.get("skipped") or f"{line['compared']:,} compared, "
                                       f"{len(line['mismatches'])} mismatches"), flush=True)
        for text in line.get("mismatches", [])[:oracles.SHOWN]:
            print("  " + text)
    probe.close()
    return found


def measure(build):
    program = os.path.join(build, "cron_next")
    if not os.path.exists(program):
        return None
    run = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=False)
    return json.loads(run.stdout) if run.returncode in (0, 1) else None


def tzdata_version():
    try:
        with open(os.path.join(ZONES_FOLDER, "tzdata.zi"), encoding="ascii") as handle:
            return handle.readline().split()[-1]
    except (OSError, IndexError):
        return "unknown"


PAGE_TEXT = """# Proof of the calendar

Written by `make calendar-proof`, {date}, tzdata {tzdata}.

## Against brute force

{state}Every expression in every zone of the system over {first} to {last}. The brute force shares no code with
`src/calendar`: expressions are matched minute by minute by a matcher that reads the text again for every value
(`tests/calendar/naive_cron.c`), a zone is what the C library says every hour, to the second where it changes, and the
instants follow from both by the words of requirement D3 (`tests/calendar/proof.c`).

| what | figure |
|---|---|
| zones: names | {names} |
| zones: different files compared | {zones} of {zones_all} |
| zones that differ since 2000, compared | {kinds} of {kinds_all} |
| changes of these zones | {changes:,} |
| expressions | {expressions} |
| expression · zone · years | {product:,} |
| instants compared | {compared:,} |
| calls of `cron_next` | {calls:,} |
| **mismatches** | **{mismatches}** |

Expressions that fire more than 24 times a day, and the policies `skip` and `both`, are compared within two days of
every change of the zone and on every 61st day; all others without a hole.

To the second: {seconds_expressions} expressions with six fields and every policy, within four hours of
{seconds_changes:,} changes of {seconds_zones} of {seconds_zones_all} zones chosen for their odd clocks, against a walk
from second to second (`tests/calendar/proof_seconds.c`): {seconds:,} seconds walked, {seconds_calls:,} calls,
**{seconds_mismatches} mismatches**.

## Against other calendars

| calendar | compared | mismatches | what |
|---|---|---|---|
{oracles}

Where they mean something else, we do not compare:

- **croniter** 1.3.5 never gets past a gap, so UTC only, and takes `0-6` for `*`. croniter and cron-parser take a
  step in a day field (`*/2`) for a restriction; Debian's cron does not, and neither do we.
- **cron-parser** fires at 03:30 for a 02:30 that does not exist, we at 03:00 (Debian's rule), and it fires nothing on a
  day whose midnight does not exist (Cairo). It refuses lists that name a value twice and knows no `W` and no `L-3`.
- **dateutil** cuts the first week off at DTSTART before BYSETPOS counts, is wrong about weeks 52 and 53 and those
  counted from the end where a year begins (see ISO weeks), gives all seven days of a BYWEEKNO without BYDAY (we: that
  of DTSTART), reads an UNTIL that is a date as its midnight (we: the whole day), and knows no zones (we: D3).

## Time

{time}
"""

ORACLE_WHAT = {
    "brute force of recurrences": "made-up recurrences in twelve zones that begin before clocks are "
                                  "changed, all policies (`tests/calendar/naive_rrule.py`)",
    "zoneinfo (Python)": "offsets at random instants of 1900 to 2200 in every zone, and back",
    "dateutil (Python)": "instants of made-up recurrences, UTC",
    "ISO weeks (Python)": "BYWEEKNO at both ends of the year, 1997 to 2060",
    "croniter (Python)": "instants of made-up expressions, UTC",
    "cron-parser (npm)": "instants of made-up expressions, UTC with `L`, `#`, `5L`, and five zones",
}


def oracle_rows(found):
    rows = []
    for line in found:
        what = ORACLE_WHAT.get(line["oracle"], "")
        if "skipped" in line:
            rows.append(f"| {line['oracle']} | – | – | {line['skipped']} |")
        else:
            rows.append(f"| {line['oracle']} | {line['compared']:,} | {len(line['mismatches'])} "
                        f"| {what} |")
    return "\n".join(rows)


def time_text(figures):
    if not figures:
        return "*Not measured: build `cron_next` first.*"
    worst = max(figures["expressions"], key=lambda line: line["max_ns"])
    return (f"`bench/cron_next.c`: typical **{figures['typical_ns']:.0f} ns** (the "
            f"slowest median of everyday expressions), worst **{worst['max_ns'] / 1000:.1f} µs** "
            f"(`{worst['cron']}`, {worst['dst']}, {worst['zone']}). Goals: below 1 µs and 20 µs.")


def write_page(zones, first, names, others, figures):
    lines = {line["key"]: line for line in read_ledger(LEDGER)}
    kinds = sum(1 for key, _ in first if key in lines)
    mine = [lines[key] for key in zones if key in lines]
    total = {part: sum(line[part] for line in mine)
             for part in ("changes", "compared", "calls", "mismatches")}
    expressions = max((line["expressions"] for line in mine), default=0)
    years = YEARS[1] - YEARS[0] + 1
    walks = [lines[key] for key in map(seconds_key, SECONDS_ZONES) if key in lines]
    state = "" if len(mine) == len(zones) else (
        f"**Not finished: {len(mine)} of {len(zones)} files of zones so far.** Run it again to go "
        f"on.\n\n")
    with open(PAGE, "w", encoding="utf-8") as handle:
        handle.write(PAGE_TEXT.format(
            date=datetime.date.today(), tzdata=tzdata_version(), first=YEARS[0], last=YEARS[1],
            names=len(names), zones=len(mine), zones_all=len(zones), expressions=expressions,
            kinds=kinds, kinds_all=len(first), state=state,
            product=expressions * len(mine) * years, oracles=oracle_rows(others),
            seconds_zones=len(walks), seconds_zones_all=len(SECONDS_ZONES),
            seconds_expressions=max((line["expressions"] for line in walks), default=0),
            seconds_changes=sum(line["changes"] for line in walks),
            seconds=sum(line["seconds"] for line in walks),
            seconds_calls=sum(line["calls"] for line in walks),
            seconds_mismatches=sum(line["mismatches"] for line in walks),
            time=time_text(figures), **total))
    print(f"{total['compared']:,} instants compared, {total['mismatches']} mismatches; {PAGE}")
    return (total["mismatches"] + len(zones) - len(mine) + len(SECONDS_ZONES) - len(walks) +
            sum(line["mismatches"] for line in walks))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--report-only", action="store_true")
    options = parser.parse_args()
    names = oracles.zone_names(ZONES_FOLDER)
    zones = different_zones(names)
    if options.fresh and os.path.exists(LEDGER):
        os.remove(LEDGER)
    walks = [("calendar_proof_seconds", seconds_key(name), name) for name in SECONDS_ZONES]
    first, later = in_order(zones)
    todo = walks + [("calendar_proof", *zone) for zone in first + later]
    if not options.report_only:
        drop_old_lines(LEDGER, {key for _, key, _ in todo})
    done = {line["key"] for line in read_ledger(LEDGER)}
    left = [item for item in todo if item[1] not in done]
    print(f"{len(names)} names of zones, {len(zones)} different files, {len(first)} that differ "
          f"since 2000; {len(left)} of {len(todo)} left to compare", flush=True)
    run = Run(options.build, options.jobs, LEDGER)
    os.makedirs(os.path.dirname(LEDGER), exist_ok=True)
    if not options.report_only:
        run.all(left)
    others = ask_oracles(options.build, names)
    bad = write_page(zones, first, names, others, measure(options.build))
    bad += sum(len(line.get("mismatches", [])) for line in others)
    sys.exit(1 if bad or run.failed else 0)


if __name__ == "__main__":
    main()
