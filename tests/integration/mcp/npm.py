"""Packages of npm for tests, which are skipped without npm or its registry."""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest


def npm(folder: Path, *command: str) -> str:
    """Run a command of npm in a folder and return its output."""
    if shutil.which("npx") is None:
        pytest.skip("no npm: npx isn't installed")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
    if re.search(r"npm error code (E[A-Z]+|4\d\d)", done.stderr):
        pytest.skip("no npm: its registry can't be reached")
    return done.stdout


def unpack(folder: Path, package: str) -> Path:
    """Download a package without what it depends on, unpack it and return its folder."""
    archive = folder / npm(folder, "npm", "pack", "--loglevel", "error", package).strip()
    target = folder / package.rpartition("@")[0]
    with tarfile.open(archive) as files:
        files.extractall(target, filter="data")
    return target / "package"
