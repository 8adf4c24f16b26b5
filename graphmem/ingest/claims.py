"""Owners of claims of episodes, which tell in which process a round of the queue runs."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from graphmem.models import new_id

live_owners: set[str] = set()
"""Owners of the active rounds of this process."""

failed_owners: set[str] = set()
"""Owners of the rounds of this process that ended with an exception and may have left claims.

Not told by their process id: a container that is started again has the same one.
"""


@contextmanager
def live_owner() -> Generator[str]:
    """Return the owner of a round that is active in the block."""
    owner = f"{process_prefix()}{new_id()}"
    live_owners.add(owner)
    try:
        yield owner
    except BaseException:
        failed_owners.add(owner)
        raise
    finally:
        live_owners.discard(owner)


def process_prefix() -> str:
    """Return the first part of the owners of all claims of this process."""
    return f"{_machine()}:{os.getpid()}:"


@cache
def _machine() -> str:
    """Return the first part of the owners of all claims whose process ids this process can look up.

    Containers may share a host name and have the same process ids in their own namespaces, and so may machines.
    """
    parts = [socket.gethostname()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip())
    with suppress(OSError):
        parts.append(str(Path("/proc/self/ns/pid").stat().st_ino))
    return "/".join(parts)


def is_gone(owner: str) -> bool:
    """Return whether a claim has no live owner: its round or process has ended. False if this can't be looked up."""
    machine, _, rest = owner.partition(":")
    pid = rest.partition(":")[0]
    if machine != _machine() or not pid.isdigit():
        return False
    if int(pid) == os.getpid():
        return owner not in live_owners
    if sys.platform == "win32":
        return False  # `os.kill` would send an event there
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
