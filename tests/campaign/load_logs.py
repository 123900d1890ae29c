"""Load by searches in large logs (F-H20): each request gets its second and a cursor to continue
from, finds what is there, ends when its client leaves, and holds up no other request. load.py runs
it."""
import contextlib
import threading
import time

from load_clients import Probe, Site, cpu_us, felt, ms, peak_mb, percentile, rss_mb
from load_crowds import PROBE_S, Piece, felt_text, ratio
from load_volumes import claim, element, report

LINE_BYTES = 12000
LINES_AT_ONCE = 500
SEARCHERS = 4     # that keep searching
LEAVERS = 30      # that ask and hang up
BUDGET_MS = 1000
SLACK_MS = 500    # for the step that is under way when the second is over, and for the answer
SHORT_MS = 250    # a short read beside searches, at the 99th percentile


def fill(site, lines):
    """One task with so many lines; the last one holds the needle."""
    with contextlib.closing(site.wire()) as wire:
        site.register(wire, "writer", ["logs"])
        task_id = wire.expect(201, "POST", "/v1/tasks", {"type": "t", "queue": "logs"})["id"]
        task = claim(wire, "writer", "logs")[0]
        for first in range(1, lines + 1, LINES_AT_ONCE):
            report(wire, "writer", [
                element(task, "log", level="INFO",
                        message="x" * LINE_BYTES + ("needle" if n == lines else ""))
                for n in range(first, min(first + LINES_AT_ONCE, lines + 1))])
        report(wire, "writer", [element(task, "complete")])
    return task_id


def search(wire, task_id, words):
    """Numbers of the lines found, and the milliseconds of each request."""
    found, times, cursor = [], [], ""
    while cursor is not None:
        began = time.monotonic()
        page = wire.expect(200, "GET", f"/v1/tasks/{task_id}/logs?q={words}&limit=10"
                           + (f"&cursor={cursor}" if cursor else ""))
        times.append((time.monotonic() - began) * 1000)
        found += [line["seq"] for line in page["items"]]
        cursor = page["next_cursor"]
    return found, times


class Reader(threading.Thread):
    """Short reads, one after the other."""

    def __init__(self, site, task_id):
        super().__init__(daemon=True)
        self.wire, self.path, self.over, self.times = site.wire(), f"/v1/tasks/{task_id}", False, []
        self.start()

    def run(self):
        while not self.over:
            began = time.monotonic()
            self.wire.expect(200, "GET", self.path)
            self.times.append(time.monotonic() - began)
            time.sleep(0.003)

    def finish(self):
        self.over = True
        self.join()
        self.wire.close()
        return {"reads": len(self.times), "p50_ms": ms(percentile(self.times, 0.5)),
                "p99_ms": ms(percentile(self.times, 0.99)), "worst_ms": ms(max(self.times))}


def crowd(site, task_id, seconds):
    """Some search on and on, others ask and leave; what a writer and a reader feel meanwhile."""
    over = time.monotonic() + seconds

    def searcher():
        with contextlib.closing(site.wire()) as wire:
            while time.monotonic() < over:
                wire.expect(200, "GET", f"/v1/tasks/{task_id}/logs?q=nowhere")

    threads = [threading.Thread(target=searcher) for _ in range(SEARCHERS)]
    reader = Reader(site, task_id)
    with Probe(site.address) as probe:
        for thread in threads:
            thread.start()
        while time.monotonic() < over:
            leavers = [site.wire() for _ in range(LEAVERS)]
            for wire in leavers:
                wire.send("GET", f"/v1/tasks/{task_id}/logs?q=nowhere")
            time.sleep(0.2)
            for wire in leavers:
                wire.close()
        felt_by = probe.finish()
    for thread in threads:
        thread.join()
    return felt_by, reader.finish()


def busy_ms(site):
    """Processor time of the server within one second without requests."""
    before = cpu_us(site.pid)
    time.sleep(1)
    return (cpu_us(site.pid) - before) / 1000


def searches(scale, say):
    lines = max(2000, int(99000 * scale))  # an execution keeps 100,000
    findings = []
    with Site() as site:
        began = time.monotonic()
        task_id = fill(site, lines)
        fill_s = time.monotonic() - began
        say(f"{lines * LINE_BYTES / 1e9:.2f} GB of log lines in {fill_s:.0f} s")
        felt(site.address, 2)
        before = felt(site.address, PROBE_S)
        calm = Reader(site, task_id)
        time.sleep(2)
        calm = calm.finish()
        rss_before = rss_mb(site.pid)
        with contextlib.closing(site.wire()) as wire:
            nothing, absent = search(wire, task_id, "nowhere")
            found, there = search(wire, task_id, "needle")
        during, reads = crowd(site, task_id, PROBE_S)
        time.sleep(2 * BUDGET_MS / 1000)  # what was under way had its second
        left_ms, rss_peak = busy_ms(site), peak_mb(site.pid)
    worst = max(absent + there)
    if nothing or found != [lines]:
        findings.append(f"found {nothing[:3]} and {found[:3]}, not nothing and line {lines}")
    if worst > BUDGET_MS + SLACK_MS:
        findings.append(f"a request took {worst:.0f} ms, not {BUDGET_MS}")
    if reads["p99_ms"] > max(SHORT_MS, 10 * calm["p99_ms"]):
        findings.append(f"p99 of short reads is {reads['p99_ms']:.0f} ms beside searches")
    if during["failures"] or during["worst_ms"] > BUDGET_MS:
        findings.append(f"others waited for up to {during['worst_ms']:.0f} ms")
    if left_ms > 200:
        findings.append(f"{left_ms:.0f} ms of a second are busy after all have left")
    return {"result": f"{lines * LINE_BYTES / 1e9:.2f} GB in one task; what is not there took "
                      f"{len(absent)} requests and {sum(absent) / 1000:.1f} s, the last line "
                      f"{len(there)} and {sum(there) / 1000:.1f} s, the longest request "
                      f"{worst:.0f} ms; beside {SEARCHERS} clients that search on and {LEAVERS} "
                      f"five times a second that hang up, short reads p50 {calm['p50_ms']:.1f} → "
                      f"{reads['p50_ms']:.1f} ms, p99 {calm['p99_ms']:.1f} → "
                      f"{reads['p99_ms']:.1f} ms; {felt_text(before, during)}; two seconds after "
                      f"they left the server is busy for {left_ms:.0f} ms of a second",
            "figures": {"lines": lines, "fill_s": round(fill_s, 1), "absent_requests": len(absent),
                        "absent_s": round(sum(absent) / 1000, 2), "there_requests": len(there),
                        "longest_ms": round(worst), "reads_before": calm, "reads_during": reads,
                        "before": before, "during": during, "p99_ratio": ratio(during, before),
                        "left_busy_ms": round(left_ms, 1), "rss_before_mb": rss_before,
                        "rss_peak_mb": rss_peak},
            "findings": findings}


PIECES = [Piece("F-H20", "searches in 1.2 GB of log lines of one task, by clients that stay and that "
                "leave", searches)]
