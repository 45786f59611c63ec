"""`ringlab verify --time|--rounds|--certificate|--check-certificate`."""
import hashlib
import json
import os
import pathlib
import re
import signal
import time
import unittest

from program import ProgramTest, rendered, ringlab, verifying

PLUGINS = pathlib.Path(os.environ.get("RINGLAB_TEST_PLUGINS", "build/plugins"))
FEW = ["--tokens", "32", "--laws", "equals_reference,U,P65", "--cases", "5"]


def plain(value):
    if isinstance(value, float):
        return "%.17g" % value
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, list) else value


def canonical_digest(document):
    rest = plain({name: value for name, value in document.items() if name != "digest"})
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


class RoundsTest(ProgramTest):
    def laws(self, *words):
        found = self.folder / "found.json"
        result = self.succeeds("verify", "ring", *FEW, *words, "--json", found)
        document = json.loads(found.read_text())
        return result, document, document["subjects"][0]

    def test_rounds_add_up_and_differ(self):
        _, _, one = self.laws()
        _, _, three = self.laws("--rounds", "3")
        self.assertEqual([law["cases"] for law in one["laws"]], [5, 5, 5])
        self.assertEqual([law["cases"] for law in three["laws"]], [15, 15, 15])
        self.assertEqual(three["rounds"], 3)

    def test_the_sizes_of_later_rounds_are_said_before_the_first(self):
        result, document, _ = self.laws()
        self.assertNotIn("plan: from round", result.out)
        self.assertEqual([step["from_round"] for step in document["plan"]], [1])
        result, document, subject = self.laws("--rounds", "10")
        self.assertLess(result.out.index("plan: from round"), result.out.index("verdict"))
        plan = document["plan"]
        self.assertEqual([step["from_round"] for step in plan], [1, 2, 4, 10])
        for name in plan[0]:
            self.assertEqual(sorted(step[name] for step in plan), [step[name] for step in plan])
        sizes = subject["coverage"]["tried"]["forward"]["sizes"]
        self.assertGreater(sizes["kv_tokens"][1], plan[0]["tokens"])
        self.assertLessEqual(sizes["ranks"][1], plan[-1]["ranks"])

    def test_time_ends_it_and_is_said(self):
        begin = time.monotonic()
        result, document, subject = self.laws("--time", "1.5")
        self.assertGreaterEqual(time.monotonic() - begin, 1.5)
        self.assertLess(time.monotonic() - begin, 60)
        self.assertRegex(document["ended"], r"^time over after \d")
        self.assertRegex(result.out, r"time over after .* whole rounds?, .* cases tried")
        self.assertGreater(subject["rounds"], 0)
        self.assertGreater(subject["laws"][0]["cases"], 5)

    def test_every_subject_has_its_share_of_the_time(self):
        found = self.folder / "found.json"
        self.succeeds("verify", "ring", "broadcast", "backward", *FEW, "--time", "2", "--json", found)
        seconds = [one["laws_seconds"] for one in json.loads(found.read_text())["subjects"]]
        self.assertLess(max(seconds), 5 * min(seconds))

    def test_ctrl_c_ends_it_with_a_report(self):
        found = self.folder / "found.json"
        with verifying("ring", *FEW, "--time", "600", "--json", found) as running:
            running.send_signal(signal.SIGINT)
            out, _ = running.communicate(timeout=300)
        self.assertEqual(running.returncode, 0, out)
        self.assertIn(b"stopped after", out)
        document = json.loads(found.read_text())
        self.assertRegex(document["ended"], r"^stopped after [\d.]+ s$")
        self.assertGreater(document["subjects"][0]["laws"][0]["cases"], 0)

    def test_nonsense_is_refused(self):
        self.fails(2, "--time", "verify", "ring", "--time", "0")
        self.fails(2, "--time", "verify", "ring", "--time", "nan")
        self.fails(2, "--rounds", "verify", "ring", "--rounds", "0")


class CoverageTest(ProgramTest):
    def test_a_full_run_covers_what_it_should_and_shows_it(self):
        found, page = self.folder / "found.json", self.folder / "page.html"
        result = self.succeeds("verify", "broadcast", "--quick", "--json", found, "--html", page)
        coverage = json.loads(found.read_text())["subjects"][0]["coverage"]
        self.assertTrue(coverage["judged"])
        self.assertEqual(coverage["missing"], [])
        self.assertGreater(coverage["classes"]["mask prefix"]["share"], 0.02)
        self.assertIn("the rarest:", result.out)
        self.assertIn("Rarest classes of cases", rendered(page))

    def test_some_laws_are_not_judged(self):
        found = self.folder / "found.json"
        self.succeeds("verify", "broadcast", "--laws", "P31", "--cases", "600", "--json", found)
        coverage = json.loads(found.read_text())["subjects"][0]["coverage"]
        self.assertGreaterEqual(coverage["cases"], 500)
        self.assertFalse(coverage["judged"])

    def test_a_subject_that_refuses_what_it_claims_to_support_does_not_pass(self):
        plugin = PLUGINS / "libmisbehaving_plugin.so"
        if not plugin.exists():
            self.skipTest(f"{plugin} was not built")
        environment = {**os.environ, "RINGLAB_TEST_MISTAKE": "refuses_groups"}
        result = ringlab("verify", plugin, "--quick", "--cases", "15", env=environment)
        self.assertEqual(result.code, 4, result.out + result.err)
        self.assertIn("coverage: expected 2 % of the cases", result.err)
        self.assertIn("grouped heads", result.err)


class CertificateTest(ProgramTest):
    def certificate(self, name, *words, code=0, subject="ring", env=None):
        path = self.folder / name
        result = ringlab("verify", subject, *words, "--certificate", path, env=env)
        self.assertEqual(result.code, code, result.out + result.err)
        return result, path

    def test_it_says_what_was_checked_with_what(self):
        result, path = self.certificate("ring.json", *FEW)
        self.assertIn("PASS ring", result.out)
        document = json.loads(path.read_text())
        self.assertEqual(document["ringlab_certificate"], 1)
        self.assertEqual(document["verdict"], "PASS")
        self.assertEqual(document["digest"], canonical_digest(document))
        self.assertTrue(document["oracle"]["agrees"])
        self.assertEqual(document["oracle"]["fingerprint"], document["oracle"]["expected"])
        subject = document["subjects"][0]
        self.assertEqual(subject["verdict"], "PASS")
        self.assertIn("3 of", subject["sentence"])
        self.assertEqual(subject["exact_probes"]["laws"], ["U"])
        self.assertEqual(subject["determinism"]["laws"], ["P65"])
        self.assertEqual([law["cases"] for law in subject["laws"]], [5, 5, 5])
        self.assertRegex(subject["laws"][0]["worst_element"], r"^(o|lse)\[\d+, \d+, \d+, \d+\]$")
        self.assertIn("gradients", json.dumps(document["not_checked"]))
        self.assertFalse(any("certificate" in word for word in document["command"]))

    def test_the_strength_of_the_suite_is_that_of_the_file_in_the_repository(self):
        file = pathlib.Path(__file__).parents[3] / "docs" / "mutants.json"
        _, path = self.certificate("ring.json", *FEW)
        strength = json.loads(path.read_text())["strength"]
        self.assertTrue(strength["known"])
        measured = json.loads(file.read_text())
        self.assertEqual(strength["killed"], measured["killed"])
        self.assertEqual(strength["file_sha256"], hashlib.sha256(file.read_bytes()).hexdigest())

    def test_the_page_holds_the_document_and_loads_nothing(self):
        _, path = self.certificate("ring.html", *FEW)
        text = path.read_text()
        self.assertIsNone(re.search(r"https?:|@import|src=", text))
        inside = re.search(r'<script type="application/json" id="data">(.*?)</script>', text)
        document = json.loads(inside.group(1))
        self.assertEqual(document["digest"], canonical_digest(document))
        shown = rendered(path)
        self.assertIn("Certificate of verification", shown)
        self.assertIn(document["digest"], shown)
        self.assertIn("PASS", self.succeeds("verify", "--check-certificate", path).out)
        old = text.replace('id="data"', 'id="certificate"')  # as pages of earlier versions name it
        self.succeeds("verify", "--check-certificate", self.file("old.html", old))

    def test_a_changed_certificate_is_found_out(self):
        _, path = self.certificate("ring.json", *FEW)
        self.succeeds("verify", "--check-certificate", path)
        changed = self.file("changed.json", path.read_text().replace('"cases": 5', '"cases": 6', 1))
        self.fails(3, ["changed after it was written", "sha256:"], "verify", "--check-certificate",
                   changed)

    def test_what_is_no_certificate_is_refused(self):
        self.fails(3, "No such file", "verify", "--check-certificate", self.folder / "none.json")
        for text in ["", "{", "<html></html>"]:
            self.fails(3, "a JSON certificate", "verify", "--check-certificate",
                       self.file("bad.json", text))
        for text in ["[]", "{}", '{"ringlab_certificate": 2}',
                     '{"ringlab_certificate": 1, "verdict": "PASS", "digest": "x", "written": "y",'
                     ' "command": [], "subjects": [3]}']:
            self.fails(3, "expected a certificate of format 1", "verify", "--check-certificate",
                       self.file("bad.json", text))
        self.fails(2, ".json or .html", "verify", "ring", "--certificate", self.folder / "x.txt")
        self.fails(2, "--again", "verify", "ring", "--again")

    def test_the_same_verification_again_gives_the_same_verdict_and_cases(self):
        _, path = self.certificate("ring.json", *FEW, "--rounds", "2")
        result = self.succeeds("verify", "--check-certificate", path, "--again")
        self.assertIn("the same verdicts again", result.out)
        document = json.loads(path.read_text())
        document["command"][-1] = "--rounds=3"
        document["digest"] = canonical_digest(document)
        other = self.file("other.json", json.dumps(document))
        result = ringlab("verify", "--check-certificate", other, "--again")
        self.assertEqual(result.code, 1, result.out + result.err)
        self.assertIn("cases_sha256", result.out)

    def test_a_timed_one_is_repeated_as_rounds(self):
        _, path = self.certificate("ring.json", *FEW, "--time", "0.5")
        document = json.loads(path.read_text())
        self.assertRegex(document["command"][-1], r"^--rounds=\d+$")
        self.assertIn("the same verdicts again",
                      self.succeeds("verify", "--check-certificate", path, "--again").out)

    def test_nothing_compared_is_inconclusive(self):
        plugin = PLUGINS / "libmisbehaving_plugin.so"
        if not plugin.exists():
            self.skipTest(f"{plugin} was not built")
        environment = {**os.environ, "RINGLAB_TEST_MISTAKE": "unsupported"}
        _, path = self.certificate("none.json", "--laws", "equals_reference", "--cases", "3", code=1,
                                   subject=plugin, env=environment)
        subject = json.loads(path.read_text())["subjects"][0]
        self.assertEqual(subject["verdict"], "INCONCLUSIVE")
        self.assertIn("nothing could be compared", subject["sentence"])

    def test_a_wrong_plugin_is_named_with_its_smallest_case(self):
        plugin = PLUGINS / "libbroken_plugin.so"
        if not plugin.exists():
            self.skipTest(f"{plugin} was not built")
        _, path = self.certificate("broken.json", "--laws", "equals_reference", code=1, subject=plugin)
        subject = json.loads(path.read_text())["subjects"][0]
        self.assertEqual(subject["verdict"], "FAIL")
        fault = subject["faults"][-1]
        self.assertEqual(fault["class"], "values")
        self.assertRegex(fault["element"], r"^(o|lse)\[")
        self.assertEqual(fault["rank"], 0)
        self.assertEqual(ringlab("verify", plugin, "--replay", fault["replay"]).code, 1)
        page = self.certificate("broken.html", "--laws", "equals_reference", code=1, subject=plugin)[1]
        self.assertIn(f"ringlab verify {plugin} --replay", rendered(page))

    def test_a_crash_and_a_hang_have_words_of_their_own(self):
        plugin = PLUGINS / "libmisbehaving_plugin.so"
        if not plugin.exists():
            self.skipTest(f"{plugin} was not built")
        for mistake, word, seconds in [("crash", "CRASH", 60), ("hang", "TIMEOUT", 0.2)]:
            environment = {**os.environ, "RINGLAB_TEST_MISTAKE": mistake}
            _, path = self.certificate("lost.json", "--laws", "equals_reference", "--timeout",
                                       str(seconds), "--cases", "2", code=1, subject=plugin,
                                       env=environment)
            self.assertEqual(json.loads(path.read_text())["verdict"], word)


if __name__ == "__main__":
    unittest.main()
