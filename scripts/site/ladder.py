"""The stages as their folders have them: what pages, tables and checks are made from."""
import difflib
import pathlib
import re
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
LESSON_END = re.compile(r"\n<!-- where next -->\n.*?<!-- end -->\n", re.DOTALL)


class Stage:
    """A folder of stages/, read."""

    def __init__(self, folder: str):
        self.folder, self.id, self.name = folder, folder[:2], folder[3:]
        self.path = ROOT / "stages" / folder
        self.header = f"stages/{folder}/{self.name}.h"
        self.text = (self.path / f"{self.name}.h").read_text()
        self.lesson = (self.path / "lesson.md").read_text()
        self.gaps = tomllib.loads((self.path / "mistakes.toml").read_text()).get("gaps", {})

    def idea(self) -> str:
        """One sentence, from kFacts."""
        facts = re.search(r'\.idea =\s*((?:"[^"]*"\s*)+)', self.text)
        return "".join(re.findall(r'"([^"]*)"', facts[1]))

    def costs(self) -> tuple[str, str]:
        found = re.search(r"\*\*Costs\.\*\* Held: (.*?)\. Sent: (.*?)\.\n", self.lesson)
        if not found:
            raise SystemExit(f"{self.path}/lesson.md: no line '**Costs.** Held: …. Sent: ….'")
        return found[1], found[2]

    def code(self) -> list[str]:
        lines = [re.sub(r"\s*//.*", "", line).strip() for line in self.text.splitlines()]
        return [re.sub(rf"\b{self.name}\b", "NAME", line) for line in lines
                if line and not line.startswith("#")]

    def gaps_in_order(self) -> list[str]:
        gaps = re.findall(r"// \[gap: (\w+)\]", self.text)
        if sorted(gaps) != sorted(self.gaps):
            raise SystemExit(f"{self.path}/mistakes.toml: [gaps] must tell of {sorted(gaps)}")
        return gaps

    def title(self) -> str:
        return f"{self.id} {self.name}"


def all_stages() -> list[Stage]:
    lines = (ROOT / "stages" / "stages.txt").read_text().splitlines()
    return [Stage(line.split()[0]) for line in lines if re.match(r"\d", line)]


def new_lines(before: list[str], after: list[str]) -> int:
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    return len(after) - sum(block.size for block in matcher.get_matching_blocks())


def ground_of(stages: list[Stage], at: int) -> tuple[int, Stage | None]:
    """The number of lines of code that are new in a stage, and the earlier one they are new over: that before it, or one
    that it includes."""
    included = re.findall(r'#include "(stages/\d.*)"', stages[at].text)
    grounds = [stage for number, stage in enumerate(stages[:at])
               if number == at - 1 or stage.header in included]
    found = [(new_lines(ground.code(), stages[at].code()), ground) for ground in grounds[::-1]]
    return min(found, key=lambda pair: pair[0], default=(0, None))


def steps_of(stages: list[Stage]) -> list[int]:
    """The number of lines that are new in each."""
    return [ground_of(stages, at)[0] for at in range(len(stages))]
