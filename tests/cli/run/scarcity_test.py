"""A machine that has no more memory, threads, descriptors or room: exit 4 and a message, never a
verdict about a subject, a signal or silence."""
import os
import pathlib
import resource
import shutil
import subprocess
import tempfile
import unittest
import zipfile

from program import PROGRAM, ProgramTest, npy

PLUGINS = pathlib.Path(os.environ.get("RINGLAB_TEST_PLUGINS", "build/plugins"))
REFUSALS = os.environ.get("RINGLAB_REFUSALS", "")
NOBODY = 65534
FOR_EVER = 10**9
RIGHT, ENVIRONMENT = 0, 4

VERIFY = ["verify", "ring", "optimized", "--quick", "--laws", "equals_reference,P71", "--cases", "2"]
RUN = ["run", "optimized", "--random", "--tokens", "40", "--ranks", "3", "--check"]


class ScarcityTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.plugin = PLUGINS / "libtemplate_plugin.so"
        self.verify_plugin = ["verify", self.plugin, "--quick", "--laws", "equals_reference",
                              "--cases", "2"]

    def ends_well(self, words, said=None, **options):
        """Right, or the environment's fault with a message; the exit code, or None where the
        dynamic linker gave up before the program began."""
        done = subprocess.run([PROGRAM, *map(str, words)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=120, **options)
        text = f"{said or ''} {words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        if b"error while loading shared libraries" in done.stderr:
            return None  # by the dynamic linker, before the program began
        self.assertIn(done.returncode, (RIGHT, ENVIRONMENT), text)
        self.assertNotIn(b"terminate called", done.stderr, text)
        if done.returncode == ENVIRONMENT:
            self.assertIn(b"ringlab: ", done.stderr, text)
        return done.returncode


@unittest.skipUnless(REFUSALS, "no library that refuses")
class RefusalsTest(ScarcityTest):
    """One request is refused, or all from one on."""

    def refuse(self, kind, first, count, words, program="ringlab"):
        wish = f"{kind}:{first}:{count}:{program}"
        environment = {**os.environ, "LD_PRELOAD": REFUSALS, "RINGLAB_REFUSE": wish}
        return self.ends_well(words, wish, env=environment)

    def refuse_each(self, kind, numbers, words, program="ringlab"):
        codes = set()
        for first in numbers:
            for count in (1, FOR_EVER):
                codes.add(self.refuse(kind, first, count, words, program))
        return codes

    def test_of_memory_are_no_verdict(self):
        some = [int(1.7**i) for i in range(19)]
        for words in (RUN, VERIFY, self.verify_plugin):
            self.assertIn(ENVIRONMENT, self.refuse_each("memory", some, words))

    def test_of_memory_say_nothing_of_an_archive(self):
        path = self.folder / "x.npz"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for tensor in "qkv":
                archive.writestr(f"{tensor}.npy", npy([1.0] * 4, (1, 1, 2, 2)))
        words = ["run", "reference", "--input", path]
        # Nearly all before the archive is read are the program's own.
        for first in [*range(0, 1200, 60), *range(1200, 1500)]:
            self.refuse("memory", first, 1, words)
            if first % 20 == 0:
                self.refuse("memory", first, FOR_EVER, words)

    def test_of_threads_are_no_verdict(self):
        for words in (RUN, VERIFY):
            self.assertEqual(self.refuse_each("threads", range(10), words), {RIGHT, ENVIRONMENT})
        self.refuse_each("threads", range(3), self.verify_plugin)

    def test_of_descriptors_are_no_verdict(self):
        text = self.file("text.txt", "It was the best of times. " * 3)
        words = ["run", "optimized", "--text", text, "--output", self.folder / "o.safetensors"]
        self.assertEqual(self.refuse_each("descriptors", range(6), words), {RIGHT, ENVIRONMENT})
        self.assertEqual(self.refuse_each("descriptors", range(12), self.verify_plugin),
                         {RIGHT, ENVIRONMENT})

    def test_in_the_process_of_a_plugin_are_no_verdict(self):
        for kind in ("memory", "threads", "descriptors"):
            self.refuse_each(kind, [*range(6), 20, 100], self.verify_plugin, "ringlab-plugin-host")
        for kind in ("memory", "descriptors"):  # while walls are put up
            self.refuse_each(kind, range(6, 120, 3), self.verify_plugin, "ringlab-plugin-host")


class LimitsTest(ScarcityTest):
    def limited(self, limits, words, **options):
        def set_limits():
            for which, value in limits.items():
                resource.setrlimit(which, (value, value))
        return self.ends_well(words, limits, preexec_fn=set_limits, **options)

    def test_of_addresses_are_no_verdict(self):
        for kilobytes in range(30_000, 200_001, 10_000):
            for words in (RUN, VERIFY, self.verify_plugin):
                self.limited({resource.RLIMIT_AS: kilobytes * 1024}, words)

    def test_of_descriptors_are_no_verdict(self):
        for descriptors in (3, 4, 5, 6, 7, 8, 10, 12):
            for words in (RUN, VERIFY, self.verify_plugin):
                self.limited({resource.RLIMIT_NOFILE: descriptors}, words)

    @unittest.skipUnless(os.geteuid() == 0, "only root can run as somebody who runs nothing else")
    def test_of_processes_are_no_verdict(self):
        with tempfile.TemporaryDirectory(prefix="ringlab-cli-") as folder:
            os.chmod(folder, 0o755)
            here = pathlib.Path(PROGRAM).parent
            for name in ("ringlab", "ringlab-plugin-host"):
                shutil.copy(here / name, folder)
            shutil.copy(self.plugin, folder)
            for processes in (1, 2, 3, 4, 5, 7):
                for words in (RUN, VERIFY, [*self.verify_plugin[:1],
                                            f"{folder}/{self.plugin.name}", *self.verify_plugin[2:]]):
                    limit = f"ulimit -u {processes}; exec {folder}/ringlab \"$@\""
                    done = subprocess.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}",
                                           "--clear-groups", "bash", "-c", limit, "bash",
                                           *map(str, words)],
                                          capture_output=True, timeout=120, cwd=folder)
                    said = f"{processes} {words}\n{done.stdout}\n{done.stderr}"
                    self.assertIn(done.returncode, (RIGHT, ENVIRONMENT), said)
                    self.assertNotIn(b"terminate called", done.stderr, said)

    def test_of_file_sizes_are_failed_writes(self):
        output = self.folder / "o.safetensors"
        words = [*RUN[:-1], "--output", output]
        for size in (0, 1, 4096):
            code = self.limited({resource.RLIMIT_FSIZE: size}, words)
            self.assertEqual(code, ENVIRONMENT, size)
            self.assertEqual(list(self.folder.iterdir()), [])
        self.limited({resource.RLIMIT_FSIZE: 1000}, self.verify_plugin)


class StreamsTest(ProgramTest):
    """Standard output and error that are closed or full."""

    def code(self, redirection, *words):
        quoted = " ".join(f"'{word}'" for word in [PROGRAM, *words])
        return subprocess.run(["bash", "-c", f"{quoted} {redirection}"], capture_output=True,
                              timeout=120).returncode

    def test_a_message_that_cannot_be_written_changes_no_exit_code(self):
        for redirection in ("2>&-", "2>/dev/full", "2>&- >&-", "2>/dev/full <&- >&-"):
            self.assertEqual(self.code(redirection), 2, redirection)
            self.assertEqual(self.code(redirection, "nonsense"), 2, redirection)
            self.assertEqual(self.code(redirection, "run", "ring", "--text", "/nowhere"), 3)
        for redirection in ("2>&-", "2>/dev/full"):
            self.assertEqual(self.code(redirection, *RUN), 0, redirection)
            self.assertEqual(self.code(redirection, *VERIFY), 0, redirection)

    def test_results_that_cannot_be_written_are_an_error(self):
        for redirection in (">&-", ">/dev/full", ">/dev/full 2>&-", ">&- 2>/dev/full", ">&- <&-"):
            self.assertEqual(self.code(redirection, *RUN), 4, redirection)
            self.assertEqual(self.code(redirection, *RUN, "--json", "-"), 4, redirection)

    def test_a_file_never_takes_the_place_of_a_closed_stream(self):
        output = self.folder / "o.safetensors"
        for redirection, is_left in (("2>&-", True), ("2>&- <&-", True), (">&- 2>&- <&-", False)):
            self.code(redirection, *RUN[:-1], "--output", str(output))
            self.assertEqual(output.exists(), is_left)
            if is_left:
                self.assertNotIn(b"ringlab", output.read_bytes())
                output.unlink()


if __name__ == "__main__":
    unittest.main()
