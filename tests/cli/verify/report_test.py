"""The HTML report: whole in itself, and in a browser no wider than a phone."""
import html.parser
import itertools
import json
import pathlib
import re
import shutil
import subprocess
import unittest

from program import ProgramTest, rendered

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
TEXT = "It was the best of times, it was the worst of times, <script>alert('x')</script> &amp;\n" * 8
PHONE = 390


class Outline(html.parser.HTMLParser):
    """Counts elements and checks that they close in order."""

    VOID = {"meta", "br"}

    def __init__(self, text):
        super().__init__()
        self.open, self.counts, self.attributes = [], {}, []
        self.feed(text)
        self.close()
        if self.open:
            raise AssertionError(f"never closed: {self.open}")

    def handle_startendtag(self, tag, attributes):
        self.counts[tag] = self.counts.get(tag, 0) + 1
        self.attributes += attributes

    def handle_starttag(self, tag, attributes):
        self.handle_startendtag(tag, attributes)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            raise AssertionError(f"</{tag}> closes nothing")


class ReportTest(ProgramTest):
    def report(self, *words):
        path = self.folder / "report.html"
        self.succeeds("verify", "broadcast", "ring", "--quick", "--cases", "3", "--html", path,
                      "--text", self.file("<b>&'\".txt", TEXT), *words)
        return path

    def browse(self, url, *flags):
        done = subprocess.run(
            [BROWSER, "--headless", "--no-sandbox", "--disable-gpu",
             f"--user-data-dir={self.folder / 'profile'}", "--virtual-time-budget=3000", *flags, url],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=600)
        self.assertEqual(done.returncode, 0)
        return done.stdout.decode("utf-8", "replace")

    def test_it_is_one_well_formed_file_that_loads_nothing(self):
        page = self.report()
        text, file = rendered(page), page.read_text()
        outline, whole = Outline(text), Outline(file)
        self.assertGreaterEqual(outline.counts["table"], 3)
        self.assertGreaterEqual(outline.counts["svg"], 8)
        self.assertNotIn("script", outline.counts)
        self.assertEqual(whole.counts["script"], 2)  # the data and what draws them
        for name, value in outline.attributes + whole.attributes:
            self.assertNotIn(name, ["src", "href", "onclick", "onload"])
            self.assertNotIn("url(", value or "")
        self.assertIsNone(re.search(r"https?:|@import", text + file))

    def test_the_names_of_files_are_escaped(self):
        page = self.report()
        self.assertIn("&#60;b&#62;&#38;&#39;&#34;.txt", rendered(page))
        for text in (rendered(page), page.read_text()):
            self.assertNotIn("<b>&'", text)

    def test_the_maps_count_every_visible_pair(self):
        page = self.report("--ranks", "5", "--tokens", "37", "--mask", "causal+window:9,3")
        data = json.loads(re.search(r'id="data">([^<]*)</script>', page.read_text())[1])
        visible = sum(query - 9 <= key <= query for query in range(37) for key in range(37))
        for layout in data["drawn"]["layouts"]:
            self.assertEqual(sum(map(sum, layout["pairs"])), visible)
            self.assertEqual((sum(layout["query_tokens"]), sum(layout["key_tokens"])), (37, 37))
            for rank, owner in itertools.product(range(5), repeat=2):
                full = layout["query_tokens"][rank] * layout["key_tokens"][owner]
                is_whole = layout["pairs"][rank][owner] in (0, full)
                self.assertEqual(layout["cells"][rank][owner] is None, is_whole, (layout["layout"], rank, owner))

    def test_every_layout_mask_and_rank_count_is_drawn(self):
        for words in [["--ranks", "1"], ["--ranks", "40", "--tokens", "50"], ["--mask", "window:3,3"],
                      ["--ranks", "9", "--tokens", "5", "--layout", "striped"],
                      ["--direction", "previous", "--mask", "documents:100,28", "--tokens", "128"]]:
            Outline(rendered(self.report(*words)))

    @unittest.skipUnless(BROWSER, "no Chromium on this machine: the report was not rendered")
    def test_a_browser_shows_the_tables_and_a_phone_needs_no_sideways_scrolling(self):
        path = self.report()
        dom = self.browse(path.as_uri(), "--dump-dom")
        self.assertIn(">broadcast</b>", dom)
        self.assertIn(">equals", dom.lower())
        # A frame as wide as a phone, whose width the page around it can read.
        frame = self.file("frame.html", """<!doctype html><meta charset=utf-8>
            <iframe id=f style="width:%dpx;height:900px;border:0"></iframe><script>
            const f = document.getElementById("f");
            f.onload = () => { document.title = "w" + f.contentDocument.documentElement.scrollWidth; };
            f.srcdoc = %s;</script>""" % (PHONE, javascript_string(path.read_text())))
        width = re.search(r"<title>w(\d+)</title>", self.browse(frame.as_uri(), "--dump-dom"))
        self.assertIsNotNone(width)
        self.assertLessEqual(int(width.group(1)), PHONE)

    @unittest.skipUnless(BROWSER, "no Chromium on this machine: the report was not printed")
    def test_it_prints(self):
        pdf = self.folder / "report.pdf"
        self.browse(self.report().as_uri(), f"--print-to-pdf={pdf}")
        self.assertTrue(pdf.read_bytes().startswith(b"%PDF"))


def javascript_string(text):
    return json.dumps(text).replace("<", "\\u003c")


if __name__ == "__main__":
    unittest.main()
