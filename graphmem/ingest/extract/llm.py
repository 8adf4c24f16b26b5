"""Extraction by a language model: any LangChain chat model (spec: ingestion, extract)."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from graphmem.errors import (
    ExtractionFailed,
    ExtractorMisconfigured,
    ExtractorUnavailable,
    InvalidInput,
    MissingExtra,
)
from graphmem.ingest.content_filter import SKIPPED, skip_reason
from graphmem.ingest.extract.llm_parse import as_extraction, find_json
from graphmem.ingest.extract.llm_prompt import Message, answer_schema, data_blocks, rules, with_schema
from graphmem.ingest.extract.llm_selection import Limits, select
from graphmem.llm.chat import TimedCalls
from graphmem.llm.errors import FailureKind, kind_of, reason_for, rejects_the_format, secrets_of
from graphmem.models import Episode
from graphmem.ontology import DEFAULT_ONTOLOGY, Ontology
from graphmem.protocols import Extraction, ExtractionRequest

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

_log = logging.getLogger(__name__)

_SCHEMA_RUNG, _JSON_RUNG, _TEXT_RUNG = range(3)
_RUNG_NAMES = ("structured output", "JSON mode", "plain text")
_FAILURES: dict[FailureKind, type[ExtractionFailed]] = {
    "episode": ExtractionFailed,
    "unavailable": ExtractorUnavailable,
    "misconfigured": ExtractorMisconfigured,
}


class LLMExtractor:
    """Extractor that prompts a chat model.

    The model is first asked for structured output with its default method (a JSON schema or a tool). If it rejects
    that, the fallbacks are JSON mode with the schema in the prompt, then plain text, in which the JSON is located and
    repaired. Later calls start with the method that worked.

    Parameters
    ----------
    model
        A LangChain chat model, or its name for ``init_chat_model`` ("openai:gpt-4o-mini"); a model given by name
        is created on first use.
    timeout
        Seconds per episode, all attempts included.
    concurrency
        Maximum number of parallel calls.
    max_entities, max_edges
        Maximum number of entities and edges kept of one reply.
    context_bytes
        Maximum UTF-8 bytes of each earlier turn in the prompt.
    ontology
        Entity types for the prompt, and allowed short names.

    Raises
    ------
    MissingExtra
        If LangChain or json-repair isn't installed.
    InvalidInput
        If a number is out of range.
    """

    def __init__(
        self,
        model: BaseChatModel | str,
        *,
        timeout: float = 15.0,
        concurrency: int = 4,
        max_entities: int = 10,
        max_edges: int = 15,
        context_bytes: int = 2048,
        ontology: Ontology = DEFAULT_ONTOLOGY,
    ) -> None:
        needed = ("json_repair", "langchain_core", *(("langchain",) if isinstance(model, str) else ()))
        if any(find_spec(package) is None for package in needed):
            raise MissingExtra("LLMExtractor", "langchain")
        if not (math.isfinite(timeout) and timeout > 0):
            raise InvalidInput(f"timeout {timeout}: expected a number of seconds above 0")
        for field, value in (
            ("concurrency", concurrency),
            ("max_entities", max_entities),
            ("max_edges", max_edges),
            ("context_bytes", context_bytes),
        ):
            if value < 1:
                raise InvalidInput(f"{field} {value}: expected at least 1")
        self._model = model
        self._name = f"llm:{model if isinstance(model, str) else _model_name(model)}"
        self._timeout = timeout
        self._concurrency = concurrency
        self._limits = Limits(max_entities, max_edges)
        self._context_bytes = context_bytes
        self._ontology = ontology
        self._schema = answer_schema(ontology)
        self._plain_rules = rules(ontology, max_entities, max_edges)
        self._full_rules = with_schema(self._plain_rules, self._schema)
        self._calls: TimedCalls[Extraction] = TimedCalls(concurrency, timeout)
        self._lock = threading.Lock()
        self._rung = _SCHEMA_RUNG

    @property
    def name(self) -> str:
        """``llm:`` and the name of the model."""
        return self._name

    @property
    def batch_size(self) -> int:
        """Twice the concurrency, so that one slow call doesn't leave the other slots idle."""
        return 2 * self._concurrency

    @property
    def concurrency(self) -> int:
        """Number of parallel calls of `extract` by the queue, each with one episode."""
        return self._concurrency

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        """Return the extraction of each episode, or its error in place of it."""
        if not requests:
            return []
        try:
            model = self._chat_model()
        except Exception as error:  # noqa: BLE001  (constructors of providers raise any exception)
            reason = f"model {self._name[4:]!r} can't be created: {reason_for(error)}"
            return [ExtractorMisconfigured(reason) for _ in requests]
        outcomes = self._calls.run([partial(self._read, model, request) for request in requests])
        return [o if isinstance(o, Extraction) else self._failed(model, o) for o in outcomes]

    def _failed(self, model: BaseChatModel, error: Exception) -> ExtractionFailed:
        # a new, unchained error: errors of providers may contain request headers
        failure = _FAILURES[kind_of(error)](reason_for(error, secrets_of(model)))
        _log.debug("extraction by %s failed: %s", self._name, failure)
        return failure

    def _chat_model(self) -> BaseChatModel:
        with self._lock:
            if isinstance(self._model, str):
                from langchain.chat_models import init_chat_model

                # the timeout of the client ends the abandoned calls
                self._model = init_chat_model(self._model, timeout=self._timeout)
            return self._model

    def _read(self, model: BaseChatModel, request: ExtractionRequest) -> Extraction:
        # turns excluded from extraction are excluded from the context as well
        request = replace(request, context=tuple(filter(_may_be_read, request.context)))
        blocks = data_blocks(request, self._context_bytes)
        reply = self._ask(model, blocks)
        answer = find_json(reply) if isinstance(reply, str) else as_extraction(reply)
        if answer is None:
            raise ExtractionFailed("the reply of the model contains neither entities nor edges")
        return select(answer, request, self._ontology, self._limits)

    def _ask(self, model: BaseChatModel, blocks: str) -> str | Mapping[str, Any]:
        """Try the output methods from the last working one downward until one isn't rejected; return the reply."""
        deadline = time.monotonic() + self._timeout
        rung = self._rung
        while True:
            system = self._plain_rules if rung == _SCHEMA_RUNG else self._full_rules
            try:
                reply = self._reply(model, rung, [("system", system), ("human", blocks)])
            except Exception as error:
                if (cut_off := _cut_off_reply(error)) is not None:
                    reply = cut_off
                elif rung == _TEXT_RUNG or not rejects_the_format(error) or time.monotonic() > deadline:
                    raise
                else:
                    rung += 1
                    continue
            if rung > self._rung:
                self._rung = rung
                _log.info("%s rejects %s: using %s from now on", self._name, _RUNG_NAMES[0], _RUNG_NAMES[rung])
            return reply

    def _reply(self, model: BaseChatModel, rung: int, messages: list[Message]) -> str | Mapping[str, Any]:
        if rung == _TEXT_RUNG:
            return _content(model.invoke(messages))
        method = {} if rung == _SCHEMA_RUNG else {"method": "json_mode"}
        try:
            structured = model.with_structured_output(self._schema, include_raw=True, **method)
        except (NotImplementedError, ValueError, TypeError) as error:  # no request was sent
            raise NotImplementedError(type(error).__name__) from error
        reply: object = structured.invoke(messages)
        if not isinstance(reply, Mapping) or "raw" not in reply:
            return _content(reply)
        parts = cast("Mapping[str, Any]", reply)
        # prefer the raw message: the parser of the model returns nothing for repairable replies
        return _content(parts["raw"]) or _content(parts.get("parsed"))


def _may_be_read(turn: Episode) -> bool:
    # check the stored mark as well: the content filter may have used a detector
    return SKIPPED not in turn.metadata and skip_reason(turn) is None


def _content(reply: object) -> str | Mapping[str, Any]:
    """Return the content of a reply: the arguments of a tool call, or its text.

    Raises
    ------
    ExtractionFailed
        If the model refused.
    """
    if reply is None or isinstance(reply, str):
        return reply or ""
    if isinstance(reply, Mapping):
        return cast("Mapping[str, Any]", reply)
    message = cast("Any", reply)
    if hasattr(message, "model_dump") and not hasattr(message, "content"):
        return cast("Mapping[str, Any]", message.model_dump())
    if getattr(message, "additional_kwargs", {}).get("refusal"):
        raise ExtractionFailed("the model refused to answer")
    for call in (*getattr(message, "tool_calls", ()), *getattr(message, "invalid_tool_calls", ())):
        if arguments := call.get("args"):
            return arguments
    content = message.content
    if isinstance(content, str):
        return content
    blocks = cast("list[Any]", content)
    return "".join(b if isinstance(b, str) else str(b.get("text") or "") for b in blocks)


def _cut_off_reply(error: Exception) -> str | None:
    """Return the partial reply in an error for reaching the token limit; None for other errors."""
    if type(error).__name__ != "LengthFinishReasonError":
        return None
    choices = getattr(getattr(error, "completion", None), "choices", None)
    text = getattr(getattr(choices[0], "message", None), "content", None) if choices else None
    return text if isinstance(text, str) else None


def _model_name(model: BaseChatModel) -> str:
    for field in ("model_name", "model", "model_id"):
        if isinstance(value := getattr(model, field, None), str) and value:
            return value
    return type(model).__name__
