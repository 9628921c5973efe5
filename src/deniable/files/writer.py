"""What takes batches: the promise of every writer, and the one for pipes and devices."""

from __future__ import annotations

import errno
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from deniable.errors import DeniableError, InputError
from deniable.files.journal import State
from deniable.files.reader import Batch, Position, Reader

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Writer(ABC):
    """Takes batches in the reader's order. Leave it without `commit` and nothing is written.

    `start` and `saved` are the position and the caller's state that a broken run left.
    """

    start: Position | None = None
    saved: State | None = None

    def begin(self, state: Mapping[str, Any]) -> None:
        """Note the caller's state before the first batch, if a later run can continue this one."""
        del state

    @abstractmethod
    def write(self, batch: Batch, texts: Sequence[str], state: Mapping[str, Any]) -> None:
        """Append a batch with its new texts, and note the caller's state (JSON, not private)."""

    @abstractmethod
    def commit(self) -> None:
        """Make the output appear."""

    @abstractmethod
    def discard(self) -> None:
        """Leave nothing behind."""

    @abstractmethod
    def keep(self) -> None:
        """Stop, and leave what a later run can continue."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # The input's or the call's fault would come again; a break or a crash may not.
        if error is None or (isinstance(error, DeniableError) and not error.resumable):
            self.discard()
        else:
            self.keep()


@contextmanager
def reported(target: object) -> Iterator[None]:
    """Turn an error of the file system into one line."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.errno in _FULL:
            problem = "no space left; free some, or write to another disk"
        else:
            problem = f"can't be written ({error.strerror or 'the system refused'})"
    else:
        return
    raise InputError(f"{target}: {problem}")


class StreamWriter(Writer):
    """Writes to stdout or a device as it goes: neither whole nor resumable."""

    def __init__(self, target: str, reader: Reader) -> None:
        if reader.format == "parquet":
            raise InputError("parquet can't be written to a pipe; give a file with -o")
        self._target, self._reader = ("stdout" if target == "-" else target), reader
        with reported(self._target):
            self._file = sys.stdout.buffer if target == "-" else Path(target).open("wb")  # noqa: SIM115
        self._put(reader.head())

    def _put(self, data: bytes) -> None:
        with reported(self._target):
            self._file.write(data)
            self._file.flush()

    def write(self, batch: Batch, texts: Sequence[str], state: Mapping[str, Any]) -> None:
        """Write a batch at once."""
        del state
        self._put(self._reader.render(batch, texts))

    def commit(self) -> None:
        """Do nothing more: everything is out."""
        self.keep()

    def discard(self) -> None:
        """Stop; what is out is out."""
        self.keep()

    def keep(self) -> None:
        """Close a device, and leave stdout open."""
        self._reader.close()
        if self._file is not sys.stdout.buffer:
            with suppress(OSError):
                self._file.close()
