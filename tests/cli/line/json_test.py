"""What --json says of every command, whether it ends well or not."""
import json
import re
import shutil
import unittest

from mpi_job import JobTest
from program import ProgramTest, ringlab

USAGE, INPUT, ENVIRONMENT = 2, 3, 4
KINDS = {USAGE: "usage", INPUT: "input", ENVIRONMENT: "environment"}
NAMES_OF_VERSIONS = re.compile(r"(version|capability|ringlab|driver)$")  # "13.0" is no number
PARTS = {"kind", "exit_code", "message", "where", "expected", "found", "hint"}


def values_in(document, name=""):
    """All names and values of leaves."""
    if isinstance(document, dict):
        for key, value in document.items():
            yield from values_in(value, key)
    elif isinstance(document, list):
        for value in document:
            yield from values_in(value, name)
    else:
        yield name, document


def is_number(text):
    try:
        float(text)
        return text not in ("inf", "-inf", "nan")
    except ValueError:
        return False


class JsonTest(ProgramTest):
    def failure(self, code, *words, **options):
        """The document of a command that ends with this code, the same in a file and on standard
        output."""
        path = self.folder / "out.json"
        result = ringlab(*words, "--json", path, **options)
        said = f"{words}\n{result.out}\n{result.err}"
        self.assertEqual(result.code, code, said)
        document = json.loads(path.read_text())
        self.assertEqual(document["schema"], 1, said)
        self.assertEqual(document["command"], words[0], said)
        error = document["error"]
        self.assertEqual(set(error), PARTS, said)
        self.assertEqual((error["kind"], error["exit_code"]), (KINDS[code], code), said)
        self.assertIn(error["message"], result.err, said)
        on_output = ringlab(*words, "--json", "-", **options)
        self.assertEqual(on_output.code, code, said)
        self.assertEqual(set(json.loads(on_output.out)["error"]), PARTS, said)
        return error

    def test_every_command_that_is_refused_says_so(self):
        for words, where in [
                (["run", "nonsense", "--random"], "subject"),
                (["run", "ring", "--random", "--scale", "x"], "--scale"),
                (["run", "reference", "--random", "--mask", "x"], "mask"),
                (["verify", "nonsense"], "subject"),
                (["verify", "ring", "--laws", "nonsense"], "law"),
                (["plan", "--tokens", "0"], "--tokens"),
                (["simulate", "--ranks", "0"], "--ranks"),
                (["bench", "--tokens", "0"], "--tokens"),
                (["bench", "--ranks", "1:2"], "--ranks"),
                (["list", "nonsense"], "subject")]:
            with self.subTest(words=words):
                error = self.failure(USAGE, *words)
                self.assertIn(where, error["where"])
                self.assertNotEqual(error["expected"], "")

    def test_wrong_input_is_said(self):
        text = self.file("x.txt", "no tensors")
        for words in (["run", "ring", "--input", self.folder], ["trace", text],
                      ["run", "ring", "--text", self.folder / "missing"],
                      ["verify", "ring", "--input", self.folder],
                      ["verify", "--check-certificate", text]):
            with self.subTest(words=words):
                self.failure(INPUT, *words)

    def test_what_the_machine_refuses_is_said(self):
        for words in (["run", "ring", "--random", "--tokens", 10**12],
                      ["run", "ring", "--random", "--tokens", 8, "--output",
                       self.folder / "missing" / "o.safetensors"]):
            with self.subTest(words=words):
                self.failure(ENVIRONMENT, *words)

    def test_a_subject_that_is_wrong_is_no_failure(self):
        """It has results, and what is wrong is in them."""
        path = self.folder / "out.json"
        result = ringlab("run", "ring", "--random", "--tokens", 8, "--check", "--json", path)
        self.assertEqual(result.code, 0)
        self.assertNotIn("error", json.loads(path.read_text()))

    def test_shapes_and_figures_are_numbers(self):
        path = self.folder / "out.json"
        trace = self.folder / "trace.json"
        for words in (["run", "optimized", "--random", "--tokens", 40, "--ranks", 3, "--check",
                       "--trace", trace],
                      ["run", "ring", "--random", "--tokens", 40, "--check-rows", 3],
                      ["run", "reference", "--random", "--tokens", 8],
                      ["verify", "ring", "--quick", "--laws", "equals_reference", "--cases", 2],
                      ["plan", "--tokens", 4096], ["simulate", "--tokens", 4096, "--ranks", 4],
                      ["bench", "--tokens", "64:128:x2"], ["trace", trace], ["doctor"],
                      ["list"]):
            with self.subTest(words=words):
                path.unlink(missing_ok=True)
                result = ringlab(*words, "--json", path)
                self.assertEqual(result.code, 0, result.err)
                document = json.loads(path.read_text())
                self.assertEqual((document["schema"], document["command"]), (1, words[0]))
                for name, value in values_in(document):
                    if not isinstance(value, str) or NAMES_OF_VERSIONS.search(name):
                        continue
                    self.assertFalse(is_number(value), f"{name} is {value!r}, a text")
                    self.assertNotRegex(value, r"^\(\d+(, \d+)+\)$", f"{name} is a shape in a text")
                    self.assertNotRegex(value, r"^[\d.]+ ([KMGT]i?)?B(/s)?$", f"{name} in units")


@unittest.skipUnless(shutil.which("mpirun"), "mpirun is not installed (openmpi-bin)")
class JobJsonTest(JobTest):
    TIMEOUT = 60

    def setUp(self):
        super().setUp()
        self.path = self.folder / "out.json"
        probe = self.job(1, "--random", "--tokens", 8)
        if "built without MPI" in probe.errs[0]:
            self.skipTest("the program is built without MPI")

    def failure(self, job, code):
        self.assertNotEqual(job.codes, ["0"] * len(job.codes), job.said())
        document = json.loads(self.path.read_text())
        self.assertEqual((document["schema"], document["command"]), (1, "run"))
        error = document["error"]
        self.assertEqual((set(error), error["exit_code"]), (PARTS, code), job.said())
        self.assertEqual(error["kind"], KINDS[code])
        self.assertTrue(any(error["message"] in said for said in job.errs), job.said())
        self.assertEqual([file.name for file in self.folder.glob(".*")], [], "temporary files")
        return error

    def start(self, *words, each=None, fault="", launcher=()):
        self.path.unlink(missing_ok=True)
        return self.job(2, "--random", "--tokens", 24, "--timeout", self.TIMEOUT, "--json",
                        self.path, *words, each=each, fault=fault, launcher=launcher)

    def test_words_that_all_ranks_refuse_are_an_error_of_its_own(self):
        error = self.failure(self.start("--scale", "x"), USAGE)
        self.assertEqual((error["where"], error["found"]), ("--scale", '"x"'))

    def test_words_that_one_rank_refuses_say_which(self):
        error = self.failure(self.start(each={0: (), 1: ("--mask", "bad")}), USAGE)
        self.assertTrue(error["message"].startswith("rank 1: mask: expected"), error)
        self.assertEqual((error["where"], error["found"]), ("mask", '"bad"'))

    def test_ranks_that_do_not_agree(self):
        error = self.failure(self.start(each={0: (), 1: ("--mask", "causal")}), ENVIRONMENT)
        self.assertIn("mask is full on rank 0 and causal on rank 1", error["found"])

    def test_a_rank_that_fails_whichever_it_is_and_however(self):
        for rank in (0, 1):
            for kind in ("fail", "memory", "kill"):
                with self.subTest(rank=rank, kind=kind):
                    job = self.start(fault=f"{rank}:2:before_send:{kind}",
                                     launcher=("--enable-recovery",))
                    error = self.failure(job, ENVIRONMENT)
                    self.assertIn(f"rank {rank}", error["message"])
                    self.assertEqual(set(job.codes) - {"4", "137", ""}, set(), job.said())

    def test_only_the_first_rank_speaks_on_standard_output(self):
        job = self.job(2, "--random", "--tokens", 24, "--scale", "x", "--json", "-")
        self.assertEqual(json.loads(job.out)["error"]["where"], "--scale", job.said())
        job = self.job(2, "--random", "--tokens", 24, "--json", "-", fault="1:2:before_send:fail")
        self.assertIn("rank 1", json.loads(job.out)["error"]["message"], job.said())

    def test_results_that_cannot_be_written(self):
        error = self.failure(self.start("--output", self.folder / "missing" / "o.safetensors"),
                             ENVIRONMENT)
        self.assertEqual(error["where"], "--output")


if __name__ == "__main__":
    unittest.main()
