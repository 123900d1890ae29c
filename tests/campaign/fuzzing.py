"""Part of the fault campaign: every parser of outside bytes under libFuzzer with ASan and UBSan,
half an hour each. Works in slices of five minutes, one process at a time, so that
it can be interrupted and continues where the ledger ends; when a target has its time, what reached
new code is boiled down into tests/fuzz/corpus/NAME, which `make test` replays.

    python3 tests/campaign/fuzzing.py [--minutes 30] [--targets json,http] [--ledger FILE]

The targets are built in build-fuzz, unless PERDURA_FUZZ_BUILD names a folder that has them."""
import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

import ledger as ledger_module

NAME = "fuzzing"
ROOT = ledger_module.ROOT
FUZZ = ROOT / "tests" / "fuzz"
MINUTES_GOAL = 30
SLICE_SECONDS = 300
# What libFuzzer calls a file it made itself; inputs written by hand have names and always stay.
MADE_NAME = re.compile(r"[0-9a-f]{40}$")
CORPUS_FILES_MAX = 300
CORPUS_BYTES_MAX = 300_000
FIRST = ("json", "http", "control", "config")  # the oldest parsers, and the most exposed


def targets():
    names = sorted(path.name[:-len("_fuzz.c")] for path in FUZZ.glob("*_fuzz.c"))
    return [n for n in FIRST if n in names] + [n for n in names if n not in FIRST]


def build():
    given = os.environ.get("PERDURA_FUZZ_BUILD")
    if given:
        return pathlib.Path(given)
    folder = ROOT / "build-fuzz"
    subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug",
                    "-DPERDURA_FUZZ=ON",
                    "-DPERDURA_SANITIZE=address,undefined,fuzzer-no-link"],
                   check=True, stdout=subprocess.DEVNULL, env=dict(os.environ, CC="clang"))
    programs = [f"{name}_fuzz" for name in targets()]
    subprocess.run(["ninja", "-C", folder, *programs], check=True, stdout=subprocess.DEVNULL)
    return folder


def seconds_done(ledger, target):
    """By the clock; on a busy machine the processor time, which the report shows too, is less."""
    return ledger.total(NAME, "seconds", target=target)


def options_of(target):
    dictionary = FUZZ / f"{target}.dict"
    return [f"-dict={dictionary}"] if dictionary.exists() else []


def save_artifacts(target, folder, kept):
    """Inputs that made the program fail become part of the corpus: `make test` replays them."""
    saved = []
    for path in sorted(folder.glob("*")):
        # slow-unit-* only says that an input took long; it fails nothing by itself
        if path.name.startswith(("crash-", "leak-", "timeout-", "oom-")):
            name = f"found_{path.name[:20]}"
            shutil.copy(path, kept / name)
            saved.append(name)
        path.unlink()
    return saved


def figures(text):
    """What libFuzzer printed: runs, edges, features, inputs kept."""
    runs = re.search(r"stat::number_of_executed_units: (\d+)", text)
    last = re.findall(r"cov: (\d+) ft: (\d+) corp: (\d+)/", text)
    edges, features, kept = last[-1] if last else (0, 0, 0)
    return {"runs": int(runs.group(1)) if runs else 0, "edges": int(edges),
            "features": int(features), "inputs": int(kept)}


def what_failed(text):
    found = re.search(r"(?m)^(SUMMARY: .*|.*runtime error: .*|.*assertion failed.*)$", text)
    return found.group(0)[:200] if found else "ended by itself; see the log"


def run_slice(ledger, target, folder, seconds):
    work = folder / "corpus" / target
    artifacts = folder / "artifacts" / target
    seeds = FUZZ / "corpus" / target
    for path in (work, artifacts, seeds):
        path.mkdir(parents=True, exist_ok=True)
    slices = len(ledger.rows(NAME, target=target))
    # Every second slice looks at compared values, too: slower, but it finds words and numbers.
    command = [folder / f"{target}_fuzz", f"-max_total_time={seconds}", f"-seed={slices + 1}",
               f"-use_value_profile={slices % 2}", "-timeout=20", "-rss_limit_mb=2048",
               "-print_final_stats=1", f"-artifact_prefix={artifacts}/", *options_of(target),
               work, seeds]
    environment = dict(os.environ, UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1")
    with open(folder / f"{target}.log", "w+", encoding="utf-8", errors="replace") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            raise
        process.returncode = code = os.waitstatus_to_exitcode(status)
        if code in (-signal.SIGTERM, -signal.SIGINT, -signal.SIGKILL):
            raise SystemExit(f"{target}: ended from outside; the slice does not count")
        log.seek(0)
        text = log.read()
    row = {"target": target, "seconds": seconds, "seed": slices + 1, **figures(text),
           "cpu_seconds": min(seconds, round(usage.ru_utime + usage.ru_stime))}
    row["corpus"] = len(list(work.iterdir()))
    row["findings"] = []
    saved = save_artifacts(target, artifacts, seeds)
    if code != 0:
        row["findings"].append(f"{target}: {what_failed(text)}, input {', '.join(saved) or 'none'}")
    return ledger.add(NAME, **row)


def minimise(target, folder):
    """Boils the corpus down: every input that reaches something the smaller ones do not, the
    smallest first, within the bounds of what is kept in the repository."""
    seeds = FUZZ / "corpus" / target
    with tempfile.TemporaryDirectory() as scratch:
        merged = pathlib.Path(scratch)
        named = [path for path in seeds.iterdir() if not MADE_NAME.match(path.name)]
        for path in named:
            shutil.copy(path, merged / path.name)
        subprocess.run([folder / f"{target}_fuzz", "-merge=1", "-timeout=20", merged, seeds,
                        folder / "corpus" / target], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        made = sorted((path for path in merged.iterdir() if MADE_NAME.match(path.name)),
                      key=lambda path: (path.stat().st_size, path.name))
        for path in list(seeds.iterdir()):
            if MADE_NAME.match(path.name):
                path.unlink()
        files, size = len(named), sum(path.stat().st_size for path in named)
        for path in made:
            if files >= CORPUS_FILES_MAX or size + path.stat().st_size > CORPUS_BYTES_MAX:
                break
            shutil.copy(path, seeds / path.name)
            files, size = files + 1, size + path.stat().st_size
    return files, size


def run_target(ledger, say, target, folder, goal_s):
    while seconds_done(ledger, target) < goal_s:
        row = run_slice(ledger, target, folder,
                        max(min(SLICE_SECONDS, goal_s - seconds_done(ledger, target)), 10))
        say(f"{target}: {seconds_done(ledger, target) // 60} of {goal_s // 60} min, "
            f"{row['runs']:,} runs, {row['edges']} edges, {row['features']} features, "
            f"{row['corpus']} inputs{', FOUND: ' + row['findings'][0] if row['findings'] else ''}")
        if row["findings"]:
            return False
    files, size = minimise(target, folder)
    say(f"{target}: {files} inputs of {size:,} bytes kept")
    return True


def run(ledger, say, minutes=MINUTES_GOAL, only=None):
    wanted = [name for name in only or targets() if seconds_done(ledger, name) < minutes * 60]
    if not wanted:
        return
    folder = build()
    for target in wanted:
        if not (folder / f"{target}_fuzz").exists():
            say(f"{target}: not built in {folder}, left out")
        elif not run_target(ledger, say, target, folder, minutes * 60):
            say(f"{target}: stopped; fix what was found, then run this again")


def sums(ledger, target):
    rows = ledger.rows(NAME, target=target)
    return {"minutes": seconds_done(ledger, target) / 60,
            "cpu_minutes": ledger.total(NAME, "cpu_seconds", target=target) / 60, "runs": sum(r["runs"] for r in rows),
            "edges": max((r["edges"] for r in rows), default=0),
            "features": max((r["features"] for r in rows), default=0),
            "findings": ledger.findings(NAME, target=target)}


WHAT = {
    "json": "JSON text: check, walk, decode, canonical form",
    "http": "HTTP/1.1 requests, cut anywhere",
    "control": "lines a handler writes to its control descriptor",
    "config": "the configuration file (YAML)",
    "spec": "task objects of an enqueue, with their refs and hashes",
    "work": "bodies of report, heartbeat, claim, register and queue patches",
    "query": "paths, query strings, filters and cursors of the API",
    "callback": "callback URLs and the list of those that are allowed",
    "value": "durations, times, rates, numbers and words of the command line",
    "answer": "answers a remote worker and the library get from a server",
    "output": "what a handler prints: lines, cuts, invalid UTF-8",
    "cron": "cron expressions, and when what is accepted fires",
    "rrule": "recurrences of RFC 5545, and when what is accepted fires",
    "zone": "time zone files (TZif) with their rules",
    "credential": "tokens, JWTs, key sets of issuers, scopes",
    "san": "names in client certificates, and which entry they get",
    "proxy": "headers of a proxy, and the addresses it may have",
    "envelope": "encrypted texts, their keys and places",
}


def report(ledger):
    lines = ["## Fuzzing", "", "Every parser that takes bytes from outside, under libFuzzer with "
             "AddressSanitizer and UBSan; each target also asserts what its parser promises "
             "(what was accepted can be walked, written and read back; a refusal has a sentence). "
             "The boiled-down corpora are in `tests/fuzz/corpus` and replayed by `make test`.", "",
             "| target | what | minutes | of processor time | runs | edges | features | kept inputs | findings |",
             "|---|---|---:|---:|---:|---:|---:|---:|---:|"]
    for target in targets():
        sum_ = sums(ledger, target)
        kept = len(list((FUZZ / "corpus" / target).glob("*")))
        lines.append(f"| {target} | {WHAT.get(target, '')} | {sum_['minutes']:.0f} | "
                     f"{sum_['cpu_minutes']:.0f} | {sum_['runs']:,} | {sum_['edges']:,} | {sum_['features']:,} | {kept} | "
                     f"{len(sum_['findings'])} |")
    found = ledger.findings(NAME)
    lines += ["", *[f"- {text}" for text in found]] if found else []
    return "\n".join(lines) + "\n"


def summary(ledger):
    names = targets()
    minutes = min((seconds_done(ledger, name) / 60 for name in names), default=0)
    runs = ledger.total(NAME, "runs")
    return [("F-H3, F-H4", f"{len(names)} fuzz targets, at least {minutes:.0f} minutes each "
             f"(goal {MINUTES_GOAL})", f"{runs:,} runs, {len(ledger.findings(NAME))} findings")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--minutes", type=int, default=MINUTES_GOAL)
    parser.add_argument("--targets", default="")
    parser.add_argument("--ledger", default=str(ROOT / "reports" / "faults.jsonl"))
    options = parser.parse_args()
    only = [name for name in options.targets.split(",") if name]
    run(ledger_module.Ledger(options.ledger), lambda text: print(text, flush=True),
        options.minutes, only)


if __name__ == "__main__":
    main()
