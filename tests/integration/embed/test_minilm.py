"""The built-in model with its real weights: the right numbers, always the same ones, whoever asks and however."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from graphmem.embed import Embedder, MiniLM, TokenEmbeddings, bert, choose_embeddings
from graphmem.embed.bert import Weights
from graphmem.embed.minilm import installed_weights
from graphmem.errors import EmbeddingFailed, InvalidInput
from tests.integration.embed.support import real_model

TEXTS = [
    "Caroline went to the support group on 7 May 2023.",
    "What did Melanie paint?",
    "x",
    "",
    "The capital of France is Paris. " * 40,
    "Naïve café in 北京, 😀 and e\u0301.",
    "def f(a, b): return a + b",
]

# What sentence-transformers gives with the float32 weights: the first numbers of the vector, rounded.
REFERENCE = {
    "This is an example sentence": [0.0677, 0.0635, 0.0487, 0.0793, 0.0374, 0.0027],
    "Each sentence is converted": [0.0864, 0.1028, 0.0054, 0.0020, -0.0100, 0.0254],
    "What did Melanie paint?": [-0.0203, 0.0580, 0.0466, 0.0137, 0.0214, 0.0602],
}


@pytest.fixture(scope="module")
def model() -> MiniLM:
    return real_model()


@pytest.fixture
def embedder(model: MiniLM) -> Embedder:
    return Embedder(model, timeout=120, cache_bytes=0)


def bits(model: MiniLM, texts: list[str]) -> list[str]:
    return [hashlib.sha256(np.array(vector).tobytes()).hexdigest() for vector in model.embed_documents(texts)]


def test_the_vocabulary_covers_english_and_no_other_scripts(model: MiniLM) -> None:
    texts = [
        "Where does Maya work?",
        "Где работает Мария?",
        "王小明住在哪里？",
        "สมชายอยู่ที่ไหน",
        "?!",
        "Kim nerede çalışıyor?",
    ]
    read = [round(one.vocabulary_coverage, 1) for one in model.embed_tokens(texts)]
    assert read[:5] == [1, 0, 0, 0, 1]
    assert 0 < read[5] < 1


# The right numbers


@pytest.mark.parametrize("text", REFERENCE)
def test_vector_is_that_of_the_reference_within_what_int8_loses(model: MiniLM, text: str) -> None:
    np.testing.assert_allclose(model.embed_query(text)[:6], REFERENCE[text], atol=0.016)


# The cosines that the model's card shows.
@pytest.mark.parametrize(
    ("text", "cosine"),
    [("That is a happy dog", 0.695), ("That is a very happy person", 0.943), ("Today is a sunny day", 0.257)],
)
def test_cosines_are_those_of_the_reference(embedder: Embedder, text: str, cosine: float) -> None:
    assert embedder.vector("That is a happy person") @ embedder.vector(text) == pytest.approx(cosine, abs=0.02)


@pytest.mark.parametrize(
    ("one", "paraphrase", "unrelated"),
    [
        ("A man is eating food.", "A man is eating a piece of bread.", "The girl is carrying a baby."),
        ("How do I reset my password?", "I forgot my password, what now?", "The glacier lost ten metres of ice."),
        ("Melanie painted a sunrise.", "What did Melanie paint?", "Interest rates rose again in June."),
    ],
)
def test_paraphrase_is_nearer_than_an_unrelated_text(
    embedder: Embedder, one: str, paraphrase: str, unrelated: str
) -> None:
    vectors = embedder.vectors([one, paraphrase, unrelated])
    assert vectors[0] @ vectors[1] > 0.55
    assert vectors[0] @ vectors[2] < 0.2


def test_token_vector_means_the_word_in_its_context(model: MiniLM) -> None:
    def bank(text: str) -> NDArray[np.float32]:
        [read] = model.embed_tokens([text])
        return read.vectors[read.pieces.index("bank")]

    river, shore, money = map(bank, ["the bank of a river", "a river's muddy bank", "the bank lent me money"])
    assert river @ shore > river @ money


# Token vectors


def test_model_gives_token_vectors(model: MiniLM) -> None:
    assert isinstance(model, TokenEmbeddings)


def test_one_pass_gives_the_same_pooled_vector_as_the_model_alone(model: MiniLM) -> None:
    pooled = [read.pooled for read in model.embed_tokens(TEXTS)]
    np.testing.assert_array_equal(np.array(pooled), np.array(model.embed_documents(TEXTS), np.float32))


def test_offsets_point_at_the_pieces_in_the_text(model: MiniLM) -> None:
    text = "Unbelievable: Caroline's paintings, 1,024 of them, hang in Zürich."
    [read] = model.embed_tokens([text])
    found = [text[start:end].lower().replace("ü", "u") for start, end in read.offsets]
    assert found == [piece.removeprefix("##") for piece in read.pieces]


@pytest.mark.parametrize("text", TEXTS)
def test_token_vectors_fit_their_text(model: MiniLM, text: str) -> None:
    [read] = model.embed_tokens([text])
    assert read.vectors.shape == (len(read.pieces), 384)
    assert (read.vectors.dtype, read.pooled.dtype) == (np.float32, np.float32)
    np.testing.assert_allclose(np.linalg.norm(read.vectors, axis=1), 1, atol=1e-5)
    assert ((read.offsets >= 0) & (read.offsets <= len(text))).all()
    assert (np.diff(read.offsets.ravel()) >= 0).all()


# Odd input


ODD = {
    "empty": "",
    "white": " \t\n",
    "NUL": "\0",
    "surrogate": "\ud800",
    "invisible": "\u202e\u200b\ufeff",
    "special": "[CLS] [SEP] [PAD]",
    "punctuation": "?!…—«»",
    "one word": "x" * 200_000,
    "long and blank": " " * 200_000,
    "combining": "e\u0301" * 99,
}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_odd_text_has_a_vector_of_unit_length(embedder: Embedder, text: str) -> None:
    [read] = embedder.token_vectors([text]) or []
    assert np.linalg.norm(read.pooled) == pytest.approx(1, abs=1e-5)
    assert len(read.pieces) == len(read.vectors)


def test_what_is_written_like_a_special_token_is_text(model: MiniLM) -> None:
    [read] = model.embed_tokens(["a [SEP] b"])
    assert read.pieces == ("a", "[", "sep", "]", "b")


def test_only_the_first_256_tokens_are_read(model: MiniLM) -> None:
    [read] = model.embed_tokens(["word " * 1_000])
    assert len(read.pieces) == 254  # and [CLS] and [SEP]


def test_what_stands_behind_a_long_text_changes_nothing(model: MiniLM) -> None:
    long = "word " * 1_000
    assert model.embed_query(long) == model.embed_query(long + "another " * 50_000)


# Always the same numbers


def test_vector_does_not_depend_on_the_other_texts(model: MiniLM) -> None:
    assert bits(model, TEXTS) == [bits(model, [text])[0] for text in TEXTS]


def test_vector_does_not_depend_on_the_number_of_threads(model: MiniLM) -> None:
    assert bits(MiniLM(threads=1), TEXTS) == bits(MiniLM(threads=4), TEXTS) == bits(model, TEXTS)


def test_threads_that_share_the_model_get_the_same_vectors() -> None:
    model = real_model()  # not loaded yet: all threads come to it at once
    gate = threading.Barrier(6)

    def read(_: int) -> list[str]:
        gate.wait(30)
        return bits(model, TEXTS)

    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(read, range(6)))
    assert all(result == results[0] for result in results)


@pytest.mark.slow
def test_two_processes_at_once_get_the_same_vectors(model: MiniLM) -> None:
    program = "from tests.integration.embed.test_minilm import *\nprint(*bits(MiniLM(), TEXTS))"
    command = [sys.executable, "-c", program]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate(timeout=120)[0].split() for process in running] == [bits(model, TEXTS)] * 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_child_of_a_fork_gets_the_same_vectors(model: MiniLM) -> None:
    expected, context = bits(model, TEXTS), multiprocessing.get_context("fork")
    told = context.SimpleQueue()
    child = context.Process(target=lambda: told.put(bits(model, TEXTS)))
    child.start()
    child.join(120)
    assert child.exitcode == 0
    assert told.get() == expected


# Files


def test_model_is_the_one_that_auto_takes(model: MiniLM) -> None:
    chosen = choose_embeddings("auto")
    assert isinstance(chosen, MiniLM)
    assert (chosen.model_name, chosen.dimension) == (model.model_name, 384) == ("all-MiniLM-L6-v2/int8", 384)


@pytest.fixture
def folder(model: MiniLM, tmp_path: Path) -> Path:
    del model  # is there, or the test is skipped
    weights = installed_weights()
    assert weights is not None
    shutil.copy(weights.model, tmp_path / "model.onnx")
    shutil.copy(weights.tokenizer, tmp_path / "tokenizer.json")
    return tmp_path


def test_folder_with_the_same_files_is_the_same_model(model: MiniLM, folder: Path) -> None:
    copied = MiniLM(folder)
    assert copied.model_name == model.model_name
    assert bits(copied, TEXTS) == bits(model, TEXTS)


@pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json"])
def test_damaged_file_fails_with_its_place(folder: Path, file: str) -> None:
    (folder / file).write_bytes((folder / file).read_bytes()[:1000])
    with pytest.raises(EmbeddingFailed, match=str(folder)):
        Embedder(MiniLM(folder)).vector("x")


def test_file_that_is_gone_at_the_first_use_fails(folder: Path) -> None:
    model = MiniLM(folder)
    (folder / "model.onnx").unlink()
    with pytest.raises(EmbeddingFailed, match=str(folder)):
        Embedder(model).vector("x")


def test_no_threads_are_refused(model: MiniLM) -> None:
    del model  # is there, or the test is skipped
    with pytest.raises(InvalidInput, match="threads 0"):
        MiniLM(threads=0)


def test_models_of_the_same_files_are_loaded_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[Weights] = []
    load = bert._load  # pyright: ignore[reportPrivateUsage]

    def counted(weights: Weights) -> Any:
        loaded.append(weights)
        return load(weights)

    monkeypatch.setattr(bert, "_load", counted)
    for _ in range(3):
        MiniLM(folder).embed_query("x")
    assert len(loaded) == 1

    os.utime(folder / "tokenizer.json", (1, 1))
    MiniLM(folder).embed_query("x")
    assert len(loaded) == 2
