#!/usr/bin/env python3
"""Holds open what so many browsers with the dashboard hold open, without their drawing: a stream each, and
the requests that its page repeats. Used by bench/dashboard.py.

    python3 bench/watchers.py HOST:PORT COUNT overview|tasks

overview is the home page: figures every second by the stream, counts, workers and what runs every 5 s,
history every 10 s. tasks is the list of tasks: every change of every task by the stream, counts every 3 s. Says "watching" once
every stream has begun and every request was answered once, goes on until stdin ends, then prints a line of JSON: how
many streams are still open, what they and the requests brought."""
import asyncio
import json
import sys

# path of the stream, then (path, seconds) of the requests
PAGES = {"overview": ("/v1/stream?stats=only", (("/v1/stats", 5), ("/v1/workers?limit=1000", 5),
                                                ("/v1/tasks?status=running&order=oldest&limit=5", 5),
                                                ("/v1/stats/history?window=15m", 10),
                                                ("/v1/forecast?limit=5", 60))),
         "tasks": ("/v1/stream", (("/v1/stats", 3),))}
READ_BYTES = 65536
BEGIN_SECONDS_MAX = 60


class Totals:
    def __init__(self):
        self.open, self.events, self.gaps, self.stream_bytes = 0, 0, 0, 0
        self.replies, self.reply_bytes = 0, 0


async def ask(reader, writer, path):
    """One request on a connection that stays; the bytes of its body."""
    writer.write(f"GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n".encode())
    await writer.drain()
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    if not head.startswith("http/1.1 200"):
        raise RuntimeError(f"{path}: {head.splitlines()[0]}")
    length = int(head.split("content-length:")[1].split("\r\n")[0])
    return len(await reader.readexactly(length))


async def poll(address, requests, offset, begun, totals):
    """The requests of one page, each at its own times, spread so that not all pages ask at once."""
    reader, writer = await asyncio.open_connection(*address)
    loop = asyncio.get_running_loop()
    due = []
    for path, every in requests:
        totals.reply_bytes += await ask(reader, writer, path)
        totals.replies += 1
        due.append([loop.time() + every * offset, path, every])
    begun.release()
    while True:
        due.sort()
        await asyncio.sleep(max(0, due[0][0] - loop.time()))
        totals.reply_bytes += await ask(reader, writer, due[0][1])
        totals.replies += 1
        due[0][0] += due[0][2]


async def follow(address, path, begun, totals):
    reader, writer = await asyncio.open_connection(*address, limit=1 << 20)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: bench\r\nAccept: text/event-stream\r\n\r\n".encode())
    await writer.drain()
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"{path}: {head[:80]!r}")
    totals.open += 1
    begun.release()
    while data := await reader.read(READ_BYTES):
        totals.stream_bytes += len(data)
        totals.events += data.count(b"event: ")
        totals.gaps += data.count(b"event: gap")
    totals.open -= 1


async def main():
    host, port = sys.argv[1].rsplit(":", 1)
    count, (stream, requests) = int(sys.argv[2]), PAGES[sys.argv[3]]
    totals, begun = Totals(), asyncio.Semaphore(0)
    tasks = [asyncio.create_task(work) for at in range(count) for work in (
        follow((host, int(port)), stream, begun, totals),
        poll((host, int(port)), requests, (at + 1) / count, begun, totals))]
    whole = asyncio.gather(*tasks)

    async def all_begun():
        for _ in tasks:
            await begun.acquire()

    done, _ = await asyncio.wait([whole, asyncio.create_task(all_begun())], timeout=BEGIN_SECONDS_MAX,
                                 return_when=asyncio.FIRST_COMPLETED)
    if whole in done or not done:
        sys.exit(f"watchers: {whole.exception() if whole in done else 'the streams did not begin'}")
    print("watching", flush=True)
    stdin_ends = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    done, _ = await asyncio.wait([whole, stdin_ends], return_when=asyncio.FIRST_COMPLETED)
    if whole in done:
        sys.exit(f"watchers: {whole.exception()}")
    print(json.dumps(vars(totals)), flush=True)
    whole.cancel()


if __name__ == "__main__":
    asyncio.run(main())
