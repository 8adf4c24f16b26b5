"""Chooses the parts of a memory from its settings: store, extractor, ontology, models, vector index, checks."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from graphmem.embed import Embedder, Embeddings, choose_embeddings
from graphmem.errors import InvalidInput, MissingExtra
from graphmem.ontology import DEFAULT_ONTOLOGY, Ontology
from graphmem.protocols import Extractor, GraphBackend, VectorIndex
from graphmem.registry import installed_extractors, masked
from graphmem.settings import Settings
from graphmem.text.english import spacy_available
from graphmem.vectors import ExactVectorIndex

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from graphmem.ingest.contradictions import Ask, ContradictionCheck
    from graphmem.ingest.entity_matching import SimilarEntities
    from graphmem.ingest.links import NoteLinks

_log = logging.getLogger(__name__)

_NO_EXTRACTOR = (
    "no extractor is installed: text is stored and found by search, but no facts are extracted from it. "
    "pip install 'graphmem[spacy]', or name an LLM with llm=; extractor=\"none\" is without this warning"
)


def store_options(settings: Settings) -> dict[str, object]:
    """Return what a store is opened with besides its URL, for `open_backend` to offer."""
    secret = settings.store_password
    return {
        "username": settings.store_username,
        "password": None if secret is None else secret.get_secret_value(),
        "timeout": settings.store_timeout,
        "wait": settings.store_wait,
    }


def choose_ontology(settings: Settings) -> Ontology:
    """Return the default ontology, with what the settings' file adds."""
    return DEFAULT_ONTOLOGY if settings.ontology is None else Ontology.load(settings.ontology)


def choose_extractor(
    choice: str, llm: BaseChatModel | str | None, ontology: Ontology, settings: Settings
) -> Extractor | None:
    """Return the extractor that a setting names; warn where ``auto`` finds none.

    Parameters
    ----------
    choice
        ``auto`` (the LLM if there is one, else spaCy if it is installed, else none), ``spacy``, ``none``,
        ``recorded:FILE``, ``llm``, ``llm:PROVIDER:MODEL``, or the name of an installed plugin
        (`graphmem.registry.installed_extractors`); one that can't be imported is logged and left out.
    llm
        A LangChain chat model, or the name of one.
    ontology, settings
        Passed on.

    Raises
    ------
    InvalidInput
        If the word is not one of these.
    MissingExtra
        If what it needs isn't installed.
    """
    kind, _, rest = choice.partition(":")
    if kind == "auto":
        kind = "llm" if llm is not None else "spacy" if spacy_available() else "none"
        if kind == "none":
            warnings.warn(_NO_EXTRACTOR, stacklevel=4)  # the caller of GraphMemory.open
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
            ontology=ontology,
        )
    if kind == "llm":
        raise InvalidInput("extractor 'llm': no model is configured; name one, for example llm:openai:gpt-5-mini")
    if (plugin := installed_extractors().get(kind)) is None:
        raise InvalidInput(
            f"extractor {choice!r}: expected auto, none, recorded:FILE, llm:PROVIDER:MODEL, or an installed one: "
            f"{', '.join(sorted(installed_extractors()))}"
        )
    try:
        open_extractor: Callable[..., Extractor] = plugin.load()
    except Exception as error:  # noqa: BLE001 - whatever a plugin's modules raise
        _log.warning("extractor %s: %s can't be imported (%r); no facts are extracted", kind, plugin.value, error)
        return None
    return open_extractor(rest, ontology=ontology, settings=settings)


def choose_embedder(choice: Embeddings | str | None, settings: Settings) -> Embedder | None:
    """Return the embedding model that an argument or the setting names, made safe to build on; None for none."""
    model = choose_embeddings(choice or settings.embeddings, download=settings.embeddings_download)
    return None if model is None else Embedder(model, timeout=settings.embedding_timeout)


def choose_vector_index(settings: Settings, backend: GraphBackend) -> VectorIndex | None:
    """Return the vector index that the setting names, None for the one in the store.

    Raises
    ------
    InvalidInput
        If the word is not one of these, or the store has none of its own.
    MissingExtra
        If what it needs isn't installed.
    """
    kind, _, rest = settings.vector_index.partition(":")
    if settings.vector_index == "store":
        return None
    if settings.vector_index == "exact":
        return ExactVectorIndex()
    if settings.vector_index == "native":
        if (native := backend.vector_index) is None:
            raise InvalidInput("vector_index 'native': this store has no vector index of its own; leave it at store")
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
    """Return the check if the settings turn it on.

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
    from graphmem.ingest.contradictions import ContradictionCheck, llm_judge

    return ContradictionCheck(llm_judge(llm, timeout=settings.extraction_timeout))


def similar_entities(
    backend: GraphBackend, embedder: Embedder | None, llm: BaseChatModel | str | None, settings: Settings
) -> tuple[SimilarEntities | None, NoteLinks | None]:
    """Return what compares new entities with known ones, and what links them; None where they are off or can't."""
    if embedder is None or not (settings.resolve_similar or settings.note_linking):
        return None, None
    from graphmem.ingest.contradictions import llm_same
    from graphmem.ingest.entity_matching import SimilarEntities
    from graphmem.ingest.links import NoteLinks

    @cache
    def judge() -> Ask:
        assert llm is not None
        return llm_same(llm, timeout=settings.extraction_timeout)

    def ask(new: str, known: Sequence[str]) -> Sequence[int]:
        return judge()(new, known)  # made when it is first asked: most that open a memory only read

    similar = SimilarEntities(
        backend,
        embedder,
        ask if llm is not None and settings.resolve_questions else None,
        merge_at=settings.resolve_merge_similarity,
        ask_at=settings.resolve_ask_similarity,
        most_questions=settings.resolve_questions,
        resolves=settings.resolve_similar,
    )
    return similar, NoteLinks(backend, similar.vectors) if settings.note_linking else None
