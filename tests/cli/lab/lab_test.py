"""`ringlab lab` as a learner uses it: export, write, test, hint, why, reset, watch."""
import concurrent.futures
import contextlib
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests" / "cli"), str(ROOT / "cli" / "lab"),
                str(ROOT / "property_tests" / "mutants")]
from program import PROGRAM, ProgramTest, ringlab  # noqa: E402
os.environ.setdefault("RINGLAB_PROGRAMS", str(pathlib.Path(PROGRAM).resolve().parent))
import attempt  # noqa: E402
import generate  # noqa: E402
import handed_in  # noqa: E402
from catalogue import all_labs, find_lab, without_marks  # noqa: E402
from debug import debug_labs  # noqa: E402
from workspace import Workspace  # noqa: E402

class LabTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.labs = self.folder / "labs"

    def lab(self, *words):
        return ringlab("lab", "--dir", self.labs, *words)

    def export(self, *words):
        self.succeeds("lab", "export", self.labs, *words)

    def write(self, lab, text):
        (self.labs / lab.file_name()).write_text(text)

    def edited(self, lab, find, replace):
        text = lab.solution()
        self.assertEqual(text.count(find), 1, find)
        self.write(lab, text.replace(find, replace))

    def assert_ends(self, result, code, *texts):
        self.assertEqual(result.code, code, result.out + result.err)
        for text in texts:
            self.assertIn(text, result.out + result.err)
        self.assertLessEqual(len(result.out.splitlines()), 25)


class Catalogue(unittest.TestCase):
    def test_every_exercise_has_three_hints_a_stub_and_a_region_of_at_most_40_lines(self):
        for lab in all_labs():
            for exercise in lab.exercises:
                with self.subTest(lab=lab.id, exercise=exercise.name):
                    self.assertEqual(len(exercise.hints), 3)
                    self.assertIn(f'not_done("{exercise.name}");', exercise.stub)
                    written = without_marks(lab.region(exercise.name)["body"])
                    self.assertLessEqual(len(written.splitlines()), 44)

    def test_pages_say_how_many_lines_are_to_be_written(self):
        lines = [[len(without_marks(lab.region(exercise.name)["body"]).splitlines())
                  for exercise in lab.exercises] for lab in all_labs()]
        labs, each = [sum(one) for one in lines], sum(lines, [])
        self.assertIn(f"with {min(labs)} to {max(labs)} lines taken out",
                      (ROOT / "docs" / "labs.md").read_text())
        self.assertIn(f"a part of it, {min(each)} to {max(each)} lines |",
                      (ROOT / "docs" / "glossary.md").read_text())

    def test_every_exercise_holds_a_planted_mistake(self):
        for lab in all_labs():
            gaps = {edit.get("gap") for m in lab.mistakes for edit in generate.edits_of(m)}
            for exercise in lab.exercises:
                held = re.findall(r"// \[gap: (\w+)\]", lab.region(exercise.name)["body"])
                self.assertTrue(gaps & set(held), f"{lab.id} {exercise.name}")

    def test_stages_00_to_21_and_no_later_one_before_its_turn_are_labs_with_two_questions(self):
        stages = re.findall(r"^\d\d_\w+", (ROOT / "stages" / "stages.txt").read_text(), re.MULTILINE)
        labs = [f"{lab.id}_{lab.name}" for lab in all_labs()]
        self.assertGreaterEqual(len(labs), 22)
        self.assertEqual(labs, stages[:len(labs)])
        for lab in all_labs():
            self.assertGreaterEqual(len(lab.questions), 2, lab.id)
            self.assertLessEqual(lab.seconds, 10)

    def test_answers_that_can_be_computed_are(self):
        for lab, number, value in [
                ("00", 0, f"{math.log(math.exp(0) + math.exp(0)):.3f}"), ("00", 1, 3 * 4),
                ("00", 2, 5 // (8 // 2)), ("01", 0, 7), ("01", 1, 4 - 1),
                ("02", 1, f"{math.exp(1 - 5):.4f}"), ("03", 0, -(-10 // 4)),
                ("03", 1, sum(4 * key <= 4 * query + 3 for query in range(3) for key in range(3))),
                ("04", 0, 5 - 1), ("04", 1, f"{2 + math.log(1 + 1):.3f}"), ("05", 0, 8 - 1),
                ("05", 1, (1 - 2) % 4), ("06", 1, sum(k <= q for q in range(8) for k in range(8))),
                ("06", 0, sum(k <= q for q in (6, 7) for k in range(8))), ("07", 0, (7 - 1) % 3),
                ("07", 1, min(16, 8 - 1)), ("08", 0, 4 + 7 * max(4, 3)), ("08", 1, 8 * 4 + 7 * 3),
                ("09", 0, f"{1},{2 * 4 - 1 - 1}"), ("09", 1, len(range(2, 10, 4))),
                ("10", 0, 4 + 13 % 4), ("10", 1, 10 % 3), ("11", 0, 3), ("11", 1, 2),
                ("12", 0, 8 - 1), ("12", 1, f"{3 * math.log(2):.3f}"), ("13", 0, 7 // 3 // 2),
                ("13", 1, 6 * 7 // 2), ("14", 0, 0.5 * (4 - (0.5 * 2 + 0.5 * 4))), ("14", 1, 8 - 1),
                ("15", 0, 8), ("16", 0, 8 // 2), ("16", 1, (1 + 3) % 7), ("17", 0, 12 // 4 - 1),
                ("17", 1, -(-5 // (7 - 5))), ("18", 0, f"{1 * 6 // 3},{2 * 6 // 3 - 1}"),
                ("18", 1, sum(4 * rank // 7 == 4 * (rank + 1) // 7 for rank in range(7))),
                ("19", 0, -(-25 // 10)),
                ("19", 1, len({(query // 4, key // 4) for low, high in [(0, 5), (5, 14), (14, 16)]
                               for query in range(low, high) for key in range(low, query)
                               if query // 4 != key // 4})),
                ("20", 0, math.ceil(math.log2(1000 / 448))), ("20", 1, 2 * (64 + 2)),
                ("21", 0, 10 % 4), ("21", 1, f"{8 - 1},{2 * (8 - 1)}")]:
            self.assertEqual(find_lab(lab).questions[number].answer, str(value), f"{lab} {number}")

    def test_a_skeleton_is_the_solution_but_for_what_is_to_be_written(self):
        for lab in all_labs():
            outside = lab.header
            for exercise in lab.exercises:
                outside = outside.replace(lab.region(exercise.name)[0], "HERE\n")
            skeleton = re.sub(r"[ ]*// Yours: .*?// End of \w+\.\n", "HERE\n", lab.skeleton(),
                              flags=re.DOTALL)
            skeleton = skeleton.replace('#include "stages/common/not_done.h"\n', "")
            self.assertEqual(without_marks(outside), skeleton, lab.id)


class Outcomes(LabTest):
    def test_of_what_was_exported_is_not_done(self):
        self.export("--stages", "04-05")
        for lab in (find_lab("merge"), find_lab("05")):
            self.assert_ends(self.lab("test", lab.id), 10, f"{lab.id} {lab.name}: not done",
                             *[f"{exercise.name}: " for exercise in lab.exercises])

    def test_of_a_solution_is_done(self):
        self.export("--stages", "05-05")
        lab = find_lab("ring")
        self.write(lab, lab.solution() + '// not_done("hops");\n/* not_done("exchange"); */\n')
        self.assert_ends(self.lab("test"), 0, "05 ring: done", "laws hold")
        library, trace = self.labs / ".ringlab" / "05_ring.so", self.folder / "trace.json"
        self.succeeds("run", library, "--random", "--tokens", 12, "--ranks", 3, "--trace", trace)
        self.assertRegex(self.succeeds("trace", trace).out, r"(?m)^ +2 .*\n\nrun ")
        self.assertRegex(self.lab("list").out, r"05 ring +1  done")
        listed = json.loads(ringlab("lab", "--dir", self.labs, "--json", "-", "list").out)
        self.assertEqual(listed["labs"][0]["outcome"], "done")
        self.assertEqual(listed["labs"][0]["to_write"], [])

    def test_are_listed_below_each_other(self):
        self.export("--stages", "05-12")
        head, *rows = self.lab("list").out.splitlines()
        self.assertEqual([row.index("not tried") for row in rows], [head.index("outcome")] * 8)

    def test_of_a_mistake_names_it(self):
        self.export("--stages", "05-05")
        self.edited(find_lab("05"), "hop < ranks;",
                    'hop < ranks - 1 && std::printf("hop %d\\n", int(hop)) > 0;')
        path = self.folder / "verdict.json"
        result = self.lab("--json", path, "test", "05")
        self.assertFalse(json.loads(path.read_text())["passed"])
        self.assert_ends(result, 1, "05 ring: wrong\n", "the chunk that comes last is never computed")
        again = self.lab("why", "05")
        self.assertEqual(again.code, 1)
        self.assertIn("\nwhat it printed in the law's last run:\n  hop 0\n", again.out)
        self.assertRegex(self.lab("list").out, r"05 ring +1  wrong")

    def picture(self, number, mistake):
        """What `why` draws of a planted mistake in the learner's file."""
        lab = find_lab(number)
        self.export("--stages", f"{number}-{number}")
        planted = next(m for m in lab.mistakes if m["id"] == mistake)
        text = lab.solution()
        for edit in generate.edits_of(planted):
            self.assertEqual(text.count(edit["find"]), 1, edit["find"])
            text = text.replace(edit["find"], edit["replace"])
        self.write(lab, text)
        self.lab("test", number)
        told = self.lab("why", number)
        lines = told.out.splitlines()
        head = next(n for n, line in enumerate(lines) if line.startswith(("broken", "held")))
        self.assertLessEqual(len(lines) - head - 1, 41, told.out)
        self.assertLessEqual(max(map(len, lines[head + 1:])), 104)
        mine, *right = told.out.split("\nand as it should be:\n")
        self.assertEqual(len(right), 1, told.out)
        return told, mine, right[0]

    def test_of_why_is_a_picture_of_the_chunk_that_is_never_computed_on(self):
        told, mine, right = self.picture("05", "ring_one_hop_short")
        self.assertEqual(told.code, 1)
        self.assertRegex(told.out, r"(?m)^case {5}\S.*\nbroken {3}\S")
        missing = re.search(r"^rank (\d) .*<- never \[(\d)\]$", mine, re.MULTILINE)
        self.assertTrue(missing, mine)
        rank, chunk = missing.groups()
        self.assertRegex(right, rf"(?m)^rank {rank} .*\[{chunk}(@\d)?\]")
        self.assertNotIn("never", right)
        self.assertRegex(right, r"(?m)^step \d chunk \d keys \S+ .*<- lost, first wrong$")
        self.assertRegex(mine, r"(?m)^query \d.*<- wrong$")
        # On one rank a lost hop would look like a lost row, or like a lost key.
        self.assertRegex(mine, r"(?m)^case +[2-9] ranks")

    def test_of_why_is_a_picture_of_the_slot_that_is_freed_too_early(self):
        _, mine, right = self.picture("08", "overlapped_ring_slot_freed_too_early")
        seen = re.search(r"^!  rank (\d) receives (?:keys|values) of chunk (\d) into the slot from "
                         r"which those of chunk (\d) are still being sent", mine, re.MULTILINE)
        self.assertTrue(seen, mine)
        rank, arriving, leaving = seen.groups()
        lane = rf"(?m)^rank {rank} .*"
        self.assertRegex(mine, lane + r" !(   |$)")
        # The wait for the chunk that leaves the slot stands before the receive, or does not.
        self.assertRegex(right, lane + rf"={leaving} {arriving}<")
        self.assertNotRegex(mine, lane + rf"={leaving} {arriving}<")

    def test_of_why_is_a_picture_of_the_way_back_where_gradients_are_wrong(self):
        _, mine, right = self.picture("15", "backward_one_hop_too_far")
        self.assertRegex(mine, r"(?m)^ .* back 0 +back 1")
        exchanges = [len(re.findall(r"\d>\d", text)) for text in (mine, right)]
        self.assertGreater(exchanges[0], exchanges[1])
        self.assertIn("o and lse of this run lie within their bounds", right)

    def test_of_what_no_answer_shows_is_wrong(self):
        self.export("--stages", "05-08")
        note = "  r.work.visit(chunk.owner, hop, r.problem.mask.count(mask.queries(), held));\n"
        for number, find, replace, *said in [
                ("05", "  r.work.hold_kv((ranks > 1 ? 2 : 1) * here.bytes());\n", "",
                 "(ring.memory)", "0 bytes of K and V noted as held"),
                ("06", "  if (coverage == Coverage::empty) return;\n", "", "(ring.visits)",
                 "was computed, and no query sees a key of it"),
                ("06", note, "", "(ring.visits)", "was never noted as computed"),
                ("08", ">= r_.ranks()) return false", "> r_.ranks()) return false",
                 "(ring.messages)", "sent and never received, or the other way round")]:
            self.edited(find_lab(number), find, replace)
            self.assert_ends(self.lab("test", number), 1, f"{number} ", *said)
        told = self.lab("explain", "ring.messages").out
        self.assertIn("in your file of lab 08", told)
        self.assertNotIn("crosses", told)
        self.assertIn("in your file of lab 06", self.lab("explain", "ring.visits").out)

    def test_of_a_message_with_another_tag_or_owner_asks_for_it(self):
        self.export("--stages", "05-05")
        self.edited(find_lab("05"), "post_send(to, kValues", "post_send(to, kKeys")
        self.assert_ends(self.lab("test", "05"), 13, "posted to send tag 0", "use the same tag?")
        self.edited(find_lab("05"), "arriving->owner = r.rank_at(-hop);",
                    "arriving->owner = r.rank_at(hop);")
        result = self.lab("test", "05")
        self.assert_ends(result, 1, "disagree about the size\n", "think    Whose chunk")

    def test_of_what_submit_refuses_says_so(self):
        self.export("--stages", "04-04")
        lab = find_lab("04")
        right, mine = handed_in.solved(lab), "r.lse.data[row] = saw_nothing(state)"
        self.assertEqual(right.count(mine), 1)
        self.write(lab, right)
        self.assertNotIn("submit", self.lab("test", "04").out)
        self.write(lab, right.replace(mine, "if (row < 0) std::exit(0);\n    " + mine))
        self.assert_ends(self.lab("test", "04"), 0, "but `submit` says: 04_merge/merge.h, ", "`exit`")

    def test_of_an_empty_file_is_that_it_is_empty(self):
        self.export("--stages", "05-05")
        self.write(find_lab("05"), "\n")
        self.assert_ends(self.lab("test", "05"), 11, "ring.h is empty: `ringlab lab reset 05`")

    def test_of_ranks_that_wait_for_each_other_is_stuck(self):
        self.export("--stages", "05-05")
        self.edited(find_lab("05"),
                    "posted.push_back(r.network.post_send(to, kKeys, leaving.k_bytes(r)));",
                    "r.network.wait(r.network.post_send(to, kKeys, leaving.k_bytes(r)));")
        self.assert_ends(self.lab("test", "05"), 13, "05 ring: stuck",
                         "rank 0 waits to send tag 0 to rank 1")
        self.assertRegex(self.lab("why", "05").out, r"(?m)^rank 0 .*=\S never !$")

    def test_of_a_crash_is_crashed(self):
        self.export("--stages", "05-05")
        self.edited(find_lab("05"), "meet(here, hop);",
                    "*reinterpret_cast<volatile int*>(8) = 1;\n    meet(here, hop);")
        self.assert_ends(self.lab("test", "05"), 12, "05 ring: crashed", "SIGSEGV")
        self.assertIn("no answer: ", self.lab("why", "05").out)

    def test_of_what_is_printed_is_shown_as_the_page_says(self):
        page = (ROOT / "docs" / "labs.md").read_text()
        self.assertIn("is shown by `why`, the end of it (4000 bytes)", page)
        self.assertIn("last lines only where a run crashes or does not end", page)
        self.export("--stages", "05-05")
        lab = find_lab("05")
        thrown = 'throw std::runtime_error("owner " + std::to_string(here.owner));'
        for line, code, said in [(thrown, 1, "it threw: rank 0: owner "),
                                 ('std::printf("hop %d\\n", hop);\n__builtin_trap();', 12,
                                  "Its last words: hop 0")]:
            text = "#include <cstdio>\n#include <stdexcept>\n#include <string>\n" + lab.solution()
            self.write(lab, text.replace("meet(here, hop);", line + " meet(here, hop);"))
            self.assert_ends(self.lab("test", "05"), code, said)
        self.assertIn("hop 0", self.lab("why", "05").out)

    def test_of_what_does_not_compile_is_its_first_error(self):
        self.export("--stages", "02-02")
        self.edited(find_lab("02"), "state.row_max = top;", "state.row_max = peak;")
        result = self.lab("test", "02")
        self.assert_ends(result, 11, "02 online_softmax: does not compile", "online_softmax.h:",
                         "‘peak’ was not declared")
        self.assertEqual(len(re.findall("error: ", result.out)), 1)


class ScarceMachine(LabTest):
    """A compiler that lacks something tells nothing of the file: exit code 4, and no points are lost."""

    def test_is_not_taken_for_a_mistake(self):
        self.export("--stages", "02-02")
        self.write(find_lab("02"), find_lab("02").solution())
        broken = self.folder / "broken"
        broken.mkdir()
        for name in ("as", "ld"):
            (broken / name).write_text("#!/bin/sh\necho no memory >&2; exit 1\n")
            (broken / name).chmod(0o755)
        compiler = "the compiler: expected it to compile ringlab's own"
        for limit, said in (("ulimit -v 150000", compiler), (f'export CXX="c++ -B{broken}"', compiler),
                            ("ulimit -f 1", r"\.include/\S+\.h: expected a file .* found: File too large")):
            with self.subTest(limit):
                done = subprocess.run(["sh", "-c", f'{limit}; exec "$@"', "sh", PROGRAM, "lab", "--dir", self.labs,
                                       "test", "02"], capture_output=True, text=True, timeout=600)
                self.assertEqual(done.returncode, 4, done.stdout + done.stderr)
                self.assertRegex(done.stderr, said)


class Walls(LabTest):
    """A file that is compiled reads, fills and outlives nothing."""

    HOSTILE = ['#include "{secret}"', '#include "linked.h"', '__asm__(".incbin \\"{secret}\\"");',
               '#if __has_include("{secret}")\n#include "{secret}"\n#endif', '#include "/dev/zero"',
               "char much[1l << 30] = {{1}};"]

    def test_of_a_compiler_hold(self):
        self.export("--stages", "02-02")
        lab, secret = find_lab("02"), self.file("private/secret.h", "SENTINEL that_is_no_type;\n")
        folder = (self.labs / lab.file_name()).parent
        (folder / "linked.h").symlink_to(secret)
        (folder / "mine.h").write_text("#define MINE 1\n")
        for text in self.HOSTILE:
            with self.subTest(text):
                self.write(lab, text.format(secret=secret) + "\n" + lab.skeleton())
                result = self.lab("test", "02")
                self.assert_ends(result, 11, "02 online_softmax: does not compile")
                self.assertNotIn("SENTINEL", result.out + result.err)
        self.write(lab, '#include "mine.h"\nstatic_assert(MINE);\n' + lab.skeleton())
        self.assert_ends(self.lab("test", "02"), 10)

    def behind_walls(self, script, deadline=attempt.DEADLINE):
        output = self.folder / "output"
        with mock.patch.dict(os.environ, {"SOMEBODYS_TOKEN": "SENTINEL"}), \
                mock.patch.object(attempt, "DEADLINE", deadline):
            code, said = attempt.behind_walls([self.labs], ["sh", "-c", script], output)
        return code, output.read_text() + said

    def test_of_whatever_a_compiler_becomes_hold(self):
        secret, self.labs = self.file("private/secret", "SENTINEL"), self.file("labs/mine", "mine").parent
        script = (f"cat {self.labs}/mine {secret} /etc/shadow /proc/{os.getpid()}/environ; env; kill {os.getpid()}; "
                  f"echo x > {self.labs}/new; rm {self.labs}/mine; echo kept > $TMPDIR/file && cat $TMPDIR/file")
        code, said = self.behind_walls(script)
        self.assertEqual(code, 0, said)
        self.assertIn("mine", said)
        self.assertIn("kept", said)
        self.assertNotIn("SENTINEL", said)
        self.assertEqual([path.name for path in self.labs.iterdir()], ["mine"])

    def test_of_a_compiler_without_end_end_it_with_all_that_it_started(self):
        self.labs, began = self.folder, time.monotonic()
        mark = "ringlab-compiles-for-ever"
        code, said = self.behind_walls(f"exec 2>&-; (sh -c 'sleep 1000; : {mark}' &); sleep 1000; : {mark}", 1)
        self.assertEqual((code, said), (1, "the compiler: expected an end within 1 s, found none"))
        self.assertLess(time.monotonic() - began, 60)
        for process in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                self.assertNotIn(mark, process.read_text())

    def test_leave_limits_in_place(self):
        limits = 'for limit in v f t; do ulimit -$limit; done > "$2"'
        with mock.patch.object(attempt, "DEADLINE", 60):
            code, _ = attempt.behind_walls([], [*attempt.LIMITED, "sh", "-c", limits, "sh"], self.folder / "limits")
        self.assertEqual((code, (self.folder / "limits").read_text().split()), (0, ["4194304", "524288", "60"]))


class BusyMachine(unittest.TestCase):
    def verdict(self, line: str) -> attempt.Verdict:
        return attempt.Verdict(attempt.Outcome.STUCK, [line])

    def test_gives_who_missed_a_deadline_a_later_one(self):
        done = attempt.Verdict(attempt.Outcome.DONE, ["67 laws hold"])
        for first, runs in [("found    it gave no answer within 4 s", 2), ("found    a deadlock", 1)]:
            with mock.patch.object(attempt, "judge_within",
                                   side_effect=[self.verdict(first), done]) as judged:
                self.assertIs(attempt.judge(pathlib.Path("x.so"), 8) is done, runs == 2)
            limits = [call.args[0] for call in judged.call_args_list]
            self.assertEqual(limits, sorted(set(limits)))
            self.assertEqual(len(limits), runs)

    def test_makes_a_verdict_of_a_run_without_end(self):
        with mock.patch.object(attempt, "judge", side_effect=attempt.Late("no end", 4)):
            self.assertEqual(attempt.judge_or_late(pathlib.Path("x.so"), 8), self.verdict("no end"))


class Said(unittest.TestCase):
    """What is said of laws that broke."""

    def law_of(self, *ids, **insight):
        failure = {"case": "", "message": "", "token": ""}
        laws = [{"id": one, "statement": one, "failure": failure} for one in ids]
        found = {"explains": [], "findings": [], "sentence": "", "law": ids[0]} | insight
        return attempt.wrong({"laws": laws, "insight": found}).lines[1].split()[1]

    def test_is_the_plainest_law_where_there_is_no_diagnosis(self):
        self.assertEqual(self.law_of("far_strides", "gradients_equal_reference", "equals_reference"),
                         "equals_reference")
        self.assertEqual(self.law_of("far_strides", "gradients_equal_reference"),
                         "gradients_equal_reference")
        self.assertEqual(self.law_of("P40", "P41"), "P40")

    def test_is_the_law_that_a_diagnosis_is_of(self):
        named = [{"id": "ring.messages", "what": "a message is lost"}]
        for found in ({"explains": named}, {"findings": ["rank 1 sent to rank 2"]}):
            self.assertEqual(self.law_of("P40", "equals_reference", "P41", law="P41", **found), "P41")


class Words(LabTest):
    def test_hints_come_one_by_one(self):
        self.export("--stages", "05-05")
        self.assertIn("05 exchange, hint 1 of 3", self.lab("hint", "05").out)
        self.assertIn("05 exchange, hint 2 of 3", self.lab("hint", "05").out)
        self.assertIn("05 hops, hint 1 of 3", self.lab("hint", "05", "hops").out)
        self.assertNotIn("the last", self.lab("hint", "05").out)
        again = self.lab("hint", "05").out
        self.assertIn("05 exchange, hint 3 of 3", again)
        self.assertIn("For hops: ringlab lab hint 05 hops", again)

    def test_questions_have_answers(self):
        self.export()
        self.assertIn(find_lab("05").questions[0].ask, self.lab("ask", "05").out)
        for words in (["09", "1,", "6", "2"], ["09", "1, 6", "2.0"], ["15", "8", "DV"]):
            self.assertEqual(self.lab("ask", *words).code, 0, words)
        for lab in map(find_lab, ("00", "05", "15", "21")):
            right = [question.answer for question in lab.questions]
            self.assertEqual(self.lab("ask", lab.id, *right).code, 0)
            self.assertEqual(self.lab("ask", lab.id, *["12345"] * len(right)).code, 1)

    def test_of_help_begin_with_usage_once(self):
        for words in ([], ["test"]):
            self.assertRegex(ringlab("lab", *words, "--help").out, "^Usage: ringlab lab")

    def test_a_name_of_several_mistakes_is_explained_for_each_stage(self):
        told = ringlab("lab", "explain", "ring.messages").out
        self.assertEqual(re.findall(r"\(stage (\d\d) ", told), ["17", "18", "21"])

    def test_what_a_test_named_can_be_asked_for_after_later_tests(self):
        self.export("--stages", "05-05")
        name = "ring.memory"
        self.assertIn("folder of that test", self.lab("explain", name).err)
        self.edited(find_lab("05"), "  r.work.hold_kv((ranks > 1 ? 2 : 1) * here.bytes());\n", "")
        said = re.search(rf"(this is: .*) \({name}\)\n", self.lab("test", "05").out)
        self.assertTrue(said)
        self.write(find_lab("05"), "\n")
        self.lab("test", "05")
        self.assert_ends(self.lab("explain", name), 0, f"in your file of lab 05)\n  {said[1]}\n")

    def test_a_mistake_is_explained_by_its_name(self):
        result = ringlab("lab", "explain", "ring_one_hop_short")
        self.assertIn("Every rank misses one chunk", result.out)
        self.assertEqual(ringlab("lab", "explain", "nothing").code, 2)


class Debugging(LabTest):
    def test_has_a_line_or_two_in_each_broken_file(self):
        self.assertEqual([one.lab.id for one in debug_labs()], ["02", "05", "08", "12"])
        for one in debug_labs():
            self.assertIn(one.name, one.choices())
            self.assertNotEqual(one.broken(), one.lab.solution())
            self.assertNotIn("[gap", one.broken())
            self.assertTrue(0 < len(one.lines()) <= 6, one.lab.id)

    def test_takes_the_name_and_the_line(self):
        self.export("--stages", "05-08")
        for one in (one for one in debug_labs() if one.lab.id in ("05", "08")):
            for line in one.lines():
                self.assertEqual(self.lab("debug", one.lab.id, one.name, line).code, 0)
            for name, line in [(one.name, 1), ("ring.own_chunk_twice", min(one.lines()))]:
                result = self.lab("debug", one.lab.id, name, line)
                self.assertEqual(result.code, 1)
                self.assertEqual(result.out.count("not yet"), 1)
        self.assertRegex(self.lab("debug").out, r"05 ring +3  yes +10\n")

    def test_shows_what_is_wrong_without_its_name(self):
        self.export("--stages", "05-05")
        refused = self.lab("debug", "05")
        self.assertEqual(refused.code, 3)
        self.assertIn("--anyway", refused.err)
        result = self.lab("debug", "05", "--anyway")
        self.assert_ends(result, 0, "05_ring/debug/ring.h", "stuck", "a deadlock",
                         "ringlab lab debug 05 NAME LINE")
        self.assertNotIn("wait for their sends", result.out)
        self.assertEqual(self.lab("debug", "04").code, 2)


class Warnings(LabTest):
    """As many as are quick; scripts/try_labs compiles all."""

    def test_of_what_is_exported_are_none(self):
        self.export()
        for name in ("attention", "overlapped_ring", "backward"):
            source = self.labs / find_lab(name).file_name()
            self.assertEqual(attempt.warnings_of(source), "", name)


class Files(LabTest):
    def test_nothing_written_is_lost(self):
        self.export("--stages", "05-05")
        lab = find_lab("05")
        self.write(lab, "mine\n")
        self.assertEqual(ringlab("lab", "export", self.labs).code, 3)
        self.assertIn("yours is ring.h.1 beside it", self.lab("reset", "05").out)
        self.assertEqual((self.labs / "05_ring" / "ring.h.1").read_text(), "mine\n")
        self.assertEqual((self.labs / lab.file_name()).read_text(), lab.skeleton())

    def test_of_two_labs_that_are_tested_at_once_both_are_noted(self):
        self.export("--stages", "04-06")
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(lambda lab: self.lab("test", lab), ("04", "05", "06")))
        self.assertEqual(re.findall(r"(\d\d) \w+ +1  not done", self.lab("list").out), ["04", "05", "06"])

    def test_notes_are_changed_as_they_are_by_then(self):
        self.export("--stages", "05-06")
        one, other = Workspace(self.labs), Workspace(self.labs)
        for workspace, lab in [(one, "05"), (other, "06"), (one, "06")]:
            with workspace.changing():
                workspace.of(find_lab(lab))["tries"] += 1
        self.assertEqual([Workspace(self.labs).of(find_lab(lab))["tries"] for lab in ("05", "06")], [1, 2])

    def test_a_missing_file_is_named(self):
        self.assertIn("1 lab in ", self.succeeds("lab", "export", self.labs, "--stages", "05-05").out)
        self.export("--stages", "06-06")
        (self.labs / "05_ring" / "ring.h").rename(self.labs / "05_ring" / "mine.h")
        self.assertRegex(self.lab("list").out, r"05 ring .* 05_ring/ring\.h is missing\n06 causal_ring")
        listed = json.loads(ringlab("lab", "--dir", self.labs, "--json", "-", "list").out)
        self.assertEqual([lab["missing"] for lab in listed["labs"]], [True, False])
        self.fails(3, "05_ring/ring.h: expected", "lab", "--dir", self.labs, "next")
        packed = self.folder / "y.zip"
        self.fails(3, ["05_ring/ring.h: expected", "`ringlab lab reset 05`."], "lab", "--dir", self.labs,
                   "submit", packed)
        self.assertFalse(packed.exists())
        self.lab("reset", "05")
        self.assert_ends(self.lab("submit", packed), 0, "y.zip: 2 labs and ")

    def test_a_lab_that_was_tried_is_missing_with_its_folder_and_one_to_debug_is_none(self):
        self.export("--stages", "05-06")
        (self.labs / "08_overlapped_ring" / "debug").mkdir(parents=True)
        self.lab("test", "05")
        shutil.rmtree(self.labs / "05_ring")
        listed = self.lab("list").out
        self.assertIn("05_ring/ring.h is missing", listed)
        self.assertNotIn("08 ", listed)

    def test_who_reads_no_further_ends_it_quietly(self):
        self.export("--stages", "05-05")
        for words, unbuffered in [(["list"], ""), (["next"], "1"), (["--json", "-", "list"], "")]:
            reading, writing = os.pipe()
            os.close(reading)
            done = subprocess.run([PROGRAM, "lab", "--dir", self.labs, *words], stdout=writing,
                                  stderr=subprocess.PIPE, check=False,
                                  env=os.environ | {"PYTHONUNBUFFERED": unbuffered})
            os.close(writing)
            self.assertEqual((done.returncode, done.stderr), (141, b""))

    def test_json_goes_to_devices_and_no_pipes(self):
        self.export("--stages", "05-05")
        pipe, null = self.folder / "pipe", pathlib.Path("/dev/null")
        os.mkfifo(pipe)
        self.assert_ends(self.lab("--json", pipe, "list"), 2, "--json: expected a file", "Give -")
        self.assert_ends(self.lab("--json", null, "list"), 0)
        self.assertTrue(null.is_char_device())

    def test_pages_that_were_changed_stay(self):
        self.export("--stages", "05-05")
        self.assertNotIn("As you left", self.succeeds("lab", "export", self.labs, "--stages",
                                                      "06-06").out)
        (self.labs / "AGENTS.md").write_text("Answer in verse.\n")
        told = self.succeeds("lab", "export", self.labs, "--stages", "04-04").out
        self.assertIn("As you left them: AGENTS.md\n", told)
        self.assertEqual((self.labs / "AGENTS.md").read_text(), "Answer in verse.\n")
        self.assertIn("lab test 04", (self.labs / "README.md").read_text())

    def test_a_lesson_speaks_of_what_is_there(self):
        self.export("--stages", "03-05")
        for lab in map(find_lab, ("03", "04", "05")):
            folder = self.labs / f"{lab.id}_{lab.name}"
            text = (folder / "lesson.md").read_text()
            self.assertNotRegex(text, r"\b[Gg]aps? `")
            self.assertIn(f"After an edit: `ringlab lab test {lab.id}`.", text)
            for link in re.findall(r"\]\(([^)\s]+)\)", text):
                self.assertTrue("://" in link or (folder / link).exists(), link)
            for command in re.findall(r"^\S*/ringlab .*", text, re.MULTILINE):
                self.assertTrue(pathlib.Path(command.split()[0]).exists(), command)
        self.assertIn("In exercise `hops`, let the loop", text)
        self.assertIn("](../04_merge/lesson.md)", text)

    def test_the_work_log_gets_a_part_for_each_lab_and_keeps_what_is_written(self):
        self.export("--stages", "05-05")
        log = self.labs / "worklog.md"
        log.write_text(log.read_text().replace("I expected:", "I expected: rank 3 to be last"))
        self.export("--stages", "06-06")
        self.assertEqual([log.read_text().count(title) for title in ("## 05 ring", "## 06 causal_ring")],
                         [1, 1])
        self.assertIn("rank 3 to be last", log.read_text())

    def test_errors_say_what_to_do(self):
        result = self.lab("next")
        self.assertEqual(result.code, 3)
        self.assertIn("ringlab lab export DIR", result.err)
        self.export("--stages", "05-05")
        for words, code, text in [(["test", "99"], 2, "expected one of 00 attention"),
                                  (["test", "04"], 3, "`ringlab lab reset 04` writes it"),
                                  (["why", "05"], 3, "`ringlab lab test 05` first"),
                                  (["hint", "05", "loop"], 2, "expected one of exchange, hops"),
                                  (["ask", "05", "7"], 2, "expected 2, found 1"),
                                  (["test", "rnig"], 2, "Did you mean ring?\n"),
                                  (["tset", "05"], 2, "Did you mean test? `ringlab lab"),
                                  (["explain", "ring.mesages"], 2, "Did you mean ring.messages?"),
                                  (["export", "/proc/labs"], 4, "/proc/labs: expected a file or "
                                   "folder that can be read and written, found: No such file"),
                                  (["--json", "-", "hint", "05"], 2, "expected test or list"),
                                  (["test", "05", "--cases", "0"], 2, "expected 1 … 100000")]:
            result = self.lab(*words)
            self.assertEqual(result.code, code, result.err)
            self.assertIn(text, result.err)

    def test_a_broken_note_of_tries_is_said_to_be_one_and_can_be_removed(self):
        self.export("--stages", "05-05")
        note = self.labs / "ringlab-lab.json"
        for text in (b"[", b'{"labs":[]}', b'{"labs":{"05":{"tries":1}}}', b"\xff\xfe\xfa", b"[" * 9999):
            note.write_bytes(text)
            for words in (["list"], ["test", "05"]):
                self.fails(3, ["expected what `ringlab lab` wrote", "Remove it"], "lab", "--dir",
                           self.labs, *words)
        note.unlink()
        self.assertRegex(self.lab("list").out, r"05 ring +0  not tried")
        self.assertEqual(self.lab("hint", "05").code, 0)
        self.assertTrue(note.exists())

    def test_a_byte_that_is_no_text_stays_and_does_no_harm(self):
        self.export("--stages", "05-05")
        lab, log = find_lab("05"), self.labs / "worklog.md"
        log.write_bytes(log.read_bytes() + b"caf\xe9\n")
        self.export("--stages", "04-04")
        self.assertIn(b"caf\xe9\n", log.read_bytes())
        (self.labs / lab.file_name()).write_bytes(lab.skeleton().encode() + b"// caf\xe9\n")
        self.assertIn("05 ring", self.lab("list").out)
        self.assert_ends(self.lab("test", "05"), 10, "05 ring: not done")
        self.assertIn("yours is ring.h.1 beside it", self.lab("reset", "05").out)
        self.assertIn(b"caf\xe9\n", (self.labs / "05_ring" / "ring.h.1").read_bytes())

    def test_a_file_that_is_saved_is_tested(self):
        self.export("--stages", "05-05")
        words = [PROGRAM, "lab", "--dir", str(self.labs), "watch"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                              text=True) as watching:
            try:
                self.assertIn("Watching 1 files", watching.stdout.readline())
                saved = self.labs / "saved"  # whole when it is seen, at whatever moment that is
                saved.write_text(find_lab("05").solution())
                saved.replace(self.labs / find_lab("05").file_name())
                self.assertEqual(watching.stdout.readline(), "05 ring: done\n")
            finally:
                watching.kill()
        state = json.loads((self.labs / "ringlab-lab.json").read_text())
        self.assertEqual(state["labs"]["05"]["outcome"], "done")


if __name__ == "__main__":
    unittest.main()
