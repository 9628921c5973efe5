"""Spaces from files and encoders, and the embedded default space."""

from __future__ import annotations

from pathlib import Path


def default_path() -> Path:
    """Return the folder of the embedded English space.

    >>> sorted(path.name for path in default_path().iterdir())
    ['LICENCE.txt', 'meta.json', 'scale.npy', 'vectors.npy', 'words.txt']
    """
    return Path(__file__).parent / "default"
