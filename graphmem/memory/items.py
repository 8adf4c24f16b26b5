"""`Items`: values under keys in namespaces, with their history, as episodes of a scope."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from graphmem.background import PoolName
from graphmem.errors import NotFound, StoreFull, StoreReadOnly
from graphmem.ingest.turn_writer import BatchWriter
from graphmem.inputs import to_limit
from graphmem.memory.base import ScopedMemory
from graphmem.memory.item_rows import (
    INDEXED,
    OLD_SESSIONS,
    ItemPut,
    ItemVersion,
    Namespace,
    check_filter,
    marker_of,
    matches,
    metadata_of,
    namespace_of,
    old_session_of,
    place_of,
    session_of,
    session_prefix,
    stored_conditions,
    under,
    version_of,
)
from graphmem.memory.memory import GraphMemory
from graphmem.models import (
    AsOf,
    Changes,
    Episode,
    EpisodeEnd,
    EpisodeExpiry,
    EpisodeFilter,
    EpisodeQuery,
    Scalar,
    Scope,
    is_expired,
    new_id,
)
from graphmem.models.base import END_OF_TIME, START_OF_TIME, TICK
from graphmem.models.metadata import SKIPPED
from graphmem.search.results import SearchOptions
from graphmem.upkeep.forget import Forgotten, summed

T = TypeVar("T")

_CURRENT = AsOf(END_OF_TIME, END_OF_TIME)
"""Later than any end, even one that a fast clock stored."""

_PAGE = 500  # items that are read at once where a filter decides
_MOST_PLACES = 200_000  # items whose place is kept in memory
_UNTOUCHED = 0.01  # share of a TTL by which a read has to move the expiry to be written
_NOT_WANTED = "item"  # why an item isn't extracted


class Items(ScopedMemory):
    """Items of a memory: a `put` over a key ends the stored version and keeps it as history.

    Each version is an episode, and the versions of an item are a session. Current versions have no `ended_at`.

    Parameters
    ----------
    memory
        The memory.
    visible
        Whether the items belong to the scope of the memory, where its searches find them. Otherwise they have a scope
        next to it, which can't be opened by a text such as ``domain/project``.
    extract
        Whether facts are extracted from the texts of items.
    """

    def __init__(self, memory: GraphMemory, *, visible: bool, extract: bool) -> None:
        own = memory.scope if visible else Scope(f"{memory.scope.domain}/items", memory.scope.project_id)
        super().__init__(memory._engine, own)  # noqa: SLF001  memories of a store share it
        self.memory = memory.in_scope(own)
        self._extract = extract
        self._places: dict[str, tuple[str, Namespace]] = {}
        """Place and namespace of versions by episode id; they never change."""
        submit = partial(self._engine.pools.submit, "turns")
        self._writer = BatchWriter(submit, self._write_batch, lambda _: self._engine.wake(self.scope))

    # Writing ----------------------------------------------------------------------------------------

    def write(self, puts: Iterable[ItemPut]) -> None:
        """Store and delete items in one transaction; of several puts with the same path the last one counts."""
        self._engine.backend.atomic(partial(self._write, self._last(puts)))
        self._engine.wake(self.scope)

    async def awrite(self, puts: Iterable[ItemPut]) -> None:
        """`write` for async code; calls that arrive during a transaction share the next one."""
        await self._writer.store(partial(self._last, puts))

    async def run(self, pool: PoolName, call: Callable[[], T]) -> T:
        """Run a blocking call on a thread of the memory."""
        return await self._engine.pools.run(pool, call)

    def _last(self, puts: Iterable[ItemPut]) -> Sequence[ItemPut]:
        """Return the last put of each path, redacted, in the order of the first ones."""
        return list({(put.namespace, put.key): put for put in map(self._redacted, puts)}.values())

    def _write_batch(self, batch: Sequence[Sequence[ItemPut]]) -> list[None]:
        """Write the puts of several callers in one transaction."""
        return self._engine.backend.atomic(lambda: [self._write(puts) for puts in batch])

    def _write(self, puts: Sequence[ItemPut]) -> None:
        backend, now = self._engine.backend, self._engine.clock()
        new: list[Episode] = []
        ends: list[EpisodeEnd] = []
        firsts: dict[Namespace, str] = {}
        versions = self._current(puts)
        for put in puts:
            replaced = [e for session in _sessions(put.namespace, put.key) for e in versions.get(session, ())]
            at = max([now, *(each.recorded_at + TICK for each in replaced)])
            ends += [EpisodeEnd(each.id, at) for each in replaced]
            if put.value is not None:
                current = _newest(each for each in replaced if not is_expired(each.expires_at, now))
                new.append(self._episode(put, current, at, firsts))
        backend.add_episodes(self.scope, new)
        if ends:
            backend.write(self.scope, Changes(episode_ends=tuple(ends)))

    def _episode(self, put: ItemPut, current: Episode | None, at: datetime, firsts: dict[Namespace, str]) -> Episode:
        """Return the episode of a new version; `firsts` has the first version in each namespace seen so far."""
        number, marker = new_id(), None
        if current is not None:
            before = version_of(current)
            place, created_at = before.place, before.created_at
        else:
            if put.namespace not in firsts:
                marker = marker_of(put.namespace)
                query = EpisodeQuery(external_ids=(marker,))
                known = self._engine.backend.find_episodes([self.scope], query, limit=1)
                firsts[put.namespace] = known[0].id if known else number
                marker = None if known else marker
            place, created_at = f"{firsts[put.namespace]} {number}", at
        episode = Episode(
            id=number,
            scope=self.scope,
            source="document",
            text=put.text or "",
            session_id=session_of(put.namespace, put.key) if current is None else current.session_id,
            external_id=marker,
            occurred_at=at,
            recorded_at=at,
            expires_at=None if put.ttl is None else self._engine.clock() + put.ttl,
            metadata=metadata_of(put, place, created_at),
        )
        episode = self._engine.loader.filtered(episode)
        if (self._extract and put.text) or episode.processed_at is not None:
            return episode
        return episode.changed(processed_at=at, metadata={**episode.metadata, SKIPPED: _NOT_WANTED})

    def refresh(self, versions: Iterable[ItemVersion]) -> None:
        """Begin the TTL of items again, as a read does; a store that can't be written keeps the old one."""
        now, moved = self._engine.clock(), dict[str, datetime]()
        for version in versions:
            if version.ttl is not None and version.expires_at is not None:
                expires_at = now + version.ttl
                if expires_at - version.expires_at > version.ttl * _UNTOUCHED:
                    moved[version.episode_id] = expires_at

        def work() -> None:
            stored = self._engine.backend.get_episodes([self.scope], list(moved))  # others may have been erased
            expiries = tuple(EpisodeExpiry(i, moved[i]) for i in stored)
            self._engine.backend.write(self.scope, Changes(episode_expiries=expiries))

        if moved:
            with suppress(StoreReadOnly, StoreFull):
                self._engine.backend.atomic(work)

    def erase(self, namespace: Namespace, key: str) -> Forgotten | None:
        """Erase all versions of an item as `GraphMemory.forget` does; return None if there is none."""
        erased: list[Forgotten] = []
        for session in _sessions(*self._stored_path(namespace, key)):
            with suppress(NotFound):
                erased.append(self.memory.forget(session=session))
        return summed(erased) if erased else None

    def sweep(self) -> int:
        """Erase what has expired in the scope; return the number of versions erased."""
        return self.memory.admin.expire().episodes

    # Reading ----------------------------------------------------------------------------------------

    def get(self, namespace: Namespace, key: str, as_of: AsOf | None = None) -> ItemVersion | None:
        """Return an item, or the version of it that was current at a time."""
        path = self._stored_path(namespace, key)
        found = _newest(self._versions(*path, as_of or _CURRENT, live_at=self._engine.clock()))
        return None if found is None else version_of(found)

    def history(self, namespace: Namespace, key: str) -> list[ItemVersion]:
        """Return all versions of an item that haven't expired, oldest first."""
        sessions = _sessions(*self._stored_path(namespace, key))
        query = EpisodeQuery(filters=EpisodeFilter(session_ids=sessions), as_of=_CURRENT)
        found = self._engine.backend.all_episodes([self.scope], query)
        now = self._engine.clock()
        versions = [version_of(e) for e in found if not is_expired(e.expires_at, now)]
        return sorted(versions, key=lambda version: version.updated_at)

    def find(
        self,
        prefix: Namespace,
        *,
        query: str | None = None,
        wanted: Mapping[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
        as_of: AsOf | None = None,
    ) -> Sequence[tuple[ItemVersion, float | None]]:
        """Return the items under a prefix that a filter matches: by place, or for a query the indexed ones by score.

        Raises
        ------
        InvalidInput
            If the filter has an unknown operator, or `limit` or `offset` is negative.
        """
        wanted = self._redacted_data(wanted or {})
        check_filter(wanted)
        moment, page = as_of or _CURRENT, slice(to_limit(offset), to_limit(offset) + to_limit(limit))
        conditions = stored_conditions(wanted)
        if query:
            return self._ranked(query, self._under(prefix, {**conditions, INDEXED: True}), wanted, page, moment)
        ids = list(self._listed(self._under(prefix, conditions), moment))
        if not wanted:
            return [(version_of(e), None) for e in self._read(ids[page])]
        found = (version_of(e) for e in self._read(ids))
        matching = (version for version in found if matches(version.value, wanted))
        return [(version, None) for version in islice(matching, page.start, page.stop)]

    def namespaces(self, prefix: Namespace = ()) -> set[Namespace]:
        """Return the namespaces of items under a prefix."""
        return set(self._listed(self._under(prefix, {}), _CURRENT).values())

    def _current(self, puts: Sequence[ItemPut]) -> dict[str, list[Episode]]:
        """Return the current versions of the items that are put, also expired ones, by session."""
        sessions = [session for put in puts for session in _sessions(put.namespace, put.key)]
        found: defaultdict[str, list[Episode]] = defaultdict(list)
        for start in range(0, len(sessions), _PAGE):
            filters = EpisodeFilter(session_ids=tuple(sessions[start : start + _PAGE]))
            query = EpisodeQuery(filters=filters, live_at=START_OF_TIME, as_of=_CURRENT)
            for episode in self._engine.backend.all_episodes([self.scope], query):
                found[episode.session_id or ""].append(episode)
        return found

    def _versions(self, namespace: Namespace, key: str, as_of: AsOf, *, live_at: datetime) -> Sequence[Episode]:
        """Return the versions of an item that hadn't ended at a time, nor expired at another."""
        filters = EpisodeFilter(session_ids=_sessions(namespace, key))
        query = EpisodeQuery(filters=filters, live_at=live_at, as_of=as_of)
        return self._engine.backend.find_episodes([self.scope], query, limit=_PAGE)

    def _listed(self, filters: EpisodeFilter, as_of: AsOf) -> dict[str, Namespace]:
        """Return the namespaces of the versions of a time that a filter matches, by id, in the order of places."""
        backend, scopes = self._engine.backend, [self.scope]
        ids = backend.find_episode_ids(scopes, EpisodeQuery(filters=filters, live_at=self._engine.clock(), as_of=as_of))
        if len(self._places) > _MOST_PLACES:
            self._places = {i: self._places[i] for i in ids if i in self._places}
        places = self._places
        missing = [i for i in ids if i not in places]
        for start in range(0, len(missing), _PAGE):
            for number, episode in backend.get_episodes(scopes, missing[start : start + _PAGE]).items():
                places[number] = place_of(episode), namespace_of(episode)
        listed = sorted((places[i], i) for i in ids if i in places)
        firsts = dict[Namespace, int]()  # a namespace whose first item was erased goes on under another place
        for (_, namespace), _ in listed:
            firsts.setdefault(namespace, len(firsts))
        listed.sort(key=lambda each: firsts[each[0][1]])
        return {i: namespace for (_, namespace), i in listed}

    def _read(self, ids: Sequence[str]) -> Iterator[Episode]:
        """Yield episodes in the order of their ids; one that ended since the ids were read was current then."""
        for start in range(0, len(ids), _PAGE):
            page = ids[start : start + _PAGE]
            found = self._engine.backend.get_episodes([self.scope], page)
            yield from (found[i] for i in page if i in found)

    def _ranked(
        self, query: str, filters: EpisodeFilter, wanted: Mapping[str, Any], page: slice, as_of: AsOf
    ) -> Sequence[tuple[ItemVersion, float | None]]:
        k = page.stop if not wanted else 4 * page.stop
        while True:
            options = SearchOptions(k=k, filters=filters, as_of=as_of, wait=math.inf)  # what was put is found
            results = self._engine.search.search([self.scope], query, options).found
            found = [
                (version, each.score)
                for each in results
                if matches((version := version_of(each.episode)).value, wanted)
            ]
            if len(found) >= page.stop or len(results) < k:
                return found[page]
            k *= 4

    # Redaction --------------------------------------------------------------------------------------

    def _redacted(self, put: ItemPut) -> ItemPut:
        """Return a put as it is stored."""
        redaction = self._engine.redaction
        if redaction is not None:
            namespace = tuple(redaction.name("namespace", label) for label in put.namespace)
            value = None if put.value is None else self._redacted_data(put.value)
            text = None if put.text is None else redaction.text(put.text)
            put = ItemPut(namespace, redaction.name("key", put.key), value, text, put.ttl)
        return put

    def _redacted_data(self, value: T) -> T:
        redaction = self._engine.redaction
        return value if redaction is None else redaction.data(value)

    def stored_namespace(self, namespace: Namespace) -> Namespace:
        """Return the stored form of a namespace or a part of one; redaction may have replaced labels."""
        return tuple(map(self._engine.stored_name, namespace))

    def _stored_path(self, namespace: Namespace, key: str) -> tuple[Namespace, str]:
        return self.stored_namespace(namespace), self._engine.stored_name(key)

    def _under(self, prefix: Namespace, conditions: Mapping[str, Scalar]) -> EpisodeFilter:
        """Return the filter of the items under a prefix whose metadata meets conditions.

        For all items, and in a scope with old sessions, which don't begin with a prefix, metadata is compared.
        """
        prefix = self.stored_namespace(prefix)
        old = EpisodeQuery(filters=EpisodeFilter(session_prefix=OLD_SESSIONS))
        if not prefix or self._engine.backend.find_episodes([self.scope], old, limit=1):
            return EpisodeFilter(metadata={**under(prefix), **conditions})
        return EpisodeFilter(session_prefix=session_prefix(prefix), metadata=dict(conditions))


def _newest(episodes: Iterable[Episode]) -> Episode | None:
    return max(episodes, key=lambda episode: episode.recorded_at, default=None)


def _sessions(namespace: Namespace, key: str) -> tuple[str, str]:
    """Return the sessions that may hold the versions of an item: the current form of its id, and the earlier form."""
    return session_of(namespace, key), old_session_of(namespace, key)
