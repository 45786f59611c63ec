"""Files made to harm who reads them: small ones that ask for much, and ones that steer a terminal."""
import io
import json
import resource
import struct
import time
import unittest
import zipfile

from program import ProgramTest, npy, ringlab, safetensors

SOON = 20  # seconds, on a busy machine


class HostileFilesTest(ProgramTest):
    def refused_soon(self, message, *words, **options):
        begin = time.monotonic()
        result = self.fails(3, message, *words, timeout=120, **options)
        self.assertLess(time.monotonic() - begin, SOON, words)
        return result

    def as_trace(self, text):
        return ["trace", self.file("t.json", text)]

    def as_certificate(self, text):
        return ["verify", "--check-certificate", self.file("c.json", text)]

    def test_json_however_deep_does_not_reach_the_end_of_the_stack(self):
        for text in ["[" * 200_000, '{"a":' * 200_000, "[" * 200_000 + "]" * 200_000,
                     '{"traceEvents": ' + "[" * 200_000 + "]" * 200_000 + "}"]:
            self.refused_soon("levels deep", *self.as_trace(text))
            self.refused_soon("levels deep", *self.as_certificate(text))

    def test_objects_of_many_keys_take_no_time(self):
        keys = ", ".join(f'"{key}": 0' for key in range(100_000))
        for text in [f'{{"traceEvents": [], {keys}}}', f'{{"traceEvents": [{{{keys}}}]}}']:
            self.refused_soon("keys", *self.as_trace(text))
        self.refused_soon("keys", *self.as_certificate(f'{{"ringlab_certificate": 1, {keys}}}'))

    def test_lists_of_many_values_are_not_built(self):
        self.refused_soon("values", *self.as_certificate("[" + "0," * 2_000_000 + "0]"))

    def test_tensors_without_elements_are_not_counted_through(self):
        huge = 1 << 40
        for shape in [(huge, 1, 0, 1), (1, huge, 0, 1), (huge, 0, 1, 1), (1, 1 << 30, 0, 4),
                      (0, huge, 1, 1), (1 << 13, 1 << 13, 0, 1)]:
            with self.subTest(shape=shape):
                empty = npy([], shape)
                for name in "qkv":
                    self.file(f"npy/{name}.npy", empty)
                self.refused_soon("2^24", "run", "optimized", "--input", self.folder / "npy")
                file = self.file("x.safetensors",
                                 safetensors({name: ("F32", shape, b"") for name in "qkv"}))
                self.refused_soon("2^24", "run", "optimized", "--input", file)
                self.refused_soon("2^24", "verify", "ring", "--input", file, "--quick")

    def test_tensors_without_elements_are_fine_otherwise(self):
        tensors = {name: ("F32", (64, 16, 0, 64), b"") for name in "qkv"}
        file = self.file("x.safetensors", safetensors(tensors))
        self.succeeds("run", "optimized", "--input", file)

    def archive(self, name, array, method=zipfile.ZIP_DEFLATED, stated=None):
        """q, k, v in an archive whose directory states other sizes of each."""
        bytes_ = io.BytesIO()
        with zipfile.ZipFile(bytes_, "w", method) as archive:
            for tensor in "qkv":
                archive.writestr(f"{tensor}.npy", array)
        contents = bytearray(bytes_.getvalue())
        at = contents.find(b"PK\1\2")
        while stated and at >= 0:
            struct.pack_into("<II", contents, at + 20, *stated)
            at = contents.find(b"PK\1\2", at + 1)
        return self.file(name, bytes(contents))

    def test_archives_take_no_more_memory_than_they_can_hold(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        array = npy([0.0] * 64, (1, 1, 8, 8))
        huge = 0xfffff000
        for name, file, message in [
                ("packed", self.archive("a.npz", array, stated=(huge, huge)), "the whole archive"),
                ("size", self.archive("b.npz", array, stated=(100, huge)), "than was packed"),
                ("bomb", self.archive("c.npz", array + bytes(1 << 27)), "bytes too many"),
                ("stored", self.archive("d.npz", array, zipfile.ZIP_STORED, (huge, huge)),
                 "the whole archive")]:
            with self.subTest(name):
                for words in (["run", "optimized"], ["verify", "ring", "--quick"]):
                    self.refused_soon(message, *words, "--input", file, preexec_fn=limit)

    def assert_plain(self, result):
        steering = [c for c in result.out + result.err
                    if c not in "\n\t" and (ord(c) < 0x20 or 0x7f <= ord(c) <= 0x9f)]
        self.assertEqual(steering, [], repr(result.out + result.err))

    def test_what_files_say_cannot_steer_a_terminal(self):
        evil = "\x1b[2J\x1b]0;owned\x07\x9b2J\r"
        event = {"name": "x", "cat": evil, "ph": "X", "ts": 0, "dur": 1, "pid": 0, "tid": 0,
                 "args": {"rank": 0, "step": 0, "owner": 0, "peer": -1, "slot": -1,
                          "gradient": False, "pass": "forward", "bytes": 0}}
        for ascii_only in (True, False):
            text = json.dumps({"traceEvents": [event]}, ensure_ascii=ascii_only)
            self.assert_plain(self.fails(3, "compute", *self.as_trace(text)))
            tensors = safetensors({evil: ("F32", (1,), b"abcd"), "q": ("X" + evil, (1,), b"")})
            self.assert_plain(self.fails(3, "expected", "run", "optimized", "--input",
                                         self.file("e.safetensors", tensors)))
        self.assert_plain(ringlab("run", "optimized", "--input", f"{evil}.safetensors"))
        self.assert_plain(ringlab(evil))
        self.assert_plain(ringlab("run", evil))
        self.assert_plain(ringlab("run", "optimized", f"--{evil}"))

    def test_names_cannot_pass_for_lines_of_the_program(self):
        name = "x\n1 of 1 subjects pass\tok"
        text = self.file(name, "abc")
        run = self.succeeds("run", "optimized", "--text", text, "--trace", self.folder / f"t{name}",
                            "--output", self.folder / name[:-3])
        self.assertNotIn("\n1 of 1", run.out)
        self.assertNotIn("\t", run.out)
        self.assertIn("wrote o and lse to", run.out)
        for words in (("run", "ring", "--text", self.folder / "no" / name), ("run", name),
                      ("verify", self.folder / f"{name}.so"), ("run", "ring", "--random", name),
                      ("run", "ring", "--random", "--tokens", "8", "--output", self.folder / name / "x")):
            failed = ringlab(*words)
            self.assertIn(failed.code, (2, 3, 4), words)
            self.assertEqual(failed.err.count("\n"), 1, failed.err)

    def test_json_on_a_terminal_does_not_steer_it(self):
        tensors = {name: ("F32", (2, 2), bytes(16)) for name in "qkv"}
        file = self.file("e\x9b2J\x7f.safetensors", safetensors(tensors))
        result = self.succeeds("run", "optimized", "--input", file, "--json", "-")
        self.assert_plain(result)
        self.assertIn(str(file), json.dumps(json.loads(result.out), ensure_ascii=False))

    def test_a_certificate_is_shown_without_what_would_steer_a_terminal(self):
        path = self.folder / "certificate.json"
        self.succeeds("verify", "ring", "--laws", "P1", "--cases", "1", "--quick", "--certificate",
                      path)
        document = json.loads(path.read_text())
        document["subjects"][0]["sentence"] = "fine \x1b[2J"
        document["subjects"][0]["subject"] = "ring\x9b2J"
        bad = self.file("bad.json", json.dumps(document))
        result = ringlab("verify", "--check-certificate", bad)
        digest = result.err.split("found ")[-1].split(".")[0].strip()
        document["digest"] = digest
        result = self.succeeds("verify", "--check-certificate",
                               self.file("bad.json", json.dumps(document)))
        self.assertIn("fine ?[2J", result.out)
        self.assert_plain(result)


if __name__ == "__main__":
    unittest.main()
