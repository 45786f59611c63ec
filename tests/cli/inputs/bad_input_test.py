"""Files that are missing, cut short, malicious or of the wrong shape: exit 3, a message, no output."""
import os
import struct
import unittest

from program import (ProgramTest, floats, npy, npy_with_header, ones, safetensors,
                     safetensors_with_header)


class BadInputTest(ProgramTest):
    def refuses(self, message, path, *words, code=3):
        """The input is refused with this message, and no output of any name is left."""
        before = sorted(self.folder.rglob("*"))
        for output in [self.folder / "out", self.folder / "out.safetensors"]:
            self.fails(code, message, "run", "broadcast", "--input", path, "--output", output,
                       *words, timeout=30)
        self.assertEqual(sorted(self.folder.rglob("*")), before)

    def folder_of(self, **tensors):
        """A folder with q, k, v of shape (3, 2), some of them replaced."""
        for name in "qkv":
            self.file(f"in/{name}.npy", tensors.get(name, npy(ones(6), (3, 2))))
        return self.folder / "in"


class PlacesTest(BadInputTest):
    def test_missing_files_are_named(self):
        self.refuses("nowhere", self.folder / "nowhere")
        self.refuses("nowhere.safetensors", self.folder / "nowhere.safetensors")
        self.fails(3, "nowhere.txt", "run", "ring", "--text", self.folder / "nowhere.txt")
        folder = self.folder_of()
        (folder / "k.npy").unlink()
        self.refuses("k", folder)

    def test_a_folder_or_device_is_no_text(self):
        self.fails(3, "", "run", "ring", "--text", self.folder)
        if os.path.exists("/dev/zero"):
            self.fails(3, "", "run", "ring", "--text", "/dev/zero", timeout=20)

    def test_a_pipe_is_no_input(self):
        folder = self.folder_of()
        (folder / "q.npy").unlink()
        os.mkfifo(folder / "q.npy")
        self.fails(3, "q.npy", "run", "ring", "--input", folder, timeout=20)

    def test_an_empty_text_is_refused(self):
        self.fails(3, "empty.txt", "run", "ring", "--text", self.file("empty.txt", ""))

    def test_a_missing_mask_is_named(self):
        one = self.folder_of() / "q.npy"
        for subject in ("ring", "optimized"):
            self.fails(3, ["another kind of file", "Give the folder that it lies in"], "run", subject,
                       "--input", one)
        self.refuses("no.npy", self.folder_of(), "--mask", f"file:{self.folder / 'no.npy'}")


class ShapeTest(BadInputTest):
    def test_small_files_whose_results_are_larger_than_memory_are_refused_before_they_are_read(self):
        long = 1 << 20
        numbers = {"q": (long, 1), "k": (1, 1), "v": (1, long)}
        path = self.file("wide.safetensors", safetensors({
            name: ("F16", shape, bytes(2 * shape[0] * shape[1])) for name, shape in numbers.items()}))
        for subject in ("ring", "optimized", "reference"):
            self.fails(4, ("tensors that fit in", "q (1, 1, 1048576, 1)"), "run", subject,
                       "--input", path)

    def test_wrong_numbers_of_dimensions_are_refused(self):
        for shape in [(6,), (), (1, 1, 1, 3, 2), (1,) * 9]:
            count = 1
            for extent in shape:
                count *= extent
            self.refuses("q", self.folder_of(q=npy(ones(count), shape)))

    def test_mismatched_shapes_are_refused(self):
        self.refuses("head_dim", self.folder_of(q=npy(ones(9), (3, 3))))
        self.refuses("tokens of k and v", self.folder_of(v=npy(ones(8), (4, 2))))
        self.refuses("heads of k and v", self.folder_of(v=npy(ones(12), (2, 3, 2))))
        self.refuses("batch of q and k", self.folder_of(q=npy(ones(12), (2, 1, 3, 2))))
        self.refuses("batch of k and v", self.folder_of(v=npy(ones(12), (2, 1, 3, 2))))

    def test_heads_that_do_not_divide_are_refused(self):
        self.refuses("heads", self.folder_of(q=npy(ones(18), (3, 3, 2)), k=npy(ones(12), (2, 3, 2)),
                                             v=npy(ones(12), (2, 3, 2))))

    def test_a_channel_count_of_zero_is_refused(self):
        self.refuses("", self.folder_of(**{n: npy([], (3, 0)) for n in "qkv"}))

    def test_masks_of_another_shape_are_refused(self):
        folder = self.folder_of()
        mask = self.file("m.npy", npy([1] * 4, (2, 2), "|b1"))
        self.refuses("", folder, "--mask", f"file:{mask}")
        mask = self.file("m1.npy", npy([1] * 9, (9,), "|b1"))
        self.refuses("2 dimensions", folder, "--mask", f"file:{mask}")
        mask = self.file("m2.npy", npy([float("nan")] * 9, (3, 3)))
        self.refuses("nan", folder, "--mask", f"file:{mask}")


class ValueTest(BadInputTest):
    def test_values_that_are_not_finite_are_refused_with_their_address(self):
        for value, word in [(float("nan"), "nan"), (float("inf"), "inf"), (-float("inf"), "-inf")]:
            for name in "qkv":
                values = ones(6)
                values[3] = value
                self.refuses([f"tensor {name} at [1, 1]", word],
                             self.folder_of(**{name: npy(values, (3, 2))}))

    def test_bytes_are_no_attention_input(self):
        self.refuses("tensor q", self.folder_of(q=npy([1] * 6, (3, 2), "|u1")))


class NpyTest(BadInputTest):
    def refuses_q(self, content):
        self.refuses("q.npy", self.folder_of(q=content))

    def test_truncated_files_are_refused_at_every_length(self):
        whole = npy(ones(6), (3, 2))
        for length in [0, 1, 5, 6, 8, 9, 10, 40, 127, 128, len(whole) - 1]:
            with self.subTest(length=length):
                self.refuses_q(whole[:length])

    def test_trailing_bytes_are_refused(self):
        self.refuses_q(npy(ones(6), (3, 2)) + b"x")

    def test_a_header_longer_than_the_file_is_refused(self):
        self.refuses_q(b"\x93NUMPY\x01\x00" + struct.pack("<H", 65535) + b"{'descr'")
        self.refuses_q(b"\x93NUMPY\x02\x00" + struct.pack("<I", 0xffffffff) + b"{'descr'")

    def test_products_that_overflow_are_refused(self):
        for shape in [(1 << 40, 1 << 40), (1 << 62, 4), (1 << 63, 1), (1 << 32, 1 << 32),
                      (1 << 33, 1 << 31), (3, -2), (1 << 200, 1)]:
            self.refuses_q(npy_with_header(
                f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}", b"\0" * 24))

    def test_objects_and_pickles_are_refused(self):
        for dtype in ["|O", "|V8", "<U4", "|S8", ">i4", "<c8", "f4'; import os"]:
            self.refuses_q(npy_with_header(
                f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': (3, 2), }}", b"\0" * 24))

    def test_structured_types_are_refused(self):
        self.refuses_q(npy_with_header(
            "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3, 2), }", b"\0" * 24))

    def test_other_files_are_refused(self):
        for content in [b"", b"PK\x03\x04" + b"\0" * 100, b"\x93NUMPY\x09\x00" + b"\0" * 120,
                        b"hello" * 30]:
            self.refuses_q(content)


class SafetensorsTest(BadInputTest):
    def refuses_file(self, content, message="x.safetensors"):
        self.refuses(message, self.file("x.safetensors", content))

    def header(self, text, body=b"\0" * 24):
        return safetensors_with_header(text.encode(), body)

    def test_truncated_files_are_refused_at_every_length(self):
        whole = safetensors({n: ("F32", (3, 2), floats(6)) for n in "qkv"})
        for length in [0, 1, 7, 8, 9, 100, len(whole) - 1]:
            with self.subTest(length=length):
                self.refuses_file(whole[:length])
        self.refuses_file(whole + b"\0")

    def test_a_header_longer_than_the_file_is_refused(self):
        for length in [200, 1 << 27, (1 << 63) - 1, (1 << 64) - 1]:
            self.refuses_file(struct.pack("<Q", length) + b"{}")

    def test_offsets_that_overlap_or_leave_gaps_are_refused(self):
        entry = '"{}":{{"dtype":"F32","shape":[3,2],"data_offsets":[{},{}]}}'
        for offsets in [[(0, 24), (0, 24), (24, 48)], [(0, 24), (24, 48), (56, 80)],
                        [(0, 24), (20, 44), (44, 68)], [(24, 0), (24, 48), (48, 72)],
                        [(0, 24), (24, 48), (48, 1 << 60)], [(-24, 0), (0, 24), (24, 48)]]:
            text = ",".join(entry.format(n, *o) for n, o in zip("qkv", offsets))
            self.refuses_file(self.header("{" + text + "}", b"\0" * 72))

    def test_products_that_overflow_are_refused(self):
        for shape in ["[4294967296,4294967296]", "[9223372036854775807,9]", "[18446744073709551616]",
                      "[-3,-2]", "[1e3]", "[3.5,2]"]:
            self.refuses_file(self.header(
                f'{{"q":{{"dtype":"F32","shape":{shape},"data_offsets":[0,24]}}}}'))

    def test_headers_that_are_not_right_are_refused(self):
        for text in ["", "[]", "{", "null", '{"q":1}', '{"q":{}}', " {}", "\xff\xfe",
                     '{"q":{"dtype":"F31","shape":[3,2],"data_offsets":[0,24]}}',
                     '{"q":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]},'
                     '"q":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]}}',
                     '{"__metadata__":' + '{"a":' * 50 + "1" + "}" * 50 + "}"]:
            with self.subTest(text=text[:40]):
                self.refuses_file(self.header(text))

    def test_a_tensor_that_is_missing_is_named(self):
        self.refuses_file(safetensors({n: ("F32", (3, 2), floats(6)) for n in "qk"}), "v")


if __name__ == "__main__":
    unittest.main()
