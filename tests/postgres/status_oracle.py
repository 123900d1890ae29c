"""A small oracle of the status machine: what becomes of a task by each operation, as docs/statuses.md and the table of
dependencies say. It knows nothing of stores, batches or order: it gets what was requested and
accepted, and predicts status and counters of every task. A task that it does not follow (a run that
waits for other jobs) is only looked at.

    oracle.enqueue(id, spec); oracle.claim(id, worker, token); oracle.report(id, element) ...
    oracle.differences(shown)      what a task as the API shows it has otherwise"""
import json

ENDED = {"completed", "failed", "dead_letter", "cancelled", "partial"}
HELD = {"claimed", "running"}
WAITING = {"pending", "delayed", "blocked"}
OUTCOMES = {"complete", "partial", "fail", "continue"}


def is_met(kind, ended_as):
    return {"success": ended_as == "completed", "completion": True,
            "failure": ended_as in ("failed", "dead_letter", "partial")}[kind]


def content(element):
    """What two reports of one outcome must have in common: what is left out is as its default."""
    defaults = {"retryable": True, "wait_children": False, "error": None}
    said = {**defaults, **{name: value for name, value in element.items() if name != "seq"}}
    return json.dumps({name: value for name, value in said.items() if value is not None}, sort_keys=True)


class Task:
    def __init__(self, spec, parent=None):
        self.status = None
        self.attempts = self.retry_count = self.crash_count = self.continuations = 0
        self.lease_token = 0
        self.max_retries = spec.get("max_retries", 3)
        self.retry_later = spec.get("retry_delay_ms", 1000) > 0
        self.max_continuations = spec.get("max_continuations", 10000)
        self.on_unsatisfied = spec.get("on_unsatisfied", "cancel")
        self.later = bool(spec.get("delay_ms") or spec.get("run_at"))
        self.parents = []          # [id, kind, how it was decided: None, True, False]
        self.dependents = []
        self.parent = parent       # that spawned it
        self.children = []
        self.waits_children = False
        self.worker = None         # that holds its slot
        self.claimant = None       # the worker of the last claim
        self.pause_requested = False
        self.outcome = None        # (token, element) of the last
        self.seq = 0               # of the last element under the lease that has one
        self.queue = spec.get("queue", "default")
        self.followed = True

    @property
    def ended(self):
        return self.status in ENDED


class Oracle:
    def __init__(self):
        self.tasks = {}

    def __getitem__(self, task_id):
        return self.tasks[task_id]

    def __contains__(self, task_id):
        return task_id in self.tasks

    def adopt(self, shown):
        """A task that came into being otherwise: it is not followed, only its end counts for others."""
        if shown["id"] not in self.tasks:
            task = self.tasks[shown["id"]] = Task({"queue": shown["queue"]})
            task.followed = False
        self.take(shown)

    def take(self, shown):
        """What the task is now, where that is not predicted."""
        task = self.tasks[shown["id"]]
        was_ended = task.ended
        for name in ("status", "attempts", "retry_count", "crash_count", "continuations"):
            setattr(task, name, shown[name])
        task.worker = shown["worker_id"] if task.status in HELD else None
        task.pause_requested = shown["pause_requested"]
        if task.ended and not was_ended:
            self.tell(shown["id"])

    # ---- enqueue ----

    def enqueue(self, task_id, spec, parents=(), parent=None):
        """parents: (id, kind)."""
        task = self.tasks[task_id] = Task(spec, parent)
        if parent:
            self.tasks[parent].children.append(task_id)
        for parent_id, kind in parents:
            other = self.tasks[parent_id]
            task.parents.append([parent_id, kind, self.now(parent_id, kind)])
            other.dependents.append(task_id)
        self.wait(task_id)
        return task

    def wait(self, task_id):
        """What a task that is not held and has not ended waits for decides its status."""
        task = self.tasks[task_id]
        decided = [how for _, _, how in task.parents]
        if False in decided and task.on_unsatisfied != "run":
            task.status = "cancelled" if task.on_unsatisfied == "cancel" else "failed"
            self.tell(task_id)
        elif None in decided or (task.waits_children and self.open_children(task)):
            task.status = "blocked"
        else:
            task.status = "delayed" if task.later else "pending"

    def open_children(self, task):
        return [child for child in task.children if not self.tasks[child].ended]

    def tell(self, task_id):
        """It ended: what waits for it is decided."""
        task = self.tasks[task_id]
        for each in task.dependents:
            dependent = self.tasks[each]
            for link in dependent.parents:
                if link[0] == task_id and link[2] is None:
                    link[2] = is_met(link[1], task.status)
            if dependent.status == "blocked" and dependent.followed:
                self.wait(each)
        parent = self.tasks.get(task.parent)
        if parent and parent.status == "blocked" and parent.followed:
            self.wait(task.parent)

    # ---- work ----

    def claim(self, task_id, worker, token):
        """True if it could be claimed."""
        task = self.tasks[task_id]
        fits = not task.followed or (task.status == "pending" and token == task.lease_token + 1)
        task.status, task.lease_token = "claimed", token
        task.worker = task.claimant = worker
        task.attempts += 1
        task.seq = 0
        task.later = False
        return fits

    def report(self, task_id, element, worker):
        """How it is answered: 'ok', 'stale_lease' or 'conflict'."""
        task = self.tasks[task_id]
        op = element["op"]
        if task.status not in HELD or element["lease_token"] != task.lease_token or worker != task.worker:
            return self.answer_late(task, element, worker)
        if element.get("seq", task.seq + 1) <= task.seq:
            return "ok"  # seen before
        task.seq = element.get("seq", task.seq)
        if op == "release":
            self.give_back(task)
            task.outcome = (task.lease_token, element)
            return "ok"
        task.status = "running"
        if op in OUTCOMES:
            task.outcome = (task.lease_token, element)
            getattr(self, op)(task, element)
            task.worker = None
            asked, task.pause_requested = task.pause_requested, False
            if task.ended:
                self.tell(task_id)
            elif asked and task.status in WAITING:
                task.status = "paused"
        return "ok"

    def answer_late(self, task, element, worker):
        op, same_lease = element["op"], element["lease_token"] == task.lease_token and worker == task.claimant
        if task.outcome and task.outcome[0] == element["lease_token"]:
            before = task.outcome[1]
            if op == before["op"] == "release":
                return "ok"
            if op in OUTCOMES and before["op"] != "release":
                return "ok" if content(before) == content(element) else "conflict"
        if same_lease and element.get("seq", task.seq + 1) <= task.seq:
            return "ok"  # seen before
        if same_lease and op in OUTCOMES | {"release"}:
            task.worker = None  # of a cancelled one: its holder says that it stopped
        return "stale_lease"

    def give_back(self, task):
        task.attempts -= 1
        task.worker = task.outcome = None
        task.status = "paused" if task.pause_requested else "pending"
        task.pause_requested = False

    def complete(self, task, element):
        task.status = "completed"

    def partial(self, task, element):
        task.status = "partial"

    def fail(self, task, element):
        if not element.get("retryable", True):
            task.status = "failed"
        elif task.retry_count >= task.max_retries:
            task.status = "dead_letter"
        else:
            task.later = task.retry_later
            task.status = "delayed" if task.later else "pending"
        task.retry_count += 1
        task.waits_children = False

    def go_on(self, task, element):
        if task.continuations >= task.max_continuations:
            task.status = "failed"
            return
        task.continuations += 1
        task.waits_children = element.get("wait_children", False)
        task.later = element.get("delay_ms", 0) > 0  # counted from now, also while it waits for children
        if task.waits_children and self.open_children(task):
            task.status = "blocked"
        else:
            task.status = "delayed" if task.later else "pending"

    def leave(self, worker):
        for task in self.tasks.values():
            if task.worker == worker:
                if task.status in HELD:
                    self.give_back(task)
                task.worker = None

    # ---- what people do ----

    def may(self, verb, task_id):
        """Whether it is accepted; None: not known."""
        task = self.tasks[task_id]
        if verb == "cancel":
            return not task.ended
        if verb == "retry":
            return task.ended or task.status == "orphaned"
        if verb == "pause":
            return task.status in HELD or task.status in WAITING
        if verb == "resume":
            return task.status == "paused" or task.pause_requested
        if verb == "prioritize":
            return not task.ended
        if verb == "recover":
            return task.status in ("orphaned", "partial")
        return task.ended and task.worker is None  # delete

    def unmet(self, task_id):
        """Whether a retry is refused because a dependency ended otherwise than it needs."""
        task = self.tasks[task_id]
        found = [self.now(parent, kind) for parent, kind, _ in task.parents if parent]
        return False in found and task.on_unsatisfied != "run"

    def now(self, parent_id, kind):
        """How a dependency is decided at this moment; None: not yet."""
        parent = self.tasks[parent_id]
        return is_met(kind, parent.status) if parent.ended else None

    def control(self, verb, task_id, ignore_dependencies=False):
        task = self.tasks[task_id]
        if verb == "cancel":
            task.status, task.pause_requested = "cancelled", False
            self.tell(task_id)
        elif verb == "retry":
            task.retry_count = task.crash_count = 0
            self.again(task)
            task.parents = [link for link in task.parents if link[0]]
            for link in task.parents:
                link[2] = True if ignore_dependencies else self.now(link[0], link[1])
            self.wait(task_id)
        elif verb == "recover":
            self.again(task)
        elif verb == "pause":
            if task.status in HELD:
                task.pause_requested = True
            else:
                task.status = "paused"
        elif verb == "resume":
            if task.pause_requested:
                task.pause_requested = False
            else:
                self.wait(task_id)
        elif verb == "delete":
            self.forget(task_id)

    def again(self, task):
        task.status, task.later, task.waits_children = "pending", False, False
        task.worker = task.outcome = None
        task.pause_requested = False

    def forget(self, task_id):
        task = self.tasks.pop(task_id)
        for each in task.dependents:
            for link in self.tasks[each].parents if each in self.tasks else ():
                if link[0] == task_id:
                    link[0] = None  # what it decided stays so
        for each, _, _ in task.parents:
            if each in self.tasks:
                self.tasks[each].dependents.remove(task_id)
        if task.parent in self.tasks:
            self.tasks[task.parent].children.remove(task_id)
        for child in task.children:
            if child in self.tasks:
                self.tasks[child].parent = None

    # ---- and what is there ----

    def differences(self, shown):
        task = self.tasks[shown["id"]]
        if not task.followed:
            self.take(shown)
            return []
        predicted = {"status": task.status, "attempts": task.attempts, "retry_count": task.retry_count,
                     "crash_count": task.crash_count, "continuations": task.continuations,
                     "pause_requested": task.pause_requested}
        return [f"task {shown['id']}: {name} is {shown[name]!r}, predicted {value!r}"
                for name, value in predicted.items() if shown[name] != value]


setattr(Oracle, "continue", Oracle.go_on)  # the word of the report; Python has it for itself
