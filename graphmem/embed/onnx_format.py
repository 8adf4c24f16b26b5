"""The few parts of the format of ONNX that are read and written: nodes, constants and attributes (onnx/onnx.proto).

A message is a sequence of fields in the wire format of protocol buffers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

GRAPH, OPSET = 7, 8
"""Fields of a model."""

NODE, INITIALIZER = 1, 5
"""Fields of a graph."""

FLOAT, UINT8, INT8 = 1, 2, 3
"""Types of the elements of a tensor."""

_INPUT, _OUTPUT, _OPERATOR, _ATTRIBUTE = 1, 2, 4, 5  # fields of a node
_DIMENSION, _ELEMENTS, _TENSOR_NAME, _CONTENT = 1, 2, 8, 9  # fields of a tensor
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
        elif field.number == _DIMENSION:
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
    dimensions = b"".join(encoded(_DIMENSION, size) for size in shape)
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
