"""What every test shares: a cache folder of its own, laws that don't flicker, and the data."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

HERE = Path(__file__).parent
DATA = HERE.parent.parent / "shared" / "data"

# The tests are no package, and some of them share toys.py, commands.py and others.
sys.path.insert(0, str(HERE))
pytest_plugins = ("postgres", "ledgers")

settings.register_profile("steady", deadline=None, derandomize=True, print_blob=False)
settings.load_profile("steady")

_made: list[str] = []


def pytest_configure(config: pytest.Config) -> None:
    """Keep what is computed in a folder of this run; parallel workers share the first one's."""
    if hasattr(config, "workerinput"):
        return
    _made.append(tempfile.mkdtemp(prefix="deniable-tests-"))
    os.environ["DENIABLE_CACHE"] = _made[0]


def pytest_unconfigure() -> None:
    """Leave nothing behind."""
    for folder in _made:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of data that is not part of the project."""
    if not DATA.is_dir():
        pytest.skip(f"SKIPPED FOR WANT OF DATA: no folder {DATA}; see data/README.md beside it")
    return DATA
