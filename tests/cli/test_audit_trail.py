"""The audit trail against an attacker who can write everything in the store but has not the log key
(D18): whatever is changed, added, reordered or removed, `perdura verify --audit` names it."""
import contextlib
import json
import pathlib
import shutil
import sqlite3
import sys
import time
import unittest

import cli_harness

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "campaign"))
from mutations import chain_hash, content_hash  # noqa: E402

CHAIN = b"\xff" * 16
MEMBERS = ("namespace", "principal", "token_id", "address", "request_id", "action", "object_kind",
           "object_id", "outcome")


def hash_of(before, row):
    """As an attacker who knows the format makes it; there is no key in it."""
    message = json.dumps({name: row[name] for name in MEMBERS}, separators=(",", ":"))
    return chain_hash(before, CHAIN, bytes(16), row["seq"], "INFO", content_hash(message, row["change"]),
                      row["at"], row["id"], bytes(32))


class TrailTest(cli_harness.ServerTest):
    config = "log_anchor: perdura.anchor\nlog_anchor_every: 100ms\n"

    def left(self):
        with self.store() as db:
            return [row["seq"] for row in db.execute("SELECT seq FROM audit_log ORDER BY seq")]

    def given(self, count=6):
        """So many entries, signed; the server has stopped."""
        for number in range(count):
            self.expect(200, "POST", f"/v1/queues/q{number}:pause")
        self.server.stop()
        self.verify(0)

    def verify(self, code):
        done = self.perdura("verify", "--store", self.server.store, "--audit", "--json", "--anchor",
                            self.folder + "/perdura.anchor", code=code)
        return json.loads(done.stdout)

    def again(self, count=1):
        self.server.start()
        self.local.connection = None
        for number in range(count):
            self.expect(200, "POST", f"/v1/queues/later{number}:pause")
        self.server.stop()

    @contextlib.contextmanager
    def store(self):
        with contextlib.closing(sqlite3.connect(self.server.store)) as db:
            db.row_factory = sqlite3.Row
            yield db
            db.commit()

    def chain_again(self, db):
        before = None
        for row in db.execute("SELECT * FROM audit_log ORDER BY seq").fetchall():
            before = hash_of(before, row)
            db.execute("UPDATE audit_log SET chain_hash = ? WHERE seq = ?", (before, row["seq"]))

    def attack(self, *statements, chain=True):
        with self.store() as db:
            for statement in statements:
                self.assertGreater(db.execute(statement).rowcount, 0, statement)
            if chain:
                self.chain_again(db)

    def entry_named(self):
        findings = self.verify(1)["findings"]
        named = [finding["subject"] for finding in findings if finding["kind"] == "audit"]
        self.assertTrue(named, findings)
        return named


APPEND = ("INSERT INTO audit_log SELECT seq + 1, x'0197f6a25c3e7b119d2f3a4b5c6d7e8f', at + 1, namespace, "
          "'token:innocent', token_id, address, request_id, 'key.destroy', object_kind, object_id, change, "
          "outcome, chain_hash, mac FROM audit_log ORDER BY seq DESC LIMIT 1")
ATTACKS = {
    "a changed entry": ("UPDATE audit_log SET principal = 'token:other' WHERE seq = 3",),
    "a changed change": ("UPDATE audit_log SET change = '{}' WHERE seq = 3",),
    "a changed time": ("UPDATE audit_log SET at = at - 86400000000 WHERE seq = 2",),
    "the newest one changed": ("UPDATE audit_log SET object_id = 'q9' WHERE seq = 6",),
    "an entry removed": ("DELETE FROM audit_log WHERE seq = 3",),
    "an entry removed, the others moved up": ("DELETE FROM audit_log WHERE seq = 3",
                                              "UPDATE audit_log SET seq = seq - 1 WHERE seq > 3"),
    "the end removed": ("DELETE FROM audit_log WHERE seq > 4",),
    "the beginning removed": ("DELETE FROM audit_log WHERE seq < 3",),
    "all of them removed": ("DELETE FROM audit_log",),
    "two exchanged": ("UPDATE audit_log SET seq = 90 WHERE seq = 2", "UPDATE audit_log SET seq = 2 WHERE seq = 3",
                      "UPDATE audit_log SET seq = 3 WHERE seq = 90"),
    "an entry added": (APPEND,),
    "removed, and what records say is signed": (
        "DELETE FROM audit_log WHERE seq > 4",
        "UPDATE log_heads SET seq = 4 WHERE closed = 'named'"),
    "removed, and forgotten what records say": ("DELETE FROM audit_log WHERE seq > 4",
                                                "DELETE FROM log_heads WHERE closed = 'named'"),
    "added, and never to be signed": (APPEND, "UPDATE log_heads SET seq = 7 WHERE closed = 'named'"),
    "a number beyond all others": ("UPDATE audit_log SET seq = 9223372036854775807 WHERE seq = 6",),
}


class Attacks(TrailTest):
    def test_d18_the_forger_of_this_test_knows_the_format(self):
        self.given()
        with self.store() as db:
            before = [row["chain_hash"] for row in db.execute("SELECT chain_hash FROM audit_log ORDER BY seq")]
            self.chain_again(db)
            after = [row["chain_hash"] for row in db.execute("SELECT chain_hash FROM audit_log ORDER BY seq")]
        self.assertEqual(before, after)
        self.verify(0)

    def test_d18_every_attack_is_named_with_and_without_hashes_made_again_and_after_the_server_went_on(self):
        self.given()
        kept = self.folder + "/kept"
        pathlib.Path(kept).mkdir()
        files = [self.server.store, self.folder + "/perdura.anchor"]
        for name in files:
            shutil.copy(name, kept)
        for what, statements in ATTACKS.items():
            for chain in (True, False):
                for goes_on in (False, True):
                    with self.subTest(what, chain=chain, goes_on=goes_on):
                        for name in files:
                            shutil.copy(f"{kept}/{pathlib.Path(name).name}", name)
                        self.attack(*statements, chain=chain)
                        if goes_on:
                            self.again()
                        self.entry_named()

    def test_d18_an_entry_added_while_the_server_runs_is_refused_and_named(self):
        self.given()
        self.server.start()
        self.local.connection = None
        self.expect(200, "POST", "/v1/queues/x:pause")
        self.attack(APPEND)
        self.expect(200, "POST", "/v1/queues/y:pause")
        self.server.stop()
        self.assertIn("log.forged", self.server.log())
        self.entry_named()

    def test_d18_the_newest_entry_removed_while_the_server_runs_leaves_a_hole(self):
        self.given()
        self.server.start()
        self.local.connection = None
        self.expect(200, "POST", "/v1/queues/x:pause")
        self.attack("DELETE FROM audit_log WHERE seq = 7", chain=False)
        self.expect(200, "POST", "/v1/queues/y:pause")
        self.server.stop()
        self.assertIn("entry 7", self.entry_named())
        self.again()
        self.assertIn("entry 8", self.entry_named())  # a record says that it was not signed

    def test_d18_an_entry_that_an_index_leaves_out_is_named(self):
        """Lists go by the index of another table, in whose pages it lacks."""
        self.given()
        with self.store() as db:
            hidden, = db.execute("SELECT object_id FROM audit_log WHERE seq = 3").fetchone()
            made, = db.execute("SELECT sql FROM sqlite_master WHERE name = 'audit_log'").fetchone()
            db.execute(made.replace("audit_log", "mine", 1))
            db.execute("INSERT INTO mine SELECT * FROM audit_log WHERE seq <> 3")
            db.execute("CREATE UNIQUE INDEX mine_id ON mine (id)")
            db.execute("PRAGMA writable_schema = ON")
            db.execute("UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE "
                       "name = 'mine_id') WHERE name = 'audit_log_id'")
        self.server.start()
        self.local.connection = None
        shown = [item["object_id"] for item in self.expect(200, "GET", "/v1/audit")["items"]]
        self.server.stop()
        self.assertNotIn(hidden, shown)
        self.assertIn("audit_log", str(self.verify(1)["findings"]))

    def test_d18_a_value_of_another_class_is_named_with_its_entry(self):
        """It ends the verification; the report keeps what was found before."""
        self.given()
        self.attack("UPDATE audit_log SET principal = CAST(principal AS BLOB) WHERE seq = 3", chain=False)
        found = [finding["detail"] for finding in self.verify(1)["findings"]]
        self.assertTrue(any("entry 3 has a value of another class" in detail for detail in found), found)
        self.assertTrue(any("not everything was checked" in detail for detail in found), found)


class Times(TrailTest):
    """Entries that are not old, whatever the store says."""

    def test_d18_time_set_back_does_not_make_the_server_remove_entries(self):
        with open(self.folder + "/server.yaml", "w", encoding="utf-8") as file:
            file.write(TrailTest.config + "retention: {audit: 1h}\n")
        self.given()
        self.attack("UPDATE audit_log SET at = at - 86400000000")
        self.again()
        self.assertEqual(self.left()[:6], [1, 2, 3, 4, 5, 6])
        self.entry_named()

    def test_d18_a_store_that_says_it_is_later_keeps_its_entries(self):
        self.given()
        with self.store() as db:
            later = db.execute("SELECT max(at) FROM audit_log").fetchone()[0] + 401 * 86400 * 1000000
            db.execute("DELETE FROM store_info WHERE name = 'last_time_us'")
            db.execute("INSERT INTO store_info (name, value) VALUES ('last_time_us', ?)", (str(later),))
        for _ in range(2):
            self.again()
        self.assertEqual(self.left()[:6], [1, 2, 3, 4, 5, 6])


class Retention(TrailTest):
    config = TrailTest.config + "retention: {audit: 2s}\n"

    def test_d18_old_entries_go_by_signed_records_and_what_is_left_is_whole(self):
        self.given()
        for _ in range(2):
            with self.store() as db:
                newest_s = db.execute("SELECT max(at) FROM audit_log").fetchone()[0] / 1e6
            cli_harness.wait_until(lambda newest_s=newest_s: time.time() > newest_s + 2.1, what="old entries")
            self.server.start()
            self.local.connection = None
            cli_harness.wait_until(lambda: len(self.left()) == 1, what="retention")
            self.expect(200, "POST", "/v1/queues/more:pause")
            self.expect(200, "POST", "/v1/queues/more:resume")
            self.server.stop()
            self.verify(0)
        last = self.left()[-1]
        self.attack(f"UPDATE audit_log SET principal = 'x' WHERE seq = {last - 1}")
        self.entry_named()

    def test_d18_another_key_takes_over_the_trail_as_it_is(self):
        """With the entries that the first one proved, which go in their time."""
        self.given()
        keys = [self.verify(0)["public_key"]]
        pathlib.Path(self.server.store + ".log-key").unlink()
        self.again(2)
        self.assertNotIn("log.forged", self.server.log())
        done = self.perdura("verify", "--store", self.server.store, "--audit", "--json", code=1)
        keys.append(json.loads(done.stdout)["public_key"])
        cli_harness.wait_until(lambda: self.age_s() > 2.1, what="old entries")
        self.server.start()
        self.local.connection = None
        cli_harness.wait_until(lambda: len(self.left()) == 1, what="retention")
        self.server.stop()
        self.assertNotIn("log.forged", self.server.log())
        self.perdura("verify", "--store", self.server.store, "--audit", "--public-key", ",".join(keys),
                     "--anchor", self.folder + "/perdura.anchor", code=0)

    def age_s(self):
        with self.store() as db:
            return time.time() - db.execute("SELECT max(at) FROM audit_log").fetchone()[0] / 1e6


class Late(TrailTest):
    """Records are made only at the end."""
    config = "log_anchor: perdura.anchor\nlog_anchor_every: 1h\nretention: {audit: 2s}\n"

    def test_d18_entries_that_were_set_back_are_named_when_retention_has_removed_them(self):
        """Others took their numbers; he forgets what records say, or puts an older word of it back."""
        for forget in (True, False):
            with self.subTest(forget=forget):
                self.given()
                with self.store() as db:
                    first, last = db.execute("SELECT min(seq), max(seq) FROM audit_log").fetchone()
                    db.execute("DELETE FROM audit_log WHERE seq > ?", (max(first, last - 2),))
                    if forget:
                        db.execute("DELETE FROM log_heads WHERE closed = 'named'")
                self.again(8)
                self.entry_named()
                with self.store() as db:
                    newest_s = db.execute("SELECT max(at) FROM audit_log").fetchone()[0] / 1e6
                cli_harness.wait_until(lambda newest_s=newest_s: time.time() > newest_s + 2.1,
                                       what="old entries")
                self.server.start()
                self.local.connection = None
                self.expect(200, "POST", "/v1/queues/more:pause")

                def gone(last=last):
                    with self.store() as db:
                        return db.execute("SELECT min(seq) FROM audit_log").fetchone()[0] > last
                cli_harness.wait_until(gone, what="retention")
                self.server.stop()
                self.entry_named()
                for name in (self.server.store, self.folder + "/perdura.anchor"):
                    pathlib.Path(name).unlink()
                for suffix in ("-wal", "-shm"):
                    pathlib.Path(self.server.store + suffix).unlink(missing_ok=True)
                self.server.start()
                self.local.connection = None


if __name__ == "__main__":
    unittest.main()
