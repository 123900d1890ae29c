"""POST /v1/backup writes into backup_dir and nowhere else; where a request comes from is no right
(F-D14, H4)."""
import os
import shutil
import sqlite3
import subprocess
import tempfile
import unittest

import harness
from harness import ApiTest


class Off(ApiTest):
    def test_without_backup_dir_nothing_is_written_for_anybody(self):
        before = sorted(os.listdir(self.folder))
        for name in ("copy.db", "authorized_keys"):
            error = self.expect_error(403, "forbidden", "POST", "/v1/backup", {"name": name})
            self.assertIn("backup_dir", error["message"])
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_the_command_line_copies_a_store_that_its_user_owns(self):
        self.enqueue("t", payload=[1])
        done = subprocess.run([harness.binary(), "backup", "copy.db", "--server",
                               "http://%s:%d" % self.server.address], cwd=self.folder, text=True,
                              capture_output=True, timeout=harness.DEADLINE_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        path = os.path.join(self.folder, "copy.db")
        self.assertIn(path, done.stdout)
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        with sqlite3.connect(path) as copy:
            self.assertEqual(copy.execute("SELECT count(*) FROM tasks").fetchone(), (1,))
        copy.close()

    def test_the_place_names_the_file_that_the_store_is(self):
        place = self.expect(200, "GET", "/v1/backup")
        info = os.stat(self.server.store)
        self.assertIsNone(place["backup_dir"])
        self.assertEqual((place["store"]["path"], place["store"]["device"],
                          place["store"]["inode"]),
                         (os.path.realpath(self.server.store), info.st_dev, info.st_ino))


class Into(ApiTest):
    def setUp(self):
        self.outside = tempfile.mkdtemp(prefix="perdura-backup-")
        self.addCleanup(shutil.rmtree, self.outside, True)
        self.dir = os.path.join(self.outside, "backups")
        os.mkdir(self.dir, 0o700)
        self.config = os.path.join(self.outside, "perdura.yaml")
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(f'backup_dir: "{self.dir}"\n')
        self.arguments = ("--config", self.config)
        super().setUp()

    def names(self):
        return sorted(os.listdir(self.dir))

    def test_a_backup_is_a_whole_store_in_backup_dir(self):
        self.enqueue("t", payload=[1])
        path = os.path.join(self.dir, "copy.db")
        reply = self.expect(201, "POST", "/v1/backup", {"name": "copy.db"})
        self.assertEqual(reply, {"name": "copy.db", "path": path, "bytes": os.path.getsize(path)})
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        with sqlite3.connect(path) as copy:
            self.assertEqual(copy.execute("PRAGMA integrity_check").fetchone(), ("ok",))
            self.assertEqual(copy.execute("SELECT count(*) FROM tasks").fetchone(), (1,))
        copy.close()
        self.expect_error(409, "conflict", "POST", "/v1/backup", {"name": "copy.db"})

    def test_only_plain_names_are_taken(self):
        for name in ("", ".", "..", "../x", "a/b", "/etc/x", ".ssh", "-x", "a b", "a\nb",
                     "é", "x" * 201, "\\x"):
            with self.subTest(name=name):
                self.expect_error(422, "invalid", "POST", "/v1/backup", {"name": name},
                                  field="name")
        self.assertEqual(self.names(), [])

    def test_links_in_backup_dir_are_not_followed(self):
        target = os.path.join(self.outside, "authorized_keys")
        os.symlink(target, os.path.join(self.dir, "one.db"))
        os.symlink(target, os.path.join(self.dir, "two.db.tmp"))
        for name in ("one.db", "two.db"):
            self.expect_error(409, "conflict", "POST", "/v1/backup", {"name": name})
        self.assertFalse(os.path.lexists(target))
        self.assertEqual(self.names(), ["one.db", "two.db.tmp"])

    def test_a_folder_that_is_gone_or_open_to_others_is_a_conflict_not_a_failure(self):
        os.chmod(self.dir, 0o777)
        error = self.expect_error(409, "conflict", "POST", "/v1/backup", {"name": "copy.db"})
        self.assertIn("chmod 700", error["message"])
        os.rmdir(self.dir)
        error = self.expect_error(409, "conflict", "POST", "/v1/backup", {"name": "copy.db"})
        self.assertIn(self.dir, error["message"])

    def test_a_folder_that_others_may_replace_is_a_conflict(self):
        above = os.path.dirname(self.dir)
        mode = os.stat(above).st_mode & 0o7777
        os.chmod(above, 0o777)
        error = self.expect_error(409, "conflict", "POST", "/v1/backup", {"name": "x.db"})
        self.assertIn("replaced by other users", error["message"])
        os.chmod(above, 0o1777)
        self.expect(201, "POST", "/v1/backup", {"name": "x.db"})
        os.chmod(above, mode)

    def test_a_server_does_not_start_with_a_backup_dir_that_others_may_write(self):
        self.server.stop()
        os.chmod(self.dir, 0o770)
        done = subprocess.run([harness.binary(), "serve", "--listen", "127.0.0.1:0", "--config",
                               self.config, "--store", self.server.store], text=True,
                              capture_output=True, timeout=harness.DEADLINE_S)
        self.assertEqual(done.returncode, 1)
        self.assertIn("backup_dir", done.stderr)


if __name__ == "__main__":
    unittest.main()
