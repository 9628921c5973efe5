"""What a broken run leaves beside its target, so that the next one can go on.

The part file holds the output so far; the journal says how much of it is whole, where the input
goes on, and the caller's own state. Neither holds anything of the private text: the part has what
the target will have, the journal has numbers, settings and column names. Both outlive a killed
process; after a power failure what is damaged is refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deniable.errors import InputError
from deniable.files.reader import Position

State = dict[str, Any]


@dataclass(frozen=True)
class Places:
    """The files of one target."""

    target: Path

    @property
    def part(self) -> Path:
        """Where the output grows."""
        return self.target.with_name(f".{self.target.name}.deniable-part")

    @property
    def journal(self) -> Path:
        """Where the last whole batch is noted."""
        return self.target.with_name(f".{self.target.name}.deniable-journal.json")

    @property
    def fresh_journal(self) -> Path:
        """Where the next journal is written before it takes its place."""
        return self.target.with_name(f".{self.target.name}.deniable-journal.json.new")

    @property
    def final(self) -> Path:
        """Where a format that can't be cut off and continued is put together."""
        return self.target.with_name(f".{self.target.name}.deniable-final")


@dataclass(frozen=True)
class Note:
    """One journal; without a position nothing was written yet."""

    identity: State
    offset: int
    position: Position | None
    state: State

    def save(self, places: Places) -> None:
        """Replace the journal in one step."""
        fresh = places.fresh_journal
        text = json.dumps(vars(self))
        with os.fdopen(
            os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w"
        ) as file:
            file.write(text)
        fresh.replace(places.journal)


def identity(source: str, fingerprint: Mapping[str, Any]) -> State:
    """Return what two runs must share for one to continue the other."""
    status = Path(source).stat()
    return {
        "input": str(Path(source).resolve()),
        "input size": status.st_size,
        "input time": status.st_mtime_ns,
        **json.loads(json.dumps(fingerprint)),  # compared as it will be read back
    }


def load(places: Places, wanted: State) -> Note | None:
    """Return the note of a broken run of the same job; None if there was none."""
    try:
        text = places.journal.read_bytes()
        whole = places.part.stat().st_size
    except OSError:
        return None
    note = _parse(text)
    if not whole and (note is None or note.position is not None):
        return None  # the run was killed when the target was already in its place
    if note is None or whole < note.offset:
        raise InputError(f"{places.target}: what the broken run left is damaged; omit --resume")
    different = sorted(
        key
        for key in wanted.keys() | note.identity.keys()
        if wanted.get(key) != note.identity.get(key)
    )
    if different:
        raise InputError(f"{places.target}: {_said(different)}")
    return note


def _said(different: list[str]) -> str:
    """Say what two runs don't share, and what to do about it."""
    if "input" in different:
        return "the broken run read another input; name that one, or start anew without --resume"
    if {"input size", "input time"} & set(different):
        return (
            "the input has changed since the broken run (its size or the time of its last "
            "change differs); start anew without --resume"
        )
    return (
        f"this run and the broken one differ in: {', '.join(different)}; repeat the options of "
        "the broken run, or start anew without --resume"
    )


def _parse(text: bytes) -> Note | None:
    with suppress(ValueError, TypeError):
        note = Note(**json.loads(text))
        if isinstance(note.offset, int) and isinstance(note.identity, dict):
            return note
    return None


def find_checkpoint(
    target: str, source: str, fingerprint: Mapping[str, Any] | None = None
) -> Position | None:
    """Return where a broken run from `source` to `target` stopped; None if there was none.

    Refuses when the input or the fingerprint (the caller's parameters) has changed since then.
    """
    if source == "-" or target == "-":
        raise InputError("--resume needs an input file and an output file, not a pipe")
    if not Path(source).is_file():
        return None  # the reader will say what is wrong with it
    places = Places(Path(os.path.realpath(target)))
    note = load(places, identity(source, fingerprint or {}))
    return None if note is None else note.position


def was_begun(target: str, source: str, fingerprint: Mapping[str, Any] | None = None) -> bool:
    """Whether a broken run from `source` to `target` left a note, be it of no batch at all."""
    if not Path(source).is_file():
        return False
    places = Places(Path(os.path.realpath(target)))
    return load(places, identity(source, fingerprint or {})) is not None
