"""Run the command line as a user does: as a process, in a folder, watched for what it leaves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import toys

COMMAND = (sys.executable, "-m", "deniable")


def run(*arguments: object, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run a command; nothing is raised when it fails."""
    command = [*COMMAND, *(str(a) for a in arguments)]
    return subprocess.run(
        command, capture_output=True, input=stdin or b"", check=False, timeout=120
    )


def listing(folder: Path) -> dict[str, bytes]:
    """Every file under a folder and its content."""
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def toy_space(folder: Path) -> Path:
    """Write a small space and return where."""
    path = folder / "toy.space"
    toys.space("random").save(path)
    return path
