"""`ringlab doctor --measure`: what it writes is a machine."""
import json
import unittest

from program import ProgramTest


class MeasureTest(ProgramTest):
    def test_what_is_measured_is_a_machine(self):
        path = self.folder / "here.json"
        result = self.succeeds("doctor", "--measure", path)
        self.assertIn(f"try ringlab simulate --machine {path}", result.out)
        machine = json.loads(path.read_text())
        self.assertEqual(machine["name"], "here")
        kinds = {(speed["dtype"], speed["head_dim"]) for speed in machine["attention"]}
        self.assertEqual(kinds, {(dtype, width) for dtype in ("f32", "bf16", "f64") for width in (64, 128)})
        self.assertEqual(len(machine["expected"]["attention"]), len(kinds) * 2 * 3)
        self.assertIn("doctor --measure", machine["expected"]["transfer_share"]["source"])
        self.assertTrue(0 <= machine["expected"]["transfer_share"]["value"] <= 1)
        found = self.folder / "simulated.json"
        self.succeeds("simulate", "--machine", path, "--dtype", "f32", "--tokens", 4096, "--ranks", 2,
                      "--json", found)
        simulated = json.loads(found.read_text())
        self.assertEqual(simulated["configuration"]["machine"], "here")
        self.assertGreater(simulated["expected"]["seconds"], 0)

    def test_only_files_that_simulate_knows_are_written(self):
        path = self.folder / "here.txt"
        self.fails(2, ["--measure", ".json"], "doctor", "--measure", path)
        self.assertFalse(path.exists())
        self.fails(4, ["nowhere"], "doctor", "--measure", self.folder / "nowhere" / "here.json")


if __name__ == "__main__":
    unittest.main()
