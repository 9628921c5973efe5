"""`deniable space build` makes a space; `deniable space inspect` says what is in one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from deniable import progress
from deniable.errors import InputError, ParameterError
from deniable.geometry import METRICS
from deniable.policy import Policy
from deniable.space import Space
from deniable.spaces import default_path, formats
from deniable.spaces.encoder import embed, read_words
from deniable.spaces.poincare import (
    mean_average_precision,
    read_aliases,
    read_pairs,
    train,
)
from deniable.spaces.reduce import reduce
from deniable.text import Kind, kind_of, split

NEIGHBOURS = 10
# Of Poincare embeddings, when none are asked for.
DIMENSIONS = 10
FILE = click.Path(path_type=Path)


@click.group()
def space() -> None:
    """Build a space, or look into one."""


@space.command()
@click.option("--words", type=FILE, help="A public word list, one a line, most frequent first.")
@click.option(
    "--encoder",
    is_flag=False,
    flag_value="",
    help="Embed the words with the sentence encoder in this folder; MiniLM when none is named.",
)
@click.option(
    "--poincare",
    type=FILE,
    help="Train Poincare embeddings of the pairs in this file: word TAB more general word.",
)
@click.option("--aliases", type=FILE, help="With --poincare: the words, as word TAB name in PAIRS.")
@click.option(
    "--epochs", type=click.IntRange(min=1), default=60, show_default=True, help="With --poincare."
)
@click.option("--vectors", type=FILE, help="A file of vectors: GloVe, word2vec, .npz or a space.")
@click.option("--metric", type=click.Choice(METRICS), help="euclidean unless the file says.")
@click.option("--unit-diameter", is_flag=True, help="Scale so that the farthest two are 1 apart.")
@click.option("--limit", type=click.IntRange(min=1), help="Keep the first words only.")
@click.option(
    "--dimensions",
    type=click.IntRange(1, 10_000),
    help="Keep this many principal axes; with --poincare train this many (10).",
)
@click.option("--quantise", is_flag=True, help="Round to 8 bits: a quarter of the size.")
@click.option("-o", "--output", type=FILE, required=True, help="The folder to write.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def build(
    *,
    words: Path | None,
    encoder: str | None,
    poincare: Path | None,
    aliases: Path | None,
    epochs: int,
    vectors: Path | None,
    metric: str | None,
    unit_diameter: bool,
    limit: int | None,
    dimensions: int | None,
    quantise: bool,
    output: Path,
    as_json: bool,
) -> None:
    """Make a space from a word list and an encoder, from a hierarchy, or from a file of vectors."""
    if unit_diameter and quantise:
        raise ParameterError("--quantise moves the vectors a little: leave out --unit-diameter")
    progress.show()
    if poincare is not None:
        _refuse_with_poincare(words, encoder, vectors, metric, unit_diameter, limit, quantise)
        trained, precision = from_hierarchy(
            poincare, aliases, dimensions or DIMENSIONS, epochs, output.stem
        )
        formats.write(output, trained)
        _show(summary(Space.load(output)) | {"MAP": precision}, as_json=as_json)
        return
    if aliases is not None:
        raise ParameterError("--aliases are names in the pairs of --poincare: give that too")
    parts = _start(words, encoder, vectors, limit)
    parts = replace(parts, metric=metric or parts.metric or "euclidean", name=output.stem)
    if dimensions is not None:
        shorter = reduce(parts.vectors, dimensions, unit=words is not None)
        parts = replace(parts, vectors=shorter, diameter=None)
    elif metric is not None:
        parts = replace(parts, diameter=None)
    made = Space(parts)
    if unit_diameter:
        scaled = made.with_unit_diameter()
        parts = replace(parts, vectors=scaled.vectors, diameter=scaled.diameter)
    formats.write(output, parts, int8=quantise, unit=quantise and words is not None)
    _show(summary(Space.load(output)), as_json=as_json)


def _refuse_with_poincare(*others: object) -> None:
    if any(other not in (None, False) for other in others):
        raise ParameterError(
            "--poincare trains vectors of its own: of the other options only --aliases, --epochs "
            "and --dimensions go with it"
        )


def from_hierarchy(
    pairs: Path, aliases: Path | None, dimensions: int, epochs: int, name: str
) -> tuple[formats.Parts, float]:
    """Train a space from pairs; return it with the precision at which it gives the pairs back."""
    hierarchy = read_pairs(pairs)
    words, rows = hierarchy.words, np.arange(len(hierarchy.words))
    if aliases is not None:
        words, rows = read_aliases(aliases, hierarchy)
    points = train(hierarchy, dimensions, epochs)
    precision = round(mean_average_precision(points, hierarchy.pairs), 4)
    return formats.Parts(words, points[rows], "poincare", name, None), precision


def _start(
    words: Path | None, encoder: str | None, vectors: Path | None, limit: int | None
) -> formats.Parts:
    """The vectors to start from: exactly one of the two ways."""
    if (words is None) == (vectors is None):
        raise ParameterError(
            "give --words FILE --encoder [PATH], --poincare FILE, or --vectors FILE"
        )
    if vectors is not None:
        if encoder is not None:
            raise ParameterError("--encoder embeds --words, and --vectors are vectors already")
        return formats.read(vectors, limit)
    assert words is not None  # noqa: S101  # one of the two was given
    chosen = _read_words(words)[:limit]
    if not chosen:
        raise InputError(f"{words}: no words in it")
    folder = Path(encoder) if encoder else None
    made = embed(chosen, folder, progress=progress.watched())
    return formats.Parts(chosen, made, None, words.stem, None)


def _read_words(path: Path) -> tuple[str, ...]:
    try:
        with path.open(encoding="utf-8-sig") as file:
            return read_words(file)
    except OSError as error:
        raise InputError(f"{path}: can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8") from error


@space.command()
@click.argument("path", metavar="[SPACE]", type=FILE, required=False)
@click.option("--limit", type=click.IntRange(min=1), help="Look at the first words only.")
@click.option("--coverage", type=FILE, help="Count how many words of this text are in the space.")
@click.option("--neighbours", help="Show the nearest words of WORD,WORD,...")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def inspect(
    *,
    path: Path | None,
    limit: int | None,
    coverage: Path | None,
    neighbours: str | None,
    as_json: bool,
) -> None:
    """Say what is in a space (the embedded English one when none is named)."""
    progress.show()
    looked_at = Space.load(path or default_path(), limit=limit)
    found = summary(looked_at)
    if coverage is not None:
        found["coverage"] = count_covered(coverage, looked_at)
    if neighbours is not None:
        found["neighbours"] = nearest(looked_at, neighbours.split(","))
    _show(found, as_json=as_json)


def summary(of: Space) -> dict[str, Any]:
    """Name, size, dimension, metric, diameter and hash.

    >>> summary(Space.from_arrays(["left", "right"], [[0.0], [2.0]]))["diameter"]
    2.0
    """
    return {
        "name": of.name,
        "size": len(of),
        "dimension": int(of.vectors.shape[1]),
        "metric": of.metric,
        # All pairs of a larger space would take minutes to hours.
        "diameter": of.diameter if len(of) <= formats.MEASURED else None,
        "hash": of.hash,
    }


def count_covered(path: Path, by: Space) -> dict[str, int]:
    """Count the words of a text and those that the default policy finds in the space."""
    policy = Policy()
    tokens = tokens_in = 0
    distinct: dict[str, bool] = {}
    for token in _word_tokens(path):
        known = distinct.get(token)
        if known is None:
            known = distinct[token] = policy.decide(token, by.index).kind == "word"
        tokens += 1
        tokens_in += known
    return {
        "words": tokens,
        "words_in_space": tokens_in,
        "distinct": len(distinct),
        "distinct_in_space": sum(distinct.values()),
    }


def _word_tokens(path: Path) -> Iterator[str]:
    """The word tokens of a UTF-8 text, in lower case, line by line."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(progress.track(file, "counting"), start=1):
                text = _decoded(line)
                if text is None:
                    raise InputError(f"{path}: line {number} is not UTF-8")
                for token in split(text)[1::2]:
                    if kind_of(token) is Kind.WORD:
                        yield token.lower()
    except OSError as error:
        raise InputError(f"{path}: can't be read: {error.strerror}") from error


def _decoded(line: bytes) -> str | None:
    """The text of a line, or None: the error of `decode` would carry the line itself."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return None


def nearest(of: Space, words: list[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the nearest words of each word, with their distances."""
    missing = [i for i, word in enumerate(words, start=1) if word not in of]
    if missing:
        raise ParameterError(f"--neighbours: word {missing[0]} of {len(words)} isn't in the space")
    ids, distances = of.neighbours([of.index[word] for word in words], NEIGHBOURS)
    return {
        word: [
            {"word": of.words[i], "distance": round(d, 6)}
            for i, d in zip(row.tolist(), far.tolist(), strict=True)
        ]
        for word, row, far in zip(words, ids, distances, strict=True)
    }


def _show(found: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return
    for key in ("name", "size", "dimension", "metric", "diameter", "hash"):
        click.echo(f"{key:<10} {_readable(found[key])}")
    if "MAP" in found:
        click.echo(f"MAP        {found['MAP']:.4f} (how well distances give the pairs back)")
    if "coverage" in found:
        _show_coverage(found["coverage"])
    for word, near in found.get("neighbours", {}).items():
        click.echo(f"{word}: " + ", ".join(f"{n['word']} {n['distance']:.2f}" for n in near))


def _readable(value: float | str | None) -> str:
    if value is None:
        return "not measured: too many words"
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"


def _show_coverage(counts: dict[str, int]) -> None:
    for label, key in (("words of the text", "words"), ("distinct words", "distinct")):
        total, inside = counts[key], counts[f"{key}_in_space"]
        share = f" ({inside / total:.1%})" if total else ""
        click.echo(f"{label}: {inside:,} of {total:,} are in the space{share}")
