"""The key under which words are remembered: 256 bits, from the environment or a file."""

from __future__ import annotations

import os
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from pathlib import Path

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from deniable.errors import LedgerError

VARIABLE = "DENIABLE_KEY"
BYTES = 32
HELP = f"make one with `deniable ledger new-key FILE`, or set {VARIABLE}"


def new_key() -> str:
    """Return a fresh key, as text for a file or the environment."""
    return urlsafe_b64encode(secrets.token_bytes(BYTES)).decode()


def read_key(path: str | Path | None = None) -> bytes:
    """Return the key of a file, or of the environment."""
    text = os.environ.get(VARIABLE, "") if path is None else _read(Path(path))
    where = f"${VARIABLE}" if path is None else str(path)
    if not text.strip():
        raise LedgerError(f"remembering words needs a key, and {where} has none: {HELP}")
    try:
        key = urlsafe_b64decode(text.strip().encode("ascii"))
    except (NotBase64, ValueError):
        key = b""
    if len(key) != BYTES:
        raise LedgerError(f"{where}: not a key of {BYTES} bytes in base64; {HELP}")
    return key


def write_key(path: str | Path) -> None:
    """Write a fresh key into a new file, for its owner alone."""
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        raise LedgerError(f"{path}: is there already, and a lost key is lost") from None
    except OSError as error:
        raise LedgerError(f"{path}: can't be written ({error.strerror})") from None
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(new_key() + "\n")


def derived(key: bytes, purpose: str) -> bytes:
    """Return a key for one purpose, from which neither the key nor another one follows."""
    kdf = HKDF(hashes.SHA256(), BYTES, salt=None, info=f"deniable ledger: {purpose}".encode())
    return kdf.derive(key)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError as error:
        raise LedgerError(f"{path}: can't be read ({error.strerror}); {HELP}") from None
    except UnicodeDecodeError:
        raise LedgerError(f"{path}: not a key of {BYTES} bytes in base64; {HELP}") from None
