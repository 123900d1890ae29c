"""Namespaces (D12) on SQLite: the cases of namespace_cases.py, for one who names a namespace and for tokens that belong
to one; what tokens of one namespace see of the trail, and encryption that a namespace asks for."""
import os
import shutil
import tempfile
import unittest

import test_encryption
from harness import ApiTest, wait_until
from namespace_cases import A, B, NamespaceCases
from token_harness import ROOT_TOKEN, TokenTest, bearer


class Namespaces(NamespaceCases, ApiTest):
    pass


class OfTokens(TokenTest):
    """A request that names a namespace comes with a token of that namespace instead, and all others with root's."""

    def setUp(self):
        super().setUp()
        self.tokens = {}

    def credential(self, headers):
        name = (headers or {}).get("Perdura-Namespace")
        if name not in ("a", "b"):
            return bearer(ROOT_TOKEN) | (headers or {})
        if name not in self.tokens:
            self.tokens[name] = super().request("POST", "/v1/tokens", {
                "name": "all of it", "scopes": ["admin"], "namespace": name}, bearer(ROOT_TOKEN)).json["token"]
        return bearer(self.tokens[name])

    def request(self, method, path, body=None, headers=None):
        return super().request(method, path, body, headers if "Authorization" in (headers or {})
                               else self.credential(headers))


class NamespacesOfTokens(OfTokens, NamespaceCases):
    def purge(self, count):
        super().purge(count)
        self.assertEqual(self.request("GET", "/v1/tasks", None, A).status, 401)
        del self.tokens["a"]  # it went with the namespace


class Rights(OfTokens):
    def test_d12_a_token_of_one_namespace_sees_that_one_and_changes_none(self):
        for name in ("a", "b"):
            self.expect(201, "POST", "/v1/namespaces", {"name": name})
        self.assertEqual([n["name"] for n in self.expect(200, "GET", "/v1/namespaces", None, A)["items"]], ["a"])
        self.expect(200, "GET", "/v1/namespaces/a", None, A)
        self.assertEqual(self.request("GET", "/v1/namespaces/b", None, A).body.replace(b"'b'", b"@"),
                         self.request("GET", "/v1/namespaces/c", None, A).body.replace(b"'c'", b"@"))
        for method, path, body in (("POST", "/v1/namespaces", {"name": "c"}),
                                   ("PATCH", "/v1/namespaces/a", {"description": "mine"}),
                                   ("DELETE", "/v1/namespaces/a", None), ("GET", "/v1/keys", None),
                                   ("POST", "/v1/keys:destroy", {"namespace": "b"}), ("GET", "/v1/backup", None)):
            error = self.expect_error(403, "forbidden", method, path, body, A)
            self.assertIn("in every namespace", error["message"])

    def test_d12_d18_changes_of_a_namespace_are_in_its_trail_and_in_no_others(self):
        self.expect(201, "POST", "/v1/namespaces", {"name": "a"})
        self.expect(201, "POST", "/v1/namespaces", {"name": "b"})
        self.expect(200, "PATCH", "/v1/namespaces/a", {"limits": {"waiting": 5}})
        self.expect(200, "POST", "/v1/queues/q:pause", {}, A)
        self.expect(201, "POST", "/v1/tokens", {"name": "n", "scopes": ["work"], "namespace": "a"})
        self.expect(202, "DELETE", "/v1/namespaces/b?purge=true")
        seen = [(e["action"], e["object_id"]) for e in self.expect(200, "GET", "/v1/audit", None, A)["items"]]
        token = seen[0][1]
        self.assertEqual(seen, [("token.create", token), ("queue.pause", "q"), ("token.create", seen[2][1]),
                                ("namespace.update", "a"), ("namespace.create", "a")])
        everything = self.expect(200, "GET", "/v1/audit?object_kind=namespace")["items"]
        self.assertEqual([(e["action"], e["namespace"]) for e in everything],
                         [("namespace.purge", "b"), ("namespace.update", "a"), ("namespace.create", "b"),
                          ("namespace.create", "a")])
        self.assertEqual(everything[1]["change"], {"before": {"waiting_limit": None}, "after": {"waiting_limit": 5}})
        self.assertEqual([e["principal"] for e in everything], ["root"] * 4)


class Encryption(test_encryption.EncryptionTest):
    def test_f_j10_a_namespace_has_its_tasks_encrypted_and_its_keys_destroyed_alone(self):
        self.expect(201, "POST", "/v1/namespaces", {"name": "a", "encryption": "all"})
        self.expect(201, "POST", "/v1/namespaces", {"name": "b"})
        plain = self.expect(201, "POST", "/v1/tasks", {"type": "t", "payload": "canary-b"}, B)
        own = self.expect(201, "POST", "/v1/tasks", {"type": "t", "payload": "canary-b", "encrypt": True}, B)["id"]
        task = self.expect(201, "POST", "/v1/tasks", {"type": "t", "payload": "canary-a"}, A)
        self.assertEqual((plain["encrypt"], task["encrypt"], task["payload"]), (False, True, "canary-a"))
        self.assertEqual(self.stored("SELECT count(*) FROM task_specs WHERE payload LIKE '%canary-a%'"), ["0"])
        self.assertEqual({key["namespace"] for key in self.expect(200, "GET", "/v1/keys")["data_keys"]},
                         {"*", "a", "b"})
        done = self.key("destroy", "--namespace", "a", "--yes")
        self.assertEqual(done.returncode, 0, done.stderr)
        payload = self.expect(200, "GET", f"/v1/tasks/{task['id']}", None, A)["payload"]
        self.assertEqual(payload, {"encrypted": True, "destroyed": True})
        self.assertEqual(self.expect(200, "GET", f"/v1/tasks/{own}", None, B)["payload"], "canary-b")
        [entry] = self.expect(200, "GET", "/v1/audit?action=key.destroy")["items"]
        self.assertEqual((entry["namespace"], entry["object_id"]), ("a", "a"))
        self.expect(200, "PATCH", "/v1/namespaces/a", {"encryption": None})
        self.assertFalse(self.expect(201, "POST", "/v1/tasks", {"type": "t"}, A)["encrypt"])


class Turns(ApiTest):
    """The pool of the server serves two namespaces, with one slot."""
    waiting = 3000

    def setUp(self):
        configuration = tempfile.mkdtemp(prefix="perdura-turns-")
        self.addCleanup(shutil.rmtree, configuration, True)
        path = os.path.join(configuration, "perdura.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write("workers: 1\nworker: {namespaces: [default, a]}\n"
                       "handlers:\n  - {type: t, command: [sleep, '0.05']}\n")
        self.arguments = ("--config", path)
        super().setUp()

    def test_d12_a_pool_takes_turns_so_that_many_of_one_namespace_do_not_delay_another(self):
        self.expect(201, "POST", "/v1/namespaces", {"name": "a"})
        self.expect(201, "POST", "/v1/tasks", [{"type": "t", "priority": 100}] * self.waiting)
        wait_until(lambda: self.expect(200, "GET", "/v1/tasks?status=completed")["items"], what="the first of many")
        task = self.expect(201, "POST", "/v1/tasks", {"type": "t"}, A)["id"]
        wait_until(lambda: self.expect(200, "GET", f"/v1/tasks/{task}", None, A)["status"] == "completed",
                   what="the one of the other namespace")
        counts = self.expect(200, "GET", "/v1/stats")["counts"]
        self.assertGreater(counts["pending"], self.waiting // 2, "it came when the many had nearly ended")
        [worker] = self.expect(200, "GET", "/v1/workers")["items"]
        self.assertEqual(worker["queues"], ["default"])
        self.assertEqual(self.expect(200, "GET", "/v1/stats", None, A)["workers"], 1)


if __name__ == "__main__":
    unittest.main()
