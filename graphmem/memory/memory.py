"""`GraphMemory`: what most users need of graphmem, in one object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from graphmem.embed import Embeddings
from graphmem.engine import Engine
from graphmem.inputs import to_scope
from graphmem.memory.asynchronous import Asynchronous
from graphmem.models import Scope
from graphmem.protocols import Explorer, Extractor, Redactor
from graphmem.search.rerank import CrossEncoder
from graphmem.settings import Settings

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


class GraphMemory(Asynchronous):
    """A memory: one scope of one store, with the work that goes on behind it.

    Open it with `open`. Every method is safe from any thread; those that begin with ``a`` are for async code
    and run the method of that name on a thread of the memory. Times are aware datetimes or ISO 8601 texts.
    """

    @classmethod
    def open(
        cls,
        url: str | None = None,
        *,
        scope: Scope | str | None = None,
        extractor: Extractor | str | None = None,
        llm: BaseChatModel | str | None = None,
        redactor: Redactor | None = None,
        embeddings: Embeddings | str | None = None,
        cross_encoder: CrossEncoder | None = None,
        settings: Settings | None = None,
        background: bool = True,
        **overrides: Any,
    ) -> Self:
        """Open a memory, and go on with what an earlier process left in its queue.

        Parameters
        ----------
        url
            Store: ``sqlite:///memory.db`` (made if it isn't there), ``memory://``, or a plugin's. Defaults
            to the setting `store`.
        scope
            Whose memory; a text is ``domain`` or ``domain/project``, separated at the first "/" and taken as it is.
            Defaults to the setting `scope`.
        extractor
            An `Extractor`, or the word for one (see the setting `extractor`).
        llm
            A LangChain chat model, or ``provider:model``, for extraction and the contradiction check.
        redactor
            Takes personal data out of facts and summaries, or with the setting ``redact="all"`` out of all that is
            stored. By default `PatternRedactor`, if that setting is on.
        embeddings
            A LangChain `Embeddings`, or the word for one (see the setting `embeddings`).
        cross_encoder
            Reads the best episodes of each search with the question: a LangChain `BaseCrossEncoder`, or anything with
            its `score`. None leaves the order as it is.
        settings
            Ready-made settings; otherwise they are read from ``GRAPHMEM_…`` variables and ``graphmem.toml``.
        background
            Extract on a thread as episodes arrive. If False, only `flush`, `ingest` and `backfill` extract.
        **overrides
            Single settings by name.

        Raises
        ------
        BackendUnavailable
            If the store can't be opened; the message names it and what to check.
        InvalidInput
            If a setting doesn't fit.
        """
        settings = settings or Settings.load(**overrides)
        engine = Engine.open(
            url or settings.store,
            settings,
            extractor=extractor,
            llm=llm,
            redactor=redactor,
            embeddings=embeddings,
            cross_encoder=cross_encoder,
            background=background,
        )
        return cls(engine, to_scope(scope if scope is not None else settings.scope))

    def in_scope(self, scope: Scope | str) -> Self:
        """Return the memory of another scope in the same store; closing either closes both.

        A text is read as ``domain`` or ``domain/project``, separated at the first "/", and nothing in it is decoded:
        ``f"users/{user_id}"`` is another scope for every `user_id`, whatever its characters.

        Raises
        ------
        InvalidInput
            If a part of the text is empty or longer than 256 characters.
        """
        return type(self)(self._engine, to_scope(scope))

    def close(self) -> None:
        """Let running work end and release the store; what waits in the queue stays there for the next start."""
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @property
    def explorer(self) -> Explorer | None:
        """A program in which people look at the graph of the store, or None where the store comes with none."""
        return self._engine.backend.explorer
