"""Certificate: what was promised for an output, as JSON that anyone can recompute."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import version
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from deniable.budget.release import Pure
from deniable.errors import CertificateError, DeniableError
from deniable.guarantee import Guarantee
from deniable.length import length_of
from deniable.mechanism import Kernel
from deniable.policy import Policy
from deniable.sampling import randomness
from deniable.strategy import REPEATS, REPETITION, restated
from deniable.tally import Tally

if TYPE_CHECKING:
    from deniable.space import Space
    from deniable.verification import Verification

FORMAT = 1
# With so small a chance to fail, composition is tighter.
DELTA = 1e-6
_TEXTS = ("mechanism", "randomness", "version", "strategy", "digest")
COLUMN = "column "
COPIES = "copies these tokens, or may"
# More columns than this are counted, not named: the keys of json records can be data.
MOST_NAMED = 100
OTHER_COLUMNS = "other columns"
OTHERS_UNCHANGED = "so many more columns were not named, and pass unchanged"
COLUMN_PASSES = "this column was not named, and passes unchanged"


@dataclass(frozen=True)
class Certificate:
    """What was promised: guarantee, composition over the document, and everything in clear."""

    mechanism: str
    parameters: dict[str, Any]
    space: dict[str, Any]
    policy: dict[str, Any]
    guarantee: dict[str, Any]
    document: dict[str, Any]
    in_clear: dict[str, dict[str, Any]]
    randomness: str
    version: str
    strategy: str = "token"
    subject: dict[str, Any] = field(default_factory=dict)
    format: int = FORMAT
    digest: str = field(default="")

    def __post_init__(self) -> None:
        if not self.digest:
            object.__setattr__(self, "digest", self.computed_digest())

    @classmethod
    def build(
        cls,
        kernel: Kernel,
        policy: Policy,
        tally: Tally,
        passed: Sequence[str] = (),
        strategy: str = "token",
        subject: Mapping[str, Any] = MappingProxyType({}),
    ) -> Certificate:
        """Certify what a tally counted; `passed` names the columns that went through in clear, and
        `subject` says what a ledger has of those whom the text is about.
        """
        guarantee = restated(kernel.guarantee, strategy)
        in_clear: dict[str, dict[str, Any]] = dict(policy.leaks(tally.seen))
        if strategy in REPEATS:
            in_clear[REPETITION] = {"count": tally.repeated, "what": REPEATS[strategy]}
        if tally.exposed:
            in_clear[kernel.exposed_as] = {"count": tally.exposed, "what": exposure(kernel)}
        for column in passed[:MOST_NAMED]:
            in_clear[f"{COLUMN}{column}"] = {"count": tally.records, "what": COLUMN_PASSES}
        if len(passed) > MOST_NAMED:
            others = {"count": len(passed) - MOST_NAMED, "what": OTHERS_UNCHANGED}
            in_clear[OTHER_COLUMNS] = others
        parameters = {k: v for k, v in kernel.mechanism.parameters().items() if v is not None}
        return cls(
            mechanism=kernel.mechanism.name,
            parameters=json.loads(json.dumps(parameters)),
            space=describe_space(kernel.space),
            policy=dict(policy.to_dict()),
            guarantee=json.loads(json.dumps(guarantee.to_dict())),
            document=compose(guarantee, tally, policy.length),
            in_clear=in_clear,
            randomness=tally.randomness or randomness().label,
            version=version("deniable"),
            strategy=strategy,
            subject=dict(subject),
        )

    def to_json(self, indent: int | None = 2) -> str:
        """Return the certificate as JSON."""
        return json.dumps(asdict(self), indent=indent, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Read a certificate; what can't be one is refused."""
        found = cls(**_parts(text, {one.name for one in fields(cls)}))
        try:
            found.describe()
            compose(Guarantee.from_dict(found.guarantee), found.tally())
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, DeniableError):
            raise CertificateError("not a certificate: a part is missing or not sound") from None
        return found

    def tally(self) -> Tally:
        """Return the counts that the document part states."""
        document = self.document
        return Tally(
            records=document["records"],
            tokens=document["tokens"],
            charged=document["tokens_charged"],
            largest=document["largest_record"]["tokens_charged"],
            skipped=document["skipped"],
        )

    def computed_digest(self) -> str:
        """Return the digest of everything but the digest."""
        data = asdict(self)
        del data["digest"]
        text = json.dumps(data, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def verify(self, space: Space) -> Verification:
        """Recompute the promise from the space and the parameters, and compare every number.

        Counts of the private text can't be recomputed without it; the digest shows that they
        were not changed by accident, and the composition over them is recomputed.
        """
        from deniable.verification import verify  # noqa: PLC0415 (it needs this module)

        return verify(self, space)

    def describe(self) -> str:
        """Say the certificate in words."""
        promise, document = Guarantee.from_dict(self.guarantee), self.document
        settings = ", ".join(f"{k}={short(v)}" for k, v in self.parameters.items())
        largest = document["largest_record"]
        charged = "tokens" if self.strategy == "token" else "tokens, as different words,"
        drawn = f"{document['tokens_charged']:,} of {document['tokens']:,} {charged} charged"
        lines = [
            f"mechanism   {self.mechanism} ({settings})",
            f"space       {self.space['name']}: {self.space['size']:,} words, "
            f"{self.space['metric']}, diameter {self.space['diameter']:.4g}",
            f"promise     {promise.describe()}",
            *(f"reveals     {text}" for text in promise.reveals),
            f"document    {drawn}: {_spent(document)}",
        ]
        if document["records"] > 1:
            lines.append(
                f"records     {document['records']:,}; the largest has "
                f"{largest['tokens_charged']:,} tokens charged: {_spent(largest)}"
            )
        if self.subject:
            lines.append(f"subject     {_standing(self.subject)}")
        lines += [
            f"in clear    {name} ({entry['count']:,}): {entry['what']}"
            for name, entry in self.in_clear.items()
        ]
        lines.append(f"randomness  {self.randomness}")
        return "\n".join(lines)


def _parts(text: str, wanted: set[str]) -> dict[str, Any]:
    """Read a certificate's parts, and see that each is of its type."""
    try:
        data = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        raise CertificateError("not a certificate: not JSON") from None
    if not isinstance(data, dict):
        raise CertificateError("not a certificate: not a JSON object")
    missing, unknown = sorted(wanted - set(data)), sorted(set(data) - wanted)
    if missing or unknown:
        raise CertificateError(f"not a certificate: missing {missing}, unknown {unknown}")
    if type(data["format"]) is not int or data["format"] != FORMAT:
        raise CertificateError(
            f"certificate format {data['format']!r} needs another version of deniable"
        )
    if not data["digest"]:
        raise CertificateError("not a certificate: it has no digest")
    for name in wanted - {"format"}:
        kind = str if name in _TEXTS else dict
        if not isinstance(data[name], kind):
            what = "a text" if kind is str else "an object"
            raise CertificateError(f"not a certificate: {name} is not {what}")
    return data


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a key that is there twice: readers don't agree on which of the two counts."""
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key is there twice")
    return dict(pairs)


def exposure(kernel: Kernel) -> str:
    """Say what a mechanism that lets words through does to them."""
    return f"{kernel.mechanism.name} {COPIES}"


def describe_space(space: Space) -> dict[str, Any]:
    """Return what a certificate says of a space."""
    return {
        "name": space.name,
        "hash": space.hash,
        "size": len(space),
        "metric": space.metric,
        "diameter": space.diameter,
    }


def _spent(composed: Mapping[str, Any]) -> str:
    """Say an epsilon without delta, and the one with it where that is less."""
    said, best = f"epsilon {composed['epsilon']:.4g}", composed["with_delta"]
    if composed["delta"]:
        said += f" at delta {composed['delta']:g}"
    if best["epsilon"] >= composed["epsilon"]:
        return said
    return f"{said}, or {best['epsilon']:.4g} at delta {best['delta']:g} ({best['method']})"


def _standing(subject: Mapping[str, Any]) -> str:
    """Say what the subjects have spent in all."""
    most, budget = subject["largest"], subject["budget"]
    count = subject["subjects"]
    who = "its" if count == 1 else f"{count:,} of them; the most charged one's"
    said = f"{who} total is epsilon {most['epsilon']:.4g} at delta {most['delta']:g}"
    said += "" if budget is None else f" of {budget['epsilon']:g}"
    return said + (f"; {subject['refused']:,} records refused" if subject["refused"] else "")


def compose(guarantee: Guarantee, tally: Tally, length: str = "declared") -> dict[str, Any]:
    """Return the promise for everything that was counted, and for the largest record."""
    return {
        "records": tally.records,
        "skipped": tally.skipped,
        "tokens": tally.tokens,
        **_composed(guarantee, tally.charged),
        "largest_record": _composed(guarantee, tally.largest),
        "covered_pairs": guarantee.relation.covered,
        "relation": guarantee.relation.kind,
        "neighbours": length_of(length).neighbours(),
        "composition": "basic: the sum over tokens of epsilon x diameter",
    }


def _composed(guarantee: Guarantee, draws: int) -> dict[str, Any]:
    """Return what so many draws promise together: without any delta, and with a small one."""
    whole = guarantee.repeat(draws)
    best = (Pure.of(guarantee).cost() * draws).best(DELTA)
    return {
        "tokens_charged": draws,
        "epsilon": whole.worst_epsilon,
        "delta": whole.delta,
        "with_delta": best._asdict(),
    }


def short(value: Any) -> str:
    """Return a value as one short text, for a line of a report."""
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
