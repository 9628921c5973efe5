"""Build the embedded default space: choose the words, embed, reduce, quantise, write.

    apt-get install scowl            # the word lists; or unpack the package anywhere
    pip install -e '.[models]' --group space
    python scripts/build_default_space.py --scowl /usr/share/dict/scowl

Everything is read from this machine; the result is src/deniable/spaces/default.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from default_words import choose
from deniable.spaces import default_path, formats
from deniable.spaces.encoder import embed
from deniable.spaces.parts import Vectors
from deniable.spaces.reduce import reduce
from offensive_words import Offensive

NAME = "english-36k-minilm-128"
SIZE = 36_000
DIMENSIONS = 128
NOTES = {
    "source": "words: SCOWL 2020.12.07 up to level 70, US census names 1990, extra_words.txt; "
    "order: web counts of wordsegment 1.3.1; "
    "left out: slurs and obscene words, by better-profanity 0.7.0 and profanityfilter 2.1.0; "
    "vectors: all-MiniLM-L6-v2, centred, principal components, unit length, int8",
    "licence": "words: SCOWL licence (permissive, see LICENCE.txt), public domain, MIT; "
    "order: Apache-2.0; encoder: Apache-2.0",
}
LICENCE_START = """\
The words and vectors in this folder come from the sources named in meta.json.

The encoder all-MiniLM-L6-v2 and the package wordsegment (copyright 2018 Grant Jenks), whose web
counts give the order of the words, are under the Apache License, Version 2.0
(http://www.apache.org/licenses/LICENSE-2.0). The list has been modified: words were chosen,
lower-cased, joined with others and put in a new order.

The notice of SCOWL follows as its authors wrote it; levels above 70 and accents are not used.

"""


def main() -> None:
    """Build the folder, from the command line's arguments."""
    here = Path(__file__).parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scowl", type=Path, default=Path("/usr/share/dict/scowl"))
    parser.add_argument("--notice", type=Path, default=Path("/usr/share/doc/scowl/copyright"))
    parser.add_argument("--full", type=Path, help="keep the full vectors here, for the benchmark")
    parser.add_argument("-o", "--output", type=Path, default=default_path())
    options = parser.parse_args()
    words = choose(options.scowl, here / "extra_words.txt", SIZE, Offensive())
    vectors = embed(words, progress=True)
    if options.full:
        formats.write(options.full, formats.Parts(tuple(words), vectors, "cosine", "full", None))
    build(options.output, words, vectors, LICENCE_START + options.notice.read_text("utf-8"))


def build(output: Path, words: list[str], vectors: Vectors, licence: str) -> None:
    """Write the reduced space with its licence, and say how large it is."""
    parts = formats.Parts(
        tuple(words), reduce(vectors, DIMENSIONS, unit=True), "euclidean", NAME, None
    )
    formats.write(output, parts, int8=True, unit=True, notes=NOTES)
    (output / "LICENCE.txt").write_text(licence, "utf-8")
    stored = formats.read(output).vectors
    size = sum(file.stat().st_size for file in output.iterdir())
    lengths = np.linalg.norm(stored, axis=1)
    print(f"{output}: {size:,} bytes, lengths {lengths.min():.7f} to {lengths.max():.7f}")


if __name__ == "__main__":
    main()
