"""The models of a memory are loaded while `graphmem mcp` serves it, and disturb nothing."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from graphmem import Administration, GraphMemory
from graphmem.adapters.cli import main
from graphmem.adapters.cli import mcp as module
from graphmem.adapters.cli.mcp import loading
from graphmem.adapters.mcp import MemoryServer


class Administered:
    """A memory whose models are loaded by a function."""

    def __init__(self, load: Callable[[], None]) -> None:
        self.load_models = load

    @property
    def admin(self) -> Administered:
        """Return what loads."""
        return self


def memory_with(load: Callable[[], None]) -> GraphMemory:
    return cast("GraphMemory", Administered(load))


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_GREETING", 0.0)


def test_the_server_serves_while_models_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, served = threading.Event(), threading.Event()

    def load(_: Administration) -> None:
        begun.set()
        assert served.wait(30)

    async def serve(_: MemoryServer) -> None:
        assert await asyncio.to_thread(begun.wait, 30)
        served.set()

    monkeypatch.setattr(Administration, "load_models", load)
    monkeypatch.setattr(MemoryServer, "run_stdio_async", serve)
    with pytest.raises(SystemExit) as ended:
        main(["mcp", "--store", "memory://"])
    assert not ended.value.code
    assert served.is_set()


def test_a_store_that_the_server_creates_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def serve(_: MemoryServer) -> None: ...

    monkeypatch.setattr(MemoryServer, "run_stdio_async", serve)
    told: list[bool] = []
    for _ in range(2):
        with pytest.raises(SystemExit):
            main(["mcp", "--store", f"sqlite:///{tmp_path}/new.db"])
        out, err = capsys.readouterr()
        assert out == ""
        told.append("new.db yet; it is created" in " ".join(err.split()))
    assert told == [True, False]


def test_a_model_that_fails_is_tried_once_and_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    tried: list[int] = []
    failed = threading.Event()

    def load() -> None:
        tried.append(1)
        failed.set()
        raise OSError("no such file")

    with loading(memory_with(load)):
        assert failed.wait(30)
    assert tried == [1]
    assert not caplog.records  # a warning would stand in what the client shows of the server


def test_a_server_that_ends_before_loading_loads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_GREETING", 60.0)
    loaded: list[int] = []
    with loading(memory_with(lambda: loaded.append(1))):
        pass
    assert loaded == []


def test_the_end_does_not_wait_for_a_model_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOADING", 0.05)
    begun, over = threading.Event(), threading.Event()

    def load() -> None:
        begun.set()
        over.wait(60)

    with loading(memory_with(load)):
        assert begun.wait(30)
        ended = time.monotonic()
    assert time.monotonic() - ended < 30
    over.set()
