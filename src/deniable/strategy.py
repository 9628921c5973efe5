"""Strategy: how often one word is drawn. The three of Mo (2022), for every mechanism.

    token      every occurrence is drawn anew
    record     a word is drawn once for each record, and all its places there get that draw
    dataset    a word is drawn once for a whole run (or for the life of one Sanitizer)

Fewer draws cost less: a record is charged for its different words, not for its tokens. But the
output then shows which tokens are the same word, and in a whole data set how often each occurs:
that is revealed, and the promise is about texts with one and the same pattern of repetitions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from threading import Lock
from typing import Protocol

import numpy as np

from deniable.forks import in_every_child
from deniable.guarantee import Guarantee
from deniable.mechanism import check_choice
from deniable.sampling import Ids, randomness

STRATEGIES = ("token", "record", "dataset")
REPETITION = "repetition"
REPEATS = {
    "record": "which tokens of a record are the same word can be seen",
    "dataset": "which tokens of all records are the same word, and how often, can be seen",
}
UNITS = {"record": "different word of a record", "dataset": "different word of the data set"}


class Source(Protocol):
    """What draws: a kernel, or the stock in front of one."""

    def sample(self, ids: Ids) -> Ids:
        """Return one output for each id."""


class Chooser(Protocol):
    """Chooses a replacement for every token that needs one; `records` says where each stands."""

    def draw(self, ids: Ids, records: Ids) -> Ids:
        """Return an output of the mechanism for each word."""

    def uniform(self, tokens: Sequence[str], records: Ids) -> Ids:
        """Return a uniform word for each token that the space doesn't have."""


class EachToken:
    """Everything is drawn anew."""

    def __init__(self, source: Source, words: int) -> None:
        self._source, self._words = source, words

    def draw(self, ids: Ids, records: Ids) -> Ids:  # noqa: ARG002 (it doesn't matter where)
        """Return an output of the mechanism for each word."""
        return self._source.sample(ids)

    def uniform(self, tokens: Sequence[str], records: Ids) -> Ids:  # noqa: ARG002 (as above)
        """Return a uniform word for each token."""
        return randomness().below(self._words, len(tokens))


class EachRecord(EachToken):
    """One draw for all places of a word in one record."""

    def draw(self, ids: Ids, records: Ids) -> Ids:
        """Return an output of the mechanism for each word."""
        places, inverse = np.unique(records * self._words + ids, return_inverse=True)
        drawn: Ids = self._source.sample(places % self._words)[inverse.ravel()]
        return drawn

    def uniform(self, tokens: Sequence[str], records: Ids) -> Ids:
        """Return a uniform word for each token."""
        places: dict[tuple[int, str], int] = {}
        keys = zip(records.tolist(), tokens, strict=True)
        inverse = [places.setdefault(key, len(places)) for key in keys]
        drawn: Ids = randomness().below(self._words, len(places))[np.array(inverse, dtype=np.int64)]
        return drawn


class Codebook:
    """One draw for each word of a space, made when it is first needed; kept in memory only.

    Tokens that the space doesn't have are endless, so their uniform words come from a keyed
    BLAKE2b hash: without the key, which never leaves memory, they are uniform and independent.
    """

    def __init__(self, source: Source, words: int) -> None:
        self._source, self._words = source, words
        self._unlock()
        in_every_child(self._unlock)
        self._start()

    def _unlock(self) -> None:
        # A child may inherit the lock from a thread that it doesn't have.
        self._lock = Lock()

    def _start(self) -> None:
        self._drawn: Ids = np.full(self._words, -1, dtype=np.int64)
        self._owner = randomness()
        self._key = self._owner.words(8).tobytes()

    def __getstate__(self) -> dict[str, object]:
        """Return what a worker process needs: every word drawn, and the key."""
        self.draw(np.arange(self._words, dtype=np.int64), np.zeros(self._words, dtype=np.int64))
        return {"_words": self._words, "_drawn": self._drawn, "_key": self._key}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._owner = randomness()
        self._unlock()

    def __repr__(self) -> str:
        """Say nothing of which words there are: they are private."""
        return f"<Codebook of {self._words:,} words>"

    def draw(self, ids: Ids, records: Ids) -> Ids:  # noqa: ARG002 (it doesn't matter where)
        """Return an output of the mechanism for each word."""
        with self._lock:
            self._check_owner()
            words = np.unique(ids)
            fresh = words[self._drawn[words] < 0]
            if len(fresh):
                self._drawn[fresh] = self._source.sample(fresh)
            return self._drawn[ids]

    def uniform(self, tokens: Sequence[str], records: Ids) -> Ids:  # noqa: ARG002 (as above)
        """Return a uniform word for each token."""
        with self._lock:
            self._check_owner()
            return np.array([self._hashed(token) for token in tokens], dtype=np.int64)

    def _check_owner(self) -> None:
        """Begin anew under another source: what one drew must not be handed out under another."""
        if self._owner is not randomness():
            self._start()

    def _hashed(self, token: str) -> int:
        # 128 bits leave a bias of 2^-100, far below every other number here.
        data = token.encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(data, digest_size=16, key=self._key).digest()
        return int.from_bytes(digest, "little") % self._words


def chooser(strategy: str, source: Source, words: int) -> Chooser:
    """Return what chooses replacements under a strategy."""
    check_choice("strategy", strategy, STRATEGIES)
    if strategy == "dataset":
        return Codebook(source, words)
    return EachRecord(source, words) if strategy == "record" else EachToken(source, words)


def restated(guarantee: Guarantee, strategy: str) -> Guarantee:
    """Return what a mechanism's promise for a token says under a strategy."""
    if strategy not in UNITS:
        return guarantee
    where = "record" if strategy == "record" else "data set"
    condition = (
        f"neighbours differ in a word at all its places in the {where}, and repeat their words in "
        "the same pattern"
    )
    return replace(
        guarantee,
        unit=UNITS[strategy],
        assumptions=(*guarantee.assumptions, condition),
        reveals=(*guarantee.reveals, REPEATS[strategy]),
    )
