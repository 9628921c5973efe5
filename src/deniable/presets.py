"""Presets: mechanism, epsilon and policy together, for people who don't want to choose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

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
_STRICT = Policy(
    numbers="mask", case="lower", clitics="drop", punctuation="drop", whitespace="collapse"
)
_ALL = (
    Preset(
        "strict",
        "every pair of words is covered and nothing but the length is left in clear",
        "clusant",
        {"epsilon": 8.0, "calibrate": "paper"},
        _STRICT,
    ),
    Preset(
        "balanced",
        "near words stay near and every pair is covered",
        "clusant",
        {"epsilon": 16.0, "calibrate": "paper"},
    ),
    Preset(
        "fluent",
        "text stays readable; which set of 20 words each word is from is revealed",
        "custext",
        {"epsilon": 4.0, "calibrate": "tight"},
        Policy(stopwords="keep"),
    ),
)
PRESETS: Mapping[str, Preset] = MappingProxyType({preset.name: preset for preset in _ALL})
