"""Load by volume: many children, failures, lines of output, waiting tasks (F-H12, F-H15, F-H16,
F-H19). Each piece returns its figures and what it found wrong; load.py runs them."""
import datetime
import json
import os
import random
import stat
import threading
import time

from load_clients import Probe, Site, felt, ms, peak_mb, percentile, rss_mb
from load_crowds import PROBE_S, Piece, felt_text, ratio, wait_for

STALL_MS = 1000  # no client waits longer for another one's large request


def element(task, op, **fields):
    return {"task_id": task["id"], "lease_token": task["lease_token"], "op": op, **fields}


def claim(wire, worker, queue, most=1, wait_ms=0):
    return wire.expect(200, "POST", f"/v1/workers/{worker}:claim",
                       {"max": most, "queues": [queue], "wait_ms": wait_ms})["tasks"]


def report(wire, worker, elements):
    items = wire.expect(200, "POST", f"/v1/workers/{worker}:report", elements)["items"]
    bad = [item for item in items if not item["ok"]]
    if bad:
        raise AssertionError(f"{len(bad)} elements were refused: {bad[0]}")


def drain(site, wire, worker, queue, op="complete", **fields):
    """Everything that waits in a queue gets this outcome. How many."""
    total = 0
    while tasks := claim(wire, worker, queue, 1000):
        report(wire, worker, [element(task, op, **fields) for task in tasks])
        total += len(tasks)
    return total


def spawn(wire, parent, first, last, step=1000):
    for n in range(first, last, step):
        children = [{"type": "child", "queue": "children", "ref": f"{i}"}
                    for i in range(n, min(n + step, last))]
        report(wire, "w", [element(parent, "spawn", tasks=children)])


def children(scale, say):
    """The server is killed half-way; the parent then tells of all its children again."""
    count = max(2000, int(100000 * scale))
    findings = []
    with Site() as site:
        wire = site.wire()
        site.register(wire, "w", ["parents"])
        parent_id = wire.expect(201, "POST", "/v1/tasks", {"type": "parent", "queue": "parents",
                                                           "timeout_ms": 3600000})["id"]
        felt(site.address, 2)
        before = felt(site.address, PROBE_S)
        parent = claim(wire, "w", "parents")[0]
        rss_before = rss_mb(site.pid)
        began = time.monotonic()
        with Probe(site.address) as probe:
            spawn(wire, parent, 0, count // 2)
            first = probe.finish()
        half_s = time.monotonic() - began
        rss_half = peak_mb(site.pid)
        wire.send("POST", "/v1/workers/w:report",
                  [element(parent, "spawn", tasks=[{"type": "child", "queue": "children",
                                                    "ref": f"{count // 2 + i}"}
                                                   for i in range(1000)])])
        site.kill()
        site.start()
        wire = site.wire()
        there = site.stats()["counts"]["pending"]
        if (there - count // 2) % 1000:
            findings.append(f"{there} children are there after the kill: part of a chunk")
        say(f"killed with {there} of {count} children; all of them are sent again")
        began = time.monotonic()
        spawn(wire, parent, 0, count)
        all_s = time.monotonic() - began
        stored = site.stats()["counts"]["pending"]
        if stored != count:
            findings.append(f"{stored} children instead of {count}")
        report(wire, "w", [element(parent, "continue", wait_children=True)])
        began = time.monotonic()
        with Probe(site.address) as probe:
            ended = drain(site, wire, "w", "children")
            during = probe.finish()
        drain_s = time.monotonic() - began
        again = claim(wire, "w", "parents", 10)
        data_mb = len(json.dumps(again)) / 1e6
        for task in again:
            report(wire, "w", [element(task, "complete")])
        events = wire.expect(200, "GET", f"/v1/tasks/{parent_id}/events")["items"]
        ends = sum(event["status"] == "completed" for event in events)
        released = sum(event["state"] == "Children ended" for event in events)
        if (len(again), ends, released) != (1, 1, 1) or ended != count:
            findings.append(f"{ended} children ended, the parent was released {released} times "
                            f"and ended {ends} times")
        rss_peak = peak_mb(site.pid)
        wire.close()
        if text := site.verify():
            findings.append("verify: " + text)
    worst = max(first["worst_ms"], during["worst_ms"])
    if worst > STALL_MS:
        findings.append(f"others waited for up to {worst:.0f} ms")
    return {"result": f"{count // 2} spawned in {half_s:.1f} s, kill -9, all {count} told again in "
                      f"{all_s:.1f} s: none lost, none twice; ended in {drain_s:.1f} s, parent "
                      f"released once and completed once; memory {rss_before:.0f} → at most "
                      f"{max(rss_peak, rss_half):.0f} MB; others meanwhile p99 "
                      f"{before['p99_ms']:.1f} → {max(first['p99_ms'], during['p99_ms']):.1f} ms, "
                      f"at worst {worst:.0f} ms",
            "figures": {"children": count, "there_after_kill": there,
                        "half_s": round(half_s, 2), "all_again_s": round(all_s, 2),
                        "drain_s": round(drain_s, 2), "rss_before_mb": rss_before,
                        "rss_half_mb": rss_half, "rss_peak_mb": rss_peak,
                        "parent_claim_mb": round(data_mb, 2), "before": before,
                        "spawning": first, "ending": during},
            "findings": findings}


def dependents(scale, say):
    count = max(2000, int(100000 * scale))
    findings = []
    with Site() as site:
        wire = site.wire()
        site.register(wire, "w", ["first"])
        first_id = wire.expect(201, "POST", "/v1/tasks", {"type": "first", "queue": "first"})["id"]
        for n in range(0, count, 1000):
            wire.expect(201, "POST", "/v1/tasks", [{"type": "then", "queue": "then",
                                                    "depends_on": [first_id]}] * 1000)
        felt(site.address, 2)
        before = felt(site.address, PROBE_S)
        rss_before = rss_mb(site.pid)
        first = claim(wire, "w", "first")[0]
        with Probe(site.address) as probe:
            time.sleep(0.5)
            began = time.monotonic()
            report(wire, "w", [element(first, "complete")])
            answer_s = time.monotonic() - began
            wait_for(lambda: site.stats()["counts"]["blocked"] == 0, 60, "the dependents")
            all_s = time.monotonic() - began
            time.sleep(0.5)
            during = probe.finish()
        rss_peak, rss_after = peak_mb(site.pid), rss_mb(site.pid)
        ready = site.stats()["counts"]["pending"]
        wire.close()
        if text := site.verify():
            findings.append("verify: " + text)
    if ready != count:
        findings.append(f"{ready} of {count} dependents are ready")
    if during["worst_ms"] > STALL_MS:
        findings.append(f"others waited for {during['worst_ms']:.0f} ms")
    return {"result": f"all {count} ready {all_s:.2f} s after the report, which was answered after "
                      f"{answer_s:.2f} s; others waited for at most {during['worst_ms']:.0f} ms "
                      f"(before: {before['worst_ms']:.0f}); memory {rss_before:.0f} → at most "
                      f"{rss_peak:.0f} → {rss_after:.0f} MB",
            "figures": {"dependents": count, "answer_s": round(answer_s, 3),
                        "all_s": round(all_s, 3), "before": before, "during": during,
                        "rss_before_mb": rss_before, "rss_peak_mb": rss_peak,
                        "rss_after_mb": rss_after},
            "findings": findings}


def failures(scale, say):
    """All fail at once and come back at once, four seconds later: by choice, retries are not
    spread, so this is the worst case."""
    count = max(2000, int(50000 * scale))
    findings = []
    with Site() as site:
        felt(site.address, 2)
        before = felt(site.address, PROBE_S)
        wire = site.wire()
        site.register(wire, "w", ["down"])
        for _ in range(0, count, 1000):
            wire.expect(201, "POST", "/v1/tasks",
                        [{"type": "call", "queue": "down", "retry_policy": "fixed",
                          "retry_delay_ms": 4000, "max_retries": 1}] * 1000)
        held = []
        while tasks := claim(wire, "w", "down", 1000):
            held += tasks
        with Probe(site.address) as probe:
            began = time.monotonic()
            for n in range(0, count, 1000):
                report(wire, "w", [element(task, "fail", error="connection refused")
                                   for task in held[n:n + 1000]])
            failed_s = time.monotonic() - began
            failing = probe.finish()
        with Probe(site.address) as probe:
            wait_for(lambda: site.stats()["counts"]["delayed"] == 0, 60, "all retries due")
            back_s = time.monotonic() - began
            time.sleep(max(0, PROBE_S - back_s))
            returning = probe.finish()
        tried = drain(site, wire, "w", "down", "fail", error="connection refused")
        counts = site.stats()["counts"]
        wire.close()
        if text := site.verify():
            findings.append("verify: " + text)
    if tried != count or counts["dead_letter"] != count:
        findings.append(f"{tried} of {count} were tried again, {counts['dead_letter']} ended")
    if ratio(returning, before) > 2:
        findings.append(f"a normal client's p99 is {ratio(returning, before)} times as long while "
                        f"they come back")
    if failing["worst_ms"] > STALL_MS:
        findings.append(f"others waited for up to {failing['worst_ms']:.0f} ms")
    return {"result": f"{count} failed within {failed_s:.1f} s, reported by one client in batches "
                      f"of 1,000 without a pause (a normal client's p99 meanwhile "
                      f"{failing['p99_ms']:.0f} ms), and were all back {back_s:.1f} s after the "
                      f"first (retry delay 4 s; jitter is off by default); while they come back "
                      f"{felt_text(before, returning)}; each was tried once more and became a "
                      f"dead letter",
            "figures": {"tasks": count, "failed_s": round(failed_s, 2),
                        "back_s": round(back_s, 2), "before": before, "failing": failing,
                        "returning": returning, "p99_ratio": ratio(returning, before)},
            "findings": findings}


def flood(scale, say):
    megabytes = max(50, int(1024 * scale))
    findings = []
    with Site() as site:
        script = os.path.join(site.folder, "flood.sh")
        with open(script, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nhead -c {megabytes}M /dev/zero | tr '\\000' '\\377'\n")
        os.chmod(script, stat.S_IRWXU)
        worker = site.worker(f'handlers:\n  - type: "flood"\n    command: ["{script}"]\n')
        wait_for(lambda: site.stats()["workers"] >= 1, 20, "the worker")
        felt(site.address, 2)
        before = felt(site.address, PROBE_S)
        wire = site.wire()
        sizes_before = rss_mb(site.pid), rss_mb(worker.pid)
        began = time.monotonic()
        with Probe(site.address) as probe:
            task_id = wire.expect(201, "POST", "/v1/tasks", {"type": "flood"})["id"]

            def ended():
                task = wire.expect(200, "GET", f"/v1/tasks/{task_id}/wait?timeout_ms=1000")
                return task["status"] in ("completed", "failed", "dead_letter")

            wait_for(ended, 300, "the end of the flood")
            seconds = time.monotonic() - began
            during = probe.finish()
        sizes = peak_mb(site.pid), peak_mb(worker.pid)
        logs = wire.expect(200, "GET", f"/v1/tasks/{task_id}/logs?limit=1000")["items"]
        status = wire.expect(200, "GET", f"/v1/tasks/{task_id}")["status"]
        store_mb = os.path.getsize(site.server.store) / 1e6
        wire.close()
    marks = [x["message"] for x in logs if "dropped" in x["message"]]
    kept = sum(len(x["message"].encode()) for x in logs)
    if status != "completed":
        findings.append(f"the task is {status}")
    if not marks or not any("[cut]" in x["message"] for x in logs):
        findings.append("nothing says that output was cut, or how much")
    grown = [after - was for after, was in zip(sizes, sizes_before)]
    if max(grown) > 32:
        findings.append(f"server and worker grew by {grown[0]:.0f} and {grown[1]:.0f} MB")
    return {"result": f"{megabytes} MiB without a newline in {seconds:.1f} s, {kept / 1e3:.0f} kB "
                      f"kept, the log says “{marks[-1] if marks else '-'}”; server "
                      f"{sizes_before[0]:.0f} → {sizes[0]:.0f} MB, worker {sizes_before[1]:.0f} → "
                      f"{sizes[1]:.0f} MB at most; {felt_text(before, during)}",
            "figures": {"mib": megabytes, "seconds": round(seconds, 1), "kept_bytes": kept,
                        "log_lines": len(logs), "store_mb": round(store_mb, 1),
                        "server_mb": [sizes_before[0], sizes[0]],
                        "worker_mb": [sizes_before[1], sizes[1]], "before": before,
                        "during": during, "p99_ratio": ratio(during, before)},
            "findings": findings}


QUEUES = 1000
FILLERS = 4


def fill(site, total, say, batch=1000):
    """Arrays of tasks of one queue each, from several connections. Seconds."""
    batches = iter(range(total // batch))
    lock, began = threading.Lock(), time.monotonic()
    errors = []

    def work():
        wire = site.wire()
        while not errors:
            with lock:
                n = next(batches, None)
            if n is None:
                break
            body = (b'[' + b','.join(b'{"type":"t","queue":"q%d","priority":%d,"payload":{"n":%d}}'
                                     % (n % QUEUES, i % 11 - 5, i) for i in range(batch)) + b']')
            try:
                wire.send("POST", "/v1/tasks", body)
                status, text = wire.reply_bytes()
                if status != 201:
                    raise AssertionError(f"{status} {text[:200]}")
            except (OSError, AssertionError) as error:
                errors.append(error)
            if (n + 1) * batch % 500000 == 0:
                rate = (n + 1) * batch / (time.monotonic() - began)
                say(f"{(n + 1) * batch / 1e6:g} million of {total / 1e6:g} waiting, {rate:.0f}/s")
        wire.close()

    threads = [threading.Thread(target=work) for _ in range(FILLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise AssertionError(f"filling failed: {errors[0]}")
    return time.monotonic() - began


def claim_figures(site, count, seed):
    """Claims and completes one task at a time from queues chosen at random."""
    chance = random.Random(seed)
    wire = site.wire()
    site.register(wire, "claimer", ["q0"])
    times = []
    for _ in range(count):
        queue = f"q{chance.randrange(QUEUES)}"
        began = time.monotonic()
        tasks = claim(wire, "claimer", queue)
        times.append(time.monotonic() - began)
        if len(tasks) != 1:
            raise AssertionError(f"nothing was claimed from {queue}")
        report(wire, "claimer", [element(tasks[0], "complete")])
    wire.close()
    return {"claims": count, "p50_ms": ms(percentile(times, 0.5)),
            "p99_ms": ms(percentile(times, 0.99)), "worst_ms": ms(max(times))}


def seconds_between(task, other):
    times = [datetime.datetime.fromisoformat(x["created_at"].replace("Z", "+00:00"))
             for x in (task, other)]
    return (times[1] - times[0]).total_seconds()


def starvation(site, seconds):
    """One task of low priority in a queue with ageing, fed with urgent ones twice as fast as they
    are claimed. None that was enqueued later than the ageing bound may go first."""
    ageing_ms, steps = 200, 10
    wire = site.wire()
    site.register(wire, "aged", ["aged"])
    wire.expect(200, "PATCH", "/v1/queues/aged", {"ageing_ms": ageing_ms})
    low = wire.expect(201, "POST", "/v1/tasks", {"type": "low", "queue": "aged", "priority": 0})
    figures = {"waited_s": None, "urgent_before": 0, "latest_before_s": 0.0,
               "bound_s": ageing_ms * steps / 1000}
    began = time.monotonic()
    while figures["waited_s"] is None and time.monotonic() - began < seconds:
        wire.expect(201, "POST", "/v1/tasks", [{"type": "urgent", "queue": "aged",
                                                "priority": steps}] * 2)
        task = claim(wire, "aged", "aged")[0]
        report(wire, "aged", [element(task, "complete")])
        if task["id"] == low["id"]:
            figures["waited_s"] = round(time.monotonic() - began, 2)
            break
        figures["urgent_before"] += 1
        figures["latest_before_s"] = max(figures["latest_before_s"], seconds_between(low, task))
    wire.close()
    return figures


def millions(scale, say):
    total = max(100000, int(10_000_000 * scale) // 1000 * 1000)
    claims = 4000
    findings = []
    with Site() as site:
        fill(site, QUEUES * 20, say, batch=20)
        small = claim_figures(site, claims, 1)
    with Site() as site:
        rss_before = rss_mb(site.pid)
        fill_s = fill(site, total, say, batch=min(1000, total // QUEUES))
        rss_full = rss_mb(site.pid)
        store_gb = sum(os.path.getsize(site.server.store + end) for end in ("", "-wal")) / 1e9
        large = claim_figures(site, claims, 2)
        aged = starvation(site, 60)
        say("killed; starting again")
        site.kill()
        began = time.monotonic()
        site.start()
        wire = site.wire()
        site.register(wire, "first", ["q7"])
        tasks = claim(wire, "first", "q7")
        restart_s = time.monotonic() - began
        again = claim_figures(site, claims, 3)
        rss_again = rss_mb(site.pid)
        left = site.stats()["counts"]["pending"]
        wire.close()
    if len(tasks) != 1:
        findings.append("nothing could be claimed after the restart")
    expected = total - 2 * claims - 1
    if not expected <= left <= expected + 2 * aged["urgent_before"] + 4:
        findings.append(f"{left} tasks wait instead of {expected}")
    for name, figures in (("", large), (" after the restart", again)):
        if ratio(figures, small) > 2:
            findings.append(f"claim p99{name} is {ratio(figures, small)} times that of a small "
                            f"store")
    if aged["waited_s"] is None or aged["latest_before_s"] > aged["bound_s"]:
        findings.append(f"an urgent task enqueued {aged['latest_before_s']} s after one of low "
                        f"priority went first")
    return {"result": f"{total / 1e6:g} million filled at {total / fill_s:.0f}/s ({fill_s:.0f} s, "
                      f"{store_gb:.1f} GB); claim from a random queue p50 {small['p50_ms']:.2f} → "
                      f"{large['p50_ms']:.2f}, p99 {small['p99_ms']:.2f} → {large['p99_ms']:.2f} "
                      f"ms ({ratio(large, small)}× that of 20 per queue); memory "
                      f"{rss_before:.0f} → {rss_full:.0f} MB; kill -9 → first claim "
                      f"{restart_s:.2f} s, then p99 {again['p99_ms']:.2f} ms; low priority is "
                      f"not starved: of twice as many urgent tasks as can be done, none enqueued "
                      f"more than {aged['latest_before_s']:.2f} s later went first (ageing bound "
                      f"{aged['bound_s']} s)",
            "figures": {"tasks": total, "fill_s": round(fill_s, 1),
                        "fill_per_s": round(total / fill_s), "store_gb": round(store_gb, 2),
                        "small": small, "large": large, "after_restart": again,
                        "p99_ratio": ratio(large, small), "rss_before_mb": rss_before,
                        "rss_full_mb": rss_full, "rss_after_restart_mb": rss_again,
                        "restart_s": round(restart_s, 2), "ageing": aged},
            "findings": findings}


PIECES = [
    Piece("F-H12", "100,000 children of one parent, kill -9 in the middle", children),
    Piece("F-H12b", "100,000 tasks that depend on one", dependents),
    Piece("F-H15", "50,000 tasks fail at once and come back at once", failures),
    Piece("F-H16", "a handler writes 1 GiB of bytes that are no text, without a newline", flood),
    Piece("F-H19", "10 million waiting tasks in 1,000 queues", millions),
]
