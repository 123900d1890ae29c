"""Whom verification of logs believes: torn and missing anchor files, keys, records that were removed or
made by somebody else (F-J5 to F-J7)."""
import json
import os
import pathlib
import unittest

from test_logs import LogTest


class TrustTest(LogTest):
    def again(self):
        """The server, as it comes back; one more execution logs; it stops."""
        self.server.start()
        self.local.connection = None
        self.register("worker-1")
        self.logged()
        self.server.stop()


class AnchorFile(TrustTest):
    def given(self):
        self.logged()
        self.server.stop()
        self.again()
        return pathlib.Path(self.anchor).read_bytes()

    def serials(self):
        return [json.loads(line)["record"]["serial"]
                for line in pathlib.Path(self.anchor).read_text().splitlines()]

    def test_f_j6_a_torn_end_is_made_whole_and_no_finding(self):
        whole = self.given()
        for cut in (1, 2, 50):
            pathlib.Path(self.anchor).write_bytes(whole[:-cut])
            self.verify(0, "--anchor", self.anchor)
            self.again()
            self.verify(0, "--anchor", self.anchor)
            self.assertEqual(self.serials(), list(range(1, len(self.serials()) + 1)))
            whole = pathlib.Path(self.anchor).read_bytes()

    def test_f_j7_a_configured_file_that_is_gone_is_told_of(self):
        self.given()
        config = ("--config", self.gates + "/server.yaml")
        self.verify(0, *config)
        for spoil in (lambda: os.truncate(self.anchor, 0), lambda: os.unlink(self.anchor)):
            spoil()
            finding, = self.verify(1, *config)["findings"]
            self.assertEqual((finding["kind"], finding["subject"]), ("anchor", "perdura.anchor"))
        doctor = json.loads(self.perdura("doctor", "--store", self.server.store, *config,
                                         "--json").stdout)
        anchor, = (check for check in doctor["checks"] if check["name"] == "anchor")
        self.assertEqual(anchor["verdict"], "warning")
        self.refused(3, "verify", "--store", self.server.store, "--anchor", self.anchor)
        self.again()
        self.assertIn("log.anchor_new", self.server.log())
        self.verify(0, *config)


if __name__ == "__main__":
    unittest.main()
