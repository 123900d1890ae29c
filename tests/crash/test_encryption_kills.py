"""kill -9 while keys are made, wrapped again and destroyed, and content gets new ones (F-A1, F-J1): what was acknowledged can be
read, each data key is wrapped by the old or the new key, and what is destroyed is destroyed whole."""
import base64
import os
import pathlib
import unittest

from crash_harness import CrashTest, needs_fault_points

USERS = [f"user-{i}" for i in range(12)]


@needs_fault_points
class Kills(CrashTest):
    def setUp(self):
        super().setUp()
        for name in ("k1", "k2"):
            path = pathlib.Path(self.folder, name)
            path.write_bytes(base64.b64encode(os.urandom(32)))
            path.chmod(0o600)

    # The start notes which keys it has: the first request about keys is its own.
    def config(self, *names):
        keys = "".join(f'    - {{id: {n}, file: "{self.folder}/{n}"}}\n' for n in names)
        return (f"workers: 0\nencryption:\n  all: true\n  per_user: true\n  current: {names[-1]}\n"
                f"  keys:\n{keys}")

    def begin(self, *names, fault=None):
        self.server.kill()
        self.start(config=self.config(*names), fault=fault)

    def enqueue_all(self):
        return {user: self.enqueue(payload={"of": user}, user_id=user)["id"] for user in USERS}

    def payloads(self, ids):
        return {user: self.task(task_id)["payload"] for user, task_id in ids.items()}

    def rotate(self):
        left = 1
        while left:
            left = self.expect(200, "POST", "/v1/keys:rotate", {})["left"]

    def test_killed_while_the_secret_of_calls_is_made_the_next_start_makes_it(self):
        for point in ("seal.key:1", "seal.committed:1"):
            with self.subTest(point=point), self.assertRaises(AssertionError):
                self.begin("k1", fault=f"{point}:kill")
        self.begin("k1")
        made = self.expect(200, "GET", "/v1/identity/jwks.json")
        self.assertEqual(len(made["keys"]), 1)
        self.begin("k1")
        self.assertEqual(self.expect(200, "GET", "/v1/identity/jwks.json"), made)

    def test_killed_while_a_key_is_made_nothing_acknowledged_is_unreadable(self):
        self.begin("k1")  # makes the key of the store itself
        for point in ("seal.key:1", "seal.key:3", "before.enqueue:2", "seal.committed:12",
                      "after.enqueue:2"):
            with self.subTest(point=point):
                self.begin("k1", fault=f"{point}:kill")
                acknowledged = {}
                for i in range(40):
                    user = f"{point}-{i % 5}"
                    try:
                        made = self.enqueue(payload=i, user_id=user)
                    except Exception:  # the server is dead
                        break
                    acknowledged[made["id"]] = i
                else:
                    self.fail("the point was not reached")
                self.server.wait()
                self.begin("k1")
                for task_id, payload in acknowledged.items():
                    self.assertEqual(self.task(task_id)["payload"], payload)

    def test_killed_at_every_step_of_a_rotation_it_continues(self):
        self.begin("k1")
        ids = self.enqueue_all()
        whole = self.payloads(ids)
        for point in ("before.keys:2", "keys.rewrapped:1", "keys.rewrapped:7",
                      "after.keys:2"):
            with self.subTest(point=point):
                self.begin("k1", "k2", fault=f"{point}:kill")
                self.broken("POST", "/v1/keys:rotate", {})
                self.begin("k1", "k2")
                self.assertEqual(self.payloads(ids), whole)
                sums = self.expect(200, "GET", "/v1/keys")["data_keys"]
                self.assertEqual(sum(s["count"] for s in sums), len(USERS) + 1, "and that of the store")
        self.rotate()
        self.begin("k2")
        self.assertEqual(self.payloads(ids), whole)

    def rotate_data(self):
        content = {"done": False}
        while not content["done"]:
            since = {"since": content["since"]} if "since" in content else {}
            content = self.expect(200, "POST", "/v1/keys:rotate", {"data": True, **since})["content"]
        return content

    def test_killed_at_every_step_of_new_data_keys_all_can_be_read_and_it_continues(self):
        self.begin("k1")
        ids = self.enqueue_all()
        whole = self.payloads(ids)
        for point in ("before.keys:2", "keys.again:1", "seal.key:2", "keys.again:7", "keys.content:1",
                      "after.keys:2", "before.keys:3", "keys.content:2", "after.keys:3"):
            with self.subTest(point=point):
                self.begin("k1", fault=f"{point}:kill")
                count, killed = 0, False
                while not killed and count < 20:
                    count += 1
                    try:
                        self.expect(200, "POST", "/v1/keys:rotate", {"data": True})
                    except Exception:  # the server is dead
                        killed = True
                self.assertTrue(killed, "the point was not reached")
                self.server.wait()
                self.begin("k1")
                self.assertEqual(self.payloads(ids), whole)
                self.rotate_data()
                self.assertEqual(self.payloads(ids), whole)

    def test_killed_at_every_step_of_a_destruction_it_is_all_or_nothing(self):
        for point, destroyed in (("before.keys:2", False), ("keys.destroyed:1", False),
                                 ("after.keys:2", True)):
            with self.subTest(point=point):
                self.begin("k1")
                ids = {user: self.enqueue(payload=point, user_id=f"{point}-{user}")["id"]
                       for user in ("ada", "bob")}
                self.begin("k1", fault=f"{point}:kill")
                self.broken("POST", "/v1/keys:destroy", {"user_id": f"{point}-ada"})
                self.begin("k1")
                shown = self.payloads(ids)
                self.assertEqual(shown["bob"], point)
                gone = {"encrypted": True, "destroyed": True}
                self.assertIn(shown["ada"], (gone,) if destroyed else (gone, point))
                self.expect(200, "POST", "/v1/keys:destroy", {"user_id": f"{point}-ada"})
                self.assertEqual(self.payloads(ids), {"ada": gone, "bob": point})


if __name__ == "__main__":
    unittest.main()
