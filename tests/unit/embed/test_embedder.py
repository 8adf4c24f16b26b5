"""What an `Embedder` makes of good and bad models; the models here are a few lines of arithmetic."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import pytest

from graphmem.embed import Embedder, Embeddings, TokenVectors
from graphmem.embed.embedder import name_of
from graphmem.errors import EmbeddingFailed, InvalidInput


def lengths(text: str) -> list[float]:
    return [float(len(text)), 1.0, 2.0]


@dataclass
class Arithmetic:
    """Counts what it is asked."""

    answer: Callable[[list[str]], Any] = lambda texts: [lengths(text) for text in texts]
    asked: list[list[str]] = field(default_factory=list[list[str]])

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.asked.append(texts)
        return self.answer(texts)

    def embed_query(self, text: str) -> list[float]:
        self.asked.append([text])
        return [-value for value in self.answer([text])[0]]


@dataclass
class WithTokens(Arithmetic):
    change: Callable[[TokenVectors], TokenVectors] = lambda given: given

    def embed_tokens(self, texts: Sequence[str]) -> list[TokenVectors]:
        self.asked.append(list(texts))
        return [self.change(self.read(text)) for text in texts]

    def read(self, text: str) -> TokenVectors:
        words = tuple(text.split())
        vectors = np.array([lengths(word) for word in words], np.float32).reshape(-1, 3)
        offsets = np.array([(text.index(word), text.index(word) + len(word)) for word in words], np.int64)
        return TokenVectors(words, vectors, offsets.reshape(-1, 2), np.array(lengths(text), np.float32))


# Vectors


def test_vectors_are_of_unit_length_in_the_order_of_the_texts() -> None:
    vectors = Embedder(Arithmetic()).vectors(["a", "abc"])
    expected = [np.array(lengths(text)) / np.linalg.norm(lengths(text)) for text in ("a", "abc")]
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, expected, rtol=1e-6)


def test_question_goes_through_the_models_own_way_of_reading_questions() -> None:
    embedder = Embedder(Arithmetic())
    np.testing.assert_allclose(embedder.vector("a"), -embedder.vectors(["a"])[0])


def test_no_texts_give_no_vectors_and_no_call() -> None:
    model = Arithmetic()
    assert len(Embedder(model).vectors([])) == 0
    assert model.asked == []


def test_only_a_model_with_token_vectors_is_loaded_by_a_call() -> None:
    service, local = Arithmetic(), WithTokens()
    Embedder(service).load()
    Embedder(local).load()
    assert service.asked == []
    assert len(local.asked) == 1


def test_texts_are_passed_on_in_batches() -> None:
    model = Arithmetic()
    Embedder(model, batch_size=2).vectors(["a", "ab", "abc", "abcd", "abcde"])
    assert [len(batch) for batch in model.asked] == [2, 2, 1]


def test_long_texts_go_in_smaller_batches() -> None:
    model = Arithmetic()
    Embedder(model).vectors(["a" * 9_000, "b" * 3_000, "c" * 3_000, "d" * 3_000])
    assert [len(batch) for batch in model.asked] == [1, 2, 1]


def test_large_and_small_numbers_keep_their_direction() -> None:
    embedder = Embedder(Arithmetic(lambda texts: [[3e30, 4e30], [3e-30, 4e-30]][: len(texts)]))
    np.testing.assert_allclose(embedder.vectors(["a", "b"]), [[0.6, 0.8], [0.6, 0.8]], rtol=1e-6)


def test_dimension_is_learnt_from_the_model() -> None:
    assert Embedder(Arithmetic()).dimension == 3


# Cache


def test_text_is_computed_once() -> None:
    model = Arithmetic()
    embedder = Embedder(model)
    first = embedder.vectors(["a", "b", "a"])
    second = embedder.vectors(["b", "a"])
    assert model.asked == [["a", "b"]]
    np.testing.assert_array_equal(first[[1, 0]], second)


def test_cache_of_no_bytes_keeps_nothing() -> None:
    model = Arithmetic()
    embedder = Embedder(model, cache_bytes=0)
    embedder.vectors(["a"])
    embedder.vectors(["a"])
    assert model.asked == [["a"], ["a"]]


def test_cached_vector_cannot_be_overwritten() -> None:
    vector = Embedder(Arithmetic()).vector("a")
    with pytest.raises(ValueError, match="read-only"):
        vector[0] = 0


def test_failed_text_is_asked_again() -> None:
    answers: list[Any] = [[[0.0, 0.0]], [[0.0, 1.0]]]
    embedder = Embedder(Arithmetic(lambda _: answers.pop(0)))
    with pytest.raises(EmbeddingFailed):
        embedder.vectors(["a"])
    np.testing.assert_array_equal(embedder.vectors(["a"]), [[0, 1]])


# Token vectors


def test_model_without_token_vectors_gives_none() -> None:
    assert Embedder(Arithmetic()).token_vectors(["a b"]) is None


def test_token_vectors_come_with_the_pooled_vector_in_one_pass() -> None:
    model = WithTokens()
    embedder = Embedder(model)
    [read] = embedder.token_vectors(["a bcd"]) or []
    assert read.pieces == ("a", "bcd")
    np.testing.assert_allclose(np.linalg.norm(read.vectors, axis=1), 1, rtol=1e-6)
    np.testing.assert_array_equal(embedder.vector("a bcd"), read.pooled)
    np.testing.assert_array_equal(embedder.vectors(["a bcd"])[0], read.pooled)
    assert model.asked == [["a bcd"]]


def test_text_without_pieces_has_a_pooled_vector() -> None:
    [read] = Embedder(WithTokens()).token_vectors([""]) or []
    assert read.vectors.shape == (0, 3)
    assert np.linalg.norm(read.pooled) == pytest.approx(1)


BROKEN: dict[str, Callable[[TokenVectors], TokenVectors]] = {
    "pieces": lambda given: replace(given, pieces=given.pieces[:1]),
    "dimension": lambda given: replace(given, vectors=given.vectors[:, :2]),
    "NaN": lambda given: replace(given, vectors=given.vectors * np.nan),
    "offsets": lambda given: replace(given, offsets=given.offsets[:1]),
    "zeros": lambda given: replace(given, pooled=given.pooled * 0),
}


@pytest.mark.parametrize("what", BROKEN)
def test_token_vectors_that_do_not_fit_together_fail(what: str) -> None:
    with pytest.raises(EmbeddingFailed):
        Embedder(WithTokens(change=BROKEN[what])).token_vectors(["a bcd"])


# Failures


NO_VECTORS: list[tuple[object, str]] = [
    ([[1.0, 2.0]], "returned 1 vectors for 2 texts"),
    ([[1.0, 2.0], [1.0]], "vectors of one length"),
    ([[1.0, float("nan")], [1.0, 2.0]], "not finite"),
    ([[1.0, float("inf")], [1.0, 2.0]], "not finite"),
    ([[0.0, 0.0], [1.0, 2.0]], "a vector of zeros"),
    ([[], []], "a vector of zeros"),
    ([], "returned 0 vectors for 2 texts"),
    ([1.0, 2.0], "something other than a list of vectors"),
    (None, "something other than a list of vectors|vectors of one length"),
    (["one", "two"], "something other than vectors"),
]


@pytest.mark.parametrize(("answer", "told"), NO_VECTORS)
def test_answer_that_is_no_vectors_fails_with_what_is_wrong(answer: object, told: str) -> None:
    with pytest.raises(EmbeddingFailed, match=told):
        Embedder(Arithmetic(lambda _: answer), name="broken").vectors(["a", "b"])


def test_another_dimension_than_before_fails() -> None:
    answers: list[Any] = [[[1.0, 2.0]], [[1.0, 2.0, 3.0]]]
    embedder = Embedder(Arithmetic(lambda _: answers.pop(0)))
    embedder.vectors(["a"])
    with pytest.raises(EmbeddingFailed, match="of 3 numbers, 2 before"):
        embedder.vectors(["b"])


def test_what_a_model_raises_is_told_and_kept_as_the_cause() -> None:
    def away(_: list[str]) -> object:
        raise ConnectionError("no route to the server")

    with pytest.raises(EmbeddingFailed, match=r"embedding model mine: ConnectionError: no route") as caught:
        Embedder(Arithmetic(away), name="mine").vector("a")
    assert isinstance(caught.value.__cause__, ConnectionError)


def test_secret_in_what_a_model_raises_is_masked() -> None:
    def refused(_: list[str]) -> object:
        raise ValueError("Incorrect API key provided: sk-abcdef1234567890")

    with pytest.raises(EmbeddingFailed) as caught:
        Embedder(Arithmetic(refused)).vector("a")
    assert "abcdef" not in str(caught.value)


def test_a_thread_that_embeds_is_named_after_its_work() -> None:
    names: list[str] = []

    def embed(_: list[str]) -> object:
        names.append(threading.current_thread().name)
        return [[1.0]]

    Embedder(Arithmetic(embed)).vector("a")
    assert names == ["graphmem-embed"]


def test_model_that_hangs_fails_after_the_time_limit() -> None:
    release = threading.Event()

    def hang(_: list[str]) -> object:
        release.wait(60)
        return [[1.0]]

    try:
        with pytest.raises(EmbeddingFailed, match=r"no reply within 0\.05 s"):
            Embedder(Arithmetic(hang), timeout=0.05).vector("a")
    finally:
        release.set()


def test_calls_go_on_after_threads_could_not_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    embedder = Embedder(Arithmetic(), timeout=5.0)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        for text in "abcdef":
            with pytest.raises(EmbeddingFailed, match="can't start new thread"):
                embedder.vector(text)
    found: list[int] = []
    later = threading.Thread(target=lambda: found.append(len(embedder.vector("a"))), daemon=True)
    later.start()
    later.join(10)
    assert found == [embedder.dimension]


@pytest.mark.parametrize(
    "options", [{"timeout": 0.0}, {"timeout": float("nan")}, {"batch_size": 0}, {"cache_bytes": -1}]
)
def test_number_out_of_range_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        Embedder(Arithmetic(), **options)


def test_object_that_embeds_nothing_is_refused() -> None:
    with pytest.raises(InvalidInput, match="embed_documents"):
        Embedder(cast("Embeddings", object()))


# Names


def test_name_is_what_the_user_gives() -> None:
    assert Embedder(Arithmetic(), name="mine").model_name == "mine"


def test_name_and_dimension_are_what_the_model_says_of_itself() -> None:
    class Said(Arithmetic):
        model_name = "all-of-it"
        dimension = 3

    embedder = Embedder(Said())
    assert (embedder.model_name, embedder.dimension) == ("all-of-it", 3)


def test_dimension_that_the_model_does_not_keep_fails() -> None:
    class Said(Arithmetic):
        model_name = "all-of-it"
        dimension = 4

    with pytest.raises(EmbeddingFailed, match="of 3 numbers, 4 before"):
        Embedder(Said()).vector("a")


def test_name_of_an_integration_is_its_class_and_model() -> None:
    class SomeEmbeddings(Arithmetic):
        model = "embed-large"

    assert name_of(SomeEmbeddings()) == "SomeEmbeddings:embed-large"


def test_name_of_an_integration_that_shortens_vectors_has_their_dimension() -> None:
    class SomeEmbeddings(Arithmetic):
        model = "embed-large"
        dimensions: int | None = 256

    assert name_of(SomeEmbeddings()) == "SomeEmbeddings:embed-large/256"
    SomeEmbeddings.dimensions = None
    assert name_of(SomeEmbeddings()) == "SomeEmbeddings:embed-large"


def test_name_of_an_unknown_model_is_its_class() -> None:
    assert name_of(Arithmetic()) == f"{Arithmetic.__module__}.Arithmetic"
