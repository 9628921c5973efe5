"""What each character of Unicode is, as bodies of regular-expression classes.

`re` has no `\\p{L}`, so the classes are built once from Python's own `unicodedata`. Planes 2 and 3
are taken as ideographs without looking, and the planes after 14 as symbols: nothing else is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from unicodedata import category

_PLANES_0_1 = range(0x20000)
_PLANE_14 = range(0xE0000, 0xE0200)
_PLANES_2_3 = f"{chr(0x20000)}-{chr(0x3FFFF)}"


def _ranges(points: Iterable[int]) -> str:
    """The body of a class that holds exactly these code points, given in order.

    >>> _ranges([97, 98, 99, 120])
    'a-cx'
    """
    parts = []
    for _, run in groupby(enumerate(points), lambda pair: pair[1] - pair[0]):
        found = [point for _, point in run]
        first, last = re.escape(chr(found[0])), re.escape(chr(found[-1]))
        parts.append(first if first == last else f"{first}-{last}")
    return "".join(parts)


_BY_CATEGORY: dict[str, list[int]] = {}
for _points in (_PLANES_0_1, _PLANE_14):
    for _point, _name in zip(_points, map(category, map(chr, _points)), strict=True):
        _BY_CATEGORY.setdefault(_name, []).append(_point)


def _of(*categories: str) -> list[int]:
    """Every scanned code point of these categories, in order."""
    return sorted(point for name in categories for point in _BY_CATEGORY.get(name, ()))


_UNSPACED_BLOCKS = (  # Thai and Lao, Myanmar, Khmer, kana, Han, Hangul, Han
    (0x0E00, 0x0EFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x3040, 0x30FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xAC00, 0xD7AF),
    (0xF900, 0xFAFF),
)
_UNSPACED = frozenset(p for first, last in _UNSPACED_BLOCKS for p in range(first, last + 1))

_PUNCTUATION = [p for p in _of("Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po") if p != ord("_")]
_ASCII_SYMBOLS = [ord(c) for c in "$+<=>^`|~"]
_CURRENCY = _of("Sc")
_SPACE = [p for p in _PLANES_0_1 if chr(p).isspace()]  # written out: `\s` would slow the classes
_GAP = {*_SPACE, *_PUNCTUATION, *_ASCII_SYMBOLS, *_CURRENCY}
_LETTERS = _of("Lu", "Ll", "Lt", "Lm", "Lo")

#: Connectors other than `_` (U+203F and its like) are punctuation here.
PUNCTUATION = _ranges(_PUNCTUATION)
SYMBOLS_IN_GAPS = _ranges(sorted({*_ASCII_SYMBOLS, *_CURRENCY}))
#: All that stands between tokens; everything else is inside one.
GAP = _ranges(sorted(_GAP))
#: A quick first test for where a token may start: exact in plane 0 but for the two apostrophes,
#: which a clitic may start with; all of the other planes, whose few gaps must be tested again.
MAY_START = _ranges(p for p in range(0x10000) if p not in _GAP or chr(p) in "'’") + (
    f"{chr(0x10000)}-{chr(0x10FFFF)}"
)
#: What ends a URL: all of `GAP` but the punctuation that RFC 3986 lets into one.
URL_END = _ranges(sorted(_GAP - {ord(c) for c in "-._~:/?#[]@!$&'()*+,;=%"}))
LETTER = _ranges(_LETTERS) + _PLANES_2_3
#: Letters of scripts that put spaces between words, so that a digit beside one makes an identifier.
SPACED_LETTER = _ranges(p for p in _LETTERS if p not in _UNSPACED)
MARK = _ranges(_of("Mn", "Mc", "Me"))
NUMBER = _ranges(_of("Nd", "Nl", "No"))
