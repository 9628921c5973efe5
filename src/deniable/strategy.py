"""Strategy: how often one word is drawn. The three of Mo (2022), for every mechanism, and one more.

    token      every occurrence is drawn anew
    record     a word is drawn once for each record, and all its places there get that draw
    dataset    a word is drawn once for a whole run (or for the life of one Sanitizer)
    subject    a word is drawn once for a person, in all runs that share a ledger (--remember)

Fewer draws cost less: a record is charged for its different words, not for its tokens. But the
output then shows which tokens are the same word, and in a whole data set how often each occurs:
that is revealed, and the promise is about texts with one and the same pattern of repetitions.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np

from deniable.errors import ParameterError
from deniable.forks import in_every_child
from deniable.guarantee import Guarantee
from deniable.mechanism import check_choice
from deniable.sampling import Ids, Randomness, randomness

STRATEGIES = ("token", "record", "dataset")
# Not for everyone to choose: it needs a ledger that remembers.
SUBJECT = "subject"
REPETITION = "repetition"
REPEATS = {
    "record": "which tokens of a record are the same word can be seen",
    "dataset": "which tokens of all records are the same word, and how often, can be seen",
    SUBJECT: "which tokens of a subject's records, of all times, are the same word can be seen",
}
UNITS = {
    "record": "different word of a record",
    "dataset": "different word of the data set",
    SUBJECT: "different word of a subject",
}
PLACES = {"record": "record", "dataset": "data set", SUBJECT: "subject's records"}


class Source(Protocol):
    """What draws: a kernel, or the stock in front of one."""

    def sample(self, ids: Ids) -> Ids:
        """Return one output for each id."""


class Chooser(Protocol):
    """Chooses a replacement for every token that needs one; `records` says where each stands."""

    @property
    def label(self) -> str:
        """What its draws are made with."""

    def draw(self, ids: Ids, records: Ids) -> Ids:
        """Return an output of the mechanism for each word."""

    def uniform(self, tokens: Sequence[str], records: Ids) -> Ids:
        """Return a uniform word for each token that the space doesn't have."""


class EachToken:
    """Everything is drawn anew."""

    def __init__(self, source: Source, words: int) -> None:
        self._source, self._words = source, words

    @property
    def label(self) -> str:
        """What its draws are made with."""
        return randomness().label

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
        """Return a uniform word for each token, whatever its capitals."""
        places: dict[tuple[int, str], int] = {}
        keys = zip(records.tolist(), map(str.lower, tokens), strict=True)
        inverse = [places.setdefault(key, len(places)) for key in keys]
        drawn: Ids = randomness().below(self._words, len(places))[np.array(inverse, dtype=np.int64)]
        return drawn


@dataclass
class _Page:
    """The draws made with one source of randomness, by the process that may add to them."""

    drawn: Ids = field(repr=False)
    key: bytes = field(repr=False)
    label: str
    process: int


class Codebook:
    """One draw for each word of a space, made when it is first needed; kept in memory only.

    Tokens that the space doesn't have are endless, so their uniform words come from a keyed
    BLAKE2b hash: without the key, which never leaves memory, they are uniform and independent.
    What one source of randomness drew is never handed out under another.
    """

    def __init__(self, source: Source, words: int) -> None:
        self._source: Source | None = source
        self._words = words
        self._pages: WeakKeyDictionary[Randomness, _Page] = WeakKeyDictionary()
        self._unlock()
        in_every_child(self._unlock)

    def _unlock(self) -> None:
        # A child may inherit the lock from a thread that it doesn't have.
        self._lock = Lock()

    def __getstate__(self) -> dict[str, object]:
        """Return what a worker process needs: every word drawn, and the key."""
        every = np.arange(self._words, dtype=np.int64)
        self.draw(every, every)
        return {"_words": self._words, "_page": self._pages[randomness()]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._source, self._words = None, state["_words"]
        page: _Page = state["_page"]
        self._pages = WeakKeyDictionary({randomness(): replace(page, process=os.getpid())})
        self._unlock()
        in_every_child(self._unlock)

    def __repr__(self) -> str:
        """Say nothing of which words there are: they are private."""
        return f"<Codebook of {self._words:,} words>"

    @property
    def label(self) -> str:
        """What its draws were made with."""
        with self._lock:
            return self._page().label

    def draw(self, ids: Ids, records: Ids) -> Ids:  # noqa: ARG002 (it doesn't matter where)
        """Return an output of the mechanism for each word."""
        with self._lock:
            page = self._page()
            words = np.unique(ids)
            fresh = words[page.drawn[words] < 0]
            if len(fresh):
                page.drawn[fresh] = self._fresh(page, fresh)
            return page.drawn[ids]

    def uniform(self, tokens: Sequence[str], records: Ids) -> Ids:  # noqa: ARG002 (as above)
        """Return a uniform word for each token, whatever its capitals."""
        with self._lock:
            key = self._page().key
        return np.array([self._hashed(token.lower(), key) for token in tokens], dtype=np.int64)

    def _page(self) -> _Page:
        owner = randomness()
        if owner not in self._pages:
            if self._source is None:
                raise ParameterError("the draws of another process can't be gone on with here")
            drawn = np.full(self._words, -1, dtype=np.int64)
            key = owner.words(8).tobytes()
            self._pages[owner] = _Page(drawn, key, owner.label, os.getpid())
        return self._pages[owner]

    def _fresh(self, page: _Page, words: Ids) -> Ids:
        if self._source is None or page.process != os.getpid():
            raise ParameterError(
                "strategy dataset: this process was forked off one that draws the same data set, "
                "and a word would have a draw in each; make the Sanitizer in the forked process"
            )
        return self._source.sample(words)

    def _hashed(self, token: str, key: bytes) -> int:
        # 128 bits leave a bias of 2^-100, far below every other number here.
        data = token.encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(data, digest_size=16, key=key).digest()
        return int.from_bytes(digest, "little") % self._words


def chooser(strategy: str, source: Source, words: int) -> Chooser:
    """Return what chooses replacements under a strategy."""
    check_choice("strategy", strategy, (*STRATEGIES, SUBJECT))
    if strategy == "dataset":
        return Codebook(source, words)
    return EachRecord(source, words) if strategy == "record" else EachToken(source, words)


def restated(guarantee: Guarantee, strategy: str) -> Guarantee:
    """Return what a mechanism's promise for a token says under a strategy."""
    if strategy not in UNITS:
        return guarantee
    condition = (
        f"neighbours differ in a word at all its places in the {PLACES[strategy]}, and repeat "
        "their words in the same pattern"
    )
    return replace(
        guarantee,
        unit=UNITS[strategy],
        assumptions=(*guarantee.assumptions, condition),
        reveals=(*guarantee.reveals, REPEATS[strategy]),
    )
