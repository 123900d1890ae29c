"""A seeded walk over the whole API, for two servers in lockstep (lockstep.py) and the oracle of the status machine
(status_oracle.py): tasks of every kind, arrays, dependencies, work, control, bulk calls, lists with cursors, queues, jobs,
schedules, patterns, recovery, wrong requests. What a clock decides is left out or lies years ahead.

    Walk(pair, seed).run(operations)       raises lockstep.Difference with the seed's way to it"""
import random
import time

import lockstep
import status_oracle
from lockstep import Difference
from plan_operations import LATER_MS, QUEUES, TYPES, Plans
from wrong_requests import NOBODY, WRONG, YEAR

WORKERS = ("w0", "w1", "w2")
LEVELS = ("low", "medium", "high", "critical")
STATUSES = ("pending", "delayed", "blocked", "paused", "claimed", "running", "completed", "failed", "dead_letter",
            "cancelled", "partial")
HELD_MAX = 40
AUDIT_EVERY = 600
TASKS_MAX = 500  # then the ended ones of a user are removed, and only old tasks are worked on
SETTLE_S = 20    # one of them may serve a claim a moment later

WHY = {status: (status,) for status in ("claimed", "running", "paused", *status_oracle.ENDED)}
WHY.update(blocked=("dependency", "children"), delayed=("delayed", "retry"))


class Walk(Plans):
    def __init__(self, pair, seed):
        self.pair = pair
        self.seed = seed
        self.rng = random.Random(seed)
        self.oracle = status_oracle.Oracle()
        self.held = []       # (task id, token, worker)
        self.sent = []       # elements that were accepted, to be sent again
        self.jobs = []
        self.schedules = []
        self.patterns = []
        self.named = 0
        self.seq = 0
        self.done = 0
        self.audits = 0

    # ---- the walk ----

    def run(self, operations):
        weights = {
            self.enqueue: 14, self.enqueue_array: 5, self.claim: 12, self.report: 22, self.control: 12, self.look: 10,
            self.list_tasks: 6, self.list_parts: 6, self.list_others: 5, self.bulk: 2, self.queue: 3, self.heartbeat: 2,
            self.leave: 1, self.fork: 1, self.wrong: 4, self.job: 3, self.schedule: 3, self.pattern: 2, self.recovery: 2,
            self.purge: 1, self.spawn: 3, self.relatives: 5,
            self.update: 3}
        try:
            for worker in WORKERS:
                self.register(worker)
            while self.pair.calls < operations:
                if self.pair.calls >= (self.audits + 1) * AUDIT_EVERY:
                    self.audit()
                    self.audits += 1
                self.rng.choices(list(weights), weights.values())[0]()
            self.audit()
            self.settled_counts()
        except Difference as difference:
            raise Difference(f"seed {self.seed}, call {self.pair.calls}: {difference}") from None

    def call(self, method, path, body=None, **more):
        return self.pair.call(method, path, body, **more)

    def expect(self, status, method, path, body=None, **more):
        got, answer = self.call(method, path, body, **more)
        if got != status:
            self.differs(f"{method} {path} {lockstep.short(body)}: {got}, predicted {status}: {lockstep.short(answer)}")
        return answer

    def differs(self, *texts):
        raise Difference("\n".join(["oracle:", *texts, "the calls before, newest last:", *self.pair.log]))

    def check(self, *shown):
        """Tasks as they are shown, against the oracle."""
        for task in shown:
            if task["id"] not in self.oracle:
                self.oracle.adopt(task)
            found = self.oracle.differences(task)
            if found:
                self.differs(*found)

    def maybe(self, chance=0.5):
        return self.rng.random() < chance

    def some(self, *statuses):
        """A task, of one of the statuses if there is one."""
        every = [i for i, t in self.oracle.tasks.items() if not statuses or t.status in statuses]
        return self.rng.choice(every) if every else None

    # ---- tasks ----

    def value(self, depth=0):
        kind = self.rng.randrange(8 if depth < 2 else 6)
        if kind == 0:
            return None
        if kind == 1:
            return self.rng.choice((True, False))
        if kind == 2:
            return self.rng.choice((0, -1, 2 ** 53, 12345678901234567890, 10))
        if kind == 3:
            return self.rng.choice((0.1, -1e300, 1.5e-7))
        if kind in (4, 5):
            return self.rng.choice(("", "x", "ä€😀", "a\"b\\c\n", "2027-01-01T00:00:00Z"))
        if kind == 6:
            return [self.value(depth + 1) for _ in range(self.rng.randrange(3))]
        return {self.rng.choice("abc"): self.value(depth + 1) for _ in range(self.rng.randrange(3))}

    def spec(self, plain=False):
        rng = self.rng
        spec = {"type": rng.choice(TYPES), "retry_delay_ms": rng.choice((0, 0, LATER_MS)),
                "max_retry_delay_ms": LATER_MS * 10}
        every = {
            "payload": self.value, "data": self.value, "name": lambda: rng.choice(("n", "Näme")),
            "priority": lambda: rng.choice((-1000, -1, 0, 7, 1000, *LEVELS)),
            "max_retries": lambda: rng.randrange(3), "max_crashes": lambda: rng.randrange(5),
            "max_continuations": lambda: rng.randrange(3),
            "retry_policy": lambda: rng.choice(("polynomial", "exponential", "linear", "fixed")),
            "timeout_ms": lambda: 3600000, "metadata": lambda: {"m": self.value()}, "tags": lambda: rng.choice((["x"], ["x", "y"], [])),
            "user_id": lambda: rng.choice(("u1", "u2")), "external_id": lambda: f"e{rng.randrange(60)}",
            "context_key": lambda: rng.choice(("c1", "c2")), "correlation_id": lambda: rng.choice(("r1", "r2")),
            "note": lambda: rng.choice(("o1", "ö\"2")),
            "limit_key": lambda: rng.choice(("k1", "k2")), "category": lambda: "general",
            "workflow_id": lambda: rng.choice(("wf1", "wf2")), "recovery_priority": lambda: rng.randrange(-5, 6),
            "auto_recovery": lambda: self.maybe(), "stall_after_ms": lambda: LATER_MS,
            "on_unsatisfied": lambda: rng.choice(("cancel", "fail", "run")),
            "idempotency_key": lambda: f"i{rng.randrange(60)}", "unique_until": lambda: rng.choice(("ended", "forever")),
            "hash_input": lambda: self.maybe()}
        for name, make in every.items():
            if self.maybe(0.12):
                spec[name] = make()
        if self.maybe(0.7):
            spec["queue"] = "plain" if plain else rng.choice(QUEUES[:3])
        if self.maybe(0.08):
            spec["delay_ms"] = LATER_MS
        elif self.maybe(0.05):
            spec["run_at"] = YEAR
        if "max_retries" in spec and self.maybe(0.2):
            spec["max_attempts"] = spec.pop("max_retries") + 1
        return spec

    def parents(self):
        """depends_on for a new task, and what it means."""
        found = {}
        for _ in range(self.rng.randrange(1, 4)):
            parent = self.some("pending", "claimed", "running", "paused") if self.maybe(0.7) else self.some()
            if parent and self.oracle[parent].queue != "plain" and self.oracle[parent].followed:
                found[parent] = self.rng.choice(("success", "success", "completion", "failure"))
        listed = [parent if kind == "success" and self.maybe() else {"task": parent, "type": kind}
                  for parent, kind in found.items()]
        return listed, list(found.items())

    def made(self, shown, parents=(), parent=None):
        """A new task, as it was answered."""
        self.oracle.enqueue(shown["id"], {**shown, "delay_ms": 1 if shown["scheduled_at"] else 0, "run_at": None},
                            parents, parent)
        self.check(shown)

    def full(self):
        return len(self.oracle.tasks) >= TASKS_MAX

    def enqueue(self):
        if self.full():
            return self.purge()
        spec = self.spec(plain=self.maybe(0.2))
        parents = ()
        if self.maybe(0.3) and spec.get("queue") != "plain":
            listed, parents = self.parents()
            if listed:
                spec["depends_on"] = listed
        status, answer = self.call("POST", "/v1/tasks", spec)
        if status == 201:
            self.made(answer, parents)
        elif status == 200:
            self.check(answer)
        elif status not in (409, 422):
            self.differs(f"an enqueue was answered {status}")

    def enqueue_array(self):
        if self.full():
            return
        specs = [self.spec(plain=True) if self.maybe(0.2) else self.spec() for _ in range(self.rng.randrange(1, 7))]
        wanted = [[] for _ in specs]
        for index, spec in enumerate(specs):
            spec["ref"] = f"r{index}"
            for earlier in range(index):
                if self.maybe(0.25) and spec.get("queue") != "plain" and specs[earlier].get("queue") != "plain":
                    wanted[index].append((earlier, self.rng.choice(("success", "completion", "failure"))))
            if wanted[index]:
                spec["depends_on"] = [{"ref": f"r{earlier}", "type": kind} for earlier, kind in wanted[index]]
        status, answer = self.call("POST", "/v1/tasks", specs)
        if status != 201:
            return
        items = answer["items"]
        fresh = set()
        for shown, links in zip(items, wanted):
            if shown.get("duplicate"):
                self.check(shown) if shown["id"] not in fresh else None
                continue
            fresh.add(shown["id"])
            parents = {}
            for earlier, kind in links:
                parents.setdefault(items[earlier]["id"], kind)
            self.oracle.enqueue(shown["id"], {**shown, "delay_ms": 1 if shown["scheduled_at"] else 0, "run_at": None},
                                parents.items())
        # An element is shown as it is when all are in: a later duplicate of it shows the same.
        self.check(*[shown for shown in items if shown["id"] in fresh and not shown.get("duplicate")])

    def spawn(self):
        """Children of a task that is held."""
        if not self.held or self.full():
            return
        task_id, token, worker = self.rng.choice(self.held)
        specs = [self.spec() for _ in range(self.rng.randrange(1, 4))]
        for spec in specs:
            spec.pop("external_id", None), spec.pop("idempotency_key", None), spec.pop("hash_input", None)
        element = {"task_id": task_id, "lease_token": token, "op": "spawn", "tasks": specs}
        if not self.send(worker, [element])[0]["ok"]:
            return
        page = self.expect(200, "GET", f"/v1/tasks?parent_id={task_id}&limit={len(specs)}")
        for shown in reversed(page["items"]):
            self.made(shown, parent=task_id)

    def fork(self):
        task_id = self.some()
        if task_id is None or self.full() or self.oracle[task_id].parents or not self.oracle[task_id].followed:
            return
        body = {name: value for name, value in (("priority", 5), ("queue", "b"), ("payload", self.value()), ("name", "f"))
                if self.maybe(0.3)}
        status, answer = self.call("POST", f"/v1/tasks/{task_id}:fork", body)
        if status == 200:
            self.oracle.adopt(answer)

    # ---- work ----

    def register(self, worker):
        self.expect(201, "POST", "/v1/workers", {"id": worker, "hostname": "h", "pool_size": 20, "version": "1",
                                                 "queues": [*QUEUES, "medium-priority", "high-priority", "low-priority"]})

    def claim(self):
        if len(self.held) > HELD_MAX:
            return self.report()
        body = {"max": self.rng.choice((1, 1, 2, 5)), "wait_ms": 0}
        if self.maybe(0.3):
            body["queues"] = self.rng.sample(QUEUES, self.rng.randrange(1, 4))
        if self.maybe(0.2):
            body["types"] = self.rng.sample(TYPES, self.rng.randrange(1, 3))
        got, left = self.claim_as(self.rng.choice(WORKERS), body), self.some("pending")
        if left and got < body["max"] and self.why(left) == "ready" and len(body) == 2:
            if not self.claim_as(self.rng.choice(WORKERS), {"max": 1, "wait_ms": SETTLE_S * 1000}):
                self.differs(f"{left} is ready, but a worker that takes everything got nothing")

    def claim_as(self, worker, body):
        _, answer = self.call("POST", f"/v1/workers/{worker}:claim", body,
                              again=lambda answers: self.claim_rest(worker, body, answers))
        for shown in answer["tasks"]:
            if shown["id"] not in self.oracle:
                self.oracle.adopt({**shown, "status": "pending", "attempts": shown["attempts"] - 1})
            if not self.oracle.claim(shown["id"], worker, shown["lease_token"]):
                self.differs(f"task {shown['id']} was claimed, but {vars(self.oracle[shown['id']])}")
            self.check(shown)
            self.held.append((shown["id"], shown["lease_token"], worker))
        return len(answer["tasks"])

    def claim_rest(self, worker, body, answers):
        """What freed a slot or ended a wait may have reached one of them a moment later. What comes so comes last, so
        the order says nothing then."""
        end, is_late = time.monotonic() + SETTLE_S, False
        while [status for status, _ in answers] == [200, 200] and time.monotonic() < end:
            counts = [len(answer["tasks"]) for _, answer in answers]
            if counts[0] == counts[1]:
                break
            side = counts.index(min(counts))
            more = self.pair.ask_one(side, "POST", f"/v1/workers/{worker}:claim",
                                     {**body, "max": max(counts) - min(counts), "wait_ms": 200})
            answers[side][1]["tasks"].extend(more[1]["tasks"])
            is_late = True
        if is_late:
            places = {self.pair.other.get(task["id"]): place for place, task in enumerate(answers[0][1]["tasks"])}
            answers[1][1]["tasks"].sort(key=lambda task: places.get(task["id"], len(places)))
        return answers

    def send(self, worker, elements):
        answer = self.expect(200, "POST", f"/v1/workers/{worker}:report", elements)
        for element, item in zip(elements, answer["items"]):
            task_id = element["task_id"]
            if task_id not in self.oracle:
                continue
            if element["op"] == "spawn":
                if item["ok"]:
                    self.oracle.report(task_id, {**element, "op": "start"}, worker)
                continue
            said = "ok" if item["ok"] else item["error"]["code"]
            if said in ("ok", "stale_lease", "conflict"):
                predicted = self.oracle.report(task_id, element, worker)
                if predicted != said and self.oracle[task_id].followed:
                    self.differs(f"{element}: answered {said}, predicted {predicted}")
                if not self.oracle[task_id].followed:
                    self.expect_shown(task_id)
            if item["ok"] and element["op"] in status_oracle.OUTCOMES | {"release"}:
                self.sent = [*self.sent[-20:], (worker, element)]
        self.held = [(i, t, w) for i, t, w in self.held if i in self.oracle and self.oracle[i].lease_token == t
                     and self.oracle[i].worker == w]
        return answer["items"]

    def expect_shown(self, task_id):
        status, shown = self.call("GET", f"/v1/tasks/{task_id}")
        if status == 200:
            self.check(shown)

    def element(self, task_id, token):
        rng = self.rng
        parent = bool(self.oracle.open_children(self.oracle[task_id]))
        op = "continue" if parent and self.maybe() else rng.choice((
            "start", "progress", "checkpoint", "log", "complete", "complete", "fail", "fail", "partial", "continue", "release"))
        element = {"task_id": task_id, "lease_token": token, "op": op}
        fields = {
            "progress": {"progress": rng.randrange(101), "state": rng.choice(("Half", "Rendering")), "data": {"at": 1},
                         "metadata": {"k": self.value()}, "detail": {"d": 1}},
            "checkpoint": {"name": rng.choice("xyz"), "progress": rng.randrange(101), "description": "d",
                           "data": {"v": self.value()}, "database_state": self.value(), "file_state": self.value()},
            "log": {"level": rng.choice(("DEBUG", "INFO", "WARN", "ERROR", "FATAL")), "context": {"c": self.value()}},
            "complete": {"result": self.value()}, "partial": {"result": self.value()},
            "fail": {"error": rng.choice(("no", "ä")), "details": {"d": self.value()}, "retryable": self.maybe(0.8)},
            "continue": {"data": {"page": 2}, "delay_ms": rng.choice((0, LATER_MS)), "wait_children": parent or self.maybe()}}
        for name, value in fields.get(op, {}).items():
            if self.maybe(0.6):
                element[name] = value
        if op == "fail" and not self.oracle[task_id].followed:
            element["retryable"] = False  # the retry of a run comes after a second
        if op == "log":
            element["message"] = rng.choice(("m", "ünï", ""))
        if self.maybe(0.3):
            self.seq += 1
            element["seq"] = self.seq
        return element

    def report(self):
        if self.sent and self.maybe(0.07):  # the same once more, or another outcome under the same lease
            worker, element = self.rng.choice(self.sent)
            if element["task_id"] in self.oracle:
                if self.maybe(0.3) and "seq" not in element:
                    element = {**element, "op": "complete", "result": "another"}
                    element = {k: v for k, v in element.items() if k in ("task_id", "lease_token", "op", "result")}
                self.send(worker, [element])
            return
        if not self.held:
            return self.claim()
        worker = self.rng.choice(self.held)[2]
        mine = [(i, t) for i, t, w in self.held if w == worker]
        elements = []
        for task_id, token in self.rng.sample(mine, min(len(mine), self.rng.randrange(1, 5))):
            for _ in range(self.rng.randrange(1, 3)):
                elements.append(self.element(task_id, token if self.maybe(0.96) else token + 1))
        self.send(worker if self.maybe(0.97) else self.rng.choice(WORKERS), elements)  # a token is of one worker only

    def heartbeat(self):
        worker = self.rng.choice(WORKERS)
        answer = self.expect(200, "POST", f"/v1/workers/{worker}:heartbeat", {})
        for task_id in answer["cancel"]:
            if task_id in self.oracle and self.oracle[task_id].status != "cancelled":
                self.differs(f"{task_id} is to be cancelled, but {vars(self.oracle[task_id])}")

    def leave(self):
        worker = self.rng.choice(WORKERS)
        self.expect(204, "DELETE", f"/v1/workers/{worker}")
        self.oracle.leave(worker)
        self.held = [(i, t, w) for i, t, w in self.held if w != worker]
        self.register(worker)

    # ---- what people do ----

    def control(self):
        verb = self.rng.choice(("cancel", "retry", "retry", "pause", "resume", "resume", "prioritize", "recover", "delete"))
        near = {"retry": status_oracle.ENDED, "resume": ("paused",), "recover": ("partial",), "delete": status_oracle.ENDED,
                "cancel": status_oracle.WAITING | status_oracle.HELD, "pause": status_oracle.WAITING}.get(verb, ())
        task_id = self.some(*near) if self.maybe(0.8) else self.some()
        if task_id is not None:
            self.ask(verb, task_id)

    def update(self):
        task_id = self.some()
        if task_id is None:
            return
        body = {"note": self.rng.choice(("o1", "ö\"2", "", None))}
        if self.maybe(0.1):
            body["if_version"] = 0
        status, answer = self.call("PATCH", f"/v1/tasks/{task_id}", body)
        if status != (409 if "if_version" in body else 200):
            self.differs(f"a note on {vars(self.oracle[task_id])}: {status} {lockstep.short(answer)}")
        if status == 200 and answer["note"] != (body["note"] or None):
            self.differs(f"{body} became {answer['note']!r}")

    def relatives(self):
        """Those that wait for each other: one of them is ended, or runs again."""
        every = [(i, t) for i, t in self.oracle.tasks.items() if t.followed]
        waiting = [i for i, t in every if t.status == "blocked"]
        related = [i for i, t in every if t.ended and (t.parents or self.is_awaited(t))]
        if waiting and self.maybe(0.3):
            self.ask(self.rng.choice(("cancel", "pause")), self.rng.choice(waiting))
        elif related:
            task_id = self.rng.choice(related)
            self.ask("recover" if self.oracle[task_id].status == "partial" and self.maybe() else "retry", task_id)
            self.why(task_id)

    def is_awaited(self, task):
        """By dependents, or by the task that spawned it."""
        parent = task.parent in self.oracle and self.oracle[task.parent]
        return any(not self.oracle[d].ended for d in task.dependents) or (parent and parent.status == "blocked")

    def ask(self, verb, task_id):
        body = {"reason": "because"} if self.maybe(0.2) and verb != "delete" else {}
        if verb == "prioritize":
            body["priority"] = self.rng.choice((-5, 0, 5, "high"))
        if verb == "recover":
            body["method"] = self.rng.choice(("resume_checkpoint", "restart_clean", "validate_only"))
        if verb == "retry" and self.maybe(0.3):
            body["ignore_dependencies"] = self.maybe(0.8)
        if self.maybe(0.05) and verb != "delete":
            body["if_version"] = 0
        path = f"/v1/tasks/{task_id}"
        status, answer = self.call("DELETE", path) if verb == "delete" else self.call("POST", f"{path}:{verb}", body)
        task = self.oracle[task_id]
        ignores = body.get("ignore_dependencies", False)
        if "if_version" in body:
            if status != 409:
                self.differs(f"{verb} with a wrong version: {status}")
        elif body.get("method") == "validate_only":
            if status != 200 or answer["recovery"]["valid"] and not self.oracle.may(verb, task_id):
                self.differs(f"a recovery of {vars(task)} is judged {status} {lockstep.short(answer)}")
            self.check(answer)
        elif not task.followed:
            if status == 204:
                self.oracle.forget(task_id)
            elif status == 200:
                self.oracle.take(answer)
        elif self.oracle.may(verb, task_id) and status in (200, 204):
            if verb == "retry" and self.oracle.unmet(task_id) and not ignores:
                self.differs(f"{verb} of {vars(task)}: its dependencies are not met, but {status}")
            self.oracle.control(verb, task_id, ignores)
            if verb != "delete":
                self.check(answer)
        elif status < 300 or (self.oracle.may(verb, task_id) and not self.is_refusal(verb, task_id, ignores, status, answer)):
            self.differs(f"{verb} of {vars(task)}: {status} {lockstep.short(answer)}")
        if status == 200 and verb in ("cancel", "retry"):
            self.held = [h for h in self.held if h[0] != task_id or (verb == "cancel" and task.worker)]

    def is_refusal(self, verb, task_id, ignores, status, answer):
        """A 409 that what may be retried or recovered can get: not for crashes, of which there are none, and for
        dependencies if and only if one of them is not met."""
        if status != 409 or verb not in ("retry", "recover"):
            return False
        text = answer["error"]["message"]
        unmet = verb == "retry" and self.oracle.unmet(task_id) and not ignores
        return "poison" not in text and unmet == ("dependencies are not met" in text)

    def bulk(self):
        verb = self.rng.choice(("cancel", "cancel", "retry"))
        queue = self.rng.choice(QUEUES)
        status = self.rng.choice(("pending", "delayed", "paused", "blocked", "claimed") if verb == "cancel"
                                 else ("failed", "dead_letter", "partial", "cancelled"))
        path = f"/v1/tasks:{verb}?status={status}&queue={queue}"
        if self.maybe(0.4):
            path += f"&type={self.rng.choice(TYPES)}"
        if self.maybe(0.3):
            self.expect(200, "POST", f"{path}&dry_run=true")
            return
        # Tasks that become ready stand in line by when they did, and a commit takes as many as it takes: one at a time.
        limit = 1000 if verb == "cancel" and queue == "plain" else 1
        self.expect(200, "POST", f"{path}&limit={limit}")
        shown = self.all_tasks(f"queue={queue}&")
        for task in shown:
            self.retake(verb, task)
        self.check(*shown)

    def purge(self):
        if self.maybe(0.05):
            self.expect(200, "DELETE", f"/v1/tasks?user_id={self.rng.choice(('u1', 'u2'))}")
            self.forget_gone()
        ended = [i for i, t in self.oracle.tasks.items() if t.ended and t.worker is None]
        for task_id in self.rng.sample(ended, min(len(ended), 3)):
            status, _ = self.call("DELETE", f"/v1/tasks/{task_id}")
            if status == 204:
                self.oracle.forget(task_id)

    def forget_gone(self):
        """A purge names none of those that went."""
        there = {shown["id"] for shown in self.all_tasks()}
        for task_id in [i for i in self.oracle.tasks if i not in there]:
            self.oracle.forget(task_id)

    # ---- looking ----

    def look(self):
        task_id = self.some()
        if task_id is None:
            return
        way = self.rng.randrange(5)
        if way == 3:
            self.call("GET", f"/v1/tasks/{task_id}/wait?timeout_ms=0")
            return
        if way == 4:
            return self.why(task_id)
        self.check(self.expect(200, "GET", f"/v1/tasks/{task_id}"))

    def why(self, task_id):
        said = self.expect(200, "GET", f"/v1/tasks/{task_id}/why")["reason"]
        task = self.oracle[task_id]
        if task.followed and task.status in WHY and said not in WHY[task.status]:
            self.differs(f"why says {said} of {vars(task)}")
        return said

    def all_tasks(self, query=""):
        found, cursor = [], None
        while True:
            page = self.expect(200, "GET", f"/v1/tasks?{query}limit=1000", cursor=cursor)
            found += page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                return found

    def audit(self):
        self.check(*self.all_tasks())

    def retake(self, verb, shown):
        """Which tasks a bulk call took is not predicted, only what becomes of them."""
        if shown["id"] not in self.oracle or not self.oracle[shown["id"]].followed:
            return
        task = self.oracle[shown["id"]]
        became = {"cancel": ("cancelled",), "retry": ("pending", "blocked")}[verb]
        if task.status != shown["status"] in became and self.oracle.may(verb, shown["id"]):
            if verb == "retry" and self.oracle.unmet(shown["id"]):
                self.differs(f"{vars(task)} was retried, but its dependencies are not met")
            self.oracle.control(verb, shown["id"])

    def list_tasks(self):
        rng = self.rng
        filters = {"status": lambda: rng.choice(STATUSES), "type": lambda: rng.choice(TYPES), "queue": lambda: rng.choice(QUEUES),
                   "tag": lambda: rng.choice("xy"), "user_id": lambda: rng.choice(("u1", "u2")), "external_id": lambda: "e3",
                   "context_key": lambda: "c1", "workflow_id": lambda: "wf1", "correlation_id": lambda: "r1",
                   "parent_id": lambda: self.some() or NOBODY, "created_after": lambda: "2020-01-01T00:00:00Z",
                   "created_before": lambda: "2050-01-01T00:00:00Z",
                   "job_id": lambda: rng.choice(self.jobs)["id"] if self.jobs else NOBODY}
        names = rng.sample(list(filters), rng.choice((0, 1, 1, 2, 3)))
        query = "".join(f"{name}={filters[name]()}&" for name in names)
        if self.maybe(0.2):
            query += "order=oldest&"
        cursor = None
        for _ in range(3):
            page = self.expect(200, "GET", f"/v1/tasks?{query}limit={rng.choice((1, 3, 20))}", cursor=cursor)
            self.check(*page["items"])
            cursor = page["next_cursor"]
            if cursor is None:
                break

    def list_parts(self):
        task_id = self.some("completed", "running", "dead_letter", "partial", "failed") if self.maybe(0.7) else self.some()
        if task_id is None:
            return
        part = self.rng.choice(("events", "events", "executions", "checkpoints", "logs", "result"))
        if part == "result":
            self.call("GET", f"/v1/tasks/{task_id}/result")
            return
        limit, cursor = self.rng.choice((1, 5, 100)), None
        for _ in range(3):
            _, page = self.call("GET", f"/v1/tasks/{task_id}/{part}?limit={limit}", cursor=cursor)
            cursor = page["next_cursor"]
            if cursor is None:
                break

    def list_others(self):
        path = self.rng.choice(("/v1/queues", "/v1/jobs", "/v1/schedules", "/v1/recurring", "/v1/categories", "/v1/executions",
                                "/v1/recovery", "/v1/recovery/candidates", "/v1/services", "/v1/executions?status=completed",
                                "/v1/jobs?is_active=true", "/v1/schedules?schedule_type=cron", "/v1/workflows/wf1"))
        if "workflows" in path:
            self.call("GET", path)
            return
        joint, cursor = "&" if "?" in path else "?", None
        limit = self.rng.choice((2, 10, 100))
        for _ in range(3):
            cursor = self.expect(200, "GET", f"{path}{joint}limit={limit}", cursor=cursor)["next_cursor"]
            if cursor is None:
                break

    def wrong(self):
        method, path, body = self.rng.choice(WRONG)
        status, _ = self.call(method, path, body)
        if status >= 500:
            self.differs(f"{method} {path} {body}: {status}")
        if method == "DELETE" and path.startswith("/v1/workers/w"):
            self.differs("a worker of ours left")

    def settled_counts(self):
        """Both count the same, and what the oracle counts."""
        predicted = {}
        for task in self.oracle.tasks.values():
            predicted[task.status] = predicted.get(task.status, 0) + 1
        end = time.monotonic() + SETTLE_S
        while True:
            counts = [lockstep.parsed(data)["counts"] for _, data in self.pair.send("GET", "/v1/stats")]
            counts = [{status: count for status, count in each.items() if count} for each in counts]
            if counts == [predicted, predicted]:
                return
            if time.monotonic() > end:
                self.differs(f"/v1/stats counts {counts}, the oracle {predicted}")
            time.sleep(0.1)
