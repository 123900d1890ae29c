"""JWTs for tests, signed by the program openssl, and an issuer that serves its public keys (JWKS).
Standard library only."""
import base64
import json
import os
import ssl
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ISSUER, AUDIENCE = "https://id.example", "perdura"


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def openssl(*arguments, data=b""):
    return subprocess.run(["openssl", *arguments], check=True, input=data,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE).stdout


def der_pair(der):
    """The two numbers of an ECDSA signature, 32 bytes each."""
    out, at = b"", 2
    for _ in range(2):
        length = der[at + 1]
        out += der[at + 2:at + 2 + length].lstrip(b"\0").rjust(32, b"\0")
        at += 2 + length
    return out


class Key:
    """A pair of keys: kind is "RS256", "ES256" or "EdDSA"."""
    MAKE = {"RS256": ("RSA", "-pkeyopt", "rsa_keygen_bits:2048"),
            "ES256": ("EC", "-pkeyopt", "ec_paramgen_curve:P-256"), "EdDSA": ("ED25519",)}

    def __init__(self, folder, kind, kid):
        self.kind, self.kid = kind, kid
        self.path = os.path.join(folder, f"{kid}.key")
        openssl("genpkey", "-algorithm", *self.MAKE[kind], "-out", self.path)

    def jwk(self):
        der = openssl("pkey", "-in", self.path, "-pubout", "-outform", "DER")
        if self.kind == "EdDSA":
            fields = {"kty": "OKP", "crv": "Ed25519", "x": b64(der[-32:])}
        elif self.kind == "ES256":
            fields = {"kty": "EC", "crv": "P-256", "x": b64(der[-64:-32]), "y": b64(der[-32:])}
        else:
            text = openssl("rsa", "-in", self.path, "-noout", "-modulus").decode()
            fields = {"kty": "RSA", "n": b64(bytes.fromhex(text.strip().split("=")[1])),
                      "e": "AQAB"}
        return {**fields, "kid": self.kid, "use": "sig"}

    def pem(self):
        return openssl("pkey", "-in", self.path, "-pubout")

    def sign(self, data, der=False):
        if self.kind == "EdDSA":
            path = self.path + ".data"
            with open(path, "wb") as file:
                file.write(data)
            return openssl("pkeyutl", "-sign", "-rawin", "-inkey", self.path, "-in", path)
        signature = openssl("dgst", "-sha256", "-sign", self.path, data=data)
        return der_pair(signature) if self.kind == "ES256" and not der else signature

    def token(self, header=None, der=False, drop=(), **claims):
        now = int(time.time())
        head = {"alg": self.kind, "kid": self.kid, "typ": "JWT", **(header or {})}
        body = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "scope": "admin",
                "namespace": "*", "iat": now, "exp": now + 3600, **claims}
        for name in drop:
            head.pop(name, None)
            body.pop(name, None)
        text = b64(json.dumps(head).encode()) + "." + b64(json.dumps(body).encode())
        return text + "." + b64(self.sign(text.encode(), der))


class Issuer:
    """Serves the public keys of `keys`, or what `answer` says, and counts the requests."""

    def __init__(self, *keys, certificate=None):
        self.keys = list(keys)
        self.requests = 0
        self.answer = None       # a function of the request's handler
        self.open = threading.Event()
        self.open.set()          # cleared: requests wait until it is set
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                issuer.requests += 1
                issuer.open.wait(60)
                try:
                    (issuer.answer or issuer.serve)(self)
                except OSError:
                    pass  # the fetch was given up

            def log_message(self, *arguments):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = "%s://127.0.0.1:%d/keys?x=1" % ("https" if certificate else "http",
                                                  self.server.server_address[1])
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def document(self):
        return json.dumps({"keys": [key.jwk() for key in self.keys]}).encode()

    def send(self, handler, status, body):
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def serve(self, handler):
        self.send(handler, 200, self.document())

    def close(self):
        self.open.set()
        self.server.shutdown()
        self.server.server_close()


def bearer(token):
    return {"Authorization": "Bearer " + token}
