"""The presets are what the measured table says they should be."""

from __future__ import annotations

from pathlib import Path

import pytest

from deniable import PRESETS, Sanitizer

PAGE = Path(__file__).parent.parent / "docs" / "presets.md"
LIMITS = {"strict": 1 / 8, "balanced": 1 / 4, "fluent": 1 / 2}
# Candidates this near in meaning count as equal.
NEAR = 0.02


def candidates() -> dict[str, tuple[float, float, float, float]]:
    """From a candidate to epsilon x diameter, pairs covered, Bayes success and meaning."""
    rows = [line.strip("| \n").split(" | ") for line in PAGE.read_text("utf-8").splitlines()]
    found = [row for row in rows if len(row) == 6 and ", epsilon " in row[0]]
    return {row[0]: (float(row[1]), float(row[2]), float(row[4]), float(row[5])) for row in found}


@pytest.mark.parametrize("name", LIMITS)
def test_a_preset_keeps_most_meaning_under_its_limit(name: str) -> None:
    preset = PRESETS[name]
    settings = ", ".join(f"{key} {value}" for key, value in preset.parameters.items())
    table = candidates()
    assert len(table) > 30
    reach, covered, success, meaning = table[f"{preset.mechanism}, {settings}"]
    assert covered == 1.0
    assert success <= LIMITS[name]
    allowed = [row for row in table.values() if row[1] == 1.0 and row[2] <= LIMITS[name]]
    best = max(row[3] for row in allowed)
    assert meaning > best - NEAR
    assert reach == min(row[0] for row in allowed if row[3] > best - NEAR)


def test_strict_leaves_nothing_but_length_and_gaps() -> None:
    text = "Dr. O'Neil's MRN is A-1234, call +1 555 0199 or mail o@x.org 👍 on 3 May!"
    out = Sanitizer(preset="strict").sanitize(text)
    assert all(part.replace("'", "").isalpha() for part in out.text.split())
    assert out.text == out.text.lower()
    kept = [token.action for token in out.tokens if token.action not in ("draw", "uniform")]
    assert kept == []
