"""Part `agents` of the fault campaign: a server with an agent is killed at each fault point of a step,
at its first, second, … pass (C9, C3): the conversation continues, no unsafe tool is called twice
unasked, no model call more is made than there were kills.

    python3 tests/campaign/faults.py --parts agents
"""
import os
import sys
import unittest

import ledger as ledger_module

sys.path.insert(0, str(ledger_module.ROOT / "tests" / "api"))
sys.path.insert(0, str(ledger_module.ROOT / "tests" / "crash"))

NAME = "agents"
TURNS = 7  # calls of the model in a task: it passes each point at least so often
PASSES = int(os.environ.get("PERDURA_AGENT_PASSES", "12"))
SEEDS = int(os.environ.get("PERDURA_AGENT_SEEDS", "20"))


def run(ledger, say):
    import test_agent_kills
    for point in test_agent_kills.POINTS:
        done = ledger.total(NAME, "kills", kind="point", point=point)
        while done < PASSES:
            findings = failures_of(test_agent_kills.AtPointTest, "campaign",
                                   PERDURA_AGENT_POINT=f"{point}:{1 + done % TURNS}")
            ledger.add(NAME, kind="point", point=point, kills=1, findings=findings)
            done += 1
        say(f"{point}: {done} kills")
    for seed in range(len(ledger.rows(NAME, kind="random")), SEEDS):
        findings = failures_of(test_agent_kills.AnyMomentTest,
                               "test_no_unsafe_call_is_made_twice_unasked", PERDURA_SEED=str(seed))
        ledger.add(NAME, kind="random", seed=str(seed), kills=test_agent_kills.AnyMomentTest.kills,
                   findings=findings)


def failures_of(case, name, **environment):
    os.environ.update(environment)
    result = unittest.TestResult()
    case(name).run(result)
    return [text[-400:] for _, text in result.failures + result.errors]


def report(ledger):
    return ("## Agents\n\nA server with an agent was killed at each point of a step: before and after a call of the "
            "model, after a checkpoint, before and after a tool; and at random moments.\n\n"
            f"{ledger.total(NAME, 'kills')} kills, findings: {len(ledger.findings(NAME))}.\n")


def summary(ledger):
    return [("C9, C3", f"an agent's step killed at each of its points, {ledger.total(NAME, 'kills')} kills",
             "conversations continue, no unsafe tool was called twice unasked")]
