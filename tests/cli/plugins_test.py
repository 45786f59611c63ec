"""`ringlab verify|run|list ./libmine.so`: the kernels of others, from the command line."""
import contextlib
import json
import os
import pathlib
import pty
import shutil
import signal
import subprocess
import time
import unittest

from program import PROGRAM, ProgramTest, ringlab

PLUGINS = pathlib.Path(os.environ.get("RINGLAB_TEST_PLUGINS", "build/plugins"))


class PluginTest(ProgramTest):
    def plugin(self, name):
        path = PLUGINS / f"lib{name}_plugin.so"
        if not path.exists():
            self.skipTest(f"{path} was not built")
        return path

    def verdict(self, code, *words, **options):
        """The subject's part of the JSON."""
        found = self.folder / "found.json"
        result = ringlab("verify", *words, "--json", found, **options)
        self.assertEqual(result.code, code, result.out + result.err)
        return result, json.loads(found.read_text())["subjects"][0]

    def test_a_right_plugin_passes_and_says_what_was_skipped(self):
        path = self.plugin("template")
        page = self.folder / "page.html"
        result, subject = self.verdict(0, path, "--quick", "--html", page)
        self.assertEqual(subject["verdict"], "pass")
        self.assertEqual(subject["subject"], str(path))
        self.assertGreater(subject["laws_held"], 40)
        self.assertIn("runs on one rank only", result.out)
        self.assertIn("same_addresses", page.read_text())

    def test_a_wrong_plugin_fails_with_a_line_that_fails_again(self):
        result, subject = self.verdict(1, self.plugin("broken"), "--laws", "equals_reference")
        failure = next(law for law in subject["laws"] if law["verdict"] == "broken")
        token = next(line.split()[-1] for line in result.out.splitlines()
                     if line.strip().startswith("replay"))
        self.assertIn("libbroken_plugin.so/equals_reference/", token)
        again = ringlab("verify", "--replay", token)
        self.assertEqual(again.code, 1, again.out + again.err)
        self.assertIn("broken", again.out)
        self.assertIn("lse", json.dumps(failure))

    def test_a_crash_and_a_hang_are_verdicts(self):
        path = self.plugin("misbehaving")
        for mistake, words in {"crash": "SIGSEGV", "hang": "within 0.2 s"}.items():
            environment = {**os.environ, "RINGLAB_TEST_MISTAKE": mistake}
            result, subject = self.verdict(1, path, "--laws", "equals_reference,P1", "--timeout",
                                           "0.2", "--cases", "2", env=environment)
            self.assertIn(words, result.out)
            self.assertEqual(subject["verdict"], "wrong")

    def ends(self, code, words, plugin, mistake, *more):
        result = ringlab("verify", self.plugin(plugin), *more,
                         env={**os.environ, "RINGLAB_TEST_MISTAKE": mistake})
        self.assertEqual(result.code, code, result.out + result.err)
        self.assertIn(words, result.out + result.err)

    def test_a_cheat_never_ends_with_0(self):
        cases = {"exits_at_load": (4, "exit code 0"), "exits_quickly": (1, "exit code 0"),
                 "ends_itself": (1, "SIGKILL"), "hangs_up": (1, "it "),
                 "leaves_its_group": (1, "within 0.2 s"), "ignores_its_end": (1, "within 0.2 s")}
        for cheat, (code, words) in cases.items():
            self.ends(code, words, "cheating", cheat, "--laws", "equals_reference", "--timeout",
                      "0.2", "--cases", "2", "--tokens", "8")
        for cheat in ("previous", "by_address", "by_first_bytes"):
            self.ends(1, "WRONG", "misbehaving", cheat, "--laws",
                      "equals_reference,same_call,same_addresses")

    def test_a_cheat_writes_to_no_terminal(self):
        words = ["verify", str(self.plugin("cheating")), "--laws", "equals_reference", "--cases", "2",
                 "--tokens", "8"]
        process, terminal = pty.fork()
        if process == 0:
            os.execve(PROGRAM, [PROGRAM, *words],
                      {**os.environ, "RINGLAB_TEST_MISTAKE": "terminals"})
        shown = b""
        with contextlib.suppress(OSError):  # how the end of a terminal is told
            while some := os.read(terminal, 4096):
                shown += some
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        if b"plugins run without" in shown:
            self.skipTest("no namespace for mounts")
        self.assertEqual(code, 0, shown.decode())

    def test_whoever_ends_the_judge_gets_no_0_and_leaves_nothing(self):
        for number, code in ((signal.SIGTERM, 4), (signal.SIGKILL, -signal.SIGKILL)):
            judge = subprocess.Popen([PROGRAM, "verify", self.plugin("template"), "--time", "60"],
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            time.sleep(2)
            children = pathlib.Path(f"/proc/{judge.pid}/task").glob("*/children")
            supervisors = [int(child) for file in children for child in file.read_text().split()]
            self.assertTrue(supervisors)
            judge.send_signal(number)
            judge.communicate(timeout=60)
            self.assertEqual(judge.returncode, code)
            time.sleep(1)
            self.assertEqual([p for p in supervisors if pathlib.Path(f"/proc/{p}/exe").exists()], [])

    def test_a_plugin_without_lse_is_verified_but_for_that(self):
        environment = {**os.environ, "RINGLAB_TEST_MISTAKE": "no_lse"}
        result, _ = self.verdict(0, self.plugin("misbehaving"), "--laws", "equals_reference,P26",
                                 env=environment)
        self.assertIn("gives no lse: it is not checked", result.out)
        self.assertIn("skipped P26", result.out)

    def test_several_subjects_may_be_plugins_and_ours(self):
        result = self.succeeds("verify", self.plugin("template"), "ring", self.plugin("flash1"),
                               "--quick", "--laws", "equals_reference")
        self.assertIn("3 of 3 subjects pass", result.out)

    def test_run_computes_and_checks_with_a_plugin(self):
        output = self.folder / "o.safetensors"
        result = self.succeeds("run", self.plugin("template"), "--random", "--tokens", 100,
                               "--ranks", 1, "--check", "--output", output)
        self.assertIn("error", result.out)
        self.assertTrue(output.exists())

    def test_modifiers_that_a_plugin_claims_are_run_and_others_are_refused(self):
        path = self.plugin("flash1")
        wishes = ["--random", "--tokens", 60, "--heads", 2]
        result = self.succeeds("run", path, *wishes, "--softcap", 5, "--alibi", "default",
                               "--check")
        self.assertIn("error", result.out)
        self.fails(2, ["--sinks", "a subject that knows this modifier"], "run", path, *wishes,
                   "--softcap", 5, "--sinks", 1)
        self.fails(2, ["--softcap", "a subject that modifies scores"], "run",
                   self.plugin("template"), *wishes, "--softcap", 5)

    def test_list_shows_what_a_plugin_claims(self):
        path = self.folder / "list.json"
        result = self.succeeds("list", self.plugin("flash1"), "--json", path)
        self.assertIn("softcap alibi", result.out)
        self.assertEqual(json.loads(path.read_text())["subjects"][0]["modifier_kinds"],
                         ["softcap", "alibi"])
        self.assertIn("the loop order of the first FlashAttention", result.out)
        self.assertNotIn("broadcast", result.out)

    def test_what_cannot_be_loaded_is_explained(self):
        missing = self.folder / "libmissing.so"
        self.fails(3, ["libmissing.so", "nothing there"], "verify", missing)
        endless = f"./{'a' * 300}.so"
        self.fails(3, ["plugin " + endless, "a shared library", "too long"], "verify", endless)
        text = self.file("libtext.so", "no library at all, just a few words in a row .............")
        self.fails(3, ["no ELF file", "shared library for this machine"], "verify", text)
        self.fails(3, ["exports no symbol", "docs/plugins.md"], "verify", self.plugin("no_entry"))
        environment = {**os.environ, "RINGLAB_TEST_MISTAKE": "version"}
        self.fails(3, ["version 9", "Build it again"], "verify", self.plugin("misbehaving"),
                   env=environment)
        environment["RINGLAB_TEST_MISTAKE"] = "crash_at_load"
        self.fails(4, "SIGSEGV", "verify", self.plugin("misbehaving"), env=environment)

    def test_another_machines_library_is_refused(self):
        library = bytearray(self.plugin("template").read_bytes())
        library[18:20] = (0x15, 0x00)  # e_machine: PowerPC
        self.fails(3, ["another kind of machine", "shared library for this machine"], "list",
                   self.file("libother.so", bytes(library)))

    def test_a_name_without_a_slash_is_looked_for_here(self):
        shutil.copy(self.plugin("template"), self.folder / "libhere.so")
        done = subprocess.run([pathlib.Path(PROGRAM).resolve(), "list", "libhere.so"],
                              cwd=self.folder, timeout=60, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_ranks_are_refused_where_a_plugin_knows_none(self):
        self.fails(2, "one rank", "run", self.plugin("template"), "--random", "--ranks", 2)


if __name__ == "__main__":
    unittest.main()
