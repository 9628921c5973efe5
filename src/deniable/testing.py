"""For tests only: randomness that can be repeated, and that marks every certificate so.

>>> from deniable import Sanitizer
>>> s = Sanitizer(mechanism="random")
>>> with seeded(7):
...     first = s.sanitize("hello world")
>>> with seeded(7):
...     second = s.sanitize("hello world")
>>> first.text == second.text, first.certificate.randomness
(True, 'seeded: not private')
"""

from __future__ import annotations

import hashlib
from contextlib import AbstractContextManager

from deniable.sampling import Randomness, using


class Seeded(Randomness):
    """The same generator with a key that is no secret."""

    label = "seeded: not private"

    def __init__(self, seed: int) -> None:
        key = hashlib.sha256(f"deniable seed {seed}".encode()).digest()
        self._start(key, bytes(16))


def seeded(seed: int) -> AbstractContextManager[Randomness]:
    """Draw everything inside the `with` from this seed; the result is not private."""
    return using(Seeded(seed))
