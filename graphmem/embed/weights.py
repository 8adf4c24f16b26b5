"""Files of an embedding model: in a folder, or from the Hugging Face hub."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from graphmem.errors import InvalidInput, MissingExtra

_log = logging.getLogger(__name__)

_IN_FOLDER = ("model.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx")
_TOKENIZER = "tokenizer.json"
_ON_HUB = "onnx/model_quantized.onnx"


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
