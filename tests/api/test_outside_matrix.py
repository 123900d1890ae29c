"""The matrix of rights for what others vouch for (D12, V8, F-J1): every route and method, HEAD too, with every wrong
and every right kind of JWT, client certificate and person behind a proxy, over mutual TLS. What each answers comes
from the table of test_token_matrix; the routes come from the server."""
import concurrent.futures
import contextlib
import http.client
import json
import os
import shutil
import tempfile
import time
import unittest

import certificates
from harness import Reply
from jwts import AUDIENCE, ISSUER, Issuer, Key, bearer
from test_tls import Tls
from test_token_matrix import EVERYWHERE, EXPECTED, NAMES, THREADS, allows
from test_ways_in import Configured
from token_harness import ROOT_TOKEN, Addresses

HERE = "127.0.0.1"     # the proxy, which the server trusts
ELSEWHERE = "127.0.0.2"
ACCESS = """
access:
  jwt: {issuer: %s, audience: %s, jwks_url: '%s', claims: {user_id: owner}}
  proxy:
    from: [127.0.0.1]
    user_header: X-Forwarded-User
    groups_header: X-Forwarded-Groups
    groups: {staff: ["tasks:read", "plans:read"]}
  certificates:
    - {san: "spiffe://example.org/worker", scopes: [work]}
    - {san: "spiffe://example.org/foreign", namespace: elsewhere, scopes: ["tasks:read", "plans:read"]}
"""
# What each is refused with everywhere, or the scopes that it has.
WRONG_JWTS = ("alg none", "alg HS256", "kid", "kid left out", "aud", "aud left out", "iss", "exp", "exp left out", "nbf",
              "signature", "cut off")
FORBIDDEN = ("no scope", "no user", "unmapped certificate", "no group", "header from elsewhere",
             "header from elsewhere, with a token")
RIGHTS = {"jwt": ("tasks:read",), "person": ("tasks:read", "plans:read"), "certificate": ("work",),
          "foreign certificate": ("tasks:read", "plans:read")}
CREDENTIALS = (*WRONG_JWTS, *FORBIDDEN, *RIGHTS)


def refusal(needs, credential):
    """401, 403, or None: the request is looked at."""
    if needs == "none":
        return None
    if credential in WRONG_JWTS:
        return 401
    if credential in FORBIDDEN:
        return 403
    if needs == "any":
        return None
    scopes = RIGHTS[credential]
    if needs == "own":
        needs = "tasks:read"
    return None if not needs.endswith(EVERYWHERE) and any(allows(s, needs) for s in scopes) else 403


class OutsideMatrix(Tls, Configured):
    environment = {"PERDURA_TOKEN": ROOT_TOKEN}

    def setUp(self):
        self.keys = tempfile.mkdtemp(prefix="perdura-keys-")
        self.addCleanup(shutil.rmtree, self.keys, ignore_errors=True)
        self.key = Key(self.keys, "ES256", "k")
        self.issuer = Issuer(self.key)
        self.addCleanup(self.issuer.close)
        self.access = ACCESS % (ISSUER, AUDIENCE, self.issuer.url)
        self.clients = None
        super().setUp()
        self.addresses = Addresses()
        self.contexts = {name: certificates.client_context(self.authority.pem, self.clients.sign(name, sans))
                         for name, sans in (("unmapped", "URI:spiffe://example.org/other"),
                                            ("worker", "URI:spiffe://example.org/worker"),
                                            ("foreign", "URI:spiffe://example.org/foreign"))}

    @property
    def more_arguments(self):
        self.clients = self.clients or certificates.Authority(self.secrets, "clients")
        return ("--tls-client-ca", self.clients.pem)

    def credentials(self):
        """{name: (headers, context, address of the client; None = one that has not guessed yet)}"""
        soon = int(time.time()) + 3600
        other = Key(self.keys, "ES256", "other")
        other.kid = "k"  # signs with a key of its own, under the name of the right one
        good = {"scope": "admin", "owner": "ada"}
        jwt = lambda header=None, drop=(), key=self.key, **claims: key.token(header, drop=drop, **{**good, **claims})
        texts = {"alg none": jwt({"alg": "none"}), "alg HS256": jwt({"alg": "HS256"}), "kid": jwt({"kid": "other"}),
                 "kid left out": jwt(key=other, drop=("kid",)), "aud": jwt(aud="another"), "aud left out": jwt(drop=("aud",)),
                 "iss": jwt(iss="https://evil.example"), "exp": jwt(exp=soon - 7200), "exp left out": jwt(drop=("exp",)),
                 "nbf": jwt(nbf=soon), "signature": jwt(key=other), "cut off": jwt()[:-10],
                 "no scope": jwt(scope="reading"), "no user": jwt(drop=("owner",)), "jwt": jwt(scope="tasks:read")}
        unmapped = self.contexts["unmapped"]
        made = {name: (bearer(text), unmapped, None) for name, text in texts.items()}
        user = {"X-Forwarded-User": "eve", "X-Forwarded-Groups": "guests"}
        made["no group"] = (user, unmapped, HERE)
        user = {**user, "X-Forwarded-Groups": "staff"}
        made["person"] = (user, unmapped, HERE)
        made["header from elsewhere"] = (user, unmapped, ELSEWHERE)
        made["header from elsewhere, with a token"] = ({**user, **bearer(ROOT_TOKEN)}, unmapped, ELSEWHERE)
        made["unmapped certificate"] = ({}, unmapped, ELSEWHERE)
        made["certificate"] = ({}, self.contexts["worker"], ELSEWHERE)
        made["foreign certificate"] = ({}, self.contexts["foreign"], ELSEWHERE)
        return made

    def ask(self, method, path, headers, context, address):
        connection = http.client.HTTPSConnection(*self.server.address, timeout=60, context=context,
                                                 source_address=(address or self.addresses.next(), 0))
        body = b"{}" if method in ("POST", "PATCH") else None
        try:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.request(method, path, body, headers)
            answer = connection.getresponse()
            streams = answer.headers.get_content_type() == "text/event-stream"
            return Reply(answer.status, answer.headers, b"" if streams else answer.read())
        finally:
            connection.close()

    def check(self, method, path, needs, credential, how):
        wanted = refusal(needs, credential)
        reply = self.ask(method, path, *how)
        where = f"{method} {path} with {credential}: {reply.status} {reply.body[:300]!r}"
        if wanted:
            self.assertEqual(reply.status, wanted, where)
        else:
            self.assertNotIn(reply.status, (401, 403, 500), where)
        if wanted == 401:
            self.assertEqual(reply.headers["WWW-Authenticate"], 'Bearer realm="perdura"', where)
        return 1

    def test_d12_v8_every_route_answers_what_others_vouch_for_as_the_table_says(self):
        served = json.loads(self.ask("GET", "/openapi.json", bearer(ROOT_TOKEN), self.contexts["unmapped"],
                                     ELSEWHERE).body)["paths"]
        rows = [(method.upper(), path) for path, operations in served.items() for method in operations
                if method in ("get", "post", "put", "patch", "delete")]
        table = {tuple(route.split(" ")): needs for needs, routes in EXPECTED.items() for route in routes}
        self.assertEqual(set(rows), set(table))
        rows += [("HEAD", path) for method, path in rows if method == "GET"]
        reply = self.ask_json("POST", "/v1/namespaces", {"name": "elsewhere"})
        self.assertEqual(reply.status, 201, reply.body)
        credentials = self.credentials()
        self.assertEqual(set(credentials), set(CREDENTIALS))
        cases = []
        for method, path in rows:
            needs = table["GET" if method == "HEAD" else method, path]
            for name, value in NAMES.items():
                path = path.replace(name, value)
            cases += [(method, path, needs, name, how) for name, how in credentials.items()]
        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            checked = sum(pool.map(lambda case: self.check(*case), cases))
        self.assertEqual(checked, len(CREDENTIALS) * len(rows))
        self.assertEqual(len(CREDENTIALS), 12 + 6 + 4)
        self.assertGreater(checked, 3000)

    def ask_json(self, method, path, body):
        connection = http.client.HTTPSConnection(*self.server.address, timeout=60, context=self.contexts["unmapped"],
                                                 source_address=(ELSEWHERE, 0))
        try:
            connection.request(method, path, json.dumps(body), bearer(ROOT_TOKEN))
            answer = connection.getresponse()
            return Reply(answer.status, answer.headers, answer.read())
        finally:
            connection.close()


if __name__ == "__main__":
    unittest.main()
