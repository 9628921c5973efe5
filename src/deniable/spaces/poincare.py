"""Poincare embeddings of pairs word - more general word (Nickel and Kiela 2017), with numpy.

For a pair (u, v) and words x drawn at random, but none that is u or more general than u, the loss
is that of telling v by its distance:

    -ln( e^-d(u, v) / (e^-d(u, v) + sum over x of e^-d(u, x)) )

Gradients are scaled by ((1 - |x|^2) / 2)^2, which makes them gradients of hyperbolic space. A step
takes many pairs at once; what a word gets from c of them is divided by sqrt(c), so that words near
the root, which are in every step, stay steady. Training is about public words: its generator is
numpy's, from a fixed seed, and gives the same space again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from deniable import progress
from deniable.errors import InputError

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

EDGE = 1.0 - 1e-5
STEP = 128
NEGATIVES = 50
RATE = 0.3
# The first epochs are slow, so that words find their side before they move outwards.
SLOW, SLOWLY = 0.1, 0.01
SMALLEST = 1e-9


@dataclass(frozen=True)
class Hierarchy:
    """Words, and pairs of their numbers: a word and a more general one."""

    words: tuple[str, ...]
    pairs: Ids


def read_pairs(path: Path) -> Hierarchy:
    """Read lines of two words with a tab between, the more general one second."""
    rows = list(_rows(path, "two words with a tab between: a word, and a more general one"))
    words = tuple(sorted({word for row in rows for word in row}))
    index = {word: i for i, word in enumerate(words)}
    found = [(index[a], index[b]) for a, b in rows if a != b]
    if not found:
        raise InputError(f"{path}: no pairs of different words in it")
    return Hierarchy(words, np.unique(np.array(found, dtype=np.int64), axis=0))


def read_aliases(path: Path, hierarchy: Hierarchy) -> tuple[tuple[str, ...], Ids]:
    """Read lines `word TAB node`; return the words whose node is there, and its number."""
    index = {word: i for i, word in enumerate(hierarchy.words)}
    found: dict[str, int] = {}
    for word, node in _rows(path, "a word and its name in the pairs, with a tab between"):
        if node in index:
            found.setdefault(word, index[node])
    if not found:
        raise InputError(f"{path}: none of its second column is in the pairs")
    return tuple(found), np.array(list(found.values()), dtype=np.int64)


def _rows(path: Path, wanted: str) -> Iterator[tuple[str, str]]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise InputError(f"{path}: can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8") from error
    for number, line in enumerate(lines, 1):
        cells = line.split("\t")
        if line.strip() and (len(cells) < 2 or not cells[0] or not cells[1]):
            raise InputError(f"{path}, line {number}: a line has {wanted}")
        if line.strip():
            yield cells[0], cells[1]


def train(hierarchy: Hierarchy, dimensions: int, epochs: int) -> npt.NDArray[np.float32]:
    """Return a point of the unit ball for each word."""
    source = np.random.default_rng(0)
    count = len(hierarchy.words)
    points: Floats = source.uniform(-1e-3, 1e-3, size=(count, dimensions))
    slow = max(1, round(SLOW * epochs))
    known = np.sort(hierarchy.pairs[:, 0] * count + hierarchy.pairs[:, 1])
    # At first the random words are those of many pairs: they are to stay near the centre.
    often = np.cumsum(np.bincount(hierarchy.pairs.ravel(), minlength=count))
    for epoch in progress.track(range(epochs), "training", total=epochs):
        rate = RATE * (SLOWLY if epoch < slow else 1.0 - 0.95 * (epoch - slow) / epochs)
        order = source.permutation(len(hierarchy.pairs))
        for start in range(0, len(order), STEP):
            pairs = hierarchy.pairs[order[start : start + STEP]]
            shape = (len(pairs), NEGATIVES)
            others = source.integers(count, size=shape)
            if epoch < slow:
                others = np.searchsorted(often, source.integers(often[-1], size=shape), "right")
            wanted = pairs[:, :1] * count + others
            at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
            _step(points, pairs, others, (known[at] == wanted) | (others == pairs[:, :1]), rate)
    return points.astype(np.float32)


def _step(points: Floats, pairs: Ids, others: Ids, true: Bools, rate: float) -> None:
    """Move the words of some pairs, and the random words beside them that are not `true`."""
    targets = np.concatenate([pairs[:, 1:], others], axis=1)
    words, near = points[pairs[:, 0]], points[targets]
    weights, room, rooms, dots = _pulls(words, near, true)
    lean = weights / rooms
    spread = (lean * ((1.0 - rooms) - 2.0 * dots + 1.0)).sum(axis=1) / room**2
    of_words = spread[:, None] * words - np.einsum("mk,mkd->md", lean, near) / room[:, None]
    back = weights / room[:, None]
    scale = back * ((1.0 - room)[:, None] - 2.0 * dots + 1.0) / rooms**2
    of_targets = scale[:, :, None] * near - (back / rooms)[:, :, None] * words[:, None]
    moved = np.concatenate([pairs[:, 0], targets.ravel()])
    gradients = np.concatenate([of_words, of_targets.reshape(-1, points.shape[1])])
    _move(points, moved, gradients, rate)


def _pulls(words: Floats, near: Floats, true: Bools) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the loss's derivative by each distance over that of arcosh, and what it is made of."""
    room = 1.0 - np.einsum("md,md->m", words, words)
    rooms = 1.0 - np.einsum("mkd,mkd->mk", near, near)
    dots = np.einsum("md,mkd->mk", words, near)
    gaps = np.maximum((1.0 - room)[:, None] + (1.0 - rooms) - 2.0 * dots, SMALLEST)
    half = gaps / (room[:, None] * rooms)
    root = 2.0 * np.sqrt(half * (half + 1.0))  # sqrt(cosh^2 - 1)
    distances = np.log1p(2.0 * half + root)
    distances[:, 1:][true] = np.inf
    chances = np.exp(distances.min(axis=1, keepdims=True) - distances)
    chances /= chances.sum(axis=1, keepdims=True)
    pull = -chances
    pull[:, 0] += 1.0
    return 4.0 * pull / root, room, rooms, dots


def _move(points: Floats, moved: Ids, gradients: Floats, rate: float) -> None:
    """Add up what each word gets, take one step, and stay inside the ball."""
    words, back, times = np.unique(moved, return_inverse=True, return_counts=True)
    total = np.stack([np.bincount(back.ravel(), column) for column in gradients.T], axis=1)
    at = points[words]
    room = 1.0 - np.einsum("md,md->m", at, at)
    at -= (rate * room**2 / 4.0 / np.sqrt(times))[:, None] * total
    length = np.linalg.norm(at, axis=1, keepdims=True)
    points[words] = np.where(length > EDGE, at / length * EDGE, at)


def mean_average_precision(
    points: npt.NDArray[np.float32], pairs: Ids, rows: int | None = None
) -> float:
    """Return how well distances rank a word's more general words before all others (0 to 1).

    `rows` looks at that many words only, evenly spread.
    """
    places: Floats = points.astype(np.float64)
    squares = np.einsum("ij,ij->i", places, places)
    order = np.argsort(pairs[:, 0], kind="stable")
    words, starts = np.unique(pairs[order, 0], return_index=True)
    general = np.split(pairs[order, 1], starts[1:])
    step = 1 if rows is None else max(1, len(words) // rows)
    chosen = range(0, len(words), step)
    found = []
    for i in progress.track(chosen, "measuring", total=len(chosen)):
        word = words[i]
        gaps = squares[word] + squares - 2.0 * places @ places[word]
        far = gaps / (1.0 - squares)
        far[word] = np.inf
        right = np.sort(far[general[i]])
        far[general[i]] = np.inf
        before = np.searchsorted(np.sort(far), right)
        nth = np.arange(1, len(right) + 1)
        found.append(float((nth / (before + nth)).mean()))
    return float(np.mean(found))
