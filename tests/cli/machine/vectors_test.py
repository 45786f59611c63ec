"""The kernels obey the laws with every kind of vectors that this processor has."""
import json
import os
import unittest

from program import ProgramTest

KERNEL_USERS = ["overlapped_causal_ring", "optimized"]


def with_vectors(name):
    return {**os.environ, "RINGLAB_VECTORS": name}


class VectorsTest(ProgramTest):
    def processor(self, **options):
        return json.loads(self.succeeds("doctor", "--json", "-", **options).out)["processor"]

    def test_all_laws_hold_with_every_kind(self):
        kinds = self.processor()["available_vectors"]
        self.assertIn(kinds[-1], ("scalar", "neon", "neon_without_aes"))
        for kind in kinds:
            with self.subTest(vectors=kind):
                self.succeeds("verify", *KERNEL_USERS, "--cases", 10, env=with_vectors(kind))

    def test_the_kind_that_is_asked_for_is_used(self):
        for kind in self.processor()["available_vectors"]:
            self.assertEqual(self.processor(env=with_vectors(kind))["vectors"], kind)

    def test_a_kind_that_does_not_exist_is_refused(self):
        self.fails(2, ["vectors", "mmx"], "list", env=with_vectors("mmx"))

    def test_results_do_not_depend_on_the_number_of_threads(self):
        text = self.file("text", "to be or not to be " * 20)
        outputs = []
        for threads in (1, 2, 5):
            out = self.folder / f"{threads}.safetensors"
            self.succeeds("run", "optimized", "--text", text, "--tokens", 300, "--mask", "causal",
                          "--backward", "--threads", threads, "--output", out)
            outputs.append(out.read_bytes())
        self.assertEqual(outputs[0], outputs[1])
        self.assertEqual(outputs[0], outputs[2])

    def test_threads_are_refused_where_they_would_do_nothing(self):
        text = self.file("text", "to be or not to be")
        self.fails(2, ["--threads", "ring"], "run", "ring", "--text", text, "--threads", 2)


if __name__ == "__main__":
    unittest.main()
