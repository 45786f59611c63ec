"""Finds code that may not stand in an exercise that is handed in, and says why."""
import functools
import re

from catalogue import Lab, STAGES
from regions import Written

# Comments and literals say nothing to the compiler that could be refused. Numbers are among them for
# the sake of 1'000.
LITERAL = re.compile(r'//[^\n]*|/\*.*?\*/|(?<!\w)(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"|'
                     r"(?<!\w)\.?\d(?:'?\w|\.)*|'(?:\\.|[^'\\\n])+'", re.DOTALL)
KEYWORDS = {
    "assembly": "asm",
    "it outlives a call": "static thread_local extern constinit",
    "a way around types": "reinterpret_cast const_cast",
    "other parts of the project": "namespace",
}
LIBRARY = {  # called, or after "::"; as names of one's own these words are as good as others
    "a way around types": "bit_cast launder uintptr_t intptr_t",
    "threads": "thread jthread async mutex shared_mutex atomic atomic_ref pthread_create future "
               "promise packaged_task condition_variable barrier latch counting_semaphore",
    "files and output": "fopen freopen open creat ifstream ofstream fstream filesystem FILE stdin "
                        "stdout stderr cin cout cerr clog printf fprintf puts putchar fputs fwrite "
                        "write pwrite read pread dup dup2 mmap print println perror",
    "processes and the system": "exit quick_exit abort terminate at_exit atexit fork vfork execv "
                                "execve execl execvp system popen kill raise signal sigaction "
                                "longjmp setjmp syscall dlopen dlsym getenv setenv socket ptrace "
                                "getpid environ",
    "the clock and chance": "chrono time clock clock_gettime gettimeofday random_device sleep "
                            "usleep nanosleep sleep_for",
}
ALWAYS = {word: why for why, words in KEYWORDS.items() for word in words.split()}
USED = {word: why for why, words in LIBRARY.items() for word in words.split()}
FUNCTION = re.compile(r"^(?:inline |constexpr |RINGLAB_HD |\[\[nodiscard\]\] )*"
                      r"[A-Za-z_][\w:<>, ]*[ &*](\w+)\(", re.MULTILINE)
MEMBERS = (".", "->")


def blanked(text: str) -> str:
    """The text with spaces in place of comments and of the contents of literals."""
    return LITERAL.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def refusals(lab: Lab, exercise: str, written: Written) -> list[str]:
    """"not allowed: …" with the line of the learner's file, in the order of the lines."""
    code = blanked(written.text)
    found = [*characters(code), *words(code), *foreign(lab, code), *braces(code)]
    return [f"not allowed: {what}, line {written.line + code.count(chr(10), 0, at)}"
            for at, what in sorted(found)]


def characters(code: str):
    """Refuses preprocessor lines, and spellings that hide words from a reader."""
    for found in re.finditer(r"^[ \t]*(#|%:|\?\?=)[ \t]*\w*", code, re.MULTILINE):
        yield found.start(1), f"a line for the preprocessor, `{found[0].strip()}`"
    for found in re.finditer(r"\[\s*\[\s*(using|\w+\s*::)", code):
        yield found.start(), "an attribute of one compiler"
    for found in re.finditer(r"/\*|\*/", code):
        yield found.start(), f"`{found[0]}` that leaves the exercise"
    for found in re.finditer(r'[\\"\'`@$]|[^\x00-\x7f]|[\x00-\x08\x0b-\x1f]', code):
        yield found.start(), f"the character {found[0]!r} outside of comments and texts"


def words(code: str):
    for found in re.finditer(r"[A-Za-z_]\w*", code):
        word, mark = found[0], before(code, found.start())
        is_used = mark == "::" or re.match(r"\s*\(", code[found.end():])
        why = ALWAYS.get(word) or (USED.get(word) if is_used and mark not in MEMBERS else None)
        if word.startswith("_"):
            why = "a name of the compiler or the system"
        if why:
            yield found.start(), f"`{word}` ({why})"


def before(code: str, at: int) -> str:
    """The punctuation before a word: `->`, `::` or one character."""
    head = code[:at].rstrip()
    return head[-2:] if head[-2:] in ("->", "::") else head[-1:]


def foreign(lab: Lab, code: str):
    """Refuses calls of the reference and of other stages; the stage's own includes are allowed."""
    ours = set(re.findall(r"\w+", lab.header)) | {lab.name}
    ours |= set(re.findall(r"\w+", " ".join(h for e in lab.exercises for h in e.hints)))
    solved = " ".join(lab.region(exercise.name)["body"] for exercise in lab.exercises)
    own = set(re.findall(r"\bauto\s*&{0,2}\s*(\w+)\s*=", code))
    for found in re.finditer(r"\b(\w+)\s*::\s*(?=(\w+))", code):  # of a::b::c both a::b and b::c
        if found[1] in stage_names() and f"{found[1]}::{found[2]}" not in solved:
            yield found.start(), f"`{found[1]}::{found[2]}`, of another stage"
    for found in re.finditer(r"\b(\w+)\s*(<[^;(){}]*>\s*)?\(", code):
        name = found[1]
        is_called = name in functions_of_others() and name not in ours | own
        if is_called and not re.search(r"(\.|->|\bstd\s*::)\s*$", code[:found.start()]):
            yield found.start(), (f"`{name}`, a function of the reference or of another stage (is "
                                  "it yours? Call it something else)")


def braces(code: str):
    """Refuses code that closes more braces than it opened: the rest would stand outside the exercise."""
    open_ones = []
    for found in re.finditer(r"[(){}\[\]]", code):
        if found[0] in "({[":
            open_ones.append((found.start(), found[0]))
        elif open_ones and open_ones[-1][1] + found[0] in ("()", "{}", "[]"):
            open_ones.pop()
        else:
            yield found.start(), f"`{found[0]}` that closes what was not opened here"
            return
    if open_ones:
        yield open_ones[-1][0], f"`{open_ones[-1][1]}` that is not closed here"


@functools.cache
def stage_names() -> frozenset[str]:
    return frozenset(folder.name[3:] for folder in STAGES.glob("[0-9][0-9]_*"))


@functools.cache
def functions_of_others() -> frozenset[str]:
    """Names of functions in the headers of the stages and of the reference, but for stages/common, which is for all."""
    headers = [*STAGES.glob("[0-9][0-9]_*/*.h"), STAGES.parent / "reference" / "core" / "state.h",
               *(STAGES.parent / "reference" / "attention").glob("*.h")]
    return frozenset(name for header in headers for name in FUNCTION.findall(header.read_text()))
