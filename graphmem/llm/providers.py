"""Settings of chat models by provider, and classification of their errors, in messages without secrets."""

from __future__ import annotations

import logging
import math
import re
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from graphmem.errors import ExtractionFailed, ExtractorMisconfigured, ExtractorUnavailable, GraphMemError, MissingExtra

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

_log = logging.getLogger(__name__)

SECONDS = 30.0
"""Time limit of a call, unless the model thinks before it replies or runs on a local server."""

SLOW_SECONDS = 90.0
"""Time limit of a model that thinks before it replies, or runs on a local server."""


@dataclass(frozen=True, slots=True)
class Provider:
    """Capabilities of the models of a provider.

    Attributes
    ----------
    temperature
        Value for repeatable replies; None if the provider has no such parameter.
    retries
        Number of retries by the client library; None keeps its own. 0 as the queue retries, and a client that repeats
        a call after its time limit is billed again.
    strict
        Whether structured output takes ``strict=True``, with which the server enforces the schema.
    slow
        Whether its models usually run on a local server.
    time_limit
        Name of the client's parameter for the seconds of a call, ``NAME/KEY`` for an entry of a mapping.
    """

    temperature: float | None = 0.0
    retries: int | None = None
    strict: bool = False
    slow: bool = False
    time_limit: str = "timeout"


PROVIDERS: Mapping[str, Provider] = {
    "anthropic": Provider(retries=0),
    "azure_openai": Provider(retries=0, strict=True),
    "bedrock_converse": Provider(),
    "cohere": Provider(time_limit="timeout_seconds"),
    "deepseek": Provider(retries=0),
    "fireworks": Provider(),
    "google_genai": Provider(),
    "google_vertexai": Provider(),
    "groq": Provider(retries=0),
    "huggingface": Provider(temperature=None, slow=True),
    "mistralai": Provider(),
    "ollama": Provider(slow=True, time_limit="client_kwargs/timeout"),
    "openai": Provider(retries=0, strict=True),
    "together": Provider(),
    "xai": Provider(retries=0),
}
"""Provider as `init_chat_model` calls it → its capabilities."""

_UNKNOWN = Provider(temperature=None)

_PREFIXES = {"gpt-": "openai", "o1": "openai", "o3": "openai", "o4": "openai", "claude": "anthropic"}

# models that think before they reply: they take longer, and most of them reject a temperature
_THINKING = re.compile(
    r"(?:^|[/:.])o\d(?:-|$)|\bgpt-[5-9]|\bdeepseek-(?:r\d|reasoner)|\bqwq\b|\bmagistral|[-_:]thinking\b|[-_:]reason",
    re.IGNORECASE,
)


def provider_of(model: str) -> str:
    """Return the provider in a name such as ``openai:gpt-4o-mini``, inferred from the model if it is missing."""
    provider, colon, _ = model.partition(":")
    if colon and provider in PROVIDERS:
        return provider
    return next((name for prefix, name in _PREFIXES.items() if model.startswith(prefix)), "")


def thinks(model: str) -> bool:
    """Return whether a model is known to think before it replies."""
    return bool(_THINKING.search(model))


def seconds_for(model: str) -> float:
    """Return the default time limit of a call of a model."""
    slow = thinks(model) or PROVIDERS.get(provider_of(model), _UNKNOWN).slow
    return SLOW_SECONDS if slow else SECONDS


def model_options(model: str) -> dict[str, Any]:
    """Return the arguments of `init_chat_model` for repeatable replies of a model given by its name."""
    provider = PROVIDERS.get(provider_of(model), _UNKNOWN)
    temperature = None if thinks(model) else provider.temperature
    options = {"temperature": temperature, "max_retries": provider.retries}
    return {name: value for name, value in options.items() if value is not None}


def open_model(model: str, timeout: float) -> BaseChatModel:
    """Return the chat model of a name; its client ends calls after `timeout` seconds, as nothing else ends them."""
    from langchain.chat_models import init_chat_model

    opened = cast("Any", init_chat_model)(model, **_time_limit(model, timeout), **model_options(model))
    _opened[id(opened)] = opened
    return cast("BaseChatModel", opened)


def _time_limit(model: str, timeout: float) -> dict[str, Any]:
    """Return the argument for a time limit, in whole seconds, as some clients demand."""
    name, _, key = PROVIDERS.get(provider_of(model), _UNKNOWN).time_limit.partition("/")
    seconds = math.ceil(timeout)
    return {name: {key: seconds} if key else seconds}


_opened: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def drops_temperature(model: object, error: Exception) -> bool:
    """Return whether a model that `open_model` opened rejected its temperature; it has none from then on."""
    if _opened.get(id(model)) is not model or not _REJECTS_TEMPERATURE.search(str(error)[:4000]):
        return False
    opened = cast("Any", model)
    if opened.temperature is not None:
        opened.temperature = None
        _log.info("%s takes no temperature: it is called without one from now on", type(model).__name__)
    return True


def schema_options(model: object) -> dict[str, Any]:
    """Return the arguments of `with_structured_output` by which a chat model enforces a schema."""
    return {"strict": True} if PROVIDERS.get(_package_of(model), _UNKNOWN).strict else {}


def _package_of(model: object) -> str:
    module = next((c.__module__ for c in type(model).__mro__ if c.__module__.startswith("langchain_")), "")
    return module.partition(".")[0].removeprefix("langchain_")


_TELEMETRY_NAMES = {
    "azure_openai": "azure.ai.openai",
    "aws": "aws.bedrock",
    "core": "unknown",
    "google_genai": "gcp.gemini",
    "google_vertexai": "gcp.vertex_ai",
    "mistralai": "mistral_ai",
    "xai": "x_ai",
}


def provider_name(model: object) -> str:
    """Return the provider of a chat model as OpenTelemetry calls it."""
    package = _package_of(model) or "unknown"
    return _TELEMETRY_NAMES.get(package, package)


# Errors -------------------------------------------------------------------------------------------


_REJECTING = frozenset({400, 405, 415, 422, 501})
_TRANSPORT = frozenset({401, 402, 403, 407, 408, 409, 413, 429, 502, 503, 504, 529})
_FEATURE = re.compile(
    r"response_format|json_schema|json_object|json_mode|json mode|structured[ _]output|with_structured_output|"
    r"tool|function[ _]call|grammar|guided",
    re.IGNORECASE,
)
# the text is the cause: too long, or refused by a filter
_TEXT_IS_CAUSE = re.compile(
    r"context[ _]length|context[ _]window|maximum context|too (?:long|large|many tokens)|token limit|"
    r"max(?:imum)?[ _](?:prompt|input)?[ _]?tokens|reduce the length|string_above_max_length|"
    r"content[ _](?:filter|management|policy)|safety",
    re.IGNORECASE,
)
_REJECTS_TEMPERATURE = re.compile(
    r"\btemperature\b.{0,80}(?:not support|unsupported|deprecated|only the default)|"
    r"\bunsupported\b.{0,40}\btemperature\b",
    re.IGNORECASE,
)
_TIMEOUT_NAME = re.compile(r"time(d)?_?out", re.IGNORECASE)
_UNREACHABLE_NAME = re.compile(
    r"time(d)?_?out|connect(ion)?(error|refused|reset|failed)|unavailable|overloaded|ratelimit|throttl|"
    r"(read|write|network|protocol)error$",
    re.IGNORECASE,
)
_PERMANENT = frozenset({401, 402, 403, 404, 407})
_TRANSIENT = frozenset({408, 409, 425, 429})
_NO_SUCH_MODEL = re.compile(
    r"\bmodel\b.{0,80}\b(not found|not exist|does not exist|doesn't exist|unknown|not supported|deprecated)\b|"
    r"\b(unknown|invalid|no such|unsupported)\b.{0,20}\bmodel\b|model_not_found|invalid_api_key|api key not valid|"
    r"\b(incorrect|invalid) api key\b",
    re.IGNORECASE,
)
_NO_MONEY = re.compile(
    r"insufficient_quota|exceeded your current quota|billing|credit balance|insufficient (?:funds|balance|credit)",
    re.IGNORECASE,
)
_NO_CREDENTIALS_NAME = re.compile(r"credentials|token(?:retrieval|load)|unauthorizedsso", re.IGNORECASE)
_EXCERPT = 160

FailureKind = Literal["episode", "unavailable", "misconfigured"]
"""Cause of a failed extraction: the episode, an unavailable model, or its configuration."""

_SECRETS = (
    re.compile(r"(?i)\b(?:bearer|basic)\s+\S+"),
    re.compile(
        r"(?i)\b(?:[\w-]{0,40}api[-_ ]?key|[\w-]{0,40}token|secret|password|authorization)\b"
        r"(?! (?:limit|count|usage))[^:=\n]{0,20}[:=]\s*\S+"
    ),
    re.compile(r"\b(?:(?:sk|pk|rk|gsk|xai|ghp|hf)[-_]|AIza)[\w-]{6,}[\w*.-]*"),
    re.compile(r"(?<=://)[^/\s]+@"),
    re.compile(r"(?<![\w+/=-])(?=[\w+/=-]*\d)(?=[\w+/=-]*[A-Za-z])[\w+/=-]{20,}"),
)


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status of an error of a client library, None without one."""
    response: Any = getattr(error, "response", None)
    values = [getattr(error, "status_code", None), getattr(response, "status_code", None)]
    if isinstance(response, dict):  # of botocore
        values.append(cast("dict[str, Any]", response).get("ResponseMetadata", {}).get("HTTPStatusCode"))
    for value in values:
        if isinstance(value, int):
            return value
    code = getattr(error, "code", None)
    return code if isinstance(code, int) and 400 <= code < 600 else None


def kind_of(error: BaseException) -> FailureKind:
    """Return the cause of a failed extraction, inferred from its error."""
    if isinstance(error, ExtractorMisconfigured | MissingExtra | ImportError):
        return "misconfigured"
    if isinstance(error, ExtractorUnavailable | TimeoutError | ConnectionError):
        return "unavailable"
    if isinstance(error, ExtractionFailed):
        return "episode"
    status, text = status_of(error), str(error)[:4000]
    if status in _PERMANENT or (status is None and _NO_CREDENTIALS_NAME.search(type(error).__name__)):
        return "misconfigured"
    if status in (400, 429) and _NO_MONEY.search(text):
        return "misconfigured"
    if (status == 400 and _NO_SUCH_MODEL.search(text)) or (status in (None, 400) and _REJECTS_TEMPERATURE.search(text)):
        return "misconfigured"
    if status in _TRANSIENT or (status is not None and status >= 500):
        return "unavailable"
    return "unavailable" if status is None and _UNREACHABLE_NAME.search(type(error).__name__) else "episode"


def is_timeout(error: BaseException) -> bool:
    """Return whether there was no reply in time."""
    return isinstance(error, TimeoutError) or bool(_TIMEOUT_NAME.search(type(error).__name__))


def rejects_the_format(error: Exception) -> bool:
    """Return whether a model or its server rejected the output format, so that a simpler one may work.

    Returns False if the text is the cause, or a server that is unreachable, fails, is overloaded or rejects the key.
    """
    if isinstance(error, NotImplementedError):
        return True
    if isinstance(error, (GraphMemError, TimeoutError, ConnectionError)):
        return False
    text, status = str(error)[:4000], status_of(error)
    if _NO_MONEY.search(text) or _REJECTS_TEMPERATURE.search(text):
        return False
    names_feature = bool(_FEATURE.search(text))
    if status is None:
        return names_feature and not is_timeout(error)
    if status in _REJECTING:
        return not (_TEXT_IS_CAUSE.search(text) or _NO_SUCH_MODEL.search(text))
    return status not in _TRANSPORT and names_feature  # 500 of local servers that can't compile a schema


def reason_for(error: Exception, secrets: tuple[str, ...] = ()) -> str:
    """Return a short reason without secrets, to store with an episode and to log."""
    status = status_of(error)
    if status in (401, 403):
        return f"the model's server refused the credentials (HTTP {status})"
    if status == 429 and kind_of(error) != "misconfigured":
        return "the model's server limits the rate of calls (HTTP 429)"
    if isinstance(error, GraphMemError):
        return without_secrets(str(error), secrets)
    kind = type(error).__name__ + (f" (HTTP {status})" if status else "")
    message = without_secrets(" ".join(str(error).split()), secrets)
    return f"{kind}: {message}" if message else kind


def without_secrets(text: str, secrets: tuple[str, ...] = ()) -> str:
    """Return the beginning of a text with the given secrets and anything that looks like one masked."""
    text = text[:4000]
    for secret in secrets:
        text = text.replace(secret, "***")
    for pattern in _SECRETS:
        text = pattern.sub("***", text)
    return text if len(text) <= _EXCERPT else text[:_EXCERPT] + "…"


def secrets_of(model: object) -> tuple[str, ...]:
    """Return the secrets in a chat model (fields of type SecretStr), longest first."""
    held: dict[str, Any] = getattr(model, "__dict__", {})
    values = [v.get_secret_value() for v in held.values() if hasattr(v, "get_secret_value")]
    return tuple(sorted((v for v in values if isinstance(v, str) and len(v) >= 4), key=len, reverse=True))
