"""Finds the store for a URL among the installed backends (entry points ``graphmem.backends``)."""

from __future__ import annotations

import re
from importlib.metadata import EntryPoint, entry_points

from graphmem.errors import InvalidInput, UnknownBackend
from graphmem.protocols import GraphBackend

GROUP = "graphmem.backends"


def installed_backends() -> dict[str, EntryPoint]:
    """Return the installed backends by name, without importing any."""
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def open_backend(url: str, **options: object) -> GraphBackend:
    """Open the store that a URL names.

    Parameters
    ----------
    url
        ``sqlite:///relative.db``, ``sqlite:////absolute.db``, ``memory://``, or the scheme of an
        installed plugin. What stands before ``+`` or ``:`` in the scheme chooses the backend.
    **options
        Passed to the backend's ``open_backend(url, **options)``.

    Raises
    ------
    InvalidInput
        If it isn't a URL.
    UnknownBackend
        If no installed backend serves the scheme; the message names those that are.
    BackendUnavailable
        If the store can't be opened.
    """
    match = re.match(r"([a-z][a-z0-9]*)(\+[a-z0-9]+)?:", url)
    if match is None:
        raise InvalidInput(f"store URL {masked(url)!r}: expected scheme:…, for example sqlite:///memory.db")
    scheme = match[1]
    found = installed_backends()
    if scheme not in found:
        names = ", ".join(sorted(found))
        raise UnknownBackend(f"no backend for {scheme}:// is installed (found: {names}); install one that serves it")
    backend: GraphBackend = found[scheme].load()(url, **options)
    return backend


def masked(url: str) -> str:
    """Return the URL with its password hidden, fit for messages and logs."""
    return re.sub(r"(?<=://)([^/@\s:]*):[^/\s]*@", r"\1:***@", url)
