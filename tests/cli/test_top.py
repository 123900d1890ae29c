"""perdura top on a real terminal (a pty): what is drawn, keys, resizing, signals, and that the
terminal is given back as it was. Run: PERDURA_BUILD=build python3 -m unittest tests/cli/test_top.py"""
import fcntl
import os
import pty
import re
import select
import signal
import socket
import statistics
import struct
import termios
import time
import unittest

import cli_harness
from cli_harness import DEADLINE_S, binary, environment, wait_until

ESCAPES = re.compile(r"\033\[[0-9;?]*[A-Za-z]")
TAKEN, GIVEN_BACK = "\033[?1049h", "\033[?1049l"


class Terminal:
    """The command on a terminal of its own, in a session of its own."""

    def __init__(self, test, *arguments, rows=24, columns=80, **variables):
        variables = environment(TERM="xterm-256color", LC_ALL="C.UTF-8",
                                PERDURA_SERVER=test.url, **variables)
        self.seen = ""
        self.status = None
        ready, go = os.pipe()
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.close(go)
            os.read(ready, 1)  # until the size is set
            os.execve(binary(), [binary(), "top", "--interval", "100ms", *arguments], variables)
        os.close(ready)
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.master)
        os.close(go)
        test.addCleanup(self.end)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, wait_s=0.01):
        while select.select([self.master], [], [], wait_s)[0]:
            try:
                part = os.read(self.master, 65536)
            except OSError:  # the other side is closed
                return False
            if not part:
                return False
            self.seen += part.decode(errors="replace")
            wait_s = 0
        return True

    def frame(self):
        """The last whole frame as lines of text."""
        self.read()
        frames = self.seen.split("\033[H")  # the last one may still be on its way
        whole = re.sub(r"\033\[2J$", "", frames[-2] if len(frames) > 2 else "")
        return [ESCAPES.sub("", line) for line in whole.split("\r\n")]

    def wait_for(self, text):
        def found():
            frame = self.frame()
            return frame if any(re.search(text, line) for line in frame) else None
        try:
            return wait_until(found, what=text)
        except AssertionError:
            raise AssertionError(f"no {text!r} in\n" + "\n".join(self.frame())) from None

    def type(self, text):
        os.write(self.master, text.encode())

    def wait_end(self):
        """Its exit code (negative: the signal), when it has ended."""
        end = time.monotonic() + DEADLINE_S
        while self.status is None:
            self.read()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > end:
                raise AssertionError("top did not end")
        self.read()
        return self.status

    def wait_stop(self):
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end:
            self.read()
            pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
            if pid and os.WIFSTOPPED(status):
                self.read()
                return
        raise AssertionError("top did not stop")

    def modes(self):
        return termios.tcgetattr(self.master)

    def end(self):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.status = -9
        os.close(self.master)


class TopTest(cli_harness.ServerTest):
    keeps_port = True

    def fill(self):
        self.register("w1", queues=["mail", "news"])
        for i in range(3):
            self.enqueue("email:send", queue="mail", payload=i)
        [self.held] = self.claim("w1")
        self.report_ok("w1", self.held, "start")
        self.report_ok("w1", self.held, "log", level="WARN", message="half of it is sent")
        self.enqueue("feed:read", queue="news")
        [failed] = self.claim("w1", types=["feed:read"])
        self.report_ok("w1", failed, "fail", error="evil\033]0;owned\007\u009b31m", retryable=False)

    def test_a_frame_shows_what_there_is_in_80_by_24(self):
        self.fill()
        top = Terminal(self)
        frame = top.wait_for(r"mail +2 +1 ")
        self.assertEqual(len(frame), 24)
        self.assertTrue(all(len(line) <= 80 for line in frame), frame)
        self.assertIn(self.url, frame[0])
        self.assertIn("waiting 2", frame[1])
        self.assertIn("[Queues 2]", frame[3])
        top.type("\t")
        top.wait_for(r"^w1 .* email:send")
        top.type("\t")
        top.wait_for(self.held["id"] + r" +email:send +mail")
        top.type("q")
        self.assertEqual(top.wait_end(), 0)

    def test_texts_of_tasks_do_not_reach_the_terminal_as_commands(self):
        self.fill()
        top = Terminal(self)
        top.type("4")
        top.resize(24, 120)
        top.wait_for(r"evil\\x1b\]0;owned\\x07\\u009b31m")
        top.type("\r")
        top.wait_for("last_error")
        for bad in ("\033]", "\007", "\u009b"):
            self.assertNotIn(bad, top.seen)

    def test_enter_tells_why_events_and_log_lines(self):
        self.fill()
        top = Terminal(self, rows=40)
        top.wait_for("mail")
        top.type("3\r")
        top.wait_for("half of it is sent")
        frame = top.wait_for("last events")
        self.assertTrue(any("running" in line for line in frame))
        top.type("\033")
        top.wait_for("Queues")
        top.type("1\r")
        top.wait_for(r"priority_order +high_first")

    def test_p_pauses_the_queue_under_the_cursor_and_lets_it_go_on(self):
        self.fill()
        top = Terminal(self)
        top.wait_for("mail")
        top.type("/mail\r")
        top.wait_for("escape shows all")
        top.type("p")
        top.wait_for(r"mail +paused")
        queues = self.api("GET", "/v1/queues")[1]["items"]
        self.assertEqual({q["name"] for q in queues if q["paused"]}, {"mail"})
        top.type("p")
        wait_until(lambda: not any("paused" in line for line in top.frame()[4:]),
                   what="the queue resuming")
        self.assertFalse(any(q["paused"] for q in self.api("GET", "/v1/queues")[1]["items"]))

    def test_it_follows_the_size_of_the_terminal(self):
        self.fill()
        top = Terminal(self)
        self.assertEqual(len(top.wait_for("mail")), 24)
        for rows, columns in ((50, 160), (10, 40), (24, 80)):
            top.resize(rows, columns)
            wait_until(lambda rows=rows: len(top.frame()) == rows, what=f"{rows} rows")
            frame = top.frame()
            self.assertTrue(all(len(line) <= columns for line in frame), frame)
        top.resize(50, 160)
        top.wait_for("Failures \\(1\\)")  # high enough for all panes at once

    def test_the_terminal_is_as_it_was_however_it_ends(self):
        for how, code in ((b"q", 0), (b"\x03", 0), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
            top = Terminal(self)
            top.wait_for("Queues")
            self.assertIn(TAKEN, top.seen)
            self.assertNotEqual(top.modes()[3], top.before[3])
            if isinstance(how, bytes):
                os.write(top.master, how)
            else:
                os.kill(top.pid, how)
            self.assertEqual(top.wait_end(), code, how)
            self.assertTrue(top.seen.endswith("\033[0m\033[?25h" + GIVEN_BACK), top.seen[-80:])
            self.assertEqual(top.modes()[3], top.before[3], how)
            self.assertEqual(top.modes()[0], top.before[0], how)

    def test_it_can_be_stopped_and_goes_on(self):
        top = Terminal(self)
        top.wait_for("Queues")
        for stop in (lambda: os.write(top.master, b"\x1a"), lambda: os.kill(top.pid, signal.SIGTSTP)):
            stop()
            top.wait_stop()
            self.assertTrue(top.seen.endswith(GIVEN_BACK), top.seen[-80:])
            self.assertEqual(top.modes()[3], top.before[3])
            top.seen = ""
            os.kill(top.pid, signal.SIGCONT)
            top.wait_for("Queues")
            self.assertTrue(top.seen.startswith(TAKEN), top.seen[:80])
            self.assertNotEqual(top.modes()[3], top.before[3])
        top.type("q")
        self.assertEqual(top.wait_end(), 0)

    def test_colours_are_left_out_when_asked(self):
        self.fill()
        top = Terminal(self, NO_COLOR="1")
        top.wait_for(">mail")
        self.assertNotRegex(top.seen, r"\033\[[0-9;]*m")
        other = Terminal(self)
        other.wait_for("mail")
        self.assertRegex(other.seen, r"\033\[7;")

    def test_a_server_that_goes_away_is_waited_for(self):
        self.fill()
        top = Terminal(self)
        top.wait_for("mail")
        self.server.stop(signal.SIGKILL)
        frame = top.wait_for("7070|reach|refused|connect")
        self.assertTrue(any("mail" in line for line in frame), frame)  # what was known stays
        port = "%s:%d" % self.server.address
        self.server.arguments = (*self.arguments, "--listen", port)
        self.server.start()
        wait_until(lambda: not top.frame()[2].strip(), what="the error being gone")
        top.type("q")
        self.assertEqual(top.wait_end(), 0)

    def test_a_server_that_hangs_does_not_keep_keys_waiting(self):
        """C7: it takes connections and says nothing: panes, sizes, help and q are obeyed at once,
        and the screen shows since when the server is silent."""
        self.fill()
        top = Terminal(self)
        top.wait_for("mail")
        os.kill(self.server.process.pid, signal.SIGSTOP)
        self.addCleanup(os.kill, self.server.process.pid, signal.SIGCONT)
        top.wait_for(r"no answer since \d\d:\d\d:\d\d \(\d")
        took = []
        for keys, text in (("4", r"\[Failures 1\]"), ("?", "this help"), ("\t", r"\[Next"),
                           ("1", r"\[Queues 2\]"), ("\r", "asking the server"),
                           ("\033", r"\[Queues 2\]")):
            begun = time.monotonic()
            top.type(keys)
            top.wait_for(text)
            took.append(time.monotonic() - begun)
        top.resize(30, 100)
        wait_until(lambda: len(top.frame()) == 30, what="30 rows")
        top.type("q")
        self.assertEqual(top.wait_end(), 0)
        # One request may hang for 5 s, and there is always one: half of that or more for most keys.
        self.assertLess(statistics.median(took), 1.5, took)

    def test_a_server_that_never_answered_is_waited_for(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            self.url = "http://127.0.0.1:%d" % silent.getsockname()[1]
            top = Terminal(self)
            frame = top.wait_for("no answer since")
            self.assertTrue(any("not known yet" in line for line in frame), frame)
            top.wait_for(r"no answer since .*: the server at .* did not")  # and it is asked again
            top.type("q")
            self.assertEqual(top.wait_end(), 0)

    def test_what_was_asked_of_a_hanging_server_is_shown_when_it_goes_on(self):
        self.fill()
        top = Terminal(self)
        top.wait_for("mail")
        os.kill(self.server.process.pid, signal.SIGSTOP)
        self.addCleanup(os.kill, self.server.process.pid, signal.SIGCONT)
        top.type("/mail\r")
        top.wait_for("escape shows all")
        top.type("\r")
        top.wait_for("asking the server")
        os.kill(self.server.process.pid, signal.SIGCONT)
        top.wait_for(r"priority_order +high_first")
        wait_until(lambda: not top.frame()[2].strip(), what="no word of silence")
        top.type("q")
        self.assertEqual(top.wait_end(), 0)

    def test_enter_shows_what_is_planned_by_a_schedule_and_by_a_pattern(self):
        job = self.expect(201, "POST", "/v1/jobs", {"name": "report"})
        self.expect(201, "POST", f"/v1/jobs/{job['id']}/schedules",
                    {"cron_expression": "0 3 * * *"})
        self.expect(201, "POST", "/v1/recurring",
                    {"name": "mornings", "pattern_type": "daily", "pattern_config": {},
                     "template_job_id": job["id"]})
        top = Terminal(self, columns=120)
        top.type("5")
        rows = [line for line in top.wait_for(r"\[Next [1-9]") if "report" in line]
        self.assertGreaterEqual(len(rows), 2)
        seen = set()
        for down in range(len(rows)):
            top.type("5" + "g" + "j" * down + "\r")
            frame = top.wait_for(r"^(cron_expression|pattern_type) ")
            seen |= {line.split()[0] for line in frame if line}
            top.type("\033")
            top.wait_for(r"\[Next")
        self.assertLessEqual({"cron_expression", "pattern_type"}, seen)

    def test_once_prints_one_frame_into_a_pipe(self):
        self.fill()
        text = self.perdura("top", "--once").stdout
        self.assertNotIn("\033", text)
        for word in ("Queues (2)", "Workers (", "email:send", "Failures (1)", "Alerts ("):
            self.assertIn(word, text)
        self.assertEqual(self.perdura("top").stdout.count("perdura "), 1)  # no terminal: the same

    def test_what_is_wrong_is_said_in_a_sentence(self):
        self.assertIn("cannot reach the server", self.refused(1, "top", "--once", "--server",
                                                         "http://127.0.0.1:1"))
        self.assertIn("100ms", self.refused(2, "top", "--once", "--interval", "5ms"))
        self.assertIn("not a server address", self.refused(1, "top", "--server", "nonsense"))


if __name__ == "__main__":
    unittest.main()
