"""Every command of the README and of the tour does what the page shows: the blocks of each page run in one shell
on a terminal, and what they print is compared with the block below them. K4."""
import fcntl
import os
import pathlib
import pty
import re
import shlex
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import threading
import unittest

from cli_harness import compiler, environment, harness

COLUMNS = 160  # as the tour says
SECONDS_MAX = 240
MARK = "--- end of block "
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# What differs from run to run, as a word that stands for it. Spaces follow the width of such words.
PLACEHOLDERS = (
    (r"\x1b\[[0-9;?]*[A-Za-z]", ""),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "ID"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
    (r"\b\S+-\d+-[0-9a-f]{16}\b", "WORKER"),
    (r"^WORKER +\S+ ", "WORKER HOST "),
    (r"(?<![\w.])\d+(\.\d+)?m?s\b|\b\d+[hm] \d\d[ms]\b", "DURATION"),
    (r"\bcrontab:\S*/crontab\.txt:(\w+)-[0-9a-f]{12}", r"crontab:FILE:\1"),
    (r"crontab:…/crontab\.txt:(\w+)-[0-9a-f]{12}", r"crontab:FILE:\1"),
    (r"commands run as \w+", "commands run as USER"),
    (r"\b13:(00|59):(0[01]|5[89])\b", "13:MM:SS"),  # the phase of "every 2 s"
    (r"--cursor \w+", "--cursor CURSOR"),
    (r"127\.0\.0\.1:\d+", "ADDRESS"),
    # A server that was killed in the middle of a step: which one it was depends on the machine.
    (r"after step ([1-9]|10)$", "after step N"),
    (r"\b\d+ %(?=,|$)", "N %"),
    (r"^progress +\d+%", "progress N%"),
    (r'"seq":\d+,"name":"step-\d+","progress":\d+', '"seq":N,"name":"step-N","progress":N'),
    (r"^ +[12] step ", "1 step "),
    (r"[ \t]+", " "),
    (r" $", ""),
)
NOISE = re.compile(r": line \d+: +\d+ (Killed|Terminated)")


def plain(line):
    for pattern, replacement in PLACEHOLDERS:
        line = re.sub(pattern, replacement, line)
    return line


def pattern_of(line):
    """A line of the page as a regular expression; … stands for anything."""
    return ".*".join(re.escape(part) for part in plain(line).split("…"))


def differs(shown, printed):
    """What the page shows and the terminal did not print, or None. A line … stands for any lines."""
    lines = [line for line in map(plain, printed) if line]
    expected = [line for line in shown if line.strip()]
    if any(line.startswith("ID") and "LEADER" in line for line in expected):
        expected.sort(key=plain)  # the order of workers, and which of them leads
        lines.sort()
    at, free = 0, False
    for line in expected:
        if line.strip() == "…":
            free = True
            continue
        pattern = re.compile(pattern_of(line))
        while free and at < len(lines) and not pattern.fullmatch(lines[at]):
            at += 1
        if at == len(lines) or not pattern.fullmatch(lines[at]):
            return f"shown:   {plain(line)}\nprinted: {lines[at] if at < len(lines) else 'nothing'}"
        at, free = at + 1, False
    return None if at == len(lines) or free else f"printed, but not shown: {lines[at]}"


def anchors(page):
    """Of its headings, as GitHub names them."""
    titles = re.findall(r"(?m)^#+ (.*)$", page.read_text())
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


class Pages(unittest.TestCase):
    def setUp(self):
        # Where people try a page: longer paths would be cut in its tables.
        self.folder = tempfile.mkdtemp(prefix="perdura-page-", dir="/tmp")
        os.chmod(self.folder, 0o755)  # the user postgres comes by
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.addCleanup(self.end_database)
        clone = pathlib.Path(self.folder, "perdura")  # a clone that has been built already
        clone.mkdir()
        build = pathlib.Path(os.environ.get("PERDURA_BUILD", harness.ROOT / "build"))
        (clone / "build").symlink_to(build)
        for name in ("include", "examples"):
            (clone / name).symlink_to(harness.ROOT / name)
        (clone / "bin").mkdir()
        (clone / "bin" / "make").symlink_to("/bin/true")
        cc = clone / "bin" / "cc"  # of the build: a library with a sanitizer needs programs that have it
        cc.write_text(f'#!/bin/sh\nexec {shlex.join(compiler())} "$@"\n')
        cc.chmod(0o755)

    def end_database(self):
        """Of a page that stopped early."""
        for pid in pathlib.Path(self.folder).glob("*/data/postmaster.pid"):
            os.kill(int(pid.read_text().split()[0]), signal.SIGQUIT)

    def on_terminal(self, script, **variables):
        """What a shell prints that runs the script on a terminal, by lines."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
        shell = subprocess.Popen(["bash", script], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=slave,
                                 stderr=slave, start_new_session=True,
                                 env=environment(TERM="xterm", LC_ALL="C.UTF-8", TMPDIR=self.folder,
                                                 **variables))
        os.close(slave)
        watch = threading.Timer(SECONDS_MAX, os.killpg, (shell.pid, signal.SIGKILL))
        watch.start()
        seen = b""
        try:
            while part := os.read(master, 65536):
                seen += part
        except OSError:  # EIO: the last process has closed the terminal
            pass
        watch.cancel()
        os.close(master)
        shell.wait()
        lines = seen.decode().replace("\r\n", "\n").split("\n")
        return [line.rsplit("\r", 1)[-1] for line in lines if not NOISE.search(line)]

    def check(self, page, addresses=True):
        """Runs the page's sh blocks; returns how many blocks of output were compared. addresses: the page
        relies on the default ones, so variables name free ports in their place."""
        text = page.read_text()
        for port in sorted(set(re.findall(r"\b7(?:07\d|432)\b", text))):
            text = re.sub(rf"\b{port}\b", str(harness.free_port()), text)
        blocks = BLOCK.findall(text)
        commands = [number for number, (kind, _) in enumerate(blocks)
                    if kind == "sh" and not re.search(r"^make (run|test)", blocks[number][1], re.MULTILINE)]
        script = os.path.join(self.folder, "page.sh")
        pathlib.Path(script).write_text("".join(f"{blocks[number][1]}echo '{MARK}{number}'\n"
                                                for number in commands))
        address = re.search(r"127\.0\.0\.1:(\d+)/v1/tasks", text) or re.search(r"127\.0\.0\.1:(\d+)", text)
        variables = {"PERDURA_LISTEN": f"127.0.0.1:{address.group(1)}",
                     "PERDURA_SERVER": f"http://127.0.0.1:{address.group(1)}"} if addresses else {}
        printed = self.on_terminal(script, PATH=f"{self.folder}/perdura/bin:{os.environ['PATH']}",
                                   **variables)
        compared = 0
        for number in commands:
            self.assertIn(f"{MARK}{number}", printed, f"{page.name} stopped early:\n" + "\n".join(printed))
            end = printed.index(f"{MARK}{number}")
            if number + 1 < len(blocks) and blocks[number + 1][0] == "":
                wrong = differs(blocks[number + 1][1].splitlines(), printed[:end])
                self.assertIsNone(wrong, f"{page.name}, after:\n{blocks[number][1]}\n{wrong}\n"
                                         f"in:\n" + "\n".join(printed[:end]))
                compared += 1
            printed = printed[end + 1:]
        return compared

    def test_the_tour_does_what_it_shows(self):
        self.assertGreaterEqual(self.check(harness.ROOT / "docs" / "tour.md"), 11)

    def test_the_readme_does_what_it_shows(self):
        self.assertGreaterEqual(self.check(harness.ROOT / "README.md"), 1)

    def test_the_tour_of_services_does_what_it_shows(self):
        """D10"""
        self.assertGreaterEqual(self.check(harness.ROOT / "docs" / "services.md"), 3)

    def test_the_tour_of_agents_does_what_it_shows(self):
        """C9"""
        self.assertGreaterEqual(self.check(harness.ROOT / "docs" / "agents.md"), 2)

    def test_the_recipes_for_secure_set_ups_do_what_they_show(self):
        """D12"""
        self.assertGreaterEqual(self.check(harness.ROOT / "docs" / "secure-setup.md",
                                           addresses=False), 6)

    def test_the_readme_is_short_and_its_commands_exist(self):
        text = (harness.ROOT / "README.md").read_text()
        self.assertLessEqual(len(text.split()), 2000)
        makefile = (harness.ROOT / "Makefile").read_text()
        for target in set(re.findall(r"`?make ([a-z-]+)\b[^:]*?(?:`|#)", text)):
            self.assertRegex(makefile, rf"(?m)^{target}:", target)

    def test_links_between_pages_lead_somewhere(self):
        for page in (harness.ROOT / "README.md", *sorted((harness.ROOT / "docs").glob("*.md"))):
            for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
                if re.match(r"https?:|/", target):
                    continue
                name, _, anchor = target.partition("#")
                other = page.parent / name if name else page
                self.assertTrue(other.exists(), f"{page.name}: {target}")
                if anchor:
                    self.assertIn(anchor, anchors(other), f"{page.name}: {target}")


if __name__ == "__main__":
    unittest.main()
