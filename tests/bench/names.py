"""Precision and recall of resolution on 300 pairs of names at the shipped thresholds, without a language model.

    python -m tests.bench.names [--half looked-at|kept] [--wrong]

Each line of tests/data/name_pairs.tsv is a known name, another name of the scope, and a text with a new name, written
to a scope of its own as extraction writes it: does the new name become the known entity? Odd lines were looked at while
rules were written, even lines were kept for one measurement at the end. The judge answers nothing and records which
pairs it is asked about.
"""

from __future__ import annotations

import argparse
import csv
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from graphmem.embed import Embedder, choose_embeddings
from graphmem.ingest.entity_matching import SimilarEntities
from graphmem.ingest.interpretation import read_extraction
from graphmem.ingest.write import Writer
from graphmem.models import Episode, Scope
from graphmem.ontology import DEFAULT_ONTOLOGY
from graphmem.protocols import ExtractedEdge, ExtractedEntity, Extraction, GraphBackend
from graphmem.registry import open_backend
from graphmem.settings import Settings

PAIRS = Path(__file__).parents[1] / "data" / "name_pairs.tsv"
Half = Literal["looked-at", "kept"]


@dataclass(frozen=True)
class Pair:
    """A known and a new name, with their types, another name of the scope, and the text with the new one."""

    line: int
    same: bool
    kind: str
    known: str
    known_type: str
    new: str
    new_type: str
    other: str
    speaker: str
    text: str


@dataclass
class Counts:
    """Pairs by whether they are the same, were merged, and were put to the judge."""

    same: int = 0
    different: int = 0
    merged: int = 0
    merged_wrongly: int = 0
    asked: int = 0
    asked_in_vain: int = 0
    wrong: list[tuple[Pair, bool]] = field(default_factory=list["tuple[Pair, bool]"])

    @property
    def precision(self) -> float:
        """Share of the merged pairs that are the same."""
        return self.merged / max(1, self.merged + self.merged_wrongly)

    @property
    def recall(self) -> float:
        """Share of the same pairs that are merged."""
        return self.merged / max(1, self.same)

    @property
    def reach(self) -> float:
        """Share of the same pairs that are merged or put to the judge."""
        return (self.merged + self.asked) / max(1, self.same)


def read_pairs(half: Half | None = None) -> list[Pair]:
    """Return the pairs of a half, or all."""
    with PAIRS.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    pairs: list[Pair] = []
    for line, row in enumerate(rows, 1):
        if half is None or (half == "looked-at") == (line % 2 == 1):
            known_type, _, new_type = row["type"].partition(">")
            speaker, _, text = row["text"].partition(": ")
            names = {key: row[key] for key in ("kind", "known", "new")}
            types = {"known_type": known_type, "new_type": new_type or known_type}
            told = {"other": row["others"], "speaker": speaker, "text": text}
            pairs.append(Pair(line=line, same=row["same"] == "1", **names, **types, **told))
    return pairs


def measure(pairs: Iterable[Pair], embedder: Embedder | None) -> Counts:
    """Resolve the new name of each pair in a scope of its own and count what became of it."""
    backend, counts, settings = open_backend("memory://"), Counts(), Settings()
    asked: list[tuple[str, str]] = []

    def ask(new: Sequence[str], known: Sequence[str]) -> Sequence[tuple[int, int]]:
        asked.extend((n, k) for n in new for k in known)
        return []

    similar = None
    if embedder is not None:
        similar = SimilarEntities(
            backend,
            embedder,
            ask,
            merge_at=settings.resolve_merge_similarity,
            ask_at=settings.resolve_ask_similarity,
            most_questions=settings.resolve_questions,
        )
    writer = Writer(backend, DEFAULT_ONTOLOGY, None, similar)
    for pair in pairs:
        scope = Scope("names", str(pair.line))
        first = _tell(backend, writer, scope, [(pair.known, pair.known_type), (pair.other, pair.known_type)])
        asked.clear()
        said = [(pair.new, pair.new_type), (pair.speaker, "person")]
        then = _tell(backend, writer, scope, said if pair.new != pair.speaker else said[:1], pair)
        merged = then[pair.new] == first[pair.known]
        was_asked = any(k == pair.known and n.startswith(pair.new) for n, k in asked)
        _count(counts, pair, merged=merged, asked=was_asked and not merged)
    return counts


def _tell(
    backend: GraphBackend, writer: Writer, scope: Scope, names: Sequence[tuple[str, str]], pair: Pair | None = None
) -> dict[str, str]:
    """Write an episode with names and types, and with the text of a pair; return the entity of each name."""
    at = datetime(2026, 1, 1 if pair is None else 2, tzinfo=UTC)
    speaker, text = (names[-1][0], "…") if pair is None else (pair.speaker, pair.text)
    episode = Episode(scope=scope, text=text, speaker=speaker, session_id="s", occurred_at=at)
    backend.add_episodes(scope, [episode])
    edges = tuple(ExtractedEdge(names[0][0], "is named with", other) for other, _ in names[1:])
    entities = tuple(ExtractedEntity(name, kind) for name, kind in names)
    shorts = frozenset(name.lower() for name, _ in names if len(name) < 3)
    extraction = Extraction(entities, edges, short_names=shorts)
    writer.write(scope, [read_extraction(episode, extraction, DEFAULT_ONTOLOGY, Counter())])
    return {m.surface: m.entity_id for m in backend.all_mentions([scope], episode_ids=[episode.id])}


def _count(counts: Counts, pair: Pair, *, merged: bool, asked: bool) -> None:
    if pair.same:
        counts.same += 1
        counts.merged += merged
        counts.asked += asked
    else:
        counts.different += 1
        counts.merged_wrongly += merged
        counts.asked_in_vain += asked
    if pair.same != merged:
        counts.wrong.append((pair, asked))


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=["looked-at", "kept"])
    parser.add_argument("--wrong", action="store_true", help="list the pairs that are merged wrongly or not merged")
    given = parser.parse_args()
    model = choose_embeddings("minilm")
    embedder = None if model is None else Embedder(model, timeout=120)
    pairs = read_pairs(given.half)
    for name, used in (("names and aliases", None), ("with vectors", embedder)):
        found = measure(pairs, used)
        print(f"{name}: precision {found.precision:.3f} ({found.merged_wrongly} of {found.different} merged wrongly)")
        print(f"    recall {found.recall:.3f} of {found.same}; merged or put to a judge {found.reach:.3f}")
        print(f"    different pairs put to a judge: {found.asked_in_vain}")
    if given.wrong:
        for pair, asked in found.wrong:
            outcome = "asked" if asked else "apart" if pair.same else "merged"
            print(f"{pair.line}\t{outcome}\t{pair.kind}\t{pair.known}\t{pair.new}")


if __name__ == "__main__":
    main()
