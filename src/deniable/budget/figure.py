"""A figure of noise by epsilon and of epsilon by steps; approximations are dashed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from deniable.budget.curves import Curves, epsilon_by_steps, noise_by_epsilon
from deniable.budget.methods import APPROXIMATION
from deniable.budget.release import Gaussian, Release
from deniable.errors import InputError, MissingExtraError, ParameterError

KINDS = (".png", ".svg")
POINTS = 12


def check_figure(path: Path) -> None:
    """Refuse, before anything slow is done, what couldn't be drawn."""
    if path.suffix.lower() not in KINDS:
        raise ParameterError(f"{path}: a plot is a {' or '.join(KINDS)} file; name one")
    if not path.parent.is_dir():
        raise InputError(f"{path}: the folder {path.parent} does not exist; make it first")
    _pyplot()


def draw(path: Path, once: Release, steps: int, delta: float, targets: Sequence[float]) -> None:
    """Draw both figures (the second alone, unless the noise is Gaussian) into a file."""
    counts = sorted({round(count) for count in np.geomspace(1, steps, POINTS)})
    plots = [(epsilon_by_steps(once, counts, delta), counts, "steps", "epsilon")]
    if isinstance(once, Gaussian):
        noise = noise_by_epsilon(once, steps, targets, delta)
        plots.insert(0, (noise, list(targets), "epsilon", f"sigma needed for {steps:,} steps"))
    if not any(curves for curves, *_ in plots):
        raise ParameterError(f"nothing to draw: no method has an answer at delta {delta:g}")
    pyplot = _pyplot()
    # The same file for the same numbers: no date, no random names.
    with pyplot.rc_context({"svg.hashsalt": "deniable"}):
        figure, axes = pyplot.subplots(1, len(plots), figsize=(6.5 * len(plots), 5), squeeze=False)
        for axis, plot in zip(axes[0], plots, strict=True):
            _curves(axis, *plot)
        figure.suptitle(f"{_name(once)}, delta {delta:g}")
        figure.tight_layout()
        _save(figure, path)
        pyplot.close(figure)


def _curves(axis: Any, curves: Curves, points: Sequence[float], x: str, y: str) -> None:
    # Nothing but zeros has no logarithm.
    scale = "log" if any(max(numbers) > 0 for numbers in curves.values()) else "linear"
    for method, numbers in curves.items():
        style = "--" if method.kind == APPROXIMATION else "-"
        finite = [number if np.isfinite(number) else np.nan for number in numbers]
        label = f"{method.name}{' (approximation)' if method.kind == APPROXIMATION else ''}"
        axis.plot(points, finite, style, marker=".", label=label)
    axis.set(xscale="log", yscale=scale, xlabel=x, ylabel=y)
    axis.grid(visible=True, which="both", alpha=0.2)
    if curves:
        axis.legend(fontsize="small")


def _name(once: Release) -> str:
    if not isinstance(once, Gaussian):
        return f"releases that lose at most {once.at(0.0)[0]:g} each"
    rate = "" if once.sample_rate == 1.0 else f", sample rate {once.sample_rate:g}"
    return f"Gaussian noise, sigma {once.sigma:g}, sensitivity {once.sensitivity:g}{rate}"


def _save(figure: Any, path: Path) -> None:
    date = {"Date": None} if path.suffix.lower() == ".svg" else None
    try:
        figure.savefig(path, metadata=date, dpi=120)
    except OSError as error:
        raise InputError(f"{path}: can't be written ({error.strerror})") from None


def _pyplot() -> Any:
    try:
        import matplotlib  # noqa: PLC0415 (an extra)
    except ImportError:
        raise MissingExtraError("matplotlib", "plots") from None
    matplotlib.use("agg")  # no window, wherever it runs
    from matplotlib import pyplot  # noqa: PLC0415 (an extra)

    return pyplot
