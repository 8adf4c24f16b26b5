"""Factories of the parts of a memory from its settings: extractor, ontology, models, vector index, checks."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, TypedDict, Unpack

from graphmem.embed import Embedder, Embeddings, choose_embeddings
from graphmem.errors import InvalidInput, MissingExtra
from graphmem.index.copies import MB
from graphmem.ingest.queue import ExtractionQueue
from graphmem.ingest.redaction import RedactingExtractor, Redaction
from graphmem.migrate.backend import following_backend
from graphmem.models import utc_now
from graphmem.ontology import DEFAULT_ONTOLOGY, Ontology
from graphmem.protocols import Extractor, GraphBackend, Redactor, VectorIndex
from graphmem.registry import installed_extractors, masked, open_backend
from graphmem.search.rerank import CrossEncoder
from graphmem.settings import Settings
from graphmem.telemetry import current_tracer, load_providers, traced_backend
from graphmem.text.english import spacy_available
from graphmem.text.redact import PatternRedactor
from graphmem.upkeep.merge import merge_entities
from graphmem.vectors import ExactVectorIndex

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from graphmem.ingest.contradictions import ContradictionCheck
    from graphmem.ingest.entity_matching import SimilarEntities
    from graphmem.ingest.judges import Ask, Pairs
    from graphmem.ingest.note_links import NoteLinks
    from graphmem.llm.chat import ListQuestion

_log = logging.getLogger(__name__)

_NO_EXTRACTOR = (
    "no extractor is installed: text is stored and searchable, but no facts are extracted from it. "
    "pip install 'graphmem[spacy]', or set an LLM with llm=; extractor=\"none\" suppresses this warning"
)


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a memory, by its settings and what was given instead; None for what it doesn't have.

    Attributes
    ----------
    redaction
        Redacts all that is stored; None if only facts are redacted, or nothing.
    clock
        Returns the present.
    """

    backend: GraphBackend
    settings: Settings
    ontology: Ontology
    extractor: Extractor | None
    llm: BaseChatModel | str | None
    contradictions: ContradictionCheck | None
    redactor: Redactor | None
    redaction: Redaction | None
    embedder: Embedder | None
    vectors: VectorIndex | None
    cross_encoder: CrossEncoder | None
    similar: SimilarEntities | None
    links: NoteLinks | None
    clock: Callable[[], datetime]

    def create_queue(self) -> ExtractionQueue | None:
        """Return the queue of the extractor; None without one."""
        if self.extractor is None:
            return None
        return ExtractionQueue(
            self.backend,
            self.extractor,
            self.ontology,
            self.settings,
            self.contradictions,
            self.redactor,
            self.similar,
            self.links,
            merge=lambda scope, gone, kept: merge_entities(
                self.backend, scope, [gone], kept, self.ontology, method="text"
            ),
            clock=self.clock,
        )

    def close(self) -> None:
        """Close the vector index and the store."""
        if self.vectors is not None:
            self.vectors.close()
        self.backend.close()


class Given(TypedDict, total=False):
    """Parts that are given in place of those of the settings; `store` is used in place of that of the URL."""

    extractor: Extractor | str | None
    llm: BaseChatModel | str | None
    redactor: Redactor | None
    embeddings: Embeddings | str | None
    cross_encoder: CrossEncoder | None
    clock: Callable[[], datetime] | None
    store: GraphBackend


def open_parts(url: str, settings: Settings, **given: Unpack[Given]) -> Parts:
    """Open the store and create the other parts of a memory."""
    ontology = choose_ontology(settings)
    llm, extractor, store = given.get("llm"), given.get("extractor"), given.get("store")
    llm = settings.llm if llm is None else llm
    if extractor is None or isinstance(extractor, str):
        extractor = choose_extractor(extractor or settings.extractor, llm, ontology, settings)
    _require(
        "extractor", extractor, "the name of one, or an object with extract and batch_size", "extract", "batch_size"
    )
    _require("llm", None if isinstance(llm, str) else llm, "provider:model, or a LangChain chat model", "invoke")
    _require("cross_encoder", given.get("cross_encoder"), "an object with score", "score")
    contradictions = contradiction_check(llm, settings)
    embedder = choose_embedder(given.get("embeddings"), settings)
    redactor, redaction = given.get("redactor"), None
    if redactor is None and settings.redact != "off":
        redactor = PatternRedactor()
    if redactor is not None and settings.redact == "all":
        key = settings.redact_key
        redaction = Redaction(redactor, None if key is None else key.get_secret_value())
        extractor = None if extractor is None else RedactingExtractor(extractor, redaction)
    backend = open_store(url, settings) if store is None else store
    load_providers()
    if current_tracer() is not None:
        backend = traced_backend(backend, url)
    try:
        similar, links = similar_entities(backend, embedder, llm, settings)
        vectors = choose_vector_index(settings, backend)
    except BaseException:
        backend.close()
        raise
    return Parts(
        backend=backend,
        settings=settings,
        ontology=ontology,
        extractor=extractor,
        llm=llm,
        contradictions=contradictions,
        redactor=redactor,
        redaction=redaction,
        embedder=embedder,
        vectors=vectors,
        cross_encoder=given.get("cross_encoder"),
        similar=similar,
        links=links,
        clock=given.get("clock") or utc_now,
    )


def _require(name: str, given: object, expected: str, *attributes: str) -> None:
    if given is not None and not all(hasattr(given, attribute) for attribute in attributes):
        raise InvalidInput(f"{name} {type(given).__name__}: expected {expected}")


def store_options(settings: Settings) -> dict[str, object]:
    """Return the options for opening a store, in addition to its URL, for `open_backend`."""
    secret = settings.store_password
    return {
        "username": settings.store_username,
        "password": None if secret is None else secret.get_secret_value(),
        "timeout": settings.store_timeout,
        "wait": settings.store_wait,
        "busy_timeout": settings.sqlite_busy_timeout,
    }


def open_store(url: str, settings: Settings) -> GraphBackend:
    """Open a store, or the one that it was moved to (`graphmem.migrate`)."""

    def opened(url: str) -> GraphBackend:
        return open_backend(url, offered=store_options(settings))

    return following_backend(opened(url), opened, settings.migrate_shadow_share)


def choose_ontology(settings: Settings) -> Ontology:
    """Return the default ontology with the additions of the file in the settings."""
    return DEFAULT_ONTOLOGY if settings.ontology is None else Ontology.load(settings.ontology)


def choose_extractor(
    choice: str, llm: BaseChatModel | str | None, ontology: Ontology, settings: Settings
) -> Extractor | None:
    """Return the extractor that a setting names; warn if ``auto`` finds none.

    Parameters
    ----------
    choice
        ``auto`` (the LLM if there is one, else spaCy if it is installed, else none), ``spacy``, ``none``,
        ``recorded:FILE``, ``llm``, ``llm:PROVIDER:MODEL``, or the name of an installed plugin
        (`graphmem.registry.installed_extractors`); one that can't be imported is logged and left out.
    llm
        A LangChain chat model, or the name of one.
    ontology, settings
        Ontology and settings of the extractor.

    Raises
    ------
    InvalidInput
        If the value is not one of these.
    MissingExtra
        If an optional dependency isn't installed.
    """
    kind, _, rest = choice.partition(":")
    if kind == "auto":
        kind = "llm" if llm is not None else "spacy" if spacy_available() else "none"
        if kind == "none":
            warnings.warn(_NO_EXTRACTOR, stacklevel=5)  # the caller of GraphMemory.open
    if kind == "none":
        return None
    if kind == "spacy" and not spacy_available():
        raise MissingExtra("the extractor spacy", "spacy")
    if kind == "recorded" and rest:
        from graphmem.ingest.extract.recorded import RecordedExtractor

        return RecordedExtractor(rest)
    model = rest or llm
    if kind == "llm" and model:
        from graphmem.ingest.extract.llm import LLMExtractor

        return LLMExtractor(
            model,
            timeout=settings.extraction_timeout,
            concurrency=settings.extraction_concurrency,
            turns_per_call=settings.extraction_turns,
            instructions=settings.extraction_instructions or "",
            ontology=ontology,
        )
    if kind == "llm":
        raise InvalidInput("extractor 'llm': no model is configured; set one, for example llm:openai:gpt-5-mini")
    plugins = installed_extractors()
    if (plugin := plugins.get(kind)) is None:
        raise InvalidInput(
            f"extractor {choice!r}: expected auto, none, recorded:FILE, llm:PROVIDER:MODEL, or an installed one: "
            f"{', '.join(sorted(plugins))}"
        )
    try:
        open_extractor: Callable[..., Extractor] = plugin.load()
    except Exception as error:  # noqa: BLE001 - whatever a plugin's modules raise
        _log.warning("extractor %s: %s can't be imported (%r); no facts are extracted", kind, plugin.value, error)
        return None
    return open_extractor(rest, ontology=ontology, settings=settings)


def choose_embedder(choice: Embeddings | str | None, settings: Settings) -> Embedder | None:
    """Return the embedding model of the argument or the setting, wrapped in an `Embedder`; None for none."""
    model = choose_embeddings(choice or settings.embeddings, download=settings.embeddings_download)
    return None if model is None else Embedder(model, timeout=settings.embedding_timeout)


def choose_vector_index(settings: Settings, backend: GraphBackend) -> VectorIndex | None:
    """Return the vector index that the setting names; None for the one in the store.

    Raises
    ------
    InvalidInput
        If the value is unknown, or the store has no native index.
    MissingExtra
        If an optional dependency isn't installed.
    """
    kind, _, rest = settings.vector_index.partition(":")
    if settings.vector_index == "store":
        return None
    if settings.vector_index == "exact":
        return ExactVectorIndex()
    if settings.vector_index == "native":
        if (native := backend.vector_index) is None:
            raise InvalidInput("vector_index 'native': this store has no vector index of its own; use 'store'")
        return native
    if kind == "qdrant" and rest:
        from graphmem.vectors.qdrant import QdrantVectorIndex, connect

        secret = settings.qdrant_api_key
        client = connect(rest, None if secret is None else secret.get_secret_value())
        return QdrantVectorIndex(client, settings.qdrant_prefix)
    if kind == "qdrant-edge" and rest:
        from graphmem.vectors.edge import QdrantEdgeVectorIndex

        return QdrantEdgeVectorIndex(rest)
    shown = masked(settings.vector_index)
    raise InvalidInput(f"vector_index {shown!r}: expected store, exact, native, qdrant:URL or qdrant-edge:FOLDER")


def contradiction_check(llm: BaseChatModel | str | None, settings: Settings) -> ContradictionCheck | None:
    """Return the contradiction check if the settings enable it.

    Raises
    ------
    InvalidInput
        If it is on and there is no LLM.
    """
    if not settings.contradiction_check:
        return None
    if llm is None:
        raise InvalidInput(
            "contradiction_check is on, but no LLM is configured: set llm, for example openai:gpt-5-mini"
        )
    from graphmem.ingest.contradictions import ContradictionCheck
    from graphmem.ingest.judges import llm_judge

    return ContradictionCheck(llm_judge(llm, timeout=settings.extraction_timeout))


def choose_inference_question(llm: BaseChatModel | str | None, settings: Settings) -> ListQuestion:
    """Return the model that infers facts.

    Raises
    ------
    InvalidInput
        If there is no LLM.
    """
    if llm is None:
        raise InvalidInput(
            "infer: no LLM is configured to infer facts about an entity; set llm, or leave out the entity"
        )
    from graphmem.inference.by_model import inference_question

    return inference_question(llm, timeout=settings.extraction_timeout)


def similar_entities(
    backend: GraphBackend, embedder: Embedder | None, llm: BaseChatModel | str | None, settings: Settings
) -> tuple[SimilarEntities | None, NoteLinks | None]:
    """Return the entity matcher and the note linker; None for each that is disabled or lacks an embedding model."""
    if embedder is None or not (settings.resolve_similar or settings.note_linking):
        return None, None
    from graphmem.ingest.entity_matching import SimilarEntities
    from graphmem.ingest.judges import llm_same
    from graphmem.ingest.note_links import NoteLinks

    @cache
    def judge() -> Ask:
        assert llm is not None
        return llm_same(llm, timeout=settings.extraction_timeout)

    def ask(new: Sequence[str], known: Sequence[str]) -> Pairs:
        return judge()(new, known)  # created on first use, because most sessions only read

    similar = SimilarEntities(
        backend,
        embedder,
        ask if llm is not None and settings.resolve_questions else None,
        merge_at=settings.resolve_merge_similarity,
        ask_at=settings.resolve_ask_similarity,
        most_questions=settings.resolve_questions,
        resolves=settings.resolve_similar,
        memory=settings.index_memory_mb * MB,
    )
    return similar, NoteLinks(backend, similar.vectors) if settings.note_linking else None
