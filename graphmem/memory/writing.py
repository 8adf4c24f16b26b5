"""Conversations, documents and ready-made facts go in."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import Any

from graphmem.ingest.load import OnProgress
from graphmem.inputs import ItemLike, TripleLike, to_item, to_limit, to_time
from graphmem.memory.part import Part, Time
from graphmem.models import EpisodeQuery
from graphmem.results import LoadReport


@dataclass(frozen=True, slots=True)
class Receipt:
    """An episode is on disk. ``wait()`` or ``await`` it to have it extracted as well.

    Attributes
    ----------
    episode_id
        Its id, or that of the one with the same `external_id`.
    created
        False if the `external_id` was known: nothing was stored.
    """

    episode_id: str
    created: bool
    _memory: Writing

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the episode is extracted or out of tries; return False if `timeout` seconds were not enough."""
        return self._memory.flush(timeout, episode_id=self.episode_id) == 0

    def __await__(self) -> Generator[Any, None, bool]:
        return asyncio.to_thread(self.wait).__await__()


class Writing(Part):
    """What fills a memory."""

    def remember(self, turn: ItemLike, **fields: Any) -> Receipt:
        """Store a turn or document durably and return at once; it is extracted behind your back.

        Parameters
        ----------
        turn
            A `Turn`, a `Document`, a mapping of their fields, or just the text.
        **fields
            Fields of a `Turn` (with `title`: of a `Document`), if `turn` is a text or mapping.

        Returns
        -------
        Receipt
            The episode is on disk; ``await`` it, or call `flush`, to have its facts as well.

        Raises
        ------
        InvalidInput
            If a field doesn't fit, or a time has no zone.
        """
        episode = self._engine.loader.to_episode(self.scope, to_item(turn, **fields))
        [(episode_id, created)] = self._engine.backend.add_episodes(self.scope, [episode])
        self._engine.wake(self.scope)
        return Receipt(episode_id, created, self)

    def ingest(
        self, items: Iterable[ItemLike], *, skip_invalid: bool = False, on_progress: OnProgress | None = None
    ) -> LoadReport:
        """Store and extract many turns or documents; memory doesn't grow with their number.

        It can be repeated after an interruption: items with an `external_id` that is known are not stored again, and
        what was stored but not extracted is extracted now.

        Parameters
        ----------
        items
            As in `remember`; read lazily.
        skip_invalid
            Leave out items that can't be taken and report them, where an error would end the load.
        on_progress
            Called with a `Progress` after each batch that was extracted or indexed.
        """
        report = self._engine.loader.ingest(
            self.scope, items, skip_invalid=skip_invalid, on_progress=on_progress, index=self._engine.index
        )
        self._engine.wake(self.scope)
        self._engine.count_processed(self.scope, report.extracted)
        return report

    def add_facts(
        self,
        triples: Iterable[TripleLike],
        *,
        occurred_at: Time | None = None,
        skip_invalid: bool = False,
        on_progress: OnProgress | None = None,
    ) -> LoadReport:
        """Store ready-made facts; no language model has a part in it.

        Parameters
        ----------
        triples
            `Triple` objects, mappings of their fields, or (subject, relation, object); read lazily.
        occurred_at
            When they were stated: `valid_from` of those that name none. Defaults to now.
        skip_invalid, on_progress
            As in `ingest`. A batch (setting `batch_size`) is one transaction.
        """
        report = self._engine.loader.add_facts(
            self.scope,
            triples,
            occurred_at=None if occurred_at is None else to_time(occurred_at),
            skip_invalid=skip_invalid,
            on_progress=on_progress,
        )
        self._engine.wake(self.scope)
        self._engine.count_processed(self.scope, report.stored)
        return report

    def backfill(self, limit: int | None = None, *, on_progress: OnProgress | None = None) -> LoadReport:
        """Extract what is stored but waiting, at most `limit` episodes of this scope."""
        limit = None if limit is None else to_limit(limit)
        report = self._engine.loader.extract_waiting(self.scope, limit, on_progress)
        if report.extracted:
            self._engine.wake(self.scope)
            self._engine.count_processed(self.scope, report.extracted)
        return report

    def flush(self, timeout: float | None = None, *, episode_id: str | None = None) -> int:
        """Wait until nothing of this scope waits for extraction any more, and lend a hand.

        Parameters
        ----------
        timeout
            Seconds; None waits as long as it takes, retries included.
        episode_id
            Wait for this episode only.

        Returns
        -------
        int
            Episodes still waiting: 0 unless the time ran out or there is no extractor (then, of one or more, 1).
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        ids = None if episode_id is None else (episode_id,)
        query = EpisodeQuery(ids=ids, state="pending")
        pause = 0.002
        while waiting := len(self._engine.backend.find_episodes([self.scope], query, limit=1)):
            if not self._engine.can_extract or (deadline is not None and time.monotonic() >= deadline):
                return waiting
            if self.backfill(self._engine.extract_batch).extracted == 0:
                time.sleep(pause)  # others hold them, or they wait for their next try
                pause = min(pause * 2, 0.25)
        return 0
