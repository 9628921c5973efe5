"""Write the generated parts of README.md and docs/, or say which of them have drifted.

    python scripts/docs.py            # writes the parts that follow from the program
    python scripts/docs.py --draw     # also draws the README's example anew
    python scripts/docs.py --check    # exit code 1 if anything has drifted; writes nothing

What is measured (choosing_epsilon.py and bench/) takes minutes; the check
looks only at whether it was measured on this space and these mechanisms.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.testing import CliRunner

import blocks
import budget_tables
import choosing_epsilon
from blocks import ROOT, Drift
from deniable import PRESETS, Sanitizer, Space
from deniable.cli import deniable as program
from deniable.presets import DEFAULT

README = ROOT / "README.md"
DOCS = ROOT / "docs"
BUDGET = DOCS / "what-a-budget-means.md"
CLINIC = ROOT / "examples" / "clinic.txt"
Facts = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """A generated part: where it is and what makes it."""

    page: Path
    name: str
    make: Callable[[], str]


def main() -> None:
    """Write every part, or check every part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, report drift")
    parser.add_argument("--draw", action="store_true", help="draw the README's example anew")
    options = parser.parse_args()
    if options.check:
        problems = list(drifted())
        if problems:
            raise SystemExit("\n".join([*problems, "run `make docs` and commit what it writes"]))
        return
    for part in parts():
        blocks.write(part.page, part.name, part.make())
    if options.draw:
        blocks.write(README, "example", example())


def parts() -> Iterator[Part]:
    """Every part that follows from the program alone."""
    known = listed("mechanisms")
    for page in (README, DOCS / "index.md"):
        folder = "docs/mechanisms" if page == README else "mechanisms"
        yield Part(page, "mechanisms", partial(mechanism_table, known, folder))
    yield Part(README, "presets", preset_table)
    yield Part(DOCS / "cli.md", "help", help_pages)
    yield Part(BUDGET, "units", budget_tables.units)
    yield Part(BUDGET, "methods", budget_tables.methods)
    yield Part(BUDGET, "queries", budget_tables.queries)
    for facts in known:
        page = mechanism_page(facts["name"])
        yield Part(page, "facts", partial(fact_list, facts))


def drifted() -> Iterator[str]:
    """One line for each part that isn't what the program would write."""
    for part in parts():
        if not is_so(part.page, part.name, partial(is_made, part)):
            yield f"{part.page.relative_to(ROOT)}: `{part.name}` has drifted"
    if not is_so(README, "example", lambda found: found.startswith(example_head())):
        yield "README.md: `example` is of other presets or another text (docs.py --draw)"
    for page, name, mark in measured(Space.default()):
        if not is_so(page, name, partial(begins, mark)):
            yield f"{page.relative_to(ROOT)}: `{name}` was measured on something else ({mark})"


def measured(space: Space) -> Iterator[tuple[Path, str, str]]:
    """Every part that takes long to measure, and what it begins with if it isn't out of date."""
    yield choosing_epsilon.PAGE, choosing_epsilon.NAME, choosing_epsilon.fingerprint(space)
    yield DOCS / "presets.md", "presets", blocks.space_mark(space)
    yield DOCS / "comparison.md", "comparison", blocks.space_mark(space)
    yield mechanism_page("custext"), "kinds", blocks.space_mark(space)
    yield DOCS / "performance.md", "every mechanism", blocks.mechanisms_mark()
    # Measured on a space that isn't here; what may change is which mappings there are.
    yield mechanism_page("custext"), "mappings", blocks.mappings_mark()


def is_made(part: Part, found: str) -> bool:
    """Whether a part is what the program makes."""
    return found == part.make().strip() + "\n"


def begins(mark: str, found: str) -> bool:
    """Whether a part begins with its mark."""
    return found.startswith(mark)


def is_so(page: Path, name: str, question: Callable[[str], bool]) -> bool:
    """Whether a generated part is there and is as it should be."""
    try:
        return question(blocks.read(page, name))
    except (Drift, OSError):
        return False


def mechanism_page(name: str) -> Path:
    """Where a mechanism is described: santext+ in santext-plus.md."""
    return DOCS / "mechanisms" / f"{name.replace('+', '-plus')}.md"


def listed(command: str) -> list[Facts]:
    """What `deniable COMMAND --json` prints."""
    found: list[Facts] = json.loads(printed(command, "--json"))
    return found


def printed(*arguments: str) -> str:
    """What a command prints, as wide as on every machine."""
    os.environ["COLUMNS"] = "100"
    result = CliRunner().invoke(program, list(arguments), prog_name="deniable", terminal_width=100)
    if result.exit_code != 0:
        raise SystemExit(f"deniable {' '.join(arguments)}: exit code {result.exit_code}")
    return result.output


def mechanism_table(known: list[Facts], folder: str) -> str:
    """Every mechanism with its promise, linked to its page."""
    rows = [
        [
            f"[`{facts['name']}`]({folder}/{mechanism_page(facts['name']).name})",
            facts["summary"],
            facts["promise"],
            facts["source"],
        ]
        for facts in known
    ]
    return blocks.table(["mechanism", "what it does", "what it promises for a word", "from"], rows)


def preset_table() -> str:
    """Every preset; the one that is used when none is named in bold."""
    rows = []
    for facts in listed("presets"):
        name = f"**{facts['name']}**" if facts["name"] == DEFAULT else facts["name"]
        settings = ", ".join(f"{k} {v}" for k, v in facts["parameters"].items())
        policy = ", ".join(f"{k}={v}" for k, v in facts["policy"].items()) or "the defaults"
        rows.append([name, f"{facts['mechanism']}, {settings}", policy, facts["why"]])
    return blocks.table(["preset", "mechanism", "policy", "why"], rows)


def fact_list(facts: Facts) -> str:
    """What the program says of one mechanism."""
    settings = ", ".join(
        f"`{k}`" if v == "required" else f"`{k}={v}`" for k, v in facts["parameters"].items()
    )
    rows = [
        ["promise", facts["promise"]],
        ["parameters", settings],
        ["metrics of the space", ", ".join(facts["metrics"])],
        ["cost", facts["cost"]],
        ["source", facts["source"]],
    ]
    return blocks.table([f"`{facts['name']}`", facts["summary"]], rows)


def help_pages() -> str:
    """The --help of every command."""
    return "\n\n".join(
        f"## deniable {' '.join(path)}\n\n```\n{printed(*path, '--help').strip()}\n```".replace(
            "## deniable \n", "## deniable\n"
        )
        for path in commands(program, ())
    )


def commands(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The path of a command and of all below it."""
    yield path
    if isinstance(command, click.Group):
        for name, child in sorted(command.commands.items()):
            yield from commands(child, (*path, name))


def example() -> str:
    """Two lines of the clinic's text before and after, drawn with the system's randomness."""
    lines = before()
    found = [example_head()]
    for name in PRESETS:
        outs = Sanitizer(preset=name).sanitize_many(lines)
        found += [f"{name}:", *quoted(out.text for out in outs), ""]
    return "\n".join(found).strip() + "\n```\n"


def example_head() -> str:
    """The example's unchanging start: the text, and with which settings it was drawn."""
    chosen = [
        f"{name}: {preset.mechanism} {json.dumps(dict(preset.parameters))}"
        for name, preset in PRESETS.items()
    ]
    return "\n".join([f"<!-- {'; '.join(chosen)} -->", "```", "before:", *quoted(before()), ""])


def before() -> list[str]:
    """The lines that the example shows."""
    return CLINIC.read_text("utf-8").splitlines()[2:4]


def quoted(lines: Any) -> list[str]:
    """Indented lines without white space at the end."""
    return [f"  {line.strip()}" for line in lines]


if __name__ == "__main__":
    main()
