"""Where cost grows with what is there: many types in one queue, many held tasks. These have no
bound in the catalogue of faults; their figures stand in the report so that they are known."""
import time

from load_clients import Probe, Site, felt, ms, percentile, rss_mb
from load_crowds import PROBE_S, Piece, felt_text, ratio
from load_volumes import STALL_MS, claim, element, report


def many_types(scale, say):
    """Every type of a queue is a lane of its own; a claim for all types looks at each with work."""
    count, claims = max(1000, int(100000 * scale)), 200
    findings = []
    figures = {}
    with Site() as site:
        wire = site.wire()
        for types in (100, count):
            queue = f"types-{types}"
            site.register(wire, f"w-{types}", [queue])
            each = max(1, 2 * claims // types)
            for n in range(0, types, 1000):
                some = range(n, min(n + 1000, types))
                wire.expect(201, "POST", "/v1/tasks", [{"type": f"t{i}", "queue": queue}
                                                       for i in some for _ in range(each)])
            times = []
            for _ in range(claims):
                began = time.monotonic()
                tasks = claim(wire, f"w-{types}", queue)
                times.append(time.monotonic() - began)
                report(wire, f"w-{types}", [element(tasks[0], "complete")])
            figures[str(types)] = {"p50_ms": ms(percentile(times, 0.5)),
                                   "p99_ms": ms(percentile(times, 0.99)),
                                   "first_ms": ms(times[0]), "rss_mb": rss_mb(site.pid)}
        wire.close()
    few, many = figures["100"], figures[str(count)]
    if many["p99_ms"] > 100:
        findings.append(f"a claim over {count} types takes {many['p99_ms']} ms (p99)")
    return {"result": f"a claim for all types of a queue: p50 {few['p50_ms']:.2f} ms over 100 "
                      f"types, {many['p50_ms']:.2f} ms over {count} (p99 {many['p99_ms']:.2f}, the "
                      f"first one {many['first_ms']:.0f}); memory {few['rss_mb']:.0f} → "
                      f"{many['rss_mb']:.0f} MB",
            "figures": figures, "findings": findings}


def many_held(scale, say):
    """One worker holds them all: the sweep looks at all of them six times per lease, and the
    worker's heartbeat, which names none of them, means all of them."""
    count = max(2000, int(50000 * scale))
    findings, beats = [], []
    with Site(lease="12s") as site:
        felt(site.address, 2)
        before = felt(site.address, PROBE_S)
        wire = site.wire()
        for _ in range(0, count, 1000):
            wire.expect(201, "POST", "/v1/tasks", [{"type": "t", "queue": "held",
                                                    "timeout_ms": 3600000}] * 1000)
        held = 0
        site.register(wire, "holder", ["held"])
        while tasks := claim(wire, "holder", "held", 1000):
            held += len(tasks)
        with Probe(site.address) as probe:
            end = time.monotonic() + PROBE_S
            while time.monotonic() < end:
                began = time.monotonic()
                wire.expect(200, "POST", "/v1/workers/holder:heartbeat", {})
                beats.append(time.monotonic() - began)
                time.sleep(2)
            during = probe.finish()
        lost = site.stats()["totals"]["lost_leases"]
        wire.close()
    if lost or held != count:
        findings.append(f"{held} of {count} were held, {lost} leases were lost")
    if during["worst_ms"] > STALL_MS:
        findings.append(f"others waited for up to {during['worst_ms']:.0f} ms")
    return {"result": f"{count} held, 0 leases lost; heartbeat {ms(percentile(beats, 0.5)):.0f} ms "
                      f"(slowest {ms(max(beats)):.0f}); {felt_text(before, during)}, at worst "
                      f"{during['worst_ms']:.0f} ms",
            "figures": {"held": count, "beats_ms": [ms(x) for x in beats], "before": before,
                        "during": during, "p99_ratio": ratio(during, before)},
            "findings": findings}


PIECES = [
    Piece("types", "100,000 types in one queue, claimed for all types", many_types),
    Piece("held", "one worker holds 50,000 tasks", many_held),
]
