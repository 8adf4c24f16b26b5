"""Async forms of all methods, which run on threads of the memory."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from graphmem.background import Lane
from graphmem.memory.exploring import Exploring
from graphmem.memory.keeping import Keeping
from graphmem.memory.part import Part
from graphmem.memory.reading import Reading
from graphmem.memory.recalling import Recalling
from graphmem.memory.visualizing import Visualizing
from graphmem.memory.writing import Writing

P = ParamSpec("P")
M = TypeVar("M", bound=Part)
R = TypeVar("R")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 5.0  # seconds between looks at what other processes extract


def in_thread(
    method: Callable[Concatenate[M, P], R], lane: Lane = "reads"
) -> Callable[Concatenate[M, P], Coroutine[Any, Any, R]]:
    """Return the async form of a method: it runs on a thread of the memory, in a lane of its kind."""
    name = method.__name__

    @wraps(method)
    async def run(self: M, *args: P.args, **kwargs: P.kwargs) -> R:
        call: Callable[[], R] = partial(getattr(self, name), *args, **kwargs)
        return await self._engine.workers.run(lane, call)  # pyright: ignore[reportPrivateUsage]

    run.__name__ = f"a{name}"
    run.__qualname__ = f"Asynchronous.a{name}"
    run.__doc__ = f"`{name}` for async code.\n\n        {method.__doc__}"
    return run


class Asynchronous(Writing, Recalling, Reading, Exploring, Keeping, Visualizing):
    """The same calls with an ``a`` in front.

    A task that is cancelled while it waits for one leaves at once; what was begun is finished on its thread.
    """

    aremember = in_thread(Writing.remember, "turns")
    aingest = in_thread(Writing.ingest, "jobs")
    aadd_facts = in_thread(Writing.add_facts, "jobs")
    abackfill = in_thread(Writing.backfill, "jobs")
    adead_letters = in_thread(Writing.dead_letters)
    arecall = in_thread(Recalling.recall)
    awhy = in_thread(Recalling.why)
    arecalls = in_thread(Recalling.recalls)
    asearch = in_thread(Recalling.search)
    acontext = in_thread(Recalling.context)
    aentities = in_thread(Reading.entities)
    aentity_counts = in_thread(Reading.entity_counts)
    afacts = in_thread(Reading.facts)
    ahistory = in_thread(Reading.history)
    adiff = in_thread(Reading.diff)
    aepisodes = in_thread(Reading.episodes)
    asession = in_thread(Reading.session)
    arefresh_communities = in_thread(Exploring.refresh_communities, "jobs")
    acommunities = in_thread(Exploring.communities)
    amerge = in_thread(Keeping.merge, "jobs")
    aunmerge = in_thread(Keeping.unmerge, "jobs")
    amerges = in_thread(Keeping.merges)
    aforget = in_thread(Keeping.forget, "jobs")
    aclear = in_thread(Keeping.clear, "jobs")
    aevict = in_thread(Keeping.evict, "jobs")
    adecay = in_thread(Keeping.decay, "jobs")
    aexport = in_thread(Keeping.export, "jobs")
    aimport_ = in_thread(Keeping.import_, "jobs")
    achecksum = in_thread(Keeping.checksum, "jobs")
    astats = in_thread(Keeping.stats)
    ascopes = in_thread(Keeping.scopes)
    adoctor = in_thread(Keeping.doctor)
    aevaluate = in_thread(Keeping.evaluate, "jobs")
    areindex = in_thread(Keeping.reindex, "jobs")
    avisualize = in_thread(Visualizing.visualize)

    async def aflush(self, timeout: float | None = None, *, episode_id: str | None = None) -> int:
        """`flush` for async code.

        While it waits it holds no thread. Where nothing is extracted in the background, it extracts on a thread of the
        memory.
        """
        engine, pause = self._engine, _FIRST_PAUSE
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            with engine.watching(episode_id) as settled:
                waiting = await engine.workers.run("reads", partial(self._waiting, episode_id))
                left = None if deadline is None else deadline - time.monotonic()
                if not waiting or self._cannot_extract or (left is not None and left <= 0):
                    return waiting
                if not engine.extracts_by_itself and await engine.workers.run("jobs", self._help_to_extract):
                    continue
                await asyncio.wait([asyncio.wrap_future(settled)], timeout=pause if left is None else min(pause, left))
                pause = min(pause * 2, _LONGEST_PAUSE)

    async def aclose(self) -> None:
        """`close` for async code."""
        await self._engine.workers.run("jobs", self._engine.close)
