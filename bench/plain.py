"""Plain implementations, written from the papers: what everything here is measured against.

A V x V matrix of probabilities for SanText, Algorithm 1 with all distances for CusText, one word
at a time, numpy's own random choice. They are for measuring only: floats, no policy, no promise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Vectors = npt.NDArray[np.floating]
Row = tuple[list[int], Floats]


def distances(a: Vectors, b: Vectors) -> Floats:
    """All Euclidean distances."""
    x, y = a.astype(np.float64), b.astype(np.float64)
    squares = (x * x).sum(axis=1)[:, None] + (y * y).sum(axis=1)[None, :] - 2.0 * (x @ y.T)
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)))


def santext_matrix(vectors: Vectors, epsilon: float) -> Floats:
    """P(y | x) ~ exp(-eps d(x, y) / 2): the whole matrix at once."""
    weights = np.exp(-0.5 * epsilon * distances(vectors, vectors))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def santext(words: Sequence[str], matrix: Floats, texts: Iterable[str]) -> list[str]:
    """Replace one word after the other; unknown words uniformly."""
    index = {word: i for i, word in enumerate(words)}
    count, rng = len(words), np.random.default_rng()
    found = []
    for text in texts:
        new = []
        for token in text.split():
            row = index.get(token)
            drawn = rng.choice(count) if row is None else rng.choice(count, p=matrix[row])
            new.append(words[drawn])
        found.append(" ".join(new))
    return found


def custext_sets(vectors: Vectors, K: int) -> list[list[int]]:
    """Algorithm 1: the first word left and its K - 1 nearest words left, again and again."""
    left = list(range(len(vectors)))
    sets = []
    while left:
        first = vectors[left[0]].astype(np.float64)
        apart = [float(np.linalg.norm(vectors[y] - first)) for y in left]
        apart[0] = -1.0
        order = sorted(range(len(left)), key=apart.__getitem__)[:K]
        sets.append([left[i] for i in order])
        gone = set(sets[-1])
        left = [y for y in left if y not in gone]
    return sets


def custext_rows(vectors: Vectors, sets: Iterable[Sequence[int]], epsilon: float) -> dict[int, Row]:
    """P(y | x) ~ exp(eps u(x, y) / 2) inside each set, u scaled to one unit in each row."""
    rows: dict[int, Row] = {}
    for members in sets:
        for x in members:
            apart = np.array([float(np.linalg.norm(vectors[x] - vectors[y])) for y in members])
            spread = apart.max() - apart.min()
            weights = np.exp(-0.5 * epsilon * (apart - apart.min()) / (spread or 1.0))
            rows[x] = (list(members), weights / weights.sum())
    return rows


def custext(words: Sequence[str], rows: Mapping[int, Row], texts: Iterable[str]) -> list[str]:
    """Replace one word after the other; unknown words stay, as in the authors' program."""
    index = {word: i for i, word in enumerate(words)}
    rng = np.random.default_rng()
    found = []
    for text in texts:
        new = []
        for token in text.split():
            x = index.get(token)
            new.append(token if x is None else words[rng.choice(rows[x][0], p=rows[x][1])])
        found.append(" ".join(new))
    return found


def worst_ratio(matrix: Floats, apart: Floats, epsilon: float) -> float:
    """The largest max_y |ln P(y|x) - ln P(y|x')| / (eps d(x, x')), a pair at a time."""
    logs, worst = np.log(matrix), 0.0
    for x in range(len(logs)):
        for other in range(x):
            loss = float(np.abs(logs[x] - logs[other]).max())
            worst = max(worst, loss / (epsilon * apart[x, other]))
    return worst


def fbdd(vectors: Vectors, x: int, epsilon: float) -> int:
    """One word with multivariate Laplace noise, then the nearest: all distances."""
    rng = np.random.default_rng()
    noise = rng.normal(size=vectors.shape[1])
    noise *= rng.gamma(vectors.shape[1], 1.0 / epsilon) / float(np.linalg.norm(noise))
    return int(np.argmin(np.linalg.norm(vectors - (vectors[x] + noise), axis=1)))


def tem(vectors: Vectors, x: int, epsilon: float, beta: float = 0.001) -> int:
    """One word by Algorithm 1: Gumbel noise on near words and on the rest."""
    rng = np.random.default_rng()
    gamma = 2.0 / epsilon * float(np.log((1.0 - beta) * (len(vectors) - 1) / beta))
    apart = np.linalg.norm(vectors - vectors[x], axis=1)
    near, rest = np.flatnonzero(apart <= gamma), np.flatnonzero(apart > gamma)
    scores = -apart[near]
    if len(rest):
        scores = np.append(scores, -gamma + 2.0 / epsilon * np.log(len(rest)))
    won = int(np.argmax(scores + rng.gumbel(scale=2.0 / epsilon, size=len(scores))))
    return int(near[won]) if won < len(near) else int(rng.choice(rest))


def diffractor(count: int, rank: int, epsilon: float) -> int:
    """One rank with two-sided geometric noise, the difference of two geometric numbers."""
    rng = np.random.default_rng()
    chance = 1.0 - np.exp(-epsilon)
    return int(np.clip(rank + rng.geometric(chance) - rng.geometric(chance), 0, count - 1))
