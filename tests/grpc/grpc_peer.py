"""The gRPC service of peer.mjs for tests, and the descriptors of what it speaks."""
import json
import os
import pathlib
import subprocess
import threading

HERE = pathlib.Path(__file__).resolve().parent
PACKAGES = os.environ.get("PERDURA_GRPC_PACKAGES", "")


def descriptor(folder, name="peer.proto"):
    """A FileDescriptorSet of this file; its path."""
    path = os.path.join(folder, "peer.pb")
    subprocess.run(["protoc", f"-I{HERE}", "--include_imports", f"-o{path}", name], check=True)
    return path


class Peer:
    def __init__(self, **options):
        self.process = subprocess.Popen(["node", HERE / "peer.mjs", PACKAGES, json.dumps(options)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.tls = "tls" in options
        self.calls = []
        self.lock = threading.Lock()
        self.port = json.loads(self.process.stdout.readline())["port"]
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            with self.lock:
                self.calls.append(json.loads(line))

    @property
    def url(self):
        return f"{'grpcs' if self.tls else 'grpc'}://127.0.0.1:{self.port}"

    def seen(self, method="Do"):
        with self.lock:
            return [call for call in self.calls if call["method"] == method]

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(60)
        self.thread.join(60)
        self.process.stdin.close()
        self.process.stdout.close()
