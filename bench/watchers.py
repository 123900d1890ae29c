#!/usr/bin/env python3
"""Holds open what so many browsers with the home page of the dashboard hold open, without their drawing. Used
by bench/dashboard.py.

    python3 bench/watchers.py HOST:PORT COUNT

That is for each a stream with figures every second, and the requests that the page repeats: counts, workers and
what runs every 5 s, history every 10 s, what comes next every minute. Says "watching" once every stream has begun
and every request was answered once, continues until stdin ends, then prints a line of JSON: how
many streams are still open, and what they and the requests brought."""
import asyncio
import json
import sys

STREAM = "/v1/stream?stats=only"
REQUESTS = (("/v1/stats", 5), ("/v1/workers?limit=1000", 5), ("/v1/stats/history?window=15m", 10),
            ("/v1/tasks?status=running&order=oldest&limit=5", 5), ("/v1/forecast?limit=200", 60))  # seconds
READ_BYTES = 65536
SECONDS_MAX = 600


class Totals:
    def __init__(self):
        self.open, self.events, self.stream_bytes = 0, 0, 0
        self.replies, self.reply_bytes = 0, 0


def name_of(address):
    return f"{address[0]}:{address[1]}"


async def ask(reader, writer, host, path):
    """One request on a connection that stays; the bytes of its body."""
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    await writer.drain()
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    if not head.startswith("http/1.1 200"):
        raise RuntimeError(f"{path}: {head.splitlines()[0]}")
    length = int(head.split("content-length:")[1].split("\r\n")[0])
    return len(await reader.readexactly(length))


def count_reply(totals, length):
    totals.reply_bytes += length
    totals.replies += 1


async def poll(address, offset, begun, totals):
    """The requests of one page, each at its own times, spread so that not all pages ask at once."""
    reader, writer = await asyncio.open_connection(*address)
    loop = asyncio.get_running_loop()
    due = []
    for path, every in REQUESTS:
        count_reply(totals, await ask(reader, writer, name_of(address), path))
        due.append([loop.time() + every * offset, path, every])
    begun.release()
    while True:
        due.sort()
        await asyncio.sleep(max(0, due[0][0] - loop.time()))
        count_reply(totals, await ask(reader, writer, name_of(address), due[0][1]))
        due[0][0] += due[0][2]


async def follow(address, begun, totals):
    reader, writer = await asyncio.open_connection(*address, limit=1 << 20)
    writer.write(f"GET {STREAM} HTTP/1.1\r\nHost: {name_of(address)}\r\n\r\n".encode())
    await writer.drain()
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"{STREAM}: {head[:80]!r}")
    totals.open += 1
    begun.release()
    while data := await reader.read(READ_BYTES):
        totals.stream_bytes += len(data)
        totals.events += data.count(b"event: ")
    totals.open -= 1


async def all_begun(begun, count):
    for _ in range(count):
        await begun.acquire()


async def main():
    host, port = sys.argv[1].rsplit(":", 1)
    address, count = (host, int(port)), int(sys.argv[2])
    totals, begun = Totals(), asyncio.Semaphore(0)
    work = [asyncio.create_task(one) for at in range(count) for one in (
        follow(address, begun, totals), poll(address, (at + 1) / count, begun, totals))]

    async def until(event):
        """The event, or the end of the program when one of the connections fails before it."""
        done, _ = await asyncio.wait([event, *work], timeout=SECONDS_MAX,
                                     return_when=asyncio.FIRST_COMPLETED)
        if event not in done:
            failed = [str(one.exception()) for one in work if one.done()]
            sys.exit(f"watchers: {failed[0] if failed else 'nothing happens'}")

    await until(asyncio.create_task(all_begun(begun, len(work))))
    print("watching", flush=True)
    await until(asyncio.get_running_loop().run_in_executor(None, sys.stdin.read))
    print(json.dumps(vars(totals)), flush=True)
    for one in work:
        one.cancel()
    await asyncio.wait(work)


if __name__ == "__main__":
    asyncio.run(main())
