#!/usr/bin/env python3
"""Checks the models of this folder with spin: what must hold is proven for every interleaving
within the bounds, and each rule that is left out on purpose must lead to a counter-example.

    model/check.py                 every check; exit code 1 when one is not as it must be
    model/check.py --large         also with more nodes, claims and losses; minutes, and 4 GB
    model/check.py --only task     those whose name has this in it
    model/check.py --show NO_TOKEN the shortest counter-example, step by step

Without spin or a C compiler it says so and exits with 77. Nothing is left behind."""
import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

FOLDER = os.path.dirname(os.path.abspath(__file__))
SECONDS_MAX = 1800

# model, switches, what must be found: None = nothing (proof), else a part of spin's complaint.
CHECKS = [
    ("leader", [], None),
    ("leader", ["LIVE"], None),
    ("leader", ["NO_EPOCH"], "assertion violated (guard[i]=="),
    ("leader", ["NO_HOLD"], "assertion violated (guard[i]=="),
    ("leader", ["BELIEF_FROM_ANSWER"], "assertion violated (count<=1)"),
    ("leader", ["LIVE", "NO_TAKEOVER"], "acceptance cycle"),
    ("task", [], None),
    ("task", ["LIVE"], None),
    ("task", ["NO_TOKEN"], "&&(token==t))"),
    ("task", ["NO_REV"], "assertion violated ((status!="),
    ("task", ["NO_REPEAT"], "||(outcome_token!=t))"),
    ("task", ["LIVE", "NO_SWEEP"], "acceptance cycle"),
    ("commit", ["LOSSES=2"], None),
    ("commit", ["KEYLESS"], None),
    ("commit", ["KEYLESS", "BLIND_RETRY"], "assertion violated (stored<=1)"),
    ("commit", ["KEYLESS", "SETTLE_ONLY_READS"], "!(denied)"),
    ("commit", ["KEYLESS", "MARK_AT_ONCE"], "!(denied)"),
    ("commit", ["NO_KEY"], "assertion violated (stored<=1)"),
]
LARGE = [
    ("leader", ["NODES=3"], None),
    ("leader", ["LEASE=4"], None),
    ("task", ["CLAIMS=5"], None),
    ("task", ["NODES=3", "SWEEPS=1"], None),
    ("commit", [], None),
    ("commit", ["KEYLESS", "LOSSES=6"], None),
    ("commit", ["SETTLE_AT_ONCE", "ASKS=3", "LOSSES=2"], "assertion violated (present[n]!=me)"),
]


def name_of(check):
    return " ".join([check[0]] + check[1])


def run(folder, *command):
    """Output of a program that must end well within its time; its exit code says nothing (pan)."""
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=SECONDS_MAX, check=False)
    return done.stdout


def search(folder, check):
    """Builds the verifier and runs it: what spin says. Counter-examples are searched breadth first,
    so that the first one is the shortest; cycles cannot be."""
    model, switches, wanted = check
    live = "LIVE" in switches
    shutil.copy(os.path.join(FOLDER, model + ".pml"), folder)
    said = run(folder, "spin", *["-D" + s for s in switches], "-a", model + ".pml")
    if not os.path.exists(os.path.join(folder, "pan.c")):
        return said
    flags = ["-DNFAIR=3"] if live else ["-DSAFETY"]
    flags += ["-DBFS"] if wanted and not live else ["-DCOLLAPSE"]
    said = run(folder, "cc", "-w", "-O0" if wanted else "-O2", "-DMEMLIM=8000", *flags, "-o", "pan",
               "pan.c")
    if not os.path.exists(os.path.join(folder, "pan")):
        return said
    depth = 10_000_000 if check in LARGE else 1_000_000
    return run(folder, "./pan", f"-m{depth}", *(["-a", "-f"] if live else []))


def judge(said, wanted):
    """None when it is as it must be, else why not."""
    complaint = re.search(r"^pan:\d+: (.*)$", said, re.M)
    if not re.search(r"errors: \d+", said):
        return "spin did not come to an end: " + said.strip()[-300:]
    if wanted is None:
        if complaint or "errors: 0" not in said:
            return "counter-example: " + (complaint.group(1) if complaint else "?")
        if "Search not completed" in said or "max search depth too small" in said:
            return "the search was cut short"
        return None
    if not complaint:
        return "no counter-example was found"
    return None if wanted in complaint.group(1) else "another complaint: " + complaint.group(1)


def figures(said):
    states = re.search(r"(\S+) states, stored", said)
    depth = re.search(r"\(at depth (\d+)\)", said)
    return (int(float(states.group(1))) if states else 0), (depth.group(1) if depth else "")


def check_one(check):
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="perdura-model-") as folder:
        said = search(folder, check)
    why = judge(said, check[2])
    states, depth = figures(said)
    found = "proven" if check[2] is None else f"found, {depth} steps"
    print(f"{name_of(check):38} {found if why is None else 'WRONG':18} {states:>10,} states "
          f"{time.monotonic() - began:6.1f} s", flush=True)
    if why is not None:
        print("    " + why, flush=True)
    return why is None


def show(switch):
    """The story of a counter-example: what the model prints on its way to it."""
    for check in CHECKS + LARGE:
        if switch in check[1] and check[2]:
            break
    else:
        sys.exit(f"no check leaves {switch} out")
    with tempfile.TemporaryDirectory(prefix="perdura-model-") as folder:
        said = search(folder, check)
        trail = run(folder, "spin", *["-D" + s for s in check[1]], "-t", "-T",
                    check[0] + ".pml")
    for line in trail.split("spin: trail ends")[0].split("#processes")[0].strip().split("\n"):
        if not line.startswith(("spin: warning", "Never claim")):
            print(line)
    return 0 if judge(said, check[2]) is None else 1


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--large", action="store_true", help="also the large ones")
    parser.add_argument("--only", default="", help="a part of the name")
    parser.add_argument("--show", metavar="SWITCH", help="print a counter-example")
    options = parser.parse_args()

    for program in ("spin", "cc"):
        if not shutil.which(program):
            print(f"{program} is missing: the models are not checked")
            return 77
    if options.show:
        return show(options.show)
    checks = [check for check in CHECKS + (LARGE if options.large else [])
              if options.only in name_of(check)]
    good = sum([check_one(check) for check in checks])
    print(f"{good} of {len(checks)} checks are as they must be")
    return 0 if good == len(checks) and checks else 1


if __name__ == "__main__":
    sys.exit(main())
