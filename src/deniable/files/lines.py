r"""Plain text: a record is a line, and only \n and \r\n end one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import compress

from deniable.files.reader import Batch, check_texts
from deniable.files.textual import TextReader

_ENDS = re.compile(r"(\r?\n)")
Ends = tuple[str | list[str], str]  # one for all lines but the last, or a list; and the last


class LineReader(TextReader):
    """Reads lines; every line end and a missing last one are given back as they were."""

    def batches(self, characters: int = 4_000_000) -> Iterator[Batch]:
        """Yield the lines in order."""
        while text := self._lines.read(characters):
            self._refuse_nul(text)
            self._lines.line += text.count("\n")
            lines, ends = split_lines(text)
            yield self._batch(lines, len(lines), ends)
        self._count_broken()

    def render(self, batch: Batch, texts: Sequence[str]) -> bytes:
        """Return the lines with the new texts."""
        check_texts(batch, texts)
        # A text with a newline of its own would shift every record after it.
        if "\n" in "".join(texts):
            texts = [text.replace("\n", " ") for text in texts]
        return self._encode(join_lines(texts, batch.frame))

    def _thin(self, frame: Ends, kept: Sequence[bool]) -> Ends:
        end, last = frame
        ends = [end] * (len(kept) - 1) if isinstance(end, str) else end
        left = list(compress([*ends, last], kept))
        last = left.pop() if left else ""
        return left, last


def split_lines(text: str) -> tuple[list[str], Ends]:
    """Split text into lines and their ends."""
    end: str | list[str]
    if "\r" not in text:
        end, lines = "\n", text.split("\n")
    elif text.count("\r\n") == text.count("\n"):
        end, lines = "\r\n", text.split("\r\n")
    else:
        pieces = _ENDS.split(text)
        lines, end = pieces[::2], pieces[1::2]
    if lines[-1]:
        return lines, (end, "")
    lines.pop()
    return lines, (end, end if isinstance(end, str) else end.pop())


def join_lines(lines: Sequence[str], ends: Ends) -> str:
    """Undo `split_lines`."""
    end, last = ends
    if isinstance(end, str):
        return end.join(lines) + last
    pieces = [""] * (2 * len(lines) - 1)
    pieces[::2] = lines
    pieces[1::2] = end
    return "".join(pieces) + last
