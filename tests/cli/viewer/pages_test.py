"""Pages of commands, with a hostile name, in headless Chromium: each draws its pictures, scrolls sideways on no phone,
loads nothing, runs nothing that a name holds, and says nothing to the console."""
import pathlib
import shutil
import sys
import unittest

from program import ProgramTest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "scripts/site"))
from browser import look  # noqa: E402

PHONE = 390
LOOK = """
(async () => {
  const found = [];
  for (const address of PAGES) {
    const { contentDocument: page } = await opened(address, PHONE);
    await rest(50);
    found.push({ pictures: page.querySelectorAll("svg").length, text: page.querySelector("h1")?.textContent ?? "",
      width: page.documentElement.scrollWidth, outside: page.querySelectorAll("[src], [href], img, script[src]").length,
      injected: page.querySelectorAll("main script, main i[title]").length });
  }
  tell(found);
})();
"""
COMMANDS = {
    "verify": ["verify", "ring", "broadcast", "--quick", "--cases", 3, "--text", "TEXT"],
    "trace": ["trace", "TRACE"],
    "simulate": ["simulate", "--ranks", 4],
    "plan": ["plan", "--ranks", "2,4"],
    "tomography": ["verify", "ring", "--tomography"],
    "compare": ["compare", "--tokens", 64],
    "certificate": ["verify", "ring", "--laws", "P31", "--cases", 3],
}


@unittest.skipUnless(shutil.which("chromium"), "no chromium on this machine: scripts/packages chromium installs it")
class PagesTest(ProgramTest):
    def made(self):
        text = self.file("<img src=x onerror=alert(1)>.txt", "It was the best of times, it was the worst.\n" * 40)
        files = {"TEXT": text, "TRACE": self.folder / "<i title=x>.json"}
        self.succeeds("run", "optimized", "--text", text, "--ranks", 4, "--trace", files["TRACE"])
        for name, words in COMMANDS.items():
            page = self.folder / f"{name}.html"
            kind = "--certificate" if name == "certificate" else "--html"
            self.succeeds(*(files.get(word, word) for word in words), kind, page)
            yield page

    def test_they_are_drawn_on_a_phone_and_keep_names_as_text(self):
        addresses = [page.as_uri() for page in self.made()]
        found, console = look(LOOK.replace("PAGES", str(addresses)).replace("PHONE", str(PHONE)))
        self.assertEqual(console, [])
        self.assertEqual(len(found), len(addresses))
        for name, seen in zip(COMMANDS, found):
            with self.subTest(page=name):
                self.assertGreaterEqual(seen["pictures"], 0 if name == "certificate" else 1)
                self.assertNotEqual(seen["text"], "")
                self.assertLessEqual(seen["width"], PHONE)
                self.assertEqual((seen["outside"], seen["injected"]), (0, 0))


if __name__ == "__main__":
    unittest.main()
