"""A gRPC service for tests that speaks HTTP/2 frame by frame, well or badly, as the test wants.
Standard library only: it reads frames and never their headers' compression."""
import asyncio
import struct

from service_target import Target

DATA, HEADERS, RST, SETTINGS, PING, GOAWAY, WINDOW = 0, 1, 3, 4, 6, 7, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
MAGIC = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags, stream, body=b""):
    return struct.pack(">I", len(body))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + body


def pack(text):
    assert len(text) < 127
    return bytes([len(text)]) + text.encode()


def head(stream, *pairs, flags=END_HEADERS):
    """Names that are not in the table, written out: valid and simple."""
    return frame(HEADERS, flags, stream, b"".join(b"\0" + pack(k) + pack(v) for k, v in pairs))


def start(stream, content_type="application/grpc"):
    return head(stream, (":status", "200"), ("content-type", content_type))


def message(body, compressed=0):
    return bytes([compressed]) + struct.pack(">I", len(body)) + body


def data(stream, body, flags=0):
    return frame(DATA, flags, stream, body)


def trailers(stream, status=0, *more):
    return head(stream, ("grpc-status", str(status)), *more, flags=END_HEADERS | END_STREAM)


def whole(stream, body=b"\x0a\x02ok"):
    return start(stream) + data(stream, message(body)) + trailers(stream)


class H2Target(Target):
    """answer: a coroutine function of this target, the number of the request, its stream and the
    writer. None ends the connection."""
    settings = b""

    def __init__(self, answer, port=0):
        self.requests = 0
        self.connections = 0
        self.resets = []
        self.bodies = {}  # of the last request of each stream
        super().__init__(answer, None, port)

    @property
    def url(self):
        return f"grpc://127.0.0.1:{self.port}"

    async def serve(self, reader, writer):
        self.connections += 1
        try:
            if await reader.readexactly(len(MAGIC)) != MAGIC:
                return
            writer.write(frame(SETTINGS, 0, 0, self.settings))
            await self.read_frames(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError, RuntimeError):
            pass
        finally:
            try:
                writer.close()
            except RuntimeError:
                pass

    async def read_frames(self, reader, writer):
        while True:
            first = await reader.readexactly(9)
            kind, flags = first[3], first[4]
            stream, = struct.unpack(">I", first[5:])
            body = await reader.readexactly(int.from_bytes(first[:3], "big"))
            if kind == SETTINGS and not flags & ACK:
                writer.write(frame(SETTINGS, ACK, 0))
            elif kind == PING and not flags & ACK:
                writer.write(frame(PING, ACK, 0, body))
            elif kind == RST:
                self.resets.append((stream, struct.unpack(">I", body)[0]))
            if kind in (DATA, HEADERS):
                self.bodies[stream] = (b"" if kind == HEADERS else self.bodies[stream]) + (
                    body if kind == DATA else b"")
            if kind in (DATA, HEADERS) and flags & END_STREAM:
                self.requests += 1
                if not await self.answer(self.requests, stream, writer):
                    return
            await writer.drain()
