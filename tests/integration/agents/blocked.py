"""Imports in a fresh interpreter in which a package is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def error_without(package: str, module: str, folder: Path) -> str:
    """Return what Python prints when a module is imported without a package."""
    blocked = f"import sys; sys.modules[{package!r}] = None; import {module}"
    done = subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode != 0
    return done.stderr
