"""What learners, and those who would rather not be, hand in; and what each is worth."""
import copy
import dataclasses
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "cli" / "lab"), str(ROOT / "property_tests" / "mutants")]

import generate  # noqa: E402
import regions  # noqa: E402
from catalogue import Lab, find_lab, without_marks  # noqa: E402


def solved(lab: Lab, *exercises: str) -> str:
    """The learner's file with these exercises written as in the repository; all unless given."""
    text = lab.skeleton()
    for exercise in lab.exercises:
        if not exercises or exercise.name in exercises:
            stub = regions.pattern_of(exercise.name).search(text)["text"]
            text = text.replace(stub, without_marks(lab.region(exercise.name)["body"]))
    return text


def with_mistake(lab: Lab, mistake: dict) -> tuple[str, list[str]]:
    """The learner's file with a planted mistake in it, and the exercises that hold it: none where it
    is not in what a learner writes."""
    wrong = copy.copy(lab)
    for edit in generate.edits_of(mistake):
        wrong.header = generate.apply_edit(wrong.header, edit, mistake["id"])
    if wrong.skeleton() != lab.skeleton():
        return solved(lab), []
    held = [exercise.name for exercise in lab.exercises if without_marks(
        wrong.region(exercise.name)["body"]) != without_marks(lab.region(exercise.name)["body"])]
    return solved(wrong), held


@dataclasses.dataclass
class HandedIn:
    """A file of one lab: its solution with `find` replaced, and the outcome of each exercise."""
    name: str
    lab: str
    find: str
    replace: str
    outcomes: dict[str, str]
    only: tuple[str, ...] = ()  # these exercises are written; all unless given

    def text(self) -> str:
        text = solved(find_lab(self.lab), *self.only)
        if text.count(self.find) != 1 and self.find:
            raise ValueError(f"{self.name}: {self.find}: expected once, found "
                             f"{text.count(self.find)}")
        return text.replace(self.find, self.replace) if self.find else text

    def write(self, folder: pathlib.Path) -> pathlib.Path:
        path = folder / self.name / find_lab(self.lab).file_name()
        path.parent.mkdir(parents=True)
        path.write_text(self.text())
        return folder / self.name

    def points(self) -> int:
        return sum(exercise.points for exercise in find_lab(self.lab).exercises
                   if self.outcomes[exercise.name] == "done")


def ring(name: str, find: str, replace: str, hops: str, exchange: str = "done", only=()) -> HandedIn:
    return HandedIn(name, "05", find, replace, {"exchange": exchange, "hops": hops}, only)


def row(name: str, find: str, replace: str, outcome: str) -> HandedIn:
    return HandedIn(name, "02", find, replace, {"row": outcome})


def merged(name: str, call: str) -> HandedIn:
    """Lab 04 with a call of the reference in place of its first exercise."""
    first = "const Real top = theirs.row_max"
    return HandedIn(name, "04", first, f"{call}\n    continue;\n    {first}",
                    {"merge": "does not compile", "finish": "done"})


LOOP = "for (int hop = 0; hop < ranks; ++hop) {"
KEYS = "for (std::int64_t key = 0; key < shape.keys; ++key) {"
OUT = "out[at * shape.v_dim + c] = static_cast<Element>(value);"

HONEST = [
    ring("right", "", "", "done"),
    ring("half", "", "", "not done", only=("exchange",)),
    ring("nothing", "", "", "not done", "not done", only=("none",)),
    ring("one_hop_short", LOOP, LOOP.replace("ranks;", "ranks - 1;"), "wrong"),
    ring("no_semicolon", "meet(here, hop);", "meet(here, hop)", "does not compile"),
    ring("crash", LOOP, LOOP + "\n    volatile int* nowhere = nullptr;\n    *nowhere = 1;",
         "crashed"),
    ring("hang", LOOP, LOOP + "\n    for (volatile int x = 0;; x = 1) {}", "stuck"),
    ring("wait_for_ever", "posted.push_back(r.network.post_send(to, kKeys, leaving.k_bytes(r)));",
         "r.network.wait(r.network.post_send(to, kKeys, leaving.k_bytes(r)));", "done", "stuck"),
    ring("elsewhere_too", "#pragma once", "#pragma once\n#include <no_such_file>", "done"),
    HandedIn("both_wrong", "04", "mine.row_sum * keep + theirs.row_sum * weight",
             "mine.row_sum + theirs.row_sum", {"merge": "wrong", "finish": "done"}),
    row("no_rescale", "scale_row(acc, keep, shape.v_dim);", "", "wrong"),
    row("right_row", "", "", "done"),
]
# What is refused as text.
REFUSED = [
    row("early_exit", KEYS, "std::exit(0);\n" + KEYS, "not allowed"),
    row("prints", KEYS, 'std::printf("{\\"passed\\": true}");\n' + KEYS, "not allowed"),
    row("caches", KEYS, "static Real cache[64];\n(void)cache;\n" + KEYS, "not allowed"),
    row("caches_outside", KEYS, "}\nint cache;\nvoid f() {\n" + KEYS, "not allowed"),
    row("includes", KEYS, "#include <thread>\n" + KEYS, "not allowed"),
    row("calls_the_reference", KEYS, "ringlab::exact_forward(keys);\n" + KEYS, "not allowed"),
    row("calls_another_stage", KEYS, "(void)attention::Kernel<Element>{};\n" + KEYS, "not allowed"),
    row("calls_it_by_its_whole_name", KEYS, "(void)stages::attention::Kernel<Element>{};\n" + KEYS, "not allowed"),
    row("pastes_a_name", KEYS, "#define go(a, b) a##b\ngo(merge_, state)(acc, acc);\n" + KEYS, "not allowed"),
    row("includes_the_oracle", KEYS, '#include "reference/attention/exact.h"\n' + KEYS, "not allowed"),
    row("calls_merge_state", KEYS, "merge_state(acc, acc);\n" + KEYS, "not allowed"),
    row("goes_on", KEYS, "std::thread([acc] { acc[0] = 1; }).detach();\n" + KEYS, "not allowed"),
    row("assembles", KEYS, '__asm__("nop");\n' + KEYS, "not allowed"),
    row("reads_files", KEYS, 'std::ifstream answers("/tmp/answers");\n' + KEYS, "not allowed"),
    row("hides", KEYS, "sta\\\ntic int hidden = 0;\n" + KEYS, "not allowed"),
]
# What is text like any other, and wrong.
DISHONEST = [
    row("recognises_sizes", OUT, OUT.replace("value", "shape.keys == 5 ? value : Real(0)"), "wrong"),
    row("wrong_at_one_size", OUT, OUT.replace(
        "value", "shape.keys == 19 && shape.head_dim == 4 ? value + 1 : value"), "wrong"),
    row("nan_everywhere", OUT, OUT.replace("value", "value - value + Real(NAN)"), "wrong"),
    row("writes_nothing", OUT, "(void)value;", "wrong"),
    row("changes_inputs", KEYS, "((Real*)keys)[0] = 0;\n" + KEYS, "crashed"),
    row("eats_memory", KEYS, "std::vector<Real*> all;\nfor (;;) all.push_back(new Real[1 << 28]);\n" +
        KEYS, "wrong"),
    row("asks_for_two_gigabytes", KEYS, "std::vector<char> much(2000000000, 1);\nif (much[5] == 0) return;\n" +
        KEYS, "wrong"),
    ring("sends_twice", "arriving->owner = r.rank_at(-hop);", "arriving->owner = r.rank_at(-hop);\n"
         "      for (const Request request : post_hop(r, here, *arriving)) r.network.wait(request);",
         "wrong"),
]
ARGUMENTS = "(mine, acc, theirs, their_acc, v_dim);"
DEALT = "switch (s.kind) {"
# Calls of the reference that are not seen in the text: the headers do not declare it.
ANSWERS = [
    merged("in_parentheses", "(merge_state<Real>)" + ARGUMENTS),
    merged("by_pointer", "void (*f)(SoftmaxState<Real>&, Real*, const SoftmaxState<Real>&, const Real*, "
           "std::int64_t) = &merge_state;\n    f" + ARGUMENTS),
    merged("by_auto", "auto f = merge_state<Real>;\n    f" + ARGUMENTS),
    merged("by_using", "using ringlab::merge_state;\n    (merge_state)" + ARGUMENTS),
    merged("by_a_wrapper", "auto f = [](auto&... x) { return (merge_state)(x...); };\n    f" + ARGUMENTS),
    merged("by_a_template", "auto f = []<class T>(SoftmaxState<T>& a, auto... x) { (merge_state<T>)(a, x...); };\n"
           "    f" + ARGUMENTS),
    HandedIn("of_a_row", "04", "saw_nothing(state) ? state.row_max : state.row_max + std::log(state.row_sum)",
             "(finished_lse<Accumulator<Element>>)(state)", {"merge": "done", "finish": "does not compile"}),
    row("of_one_key", KEYS, "auto f = merge_state<Real>;\n(void)f;\n" + KEYS, "does not compile"),
    HandedIn("the_layout", "09", DEALT, "return Layout(s.kind, s.tokens, s.ranks).positions(rank);\n  " + DEALT,
             {"positions_of": "does not compile"}),
    HandedIn("the_layout_of_options", "09", DEALT, "RunOptions o;\n  o.layout = s.kind, o.ranks = s.ranks;\n"
             "  return make_layout(o, s.tokens, {}).positions(rank);\n  " + DEALT,
             {"positions_of": "does not compile"}),
    HandedIn("the_layout_backwards", "10", "if (s.kind == LayoutKind::striped) {",
             "const Layout all(s.kind, s.tokens, s.ranks);\n  (void)all;\n  if (s.kind == LayoutKind::striped) {",
             {"place_of": "does not compile"}),
]
EVERYTHING = HONEST + REFUSED + DISHONEST + ANSWERS
# What is refused, run all the same: the walls and the laws hold without that.
RUN_ANYWAY = [
    row("early_exit", KEYS, "std::exit(0);\n" + KEYS, "wrong"),
    row("prints", OUT, 'std::printf("{\\"passed\\": true}");\n' + OUT.replace("value", "0"),
        "wrong"),
    row("caches", OUT, "static Element first[64];\nstatic int known = 0;\n"
        "if (known < 64) first[known++] = static_cast<Element>(value);\n"
        "out[at * shape.v_dim + c] = first[(at * shape.v_dim + c) % known];", "wrong"),
]
