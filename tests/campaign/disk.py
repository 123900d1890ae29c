"""Part `disk` of the fault campaign: what a disk and the memory can do to a store, in one process
and by the thousand (F-D2 to F-D6, F-D13, F-D16). The programs are tests of tests/store with
arguments; each prints one JSON line per piece of work:

    build/power_images_test --images 1000 --seed 3      disks a power cut could have left
    build/wal_cut_test --from 0 --to 20600              the log cut at every byte
    build/io_faults_test --campaign --kind "truncation" the n-th operation of a kind fails
    build/memory_faults_test --from 1 --to 5000 --step 5   the n-th allocation fails
    build/bit_flip_test --flips 500 --seed 3            one bit is the wrong way round
"""
import json
import os
import pathlib
import subprocess
import time

import ledger as ledger_module

NAME = "disk"
SCALE = float(os.environ.get("PERDURA_DISK_SCALE", "1"))
IMAGES, IMAGES_CHUNK = int(20000 * SCALE), 1000
FLIPS, FLIPS_CHUNK = int(4000 * SCALE), 500
WAL_BYTES, WAL_CHUNK = int(50 * 4120 * SCALE), 20600
MEMORY_CHUNK, MEMORY_MAX = 5000, 10_000_000
MEMORY_STEPS = (("once", 5), ("lasting", 40))
KINDS = ("read of the file", "read of the log", "write of the log",
         "write of the log without space", "write in a checkpoint",
         "write in a checkpoint without space", "sync of the log", "sync of the file",
         "truncation")
DEADLINE_S = 3600


def program(name):
    folder = os.environ.get("PERDURA_BUILD", str(ledger_module.ROOT / "build"))
    path = pathlib.Path(folder, name)
    if not path.exists():
        subprocess.run(["cmake", "--build", folder, "--target", name], check=True,
                       stdout=subprocess.DEVNULL)
    return str(path)


def ask(ledger, say, kind, name, *arguments, **fields):
    """Runs one piece; its lines go to the ledger, with a finding when it went wrong."""
    began = time.monotonic()
    done = subprocess.run([program(name), *map(str, arguments)], capture_output=True, text=True,
                          timeout=DEADLINE_S)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    seconds = round(time.monotonic() - began, 1)
    if not lines:
        lines = [{"finding": f"{name} {' '.join(map(str, arguments))} ended with "
                             f"{done.returncode}: {(done.stderr + done.stdout)[-400:]}"}]
    for line in lines:
        finding = line.pop("finding", "")
        line.pop("kind", None)  # is in the fields
        row = {**line, **fields, "seconds": seconds}
        ledger.add(NAME, kind=kind, findings=[f"{kind}: {finding}"] if finding else [], **row)
        say(f"{kind}: " + ", ".join(f"{key} {value}" for key, value in row.items()
                                    if not isinstance(value, str)) +
            (f"; FOUND {finding}" if finding else ""))
    return lines[-1]


def run_images(ledger, say):
    while ledger.total(NAME, "images", kind="F-D13") < IMAGES:
        seed = 1 + len(ledger.rows(NAME, kind="F-D13"))
        ask(ledger, say, "F-D13", "power_images_test", "--images",
            min(IMAGES_CHUNK, IMAGES), "--seed", seed)
        if ledger.findings(NAME, kind="F-D13"):
            return


def run_cuts(ledger, say):
    done = {row.get("from") for row in ledger.rows(NAME, kind="F-D5")}
    for first in range(0, WAL_BYTES, WAL_CHUNK):
        if first not in done:
            ask(ledger, say, "F-D5", "wal_cut_test", "--from", first, "--to",
                first + WAL_CHUNK - 1)


def run_operations(ledger, say):
    done = {row.get("fault") for row in ledger.rows(NAME, kind="io")}
    for fault in KINDS:
        if fault not in done:
            ask(ledger, say, "io", "io_faults_test", "--campaign", "--kind", fault,
                "--step", max(1, int(1 / SCALE)), fault=fault)


def run_memory(ledger, say):
    for mode, step in MEMORY_STEPS:
        step = max(step, int(step / SCALE))
        rows = ledger.rows(NAME, kind="F-D16", mode=mode)
        first = max((row["to"] + 1 for row in rows if "to" in row), default=1)
        over = any(row.get("over") for row in rows)
        while not over and first < MEMORY_MAX:
            line = ask(ledger, say, "F-D16", "memory_faults_test", "--from", first, "--to",
                       first + MEMORY_CHUNK - 1, "--step", step,
                       *(["--lasting"] if mode == "lasting" else []), mode=mode, step=step)
            over = line.get("over", True) or bool(ledger.findings(NAME, kind="F-D16"))
            first += MEMORY_CHUNK


def run_flips(ledger, say):
    while ledger.total(NAME, "flips", kind="F-D6") < FLIPS:
        seed = 1 + len(ledger.rows(NAME, kind="F-D6"))
        ask(ledger, say, "F-D6", "bit_flip_test", "--flips", min(FLIPS_CHUNK, FLIPS), "--seed",
            seed)
        if ledger.findings(NAME, kind="F-D6"):
            return


def run(ledger, say):
    run_operations(ledger, say)
    run_memory(ledger, say)
    run_flips(ledger, say)
    run_images(ledger, say)
    run_cuts(ledger, say)


def bad(ledger, **fields):
    return len(ledger.findings(NAME, **fields))


def longest_open_ms(ledger):
    values = [row.get("longest_open_us", 0) for row in ledger.rows(NAME, kind="F-D13")]
    return max(values, default=0) / 1000


def summary(ledger):
    def total(field, kind):
        return ledger.total(NAME, field, kind=kind)

    rows = []
    if total("images", "F-D13"):
        rows.append(("F-D13", f"{total('images', 'F-D13'):,} disks a power cut could have left, "
                     "unsynced writes dropped, reordered or torn",
                     f"acknowledged words lost {bad(ledger, kind='F-D13')}"))
    if total("cuts", "F-D5"):
        rows.append(("F-D5", f"log cut at {total('cuts', 'F-D5'):,} places, every byte of its "
                     "last 50 frames", f"not a whole number of commits {bad(ledger, kind='F-D5')}"))
    if total("runs", "io"):
        rows.append(("F-D2, F-D3, F-D4", f"{total('runs', 'io'):,} lives, each with its n-th read, "
                     "write, sync or truncation failing, n = 1 until none",
                     f"acknowledged words lost {bad(ledger, kind='io')}"))
    if total("runs", "F-D16"):
        rows.append(("F-D16", f"{total('runs', 'F-D16'):,} lives with the n-th allocation failing",
                     f"lost, crashed or wrong {bad(ledger, kind='F-D16')}"))
    if total("flips", "F-D6"):
        rows.append(("F-D6", f"{total('flips', 'F-D6'):,} flipped bits in file and log",
                     f"silently different {total('silent', 'F-D6')}"))
    return rows


def operation_lines(ledger):
    lines = ["| operation that fails | lives | requests refused | server stopped | did not open | "
             "acknowledged | lost |", "|---|---:|---:|---:|---:|---:|---:|"]
    for row in ledger.rows(NAME, kind="io"):
        lines.append(f"| {row['fault']} | {row.get('runs', 0):,} | {row.get('refused', 0):,} | "
                     f"{row.get('stopped', 0):,} | {row.get('not_opened', 0):,} | "
                     f"{row.get('acknowledged', 0):,} | {len(row['findings'])} |")
    return lines


def memory_lines(ledger):
    lines = ["| allocations that fail | lives | requests refused | server stopped | did not open | "
             "acknowledged | lost or crashed |", "|---|---:|---:|---:|---:|---:|---:|"]
    for mode, title in (("once", "the n-th"), ("lasting", "the n-th and all later ones")):
        rows = ledger.rows(NAME, kind="F-D16", mode=mode)
        if rows:
            counts = [sum(row.get(field, 0) for row in rows) for field in
                      ("runs", "refused", "stopped", "not_opened", "acknowledged")]
            last = max(row.get("to", 0) for row in rows)
            lines.append(f"| {title}, every {rows[0]['step']}th n up to {last:,} | " +
                         " | ".join(f"{count:,}" for count in counts) +
                         f" | {bad(ledger, kind='F-D16', mode=mode)} |")
    return lines


def flip_lines(ledger):
    names = (("not_opened", "refused at the opening"), ("not_read", "an error when read"),
             ("verified", "found by verify"),
             ("log_cut", "in the last commit of the log, which ends before it as after a cut"),
             ("harmless", "did not matter"), ("silent", "**silently different**"))
    return (["| a flipped bit was | times |", "|---|---:|"] +
            [f"| {title} | {ledger.total(NAME, field, kind='F-D6'):,} |"
             for field, title in names])


def report(ledger):
    if not ledger.rows(NAME):
        return ""
    images = ledger.rows(NAME, kind="F-D13")
    lines = ["## Disk and memory", "",
             "A load on a real queue (batches, claims, reports, children, cancels, deletions, "
             "retention with its archive, checkpoints, starts) whose every acknowledged word is "
             "remembered. Afterwards the store is opened, verified, and compared word by word: "
             "what was acknowledged is there, what was refused is not, a request is there as a "
             "whole or not at all, and it keeps working.", ""]
    if images:
        points = sum(row.get("sync_points", 0) for row in images)
        lines += [f"**Power (F-D13).** {ledger.total(NAME, 'images', kind='F-D13'):,} different "
                  f"disks at {points:,} syncs of {len(images)} loads, each opened by the store and "
                  f"verified, {ledger.total(NAME, 'started', kind='F-D13'):,} of them started with "
                  f"their queue too; longest opening {longest_open_ms(ledger):.0f} ms. "
                  f"Lost: {bad(ledger, kind='F-D13')}.", ""]
    if ledger.rows(NAME, kind="F-D5"):
        lines += [f"**A cut log (F-D5).** {ledger.total(NAME, 'cuts', kind='F-D5'):,} cuts; at "
                  f"{ledger.total(NAME, 'opened', kind='F-D5'):,} of them, all ends of frames "
                  "among them, the whole store was opened and verified. The state was always that "
                  "of the commits whose last frame was there. "
                  f"Exceptions: {bad(ledger, kind='F-D5')}.", ""]
    for kind, table in (("io", operation_lines), ("F-D16", memory_lines), ("F-D6", flip_lines)):
        if ledger.rows(NAME, kind=kind):
            lines += table(ledger) + [""]
    return "\n".join(lines)


def not_tested(ledger):
    return ["lies of a disk: a sync that is reported and did not happen, writes to wrong places "
            "(a flipped bit is as far as F-D6 goes)"]
