"""What the dashboard costs, for run.py (part "dashboard"): how long its home page takes in a real Chromium
until it is of use, and what 200 that are open take from the throughput of the server they look at. Not run by
itself."""
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

import own

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
TASKS = 10000
LOADS = 9
OPEN = 200
PAIRS = 5
LIFE_TASKS = 60000
IDLE_SECONDS = 10
PAINT_SECONDS_MAX = 300
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


def prepare(build, say):
    """Whether there is a browser to measure in; brings what drives it."""
    if not shutil.which("node") or not (shutil.which("chromium") or shutil.which("chromium-browser")
                                        or shutil.which("google-chrome")):
        say("dashboard: no node or no chromium, so no times of the page")
        return False
    subprocess.run(["sh", os.path.join(ROOT, "tests", "browser", "packages.sh"),
                    os.path.join(build, "browser")], stdout=subprocess.DEVNULL, check=True)
    return True


def measure_paint(build, scale, say):
    loads = max(3, int(LOADS * scale))
    say(f"dashboard: {loads} cold loads of the home page, {TASKS:,} tasks")
    with own.Server(build) as server:
        server.http("life", 2, 100, TASKS // 2)
        server.http("enqueue", 2, 100, TASKS // 2)
        done = subprocess.run(["node", os.path.join(HERE, "paint.mjs"), server.url, str(loads)],
                              env={**os.environ, "PERDURA_BUILD": build}, stdout=subprocess.PIPE,
                              text=True, timeout=PAINT_SECONDS_MAX, check=False)
    if done.returncode != 0:
        raise own.BenchError("paint.mjs failed")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    figures = {key: statistics.median(line[key] for line in lines)
               for key in ("first_ms", "useful_ms", "charts_ms", "files", "bytes")}
    return {**figures, "useful_max_ms": max(line["useful_ms"] for line in lines), "loads": loads,
            "tasks": TASKS}


@contextlib.contextmanager
def watched(server):
    """200 open dashboards around the server; what they saw is in the list that is given, in the end."""
    seen = []
    with subprocess.Popen([sys.executable, os.path.join(HERE, "watchers.py"), server.address,
                           str(OPEN)], text=True, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as watchers:
        try:
            if watchers.stdout.readline().strip() != "watching":
                raise own.BenchError(f"{OPEN} dashboards could not be opened")
            yield seen
            watchers.stdin.close()
            text = watchers.stdout.read()
            if not text or json.loads(text)["open"] != OPEN:
                raise own.BenchError(f"not all of {OPEN} dashboards stayed open: {text}")
            seen.append(json.loads(text))
        finally:
            own.stop_process(watchers)


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as handle:
        fields = handle.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS


def life(build, scale, watching):
    """The rate of whole lives over HTTP in a fresh server, watched or not."""
    tasks = int(LIFE_TASKS * scale)
    with own.Server(build) as server:
        server.http("life", 4, 100, 4000)
        with watched(server) if watching else contextlib.nullcontext():
            return server.http("life", 4, 100, tasks)["per_second"]


def measure_idle(build, scale, say):
    say(f"dashboard: the server with {OPEN} of them and no work")
    seconds = max(2, IDLE_SECONDS * scale)
    with own.Server(build) as server:
        server.http("life", 4, 100, 4000)
        before_mib = own.settled_mib(server)
        with watched(server) as seen:
            begin, cpu = time.monotonic(), cpu_seconds(server.process.pid)
            time.sleep(seconds)
            share = (cpu_seconds(server.process.pid) - cpu) / (time.monotonic() - begin)
            mib = server.memory_mib()
    return {"idle_cpu_percent": 100 * share, "open_kib": 1024 * (mib - before_mib) / OPEN,
            "events": seen[0]["events"], "replies": seen[0]["replies"]}


def measure_watched(build, scale, say):
    """Pairs of turns, one of each, the order turned round every time; ratios are of pairs."""
    pairs = []
    for turn in range(max(1, int(PAIRS * scale))):
        say(f"dashboard: pair {turn + 1}, whole life with and without {OPEN} of them")
        order = (True, False) if turn % 2 else (False, True)
        rates = {watching: life(build, scale, watching) for watching in order}
        pairs.append((rates[False], rates[True]))
    return {"open": OPEN, "pairs": len(pairs),
            "without": statistics.median(plain for plain, _ in pairs),
            "with": statistics.median(watching for _, watching in pairs),
            "ratio": statistics.median(watching / plain for plain, watching in pairs)}


def measure(build, say, quick=False):
    scale = 0.2 if quick else 1
    figures = {}
    if prepare(build, say):
        figures["paint"] = measure_paint(build, scale, say)
    figures["idle"] = measure_idle(build, scale, say)
    figures["watched"] = measure_watched(build, scale, say)
    return figures
