"""A process that looks into another one while that starts, and keeps what it could open. Arguments:
its number and what to look for. Says as JSON what it could open; after a line on its input it looks
for the secret in what it kept and says where it found it."""
import ctypes
import errno
import json
import os
import re
import sys

PID = int(sys.argv[1])
SECRET = sys.argv[2].encode()
PIECE = 1 << 20
PTRACE_SEIZE = 0x4206
LIBC = ctypes.CDLL(None, use_errno=True)


class Part(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]


def is_permitted(result):
    return result >= 0 or ctypes.get_errno() not in (errno.EPERM, errno.EACCES)


def traces():
    LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    LIBC.ptrace.restype = ctypes.c_long
    return is_permitted(LIBC.ptrace(PTRACE_SEIZE, PID, None, None))


def reads_vm():
    here = ctypes.create_string_buffer(8)
    local = Part(ctypes.cast(here, ctypes.c_void_p), 8)
    remote = Part(0x10000, 8)
    return is_permitted(LIBC.process_vm_readv(PID, ctypes.byref(local), 1, ctypes.byref(remote), 1,
                                              0))


def keep():
    kept = {}
    for name in ("mem", "maps", "environ", "fd"):
        try:
            kept[name] = os.open(f"/proc/{PID}/{name}", os.O_RDONLY)
        except OSError:
            pass
    return kept


def read_all(fd):
    pieces = []
    try:
        while piece := os.read(fd, PIECE):
            pieces.append(piece)
    except OSError:
        pass  # of a process whose memory is closed by now, or that ended
    return b"".join(pieces)


def in_memory(maps, memory):
    found = False
    for line in read_all(maps).decode().splitlines():
        start, end, rights = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+)", line).groups()
        at, end = int(start, 16), int(end, 16)
        if "w" not in rights or end - at > 1 << 32:
            continue
        while at < end:
            try:
                found |= SECRET in os.pread(memory, min(PIECE, end - at), at)
            except OSError:
                break
            at += PIECE - len(SECRET)
    return found


def main():
    kept = keep()
    ways = {"vm": reads_vm, "ptrace": traces}
    print(json.dumps([*kept, *(name for name, way in ways.items() if way())]), flush=True)
    sys.stdin.readline()
    found = []
    if "mem" in kept and "maps" in kept and in_memory(kept["maps"], kept["mem"]):
        found.append("mem")
    if "environ" in kept and SECRET in read_all(kept["environ"]):
        found.append("environ")
    print(json.dumps(found), flush=True)


main()
