"""An attacker beside a server who has a run under way continue in the dark: he sets it back to where
an earlier note of the server's own says it stood, keeps the notes of the new lines out of every
record, and shows one only while the server looks at it. When other lines have the numbers of those
that went, he has the run end and its logs removed. Used by forgeries.py and forgery_cases.py
(F-J5, F-J8)."""
import pathlib
import signal
import uuid

import harness

SAYS = 4  # lines at least: more than went


class Dark:
    """The notes of a run that are shown to the server or hidden from it."""

    def __init__(self, case, execution):
        self.case, self.execution = case, execution
        self.saved = case.notes_of(execution)

    def show(self, notes=None):
        self.case.put_notes(self.execution, self.saved if notes is None else notes)
        self.case.apply()

    def hide(self):
        self.saved = self.case.notes_of(self.execution) or self.saved
        self.case.put_notes(self.execution, [])
        self.case.apply()


def set_back(case, execution, to_begin=False):
    """To where a record found it once, or to nothing; the note that said so is there again."""
    earlier = [note for note in case.stand.earlier if note[0] == execution and not to_begin]
    kept = earlier[0][1] if earlier else 0
    case.put(f"DELETE FROM execution_logs WHERE {case.where(execution)} AND seq > {kept}")
    case.put_notes(execution, earlier)


def task_of(case, execution):
    return next(held for held in case.stand.held
                if uuid.UUID(held["id"]).hex == case.tasks[execution])


def say(case, client, dark, number):
    task = task_of(case, dark.execution)
    dark.show()
    said = client.report("worker-1", {"op": "log", "task_id": task["id"], "level": "INFO",
                                      "lease_token": task["lease_token"],
                                      "message": f"all is well {number}"})
    dark.hide()
    return said


def end(case, client, execution):
    task = task_of(case, execution)
    client.report("worker-1", {"op": "complete", "task_id": task["id"],
                               "lease_token": task["lease_token"]})


def under_way(case, execution):
    """Another attack may have had its lease lost: then its worker cannot end it."""
    return case.rows(f"SELECT 1 AS one FROM execution_rows WHERE id = {case.uid(execution)} AND "
                     "status IN ('pending', 'running')") != []


def wait_settled(case):
    harness.wait_until(lambda: case.stand.settled(case.store), what="a record")


# ---- what he shows when the lines go; each is called when all new lines are there ----

def deleted(case, client, dark, true_notes):
    """All notes of the new lines."""
    dark.show()
    end(case, client, dark.execution)


def last_note_only(case, client, dark, true_notes):
    """So that a record names the newest line and no other of the new ones."""
    dark.show(dark.saved[-1:])
    wait_settled(case)
    end(case, client, dark.execution)


def with_true_note(case, client, dark, true_notes):
    """The note that the last record made, beside those of other lines."""
    end(case, client, dark.execution)
    dark.show(true_notes + [note for note in dark.saved if note[1] != true_notes[-1][1]])


def without_old_note(case, client, dark, true_notes):
    dark.show([note for note in dark.saved if note[3] > 0])
    end(case, client, dark.execution)


def hidden_until_deleted(case, client, dark, true_notes):
    """No server ever closes the run."""
    end(case, client, dark.execution)
    dark.show()


def closed(case, client, dark, true_notes):
    """The server closes the run where the shown notes say it stands."""
    dark.show()
    end(case, client, dark.execution)
    if not under_way(case, dark.execution):
        harness.wait_until(lambda: all(note[7] for note in case.notes_of(dark.execution)),
                           what="the end of the run")


ENDS = (deleted, last_note_only, with_true_note, without_old_note, hidden_until_deleted, closed)


def begin(case, client, execution, others=()):
    """The run says as much as it had said and more, on each server in turn."""
    dark = Dark(case, execution)
    clients = (client,) + tuple(others)
    dark.hide()
    for number in range(len(case.runs[execution]) + SAYS):
        say(case, clients[number % len(clients)], dark, number)
    return dark


def finish(case, client, dark, how):
    """He shows what `how` does, and a user deletes the task, not knowing."""
    true_notes = [note for note in case.notes.values() if note[0] == dark.execution]
    how(case, client, dark, true_notes)
    client.request("DELETE", f"/v1/tasks/{task_of(case, dark.execution)['id']}")


def in_the_dark(how):
    def attack(case, client, execution):
        finish(case, client, begin(case, client, execution), how)
    attack.__name__ = how.__name__
    return attack


def say_openly(case, client, execution, text):
    task = task_of(case, execution)
    client.report("worker-1", {"op": "log", "task_id": task["id"], "level": "ERROR",
                               "lease_token": task["lease_token"], "message": text})


def take_back(case, client, execution):
    """The newest lines go with their notes before a record names them, and an older note comes
    back. A server that knows better signs no line behind that, and says what was there."""
    before, known = case.notes_of(execution), len(lines_of(case, execution))
    say_openly(case, client, execution, "the proof")
    say_openly(case, client, execution, "and more of it")
    if len(lines_of(case, execution)) == known:
        case.harmless.add(execution)  # another attack had its lease lost: no line came
    case.put(f"DELETE FROM execution_logs WHERE {case.where(execution)} AND seq > {known}")
    case.put_notes(execution, before)
    case.apply()


def take_back_and_continue(case, client, execution):
    take_back(case, client, execution)
    say_openly(case, client, execution, "all is well")
    say_openly(case, client, execution, "as it was before")
    say_openly(case, client, execution, "and on")


def take_back_and_delete(case, client, execution):
    take_back_and_continue(case, client, execution)
    end(case, client, execution)
    client.request("DELETE", f"/v1/tasks/{task_of(case, execution)['id']}")


def remembered(case, execution):
    """Records that name its lines by the memory of the server that wrote them."""
    return any('"written"' in text and str(uuid.UUID(execution)) in text
               for text, in case.rows("SELECT record FROM log_anchors"))


def take_back_in_time(case, client, execution, behind=False):
    """Right behind a record, so that the next one comes too late. behind: a later line of his own
    stands there then. With a record every two seconds."""
    newest, kept = "SELECT max(serial) AS serial FROM log_anchors", len(lines_of(case, execution))
    for _ in range(20):
        say_openly(case, client, case.held[1], "tick")
        wait_settled(case)
        before = case.rows(newest)
        take_back(case, client, execution)
        if behind:
            case.insert(execution, kept + 9, "INFO", "x", None, case.now, "ab" * 32)
            case.apply()
        if case.rows(newest) == before:
            return
        drop_behind(case, execution, kept)


def drop_behind(case, execution, kept):
    case.put(f"DELETE FROM execution_logs WHERE {case.where(execution)} AND seq > {kept}")
    case.apply()


def take_back_and_restart(case, client, execution, behind=False):
    """The server signs what it remembers and is killed; the next one knows nothing of it. The run says
    other things, ends, and its task is deleted."""
    kept = len(lines_of(case, execution))
    take_back_in_time(case, client, execution, behind)
    harness.wait_until(lambda: remembered(case, execution), what="a record by memory")
    drop_behind(case, execution, kept)
    client.server.stop(signal.SIGKILL)
    client.server.start()
    for number in range(SAYS):
        say_openly(case, client, execution, f"all is well {number}")
    wait_settled(case)
    end(case, client, execution)
    client.request("DELETE", f"/v1/tasks/{task_of(case, execution)['id']}")


TAKE_BACK = (take_back, take_back_and_continue, take_back_and_delete)


NO_RECORD = "{}"
NEWEST = "SELECT max(serial) AS serial FROM log_anchors"


def without_newest_record(case, client, execution, behind, before_the_file=None):
    """The newest record goes with the lines it names, before the anchor file has it. behind: a row
    that is no record takes a serial so far behind it; 0 = there is none. before_the_file() is called
    before the file can be written again."""
    anchor = pathlib.Path(client.server.folder, "anchor")
    away = anchor.with_name("anchor.away")
    wait_settled(case)
    anchor.rename(away)
    anchor.mkdir()
    client.say(task_of(case, case.held[1]), "INFO", "tick")
    harness.wait_until(lambda: "log.anchor_behind" in client.server.log(), what="a failure")
    wait_settled(case)
    before, notes = case.rows(NEWEST)[0][0], case.notes_of(execution)
    client.say(task_of(case, execution), "ERROR", "the proof")
    harness.wait_until(lambda: case.rows(NEWEST)[0][0] > before, what="a record")
    case.put(f"DELETE FROM log_anchors WHERE serial > {before}",
             f"DELETE FROM execution_logs WHERE {case.where(execution)} AND seq > {len(case.runs[execution])}")
    if behind:
        case.put("INSERT INTO log_anchors (serial, record, record_hash, signature, created_at) VALUES "
                 f"({before + 1 + behind}, '{NO_RECORD}', '', '', {case.dialect.time(case.now)})")
    case.put_notes(execution, notes)
    case.apply()
    if before_the_file:
        before_the_file()
    anchor.rmdir()
    away.rename(anchor)


# ---- lines that the server will not sign, because he made it doubt what they follow ----

def unsigned(case, client, execution, put, undo):
    """They come, and he removes them again: no memory and no note names them."""
    known = len(lines_of(case, execution))
    put()
    case.apply()
    before = len(lines_of(case, execution))
    say_openly(case, client, execution, "the proof")
    task = case.rows(f"SELECT status FROM execution_rows WHERE id = {case.uid(execution)}")
    if len(lines_of(case, execution)) == before and task != [["running"]]:
        case.harmless.add(execution)  # another attack had its lease lost: no line came
    case.put(f"DELETE FROM execution_logs WHERE {case.where(execution)} AND seq > {known}")
    undo()
    case.apply()


def behind_a_forged_line(case, client, execution):
    seq = len(case.runs[execution]) + 1
    unsigned(case, client, execution, lambda: case.insert(
        execution, seq, "INFO", "x", None, case.now, "ab" * 32), lambda: None)


def beyond_the_last_line(case, client, execution):
    """The server drops what comes behind the last line that an execution may have."""
    unsigned(case, client, execution, lambda: case.insert(
        execution, 100000, "INFO", "x", None, case.now, "ab" * 32), lambda: None)


def without_its_note(case, client, execution):
    saved = case.notes_of(execution)
    unsigned(case, client, execution, lambda: case.put_notes(execution, []),
             lambda: case.put_notes(execution, saved))


UNSIGNED = (behind_a_forged_line, beyond_the_last_line, without_its_note)


def closed_early(case, client, execution):
    """Its row says that it has ended just while a record is made."""
    saved = case.notes_of(execution)
    status = f"UPDATE execution_rows SET status = %s WHERE id = {case.uid(execution)}"
    case.put(status % "'completed'")
    case.apply()
    say_openly(case, client, case.held[1], "so that a record is made")
    harness.wait_until(lambda: any(note[7] for note in case.notes_of(execution)), what="an end")
    case.put(status % "'running'")
    case.apply()
    unsigned(case, client, execution, lambda: None, lambda: None)
    case.put_notes(execution, saved)
    case.apply()


def lines_of(case, execution):
    return case.rows(f"SELECT seq FROM execution_logs WHERE {case.where(execution)} ORDER BY seq")
