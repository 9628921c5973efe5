"""Columns of text in, columns of text out: txt, csv, tsv, jsonl and parquet.

    checkpoint = find_checkpoint("out.csv", "in.csv", fingerprint)      # only with --resume
    reader = open_reader("in.csv", columns=["note"], start=checkpoint)
    with open_writer("out.csv", reader, fingerprint=fingerprint, resume=True) as writer:
        for batch in reader.batches():
            writer.write(batch, sanitize(batch.texts), state)
        writer.commit()

With `subject="who"` that column passes in clear, and `batch.subjects` says whom each record is
about. `reader.without(batch, [0, 3])` is the batch without those records, which are not written.

The target appears whole or not at all, memory doesn't grow with the file, and everything that
isn't sanitized (line ends, other columns, key order, quoting) is given back as it was. One record
must fit in memory, and so must one row group of a parquet file.
"""

from deniable.files.journal import find_checkpoint, was_begun
from deniable.files.opening import FORMATS, format_of, open_reader
from deniable.files.output import open_writer
from deniable.files.reader import Batch, Reader
from deniable.files.writer import Writer

__all__ = [
    "FORMATS",
    "Batch",
    "Reader",
    "Writer",
    "find_checkpoint",
    "format_of",
    "open_reader",
    "open_writer",
    "was_begun",
]
