"""Where a command writes: refused before anything slow is done, and written whole or not at all."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from deniable.certificate import Certificate
from deniable.errors import InputError, ParameterError


def check_files(
    file: str, output: str, certificate: str | None, resume: bool, as_json: bool
) -> None:
    """Refuse outputs that can't be written, or that would overwrite what is read."""
    if output == "-" and (resume or as_json):
        raise ParameterError(f"--{'resume' if resume else 'json'} needs an output file: add -o OUT")
    for target in (output, certificate):
        if file == "-" and target not in (None, "-") and _is_stdin(Path(str(target))):
            raise InputError(f"{target}: it is the input, which would be overwritten")
    if certificate == "-":
        raise ParameterError("--certificate takes a file; for stdout use --json")
    if certificate is not None:
        _check_certificate(certificate, (file, output))


def _check_certificate(certificate: str, others: tuple[str, ...]) -> None:
    path = Path(certificate)
    if not path.parent.is_dir():
        raise InputError(f"{certificate}: the folder {path.parent} does not exist; make it first")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"{certificate}: the folder {path.parent} can't be written to")
    if path.exists() and not path.is_file():
        raise InputError(f"{certificate}: not a plain file; name one to write the certificate to")
    for other in others:
        if other != "-" and Path(other).resolve() == path.resolve():
            raise InputError(f"{certificate}: the certificate would overwrite {other}")


def _is_stdin(path: Path) -> bool:
    """Whether stdin is redirected from this file."""
    try:
        return path.is_file() and os.path.samestat(path.stat(), os.fstat(sys.stdin.fileno()))
    except (OSError, ValueError):
        return False


def save(path: str | None, found: Certificate) -> None:
    """Write a certificate, if a place for it was named."""
    if path is not None:
        _write_whole(Path(path).resolve(), found.to_json() + "\n")


def _write_whole(path: Path, text: str) -> None:
    name = None
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            # As any new file: mkstemp's own mode is for its owner alone.
            mask = os.umask(0)
            os.umask(mask)
            os.fchmod(file.fileno(), 0o666 & ~mask)
        Path(name).replace(path)
    except OSError as error:
        if name is not None:
            Path(name).unlink(missing_ok=True)
        raise InputError(f"{path}: can't be written ({error.strerror})") from None
