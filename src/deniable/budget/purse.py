"""Purse: pays for a batch between its being decided and its being drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from deniable.budget.charging import Asked, NewWords, Rate, Run
from deniable.budget.key import read_key
from deniable.budget.ledger import Ledger
from deniable.budget.limits import Budget
from deniable.budget.memory import Memory, Place
from deniable.budget.release import Pure
from deniable.errors import BudgetError, ForgottenError, ParameterError
from deniable.plan import Decided, Plan
from deniable.sampling import Ids, randomness
from deniable.strategy import SUBJECT, EachToken, Source

if TYPE_CHECKING:
    from deniable.sanitizer import Sanitizer

# A word of the space by its number, any other as it is.
Key = TypeVar("Key", int, str)


def open_purse(
    sanitizer: Sanitizer,
    ledger: Ledger | str | Path,
    *,
    budget: Budget | float | None = None,
    key: bytes | None = None,
    run: str | None = None,
) -> Purse:
    """Return the purse of a sanitizer."""
    if sanitizer.strategy == "dataset":
        raise ParameterError(
            "a ledger can't be charged under strategy dataset, whose draws many subjects share; "
            "use token, record, or remember (one draw for a word of a subject)"
        )
    opened = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
    if budget is not None:
        opened.ensure_budget(budget if isinstance(budget, Budget) else Budget(float(budget)))
    promised, made = sanitizer.kernel.guarantee, sanitizer.mechanism
    rate = Rate.of(Pure.of(promised), made.name, promised.relation.kind)
    memory = None
    if sanitizer.strategy == SUBJECT:
        key = read_key() if key is None else key
        settings = repr((made.name, sorted(made.parameters().items()), sanitizer.space.hash))
        memory = Memory(opened, key, settings)
    return Purse(opened, rate, memory, key, run)


class Purse:
    """One sanitizer's way to a ledger; `run` names what it is used for, and pays once."""

    def __init__(
        self, ledger: Ledger, rate: Rate, memory: Memory | None, key: bytes | None, run: str | None
    ) -> None:
        self.ledger, self.rate, self.memory, self._key = ledger, rate, memory, key
        self.run = run or token_hex(8)

    @property
    def choice(self) -> dict[str, Any]:
        """How to make the same purse in another process."""
        return {"ledger": self.ledger.place, "key": self._key, "run": self.run}

    def __repr__(self) -> str:
        return f"<Purse of {self.ledger!r}>"

    def pay(
        self, plan: Plan, decided: Decided, subjects: Sequence[str], part: int, *, stop: bool
    ) -> Receipt:
        """Charge the subjects of the records. Nothing is drawn yet."""
        records, words = plan.charged(decided)
        known: frozenset[Place] = frozenset()
        if self.memory is None:
            asked = Asked(subjects, np.bincount(records, minlength=decided.count).tolist())
        else:
            fresh, known = _new_words(self.memory, subjects, records, words)
            asked = NewWords(subjects, fresh)
        refused = self.ledger.charge(asked, self.rate, Run(self.run, part), stop=stop)
        return Receipt(refused, known)

    def standing(self, refused: int = 0) -> dict[str, Any]:
        """Return what a certificate says of the subjects that this purse has paid for."""
        subjects, largest = self.ledger.charged_by(self.run)
        if largest is None:
            return {}
        [most] = self.ledger.balances(largest)
        return {
            "subjects": subjects,
            "refused": refused,
            "remembered": self.memory is not None,
            **most.standing(),
        }

    def chooser(
        self, source: Source, words: int, subjects: Sequence[str], receipt: Receipt
    ) -> SubjectBook | None:
        """Return what draws for these records, if a subject's words are remembered."""
        if self.memory is None:
            return None
        return SubjectBook(self.memory, source, words, subjects, receipt.known)


class Receipt(NamedTuple):
    """What refused each record (None if it is paid for), and which words were known and free."""

    refused: list[BudgetError | None]
    known: frozenset[Place]


def _new_words(
    memory: Memory, subjects: Sequence[str], records: Ids, words: Ids
) -> tuple[list[frozenset[int]], frozenset[Place]]:
    """Return the words of each record that the ledger doesn't remember, and all that it does."""
    wanted: list[dict[int, Place]] = [{} for _ in subjects]
    for record, word in zip(records.tolist(), words.tolist(), strict=True):
        wanted[record][word] = memory.place(subjects[record], word)
    known = memory.recall(place for places in wanted for place in places.values())
    fresh = [
        frozenset(word for word, place in places.items() if place not in known) for places in wanted
    ]
    return fresh, frozenset(known)


class SubjectBook(EachToken):
    """One draw for each word of a subject, ever: what the ledger remembers comes first."""

    def __init__(
        self,
        memory: Memory,
        source: Source,
        words: int,
        subjects: Sequence[str],
        free: frozenset[Place],
    ) -> None:
        super().__init__(source, words)
        self._memory, self._subjects, self._free = memory, subjects, free

    def draw(self, ids: Ids, records: Ids) -> Ids:
        """Return an output of the mechanism for each word."""
        return self._remembered(
            ids.tolist(), records, lambda fresh: self._source.sample(np.array(fresh))
        )

    def uniform(self, tokens: Sequence[str], records: Ids) -> Ids:
        """Return a uniform word for each token, whatever its capitals."""
        return self._remembered(
            [token.lower() for token in tokens],
            records,
            lambda fresh: randomness().below(self._words, len(fresh)),
        )

    def _remembered(
        self, keys: Sequence[Key], records: Ids, draw: Callable[[list[Key]], Ids]
    ) -> Ids:
        """Return what is remembered of these; what isn't yet is drawn, and remembered first."""
        named = [(self._subjects[record], key) for record, key in zip(records, keys, strict=True)]
        places = {one: self._memory.place(*one) for one in dict.fromkeys(named)}
        known = self._memory.recall(places.values())
        fresh = {place: key for (_, key), place in places.items() if place not in known}
        if self._free & fresh.keys():
            raise ForgottenError(self._memory.name)
        if fresh:
            drawn = draw(list(fresh.values())).tolist()
            known |= self._memory.remember(dict(zip(fresh, drawn, strict=True)))
        return np.array([known[places[one]] for one in named], dtype=np.int64)
