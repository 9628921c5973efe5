"""SanText+: frequent words may pass, rare ones are drawn like in SanText (Yue et al. 2021, Alg. 2).

The share w of least frequent words is sensitive (V_S). With P_S(y | x) = exp(-s eps d(x, y) / 2) /
Z_x over the outputs y in V_S:

    x in V_S       P(y | x) = P_S(y | x)
    x not in V_S   P(x | x) = 1 - p,   P(y | x) = p P_S(y | x)

Promise (UMLDP): eps d(x, x') between sensitive words, over every output; and for any two words
and an output y in V_S, eps d(x, x') + eps0 with eps0 = ln(1 / p): the two rows differ by at most
the factor p and by SanText's triangle bound. An output that is not in V_S reveals its input
exactly, so nothing is promised for pairs with a non-sensitive word over all outputs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from deniable.certify import Bound, Certification, from_bound, is_small, losses_between
from deniable.certify import brute_force as look_at_all
from deniable.errors import ParameterError
from deniable.guarantee import PROTECTED, Guarantee, Relation
from deniable.kernels.dense import DenseKernel
from deniable.kernels.exponential import Measure, closed_form, tight_scale
from deniable.mechanism import Ids, check_positive, register
from deniable.mechanisms.santext import SanText
from deniable.sampling import Counts, Floats, promised_slack, to_counts
from deniable.space import Space

# Below this a drawn share of a table has too few integer steps.
LEAST_P = 1e-5


@register
@dataclass(frozen=True)
class SanTextPlus(SanText):
    """SanText that lets frequent words through with probability 1 - p."""

    name = "santext+"
    summary = "santext for the share w of rare words; others are kept with chance 1 - p"
    promise = "epsilon x distance between rare words; frequent words pass in clear"
    source = "Yue et al., ACL Findings 2021, Algorithm 2"
    cost = "as santext, over the sensitive words"
    explains = MappingProxyType(
        {
            **SanText.explains,
            "w": "share of the least frequent words that is sensitive; above 0, at most 1",
            "p": "chance that another word is drawn instead of kept; above 0, at most 1",
        }
    )

    w: float = 0.9
    p: float = 0.3

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("w", "p"):
            check_positive(name, getattr(self, name))
            if getattr(self, name) > 1:
                raise ParameterError(f"{name} is a share: at most 1, got {getattr(self, name)}")
        if self.p < LEAST_P:
            raise ParameterError(
                f"p must be at least {LEAST_P:g}, got {self.p}: use p=1 or santext"
            )

    def bind(self, space: Space) -> DenseKernel:
        """Make the sampler."""
        self.check_space(space)
        sensitive = np.arange(len(space) - max(1, round(self.w * len(space))), len(space))
        scale = 1.0
        if self.calibrate == "tight":
            scale = tight_scale(Measure(space), self.epsilon, sensitive)
        return SanTextPlusKernel(self, space, scale, sensitive.astype(np.int64))


class SanTextPlusKernel(DenseKernel):
    """Rows over the sensitive words, and the word itself where it isn't sensitive."""

    exposed_as = "frequent words"

    def __init__(self, mechanism: SanTextPlus, space: Space, scale: float, sensitive: Ids) -> None:
        self.mechanism, self.space = mechanism, space
        self.p = float(mechanism.p)
        self.rate = scale * mechanism.epsilon / 2.0
        self.sensitive = sensitive
        self.first = int(sensitive[0])
        self.outputs = np.arange(len(space), dtype=np.int64)
        self.guarantee = self._promise()

    def _promise(self) -> Guarantee:
        count, hidden = len(self.space), len(self.sensitive)
        covered = hidden * (hidden - 1) / (count * (count - 1)) if count > 1 else 1.0
        reveals: tuple[str, ...] = ()
        if hidden < count:
            reveals = (
                f"{count - hidden:,} frequent words pass as they are with chance {1 - self.p:g}, "
                "and such an output reveals its input exactly",
                f"over sensitive outputs, any two words: epsilon d + {-math.log(self.p):.4g}",
            )
        slack = promised_slack(self.rate * self.space.diameter, hidden, self.p)
        return Guarantee(
            unit="token",
            relation=Relation(PROTECTED, covered, self.space.metric, self.space.diameter),
            epsilon=float(self.mechanism.epsilon),
            slack=slack,
            reveals=reveals,
            spread=2.0 * (self.rate * self.space.diameter + slack),
        )

    def representatives(self, ids: Ids) -> Ids:
        """Only sensitive words may share a row: the others' rows hold the word itself."""
        twins = self.space.twins[ids]
        return np.where((twins >= self.first) & (ids >= self.first), twins, ids)

    def log_weights(self, ids: Ids) -> Floats:
        """-rate d(x, y) for sensitive y."""
        distances = self.space.distances(ids, self.sensitive)
        distances *= -self.rate
        return distances

    def to_table(self, rows: Ids, weights: Floats) -> Counts:
        """Put the sensitive columns in their place; thin them by p for words that may pass."""
        counts = np.zeros((len(rows), len(self.outputs)), dtype=np.uint64)
        drawn = to_counts(weights)
        open_rows = np.flatnonzero(rows < self.first)
        if self.p < 1:
            thin = (drawn[open_rows].astype(np.float64) * self.p).astype(np.uint64)
            # Near p = 1 the float may round up, and a row must not exceed its total.
            drawn[open_rows] = np.minimum(thin, drawn[open_rows])
        counts[:, self.first :] = drawn
        rest = np.uint64(1 << 63) - drawn[open_rows].sum(axis=1, dtype=np.uint64)
        counts[open_rows, rows[open_rows]] = rest
        return counts

    def formula(self, ids: npt.ArrayLike) -> Floats:
        """Return the log-probabilities before rounding."""
        words = np.asarray(ids, dtype=np.int64)
        found = np.full((len(words), len(self.outputs)), -np.inf)
        found[:, self.first :] = super().formula(words)
        open_rows = np.flatnonzero(words < self.first)
        found[open_rows] += math.log(self.p)
        with np.errstate(divide="ignore"):
            found[open_rows, words[open_rows]] = np.log1p(-self.p)
        return found

    def promised(self, a: Ids, b: Ids) -> Floats:
        """Epsilon times the distance between sensitive words; infinite otherwise."""
        loss = self.space.distances(a, b)
        loss *= self.guarantee.epsilon
        loss += self.guarantee.slack
        loss[(np.asarray(a) < self.first)[:, None] | (np.asarray(b) < self.first)[None, :]] = np.inf
        return loss

    def exposes(self, ids: Ids) -> npt.NDArray[np.bool_]:
        """Return which words may pass as they are."""
        return np.asarray(ids < self.first, dtype=np.bool_)

    def certify(self) -> Certification:
        """Check both promises; the one about sensitive outputs is checked for all pairs."""
        if not is_small(self):
            epsilon = self.guarantee.epsilon
            bound = closed_form(Measure(self.space), self.rate, epsilon, self.sensitive, self.p)
            return from_bound(self, self._within_sensitive(bound))
        found, umldp = look_at_all(self), self._umldp()
        note = f"over sensitive outputs, any pair: {umldp:.6f} of what is promised"
        return replace(found, holds=found.holds and umldp <= 1.0, notes=(note,))

    def _within_sensitive(self, bound: Bound) -> Bound:
        covered = (bound.worst_pairs >= self.first).all(axis=1)
        return replace(bound, worst_pairs=bound.worst_pairs[covered])

    def _umldp(self) -> float:
        """Return the worst ratio of loss to eps d + eps0 over sensitive outputs, all pairs."""
        ids = np.arange(len(self.space), dtype=np.int64)
        logs = self.log_probs(ids)[:, self.first :]
        promised = self.guarantee.epsilon * self.space.distances(ids) - math.log(self.p)
        promised += self.guarantee.slack
        return float((losses_between(logs, logs) / promised).max())
