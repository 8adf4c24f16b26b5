"""Structured replies of chat models: the output method that a model accepts, and the parts of its messages."""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from graphmem.errors import ExtractionFailed
from graphmem.llm.providers import (
    drops_temperature,
    is_timeout,
    open_model,
    provider_name,
    reason_for,
    rejects_the_format,
    schema_options,
    seconds_for,
    secrets_of,
)
from graphmem.telemetry import Attributes, count, count_tokens, span
from graphmem.timed_calls import on_timeout

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import Runnable

_log = logging.getLogger(__name__)

Message = tuple[str, str]
_TOKEN_LIMIT = frozenset({"length", "max_tokens", "model_length"})
"""Reasons, in lower case, that providers give for a reply that the limit of tokens ended."""

_SCHEMA_RUNG, _JSON_RUNG, _TEXT_RUNG = range(3)
_RUNG_NAMES = ("structured output", "JSON mode", "plain text")
_REJECTIONS = 2  # calls in a row that reject an output method before later calls skip it
_SCHEMA_INTRO = "\n\nThe object has to fit this JSON Schema:\n"

_THINKING = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_THOUGHT_END = re.compile(r"\A.*</(?:think|thinking|reasoning)>", re.DOTALL | re.IGNORECASE)


def without_thoughts(text: str) -> str:
    """Return a reply without the thoughts that some models write before it."""
    return _THOUGHT_END.sub("", _THINKING.sub("", text)).strip()


def last_object(text: str, key: str) -> dict[str, Any] | None:
    """Return the last JSON object in a reply that has a key; None without one. Thoughts are ignored."""
    text = without_thoughts(text)
    decoder, found, at = json.JSONDecoder(strict=False), None, 0
    while (start := text.find("{", at)) >= 0:
        try:
            value, at = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            at = start + 1
            continue
        if isinstance(value, dict) and key in value:
            found = cast("dict[str, Any]", value)
    return found


class LazyModel:
    """A chat model; one given by name is created on first use, with a temperature of 0 where it takes one.

    Parameters
    ----------
    model
        A LangChain chat model, or its name for ``init_chat_model``.
    timeout
        Seconds for one question; None takes the default for the model (`seconds_for`).
    """

    def __init__(self, model: BaseChatModel | str, timeout: float | None) -> None:
        self.name = model if isinstance(model, str) else name_of(model)
        self.timeout = seconds_for(self.name) if timeout is None else timeout
        self._model = model
        self._lock = threading.Lock()

    def model(self) -> BaseChatModel:
        """Return the chat model; raise whatever its constructor raises."""
        with self._lock:
            if isinstance(self._model, str):
                self._model = open_model(self._model, self.timeout)
            return self._model

    def reason_for(self, error: Exception) -> str:
        """Return the reason of an error without secrets, also if the model couldn't be created."""
        return reason_for(error, secrets_of(self._model))


class ReplyCutOff(ExtractionFailed):
    """A reply was ended by the limit of tokens; `reply` is what there is of it."""

    def __init__(self, reply: str | Mapping[str, Any]) -> None:
        super().__init__("the model's reply was ended by its limit of tokens")
        self.reply = reply


class StructuredModel(LazyModel):
    """A chat model that is asked for JSON of a schema.

    The model is first asked for structured output with its default method (a JSON schema or a tool). If it rejects
    that, the fallbacks are JSON mode with the schema in the prompt, then plain text. An output method that the client
    library doesn't have, or that several calls in a row rejected, is skipped by later calls; a single error of a server
    changes nothing.

    Parameters
    ----------
    model, timeout
        See `LazyModel`; the timeout is for all attempts of one question.
    schema
        JSON Schema of the reply.
    """

    def __init__(self, model: BaseChatModel | str, schema: Mapping[str, Any], timeout: float | None) -> None:
        super().__init__(model, timeout)
        self._schema = dict(schema)
        self._schema_text = _SCHEMA_INTRO + json.dumps(schema, separators=(",", ":"))
        self._rung = _SCHEMA_RUNG
        self._rejections = 0

    def ask(self, system: str, data: str) -> str | Mapping[str, Any]:
        """Return the reply to a question: its text, or the arguments of a tool call.

        Raises
        ------
        ExtractionFailed
            If the model refused. Other errors of the client library are raised unchanged.
        ReplyCutOff
            If the limit of tokens ended the reply.
        """
        model = self.model()
        deadline = time.monotonic() + self.timeout
        first = rung = self._rung
        while True:
            try:
                reply = self._reply(model, rung, [("system", system), ("human", data)])
            except ReplyCutOff:
                raise
            except Exception as error:
                if (cut_off := _cut_off_reply(error)) is not None:
                    raise ReplyCutOff(cut_off) from None
                if rung == _TEXT_RUNG or not rejects_the_format(error) or time.monotonic() > deadline:
                    raise
                rung = self._next(rung, absent=isinstance(error, NotImplementedError))
                continue
            if rung == first == self._rung:
                self._rejections = 0
            return reply

    def _next(self, rung: int, *, absent: bool) -> int:
        """Return the method after a rejected one; let later calls start with it if the rejection isn't a single one."""
        with self._lock:
            if rung == self._rung:
                self._rejections += 1
                if absent or self._rejections >= _REJECTIONS:
                    self._rung, self._rejections = rung + 1, 0
                    _log.info("%s rejects %s: using %s from now on", self.name, *_RUNG_NAMES[rung : rung + 2])
        return rung + 1

    def _reply(self, model: BaseChatModel, rung: int, messages: list[Message]) -> str | Mapping[str, Any]:
        if rung != _SCHEMA_RUNG:
            messages = [(role, text + self._schema_text * (role == "system")) for role, text in messages]
        if rung == _TEXT_RUNG:
            return _content(invoke(model, partial(model.invoke, messages)))
        options: Mapping[str, Any] = schema_options(model) if rung == _SCHEMA_RUNG else {"method": "json_mode"}
        try:
            structured = model.with_structured_output(self._schema, **options)
        except (NotImplementedError, ValueError, TypeError) as error:  # no request was sent
            raise NotImplementedError(type(error).__name__) from error
        return _content(invoke(model, partial(_message_of, structured, messages)))


class _Outcome:
    """The outcome of a call of a model; it is counted once, as a call that exceeds its time limit may still end."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._counted = threading.Lock()

    def count(self, status: str) -> None:
        """Count the outcome unless it was counted before."""
        if self._counted.acquire(blocking=False):
            count("graph_model_calls_total", model=self._model, status=status)


def invoke(model: BaseChatModel, send: Callable[[], object]) -> object:
    """Return the reply to a call of a chat model; record the call, its tokens and their cost."""
    name = name_of(model)
    about = {"gen_ai.operation.name": "chat", "gen_ai.request.model": name}
    about["gen_ai.provider.name"] = provider_name(model)
    outcome = _Outcome(name)
    with span(f"chat {name}", about, kind="client") as one:
        on_timeout.get([]).extend((partial(outcome.count, "timeout"), one.time_out))
        try:
            reply = _without_temperature(model, send)
        except Exception as error:
            outcome.count("timeout" if is_timeout(error) else "error")
            raise
        outcome.count("success")
        one.set(_usage(name, reply))
    return reply


def _without_temperature(model: BaseChatModel, send: Callable[[], object]) -> object:
    """Return the reply to a call, which is repeated without a temperature if the model takes none."""
    try:
        return send()
    except Exception as error:
        if not drops_temperature(model, error):
            raise
    return send()


def _usage(model: str, reply: object) -> Attributes:
    """Count the tokens of a reply; return the attributes of its span."""
    usage = cast("Mapping[str, int]", getattr(reply, "usage_metadata", None) or {})
    metadata = cast("Mapping[str, object]", getattr(reply, "response_metadata", None) or {})
    found: dict[str, str | int] = {}
    if isinstance(replied := metadata.get("model_name"), str):
        found["gen_ai.response.model"] = replied
    if usage:
        tokens_in, tokens_out = usage.get("input_tokens") or 0, usage.get("output_tokens") or 0
        count_tokens(model, tokens_in, tokens_out)
        found |= {"gen_ai.usage.input_tokens": tokens_in, "gen_ai.usage.output_tokens": tokens_out}
    return found


def _message_of(structured: Runnable[Any, Any], messages: list[Message]) -> object:
    """Return the message of a model without parsing it, as parsers return nothing for repairable replies.

    `include_raw=True` would do the same, but calls the model on a pool of threads, which the exit of the program joins.
    """
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import RunnableSequence

    reply: object = messages
    for step in structured.steps if isinstance(structured, RunnableSequence) else [structured]:
        reply = step.invoke(cast("Any", reply))
        if isinstance(reply, BaseMessage):
            break
    return reply


def _content(reply: object) -> str | Mapping[str, Any]:
    """Return the content of a reply: the arguments of a tool call, or its text.

    Raises
    ------
    ExtractionFailed
        If the model refused.
    ReplyCutOff
        If the limit of tokens ended the reply.
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
    content = _arguments_or_text(message)
    if _ends_at_limit(message):
        raise ReplyCutOff(content)
    return content


def _arguments_or_text(message: Any) -> str | Mapping[str, Any]:
    calls = (*getattr(message, "tool_calls", ()), *getattr(message, "invalid_tool_calls", ()))
    if arguments := [arguments for call in calls if (arguments := call.get("args"))]:
        return _joined(arguments)
    content = message.content
    if isinstance(content, str):
        return content
    # blocks of thoughts have no text of their own
    blocks = cast("list[Any]", content)
    return "".join(b if isinstance(b, str) else str(b.get("text") or "") for b in blocks)


def _joined(arguments: Sequence[str | Mapping[str, Any]]) -> str | Mapping[str, Any]:
    """Return the arguments of a call or, of several valid ones, such as one for each episode, their lists together."""
    each = [one for one in arguments if isinstance(one, Mapping)]
    if len(each) < 2:
        return arguments[0]
    lists: defaultdict[str, list[object]] = defaultdict(list)
    for key, value in (item for one in each for item in one.items()):
        if isinstance(value, list):
            lists[key] += cast("list[object]", value)
    return {**each[0], **lists}


def _ends_at_limit(message: Any) -> bool:
    """Return whether the limit of tokens ended a message, by what its provider says."""
    said: Mapping[str, Any] = getattr(message, "response_metadata", None) or {}
    return any(str(said.get(name)).lower() in _TOKEN_LIMIT for name in ("finish_reason", "stop_reason", "done_reason"))


def _cut_off_reply(error: Exception) -> str | None:
    """Return the partial reply in an error for reaching the token limit; None for other errors."""
    if type(error).__name__ != "LengthFinishReasonError":
        return None
    choices = getattr(getattr(error, "completion", None), "choices", None)
    text = getattr(getattr(choices[0], "message", None), "content", None) if choices else None
    return text if isinstance(text, str) else None


def name_of(model: BaseChatModel) -> str:
    """Return the name of a chat model, by default its class."""
    for field in ("model_name", "model", "model_id"):
        if isinstance(value := getattr(model, field, None), str) and value:
            return value
    return type(model).__name__


def array_of(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of a list of objects with these properties, all required, as strict schemas demand."""
    return {"type": "array", "items": object_of(properties)}


def object_of(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of an object with these properties, all required, as strict schemas demand."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }
