"""scripts/count_instructions on a listing that is made up, and on the page that it writes."""
import importlib.machinery
import importlib.util
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).parents[2]
loader = importlib.machinery.SourceFileLoader("count_instructions",
                                              str(ROOT / "scripts/count_instructions"))
count_instructions = importlib.util.module_from_spec(
    importlib.util.spec_from_loader("count_instructions", loader))
loader.exec_module(count_instructions)

# A loop without products, a loop with one, and a loop around both.
LISTING = """
.L_x_1:
        /*0000*/                   IADD3 R1, R1, 0x1, RZ ;
.L_x_2:
        /*0010*/                   FADD R2, R2, R3 ;
        /*0020*/              @!P0 BRA `(.L_x_2) ;
.L_x_3:
        /*0030*/                   HGMMA.64x128x16.F32.BF16 R24, gdesc[UR8], R24 ;
        /*0040*/                   MUFU.EX2 R4, R4 ;
        /*0050*/               @P1 FMUL R5, R5, R4 ;
        /*0060*/                   BRA `(.L_x_3) ;
        /*0070*/                   BRA `(.L_x_1) ;
        /*0080*/                   EXIT ;
""".splitlines()


class CountInstructions(unittest.TestCase):
    def test_loops_that_multiply_are_counted_and_no_others(self):
        [loop] = count_instructions.loops_of(LISTING)
        self.assertEqual(dict(loop), {"HGMMA": 1, "MUFU": 1, "FMUL": 1, "BRA": 1})
        self.assertEqual(count_instructions.count(loop, {"MUFU", "FMUL", "LDG"}), 2)

    def test_versions_are_named_by_what_they_do(self):
        def name(channels, consumers, stages, tactics):
            return count_instructions.forward_name(
                "forward_hopper_kernel<HopperTile<SmallFloat<SmallFormat<8, 7, false>, unsigned "
                f"short>, {channels}, {consumers}, 128, {stages}, "
                f"ringlab::cuda::HopperTactics{{{tactics}}}> >")[1]
        kernel = "true, true, true, true, 8, 0, false, false, 1, false"
        self.assertEqual(name(64, 3, 2, kernel), "64 channels, 128 keys: the kernel")
        self.assertEqual(name(128, 2, 2, kernel), "128 channels, 128 keys: none of these")
        self.assertEqual(name(128, 2, 2, "true, true, true, true, 8, 0, true, true, 1, true"),
                         "128 channels, 128 keys: the kernel")
        self.assertEqual(name(64, 2, 2, kernel), "64 channels, 128 keys: two consumers")
        self.assertEqual(name(128, 2, 3, kernel), "128 channels, 128 keys: three stages")
        self.assertEqual(name(128, 2, 2, "true, true, true, true, 8, 1, true, true, 2, true"),
                         "128 channels, 128 keys: kept queries, boxes out, pairs of heads, told "
                         "tiles, 1/8 polynomials")

    def test_the_page_has_a_row_for_every_tactic(self):
        table = count_instructions.marked.part((ROOT / "docs/gpu.md").read_text(),
                                               count_instructions.PART)
        for rule in filter(None, count_instructions.TACTICS):
            self.assertIn(rule[1], table)
        source = (ROOT / "optimized/cuda/hopper/forward_hopper_tile.cuh").read_text()
        fields = re.search(r"struct HopperTactics \{(.*?)\n\};", source, re.DOTALL).group(1)
        self.assertEqual(len(re.findall(r"^  (?:bool|int) ", fields, re.MULTILINE)),
                         len(count_instructions.TACTICS))


if __name__ == "__main__":
    unittest.main()
