"""Part `services` of the fault campaign: kill -9 of a node between a call of a service and its answer,
with a lookup and without (D10, D13), and at each fault point of a call. Each kill interrupts a few
calls; it counts when the node was dead before they had ended.

    python3 tests/campaign/faults.py --parts services
"""
import os
import sys
import unittest

import ledger as ledger_module

sys.path.insert(0, str(ledger_module.ROOT / "tests" / "api"))
sys.path.insert(0, str(ledger_module.ROOT / "tests" / "crash"))
sys.path.insert(0, str(ledger_module.ROOT / "tests" / "grpc"))

NAME = "services"
KILLS = int(os.environ.get("PERDURA_SERVICE_KILLS", "1000"))  # with and without a lookup together
PASSES = int(os.environ.get("PERDURA_SERVICE_PASSES", "12"))  # at each point
ROUND = 50
SCENES = (
    ("F-G7", "services whose certificate has expired, expires while connected, is of another authority or for another "
     "name", "refused before anything was sent", ("test_services_tls",)),
    ("F-G8", "services that answer after the timeout, or later by a one-time URL", "a timeout, repeated with the same "
     "key; one end counts", ("test_services.HostileTest", "test_services_async")),
    ("F-G9", "answers of 10 GB, of a byte a second, of half a head, resets, redirects inwards, HTTP/2 and gRPC frames "
     "that fit nothing; a name that leads elsewhere; 500 services of which one hangs", "cut, given up in time, not "
     "followed; others unharmed", ("test_services.HostileTest", "test_services.CallTest", "test_services_h2",
                                   "test_services_names", "test_services.CrowdTest")),
    ("C9", "models and tools that loop, stall, lie, flood, hang, crash or refuse", "told to the model, repeated or ended "
     "within the budget", ("test_agents",)),
)
KINDS = ("lookup", "no lookup")


def run(ledger, say):
    import test_service_kills as kills
    cases = dict(zip(KINDS, (kills.LookupTest, kills.RepeatTest)))
    for kind, case in cases.items():
        while ledger.total(NAME, "kills", kind=kind) < KILLS // len(KINDS):
            one_round(ledger, kind, case)
            say(f"{kind}: {ledger.total(NAME, 'kills', kind=kind)} kills")
    for point in kills.POINTS:
        for nth in range(ledger.total(NAME, "kills", kind="point", point=point), PASSES):
            os.environ["PERDURA_SERVICE_POINTS"] = f"{point}:{1 + nth % kills.TASKS}"
            findings, _ = outcome(kills.AwaitPointTest if point == kills.AWAIT else kills.AtPointTest)
            ledger.add(NAME, kind="point", point=point, kills=1, findings=findings)
        say(f"{point}: {PASSES} kills")
    done = {row["scene"] for row in ledger.rows(NAME, kind="scene")}
    for fault, what, _, names in SCENES:
        if what not in done:
            suite = unittest.defaultTestLoader.loadTestsFromNames(names)
            result = unittest.TestResult()
            suite.run(result)
            findings = [text[-400:] for _, text in result.failures + result.errors]
            ledger.add(NAME, kind="scene", fault=fault, scene=what, tests=result.testsRun, findings=findings)
            say(f"{fault}: {result.testsRun} tests")


def one_round(ledger, kind, case):
    case.kills, case.seed = ROUND, len(ledger.rows(NAME, kind=kind))
    findings, test = outcome(case)
    ledger.add(NAME, kind=kind, seed=case.seed, kills=test.lap, tasks=len(test.calls),
               calls=sum(test.calls.values()), interrupted=test.interrupted, effects=sum(test.effects.values()),
               findings=findings)


def outcome(case):
    name = next(x for x in unittest.defaultTestLoader.getTestCaseNames(case))
    test = case(name)
    result = unittest.TestResult()
    test.run(result)
    findings = [text[-400:] for _, text in result.failures + result.errors]
    return findings + [f"left out: {why}" for _, why in result.skipped], test


def killed_at(ledger):
    """Kills per fault point, for part `points`."""
    return {row["point"]: ledger.total(NAME, "kills", kind="point", point=row["point"])
            for row in ledger.rows(NAME, kind="point")}


def summary(ledger):
    rows = []
    for kind, promise in zip(KINDS, ("more or less than one effect per key", "more than one effect beyond the end of the task")):
        if ledger.rows(NAME, kind=kind):
            rows.append(("F-A1, F-G8, D13", f"{ledger.total(NAME, 'kills', kind=kind):,} kill -9 of a node between a "
                         f"call of a service and its answer, {kind}; {ledger.total(NAME, 'interrupted', kind=kind):,} "
                         "calls interrupted", f"{promise} {len(ledger.findings(NAME, kind=kind))}, tasks lost 0"))
    for fault, what, promise, _ in SCENES:
        found = ledger.rows(NAME, kind="scene", scene=what)
        if found:
            rows.append((fault, what, f"{promise}; {found[-1]['tests']} tests, findings {len(found[-1]['findings'])}"))
    return rows


def report(ledger):
    lines = ["## Services", "",
             "A node is killed while it calls a service: a first call may have taken effect, or not, or is answered at "
             "that moment. The task must complete, and the service counts effects by the idempotency key.", "",
             "| | kills | tasks | calls | interrupted | effects | findings |", "|---|---:|---:|---:|---:|---:|---:|"]
    for kind in KINDS:
        sums = [ledger.total(NAME, field, kind=kind) for field in ("kills", "tasks", "calls", "interrupted", "effects")]
        lines.append(f"| {kind} | " + " | ".join(f"{x:,}" for x in sums) + f" | {len(ledger.findings(NAME, kind=kind))} |")
    at = ", ".join(f"{point} {count}" for point, count in sorted(killed_at(ledger).items()))
    return "\n".join([*lines, "", f"Killed at fault points, with a lookup: {at}. Findings: "
                      f"{len(ledger.findings(NAME, kind='point'))}.", ""])
