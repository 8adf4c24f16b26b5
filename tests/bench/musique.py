"""Recall of the passages that answer questions over several hops: MuSiQue (Trivedi et al., TACL 2022).

    python tests/bench/musique.py [--passages FILE] [--questions FILE] [--triples | --only-triples] [--no-model]
        [--store URL] [--json]

A passage is a `Document` of one memory. Recall@k is the mean over questions of the share of the supporting passages in
the first k. `--triples` adds the triples that the file comes with (an LLM wrote them) as facts of their passages;
`--only-triples` stores nothing else, so that the triples of a passage are its episode.
The last line is one JSON object. See docs/how-to/evaluate.md.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from quality import Stopwatch, opened, options, report

from graphmem import Document, Question

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("GRAPHMEM_DATA", ROOT.parent / "shared" / "data"))
KS = (2, 5, 10, 20)

Passage = Mapping[str, Any]


def documents(passages: Sequence[Passage]) -> list[Document]:
    """Return the passages; their place in the file is their id."""
    return [Document(title=p["title"], text=p["text"], external_id=str(i)) for i, p in enumerate(passages)]


def triples(passages: Sequence[Passage]) -> Iterator[dict[str, str]]:
    """Yield the triples of all passages."""
    for i, passage in enumerate(passages):
        for triple in passage["triples"]:
            if len(triple) == 3:
                subject, relation, target = triple
                yield {"subject": subject, "relation": relation, "object": target, "source": str(i)}


def questions(rows: Sequence[Mapping[str, Any]], passages: Sequence[Passage]) -> list[Question]:
    """Return the questions with the ids of the passages that support their answers."""
    ids = {(passage["title"], passage["text"]): str(i) for i, passage in enumerate(passages)}
    return [
        Question(
            question=row["question"],
            external_ids=tuple(ids[support["title"], support["text"]] for support in row["supporting"]),
            category=str(row["id"]).split("__")[0],
        )
        for row in rows
    ]


def main() -> None:
    """Measure and print."""
    parser = options(__doc__ or "")
    parser.add_argument("--passages", metavar="FILE", type=Path, default=DATA / "musique_passages_openie.jsonl")
    parser.add_argument("--questions", metavar="FILE", type=Path, default=DATA / "musique_dev_questions.json")
    triples_in = parser.add_mutually_exclusive_group()
    triples_in.add_argument("--triples", action="store_true", help="with the triples of the file as facts")
    triples_in.add_argument("--only-triples", action="store_true", help="the triples in place of the passages")
    given = parser.parse_args()
    passages = [json.loads(line) for line in given.passages.read_text("utf-8").splitlines()]
    asked = questions(json.loads(given.questions.read_text("utf-8")), passages)
    clock = Stopwatch()
    with opened(given) as memory:
        if not given.only_triples:
            clock(lambda: memory.ingest(documents(passages)))
        if given.triples or given.only_triples:
            # what an LLM wrote isn't always a name: such triples are left out
            clock(lambda: memory.add_facts(triples(passages), skip_invalid=True))
            clock(lambda: memory.ingest(()))  # which also indexes the facts
        evaluation = memory.admin.evaluate(asked, ks=KS)
    told = {
        "triples": given.triples,
        "only_triples": given.only_triples,
        "extractor": given.extractor,
        "model": not given.no_model,
    }
    took = {"passages": len(passages), "ingest_s": round(clock.seconds, 1)}
    report("musique", evaluation, {**told, **took}, as_json=given.json)


if __name__ == "__main__":
    main()
