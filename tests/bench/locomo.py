"""Recall of the turns that answer questions about long conversations: LoCoMo (Maharana et al., ACL 2024).

    python tests/bench/locomo.py [--data FILE] [--facts] [--no-captions] [--no-model] [--store URL] [--json]

A conversation is a scope, a turn is a `Turn`. A question's answers are the turns that the file names as its evidence;
questions without any are left out. Recall@k is the mean over questions of the share of the evidence in the first k.
`--facts` adds the observations that the file comes with (an LLM wrote them) as facts of the turns that they name.
`--no-captions` leaves out the captions of photos (a model wrote them).
The last line is one JSON object. See docs/how-to/evaluate.md.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from quality import Stopwatch, opened, options, report

from graphmem import Attachment, Question, Triple, Turn

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("GRAPHMEM_DATA", ROOT.parent / "shared" / "data")) / "locomo_dev.json"
KS = (5, 10, 20, 25, 50)
TURN_ID = re.compile(r"D:?(\d+):(\d+)")

Conversation = Mapping[str, Any]


def scope_of(conversation: Conversation) -> str:
    """Return the scope that a conversation gets."""
    return f"locomo/{conversation['sample_id']}"


def sessions(conversation: Conversation) -> Iterator[tuple[str, datetime, list[dict[str, Any]]]]:
    """Yield the number, the time and the turns of each session, in their order."""
    talk = conversation["conversation"]
    for number in sorted(int(found[1]) for key in talk if (found := re.fullmatch(r"session_(\d+)", key))):
        at = datetime.strptime(talk[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        yield str(number), at, talk[f"session_{number}"]


def turns(conversation: Conversation, *, captions: bool = True) -> list[Turn]:
    """Return the turns; the caption of a photo is its attachment's description."""
    return [
        Turn(
            text=turn["text"],
            speaker=turn["speaker"],
            session_id=session,
            occurred_at=at,
            external_id=turn["dia_id"],
            attachments=_photos(turn) if captions else (),
        )
        for session, at, said in sessions(conversation)
        for turn in said
    ]


def _photos(turn: Mapping[str, Any]) -> tuple[Attachment, ...]:
    caption = turn.get("blip_caption")
    return (Attachment(kind="image", description=caption),) if caption else ()


def questions(conversation: Conversation) -> list[Question]:
    """Return the questions that have evidence; an entry may hold several ids, or one that is no turn's."""
    known = {turn["dia_id"] for _, _, said in sessions(conversation) for turn in said}
    asked: list[Question] = []
    for row in conversation["qa"]:
        named = (f"D{a}:{int(b)}" for entry in row.get("evidence", ()) for a, b in TURN_ID.findall(str(entry)))
        answers = tuple(dict.fromkeys(turn for turn in named if turn in known))
        if answers:
            category, scope = str(row["category"]), scope_of(conversation)
            asked.append(Question(question=row["question"], external_ids=answers, category=category, scope=scope))
    return asked


def observations(conversation: Conversation) -> Iterator[Triple]:
    """Yield the observations as facts about the speaker, one for each turn that an observation names."""
    times = {number: at for number, at, _ in sessions(conversation)}
    for key, of_speakers in conversation["observation"].items():
        at = times[key.split("_")[1]]
        for speaker, observed in of_speakers.items():
            for sentence, named in observed:
                for a, b in TURN_ID.findall(str(named)):
                    yield Triple(
                        subject=speaker,
                        relation="said",
                        object=sentence,
                        fact=sentence,
                        valid_from=at,
                        source=f"D{a}:{int(b)}",
                    )


def main() -> None:
    """Measure and print."""
    parser = options(__doc__ or "")
    parser.add_argument("--data", metavar="FILE", type=Path, default=DATA)
    parser.add_argument("--facts", action="store_true", help="with the observations as facts")
    parser.add_argument("--no-captions", action="store_true", help="without the captions of photos")
    given = parser.parse_args()
    conversations: list[Conversation] = json.loads(given.data.read_text("utf-8"))
    clock, count = Stopwatch(), 0
    with opened(given) as store:
        for conversation in conversations:
            memory, said = store.in_scope(scope_of(conversation)), turns(conversation, captions=not given.no_captions)
            clock(lambda memory=memory, said=said: memory.ingest(said))
            count += len(said)
            if given.facts:
                noted = list(observations(conversation))
                clock(lambda memory=memory, noted=noted: memory.add_facts(noted))
                clock(lambda memory=memory: memory.ingest(()))  # which also indexes the facts
        asked = [question for conversation in conversations for question in questions(conversation)]
        evaluation = store.admin.evaluate(asked, ks=KS)
    told = {
        "facts": given.facts,
        "captions": not given.no_captions,
        "extractor": given.extractor,
        "model": not given.no_model,
    }
    took = {"turns": count, "ingest_s": round(clock.seconds, 1)}
    report("locomo", evaluation, {**told, **took}, as_json=given.json)


if __name__ == "__main__":
    main()
