"""Two models as one: all-MiniLM-L6-v2 with e5-small-v2, or with itself where the files of e5-small-v2 aren't there."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from graphmem import GraphMemory
from graphmem.embed import MiniLM, TokenEmbeddings, choose_embeddings
from graphmem.embed.minilm import PairedModel
from graphmem.errors import InvalidInput, MissingExtra
from tests.integration.embed.support import real_model

E5 = os.environ.get("GRAPHMEM_TEST_E5")
TEXTS = ["I moved to Lisbon last week.", "My home is in Lisbon now.", "The database runs on Postgres."]


@pytest.fixture(scope="module")
def model() -> MiniLM:
    return real_model()


@pytest.fixture(scope="module")
def paired(model: MiniLM) -> PairedModel:
    return PairedModel(model, model)


def test_a_vector_has_one_half_of_each_model(model: MiniLM, paired: PairedModel) -> None:
    assert isinstance(paired, TokenEmbeddings)
    assert (paired.dimension, paired.model_name) == (768, f"{model.model_name}+{model.model_name}")
    for one, both in zip(model.embed_tokens(TEXTS), paired.embed_tokens(TEXTS), strict=True):
        assert (one.pieces, one.offsets.tolist()) == (both.pieces, both.offsets.tolist())
        assert both.vectors.shape == (len(one.pieces), 768)
        assert np.allclose(np.linalg.norm(both.vectors, axis=1), 1, atol=1e-5)
        assert np.allclose(both.pooled[:384] * 2**0.5, one.pooled, atol=1e-5)
        assert not np.allclose(both.pooled[384:] * 2**0.5, one.pooled, atol=1e-2)  # without the mean


def test_the_same_text_has_the_same_vector_in_all_calls(paired: PairedModel) -> None:
    assert paired.embed_query(TEXTS[0]) == paired.embed_documents(TEXTS)[0]


def test_an_index_of_both_is_read_again(paired: PairedModel, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'm.db'}"
    with GraphMemory.open(url, extractor="none", embeddings=paired, background=False) as memory:
        memory.ingest([{"speaker": "Ann", "session_id": "1", "text": text} for text in TEXTS])
        assert memory.search("Where is the home of Ann?")[0].episode.text == TEXTS[1]
    with GraphMemory.open(url, extractor="none", embeddings=paired, background=False) as memory:
        assert memory.search("Which database is used?")[0].episode.text == TEXTS[2]


def test_files_that_are_not_there_are_named(model: MiniLM, tmp_path: Path) -> None:
    del model  # is there, or the test is skipped
    with pytest.raises(MissingExtra, match=r"e5-small-v2 \(minilm\+e5:FOLDER"):
        choose_embeddings("minilm+e5")
    with pytest.raises(InvalidInput, match=r"expected tokenizer\.json"):
        choose_embeddings(f"minilm+e5:{tmp_path}")


@pytest.mark.skipif(E5 is None, reason="needs the files of e5-small-v2: GRAPHMEM_TEST_E5=FOLDER")
def test_e5_tells_texts_apart_once_its_mean_is_gone() -> None:
    chosen = choose_embeddings(f"minilm+e5:{E5}")
    assert isinstance(chosen, PairedModel)
    halves = np.array(chosen.embed_documents(TEXTS))[:, 384:] * 2**0.5
    assert halves[0] @ halves[1] > 0.5
    assert abs(halves[0] @ halves[2]) < 0.3
