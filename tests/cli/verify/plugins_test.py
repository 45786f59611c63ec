"""`ringlab verify|run|list ./libmine.so`: the kernels of others, from the command line."""
import contextlib
import json
import math
import os
import pathlib
import pty
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest

from program import PROGRAM, ProgramTest, npy, ringlab, verifying

# Starts a program on which the kernel has no Landlock, as before Linux 5.13.
WITHOUT_LANDLOCK = """
import ctypes, errno, os, sys
seccomp = ctypes.CDLL("libseccomp.so.2")
seccomp.seccomp_init.restype = ctypes.c_void_p
allow, refuse = 0x7fff0000, 0x00050000 | errno.ENOSYS
rules = ctypes.c_void_p(seccomp.seccomp_init(allow))
call = seccomp.seccomp_syscall_resolve_name(b"landlock_create_ruleset")
if seccomp.seccomp_rule_add(rules, refuse, call, 0) != 0 or seccomp.seccomp_load(rules) != 0:
    sys.exit("no filter")
os.environ["RINGLAB_TEST_JUDGE"] = str(os.getpid())
os.execv(sys.argv[1], sys.argv[1:])
"""
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
        self.assertRegex(token, "^libbroken_plugin.so@[0-9a-f]{12}/equals_reference/")
        self.assertIn(f"ringlab verify {self.plugin('broken')} --replay {token}", result.out)
        again = ringlab("verify", self.plugin("broken"), "--replay", token)
        self.assertEqual(again.code, 1, again.out + again.err)
        self.assertIn("broken", again.out)
        self.assertNotIn("note", again.out)
        elsewhere = shutil.copy(self.plugin("broken"), self.folder / "libother.so")
        again = ringlab("verify", elsewhere, "--replay", token)
        self.assertEqual(again.code, 1, again.out + again.err)
        self.assertNotIn("note", again.out)
        mended = ringlab("verify", self.plugin("template"), "--replay", token)
        self.assertEqual(mended.code, 0, mended.out + mended.err)
        self.assertIn("note: another library than that of the token", mended.out)
        self.fails(2, ["the library beside it", "verify PATH"], "verify", "--replay", token)
        self.assertIn("lse", json.dumps(failure))

    def test_a_crash_and_a_hang_are_verdicts(self):
        path = self.plugin("misbehaving")
        for mistake, words, seconds in [("crash", "SIGSEGV", 60), ("hang", "within 0.2 s", 0.2)]:
            environment = {**os.environ, "RINGLAB_TEST_MISTAKE": mistake}
            result, subject = self.verdict(1, path, "--laws", "equals_reference,P1", "--timeout",
                                           str(seconds), "--cases", "2", env=environment)
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
                      "0.2" if "within" in words else "60", "--cases", "2", "--tokens", "8")
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

    def test_without_namespaces_other_walls_stand_in_and_the_missing_ones_are_named(self):
        bare = ["unshare", "--user", "--map-root-user", "sh", "-c",
                'echo 0 > /proc/sys/user/max_user_namespaces && '
                'RINGLAB_TEST_JUDGE=$$ exec setpriv --bounding-set=-sys_admin "$@"', "sh"]
        if shutil.which("unshare") is None or subprocess.run([*bare, "true"]).returncode != 0:
            self.skipTest("no unshare or setpriv that may do this")
        self.walls_hold("plugins run without a user namespace, a process namespace", bare,
                        ("signals", "tracing", "proc", "network", "local_socket", "files_of_others",
                         "writing", "metadata", "attributes", "kernel", "daemon", "program", "memory"))

    def test_without_landlock_other_walls_stand_in_and_it_is_named(self):
        self.walls_hold("plugins run without a Landlock domain", [sys.executable, "-c", WITHOUT_LANDLOCK],
                        ("signals", "tracing", "proc", "network", "local_socket", "daemon", "program",
                         "memory", "privileges", "kernel_settings", "metadata"))

    def test_a_link_beside_a_plugin_leads_to_no_other_file_and_nothing_is_changed(self):
        folder, private = self.folder / "plugin", self.file("private", "private")
        private.chmod(0o600)
        folder.mkdir()
        copy = pathlib.Path(shutil.copy(self.plugin("cheating"), folder))
        (folder / "libleak.so").symlink_to(private)
        before = [(path.stat().st_mode, path.stat().st_mtime_ns) for path in (private, copy)]
        for cheat in ("files_of_others", "metadata"):
            self.succeeds("verify", copy, "--laws", "equals_reference", "--cases", "2", "--tokens", "8",
                          env={**os.environ, "RINGLAB_TEST_MISTAKE": cheat,
                               "RINGLAB_TEST_LINK": str(folder / "libleak.so"),
                               "RINGLAB_TEST_BESIDE": str(copy), "RINGLAB_TEST_PRIVATE": str(private)})
        self.assertEqual([(path.stat().st_mode, path.stat().st_mtime_ns) for path in (private, copy)], before)

    def walls_hold(self, missing, way, cheats):
        """Each cheat gets hold of nothing where a wall is missing, and the wall is named."""
        private = self.file("private", "private")
        private.chmod(0o600)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(self.folder / "socket"))
            server.listen()
            for cheat in cheats:
                done = subprocess.run([*way, PROGRAM, "verify", self.plugin("cheating"), "--laws",
                                       "equals_reference", "--cases", "2", "--tokens", "8"],
                                      capture_output=True, text=True, timeout=600,
                                      env={**os.environ, "RINGLAB_TEST_MISTAKE": cheat,
                                           "RINGLAB_TEST_SOCKET": str(self.folder / "socket"),
                                           "RINGLAB_TEST_PRIVATE": str(private)})
                self.assertIn(missing, done.stdout)
                if "a filter of system calls" not in done.stdout:
                    self.assertEqual(done.returncode, 0, cheat + done.stdout + done.stderr)

    def test_whoever_ends_the_judge_gets_no_0_and_leaves_nothing(self):
        for number, code in ((signal.SIGTERM, 4), (signal.SIGKILL, -signal.SIGKILL)):
            with verifying(self.plugin("template"), "--time", "600") as judge:
                files = pathlib.Path(f"/proc/{judge.pid}/task").glob("*/children")
                supervisors = [int(one) for file in files for one in file.read_text().split()]
                self.assertTrue(supervisors)
                judge.send_signal(number)
                judge.communicate(timeout=300)
                self.assertEqual(judge.returncode, code)
            end = time.monotonic() + 60
            while left := [p for p in supervisors if pathlib.Path(f"/proc/{p}/exe").exists()]:
                self.assertLess(time.monotonic(), end, left)
                time.sleep(0.05)

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

    def test_a_plugin_that_refuses_the_problem_that_was_given_does_not_pass(self):
        wishes = ("--quick", "--laws", "equals_reference")
        self.verdict(0, self.plugin("template"), *wishes)
        result, subject = self.verdict(1, self.plugin("template"), *wishes, "--dtype", "bf16")
        self.assertEqual(subject["verdict"], "not checked")
        self.assertIn("the problem that was given", result.out)

    def test_a_plugin_that_refuses_most_of_what_it_claims_does_not_pass(self):
        environment = {**os.environ, "RINGLAB_TEST_MISTAKE": "two_keys_only"}
        path = self.folder / "two.json"
        result, subject = self.verdict(1, self.plugin("misbehaving"), "--laws", "equals_reference,P1",
                                       "--cases", 40, "--certificate", path, env=environment)
        self.assertEqual(subject["verdict"], "not checked")
        self.assertGreater(subject["laws_held"], 0)
        self.assertRegex(result.out, r"no pass for .*it refused \d+ of \d+ cases")
        self.assertEqual(json.loads(path.read_text())["verdict"], "INCONCLUSIVE")

    def test_a_plugin_that_refuses_some_of_what_it_claims_is_said_to(self):
        environment = {**os.environ, "RINGLAB_TEST_MISTAKE": "refuses_groups"}
        words = (self.plugin("misbehaving"), "--laws", "equals_reference,P1")
        result, subject = self.verdict(0, *words, env=environment)
        self.assertRegex(result.out, r"claimed, but refused by .*: \d+ of \d+ cases")
        self.assertGreater(subject["coverage"]["tried"]["refused"], 0)
        self.assertIn("grouped heads", subject["coverage"]["tried"]["claimed_not_tried"])
        self.verdict(1, *words, "--strict", env=environment)
        self.verdict(1, *words, "--require", "grouped heads", env=environment)

    def test_what_was_tried_is_said_and_claims_that_were_not_fail_where_that_is_asked_for(self):
        page = self.folder / "tried.html"
        wishes = ("--laws", "P1", "--cases", 3)
        result, subject = self.verdict(0, self.plugin("flash1"), *wishes, "--html", page)
        tried = subject["coverage"]["tried"]
        least, most = tried["forward"]["sizes"]["kv_tokens"]
        self.assertLessEqual(least, most)
        self.assertIn("dtype", tried["forward"]["kinds"])
        self.assertIn("modifiers softcap", tried["claimed_not_tried"])
        self.assertIn("claimed, not tried of", result.out)
        self.assertIn("What was tried of", page.read_text())
        result, subject = self.verdict(1, self.plugin("flash1"), *wishes, "--strict", "--html", page)
        self.assertEqual(subject["verdict"], "not checked")
        self.assertIn("No pass for", page.read_text())
        self.assertIn("no pass for", result.out)

    def test_gradients_of_the_given_problem_are_compared(self):
        for name, tokens in {"q": 12, "k": 12, "v": 12, "do": 12}.items():
            values = [math.sin(7 * i + len(name)) for i in range(tokens * 4)]
            self.file(f"in/{name}.npy", npy(values, (tokens, 4)))
        found = self.folder / "found.json"
        wishes = ("--laws", "equals_reference", "--cases", 3, "--ranks", 1, "--json", found)

        def tensors(*words, code=0):
            result = ringlab("verify", *words, *wishes)
            self.assertEqual(result.code, code, result.out + result.err)
            subject = json.loads(found.read_text())["subjects"][0]
            return [one["tensor"] for one in subject["input"]["report"]["tensors"]]

        everything = ["o", "lse", "dq", "dk", "dv"]
        self.assertEqual(tensors("optimized", "--input", self.folder / "in"), everything)
        (self.folder / "in/do.npy").unlink()
        self.assertEqual(tensors("optimized", "--input", self.folder / "in"), ["o", "lse"])
        self.assertEqual(tensors("optimized", "--input", self.folder / "in", "--backward"), everything)
        self.assertEqual(tensors("ring", "--input", self.folder / "in", "--backward", code=1),
                         ["o", "lse"])

    def test_laws_and_classes_can_be_required(self):
        path, wishes = self.plugin("template"), ("--laws", "equals_reference,P26", "--cases", 40)
        self.verdict(0, path, *wishes, "--require", "equals_reference,mask full")
        for word in ("P1", "gradients"):
            result, _ = self.verdict(1, path, *wishes, "--require", word)
            self.assertIn(f"--require {word}: ", result.out)
        met, laws = "dtype f32 × mask full", ("--laws", "as_used", "--quick")
        self.verdict(0, path, *laws, "--require", f"{met},mask causal x dtype f32")
        for word, why in (("dtype f64 × mask full", "does not claim both"),
                          ("gradients: " + met, "does not claim both")):
            self.assertIn(f"--require {word}: the subject {why}", self.verdict(1, path, *laws, "--require", word)[0].out)
        result, _ = self.verdict(1, path, *wishes, "--require", "keys 8192 … x mask causal")
        self.assertIn("--require keys 8192 … × mask causal: no case that held had both", result.out)
        self.fails(2, ["--require", "mask full"], "verify", path, "--require", "mask fully")

    def test_bounds_that_zeros_keep_show_nothing(self):
        zeros = self.plugin("unbounded")
        for kernel in ("infinite", "wide"):
            environment = os.environ | {"RINGLAB_TEST_KERNEL": kernel}
            for words in (["--laws", "equals_reference,P14", "--strict", "--require", "equals_reference,P14"],
                          ["--laws", "equals_reference,P14"], ["--laws", "P4", "--require", "P14"],
                          ["--laws", "P4"]):
                with self.subTest(kernel=kernel, words=words):
                    result, subject = self.verdict(1, zeros, "--quick", *words, env=environment)
                    self.assertEqual(subject["verdict"], "not checked")
                    self.assertEqual(subject["input"]["report"]["tensors"][0]["passed"], False)
                    self.assertGreater(subject["unbounded"], 1000)
                    held = {law["id"] for law in subject["laws"] if law["verdict"] == "held"}
                    self.assertFalse(held & {"equals_reference", "P14"})
                    self.assertIn("bounds as wide as the answer: ", result.out)
                    self.assertNotIn("WRONG", result.out)
            certificate = self.folder / "zeros.json"
            ringlab("verify", zeros, "--quick", "--laws", "P4", "--certificate", certificate, env=environment)
            self.assertEqual(json.loads(certificate.read_text())["verdict"], "INCONCLUSIVE")
            for check in (["--check"], ["--check-rows", 8]):
                run = ringlab("run", zeros, "--random", "--tokens", 64, *check, "--json", self.folder / "run.json",
                              env=environment)
                self.assertEqual(run.code, 1, run.out + run.err)
                self.assertIn("NOTHING SHOWN", run.out)
                document = json.loads((self.folder / "run.json").read_text())
                self.assertFalse(document["passed"])
                o = document["check"]["tensors"][0]
                self.assertEqual((o["unbounded"], o["failed"]), (o["compared"], 0))
            bench = ringlab("bench", zeros, "--tokens", 64, "--ranks", 1, "--rounds", 1, env=environment)
            self.assertEqual(bench.code, 1, bench.out + bench.err)

    def test_bits_and_fields_that_do_not_exist_are_refused(self):
        for mistake, words in {"unknown_mask_bit": ["can.masks", "RINGLAB_MASK_INTERVALS", "128"],
                               "unknown_dtype_bit": ["can.dtypes", "RINGLAB_BF16", "32"],
                               "unknown_modifier_bit": ["can.modifiers", "RINGLAB_MODIFIER_DROPOUT"],
                               "reserved_ability": ["can.reserved", "0"],
                               "reserved_number": ["numerics", "reserved", "0"]}.items():
            environment = {**os.environ, "RINGLAB_TEST_MISTAKE": mistake}
            with self.subTest(mistake=mistake):
                self.fails(3, words, "list", self.plugin("misbehaving"), env=environment)

    def test_arithmetic_that_could_be_declared_is_named(self):
        environment = {**os.environ, "RINGLAB_TEST_MISTAKE": "tf32"}
        laws = ("--laws", "equals_reference,P26,P28")
        result, subject = self.verdict(1, self.plugin("misbehaving"), *laws, env=environment)
        self.assertIn("it passes if f32 is multiplied in TF32: declare .u_product", result.out)
        self.assertIn("TF32", subject["insight"]["passes_if"])
        result, subject = self.verdict(1, self.plugin("broken"), *laws)
        self.assertEqual(subject["insight"]["passes_if"], "")

    def test_a_failure_that_does_not_come_back_is_said_to_be_one(self):
        environment = {**os.environ, "RINGLAB_TEST_MISTAKE": "sometimes"}
        found = self.folder / "found.json"
        result = ringlab("verify", self.plugin("misbehaving"), "--laws", "equals_reference",
                         "--json", found, env=environment)
        self.assertEqual(result.code, 1, result.out + result.err)
        self.assertRegex(result.out, r"again +it broke in \d+ of 50 more runs of this very case")
        laws = json.loads(found.read_text())["subjects"][0]["laws"]
        failure = laws[0]["failure"]
        self.assertEqual(failure["repeats"], 50)
        again = ringlab("verify", self.plugin("misbehaving"), "--replay", failure["token"],
                        env=environment)
        self.assertEqual(again.code, 1, again.out + again.err)
        self.assertRegex(again.out, r"broken in \d+ of 51 runs")

    def test_list_shows_what_a_plugin_claims(self):
        path = self.folder / "list.json"
        result = self.succeeds("list", self.plugin("flash1"), "--json", path)
        self.assertIn("softcap alibi", result.out)
        self.assertRegex(result.out, r"\nmask +full, causal, ")
        self.assertRegex(result.out, r"\nmore .*grouped heads")
        self.assertEqual(json.loads(path.read_text())["subjects"][0]["modifier_kinds"],
                         ["softcap", "alibi"])
        self.assertIn("mask causal", json.loads(path.read_text())["subjects"][0]["claims"])
        self.assertIn("the loop order of the first FlashAttention", result.out)
        self.assertNotIn("broadcast", result.out)

    def test_what_cannot_be_loaded_is_explained(self):
        missing = self.folder / "libmissing.so"
        self.fails(3, ["libmissing.so", "nothing there"], "verify", missing)
        self.fails(3, [str(self.folder), "a folder"], "verify", self.folder)
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
                              cwd=self.folder, timeout=300, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_ranks_are_refused_where_a_plugin_knows_none(self):
        self.fails(2, "one rank", "run", self.plugin("template"), "--random", "--ranks", 2)


if __name__ == "__main__":
    unittest.main()
