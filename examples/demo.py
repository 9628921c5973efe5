"""Show what deniable does: texts before and after, what changed, and the promise in words.

    python examples/demo.py [FILE.txt]

Colours appear on a terminal; elsewhere a replaced word stands in [brackets].
"""

from __future__ import annotations

import os
import sys
import textwrap
from collections import Counter
from pathlib import Path

from deniable import PRESETS, Certificate, Sanitized, Sanitizer
from deniable.presets import DEFAULT

CLINIC = Path(__file__).parent / "clinic.txt"
COLOURED = sys.stdout.isatty() and "NO_COLOR" not in os.environ
WIDTH = 96
CLOSING = r"""
Your own file:
  .venv/bin/deniable sanitize notes.jsonl --column text --mechanism clusant --epsilon 8 \
      -o safe.jsonl --certificate safe.cert.json
  .venv/bin/deniable verify safe.cert.json        recompute the promise (about a minute)
Epsilon adds up over words and over drawings; docs/choosing-epsilon.md says what it buys."""
# How a token was treated, and the terminal colour that shows it.
COLOURS = {"draw": "32", "uniform": "35", "digits": "33", "mask": "31"}
TREATMENTS = {
    "draw": "drawn by the mechanism",
    "uniform": "unknown to the space: any word, drawn uniformly",
    "digits": "a number: fresh digits",
    "mask": "masked",
    "keep": "kept in clear",
}


def main() -> None:
    """Sanitize one file with every preset, then look at one line of it word by word."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else CLINIC
    lines = [line for line in path.read_text("utf-8").splitlines() if line.strip()]
    print(heading(f"before ({path.name})"), *lines, sep="\n")
    if not lines:
        raise SystemExit(f"{path} has no text")
    first: dict[str, Sanitized] = {}
    for name, preset in PRESETS.items():
        sanitizer = Sanitizer(preset=name)
        outs = list(sanitizer.sanitize_many(lines))
        first[name] = outs[0]
        epsilon = sanitizer.mechanism.epsilon
        print(heading(f"after: preset {name} ({preset.mechanism}, epsilon {epsilon:g} a token)"))
        print(textwrap.fill(f"({preset.why})", WIDTH))
        print(*map(marked, lines, outs), sep="\n")
    out = first[DEFAULT]
    print(heading(f"what changed: first line, preset {DEFAULT}, word by word"))
    print(word_by_word(lines[0], out))
    print(heading("what is promised for that line: its certificate, in words"))
    print(in_words(out.certificate))
    print(CLOSING)


def heading(title: str) -> str:
    """A line that parts two sections."""
    line = f"-- {title} ".ljust(WIDTH, "-")
    return f"\n{paint(line, '1')}"


def paint(text: str, colour: str) -> str:
    """Coloured text on a terminal, plain text elsewhere."""
    return f"\x1b[{colour}m{text}\x1b[0m" if COLOURED else text


def marked(before: str, out: Sanitized) -> str:
    """The text after, with every replaced token marked.

    Tokens carry where they stood before; the gaps between them are the policy's to write, so the
    tokens are looked up one after the other in the text after.
    """
    parts, place = [], 0
    for token in out.tokens:
        start = out.text.index(token.text, place)
        same = before[token.start : token.end] == token.text
        parts.append(out.text[place:start])
        parts.append(token.text if same else replaced(token.text, token.action))
        place = start + len(token.text)
    return "".join(parts) + out.text[place:]


def replaced(text: str, action: str) -> str:
    """A replaced token: coloured, or in brackets (a mask has some already)."""
    if COLOURED:
        return paint(text, COLOURS.get(action, "0"))
    return text if text.startswith("[") else f"[{text}]"


def word_by_word(before: str, out: Sanitized) -> str:
    """One line for each token: what it was, what it is, and why."""
    lines = []
    for token in out.tokens:
        was = before[token.start : token.end]
        why = TREATMENTS[token.action]
        if was == token.text:
            why += " (and stayed the same)" if token.action != "keep" else ""
            lines.append(f"{was:<24} {'=':<24} {why}")
        else:
            now = paint(f"{token.text:<24}", COLOURS.get(token.action, "0"))
            lines.append(f"{was:<24} {now} {why}")
    counts = Counter(token.action for token in out.tokens)
    same = sum(before[token.start : token.end] == token.text for token in out.tokens)
    total = ", ".join(f"{count} {TREATMENTS[action]}" for action, count in counts.items())
    return "\n".join([*lines, "", textwrap.fill(f"{total}; {same} stayed the same", WIDTH)])


def in_words(certificate: Certificate) -> str:
    """The certificate, wrapped so that the words stand under each other."""
    return "\n".join(
        textwrap.fill(line, WIDTH, subsequent_indent=" " * 12)
        for line in certificate.describe().splitlines()
    )


if __name__ == "__main__":
    main()
