#!/usr/bin/env python3
"""Five services, Perdura, and jobs that call them over mutual TLS, with one command:
    start.py [--perdura PROGRAM] [--folder FOLDER] [--free-ports] [--run-all]
FOLDER (./running) keeps certificates, the store and what the services print. --run-all runs every job once,
shows what came out, and ends; without it the schedules of jobs.json fire until Ctrl-C. Needs openssl, protoc, node and npm."""
import argparse
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
SERVICES = ("messaging", "notification", "media", "user", "auth")
FIRST_PORT = 50051
ANSWER_S = 60


def openssl(*arguments, **options):
    subprocess.run(["openssl", *arguments], check=True, stderr=subprocess.DEVNULL, **options)


def make_certificates(folder):
    """A CA, and a certificate for each service and for Perdura, with its SPIFFE id."""
    if (folder / "ca.pem").exists():
        return
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
            "-subj", "/CN=example CA", "-addext", "keyUsage=critical,keyCertSign", "-keyout", folder / "ca.key",
            "-out", folder / "new-ca.pem")
    for name in (*SERVICES, "scheduling"):
        request = subprocess.run(
            ["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
             f"/CN={name}-service", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1,"
             f"URI:spiffe://cluster.local/ns/whispr/sa/{name}-service", "-keyout", folder / f"{name}.key"],
            check=True, capture_output=True).stdout
        openssl("x509", "-req", "-CA", folder / "new-ca.pem", "-CAkey", folder / "ca.key", "-CAcreateserial",
                "-copy_extensions", "copy", "-days", "30", "-out", folder / f"{name}.pem", input=request)
    os.rename(folder / "new-ca.pem", folder / "ca.pem")


def node_packages(folder):
    """Where the packages of package.json are; npm brings them the first time."""
    given = os.environ.get("EXAMPLE_PACKAGES")
    if given:
        return given
    if not (folder / "node_modules").exists():
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, folder)
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"], cwd=folder, check=True)
    return folder / "node_modules"


def ports_of(arguments):
    if not arguments.free_ports:
        return [*range(FIRST_PORT, FIRST_PORT + len(SERVICES)), 7070]
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(len(SERVICES) + 1)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def start(name, command, folder, environment=None):
    """A process that prints into NAME.log; it has begun when that has a line."""
    log = folder / f"{name}.log"
    with open(log, "wb") as out:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=subprocess.STDOUT,
                                   env={**os.environ, **(environment or {})})
    limit = time.monotonic() + ANSWER_S
    while not log.stat().st_size:
        if process.poll() is not None or time.monotonic() > limit:
            sys.exit(f"{name} did not start; see {log}")
        time.sleep(0.05)
    return process


class Api:
    def __init__(self, url):
        self.url = url

    def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=ANSWER_S) as reply:
            return json.load(reply)

    def wait_until_ready(self):
        limit = time.monotonic() + ANSWER_S
        while True:
            try:
                return self.ask("GET", "/readyz")
            except OSError:
                if time.monotonic() > limit:
                    raise
                time.sleep(0.1)


def make_jobs(api):
    """The jobs of jobs.json with their schedules, but for those that are there from a start before."""
    known = {job["name"] for job in api.ask("GET", "/v1/jobs?limit=100")["items"]}
    jobs = json.loads((HERE / "jobs.json").read_text())
    for job in jobs:
        schedule = job.pop("schedule")
        if job["name"] not in known:
            made = api.ask("POST", "/v1/jobs", job)
            for warning in made.get("warnings", []):
                print(f"warning: {warning}", file=sys.stderr)
            api.ask("POST", f"/v1/jobs/{made['id']}/schedules", schedule)
    return [job["name"] for job in jobs]


def run_all(api, jobs):
    """Runs every job once. Whether all came to a good end."""
    tasks = {name: api.ask("POST", f"/v1/jobs/{name}:run", {})["id"] for name in jobs}
    ended_well = True
    for name, task in tasks.items():
        ended = api.ask("GET", f"/v1/tasks/{task}/wait?timeout_ms={ANSWER_S * 1000 // 2}")
        ended_well &= ended["status"] == "completed"
        print(f"{name:26} {ended['status']:10} {json.dumps(ended['result'] or ended['error'])}")
    return ended_well


def main():
    parser = argparse.ArgumentParser(description="Starts five services and Perdura with jobs that call them.")
    parser.add_argument("--perdura", default="perdura", help="the program (perdura)")
    parser.add_argument("--folder", default="running", type=pathlib.Path, help="for certificates, store and logs")
    parser.add_argument("--free-ports", action="store_true", help="any ports in place of 50051 to 50055 and 7070")
    parser.add_argument("--run-all", action="store_true", help="run every job once and end")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    make_certificates(folder)
    packages = node_packages(folder)
    *ports, own = ports_of(arguments)
    config = (HERE / "perdura.yaml").read_text().replace(":7070", f":{own}")
    for i, port in enumerate(ports):
        config = config.replace(f":{FIRST_PORT + i}", f":{port}")
    (folder / "perdura.yaml").write_text(config)
    subprocess.run(["protoc", f"-I{HERE}/protos", "--include_imports", f"--descriptor_set_out={folder}/messaging.pb",
                    "messaging.proto"], check=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    processes = []
    try:
        for name, port in zip(SERVICES, ports):
            program = ["python3", HERE / "auth_service.py"] if name == "auth" else \
                ["node", HERE / "grpc_service.cjs", name]
            processes.append(start(name, [*program, str(port), folder], folder, {"NODE_PATH": str(packages)}))
        processes.append(start("perdura", [arguments.perdura, "serve", "--config", "perdura.yaml"], folder))
        api = Api(f"http://127.0.0.1:{own}")
        api.wait_until_ready()
        jobs = make_jobs(api)
        print(f"{len(SERVICES)} services and {len(jobs)} jobs; dashboard: {api.url}/  logs: {folder}", flush=True)
        if arguments.run_all:
            return 0 if run_all(api, jobs) else 1
        signal.pause()
    except KeyboardInterrupt:
        return 0
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in reversed(processes):
            process.wait()


if __name__ == "__main__":
    sys.exit(main())
