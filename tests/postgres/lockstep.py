"""Two servers in lockstep, one on SQLite and one on PostgreSQL: every request goes to both, and their answers must be
the same but for ids, times and what is made of them. Ids are compared as what they stand for: where the first server
says one id, the second must always say the same other one. Requests are written with the first server's ids.

Every answer of the first is checked against openapi.json; the second says the same. Most answers are the same byte for
byte between their ids and times: these are compared so, and only what differs there is read and compared member by member."""
import collections
import json
import re
import socket

import openapi_check

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
HASH = re.compile(r"[0-9a-f]{64}\Z")
SPAN = re.compile(r"\b\d+(\.\d+)?(ms|s|m|h|d)( \d\d[smh])?\b")  # "59.9s", a moment later "1m 00s"
# Measured by each server for itself.
MEASURED = {"duration_ms", "average_duration_ms", "max_duration_ms"}
# Made by each server for itself of ids: only that both have one counts.
OPAQUE = {"next_cursor", "chain_hash", "checkpoint_hash"}
# What differs in answers that are the same, as JSON has it: an id, a time, a cursor, a measured number.
VARIES = re.compile(r'("(?:{uuid}|{time})"| {uuid}|"next_cursor":"[^"]*"|"(?:{measured})":[0-9]+)'.format(
    uuid=UUID.pattern, time=TIME.pattern.replace("(", "(?:"), measured="|".join(sorted(MEASURED))).encode())
# One that is built in has the same id in all stores.
BUILT_IN = "01941f29-7c00-7000-8000-"
NO_ID = BUILT_IN + "000000000000"
ID_LENGTHS = (37, 38)  # behind a blank, as texts name it; in quotes
DIFFERENCES_MAX = 5
ITEMS_CHECKED = 20


class Difference(AssertionError):
    pass


class Line:
    """One connection that is kept alive. Quicker than http.client, and sending and receiving are apart."""

    def __init__(self, address):
        self.socket = socket.create_connection(address, timeout=120)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.head = f" HTTP/1.1\r\nHost: {address[0]}:{address[1]}\r\n".encode()
        self.rest = b""

    def send(self, method, path, body):
        lines = [f"{method} {path}".encode(), self.head]
        if body is not None:
            lines.append(b"Content-Type: application/json\r\nContent-Length: %d\r\n" % len(body))
        self.socket.sendall(b"".join(lines) + b"\r\n" + (body or b""))

    def more(self):
        data = self.socket.recv(262144)
        if not data:
            raise ConnectionError("the server closed the connection")
        self.rest += data

    def receive(self):
        while b"\r\n\r\n" not in self.rest:
            self.more()
        head, _, self.rest = self.rest.partition(b"\r\n\r\n")
        status = int(head[9:12])
        found = re.search(rb"(?i)content-length: *(\d+)", head)
        length = int(found.group(1)) if found else 0
        while len(self.rest) < length:
            self.more()
        body, self.rest = self.rest[:length], self.rest[length:]
        return status, body

    def close(self):
        self.socket.close()


class Pair:
    def __init__(self, first, second):
        """Addresses."""
        self.lines = (Line(first), Line(second))
        self.other = {}  # id of the first: id of the second
        self.back = {}
        self.cursors = {}
        self.calls = 0
        self.log = collections.deque(maxlen=12)  # the last calls, for who reads a difference

    def close(self):
        for line in self.lines:
            line.close()

    def translate(self, text):
        return UUID.sub(lambda found: self.other.get(found.group(), found.group()), text)

    def ask_one(self, side, method, path, body=None):
        """One of them, as it understands it."""
        text = None if body is None else json.dumps(body)
        if side == 1:
            path, text = self.translate(path), text and self.translate(text)
        self.lines[side].send(method, path, None if text is None else text.encode())
        status, data = self.lines[side].receive()
        return status, parsed(data)

    def send(self, method, path, body=None, cursor=None):
        """(status, bytes) of both; nothing is compared yet. cursor: one of the first server's."""
        text = None if body is None else json.dumps(body)
        joint = "&" if "?" in path else "?"
        ends = ("", "") if cursor is None else (f"{joint}cursor={cursor}", f"{joint}cursor={self.cursors.get(cursor, cursor)}")
        self.calls += 1
        self.log.append(f"{method} {path}{ends[0]} {text or ''}")
        self.lines[1].send(method, self.translate(path) + ends[1],
                           None if text is None else self.translate(text).encode())
        self.lines[0].send(method, path + ends[0], None if text is None else text.encode())
        return [line.receive() for line in self.lines]

    def call(self, method, path, body=None, cursor=None, again=None):
        """The answer of the first: (status, body). again(first, second): whether a difference may pass by itself, such
        as a claim that one of them serves a moment later."""
        (status, data), (other_status, other) = self.send(method, path, body, cursor)
        first, second = parsed(data), None
        same = status == other_status and "/events" not in path and self.are_twins(data, other)
        if not same:
            second = parsed(other)
            if again:
                (status, first), (other_status, second) = again([(status, first), (other_status, second)])
        found = [] if same else self.differences(path, (status, first), (other_status, second))
        self.check(method, path, body, status, first, found)
        return status, first

    def are_twins(self, a, b):
        """Whether they are the same byte for byte but for ids, times, cursors and what each measures: False decides
        nothing. This says what same() says, without reading them."""
        left, right = VARIES.split(a), VARIES.split(b)
        if left[::2] != right[::2]:
            return False
        for x, y in zip(left[1::2], right[1::2]):
            if x[-2:] == b'Z"' == y[-2:]:
                continue
            if x[9:10] == b"-" == y[9:10] and len(x) == len(y) in ID_LENGTHS:
                one, other = x[1:37].decode(), y[1:37].decode()
                if not (self.same_id(one, other) if len(x) == 38 else self.other.get(one, one) == other):
                    return False
                continue
            (name, _, value), (other_name, _, other) = x.partition(b":"), y.partition(b":")
            if name != other_name or not value or not other:
                return False
            if name == b'"next_cursor"':
                self.cursors[value[1:-1].decode()] = other[1:-1].decode()
        return True

    def differences(self, path, one, other):
        (status, first), (other_status, second), found = one, other, []
        if "/events" in path and status == other_status == 200:  # their ids are made of those of tasks and executions
            for event in [*first["items"], *second["items"]]:
                event["id"] = NO_ID
        if status != other_status:
            found.append(f"status {status}, {other_status}: {short(first)} | {short(second)}")
        else:
            self.same(first, second, "", found, "")
        return found

    def check(self, method, path, body, status, first, found):
        """Raises what was found, and what the document says."""
        problems = openapi_check.check(method, path, status, a_part_of(first))
        if 200 <= status < 300:
            data = None if body is None else json.dumps(body).encode()
            problems += openapi_check.check_request(method, path, data, first)
        if found or problems:
            raise Difference("\n".join([f"{method} {path} {short(body)}", *found[:DIFFERENCES_MAX],
                                        *[f"document: {p}" for p in problems[:DIFFERENCES_MAX]],
                                        "the calls before, newest last:", *self.log]))

    # ---- the same? ----

    def same(self, a, b, where, found, name):
        """Fills found with what differs."""
        if len(found) >= DIFFERENCES_MAX:
            return
        if isinstance(a, dict) and isinstance(b, dict):
            if a.keys() != b.keys() and not (self.keys_are_ids(a) and self.keys_are_ids(b)):
                found.append(f"{where}: members {sorted(a.keys() ^ b.keys())} are only in one of them")
                return
            if a.keys() != b.keys():
                b = {self.back.get(key, key): value for key, value in b.items()}
            for key, value in a.items():
                if value != b.get(key) or isinstance(value, (dict, list)) or key == "id":
                    self.same(value, b.get(key), f"{where}/{key}", found, key)
        elif isinstance(a, list) and isinstance(b, list):
            if len(a) != len(b):
                found.append(f"{where}: {len(a)} and {len(b)} elements: {short(a)} | {short(b)}")
            for index, (left, right) in enumerate(zip(a, b)):
                self.same(left, right, f"{where}/{index}", found, name)
        elif isinstance(a, str) and isinstance(b, str):
            self.same_text(a, b, where, found, name)
        elif type(a) is not type(b) or (a != b and name not in MEASURED):
            if not (name in MEASURED and isinstance(a, (int, float)) and isinstance(b, (int, float))):
                found.append(f"{where}: {short(a)} | {short(b)}")

    def keys_are_ids(self, value):
        return bool(value) and all(UUID.fullmatch(key) for key in value)

    def same_text(self, a, b, where, found, name):
        if UUID.fullmatch(a) and UUID.fullmatch(b):
            if not self.same_id(a, b):
                found.append(f"{where}: {a} stood for {self.other.get(a)}, here {b}, which stood for {self.back.get(b)}")
        elif name == "next_cursor":
            self.cursors[a] = b
        elif name not in OPAQUE and a != b and self.plain(a) != self.plain(b, True):
            found.append(f"{where}: {short(a)} | {short(b)}")

    def same_id(self, a, b):
        if a.startswith(BUILT_IN) or b.startswith(BUILT_IN):
            return a == b
        if a not in self.other and b not in self.back:
            self.other[a], self.back[b] = b, a
        return self.other.get(a) == b

    def plain(self, text, second=False):
        """Without times; the ids of the second as the first has them."""
        if HASH.match(text):
            return "a hash"
        text = TIME.sub("a time", text)
        if second:
            text = UUID.sub(lambda found: self.back.get(found.group(), found.group()), text)
        return SPAN.sub("a while", text)


def a_part_of(answer):
    """Of a long list the first and the last: they are all made in the same way."""
    if not isinstance(answer, dict) or len(answer.get("items", ())) <= 2 * ITEMS_CHECKED:
        return answer
    return {**answer, "items": answer["items"][:ITEMS_CHECKED] + answer["items"][-ITEMS_CHECKED:]}


def parsed(data):
    return json.loads(data.decode()) if data else None


def short(value):
    text = json.dumps(value)
    return text if len(text) <= 400 else text[:397] + "..."
