"""Verification: a certificate recomputed from its space and its parameters."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from deniable.certificate import (
    COLUMN,
    COLUMN_PASSES,
    OTHER_COLUMNS,
    OTHERS_UNCHANGED,
    Certificate,
    compose,
    describe_space,
    exposure,
    short,
)
from deniable.certify import Certification
from deniable.errors import CertificateError, DeniableError
from deniable.geometry import diameter
from deniable.mechanism import Kernel, mechanism
from deniable.policy import Policy
from deniable.sampling import Randomness
from deniable.space import Space
from deniable.strategy import REPEATS, REPETITION, STRATEGIES, SUBJECT, restated
from deniable.testing import Seeded

# Recomputed numbers may differ by this share between machines.
TOLERANCE = 1e-6
LABELS = (Randomness.label, Seeded.label)


@dataclass(frozen=True)
class Verification:
    """What a recomputation of a certificate found."""

    holds: bool
    problems: tuple[str, ...]
    certification: Certification | None

    def to_dict(self) -> dict[str, Any]:
        """Return the verification as plain data."""
        found = None if self.certification is None else self.certification.to_dict()
        return {"holds": self.holds, "problems": list(self.problems), "certification": found}


def verify(stated: Certificate, space: Space) -> Verification:
    """Recompute everything that doesn't need the private text.

    What was counted in the text can't be recomputed: the digest shows that the counts were not
    changed by accident, and they must fit together. Someone who forges a count and the digest
    is not found out.
    """
    if not all(isinstance(entry, dict) for entry in stated.in_clear.values()):
        return Verification(False, ("in_clear: an entry is not an object",), None)
    problems = [*_changed(stated), *_differences("space", stated.space, _facts(space, stated))]
    if space.hash != stated.space.get("hash"):
        return Verification(False, tuple(problems), None)
    try:
        kernel = _kernel(stated, space)
        policy = Policy.from_dict(stated.policy)
    except (DeniableError, TypeError, OverflowError) as error:
        return Verification(False, (*problems, str(error)), None)
    found = kernel.certify()
    if not found.holds:
        problems.append(f"the promise does not hold: worst ratio {found.worst:.6f}")
    guarantee = restated(kernel.guarantee, stated.strategy)
    recomputed = json.loads(json.dumps(guarantee.to_dict()))
    problems += _differences("guarantee", stated.guarantee, recomputed)
    problems += _unsound_counts(stated)
    problems += _differences("policy", stated.policy, policy.to_dict())
    document = compose(guarantee, stated.tally(), policy.length)
    problems += _differences("document", stated.document, document)
    problems += _unsound_subject(stated)
    problems += _unsound_clear(stated, kernel, policy)
    return Verification(not problems, tuple(problems), found)


def _facts(space: Space, stated: Certificate) -> dict[str, Any]:
    """What is true of the space; its diameter is measured, not read from its file."""
    measured = diameter(space.geometry)
    return {**describe_space(space), "name": stated.space.get("name"), "diameter": measured}


def _changed(stated: Certificate) -> Iterator[str]:
    if stated.digest != stated.computed_digest():
        yield "the certificate was changed: digest"
    if stated.strategy not in (*STRATEGIES, SUBJECT):
        yield f"strategy is none of {', '.join(STRATEGIES)}"
    if stated.randomness not in LABELS:
        yield f"randomness is neither {LABELS[0]!r} nor {LABELS[1]!r}"


def _kernel(stated: Certificate, space: Space) -> Kernel:
    similarity = str(stated.parameters.get("similarity", ""))
    if ":" in similarity:
        raise CertificateError(
            f"similarity {short(similarity)} is a user's function, which a certificate can't "
            "carry: recompute with kernel.certify()"
        )
    return mechanism(stated.mechanism, **stated.parameters).bind(space)


def _unsound_counts(stated: Certificate) -> Iterator[str]:
    """Counts that can't be those of any text."""
    tally = stated.tally()
    counts = (tally.records, tally.tokens, tally.charged, tally.largest, tally.skipped)
    if not all(type(count) is int and count >= 0 for count in counts):
        yield "document: a count is not a whole number of at least 0"
    elif not tally.largest <= tally.charged <= tally.tokens:
        yield "document: more tokens are charged than there are"
    elif tally.tokens and not tally.records:
        yield "document: tokens of no record"
    if stated.strategy in REPEATS:
        repeated = stated.in_clear.get(REPETITION, {}).get("count")
        if type(repeated) is not int or not tally.charged <= repeated <= tally.tokens:
            yield f"in_clear.{REPETITION}.count doesn't fit the strategy"
    if stated.in_clear.get("length", {}).get("count") != tally.tokens:
        yield "in_clear.length.count is not document.tokens"


def _unsound_subject(stated: Certificate) -> Iterator[str]:
    """What a ledger can't have said of its subjects; what it said is the ledger's to recompute."""
    subject = stated.subject
    if not subject:
        return
    if set(subject) != {"subjects", "refused", "remembered", "largest", "budget"}:
        yield "subject: a part is missing, or one too many"
        return
    largest, budget = subject["largest"], subject["budget"]
    numbers = [subject["subjects"], subject["refused"], *largest.values(), *(budget or {}).values()]
    if not all(one is None or (type(one) in (int, float) and one >= 0) for one in numbers):
        yield "subject: a number is below 0, or none"
    elif budget is not None and largest["epsilon"] > budget["epsilon"] * (1.0 + TOLERANCE):
        # A budget that was lowered later may be exceeded, and then says so.
        yield "subject: more is spent than the budget"
    if subject["remembered"] != (stated.strategy == SUBJECT):
        yield "subject: it doesn't fit the strategy"


def _unsound_clear(stated: Certificate, kernel: Kernel, policy: Policy) -> Iterator[str]:
    """Entries that don't say what the policy or the mechanism lets be seen."""
    counts: dict[str, Any] = {key: entry.get("count") for key, entry in stated.in_clear.items()}
    for key, count in counts.items():
        if type(count) is not int or count < 0:
            yield f"in_clear.{short(key)}: its count is not a whole number of at least 0"
            return
    expected: dict[str, Any] = {key: entry["what"] for key, entry in policy.leaks(counts).items()}
    expected[OTHER_COLUMNS] = OTHERS_UNCHANGED
    if stated.strategy in REPEATS:
        expected[REPETITION] = REPEATS[stated.strategy]
    if kernel.exposed_as:
        expected[kernel.exposed_as] = exposure(kernel)
    for key, entry in stated.in_clear.items():
        what = COLUMN_PASSES if key.startswith(COLUMN) else expected.get(key)
        if entry != {"count": counts[key], "what": what}:
            yield f"in_clear.{short(key)}: not what this policy and mechanism let be seen"


def _differences(name: str, stated: Any, found: Any, skip: tuple[str, ...] = ()) -> list[str]:
    """Return one line for each place where the certificate and the recomputation differ."""
    if isinstance(stated, dict) and isinstance(found, dict):
        keys = sorted((set(stated) | set(found)) - set(skip))
        nothing = object()
        return [
            line
            for key in keys
            for line in _differences(
                f"{name}.{key}", stated.get(key, nothing), found.get(key, nothing)
            )
        ]
    if isinstance(stated, float) and isinstance(found, float):
        same = math.isclose(stated, found, rel_tol=TOLERANCE, abs_tol=1e-300)
    else:
        same = stated == found and isinstance(stated, bool) == isinstance(found, bool)
    shown = [short(v) if isinstance(v, (int, float, str)) else "another" for v in (stated, found)]
    return [] if same else [f"{name}: certificate says {shown[0]}, recomputed {shown[1]}"]
