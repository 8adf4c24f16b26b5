"""What is built: the wheel holds every file of the packages, and the sdist builds the same wheel."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the sdist, and the wheel out of the sdist, into a folder."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def package_files() -> set[str]:
    """Return the files of the packages by their place in the wheel."""
    roots = [(ROOT, ROOT / "graphmem")]
    roots += [(ROOT / base, folder) for base in ("backends", "cypher") for folder in (ROOT / base).glob("graphmem_*")]
    return {
        path.relative_to(base).as_posix()
        for base, folder in roots
        for path in folder.rglob("*")
        if path.is_file() and path.suffix not in {".pyc", ".pyo"}
    }


@pytest.mark.slow
def test_wheel_holds_every_file_of_the_packages_and_no_other(built: Path) -> None:
    [wheel] = built.glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == package_files()


def test_sdist_holds_the_tests_and_no_environment(built: Path) -> None:
    [sdist] = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert {"tests/e2e/test_wheel.py", "requirements.lock", "Makefile", "LICENSE"} <= names
    assert [name for name in names if name.startswith((".venv", ".git/", "dist/"))] == []


@pytest.mark.slow
def test_readme_in_the_metadata_has_no_relative_links(built: Path) -> None:
    [wheel] = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        [metadata] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        text = archive.read(metadata).decode()
    assert "# graphmem" in text
    assert re.findall(r"\]\((?!\w+:)[^)]*\)", text) == []
