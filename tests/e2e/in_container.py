"""Ingest a file of toy turns and say how many are stored: what test_sqlite_container.py runs, and kills."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from toy import ToyExtractor

from graphmem import GraphMemory


def main(url: str, file: str) -> None:
    turns = [json.loads(line) for line in Path(file).read_text("utf-8").splitlines()]
    # claims of a killed container expire: the next one can't know that it is gone
    with GraphMemory.open(url, extractor=ToyExtractor(), background=False, batch_size=20, claim_seconds=5) as memory:
        memory.ingest(turns, on_progress=lambda progress: print(progress.received, flush=True))
        memory.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
