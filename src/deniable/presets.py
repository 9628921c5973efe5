"""Presets: mechanism, epsilon and policy together, for people who don't want to choose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from deniable.errors import ParameterError
from deniable.policy import Policy


@dataclass(frozen=True)
class Preset:
    """A complete choice, and in one line what it is for."""

    name: str
    why: str
    mechanism: str
    parameters: Mapping[str, Any]
    policy: Policy = field(default_factory=Policy)


DEFAULT = "balanced"
# Everything becomes a uniform or a drawn word: not even that a number or an address stood there.
_BARE = Policy(
    numbers="words",
    emails="draw",
    urls="draw",
    identifiers="draw",
    symbols="draw",
    case="lower",
    clitics="drop",
    punctuation="drop",
    whitespace="collapse",
)
# Chosen by bench/presets.py, see docs/presets.md.
_ALL = (
    Preset(
        "strict",
        "without context a word is guessed less than once in eight; only the length is in clear",
        "clusant",
        {"epsilon": 4.0, "k": 10.0, "clusters": 360},
        _BARE,
    ),
    Preset(
        "balanced",
        "without context a word is guessed less than once in four; the topic stays",
        "clusant",
        {"epsilon": 16.0, "k": 5.0, "clusters": 360},
    ),
    Preset(
        "fluent",
        "without context a word is guessed less than every second time; stop words are in clear",
        "clusant",
        {"epsilon": 16.0, "k": 5.0, "clusters": 1800},
        Policy(stopwords="keep"),
    ),
)
PRESETS: Mapping[str, Preset] = MappingProxyType({preset.name: preset for preset in _ALL})


def chosen_preset(name: str | None, mechanism: object) -> Preset | None:
    """Return the preset of that name (the default one without), or None beside a mechanism."""
    if mechanism is not None:
        if name is not None:
            raise ParameterError("give a preset or a mechanism, not both")
        return None
    name = name or DEFAULT
    if name not in PRESETS:
        raise ParameterError(f"no preset {name!r}; there are: {', '.join(PRESETS)}")
    return PRESETS[name]
