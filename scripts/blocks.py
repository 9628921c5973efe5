"""Generated parts of a page: everything between two marks, written by a script.

<!-- generated: NAME -->
...
<!-- end: NAME -->
"""

from __future__ import annotations

from pathlib import Path

from deniable import Space, mechanisms
from deniable.mappings import MAPPINGS

ROOT = Path(__file__).parent.parent


class Drift(Exception):  # noqa: N818 (it is no error of the program's)
    """A page doesn't say what the program does."""


def _edges(page: Path, text: str, name: str) -> tuple[int, int]:
    start, end = f"<!-- generated: {name} -->\n", f"<!-- end: {name} -->"
    if text.count(start) != 1 or text.count(end) != 1:
        raise Drift(f"{page}: the marks of `{name}` are not there once each")
    return text.index(start) + len(start), text.index(end)


def read(page: Path, name: str) -> str:
    """Return what stands between the marks."""
    text = page.read_text("utf-8")
    start, end = _edges(page, text, name)
    return text[start:end]


def write(page: Path, name: str, content: str) -> None:
    """Put new content between the marks."""
    text = page.read_text("utf-8")
    start, end = _edges(page, text, name)
    page.write_text(f"{text[:start]}{content.strip()}\n{text[end:]}", "utf-8")


def space_mark(space: Space) -> str:
    """Return the line that begins a part which was measured on this space."""
    return f"<!-- space {space.hash[:16]} -->"


def table(head: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def mechanisms_mark() -> str:
    """Return what a table of all mechanisms begins with: which there are."""
    return f"<!-- mechanisms {' '.join(mechanisms())} -->"


def mappings_mark() -> str:
    """What a table of mappings begins with: which there are."""
    return f"<!-- mappings {' '.join(MAPPINGS)} -->"
