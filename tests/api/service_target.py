"""A service for tests: an HTTP server on loopback that answers as the test wants, well or badly, to any
number of connections at once. Standard library only."""
import asyncio
import json
import threading


class Call:
    def __init__(self, method, path, headers, body):
        self.method, self.path, self.headers, self.body = method, path, headers, body

    @property
    def json(self):
        return json.loads(self.body)


def reply(status=200, body=b"{}", content_type="application/json", **headers):
    """The bytes of an answer."""
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}"]
    if content_type:
        lines.append(f"Content-Type: {content_type}")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Target:
    """answer: a function of a Call that gives bytes, or a coroutine function of a Call and the
    writer, which ends the connection when it returns None."""

    def __init__(self, answer=lambda call: reply(), tls=None, port=0, host="127.0.0.1"):
        self.answer, self.tls, self.port, self.host = answer, tls, port, host
        self.calls = []
        self.lock = threading.Lock()
        self.under_way = self.most = 0
        self.loop = asyncio.new_event_loop()
        ready = threading.Event()
        self.thread = threading.Thread(target=self.run, args=(ready,), daemon=True)
        self.thread.start()
        ready.wait(60)

    def run(self, ready):
        asyncio.set_event_loop(self.loop)
        start = asyncio.start_server(self.serve, self.host, self.port, ssl=self.tls, backlog=4096)
        self.server = self.loop.run_until_complete(start)
        self.port = self.server.sockets[0].getsockname()[1]
        ready.set()
        self.loop.run_forever()

    def close(self):
        async def end():
            self.server.close()
            for task in asyncio.all_tasks():
                if task is not asyncio.current_task():
                    task.cancel()
        if self.thread.is_alive():
            asyncio.run_coroutine_threadsafe(end(), self.loop).result(60)
            self.loop.call_soon_threadsafe(self.loop.stop)
            self.thread.join(60)

    @property
    def url(self):
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def seen(self, path=None):
        with self.lock:
            return [call for call in self.calls if path is None or call.path == path]

    async def read_call(self, reader):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ")
        headers = {k.lower(): v.strip() for k, _, v in (x.partition(":") for x in head[1:] if x)}
        return Call(method, path, headers,
                    await reader.readexactly(int(headers.get("content-length", 0))))

    async def serve(self, reader, writer):
        writer.peer = reader
        try:
            while True:
                call = await self.read_call(reader)
                with self.lock:
                    self.calls.append(call)
                    self.under_way += 1
                    self.most = max(self.most, self.under_way)
                try:
                    if asyncio.iscoroutinefunction(self.answer):
                        data = await self.answer(call, writer)
                    else:
                        data = self.answer(call)
                finally:
                    with self.lock:
                        self.under_way -= 1
                if data is None:
                    break
                writer.write(data)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError, RuntimeError):
            pass
        finally:
            writer.close()
