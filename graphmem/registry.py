"""Installed plugins: backends and extractors, found by their entry points."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from inspect import signature

from graphmem.errors import InvalidInput, UnknownBackend
from graphmem.protocols import GraphBackend


@cache  # the metadata of all installed packages is read, which takes longer than opening a store
def installed_backends() -> dict[str, EntryPoint]:
    """Return the installed backends by name, without importing any."""
    return _installed("graphmem.backends")


def installed_extractors() -> dict[str, EntryPoint]:
    """Return the installed extractors by name, without importing any.

    An entry point names a function ``(argument, *, ontology, settings) -> Extractor``; `argument` is what stands after
    ``NAME:`` in the setting `extractor`, or "".
    """
    return _installed("graphmem.extractors")


def _installed(group: str) -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=group)}


def open_backend(url: str, *, offered: Mapping[str, object] | None = None, **options: object) -> GraphBackend:
    """Open the store that a URL names.

    Parameters
    ----------
    url
        ``sqlite:///relative.db``, ``sqlite:////absolute.db``, ``memory://``, or the scheme of an
        installed plugin. The part of the scheme before ``+`` or ``:`` selects the backend.
    offered
        Options for any backend; those that its ``open_backend`` has no parameter for are ignored.
    **options
        Passed to the backend's ``open_backend(url, **options)`` unchecked.

    Raises
    ------
    InvalidInput
        If it isn't a URL.
    UnknownBackend
        If no installed backend serves the scheme; the message lists the installed ones.
    BackendUnavailable
        If the store can't be opened.
    """
    if not isinstance(url, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"store URL {url!r:.120}: expected a text; for a file, write f'sqlite:///{{path}}'")
    match = re.match(r"([a-z][a-z0-9]*)(\+[a-z0-9]+)?:", url)
    if match is None:
        file = url if re.fullmatch(r"[\w./-]{1,200}", url) else "memory.db"
        raise InvalidInput(f"store URL {masked(url)!r}: expected scheme:…; for a file, write sqlite:///{file}")
    scheme = match[1]
    if scheme not in installed_backends():
        installed_backends.cache_clear()  # it may have been installed meanwhile, as in a notebook
    found = installed_backends()
    if scheme not in found:
        names = ", ".join(sorted(found))
        what = "install one that serves it"
        if scheme in ("http", "https"):  # the address of Neo4j Browser
            what = f"for Neo4j, write {'neo4j+s' if scheme == 'https' else 'neo4j'}://HOST:7687"
        raise UnknownBackend(f"no backend for {scheme}:// is installed (found: {names}); {what}")
    opener: Callable[..., GraphBackend] = found[scheme].load()
    taken = signature(opener).parameters
    return opener(url, **{name: value for name, value in (offered or {}).items() if name in taken}, **options)


def masked(url: str) -> str:
    """Return the URL with its password, or a token in place of it, masked, for messages and logs."""
    scheme, separator, rest = url.partition("://")
    is_http = scheme.endswith(("http", "https"))
    before, at, after = rest.rpartition("@")  # the last one: a password may contain any character
    user, colon, _ = before.partition(":")
    if at and colon and "/" not in user:
        shown = "" if is_http and "@" in user else user
        return f"{scheme}{separator}{shown}:***@{after}"
    netloc, slash, path = rest.partition("/")
    if is_http and "@" in netloc:
        return f"{scheme}{separator}***@{netloc.rpartition('@')[2]}{slash}{path}"
    return url
