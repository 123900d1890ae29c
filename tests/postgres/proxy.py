"""A TCP proxy between a node and its PostgreSQL that understands just enough of the protocol to see
a COMMIT go by, and does what networks do: pass, delay, lose packets, fall silent in one or both
directions, refuse, and cut, also exactly between a COMMIT and its answer. One thread; its methods
may be called from any other.

    with Proxy(postgres.port) as proxy:
        node on proxy.port
        proxy.arm("answered")       the answer to a writer's next COMMIT is dropped
        proxy.blackhole()           packets vanish without an error
        proxy.pass_on()

Packets vanish by a socket filter (BPF) on the proxy's own sockets: the kernel drops them before
they are acknowledged, so both ends see what a dead network looks like.
"""
import collections
import ctypes
import heapq
import random
import selectors
import socket
import struct
import threading
import time

SO_ATTACH_FILTER, SO_DETACH_FILTER = 26, 27
RETURN, LOAD_WORD, AND, JUMP_GE = 0x06, 0x20, 0x54, 0x35
RANDOM_WORD = 0xfffff000 + 56  # a random number, as a place in the packet
NEGOTIATIONS = (80877103, 80877104)  # SSLRequest, GSSENCRequest: answered with one byte
HOWS = ("answered", "sent", "reset", "unsent")
CHUNK = 1 << 16


class Instruction(ctypes.Structure):
    _fields_ = [("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte),
                ("k", ctypes.c_uint)]


def set_filter(sock, lost):
    """lost: the share of arriving packets that vanish; 0 takes the filter off."""
    if lost <= 0:
        try:
            sock.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)
        except OSError:
            pass  # there was none
        return
    program = [(RETURN, 0, 0, 0)]
    if lost < 1:
        program = [(LOAD_WORD, 0, 0, RANDOM_WORD), (AND, 0, 0, 0xffff),
                   (JUMP_GE, 0, 1, int(lost * 0x10000)), (RETURN, 0, 0, 0xffffffff),
                   (RETURN, 0, 0, 0)]
    lines = (Instruction * len(program))(*[Instruction(*line) for line in program])
    sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER,
                    struct.pack("HxxxxxxP", len(program), ctypes.addressof(lines)))


def close_hard(sock):
    """With a reset: what was not read is thrown away."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
    except OSError:
        pass


class Frames:
    """Cuts a stream into whole messages. Before the start-up message they have no type."""

    def __init__(self, typed):
        self.buf = bytearray()
        self.typed = typed
        self.single_bytes = 0  # answers to negotiations are due: one byte each

    def take(self, data):
        """Messages that are whole now: (type or None, bytes)."""
        self.buf += data
        found = []
        while self.buf:
            if self.single_bytes:
                self.single_bytes -= 1
                found.append((None, bytes(self.buf[:1])))
                del self.buf[:1]
                continue
            head = 1 if self.typed else 0
            if len(self.buf) < head + 4:
                break
            length = head + int.from_bytes(self.buf[head:head + 4], "big")
            if len(self.buf) < length:
                break
            frame = bytes(self.buf[:length])
            del self.buf[:length]
            found.append((chr(frame[0]) if self.typed else None, frame))
            if not self.typed and int.from_bytes(frame[4:8], "big") not in NEGOTIATIONS:
                self.typed = True
        return found


class Link:
    """One client and its connection to the server."""

    def __init__(self, proxy, client, server):
        self.proxy, self.client, self.server = proxy, client, server
        self.up, self.down = Frames(False), Frames(True)
        self.statements = {}      # name -> 'commit', 'write', 'settle'
        self.kind = None          # of the transaction under way
        self.committing = False   # COMMIT went by, the end of the pipeline not yet
        self.cutting = None       # how the present COMMIT is cut
        self.muted = False        # nothing of the server's gets to the client any more
        self.out = {client: bytearray(), server: bytearray()}
        self.name = ""            # what the client calls itself
        self.writes = False       # it has written something

    # What the client says.

    def from_client(self, data):
        for kind, frame in self.up.take(data):
            if kind is None and int.from_bytes(frame[4:8], "big") in NEGOTIATIONS:
                self.down.single_bytes += 1
            elif kind is None:
                words = frame[8:].split(b"\0")
                named = dict(zip(words[::2], words[1::2]))
                self.name = named.get(b"application_name", b"").decode()
            self.note(kind, frame)
            if self.cutting == "unsent":
                self.proxy.note_cut(self, False)
                self.proxy.drop(self)
                return
            self.proxy.send(self, self.server, frame)
            if kind == "S" and self.committing:
                self.pipeline_ended()
                if self.proxy.is_gone(self):
                    return

    def note(self, kind, frame):
        if kind == "P":
            name, text = frame[5:].split(b"\0", 2)[:2]
            what = meaning(text)
            if what:
                self.statements[name] = what
            else:
                self.statements.pop(name, None)
        elif kind == "B":
            what = self.statements.get(frame[5:].split(b"\0", 2)[1])
            if what == "commit":
                self.committing = True
                if self.kind:
                    self.proxy.commits[self.kind] += 1
                    self.cutting = self.proxy.how_to_cut(self.kind)
            elif what:
                self.kind, self.writes = what, True

    def pipeline_ended(self):
        self.committing, self.kind = False, None
        if self.cutting == "sent":     # the server reads all of it, and its answer is dropped
            self.proxy.note_cut(self, None)
            self.mute()
            self.proxy.finish_server(self)
        elif self.cutting == "reset":  # it may not even read it
            self.proxy.note_cut(self, None)
            self.proxy.drop(self)
        elif self.cutting == "answered":
            self.muted = True          # until the server has said that it committed

    def mute(self):
        self.muted = True
        self.proxy.forget(self.client)
        close_hard(self.client)

    # What the server says.

    def from_server(self, data):
        frames = self.down.take(data)
        if not self.muted:
            self.proxy.send(self, self.client, b"".join(frame for _, frame in frames))
            return
        for kind, frame in frames:
            if self.cutting == "answered" and kind == "E":
                self.proxy.note_cut(self, False)
                self.proxy.drop(self)
                return
            if self.cutting == "answered" and kind == "C" and frame[5:] == b"COMMIT\0":
                self.proxy.note_cut(self, True)
                self.proxy.drop(self)
                return


def meaning(text):
    words = text.upper()
    if words == b"COMMIT":
        return "commit"
    if b"PERDURA_MARK(" in words:
        return "write"
    if b"UPDATE WRITER_MARKS" in words:
        return "settle"
    return None


class Proxy:
    def __init__(self, target_port, seed=None):
        self.target_port = target_port
        self.rng = random.Random(seed)
        self.lock = threading.RLock()
        self.selector = selectors.DefaultSelector()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=200)
        self.port = self.listener.getsockname()[1]
        self.woken, self.waker = socket.socketpair()
        self.links = set()
        self.delay_s = self.jitter_s = 0.0
        self.later = []                       # heap of (when, number, link, sock, bytes)
        self.number = 0
        self.lost_up = self.lost_down = 0.0   # shares of packets that vanish
        self.refusing = False
        self.armed = None                     # (how, kinds, how often)
        self.commits = collections.Counter()  # seen, by kind
        self.cuts = []                        # (how, kind, whether the server said it committed)
        self.cut_happened = threading.Condition(self.lock)
        self.most_links = 0
        self.closing = False
        for sock in (self.listener, self.woken, self.waker):
            sock.setblocking(False)
        self.selector.register(self.listener, selectors.EVENT_READ, None)
        self.selector.register(self.woken, selectors.EVENT_READ, None)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # What tests say.

    def pass_on(self):
        """Everything as it should be; connections that survived continue."""
        with self.lock:
            self.delay_s = self.jitter_s = 0.0
            self.refusing, self.armed = False, None
            self.set_losses(0, 0)
        self.wake()

    def delay(self, seconds, jitter_s=0.0):
        """In each direction, order kept."""
        with self.lock:
            self.delay_s, self.jitter_s = seconds, jitter_s

    def lose(self, share):
        """That share of all packets vanishes."""
        with self.lock:
            self.set_losses(share, share)

    def blackhole(self, up=True, down=True):
        """All packets of these directions vanish: up to the server, down to the client."""
        with self.lock:
            self.set_losses(1 if up else 0, 1 if down else 0)

    def silence(self, chosen):
        """The packets of connections for which chosen(link) is true vanish; others are made and
        live as usual. How many there were."""
        with self.lock:
            links = [link for link in self.links if chosen(link)]
            for link in links:
                set_filter(link.client, 1)
                set_filter(link.server, 1)
            return len(links)

    def refuse(self, refusing=True):
        with self.lock:
            self.refusing = refusing

    def cut(self):
        """Every connection, at once. How many there were."""
        with self.lock:
            links = list(self.links)
            for link in links:
                self.drop(link)
            return len(links)

    def arm(self, how, kinds=("write",), times=1):
        """Cuts the next COMMIT of a writer:
        answered  the server said that it committed; the client does not hear it
        sent      the server has got it and works on it; the client is cut off
        reset     the same, and the server's end is reset too: it may not have read it
        unsent    the client sent it, the server never gets it"""
        assert how in HOWS
        with self.lock:
            self.armed = [how, kinds, times]

    def wait_cut(self, count, deadline_s):
        """Until so many were cut in all; whether they were."""
        with self.cut_happened:
            return self.cut_happened.wait_for(lambda: len(self.cuts) >= count, deadline_s)

    def close(self):
        with self.lock:
            self.closing = True
        self.wake()
        self.thread.join(10)
        for link in list(self.links):
            self.drop(link)
        for sock in (self.listener, self.woken, self.waker):
            sock.close()
        self.selector.close()

    # Inside; under the lock.

    def set_losses(self, up, down):
        self.lost_up, self.lost_down = up, down
        set_filter(self.listener, up)
        for link in self.links:
            self.set_link_losses(link)

    def set_link_losses(self, link):
        for sock, lost in ((link.client, self.lost_up), (link.server, self.lost_down)):
            try:
                set_filter(sock, lost)
            except OSError:
                pass  # gone meanwhile

    def how_to_cut(self, kind):
        if not self.armed or kind not in self.armed[1]:
            return None
        how = self.armed[0]
        self.armed[2] -= 1
        if self.armed[2] == 0:
            self.armed = None
        return how

    def note_cut(self, link, took):
        self.cuts.append((link.cutting, link.kind or "write", took))
        link.cutting = None
        self.cut_happened.notify_all()

    def is_gone(self, link):
        return link not in self.links

    def forget(self, sock):
        try:
            self.selector.unregister(sock)
        except (KeyError, ValueError):
            pass

    def drop(self, link):
        self.links.discard(link)
        for sock in (link.client, link.server):
            self.forget(sock)
            close_hard(sock)

    def finish_server(self, link):
        """No more is said to it; what it says is read to its end."""
        if not link.out[link.server]:
            try:
                link.server.shutdown(socket.SHUT_WR)
            except OSError:
                pass

    def send(self, link, sock, data):
        if not data:
            return
        if self.delay_s or self.jitter_s or any(entry[2] is link and entry[3] is sock
                                                for entry in self.later):
            self.number += 1
            pause_s = max(0.0, self.delay_s + self.rng.uniform(-1, 1) * self.jitter_s)
            last = max((entry[0] for entry in self.later
                        if entry[2] is link and entry[3] is sock), default=0)
            heapq.heappush(self.later, (max(last, time.monotonic() + pause_s), self.number, link,
                                        sock, data))
            return
        self.write(link, sock, data)

    def write(self, link, sock, data):
        waiting = link.out[sock]
        waiting += data
        try:
            sent = sock.send(waiting)
            del waiting[:sent]
        except BlockingIOError:
            pass
        except OSError:
            self.drop(link)
            return
        self.watch(link, sock, selectors.EVENT_READ | (selectors.EVENT_WRITE if waiting else 0))

    def watch(self, link, sock, events):
        try:
            if self.selector.get_key(sock).events != events:
                self.selector.modify(sock, events, link)
        except (KeyError, ValueError):
            pass

    def accept(self):
        try:
            client, _ = self.listener.accept()
        except OSError:
            return
        try:
            if self.refusing:
                raise ConnectionRefusedError
            server = socket.create_connection(("127.0.0.1", self.target_port), timeout=30)
        except OSError:
            close_hard(client)
            return
        link = Link(self, client, server)
        self.links.add(link)
        self.most_links = max(self.most_links, len(self.links))
        for sock in (client, server):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setblocking(False)
            self.selector.register(sock, selectors.EVENT_READ, link)
        self.set_link_losses(link)

    def read(self, link, sock):
        try:
            data = sock.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.drop(link)
        elif sock is link.client:
            link.from_client(data)
        else:
            link.from_server(data)

    def wake(self):
        try:
            self.waker.send(b"x")
        except OSError:
            pass

    def send_due(self):
        now = time.monotonic()
        while self.later and self.later[0][0] <= now:
            _, _, link, sock, data = heapq.heappop(self.later)
            if link in self.links:
                self.write(link, sock, data)
        return self.later[0][0] - now if self.later else 0.5

    def run(self):
        while not self.closing:
            with self.lock:
                wait_s = self.send_due()
            events = self.selector.select(max(0, min(wait_s, 0.5)))
            with self.lock:
                for key, mask in events:
                    self.handle(key, mask)

    def handle(self, key, mask):
        link = key.data
        if key.fileobj is self.woken:
            self.woken.recv(100)
        elif key.fileobj is self.listener:
            self.accept()
        elif link in self.links and key.fileobj.fileno() >= 0:
            if mask & selectors.EVENT_WRITE:
                self.write(link, key.fileobj, b"")
            if mask & selectors.EVENT_READ and link in self.links:
                self.read(link, key.fileobj)
