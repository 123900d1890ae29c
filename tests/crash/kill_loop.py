"""The random kill loop: producers, workers, cancels, children, dependencies, checkpoints, callbacks
and retention keep running while the server and worker processes are killed, at named points and at
any moment. After every kill a copy of the store is checked; afterwards everything acknowledged must
be there, nothing may have completed twice, and everything must end (V1-V7).

    python3 tests/crash/kill_loop.py --kills 500 --seed 7

A campaign is a series of rounds, each with a store of its own, and is given by its seed.
Half of the kills are at a named point where PERDURA_FAULTS_BUILD has a binary.
`make faults` runs thousands of rounds' worth: tests/campaign/kills.py.
"""
import argparse
import collections
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time

import crash_harness
from crash_harness import ENDED, CrashServer
from harness import free_port
from kill_check import Checker, check_end
from kill_clients import BROKEN, LEASE_MS, Client, Operator, Producer, Receiver, Stopped, \
    Target, Told, Worker
from kill_workers import WORKER_POINTS, WorkerProcess, now_us, read_marks, reruns_ms, survivors

KILLS_PER_ROUND = 100
PROBES = 200  # tasks for the first claim after each restart
SETTLE_S = 180  # only ever reached when something does not end
POINTS = ("before.commit", "after.commit", "before.enqueue", "after.enqueue", "before.claim",
          "after.claim", "before.report", "after.report", "before.control", "after.control",
          "before.heartbeat", "after.heartbeat", "before.register", "after.register",
          "before.outbox_take", "after.outbox_take", "before.outbox_done", "after.outbox_done",
          "before.checkpoint", "after.checkpoint", "before.recover", "after.recover",
          "enqueue.row", "claim.row", "report.checkpoint", "report.log", "report.spawn",
          "outcome.complete", "outcome.continue", "outcome.fail", "control.cancel",
          "ended.dependent", "ended.parent", "ended.callback", "sweep.lose", "sweep.due",
          "sweep.worker", "retention.remove", "retention.archived", "retention.history",
          "webhook.sending", "webhook.delivered", "drain.begin", "store.close")
CONFIG = f"""workers: 0
lease: {LEASE_MS}ms
grace: 200ms
log_level: warn
retention:
  archive: "archive"
handlers:
  - type: "brief"
    command: ["/bin/true"]
    retention: 300ms
"""


class Round:
    def __init__(self, kills, seed):
        self.kills, self.seed = kills, seed
        self.rng = random.Random(f"{seed}-killer")
        self.folder = tempfile.mkdtemp(prefix="perdura-kills-")
        self.server = CrashServer(self.folder)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.target, self.told, self.receiver = Target(), Told(), Receiver()
        self.marks = os.path.join(self.folder, "marks")
        self.workers = [WorkerProcess(kind, n, self.folder, self.marks)
                        for kind in ("process", "library") for n in range(2)]
        self.stop = threading.Event()   # producers and the operator
        self.calm = threading.Event()   # workers do not die any more
        self.threads = []
        self.point = None               # where the present server kills itself
        self.done = collections.Counter()
        self.at_points = collections.Counter()
        self.restarts_us = []
        self.first_claims_ms = []
        self.client = Client(self.target)
        self.checker = None

    def run(self):
        """Kills, lets everything end, checks. Returns what was found wrong."""
        try:
            self.start_server()
            self.checker = Checker(self.told, self.server.store)
            self.start_clients()
            while sum(self.done.values()) < self.kills:
                self.step()
            self.settle()
            self.check()
        except Exception as error:
            self.told.find(f"the round ended with {error!r}: {self.server.log()[-1500:]}")
        finally:
            self.end()
        return self.told.findings

    def end(self):
        self.stop.set()
        self.target.over.set()
        self.target.up.set()
        for worker in self.workers:
            worker.kill()
        self.server.kill()
        self.server.close()
        for thread in self.threads:
            thread.join(90)
        if self.checker:
            self.checker.stop()
        self.receiver.close()
        if not self.told.findings:
            shutil.rmtree(self.folder, ignore_errors=True)

    # The server.

    def start_server(self, points=True):
        point = None
        if points and crash_harness.fault_binary() and self.rng.random() < 0.6:
            point = self.rng.choice(POINTS)
            nth = 1 if point.endswith("recover") else 1 + int(self.rng.expovariate(1 / 3))
        began = time.monotonic()
        fault = f"{point}:{nth}" if point else None
        listen = ("--listen", f"127.0.0.1:{self.port}")
        try:
            self.server.start(*listen, config=CONFIG, fault=fault)
        except AssertionError:
            if not fault or self.server.wait() != -signal.SIGKILL:
                raise
            self.killed("server", point)
            began, point = time.monotonic(), None
            self.server.start(*listen, config=CONFIG)
        self.point = point
        self.target.address = self.server.address
        self.probe(began)
        self.target.up.set()

    def probe(self, began):
        """How long it was from the start of the process to the answer to the first claim."""
        try:
            if not self.restarts_us:
                self.call_once("/v1/tasks", [{"type": "probe", "queue": "probe"}] * PROBES)
            self.call_once("/v1/workers", {"id": "probe", "hostname": "loop", "pool_size": 1,
                                           "queues": ["probe"], "version": "1"})
            tasks = self.call_once("/v1/workers/probe:claim", {"max": 1, "wait_ms": 0})["tasks"]
            if tasks and self.restarts_us:
                self.first_claims_ms.append(1000 * (time.monotonic() - began))
            self.call_once("/v1/workers/probe:report",
                           [{"task_id": task["id"], "lease_token": task["lease_token"],
                             "op": "complete"} for task in tasks])
        except BROKEN:
            pass  # it died at its point
        finally:
            self.client.close()

    def call_once(self, path, body):
        return self.client.once("POST", path, json.dumps(body))[1]

    def killed(self, who, point):
        self.done[who] += 1
        self.at_points[point or "any moment"] += 1
        if who == "server":
            self.restarts_us.append(now_us())
            if self.checker:
                self.checker.take()

    def kill_server(self):
        self.target.up.clear()
        by_itself = self.server.process.poll() == -signal.SIGKILL
        code = self.server.kill()
        if code not in (-signal.SIGKILL, 0) or "Sanitizer" in self.server.log():
            self.told.find(f"the server ended with {code}: {self.server.log()[-2000:]}")
        self.killed("server", self.point if by_itself else None)

    def start_clients(self):
        actors = [Producer(n, self.seed, self.target, self.told, self.stop, self.receiver.url)
                  for n in range(2)]
        actors += [Worker(n, self.seed, self.target, self.told, self.calm) for n in range(3)]
        actors.append(Operator(self.seed, self.target, self.told, self.stop))
        for actor in actors:
            thread = threading.Thread(target=self.act, args=(actor,), daemon=True)
            thread.start()
            self.threads.append(thread)
        for worker in self.workers:
            worker.start(self.url)

    def act(self, actor):
        try:
            actor.run()
        except Stopped:
            pass
        except BaseException as error:  # a client that broke would hide what comes after
            self.told.find(f"{type(actor).__name__} ended with {error!r}")
        finally:
            actor.client.close()

    # One step: the server, a worker, both, or a few workers while the server lives.

    def step(self):
        how = self.rng.random()
        if how < 0.88:
            self.live()
            if self.rng.random() < 0.15:
                self.kill_worker(self.rng.choice(self.workers))
            self.kill_server()
            self.start_server()
        else:
            for _ in range(self.rng.randrange(3, 6)):
                self.wait(self.rng.random() * 0.25)
                self.kill_worker(self.rng.choice(self.workers))
            if self.server.process.poll() is not None:
                self.kill_server()
                self.start_server(points=False)
            else:
                self.wait(2 * LEASE_MS / 1000)  # leases end
        self.replace_workers()

    def live(self):
        """How long and how the server lives before it is killed."""
        how = self.rng.random()
        wait_s = 0.01 + self.rng.random() * 0.15
        if how < 0.08:  # paused before it dies: clients time nothing out, leases pass
            self.wait(wait_s)
            if self.server.process.poll() is None:
                os.kill(self.server.pid, signal.SIGSTOP)
                time.sleep(self.rng.random() * 2 * LEASE_MS / 1000)
        elif how < 0.14:  # long enough alive for leases to end
            self.wait(wait_s + 3 * LEASE_MS / 1000)
        elif how < 0.3 or self.point in ("drain.begin", "store.close"):  # in the drain
            self.wait(wait_s)
            if self.server.process.poll() is None:
                os.kill(self.server.pid, signal.SIGTERM)
                self.wait(0.3 if self.point == "store.close" else self.rng.random() * 0.03)
        else:  # at its point, or at any moment
            self.wait(wait_s + (0.4 if self.point else 0))

    def wait(self, seconds):
        """Ends early when the server died at its point."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.server.process.poll() is None:
            time.sleep(0.002)

    def kill_worker(self, worker):
        if worker.ended() is None:
            worker.kill()
            self.killed(worker.kind, None)
            worker.process = None
        self.replace_workers()

    def replace_workers(self, points=True):
        for worker in self.workers:
            ended = worker.ended()
            if ended is None:
                continue
            if ended:
                self.killed(worker.kind, ended)
            point = None
            if points and worker.kind == "process" and self.rng.random() < 0.4:
                point = f"{self.rng.choice(WORKER_POINTS)}:{self.rng.randrange(1, 8)}"
            worker.start(self.url, point)

    def settle(self):
        """No more kills, no more input: everything must end."""
        self.stop.set()
        self.calm.set()
        self.target.up.clear()
        self.server.kill()
        self.start_server(points=False)
        client = Client(self.target)
        end = time.monotonic() + SETTLE_S
        while time.monotonic() < end:
            for worker in self.workers:
                if worker.ended() is not None or worker.point:
                    worker.kill()
                    worker.start(self.url)
            counts = client.call("GET", "/v1/stats")[1]["counts"]
            if not any(count for status, count in counts.items() if status not in ENDED):
                break
            time.sleep(0.02)
        else:
            self.told.find(f"not everything ended: {counts}")
        while time.monotonic() < end and self.callbacks_missing():
            time.sleep(0.02)
        client.close()

    def callbacks_missing(self):
        return [t for t in self.told.callbacks if t not in self.receiver.received]

    def check(self):
        self.target.over.set()
        self.server.kill()
        self.checker.stop()
        check_end(self.server.store, self.told, self.receiver.received)
        self.told.counts["cancelled"] = len(self.told.cancelled)
        killed_at_us = {}
        for worker in self.workers:
            worker.kill()
            killed_at_us.update(worker.killed_at_us)
        marks = read_marks(self.marks)
        for text in survivors(marks, killed_at_us):
            self.told.find(text)
        self.reruns = reruns_ms(marks, killed_at_us, self.restarts_us)

    def line(self, seconds):
        """What the ledger gets."""
        counts = self.told.counts
        alone, together = getattr(self, "reruns", ([], []))
        line = {"seed": self.seed, "kills": sum(self.done.values()), "killed": dict(self.done),
                "at_points": dict(self.at_points),
                "checks": self.checker.checks if self.checker else 0,
                "acknowledged": len(self.told.types), "completed": counts["completed"],
                "cancelled": counts["cancelled"], "lost": self.told.lost,
                "twice": self.told.twice, "stale_refused": counts["stale_lease"],
                "tasks": counts["tasks"], "removed": counts["removed"],
                "callbacks": counts["callbacks"],
                "callbacks_repeated": counts["callbacks repeated"],
                "first_claim_ms": rounded(self.first_claims_ms),
                "rerun_ms": rounded(alone), "rerun_with_server_kill_ms": rounded(together),
                "seconds": round(seconds, 1), "findings": self.told.findings}
        if self.told.findings:
            line["folder"] = self.folder
        return line


def rounded(values):
    return [round(value, 1) for value in values]


def one_round(kills, seed):
    began = time.monotonic()
    a_round = Round(kills, seed)
    a_round.run()
    return a_round.line(time.monotonic() - began)


def campaign(kills, seed, tell=None):
    """Returns the findings of all rounds."""
    findings = []
    done = number = 0
    while done < kills:
        line = one_round(min(KILLS_PER_ROUND, kills - done), f"{seed}.{number}")
        if tell:
            tell(json.dumps(line))
        findings += line["findings"]
        done += line["kills"]
        number += 1
        if not line["kills"]:
            break
    return findings


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", default=str(random.randrange(10 ** 6)))
    parser.add_argument("--round", action="store_true",
                        help="one round with exactly this seed, its ledger line as JSON")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends what it started
    if arguments.round:
        line = one_round(arguments.kills, arguments.seed)
        print(json.dumps(line), flush=True)
        sys.exit(1 if line["findings"] else 0)
    print(f"seed {arguments.seed}", flush=True)
    findings = campaign(arguments.kills, arguments.seed, lambda line: print(line, flush=True))
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
