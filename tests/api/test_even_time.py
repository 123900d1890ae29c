"""Time tells nothing (V8): refusals for ids of another user or namespace take as long as those for ids of nothing. Here
with a few hundred requests of each; tests/campaign/even_time.py makes 10,000, five times, with a control."""
import concurrent.futures
import math
import random
import time
import unittest

from token_harness import TokenTest, bearer

NOTHING = "0197f6a2-5c3e-7b11-9d2f-3a4b5c6d7e8f"
NOTHING_ELSE = "0197f6a2-5c3e-7b11-9d2f-3a4b5c6d7e90"
# Who asks (limited to a user, to a namespace), what, and the status of every answer.
ROUTES = (("user", "GET", "/v1/tasks/{id}", None, 404), ("user", "POST", "/v1/tasks/{id}:cancel", {}, 404),
          ("user", "GET", "/v1/jobs/{id}", None, 404), ("namespace", "GET", "/v1/tasks/{id}", None, 404),
          ("user", "POST", "/v1/recovery/validate", {"task_id": "{id}"}, 200))


def difference(left, right):
    """How far the middle ranks of two samples lie apart, in standard deviations of what chance does (Mann and Whitney,
    normal, ties at their middle rank). Positive: the left one is slower."""
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
    return (u - n * m / 2) / spread if spread else 0.0


def by_chance(z):
    """The probability that chance alone leads as far away, to either side."""
    return math.erfc(abs(z) / math.sqrt(2))


class EvenTime(TokenTest):
    def setUp(self):
        super().setUp()
        self.root(201, "POST", "/v1/namespaces", {"name": "a"})
        scopes = ("tasks:read", "tasks:control", "plans:read")
        self.asking = {"user": bearer(self.token(*scopes, user_id="ada")),
                       "namespace": bearer(self.token("admin", namespace="a"))}
        task = self.root(201, "POST", "/v1/tasks", {"type": "t", "queue": "idle", "user_id": "bob",
                                                    "payload": "x" * 200_000})
        job = self.root(201, "POST", "/v1/jobs", {"name": "j", "task_type": "t", "created_by": "bob"})
        self.foreign = {"tasks": task["id"], "recovery": task["id"], "jobs": job["id"]}

    def once(self, route, which):
        who, method, path, body, status = route
        which = self.foreign[path.split("/")[2]] if which == "foreign" else which
        body = {name: value.replace("{id}", which) for name, value in body.items()} if body else body
        began = time.perf_counter()
        reply = self.request(method, path.replace("{id}", which), body, self.asking[who])
        took = time.perf_counter() - began
        self.assertEqual(reply.status, status)
        return took

    def measure(self, route, count, *ids, clients=4):
        """Seconds of each of so many requests for the foreign id and for these, in a random order; a list for each."""
        order = ["foreign", *ids] * count
        random.shuffle(order)

        def part(which):
            return [(one, self.once(route, one)) for one in which]

        with concurrent.futures.ThreadPoolExecutor(clients) as pool:
            took = [pair for done in pool.map(part, (order[i::clients] for i in range(clients))) for pair in done]
        return [[seconds for one, seconds in took if one == which] for which in ("foreign", *ids)]

    def test_v8_a_foreign_id_takes_as_long_as_a_missing_one(self):
        for route in ROUTES:
            found = []
            for _ in range(3):  # of one distribution, all of them are that unlike once in a million
                both = self.measure(route, 150, NOTHING)
                found.append(by_chance(difference(*both)))
                self.assertGreaterEqual(min(map(min, both)), 0.005, f"{route}: no refusal shows what it took")
                if found[-1] >= 0.01:
                    break
            self.assertGreaterEqual(found[-1], 0.01, f"{route}: {found}")

    def test_the_measure_notices_a_difference(self):
        near = [random.gauss(5.0, 0.1) for _ in range(500)]
        far = [random.gauss(5.05, 0.1) for _ in range(500)]
        self.assertLess(by_chance(difference(near, far)), 0.01)
        self.assertGreater(difference(far, near), 0)
        self.assertEqual(by_chance(difference([1.0] * 9, [1.0] * 9)), 1.0)


if __name__ == "__main__":
    unittest.main()
