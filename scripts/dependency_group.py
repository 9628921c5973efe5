"""Print a dependency group of pyproject.toml, one requirement a line.

    python scripts/dependency_group.py dev > dev.txt && pip install -r dev.txt

pip reads groups by itself only from version 25.1 on; many machines have an older one.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parent.parent / "pyproject.toml"


def main() -> None:
    """Print the group that the first argument names."""
    groups = tomllib.loads(PYPROJECT.read_text("utf-8"))["dependency-groups"]
    if len(sys.argv) != 2 or sys.argv[1] not in groups:
        raise SystemExit(f"usage: dependency_group.py {'|'.join(groups)}")
    print("\n".join(groups[sys.argv[1]]))


if __name__ == "__main__":
    main()
