"""Facts that are right: what is stored of a conversation when a capable reader answers the prompts.

    python tests/bench/facts.py --answers ANSWERS.jsonl --missing FOLDER [--pace bulk|live|N] [--turns N]
        [--data FOLDER]

Reads a conversation, by default `lumio` of the shared data, replays the answers (`played`) and prints the figures of
`evaluate_facts`, calls, tokens and dollars per 1,000 turns. A prompt without an answer ends the run with the name of
its file. ``--pace``: all turns at once, each alone, or N at a time.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from played import Played, read_answers

from graphmem import GraphMemory

DATA = Path(os.environ.get("GRAPHMEM_DATA", Path(__file__).parents[2] / "../shared/data")) / "lumio"
KEY = ("facts.jsonl", "never.jsonl", "questions.jsonl")

# dollars per million tokens of a small model: input, cached input, output
PRICES = (0.15, 0.075, 0.60)


def turns_of(folder: Path) -> list[dict[str, Any]]:
    """Return the turns of the conversation in order."""
    return [json.loads(line) for line in (folder / "turns.jsonl").read_text("utf-8").splitlines()]


def read_all(memory: GraphMemory, turns: list[dict[str, Any]], pace: str) -> None:
    """Add turns to a memory, all at once or in batches of a given size, and extract them."""
    if pace == "bulk":
        memory.ingest(turns)
        return
    step = 1 if pace == "live" else int(pace)
    for at in range(0, len(turns), step):
        for turn in turns[at : at + step]:
            memory.remember(turn)
        memory.admin.backfill()


def costs(model: Played, turns: int) -> dict[str, float]:
    """Return calls, tokens and dollars per 1,000 turns; the prefix of a call is cached after the first."""
    per = 1000 / turns
    prefix, data, reply = model.prefix_tokens * per, model.data_tokens * per, model.reply_tokens * per
    fresh, cached, out = PRICES
    return {
        "calls_per_turn": round(model.calls / turns, 3),
        "prefix_tokens": round(prefix),
        "data_tokens": round(data),
        "reply_tokens": round(reply),
        "dollars": round((prefix * fresh + data * fresh + reply * out) / 1e6, 3),
        "dollars_cached": round((prefix * cached + data * fresh + reply * out) / 1e6, 3),
    }


def main() -> None:
    """Run the benchmark and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=Path, required=True)
    parser.add_argument("--missing", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=DATA, help="folder with turns.jsonl and the key")
    parser.add_argument("--pace", default="bulk")
    parser.add_argument("--turns", type=int, default=4, help="turns per call")
    parser.add_argument("--embeddings", default="none")
    parser.add_argument("--wrong", action="store_true", help="list what is wrong")
    given = parser.parse_args()
    model = Played(answers=read_answers(given.answers), missing=given.missing)
    turns = turns_of(given.data)
    with GraphMemory.open(
        "memory://facts",
        extractor="llm",
        llm=model,
        embeddings=given.embeddings,
        background=False,
        extraction_concurrency=1,
        extraction_turns=given.turns,
    ) as memory:
        read_all(memory, turns, given.pace)
        stats = memory.stats()
        if stats.pending_episodes or stats.failed_episodes:
            files = sorted(given.missing.glob("*.txt"), key=lambda file: file.stat().st_mtime)
            print(f"{stats.pending_episodes} turns wait; first prompt: {files[0] if files else stats.errors[:1]}")
            return
        found = memory.admin.evaluate_facts([given.data / name for name in KEY])
    figures = {
        "verdicts": found.verdicts,
        "never_current": f"{len(found.never_current)} of {found.never}",
        "answered": f"{found.answered} of {found.questions}",
        "answered_clean": found.answered_clean,
        "stored": found.stored,
        **costs(model, len(turns)),
    }
    if given.wrong:
        for line in (*found.facts, *found.never_current, *found.unanswered):
            print(line)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
