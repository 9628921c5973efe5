"""What the three text formats share: one source, its positions and its way back to bytes."""

from __future__ import annotations

from collections.abc import Sequence

from deniable.errors import InputError
from deniable.files.reader import Batch, Position, Reader
from deniable.files.source import Source


class TextReader(Reader):
    """A reader over lines of text."""

    def __init__(
        self,
        format_: str,
        lines: Source,
        columns: Sequence[str],
        on_error: str,
        subject: str | None = None,
    ) -> None:
        self.format = format_
        self.columns = tuple(columns)
        self.subject = subject
        self.source = lines.name
        self.total_bytes = lines.total_bytes
        self._lines = lines
        self._skips = on_error == "skip"

    def settings(self) -> Position:
        """Return the choices that a position depends on."""
        return {
            **super().settings(),
            "encoding": self._lines.codec,
            "on_error": "skip" if self._skips else "stop",
        }

    def resume(self, start: Position | None) -> None:
        """Go on at a position of an earlier run."""
        self.check_start(start)
        if start is not None:
            self._lines.move(int(start["offset"]), int(start["line"]))
            self.skipped = int(start["skipped"])

    def head(self) -> bytes:
        """Return the byte order mark, if there was one."""
        return self._lines.bom

    def close(self) -> None:
        """Close the input."""
        self._lines.close()

    def _batch(
        self,
        texts: list[str],
        records: int,
        frame: object,
        rest: str = "",
        cells: list[int] | None = None,
        subjects: list[str] | None = None,
    ) -> Batch:
        """Build a batch that ends `rest` before the place the source has reached."""
        self._count_broken()
        held = self._lines.size_of(rest)
        position = {
            **self.settings(),
            "offset": self._lines.offset - held,
            "line": self._lines.line,
            "skipped": self.skipped,
        }
        return Batch(texts, records, self._lines.progress(), position, frame, cells, subjects)

    def _count_broken(self) -> None:
        """Add the lines that weren't even text; called after the last batch too."""
        self.skipped += self._lines.skipped
        self._lines.skipped = 0

    def _encode(self, text: str) -> bytes:
        try:
            return text.encode(self._lines.codec)
        except UnicodeEncodeError:
            pass
        raise InputError(
            f"{self.source}: the sanitized text doesn't fit in {self._lines.codec}; "
            "convert the input to utf-8"
        )

    def _refuse_nul(self, text: str) -> None:
        at = text.find("\0")
        if at >= 0:
            line = self._lines.line + text.count("\n", 0, at)
            raise InputError(
                f"{self.source}: line {line} holds a NUL; it is not {self._lines.codec} text "
                "(utf-16 is read with --encoding utf-16)"
            )
