"""A folder for what is public and slow to compute: diameters, calibrations, partitions.

Nothing here depends on private text: keys are made of a space's hash and of parameters. The
folder is `$DENIABLE_CACHE`, else `deniable` in the user's cache folder; `DENIABLE_CACHE=off`
turns it off. A file that can't be read or written is as good as none.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

# Raised when a computation changes, so that old answers are not found.
GENERATION = 1


def folder() -> Path | None:
    """Where public results are kept; None when the cache is off."""
    named = os.environ.get("DENIABLE_CACHE")
    if named == "off":
        return None
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "deniable"


def load_number(
    key: tuple[object, ...], least: float = 0.0, most: float = math.inf
) -> float | None:
    """Return the number saved under this key; None if there is none, or one that can't be right."""
    found = load_array(key)
    if found is None or found.shape != () or found.dtype != np.float64:
        return None
    value = float(found)
    return value if least <= value <= most and math.isfinite(value) else None


def save_number(key: tuple[object, ...], value: float) -> None:
    """Save one number."""
    save_array(key, np.asarray(value, dtype=np.float64))


def load_array(key: tuple[object, ...]) -> npt.NDArray[np.generic] | None:
    """Return the array saved under this key, or None."""
    path = _path(key)
    if path is None:
        return None
    try:
        found: npt.NDArray[np.generic] = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return found


def save_array(key: tuple[object, ...], value: npt.NDArray[np.generic]) -> None:
    """Save an array, whole or not at all."""
    path = _path(key)
    if path is None:
        return
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                np.save(file, value, allow_pickle=False)
            Path(name).replace(path)
        except OSError:
            Path(name).unlink(missing_ok=True)


def _path(key: tuple[object, ...]) -> Path | None:
    base = folder()
    if base is None:
        return None
    text = json.dumps([GENERATION, *key], sort_keys=True, default=str)
    return base / f"{key[0]}-{hashlib.sha256(text.encode()).hexdigest()[:32]}.npy"
