"""The input as blocks of whole lines of decoded text, from a file, a .gz or stdin."""

from __future__ import annotations

import codecs
import gzip
import os
import stat
import sys
import zlib
from pathlib import Path
from typing import IO, cast

from deniable.errors import InputError, ParameterError

_BOMS = {
    "utf-8": {codecs.BOM_UTF8: "utf-8"},
    "utf-16": {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"},
    "utf-32": {codecs.BOM_UTF32_LE: "utf-32-le", codecs.BOM_UTF32_BE: "utf-32-be"},
}
_STATEFUL = ("utf-7", "hz", "iso2022")  # a newline byte may stand inside a character


def describe(path: str) -> str:
    """Return the name of an input as messages use it."""
    return "stdin" if path == "-" else path


def open_binary(path: str) -> IO[bytes]:
    """Open an input for reading, or say in one line why it can't be."""
    if path == "-":
        return sys.stdin.buffer
    try:
        return Path(path).open("rb")
    except FileNotFoundError:
        problem = "no such file"
    except IsADirectoryError:
        problem = "is a folder; give a file"
    except (OSError, ValueError) as error:
        problem = f"can't be read ({getattr(error, 'strerror', None) or 'not a file name'})"
    raise InputError(f"{path!r}: {problem}")


def regular_size(file: IO[bytes]) -> int | None:
    """Return the size of a regular file, and None for a pipe or a terminal."""
    try:
        status = os.fstat(file.fileno())
    except (OSError, ValueError):  # stdin may be replaced by an object without a descriptor
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def codec_family(encoding: str) -> str:
    """Return the plain name of an encoding, or refuse one that can't be read in blocks."""
    try:
        name = codecs.lookup(encoding).name
        "\n".encode(name)
    except (LookupError, UnicodeError, ValueError, TypeError):
        name = ""
    if not name or name.startswith(_STATEFUL):
        raise ParameterError(f"unknown encoding {encoding!r}; convert the file to utf-8")
    return "utf-8" if name == "utf-8-sig" else name


class Source:
    """Blocks of whole lines, with the byte and the line where the next one starts."""

    def __init__(self, path: str, encoding: str = "utf-8", *, skip_broken: bool = False) -> None:
        family = codec_family(encoding)
        self.name = describe(path)
        self.skipped = 0
        self._skip_broken = skip_broken
        self._raw = open_binary(path)
        self.total_bytes = None if path == "-" else regular_size(self._raw)
        packed = path.endswith(".gz")
        self._file = cast(IO[bytes], gzip.GzipFile(fileobj=self._raw)) if packed else self._raw
        self._packed = packed
        self._rest = b""
        self._ended = False
        self.line = 1
        try:
            self.bom, self.codec = self._read_bom(family)
        except BaseException:
            self.close()
            raise
        self._newline = "\n".encode(self.codec)
        self.offset = len(self.bom)

    def _read_bom(self, family: str) -> tuple[bytes, str]:
        boms = _BOMS.get(family.removesuffix("-le").removesuffix("-be"), {})
        self._rest = self._fetch(4)
        for bom, codec in boms.items():
            if self._rest.startswith(bom) and codec.startswith(family):
                self._rest = self._rest[len(bom) :]
                return bom, codec
        return b"", family + "-le" if family in ("utf-16", "utf-32") else family

    def _fetch(self, size: int) -> bytes:
        try:
            data = self._file.read(size)
        except (EOFError, gzip.BadGzipFile, zlib.error):
            problem = "is not a whole gzip file; unpack it or fetch it again"
        except OSError as error:
            problem = f"can't be read ({error.strerror})"
        else:
            self._ended = not data
            return data
        raise InputError(f"{self.name}: {problem}")

    def _cut(self) -> int:
        """Return where the last whole line of the buffer ends, 0 if none does."""
        width = len(self._newline)
        at = self._rest.rfind(self._newline)
        # In utf-16 and utf-32 the bytes of a newline may straddle two characters.
        while at > 0 and at % width:
            at = self._rest.rfind(self._newline, 0, at + width - 1)
        return at + width if at >= 0 and at % width == 0 else 0

    def read(self, size: int) -> str:
        """Return about `size` bytes of whole lines as text; '' when the input is at its end."""
        while data := self._take(size):
            text = self._decode(data)
            self.offset += len(data)
            if text:  # all the lines may have been broken ones
                return text
        return ""

    def size_of(self, text: str) -> int:
        """Return how many bytes a text has in the input."""
        return len(text.encode(self.codec)) if text else 0

    def _take(self, size: int) -> bytes:
        """Return whole lines of at most `size` bytes; doubling it keeps a very long line linear.

        What is taken depends on the place where it begins, and not on how one came there: a run
        that is gone on with has the same batches as one that was never broken.
        """
        while not self._ended and (len(self._rest) < size or not self._cut()):
            if len(self._rest) < size:
                self._rest += self._fetch(size - len(self._rest))
            else:
                size *= 2
        cut = len(self._rest) if self._ended else self._cut()
        data, self._rest = self._rest[:cut], self._rest[cut:]
        return data

    def _decode(self, data: bytes) -> str:
        try:
            return data.decode(self.codec)
        except UnicodeDecodeError as error:
            start = error.start
        if self._skip_broken and len(self._newline) == 1:
            lines = [self._decode_line(line) for line in data.split(self._newline)]
            # The end of a line that is left out goes with it, and no other.
            last = lines.pop() or ""
            return "".join(line + "\n" for line in lines if line is not None) + last
        line = self.line + data[:start].count(self._newline)
        # Raised here, outside the handler, so that the bytes don't travel with the exception.
        raise InputError(
            f"{self.name}: byte {self.offset + start} (line {line}) is not {self.codec}; "
            "say what it is with --encoding"
        )

    def _decode_line(self, line: bytes) -> str | None:
        try:
            return line.decode(self.codec)
        except UnicodeDecodeError:
            self.skipped += 1
            return None

    def progress(self) -> int:
        """Return how many bytes of the input have been read."""
        return self._raw.tell() if self._packed else self.offset

    def move(self, offset: int, line: int) -> None:
        """Go on at a place that an earlier run has reached."""
        try:
            self._file.seek(offset)
        except (OSError, EOFError, zlib.error, ValueError):
            offset = -1
        if offset < 0:
            raise InputError(f"{self.name}: can't go on where the broken run stopped")
        self._rest, self._ended = b"", False
        self.offset, self.line = offset, line

    def close(self) -> None:
        """Close the file; stdin is left alone."""
        if self._raw is not sys.stdin.buffer:
            self._file.close()
            self._raw.close()
