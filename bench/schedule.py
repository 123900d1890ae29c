"""How long the next instant of a cron expression takes to find, for run.py (part "calendar"): the
times bench/cron_next.c measures, and beside them the instructions of the same call, counted by
callgrind, which do not depend on how busy the machine is. Not run by itself."""
import json
import os
import re
import shutil
import subprocess
import tempfile

import own

SECONDS_MAX = 300


def count(program, line):
    """Instructions of one call of cron_next at the slowest place of an expression, or None."""
    if not shutil.which("valgrind"):
        return None
    with tempfile.TemporaryDirectory() as folder:
        dump = os.path.join(folder, "dump")
        subprocess.run(["valgrind", "--tool=callgrind", "--quiet", "--toggle-collect=cron_next",
                        f"--callgrind-out-file={dump}", program, "--once", line["zone"],
                        line["dst"], str(line["slowest_s"]), line["cron"]],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=SECONDS_MAX,
                       check=True)
        with open(dump, encoding="utf-8", errors="replace") as handle:
            found = re.search(r"^totals: (\d+)", handle.read(), re.MULTILINE)
    return int(found.group(1)) if found else None


def measure(build, say):
    say("next instants of cron expressions")
    program = os.path.join(build, "cron_next")
    done = subprocess.run([program], stdout=subprocess.PIPE, text=True, timeout=SECONDS_MAX,
                          check=False)
    if done.returncode not in (0, 1):
        raise own.BenchError("cron_next failed")
    figures = json.loads(done.stdout)
    del figures["sum"]
    say("their instructions")
    for line in figures["expressions"]:
        line["instructions"] = count(program, line)
    return figures
