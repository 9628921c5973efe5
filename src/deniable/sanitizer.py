"""Sanitizer: text -> tokens -> policy -> sample -> render -> text and certificate.

Texts are handled in batches: every token of a batch becomes one number (which word, which case),
all of them are drawn at once, and the drawn numbers index a table of ready strings. Tokens that
are no plain words of the space (numbers, masks, clitics, unknown words) are few and go one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from deniable.certificate import Certificate
from deniable.errors import ParameterError
from deniable.guarantee import Guarantee
from deniable.kernels.dense import DenseKernel
from deniable.mechanism import Kernel, Mechanism, mechanism
from deniable.plan import Decided, Plan, Replacement
from deniable.policy import Policy
from deniable.presets import DEFAULT, PRESETS, Preset
from deniable.sampling import Ids
from deniable.space import Space
from deniable.stock import Stock
from deniable.strategy import Chooser, chooser, restated
from deniable.tally import Tally
from deniable.text import split

# Texts are gathered until a batch has this many characters (or the iterable ends).
BATCH_CHARACTERS = 1_000_000
BATCH_TEXTS = 10_000


@dataclass(frozen=True)
class Prepared:
    """A batch, split and decided: gap, token, gap, ..., gap for each text, or for all joined."""

    pieces: list[list[str]] = field(repr=False)
    decided: Decided = field(repr=False)
    ends: Ids
    texts: int


@dataclass(frozen=True)
class Sanitized:
    """One sanitized text; `tokens` say where each came from without repeating what it was."""

    text: str
    tokens: tuple[Replacement, ...]
    certificate: Certificate

    def __str__(self) -> str:
        return self.text


class Sanitizer:
    """Sanitizes texts with one mechanism, one space and one policy.

    >>> s = Sanitizer(mechanism="custext", epsilon=2.0)
    >>> out = s.sanitize("Alice flew to Paris on 3 May.")
    >>> out.certificate.document["tokens_charged"]
    6
    >>> s.sanitize("").text
    ''

    `strategy` says how often one word is drawn: for each token, or once for each record (text) or
    for the whole data set (all that one Sanitizer gets to see); see strategy.py.
    Without a mechanism the preset `balanced` is used; `Sanitizer(preset="strict")` names another,
    and an epsilon or parameters given beside it replace the preset's own.
    """

    def __init__(
        self,
        mechanism: str | Mechanism | None = None,
        epsilon: float | None = None,
        *,
        space: Space | None = None,
        policy: Policy | None = None,
        preset: str | None = None,
        strategy: str = "token",
        **parameters: Any,
    ) -> None:
        chosen = _preset(preset, mechanism)
        if chosen is not None:
            mechanism, parameters = chosen.mechanism, {**chosen.parameters, **parameters}
        self.space = Space.default() if space is None else space
        self.policy = policy if policy is not None else chosen.policy if chosen else Policy()
        self.mechanism = _make(mechanism, epsilon, parameters)
        self.kernel: Kernel = self.mechanism.bind(self.space)
        self.strategy = strategy
        source = Stock(self.kernel) if isinstance(self.kernel, DenseKernel) else self.kernel
        self.chooser: Chooser = chooser(strategy, source, len(self.space))

    @property
    def guarantee(self) -> Guarantee:
        """What is promised for each token, or for each different word under another strategy."""
        return restated(self.kernel.guarantee, self.strategy)

    @cached_property
    def plan(self) -> Plan:
        """The decisions about tokens, remembered; made when the first text comes."""
        return Plan(self.space, self.policy, self.kernel, self.strategy)

    def sanitize(self, text: str) -> Sanitized:
        """Sanitize one text."""
        return next(self._batch([text]))

    def sanitize_many(self, texts: Iterable[str]) -> Iterator[Sanitized]:
        """Sanitize any iterable of texts, in order and in constant memory."""
        for batch in _batches(texts):
            yield from self._batch(batch)

    def sanitize_texts(
        self, texts: Sequence[str], cells: Sequence[int] | None = None
    ) -> tuple[list[str], Tally]:
        """Sanitize a batch of texts; return them with one tally for all (the fastest way).

        `cells` says how many texts each record has; without it every text is a record.
        """
        return self.finish(self.prepare(texts, cells))

    def prepare(self, texts: Sequence[str], cells: Sequence[int] | None = None) -> Prepared:
        """Split and decide a batch of texts; nothing is drawn yet."""
        joined = "\n".join(map(_checked, texts))
        if joined.count("\n") == len(texts) - 1 and self.plan.keeps_gaps:
            # Texts of one line each: no token holds or spans a newline.
            pieces = [split(joined)]
            gaps = pieces[0][::2]
            breaks = [i for i, gap in enumerate(gaps) if "\n" in gap]
            last = [i for i in breaks for _ in range(gaps[i].count("\n"))] + [len(gaps) - 1]
            ends = np.array(last, dtype=np.int64)
        else:
            pieces = [split(text) for text in texts]
            ends = np.cumsum([len(piece) // 2 for piece in pieces], dtype=np.int64)
        tokens = list(chain.from_iterable(piece[1::2] for piece in pieces))
        records = _ends_of_records(ends, cells)
        return Prepared(pieces, self.plan.decide(tokens, records), records, len(texts))

    def finish(self, prepared: Prepared, chooser: Chooser | None = None) -> tuple[list[str], Tally]:
        """Draw and write what was prepared."""
        pieces, ends = prepared.pieces, prepared.ends
        drawn = self.plan.draw(prepared.decided, chooser or self.chooser)
        tally = self.plan.tally(drawn, ends)
        self.plan.count_gaps(tally, chain.from_iterable(piece[::2] for piece in pieces))
        start = 0
        for piece in pieces:
            end = start + len(piece) // 2
            piece[1::2] = drawn.texts[start:end]
            piece[::2] = self.plan.gaps(piece[::2])
            start = end
        if len(pieces) == prepared.texts:
            return ["".join(piece) for piece in pieces], tally
        # The newlines between the texts are not theirs.
        tally.seen.subtract({"white space": prepared.texts - 1})
        tally.seen = +tally.seen
        return "".join(pieces[0]).split("\n"), tally

    def _batch(self, texts: Sequence[str]) -> Iterator[Sanitized]:
        """Sanitize a batch and keep the texts apart, each with a certificate of its own."""
        pieces = [split(_checked(text)) for text in texts]
        ends = np.cumsum([len(piece) // 2 for piece in pieces], dtype=np.int64)
        tokens = list(chain.from_iterable(p[1::2] for p in pieces))
        drawn = self.plan.draw(self.plan.decide(tokens, ends), self.chooser)
        start = 0
        for piece in pieces:
            part = drawn.part(start, start + len(piece) // 2)
            start += len(piece) // 2
            tally = self.plan.tally(part, np.array([len(part.texts)], dtype=np.int64))
            self.plan.count_gaps(tally, piece[::2])
            replaced = self.plan.replacements(piece, part)
            piece[1::2] = part.texts
            piece[::2] = self.plan.gaps(piece[::2])
            yield Sanitized("".join(piece), replaced, self.certificate(tally))

    def certificate(self, tally: Tally, passed: Sequence[str] = ()) -> Certificate:
        """Return the certificate of all that a tally counted; `passed` are columns in clear."""
        return Certificate.build(self.kernel, self.policy, tally, passed, self.strategy)

    def sanitize_column(self, column: Any) -> Any:
        """Sanitize a pandas Series, or a pyarrow Array or ChunkedArray; nulls stay null."""
        from deniable.columns import sanitize_column  # noqa: PLC0415 (pandas only if it is used)

        return sanitize_column(self, column)


def _preset(name: str | None, chosen: object) -> Preset | None:
    if chosen is not None:
        if name is not None:
            raise ParameterError("give a preset or a mechanism, not both")
        return None
    name = name or DEFAULT
    if name not in PRESETS:
        raise ParameterError(f"no preset {name!r}; there are: {', '.join(PRESETS)}")
    return PRESETS[name]


def _make(
    chosen: str | Mechanism | None, epsilon: float | None, parameters: dict[str, Any]
) -> Mechanism:
    if isinstance(chosen, Mechanism):
        if epsilon is not None or parameters:
            raise ParameterError("a mechanism object has its own epsilon and parameters")
        return chosen
    if epsilon is not None:
        parameters = {**parameters, "epsilon": epsilon}
    return mechanism(str(chosen), **parameters)


def _ends_of_records(ends: Ids, cells: Sequence[int] | None) -> Ids:
    """Return where records end, from where texts end and how many each record has."""
    if cells is None:
        return ends
    found: Ids = np.concatenate([[0], ends])[np.cumsum(cells, dtype=np.int64)]
    return found


def _checked(text: str) -> str:
    if not isinstance(text, str):
        raise ParameterError(f"a text must be a string, got {type(text).__name__}")
    return text


def _batches(texts: Iterable[str]) -> Iterator[list[str]]:
    if isinstance(texts, str):
        raise ParameterError("sanitize_many needs an iterable of texts; one text: sanitize")
    batch: list[str] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(_checked(text))
        if size >= BATCH_CHARACTERS or len(batch) >= BATCH_TEXTS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
