"""Tokens for tests: a server with a token of its own, and what others are made with."""
import base64
import contextlib
import http.client
import itertools
import json
import os

from harness import ApiTest, Reply

ROOT_TOKEN = "root-token-of-the-tests"
SCOPES = ("tasks:read", "payloads:read", "tasks:enqueue", "tasks:control", "tasks:delete", "work", "plans:read",
          "plans:write", "plans:run", "queues:write", "metrics:read", "audit:read", "access:write", "admin")


def bearer(token):
    return {"Authorization": f"Bearer {token}"} if token else {}


def unknown_token():
    secret = base64.urlsafe_b64encode(os.urandom(32)).decode().rstrip("=")
    return f"pdt_{os.urandom(8).hex()}_{secret}"


class Addresses:
    """Where wrong credentials come from. Ten of an address are answered at once and all further ones late: with these
    thousands of them do not take minutes. Threads may share one."""
    EACH = 8

    def __init__(self):
        self.count = itertools.count()

    def next(self):
        number = next(self.count) // self.EACH
        return f"127.1.{number // 200}.{1 + number % 200}"


class TokenTest(ApiTest):
    environment = {"PERDURA_TOKEN": ROOT_TOKEN}

    def make(self, *scopes, by=ROOT_TOKEN, **fields):
        """The answer to a request for a token."""
        return self.expect(201, "POST", "/v1/tokens", {"name": "of a test", "scopes": list(scopes), **fields},
                           headers=bearer(by))

    def token(self, *scopes, **fields):
        return self.make(*scopes, **fields)["token"]

    def as_token(self, token, status, method, path, body=None):
        return self.expect(status, method, path, body, headers=bearer(token))

    def root(self, status, method, path, body=None):
        return self.as_token(ROOT_TOKEN, status, method, path, body)

    def alone(self, method, path, body=None, headers=None, address=None):
        """One request on a connection of its own: one with a wrong token is closed behind its answer, or before its
        body was read."""
        body = None if body is None else json.dumps(body).encode()
        connection = http.client.HTTPConnection(*self.server.address, timeout=60,
                                                source_address=(address, 0) if address else None)
        try:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            streams = answer.headers.get_content_type() == "text/event-stream"
            reply = Reply(answer.status, answer.headers, b"" if streams else answer.read())
        finally:
            connection.close()
        if not streams:
            self.check_described(method, path, body, reply)
        return reply
