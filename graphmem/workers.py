"""Threads for async code: a memory's own, so that it never waits for the application's, nor they for it."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, TypeVar

T = TypeVar("T")

Lane = Literal["turns", "reads", "jobs"]
"""Storing single turns, which is quick; questions; and what takes long: a lane never waits for another."""

_THREADS: dict[Lane, int] = {"turns": 2, "reads": 4, "jobs": 4}


class Workers:
    """A few threads for each kind of call, started when the first one comes."""

    def __init__(self) -> None:
        self._pools: dict[Lane, ThreadPoolExecutor] = {}
        self._lock = threading.Lock()

    async def run(self, lane: Lane, call: Callable[[], T]) -> T:
        """Make a blocking call on a thread of a lane; if the caller is cancelled before it began, it isn't made."""
        context = contextvars.copy_context()
        return await asyncio.get_running_loop().run_in_executor(self._pool(lane), context.run, call)

    def _pool(self, lane: Lane) -> ThreadPoolExecutor:
        with self._lock:
            if lane not in self._pools:
                self._pools[lane] = ThreadPoolExecutor(_THREADS[lane], thread_name_prefix=f"graphmem-{lane}")
            return self._pools[lane]

    def close(self) -> None:
        """Let the threads end when they have done what they are doing."""
        with self._lock:
            pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            pool.shutdown(wait=False)
