"""Kinds of words that output sets must not mix: parts of speech, or a user's own lists.

A word's embedded kind is the set of what it can be (noun, verb, adjective, adverb, each as a base
form or inflected in one way): 'walks' is replaced by words that, too, are a plural noun or a verb
in -s. scripts/build_kinds.py derives it from a public lexicon. Kinds with fewer words than an
output set has, and words that no lexicon has, are put together.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache as cache_call
from pathlib import Path
from typing import Any

import numpy as np

from deniable.errors import ParameterError
from deniable.partition import Kinds, lists_of_words
from deniable.space import Space

EMBEDDED = Path(__file__).parent / "spaces" / "kinds.json"
Words = tuple[tuple[str, ...], ...]


def check_pos(pos: Any) -> bool | Words:
    """Refuse what is neither true, false, nor lists of words."""
    if isinstance(pos, bool):
        return pos
    made = lists_of_words(pos, "pos must be true, false or a list of lists of words")
    _listed(made)
    return made


def kinds_of(space: Space, pos: bool | Words, least: int) -> Kinds | None:
    """Return the space's words by kind, each kind with at least `least` words (but the last)."""
    if pos is False or pos == ():
        return None
    kind = dict(_embedded()) if pos is True else _listed(pos)
    labels = np.array([kind.get(word, -1) for word in space.words], dtype=np.int64)
    names, counts = np.unique(labels, return_counts=True)
    large = names[(counts >= least) & (names >= 0)]
    groups = [np.flatnonzero(labels == name).astype(np.int64) for name in large]
    rest = np.flatnonzero(~np.isin(labels, large)).astype(np.int64)
    # Too few to hide each other: they join the largest kind.
    if 0 < len(rest) < least and groups:
        joined = max(range(len(groups)), key=lambda i: len(groups[i]))
        groups[joined] = np.sort(np.concatenate([groups[joined], rest]))
    elif len(rest):
        groups.append(rest)
    digest = hashlib.sha256(np.concatenate([*groups, [len(one) for one in groups]]).tobytes())
    return Kinds(tuple(groups), digest.hexdigest()[:16])


def _listed(pos: Words) -> dict[str, int]:
    """Return the kind of each listed word; a lexicon may have more words than a space."""
    found: dict[str, int] = {}
    for number, words in enumerate(pos):
        for word in words:
            if found.setdefault(word, number) != number:
                raise ParameterError(f"pos: {word!r} is in two lists")
    return found


@cache_call
def _embedded() -> tuple[tuple[str, int], ...]:
    """Return the kind of each word of the embedded space that the lexicon has."""
    names: dict[str, list[int]] = json.loads(EMBEDDED.read_text("utf-8"))["kinds"]
    words = Space.default().words
    return tuple((words[word], number) for number, ids in enumerate(names.values()) for word in ids)
