"""The dashboard as files: how they are served, how large they are, what they may load, and that its
languages say the same things. What it does is tested in a browser (tests/browser)."""
import gzip
import json
import re
import unittest

from harness import ROOT, ApiTest

HOME_BYTES_MAX = 100_000
TEXTS = ROOT / "dashboard" / "src" / "texts"
SOURCES = ROOT / "dashboard" / "src"


class DashboardTest(ApiTest):
    environment = {"PERDURA_TOKEN": "s3cret-token"}

    def setUp(self):
        super().setUp()
        self.page = self.request("GET", "/").body.decode()
        if "/assets/" not in self.page:
            self.skipTest("this build has no dashboard")

    def packed(self, path):
        return self.request("GET", path, headers={"Accept-Encoding": "br, gzip"})

    def named(self):
        return re.findall(r"/assets/([\w.-]+)", self.page)

    def test_the_page_and_its_files_need_no_token_and_everything_else_does(self):
        for name in self.named():
            self.assertEqual(self.request("GET", "/assets/" + name).status, 200, name)
        self.assertEqual(self.request("GET", "/v1/stats").status, 401)

    def test_only_what_is_its_own_is_loaded_and_nothing_is_inline(self):
        policy = self.request("GET", "/").headers["Content-Security-Policy"]
        for part in ("default-src 'none'", "script-src 'self'", "style-src 'self'",
                     "connect-src 'self'", "img-src 'self' data:", "frame-ancestors 'none'"):
            self.assertIn(part, policy)
        self.assertNotIn("unsafe", policy)
        self.assertNotRegex(self.page, r"<script>|<style|\son\w+=|\sstyle=")
        for url in re.findall(r'(?:src|href)="([^"]+)"', self.page):
            self.assertTrue(url.startswith(("/assets/", "data:")), url)

    def test_safe_headers_are_sent_with_every_file(self):
        for path in ("/", "/assets/" + self.named()[0]):
            headers = self.request("GET", path).headers
            self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
            self.assertEqual(headers["X-Frame-Options"], "DENY")
            self.assertEqual(headers["Referrer-Policy"], "no-referrer")

    def test_files_come_packed_to_who_can_unpack_them(self):
        for path in ("/", *("/assets/" + name for name in self.named())):
            plain = self.request("GET", path)
            packed = self.packed(path)
            self.assertIsNone(plain.headers["Content-Encoding"])
            self.assertEqual(packed.headers["Content-Encoding"], "gzip", path)
            self.assertEqual(gzip.decompress(packed.body), plain.body, path)
            self.assertEqual(packed.headers["Vary"], "Accept-Encoding")
            for refusal in ("gzip;q=0", "identity", "xgzip"):
                reply = self.request("GET", path, headers={"Accept-Encoding": refusal})
                self.assertIsNone(reply.headers["Content-Encoding"], refusal)

    def test_a_known_file_is_not_sent_again(self):
        for path in ("/", "/assets/" + self.named()[0]):
            for encoding in ("gzip", "identity"):
                first = self.request("GET", path, headers={"Accept-Encoding": encoding})
                again = self.request("GET", path, headers={
                    "Accept-Encoding": encoding, "If-None-Match": first.headers["ETag"]})
                self.assertEqual((again.status, again.body), (304, b""))
                other = self.request("GET", path, headers={"If-None-Match": '"other"'})
                self.assertEqual(other.status, 200)
        self.assertNotEqual(self.packed("/").headers["ETag"],
                            self.request("GET", "/").headers["ETag"])

    def test_the_page_is_asked_for_again_and_its_files_are_kept_for_good(self):
        self.assertEqual(self.request("GET", "/").headers["Cache-Control"], "no-cache")
        for name in self.named():
            cache = self.request("GET", "/assets/" + name).headers["Cache-Control"]
            self.assertIn("immutable", cache)

    def test_the_home_page_is_small(self):
        """A browser loads one language of those that the page names."""
        names = {name for name in self.named() if not re.match(r"(fr|pt)-", name)}
        self.assertEqual(len([name for name in names if name.startswith("en-")]), 1)
        total = len(self.packed("/").body)
        for name in names:
            total += len(self.packed("/assets/" + name).body)
        self.assertLess(total, HOME_BYTES_MAX)

    def test_nothing_else_is_there(self):
        for path in ("/assets/index.html", "/assets/x.js", "/assets/..%2Fopenapi.json",
                     "/assets/index.html.gz", "/assets/", "/assets/a/b.js", "/assets/" + "x" * 500):
            self.assertEqual(self.request("GET", path, headers={
                "Authorization": "Bearer s3cret-token"}).status, 404, path)

    def test_licences_of_what_is_packed_in_are_told(self):
        text = self.request("GET", "/assets/licenses.txt").body.decode()
        for name in ("preact", "htm", "uplot"):
            self.assertRegex(text, rf"(?m)^{name} \d")


class TextsTest(unittest.TestCase):
    def setUp(self):
        self.texts = {file.stem: json.loads(file.read_text(encoding="utf-8"))
                      for file in TEXTS.glob("*.json")}

    def test_every_language_has_the_same_texts_with_the_same_gaps(self):
        self.assertEqual(set(self.texts), {"en", "fr", "pt"})
        for name, texts in self.texts.items():
            self.assertEqual(set(texts), set(self.texts["en"]), name)
            for key, text in texts.items():
                self.assertTrue(text.strip(), (name, key))
                self.assertEqual(sorted(re.findall(r"\{\w+\}", text)),
                                 sorted(re.findall(r"\{\w+\}", self.texts["en"][key])), (name, key))

    def test_every_text_that_is_asked_for_is_there_and_none_is_left_over(self):
        known = set(self.texts["en"])
        used, beginnings = set(), set()
        for file in SOURCES.rglob("*.js"):
            source = file.read_text(encoding="utf-8")
            used |= {name for name in re.findall(r"'([a-zA-Z_.0-9]+)'", source) if name in known}
            for name in re.findall(r"\bt\(\s*'([^']+)'", source):
                self.assertIn(name, known, file.name)
            for name in re.findall(r"\btn\(\s*'([^']+)'", source):
                self.assertIn(name + ".other", known, file.name)
                used |= {name + ".one", name + ".other"}
            beginnings |= set(re.findall(r"`([a-zA-Z]+\.(?:[a-z]+\.)?)\$\{", source))
            beginnings |= {kind + "." for kind in re.findall(r"words\('(\w+)'", source)}
        left = {key for key in known - used if not key.startswith(tuple(beginnings))}
        self.assertEqual(left, set())

    def test_pages_stay_small(self):
        for file in SOURCES.rglob("*.js"):
            self.assertLess(len(file.read_text(encoding="utf-8").splitlines()), 400, file.name)


if __name__ == "__main__":
    unittest.main()
