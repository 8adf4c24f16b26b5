"""What the tests of commands share: the command line in a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.shell import TRIPLES
from tests.unit.adapters.in_process import Shell


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(tmp_path, monkeypatch, capsys.readouterr)


@pytest.fixture
def filled(shell: Shell) -> Shell:
    """A folder with a store of four triples."""
    shell.write("facts.csv", TRIPLES)
    assert shell.run("ingest", "facts.csv", "--extractor", "none").code == 0
    return shell
