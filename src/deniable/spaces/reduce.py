"""Make vectors shorter: principal components of the centred vectors, back on the unit sphere.

A sentence encoder puts all single words into one cone; taking the mean away first spreads them
over the whole sphere, so that near words are nearer than the crowd by a larger share.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError
from deniable.spaces.parts import Vectors


def reduce(vectors: Vectors, dimensions: int, *, unit: bool = False) -> Vectors:
    """Project centred vectors on their first principal components.

    With `unit` every row gets length 1, as fits vectors that are compared by their angle.

    >>> line = np.array([[0, 0], [1, 1], [2, 2]], dtype=np.float32)
    >>> np.abs(reduce(line, 1)).round(3)
    array([[1.414],
           [0.   ],
           [1.414]], dtype=float32)
    """
    if not 1 <= dimensions <= vectors.shape[1]:
        raise ParameterError(f"dimensions must be from 1 to {vectors.shape[1]}, not {dimensions}")
    centred: Vectors = vectors - vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
    reduced = np.asarray(centred @ components(centred)[:, :dimensions], dtype=np.float32)
    return normalise(reduced) if unit else reduced


def normalise(vectors: Vectors) -> Vectors:
    """Divide every row by its length; a row of zeros stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)


def components(centred: Vectors) -> npt.NDArray[np.float32]:
    """Return the principal directions as columns, the strongest first, each with a fixed sign."""
    moments = centred.T.astype(np.float64) @ centred
    _, directions = np.linalg.eigh(moments)
    directions = directions[:, ::-1]
    largest = np.abs(directions).argmax(axis=0)
    signs = np.sign(directions[largest, np.arange(len(largest))])
    return np.asarray(directions * signs, dtype=np.float32)
