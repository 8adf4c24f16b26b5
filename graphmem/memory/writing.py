"""Storing conversations, documents and ready-made facts."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from graphmem.engine import queue_error
from graphmem.errors import InvalidInput
from graphmem.ingest.bulk import OnProgress
from graphmem.inputs import ItemLike, TripleLike, to_item, to_limit, to_time
from graphmem.memory.part import Part, Time
from graphmem.models import EpisodeQuery
from graphmem.results import LoadReport, QueueError

if TYPE_CHECKING:
    from graphmem.ingest.formats.source import DateOrder, Format
    from graphmem.memory.asynchronous import Asynchronous


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
    _memory: Asynchronous

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the episode is extracted or out of tries; return False if `timeout` seconds were not enough."""
        return self._memory.flush(timeout, episode_id=self.episode_id) == 0

    def __await__(self) -> Generator[Any, None, bool]:
        return self._settled().__await__()

    async def _settled(self) -> bool:
        return await self._memory.aflush(episode_id=self.episode_id) == 0


class Writing(Part):
    """What fills a memory."""

    def remember(self, turn: ItemLike, **fields: Any) -> Receipt:
        """Store a turn or document durably and return immediately; extraction runs in the background.

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
        return Receipt(episode_id, created, cast("Asynchronous", self))

    def ingest(
        self,
        items: Iterable[ItemLike] | Path,
        *,
        file_format: Format | None = None,
        timezone: tzinfo | str | None = None,
        date_order: DateOrder | None = None,
        columns: Mapping[str, str] | None = None,
        skip_invalid: bool = False,
        on_progress: OnProgress | None = None,
    ) -> LoadReport:
        """Store and extract many turns or documents; memory doesn't grow with their number.

        It can be repeated after an interruption: items with an `external_id` that is known are not stored again, and
        what was stored but not extracted is extracted now.

        Parameters
        ----------
        items
            As in `remember`; read lazily. Or the `pathlib.Path` of a file, a folder or a zip archive, which is read as
            `graphmem ingest` does; a plain text is no path.
        file_format
            What the files hold, such as ``"whatsapp"``; told by themselves where None.
        timezone
            Zone of times in files that state none, such as ``"Europe/Berlin"``.
        date_order
            Order of day, month and year in a WhatsApp export that doesn't tell.
        columns
            Columns of a CSV file by the field of a turn that they hold.
        skip_invalid
            Leave out items and lines that can't be taken and report them, where an error would end the load.
        on_progress
            Called with a `Progress` after each batch that was extracted or indexed.

        Raises
        ------
        InvalidInput
            If an item or line can't be taken, a path leads to nothing that can be read, or there is a parameter for
            files and no path.
        """
        if isinstance(items, Path):
            from graphmem.ingest.files import FileLoad, FileOptions, find_files

            options = FileOptions(file_format, timezone, date_order, columns or {})
            load = FileLoad(find_files([items]), options, self._engine.ontology.short_names, skip_invalid=skip_invalid)
            return load.run(self, on_progress)
        if any(option is not None for option in (file_format, timezone, date_order, columns)):
            raise InvalidInput(
                "ingest: file_format, timezone, date_order and columns are for files; give the pathlib.Path of one"
            )
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

    def backfill(
        self,
        limit: int | None = None,
        *,
        failed: bool = False,
        again: bool = False,
        on_progress: OnProgress | None = None,
    ) -> LoadReport:
        """Extract what is stored but waiting in this scope; at once, where extraction had paused.

        Parameters
        ----------
        limit
            Episodes at most.
        failed
            Try those that are out of tries as well (`dead_letters`), with all of their tries.
        again
            Extract everything again, for example with a better extractor: facts of an episode that the new extraction
            doesn't state are retracted, which `history` shows, and what had ended because of them goes on. An episode
            that fails keeps its old facts. Ready-made facts stay.
        on_progress
            As in `ingest`.

        Raises
        ------
        InvalidInput
            If `failed` or `again` is asked for and there is no extractor.
        """
        limit = None if limit is None else to_limit(limit)
        if again:
            self._engine.queue.read_again(self.scope)
        if failed:
            self._engine.queue.retry_failed(self.scope)
        if self._engine.can_extract:
            self._engine.queue.retry_now([self.scope])
        return self._extract_waiting(limit, on_progress)

    def dead_letters(self, *, limit: int = 100, after: str = "") -> list[QueueError]:
        """Return the episodes that are out of tries, with their errors; `backfill` with `failed` tries them again.

        Parameters
        ----------
        limit
            Episodes at most.
        after
            The id of the last episode of the page before.
        """
        query = EpisodeQuery(state="failed")
        found = self._engine.backend.find_episodes([self.scope], query, after=after, limit=to_limit(limit))
        return [queue_error(episode) for episode in found]

    def flush(self, timeout: float | None = None, *, episode_id: str | None = None) -> int:
        """Wait until nothing of this scope waits for extraction any more, and help with it.

        Parameters
        ----------
        timeout
            Seconds; None waits as long as it takes, retries included.
        episode_id
            Wait for this episode only.

        Returns
        -------
        int
            Episodes still waiting: 0 unless the time ran out, there is no extractor, or extraction is paused until
            its configuration is repaired (then, of one or more, 1).
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        pause = 0.002
        while waiting := self._waiting(episode_id):
            if self._cannot_extract or (deadline is not None and time.monotonic() >= deadline):
                return waiting
            if not self._help_to_extract():
                time.sleep(pause)  # others hold them, or they wait for their next try
                pause = min(pause * 2, 0.25)
        return 0

    @property
    def _cannot_extract(self) -> bool:
        """Whether waiting for extraction would never end."""
        return not self._engine.can_extract or self._engine.is_paused

    def _waiting(self, episode_id: str | None) -> int:
        query = EpisodeQuery(ids=None if episode_id is None else (episode_id,), state="pending")
        return len(self._engine.backend.find_episodes([self.scope], query, limit=1))

    def _help_to_extract(self) -> int:
        return self._extract_waiting(self._engine.extract_batch, None).extracted

    def _extract_waiting(self, limit: int | None, on_progress: OnProgress | None) -> LoadReport:
        report = self._engine.loader.extract_waiting(self.scope, limit, on_progress)
        if report.extracted:
            self._engine.wake(self.scope)
            self._engine.count_processed(self.scope, report.extracted)
        return report
