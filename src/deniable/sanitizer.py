"""Sanitizer: text -> tokens -> policy -> sample -> render -> text and certificate.

Texts are handled in batches: every token of a batch becomes one number (which word, which case),
all of them are drawn at once, and the drawn numbers index a table of ready strings. Tokens that
are no plain words of the space (numbers, masks, clitics, unknown words) are few and go one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from deniable.batches import batches, checked, ends_of_records, without
from deniable.certificate import Certificate
from deniable.errors import BudgetError, ParameterError
from deniable.guarantee import Guarantee
from deniable.kernels.dense import DenseKernel
from deniable.length import check_covered
from deniable.mechanism import Kernel, Mechanism, mechanism
from deniable.plan import Decided, Plan, Replacement
from deniable.policy import Policy
from deniable.presets import chosen_preset
from deniable.sampling import Ids
from deniable.space import Space
from deniable.stock import Stock
from deniable.strategy import SUBJECT, Chooser, Source, chooser, restated
from deniable.tally import Tally
from deniable.text import split

if TYPE_CHECKING:
    from deniable.budget.ledger import Ledger
    from deniable.budget.limits import Budget
    from deniable.budget.purse import Purse, Receipt


@dataclass(frozen=True)
class Prepared:
    """A batch, split and decided: gap, token, gap, ..., gap for each text, or for all joined."""

    pieces: list[list[str]] = field(repr=False)
    decided: Decided = field(repr=False)
    ends: Ids
    texts: int


class Done(NamedTuple):
    """A batch, sanitized: its texts, their counts, and what refused some of its records."""

    texts: list[str]
    tally: Tally
    refused: dict[int, BudgetError]


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
    With a `ledger` (a file, a database URL or a Ledger) every text is charged to `subject` before
    anything is drawn, and a BudgetError refuses what is beyond the `budget`. With `remember` a word
    of the subject is drawn once and for ever, under a `key` ($DENIABLE_KEY if not given).
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
        ledger: Ledger | str | Path | None = None,
        subject: str | None = None,
        budget: Budget | float | None = None,
        remember: bool = False,
        key: bytes | None = None,
        run: str | None = None,
        **parameters: Any,
    ) -> None:
        chosen = chosen_preset(preset, mechanism)
        if chosen is not None:
            mechanism, parameters = chosen.mechanism, {**chosen.parameters, **parameters}
        self.space = Space.default() if space is None else space
        self.policy = policy if policy is not None else chosen.policy if chosen else Policy()
        self.mechanism = _make(mechanism, epsilon, parameters)
        self.kernel: Kernel = self.mechanism.bind(self.space)
        check_covered(self.policy.length, self.kernel.guarantee.relation.covered)
        self.strategy = _remembering(strategy) if remember else strategy
        stocked = isinstance(self.kernel, DenseKernel)
        self.source: Source = Stock(self.kernel) if stocked else self.kernel
        self.chooser: Chooser = chooser(self.strategy, self.source, len(self.space))
        self.subject = subject
        self.purse: Purse | None = None
        if ledger is not None:
            from deniable.budget.purse import open_purse  # noqa: PLC0415 (SQL only if it is used)

            self.purse = open_purse(self, ledger, budget=budget, key=key, run=run)
        elif (subject, budget, remember) != (None, None, False):
            raise ParameterError("subject, budget and remember need a ledger to be kept in")
        self._parts = count()

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
        for batch in batches(texts):
            yield from self._batch(batch)

    def sanitize_texts(
        self, texts: Sequence[str], cells: Sequence[int] | None = None
    ) -> tuple[list[str], Tally]:
        """Sanitize a batch of texts; return them with one tally for all (the fastest way).

        `cells` says how many texts each record has; without it every text is a record.
        """
        records = len(texts) if cells is None else len(cells)
        done = self.sanitize_records(texts, cells, self._subjects(records), next(self._parts))
        return done.texts, done.tally

    def sanitize_records(
        self,
        texts: Sequence[str],
        cells: Sequence[int] | None,
        subjects: Sequence[str] | None,
        part: int,
        *,
        stop: bool = True,
    ) -> Done:
        """Sanitize a batch whose records are about these subjects; `part` of a run pays once.

        Without `stop`, records that a budget refuses are left out.
        """
        prepared = self.prepare(texts, cells)
        if self.purse is None or subjects is None:
            return Done(*self.finish(prepared, self.chooser), {})
        paid = self.purse.pay(self.plan, prepared.decided, subjects, part, stop=stop)
        refused = {i: error for i, error in enumerate(paid.refused) if error is not None}
        if refused:
            texts, cells = without(texts, cells, refused)
            subjects = [one for record, one in enumerate(subjects) if record not in refused]
            prepared = self.prepare(texts, cells)
        return Done(*self.finish(prepared, self._chooser(subjects, paid)), refused)

    def _subjects(self, records: int) -> list[str] | None:
        """Return the subject of each record, if there is a ledger to charge it."""
        if self.purse is None:
            return None
        if self.subject is None:
            raise ParameterError("a ledger charges a subject: Sanitizer(ledger=..., subject=...)")
        return [self.subject] * records

    def _chooser(self, subjects: Sequence[str], paid: Receipt) -> Chooser:
        if self.purse is None:
            return self.chooser
        return self.purse.chooser(self.source, len(self.space), subjects, paid) or self.chooser

    def prepare(self, texts: Sequence[str], cells: Sequence[int] | None = None) -> Prepared:
        """Split and decide a batch of texts; nothing is drawn yet."""
        joined = "\n".join(map(checked, texts))
        if joined.count("\n") == len(texts) - 1 and self.plan.keeps_gaps:
            # Texts of one line each: no token holds or spans a newline.
            pieces = [split(joined)]
            gaps = pieces[0][::2]
            breaks = [i for i, gap in enumerate(gaps) if "\n" in gap]
            last = [i for i in breaks for _ in range(gaps[i].count("\n"))] + [len(gaps) - 1]
            ends = np.array(last, dtype=np.int64)
        else:
            pieces = [split(text) for text in texts]
            for piece in pieces:
                self.plan.fit(piece)
            ends = np.cumsum([len(piece) // 2 for piece in pieces], dtype=np.int64)
        tokens = list(chain.from_iterable(piece[1::2] for piece in pieces))
        records = ends_of_records(ends, cells)
        return Prepared(pieces, self.plan.decide(tokens, records), records, len(texts))

    def finish(self, prepared: Prepared, chooser: Chooser) -> tuple[list[str], Tally]:
        """Draw and write what was prepared."""
        pieces, ends = prepared.pieces, prepared.ends
        drawn = self.plan.draw(prepared.decided, chooser)
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
        pieces = [split(checked(text)) for text in texts]
        own = [self.plan.fit(piece) for piece in pieces]
        ends = np.cumsum([len(piece) // 2 for piece in pieces], dtype=np.int64)
        tokens = list(chain.from_iterable(p[1::2] for p in pieces))
        decided, subjects = self.plan.decide(tokens, ends), self._subjects(len(texts))
        chooser = self.chooser
        if self.purse is not None and subjects is not None:
            try:
                paid = self.purse.pay(self.plan, decided, subjects, next(self._parts), stop=True)
                chooser = self._chooser(subjects, paid)
            except BudgetError:
                if len(texts) == 1:
                    raise
                # Nothing was charged: those that come before the refused one still come.
                yield from chain.from_iterable(self._batch([text]) for text in texts)
                return
        drawn = self.plan.draw(decided, chooser)
        standing = {} if self.purse is None else self.purse.standing()
        start = 0
        for piece, tokens_of_its_own in zip(pieces, own, strict=True):
            part = drawn.part(start, start + len(piece) // 2)
            start += len(piece) // 2
            tally = self.plan.tally(part, np.array([len(part.texts)], dtype=np.int64))
            self.plan.count_gaps(tally, piece[::2])
            replaced = self.plan.replacements(piece, part)[:tokens_of_its_own]
            piece[1::2] = part.texts
            piece[::2] = self.plan.gaps(piece[::2])
            yield Sanitized("".join(piece), replaced, self.certificate(tally, (), standing))

    def certificate(
        self,
        tally: Tally,
        passed: Sequence[str] = (),
        standing: Mapping[str, Any] | None = None,
    ) -> Certificate:
        """Return the certificate of all that a tally counted; `passed` are columns in clear."""
        if standing is None:
            standing = {} if self.purse is None else self.purse.standing(tally.refused)
        return Certificate.build(self.kernel, self.policy, tally, passed, self.strategy, standing)

    def sanitize_column(self, column: Any) -> Any:
        """Sanitize a pandas Series, or a pyarrow Array or ChunkedArray; nulls stay null."""
        from deniable.columns import sanitize_column  # noqa: PLC0415 (pandas only if it is used)

        return sanitize_column(self, column)


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


def _remembering(strategy: str) -> str:
    if strategy != "token":
        raise ParameterError(
            f"words that are remembered are drawn once for a subject: leave strategy {strategy} out"
        )
    return SUBJECT
