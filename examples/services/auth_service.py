#!/usr/bin/env python3
"""The fifth service, over HTTPS, with the standard library only:
    auth_service.py PORT CERTIFICATES
CERTIFICATES is a folder with ca.pem, auth.pem and auth.key. Only callers whose certificate names them
CALLER are answered. A security audit takes longer than a call should: it is accepted (202) and reported
later to the one-time URL that came with the call."""
import http.server
import json
import pathlib
import ssl
import sys
import threading
import urllib.request

CALLER = ("URI", "spiffe://cluster.local/ns/whispr/sa/scheduling-service")
effects = {}  # idempotency key -> the answer; a real service keeps it beside what it did
lock = threading.Lock()


def say(**what):
    print(json.dumps(what), flush=True)


def audit(url, key):
    """The work behind a 202: how far it is, then what came out."""
    for part in ({"progress": 50}, {"result": {"accounts": 1200, "findings": 0}}):
        request = urllib.request.Request(url, json.dumps(part).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as reply:
            say(method="auth.reported", key=key, status=reply.status, part=part)


class Auth(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body, **headers):
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.answer(200 if self.path == "/healthz" else 404, {})

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if CALLER not in self.connection.getpeercert().get("subjectAltName", ()):
            return self.answer(403, {"message": "who are you?"})
        key = self.headers.get("Idempotency-Key")
        if not key:
            return self.answer(400, {"message": "a call needs an Idempotency-Key"})
        url = self.headers.get("Perdura-Complete-Url")
        with lock:
            is_new = key not in effects
            effects[key] = {"expired_sessions": 42} if self.path == "/CleanupSessions" else {"rotated": 3}
        say(method="auth." + self.path[1:], key=key, attempt=int(self.headers["Perdura-Attempt"]), new=is_new,
            request=json.loads(body or b"null"))
        if self.path == "/AuditSecurity" and url:
            threading.Thread(target=audit, args=(url, key), daemon=True).start()
            return self.answer(202, {}, **{"Perdura-Async": "1"})
        if self.path in ("/CleanupSessions", "/RotateTokens"):
            return self.answer(200, effects[key])
        return self.answer(404, {"message": f"there is no {self.path}"})


def main():
    port, certificates = int(sys.argv[1]), pathlib.Path(sys.argv[2])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "auth.pem", certificates / "auth.key")
    context.load_verify_locations(certificates / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Auth)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    say(listening=server.server_address[1])
    server.serve_forever()


main()
