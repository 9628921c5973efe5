"""Certificate: what was promised for an output, as JSON that anyone can recompute."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from deniable.errors import CertificateError, DeniableError
from deniable.guarantee import Guarantee
from deniable.mechanism import Kernel, mechanism
from deniable.policy import Policy
from deniable.sampling import randomness
from deniable.tally import Tally

if TYPE_CHECKING:
    from deniable.certify import Certification
    from deniable.space import Space

FORMAT = 1
# Recomputed numbers may differ by this share between machines.
TOLERANCE = 1e-6


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
    format: int = FORMAT
    digest: str = field(default="")

    def __post_init__(self) -> None:
        if not self.digest:
            object.__setattr__(self, "digest", self._digest())

    @classmethod
    def build(
        cls, kernel: Kernel, policy: Policy, tally: Tally, passed: Mapping[str, str] | None = None
    ) -> Certificate:
        """Certify what a tally counted; `passed` names what else went through in clear."""
        in_clear: dict[str, dict[str, Any]] = dict(policy.leaks(tally.seen))
        if tally.exposed:
            what = f"{kernel.mechanism.name} copies these tokens, or may"
            in_clear[kernel.exposed_as] = {"count": tally.exposed, "what": what}
        for name, what in (passed or {}).items():
            in_clear[name] = {"count": tally.records, "what": what}
        parameters = {k: v for k, v in kernel.mechanism.parameters().items() if v is not None}
        return cls(
            mechanism=kernel.mechanism.name,
            parameters=json.loads(json.dumps(parameters)),
            space=describe_space(kernel.space),
            policy=dict(policy.to_dict()),
            guarantee=json.loads(json.dumps(kernel.guarantee.to_dict())),
            document=compose(kernel.guarantee, tally),
            in_clear=in_clear,
            randomness=randomness().label,
            version=version("deniable"),
        )

    def to_json(self, indent: int | None = 2) -> str:
        """Return the certificate as JSON."""
        return json.dumps(asdict(self), indent=indent, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Read a certificate; what can't be one is refused."""
        try:
            data = json.loads(text)
        except ValueError as error:
            raise CertificateError(f"not a certificate: not JSON ({error})") from None
        if not isinstance(data, dict):
            raise CertificateError("not a certificate: not a JSON object")
        wanted = {one.name for one in fields(cls)}
        missing, unknown = sorted(wanted - set(data)), sorted(set(data) - wanted)
        if missing or unknown:
            raise CertificateError(f"not a certificate: missing {missing}, unknown {unknown}")
        if data["format"] != FORMAT:
            raise CertificateError(
                f"certificate format {data['format']!r} needs another version of deniable"
            )
        if not (isinstance(data["digest"], str) and data["digest"]):
            raise CertificateError("not a certificate: it has no digest")
        for name in ("parameters", "space", "policy", "guarantee", "document", "in_clear"):
            if not isinstance(data[name], dict):
                raise CertificateError(f"not a certificate: {name} is not an object")
        found = cls(**data)
        try:
            found.describe()
            found._composed(Guarantee.from_dict(found.guarantee))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, DeniableError):
            raise CertificateError("not a certificate: a part is missing or not sound") from None
        return found

    def _digest(self) -> str:
        data = asdict(self)
        del data["digest"]
        text = json.dumps(data, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def verify(self, space: Space) -> Verification:
        """Recompute the promise from the space and the parameters, and compare every number.

        Counts of the private text can't be recomputed without it; the digest shows that they
        were not changed by accident, and the composition over them is recomputed.
        """
        problems = [] if self.digest == self._digest() else ["the certificate was changed: digest"]
        problems += _differences("space", self.space, describe_space(space), skip=("name",))
        if space.hash != self.space.get("hash"):
            return Verification(False, tuple(problems), None)
        try:
            kernel = self._kernel(space)
            Policy.from_dict(self.policy)
        except (DeniableError, TypeError) as error:
            return Verification(False, (*problems, str(error)), None)
        found = kernel.certify()
        if not found.holds:
            problems.append(f"the promise does not hold: worst ratio {found.worst:.6f}")
        recomputed = json.loads(json.dumps(kernel.guarantee.to_dict()))
        problems += _differences("guarantee", self.guarantee, recomputed)
        problems += _differences("document", self.document, self._composed(kernel.guarantee))
        if self.in_clear.get("length", {}).get("count") != self.document.get("tokens"):
            problems.append("in_clear.length.count is not document.tokens")
        return Verification(not problems, tuple(problems), found)

    def _kernel(self, space: Space) -> Kernel:
        if ":" in str(self.parameters.get("similarity", "")):
            raise CertificateError(
                f"similarity {self.parameters['similarity']} is a user's function, which a "
                "certificate can't carry: recompute with kernel.certify()"
            )
        return mechanism(self.mechanism, **self.parameters).bind(space)

    def _composed(self, guarantee: Guarantee) -> dict[str, Any]:
        document = self.document
        largest = document.get("largest_record", {}).get("tokens_charged", -1)
        tally = Tally(
            records=document.get("records", -1),
            tokens=document.get("tokens", -1),
            charged=document.get("tokens_charged", -1),
            largest=largest,
            skipped=document.get("skipped", 0),
        )
        if not (0 <= largest <= tally.charged <= tally.tokens):
            return {}
        return compose(guarantee, tally)

    def describe(self) -> str:
        """Say the certificate in words."""
        promise, document = Guarantee.from_dict(self.guarantee), self.document
        settings = ", ".join(f"{k}={_short(v)}" for k, v in self.parameters.items())
        largest = document["largest_record"]
        lines = [
            f"mechanism   {self.mechanism} ({settings})",
            f"space       {self.space['name']}: {self.space['size']:,} words, "
            f"{self.space['metric']}, diameter {self.space['diameter']:.4g}",
            f"promise     {promise.describe()}",
            *(f"reveals     {text}" for text in promise.reveals),
            f"document    {document['tokens_charged']:,} of {document['tokens']:,} tokens charged: "
            f"epsilon {document['epsilon']:.4g}, delta {document['delta']:g}",
        ]
        if document["records"] > 1:
            lines.append(
                f"records     {document['records']:,}; the largest has "
                f"{largest['tokens_charged']:,} tokens charged: epsilon {largest['epsilon']:.4g}"
            )
        lines += [
            f"in clear    {name} ({entry['count']:,}): {entry['what']}"
            for name, entry in self.in_clear.items()
        ]
        lines.append(f"randomness  {self.randomness}")
        return "\n".join(lines)


def describe_space(space: Space) -> dict[str, Any]:
    """Return what a certificate says of a space."""
    return {
        "name": space.name,
        "hash": space.hash,
        "size": len(space),
        "metric": space.metric,
        "diameter": space.diameter,
    }


def compose(guarantee: Guarantee, tally: Tally) -> dict[str, Any]:
    """Return the promise for everything that was counted, and for the largest record."""
    whole, largest = guarantee.repeat(tally.charged), guarantee.repeat(tally.largest)
    return {
        "records": tally.records,
        "skipped": tally.skipped,
        "tokens": tally.tokens,
        "tokens_charged": tally.charged,
        "epsilon": whole.worst_epsilon,
        "delta": whole.delta,
        "largest_record": {
            "tokens_charged": tally.largest,
            "epsilon": largest.worst_epsilon,
            "delta": largest.delta,
        },
        "covered_pairs": guarantee.relation.covered,
        "relation": guarantee.relation.kind,
        "composition": "basic: the sum over tokens of epsilon x diameter",
    }


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
        same = stated == found
    shown = [_short(v) if isinstance(v, (int, float, str)) else "another" for v in (stated, found)]
    return [] if same else [f"{name}: certificate says {shown[0]}, recomputed {shown[1]}"]


def _short(value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
