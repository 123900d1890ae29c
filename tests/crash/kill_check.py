"""What the kill loop holds a store to. A Checker looks at a copy of the store after every single
kill, while the server already runs again on the original, which no other process has opened;
check_end looks at it once everything has ended."""
import collections
import json
import os
import pathlib
import queue
import shutil
import sqlite3
import subprocess
import tempfile
import threading
import uuid

import crash_harness
from crash_harness import ENDED

VANISH = ("brief",)  # types that retention removes within the round


def verify(store):
    """What `perdura verify` finds in a store that is not in use."""
    done = subprocess.run([crash_harness.plain_binary(), "verify", "--store", store, "--json"],
                          capture_output=True, text=True, timeout=240)
    return [] if done.returncode == 0 else [f"verify: {(done.stdout + done.stderr)[:2000]}"]


class Checker:
    """One thread; at most one copy waits. The server is dead when take() is called."""

    def __init__(self, told, store):
        self.told, self.store = told, store
        self.before = {}  # id -> (status, token) of the copy before
        self.checks = 0
        self.copies = queue.Queue(1)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def take(self):
        """Everything told so far must be in the copy."""
        folder = tempfile.mkdtemp(prefix="copy-", dir=os.path.dirname(self.store))
        for end in ("", "-wal"):
            if os.path.exists(self.store + end):
                shutil.copyfile(self.store + end, os.path.join(folder, "perdura.db" + end))
        told = self.told
        self.copies.put((folder, len(told.acknowledged_log), len(told.completed_log),
                         len(told.cancelled_log)))

    def stop(self):
        self.copies.put(None)
        self.thread.join(180)

    def run(self):
        while True:
            item = self.copies.get()
            if item is None:
                return
            try:
                self.check(*item)
                self.checks += 1
            except Exception as error:
                self.told.find(f"the check after a kill ended with {error!r}")
            finally:
                shutil.rmtree(item[0], ignore_errors=True)

    def check(self, folder, acknowledged, completed, cancelled):
        store = os.path.join(folder, "perdura.db")
        for text in verify(store):  # V2, V5, V6, V7 and SQLite's own check
            self.told.find(text)
        db = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
        stored = {row[0]: row[1:] for row in
                  db.execute("SELECT id, status, lease_token FROM tasks")}
        db.close()
        told = self.told
        for task, kind in told.acknowledged_log[:acknowledged]:  # V1
            if task not in stored and kind not in VANISH:
                told.find_lost(f"task {uuid.UUID(bytes=task)} was acknowledged and is not there")
        for log, count, status in ((told.completed_log, completed, "completed"),
                                   (told.cancelled_log, cancelled, "cancelled")):
            for task in log[:count]:
                if task in stored and stored[task][0] != status:
                    told.find_lost(f"task {uuid.UUID(bytes=task)} was acknowledged as {status}, "
                                   f"is {stored[task][0]}")
        self.compare(stored)
        self.before = stored

    def compare(self, stored):
        """V2: an end never changes. V5: tokens never go back."""
        for task, (status, token) in self.before.items():
            now = stored.get(task)
            if now is None:
                continue
            if status in ENDED and now[0] != status:
                self.told.find(f"task {uuid.UUID(bytes=task)} had ended as {status}, is {now[0]}")
            if (token or 0) > (now[1] or 0):
                self.told.find(f"task {uuid.UUID(bytes=task)} had token {token}, has {now[1]}")


def check_end(store, told, received):
    """After everything has ended."""
    for text in verify(store):
        told.find(text)
    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as db:
        rows = db.execute("SELECT lower(hex(id)), idempotency_key, type, status, "
                          "lower(hex(parent_id)), attempts, lease_token FROM tasks").fetchall()
        results = {str(uuid.UUID(bytes=k)): v for k, v in
                   db.execute("SELECT task_id, payload FROM task_results")}
        ends = collections.Counter(
            str(uuid.UUID(bytes=row[0])) for row in db.execute(
                "SELECT task_id FROM task_events WHERE status IN "
                "('completed','failed','dead_letter','cancelled','partial')"))
    tasks = {str(uuid.UUID(row[0])): row for row in rows}
    check_keys(told, tasks)
    check_ends(told, tasks, results, ends)
    check_processes(told, tasks, results)
    check_children(told, tasks)
    check_callbacks(told, tasks, received)
    told.counts["tasks"] = len(tasks)
    told.counts["completed"] = sum(row[3] == "completed" for row in tasks.values())
    removed = set(told.ids.values()) - set(tasks)
    told.counts["removed"] = len(removed)
    check_archive(told, os.path.join(os.path.dirname(store), "archive"), removed)


def check_keys(told, tasks):
    """V1: acknowledged is stored, once per key; nothing came from nowhere."""
    stored = collections.defaultdict(list)
    for task, row in tasks.items():
        if row[2] not in ("child", "probe"):
            stored[row[1]].append(task)
    for key, ids in stored.items():
        if len(ids) > 1:
            told.find(f"key {key} is stored {len(ids)} times: {ids}")
        if key not in told.tried:
            told.find(f"key {key} was never sent")
    for key, task in told.ids.items():
        if told.types[task] not in VANISH and stored.get(key) != [task]:
            told.find_lost(f"key {key}, acknowledged as {task}, is {stored.get(key)}")


def check_ends(told, tasks, results, ends):
    """V2: one end each, and the one that was acknowledged, under the newest lease."""
    for task, row in tasks.items():
        if row[3] in ENDED and ends.get(task) != 1:
            told.twice += 1
            told.find(f"task {task} ({row[3]}) ended {ends.get(task)} times")
    for task, completions in told.completed.items():
        row = tasks.get(task)
        if min(completions) < told.newest[task]:
            told.find(f"task {task} was completed under {sorted(completions)}, lease "
                      f"{told.newest[task]} had been handed out")
        if row is None:
            if told.types.get(task) not in VANISH:
                told.find_lost(f"completed task {task} is not there")
            continue
        if row[3] != "completed":
            told.find_lost(f"task {task} was completed, is {row[3]}")
        elif json.loads(results.get(task, "null")) not in completions.values():
            told.find_lost(f"task {task} has result {results.get(task)}, "
                           f"acknowledged was {completions}")
    for task in told.cancelled:
        row = tasks.get(task)
        if row is not None and row[3] != "cancelled":
            told.find_lost(f"task {task} was cancelled, is {row[3]}")


def check_processes(told, tasks, results):
    """A result of a worker process is that of the last lease, never of one that was lost."""
    for task, row in tasks.items():
        if row[3] != "completed" or ":" not in row[2]:
            continue
        result = json.loads(results.get(task, "null")) or {}
        expected = row[6] if row[2].startswith("process:") else row[5]
        if result.get("token", result.get("attempt")) != expected:
            told.find(f"task {task} ({row[2]}), token {row[6]}, attempt {row[5]}, has the result "
                      f"{result}")


def check_children(told, tasks):
    """V6: a parent that completed had all its children, each once."""
    children = collections.Counter(str(uuid.UUID(row[4])) for row in tasks.values()
                                   if row[2] == "child" and row[4])
    for task, row in tasks.items():
        if not row[2].endswith("parent"):
            continue
        if row[3] == "completed" and children[task] != 3:
            told.find(f"parent {task} has {children[task]} children")
        if children[task] not in (0, 3):
            told.find(f"parent {task} has {children[task]} of 3 children")


def check_callbacks(told, tasks, received):
    """F-A14: never zero times, and always under the same message id."""
    for task in told.callbacks:
        ids = received.get(task, {})
        if not ids and (task in tasks or told.types[task] not in VANISH):
            told.find(f"no callback came for task {task}")
        if len(ids) > 1:
            told.find(f"callbacks for task {task} came under {len(ids)} message ids")
        told.counts["callbacks"] += sum(ids.values())
        told.counts["callbacks repeated"] += sum(ids.values()) - len(ids)


def archived_ids(folder):
    """Ids of all tasks of the archive, in the order they were written."""
    ids = []
    for path in sorted(pathlib.Path(folder).glob("*.zst")):
        text = subprocess.run(["zstd", "-dcq", str(path)], capture_output=True, check=True).stdout
        ids += [json.loads(line)["task"]["id"] for line in text.decode().splitlines()]
    return ids


def check_archive(told, folder, removed):
    """F-A21: what retention removed is in the archive, which can be read to its end."""
    try:
        ids = collections.Counter(archived_ids(folder))
    except (subprocess.CalledProcessError, ValueError) as error:
        told.find(f"the archive cannot be read: {error!r}")
        return
    for task in removed - set(ids):
        told.find_lost(f"task {task} was removed and is not in the archive")
    told.counts["archived again"] = sum(ids.values()) - len(ids)
