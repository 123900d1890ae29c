"""Client certificates and people behind a proxy (D12): what maps to rights, what is refused, and
which way in decides where a request shows several."""
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import unittest

import certificates
from harness import ApiTest, Reply, binary, wait_until
from jwts import AUDIENCE, ISSUER, Issuer, Key, bearer
from test_tls import Tls

TOKEN = "s3cret-token-of-the-server"
SPIFFE = "spiffe://example.org/perdura/worker"
ORDERS = """    - {san: "%s", namespace: default, scopes: [worker]}
    - {san: "DNS:Boss.example.org", namespace: "*", scopes: [admin]}
    - {san: "spiffe://example.org/carol", scopes: "viewer tasks:enqueue", user: carol}
""" % SPIFFE


class Configured(ApiTest):
    """A server with a configuration of its own, which a test may replace."""
    access = ""

    def setUp(self):
        self.place = tempfile.mkdtemp(prefix="perdura-ways-")
        self.addCleanup(shutil.rmtree, self.place, ignore_errors=True)
        self.config = os.path.join(self.place, "perdura.yaml")
        self.write(self.access)
        self.arguments = (*self.arguments, "--config", self.config)
        super().setUp()

    def write(self, access):
        pathlib.Path(self.config).write_text(access)

    def reload(self, access, event="config.reloaded"):
        self.write(access)
        count = self.server.log().count(event)
        self.server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: self.server.log().count(event) > count, what=event)


class CertificateTest(Tls, Configured):
    access = "access:\n  certificates:\n" + ORDERS

    def setUp(self):
        self.clients = None
        super().setUp()

    @property
    def more_arguments(self):
        self.clients = self.clients or certificates.Authority(self.secrets, "clients")
        return ("--tls-client-ca", self.clients.pem)

    def who(self, sans, status=200, headers=None, path="/v1/whoami", **dates):
        self.count = getattr(self, "count", 0) + 1
        return self.who_with(self.clients.sign(f"c{self.count}", sans, **dates), status, headers,
                             path)

    def who_with(self, files, status=200, headers=None, path="/v1/whoami"):
        context = certificates.client_context(self.authority.pem, files)
        connection = http.client.HTTPSConnection(*self.server.address, timeout=60, context=context)
        self.addCleanup(connection.close)
        connection.request("GET", path, headers=headers or {})
        answer = connection.getresponse()
        body = answer.read()
        self.assertEqual(answer.status, status, body)
        return json.loads(body) if body else None


class Certificates(CertificateTest):
    def test_a_name_of_the_certificate_gives_the_rights_of_its_entry(self):
        shown = self.who("URI:" + SPIFFE)
        self.assertEqual((shown["principal"], shown["kind"], shown["name"], shown["scopes"]),
                         ("certificate:" + SPIFFE, "certificate", SPIFFE, ["work"]))
        shown = self.who("DNS:other.example.org,DNS:boss.example.ORG")
        self.assertEqual((shown["namespace"], shown["scopes"]), ("*", ["admin"]))
        shown = self.who("URI:spiffe://example.org/carol")
        self.assertEqual((shown["namespace"], shown["user_id"]), ("default", "carol"))
        self.assertIn("tasks:enqueue", shown["scopes"])

    def test_of_several_names_the_first_entry_counts_and_rights_are_not_added_up(self):
        shown = self.who("DNS:boss.example.org,URI:" + SPIFFE)
        self.assertEqual(shown["scopes"], ["work"])

    def test_without_an_entry_it_is_403(self):
        for sans in ("URI:" + SPIFFE + "/x", "URI:" + SPIFFE.upper(), "DNS:*.example.org",
                     "DNS:boss.example.org.evil.example", "URI:https://boss.example.org",
                     "IP:127.0.0.1", "email:boss@example.org", None,
                     "DNS:" + SPIFFE.replace("/", "-")):
            said = self.who(sans, 403)["error"]["message"]
            self.assertIn("access.certificates", said)
        self.who("DNS:*.example.org", path="/healthz")  # valid, and nothing more is asked for

    def test_a_name_with_a_NUL_is_no_name(self):
        name = b"boss.example.org\0.evil.example"
        entry = bytes([0x82, len(name)]) + name
        der = bytes([0x30, len(entry)]) + entry
        self.who("DER:" + ":".join(f"{byte:02x}" for byte in der), 403)

    def test_other_CAs_and_other_times_do_not_get_through_the_handshake(self):
        other = certificates.Authority(self.secrets, "other")
        for files in (other.sign("o", "DNS:boss.example.org"),
                      self.clients.sign("old", "DNS:boss.example.org", since=-9, until=-2),
                      self.clients.sign("young", "DNS:boss.example.org", since=2, until=9)):
            with self.assertRaises((ssl.SSLError, OSError)):
                self.who_with(files)

    def test_a_reload_changes_rights_on_kept_connections_too(self):
        files = self.clients.sign("kept", "URI:" + SPIFFE)
        context = certificates.client_context(self.authority.pem, files)
        connection = http.client.HTTPSConnection(*self.server.address, timeout=60, context=context)
        self.addCleanup(connection.close)
        statuses = []
        for access in (None, self.access.replace(SPIFFE, SPIFFE + "/2")):
            if access:
                self.reload(access)
            connection.request("GET", "/v1/whoami")
            answer = connection.getresponse()
            answer.read()
            statuses.append(answer.status)
        self.assertEqual(statuses, [200, 403])


class Bearers(CertificateTest):
    environment = {"PERDURA_TOKEN": TOKEN}

    def test_a_bearer_names_the_principal_and_the_certificate_adds_nothing(self):
        made = self.who("DNS:boss.example.org", headers=None)
        self.assertEqual(made["kind"], "certificate")
        self.assertEqual(self.who("URI:" + SPIFFE, headers=bearer(TOKEN))["kind"], "root")
        self.assertEqual(self.who("DNS:unknown.example.org", headers=bearer(TOKEN))["kind"], "root")

    def test_a_wrong_bearer_is_not_made_up_for_by_a_certificate(self):
        self.who("DNS:boss.example.org", 401, bearer("wrong"))
        self.who("DNS:boss.example.org", 401, {"Authorization": "Basic YTpi"})

    def test_a_weaker_token_beside_a_strong_certificate_stays_weak(self):
        context = certificates.client_context(self.authority.pem,
                                              self.clients.sign("any", "DNS:any.example.org"))
        connection = http.client.HTTPSConnection(*self.server.address, timeout=60, context=context)
        self.addCleanup(connection.close)
        connection.request("POST", "/v1/tokens", json.dumps(
            {"name": "weak", "namespace": "default", "scopes": ["metrics:read"]}), bearer(TOKEN))
        made = json.loads(connection.getresponse().read())
        shown = self.who("DNS:boss.example.org", headers=bearer(made["token"]))
        self.assertEqual((shown["kind"], shown["scopes"]), ("token", ["metrics:read"]))


class Required(CertificateTest):
    access = "access: {required: true}\n"

    def test_a_certificate_without_an_entry_is_403(self):
        self.who("URI:" + SPIFFE, 403)


class Plain(CertificateTest):
    access = ""

    def test_without_an_access_section_mutual_TLS_is_as_it_was(self):
        self.assertEqual(self.who("URI:" + SPIFFE)["kind"], "local")


# ---- people behind a proxy ----

PROXY = """
allowed_hosts: [tasks.example.org]
access:
  proxy:
    from: [%s]
    user_header: X-Forwarded-User
    groups_header: X-Forwarded-Groups
    namespace: "*"
    groups:
      admins: [admin]
      ops team: [operator, "tasks:enqueue"]
      watchers: viewer
"""


def person(name, *groups):
    return {"X-Forwarded-User": name, "X-Forwarded-Groups": ",".join(groups)}


class ProxyTest(Configured):
    access = PROXY % '127.0.0.0/8, "2001:db8::/32"'

    def who(self, headers, status=200):
        return self.expect(status, "GET", "/v1/whoami", headers=headers)


class Proxy(ProxyTest):
    environment = {"PERDURA_TOKEN": TOKEN}

    def test_groups_give_rights(self):
        shown = self.who(person("Alice Müller".encode().decode("latin-1"), "staff", "watchers"))
        self.assertEqual((shown["principal"], shown["kind"], shown["name"]),
                         ("proxy:Alice Müller", "proxy", "Alice Müller"))
        self.assertEqual(shown["scopes"], ["tasks:read", "plans:read", "metrics:read"])
        shown = self.who(person("bob", " ops team ", "watchers"))
        self.assertIn("tasks:control", shown["scopes"])
        self.assertIn("tasks:enqueue", shown["scopes"])
        self.assertEqual(shown["expires_at"], None)
        self.expect_error(403, "forbidden", "POST", "/v1/tasks", {"type": "t"},
                          headers=person("eve", "watchers"))

    def test_a_person_without_a_group_that_counts_is_403(self):
        for groups in ((), ("staff",), ("Admins",), ("admins2",), ("admin",), ("ops", "team"),
                       ("*",)):
            self.assertIn("group", self.who(person("eve", *groups), 403)["error"]["message"])
        self.who({"X-Forwarded-User": "eve"}, 403)

    def test_names_that_two_programs_may_read_differently_are_refused(self):
        for name in ("", "   ", "admin, eve", "\tx\ty", "x" * 201, "\xff\xfe"):
            self.who(person(name, "admins"), 403)
        self.assertEqual(self.who(person("  padded  ", "admins"))["name"], "padded")

    def send(self, *lines):
        return self.raw(("GET /v1/whoami HTTP/1.1\r\nHost: localhost\r\n" +
                         "".join(line + "\r\n" for line in lines) + "\r\n").encode("latin-1"))

    def test_headers_that_are_given_twice_or_malformed_are_refused(self):
        user, groups = "X-Forwarded-User: alice", "X-Forwarded-Groups: admins"
        self.assertEqual(self.send(user, groups).status, 200)
        for lines in ((user, user, groups), (user, "x-forwarded-USER: eve", groups),
                      (user, groups, groups), (user, groups, "X-FORWARDED-GROUPS:"),
                      ("X-Forwarded-User : alice", groups), (" X-Forwarded-User: alice", groups),
                      ("X-Forwarded-User: ali\x01ce", groups), (user, "X-Forwarded-Groups: a\x7f"),
                      ("X-Forwarded-User: ali\x00ce", groups), ("X-Forwarded-User: a\rb", groups)):
            self.assertEqual(self.send(*lines).status, 400, lines)

    def test_without_the_header_a_credential_is_needed(self):
        self.who({}, 401)
        self.who({"X-Forwarded-Groups": "admins"}, 401)
        self.assertEqual(self.who(bearer(TOKEN))["kind"], "root")
        self.expect(200, "GET", "/healthz")

    def test_a_bearer_names_the_principal_and_groups_add_nothing(self):
        self.assertEqual(self.who({**bearer(TOKEN), **person("eve", "staff")})["kind"], "root")
        self.who({**bearer("wrong"), **person("alice", "admins")}, 401)

    def test_pages_of_other_sites_cannot_use_such_a_person(self):
        alice = person("alice", "admins")
        body, host = {"type": "t"}, {"Host": "tasks.example.org"}
        for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"},
                        {"Origin": "https://tasks.example.org.evil.example"},
                        {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"},
                        {"Host": "evil.example"}):
            self.expect_error(403, "forbidden", "POST", "/v1/tasks", body,
                              headers={**alice, **host, **headers})
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
            self.expect(415, "POST", "/v1/tasks", b'{"type":"t"}',
                        headers={**alice, **host, "Origin": "https://tasks.example.org",
                                 "Sec-Fetch-Site": "same-origin", "Content-Type": kind})
        self.expect(201, "POST", "/v1/tasks", body, headers={
            **alice, **host, "Origin": "https://tasks.example.org",
            "Sec-Fetch-Site": "same-origin", "Content-Type": "application/json"})

    def test_a_wrong_section_is_refused_as_a_whole_on_reload(self):
        for wrong, word in ((self.access.replace("viewer", "[viewr]"), "viewr"),
                            (self.access.replace("127.0.0.0/8", "127.0.0.1/8"), "127.0.0.1/8"),
                            (self.access.replace("X-Forwarded-User", "Host"), "user_header"),
                            (self.access.replace("user_header: X-Forwarded-User", ""), "needs "
                                                                                       "user_header"),
                            (self.access.replace('namespace: "*"', "namespace: -a-"), "namespace")):
            self.reload(wrong, "config.refused")
            self.assertIn(word, self.server.log())
            self.assertEqual(self.who(person("alice", "admins"))["scopes"], ["admin"])
        self.reload(self.access.replace("admins: [admin]", "admins: [viewer]"))
        self.assertNotIn("admin", self.who(person("alice", "admins"))["scopes"])


class Stranger(ProxyTest):
    """The same headers from an address that is no proxy's."""
    access = PROXY % '10.0.0.0/8, "::1"'
    environment = {"PERDURA_TOKEN": TOKEN}

    def test_the_header_is_never_ignored(self):
        for headers in (person("alice", "admins"), {"X-Forwarded-User": "alice"},
                        {"x-forwarded-groups": "admins"}, {"X-Forwarded-User": ""},
                        {**person("alice", "admins"), "X-Forwarded-For": "10.0.0.1"},
                        {**person("alice", "admins"), "Forwarded": "for=10.0.0.1"},
                        {**person("alice", "admins"), **bearer(TOKEN)}):
            error = self.who(headers, 403)["error"]
            self.assertIn("access.proxy.from", error["message"])
        self.assertEqual(self.who(bearer(TOKEN))["kind"], "root")


class Later(Configured):
    """A server that began without any of it."""

    def test_a_reload_opens_and_closes_a_way_in(self):
        self.assertEqual(self.expect(200, "GET", "/v1/whoami")["kind"], "local")
        self.reload(PROXY % "127.0.0.1")
        self.expect(401, "GET", "/v1/whoami")
        alice = person("alice", "watchers")
        self.assertEqual(self.expect(200, "GET", "/v1/whoami", headers=alice)["kind"], "proxy")
        self.reload("access: {required: true}\n")
        self.expect(401, "GET", "/v1/whoami", headers=alice)
        self.reload("")
        self.assertEqual(self.expect(200, "GET", "/v1/whoami")["kind"], "local")


class BeyondLoopback(Configured):
    """No token is set: what the section asks for is enough to listen."""
    arguments = ("--listen", "0.0.0.0:0", "--allow-clear-text")
    access = PROXY % "127.0.0.0/8"

    def test_it_listens_and_asks(self):
        self.expect(401, "GET", "/v1/whoami")
        self.expect(200, "GET", "/v1/whoami", headers=person("alice", "watchers"))


class OverIpv6(ProxyTest):
    access = PROXY % '"::1"'

    def setUp(self):
        if not socket.has_ipv6:
            self.skipTest("no IPv6 here")
        try:
            with socket.create_server(("::1", 0), family=socket.AF_INET6):
                pass
        except OSError:
            self.skipTest("no IPv6 here")
        self.arguments = ("--listen", "[::1]:0")
        super().setUp()
        self.server.address = (self.server.address[0].strip("[]"), self.server.address[1])

    def test_a_proxy_on_IPv6_is_trusted(self):
        self.assertEqual(self.who(person("alice", "admins"))["name"], "alice")


class All(Tls, Configured):
    """Every way in at once: one decides."""

    def setUp(self):
        self.keys = tempfile.mkdtemp(prefix="perdura-keys-")
        self.addCleanup(shutil.rmtree, self.keys, ignore_errors=True)
        self.key = Key(self.keys, "ES256", "k")
        self.issuer = Issuer(self.key)
        self.addCleanup(self.issuer.close)
        self.access = PROXY % "127.0.0.1" + "  certificates:\n" + ORDERS + (
            f"  jwt: {{issuer: {ISSUER}, audience: {AUDIENCE}, jwks_url: '{self.issuer.url}'}}\n")
        self.clients = None
        super().setUp()
        self.context.load_cert_chain(*self.clients.sign("own", "URI:" + SPIFFE))

    @property
    def more_arguments(self):
        self.clients = self.clients or certificates.Authority(self.secrets, "clients")
        return ("--tls-client-ca", self.clients.pem)

    def test_the_bearer_then_the_header_then_the_certificate(self):
        jwt = bearer(self.key.token(scope="metrics:read"))
        alice = person("alice", "watchers")
        for headers, kind, scopes in ((jwt | alice, "jwt", ["metrics:read"]),
                                      (alice, "proxy", ["tasks:read", "plans:read",
                                                        "metrics:read"]),
                                      ({}, "certificate", ["work"])):
            shown = self.expect(200, "GET", "/v1/whoami", headers=headers)
            self.assertEqual((shown["kind"], shown["scopes"]), (kind, scopes))
        self.expect(403, "GET", "/v1/whoami", headers=person("eve", "staff"))
        self.expect(401, "GET", "/v1/whoami", headers=bearer(self.key.token(aud="x")) | alice)


class Doctor(unittest.TestCase):
    """What is wrong with the section, before a server runs."""

    def doctor(self, access):
        folder = tempfile.mkdtemp(prefix="perdura-doctor-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        pathlib.Path(folder, "perdura.yaml").write_text(access)
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PERDURA_T")}
        done = subprocess.run([binary(), "doctor"], cwd=folder, capture_output=True, text=True,
                              env=environment, timeout=120, check=False)
        return done.returncode, done.stdout + done.stderr

    def check(self, access, *words, code=1):
        got, said = self.doctor(access)
        self.assertEqual(got, code, said)
        for word in words:
            self.assertIn(word, said)

    def test_it_names_what_is_wrong(self):
        self.check(PROXY % "0.0.0.0/0", "failure  proxy", "every address")
        self.check(PROXY % '"::/0"', "failure  proxy", "every address")
        self.check("access:\n  certificates:\n" + ORDERS, "failure  certificates", "tls.client_ca")
        jwt = "access:\n  jwt: {issuer: i, audience: a, %s}\n"
        self.check(jwt % "jwks_url: 'http://127.0.0.1:1/'", "warning  jwt", "clear text", code=0)
        self.check(jwt % "jwks_url: 'http://id.example/'", "https://")
        self.check(jwt % "jwks_file: /nowhere", "failure  jwt", "/nowhere")
        self.check((PROXY % "127.0.0.1").replace("viewer", "viewr"), "'viewr'")
        self.check("access:\n  certificates:\n" + ORDERS.replace("worker]", "wrk]"), "'wrk'")
        self.check("access:\n  certificates:\n    - {san: '*.example.org', scopes: [admin]}\n",
                   "patterns")
        self.check(PROXY % "10.0.0.7", "ok       proxy", code=0)
        self.check("access: {open_metrics: true}\n", "ok       metrics", "every client", code=0)


if __name__ == "__main__":
    unittest.main()
