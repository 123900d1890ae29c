"""Who may have what belongs to calls of services: the JWT that proves who calls, the figures, and the secret that both
JWT and completion URL are made with (D12, V8, F-J1, F-J10)."""
import base64
import http.client
import re
import subprocess
import time
import unittest

from harness import wait_until
from service_target import reply
import test_encryption
from test_metrics import parse
from test_services import ServiceTest
from token_harness import ROOT_TOKEN, TokenTest, bearer

SECRET = re.compile(rb"[0-9a-f]{64}")
PRIVATE_KEY = bytes.fromhex("302e020100300506032b657004220420")  # what comes before the 32 bytes of an Ed25519 key


def public_keys(*texts):
    """The public keys of all secrets that a reader of these may try."""
    found = {secret for text in texts for secret in SECRET.findall(text)}
    keys = set()
    for secret in found:
        done = subprocess.run(["openssl", "pkey", "-inform", "DER", "-pubout", "-outform", "DER"], check=True,
                              input=PRIVATE_KEY + bytes.fromhex(secret.decode()), capture_output=True)
        keys.add(base64.urlsafe_b64encode(done.stdout[-32:]).decode().rstrip("="))
    return keys


class Proofs(TokenTest):
    """A proof names the service that it is for: who gets one can call that service as if it were Perdura."""
    arguments = ("--workers", "0")

    def claim_for(self, token, service, kind="order"):
        reply = self.request("POST", f"/v1/workers/{self.worker}:claim", {
            "types": [kind], "services": [service], "max": 1, "wait_ms": 0}, bearer(token))
        return reply.status, reply.json

    def registered(self, token):
        self.worker = self.as_token(token, 201, "POST", "/v1/workers", {
            "hostname": "h", "queues": ["q"], "pool_size": 1, "version": "1"})["id"]

    def test_f_j1_a_worker_gets_no_proof_for_a_service_whose_tasks_it_may_not_take(self):
        narrow = self.token("work", types=["order"])
        self.registered(narrow)
        self.root(201, "POST", "/v1/tasks", {"type": "order", "queue": "q"})
        status, body = self.claim_for(narrow, "payments")
        self.assertEqual((status, body["error"]["code"], body["error"]["field"]), (403, "forbidden", "types"))
        self.assertIn("service:payments/*", body["error"]["message"])
        for types in (["order", "service:orders/*"], ["order", "service:payments/Charge"]):
            other = self.token("work", types=types)
            self.registered(other)
            self.assertEqual(self.claim_for(other, "payments")[0], 403, types)

    def test_f_j1_a_worker_of_the_service_gets_it_for_the_service_alone(self):
        for types in (["order", "service:payments/*"], None):
            token = self.token("work", **({"types": types} if types else {}))
            self.registered(token)
            self.root(201, "POST", "/v1/tasks", {"type": "order", "queue": "q"})
            status, body = self.claim_for(token, "payments")
            self.assertEqual(status, 200, body)
            claims = body["tasks"][0]["identity"].split(".")[1]
            claims = base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4))
            self.assertIn(b'"aud":"payments"', claims)
            self.as_token(token, 204, "DELETE", f"/v1/workers/{self.worker}")


    def test_f_j1_a_worker_does_not_hold_up_services_whose_tasks_it_may_not_take(self):
        told = {"holds": [{"service": "payments", "wait_ms": 3_600_000, "is_down": True}]}
        for types, status in ((["order"], 403), (["order", "service:orders/*"], 403), (["service:payments/*"], 200)):
            token = self.token("work", types=types)
            self.registered(token)
            self.as_token(token, status, "POST", f"/v1/workers/{self.worker}:heartbeat", told)
            heard = self.as_token(token, 200, "POST", f"/v1/workers/{self.worker}:heartbeat", {"holds": []}).get("holds")
            self.assertEqual(bool(heard), status == 200, types)

    def test_f_j1_a_worker_tells_no_figures_of_services_whose_tasks_it_may_not_take(self):
        told = {"services_serial": 1, "services": [{"service": "payments", "methods": [{"method": "Charge", "done": 9}]}]}
        for types, status in ((["order"], 403), (["order", "service:orders/*"], 403), (["service:payments/*"], 200)):
            token = self.token("work", types=types)
            self.registered(token)
            self.as_token(token, status, "POST", f"/v1/workers/{self.worker}:heartbeat", told)
            shown = [item["name"] for item in self.root(200, "GET", "/v1/services")["items"]]
            self.assertEqual(shown, ["payments"] if status == 200 else [], types)

    def test_f_j1_a_worker_reports_no_day_of_agents_whose_tasks_it_may_not_take(self):
        def told(calls):
            return {"process": f"{calls:016x}", "days": [{
                "agent": "writer", "day": int(time.time() // 86400), "calls": calls, "input_tokens": 0, "output_tokens": 0,
                "cost": 0, "time_ms": 0}]}
        for queues, status in ((["q"], 403), (["q", "writer"], 200)):
            token = self.token("work", queues=queues)
            self.registered(token)
            reply = self.as_token(token, status, "POST", f"/v1/workers/{self.worker}:heartbeat", told(1000))
        self.assertEqual(reply["days"][0]["calls"], 0)
        other = self.token("work")
        self.registered(other)
        reply = self.as_token(other, 200, "POST", f"/v1/workers/{self.worker}:heartbeat", told(1))
        self.assertEqual(reply["days"][0]["calls"], 1000)

    def test_f_j10_figures_of_workers_are_shown_in_their_namespace_alone(self):
        self.root(201, "POST", "/v1/namespaces", {"name": "a"})
        for name, done in (("a", 2), ("default", 3)):
            token = self.token("work", namespace=name)
            self.registered(token)
            self.as_token(token, 200, "POST", f"/v1/workers/{self.worker}:heartbeat", {
                "services_serial": 1, "services": [{"service": "s", "methods": [{"method": "Do", "done": done}]}]})
            viewer = self.token("viewer", namespace=name)
            self.assertEqual(self.as_token(viewer, 200, "GET", "/v1/services/s")["calls"]["done"], done)
        text = self.request("GET", "/metrics", None, bearer(ROOT_TOKEN)).body.decode()
        counted = {labels["service"]: value for name, labels, value in parse(text) if name == "perdura_service_calls_total"}
        self.assertEqual(counted, {"a/s": 2, "s": 3})


class Shown(ServiceTest):
    """What is known of services: their addresses, errors and figures are nothing for namespaces they do not serve."""
    environment = {"PERDURA_TOKEN": ROOT_TOKEN, "PERDURA_ACCESS_OPEN_METRICS": "true"}
    served = ""

    def answer(self, call):
        return reply(500, {"message": "no"}) if "fail" in call.path else reply()

    def configuration(self):
        return super().configuration() + (f"worker: {{namespaces: [{self.served}]}}\n" if self.served else "")

    def request(self, method, path, body=None, headers=None):
        return super().request(method, path, body, headers if headers is not None else bearer(ROOT_TOKEN))

    def viewer(self, namespace):
        return bearer(self.expect(201, "POST", "/v1/tokens", {"name": "v", "role": "viewer", "namespace": namespace})
                      ["token"])

    def shown(self, headers):
        return [item["name"] for item in self.expect(200, "GET", "/v1/services", None, headers)["items"]]

    def check(self, inside, outside):
        self.assertEqual(self.shown(inside), ["s"])
        self.expect(200, "GET", "/v1/services/s", None, inside)
        self.assertEqual(self.shown(outside), [])
        missing = self.request("GET", "/v1/services/missing", None, outside)
        hidden = self.request("GET", "/v1/services/s", None, outside)
        self.assertEqual((hidden.status, hidden.body), (404, missing.body))
        self.assertEqual(self.shown(bearer(ROOT_TOKEN)), ["s"])

    def test_d12_services_are_shown_in_the_namespaces_they_are_called_for(self):
        self.expect(201, "POST", "/v1/namespaces", {"name": "a"})
        self.check(self.viewer("default"), self.viewer("a"))


class ShownToOthers(Shown):
    served = "a"

    def test_d12_services_are_shown_in_the_namespaces_they_are_called_for(self):
        self.expect(201, "POST", "/v1/namespaces", {"name": "a"})
        self.check(self.viewer("a"), self.viewer("default"))

    def test_d12_open_metrics_name_no_method_of_a_tasks_type(self):
        self.expect(201, "POST", "/v1/namespaces", {"name": "a"})
        inside = {**bearer(ROOT_TOKEN), "Perdura-Namespace": "a"}
        task = self.expect(201, "POST", "/v1/tasks", {"type": "service:s/GET /of-a-customer"}, inside)
        wait_until(lambda: self.expect(200, "GET", f"/v1/tasks/{task['id']}", None, inside)["status"] == "completed",
                   what="the call")

        def calls(headers):
            connection = http.client.HTTPConnection(*self.server.address, timeout=60)
            connection.request("GET", "/metrics", headers=headers)
            text = connection.getresponse().read().decode()
            connection.close()
            return text, [(labels, value) for name, labels, value in parse(text)
                          if name == "perdura_service_calls_total"]

        text, counted = calls({})
        self.assertFalse("of-a-customer" in text)
        self.assertEqual(counted, [({"service": "s", "outcome": "done"}, 1.0)])
        self.assertTrue("of-a-customer" in calls(bearer(ROOT_TOKEN))[0], "who may see them does")


class Secret(test_encryption.EncryptionTest):
    """Who has the store, a backup or a dump of it, and not its key, cannot pass for Perdura."""

    def jwks(self):
        [key] = self.expect(200, "GET", "/v1/identity/jwks.json")["keys"]
        return key["x"]

    left_behind = test_encryption.Canaries.left_behind

    def stolen(self):
        """What an attacker has: the files of the store and a backup, or a dump."""
        texts = self.left_behind()
        return [text.encode("latin-1", "replace") for name, text in texts.items() if name not in ("log", "metrics")]

    def test_f_j10_the_store_does_not_tell_what_calls_are_proved_with(self):
        self.assertNotIn(self.jwks(), public_keys(*self.stolen()))
        self.assertEqual(self.stored("SELECT name FROM store_info WHERE name = 'call_secret'"), [])

    def test_f_j1_it_stays_when_another_key_takes_over(self):
        shown = self.jwks()
        self.make_key("k2")
        self.configure(["k1", "k2"], "k2")
        self.restart()
        self.assertEqual(self.key("rotate").returncode, 0)
        self.assertEqual(self.key("rotate", "--data").returncode, 0)
        self.configure(["k2"], "k2")
        self.restart()
        self.assertEqual(self.jwks(), shown)

    def test_f_j2_without_the_key_nothing_is_proved_and_with_it_all_is_as_before(self):
        shown = self.jwks()
        self.configure([], None)
        self.restart()
        self.assertEqual(self.expect(200, "GET", "/v1/identity/jwks.json"), {"keys": []})
        self.assertIn("services.no_proofs", self.server.log())
        self.configure(["k1"], "k1")
        self.restart()
        self.assertEqual(self.jwks(), shown)

    def test_keys_of_no_namespace_are_not_destroyed_by_a_request(self):
        self.expect_error(422, "invalid", "POST", "/v1/keys:destroy", {"namespace": "*"})


class OpenSecret(Secret):
    """The same attack where nothing is encrypted: it succeeds, so it is a real one."""

    def configure(self, names, current, more=None):
        super().configure([], None, more)

    def test_f_j10_the_store_does_not_tell_what_calls_are_proved_with(self):
        self.assertIn(self.jwks(), public_keys(*self.stolen()))

    test_f_j1_it_stays_when_another_key_takes_over = None
    test_f_j2_without_the_key_nothing_is_proved_and_with_it_all_is_as_before = None
    test_keys_of_no_namespace_are_not_destroyed_by_a_request = None


if __name__ == "__main__":
    unittest.main()
