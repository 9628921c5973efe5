"""Options that several commands share: the space, the mechanism and its parameters."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from deniable.errors import InputError, ParameterError
from deniable.geometry import METRICS
from deniable.pipeline import SpaceChoice

F = TypeVar("F", bound=Callable[..., Any])


def space_options(command: F) -> F:
    """Add --space, --metric, --unit-diameter and --limit."""
    for option in (
        click.option("--limit", type=click.IntRange(min=1), help="Use the first N words only."),
        click.option("--unit-diameter", is_flag=True, help="Scale distances to at most 1."),
        click.option("--metric", type=click.Choice(METRICS), help="Replace the space's metric."),
        click.option("--space", help="A file or folder of vectors; the embedded English space."),
    ):
        command = option(command)
    return command


def set_option(command: F) -> F:
    """Add --set NAME=VALUE."""
    return click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="NAME=VALUE",
        help="A parameter of the mechanism, as `deniable mechanisms` lists them; repeatable. "
        "VALUE may be @FILE, a JSON file.",
    )(command)


def chosen_space(
    space: str | None, metric: str | None, unit_diameter: bool, limit: int | None
) -> SpaceChoice:
    """Return the space that the options name."""
    return SpaceChoice(space, metric, unit_diameter, limit)


def pairs(settings: Sequence[str], option: str) -> dict[str, str]:
    """Split NAME=VALUE options."""
    found: dict[str, str] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name:
            raise ParameterError(f"{option} takes NAME=VALUE, got {setting!r}")
        if name in found:
            raise ParameterError(f"{option} {name} is given twice")
        found[name] = value
    return found


def parameters(settings: Sequence[str]) -> dict[str, Any]:
    """Return mechanism parameters: numbers, true/false/null, lists from @FILE, or words."""
    found = {name: _value(name, text) for name, text in pairs(settings, "--set").items()}
    if "epsilon" in found:
        raise ParameterError("give epsilon with --epsilon, not with --set")
    return found


def _value(name: str, text: str) -> Any:
    if text.startswith("@"):
        return _from_file(name, Path(text[1:]))
    try:
        return json.loads(text)
    except ValueError:
        return text
    except RecursionError:
        raise ParameterError(f"--set {name}: lists in lists without end") from None


def _from_file(name: str, path: Path) -> Any:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: can't be read ({error.strerror}), for --set {name}") from None
    except (ValueError, RecursionError):
        raise InputError(f"{path}: not a JSON file in UTF-8, for --set {name}") from None
    # Published clusters are often an object from a cluster's name to its words.
    return list(found.values()) if isinstance(found, dict) else found
