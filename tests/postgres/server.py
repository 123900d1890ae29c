"""A PostgreSQL of our own for tests: in a temporary folder, on loopback and a free port, as Debian's
user when we are root, and gone at the end, also when the tests are interrupted.

    python3 tests/postgres/server.py start FILE    starts one for the tests of the calling program
                                                   (ctest); FILE gets its URL
    python3 tests/postgres/server.py stop FILE     ends it

Python tests use `with Postgres() as server: server.url`."""
import glob
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "api"))
from harness import free_port  # noqa: E402

START_SECONDS_MAX = 120
# Of the data nothing must survive but a kill of the postmaster's children; what commits cost on a
# disk is the benchmark's business.
SETTINGS = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "max_connections": 200,
            "shared_buffers": "128MB", "log_min_messages": "warning"}


def programs():
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[4]))
    if not found:
        sys.exit("there is no PostgreSQL; install Debian's package postgresql")
    return found[-1]


MEMORY_BYTES_MIN = 4 << 30


def memory_folder():
    """Files that are never synced need no disk: making the tables of a schema takes half the time."""
    try:
        room = os.statvfs("/dev/shm")
    except OSError:
        return None
    return "/dev/shm" if room.f_bavail * room.f_frsize >= MEMORY_BYTES_MIN else None


class Postgres:
    def __init__(self, settings=None):
        self.settings = {**SETTINGS, "fsync": "off", **(settings or {})}
        self.folder = tempfile.mkdtemp(
            prefix="perdura-postgres-",
            dir=memory_folder() if self.settings["fsync"] == "off" else None)
        self.port = free_port()
        self.url = f"postgres://perdura@127.0.0.1:{self.port}/postgres"
        self.process = None
        self.user = {}

    def __enter__(self):
        try:
            self.make()
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def make(self):
        if os.geteuid() == 0:
            entry = pwd.getpwnam("postgres")
            os.chown(self.folder, entry.pw_uid, entry.pw_gid)
            self.user = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        subprocess.run([f"{programs()}/initdb", "-D", f"{self.folder}/data", "-U", "perdura", "-A",
                        "trust", "--no-sync", "--encoding=UTF8", "--locale=C.UTF-8"], check=True,
                       stdout=subprocess.DEVNULL, cwd=self.folder, **self.user)

    def start(self):
        command = [f"{programs()}/postgres", "-D", f"{self.folder}/data", "-p", str(self.port)]
        for name, value in self.settings.items():
            command += ["-c", f"{name}={value}"]
        with open(f"{self.folder}/log", "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder,
                                            start_new_session=True, **self.user)
        end = time.monotonic() + START_SECONDS_MAX
        while subprocess.run([f"{programs()}/pg_isready", "-q", "-h", "127.0.0.1", "-p",
                              str(self.port)], check=False).returncode != 0:
            if self.process.poll() is not None or time.monotonic() > end:
                text = pathlib.Path(f"{self.folder}/log").read_text(errors="replace")
                raise RuntimeError("PostgreSQL did not start: " + text[-2000:])
            time.sleep(0.05)

    def stop(self, how=signal.SIGINT):
        """SIGINT: fast, SIGQUIT: immediate (as after a crash), SIGTERM: waits for clients."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait()


def make_template(server, build):
    """A database with the tables of a store, which tests copy: see tests/store/pg_schema.h."""
    if os.path.exists(f"{build}/perdura"):
        url = server.url.rpartition("/")[0]
        subprocess.run([f"{programs()}/psql", "-qX", server.url, "-c", "CREATE DATABASE perdura_template"],
                       check=True)
        subprocess.run([f"{build}/perdura", "migrate", "up", "--store", f"{url}/perdura_template"],
                       check=True, stdout=subprocess.DEVNULL)


def guard(path, owner):
    """Keeps one alive until its file is removed or the program that wanted it is gone."""
    with Postgres() as server:
        make_template(server, os.path.dirname(path))
        pathlib.Path(path + ".new").write_text(server.url)
        os.replace(path + ".new", path)
        while os.path.exists(path) and os.path.exists(f"/proc/{owner}"):
            time.sleep(0.2)
    pathlib.Path(path + ".gone").touch()


def main():
    what, path = sys.argv[1:3]
    for name in (path, path + ".gone"):
        if what == "start" or name == path:
            pathlib.Path(name).unlink(missing_ok=True)
    if what == "guard":
        guard(path, sys.argv[3])
    elif what == "start":
        subprocess.Popen([sys.executable, __file__, "guard", path, str(os.getppid())],
                         start_new_session=True, stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + START_SECONDS_MAX
    wanted = path if what == "start" else path + ".gone"
    while what != "guard" and not os.path.exists(wanted):
        if time.monotonic() > end:
            sys.exit(f"PostgreSQL did not {what}")
        time.sleep(0.05)


if __name__ == "__main__":
    main()
