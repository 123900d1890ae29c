"""Load by many clients: idle, slow, waiting, vanishing (F-H1, F-H5, F-H6, F-H8, F-H17). Each piece
returns its figures and what it found wrong; load.py runs them."""
import contextlib
import json
import selectors
import time

from load_clients import (Helper, Probe, Site, cpu_us, felt, ms, open_many, peak_mb, percentile,
                          request_bytes, rss_mb)

PROBE_S = 12


class Piece:
    """One entry of the campaign: fault ids, one sentence, and the function that does it."""

    def __init__(self, ids, what, run):
        self.ids, self.what, self.run = ids, what, run


def wait_for(predicate, deadline_s, what):
    end = time.monotonic() + deadline_s
    while not predicate():
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not come true within {deadline_s} s")
        time.sleep(0.05)


def ratio(during, before, key="p99_ms"):
    return round(during[key] / max(before[key], 0.001), 2)


def felt_text(before, during):
    """For the report: what the probe felt before and during."""
    return (f"a normal client's p50 {before['p50_ms']:.2f} → {during['p50_ms']:.2f} ms, "
            f"p99 {before['p99_ms']:.2f} → {during['p99_ms']:.2f} ms "
            f"({ratio(during, before)}×)")


def same_key(scale, say):
    count = max(10, int(1000 * scale))
    findings = []
    with Site() as site:
        wires = open_many(site.address, count)
        request = request_bytes("POST", "/v1/tasks", {"type": "t", "payload": {"n": 1},
                                                      "idempotency_key": "one"})
        began = time.monotonic()
        for wire in wires:
            wire.sock.sendall(request)
        statuses = [wire.reply_bytes()[0] for wire in wires]
        seconds = time.monotonic() - began
        tasks = sum(site.stats()["counts"].values())
        for wire in wires:
            wire.close()
    if statuses.count(201) != 1 or statuses.count(200) != count - 1 or tasks != 1:
        findings.append(f"{statuses.count(201)} got 201, {tasks} tasks are stored")
    return {"result": f"{tasks} task, {count} equal answers in {seconds:.2f} s",
            "figures": {"clients": count, "tasks": tasks, "seconds": round(seconds, 3)},
            "findings": findings}


def slow_clients(scale, say):
    each = max(10, int(1000 * scale)), max(10, int(800 * scale)), max(10, int(200 * scale))
    findings = []
    with Site() as site, contextlib.closing(site.wire()) as wire:
        for _ in range(5):
            wire.expect(201, "POST", "/v1/tasks", {"type": "big", "payload": "x" * 900000})
        felt(site.address, 2)
        before = felt(site.address, PROBE_S)
        rss_before = rss_mb(site.pid)
        with Helper("slow", nice=5, address=site.address, headers=each[0], bodies=each[1],
                    readers=each[2]) as crowd:
            connected = crowd.line()["connected"]
            began = time.monotonic()
            time.sleep(2)  # the large answers are made; now their readers are slow
            during = felt(site.address, 7)
            held = site_connections(wire) - 1
            wait_for(lambda: site_connections(wire) <= 1, 60, "the end of all slow connections")
            ended_s = time.monotonic() - began
        time.sleep(2)  # the server gives memory back when it has nothing better to do
        rss_peak, rss_after = peak_mb(site.pid), rss_mb(site.pid)
    unsent_mb = min(each[2] * 4.5, 512)  # the bound on answers that were not taken yet
    if ratio(during, before) > 2:
        findings.append(f"a normal client's p99 is {ratio(during, before)} times as long")
    if during["failures"]:
        findings.append(f"{during['failures']} requests of the normal client failed")
    if ended_s > 30:
        findings.append(f"the last slow client was ended after {ended_s:.0f} s")
    # What the allocator needs for itself is about a tenth.
    if rss_peak - rss_before > unsent_mb * 1.1 + connected * 0.05 + 32:
        findings.append(f"memory grew by {rss_peak - rss_before:.0f} MB")
    if rss_after - rss_before > 100:
        findings.append(f"{rss_after - rss_before:.0f} MB were not given back")
    return {"result": f"{connected} slow clients ({each[0]} headers, {each[1]} bodies, {each[2]} "
                      f"readers of 4.5 MB); {felt_text(before, during)}; all ended after "
                      f"{ended_s:.1f} s; memory {rss_before:.0f} → at most {rss_peak:.0f} → "
                      f"{rss_after:.0f} MB",
            "figures": {"slow": connected, "held_at_the_end": held, "before": before,
                        "during": during, "p99_ratio": ratio(during, before),
                        "ended_s": round(ended_s, 1), "rss_before_mb": rss_before,
                        "rss_peak_mb": rss_peak, "rss_after_mb": rss_after},
            "findings": findings}


def site_connections(wire):
    return wire.expect(200, "GET", "/v1/stats")["connections"]


def idle_workers(scale, say):
    count, holding, lease_s = max(50, int(10000 * scale)), max(5, int(500 * scale)), 30
    findings = []
    with Site(lease=f"{lease_s}s") as site, contextlib.closing(site.wire()) as wire:
        wire.expect(201, "POST", "/v1/tasks", [{"type": "t", "queue": "held",
                                                "timeout_ms": 3600000}] * holding)
        felt(site.address, 2)
        before = felt(site.address, PROBE_S)
        rss_before = rss_mb(site.pid)
        with Helper("idle", nice=5, address=site.address, count=count, lease_s=lease_s,
                    holding=holding) as crowd:
            refused = crowd.line()["refused"]
            wait_for(lambda: site.stats()["waiting_claims"] >= count, 120, "all workers parked")
            rss_parked = rss_mb(site.pid)
            say(f"{count} parked; watching them for {2 * lease_s} s")
            cpu = cpu_us(site.pid)
            quiet_s = 2 * lease_s - PROBE_S
            time.sleep(quiet_s)
            cpu = (cpu_us(site.pid) - cpu) / quiet_s / 1e4
            during = felt(site.address, PROBE_S)
            stats = site.stats()
            rss_after = rss_mb(site.pid)
            crowd_says = crowd.finish()
    kb_each = (rss_parked - rss_before) * 1024 / count
    lost = stats["totals"]["lost_leases"]
    for bad, text in ((refused, "registrations were refused"), (lost, "leases were lost"),
                      (crowd_says["gone"], "long-polls broke"),
                      (crowd_says["beats_late"], "heartbeats came too late"),
                      (crowd_says["beats_refused"], "heartbeats were refused"),
                      (count - min(count, stats["workers"]), "workers were declared gone"),
                      (during["failures"], "requests of the normal client failed")):
        if bad:
            findings.append(f"{bad} {text}")
    if kb_each > 10:
        findings.append(f"{kb_each:.1f} KiB per parked worker")
    return {"result": f"{count} accepted, {kb_each:.1f} KiB each with connection and worker; "
                      f"{crowd_says['beats']} heartbeats, none late (slowest "
                      f"{crowd_says['worst_beat_s']:.2f} s of {lease_s} s), 0 leases lost; "
                      f"{cpu:.0f} % of a core; {felt_text(before, during)}",
            "figures": {"workers": count, "holding": holding, "kib_each": round(kb_each, 2),
                        "rss_before_mb": rss_before, "rss_parked_mb": rss_parked,
                        "rss_after_mb": rss_after, "core_percent": round(cpu, 1),
                        "crowd": crowd_says, "before": before, "during": during,
                        "p50_ratio": ratio(during, before, "p50_ms"),
                        "p99_ratio": ratio(during, before)},
            "findings": findings}


def wake_series(site, waiting, tasks):
    """So many tasks one by one into a queue with so many waiting workers: latencies, CPU, who got
    them."""
    wires = open_many(site.address, waiting)
    polls = selectors.DefaultSelector()
    producer, reporter = site.wire(), site.wire()
    park = [request_bytes("POST", f"/v1/workers/w-{waiting}-{i}:claim",
                          {"max": 1, "wait_ms": 60000}) for i in range(waiting)]
    for i, wire in enumerate(wires):
        site.register(wire, f"w-{waiting}-{i}", ["one"])
        polls.register(wire.sock, selectors.EVENT_READ, i)
        wire.sock.sendall(park[i])
    enqueue = request_bytes("POST", "/v1/tasks", {"type": "t", "queue": "one"})
    wait_for(lambda: site.stats()["waiting_claims"] >= waiting, 60, "all claims parked")
    times, cpu, got_twice, answers = [], [], 0, 0
    for _ in range(tasks):
        used = cpu_us(site.pid)
        began = time.monotonic()
        producer.sock.sendall(enqueue)
        ready = polls.select(30)
        times.append(time.monotonic() - began)
        producer.reply_bytes()
        cpu.append(cpu_us(site.pid) - used)
        ready = {key.data for key, _ in ready} | {key.data for key, _ in polls.select(0)}
        answers += len(ready)
        holders = 0
        for i in ready:
            _, body = wires[i].reply_bytes()
            for task in json.loads(body)["tasks"]:
                holders += 1
                reporter.expect(200, "POST", f"/v1/workers/w-{waiting}-{i}:report",
                                [{"task_id": task["id"], "lease_token": task["lease_token"],
                                  "op": "complete"}])
            wires[i].sock.sendall(park[i])
        got_twice += holders != 1
    for wire in (*wires, producer, reporter):
        wire.close()
    return {"waiting": waiting, "tasks": tasks, "wrong": got_twice,
            "answers_per_task": round(answers / tasks, 3), "p50_ms": ms(percentile(times, 0.5)),
            "p99_ms": ms(percentile(times, 0.99)), "cpu_us": round(percentile(cpu, 0.5))}


def waiting_workers(scale, say):
    waiting, tasks = max(20, int(1000 * scale)), 200
    findings = []
    with Site() as site:
        wake_series(site, 1, 50)
        alone = wake_series(site, 1, tasks)
        crowd = wake_series(site, waiting, tasks)
    if alone["wrong"] or crowd["wrong"] or crowd["answers_per_task"] != 1:
        findings.append(f"{crowd['wrong']} tasks were not claimed exactly once; "
                        f"{crowd['answers_per_task']} claims answered per task")
    if ratio(crowd, alone) > 2:
        findings.append(f"start latency p99 is {ratio(crowd, alone)} times that of one worker")
    if ratio(crowd, alone, "cpu_us") > 2:
        findings.append(f"a wake-up costs {ratio(crowd, alone, 'cpu_us')} times the CPU of one "
                        f"worker alone")
    return {"result": f"each of {tasks} tasks went to exactly one of {waiting} workers, "
                      f"{crowd['answers_per_task']:g} claim answered per task; enqueue → claimed "
                      f"p50 {crowd['p50_ms']:.2f}, p99 {crowd['p99_ms']:.2f} ms (with one worker "
                      f"{alone['p50_ms']:.2f}, {alone['p99_ms']:.2f}); server CPU per wake-up "
                      f"{crowd['cpu_us']} µs (with one worker {alone['cpu_us']})",
            "figures": {"alone": alone, "crowd": crowd}, "findings": findings}


def vanishing_workers(scale, say):
    count, rounds, wide = max(1000, int(100000 * scale)), 4, 50
    findings, sizes, seconds = [], [], []
    with Site(lease="1s") as site:
        felt(site.address, 2)
        before = felt(site.address, PROBE_S)
        sizes.append(rss_mb(site.pid))
        wires = open_many(site.address, wide)
        with Probe(site.address) as probe:
            for n in range(rounds):
                began = time.monotonic()
                for first in range(0, count // rounds, wide):
                    for i, wire in enumerate(wires):
                        wire.send("POST", "/v1/workers",
                                  {"id": f"gone-{n}-{first + i}", "hostname": "h", "pool_size": 1,
                                   "queues": ["gone"], "version": "1"})
                    for wire in wires:
                        if wire.reply_bytes()[0] != 201:
                            raise AssertionError("a worker was not registered")
                wait_for(lambda: site.workers() <= 4, 120, "all workers pruned")
                seconds.append(round(time.monotonic() - began, 1))
                sizes.append(rss_mb(site.pid))
                say(f"{count // rounds} workers came and went in {seconds[-1]} s, "
                    f"{sizes[-1]} MB")
            during = probe.finish()
        for wire in wires:
            wire.close()
    if sizes[-1] - sizes[1] > 5:
        findings.append(f"memory went from {sizes[1]} to {sizes[-1]} MB")
    if ratio(during, before) > 2:
        findings.append(f"a normal client's p99 is {ratio(during, before)} times as long")
    return {"result": f"{count} workers in {rounds} waves, each wave registered, silent and pruned "
                      f"within {max(seconds)} s (lease 1 s); memory {sizes[0]:.0f} MB, after each "
                      f"wave {', '.join(f'{x:.0f}' for x in sizes[1:])} MB; "
                      f"{felt_text(before, during)}",
            "figures": {"workers": count, "rss_mb": sizes, "wave_s": seconds, "before": before,
                        "during": during},
            "findings": findings}


PIECES = [
    Piece("F-H1", "1,000 clients enqueue with the same key at once", same_key),
    Piece("F-H5", "2,000 slow clients at once: slow headers, slow bodies, slow readers",
          slow_clients),
    Piece("F-H6", "10,000 idle workers parked in long-polls, with heartbeats, 500 of them holding "
          "a task", idle_workers),
    Piece("F-H8", "1,000 waiting workers, one task, 200 times", waiting_workers),
    Piece("F-H17", "100,000 workers register and vanish", vanishing_workers),
]
