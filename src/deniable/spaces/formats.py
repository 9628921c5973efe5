"""Read and write the vectors of a space: own format, .npz, GloVe text, word2vec text and binary.

The own format is a folder, written whole or not at all:

    meta.json     format version, metric, name, size, dimension, diameter, notes (source, licence)
    words.txt     UTF-8, one word a line
    vectors.npy   float32, memory-mapped; or int8, to be multiplied by scale.npy
    scale.npy     float32, one number for each column (of int8 vectors only)

With `"unit": true` in meta.json every row is divided by its length after it was multiplied.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.errors import SpaceError
from deniable.geometry import Geometry, diameter
from deniable.spaces.lines import numbers_at_end, read_lines
from deniable.spaces.parts import Parts, Vectors, check_limit, checked
from deniable.spaces.word2vec import read_binary

__all__ = ["Parts", "quantise", "read", "write"]

VERSION = 1
HEADER_BYTES = 64
# Up to this many words the diameter is measured when a space is written.
MEASURED = 60_000


def read(path: Path, limit: int | None = None) -> Parts:
    """Read a file or folder of vectors, whatever its format; at most `limit` rows of it."""
    check_limit(limit)
    try:
        parts = _read(path, limit)
    except OSError as error:
        raise SpaceError(f"{path}: can't be read: {error.strerror or 'broken file'}") from error
    return checked(parts, path)


def _read(path: Path, limit: int | None) -> Parts:
    if path.is_dir():
        return _read_own(path, limit)
    with path.open("rb") as file:
        start = file.read(4)
        file.seek(0)
        header = _header(file.readline(HEADER_BYTES))
        second = file.readline(1 << 16)
    if not start:
        raise SpaceError(f"{path}: empty")
    if start[:2] == b"PK":
        return _read_npz(path, limit)
    if header and _is_binary(path, second, header[1]):
        return read_binary(path, header, limit)
    return read_lines(path, header, limit)


def _header(line: bytes) -> tuple[int, int] | None:
    """The two whole numbers of a word2vec header, or None."""
    fields = line.split()
    if len(fields) != 2 or not all(field.isdigit() for field in fields):
        return None
    return int(fields[0]), int(fields[1])


def _is_binary(path: Path, second: bytes, columns: int) -> bool:
    if path.suffix == ".bin":
        return True
    if numbers_at_end(second.split()[1:]) >= columns:
        return False
    return any(byte < 9 or 13 < byte < 32 or byte > 127 for byte in second.partition(b" ")[2])


def _read_npz(path: Path, limit: int | None) -> Parts:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            words, vectors = archive["words"][:limit], archive["vectors"][:limit]
    except KeyError as error:
        raise SpaceError(f"{path}: needs the arrays `words` and `vectors`") from error
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise SpaceError(f"{path}: broken, or holds Python objects, which are refused") from error
    if words.dtype.kind != "U" or words.ndim != 1:
        raise SpaceError(f"{path}: `words` has to be a list of text, not {words.dtype}")
    if vectors.dtype.kind != "f" or vectors.ndim != 2:
        raise SpaceError(f"{path}: `vectors` has to be a matrix of floats, not {vectors.dtype}")
    with np.errstate(over="ignore"):  # what is too large for float32 is refused as an infinity
        return Parts(tuple(words.tolist()), vectors.astype(np.float32), None, path.stem, None)


def _read_own(path: Path, limit: int | None) -> Parts:
    meta = _read_meta(path)
    try:
        # Not read_text, which would take a carriage return inside a word for the end of a line.
        words = tuple((path / "words.txt").read_bytes().decode("utf-8").split("\n")[:-1])
        vectors = _read_vectors(path, unit=meta.get("unit") is True)
    except (ValueError, EOFError) as error:
        raise SpaceError(f"{path}: its words or vectors are broken") from error
    if vectors.shape != (meta["size"], meta["dimension"]) or len(words) != meta["size"]:
        raise SpaceError(f"{path}: meta.json doesn't agree with the words and vectors beside it")
    whole = limit is None or limit >= len(words)
    width = meta["diameter"] if whole else None
    return Parts(words[:limit], vectors[:limit], meta["metric"], meta["name"], width)


def _read_meta(path: Path) -> dict[str, Any]:
    file = path / "meta.json"
    if not file.is_file():
        raise SpaceError(f"{path}: a folder without meta.json is not a space")
    try:
        meta = json.loads(file.read_text("utf-8"))
        version = meta["format"]
        known = all(key in meta for key in ("metric", "name", "size", "dimension", "diameter"))
    except (ValueError, KeyError, TypeError) as error:
        raise SpaceError(f"{file}: broken") from error
    if version != VERSION:
        raise SpaceError(f"{file}: format {version!r} is unknown; this version reads {VERSION}")
    if not known or not isinstance(meta["name"], str) or not _is_diameter(meta["diameter"]):
        raise SpaceError(f"{file}: an entry is missing or of the wrong kind")
    return dict(meta)


def _is_diameter(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and 0 <= value < float("inf"))


def _read_vectors(path: Path, *, unit: bool) -> Vectors:
    stored: npt.NDArray[Any] = np.load(path / "vectors.npy", mmap_mode="r", allow_pickle=False)
    if stored.ndim != 2 or stored.dtype not in (np.dtype("<f4"), np.dtype("i1")):
        raise ValueError("neither float32 nor int8")
    if stored.dtype != np.int8:
        return stored
    scale = np.load(path / "scale.npy", allow_pickle=False)
    if scale.dtype != np.float32 or scale.shape != stored.shape[1:]:
        raise ValueError("scale doesn't fit")
    return restore(stored, scale, unit=unit)


def restore(stored: npt.NDArray[np.int8], scale: npt.NDArray[np.float32], *, unit: bool) -> Vectors:
    """Turn int8 vectors into float32, bit by bit the same on every machine.

    Lengths are summed column after column, because numpy's sums along a row depend on the
    processor, and the space's hash is over every bit.
    """
    columns = stored.T.astype(np.float32, order="C") * scale[:, None]
    if unit:
        squares = np.zeros(len(stored))
        for column in columns.astype(np.float64):
            squares += column * column
        columns /= np.sqrt(np.where(squares > 0, squares, 1)).astype(np.float32)
    return np.ascontiguousarray(columns.T)


def quantise(vectors: Vectors) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """Round vectors to int8 with one scale a column: the largest number of a column becomes 127."""
    largest = np.abs(vectors).max(axis=0)
    scale = np.where(largest > 0, largest / 127, 1).astype(np.float32)
    return np.rint(vectors / scale).clip(-127, 127).astype(np.int8), scale


def write(
    path: Path,
    parts: Parts,
    *,
    int8: bool = False,
    unit: bool = False,
    notes: Mapping[str, str] | None = None,
) -> None:
    """Write parts in the own format, whole or not at all; an older space there is replaced."""
    parts = checked(parts, path)
    if path.exists() and not (path / "meta.json").is_file():
        raise SpaceError(f"{path}: exists and is no space; choose another name")
    try:
        folder = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent))
    except OSError as error:
        raise SpaceError(f"{path.parent}: can't be written to: {error.strerror}") from error
    try:
        _write_files(folder, parts, int8=int8, unit=unit, notes=notes or {})
        folder.chmod(0o755)
        _replace(folder, path)
    except OSError as error:
        raise SpaceError(f"{path}: can't be written: {error.strerror}") from error
    except UnicodeEncodeError as error:
        raise SpaceError(f"{path}: a word holds half of a surrogate pair; remove it") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write_files(
    folder: Path, parts: Parts, *, int8: bool, unit: bool, notes: Mapping[str, str]
) -> None:
    width, metric = parts.diameter, parts.metric or "euclidean"
    if int8:
        # Rounding moves the vectors, so a diameter measured before it no longer holds.
        stored, scale = quantise(parts.vectors)
        width = _diameter(restore(stored, scale, unit=unit), metric)
        np.save(folder / "vectors.npy", stored, allow_pickle=False)
        np.save(folder / "scale.npy", scale, allow_pickle=False)
    else:
        width = _diameter(parts.vectors, metric) if width is None else width
        np.save(folder / "vectors.npy", parts.vectors.astype("<f4"), allow_pickle=False)
    (folder / "words.txt").write_text("".join(f"{w}\n" for w in parts.words), "utf-8", newline="\n")
    size, dimension = parts.vectors.shape
    meta = {
        "format": VERSION,
        "name": parts.name,
        "metric": metric,
        "size": size,
        "dimension": dimension,
        "diameter": width,
        "unit": int8 and unit,
        **notes,
    }
    text = json.dumps(meta, indent=2, ensure_ascii=False) + "\n"
    (folder / "meta.json").write_text(text, "utf-8")


def _diameter(vectors: Vectors, metric: str) -> float | None:
    """Measure the diameter of what is stored, unless that would take long."""
    if len(vectors) > MEASURED or (metric != "euclidean" and not vectors.any(axis=1).all()):
        return None
    return diameter(Geometry(vectors, metric))


def _replace(folder: Path, path: Path) -> None:
    """Put the new folder in the place of the old one, which is lost only after that."""
    if not path.exists():
        folder.rename(path)
        return
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as aside:
        old = path.rename(Path(aside) / "old")
        try:
            folder.rename(path)
        except OSError:
            old.rename(path)
            raise
