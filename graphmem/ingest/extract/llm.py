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
    """Asks a chat model what an episode says.

    The model is asked for structured output in its own default way (a JSON schema, or a tool); where it
    rejects that, for a JSON object with the schema in the prompt; where it rejects that too, in plain text, of which
    the JSON is found and mended. The way that worked is where later calls start.

    Parameters
    ----------
    model
        A LangChain chat model, or its name as ``init_chat_model`` takes it ("openai:gpt-4o-mini"); one given
        by name is made at the first use.
    timeout
        Seconds for one episode, all tries included.
    concurrency
        Calls at once.
    max_entities, max_edges
        What is kept of one answer.
    context_bytes
        UTF-8 bytes of each earlier turn that the model sees.
    ontology
        Entity types that the model is told, and names that may be short.

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
        """Twice the calls at once, so that one slow call doesn't idle the others."""
        return 2 * self._concurrency

    @property
    def concurrency(self) -> int:
        """How many calls of `extract` the queue makes at once, each with one episode."""
        return self._concurrency

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        """Ask the model about each episode; an error is returned in place of its extraction."""
        if not requests:
            return []
        try:
            model = self._chat_model()
        except Exception as error:  # noqa: BLE001  (a provider's constructor raises what it likes)
            reason = f"model {self._name[4:]!r} can't be made: {reason_for(error)}"
            return [ExtractorMisconfigured(reason) for _ in requests]
        outcomes = self._calls.run([partial(self._read, model, request) for request in requests])
        return [o if isinstance(o, Extraction) else self._failed(model, o) for o in outcomes]

    def _failed(self, model: BaseChatModel, error: Exception) -> ExtractionFailed:
        # a new error, unchained: a provider's own can hold the headers of its request
        failure = _FAILURES[kind_of(error)](reason_for(error, secrets_of(model)))
        _log.debug("extraction by %s failed: %s", self._name, failure)
        return failure

    def _chat_model(self) -> BaseChatModel:
        with self._lock:
            if isinstance(self._model, str):
                from langchain.chat_models import init_chat_model

                # the client's own limit ends the calls that we stop waiting for
                self._model = init_chat_model(self._model, timeout=self._timeout)
            return self._model

    def _read(self, model: BaseChatModel, request: ExtractionRequest) -> Extraction:
        # what the gate keeps from extraction doesn't get to the model as context either
        request = replace(request, context=tuple(filter(_may_be_read, request.context)))
        blocks = data_blocks(request, self._context_bytes)
        reply = self._ask(model, blocks)
        answer = find_json(reply) if isinstance(reply, str) else as_extraction(reply)
        if answer is None:
            raise ExtractionFailed("the model's answer has neither entities nor edges")
        return select(answer, request, self._ontology, self._limits)

    def _ask(self, model: BaseChatModel, blocks: str) -> str | Mapping[str, Any]:
        """Climb down from the way of asking that worked last until one isn't rejected; return the reply."""
        give_up = time.monotonic() + self._timeout
        rung = self._rung
        while True:
            system = self._plain_rules if rung == _SCHEMA_RUNG else self._full_rules
            try:
                reply = self._reply(model, rung, [("system", system), ("human", blocks)])
            except Exception as error:
                if (cut_off := _cut_off_reply(error)) is not None:
                    reply = cut_off
                elif rung == _TEXT_RUNG or not rejects_the_format(error) or time.monotonic() > give_up:
                    raise
                else:
                    rung += 1
                    continue
            if rung > self._rung:
                self._rung = rung
                _log.info("%s rejects %s: asked for %s from now on", self._name, _RUNG_NAMES[0], _RUNG_NAMES[rung])
            return reply

    def _reply(self, model: BaseChatModel, rung: int, messages: list[Message]) -> str | Mapping[str, Any]:
        if rung == _TEXT_RUNG:
            return _content(model.invoke(messages))
        method = {} if rung == _SCHEMA_RUNG else {"method": "json_mode"}
        try:
            structured = model.with_structured_output(self._schema, include_raw=True, **method)
        except (NotImplementedError, ValueError, TypeError) as error:  # nothing was sent yet
            raise NotImplementedError(type(error).__name__) from error
        reply: object = structured.invoke(messages)
        if not isinstance(reply, Mapping) or "raw" not in reply:
            return _content(reply)
        parts = cast("Mapping[str, Any]", reply)
        # the raw message is read first: the model's own parser gives nothing for an answer that it can mend
        return _content(parts["raw"]) or _content(parts.get("parsed"))


def _may_be_read(turn: Episode) -> bool:
    # the mark of the gate counts by itself: it may have asked a detector
    return SKIPPED not in turn.metadata and skip_reason(turn) is None


def _content(reply: object) -> str | Mapping[str, Any]:
    """Return what a reply says: the arguments of a tool call, or its text.

    Raises
    ------
    ExtractionFailed
        If the model says that it refuses.
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
    """Return what a model had said when it reached its limit of tokens, where its client raises for that."""
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
