"""Long reads hold up no others, and end when no client waits for them (F-H20)."""
import socket
import time
import unittest

import harness
from harness import ApiTest

LINES = 9000
MESSAGE = "x" * 4000


class LongReads(ApiTest):
    def setUp(self):
        super().setUp()
        self.register(queues=["q"])
        self.task_id = self.enqueue(queue="q")["id"]
        task = self.claim()[0]
        for start in range(0, LINES, 900):
            self.report("worker-1", *[self.element(task, "log", level="INFO", message=(
                "needle" if i % 3000 == 2999 else MESSAGE)) for i in range(start, start + 900)])
        self.complete("worker-1", task)

    def search(self, **parameters):
        """All lines found, and how many requests that took."""
        found, cursor, requests = [], None, 0
        while requests == 0 or cursor:
            more = f"&cursor={cursor}" if cursor else ""
            page = self.expect(200, "GET", f"/v1/tasks/{self.task_id}/logs?"
                               + "&".join(f"{k}={v}" for k, v in parameters.items()) + more)
            found += page["items"]
            cursor, requests = page["next_cursor"], requests + 1
        return [line["seq"] for line in found], requests

    def test_a_search_finds_all_whatever_it_takes(self):
        for parameters in ({"q": "needle"}, {"q": "needle", "limit": 1},
                           {"q": "needle", "level": "INFO"}):
            self.assertEqual(self.search(**parameters)[0], [3000, 6000, 9000])
        self.assertEqual(self.search(level="ERROR")[0], [])
        self.assertEqual(self.search(q="nothing")[0], [])

    def test_short_reads_do_not_wait_behind_searches_of_clients_that_left(self):
        def seconds(action):
            start = time.monotonic()
            action()
            return time.monotonic() - start
        path = f"/v1/tasks/{self.task_id}/logs?q=nothing"
        alone = seconds(lambda: self.search(q="nothing"))
        request = (f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.server.address[1]}\r\n\r\n")
        crowd = []
        for _ in range(200):
            sock = socket.create_connection(self.server.address, timeout=harness.DEADLINE_S)
            sock.sendall(request.encode())
            crowd.append(sock)
        short = seconds(lambda: self.task(self.task_id))
        for sock in crowd:
            sock.close()
        behind = seconds(lambda: self.search(q="nothing"))
        # In a line of 200 behind two threads a read would wait 100 times as long as one takes.
        self.assertLess(short, 50 * alone + 1)
        self.assertLess(behind, 50 * alone + 1)


if __name__ == "__main__":
    unittest.main()
