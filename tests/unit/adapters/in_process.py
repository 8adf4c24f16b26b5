"""The command line in this process."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphmem.adapters.cli import main
from tests.e2e.shell import Folder, Ran


class Shell(Folder):
    """Runs commands in one folder."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[], Any]) -> None:
        super().__init__(folder)
        self._monkeypatch = monkeypatch
        self._read = read

    def run(self, *arguments: str, stdin: str = "", typed: str | None = None, **variables: str) -> Ran:
        """Run a command; with `typed`, its standard input is a terminal."""
        read = io.TextIOWrapper(io.BytesIO((typed or stdin).encode()))
        with self._monkeypatch.context() as patch:
            patch.chdir(self.folder)
            patch.setattr(sys, "stdin", read)
            patch.setattr(read, "isatty", lambda: typed is not None)
            for name, value in variables.items():
                patch.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main(arguments)
        out, err = self._read()
        return Ran(int(ended.value.code or 0), out, err)
