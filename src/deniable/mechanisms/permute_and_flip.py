"""Permute and flip inside small output sets (McKenna, Sheldon 2020), to compare with CusText.

The outputs of the set of x are put into a random order; each in turn is taken with chance

    p_y = exp(s_C eps (u(x, y) - max u) / 2)         u as in CusText, of sensitivity 1

until one is taken (the best has chance 1). Then P(y | x) = p_y times the integral over s in
(0, 1) of the product of (1 - s p_z) over z other than y (`scaling.py`).

Promise: eps between words that share one output set, by McKenna and Sheldon's Theorem 1, and by
`certify`, which recomputes it. It never does worse than the exponential mechanism at the same
nominal eps; once both are calibrated to the same recomputed loss (`tight`), little of that is left.
"""

from __future__ import annotations

from dataclasses import dataclass

from deniable.geometry import Floats
from deniable.mechanism import register
from deniable.mechanisms.custext import CusText
from deniable.scaling import permute_and_flip


@register
@dataclass(frozen=True)
class PermuteAndFlip(CusText):
    """CusText with permute and flip in the place of the exponential mechanism."""

    name = "permute-and-flip"
    summary = "custext with permute-and-flip in place of the exponential mechanism"
    promise = "epsilon, between words of one output set only; the set is revealed"
    source = "McKenna and Sheldon, NeurIPS 2020, Algorithm 1, in Chen et al.'s sets"
    cost = "as custext"

    @staticmethod
    def law(logs: Floats) -> Floats:
        """From scores times epsilon / 2 to the logarithms of a row's probabilities."""
        return permute_and_flip(logs)
