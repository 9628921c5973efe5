"""Plan: decisions about tokens as numbers, so that a whole batch is drawn and written at once.

A plain word of the space in lower, title or upper case is the number `case * V + word`. Every
other token is the number -1 - slot of its remembered `Decision`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from threading import Lock
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from deniable.errors import PolicyError
from deniable.forks import in_every_child
from deniable.length import length_of
from deniable.mechanism import Kernel
from deniable.policy import Decision, Policy, fresh_digits
from deniable.sampling import Ids, randomness
from deniable.space import Space
from deniable.strategy import Chooser
from deniable.tally import OS_ENTROPY, Tally
from deniable.text import apply_case

Bools = npt.NDArray[np.bool_]
# "" writes a word as the space has it.
CASES = ("", "title", "upper", "lower")
# Decisions are remembered for this many different tokens; then the memory starts anew.
REMEMBERED = 1_000_000


class Replacement(NamedTuple):
    """Where a token stood, how it was treated, and what stands there now."""

    start: int
    end: int
    kind: str
    action: str
    text: str


@dataclass(frozen=True)
class Decided:
    """The numbers of some tokens and what they mean, before anything is drawn for them."""

    tokens: list[str] = field(repr=False)
    codes: Ids = field(repr=False)
    # A plan that starts its memory anew makes a new list, so this one stays valid.
    decisions: list[Decision] = field(repr=False)
    # The record of each token, and how many records there are.
    records: Ids = field(repr=False)
    count: int


@dataclass(frozen=True)
class Drawn:
    """The numbers of some tokens, what they mean, and what is written for each."""

    codes: Ids = field(repr=False)
    texts: list[str] = field(repr=False)
    decisions: list[Decision] = field(repr=False)
    randomness: str = ""

    def part(self, start: int, end: int) -> Drawn:
        """Return the tokens from start to end."""
        codes, texts = self.codes[start:end], self.texts[start:end]
        return Drawn(codes, texts, self.decisions, self.randomness)


class Plan(dict[str, int]):
    """From a token to its number; a token is decided when it is first seen, in memory only."""

    def __init__(
        self, space: Space, policy: Policy, kernel: Kernel, strategy: str = "token"
    ) -> None:
        super().__init__()
        self._space, self._policy, self._strategy = space, policy, strategy
        self._count = len(space)
        self._forms = _forms(space)
        self._decisions: list[Decision] = []
        self._unlock()
        in_every_child(self._unlock)
        self._exposed = kernel.exposes(np.arange(len(space), dtype=np.int64))
        self._length = length_of(policy.length)
        self.keeps_gaps = policy.whitespace == "keep" and policy.punctuation == "keep"

    def _unlock(self) -> None:
        self._lock = Lock()

    def __repr__(self) -> str:
        """Say how many tokens are remembered, never which: they are private."""
        return f"<Plan of {len(self):,} tokens>"

    def __missing__(self, token: str) -> int:
        decision = self._policy.decide(token, self._space.index)
        if decision.action == "draw" and not decision.suffix and decision.case in CASES:
            code = CASES.index(decision.case) * self._count + decision.word
        else:
            self._decisions.append(decision)
            code = -len(self._decisions)
        self[token] = code
        return code

    @cached_property
    def filler(self) -> str:
        """The public word whose draws fill texts up: the first that is private to the mechanism."""
        for word, exposed in zip(self._space.words, self._exposed.tolist(), strict=True):
            if not exposed and 0 <= self[word] < self._count * len(CASES):
                return word
        raise PolicyError("policy length: no word of the space is drawn, so nothing can fill texts")

    def fit(self, piece: list[str]) -> int:
        """Give a split text its shown length; return how many tokens are its own."""
        return self._length.fit(piece, lambda: self.filler)

    def decide(self, tokens: list[str], ends: Ids) -> Decided:
        """Decide every token of records that end at `ends`."""
        codes, decisions = self._decide(tokens)
        return Decided(tokens, codes, decisions, _records(ends, len(tokens)), len(ends))

    def draw(self, decided: Decided, chooser: Chooser) -> Drawn:
        """Draw and write every token."""
        tokens, codes, records = decided.tokens, decided.codes, decided.records
        texts = np.empty(len(tokens), dtype=object)
        plain, rest = np.flatnonzero(codes >= 0), np.flatnonzero(codes < 0)
        slots = [decided.decisions[-1 - code] for code in codes[rest]]
        other = [i for i, decision in zip(rest.tolist(), slots, strict=True) if decision.is_drawn]
        cases, ids = np.divmod(codes[plain], self._count)
        others = np.array([d.word for d in slots if d.is_drawn], dtype=np.int64)
        # One call for all, so that a word has one draw in a record however it is written there.
        places = np.concatenate([plain, np.array(other, dtype=np.int64)])
        drawn = chooser.draw(np.concatenate([ids, others]), records[places])
        texts[plain] = self._forms[cases * self._count + drawn[: len(plain)]]
        if len(rest):
            free = [i for i, d in zip(rest.tolist(), slots, strict=True) if d.action == "uniform"]
            where = records[np.array(free, dtype=np.int64)]
            uniform = chooser.uniform([tokens[i] for i in free], where)
            texts[rest] = self._write(slots, iter(drawn[len(plain) :].tolist()), uniform)
        # Either seeded part makes the whole seeded.
        label = chooser.label if chooser.label != OS_ENTROPY else randomness().label
        return Drawn(codes, texts.tolist(), decided.decisions, label)

    def charged(self, decided: Decided) -> tuple[Ids, Ids]:
        """Return record and word of everything that is paid for, in the order of the records."""
        words, _, charged = self._words(_Slots(decided.codes, decided.decisions))
        records, words = decided.records[charged], words[charged]
        if self._strategy == "token":
            return records, words
        pairs = np.unique(records * self._count + words)
        return pairs // self._count, pairs % self._count

    def _decide(self, tokens: list[str]) -> tuple[Ids, list[Decision]]:
        """Return the number of each token, and the decisions that the negative ones stand for."""
        # A slot and its number are made in two steps, which another thread must not part.
        with self._lock:
            if len(self) > REMEMBERED:
                self.clear()
                self._decisions = []
            codes = np.fromiter(map(self.__getitem__, tokens), dtype=np.int64, count=len(tokens))
            return codes, self._decisions

    def _write(self, decisions: list[Decision], drawn: Iterator[int], uniform: Ids) -> list[str]:
        """Write the tokens that are no plain words."""
        free = iter(uniform.tolist())
        most = sum(len(d.text) for d in decisions if d.action == "digits")
        digits = iter(randomness().below(10, most).tolist())
        return [self._one(decision, drawn, free, digits) for decision in decisions]

    def _one(
        self, decision: Decision, drawn: Iterator[int], free: Iterator[int], digits: Iterator[int]
    ) -> str:
        if decision.action == "digits":
            return fresh_digits(decision.text, lambda _, count: islice(digits, count))
        if decision.action in ("draw", "uniform"):
            word = next(drawn if decision.action == "draw" else free)
            return apply_case(self._space.words[word], decision.case) + decision.suffix
        return decision.text + decision.suffix

    def _decision(self, drawn: Drawn, code: int) -> Decision:
        """Return the decision that a number stands for."""
        if code < 0:
            return drawn.decisions[-1 - code]
        case, word = divmod(code, self._count)
        return Decision("draw", "word", word, CASES[case])

    def _words(self, slots: _Slots) -> tuple[Ids, Bools, Bools]:
        """Return each token's word, whether the mechanism draws for it, and whether it is paid for.

        Words that the mechanism itself lets through are drawn, and nothing is promised for them.
        """
        words, plain = slots.codes % self._count, slots.plain
        drawn = plain.copy()
        words[~plain] = slots.of(lambda one: one.word)
        drawn[~plain] = slots.of(lambda one: one.is_drawn).astype(np.bool_)
        paid = drawn.copy()
        paid[drawn] = ~self._exposed[words[drawn]]
        return words, drawn, paid

    def tally(self, drawn: Drawn, ends: Ids) -> Tally:
        """Count the tokens of records that end at `ends`."""
        codes = drawn.codes
        slots = _Slots(codes, drawn.decisions)
        words, from_kernel, charged = self._words(slots)
        seen: Counter[str] = Counter(word=int(slots.plain.sum()))
        for decision, count in zip(slots.decisions, slots.times.tolist(), strict=True):
            for key in decision.counted:
                seen[key] += count
        # Cases 1 and 2 (title, upper) are patterns that the output repeats.
        seen["case pattern"] += int(np.isin(codes[slots.plain] // self._count, (1, 2)).sum())
        uniform = int(slots.of(lambda one: one.action == "uniform").sum())
        each, different = self._charges(words, charged, ends)
        return Tally(
            records=len(ends),
            tokens=len(codes),
            charged=int(each.sum()) if different is None else len(different),
            largest=int(each.max(initial=0)),
            exposed=int((from_kernel & ~charged).sum()),
            randomness=drawn.randomness,
            seen=+seen,
            repeated=int(charged.sum()) + uniform if self._strategy != "token" else 0,
            different=different,
        )

    def _charges(self, words: Ids, charged: Bools, ends: Ids) -> tuple[Ids, set[int] | None]:
        """Return what each record is charged for, and which words the data set is charged for."""
        records = _records(ends, len(words))[charged]
        if self._strategy != "token":
            records = np.unique(records * self._count + words[charged]) // self._count
        different = set(np.unique(words[charged]).tolist()) if self._strategy == "dataset" else None
        return np.bincount(records, minlength=len(ends)), different

    def count_gaps(self, tally: Tally, gaps: Iterable[str]) -> None:
        """Add what the gaps hold to a tally."""
        for gap, times in Counter(gaps).items():
            for kind, count in self._policy.gap_counts(gap).items():
                if count:
                    tally.seen[kind] += count * times

    def gaps(self, gaps: list[str]) -> list[str]:
        """Return the gaps as the policy writes them."""
        return gaps if self.keeps_gaps else self._policy.gaps(gaps)

    def replacements(self, piece: list[str], drawn: Drawn) -> tuple[Replacement, ...]:
        """Say where each token of one text stood and what became of it."""
        found, start = [], 0
        for i, (code, text) in enumerate(zip(drawn.codes.tolist(), drawn.texts, strict=True)):
            start += len(piece[2 * i])
            end = start + len(piece[2 * i + 1])
            decision = self._decision(drawn, code)
            found.append(Replacement(start, end, decision.kind, decision.action, text))
            start = end
        return tuple(found)


class _Slots:
    """The tokens that are no plain words, each different decision among them once."""

    def __init__(self, codes: Ids, decisions: list[Decision]) -> None:
        self.codes, self.plain = codes, codes >= 0
        slots, self._inverse, self.times = np.unique(
            codes[~self.plain], return_inverse=True, return_counts=True
        )
        self.decisions = [decisions[-1 - slot] for slot in slots.tolist()]

    def of(self, what: Callable[[Decision], int]) -> Ids:
        """Return something about the decision of each of these tokens."""
        return np.array([what(one) for one in self.decisions], dtype=np.int64)[self._inverse]


def _records(ends: Ids, tokens: int) -> Ids:
    """Return in which record each token stands."""
    sizes = np.diff(ends, prepend=0)
    found: Ids = np.repeat(np.arange(len(ends), dtype=np.int64), sizes)
    assert len(found) == tokens  # noqa: S101 (else a draw would be handed to another record)
    return found


def _forms(space: Space) -> np.ndarray[tuple[int], np.dtype[np.object_]]:
    """Return every word in every case, so that writing a token is one look-up."""
    forms = np.empty(len(CASES) * len(space), dtype=object)
    forms[:] = [apply_case(word, case) for case in CASES for word in space.words]
    return forms
