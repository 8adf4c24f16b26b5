"""BERT models on ONNX Runtime, without torch: their files, and vectors of texts and of tokens."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from graphmem.embed.interface import TokenVectors
from graphmem.embed.onnx_rewrite import with_integer_products
from graphmem.errors import EmbeddingFailed, InvalidInput, MissingExtra
from graphmem.process import PerProcess

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer


_log = logging.getLogger(__name__)

_IN_FOLDER = ("model.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx")
_TOKENIZER = "tokenizer.json"
_ON_HUB = "onnx/model_quantized.onnx"
T = TypeVar("T")
_DIMENSION = 384
_MAX_TOKENS = 256  # limit published with the model (sentence_bert_config.json); longer texts are cut
_MAX_CHARACTERS = 65_536  # covers the first 256 tokens of any text that isn't mostly white space
_AT_ONCE = 256  # tokens per run: for a single name, reading the weights takes most of the time
_DEPENDENT = b"DynamicQuantizeLinear"  # operator whose scale depends on the largest number of a batch


@dataclass(frozen=True, slots=True)
class Weights:
    """Files of a model and the name stored with its vectors."""

    model: Path
    tokenizer: Path
    name: str

    def stamp(self) -> tuple[int, ...]:
        """Return the modification time and size of each file, which change when it is replaced."""
        found = [file.stat() for file in (self.model, self.tokenizer)]
        return tuple(n for one in found for n in (one.st_mtime_ns, one.st_size))


def weights_in(folder: Path, known: Mapping[str, str] | None = None) -> Weights:
    """Return the files in a folder.

    Parameters
    ----------
    folder
        Folder with `tokenizer.json` and `model.onnx` (or `onnx/model.onnx`).
    known
        SHA-256 of a model file → name of its vectors; others are named by their hash.

    Raises
    ------
    InvalidInput
        If the folder lacks a file.
    """
    model = next((path for name in _IN_FOLDER if (path := folder / name).is_file()), None)
    tokenizer = folder / _TOKENIZER
    if model is None or not tokenizer.is_file():
        raise InvalidInput(f"embedding model in {folder}: expected {_TOKENIZER} and one of {', '.join(_IN_FOLDER)}")
    return Weights(model, tokenizer, _named(model, known or {}))


def download_weights(repository: str, revision: str | None, model: str) -> Weights:
    """Download the files of a model from the hub once, into its cache.

    Parameters
    ----------
    repository, revision
        Repository on the hub and its revision; None is the newest, whose vectors are named by the hash of the file.
    model
        Name of the model in messages and of its vectors.

    Raises
    ------
    MissingExtra
        If the client of the hub isn't installed, or the files can't be downloaded.
    """
    try:
        import huggingface_hub
    except ImportError as error:
        raise MissingExtra(f"downloading the embedding model {model}", "embeddings") from error
    fetch = cast("Callable[..., str]", huggingface_hub.hf_hub_download)  # pyright: ignore[reportUnknownMemberType]
    _log.info("downloading %s from the hub, once", repository)
    try:
        file, tokenizer = (Path(fetch(repository, name, revision=revision)) for name in (_ON_HUB, _TOKENIZER))
    except Exception as error:  # the hub client raises errors of its HTTP library
        what = f"the embedding model {model}, which couldn't be downloaded from the hub ({type(error).__name__}),"
        raise MissingExtra(what, "embeddings") from error
    name = _named(file, {}) if revision is None else f"{model}/{revision[:8]}-int8"
    return Weights(file, tokenizer, name)


def _named(model: Path, known: Mapping[str, str]) -> str:
    with model.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return known.get(digest) or f"onnx/{digest[:16]}"


class _Session(Protocol):
    """Used subset of ``onnxruntime.InferenceSession``."""

    def get_inputs(self) -> list[Any]: ...

    def get_outputs(self) -> list[Any]: ...

    def run(self, output_names: None, input_feed: dict[str, NDArray[np.int64]], /) -> list[NDArray[np.float32]]: ...


@dataclass(frozen=True, slots=True)
class _Parts:
    session: _Session
    tokenizer: Tokenizer
    inputs: frozenset[str]
    in_batches: bool


def bert_available() -> bool:
    """Return whether the libraries required to run a model are installed."""
    return all(find_spec(package) is not None for package in ("onnxruntime", "tokenizers"))


class BertModel:
    """BERT model: vectors of dimension 384 for texts and their tokens.

    The vector of a text is the mean of its last hidden states, [CLS] and [SEP] included, normalized to unit length
    (Reimers and Gurevych 2019, arXiv 1908.10084). On one kind of processor it doesn't depend on the other texts of a
    batch: only texts with the same number of tokens share a run, without padding, and each text has its own run if the
    weights are dynamically quantized. A run uses one core; runs are parallel. Special tokens in the input ("[SEP]") are
    encoded as text. Only the first 256 tokens are used. Thread-safe. The files are opened on first use and again after
    a fork; all instances in a process share one copy of the model, which stays loaded.

    Parameters
    ----------
    weights
        Files of the model.
    threads
        Maximum number of parallel runs; defaults to the number of processors.

    Raises
    ------
    MissingExtra
        If ONNX Runtime or tokenizers isn't installed.
    InvalidInput
        If `threads` is below 1.
    """

    dimension = _DIMENSION

    def __init__(self, weights: Weights, *, threads: int | None = None) -> None:
        if not bert_available():
            raise MissingExtra("the built-in embedding model", "embeddings")
        if threads is not None and threads < 1:
            raise InvalidInput(f"threads {threads}: expected at least 1")
        self.model_name = weights.name
        self._threads = threads or os.cpu_count() or 1
        self._parts = _loaded_once(weights, weights.stamp())

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return a vector of unit length for each text.

        Raises
        ------
        EmbeddingFailed
            If the model files can't be read or belong to another model.
        """
        vectors: list[list[float]] = [vector.tolist() for vector in self._each(_pooled, texts)]
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query; the model embeds queries and documents alike."""
        return self.embed_documents([text])[0]

    def embed_tokens(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Return the token vectors and the pooled vector of each text from one forward pass.

        Raises
        ------
        EmbeddingFailed
            If the model files can't be read or belong to another model.
        """
        return self._each(_tokens, texts)

    def _each(self, read: Callable[[Encoding, NDArray[np.float32]], T], texts: Sequence[str]) -> list[T]:
        parts = self._parts.get()
        encodings = parts.tokenizer.encode_batch([_encodable(text[:_MAX_CHARACTERS]) for text in texts])
        batches = list(_batches([len(encoding.ids) for encoding in encodings], in_batches=parts.in_batches))
        found: dict[int, T] = {}

        def run(batch: Sequence[int]) -> None:
            hidden = _hidden(parts, [encodings[i].ids for i in batch])
            found.update((i, read(encodings[i], row)) for i, row in zip(batch, hidden, strict=True))

        threads = min(self._threads, len(batches))
        if threads < 2:
            for batch in batches:
                run(batch)
        else:
            with ThreadPoolExecutor(threads, thread_name_prefix="graphmem-embed") as pool:
                list(pool.map(run, batches))
        return [found[i] for i in range(len(texts))]


def _batches(lengths: Sequence[int], *, in_batches: bool) -> Iterator[list[int]]:
    """Yield the positions of the texts of each run, all of the same length, longest first."""
    places = sorted(range(len(lengths)), key=lambda i: lengths[i], reverse=True)
    for length, same in groupby(places, key=lambda i: lengths[i]):
        of_length = list(same)
        size = max(1, _AT_ONCE // length) if in_batches else 1
        for start in range(0, len(of_length), size):
            yield of_length[start : start + size]


def _hidden(parts: _Parts, tokens: Sequence[Sequence[int]]) -> NDArray[np.float32]:
    """Return the last hidden states of texts of n tokens each, (texts, n, 384)."""
    ids = np.array(tokens, np.int64)
    feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    return parts.session.run(None, {name: feed[name] for name in parts.inputs})[0]


def _pooled(_: Encoding, hidden: NDArray[np.float32]) -> NDArray[np.float32]:
    return unit(hidden.mean(axis=0))


def _tokens(encoding: Encoding, hidden: NDArray[np.float32]) -> TokenVectors:
    own = np.flatnonzero(np.array(encoding.special_tokens_mask) == 0)
    return TokenVectors(
        pieces=tuple(encoding.tokens[i] for i in own),
        vectors=unit(hidden[own]),
        offsets=np.array([encoding.offsets[i] for i in own], np.int64).reshape(-1, 2),
        pooled=_pooled(encoding, hidden),
    )


@lru_cache(maxsize=2)
def _loaded_once(weights: Weights, _stamp: tuple[int, ...]) -> PerProcess[_Parts]:
    """Return the model of these files, shared in the process, as loading takes 0.3 to 0.7 s and 110 MB."""
    return PerProcess(lambda: _load(weights))


def _load(weights: Weights) -> _Parts:
    import onnxruntime  # pyright: ignore[reportMissingTypeStubs]
    from tokenizers import Tokenizer

    runtime = cast("Any", onnxruntime)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors only; warnings concern the machine
    try:
        tokenizer = Tokenizer.from_file(str(weights.tokenizer))
        model = with_integer_products(weights.model.read_bytes())
        session: _Session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        in_batches = _DEPENDENT not in model
    except Exception as error:  # neither library has a common base class of its errors
        raise EmbeddingFailed(f"embedding model in {weights.model.parent}: can't be read ({error})") from error
    tokenizer.no_padding()
    cast("Any", tokenizer).enable_truncation(_MAX_TOKENS)
    tokenizer.encode_special_tokens = True
    parts = _Parts(session, tokenizer, frozenset(each.name for each in session.get_inputs()), in_batches)
    _check_shape(parts, weights)
    return parts


def _check_shape(parts: _Parts, weights: Weights) -> None:
    known = {"input_ids", "attention_mask", "token_type_ids"}
    shape = parts.session.get_outputs()[0].shape
    if parts.inputs <= known and len(shape) == 3 and shape[2] == _DIMENSION:
        return
    raise EmbeddingFailed(
        f"embedding model {weights.model}: expected last hidden states of {_DIMENSION} numbers from "
        f"{', '.join(sorted(known))}; it takes {', '.join(sorted(parts.inputs))} and gives {shape}"
    )


def _encodable(text: str) -> str:
    """Return the text with "?" for each lone surrogate, which tokenizers reject; positions are unchanged."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the vectors normalized to unit length; zero vectors are unchanged."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
