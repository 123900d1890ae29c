"""A node on PostgreSQL that is killed while it takes in what programs committed with SQL (docs/sql.md): whatever a
commit said is done once. Used by test_intake_kills.py, and by tests/campaign/points.py for the points intake.*, which
a store in a file never passes."""
import collections
import http.client
import json
import pathlib
import sys

import psycopg2

import crash_harness
import harness

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "postgres"))
from server import Postgres  # noqa: E402

SCHEMA = "killed"
GONE = (OSError, http.client.HTTPException, KeyError)


class IntakeKills:
    """A database, a node, and what was committed."""

    def __init__(self, folder):
        self.postgres = Postgres().__enter__()
        self.server = crash_harness.CrashServer(folder)
        self.server.store = f"{self.postgres.url}?options=-csearch_path%3D{SCHEMA}"
        self.committed = collections.defaultdict(set)  # status -> ids
        self.connection = psycopg2.connect(self.postgres.url)
        with self.connection, self.connection.cursor() as cursor:
            cursor.execute(f"CREATE SCHEMA {SCHEMA}; CREATE TABLE effects (task uuid)")
        self.start()

    def close(self):
        self.server.kill()
        self.server.close()
        self.connection.close()
        self.postgres.__exit__()

    def start(self, fault=None):
        self.server.start("--workers", "0", "--log-level", "warn", fault=fault, lease="30s")

    def rows(self, text, *values):
        """In a transaction of its own."""
        with self.connection, self.connection.cursor() as cursor:
            cursor.execute(text.replace("@", SCHEMA + "."), values)
            return cursor.fetchall() if cursor.description else []

    def call(self, path, body):
        connection = http.client.HTTPConnection(*self.server.address, timeout=60)
        try:
            connection.request("POST", path, json.dumps(body))
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def lives(self):
        return self.server.process.poll() is None

    def waits(self):
        return self.rows("SELECT 1 FROM @intake_rows UNION ALL SELECT 1 FROM @intake_reports LIMIT 1")

    def taken_in(self):
        harness.wait_until(lambda: not self.lives() or not self.waits(), what="the node to take all in, or to die")

    def lap(self):
        """Tasks of a program; those of one queue are completed with SQL by who holds them, the others cancelled."""
        ids = [row[0] for row in self.rows("SELECT @enqueue_many('t', '{1,2,3}')")]
        self.committed["pending"].update(ids)
        gone = [row[0] for row in self.rows("SELECT @enqueue_many('t', '{4,5}', '{\"queue\": \"later\"}')")]
        self.committed["pending"].update(gone)
        self.taken_in()
        try:
            self.call("/v1/workers", {"id": "w", "hostname": "h", "pool_size": 9, "queues": ["default"]})
            held = self.call("/v1/workers/w:claim", {"max": 9, "wait_ms": 0})["tasks"]
        except GONE:
            held = []
        for task in held:
            self.rows("WITH said AS (SELECT @complete(%s, %s)) INSERT INTO effects SELECT %s FROM said",
                      task["id"], task["lease_token"], task["id"])
            self.move(task["id"], "completed")
        for task in gone:
            self.rows("SELECT @cancel(%s)", task)
            self.move(task, "cancelled")
        self.taken_in()

    def move(self, task, status):
        self.committed["pending"].discard(task)
        self.committed[status].add(task)

    def run_until_killed(self, point, nth, laps):
        """Whether the node died at it."""
        self.server.kill()
        self.start(f"{point}:{nth}")
        for _ in range(laps):
            if not self.lives():
                break
            self.lap()
        died = not self.lives()
        self.server.kill()
        return died

    def findings(self):
        """After another start: what is not as it was committed."""
        self.start()
        self.taken_in()
        found = [f"{count} tasks have two events of one status" for [count] in self.rows(
            "SELECT count(*) FROM (SELECT FROM @task_events WHERE status IN ('pending', 'completed', 'cancelled') "
            "GROUP BY task_id, status HAVING count(*) > 1) t") if count]
        stored = collections.defaultdict(set)
        for task, status in self.rows("SELECT id::text, status::text FROM @tasks"):
            stored["pending" if status in ("claimed", "running") else status].add(task)
        for status in ("pending", "completed", "cancelled"):
            if stored[status] != self.committed[status]:
                found.append(f"{status}: {len(stored[status])} stored, {len(self.committed[status])} committed")
        effects = [row[0] for row in self.rows("SELECT task::text FROM effects")]
        if sorted(effects) != sorted(stored["completed"]):
            found.append(f"{len(effects)} effects, {len(stored['completed'])} completed")
        self.server.kill()
        code, text = self.server.verify()
        return found + ([f"verify: {text[:500]}"] if code else [])


def kills(point, folder, count):
    """So many kills at the point, each after some passes; kills, findings."""
    work = IntakeKills(folder)
    done, found = 0, []
    try:
        for i in range(count):
            done += work.run_until_killed(point, 1 + i % 3, 3)
            found += [f"{point}: {text}" for text in work.findings()]
            if found:
                break
    finally:
        work.close()
    return done, found

