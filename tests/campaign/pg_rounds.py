"""Rounds of the PostgreSQL campaign: nodes that are killed and stopped, databases that restart and
crash, commits that are cut, networks that delay, lose and fall silent. Each round is given by its
seed and makes one row of the ledger:

    python3 tests/campaign/pg_rounds.py kills|restarts|cuts|nets SEED [COUNT]
"""
import contextlib
import json
import os
import signal
import sys
import time

import pg_load
from pg_load import LEASE_MS, Round

from proxy import Proxy  # noqa: E402  (tests/postgres, by pg_load)
from server import Postgres  # noqa: E402

NODES = 3
LEASE_S = LEASE_MS / 1000
POINTS = ("before.commit", "after.commit", "before.enqueue", "after.enqueue", "before.claim",
          "after.claim", "before.report", "after.report", "after.control", "before.heartbeat",
          "after.register", "after.outbox_take", "before.outbox_done", "before.recover",
          "after.recover", "enqueue.row", "claim.row", "report.checkpoint", "report.spawn",
          "outcome.complete", "outcome.continue", "control.cancel", "ended.dependent",
          "ended.parent", "sweep.lose", "sweep.due", "sweep.worker", "retention.remove",
          "retention.archived", "webhook.sending", "webhook.delivered", "drain.begin")
SOURCE_OF_DOUBT = ("sent", "reset")  # cuts whose outcome only the database knows


class Kills(Round):
    """F-A1-A19 among several nodes, F-B5, F-B10, F-B11, F-F1, F-F3: nodes are killed, leaders more
    often than others, also several at once; some are stopped longer than their lease and then
    continue."""

    def __init__(self, seed, postgres, kills):
        super().__init__(seed, postgres, [postgres.port] * NODES)
        self.wanted = kills

    def work(self):
        checked = 0
        while self.counts["kills"] < self.wanted and not self.told.findings:
            time.sleep(0.02 + self.rng.random() * 0.2)
            self.step()
            self.restart_dead()
            if self.counts["kills"] >= checked + 10:
                checked = self.counts["kills"]
                self.nodes.wait_started()
                self.wait_progress(5, 20, "after kills")
                self.snapshot()

    def victim(self):
        leader = self.nodes.leader() if self.rng.random() < 0.5 else None
        candidates = [i for i in range(NODES)
                      if self.nodes.lives(i) and i not in self.nodes.starting]
        if leader in candidates:
            self.counts["leaders killed or stopped"] += 1
            return leader
        return self.rng.choice(candidates) if candidates else None

    def step(self):
        several = self.rng.random()
        for _ in range(1 if several < 0.85 else 2 if several < 0.96 else 3):
            victim = self.victim()
            if victim is not None:
                self.hit(victim)

    def hit(self, i):
        how = self.rng.random()
        if how < 0.12:  # continues, and must have noticed (F-B5)
            self.nodes.freeze(i)
            time.sleep(LEASE_S * self.rng.uniform(1.1, 2))
            self.nodes.thaw(i)
            self.counts["stops"] += 1
            return
        if how < 0.18:
            self.nodes.freeze(i)
            time.sleep(LEASE_S * self.rng.uniform(0.1, 1.5))
        elif how < 0.26:  # in the drain (F-A18, F-F2)
            os.kill(self.nodes.nodes[i].pid, signal.SIGTERM)
            time.sleep(self.rng.random() * 0.05)
        code = self.nodes.kill(i)
        if code not in (0, -signal.SIGKILL):
            self.told.find(f"node {i} ended with {code}: {self.nodes.nodes[i].log()[-1500:]}")
        self.counts["kills"] += 1
        point = None
        if pg_load.crash_harness.fault_binary() and self.rng.random() < 0.4:
            point = f"{self.rng.choice(POINTS)}:{1 + int(self.rng.expovariate(1 / 3))}"
        self.start_node(i, point)


class Restarts(Round):
    """F-E1, F-E2, F-E4: the database restarts fast or immediately, its postmaster is killed, and
    connections are ended by pg_terminate_backend."""

    HOWS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT, "kill -9": signal.SIGKILL}

    def __init__(self, seed, postgres, restarts):
        super().__init__(seed, postgres, [postgres.port] * NODES)
        self.wanted = restarts
        self.back_ms = []

    def work(self):
        while self.counts["restarts"] < self.wanted and not self.told.findings:
            if not self.wait_progress(20, 30, "between restarts"):
                return
            time.sleep(self.rng.random() * 0.3)
            for _ in range(self.rng.randrange(3)):
                self.terminate()
                self.wait_progress(5, 20, "after pg_terminate_backend")
            self.restart(self.rng.choice(list(self.HOWS)))
            if self.counts["restarts"] % 5 == 0:
                self.snapshot()

    def terminate(self):
        which = self.rng.choice(("true", "random() < 0.5", "application_name LIKE '%keeper'",
                                 "state = 'active' OR state LIKE 'idle in%'"))
        [[count]] = self.nodes.sql(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE "
            f"application_name LIKE 'perdura%' AND ({which})")
        self.counts["terminated"] += int(count)

    def restart(self, how):
        postgres = self.nodes.postgres
        postgres.stop(self.HOWS[how])
        if self.rng.random() < 0.3:
            time.sleep(self.rng.random() * 2 * LEASE_S)
        start_again(postgres)
        self.counts["restarts"] += 1
        self.counts[how] += 1
        self.wait_back(time.monotonic())

    def wait_back(self, since):
        """Until every node takes an enqueue again."""
        for i in range(NODES):
            body = json.dumps({"type": "plain", "queue": "work", "max_crashes": 100000,
                               "idempotency_key": f"back-{i}-{self.counts['restarts']}"})
            spec = json.loads(body)
            self.told.sent([spec])
            while True:
                status, answer = ask(self.nodes.nodes[i].address, body)
                if status in (200, 201):
                    self.told.acknowledged(spec, answer)
                    break
                if time.monotonic() - since > 20:
                    self.told.find(f"node {i} does not serve 20 s after the database came back")
                    return
                time.sleep(0.01)
            self.back_ms.append(round(1000 * (time.monotonic() - since)))

    def row(self):
        return {**super().row(), "back_ms": self.back_ms}


def ask(address, body):
    client = pg_load.kill_clients.http.client.HTTPConnection(*address, timeout=10)
    try:
        client.request("POST", "/v1/tasks", body)
        reply = client.getresponse()
        return reply.status, json.loads(reply.read() or b"null")
    except pg_load.kill_clients.BROKEN:
        return None, None
    finally:
        client.close()


def start_again(postgres):
    """Children of a killed postmaster end by themselves; until then no other one starts."""
    end = time.monotonic() + 30
    while True:
        try:
            postgres.start()
            return
        except RuntimeError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


class Proxied(Round):
    """Every node has a network of its own."""

    def __init__(self, seed, postgres, **options):
        self.proxies = [Proxy(postgres.port, f"{seed}-{i}") for i in range(NODES)]
        super().__init__(seed, postgres, [proxy.port for proxy in self.proxies], **options)

    def heal(self):
        for proxy in self.proxies:
            proxy.pass_on()

    def end(self):
        self.heal()
        super().end()
        for proxy in self.proxies:
            proxy.close()


class Cuts(Proxied):
    """F-E3: connections that end between a COMMIT and its answer; also in the transaction that
    finds out what became of the one before."""

    def __init__(self, seed, postgres, cuts):
        super().__init__(seed, postgres)
        self.wanted = cuts

    def done(self):
        return sum(how != "unsent" for proxy in self.proxies for how, _, _ in proxy.cuts)

    def work(self):
        steps = 0
        while self.done() < self.wanted and not self.told.findings:
            steps += 1
            proxy = self.rng.choice(self.proxies)
            before = len(proxy.cuts)
            how = self.rng.choice(("answered", "answered", "sent", "reset", "unsent"))
            times = 1 if self.rng.random() < 0.8 else self.rng.randrange(2, 5)
            kinds = ("write", "settle") if self.rng.random() < 0.3 else ("write",)
            proxy.arm(how, kinds, times)
            if not proxy.wait_cut(before + times, 5):
                self.counts["cuts that did not come"] += 1
            proxy.pass_on()
            if self.rng.random() < 0.1:
                self.counts["connections cut at any moment"] += self.rng.choice(self.proxies).cut()
            time.sleep(self.rng.random() * 0.05)
            if steps % 20 == 0:
                self.wait_progress(10, 20, "after cuts")
                self.snapshot()

    def check(self):
        super().check()
        for proxy, i in zip(self.proxies, range(NODES)):
            for how, kind, took in proxy.cuts:
                self.counts[f"cut {how}"] += 1
                self.counts["cut settles"] += kind == "settle"
                self.counts["cut and committed for certain"] += took is True
            answers = [entry["took"] for entry in self.nodes.events(i, "store.commit_settled")]
            self.counts["settled: took"] += answers.count("yes")
            self.counts["settled: did not take"] += answers.count("no")
            self.counts["unknown"] += len(self.nodes.events(i, "store.commit_unknown"))
            doubtful = sum(took is not True for _, _, took in proxy.cuts)
            if answers.count("no") > doubtful + self.counts["connections cut at any moment"]:
                self.told.find(f"node {i} settled {answers.count('no')} commits as not taken, only "
                               f"{doubtful} may not have been")
        self.counts["cuts"] = self.done()


class Nets(Proxied):
    """F-E7, F-E8: delays, lost packets, networks that fall silent in one or both directions, for
    one node or for all."""

    KINDS = ("delay", "loss", "hole", "hole up", "hole down", "refuse")

    def __init__(self, seed, postgres, count):
        super().__init__(seed, postgres)
        self.wanted = count
        self.back_ms = []
        self.rates = {}

    def work(self):
        for n in range(self.wanted):
            if self.told.findings or not self.wait_progress(20, 30, f"before network {n}"):
                return
            kind = self.KINDS[n % len(self.KINDS)]
            everybody = self.rng.random() < 0.3
            chosen = self.proxies if everybody else [self.rng.choice(self.proxies)]
            self.disturb(kind, chosen)
            self.counts[kind] += 1
            self.counts["networks"] += 1
            self.snapshot()

    def disturb(self, kind, chosen):
        before, began = self.progress(), time.monotonic()
        for proxy in chosen:
            {"delay": lambda p: p.delay(0.2, 0.2), "loss": lambda p: p.lose(0.3),
             "hole": lambda p: p.blackhole(), "hole up": lambda p: p.blackhole(down=False),
             "hole down": lambda p: p.blackhole(up=False),
             "refuse": lambda p: (p.refuse(), p.cut())}[kind](proxy)
        time.sleep(self.rng.uniform(2, 6))
        rate = (self.progress() - before) / (time.monotonic() - began)
        self.rates.setdefault(kind + (" all" if len(chosen) > 1 else ""), []).append(round(rate, 1))
        for proxy in chosen:
            proxy.pass_on()
        healed = time.monotonic()
        if self.wait_progress(10, 40, f"after {kind}"):
            self.back_ms.append(round(1000 * (time.monotonic() - healed)))

    def row(self):
        return {**super().row(), "back_ms": self.back_ms, "rates": self.rates}


def database(kind):
    """Without sync where the database itself is not what fails."""
    return Postgres({"fsync": "on"} if kind == "restarts" else
                    {"fsync": "off", "synchronous_commit": "on"})


ROUNDS = {"kills": Kills, "restarts": Restarts, "cuts": Cuts, "nets": Nets}


def one(kind, seed, count, postgres=None):
    """The row of one round."""
    with postgres and contextlib.nullcontext(postgres) or database(kind) as server:
        return ROUNDS[kind](seed, server, count).run()


def main():
    kind, seed = sys.argv[1:3]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    row = one(kind, seed, int(sys.argv[3]) if len(sys.argv) > 3 else 20)
    print(json.dumps(row, indent=1))
    sys.exit(1 if row["findings"] else 0)


if __name__ == "__main__":
    main()
