"""gRPC services that are broken or hostile (D10, F-G8, F-G9): each call ends as the page says, in its
time and with bounded memory, and only what the service did not begin is sent again."""
import asyncio
import struct
import unittest

from grpc_peer import descriptor
from h2_peer import (END_HEADERS, END_STREAM, GOAWAY, H2Target, RST, SETTINGS, WINDOW, data, frame, head,
                     message, start, trailers, whole)
from harness import wait_until
from test_services import ServiceTest

CANCEL, REFUSED = 8, 7


def varint(value):
    out = b""
    while value > 127:
        value, out = value >> 7, out + bytes([value & 127 | 128])
    return out + bytes([value])


def files_of(data):
    """Of a FileDescriptorSet: number, name and bytes of each file."""
    at = number = 0
    while at < len(data):
        at, length, shift = at + 1, 0, 0
        while True:
            byte, at = data[at], at + 1
            length, shift = length | (byte & 127) << shift, shift + 7
            if byte < 128:
                break
        file, at, number = data[at:at + length], at + length, number + 1
        yield number, file[2:2 + file[1]], file


class H2Test(ServiceTest):
    limits = "    timeout: 20s\n    breaker: {failures: 0}\n"

    def new_target(self):
        return H2Target(self.answer)

    def configuration(self):
        self.service = (f"    package: perdura.test.Peer\n    descriptor: {descriptor(self.folder)}\n"
                        + self.limits)
        return super().configuration()

    def told(self, status, code, **fields):
        task = self.outcome("Do", **fields)
        self.assertEqual((task["status"], task["error_details"]["code"]), (status, code),
                         task["error"])
        return task


class AnswerTest(H2Test):
    """What is wrong with each answer is named by the payload's place in the list."""

    async def answer(self, number, stream, writer):
        await self.answers[number - 1](stream, writer)
        return True

    def send(self, *parts):
        async def write(stream, writer):
            for part in parts:
                writer.write(part(stream) if callable(part) else part)
        return write

    def test_answers_of_all_kinds_end_as_they_should(self):
        def only_trailers(stream):
            return head(stream, (":status", "200"), ("content-type", "application/grpc"),
                        ("grpc-status", "9"), ("grpc-message", "not%20now%21 %zz"),
                        flags=END_HEADERS | END_STREAM)

        def status(number, content_type="text/html"):
            return lambda stream: head(stream, (":status", str(number)), (
                "content-type", content_type), flags=END_HEADERS | END_STREAM)

        async def byte_by_byte(stream, writer):
            for byte in whole(stream):
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0.001)

        async def endless(stream, writer):
            writer.write(start(stream) + data(stream, b"\0" + struct.pack(">I", 2 ** 31)))

        async def flood(stream, writer):  # no announced length to go by: a body that is not gRPC
            writer.write(start(stream, "text/plain"))
            for _ in range(64):
                writer.write(data(stream, b"x" * 16000))

        no_message = [start, trailers]
        cases = [
            ("completed", None, self.send(whole)),
            ("completed", None, byte_by_byte),
            ("failed", "service_refused", self.send(only_trailers)),
            ("failed", "invalid_answer", self.send(start, lambda s: data(s, message(b"\x0a\x7fx")), trailers)),
            ("failed", "invalid_answer", self.send(start, lambda s: data(s, message(b"\xff")), trailers)),
            ("failed", "invalid_answer", self.send(*no_message)),
            ("failed", "invalid_answer", self.send(start, lambda s: data(s, message(b"") * 2), trailers)),
            ("failed", "invalid_answer", self.send(start, lambda s: data(s, message(b"", 1)), trailers)),
            ("failed", "invalid_answer", self.send(start, lambda s: data(s, message(b"")[:3]), trailers)),
            ("failed", "too_large", endless),
            ("dead_letter", "service_error", flood),
            ("dead_letter", "service_unavailable", self.send(status(503))),
            ("failed", "service_refused", self.send(status(404))),
            ("failed", "service_refused", self.send(status(401))),
            ("dead_letter", "service_error", self.send(status(200))),
            ("dead_letter", "service_error", self.send(status(302))),
            ("dead_letter", "service_error", self.send(
                start, lambda s: trailers(s, "x"))),
            ("dead_letter", "service_unavailable", self.send(lambda s: head(
                s, (":status", "200"), ("content-type", "application/grpc"), ("grpc-status", "14"),
                flags=END_HEADERS | END_STREAM))),
            ("dead_letter", "invalid_answer", self.send(lambda s: head(s, ("x-strange", "1")))),
            ("dead_letter", "service_error", self.send(lambda s: head(
                s, (":status", "200"), *[(f"x-{i}", "y" * 100) for i in range(100)],
                flags=END_HEADERS | END_STREAM))),
            ("dead_letter", "connection_lost", self.send(
                lambda s: frame(RST, 0, s, struct.pack(">I", CANCEL)))),
            ("completed", None, self.send(whole)),
        ]
        self.answers = [case[2] for case in cases]
        for i, (status, code, _) in enumerate(cases):
            task = self.outcome("Do")
            found = (task["error_details"] or {}).get("code")
            self.assertEqual((task["status"], found), (status, code), f"{i}: {task['error']}")
            if i == 2:
                self.assertIn("FAILED_PRECONDITION: not now! %zz", task["error"])
        self.assertEqual(self.target.requests, len(cases))
        self.assertEqual(self.target.connections, 2)  # one for the look at the start


class RefusedTest(H2Test):
    async def answer(self, number, stream, writer):
        if number <= 3:
            writer.write(frame(RST, 0, stream, struct.pack(">I", REFUSED)))
        else:
            writer.write(whole(stream))
        return True

    def test_a_refused_stream_is_sent_again_at_once(self):
        self.assertEqual(self.outcome("Do")["result"], {"did": "ok"})
        self.assertEqual(self.target.requests, 4)


class AlwaysRefusedTest(H2Test):
    async def answer(self, number, stream, writer):
        writer.write(frame(RST, 0, stream, struct.pack(">I", REFUSED)))
        return True

    def test_a_stream_that_is_always_refused_is_not_sent_for_ever(self):
        self.told("dead_letter", "connection_lost")
        self.assertLessEqual(self.target.requests, 6)


class GoawayTest(H2Test):
    """The first connection takes one of two calls and says so; then it ends."""
    answers_first = True

    def setUp(self):
        self.streams = []
        super().setUp()

    async def answer(self, number, stream, writer):
        self.streams.append(stream)
        if number < 2:
            return True
        if number == 2:
            first, second = self.streams
            writer.write(frame(GOAWAY, 0, 0, struct.pack(">II", first, 0)))
            if self.answers_first:
                writer.write(whole(first, b"\x0a\x05first"))
                return True
            return None
        writer.write(whole(stream, b"\x0a\x06second"))
        return True

    def both(self):
        tasks = [self.run_job("Do") for _ in range(2)]
        return [self.ended(task["id"]) for task in tasks]

    def test_calls_beyond_the_last_stream_are_sent_again_and_others_end(self):
        self.assertEqual(sorted(task["result"]["did"] for task in self.both()),
                         ["first", "second"])
        self.assertEqual(self.target.requests, 3)


class CutGoawayTest(GoawayTest):
    answers_first = False

    def test_calls_beyond_the_last_stream_are_sent_again_and_others_end(self):
        """The one that the service took is not repeated blindly: that is for the task's policy."""
        ended = self.both()
        self.assertEqual(sorted(task["status"] for task in ended), ["completed", "dead_letter"])
        lost = next(task for task in ended if task["status"] == "dead_letter")
        self.assertEqual(lost["error_details"]["code"], "connection_lost")
        self.assertEqual(self.target.requests, 3)


class SilentTest(H2Test):
    limits = "    timeout: 500ms\n    breaker: {failures: 0}\n"

    async def answer(self, number, stream, writer):
        if self.speaks:
            writer.write(whole(stream))
        return True

    def test_no_answer_is_a_timeout_that_the_service_is_told(self):
        self.speaks = False
        self.told("dead_letter", "timeout")
        wait_until(lambda: self.target.resets, what="the reset")
        self.assertEqual(self.target.resets[0][1], CANCEL)
        self.speaks = True
        self.assertEqual(self.outcome("Do")["status"], "completed")


class DeafTest(H2Test):
    """It takes connections and never says anything."""
    limits = SilentTest.limits

    def new_target(self):
        class Deaf(H2Target):
            async def serve(self, reader, writer):
                await reader.read()
        return Deaf(None)

    def test_a_service_that_says_nothing_at_all_is_a_timeout(self):
        for _ in range(2):
            self.told("dead_letter", "timeout")


class NotH2Test(H2Test):
    def new_target(self):
        class Http1(H2Target):
            async def serve(self, reader, writer):
                await reader.read(100)
                writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
                writer.close()
        return Http1(None)

    def test_another_protocol_is_named(self):
        task = self.told("dead_letter", "invalid_answer")
        self.assertIn("does not speak HTTP/2", task["error"])


class FewStreamsTest(H2Test):
    limits = "    timeout: 60s\n    concurrency: 8\n"

    def new_target(self):
        target = H2Target(self.answer)
        target.settings = struct.pack(">HI", 3, 1)  # one stream at a time
        self.open = self.most = 0
        return target

    async def answer(self, number, stream, writer):
        at_once = writer.at_once = getattr(writer, "at_once", 0) + 1
        self.most = max(self.most, at_once)

        async def later():
            await asyncio.sleep(0.02)
            writer.at_once -= 1
            writer.write(whole(stream))
        asyncio.ensure_future(later())
        return True

    def test_no_connection_gets_more_streams_than_it_takes(self):
        tasks = [self.enqueue("call:x") for _ in range(40)]
        for task in tasks:
            self.assertEqual(self.ended(task["id"])["status"], "completed")
        self.assertEqual(self.target.requests, 40)
        self.assertLessEqual(self.target.connections, 10)


class SlowWindowTest(H2Test):
    """The rest of a request larger than the service's window is sent as the window opens."""

    def new_target(self):
        class Slow(H2Target):
            settings = struct.pack(">HI", 4, 1000)

            async def read_frames(self, reader, writer):
                async def open_window():
                    while True:
                        await asyncio.sleep(0.005)
                        for stream in (0, 1):
                            writer.write(frame(WINDOW, 0, stream, struct.pack(">I", 5000)))
                task = asyncio.ensure_future(open_window())
                try:
                    await super().read_frames(reader, writer)
                finally:
                    task.cancel()
        return Slow(self.answer)

    async def answer(self, number, stream, writer):
        writer.write(whole(stream))
        return True

    def test_flow_control_is_kept(self):
        self.assertEqual(self.outcome("Do", payload={"id": "x" * 200000})["result"], {"did": "ok"})


class FilesTest(H2Test):
    """Reflection that gives one file at a time, as some languages do, then calls."""

    def configuration(self):
        self.files = {}
        with open(descriptor(self.folder), "rb") as handle:
            for _, name, file in files_of(handle.read()):
                self.files[name] = file
        return ServiceTest.configuration(self)

    service = "    timeout: 20s\n    package: perdura.test.Peer\n    breaker: {failures: 0}\n"

    async def answer(self, number, stream, writer):
        body = self.target.bodies[stream][5:]
        if b"perdura.test.Peer" in body:
            writer.write(whole(stream, self.reflected(b"peer.proto")))
        elif b".proto" in body:
            writer.write(whole(stream, self.reflected(body[2:])))
        else:
            writer.write(whole(stream))
        return True

    def reflected(self, name):
        file = self.files[name]
        inner = b"\x0a" + varint(len(file)) + file
        return b"\x22" + varint(len(inner)) + inner

    def test_files_that_others_need_are_asked_for(self):
        task = self.outcome("Do", payload={"part": {"name": "x"}})
        self.assertEqual((task["status"], task["result"]), ("completed", {"did": "ok"}), task["error"])
        self.assertEqual(self.target.requests, 3)  # two files, then the call
        self.assertEqual(self.outcome("Do")["status"], "completed")
        self.assertEqual(self.target.requests, 4)


class WrongFilesTest(FilesTest):
    """Reflection that never gives what it was asked for, or gives nonsense."""

    def reflected(self, name):
        return (super().reflected(b"peer.proto"), b"\x22\x04\x0a\x02\xff\xff",
                b"\xff", b"", b"\x3a\x02\x08\x05")[self.case]

    def test_files_that_others_need_are_asked_for(self):
        for self.case in range(5):
            task = self.outcome("Do")
            self.assertEqual((task["status"], task["error_details"]["code"]),
                             ("failed", "invalid_request") if self.case > 2 else
                             ("dead_letter", "not_called"), task["error"])
            self.assertIn("reflection", task["error"])
        self.assertLessEqual(self.target.requests, 6)


class FloodTest(H2Test):
    """Settings and pings without end: other services are called all the same."""

    def new_target(self):
        class Flood(H2Target):
            async def serve(self, reader, writer):
                try:
                    writer.write(frame(SETTINGS, 0, 0))
                    while True:
                        writer.write(frame(6, 0, 0, b"12345678") * 100 + frame(SETTINGS, 0, 0) * 100)
                        await writer.drain()
                        await asyncio.sleep(0)
                except OSError:
                    pass
                finally:
                    writer.close()
        return Flood(None)

    limits = "    timeout: 3s\n    breaker: {failures: 0}\n"

    def configuration(self):
        self.other = H2Target(self.well)
        self.addCleanup(self.other.close)
        lines = super().configuration().split("handlers:")
        entry = lines[0].split("\n", 1)[1].replace("name: s\n", "name: t\n")
        return lines[0] + entry.replace(self.target.url, self.other.url) + "handlers:" + lines[1]

    async def well(self, number, stream, writer):
        writer.write(whole(stream))
        return True

    def test_a_flood_is_an_invalid_answer_and_harms_nobody_else(self):
        flooded = self.run_job("Do")
        for _ in range(3):
            self.assertEqual(self.outcome("Do", service="t")["status"], "completed")
        self.assertEqual(self.ended(flooded["id"])["status"], "dead_letter")


if __name__ == "__main__":
    unittest.main()
