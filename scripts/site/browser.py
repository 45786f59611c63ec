"""Headless Chromium: what a page is after its scripts ran, and what its console said."""
import html
import json
import pathlib
import re
import subprocess
import tempfile

FOUND = """<script>
const tell = found => {
  document.body.innerHTML = "";
  const told = document.createElement("pre");
  told.id = "found";
  told.textContent = JSON.stringify(found);
  document.body.append(told);
};
const opened = async (address, width, scripts = true) => {
  const frame = document.createElement("iframe");
  frame.style = `width:${width}px;height:900px;border:0`;
  if (!scripts) frame.sandbox = "allow-same-origin";
  frame.src = address;
  await new Promise(done => { frame.onload = done; document.body.append(frame); });
  return frame;
};
const rest = ms => new Promise(done => setTimeout(done, ms));
</script>"""


def look(script: str, dark: bool = False) -> tuple[list, list[str]]:
    """Runs a script in a page that may open others, `opened(address, width, scripts)`, and ends with
    `tell(found)`. What it found, and the lines of the console."""
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "look.html"
        page.write_text(f'<!doctype html><meta charset="utf-8"><body>{FOUND}<script>{script}</script>')
        done = subprocess.run(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-web-security",
             "--allow-file-access-from-files", f"--user-data-dir={folder}/profile",
             f"--blink-settings=preferredColorScheme={0 if dark else 1}", "--window-size=1300,1000",
             "--enable-logging=stderr", "--virtual-time-budget=600000", "--dump-dom", page.as_uri()],
            capture_output=True, text=True, timeout=300)
    console = [line.split("CONSOLE", 1)[1] for line in done.stderr.splitlines()
               if "CONSOLE" in line and "sandboxed" not in line]
    told = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
    if not told:
        return [], [*console, f"expected its findings, found {done.stderr[-500:]!r}"]
    return json.loads(html.unescape(told[1])), console
