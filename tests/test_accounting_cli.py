"""`deniable account`: its forms, what it refuses, and what it says without the extras."""

# ruff: noqa: E501  (a case a line is easier to read than one in three)

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from commands import run, toy_space
from deniable import cli
from deniable.budget import Gaussian, Pure, Release, account, methods, numerical
from deniable.budget.curves import fewer

pytest.importorskip("dp_accounting", reason="SKIPPED FOR WANT OF dp-accounting")

PNG, SVG = b"\x89PNG\r\n", b"<?xml"
EVERY = set(methods())
CLOSED = {"basic", "advanced", "zcdp", "gdp", "paper:basic", "paper:advanced"}
SAMPLED = ("--gaussian", "--sigma", 2, "--sample-rate", 0.1, "--steps", 30)


class Said(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


Ask = Callable[..., Said]


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers are compared with those of the same grid, and a coarse one is quick."""
    monkeypatch.setattr(numerical, "POINTS", 20_000)
    monkeypatch.setattr(numerical, "ONCE", 2_000)


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """Run the command in this process; warnings are errors here."""

    def asked(*arguments: object) -> Said:
        code = cli._run(["account", *map(str, arguments)])
        return Said(code, *capsys.readouterr())

    return asked


def numbers(said: Said) -> dict[str, float]:
    """Read what --json printed: a flat object of finite numbers."""
    assert (said.code, said.err) == (0, "")
    found = json.loads(said.out)
    assert all(type(value) in {int, float} and math.isfinite(value) for value in found.values())
    return dict(found)


def library(composition: dict[Release, int], delta: float = 1e-6) -> dict[str, float]:
    return {one.method.name: one.epsilon for one in account(composition, delta)}


def test_json_is_a_flat_object_of_numbers(ask: Ask) -> None:
    pure = numbers(ask("--pure", "--epsilon", 1, "--steps", 100, "--json"))
    assert pure == library({Pure(1.0): 100})
    assert pure.keys() == CLOSED | {"rdp", "pld"}
    spread = numbers(ask("--pure", "--epsilon", 1, "--spread", 1, "--steps", 100, "--json"))
    assert spread == library({Pure(1.0, 1.0): 100})
    noise = numbers(
        ask("--gaussian", "--sigma", 0.75, "--sensitivity", 2, "--delta", 1e-5, "--json")
    )
    assert noise == library({Gaussian(0.75, 2.0): 1}, 1e-5)
    assert noise.keys() == EVERY
    assert round(noise["gdp"], 1) == 14.3
    sampled = numbers(ask(*SAMPLED, "--json"))
    assert sampled == library({Gaussian(2.0, 1.0, 0.1): 30})
    assert sampled.keys() == EVERY - {"zcdp", "gdp"}


def test_the_table_marks_the_least_bound_and_warns_of_approximations(ask: Ask) -> None:
    said = ask(*SAMPLED)
    assert (said.code, said.err) == (0, "")
    lines = said.out.splitlines()
    assert (
        lines[0]
        == "epsilon at delta 1e-06; neighbours: one record more or less; nobody sees who takes part"
    )
    assert lines[1].split() == ["method", "kind", "first", "1", "first", "3", "30", "releases"]
    [best] = [line for line in lines if line.endswith("<- the least bound")]
    assert best.split()[:2] == ["pld", "bound"]
    assert lines[-1].startswith(
        "approximations may be too low, and promise nothing: paper:gdp-clt,"
    )
    by_method = {line.split()[0]: line.split()[2:5] for line in lines[2:-1]}
    for shown, count in zip(zip(*by_method.values(), strict=True), fewer(30), strict=True):
        expected = library({Gaussian(2.0, 1.0, 0.1): count})
        assert dict(zip(by_method, shown, strict=True)) == {
            k: f"{v:.6g}" for k, v in expected.items()
        }


def test_a_mechanism_is_its_worst_covered_pair(ask: Ask, tmp_path: Path) -> None:
    space = toy_space(tmp_path)
    said = numbers(
        ask(
            "--mechanism",
            "custext",
            "--set",
            "K=4",
            "--epsilon",
            1,
            "--steps",
            50,
            "--space",
            space,
            "--json",
        )
    )
    assert said.keys() == CLOSED | {"rdp", "pld"}
    assert said["basic"] == pytest.approx(50, rel=1e-6)
    # It is an exponential mechanism, of which more is known.
    assert said["zcdp"] == pytest.approx(library({Pure(1.0, 1.0): 50})["zcdp"], rel=1e-6)


def test_noise_is_found_for_every_target(ask: Ask) -> None:
    said = ask(*SAMPLED, "--noise-for", 1, "--noise-for", 3)
    assert (said.code, said.err) == (0, "")
    start = said.out.splitlines().index("sigma needed for 30 steps")
    rows = {line.split()[0]: line.split()[2:] for line in said.out.splitlines()[start + 2 :]}
    # (2.3.4) as printed doesn't vanish with any noise.
    assert rows.keys() == EVERY - {"zcdp", "gdp", "paper:rdp"}
    for target, sigma in zip((1, 3), rows["rdp"], strict=True):
        # Six digits are shown.
        assert library({Gaussian(float(sigma) * 1.00001, 1.0, 0.1): 30})["rdp"] <= target


def sanitized(folder: Path, name: str, epsilon: float, text: str) -> Path:
    (folder / "in.txt").write_text(text)
    certificate = folder / f"{name}.cert.json"
    files = ("-o", folder / f"{name}.txt", "--certificate", certificate)
    chosen = ("--mechanism", "custext", "--epsilon", epsilon, "--space", folder / "toy.space")
    assert run("sanitize", folder / "in.txt", *files, *chosen).returncode == 0
    return certificate


def test_a_certificate_composes_to_what_it_says(ask: Ask, tmp_path: Path) -> None:
    toy_space(tmp_path)
    one = sanitized(tmp_path, "one", 1, "The red w5, and blue of w9! red\n" * 20)
    two = sanitized(tmp_path, "two", 0.5, "The red w5.\n")
    none = sanitized(tmp_path, "none", 0.5, "1234\n")
    document = json.loads(one.read_text())["document"]
    stated = document["with_delta"]
    said = numbers(ask("--certificate", one, "--delta", stated["delta"], "--json"))
    assert said[stated["method"]] == stated["epsilon"]
    assert min(said[name] for name in ("basic", "advanced", "zcdp", "gdp")) == stated["epsilon"]
    assert said["basic"] == pytest.approx(document["epsilon"])
    less = json.loads(two.read_text())["document"]
    both = numbers(ask("--certificate", one, "--certificate", two, "--certificate", none, "--json"))
    assert both["basic"] == pytest.approx(document["epsilon"] + less["epsilon"])
    assert json.loads(none.read_text())["document"]["tokens_charged"] == 0
    assert set(numbers(ask("--certificate", none, "--json")).values()) == {0.0}
    assert ask("--certificate", none).code == 0
    assert ask("--certificate", one, "--certificate", none).code == 0


@pytest.mark.parametrize(
    "form", [("--pure", "--epsilon", 1), ("--pure", "--epsilon", 0), ("--gaussian", "--sigma", 4)]
)
def test_a_plot_is_drawn_and_the_same_each_time(
    ask: Ask, tmp_path: Path, form: tuple[Any, ...]
) -> None:
    pytest.importorskip("matplotlib", reason="SKIPPED FOR WANT OF matplotlib")
    targets = ("--noise-for", 2) if "--gaussian" in form else ()
    drawn = []
    for name, start in (("a.png", PNG), ("a.svg", SVG), ("b.SVG", SVG)):
        said = ask(*form, *targets, "--steps", 3, "--plot", tmp_path / name)
        assert (said.code, said.err) == (0, "")
        drawn.append((tmp_path / name).read_bytes())
        assert drawn[-1].startswith(start)
    assert drawn[1] == drawn[2]


PURE, NOISE = ["--pure", "--epsilon", "1"], ["--gaussian", "--sigma", "1"]
BAD: list[tuple[list[str], str]] = [
    ([], "say what to compose: --gaussian, --pure, --mechanism or --certificate; got none of them"),
    ([*PURE, *NOISE], "got --gaussian and --pure"),
    ([*PURE, "--certificate", "cert.json"], "got --pure and --certificate"),
    ([*PURE, "--mechanism", "custext"], "got --pure and --mechanism"),
    (["--pure"], "--pure needs --epsilon"),
    (["--gaussian"], "--gaussian needs --sigma"),
    (["--mechanism", "custext"], "--mechanism needs --epsilon"),
    (["--mechanism", "custex", "--epsilon", "1"], "custext"),
    *((["--pure", "--epsilon", x], "epsilon must be a finite number of at least 0") for x in ("nan", "inf", "-1")),
    *(([*PURE, "--spread", x], "spread must be at least 0") for x in ("nan", "-1")),
    *((["--gaussian", "--sigma", x], "sigma must be a finite number above 0") for x in ("nan", "inf", "0", "-1")),
    *(([*NOISE, "--sensitivity", x], "sensitivity must be a finite number above 0") for x in ("nan", "inf", "0", "-1")),
    *(([*NOISE, "--sample-rate", x], "sample_rate must be above 0 and at most 1") for x in ("nan", "inf", "0", "-1", "1.5")),
    *(([*PURE, "--delta", x], "delta must be at least 0 and below 1") for x in ("nan", "inf", "-1", "1", "2")),
    *(([*NOISE, "--noise-for", x], "a target epsilon must be a finite number above 0") for x in ("nan", "inf", "0", "-1")),
    *(([*PURE, "--steps", x], "--steps") for x in ("0", "-1", "1.5", "nan", str(10**16), "1" + "0" * 400)),
    ([*PURE, "--noise-for", "1"], "--noise-for needs --gaussian"),
    ([*PURE, "--sample-rate", "0.1"], "--sample-rate needs --gaussian"),
    ([*PURE, "--sigma", "2"], "--sigma needs --gaussian"),
    (["--gaussian", "--sigma", "2", "--spread", "1"], "--spread needs --pure"),
    (["--gaussian", "--sigma", "2", "--noise-for", "1", "--json"], "leave --json out"),
    ([*PURE, "--plot", "a.pdf"], "a.pdf: a plot is a .png or .svg file; name one"),
    ([*PURE, "--plot", "a"], "a plot is a .png or .svg file; name one"),
    ([*PURE, "--plot", "nowhere/a.png"], "the folder nowhere does not exist; make it first"),
    ([*NOISE, "--delta", "0", "--plot", "a.png"], "nothing to draw: no method has an answer at delta 0"),
    (["--certificate", "cert.json", "--plot", "a.png"], "--plot needs releases of one kind, not --certificate"),
    (["--certificate", "cert.json"], "cert.json: not a certificate: missing"),
    (["--certificate", "binary"], "binary: can't be read"),
    (["--certificate", "none.json"], "none.json: can't be read"),
    (["--certificate", "."], "is a directory"),
    (["--pure", "--epsilon", "much"], "not a valid float"),
    (["--sampled"], "No such option"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    BAD,
    ids=lambda one: " ".join(one)[:60] if isinstance(one, list) else "",
)
def test_bad_input_is_one_line_and_exit_code_2(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cert.json").write_text("{}")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    said = ask(*arguments)
    assert said.code == 2
    assert said.err.count("\n") == 1
    assert said.err.startswith("deniable: ")
    assert message in said.err
    assert said.out == "" or "--plot" in arguments or "--noise-for" in arguments
    assert not [*tmp_path.glob("a.*")]


def without(missing: str, *arguments: object) -> Said:
    """Run the command as if a package weren't installed."""
    code = f"import sys; sys.modules[{missing!r}] = None; from deniable.cli import main; main()"
    command = [sys.executable, "-c", code, "account", *map(str, arguments)]
    found = subprocess.run(command, capture_output=True, check=False, text=True, timeout=60)
    return Said(found.returncode, found.stdout, found.stderr)


def test_without_dp_accounting_the_closed_forms_answer() -> None:
    said = without(
        "dp_accounting",
        "--pure",
        "--epsilon",
        1,
        "--spread",
        1,
        "--steps",
        100,
        "--delta",
        1e-5,
        "--json",
    )
    assert said.code == 0
    assert said.err == "deniable: rdp and pld are left out: pip install 'deniable[accounting]'\n"
    expected = library({Pure(1.0, 1.0): 100}, 1e-5)
    assert json.loads(said.out) == {name: expected[name] for name in expected if name in CLOSED}
    table = without("dp_accounting", *SAMPLED, "--noise-for", 2)
    assert (table.code, table.err) == (0, said.err)
    assert "rdp  " not in table.out.replace("paper:rdp", "")
    assert "advanced " in table.out


def test_without_matplotlib_a_plot_says_how_to_get_it(tmp_path: Path) -> None:
    said = without("matplotlib", *SAMPLED, "--plot", tmp_path / "a.png")
    assert said == Said(
        2, "", "deniable: matplotlib is not installed: pip install 'deniable[plots]'\n"
    )
    assert without("matplotlib", "--pure", "--epsilon", 1, "--json").code == 0


def test_the_command_is_a_process_like_the_others() -> None:
    found = run("account", "--gaussian", "--sigma", 50, "--sample-rate", 0.5, "--steps", 1000)
    assert (found.returncode, found.stderr) == (0, b"")
    assert b"<- the least bound" in found.stdout
    refused = run("account", "--pure", "--epsilon", "nan")
    assert (refused.returncode, refused.stdout) == (2, b"")
    assert refused.stderr == b"deniable: epsilon must be a finite number of at least 0, got nan\n"
