"""scripts/packages on a made-up machine: it installs what is missing, and waits for whoever holds the
lock of the packages."""
import os
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "packages"
LOCKED = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 42 (apt-get)"
NO_NETWORK = "E: Failed to fetch http://packages.example/InRelease"

# Programs of that machine: what they are asked goes to "calls"; "updates" says what the next update
# ends with, a line for each.
DPKG_QUERY = """[ "$(cat installed 2>/dev/null | grep -x "${@: -1}")" ] && echo installed; exit 0"""
APT_GET = """
echo "apt-get $*" >> calls
for word in "$@"; do
  [ "$word" != update ] || { said=$(head -n 1 updates); sed -i 1d updates; }
done
[ -z "$said" ] || { echo "$said" >&2; exit 100; }
"""


class PackagesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ringlab-packages-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name, body in {"dpkg-query": DPKG_QUERY, "apt-get": APT_GET, "id": "echo 0",
                           "sleep": 'echo "sleep $*" >> calls'}.items():
            program = self.folder / name
            program.write_text(f"#!/usr/bin/env bash\ncd {self.folder}\n{body}\n")
            program.chmod(0o755)
        (self.folder / "calls").write_text("")

    def packages(self, *wanted, updates=()):
        (self.folder / "updates").write_text("".join(f"{line}\n" for line in updates))
        done = subprocess.run([SCRIPT, *wanted], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"})
        calls = (self.folder / "calls").read_text().splitlines()
        return done, [call for call in calls if call.startswith("apt-get")], \
            sum(call.startswith("sleep") for call in calls)

    def test_what_is_installed_is_left_alone(self):
        (self.folder / "installed").write_text("one\ntwo\n")
        done, calls, _ = self.packages("one", "two")
        self.assertEqual((done.returncode, calls), (0, []), done.stderr)

    def test_what_is_missing_is_installed(self):
        (self.folder / "installed").write_text("one\n")
        done, calls, waits = self.packages("one", "two")
        self.assertEqual((done.returncode, waits), (0, 0), done.stderr)
        self.assertEqual(len(calls), 2)
        self.assertIn("install", calls[1])
        self.assertTrue(calls[1].endswith(" two"), calls)

    def test_a_lock_of_others_is_waited_for(self):
        done, calls, waits = self.packages("two", updates=[LOCKED] * 3)
        self.assertEqual((done.returncode, waits), (0, 3), done.stderr)
        self.assertEqual([call.split()[1] for call in calls[:4]], ["update"] * 4)
        self.assertIn("DPkg::Lock::Timeout=", calls[4])
        self.assertEqual(done.stderr, "")

    def test_a_lock_that_stays_is_told_in_the_end(self):
        done, calls, waits = self.packages("two", updates=[LOCKED] * 1000)
        self.assertEqual(done.returncode, 4)
        self.assertGreater(waits, 50)
        self.assertIn("held by process 42", done.stderr)
        self.assertFalse(any("install" in call for call in calls))

    def test_what_is_no_lock_is_told_at_once(self):
        done, _, waits = self.packages("two", updates=[NO_NETWORK])
        self.assertEqual((done.returncode, waits), (4, 0))
        self.assertIn(NO_NETWORK, done.stderr)


if __name__ == "__main__":
    unittest.main()
