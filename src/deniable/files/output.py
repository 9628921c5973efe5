"""The target file: whole or not at all, private until it is done, continued after a break.

POSIX only: the part file is locked, and renamed while it is open.
"""

from __future__ import annotations

import fcntl
import gzip
import os
import stat
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from deniable.errors import InputError
from deniable.files.journal import Note, Places, identity, load
from deniable.files.opening import format_of
from deniable.files.reader import Batch, Position, Reader
from deniable.files.writer import StreamWriter, Writer, reported


class FileWriter(Writer):
    """Grows a part file beside the target, and renames it at the end."""

    def __init__(
        self, target: str, reader: Reader, fingerprint: Mapping[str, Any], resume: bool
    ) -> None:
        # A link's file is replaced, not the link.
        self._places = Places(Path(os.path.realpath(target)))
        self._name, self._reader = target, reader
        self._packed = target.endswith(".gz") and reader.format != "parquet"
        self._identity = (
            identity(reader.source, fingerprint) if reader.total_bytes is not None else None
        )
        with reported(target):
            self._part = _lock(self._places.part, target)
        try:
            note = self._find_note(resume)
        except BaseException:
            self.keep()
            raise
        try:
            with reported(target):
                self._begin(note)
        except BaseException:
            self.discard()
            raise

    def _find_note(self, resume: bool) -> Note | None:
        note = load(self._places, self._identity or {}) if resume else None
        if (None if note is None else note.position) != self._reader.start:
            raise InputError(f"{self._name}: what the broken run left has changed; run again")
        return note

    def _begin(self, note: Note | None) -> None:
        if note is None:
            self._fresh()
            return
        os.ftruncate(self._part, note.offset)
        self._offset = os.lseek(self._part, 0, os.SEEK_END)
        self.start, self.saved = note.position, note.state

    def _fresh(self) -> None:
        if self._places.journal.exists() and os.fstat(self._part).st_size:
            warnings.warn(
                f"{self._name}: an unfinished run is thrown away; --resume would have gone on",
                stacklevel=5,
            )
        # The journal goes first: it must never describe another run's part.
        self._places.journal.unlink(missing_ok=True)
        os.ftruncate(self._part, 0)
        self._offset = 0
        self._append(self._reader.head())

    def _append(self, data: bytes) -> None:
        if self._packed and data:
            data = gzip.compress(data, mtime=0)  # members follow each other, so a cut is harmless
        view = memoryview(data)
        while view:
            view = view[os.write(self._part, view) :]
        self._offset += len(data)

    def begin(self, state: Mapping[str, Any]) -> None:
        """Note the caller's state before the first batch."""
        with reported(self._name):
            self._note(None, state)

    def _note(self, position: Position | None, state: Mapping[str, Any]) -> None:
        if self._identity is not None:
            Note(self._identity, self._offset, position, dict(state)).save(self._places)

    def write(self, batch: Batch, texts: Sequence[str], state: Mapping[str, Any]) -> None:
        """Append a batch, then note it; a kill between the two costs this batch only."""
        data = self._reader.render(batch, texts)
        with reported(self._name):
            self._append(data)
            self._note(batch.position, state)

    def commit(self) -> None:
        """Put the output in its place in one step."""
        with reported(self._name):
            self._commit()
        self._remove_notes()
        self._close()

    def _commit(self) -> None:
        places = self._places
        built = self._reader.finish(places.part, places.final)
        done = places.final if built else places.part
        done.chmod(_mode(places.target))
        with done.open("rb") as file:
            os.fsync(file.fileno())
        done.replace(places.target)
        if built:
            places.part.unlink()
        _sync_folder(places.target.parent)

    def discard(self) -> None:
        """Remove what was made on the way."""
        if self._part >= 0:
            self._remove_notes()
            for path in (self._places.final, self._places.part):
                with suppress(OSError):
                    path.unlink()
        self._close()

    def _remove_notes(self) -> None:
        for path in (self._places.journal, self._places.fresh_journal):
            with suppress(OSError):
                path.unlink()

    def keep(self) -> None:
        """Leave part and journal; without a journal there is nothing to continue."""
        if self._identity is None or not self._places.journal.exists():
            self.discard()
        self._close()

    def _close(self) -> None:
        if self._part >= 0:
            os.close(self._part)
            self._part = -1
        self._reader.close()


def _lock(part: Path, target: str) -> int:
    """Open the part file and make sure that no other run has it."""
    while True:
        file = os.open(part, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
        else:
            # Another run may have renamed it to the target between the two calls.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file), part.stat()):
                    return file
            os.close(file)
            continue
        raise InputError(f"{target}: another run is writing it; wait for it, or choose another -o")


def _mode(target: Path) -> int:
    """Return the mode that the target has, or that a new file would get."""
    with suppress(FileNotFoundError):
        return stat.S_IMODE(target.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):
        file = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def open_writer(
    target: str,
    reader: Reader,
    *,
    fingerprint: Mapping[str, Any] | None = None,
    resume: bool = False,
) -> Writer:
    """Open the output of a reader's batches; "-" is stdout.

    `fingerprint` holds the parameters that a resumed run must share. The reader is closed with it.
    """
    try:
        with reported(target):
            return _open(target, reader, fingerprint or {}, resume)
    except BaseException:
        reader.close()
        raise


def _open(target: str, reader: Reader, fingerprint: Mapping[str, Any], resume: bool) -> Writer:
    path = Path(target)
    if target == "-" or (path.exists() and not path.is_file() and not path.is_dir()):
        if resume:
            raise InputError("--resume needs an output file, not a pipe")
        return StreamWriter(target, reader)
    _check_target(target, path, reader)
    if resume and reader.total_bytes is None:
        raise InputError("--resume needs an input file, not a pipe")
    return FileWriter(target, reader, fingerprint, resume)


def _check_target(target: str, path: Path, reader: Reader) -> None:
    if path.is_dir():
        raise InputError(f"{target}: is a folder; name a file in it")
    if not path.parent.is_dir():
        raise InputError(f"{target}: there is no folder {str(path.parent)!r}; make it first")
    if reader.source != "stdin" and path.exists() and path.samefile(reader.source):
        raise InputError(f"{target}: is the input itself; choose another output")
    kind = format_of(target)
    if kind is not None and kind != reader.format.removesuffix("-plain"):
        raise InputError(f"{target}: the output is {reader.format}, as the input; rename it")
