"""Ends from outside while results are written: signals, a full disk. Nothing is left."""
import os
import signal
import subprocess
import time
import unittest

from program import PROGRAM, ProgramTest

RUN = ["run", "optimized", "--random", "--ranks", "2", "--tokens"]
SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGPIPE, signal.SIGALRM,
           signal.SIGXCPU, signal.SIGUSR1, signal.SIGUSR2)


class SignalsTest(ProgramTest):
    """A pipe that is full holds the program where all is written and nothing has its name."""

    def setUp(self):
        super().setUp()
        self.pipe = self.folder / "pipe"
        os.mkfifo(self.pipe)
        self.reader = os.fdopen(os.open(self.pipe, os.O_RDWR | os.O_NONBLOCK), "wb", buffering=0)
        self.addCleanup(self.reader.close)
        while self.reader.write(b" " * 4096):
            pass
        self.results = self.folder / "results"
        self.results.mkdir()

    def while_it_writes(self, output, before=()):
        """The program, once its temporary files are there."""
        words = [*RUN, "64", "--output", output, "--json", self.pipe]
        program = subprocess.Popen([*before, PROGRAM, *map(str, words)],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(program.communicate)
        self.addCleanup(program.kill)
        deadline = time.monotonic() + 60
        while not list(self.results.rglob("*.tmp")):
            self.assertIsNone(program.poll(), "it ended")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        time.sleep(0.1)
        return program

    def test_that_end_the_program_leave_nothing(self):
        for number in SIGNALS:
            for output in ("o.safetensors", "new"):
                with self.subTest(signal=number.name, output=output):
                    program = self.while_it_writes(f"{self.results}/{output}")
                    program.send_signal(number)
                    said = program.communicate(timeout=20)[1]
                    self.assertEqual(program.returncode, -number)
                    self.assertEqual(said.decode(), f"ringlab: ended by {number.name}.\n")
                    self.assertEqual(list(self.results.iterdir()), [])

    def test_end_a_program_whose_messages_nobody_reads(self):
        for number in SIGNALS:
            with self.subTest(signal=number.name):
                program = self.while_it_writes(self.results / "o.safetensors")
                program.stderr.close()
                program.stderr = None
                program.send_signal(number)
                self.assertIn(program.wait(timeout=20), (-number, -signal.SIGPIPE))
                self.assertEqual(list(self.results.iterdir()), [])

    def test_leave_what_was_there_before(self):
        output = self.results / "o.safetensors"
        output.write_bytes(b"before")
        program = self.while_it_writes(output)
        program.terminate()
        program.wait(timeout=20)
        self.assertEqual([path.read_bytes() for path in self.results.iterdir()], [b"before"])

    def test_that_are_ignored_stay_so(self):
        output = self.results / "o.safetensors"
        program = self.while_it_writes(output, before=("nohup",))
        program.send_signal(signal.SIGHUP)
        time.sleep(0.1)
        self.assertIsNone(program.poll())
        with open(self.pipe, "rb") as reader:
            self.reader.close()
            self.assertIn(b'"command": "run"', reader.read())
        self.assertEqual(program.wait(timeout=20), 0)
        self.assertEqual(list(self.results.iterdir()), [output])


class FullDiskTest(ProgramTest):
    # Free for results: nothing, less than one of them, one but not all of a folder's.
    SIZES = ("4k", "16k", "96k")
    SHAPE = ("256", "--head-dim", "64")

    def on_a_disk(self, size, script):
        """Runs a shell script with a file system of its own at the test's folder."""
        mount = (f"mount -t tmpfs -o size={size} none '{self.folder}' && "
                 f"cd '{self.folder}' && {script}")
        way = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
        return subprocess.run([*way, "sh", "-c", mount], capture_output=True, timeout=60)

    def test_is_an_environment_error_and_nothing_is_left(self):
        if self.on_a_disk("4k", "true").returncode != 0:
            self.skipTest("no file system can be mounted here")
        run = " ".join([PROGRAM, *RUN, *self.SHAPE])
        for size in self.SIZES:
            for output in ("o.safetensors", "folder/"):
                done = self.on_a_disk(size, f"{run} --output {output} >/dev/null; echo $?; find .")
                said = f"{size} {output} {done}"
                self.assertEqual(done.stdout.split(), [b"4", b"."], said)
                self.assertIn(b"No space left", done.stderr, said)

    def test_leaves_no_part_of_labs(self):
        if self.on_a_disk("4k", "true").returncode != 0:
            self.skipTest("no file system can be mounted here")
        for size in self.SIZES:
            done = self.on_a_disk(size, f"{PROGRAM} lab export new/labs; echo $?; find .")
            self.assertEqual(done.stdout.split(), [b"4", b"."], f"{size} {done}")
            self.assertRegex(done.stderr, rb"ringlab: new/labs/\S+: .*No space left")


if __name__ == "__main__":
    unittest.main()
