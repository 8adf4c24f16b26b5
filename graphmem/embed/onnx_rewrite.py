"""Rewriting of ONNX models: products by int8 weights are computed in integers.

Some exports store weights as int8 with a scale per column, and convert them to floats before each product. Here such a
product ``x @ (float(w) × scale)`` becomes ``(quantized(x) @ w) × scale of x × scale``, where each row of x is quantized
to 8 bits with a scale of its own when the model runs. `quantize_dynamic` of ONNX Runtime has one scale for all of x:
that is a tenth faster and less exact, and the result for a text would depend on the others of its batch.

The file stays as it is. The few parts of its format that this needs (onnx/onnx.proto, in the wire format of protocol
buffers) are read and written here, without the onnx package.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

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
