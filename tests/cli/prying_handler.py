"""A handler that looks for secrets wherever a process can look: environment, command line, memory,
maps and descriptors of every process from the server down to itself, and the files it is given. Its
result lists what it found. Arguments: what to look for, then files."""
import json
import os
import re
import sys

SECRET = sys.argv[1].encode()
FILES = sys.argv[2:]
PIECE = 1 << 20


def parent(pid):
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rsplit(")", 1)[1].split()[1])


def family():
    """Every process below the server, with the server: it is our parent's parent's parent."""
    server = parent(parent(parent(os.getpid())))
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        pid, above = int(name), int(name)
        try:
            while above not in (0, 1, server):
                above = parent(above)
        except OSError:
            continue
        if above == server:
            found.append(pid)
    return server, found


def in_memory(pid):
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            start, end, rights = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+)", line).groups()
            at, end = int(start, 16), int(end, 16)
            while rights.startswith("r") and at < end and at < 1 << 63:
                try:
                    memory.seek(at)
                    if SECRET in memory.read(min(PIECE, end - at)):
                        return True
                except (OSError, ValueError, OverflowError):
                    break
                at += PIECE - len(SECRET)
    return False


def in_descriptors(pid):
    for fd in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{fd}"
        if os.path.isfile(path):
            with open(path, "rb") as file:
                if SECRET in file.read():
                    return True
    return False


def in_file(path):
    with open(path, "rb") as file:
        return SECRET in file.read()


def look(seen, where, how, *arguments):
    try:
        if how(*arguments):
            seen["found"].append(where)
        seen["readable"].append(where)
    except OSError:
        pass


def main():
    sys.stdin.read()
    server, pids = family()
    seen = {"found": [], "readable": [], "killable": [], "uid": os.getuid(),
            "groups": os.getgroups(), "processes": len(pids), "home": os.environ.get("HOME")}
    for pid in pids:
        with open(f"/proc/{pid}/comm") as file:
            name = "server" if pid == server else file.read().strip()
        for part in ("environ", "cmdline"):
            look(seen, f"{name} {part}", in_file, f"/proc/{pid}/{part}")
        look(seen, f"{name} memory", in_memory, pid)
        look(seen, f"{name} descriptors", in_descriptors, pid)
        try:
            os.kill(pid, 0)
            seen["killable"].append(name)
        except OSError:
            pass
    for path in FILES:
        look(seen, os.path.basename(path), in_file, path)
    look(seen, "own environ", in_file, "/proc/self/environ")
    if "PERDURA_TOOL" in os.environ:  # of an agent
        print(json.dumps(seen))
        return
    with os.fdopen(3, "w") as control:
        control.write(json.dumps({"result": seen}) + "\n")


main()
