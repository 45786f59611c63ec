"""scripts/check_spills on logs that are made up."""
import importlib.machinery
import importlib.util
import pathlib
import unittest

PATH = pathlib.Path(__file__).parents[2] / "scripts" / "check_spills"
loader = importlib.machinery.SourceFileLoader("check_spills", str(PATH))
check_spills = importlib.util.module_from_spec(
    importlib.util.spec_from_loader("check_spills", loader))
loader.exec_module(check_spills)

RULES = [("fast_kernel", "sm_90a", 0, 1)]


def compiled(folder, spilled):
    """What is logged of one kernel in an object of that folder."""
    return (f"[1/9] Building CUDA object optimized/cuda/CMakeFiles/{folder}/kernel.cu.o\n"
            "ptxas info    : Compiling entry function 'fast_kernel' for 'sm_90a'\n"
            "ptxas info    : Function properties for fast_kernel\n"
            f"    24 bytes stack frame, {spilled} bytes spill stores, {spilled} bytes spill loads\n"
            "ptxas info    : Used 168 registers\n")


class CheckSpills(unittest.TestCase):
    def wrong(self, log):
        return check_spills.check(log, RULES)[0]

    def test_a_fast_kernel_that_spills_is_a_fault(self):
        self.assertEqual(self.wrong(compiled("cuda_hopper.dir", 0)), [])
        self.assertIn("28 bytes spilled", self.wrong(compiled("cuda_hopper.dir", 28))[0])

    def test_kernels_for_tests_may_spill_before_and_after_the_fast_ones(self):
        fast, bounded = compiled("cuda_hopper.dir", 0), compiled("cuda_hopper_bounded.dir", 80)
        self.assertEqual(self.wrong(fast + bounded), [])
        self.assertEqual(self.wrong(bounded + fast), [])

    def test_a_kernel_that_is_missing_is_a_fault(self):
        self.assertIn("expected 1", self.wrong(compiled("cuda_hopper_bounded.dir", 0))[0])


if __name__ == "__main__":
    unittest.main()
