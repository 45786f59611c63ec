"""Wrong options and files of the engine: the right exit code, a message, nothing written."""
import json
import math
import unittest

from program import ProgramTest, floats, npy, ones, ringlab, safetensors

TEXT = "It was the best of times, it was the worst of times.\n"
STAGE_WITHOUT_OPTIONS = "ring"  # no schedules, no slots, no gradients, no trace


class EngineBadInputTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.text = self.file("text.txt", TEXT)

    def contents(self):
        return {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}

    def refuses(self, code, message, *words):
        """Refused with this message; every file is as it was, and no other is there but that of
        --json, which says the same."""
        before = self.contents()
        result = self.fails(code, message, *words, timeout=60)
        after = self.contents()
        for path in [word for word in words if word in after and word not in before]:
            self.assertEqual(words[words.index(path) - 1], "--json")
            error = json.loads(after.pop(path))["error"]
            self.assertEqual(result.err, f"ringlab: {error['message']}\n")
            path.unlink()
        self.assertEqual(after, before, f"ringlab {words}")
        return result

    def refuses_run(self, code, message, *words, subject="optimized"):
        outputs = ["--output", self.folder / "out.safetensors", "--json", self.folder / "run.json"]
        return self.refuses(code, message, "run", subject, "--text", self.text, *outputs, *words)


class SharedFileTest(EngineBadInputTest):
    def test_a_file_is_not_written_over_what_another_option_names(self):
        mine = str(self.text)
        linked = self.folder / "link"
        linked.symlink_to(self.text)
        other = str(self.folder / "x.json")
        for words in [("--text", mine, "--trace", mine), ("--text", mine, "--output", mine),
                      ("--text", mine, "--json", linked), ("--text", mine, "--trace", linked),
                      ("--text", mine, "--trace", other, "--json", other),
                      ("--text", mine, "--trace", other, "--output", other),
                      ("--text", mine, "--trace", other, "--json", f"{self.folder}/./x.json")]:
            with self.subTest(words=words):
                self.refuses(2, ["another place than --"], "run", "optimized", *words)

    def test_two_spellings_of_a_file_that_is_not_there_yet_are_one_file(self):
        (self.folder / "folder").mkdir()
        (self.folder / "ahead.json").symlink_to("y.json")
        for other in ("./y.json", "folder/../y.json", f"{self.folder}/y.json", "ahead.json"):
            with self.subTest(other=other):
                self.refuses_here("another place than --", "run", "optimized", "--text", self.text,
                                  "--trace", other, "--json", "y.json")
        (self.folder / "folder" / "deep").mkdir()
        (self.folder / "linked").symlink_to("folder/deep")
        self.refuses_here("another place than --", "run", "optimized", "--text", self.text,
                          "--trace", "linked/../z.json", "--json", "folder/z.json")
        self.succeeds("run", "optimized", "--text", self.text, "--trace", "linked/../z.json", "--json",
                      "z.json", cwd=self.folder)
        self.refuses_here("another place than --", "run", "optimized", "--text", self.text,
                          "--output", "./y.safetensors", "--json", "y.safetensors")
        self.refuses_here("another place than --", "verify", "ring", "--html", "a.html",
                          "--certificate", "./a.html")

    def test_no_file_is_written_over_one_that_is_read(self):
        mask = self.file("M.npy", npy(ones(64), (8, 8), "|b1"))
        machine = self.file("m.json", "{}")
        for words in (["plan", "--machine", machine, "--json", "./m.json"],
                      ["run", "optimized", "--mask", f"file:{mask}", "--json", "M.npy"],
                      ["run", "optimized", "--mask", f"causal+file:{mask}+prefix:2", "--trace", "M.npy"]):
            with self.subTest(words=words):
                self.refuses_here("another place than", *words)

    def test_the_name_of_a_subject_is_no_file(self):
        self.file("ring", "")
        self.succeeds("run", "ring", "--text", self.text, "--json", "ring", cwd=self.folder)
        self.assertTrue(json.loads((self.folder / "ring").read_text())["ranks"])

    def refuses_here(self, message, *words):
        before = self.contents()
        self.fails(2, message, *words, cwd=self.folder, timeout=60)
        self.assertEqual(self.contents(), before, f"ringlab {words}")

    def test_a_trace_is_not_written_over_by_its_picture(self):
        for option in ("--svg", "--html", "--json"):
            with self.subTest(option=option):
                self.refuses(2, [option, "another place than the operand"], "trace", self.text,
                             option, self.text)

    def test_only_json_goes_to_standard_output(self):
        self.refuses(2, ["--trace", "the name of a file"], "run", "optimized", "--text", self.text,
                     "--trace", "-")
        self.refuses(2, ["--svg", "the name of a file"], "trace", self.text, "--svg", "-")

    def test_gradients_of_a_stage_without_them_are_refused_before_the_input_is_read(self):
        self.refuses(2, ["--backward"], "run", STAGE_WITHOUT_OPTIONS, "--backward", "--input",
                     self.folder / "missing.safetensors")


class ScheduleTest(EngineBadInputTest):
    def test_unknown_schedules_are_refused_with_the_list_of_those_there_are(self):
        for word in ["rong", "RING", "ring:2", "broadcast:1", "double", "double:", "double:0",
                     "double:-1", "double:2:3", "double:2x", "double: 2", "double:1.5", ":2",
                     "double:" + "9" * 30, "ring,allgather"]:
            with self.subTest(schedule=word):
                self.refuses_run(2, ["schedule: ", f'"{word}"', "bidirectional or double:W"],
                                 "--schedule", word)

    def test_nodes_are_not_larger_than_the_job(self):
        for word, ranks in [("double:9", 4), ("double:5", 4), ("double:2", 1)]:
            self.refuses_run(2, ["--schedule", f"at most {ranks}, the ranks", word], "--schedule",
                             word, "--ranks", ranks)
        self.succeeds("run", "optimized", "--text", self.text, "--schedule", "double:4", "--ranks",
                      "4", "--check")

    def test_slots_are_a_whole_number_from_1_to_4096(self):
        for value in ["0", "-1", "4097", "2.5", "two", "9" * 30]:
            with self.subTest(slots=value):
                self.refuses_run(2, ["--slots", f'"{value}"', "1 to 4096"], "--slots", value)

    def test_some_rows_are_not_checked_where_pairs_are_dropped(self):
        self.refuses_run(2, ["without dropout", "--check"], "--dropout", "0.3", "--check-rows", "1")

    def test_slots_of_a_schedule_that_has_none_are_refused_as_unused(self):
        for schedule in ["broadcast", "allgather"]:
            for slots in ["2", "0"]:
                self.refuses_run(2, ["--slots", "changes nothing"], "--schedule", schedule, "--slots", slots)

    def test_wire_and_integrity_are_words_of_a_list(self):
        for option, listed in [("--wire", "exact, f32, bf16, fp8"),
                               ("--integrity", "headers, full")]:
            for word in ["nonsense", "int4", "EXACT", "exact,f32", "0", "headers full"]:
                with self.subTest(option=option, word=word):
                    self.refuses_run(2, [option, listed, f'"{word}"'], option, word)
        self.refuses_run(2, "Did you mean bf16?", "--wire", "bf15")

    def test_empty_missing_and_repeated_values_are_refused(self):
        for option, value in [("--schedule", "ring"), ("--slots", "2"), ("--wire", "exact"),
                              ("--integrity", "full"), ("--trace", self.folder / "t.json")]:
            with self.subTest(option=option):
                self.refuses_run(2, option, option, "")
                self.refuses_run(2, option, option)
                self.refuses_run(2, [option, "once"], option, value, option, value)
        self.refuses_run(2, "--backward", "--backward=yes")
        self.refuses_run(2, ["--backward", "once"], "--backward", "--backward")


class CapabilityTest(EngineBadInputTest):
    def test_a_subject_that_has_no_such_thing_refuses_the_option_even_at_its_default(self):
        for words in [["--schedule", "ring"], ["--schedule", "double:2"], ["--wire", "exact"],
                      ["--wire", "bf16"], ["--integrity", "headers"], ["--integrity", "full"],
                      ["--slots", "2"], ["--backward"]]:
            with self.subTest(words=words):
                self.refuses_run(2, [words[0], STAGE_WITHOUT_OPTIONS, "optimized"], *words,
                                 subject=STAGE_WITHOUT_OPTIONS)

    def test_a_stage_with_slots_takes_them_and_nothing_else(self):
        self.succeeds("run", "overlapped_ring", "--text", self.text, "--slots", "3", "--check")
        for words in [["--schedule", "ring"], ["--wire", "f32"], ["--integrity", "full"]]:
            self.refuses_run(2, words[0], *words, subject="overlapped_ring")

    def test_processes_are_only_for_the_engine(self):
        words = ["run", STAGE_WITHOUT_OPTIONS, "--text", self.text, "--transport", "mpi"]
        if "built without MPI" in ringlab(*words).err:
            self.skipTest("the program is built without MPI")
        self.succeeds("run", "optimized", "--text", self.text, "--transport", "mpi", "--check")
        self.refuses(2, ["--ranks", "1, the size of the job"], "run", "optimized", "--text",
                     self.text, "--transport", "mpi", "--ranks", "3")
        self.refuses(2, ["--transport", STAGE_WITHOUT_OPTIONS, "optimized"], *words, "--output",
                     self.folder / "out.safetensors")


class GradientInputTest(EngineBadInputTest):
    SHAPE = (2, 3, 2)

    def tensors(self, **changed):
        """A file with q, k, v, do of shape (2, 3, 2), some replaced, or left out where None."""
        tensors = {name: ("F32", self.SHAPE, floats(12)) for name in ("q", "k", "v", "do")}
        tensors.update(changed)
        return self.file("in.safetensors",
                         safetensors({n: t for n, t in tensors.items() if t is not None}))

    def refuses_input(self, message, path):
        for output in ["out", "out.safetensors"]:
            self.refuses(3, message, "run", "optimized", "--backward", "--ranks", "2", "--input",
                         path, "--output", self.folder / output)

    def folder_of_npy(self, **changed):
        for name in ("q", "k", "v", "do"):
            content = changed.get(name, npy(ones(12), self.SHAPE))
            if content is not None:
                self.file(f"in/{name}.npy", content)
        return self.folder / "in"

    def test_gradients_need_the_gradient_of_the_output(self):
        self.refuses_input(['"do"', "in.safetensors"], self.tensors(do=None))
        self.refuses_input("do", self.folder_of_npy(do=None))

    def test_it_has_the_shape_of_the_output(self):
        for shape in [(2, 3, 3), (2, 2, 2), (1, 3, 2), (6, 2), (2, 1, 3, 2), (2, 3, 0)]:
            with self.subTest(shape=shape):
                count = math.prod(shape)
                self.refuses_input(["tensor do", "(1, 2, 3, 2)"],
                                   self.tensors(do=("F32", shape, floats(count))))
        self.refuses_input("tensor do", self.folder_of_npy(do=npy(ones(6), (3, 2))))

    def test_a_value_dimension_of_its_own_is_the_outputs(self):
        wide = ("F32", (2, 3, 5), floats(30))
        self.refuses_input(["tensor do", "(1, 2, 3, 5)"], self.tensors(v=wide))
        self.succeeds("run", "optimized", "--backward", "--check", "--input",
                      self.tensors(v=wide, do=wide))

    def test_it_is_finite_and_of_floating_point(self):
        values = floats(7) + floats(1, float("nan")) + floats(4)
        self.refuses_input(["tensor do at [1, 0, 1]", "nan"],
                           self.tensors(do=("F32", self.SHAPE, values)))
        self.refuses_input("tensor do", self.tensors(do=("U8", self.SHAPE, bytes(12))))
        self.refuses_input("do.npy", self.folder_of_npy(do=npy(ones(12), self.SHAPE)[:-1]))

    def test_without_gradients_it_is_not_looked_at(self):
        self.succeeds("run", "optimized", "--input", self.tensors(do=None))
        self.succeeds("run", "optimized", "--input", self.tensors(do=("U8", (1,), b"x")))


class TracePathTest(EngineBadInputTest):
    def test_a_trace_that_cannot_be_written_is_refused_before_the_run(self):
        self.refuses_run(4, ["--trace", "nowhere"], "--trace", self.folder / "nowhere" / "t.json")
        self.refuses_run(4, ["--trace", "a folder"], "--trace", self.folder)
        self.refuses_run(4, ["--trace"], "--trace", self.text / "t.json")

    def test_other_commands_have_no_trace(self):
        self.refuses(2, "--trace", "verify", "optimized", "--trace", self.folder / "t.json")


class TraceFileTest(EngineBadInputTest):
    def refuses_trace(self, message, path):
        for option in ["--svg", "--html", "--json"]:
            self.refuses(3, message, "trace", path, option, self.folder / "picture")

    def event(self, **changed):
        args = {"rank": 0, "step": 0, "owner": 0, "peer": -1, "slot": -1, "gradient": False,
                "pass": "forward", "bytes": 0}
        event = {"name": "x", "cat": "compute", "ph": "X", "ts": 0, "dur": 1, "pid": 0, "tid": 0}
        for name, value in changed.items():
            (args if name in args else event)[name] = value
        return {**event, "args": args}

    def trace(self, *events):
        return self.file("t.json", json.dumps({"traceEvents": list(events)}))

    def test_the_events_that_these_tests_spoil_are_a_trace(self):
        self.succeeds("trace", self.trace(self.event()))

    def test_missing_files_and_folders_are_named(self):
        self.refuses_trace("nowhere.json", self.folder / "nowhere.json")
        self.refuses_trace(str(self.folder), self.folder)

    def test_garbled_files_are_refused(self):
        whole = json.dumps({"traceEvents": [self.event()]}).encode()
        for content in [b"", b"\0" * 9, b"hello", bytes(range(256)), b"[" * 7,
                        whole[:-1], whole + b"}", whole + whole, whole.replace(b":", b"", 1)]:
            with self.subTest(content=content[:30]):
                self.refuses_trace(["t.json", "a JSON trace"], self.file("t.json", content))

    def test_other_json_is_refused(self):
        for text in ["[]", "{}", "null", "3", '"traceEvents"', '{"traceEvents": 3}',
                     '{"traceEvents": {}}', '{"traceevents": []}']:
            with self.subTest(text=text):
                self.refuses_trace(["t.json", "other JSON"], self.file("t.json", text))
        report = self.folder / "run.json"
        self.succeeds("run", "optimized", "--text", self.text, "--json", report)
        self.refuses_trace(["run.json", "other JSON"], report)

    def test_a_trace_without_events_is_refused(self):
        self.refuses_trace("events", self.trace())
        self.refuses_trace("events", self.trace({"name": "process_name", "ph": "M", "pid": 0}))

    def test_the_event_and_member_that_are_wrong_are_named(self):
        for changed in [{"rank": -1}, {"rank": 1 << 40}, {"rank": "0"}, {"bytes": -1}, {"ts": -1},
                        {"dur": 1e300}, {"pass": "sideways"}, {"cat": "sleep"}, {"ph": "B"},
                        {"tid": 7}, {"owner": None}, {"gradient": 1}, {"step": 0.5}]:
            with self.subTest(changed=changed):
                self.refuses_trace(["event 1", f'"{next(iter(changed))}"'],
                                   self.trace(self.event(), self.event(**changed)))

    def test_events_that_are_no_objects_are_refused(self):
        for event in [3, None, [], "x", {}]:
            with self.subTest(event=event):
                self.refuses_trace("event 1", self.trace(self.event(), event))

    def test_the_pictures_paths_are_checked_and_one_file_is_read(self):
        path = self.trace(self.event())
        for option in ["--svg", "--html", "--json"]:
            nowhere = self.folder / "nowhere" / "x"
            self.refuses(4, [option, "nowhere"], "trace", path, option, nowhere)
            self.refuses(4, option, "trace", path, option, self.folder)
        self.refuses(2, "FILE", "trace")
        self.refuses(2, "FILE", "trace", path, path)


if __name__ == "__main__":
    unittest.main()
