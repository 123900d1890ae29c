"""Tasks whose handler is a gRPC service, made with the usual library of another language (D10, D13):
what is sent, what answers mean, what waits, over clear text and TLS (F-G7, F-G8, F-G9)."""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from certificates import Authority
from grpc_peer import Peer, descriptor
from harness import binary, wait_until
from test_services import ServiceTest

ID = "spiffe://cluster.local/ns/whispr/sa/messaging"
DO = "/perdura.test.Peer/Do"


class GrpcTest(ServiceTest):
    """A server whose configuration has the service `s`, the peer."""
    options = {"reflection": "v1"}
    service = "    timeout: 20s\n    package: perdura.test.Peer\n    breaker: {failures: 0}\n"

    def new_target(self):
        return Peer(**self.options)


class CallTest(GrpcTest):
    service = ("    timeout: 20s\n    package: perdura.test.Peer\n"
               "    headers: {X-Team: billing, X-Key-bin: 'a?>b'}\n")

    def test_a_call_carries_the_payload_and_who_asks(self):
        payload = {"id": "grüß", "n": 7, "part": {"name": "p", "sizes": [1.5, 2]},
                   "at": "2026-01-02T03:04:05Z"}
        task = self.enqueue("call:x", payload=payload)
        ended = self.ended(task["id"])
        self.assertEqual(ended["status"], "completed", ended["error"])
        self.assertEqual(ended["result"], {
            "did": "grüß", "n": "7", "at": "2026-01-02T03:04:05Z",
            "part": {"name": "p", "sizes": [1.5, 2]}})
        call = self.target.seen()[0]
        metadata = call["metadata"]
        self.assertEqual(metadata["idempotency-key"], task["id"])
        self.assertEqual(metadata["perdura-task-id"], task["id"])
        self.assertEqual(metadata["perdura-attempt"], "1")
        self.assertEqual(len(metadata["perdura-identity"].split(".")), 3)
        self.assertNotIn("perdura-complete-url", metadata, "the answer ends a gRPC call")
        self.assertEqual(metadata["x-team"], "billing")
        self.assertEqual(metadata["x-key-bin"], "bytes:a?>b")
        self.assertTrue(metadata["user-agent"].startswith("perdura/"))
        self.assertTrue(0 < int(metadata["perdura-deadline-ms"]) <= 20000)
        self.assertTrue(0 < call["deadline_ms"] <= 20000, call["deadline_ms"])

    def test_maps_whose_entries_reflection_names_differently(self):
        ended = self.ended(self.enqueue("call:x", payload={"sizes_by_name": {"a": 1, "b": 2}})["id"])
        self.assertEqual(ended["status"], "completed", ended["error"])
        self.assertEqual(ended["result"]["sizesByName"], {"a": 1, "b": 2})

    def test_the_trace_of_the_task_goes_on(self):
        trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        task = self.expect(201, "POST", "/v1/tasks", {"type": "call:x"}, {"traceparent": trace})
        self.ended(task["id"])
        self.assertEqual(self.target.seen()[0]["metadata"]["traceparent"].split("-")[1],
                         trace.split("-")[1])

    def test_methods_are_names_or_paths(self):
        for method in ("Do", "perdura.test.Peer/Do", DO):
            task = self.outcome(method, payload={"id": method})
            self.assertEqual((task["status"], task["result"]["did"]), ("completed", method))

    def test_what_does_not_fit_fails_before_any_call(self):
        wanted = {"n": {"n": "secret"}, "part.sizes": {"part": {"sizes": ["secret"]}},
                  "colour": {"colour": "secret"}, "at": {"at": "secret"}, "part": {"part": 5}}
        for field, payload in wanted.items():
            task = self.outcome("Do", payload=payload, max_retries=3)
            self.assertEqual(task["status"], "failed", field)
            self.assertEqual(task["error_details"]["code"], "invalid_request")
            self.assertIn(field, task["error"])
            self.assertNotIn("secret", task["error"])
        for method in ("Nothing", "/other.Service/Do", "Flow", "PUT /x", "a b"):
            job = {"name": f"job {method}", "target_service": "s", "target_method": method}
            reply = self.request("POST", "/v1/jobs", job)
            if reply.status == 422:
                continue
            task = self.outcome(method, max_retries=3)
            self.assertEqual((task["status"], task["error_details"]["code"]),
                             ("failed", "invalid_request"), task["error"])
        self.assertEqual(self.target.seen(), [])

    def test_no_payload_is_an_empty_message(self):
        self.assertEqual(self.outcome("Do")["result"], {"did": "", "n": "0"})

    def test_an_answer_too_large_for_a_result_fails_clearly(self):
        task = self.outcome("Do", payload={"fill_bytes": 300000}, max_retries=3)
        self.assertEqual((task["status"], task["error_details"]["code"]), ("failed", "too_large"))
        task = self.outcome("Do", payload={"fill_bytes": 250000}, max_retries=3)  # more as base64
        self.assertEqual((task["status"], task["error_details"]["code"]), ("failed", "too_large"))
        self.assertEqual(self.outcome("Do", payload={"fill_bytes": 150000})["status"], "completed")


class StatusTest(GrpcTest):
    def test_statuses_end_or_repeat_a_task(self):
        final = {3, 5, 6, 7, 9, 11, 12, 15, 16}
        tasks = {status: self.enqueue("service:s/Do", max_retries=1, retry_delay_ms=10, payload={
            "status": status, "message": f"no, 100 % grün: {status}"}) for status in range(1, 17)}
        for status, task in tasks.items():
            ended = self.ended(task["id"])
            calls = [c for c in self.target.seen() if c["request"]["status"] == status]
            self.assertEqual((ended["status"], len(calls)),
                             ("failed", 1) if status in final else ("dead_letter", 2), status)
            details = ended["error_details"]
            self.assertEqual((details["service"], details["method"], details["status"]),
                             ("s", "Do", status))
            self.assertIn(f"no, 100 % grün: {status}", details["message"])


class RetryInfoTest(GrpcTest):
    def test_retry_info_is_waited_for_by_all_tasks_and_uses_up_no_retry(self):
        begun = time.monotonic()
        first = self.enqueue("call:x", max_retries=0, payload={
            "id": "first", "status": 8, "retry_ms": 1500, "fail_times": 1})
        wait_until(self.target.seen, what="the first call")
        wait_until(lambda: self.expect(200, "GET", "/v1/services/s")["wait_until"],
                   what="the wait of the service")
        second = self.enqueue("call:x", payload={"id": "second"})
        for task in (first, second):
            self.assertEqual(self.ended(task["id"])["status"], "completed")
        self.assertGreaterEqual(time.monotonic() - begun, 1.4)
        self.assertEqual(self.target.seen()[0]["request"]["id"], "first")
        self.assertEqual(len(self.target.seen()), 3)


class DeadlineTest(GrpcTest):
    service = "    timeout: 1s\n    package: perdura.test.Peer\n    breaker: {failures: 0}\n"

    def test_no_answer_in_time_is_a_timeout_and_the_connection_lives_on(self):
        self.assertEqual(self.outcome("Do")["status"], "completed")
        task = self.outcome("Do", payload={"wait_ms": 60000})
        self.assertEqual((task["status"], task["error_details"]["code"]),
                         ("dead_letter", "timeout"))
        self.assertTrue(0 < self.target.seen()[1]["deadline_ms"] <= 1000)
        self.assertEqual(self.outcome("Do")["status"], "completed")
        self.assertEqual(self.target.seen()[-1]["connections"], 1)

    def test_a_cancel_ends_the_call(self):
        task = self.enqueue("call:x", payload={"wait_ms": 60000})
        wait_until(self.target.seen, what="the call")
        self.expect(200, "POST", f"/v1/tasks/{task['id']}:cancel", {})
        self.assertEqual(self.ended(task["id"])["status"], "cancelled")


class ManyTest(GrpcTest):
    options = {"reflection": "v1", "streams": 10}
    service = "    timeout: 60s\n    package: perdura.test.Peer\n    concurrency: 40\n"

    def test_many_calls_share_connections_as_far_as_the_service_allows(self):
        tasks = [self.enqueue("call:x", payload={"id": str(i), "wait_ms": 20}) for i in range(200)]
        for task in tasks:
            self.assertEqual(self.ended(task["id"])["status"], "completed")
        self.assertEqual(len(self.target.seen()), 200)
        self.assertLessEqual(self.target.seen()[-1]["connections"], 5)
        self.assertLessEqual(self.target.seen()[-1]["most"], 40)
        self.assertGreater(self.target.seen()[-1]["most"], 1)


class OlderReflectionTest(GrpcTest):
    options = {"reflection": "v1alpha"}

    def test_the_older_reflection_is_asked_too(self):
        self.assertEqual(self.outcome("Do", payload={"id": "x"})["result"]["did"], "x")


class NoReflectionTest(GrpcTest):
    options = {}

    def test_a_service_without_reflection_needs_a_descriptor(self):
        task = self.outcome("Do")
        self.assertEqual((task["status"], task["error_details"]["code"]),
                         ("dead_letter", "not_called"))
        self.assertIn("descriptor", task["error"])


class DescriptorTest(GrpcTest):
    options = {}

    def configuration(self):
        self.service = (f"    package: perdura.test.Peer\n    timeout: 20s\n"
                        f"    descriptor: {descriptor(self.folder)}\n    breaker: {{failures: 0}}\n")
        return super().configuration()

    def test_a_descriptor_file_is_enough(self):
        task = self.outcome("Do", payload={"id": "x", "part": {"name": "y"}})
        self.assertEqual(task["result"], {"did": "x", "n": "0", "part": {"name": "y"}})

    def test_the_file_is_read_again_when_it_changes_and_a_wrong_one_changes_nothing(self):
        path = pathlib.Path(descriptor(self.folder, "parts.proto"))
        wait_until(lambda: self.outcome("Do")["status"] == "failed", what="another file")
        path.write_bytes(b"nothing")
        wait_until(lambda: self.outcome("Do") and "no FileDescriptorSet" in self.server.log(), what="the refusal")
        self.assertEqual(self.outcome("Do")["status"], "failed")
        descriptor(self.folder)
        wait_until(lambda: self.outcome("Do")["status"] == "completed", what="the right file")


class LookupTest(GrpcTest):
    service = GrpcTest.service + "    methods: {Do: {lookup: Find}}\n"
    arguments = ("--config", "p.yaml", "--lease", "1s")

    def test_what_was_done_is_found_before_a_repeat(self):
        task = self.enqueue("service:s/Do", payload={"id": "once", "wait_ms": 60000})
        wait_until(self.target.seen, what="the call")
        self.server.process.kill()
        self.server.process.wait()
        self.server.process.stdout.close()
        self.server.start()
        ended = self.ended(task["id"])
        self.assertEqual((ended["status"], ended["result"]["did"]), ("completed", "once"))
        self.assertEqual(len(self.target.seen()), 1)
        self.assertEqual(self.target.seen("Find")[0]["request"]["idempotency_key"], task["id"])

    def test_what_was_not_done_is_called_again(self):
        task = self.enqueue("service:s/Do", retry_delay_ms=10, payload={
            "id": "again", "status": 14, "fail_times": 1})
        self.assertEqual(self.ended(task["id"])["status"], "completed")
        self.assertEqual((len(self.target.seen()), len(self.target.seen("Find"))), (2, 1))


class BreakerTest(GrpcTest):
    service = "    package: perdura.test.Peer\n    breaker: {failures: 2, open: 2s}\n"

    def test_a_service_that_is_down_makes_tasks_wait_without_using_up_attempts(self):
        bad = self.enqueue("call:x", max_retries=5, retry_delay_ms=10, payload={
            "id": "bad", "status": 14, "fail_times": 2})
        wait_until(lambda: self.expect(200, "GET", "/v1/services/s")["status"] == "down",
                   what="the open breaker")
        good = self.enqueue("call:x", max_retries=0)
        self.assertIn("is down since", self.expect(
            200, "GET", f"/v1/tasks/{good['id']}/why")["text"])
        for task, attempts in ((bad, 3), (good, 1)):
            ended = self.ended(task["id"])
            self.assertEqual((ended["status"], ended["attempts"]), ("completed", attempts))


class HealthTest(GrpcTest):
    service = ("    package: perdura.test.Peer\n    breaker: {failures: 2, open: 1s}\n"
               "    health: {method: grpc.health.v1, every: 100ms}\n")

    def status(self, wanted):
        wait_until(lambda: self.expect(200, "GET", "/v1/services/s")["status"] == wanted,
                   what=f"status {wanted}")

    def test_the_health_check_opens_and_closes_the_breaker(self):
        self.status("up")
        self.assertEqual(self.expect(200, "GET", "/v1/services/s")["kind"], "grpc")
        self.target.say("not_serving")
        self.status("down")
        self.assertIn("SERVING", self.expect(200, "GET", "/v1/services/s")["last_error"])
        self.target.say("serving")
        self.status("up")
        self.assertEqual(self.outcome("Do")["status"], "completed")
        self.assertIn('perdura_service_calls_total{service="s",method="Do",outcome="done"} 1',
                      self.request("GET", "/metrics").body.decode())


class TlsTest(GrpcTest):
    sans = "DNS:localhost,IP:127.0.0.1"
    since, until = -1, 365
    client = False
    tls = "ca: {ca}"

    def setUp(self):
        self.keys = tempfile.mkdtemp(prefix="perdura-keys-")
        self.addCleanup(shutil.rmtree, self.keys, True)
        self.authority = Authority(self.keys)
        self.other = Authority(self.keys, "other")
        cert, key = self.authority.sign("target", self.sans, self.since, self.until)
        self.options = {"reflection": "v1", "tls": {
            "cert": cert, "key": key, **({"ca": self.authority.pem} if self.client else {})}}
        self.mine = self.authority.sign("perdura", "URI:spiffe://cluster.local/perdura")
        super().setUp()

    @property
    def service(self):
        cert, key = self.mine
        lines = self.tls.format(ca=self.authority.pem, other=self.other.pem, cert=cert, key=key)
        return (f"    tls: {{{lines}}}\n    breaker: {{failures: 0}}\n    timeout: 20s\n"
                "    package: perdura.test.Peer\n")

    def called(self):
        task = self.outcome("Do")
        self.assertEqual(task["status"], "completed", task["error"])

    def refused(self):
        task = self.outcome("Do")
        self.assertEqual(task["status"], "dead_letter")
        self.assertEqual(task["error_details"]["code"], "tls_failed", task["error"])
        self.assertEqual(self.target.seen(), [])


class NameTest(TlsTest):
    def test_f_g7_a_certificate_of_our_ca_is_called_over_one_connection(self):
        for i in range(5):
            self.assertEqual(self.outcome("Do", payload={"id": str(i)})["result"]["did"], str(i))
        self.assertEqual(self.target.seen()[-1]["connections"], 1)


class WrongAuthorityTest(TlsTest):
    tls = "ca: {other}"

    def test_f_g7_another_ca_is_refused_before_anything_is_sent(self):
        self.refused()


class WrongNameTest(TlsTest):
    sans = "DNS:elsewhere.example"

    def test_f_g7_another_name_is_refused(self):
        self.refused()


class ExpiredTest(TlsTest):
    since, until = -10, -1

    def test_f_g7_an_expired_certificate_is_refused(self):
        self.refused()


class ServerNameTest(TlsTest):
    sans = "DNS:peer.internal"
    tls = "ca: {ca}, server_name: peer.internal"

    def test_f_g7_a_name_of_the_configuration_counts_in_place_of_the_host(self):
        self.called()


class SpiffeTest(TlsTest):
    sans = f"URI:{ID}"
    tls = f"ca: {{ca}}, spiffe_id: '{ID}'"

    def test_f_g7_the_right_spiffe_id_is_called(self):
        self.called()


class WrongSpiffeTest(TlsTest):
    sans = f"DNS:localhost,IP:127.0.0.1,URI:{ID}-2"
    tls = f"ca: {{ca}}, spiffe_id: '{ID}'"

    def test_f_g7_another_spiffe_id_is_refused(self):
        self.refused()


class MutualTest(TlsTest):
    client = True
    tls = "ca: {ca}, cert: {cert}, key: {key}"

    def test_f_g7_our_certificate_is_shown_and_read_again_for_new_connections(self):
        self.called()
        for path, name in zip(self.mine, self.authority.sign("renewed", "DNS:renewed")):
            os.replace(name, path)
        port = self.target.port
        self.target.close()
        self.options = {**self.options, "port": port}
        self.target = self.new_target()
        self.addCleanup(self.target.close)
        wait_until(lambda: self.outcome("Do")["status"] == "completed", what="a call again")


class ExpiresTest(TlsTest):
    """The service's certificate ends while calls go over a connection; then all move to another CA."""
    since, until = -1, 20 / 86400
    client = True
    tls = "ca: {ca}, cert: {cert}, key: {key}"

    def again(self):
        self.target.close()
        self.options = {**self.options, "port": self.target.port}
        self.target = self.new_target()
        self.addCleanup(self.target.close)

    def code(self):
        return (self.outcome("Do")["error_details"] or {}).get("code")

    def test_f_g7_a_certificate_that_expires_while_connected_ends_with_the_connection(self):
        end = time.monotonic() + 21
        self.called()
        wait_until(lambda: time.monotonic() > end, what="the end of the certificate")
        self.called()
        self.assertEqual(self.target.seen()[-1]["connections"], 1, "the connection lives")
        self.again()
        wait_until(lambda: self.code() == "tls_failed", what="the refusal")
        self.assertIn("expired", self.outcome("Do")["error"])
        self.assertEqual(self.target.seen(), [])
        for path, name in zip(self.mine, self.other.sign("renewed", "DNS:renewed")):
            os.replace(name, path)
        shutil.copy(self.other.pem, self.authority.pem + ".new")
        os.replace(self.authority.pem + ".new", self.authority.pem)
        cert, key = self.other.sign("target", self.sans)
        self.options["tls"] = {"cert": cert, "key": key, "ca": self.other.pem}
        self.again()
        wait_until(lambda: self.outcome("Do")["status"] == "completed", what="a call with the new certificates")
        self.assertNotIn("config.reloaded", self.server.log())


class NoCertificateTest(MutualTest):
    tls = "ca: {ca}"

    def test_f_g7_our_certificate_is_shown_and_read_again_for_new_connections(self):
        task = self.outcome("Do")
        self.assertEqual(task["status"], "dead_letter")
        self.assertEqual(self.target.seen(), [])


class ConfigurationTest(unittest.TestCase):
    """What cannot be a gRPC service is refused with its reason."""

    def refusal(self, service, method="Do"):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "p.yaml")
            path.write_text(f"services:\n  - {{name: s, {service}}}\n"
                            f"handlers:\n  - {{type: x, service: s, method: '{method}'}}\n")
            path.chmod(0o600)
            done = subprocess.run([binary(), "serve", "--config", path, "--store",
                                   os.path.join(folder, "x.db"), "--listen", "127.0.0.1:0"],
                                  capture_output=True, text=True, timeout=60, check=False)
            self.assertNotEqual(done.returncode, 0, done.stdout)
            return done.stderr

    def test_what_does_not_go_together_is_refused(self):
        for service, sentence in (
                ("url: 'http://127.0.0.1:1', package: a.B", "descriptor, package or health.method"),
                ("url: 'http://127.0.0.1:1', health: {method: grpc.health.v1}", "health.method"),
                ("url: 'grpc://127.0.0.1:1/path', package: a.B", "grpc:// or grpcs:// and a host"),
                ("url: 'grpc://127.0.0.1:1', package: a.B, health: {path: /x}", "in place of health.path"),
                ("url: 'grpc://127.0.0.1:1', package: a.B, headers: {Grpc-Timeout: 1S}", "gRPC itself"),
                ("url: 'grpc://10.0.0.1:1', package: a.B", "clear_text"),
                ("url: 'grpc://127.0.0.1:1', package: a.B, tls: {ca: x}", "nothing would be encrypted"),
                ("url: 'grpc://127.0.0.1:1'", "its service has no package"),
                ("url: 'grpc://127.0.0.1:1', package: a.B, descriptor: /nothing", "cannot read the descriptor")):
            self.assertIn(sentence, self.refusal(service), service)
        self.assertIn("must be Method", self.refusal("url: 'grpc://127.0.0.1:1', package: a.B", "PUT /x"))


class ReloadTest(GrpcTest):
    def test_a_service_may_come_and_go_with_the_configuration(self):
        task = self.enqueue("call:x", payload={"id": "under way", "wait_ms": 1000})
        wait_until(self.target.seen, what="the call")
        other = Peer(reflection="v1")
        self.addCleanup(other.close)
        path = pathlib.Path(self.folder, "p.yaml")
        path.write_text(path.read_text().replace(self.target.url, other.url))
        os.kill(self.server.process.pid, signal.SIGHUP)
        wait_until(lambda: self.outcome("Do") and other.seen(), what="a call of the new one")
        self.assertEqual(self.ended(task["id"])["status"], "completed")


if __name__ == "__main__":
    unittest.main()
