"""The docs say what the program does: examples run, generated parts are fresh, links lead on."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

from deniable.mechanism import mechanisms

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("bench/*.md")])
RUN = [page for page in PAGES if ">>>" in page.read_text("utf-8")]
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", RUN, ids=name_of)
def test_examples_of_a_page_run(page: Path) -> None:
    found = doctest.testfile(
        str(page),
        module_relative=False,
        encoding="utf-8",
        optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL,
    )
    assert found.attempted > 0
    assert found.failed == 0


def test_every_mechanism_has_a_page_with_its_formula_and_an_example() -> None:
    for name in mechanisms():
        page = ROOT / "docs" / "mechanisms" / f"{name.replace('+', '-plus')}.md"
        assert page.is_file(), f"docs/mechanisms has no page for {name}"
        text = page.read_text("utf-8")
        assert re.search(r"P\d?\(", text), f"{name_of(page)} has no formula"
        for part in ("**Promise.**", "**What is revealed.**", ">>> "):
            assert part in text, f"{name_of(page)} has no {part}"


def test_every_page_of_a_mechanism_has_a_mechanism() -> None:
    pages = {page.stem for page in (ROOT / "docs" / "mechanisms").glob("*.md")}
    assert pages == {name.replace("+", "-plus") for name in mechanisms()}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_between_pages_resolve(page: Path) -> None:
    text = page.read_text("utf-8")
    for link in LINK.findall(re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        path, _, anchor = unquote(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{name_of(page)}: {link} leads nowhere"
        assert target.is_relative_to(ROOT), f"{name_of(page)}: {link} leaves the project"
        if anchor:
            assert anchor in anchors(target), f"{name_of(page)}: no heading for {link}"


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in headings}


def test_every_page_of_docs_is_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    for page in (ROOT / "docs").rglob("*.md"):
        inside = page.relative_to(ROOT / "docs").as_posix()
        assert inside == "index.md" or f"({inside})" in index, f"docs/index.md lacks {inside}"


def docs_script(*arguments: str, root: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(root / "scripts" / "docs.py"), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def copied(folder: Path) -> Path:
    """The docs and what writes them, in a folder where they may be spoilt."""
    pages = [page for page in PAGES if page.parent.name != "bench"]
    names = ("blocks", "budget_tables", "choosing_epsilon", "docs")
    scripts = [ROOT / "scripts" / f"{name}.py" for name in names]
    for source in [*pages, *scripts, *(ROOT / "examples").iterdir()]:
        if source.is_file():
            target = folder / source.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    return folder


def test_the_check_finds_a_changed_word_in_each_generated_part(tmp_path: Path) -> None:
    root = copied(tmp_path)
    assert docs_script(root=root).returncode == 0
    pages = [root / "README.md", *(root / "docs").rglob("*.md")]
    before = {page: page.read_text("utf-8") for page in pages}
    for page, text in before.items():
        spoilt = re.sub(r"(<!-- generated: (?!performance|ledger).*? -->\n)", r"\1spoilt ", text)
        page.write_text(spoilt, "utf-8")
    checked = docs_script("--check", root=root)
    assert checked.returncode == 1
    for page, text in before.items():
        for name in re.findall("<!-- generated: (?!performance|ledger)(.*?) -->", text):
            said = [line for line in checked.stderr.splitlines() if name in line]
            assert any(str(page.relative_to(root)) in line for line in said), (page, name)


def test_writing_twice_changes_nothing(tmp_path: Path) -> None:
    root = copied(tmp_path)
    assert docs_script(root=root).returncode == 0
    once = {page: page.read_bytes() for page in root.rglob("*.md")}
    assert docs_script(root=root).returncode == 0
    assert {page: page.read_bytes() for page in root.rglob("*.md")} == once


def test_examples_are_sanitized_by_the_command_line(tmp_path: Path) -> None:
    examples = (("clinic.txt", ""), ("bank.jsonl", "text"), ("tickets.csv", "subject message"))
    for name, columns in examples:
        source, target = ROOT / "examples" / name, tmp_path / name
        chosen = [part for column in columns.split() for part in ("--column", column)]
        call = ["sanitize", str(source), *chosen, "--mechanism", "random", "-o", str(target)]
        done = subprocess.run(
            [sys.executable, "-c", "from deniable.cli import main; main()", *call],
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        lines = target.read_text("utf-8").splitlines()
        assert len(lines) == len(source.read_text("utf-8").splitlines())
        assert target.read_bytes() != source.read_bytes()
