"""Continuous noise from the cryptographic source: normals, directions, and radii of Laplace noise.

The noise of density exp(-epsilon |z|) in d dimensions has a direction that is uniform on the
sphere and a radius whose law is Gamma(d, 1 / epsilon): r^(d - 1) exp(-epsilon r) up to a factor.
Radii are returned for epsilon = 1, so that nobody divides by a tiny epsilon too early.
"""

from __future__ import annotations

import numpy as np

from deniable.sampling import Floats, randomness

# 53 of 64 bits fill a float64's digits.
UNUSED_BITS = np.uint64(11)
STEP = 2.0**-53
# How many exponentials are summed at a time (8 MB).
BLOCK = 1_000_000


def uniforms(count: int) -> Floats:
    """Return uniform numbers in (0, 1]: never 0, whose logarithm is infinite."""
    drawn = (randomness().words(count) >> UNUSED_BITS).astype(np.float64)
    drawn += 1.0
    drawn *= STEP
    return drawn


def normals(rows: int, columns: int) -> Floats:
    """Return independent standard normals, two from each pair of uniforms (Box and Muller)."""
    pairs = (rows * columns + 1) // 2
    angle = uniforms(pairs)
    angle *= 2.0 * np.pi
    length = uniforms(pairs)
    np.log(length, out=length)
    length *= -2.0
    np.sqrt(length, out=length)
    found = np.concatenate([length * np.cos(angle), length * np.sin(angle)])
    return found[: rows * columns].reshape(rows, columns)


def directions(rows: int, dimensions: int) -> Floats:
    """Return points that are uniform on the unit sphere."""
    found = normals(rows, dimensions)
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    return found


def gammas(rows: int, shape: int) -> Floats:
    """Return draws of Gamma(shape, 1), a sum of that many exponentials."""
    step = max(1, BLOCK // rows) if rows else shape
    total = np.zeros(rows)
    for start in range(0, shape, step):
        width = min(step, shape - start)
        exponentials = uniforms(rows * width).reshape(rows, width)
        np.log(exponentials, out=exponentials)
        total -= exponentials.sum(axis=1)
    return total
