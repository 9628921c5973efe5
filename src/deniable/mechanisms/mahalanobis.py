"""Mahalanobis: Laplace noise shaped like the space, then the nearest word (Xu et al. 2020).

    S_lam = lam S + (1 - lam) I      S the covariance of the vectors, scaled to trace d
    z = S_lam^(1/2) G u              G ~ Gamma(d, 1 / eps), u uniform on the unit sphere
    y = the word nearest to x + z    (Euclidean)

Density ~ exp(-eps |z|_M) with |z|_M = sqrt(z' S_lam^-1 z): more noise in the directions in which
words spread, so that lonely words are replaced too.

Promise: eps |x - x'|_M for every pair, in the mechanism's own metric; proof as for `fbdd`, whose
promise this is at lam = 0. It is at most eps |x - x'| / sqrt(least eigenvalue of S_lam), and that
eigenvalue is at least 1 - lam. At lam = 1 a direction in which the space has no spread would get
no noise, so lam is at most 0.999.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from deniable import cache
from deniable.errors import ParameterError
from deniable.geometry import Geometry, diameter
from deniable.guarantee import METRIC, Relation
from deniable.kernels.laplace import LaplaceKernel
from deniable.mechanism import EPSILON, Mechanism, check_share, register
from deniable.sampling import Floats
from deniable.space import Space

LARGEST_LAM = 0.999
LAM = "how far the noise is shaped like the space: 0 is round (fbdd), towards 1 as the words spread"


@register
@dataclass(frozen=True)
class Mahalanobis(Mechanism):
    """Laplace noise shaped like the space, then the nearest word."""

    name = "mahalanobis"
    summary = "fbdd with noise that is larger in the directions in which words spread"
    promise = "epsilon x distance in its own metric, between all pairs; by theorem, audited"
    source = "Xu et al., PrivateNLP 2020, Algorithm 1"
    cost = "as fbdd, and one eigenvalue problem of the space's dimension"
    accepts = ("euclidean",)
    explains = MappingProxyType({"epsilon": EPSILON, "lam": LAM})

    lam: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        check_lam(self.lam)

    def bind(self, space: Space) -> LaplaceKernel:
        """Make the sampler."""
        self.check_space(space)
        return shaped_kernel(self, space, self.lam)


def check_lam(lam: float) -> None:
    """Refuse anything but a number from 0 to just below 1."""
    check_share("lam", lam)
    if lam > LARGEST_LAM:
        raise ParameterError(
            f"lam must be at most {LARGEST_LAM}, got {lam}: near 1 some directions get no noise"
        )


def shaped_kernel(mechanism: Mechanism, space: Space, lam: float, t: float = 0.0) -> LaplaceKernel:
    """Return the kernel whose noise has the covariance shape of the space."""
    if lam == 0:
        return LaplaceKernel(mechanism, space, t=t)
    values, directions = np.linalg.eigh(covariance(space, lam))
    # Rounding must not take it below what it is for a direction in which words don't spread.
    values = np.maximum(values, 1.0 - lam)
    shape = (directions * np.sqrt(values)) @ directions.T
    straight = (directions / np.sqrt(values)) @ directions.T
    measured = Geometry(space.geometry.points @ straight, "euclidean")
    name = f"mahalanobis, lam = {float(lam)!r}"
    relation = Relation(METRIC, metric=name, diameter=_diameter(space, lam, measured))
    return LaplaceKernel(mechanism, space, shape, measured, relation, t)


def covariance(space: Space, lam: float) -> Floats:
    """Return S_lam."""
    points = space.geometry.points - space.geometry.points.mean(axis=0)
    dimensions = points.shape[1]
    found: Floats = points.T @ points
    trace = float(np.trace(found))
    # Words that are all alike spread nowhere, so the noise is round.
    spread = found * (dimensions / trace) if trace > 0 else np.eye(dimensions)
    return lam * spread + (1.0 - lam) * np.eye(dimensions)


def _diameter(space: Space, lam: float, measured: Geometry) -> float:
    key = ("mahalanobis-diameter", space.hash, lam)
    found = cache.load_number(key)
    if found is None:
        found = diameter(measured)
        cache.save_number(key, found)
    return found
