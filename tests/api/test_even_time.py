"""Time tells nothing (V8): refusals for another user's ids take as long as those for ids of nothing. Here with a few
hundred requests of each; tests/campaign/even_time.py makes 10,000, five times."""
import math
import random
import time
import unittest

from token_harness import TokenTest, bearer

NOTHING = "0197f6a2-5c3e-7b11-9d2f-3a4b5c6d7e8f"
ROUTES = (("GET", "/v1/tasks/{id}", None), ("POST", "/v1/tasks/{id}:cancel", {}), ("GET", "/v1/jobs/{id}", None))


def told_apart(left, right):
    """The probability that two samples of one distribution differ as much (Mann and Whitney, normal, ties at their
    middle rank)."""
    values = sorted([(value, 0) for value in left] + [(value, 1) for value in right])
    ranks, ties, at = 0.0, 0.0, 0
    while at < len(values):
        end = at
        while end < len(values) and values[end][0] == values[at][0]:
            end += 1
        ranks += (at + end + 1) / 2 * sum(1 for value in values[at:end] if value[1] == 0)
        ties += (end - at) ** 3 - (end - at)
        at = end
    n, m = len(left), len(right)
    u = ranks - n * (n + 1) / 2
    spread = math.sqrt(n * m / 12 * ((n + m + 1) - ties / ((n + m) * (n + m - 1))))
    return math.erfc(abs(u - n * m / 2) / spread / math.sqrt(2)) if spread else 1.0


class EvenTime(TokenTest):
    def setUp(self):
        super().setUp()
        self.ada = bearer(self.token("tasks:read", "tasks:control", "plans:read", user_id="ada"))
        task = self.root(201, "POST", "/v1/tasks", {"type": "t", "queue": "idle", "user_id": "bob",
                                                    "payload": "x" * 200_000})
        job = self.root(201, "POST", "/v1/jobs", {"name": "j", "task_type": "t", "created_by": "bob"})
        self.foreign = {"tasks": task["id"], "jobs": job["id"]}

    def measure(self, method, path, body, count):
        """Seconds of each request, for foreign ids and for missing ones, in a random order."""
        took = {True: [], False: []}
        order = [True, False] * count
        random.shuffle(order)
        for foreign in order:
            place = path.replace("{id}", self.foreign[path.split("/")[2]] if foreign else NOTHING)
            began = time.perf_counter()
            reply = self.request(method, place, body, self.ada)
            took[foreign].append(time.perf_counter() - began)
            self.assertEqual(reply.status, 404)
        return took[True], took[False]

    def test_v8_a_foreign_id_takes_as_long_as_a_missing_one(self):
        for method, path, body in ROUTES:
            found = []
            for _ in range(3):  # of one distribution, all of them are that unlike once in a million
                both = self.measure(method, path, body, 150)
                found.append(told_apart(*both))
                self.assertGreaterEqual(min(map(min, both)), 0.005, "no refusal shows what it took")
                if found[-1] >= 0.01:
                    break
            self.assertGreaterEqual(found[-1], 0.01, f"{method} {path}: {found}")

    def test_the_measure_notices_a_difference(self):
        near = [random.gauss(5.0, 0.1) for _ in range(500)]
        self.assertLess(told_apart(near, [random.gauss(5.05, 0.1) for _ in range(500)]), 0.01)
        self.assertEqual(told_apart([1.0] * 9, [1.0] * 9), 1.0)


if __name__ == "__main__":
    unittest.main()
