"""Part `store_faults` of the fault campaign: what can happen to the store of a running server, each
scenario several times: full, read-only, erring, deleted, locked, on a network, backed up, without
descriptors, without memory (F-D1 to F-D4, F-D7 to F-D12, F-D14 to F-D16). The scenarios are the
tests of tests/crash/test_store_faults.py; memory fails at random allocations of the process."""
import os
import pathlib
import random
import sys
import time
import unittest

import ledger as ledger_module

for folder in ("tests/api", "tests/crash"):
    sys.path.insert(0, str(ledger_module.ROOT / folder))
import test_store_faults as scenarios  # noqa: E402

NAME = "store_faults"
SCALE = float(os.environ.get("PERDURA_STORE_FAULTS_SCALE", "1"))
LIVES, LIVES_CHUNK = int(600 * SCALE), 50
# fault, class, part of the test's name, times, what is expected
SCENES = (
    ("F-D1", "Disks", "without_space", 10,
     "507, reads continue, running tasks end, service back by itself when there is space"),
    ("F-D2", "FailingCalls", "f_d2", 10, "the log grows, a warning, nothing lost"),
    ("F-D3", "FailingCalls", "f_d3", 20, "the server exits, nothing acknowledged is lost"),
    ("F-D4", "FailingCalls", "f_d4", 10, "one 500 storage_error, the rest works, degraded"),
    ("F-D7", "Foreigners", "f_d7", 3, "503 with Retry-After after 5 s, then as before"),
    ("F-D8", "SecondServer", "f_d8", 10, "refused with the pid of the holder"),
    ("F-D9", "Disks", "read_only", 10, "does not start, one line that says why"),
    ("F-D9", "FailingCalls", "f_d9", 10, "507, /readyz 503, /healthz 200, heals by itself"),
    ("F-D10", "VanishedFile", "deleted", 20, "the server exits"),
    ("F-D10", "VanishedFile", "replaced", 20, "the server exits, the other file is untouched"),
    ("F-D11", "FailingCalls", "f_d11", 3, "NFS, CIFS, SMB, 9p, Lustre, Ceph refused unless allowed"),
    ("F-D12", "Foreigners", "f_d12", 3, "the log grows while the reader stays, shown as a metric"),
    ("F-D14", "Backups", "f_d14", 20, "all before the backup is there, old tokens are refused"),
    ("F-D15", "NoDescriptors", "f_d15", 3, "no spinning, open connections live, service back"),
)


def find_test(class_name, part):
    case = getattr(scenarios, class_name)
    names = [n for n in unittest.TestLoader().getTestCaseNames(case) if part in n]
    assert len(names) == 1, (class_name, part, names)
    return case(names[0])


def run_scene(fault, class_name, part, times):
    row = {"times": 0, "skipped": 0, "longest_s": 0.0, "findings": []}
    for _ in range(max(1, int(times * SCALE))):
        began = time.monotonic()
        result = unittest.TestResult()
        find_test(class_name, part).run(result)
        row["skipped"] += len(result.skipped)
        row["times"] += 1 - len(result.skipped)
        row["longest_s"] = max(row["longest_s"], round(time.monotonic() - began, 2))
        row["findings"] += [f"{fault}: {test.id()}: {text.strip().splitlines()[-1]}"
                            for test, text in result.failures + result.errors]
        if row["skipped"] or row["findings"]:
            break
    return row


def memory_chunk(seed, lives):
    """So many servers, each with one allocation failing, or all from one on."""
    case = scenarios.NoMemory("test_f_d16_a_server_without_memory_answers_or_exits_and_keeps_"
                              "what_it_acknowledged")
    rng = random.Random(seed)
    row = {"times": 0, "acknowledged": 0, "longest_s": 0.0, "findings": []}
    case.setUp()
    try:
        total = case.total()
        for _ in range(lives):
            order = str(rng.randrange(1, total)) + rng.choice(("", "", "+"))
            began = time.monotonic()
            try:
                row["acknowledged"] += case.life(order)
            except AssertionError as error:
                row["findings"].append(f"F-D16: FAIL_MALLOC={order}: {str(error)[-300:]}")
                case.server.kill()
                for file in pathlib.Path(case.folder).glob("perdura.db*"):
                    file.unlink()
            row["times"] += 1
            row["longest_s"] = max(row["longest_s"], round(time.monotonic() - began, 2))
    finally:
        case.doCleanups()
    return {"allocations": total, **row}


def run(ledger, say):
    for fault, class_name, part, times, _ in SCENES:
        scene = f"{class_name}.{part}"
        if ledger.rows(NAME, kind=fault, scene=scene):
            continue
        row = run_scene(fault, class_name, part, times)
        ledger.add(NAME, kind=fault, scene=scene, **row)
        say(f"{fault} {scene}: {row['times']} times, longest {row['longest_s']} s, "
            f"findings: {len(row['findings'])}")
    while ledger.total(NAME, "times", kind="F-D16") < LIVES:
        seed = f"memory.{len(ledger.rows(NAME, kind='F-D16'))}"
        row = memory_chunk(seed, min(LIVES_CHUNK, LIVES))
        ledger.add(NAME, kind="F-D16", scene="NoMemory", seed=seed, **row)
        say(f"F-D16: {row['times']} servers with a failing allocation of {row['allocations']:,}, "
            f"{row['acknowledged']:,} tasks acknowledged, findings: {len(row['findings'])}")


def summary(ledger):
    rows = [row for row in ledger.rows(NAME) if row["kind"] != "F-D16" and row["times"]]
    table = []
    if rows:
        faults = sorted({row["kind"] for row in rows}, key=lambda kind: int(kind[3:]))
        table.append((", ".join(faults), f"{sum(row['times'] for row in rows):,} scenes with the "
                      "store of a running server",
                      f"otherwise than specified {sum(len(row['findings']) for row in rows)}"))
    lives = ledger.total(NAME, "times", kind="F-D16")
    if lives:
        table.append(("F-D16", f"{lives:,} servers with a failing allocation",
                      f"crashed or lost {len(ledger.findings(NAME, kind='F-D16'))}"))
    return table


def report(ledger):
    if not ledger.rows(NAME):
        return ""
    lines = ["## The store of a running server", "",
             "| | what is expected, and came each time | times | longest scene | otherwise |",
             "|---|---|---:|---:|---:|"]
    for fault, class_name, part, _, expected in SCENES:
        for row in ledger.rows(NAME, kind=fault, scene=f"{class_name}.{part}")[-1:]:
            note = " (cannot be made on this machine)" if row["skipped"] else ""
            lines.append(f"| {fault} | {expected}{note} | {row['times']} | {row['longest_s']} s | "
                         f"{len(row['findings'])} |")
    rows = ledger.rows(NAME, kind="F-D16")
    if rows:
        longest = max(row["longest_s"] for row in rows)
        lines.append("| F-D16 | a random allocation fails, or all from there on: an error or an "
                     "exit, nothing acknowledged is lost | "
                     f"{sum(row['times'] for row in rows)} | {longest} s | "
                     f"{sum(len(row['findings']) for row in rows)} |")
    return "\n".join(lines + ["", "A scene is everything from the start of a server to the check of "
                              "its store after a restart.", ""])


def not_tested(ledger):
    return ["a file system that the kernel itself made read-only after an error: the calls of the "
            "server are made to fail instead, because a remount is refused while files are open"]
