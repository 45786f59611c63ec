"""`ringlab lab grade`: points for honest and dishonest submissions, the same bytes when graded again.

    tests/cli/lab/grade_test.py --all [--jobs N] [--markdown docs/grading.md]   all of handed_in.py"""
import csv
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest
import zipfile
from xml.etree import ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests" / "cli"), str(ROOT / "tests" / "cli" / "lab"), str(ROOT / "cli" / "lab")]
from program import PROGRAM, ProgramTest, fenced_lines, ringlab  # noqa: E402
os.environ.setdefault("RINGLAB_PROGRAMS", str(pathlib.Path(PROGRAM).resolve().parent))
import allowed  # noqa: E402
import attempt  # noqa: E402
import class_page  # noqa: E402
import grade_reports  # noqa: E402
import grading  # noqa: E402
import handed_in  # noqa: E402
import headers  # noqa: E402
import regions  # noqa: E402
import signature  # noqa: E402
import submission  # noqa: E402
from catalogue import LabError, all_labs, find_lab, without_marks  # noqa: E402

SECRET = b"the bytes that make the secret seed of these tests"


def named(name: str) -> handed_in.HandedIn:
    return next(one for one in handed_in.EVERYTHING if one.name == name)


class Allowed(unittest.TestCase):
    """What is refused as text, without a compiler."""

    def refused(self, text: str) -> list[str]:
        return allowed.refusals(find_lab("05"), "hops", regions.Written(text, 10))

    def test_nothing_of_a_solution_or_a_stub_is_refused(self):
        for lab in all_labs():
            self.assertFalse(regions.differs_outside(lab, lab.skeleton()))
            for exercise in lab.exercises:
                stub = regions.written_in(lab.skeleton(), exercise.name)
                self.assertTrue(stub.is_stub(exercise.name))
                solution = regions.Written(without_marks(lab.region(exercise.name)["body"]), 1)
                for written in (stub, solution):
                    self.assertEqual(allowed.refusals(lab, exercise.name, written), [], lab.id)

    def test_cheats_are_refused_with_their_line(self):
        for one in handed_in.REFUSED:
            lab = find_lab(one.lab)
            for exercise in lab.exercises:
                written = regions.written_in(one.text(), exercise.name)
                said = allowed.refusals(lab, exercise.name, written)
                self.assertTrue(said, one.name)
                line = one.text()[:one.text().index(one.replace.split("\n")[0])].count("\n") + 1
                self.assertIn(str(line), [words.split("line ")[-1] for words in said], one.name)

    def test_each_way_to_write_them(self):
        for text in ["%:include <x>", "#define go meet", "exit(0);", "_exit(0);", "if (x) {",
                     "thread_local int x;", "extern int x;", "std::jthread t(f);", "fork();",
                     "auto x = std::chrono::x;", "[[gnu::weak]] int f();", "int s\\u0074;",
                     "ringlab::merge_state(a, b);", "merge::finish(r, a);", "using namespace std;",
                     "__builtin_trap();", "reinterpret_cast<long>(p);", 'R"(")" static int x; ""',
                     "u8'\"' static int x; '\"'", "case'\"': static int x; case'\"':",
                     "1'0'\"' static int x; '\"'", "broadcast/* */::/**/attention(r);",
                     "auto f = <:&:> { broadcast :: template attention<Element>(r); };",
                     "struct S { S() { broadcast::attention(r_); } };", "broad\\\ncast::attention(r);",
                     'auto s = R"x(// )x"; broadcast::attention(r); // )x"', "/* open", "a */ b", "x = 'a"]:
            self.assertTrue(self.refused("  meet(here, 0);\n" + text + "\n"), text)
            self.assertIn("line 11", self.refused("  meet(here, 0);\n" + text + "\n")[0], text)

    def test_ordinary_words_are_not(self):
        for text in ["// static thread\n/* #include */ int a = 1'000;", "char c = '#', d = '\\'';",
                     "double x = .5e-3 + 0x1.8p+3 + 1'0.5'0;",
                     'const char* text = "exit(0) # \\" static";', "int time = a->write(3);",
                     "auto score = [&](int k) { return k; };\nscore(1);", "int thread = 0;",
                     "[[maybe_unused]] int x = std::exp(2.0) < std::log(3.0);",
                     "x.open(1), y.read();", "std::vector<int> v{1, 2};"]:
            self.assertEqual(self.refused(text), [], text)

    def test_a_region_is_found_once_or_not_at_all(self):
        text = handed_in.solved(find_lab("05"))
        self.assertIsNone(regions.written_in(text.replace("// End of hops.", "//"), "hops"))
        self.assertIsNone(regions.written_in(text + "// Yours: hops. x\n// End of hops.\n", "hops"))
        written = regions.written_in(text, "hops")
        self.assertFalse(written.is_stub("hops"))
        self.assertFalse(regions.Written('// not_done("hops");\nmeet(here, 0);', 1).is_stub("hops"))


class Answers(ProgramTest):
    """A lab's file is compiled against headers that lack the lab's answers."""

    def compiled(self, lab, one):
        """The error, and the library, of a file that was handed in."""
        written = {exercise.name: regions.written_in(one.text(), exercise.name) for exercise in lab.exercises}
        source = self.file(lab.file_name(), regions.composed(lab, written, "yours.h").encode())
        library = self.folder / "made" / f"{lab.name}.so"
        return attempt.compile_file(self.folder, lab, source, library), library

    def test_what_no_text_shows_does_not_compile(self):
        for one in handed_in.ANSWERS:
            lab = find_lab(one.lab)
            for exercise in lab.exercises:
                self.assertEqual(allowed.refusals(lab, exercise.name, regions.written_in(
                    one.text(), exercise.name)), [], one.name)
            error, library = self.compiled(lab, one)
            self.assertIn("yours.h:", "".join(error), one.name)
            self.assertFalse(library.exists(), one.name)

    def test_where_a_header_has_one_the_library_shows_it(self):
        for name in ("the_layout", "the_layout_of_options", "the_layout_backwards"):
            one = next(one for one in handed_in.ANSWERS if one.name == name)
            lab = find_lab(one.lab)
            answers, lab.answers = lab.answers, []
            error, library = self.compiled(lab, one)
            self.assertEqual(error, [], name)
            lab.answers = answers
            self.assertTrue(headers.answers_in(library, lab), name)

    def test_no_header_has_one_and_no_other_header_is_there(self):
        for lab in all_labs():
            made = headers.headers_of(lab)
            self.assertNotIn(f"stages/{lab.file_name()}", made)
            self.assertNotIn("reference/attention/exact.h", made)
            for answer in lab.answers:
                declared = re.compile(rf"(?<!\w){re.escape(answer)}\b[^;\n]*[(,]")
                self.assertEqual([name for name, text in made.items() if declared.search(text)], [], lab.id)
        lab = find_lab("04")
        lab.answers = ["no_such_function"]
        self.assertRaisesRegex(LabError, "answer no_such_function: expected", headers.headers_of, lab)


class Graded(ProgramTest):
    def setUp(self):
        super().setUp()
        self.secret = self.file("secret", SECRET)

    def grade(self, output: str, *words):
        return self.succeeds("lab", "grade", *words, "--secret", self.secret, "--jobs", 2,
                             "--output", self.folder / output)

    def report(self, student: str) -> dict:
        return json.loads((self.folder / "out" / student / "grade.json").read_text())

    def files(self, output: str) -> dict[str, str]:
        folder = self.folder / output
        return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*.*")}

    def test_the_same_bytes_again(self):
        for name in ("no_rescale", "early_exit"):
            named(name).write(self.folder / "class")
        result = self.grade("out", self.folder / "class")
        self.assertIn("early_exit: 0 of 20 points", result.out)
        self.assertIn("`exit`", self.report("early_exit")["labs"][0]["items"][0]["lines"][0])
        row = self.report("no_rescale")["labs"][0]["items"][0]
        self.assertEqual([row["status"], row["found_by"]], ["wrong", "public"])
        self.assertEqual(row["mistakes"], ["softmax.acc_not_rescaled"])
        self.assertRegex(row["token"], "^online_softmax/[^/]+/b1")
        first = self.files("out")
        self.assertEqual(len(first), 2 * 4 + 2)
        self.assertFalse([name for name, text in first.items() if self.folder.name in text])
        self.grade("again", self.folder / "class")
        self.assertEqual(self.files("again"), first)

    def test_one_mistake_costs_one_exercise_and_handing_in_less_costs_nothing(self):
        first = named("one_hop_short").write(self.folder)
        self.assertIn("ada: 10 of 30 points", self.grade("out", first, "--student", "ada").out)
        before = self.report("ada")
        self.assertEqual([item["status"] for item in before["labs"][0]["items"]], ["done", "wrong"])
        less = named("nothing").write(self.folder)
        self.grade("out", less, "--student", "ada")
        kept, files = self.report("ada"), self.files("out")
        self.assertEqual(kept["points"], 10)
        self.assertEqual(kept["labs"][0]["items"][0]["kept_from"], before["submission_sha256"])
        self.grade("out", less, "--student", "ada")
        self.assertEqual(self.files("out"), files)
        self.grade("out", named("early_exit").write(self.folder), "--student", "ada")
        labs = [(lab["lab"], lab["points"]) for lab in self.report("ada")["labs"]]
        self.assertEqual(labs, [("02", 0), ("05", 10)])

    def test_a_report_that_the_grader_did_not_sign_gives_no_points(self):
        whole, out = self.folder / "class", self.folder / "out"
        named("one_hop_short").write(whole)
        for student in ("raised", "of_another", "unsigned", "garbled", "newer", "linked"):
            named("nothing").write(whole).rename(whole / student)
        self.grade("out", whole)
        raised = self.report("raised")
        for item in raised["labs"][0]["items"]:
            item |= {"points": item["of"], "status": "done"}
        better = (out / "one_hop_short" / "grade.json").read_text()
        fakes = {"raised": json.dumps(raised), "of_another": better, "garbled": "[" * 9999,
                 "unsigned": json.dumps({"schema": 1, "student": "unsigned"}),
                 "newer": json.dumps(signature.signed(self.report("newer") | {"schema": 2},
                                                      grading.seeds_of(self.secret).key))}
        for student, text in fakes.items():
            (out / student / "grade.json").write_text(text)
        (out / "linked" / "grade.json").unlink()
        (out / "linked" / "grade.json").symlink_to("/nowhere")
        result = ringlab("lab", "grade", whole, "--secret", self.secret, "--output", out, timeout=600)
        self.assertEqual(result.code, 3, result.out + result.err)
        refused = re.findall("^(\\w+): not graded: .*grade.json: expected a report .* signed", result.out, re.M)
        self.assertEqual(sorted(refused), sorted([*fakes, "linked"]), result.out)
        self.assertIn("one_hop_short: 10 of 30 points", result.out)
        self.assertEqual(result.out.count("left out of"), len(fakes))
        rows = list(csv.DictReader(io.StringIO((out / "class.csv").read_text())))
        self.assertEqual({row["student"] for row in rows}, {"one_hop_short"})
        for student, text in fakes.items():
            self.assertEqual((out / student / "grade.json").read_text(), text)

    def test_what_is_not_used(self):
        """The text around the exercises, files that are none of a lab's, and links."""
        lab, one = find_lab("05"), named("elsewhere_too")
        parts = [{name: regions.written_in(text, name) for name in one.outcomes}
                 for text in (one.text(), handed_in.solved(lab))]
        self.assertTrue(regions.differs_outside(lab, one.text()))
        self.assertEqual(*[[line for line in regions.composed(lab, written, "ring.h").splitlines()
                            if not line.startswith("#line")] for written in parts])
        mine = one.write(self.folder)
        (mine / "02_online_softmax").mkdir()
        (mine / "02_online_softmax" / "online_softmax.h").symlink_to(mine / "05_ring" / "ring.h")
        (mine / "secrets.txt").write_text("mine")
        self.assertEqual(list(submission.files_of(mine)), [lab.file_name()])

    def test_a_zip_holds_the_same_work_in_the_same_bytes(self):
        self.succeeds("lab", "export", self.folder / "ada", "--stages", "04-05")
        (self.folder / "ada" / "worklog.md").write_text("Two hours.\n")
        for name in ("ada.zip", "again.zip"):
            self.succeeds("lab", "--dir", self.folder / "ada", "submit", self.folder / name)
        self.assertEqual((self.folder / "ada.zip").read_bytes(),
                         (self.folder / "again.zip").read_bytes())
        with zipfile.ZipFile(self.folder / "ada.zip") as packed:
            self.assertEqual(packed.namelist(), ["04_merge/merge.h", "05_ring/ring.h", "worklog.md"])
        digests = {one.digest() for path in ("ada", "ada.zip")
                   for one in submission.submissions_in(self.folder / path)}
        self.assertEqual(len(digests), 1)
        result = self.grade("out", self.folder / "ada.zip", "--stages", "04-06")
        self.assertIn("ada: 0 of 80 points", result.out)
        self.assertIn("sees: not handed in", result.out)

    def test_what_would_be_refused_is_said_before(self):
        one = named("early_exit").write(self.folder)
        (one / "ringlab-lab.json").write_text('{"schema": 1, "labs": {}}')
        result = ringlab("lab", "--dir", one, "submit", self.folder / "one.zip")
        self.assertEqual(result.code, 1, result.out + result.err)
        self.assertIn("02_online_softmax/online_softmax.h, row: not allowed: `exit`", result.out)

    def test_errors_say_what_to_do(self):
        right = named("right").write(self.folder)
        short = self.file("short", "42")
        for code, text, words in [(3, "`head -c 32 /dev/urandom", [right, "--secret", short]),
                                  (3, "found No such file", [right, "--secret", self.folder / "none"]),
                                  (3, "found no file of a lab", [self.folder / "out", "--secret",
                                                                 self.secret]),
                                  (2, "right more often", [right, right, "--secret", self.secret]),
                                  (2, "found 0", [right, "--secret", self.secret, "--jobs", 0]),
                                  (2, 'found "../x"', [right, "--secret", self.secret, "--student",
                                                       "../x"]),
                                  (2, "FIRST-LAST", [right, "--secret", self.secret, "--stages",
                                                     "05-04"])]:
            (self.folder / "out").mkdir(exist_ok=True)
            self.fails(code, text, "lab", "grade", *words)


    def test_a_submission_that_cannot_be_read_stops_no_other(self):
        whole = self.folder / "class"
        named("nothing").write(whole)
        good = io.BytesIO()
        with zipfile.ZipFile(good, "w", zipfile.ZIP_DEFLATED) as packed:
            packed.writestr("05_ring/ring.h", "x" * 1000)
        good = good.getvalue()
        damaged, encrypted = bytearray(good), bytearray(good)
        damaged[44:48] = b"\xff" * 4  # in the deflated text
        for flags in (6, good.index(b"PK\x01\x02") + 8):
            encrypted[flags] |= 1
        many = io.BytesIO()
        with zipfile.ZipFile(many, "w") as packed:
            for number in range(submission.MOST_ENTRIES + 1):
                packed.writestr(str(number), "")
        for name, content in {"cut.zip": good[:60], "damaged.zip": damaged, "encrypted.zip": encrypted,
                              "text.zip": b"no archive", "ball.tar": good, "many.zip": many.getvalue(),
                              "<b>.zip": good}.items():
            (whole / name).write_bytes(content)
        os.mkfifo(whole / "pipe.zip")
        (whole / "endless.zip").symlink_to("/dev/zero")
        (whole / "others").symlink_to(whole / "nothing")
        result = ringlab("lab", "grade", whole, "--secret", self.secret, timeout=600)
        self.assertEqual(result.code, 3, result.out + result.err)
        refused = re.findall(r"^(\S+): not graded: \S+: expected .* found .*$", result.out, re.MULTILINE)
        self.assertEqual(sorted(refused), sorted(
            ["cut.zip", "damaged.zip", "encrypted.zip", "text.zip", "many.zip", "<b>.zip",
             "pipe.zip", "endless.zip", "others"]), result.out)
        self.assertRegex(result.out, "nothing: 0 of 30 points")
        self.assertIn(f"{1 + 1} graded, {len(refused)} not", result.out)
        for name in ("damaged.zip", "pipe.zip"):
            self.fails(3, "expected a folder or a .zip", "lab", "grade", whole / name, "--secret",
                       self.secret, timeout=60)

    def test_the_secret_seed_is_on_no_command_line_and_sigterm_leaves_nothing_behind(self):
        named("right").write(self.folder)
        seed = str(grading.seeds_of(self.secret).secret)
        temporary = self.folder / "temporary"
        temporary.mkdir()
        temporary.chmod(0o711)
        self.folder.chmod(0o711)
        environment = {**os.environ, "TMPDIR": str(temporary)}
        with subprocess.Popen([PROGRAM, "lab", "grade", self.folder / "right", "--secret", self.secret],
                              env=environment, stdout=subprocess.DEVNULL) as grader:
            verified = 0
            while verified < 3 and grader.poll() is None:
                words = self.words_of_children(grader.pid)
                self.assertNotIn(seed, " ".join(words))
                verified += "verify" in words
                time.sleep(0.02)
            self.assertEqual(verified, 3)
            grader.send_signal(signal.SIGTERM)
            self.assertEqual(grader.wait(100), 128 + signal.SIGTERM)
        self.assertEqual(list(temporary.iterdir()), [])

    @staticmethod
    def words_of_children(parent: int) -> list[str]:
        words = []
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if int((path / "stat").read_text().rsplit(")", 1)[1].split()[1]) == parent:
                    words += (path / "cmdline").read_bytes().decode().split("\0")
            except OSError:  # it has ended
                pass
        return words


class Bundle(ProgramTest):
    def unpacked(self) -> pathlib.Path:
        """As on Gradescope: /autograder with the bundle in source/."""
        secret = self.file("secret", SECRET)
        self.succeeds("lab", "bundle", self.folder / "one.zip", "--secret", secret,
                      "--stages", "05-05")
        at = self.folder / "autograder"
        with zipfile.ZipFile(self.folder / "one.zip") as packed:
            names = packed.namelist()
            packed.extractall(at / "source")
        self.assertIn("ringlab/scripts/build", names)
        self.assertFalse([name for name in names if "/build/" in name or "/." in name])
        (at / "results").mkdir()
        (at / "source" / "run_autograder").chmod(0o755)
        return at

    def run_autograder(self, at: pathlib.Path) -> dict:
        environment = {**os.environ, "AUTOGRADER": str(at), "RINGLAB_PROGRAM": PROGRAM}
        subprocess.run([at / "source" / "run_autograder"], check=True, env=environment,
                       stdout=subprocess.DEVNULL)
        return json.loads((at / "results" / "results.json").read_text())

    def test_grades_and_remembers(self):
        at = self.unpacked()
        named("nothing").write(self.folder).rename(at / "submission")
        results = self.run_autograder(at)
        self.assertEqual([test["max_score"] for test in results["tests"]], [10, 20])
        self.assertEqual(results["score"], 0)
        report = results["extra_data"]["ringlab"]
        report["labs"][0]["items"][0] |= {"points": 10, "status": "done"}
        results["extra_data"]["ringlab"] = signature.signed(
            report, grading.seeds_of(at / "source" / "secret").key)
        earlier = [{"submission_time": "2026-01-01T10:00:00-07:00", "results": {"extra_data": None}},
                   {"submission_time": "2025-12-01T10:00:00-07:00", "results": results}]
        (at / "submission_metadata.json").write_text(json.dumps({"previous_submissions": earlier}))
        self.assertEqual(self.run_autograder(at)["score"], 10)

    def test_the_workflow_grades_as_it_is_written(self):
        text = (ROOT / "cli" / "lab" / "templates" / "labs.yml").read_text()
        lines = text.split("- name: grade\n")[1].split("run: |\n")[1].split("      - uses")[0]
        program = self.folder / "ringlab" / "build" / "bin"
        program.mkdir(parents=True)
        (program / "ringlab").symlink_to(pathlib.Path(PROGRAM).resolve())
        named("nothing").write(self.folder).rename(self.folder / "submission")
        page = self.folder / "page"
        environment = {**os.environ, "STUDENT": "ada", "GITHUB_STEP_SUMMARY": str(page)}
        subprocess.run(["bash", "-e", "-c", lines], check=True, cwd=self.folder, env=environment,
                       stdout=subprocess.DEVNULL)
        self.assertIn("# ada: 0 of 30 points", page.read_text())


class Manual(ProgramTest):
    def test_command_lines_do_what_they_say(self):
        page = (ROOT / "docs" / "grading.md").read_text()
        lines = fenced_lines(page, "sh")
        self.assertEqual(len(lines), 5)
        (self.folder / "build" / "bin").mkdir(parents=True)
        (self.folder / "build" / "bin" / "ringlab").symlink_to(pathlib.Path(PROGRAM).resolve())
        for line in lines:
            subprocess.run(["bash", "-e", "-c", line], check=True, cwd=self.folder,
                           stdout=subprocess.DEVNULL)
        grades = self.folder / "build" / "grades"
        self.assertEqual(json.loads((grades / "ada" / "grade.json").read_text())["of"], 80)
        for name in re.findall(r"`(?:DIR/STUDENT|DIR)/?(\S+)`|^\| `(\S+)` \|", page, re.MULTILINE):
            name = name[0] or name[1]
            if "." in name:
                self.assertTrue(list(grades.rglob(name)), name)

    def test_its_table_is_of_all_submissions(self):
        page = (ROOT / "docs" / "grading.md").read_text()
        rows = re.findall(r"^\| `(\w+)` \| (\d\d) \| (\d+) of \d+ \|", page, re.MULTILINE)
        self.assertEqual(rows, [(one.name, one.lab, str(one.points()))
                                for one in handed_in.EVERYTHING])


class Adapters(unittest.TestCase):
    """Of a report, made by hand, whose texts try to be more than texts."""

    ITEM = {"item": "05.hops", "points": 0, "of": 20, "status": "wrong", "found_by": "secret",
            "lines": ["<b>&\x07```"], "mistakes": [], "case": "", "token": ""}
    DONE = {"item": "05.exchange", "points": 10, "of": 10, "status": "done"}
    REPORT = {"schema": 1, "student": "ada", "submission_sha256": "00", "points": 10, "of": 30,
              "complete": True, "seeds": {"public": 1, "secret_sha256": "ab" * 32},
              "environment": {"ringlab": "ringlab 0", "compiler": "c++ 1"},
              "labs": [{"lab": "05", "name": "ring", "title": "", "points": 10, "of": 30,
                        "changed_outside": True, "items": [DONE, ITEM]}]}

    def test_gradescope(self):
        results = json.loads(grade_reports.gradescope(self.REPORT))
        self.assertEqual([test["score"] for test in results["tests"]], [10, 0])
        self.assertEqual(results["score"], sum(test["score"] for test in results["tests"]))
        self.assertEqual(results["extra_data"]["ringlab"], self.REPORT)
        self.assertIn("changed outside", results["output"])

    def test_junit(self):
        suite = ElementTree.fromstring(grade_reports.junit(self.REPORT).encode())[0]
        self.assertEqual([suite.get("tests"), suite.get("failures")], ["2", "1"])
        self.assertEqual(suite[1][0].get("message"), "wrong (secret seed)")
        self.assertIn("<b>&", suite[1][0].text)

    def test_markdown(self):
        page = grade_reports.markdown(self.REPORT)
        self.assertIn("# ada: 10 of 30 points", page)
        self.assertIn("| 05 ring | hops | 0 | 20 | wrong (secret seed) |", page)
        self.assertEqual(page.count("```"), 2)


class ClassPage(unittest.TestCase):
    def setUp(self):
        wrong = {**Adapters.ITEM, "found_by": "public", "mistakes": ["ring.last_chunk_dropped"],
                 "lines": ["this is: the last chunk", "law"]}
        hidden = {**Adapters.ITEM, "lines": ["no known mistake matches", "law      <O> and lse"],
                  "case": "1 rank", "token": "ring/U/b1"}
        lab = Adapters.REPORT["labs"][0]
        self.reports = [{**Adapters.REPORT, "student": name,
                         "labs": [{**lab, "items": [Adapters.DONE, item]}]}
                        for name, item in [("ada", wrong), ("cy", wrong), ("<i>", hidden)]]
        self.reports.append({**Adapters.REPORT, "student": "=bob", "points": 0, "labs": []})

    def test_counts_what_is_done_and_what_is_wrong(self):
        page = class_page.page(self.reports)
        self.assertIn("<h1>4 submissions</h1>", page)
        self.assertIn("Points: 10 at the median, 0 to 10, of 30.", page)
        for name, done, of in [("05.exchange", 3, 3), ("05.hops", 0, 3)]:
            self.assertIn(f'<td>{name}</td><td class="n">{done}</td><td class="n">{of}</td>', page)
        self.assertIn('<td>ring.last_chunk_dropped</td><td class="n">2</td>', page)
        self.assertIn("<td>&lt;i&gt;</td><td>05.hops</td><td>1 rank</td><td>ring/U/b1</td>", page)
        self.assertNotIn("<i>", page)

    def test_one_line_for_each_exercise_of_each_student(self):
        lines = list(csv.DictReader(io.StringIO(class_page.table(self.reports))))
        self.assertEqual(len(lines), 6)
        self.assertEqual(lines[1]["mistakes"], "ring.last_chunk_dropped")
        self.assertEqual(class_page.as_text("=1+1"), "'=1+1")


if __name__ == "__main__":
    if "--all" in sys.argv:
        sys.path.append(str(ROOT / "scripts" / "site"))
        import grade_all
        sys.exit(grade_all.main())
    unittest.main()
