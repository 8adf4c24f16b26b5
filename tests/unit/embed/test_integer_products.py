"""A small model with stored weights, before and after its products are rewritten."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from graphmem.embed.onnx_rewrite import (
    FLOAT,
    GRAPH,
    INT8,
    OPSET,
    attribute,
    constant,
    encoded,
    fields,
    new_node,
    with_integer_products,
)

WEIGHTS = np.array([[127, -5, 3], [-64, 90, 0]], np.int8)
SCALES = np.array([[0.01, 0.02, 0.5]], np.float32)
ROWS = np.array([[1.0, -2.0], [0.001, 0.0005], [0.0, 0.0], [300.0, -7.0]], np.float32)


def described(number: int, name: str, width: int) -> bytes:
    """Return an input or output of floats, shape (n, width)."""
    shape = encoded(1, encoded(2, b"n")) + encoded(1, encoded(1, width))
    of_floats = encoded(1, encoded(1, 1) + encoded(2, shape))
    return encoded(number, encoded(1, name.encode()) + encoded(2, of_floats))


def model(scales: NDArray[np.float32] = SCALES, elements: int = INT8, version: int = 17) -> bytes:
    """Return ``y = x @ (float(weights) × scales)`` as ONNX."""
    weights = WEIGHTS if elements == INT8 else WEIGHTS.astype(np.int32)
    graph = b"".join(
        [
            new_node("Cast", ["w"], ["floats"], attribute("to", 1)),
            new_node("Mul", ["floats", "s"], ["weights"]),
            new_node("MatMul", ["x", "weights"], ["y"]),
            encoded(2, b"small"),
            constant("w", elements, weights.shape, weights.tobytes()),
            constant("s", FLOAT, scales.shape, scales.tobytes()),
            described(11, "x", 2),
            described(12, "y", 3),
        ]
    )
    operators = encoded(OPSET, encoded(1, b"") + encoded(2, version))
    return encoded(1, 9) + encoded(GRAPH, graph) + operators


def product(content: bytes, x: NDArray[np.float32]) -> NDArray[np.float32]:
    runtime = pytest.importorskip("onnxruntime")
    return runtime.InferenceSession(content, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


def test_products_are_those_of_floats_within_a_step_of_each_row() -> None:
    rewritten = with_integer_products(model())
    assert b"MatMulInteger" in rewritten
    expected = ROWS @ (WEIGHTS * SCALES)
    np.testing.assert_allclose(product(model(), ROWS), expected, rtol=1e-5)
    steps = np.abs(ROWS).max(axis=1, keepdims=True) / 127 * np.abs(WEIGHTS * SCALES).sum(axis=0)
    assert (np.abs(product(rewritten, ROWS) - expected) <= steps / 2 + 1e-6).all()


def test_a_row_does_not_depend_on_the_others() -> None:
    rewritten = with_integer_products(model())
    alone = np.concatenate([product(rewritten, row[None]) for row in ROWS])
    np.testing.assert_array_equal(product(rewritten, ROWS), alone)


@pytest.mark.parametrize(
    "content",
    [model(SCALES[:, :1]), model(elements=6), model(version=18), b"", encoded(1, 9)],
    ids=["one scale", "weights of 32 bits", "newer operators", "empty", "no graph"],
)
def test_another_model_stays_as_it_is(content: bytes) -> None:
    assert with_integer_products(content) is content


def test_numbers_are_written_as_they_are_read() -> None:
    for number in (0, 1, 127, 128, 300, 2**40, 2**64 - 1):
        [field] = fields(memoryview(encoded(5, number)))
        assert (field.number, field.value) == (5, number)
