"""The pool of extractions: turns of a session in order, whoever claimed them."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from graphmem.ingest.pool import ExtractionPool
from graphmem.models import Episode, Scope


def test_a_later_claim_of_another_thread_does_not_overtake_an_earlier_one() -> None:
    turns = [Episode(scope=Scope("tests"), text=f"turn {n}", session_id="s") for n in range(2)]
    waiting, read = list(turns), list[str]()
    claimed, overtaken = threading.Event(), threading.Event()
    pool: ExtractionPool[None] = ExtractionPool(4)

    def claim(_: int) -> list[Episode]:
        if not waiting:
            return []
        turn = waiting.pop(0)
        if turn is turns[0]:
            claimed.set()
            overtaken.wait(0.3)  # time for the other thread, if it may claim now
        return [turn]

    def work(group: Sequence[Episode]) -> None:
        [turn] = group
        read.append(turn.text)
        overtaken.set()

    def run() -> None:
        pool.run(claim, work, None, on_result=lambda _: None, stopping=lambda: False)

    first = threading.Thread(target=run)
    first.start()
    assert claimed.wait(10)
    run()
    first.join()
    assert read == ["turn 0", "turn 1"]
