"""Python's cyclic garbage collector, paused where a batch makes very many objects of which none is garbage.

The collector goes through the young objects each time that so many more were made, and through all objects of the
process each time that these have grown by a quarter: a quarter of the processor's time of loading triples, for nothing.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Generator
from contextlib import contextmanager


class _Pauses:
    """The pauses of the threads of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._was_on = False

    @contextmanager
    def paused(self) -> Generator[None]:
        """Pause the collector while the block runs; what isn't in a cycle is freed as ever.

        For batches of a bounded size. Threads may pause it at once: the last to end sets it going, if it was going.
        """
        with self._lock:
            if self._count == 0:
                self._was_on = gc.isenabled()
                gc.disable()
            self._count += 1
        try:
            yield
        finally:
            with self._lock:
                self._count -= 1
                if self._count == 0 and self._was_on:
                    gc.enable()


paused = _Pauses().paused
