"""Part `forgeries` of the fault campaign: the adaptive attacker of forger.py against the logs of a
store, on SQLite and PostgreSQL (F-J5 to F-J8, D9). Each attack is verified as he leaves the store,
and again after a server with the key has served it: it must be named both times, or have had no
effect on any line. Nothing is known to the verification but the public key and the anchor file.

    python3 tests/campaign/forgeries.py sqlite|postgres SEED [ROUNDS]"""
import hashlib
import json
import os
import random
import sqlite3
import sys
import time
import uuid

import forger
import forgery_dark
import harness

NAME = "forgeries"
SCALE = float(os.environ.get("PERDURA_FORGERIES_SCALE", "1"))
GOAL, ROUNDS = int(5600 * SCALE), 20
AT_ONCE = 10
HOUR_US = 3600 * 1000000


def fake_mac(case, execution, rng):
    """None, chance, the old one, one of another run."""
    old = case.notes.get(execution)
    other = case.notes[rng.choice(case.ended)]
    return rng.choice(("", rng.randbytes(32).hex(), old[8] if old else "", other[8]))


def made_up(rng, at, text="all is well"):
    return (0, rng.choice(("INFO", "ERROR")), f"{text} {rng.randint(0, 999)}", None, at)


# ---- on one run: each returns whether lines must be as they were, or the run be named ----

def replace(case, execution, lines, rng, closed=None):
    chained = case.write(execution, lines)
    case.note(execution, len(lines), chained or "00" * 32, rng.choice((0, 1, len(lines))),
              lines[-1][4] if lines else case.now,
              rng.choice(("", "completed")) if closed is None else closed,
              fake_mac(case, execution, rng))


def append_backdated(case, execution, rng):
    lines = case.runs[execution]
    replace(case, execution, lines + [made_up(rng, lines[-1][4] + 1)], rng)


def append_and_wait(case, execution, rng):
    """Exactly what a server leaves that had no time to sign."""
    lines = case.runs[execution] + [made_up(rng, case.runs[execution][-1][4])]
    chained = case.write(execution, lines)
    case.put("INSERT INTO log_heads (execution_id, seq, chain_hash, lines) VALUES "
             f"({case.uid(execution)}, {len(lines)}, '{chained}', 1)")


def append_old(case, execution, rng):
    """With times from before all others, as if it had been there before there was a key."""
    lines = case.runs[execution] + [made_up(rng, case.runs[execution][-1][4] - HOUR_US)]
    case.write(execution, lines)
    case.put(f"DELETE FROM log_heads WHERE {case.where(execution)}")


def append_without_note(case, execution, rng):
    lines = case.runs[execution]
    case.write(execution, lines + [made_up(rng, lines[-1][4] + 1)])


def append_without_hash(case, execution, rng):
    """And the store says that lines had no hashes until next year."""
    lines = case.runs[execution]
    case.insert(execution, len(lines) + 1, "INFO", "all is well", None, lines[-1][4], None)
    case.put("UPDATE store_info SET value = '1893456000000000' WHERE name = 'log_chain_since'")


def change(case, execution, rng):
    lines = list(case.runs[execution])
    at = rng.randrange(len(lines))
    lines[at] = (at + 1, lines[at][1], "it was well", lines[at][3], lines[at][4])
    replace(case, execution, lines, rng)


def change_time(case, execution, rng):
    lines = [line[:4] + (line[4] - forger.BACK_US,) for line in case.runs[execution]]
    replace(case, execution, lines, rng)


def remove_one(case, execution, rng):
    lines = list(case.runs[execution])
    lines.pop(rng.randrange(len(lines)))
    replace(case, execution, lines, rng)


def remove_tail(case, execution, rng):
    replace(case, execution, case.runs[execution][:-1], rng)


def remove_all(case, execution, rng):
    case.put(f"DELETE FROM execution_logs WHERE {case.where(execution)}",
             f"DELETE FROM log_heads WHERE {case.where(execution)}")


def reorder(case, execution, rng):
    lines = list(case.runs[execution])
    replace(case, execution, lines[1:] + lines[:1], rng)


def remove_hashes(case, execution, rng):
    case.put(f"UPDATE execution_logs SET chain_hash = NULL WHERE {case.where(execution)}",
             "UPDATE store_info SET value = '1893456000000000' WHERE name = 'log_chain_since'")


def remove_note(case, execution, rng):
    case.put(f"DELETE FROM log_heads WHERE {case.where(execution)}")


def reopen(case, execution, rng):
    """As if it had never ended."""
    append_backdated(case, execution, rng)
    case.put(f"UPDATE log_heads SET closed = '' WHERE {case.where(execution)}",
             f"UPDATE execution_rows SET status = 'running' WHERE id = {case.uid(execution)}")


def empty(case, execution, rng):
    """As retention by level does it."""
    _, level, message, context, _ = case.runs[execution][0]
    case.put("UPDATE execution_logs SET message = '', context = NULL, removed_hash = "
             f"'{forger.content_hash(message, context).hex()}' WHERE {case.where(execution)} AND "
             "seq = 1")
    return level != "DEBUG"


def age_task(case, execution, rng):
    """Old enough for retention, by all rows about the task."""
    old = case.dialect.time(case.now - forger.BACK_US)
    task = f"(SELECT task FROM task_states WHERE id = {case.uid(case.tasks[execution])})"
    case.put(f"UPDATE task_specs SET created_at = {old} WHERE task = {task}",
             f"UPDATE execution_rows SET created_at = {old}, completed_at = {old} WHERE task = {task}",
             f"UPDATE task_states SET completed_at = {old}, updated_at = {old} WHERE id = "
             f"{case.uid(case.tasks[execution])}")
    return False


def age_task_and_lines(case, execution, rng):
    age_task(case, execution, rng)
    change_time(case, execution, rng)


def age_note(case, execution, rng):
    """The note, too, and the last line with it."""
    age_task(case, execution, rng)
    old = case.dialect.time(case.now - forger.BACK_US)
    case.put(f"UPDATE log_heads SET logged_at = {old} WHERE {case.where(execution)}",
             f"UPDATE execution_logs SET logged_at = {old} WHERE {case.where(execution)}")


def age_clock(case, execution, rng):
    """The server is to believe that it is 40 days later."""
    case.put("DELETE FROM store_info WHERE name = 'last_time_us'",
             "INSERT INTO store_info (name, value) VALUES ('last_time_us', "
             f"'{case.now + forger.BACK_US}')")
    return False


def delete_namespace(case, execution, rng):
    """The row says that a user deleted the namespace with all that is in it."""
    at = case.dialect.time(case.now)
    case.put(f"UPDATE namespaces SET deleting_at = {at}, updated_at = {at} WHERE name = 'default'")
    return False


def short_namespace(case, execution, rng):
    """The row says that its ended tasks go after a millisecond."""
    at = case.dialect.time(case.now)
    case.put(f"UPDATE namespaces SET completed_ms = 1, failed_ms = 1, updated_at = {at} WHERE name = 'default'")
    age_task(case, execution, rng)
    return False


def short_type(case, execution, rng):
    """Of a type whose logs go after a second."""
    case.put("UPDATE lanes SET type = 'short' WHERE lane = (SELECT lane FROM task_states WHERE id = "
             f"{case.uid(case.tasks[execution])}) AND NOT EXISTS (SELECT 1 FROM lanes WHERE "
             "type = 'short')",
             f"UPDATE log_heads SET task_type = 'short' WHERE {case.where(execution)}")
    return False


def change_beside(case, execution, rng):
    """What is shown beside its lines."""
    case.put(f"UPDATE execution_rows SET " + rng.choice((
        "attempt_number = attempt_number + 1", "worker_id = 'worker-2'")) +
        f" WHERE id = {case.uid(execution)}")


def change_correlation(case, execution, rng):
    """Who reads the logs of a task sees its own, who reads those of the run what is in its row."""
    of_task = (f"UPDATE {case.dialect.specs} SET correlation_id = 'order-2' WHERE task = (SELECT task "
               f"FROM task_states WHERE id = {case.uid(case.tasks[execution])})")
    of_run = f"UPDATE execution_rows SET correlation_id = 'order-2' WHERE id = {case.uid(execution)}"
    none = (f"UPDATE task_specs SET {case.dialect.link} = NULL WHERE task = (SELECT task FROM "
            f"task_states WHERE id = {case.uid(case.tasks[execution])})")
    case.put(*rng.choice(((of_task,), (of_run,), (of_task, of_run), (none,))))


def change_line_id(case, execution, rng):
    seq = rng.choice(case.runs[execution])[0]
    case.put(f"UPDATE execution_logs SET id = {case.uid(rng.randbytes(16).hex())} WHERE "
             f"{case.where(execution)} AND seq = {seq}")


def note_of_nothing(case, execution, rng):
    """Numbers that no record can say: what stands behind it there is not to be read."""
    case.put("INSERT INTO log_heads (execution_id, seq, chain_hash, lines) VALUES "
             f"({case.uid(execution)}, {-rng.randint(1, 2 ** 40)}, '{'00' * 32}', "
             f"{rng.choice((-100, 1, 2 ** 62))})")
    return False


def other_task(case, execution, rng):
    """One that a user is about to delete."""
    other = case.tasks[rng.choice(case.silent)]
    case.put("UPDATE execution_rows SET task = (SELECT task FROM task_states WHERE id = "
             f"{case.uid(other)}) WHERE id = {case.uid(execution)}")
    case.deleted.append(str(uuid.UUID(other)))


def lines_of_silent(case, execution, rng):
    at = case.now - rng.choice((HOUR_US, 0))
    lines = [made_up(rng, at + i) for i in range(rng.randint(1, 3))]
    replace(case, execution, lines, rng)


def follow_held(case, execution, rng):
    """A line in the name of a run under way, which then continues."""
    lines = case.runs[execution]
    if rng.random() < 0.5:
        append_without_note(case, execution, rng)
    else:
        at = case.now - rng.choice((HOUR_US, 0))
        replace(case, execution, lines + [made_up(rng, at)], rng, closed="")


def set_back_held(case, execution, rng):
    """To where it stood, with the note that a server made then."""
    earlier = next(note for note in case.stand.earlier if note[0] == execution)
    lines = case.runs[execution][:earlier[1]]
    case.write(execution, lines)
    case.note(execution, earlier[1], earlier[2], earlier[3], earlier[6], earlier[7], earlier[8])


def set_back_and_end(case, execution, rng):
    """It continues from there, ends, and its task is deleted: the cut is over other lines."""
    set_back_held(case, execution, rng)
    case.finished.append(execution)


def continue_in_the_dark(case, execution, rng):
    """From an earlier note, or from nothing; no record sees the notes of the new lines."""
    forgery_dark.set_back(case, execution, rng.random() < 0.3)
    case.dark[execution] = forgery_dark.in_the_dark(rng.choice(forgery_dark.ENDS))


def take_back(case, execution, rng):
    """Lines of this moment, which no record names yet."""
    case.dark[execution] = rng.choice(forgery_dark.TAKE_BACK)
    return "later"


def make_unsigned(case, execution, rng):
    """Lines of this moment that the server will not sign; then they go."""
    case.dark[execution] = rng.choice(forgery_dark.UNSIGNED)
    return "later"


ON_ENDED = (note_of_nothing, append_old, append_backdated, append_and_wait, append_without_note, append_without_hash, change,
            change_time, remove_one, remove_tail, remove_all, reorder, remove_hashes, remove_note,
            reopen, empty, age_task, age_task_and_lines, age_note, age_clock,
            delete_namespace, short_namespace, short_type, other_task, change_beside, change_correlation, change_line_id)
ON_SILENT = (lines_of_silent,)
ON_HELD = (follow_held, set_back_held, set_back_and_end, continue_in_the_dark, continue_in_the_dark,
           take_back, make_unsigned)
MAY_WAIT = ("lines_of_silent", "follow_held")


# ---- on the whole store: any finding will do ----

def own_record(case, rng, kind, items):
    """Signed with another key, or unsigned."""
    serial, before, text = case.rows("SELECT serial, record_hash, record FROM log_anchors ORDER BY "
                                     "serial DESC LIMIT 1")[0]
    record = json.loads(text)
    record.update(serial=serial + 1, previous=before, kind=kind, items=items)
    if rng.random() < 0.5:
        record.pop("key")
    text = json.dumps(record, separators=(",", ":"))
    case.put("INSERT INTO log_anchors (serial, record, record_hash, signature, created_at) VALUES "
             f"({serial + 1}, {forger.quote(text)}, '{hashlib.sha256(text.encode()).hexdigest()}', "
             f"'{rng.choice(('', rng.randbytes(64).hex()))}', {case.dialect.time(case.now)})")


def forge_heads(case, rng):
    execution = rng.choice(case.ended)
    lines = case.runs[execution] + [made_up(rng, case.now)]
    chained = case.write(execution, lines)
    own_record(case, rng, "heads", [[str(uuid.UUID(execution)), len(lines), chained, 1, "closed"]])
    remove_note(case, execution, rng)


def forge_cut(case, rng):
    execution = rng.choice(case.ended)
    note = case.notes[execution]
    remove_all(case, execution, rng)
    own_record(case, rng, "cuts", [[str(uuid.UUID(execution)), note[1], note[2], note[1]]])


def forge_begin(case, rng):
    """All that is there counts as from before the key."""
    execution = rng.choice(case.silent)
    case.insert(execution, 1, "INFO", "all is well", None, case.now, None)
    own_record(case, rng, "begin", [])


def move_since(case, rng):
    """The newest record says so, and keeps the hash beside it or gets a new one."""
    serial, text = case.rows("SELECT serial, record FROM log_anchors ORDER BY serial DESC LIMIT 1")[0]
    text = text.replace('"since":0', f'"since":{case.now + 10 ** 9}')
    kept = "" if rng.random() < 0.5 else (", record_hash = '"
                                          f"{hashlib.sha256(text.encode()).hexdigest()}'")
    case.put(f"UPDATE log_anchors SET record = {forger.quote(text)}{kept} WHERE serial = {serial}")
    append_without_hash(case, rng.choice(case.ended), rng)


def forget_key(case, rng):
    """No record and no key: a new store, with lines that the attacker chose."""
    case.put("DELETE FROM log_anchors", "DELETE FROM store_info WHERE name = 'log_public_key'",
             "UPDATE log_heads SET mac = ''")
    change(case, rng.choice(case.ended), rng)


def other_key(case, rng):
    case.put(f"UPDATE store_info SET value = '{rng.randbytes(32).hex()}' WHERE name = 'log_public_key'")
    if rng.random() < 0.5:
        case.put("DELETE FROM log_anchors WHERE serial > 1")
    append_and_wait(case, rng.choice(case.ended), rng)


def drop_newest(case, rng):
    """The newest records, with all lines they tell of."""
    serials = [row[0] for row in case.rows("SELECT serial FROM log_anchors ORDER BY serial")]
    first = rng.choice(serials[1:])
    for text, in case.rows(f"SELECT record FROM log_anchors WHERE serial >= {first}"):
        for item in json.loads(text)["items"]:
            remove_all(case, uuid.UUID(item[0]).hex, rng)
    case.put(f"DELETE FROM log_anchors WHERE serial >= {first}")


def age_records(case, rng):
    """Records are to be taken for old ones, of lines that are gone."""
    case.put(f"UPDATE log_anchors SET created_at = {case.dialect.time(case.now - 2 * forger.BACK_US)}")
    remove_all(case, rng.choice(case.ended), rng)


def change_old_record(case, rng):
    """One that is to be trimmed, so that what stays of it is signed again."""
    execution = rng.choice(case.silent)
    chained = case.write(execution, [made_up(rng, case.now)])
    serial, text = rng.choice(case.rows("SELECT serial, record FROM log_anchors WHERE serial < 9"))
    record = json.loads(text)
    record["items"].append([str(uuid.UUID(execution)), 1, chained, 1, "closed"])
    text = json.dumps(record, separators=(",", ":"))
    case.put(f"UPDATE log_anchors SET record = {forger.quote(text)}, record_hash = "
             f"'{hashlib.sha256(text.encode()).hexdigest()}' WHERE serial = {serial}",
             f"UPDATE log_anchors SET created_at = {case.dialect.time(case.now - 2 * forger.BACK_US)}")


ON_STORE = (change_old_record, forge_heads, forge_cut, forge_begin, move_since, forget_key, other_key, drop_newest,
            age_records)


# ---- rounds ----

def judge(case, row, done, report, when):
    """Lines with the time of this minute may wait for a record until a server has looked at them;
    they are counted, then."""
    told = " ".join(finding["subject"] for finding in report["findings"])
    for name, execution, must in done:
        if execution is None:
            good = not report["ok"]
        else:
            good = (str(uuid.UUID(execution)) in told or (not must and case.kept(execution)) or
                    (must == "later" and (when == "at once" or execution in case.harmless)) or
                    (name in MAY_WAIT and when == "at once" and
                     "log lines that wait for a record" in report["checked"]))
        if not good:
            row["findings"].append(f"{name} {when}: not found ({execution}): {told[:300]}")
            row["missed"].add((name, execution))


def goes_on(case, first=lambda: None):
    """The worker of the runs under way says one more thing in each."""
    def during(client):
        first()
        for task in case.deleted:
            client.request("DELETE", f"/v1/tasks/{task}")
        for task in case.stand.held:
            if uuid.UUID(task["id"]).hex in [case.tasks[execution] for execution in case.dark]:
                continue
            client.report("worker-1", {"op": "log", "task_id": task["id"], "level": "INFO",
                                       "lease_token": task["lease_token"], "message": "and on"})
        for execution in case.finished:
            finish(case, client, execution)
        for execution, how in case.dark.items():
            how(case, client, execution)
    return during


def finish(case, client, execution):
    """After a record of its last lines. Another attack may have had its lease lost."""
    task = next(held for held in case.stand.held if uuid.UUID(held["id"]).hex == case.tasks[execution])
    harness.wait_until(lambda: case.stand.settled(case.store), what="a record")
    client.report("worker-1", {"op": "complete", "task_id": task["id"],
                               "lease_token": task["lease_token"]})
    client.request("DELETE", f"/v1/tasks/{task['id']}")


def choose(case, rng):
    """Different runs, so that each has to be named for itself."""
    for executions, attacks, count in ((case.ended, ON_ENDED, AT_ONCE - 3),
                                       (case.silent, ON_SILENT, 1), (case.held, ON_HELD, 4)):
        for execution in rng.sample(executions, min(count, len(executions))):
            attack = rng.choice(attacks)
            must = attack(case, execution, rng)
            yield attack.__name__, execution, True if must is None else must


def strike(case, rng, whole, done):
    """Beside a server that writes, too: another try where its record was quicker."""
    for attempt in range(5):
        case.statements.clear()
        case.dark.clear()
        if whole:
            attack = rng.choice(ON_STORE)
            attack(case, rng)
            done[:] = [(attack.__name__, None, True)]
        else:
            done[:] = choose(case, rng)
        try:
            case.apply()
            return
        except (AssertionError, sqlite3.IntegrityError):
            if attempt == 4:
                raise


def one_round(stand, rng, row):
    case = forger.Case(stand)
    done = []
    try:
        whole = rng.random() < 0.25
        row["missed"] = set()
        if rng.random() < 0.3:  # while it is served
            case.serve(goes_on(case, lambda: strike(case, rng, whole, done)), retention=not whole)
        else:
            strike(case, rng, whole, done)
            judge(case, row, done, case.verify(), "at once")
            case.serve(goes_on(case), retention=not whole)
        judge(case, row, done, case.verify(), "after a server")
        row["attacks"] += len(done)
        row["found"] += len(done) - len(row["missed"])
        for name, *_ in done:
            row["kinds"][name] = row["kinds"].get(name, 0) + 1
    finally:
        case.close()


def unsigned_round(stand, rng, row):
    """A record without a signature stands for the time before the key; he makes it say that all lines
    are old, waits until retention has looked, and would take it back. Nothing may be emptied."""
    case = forger.Case(stand)
    try:
        case.forget_records()
        case.unsigned_record(1, "2020-01-01T00:00:00.000000Z", [])
        case.apply()
        case.serve(lambda client: [client.say(task, "DEBUG", "the proof") for task in stand.held],
                   retention=False, config="")
        case.load()
        runs = case.ended + case.held
        case.unsigned_record(1, f"20{rng.randint(10, 24)}-01-01T00:00:00.000000Z", [
            [str(uuid.UUID(run)), len(case.runs[run]), rng.randbytes(32).hex(), len(case.runs[run])]
            for run in runs])
        case.put("DELETE FROM store_info WHERE name LIKE 'log_level_%'")
        case.apply()
        case.serve(config="  log_levels: {debug: 1h, info: 1h, error: 1h}\n")
        emptied = {run for run, in case.rows("SELECT DISTINCT execution_id FROM execution_logs WHERE "
                                             "removed_hash IS NOT NULL")}
        row["attacks"] += len(runs)
        row["found"] += len(set(runs) - emptied)
        row["kinds"]["unsigned_record"] = row["kinds"].get("unsigned_record", 0) + len(runs)
        row["findings"] += [f"unsigned_record: emptied {run}" for run in emptied]
    finally:
        case.close()


def beside_round(stand, row, name, strike, found):
    """One attack beside a server, each on a copy of its own. found(case): does verification tell?"""
    case = forger.Case(stand)
    try:
        strike(case)
        good = found(case)
        row["attacks"] += 1
        row["found"] += good
        row["kinds"][name] = row["kinds"].get(name, 0) + 1
        row["findings"] += [] if good else [f"{name}: not found: {case.verify()['findings'][:3]}"]
    finally:
        case.close()


def restart_round(stand, rng, row):
    """A server that is killed takes along what it remembered; what its last record says by memory
    stays."""
    at, behind = rng.choice((0, *range(2, forger.HELD))), rng.random() < 0.5
    beside_round(stand, row, "take_back_and_restart", lambda case: case.serve(
        lambda client: forgery_dark.take_back_and_restart(case, client, case.held[at], behind),
        retention=False, config="", every="2s"), lambda case: str(uuid.UUID(case.held[at])) in " ".join(
            finding["subject"] for finding in case.verify()["findings"]))


def record_round(stand, rng, row):
    """The newest record goes before the anchor file has it, and rows of his own stand behind it."""
    at, behind = rng.choice((0, *range(2, forger.HELD))), rng.choice((0, 1, rng.randint(2, 1000), 2 ** 62))

    def strike(case):
        case.serve(lambda client: forgery_dark.without_newest_record(case, client, case.held[at], behind),
                   retention=False, config="")
        case.put(f"DELETE FROM log_anchors WHERE record = '{forgery_dark.NO_RECORD}'")
        case.apply()
    beside_round(stand, row, "without_newest_record", strike, lambda case: not case.verify()["ok"])


def untouched(stand, row):
    """Only a server serves it, without an attack: nothing may be found."""
    case = forger.Case(stand)
    try:
        case.serve(goes_on(case))
        report = case.verify()
        row["untouched"] += 1
        if not report["ok"]:
            row["findings"].append(f"an untouched copy: {report['findings'][:3]}")
    finally:
        case.close()


def chunk(dialect, seed, rounds):
    rng = random.Random(seed)
    row = {"store": dialect.name, "attacks": 0, "found": 0, "untouched": 0, "kinds": {},
           "findings": []}
    began = time.monotonic()
    stand = forger.Stand(dialect, rng, adopted=rng.random() < 0.5)
    try:
        untouched(stand, row)
        unsigned_round(stand, rng, row)
        restart_round(stand, rng, row)
        record_round(stand, rng, row)
        for _ in range(rounds):
            one_round(stand, rng, row)
    finally:
        stand.close()
    row.pop("missed", None)
    row["seconds"] = round(time.monotonic() - began, 1)
    return row


def on(name, seed, rounds):
    if name == "sqlite":
        return chunk(forger.Sqlite(), seed, rounds)
    from server import Postgres
    with Postgres() as server:
        return chunk(forger.Postgres(server), seed, rounds)


def run(ledger, say):
    forger.run(ledger, say, NAME, GOAL, lambda store, seed: on(store, seed, ROUNDS))


def summary(ledger):
    done, found = ledger.total(NAME, "attacks"), ledger.total(NAME, "found")
    if not done:
        return []
    return [("F-J5, F-J6, F-J7, F-J8, D9", f"{done:,} attacks on logs by an attacker who writes "
             "everything in the store (SQLite, PostgreSQL) and makes every hash again, before and "
             "after a server with the key, verified with the public key and the anchor file",
             f"not found {done - found}, false alarms on {ledger.total(NAME, 'untouched'):,} "
             f"untouched copies {sum('untouched' in text for text in ledger.findings(NAME))}")]


def report(ledger):
    return forger.report(ledger, NAME, "## Forged logs",
                         "An attacker who knows every format, writes everything in the store and makes every hash "
                         "again that needs no key. Found means: verification names the run (or the records, for "
                         "attacks on all of them) as he left it and after a server has served it; or every line "
                         "is still as it was.")


def main():
    row = on(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else ROUNDS)
    print(json.dumps(row, indent=1))
    return 1 if row["findings"] else 0


if __name__ == "__main__":
    sys.exit(main())
