"""LangGraph store whose items are kept in a memory, with their history (docs/how-to/langgraph.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime, timedelta
from functools import partial
from itertools import takewhile
from typing import Any, Literal

from graphmem.background import BackgroundJob
from graphmem.errors import InvalidInput, MissingExtra
from graphmem.inputs import to_as_of, to_limit
from graphmem.memory import GraphMemory
from graphmem.memory.item_rows import ItemPut, ItemVersion, Namespace, plain_text
from graphmem.memory.items import Items
from graphmem.models import AsOf, utc_now
from graphmem.upkeep.forget import Forgotten

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        IndexConfig,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
        get_text_at_path,
        validate_op_namespace,
    )
except ImportError as error:
    raise MissingExtra("graphmem.adapters.langgraph", "langgraph") from error

Moment = AsOf | datetime | str


class PastItem(Item):
    """A version of an item, with the time at which another value replaced it.

    Attributes
    ----------
    ended_at
        When the version was replaced or deleted; None for the current one.
    """

    __slots__ = ("ended_at",)

    def __init__(self, *, ended_at: datetime | None = None, **fields: Any) -> None:
        super().__init__(**fields)
        self.ended_at = ended_at


class GraphMemoryStore(BaseStore):
    """Store of a LangGraph graph, on any store of graphmem. A `put` over a key keeps the old value as history.

    A batch is one transaction: its reads see what was stored before it, and of several puts with one path the last one
    counts. All methods are safe to call from any thread, and the async ones from any event loop; concurrent async puts
    share transactions.

    Parameters
    ----------
    memory
        Memory that the items are part of; it has to stay open while the store is used.
    index
        ``{"fields": ["text", "tags[*]"]}``: paths of the texts that a query searches, by default the whole value. The
        embedding model is that of the memory.
    ttl
        As for LangGraph's own stores: `default_ttl`, `refresh_on_read`, `sweep_interval_minutes`. Expired items are
        never returned.
    visible
        Whether `search` and `context` of the memory find the items, as documents of its scope. By default they have a
        scope of their own.
    extract
        Whether facts are extracted from the indexed texts of items; `memory` of the store recalls them.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: GraphMemory,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        visible: bool = False,
        extract: bool = False,
    ) -> None:
        if foreign := sorted(set(index or {}) - {"fields"}):
            raise InvalidInput(
                f"index: {', '.join(foreign)} can't be set here: the memory's own embedding model is used, "
                "which GraphMemory.open(embeddings=…) chooses"
            )
        self.ttl_config = ttl
        self._fields: Sequence[str] = (index or {}).get("fields") or ["$"]
        self._items = Items(memory, visible=visible, extract=extract)
        self._sweeper: tuple[BackgroundJob, Future[None]] | None = None

    @property
    def memory(self) -> GraphMemory:
        """The memory of the scope that the items are in."""
        return self._items.memory

    # Operations -------------------------------------------------------------------------------------

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations; return the result of each, None for puts."""
        given = _checked(ops)
        puts = self._puts(given)
        results = self._read(given)
        if puts:
            self._items.write(puts)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """`batch` for async code."""
        given = _checked(ops)
        puts, results = self._puts(given), list[Result]([None] * len(given))
        if len(puts) < len(given):
            results = await self._items.run("reads", partial(self._read, given))
        if puts:
            await self._items.awrite(puts)
        return results

    def _puts(self, ops: Sequence[Op]) -> list[ItemPut]:
        return [self._put(op) for op in ops if isinstance(op, PutOp)]

    def _put(self, op: PutOp) -> ItemPut:
        text = None if op.value is None or op.index is False else self._text(op.value, op.index)
        return ItemPut(op.namespace, op.key, op.value, text, _ttl(op.ttl))

    def _text(self, value: Mapping[str, Any], fields: Sequence[str] | None) -> str | None:
        """Return the text at some paths, by default those of the store; None if there is none."""
        found: list[str] = []
        for path in self._fields if fields is None else fields:
            found += [plain_text(value)] if path in ("", "$") else get_text_at_path(value, path)
        return "\n".join(found).strip() or None

    def _read(self, ops: Sequence[Op]) -> list[Result]:
        """Return the results of the reads among some operations, and begin the TTL of what they return again."""
        results: list[Result] = []
        refreshed: list[ItemVersion] = []
        for op in ops:
            if isinstance(op, GetOp):
                version = self._items.get(op.namespace, op.key)
                results.append(None if version is None else Item(**_fields(version)))
                refreshed += [version] if version is not None and op.refresh_ttl else []
            elif isinstance(op, SearchOp):
                found = self._find(op, None)
                results.append([SearchItem(**_fields(version), score=score) for version, score in found])
                refreshed += [version for version, _ in found if op.refresh_ttl]
            elif isinstance(op, ListNamespacesOp):
                results.append(self._namespaces(op))
            else:
                results.append(None)
        self._items.refresh(refreshed)
        return results

    def _find(self, op: SearchOp, as_of: AsOf | None) -> Sequence[tuple[ItemVersion, float | None]]:
        return self._items.find(
            op.namespace_prefix, query=op.query, wanted=op.filter, limit=op.limit, offset=op.offset, as_of=as_of
        )

    def _namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        given = op.match_conditions or ()
        conditions = [each._replace(path=self._items.stored_namespace(each.path)) for each in given]
        paths = [each.path for each in conditions if each.match_type == "prefix"]
        prefixes = [tuple(takewhile(lambda label: label != "*", path)) for path in paths]
        known = self._items.namespaces(max(prefixes, key=len, default=()))
        found = {each[: op.max_depth] for each in known if all(_fits(each, condition) for condition in conditions)}
        return sorted(found)[to_limit(op.offset) : to_limit(op.offset) + to_limit(op.limit)]

    # The past ---------------------------------------------------------------------------------------

    def get(
        self, namespace: Namespace, key: str, *, refresh_ttl: bool | None = None, as_of: Moment | None = None
    ) -> Item | None:
        """Return an item; with `as_of` its version at that time."""
        if as_of is None:
            return super().get(namespace, key, refresh_ttl=refresh_ttl)
        validate_op_namespace(GetOp(namespace, key))
        version = self._items.get(namespace, key, to_as_of(as_of))
        return None if version is None else Item(**_fields(version))

    async def aget(
        self, namespace: Namespace, key: str, *, refresh_ttl: bool | None = None, as_of: Moment | None = None
    ) -> Item | None:
        """`get` for async code."""
        if as_of is None:
            return await super().aget(namespace, key, refresh_ttl=refresh_ttl)
        return await self._items.run("reads", partial(self.get, namespace, key, as_of=as_of))

    def search(
        self,
        namespace_prefix: Namespace,
        /,
        *,
        query: str | None = None,
        filter: dict[str, Any] | None = None,  # noqa: A002  the name of LangGraph
        limit: int = 10,
        offset: int = 0,
        refresh_ttl: bool | None = None,
        as_of: Moment | None = None,
    ) -> list[SearchItem]:
        """Return the items under a prefix that a filter matches, for a query best first; with `as_of` those of then.

        Without a query the order is that in which namespaces, and in them items, were created. The score of an item is
        that of `GraphMemory.search`, in which words, vectors and names count: it isn't a cosine.
        """
        if as_of is None:
            options: dict[str, Any] = {"query": query, "filter": filter, "limit": limit, "offset": offset}
            return super().search(namespace_prefix, **options, refresh_ttl=refresh_ttl)
        op = SearchOp(namespace_prefix, filter, limit, offset, query)
        validate_op_namespace(op)
        return [SearchItem(**_fields(version), score=score) for version, score in self._find(op, to_as_of(as_of))]

    async def asearch(
        self,
        namespace_prefix: Namespace,
        /,
        *,
        query: str | None = None,
        filter: dict[str, Any] | None = None,  # noqa: A002  the name of LangGraph
        limit: int = 10,
        offset: int = 0,
        refresh_ttl: bool | None = None,
        as_of: Moment | None = None,
    ) -> list[SearchItem]:
        """`search` for async code."""
        options: dict[str, Any] = {"query": query, "filter": filter, "limit": limit, "offset": offset}
        if as_of is None:
            return await super().asearch(namespace_prefix, **options, refresh_ttl=refresh_ttl)
        return await self._items.run("reads", partial(self.search, namespace_prefix, **options, as_of=as_of))

    def history(self, namespace: Namespace, key: str) -> list[PastItem]:
        """Return all values of a key, oldest first, with deleted ones and without expired ones."""
        validate_op_namespace(GetOp(namespace, key))
        found = self._items.history(namespace, key)
        return [PastItem(**_fields(version), ended_at=version.ended_at) for version in found]

    async def ahistory(self, namespace: Namespace, key: str) -> list[PastItem]:
        """`history` for async code."""
        return await self._items.run("reads", partial(self.history, namespace, key))

    # Removal ----------------------------------------------------------------------------------------

    def erase(self, namespace: Namespace, key: str) -> Forgotten | None:
        """Erase all versions of an item, to the bytes in files, as `GraphMemory.forget`; return None if there is none.

        `delete` only ends an item: its history stays.
        """
        validate_op_namespace(GetOp(namespace, key))
        return self._items.erase(namespace, key)

    async def aerase(self, namespace: Namespace, key: str) -> Forgotten | None:
        """`erase` for async code."""
        return await self._items.run("jobs", partial(self.erase, namespace, key))

    def sweep_ttl(self) -> int:
        """Erase expired items; return the number of their versions."""
        return self._items.sweep()

    async def asweep_ttl(self) -> int:
        """`sweep_ttl` for async code."""
        return await self._items.run("jobs", self.sweep_ttl)

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Future[None]:
        """Sweep at intervals on a thread, by default of `sweep_interval_minutes` in `ttl`, or of 5 minutes.

        Returns
        -------
        Future
            Is done once the sweeper is stopped; `cancel` stops it.
        """
        minutes = sweep_interval_minutes or (self.ttl_config or {}).get("sweep_interval_minutes") or 5

        def sweep() -> float:
            self.sweep_ttl()
            return minutes * 60

        if self._sweeper is None or self._sweeper[1].done():
            job, ended = BackgroundJob("graphmem-sweep", sweep), Future[None]()
            ended.add_done_callback(lambda _: job.stop(0))
            self._sweeper = job, ended
            job.wake()
        return self._sweeper[1]

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stop the sweeper; return whether it ended within `timeout` seconds. Stop it before the memory is closed."""
        sweeper, self._sweeper = self._sweeper, None
        if sweeper is None:
            return True
        job, ended = sweeper
        stopped = job.stop(timeout)
        if not ended.done():
            ended.set_result(None)
        return stopped


def _checked(ops: Iterable[Op]) -> list[Op]:
    given = list(ops)
    for op in given:
        if not isinstance(op, (GetOp, SearchOp, PutOp, ListNamespacesOp)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"unknown operation {op!r:.80}")
        path: object = op.namespace_prefix if isinstance(op, SearchOp) else getattr(op, "namespace", ())
        if not isinstance(path, tuple):  # a text would be a namespace of its letters
            raise InvalidInput(f"namespace: expected a tuple of texts such as ('users', 'maya'), got {path!r:.80}")
        validate_op_namespace(op)
        if isinstance(op, PutOp) and not isinstance(op.value, (Mapping, type(None))):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"value: expected a mapping, got {op.value!r:.80}")
        for condition in (op.match_conditions or ()) if isinstance(op, ListNamespacesOp) else ():
            if condition.match_type not in ("prefix", "suffix"):
                raise InvalidInput(f"match_type: {condition.match_type!r:.40}; known are prefix, suffix")
    return given


def _ttl(minutes: float | None) -> timedelta | None:
    if minutes is None:
        return None
    try:
        ttl = timedelta(minutes=minutes)
        _ = utc_now() + ttl
    except (OverflowError, ValueError) as error:
        raise InvalidInput(f"ttl: expected a number of minutes, got {minutes!r}") from error
    if ttl < timedelta(0):
        raise InvalidInput(f"ttl: expected a number of minutes from 0, got {minutes!r}")
    return ttl


def _fields(version: ItemVersion) -> dict[str, Any]:
    return {
        "namespace": version.namespace,
        "key": version.key,
        "value": version.value,
        "created_at": version.created_at,
        "updated_at": version.updated_at,
    }


def _fits(namespace: Namespace, condition: MatchCondition) -> bool:
    """Return whether a namespace begins or ends with a path, in which "*" stands for any label."""
    path: Sequence[str | Literal["*"]] = condition.path
    if len(namespace) < len(path):
        return False
    labels = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, labels, strict=True))
