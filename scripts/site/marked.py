"""Parts of pages that scripts write: between "<!-- begin: NAME -->" and the next "<!-- end -->"."""
END = "<!-- end -->\n"


def bounds(page: str, name: str) -> tuple[int, int]:
    mark = f"<!-- begin: {name} -->\n"
    begin = page.index(mark) + len(mark)
    return begin, page.index(END, begin)


def part(page: str, name: str) -> str:
    begin, end = bounds(page, name)
    return page[begin:end]


def with_part(page: str, name: str, text: str) -> str:
    begin, end = bounds(page, name)
    return page[:begin] + text + page[end:]


def table(head: list[str], rows: list[list], numbers_from: int | None = None) -> str:
    """Markdown. Columns from `numbers_from` on are numbers, which end at the right."""
    numbers = len(head) if numbers_from is None else numbers_from
    rule = ["---:" if at >= numbers else "---" for at in range(len(head))]
    lines = ["| " + " | ".join(map(str, cells)) + " |" for cells in [head, *rows]]
    return "\n".join([lines[0], "|" + "|".join(rule) + "|", *lines[1:]]) + "\n"
