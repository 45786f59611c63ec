#!/usr/bin/env python3
"""The generator of mutants, on a toy stage. Usage: generate_test.py PATH_TO_generate.py"""
import importlib.util
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
spec = importlib.util.spec_from_file_location("generate", sys.argv.pop(1))
generate = importlib.util.module_from_spec(spec)
spec.loader.exec_module(generate)

HEADER = """// Stage 99.
#pragma once

#include "stages/common/rank_problem.h"

namespace ringlab::stages::toy {

template <class Element>
void attention(RankProblem<Element>& r) {
  // [gap: hops]
  for (int hop = 0; hop < r.ranks(); ++hop) rotate(r, hop);
  // end [gap: hops]
  for (int hop = 0; hop < r.ranks(); ++hop) finish(r, hop);
}

}  // namespace ringlab::stages::toy
"""

MISTAKE = """
[[mistake]]
id = "toy_one_hop_short"
gap = "hops"
find = "hop < r.ranks()"
replace = "hop + 1 < r.ranks()"
breaks = "the last chunk is missing"
question = "How many hops does it take?"
ancestor = "classic"
"""

EXTRA = """
[[mistake]]
id = "toy_elsewhere"
stage = "toy"
find = "finish(r, hop)"
replace = 'finish(r, "\\\\")'
breaks = "a \\"quoted\\" word"
question = "Why?"
ancestor = "classic"
dtypes = ["f32", "bf16"]
includes = ["reference/core/small_float.h"]

[[mistake]]
id = "other_stage"
stage = "other"
find = "never looked for here"
replace = ""
breaks = "x"
question = "x"
ancestor = "x"
"""


class Generator(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.root = pathlib.Path(self.temporary.name)
        self.stage = self.root / "99_toy"
        self.stage.mkdir()
        self.extra = self.root / "mutants.toml"
        self.output = self.root / "out"
        self.write()

    def write(self, header=HEADER, mistakes=MISTAKE, extra=""):
        (self.stage / "toy.h").write_text(header)
        (self.stage / "mistakes.toml").write_text(mistakes)
        self.extra.write_text(extra)

    def generate(self):
        return generate.generate(self.stage, self.extra, self.output)

    def assert_refused(self, *words):
        with self.assertRaises(generate.MistakeError) as caught:
            self.generate()
        for word in words:
            self.assertIn(word, str(caught.exception))

    def test_the_edit_is_made_inside_its_gap_only(self):
        self.assertEqual(self.generate(), ["toy_one_hop_short"])
        text = (self.output / "toy_one_hop_short.h").read_text()
        self.assertIn("hop + 1 < r.ranks(); ++hop) rotate", text)
        self.assertIn("hop = 0; hop < r.ranks(); ++hop) finish", text)

    def test_the_mutant_has_a_namespace_of_its_own_and_sees_the_shared_one(self):
        self.generate()
        text = (self.output / "toy_one_hop_short.h").read_text()
        self.assertIn("namespace ringlab::mutants::toy_one_hop_short {\n"
                      "using namespace ringlab::stages;", text)
        self.assertNotIn("namespace ringlab::stages::toy {", text)

    def test_extra_mistakes_need_no_gap_and_only_those_of_this_stage_are_made(self):
        self.write(extra=EXTRA)
        self.assertEqual(self.generate(), ["toy_one_hop_short", "toy_elsewhere"])
        text = (self.output / "toy_elsewhere.h").read_text()
        self.assertIn('#include "reference/core/small_float.h"', text)
        registry = (self.output / "toy_mutants.cpp").read_text()
        self.assertIn("planted<float, BFloat16>(", registry)
        self.assertIn("planted<float>(", registry)
        self.assertIn(r'.breaks = "a \"quoted\" word"', registry)

    def test_several_edits_make_one_mutant(self):
        self.write(mistakes="""
[[mistake]]
id = "toy_two"
edits = [{gap = "hops", find = "hop = 0", replace = "hop = 1"},
         {find = "finish(r, hop)", replace = "finish(r, 0)"}]
breaks = "x"
question = "x"
ancestor = "x"
""")
        self.generate()
        text = (self.output / "toy_two.h").read_text()
        self.assertIn("hop = 1", text)
        self.assertIn("finish(r, 0)", text)

    def test_a_text_that_is_not_there_is_refused_with_its_name(self):
        self.write(header=HEADER.replace("rotate", "rotated").replace("hop < r.ranks()", "hop < 9"))
        self.assert_refused("toy_one_hop_short", "occurs 0 times in gap 'hops'", "hop < r.ranks()")

    def test_a_text_that_occurs_twice_is_refused(self):
        self.write(mistakes=MISTAKE.replace('gap = "hops"\n', ""))
        self.assert_refused("occurs 2 times in the header")

    def test_a_gap_that_is_missing_is_refused(self):
        self.write(header=HEADER.replace("end [gap: hops]", "end [gap: hop]"))
        self.assert_refused("end [gap: hops]")

    def test_an_edit_that_changes_nothing_is_refused(self):
        self.write(mistakes=MISTAKE.replace("hop + 1 < r.ranks()", "hop < r.ranks()"))
        self.assert_refused("same text")

    def test_a_missing_field_is_refused(self):
        self.write(mistakes=MISTAKE.replace('ancestor = "classic"', ""))
        self.assert_refused("toy_one_hop_short", "ancestor")

    def test_an_unknown_field_is_refused(self):
        self.write(mistakes=MISTAKE + 'answer = "42"\n')
        self.assert_refused("unknown field answer")

    def test_an_id_used_twice_is_refused(self):
        self.write(mistakes=MISTAKE + MISTAKE)
        self.assert_refused("used twice")

    def test_an_unknown_dtype_is_refused(self):
        self.write(mistakes=MISTAKE + 'dtypes = ["fp4"]\n')
        self.assert_refused("fp4")

    def test_a_namespace_spelt_otherwise_is_refused(self):
        self.write(header=HEADER.replace("stages::toy {", "stages { namespace toy {"))
        self.assert_refused("namespace ringlab::stages::toy {")

    def test_malformed_toml_is_refused_with_the_file(self):
        self.write(mistakes="[[mistake]\n")
        self.assert_refused("mistakes.toml")


if __name__ == "__main__":
    unittest.main()
