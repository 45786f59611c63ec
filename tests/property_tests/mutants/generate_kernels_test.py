#!/usr/bin/env python3
"""The generator of planted kernels, on toy kernels.
Usage: generate_kernels_test.py PATH_TO_generate_kernels.py"""
import importlib.util
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
generator = pathlib.Path(sys.argv.pop(1))
sys.path.insert(0, str(generator.parent))
spec = importlib.util.spec_from_file_location("generate_kernels", generator)
generate_kernels = importlib.util.module_from_spec(spec)
spec.loader.exec_module(generate_kernels)


def header(name, includes, body):
    guard = f"RINGLAB_CPU_{name.upper()}_INL_H_"
    return (f"// Toy.\n#if defined({guard}) == defined(HWY_TARGET_TOGGLE)\n#ifdef {guard}\n"
            f"#undef {guard}\n#else\n#define {guard}\n#endif\n\n#include <hwy/highway.h>\n\n"
            + "".join(f'#include "optimized/cpu/{include}"\n' for include in includes)
            + "\nHWY_BEFORE_NAMESPACE();\nnamespace ringlab::cpu::HWY_NAMESPACE {\n"
            f"{body}\n}}  // namespace ringlab::cpu::HWY_NAMESPACE\nHWY_AFTER_NAMESPACE();\n"
            "#endif\n")


MISTAKE = """
[[mistake]]
id = "kernel_toy"
pass = "forward"
file = "tile-inl.h"
find = "count > 0"
replace = "count > 1"
breaks = "one is forgotten"
question = "How many?"
ancestor = "classic"
"""


class KernelGenerator(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.root = pathlib.Path(self.temporary.name)
        self.kernels = self.root / "optimized" / "cpu"
        self.kernels.mkdir(parents=True)
        self.write("tile-inl.h", header("tile", [], "bool some(int count) { return count > 0; }"))
        self.write("forward_worker-inl.h", header("forward_worker", ["tile-inl.h", "plain.h"],
                                                  "bool forward_heads() { return some(1); }"))
        self.write("backward_worker-inl.h", header("backward_worker", ["tile-inl.h"], "int x;"))
        self.write("few_queries-inl.h", header("few_queries", ["tile-inl.h"],
                                               "bool forward_few() { return some(1); }"))

    def write(self, name, text):
        (self.kernels / name).write_text(text)

    def generate(self, mistakes=MISTAKE, kind="forward"):
        path = self.root / "mistakes.toml"
        path.write_text(mistakes)
        output = self.root / "out"
        ids = generate_kernels.generate(kind, self.root, path, output)
        return ids, (output / f"{kind}_kernel_mutants.cpp").read_text()

    def assert_refused(self, mistakes, *words):
        with self.assertRaises(generate_kernels.MistakeError) as caught:
            self.generate(mistakes)
        for word in words:
            self.assertIn(word, str(caught.exception))

    def test_all_headers_of_the_pass_stand_in_the_namespace_of_the_mutant(self):
        ids, text = self.generate()
        self.assertEqual(ids, ["kernel_toy"])
        self.assertEqual(text.count("namespace ringlab::cpu::kernel_toy::HWY_NAMESPACE {"), 2)
        self.assertNotIn("namespace ringlab::cpu::HWY_NAMESPACE", text)
        self.assertIn("count > 1", text)
        self.assertNotIn("count > 0", text)

    def test_what_is_needed_comes_first_and_guards_and_inner_includes_are_gone(self):
        _, text = self.generate()
        self.assertLess(text.index("bool some"), text.index("bool forward_heads"))
        self.assertNotIn("HWY_TARGET_TOGGLE", text)
        self.assertNotIn("#endif", text)
        self.assertNotIn('#include "optimized/cpu/tile-inl.h"', text)
        self.assertIn('#include "optimized/cpu/plain.h"', text)

    def test_the_vectors_are_chosen_before_highway_is_read(self):
        _, text = self.generate()
        self.assertLess(text.index("one_target.h"), text.index("hwy/highway.h"))

    def test_a_mistake_is_planted_in_its_own_pass_only(self):
        ids, text = self.generate(kind="backward")
        self.assertEqual(ids, [])
        self.assertNotIn("kernel_toy", text)

    def test_the_kernel_for_few_queries_leaves_all_others_to_the_library(self):
        ids, text = self.generate(MISTAKE.replace('"forward"', '"few"'), kind="few")
        self.assertEqual(ids, ["kernel_toy"])
        self.assertIn("bool forward_few", text)
        self.assertNotIn("bool forward_heads", text)
        self.assertIn("if (!has_few_queries(block)) "
                      "return forward_block(block, states, accs);\n"
                      "  HWY_NAMESPACE::forward_few(block, states, accs);", text)
        self.assertIn("{.forward = cpu::kernel_toy::forward}", text)

    def test_the_kernel_is_registered_for_its_type_of_elements(self):
        _, text = self.generate(MISTAKE + 'dtype = "bf16"\n')
        self.assertIn("planted_kernel<BFloat16>(", text)
        self.assertIn("SoftmaxState<float>* states", text)
        self.assertIn("{.forward = cpu::kernel_toy::forward}", text)

    def test_two_mistakes_do_not_mix(self):
        second = MISTAKE.replace("kernel_toy", "kernel_other").replace("count > 1", "count > 2")
        ids, text = self.generate(MISTAKE + second)
        self.assertEqual(ids, ["kernel_toy", "kernel_other"])
        self.assertEqual((text.count("count > 1"), text.count("count > 2")), (1, 1))

    def test_a_text_that_is_not_there_once_is_refused_with_its_file(self):
        self.assert_refused(MISTAKE.replace("count > 0", "count > 7"), "kernel_toy",
                            "optimized/cpu/tile-inl.h", "occurs 0 times")
        self.assert_refused(MISTAKE.replace("count > 0", "count"), "occurs 2 times")

    def test_a_file_that_the_pass_does_not_need_is_refused(self):
        self.assert_refused(MISTAKE.replace("tile-inl.h", "panel-inl.h"), "panel-inl.h",
                            "not part of this kernel")

    def test_an_unknown_pass_dtype_or_field_is_refused(self):
        self.assert_refused(MISTAKE.replace('"forward"', '"sideways"'), "forward, backward")
        self.assert_refused(MISTAKE + 'dtype = "fp4"\n', "fp4")
        self.assert_refused(MISTAKE + 'gap = "x"\n', "unknown field gap")

    def test_an_id_used_twice_is_refused(self):
        self.assert_refused(MISTAKE + MISTAKE, "used twice")

    def test_a_header_without_the_guard_is_refused(self):
        self.write("tile-inl.h", "#pragma once\nbool some(int count) { return count > 0; }\n")
        self.assert_refused(MISTAKE, "tile-inl.h", "guard")


if __name__ == "__main__":
    unittest.main()
