"""The numbers behind the thesis's Figures 4.6 and 4.7: noise by epsilon, epsilon by steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf

from deniable import progress
from deniable.budget.calibration import noise_needed
from deniable.budget.methods import METHODS, Method, account
from deniable.budget.release import Gaussian, Release
from deniable.errors import ParameterError

# Each method's number for each point, in the order of the points.
Curves = dict[Method, list[float]]


def epsilon_by_steps(once: Release, steps: Sequence[int], delta: float) -> Curves:
    """Return what so many releases cost, by every method that has an answer for all of them."""
    found: dict[Method, list[float]] = {}
    for count in progress.track(steps, "composing", total=len(steps)):
        for one in account({once: count}, delta):
            found.setdefault(one.method, []).append(one.epsilon)
    return {method: numbers for method, numbers in found.items() if len(numbers) == len(steps)}


def noise_by_epsilon(once: Release, steps: int, targets: Sequence[float], delta: float) -> Curves:
    """Return the noise that every method needs for each epsilon; infinite where it gets nowhere."""
    if not isinstance(once, Gaussian):
        raise ParameterError("noise is only found for Gaussian releases")
    usable = [one for one in METHODS if one.available and one.compute({once: 1}, delta) < inf]
    found: Curves = {}
    for method in progress.track(usable, "finding noise", total=len(usable)):
        numbers = found.setdefault(method, [])
        for target in targets:
            # The one before is a good place to start from.
            start = replace(once, sigma=numbers[-1]) if numbers and numbers[-1] < inf else once
            numbers.append(noise_needed(method, start, steps, target, delta))
    return {method: numbers for method, numbers in found.items() if min(numbers) < inf}


def fewer(steps: int) -> list[int]:
    """Return a hundredth, a tenth, and all of the steps."""
    return sorted({-(-steps // 100), -(-steps // 10), steps})
