"""Exit codes and messages of the command line, wrong ones above all."""
import json
import os
import pathlib
import re
import subprocess
import time
import unittest

from program import PROGRAM, ProgramTest, floats, npy, ones, rendered, ringlab, safetensors

TEXT = "It was the best of times, it was the worst of times, it was the age of wisdom.\n" * 4


class HelpTest(ProgramTest):
    def test_no_command_prints_the_help_and_is_a_usage_error(self):
        result = ringlab()
        self.assertEqual(result.code, 2)
        self.assertIn("Usage: ringlab COMMAND", result.err)

    def test_help_lists_every_command(self):
        text = self.succeeds("--help").out
        for name in ["doctor", "list", "run", "verify"]:
            self.assertIn(f"\n  {name} ", text)

    def test_every_command_has_help_with_examples(self):
        listed = re.findall(r"(?m)^  ([a-z]+)  ", self.succeeds("--help").out.split("Options:")[0])
        self.assertGreaterEqual(len(listed), 4)
        for name in listed:
            text = self.succeeds(name, "--help").out
            self.assertIn(f"Usage: ringlab {name}", text)
            self.assertIn("Examples:\n  ringlab ", text)
            self.assertIn("--json FILE", text)

    def test_help_and_version_have_their_usual_other_words(self):
        for words in [["run", "-h"], ["help", "run"]]:
            self.assertEqual(self.succeeds(*words).out, self.succeeds("run", "--help").out)
        self.assertEqual(self.succeeds("help", "bench").out, self.succeeds("bench", "--help").out)
        self.assertEqual(self.succeeds("help").out, self.succeeds("--help").out)
        self.assertEqual(self.succeeds("version").out, self.succeeds("--version").out)
        self.fails(2, "Did you mean verify?", "help", "verfy")

    def test_help_names_the_defaults(self):
        for words, defaults in [
                (["run"], {"ranks": "(1)", "layout": "(contiguous)", "mask": "(full)", "softcap": "(none)",
                           "schedule": "(ring)", "wire": "(exact)", "transport": "(threads)"}),
                (["verify"], {"ranks": "(4)", "layout": "(zigzag)", "mask": "(causal)",
                              "tokens": "with --quick 256)"}),
                (["simulate"], {"ranks": "(8)", "layout": "(zigzag)"})]:
            text = self.succeeds(*words, "--help").out
            for option, default in defaults.items():
                line = re.search(rf"(?ms)^  --{option} .*?(?=^  --|^$)", text).group(0)
                self.assertIn(default, " ".join(line.split()))

    def test_what_options_do_stands_in_one_column(self):
        for command in ("run", "verify", "plan", "simulate", "trace", "bench"):
            lines = self.succeeds(command, "--help").out.splitlines()
            columns = {re.match(r"  --\S+(?: \S+)? +", line).end() for line in lines if line.startswith("  --")}
            self.assertEqual(len(columns), 1, command)

    def test_bash_completes_commands_options_and_files(self):
        script = self.file("completion", self.succeeds("help", "--bash").out)
        self.file("inputs.npz", "")

        def completed(*words):
            line = " ".join(f"'{word}'" for word in words)
            done = subprocess.run(
                ["bash", "-c", f". {script}; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _ringlab; "
                               'echo "${COMPREPLY[@]}"'], cwd=self.folder, capture_output=True, text=True)
            return done.stdout.split()

        self.assertEqual(completed("ringlab", "simu"), ["simulate"])
        self.assertEqual(completed("ringlab", "run", "ring", "--softc"), ["--softcap"])
        self.assertEqual(completed("ringlab", "run", "inp"), ["inputs.npz"])
        told = set(re.findall(r"^  (--[\w-]+)", self.succeeds("verify", "--help").out, re.MULTILINE))
        self.assertEqual(set(completed("ringlab", "verify", "--")), told)

    def test_manual_pages_have_every_option(self):
        page = self.succeeds("help", "plan", "--man").out.replace("\\-", "-")
        for option in re.findall(r"^  (--[\w-]+)", self.succeeds("plan", "--help").out, re.MULTILINE):
            if option != "--help":
                self.assertIn(f".B {option}", page)
        self.assertIn("  simulate ", self.succeeds("help", "--man").out)

    def test_version(self):
        self.assertRegex(self.succeeds("--version").out, r"^ringlab \d+\.\d+\.\d+\n$")


class UsageTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.text = self.file("text.txt", TEXT)

    def test_an_unknown_command_suggests_the_nearest(self):
        self.fails(2, ['"verfy"', "Did you mean verify?"], "verfy")
        self.fails(2, "one of doctor, list, run, verify", "qqqqqqqqq")

    def test_an_unknown_option_suggests_the_nearest(self):
        self.fails(2, "Did you mean --ranks?", "run", "ring", "--text", self.text, "--rnks", "2")
        self.fails(2, "--zzzzzz", "list", "--zzzzzz")
        self.fails(2, "-q", "list", "-q")

    def test_suggestions_know_the_words_of_the_field(self):
        run = ["run", "ring", "--text", self.text]
        for meant, words in [
                ("f16", ["--dtype", "fp16"]), ("f32", ["--dtype", "float32"]),
                ("bf16", ["--dtype", "BFloat16"]), ("f64", ["--dtype", "double"]),
                ("causal", ["--mask", "causl"]), ("causal", ["--mask", "is_causal"]),
                ("window", ["--mask", "windw:3,0"]), ("cuda", ["--device", "gpu"]),
                ("--tokens", ["--seqlen", "5"])]:
            with self.subTest(words=words):
                self.fails(2, f"Did you mean {meant}?", *run, *words)
        self.fails(2, "Did you mean ring?", "run", "rng", "--text", self.text)
        self.fails(2, "Did you mean ring?", "run", "optimized", "--text", self.text, "--schedule", "rng")
        self.fails(2, "Did you mean equals_reference?", "verify", "--laws", "equal_reference")

    def test_an_option_without_a_name_is_unknown(self):
        self.fails(2, "--=ring", "run", "--=ring", "--text", self.text)
        self.fails(2, "--operand=ring", "run", "--operand=ring", "--text", self.text)
        self.fails(2, "an unknown one", "run", "--%option%%prefix%=", "--text", self.text)
        self.fails(2, "--operand", "run", "--operand", "ring", "--text", self.text)

    def test_abbreviated_options_are_unknown(self):
        self.fails(2, "--transp", "run", "ring", "--text", self.text, "--transp", "threads")

    def test_a_repeated_option_is_refused(self):
        for words in [["--ranks", "2", "--ranks", "3"], ["--check", "--check"]]:
            self.fails(2, ["given once"], "run", "ring", "--text", self.text, *words)

    def test_a_missing_or_empty_value_is_refused(self):
        self.fails(2, "ranks", "run", "ring", "--text", self.text, "--ranks")
        self.fails(2, "mask", "run", "ring", "--text", self.text, "--mask=")
        self.fails(2, "mask", "run", "ring", "--text", self.text, "--mask", "")

    def test_a_value_on_a_switch_is_refused(self):
        self.fails(2, "check", "run", "ring", "--text", self.text, "--check=yes")

    def test_operands_are_counted(self):
        self.fails(2, "SUBJECT", "run")
        self.fails(2, "ring merge", "run", "ring", "merge")
        self.fails(2, "options only", "doctor", "ring")

    def test_an_unknown_subject_is_refused(self):
        self.fails(2, "rong", "run", "rong", "--text", self.text)
        self.fails(2, "rong", "verify", "rong")
        self.fails(2, "more than once", "verify", "ring", "05")

    def test_an_option_without_effect_is_refused(self):
        folder = self.file("in/q.npy", npy(ones(6), (3, 2))).parent
        self.file("in/k.npy", npy(ones(6), (3, 2)))
        self.file("in/v.npy", npy(ones(6), (3, 2)))
        self.fails(2, ["--tokens", "changes nothing"], "run", "ring", "--input", folder, "--tokens", "3")
        self.fails(2, "--seed", "run", "ring", "--input", folder, "--seed", "3")
        self.fails(2, ["--delay-seed", "simulated"], "run", "ring", "--text", self.text,
                   "--delay-seed", "3")
        self.fails(2, ["--timeout", "threads"], "run", "ring", "--text", self.text,
                   "--transport", "simulated", "--timeout", "3")
        self.fails(2, "--cases", "verify", "--cases", "3", "--replay", "ring/P1/x")

    def test_two_inputs_or_none_are_refused(self):
        self.fails(2, "--input", "run", "ring")
        self.fails(2, "--text", "run", "ring", "--text", self.text, "--input", self.folder)

    def test_numbers_are_whole_and_in_range(self):
        wrong = {
            "--ranks": ["0", "-1", "4097", "2.5", "2x", " 2", "0x2", "+2", "two", "9" * 40, "1e3"],
            "--tokens": ["0", "-5", "9223372036854775808", "1k"],
            "--heads": ["0"], "--kv-heads": ["0", "3"], "--head-dim": ["0", "-1"],
            "--seed": ["-1", "18446744073709551616", "1.0"],
            "--tile-queries": ["0", "1025"], "--tile-keys": ["0", "4096"],
            "--timeout": ["0", "-1", "nan", "inf", "1e99", "5s"],
            "--softcap": ["-1", "nan", "inf", "1e-30", "1e30", "x"],
            "--alibi": ["customary", "1,", ",1", "1,,2", "nan", "1e30", "0.5 0.25"],
            "--sinks": ["inf", "1,x", "nan", "1e30", ",", "-1,"],
            "--dropout": ["1", "-0.1", "1.5", "nan", "half", "0.99999999999"],
            "--scale": ["nan", "NaN", "inf", "-inf", "infinity", "1e999", "one", "0.5f", "1,5"],
        }
        for option, values in wrong.items():
            for value in values:
                with self.subTest(option=option, value=value):
                    self.fails(2, [option], "run", "ring", "--text", self.text, option, value)

    def test_words_are_checked(self):
        for option in ["--layout", "--direction", "--transport", "--device"]:
            self.fails(2, [option, '"sideways"'], "run", "ring", "--text", self.text, option,
                       "sideways")
        self.fails(2, "f33", "run", "ring", "--text", self.text, "--dtype", "f33")
        for fp8 in ("fp8", "fp8_e4m3"):
            self.fails(2, [f'(f64, f32, f16, bf16), found "{fp8}"', "a storage and wire format"],
                       "run", "ring", "--text", self.text, "--dtype", fp8)
        self.fails(2, "each rank once, found rank 3 again", "simulate", "--slow", "3:2,3:4")
        self.fails(2, "Did you mean zigzag?", "run", "ring", "--text", self.text, "--layout",
                   "zigzg")

    def test_modifiers_are_refused_by_subjects_that_know_none(self):
        for words in [["--softcap", "30"], ["--alibi", "default"], ["--alibi", "0.5"],
                      ["--sinks", "-1,2"], ["--dropout", "0.1"], ["--dropout-seed", "3"]]:
            with self.subTest(words=words):
                self.fails(2, [words[0], "a subject that modifies scores"], "run", "ring", "--text",
                           self.text, *words)
                self.fails(2, [words[0], "a subject that modifies scores"], "verify", "ring",
                           "causal_ring", "--quick", "--cases", "1", *words)

    def test_masks_are_checked(self):
        for mask in ["casual", "window:3", "window:a,b", "window:1,2,3", "prefix:", "prefix:-1",
                     "documents:", "documents:3,x", "causal+", "+causal", "full,causal"]:
            with self.subTest(mask=mask):
                self.fails(2, "mask", "run", "ring", "--text", self.text, "--mask", mask)
        self.fails(3, "documents", "run", "ring", "--text", self.text, "--mask", "documents:1,2")

    def test_laws_and_tokens_are_checked(self):
        self.fails(2, "P999", "verify", "--laws", "P999")
        self.fails(2, "", "verify", "--laws", "P1,")
        for token in ["nonsense", "ring/P1", "ring/P1/", "rong/P1/b1", "/", "a/b/c/d"]:
            with self.subTest(token=token):
                self.fails(2, "", "verify", "--replay", token)
        self.fails(2, "--replay", "verify", "ring", "--replay", "ring/P1/b1")

    def test_a_law_that_does_not_concern_the_subject_is_not_broken_by_it(self):
        case = ("b1.h1.g1.q2.k2.d2.v2.r2.f32.unit.contiguous.next.normal.simulated.buffered.n0.x4.y4."
                "ring.c2.full.s3")
        told = ringlab("verify", "--replay", f"ring/gradients_equal_reference/{case}")
        self.assertEqual(told.code, 0, told.out + told.err)
        self.assertIn("discarded it computes no gradients", told.out)
        told = ringlab("verify", "--draw", "--replay", f"ring/P14/{case}")
        self.assertIn("the case as it is, before the law changes it:", told.out)


class SizeTest(ProgramTest):
    def test_sizes_are_checked_before_anything_is_allocated(self):
        most = str(1 << 40)
        self.fails(3, "", "verify", "--tokens", most, "--heads", "65536", "--kv-heads", "1",
                   "--head-dim", "65536", timeout=20)
        self.fails(4, "fewer tokens", "verify", "--tokens", most, timeout=20)
        text = self.file("text.txt", TEXT)
        self.fails(4, "fewer tokens", "run", "ring", "--text", text, "--heads", "65536",
                   "--head-dim", "65536", timeout=20)

    def test_tokens_beyond_the_text_are_noted(self):
        text = self.file("text.txt", "abc")
        result = self.succeeds("run", "broadcast", "--text", text, "--tokens", "100")
        self.assertIn("note: the text has 3 bytes, so 3 tokens instead of 100", result.out)


class OutputTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.text = self.file("text.txt", TEXT)
        self.words = ["run", "broadcast", "--text", self.text, "--tokens", "20"]

    def left(self):
        return sorted(str(p.relative_to(self.folder)) for p in self.folder.rglob("*"))

    def test_json_on_standard_output_has_it_to_itself(self):
        result = self.succeeds(*self.words, "--json", "-")
        document = json.loads(result.out)
        self.assertEqual(document["command"], "run")
        self.assertEqual(document["configuration"]["mask"], "full")
        self.assertEqual(document["configuration"]["ranks"], 1)
        self.assertIsNone(document["passed"])
        self.assertIn("broadcast", result.err)

    def test_every_command_writes_json(self):
        for words in [["doctor"], ["list"], ["verify", "broadcast", "--quick", "--cases", "1",
                                             "--laws", "equals_reference"]]:
            path = self.folder / "out.json"
            self.succeeds(*words, "--json", path)
            self.assertEqual(json.loads(path.read_text())["command"], words[0])

    def test_the_effective_configuration_is_echoed(self):
        result = self.succeeds(*self.words, "--ranks", "3", "--layout", "striped", "--mask",
                               "causal+window:4,0", "--dtype", "bf16", "--scale", "-0.5",
                               "--transport", "simulated", "--delay-seed", "9")
        for name, value in {"ranks": "3", "layout": "striped", "mask": "causal+window:4,0",
                            "dtype": "bf16", "scale": "-0.5", "transport": "simulated",
                            "delay_seed": "9"}.items():
            self.assertRegex(result.out, rf"(?m)^  {name} +{value.replace('+', '[+]')}$")

    def test_the_echo_is_what_had_an_effect_differences_first(self):
        def echo(*words):
            result = self.succeeds("run", *words, "--text", self.text, "--tokens", "20", "--json",
                                   self.folder / "out.json")
            document = json.loads((self.folder / "out.json").read_text())
            return result.out.split("\n\n")[0], document["configuration"]

        text, configuration = echo("broadcast", "--ranks", "3")
        for name in ("schedule", "slots", "wire", "direction", "threads"):  # it honours none
            self.assertNotIn(name, configuration)
        self.assertEqual(configuration["q"], [1, 4, 20, 32])
        self.assertRegex(text, r"(?m)^  q +\(1, 4, 20, 32\)$")
        names = [line.split()[0] for line in text.splitlines() if line.startswith("  ")]
        self.assertLess(names.index("ranks"), names.index("by"))
        self.assertLessEqual(len(text.splitlines()), 10, text)
        self.assertIn("dtype f32, mask full", " ".join(text.split()))
        _, configuration = echo("optimized", "--ranks", "3", "--schedule", "broadcast")
        self.assertEqual(configuration["schedule"], "broadcast")
        self.assertNotIn("slots", configuration)
        self.assertNotIn("direction", configuration)
        _, configuration = echo("optimized")
        for name in ("layout", "schedule", "slots", "wire"):  # with one rank nothing is shared
            self.assertNotIn(name, configuration)

    def test_a_failure_is_json_too(self):
        for words, kind, code in [(["run", "rng", "--json", "-"], "usage", 2),
                                  (["run", "ring", "--nope", "--json=-"], "usage", 2),
                                  (["run", "ring", "--input", self.folder, "--json", "-"], "input", 3)]:
            result = ringlab(*words)
            self.assertEqual(result.code, code)
            document = json.loads(result.out)
            self.assertEqual((document["schema"], document["command"]), (1, "run"))
            error = document["error"]
            self.assertEqual((error["kind"], error["exit_code"]), (kind, code))
            self.assertEqual(result.err, f"ringlab: {error['message']}\n")
            self.assertIn(error["expected"], error["message"])
        path = self.folder / "out.json"
        self.fails(3, "", "run", "ring", "--input", self.folder, "--json", path)
        self.assertEqual(json.loads(path.read_text())["error"]["exit_code"], 3)
        before = self.text.read_bytes()
        self.fails(2, "", "run", "ring", "--text", self.text, "--json", self.text)
        self.assertEqual(self.text.read_bytes(), before)

    def test_what_cannot_be_written_is_refused_before_the_run(self):
        there = self.file("there", "mine")
        for path, code in [("-", 2), (self.folder / "x.npz", 2), (self.folder / "x.pt", 2),
                           (there, 4), (self.file("there.pt", ""), 4)]:
            for subject in ("broadcast", "reference"):
                result = ringlab("run", subject, *self.words[2:], "--output", path)
                self.assertEqual(result.code, code, result.err)
                self.assertIn("a file that ends in .safetensors, or a folder", result.err)
                self.assertEqual(result.out, "")
        self.assertEqual(there.read_text(), "mine")
        self.assertEqual(self.left(), ["text.txt", "there", "there.pt"])
        self.succeeds(*self.words, "--output", f"{self.folder / 'x.pt'}/")
        self.succeeds(*self.words, "--output", self.folder / "x.pt")
        self.succeeds(*self.words, "--output", self.folder / "y.SafeTensors")
        self.assertTrue((self.folder / "x.pt" / "o.npy").is_file())
        self.assertTrue((self.folder / "y.SafeTensors").is_file())

    def test_verdicts_are_coloured_on_a_terminal_only(self):
        def shown(**environment):
            primary, terminal = os.openpty()
            subprocess.run([PROGRAM, *map(str, self.words), "--check", "--output",
                            self.folder / "all pass"], stdout=terminal,
                           env={**os.environ, "TERM": "xterm", **environment})
            os.close(terminal)
            text = b""
            try:
                while chunk := os.read(primary, 65536):
                    text += chunk
            except OSError:  # how Linux ends a terminal
                pass
            os.close(primary)
            return text

        self.assertIn(b"\x1b[32mok\x1b[0m", shown())
        self.assertIn(b"all pass", shown())  # a name of a file is no verdict
        self.assertNotIn(b"\x1b", shown(NO_COLOR="1"))
        self.assertNotIn(b"\x1b", shown(TERM="dumb"))
        self.assertNotIn("\x1b", self.succeeds(*self.words, "--check").out)

    def test_results_go_to_a_folder_or_a_file(self):
        self.succeeds(*self.words, "--output", self.folder / "out")
        self.succeeds(*self.words, "--output", self.folder / "out.safetensors", "--check")
        self.assertEqual(self.left(), ["out", "out.safetensors", "out/lse.npy", "out/o.npy",
                                       "text.txt"])

    def test_unwritable_places_are_environment_errors_and_leave_nothing(self):
        for option in ["--output", "--json"]:
            self.fails(4, option, *self.words, option, self.folder / "missing" / "x.safetensors")
        self.fails(4, "--html", "verify", "--quick", "--html", self.folder / "missing" / "x.html")
        self.fails(4, "", *self.words, "--json", self.folder)
        too_long = self.folder / ("x" * 300)
        for words in [[*self.words, "--output"], ["verify", "--quick", "--html"]]:
            self.fails(4, [words[-1], "at most 255 bytes", "300 bytes"], *words, too_long)
        result = ringlab(*self.words, "--output", self.text / "o.safetensors")
        self.assertEqual(result.code, 4, result.err)
        self.assertEqual(self.left(), ["text.txt"])

    def test_the_input_is_not_overwritten(self):
        folder = self.file("in/q.npy", npy(ones(6), (3, 2))).parent
        for name in "kv":
            self.file(f"in/{name}.npy", npy(ones(6), (3, 2)))
        self.fails(2, "--output", "run", "broadcast", "--input", folder, "--output", folder)

    def test_a_full_standard_output_is_an_environment_error(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full on this system")
        with open("/dev/full", "wb") as full:
            for words in [["list"], ["list", "--json", "-"]]:
                done = subprocess.run([PROGRAM, *words], stdout=full, stderr=subprocess.PIPE)
                self.assertEqual(done.returncode, 4, done.stderr)

    def test_results_are_there_together_or_not_at_all(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full on this system")
        results = self.folder / "results"
        results.mkdir()
        made = ("--random", "--tokens", "8", "--trace", results / "trace.json", "--output")
        for output in ("o.safetensors", "folder"):
            words = ("run", "optimized", *made, results / output)
            self.assertEqual(ringlab(*words, "--json", "/dev/full").code, 4)
            self.assertEqual(list(results.iterdir()), [], output)
            with open("/dev/full", "wb") as full:
                done = subprocess.run([PROGRAM, *map(str, words)], stdout=full,
                                      stderr=subprocess.PIPE)
            self.assertEqual(done.returncode, 4, done.stderr)
            self.assertEqual(list(results.iterdir()), [], output)
        self.succeeds("run", "optimized", *made, results / "o.safetensors")
        self.assertEqual(len(list(results.iterdir())), 2)

    def test_results_go_to_no_pipe_that_nobody_reads(self):
        pipe, other = self.folder / "o.safetensors", self.folder / "c.json"
        os.mkfifo(pipe)
        os.mkfifo(other)
        made = ("--random", "--tokens", "8")
        for words in (("run", "optimized", *made, "--output", pipe),
                      ("run", "optimized", *made, "--json", pipe),
                      ("run", "optimized", *made, "--trace", pipe), ("simulate", "--svg", pipe),
                      ("plan", "--html", pipe), ("verify", "ring", "--certificate", other)):
            self.fails(2, [words[-2], "a pipe that nobody reads", "Start its reader"], *words, timeout=20)
        with open(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:
            self.succeeds("run", "optimized", *made, "--json", pipe)
            self.assertEqual(json.loads(reader.read())["command"], "run")

    def test_results_go_to_devices_and_standard_output(self):
        made = ("run", "optimized", "--random", "--tokens", "8")
        self.succeeds(*made, "--json", "/dev/null")
        self.assertTrue(pathlib.Path("/dev/null").is_char_device())
        self.assertIn('"command": "run"', self.succeeds(*made, "--json", "/dev/stdout").out)

    def test_links_are_followed_even_to_what_is_not_there_yet(self):
        made = ("run", "optimized", "--random", "--tokens", "8", "--output")
        folder, circle = self.folder / "link", self.folder / "circle.safetensors"
        folder.symlink_to("real")
        self.assertEqual(ringlab(*made, folder, "--json", "/dev/full").code, 4)
        self.assertFalse((self.folder / "real").exists())
        self.succeeds(*made, folder)
        self.assertTrue(folder.is_symlink())
        self.assertTrue((self.folder / "real" / "o.npy").is_file())
        circle.symlink_to(circle.name)
        self.fails(4, "a link that leads nowhere", *made, circle)
        self.assertTrue(circle.is_symlink())

    def test_as_many_tokens_as_there_may_be_are_answered_at_once(self):
        begin = time.monotonic()
        for command in (["plan"], ["simulate"], ["run", "optimized", "--random"], ["verify"]):
            for tokens in (10**12, 3 * 10**9):
                self.assertIn(ringlab(*command, "--mask", "causal", "--tokens", tokens).code,
                              (0, 3, 4), command)
        self.assertLess(time.monotonic() - begin, 30)  # a busy machine's seconds

    def test_nothing_is_drawn_when_piped(self):
        result = self.succeeds("verify", "broadcast", "--quick", "--cases", "2")
        self.assertNotIn("\r", result.err + result.out)
        self.assertEqual(result.err, "")

    def on_a_terminal(self, *words):
        """What is drawn, and the seconds that a verification takes."""
        primary, terminal = os.openpty()
        start = time.monotonic()
        done = subprocess.run([PROGRAM, "verify", "broadcast", "--tokens", "64", "--laws",
                               "equals_reference", *words], stdout=subprocess.PIPE, stderr=terminal)
        seconds = time.monotonic() - start
        os.close(terminal)
        drawn = b""
        try:
            while chunk := os.read(primary, 65536):
                drawn += chunk
        except OSError:  # how Linux ends a terminal
            pass
        os.close(primary)
        self.assertEqual(done.returncode, 0)
        self.assertNotIn(b"\x1b", done.stdout)
        return drawn, seconds

    def test_progress_is_drawn_on_a_terminal_only_and_wiped(self):
        drawn, seconds = self.on_a_terminal("--cases", "2")
        if seconds < 0.9:
            self.assertEqual(drawn, b"", "nothing is drawn in the first second")
        drawn, _ = self.on_a_terminal("--time", "3")
        self.assertIn(b"equals_reference", drawn)
        self.assertTrue(drawn.endswith(b"\r\x1b[K"), drawn[-80:])

    def test_results_are_the_same_for_every_transport(self):
        outputs = []
        for transport in ["threads", "simulated"]:
            path = self.folder / f"{transport}.safetensors"
            self.succeeds("run", "ring", "--text", self.text, "--tokens", "20", "--ranks", "3",
                          "--transport", transport, "--output", path)
            outputs.append(path.read_bytes())
        self.assertEqual(outputs[0], outputs[1])


class RunTest(ProgramTest):
    def test_results_have_as_many_dimensions_as_the_input(self):
        for shape in [(3, 2), (1, 3, 2), (1, 1, 3, 2)]:
            for name in "qkv":
                self.file(f"in/{name}.npy", npy(ones(6), shape))
            self.succeeds("run", "broadcast", "--input", self.folder / "in", "--output",
                          self.folder / "out")
            header = (self.folder / "out" / "o.npy").read_bytes()[:128]
            self.assertIn(str(shape).encode(), header)
            lse = (self.folder / "out" / "lse.npy").read_bytes()[:128]
            self.assertIn(str(shape[:-1]).encode(), lse)

    def test_rounding_is_told(self):
        for name in "qkv":
            self.file(f"in/{name}.npy", npy([0.1, 0.2, 0.3, 0.4, 0.5, 0.75], (3, 2), "<f8"))
        result = self.succeeds("run", "broadcast", "--input", self.folder / "in", "--dtype", "f16")
        self.assertIn("note: q rounded from f64 to f16: 4 of 6 values changed", result.out)
        result = self.succeeds("run", "broadcast", "--input", self.folder / "in")
        self.assertNotIn("rounded", result.out)
        self.assertIn("by default  dtype f64", result.out)

    def test_products_that_overflow_are_told(self):
        for name in "qkv":
            self.file(f"in/{name}.npy", npy([2e19] * 6, (3, 2)))
        for subject in ("broadcast", "reference"):
            result = self.succeeds("run", subject, "--input", self.folder / "in")
            self.assertRegex(result.out, r"note: q and k are so large that q·k may overflow: up to "
                             r"8e\+38 where f32 ends at 3\.4")
        self.file("in/k.npy", npy([1e18] * 6, (3, 2)))
        result = self.succeeds("run", "broadcast", "--input", self.folder / "in")
        self.assertNotIn("overflow", result.out)

    def test_values_beyond_the_dtype_are_refused(self):
        for name in "qkv":
            self.file(f"in/{name}.npy", npy([1e6, 2, 3, 4, 5, 6], (3, 2)))
        self.fails(3, ["tensor q at [0, 0]", "65504"], "run", "broadcast", "--input",
                   self.folder / "in", "--dtype", "f16")

    def test_other_tensors_in_a_file_are_left_alone(self):
        path = self.file("x.safetensors", safetensors({n: ("F32", (3, 2), floats(6))
                                                       for n in ["k", "other", "q", "v"]}))
        self.succeeds("run", "broadcast", "--input", path, "--check")

    def test_a_deadline_that_passes_is_an_environment_error_and_leaves_nothing(self):
        text = self.file("text.txt", TEXT)
        result = ringlab("run", "ring", "--text", text, "--ranks", "64", "--timeout", "1e-6",
                         "--output", self.folder / "out")
        self.assertEqual(result.code, 4, result.err)
        self.assertRegex(result.err, r"^ringlab: rank \d+: .* from rank \d+[ ,]")
        self.assertFalse((self.folder / "out").exists())

    def test_a_subject_that_fails_is_wrong_and_reported(self):
        text, page = self.file("text.txt", TEXT), self.folder / "report.html"
        result = ringlab("verify", "ring", "broadcast", "--text", text, "--ranks", "64",
                         "--timeout", "1e-6", "--laws", "U", "--cases", "1", "--html", page,
                         "--json", self.folder / "out.json")
        self.assertEqual(result.code, 1, result.out + result.err)
        self.assertIn("ring is WRONG: it fails instead of answering\n", result.out)
        self.assertIn("What went wrong", rendered(page))
        document = json.loads((self.folder / "out.json").read_text())
        self.assertFalse(document["passed"])
        self.assertEqual(document["subjects"][0]["verdict"], "wrong")

    def test_list_tells_what_each_subject_can(self):
        result = self.succeeds("list", "--json", self.folder / "list.json")
        listed = {subject["name"]: subject for subject in
                  json.loads((self.folder / "list.json").read_text())["subjects"]}
        text = self.file("text.txt", TEXT)
        for name, can in listed.items():
            for option, has in [("--backward", can["backward"]), ("--slots=2", can["slots"]),
                                ("--schedule=ring", can["schedules"]),
                                (f"--trace={self.folder / 'trace.json'}", can["traces"])]:
                code = ringlab("run", name, "--text", text, "--tokens", "5", option).code
                runs = has and "cpu" in can["devices"]
                self.assertEqual(code, 0 if runs else 2, (name, option))
        only_on_devices = [name for name, can in listed.items() if "cpu" not in can["devices"]]
        self.assertEqual(only_on_devices, ["cudnn"])
        for line in result.out.split("\n\n")[1].splitlines()[1:]:
            name, *cells = line.split()
            for word in ("backward", "slots", "schedules"):
                self.assertEqual(word in cells, listed[name][word], line)
            self.assertEqual("cuda" in cells, "cuda" in listed[name]["devices"], line)

    def test_doctor_tells_how_to_get_mpi_or_that_it_is_there(self):
        result = self.succeeds("doctor", "--json", self.folder / "doctor.json")
        mpi = json.loads((self.folder / "doctor.json").read_text())["mpi"]
        [line] = [line for line in result.out.splitlines() if line.startswith("MPI ")]
        run = ringlab("run", "optimized", "--text", self.file("text.txt", TEXT), "--tokens", "5",
                      "--transport", "mpi")
        self.assertEqual(run.code, 0 if mpi["compiled_in"] else 4, run.err)
        self.assertIn("mpirun" if mpi["compiled_in"] else "RINGLAB_MPI", line)

    def test_cuda_without_a_device_is_an_environment_error(self):
        document = json.loads(self.succeeds("doctor", "--json", "-").out)
        if document["cuda"]["compiled_in"] and document["cuda"]["devices"]:
            self.skipTest("this machine has a CUDA device and this build uses it")
        text = self.file("text.txt", TEXT)
        for words in [["run", "ring"], ["verify", "ring", "--quick"]]:
            self.fails(4, "device cuda", *words, "--text", text, "--device", "cuda")


if __name__ == "__main__":
    unittest.main()
