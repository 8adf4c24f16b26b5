"""The calls for async code: each runs the method of its name on a worker thread."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from graphmem.communities.found import FoundCommunity, Refreshed
from graphmem.inputs import ItemLike, TripleLike
from graphmem.memory.exploring import Exploring
from graphmem.memory.part import Time
from graphmem.memory.reading import Reading
from graphmem.memory.recalling import Recalling
from graphmem.memory.writing import Receipt, Writing
from graphmem.models import CommunityAlgorithm
from graphmem.rag.found import SearchResults
from graphmem.results import Diff, Fact, LoadReport, RecallResult, Trace


class Asynchronous(Writing, Recalling, Reading, Exploring):
    """The same calls with an ``a`` in front."""

    async def aremember(self, turn: ItemLike, **fields: Any) -> Receipt:
        """`remember` for async code; ``await (await memory.aremember(…))`` waits for the extraction too."""
        return await asyncio.to_thread(self.remember, turn, **fields)

    async def aingest(self, items: Iterable[ItemLike], **options: Any) -> LoadReport:
        """`ingest` for async code."""
        return await asyncio.to_thread(self.ingest, items, **options)

    async def aadd_facts(self, triples: Iterable[TripleLike], **options: Any) -> LoadReport:
        """`add_facts` for async code."""
        return await asyncio.to_thread(self.add_facts, triples, **options)

    async def aflush(self, timeout: float | None = None) -> int:
        """`flush` for async code."""
        return await asyncio.to_thread(self.flush, timeout)

    async def arecall(self, query: str, **options: Any) -> RecallResult:
        """`recall` for async code."""
        return await asyncio.to_thread(self.recall, query, **options)

    async def awhy(self, trace_id: str, **options: Any) -> Trace:
        """`why` for async code."""
        return await asyncio.to_thread(self.why, trace_id, **options)

    async def arecalls(self, name: str | None = None, **options: Any) -> list[Trace]:
        """`recalls` for async code."""
        return await asyncio.to_thread(self.recalls, name, **options)

    async def asearch(self, query: str, **options: Any) -> SearchResults:
        """`search` for async code."""
        return await asyncio.to_thread(self.search, query, **options)

    async def acontext(self, query: str, **options: Any) -> str:
        """`context` for async code."""
        return await asyncio.to_thread(self.context, query, **options)

    async def afacts(self, name: str, **options: Any) -> tuple[Fact, ...]:
        """`facts` for async code."""
        return await asyncio.to_thread(self.facts, name, **options)

    async def ahistory(self, source: str, relation: str | None = None, **options: Any) -> tuple[Fact, ...]:
        """`history` for async code."""
        return await asyncio.to_thread(self.history, source, relation, **options)

    async def adiff(self, start: Time, end: Time, **options: Any) -> Diff:
        """`diff` for async code."""
        return await asyncio.to_thread(self.diff, start, end, **options)

    async def arefresh_communities(self, algorithm: CommunityAlgorithm | None = None) -> Refreshed:
        """`refresh_communities` for async code."""
        return await asyncio.to_thread(self.refresh_communities, algorithm)

    async def acommunities(self, query: str | None = None, **options: Any) -> list[FoundCommunity]:
        """`communities` for async code."""
        return await asyncio.to_thread(self.communities, query, **options)
