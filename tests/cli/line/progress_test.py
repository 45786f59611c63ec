"""What is drawn on a terminal while work goes on: how far it is, which never goes back."""
import os
import re
import subprocess
import threading
import time
import unittest

from program import PROGRAM, ProgramTest

ENOUGH = 2.5  # seconds; nothing is drawn in the first one

class ProgressTest(ProgramTest):
    def drawn(self, *words):
        """Every state of the line, in turn."""
        primary, terminal = os.openpty()
        text = []

        def read():
            try:
                while chunk := os.read(primary, 65536):
                    text.append(chunk)
            except OSError:  # how Linux ends a terminal
                pass

        reader = threading.Thread(target=read)
        reader.start()
        begin = time.monotonic()
        done = subprocess.run([PROGRAM, *map(str, words)], stdout=subprocess.PIPE, stderr=terminal,
                              timeout=250)
        seconds = time.monotonic() - begin
        os.close(terminal)
        reader.join()
        os.close(primary)
        self.assertEqual(done.returncode, 0, done.stdout)
        if seconds < ENOUGH:
            self.skipTest(f"done in {seconds:.1f} s: too fast to be looked at")
        lines = b"".join(text).decode().split("\r\x1b[K")
        return [line for line in lines if line]

    def check_percents(self, lines):
        percents = [int(found[1]) for line in lines if (found := re.search(r"\] +(\d+) %", line))]
        self.assertGreater(len(percents), 2, lines)
        self.assertEqual(percents, sorted(percents), lines)
        self.assertLess(percents[0], percents[-1], lines)
        bars = [found[0].count("#") for line in lines if (found := re.search(r"\[#*\.*\]", line))]
        self.assertEqual(bars, sorted(bars), lines)

    def test_the_bar_of_plan_never_goes_back(self):
        """Over several numbers of ranks, the larger of which take longer, in any order."""
        self.check_percents(self.drawn("plan", "--tokens", 1 << 18, "--ranks", "64,128,80,96,112"))

    def test_a_long_check_says_what_is_left_and_what_is_faster(self):
        lines = self.drawn("run", "optimized", "--random", "--tokens", 6000, "--heads", 1,
                           "--kv-heads", 1, "--check")
        lines = [line for line in lines if "checking" in line and "%" in line]
        self.check_percents(lines)
        for line in lines:
            self.assertRegex(line, r"\d+ %  (\d+ s|[\d:]+), (\d+ s|[\d:]+) left  checking "
                                   r"\(--check-rows \d+ is faster\)")


if __name__ == "__main__":
    unittest.main()
