"""Classification of model errors, and error messages without secrets. Pure functions."""

from __future__ import annotations

import re
from typing import Any, Literal

from graphmem.errors import ExtractionFailed, ExtractorMisconfigured, ExtractorUnavailable, GraphMemError, MissingExtra

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
    r"\b(unknown|invalid|no such|unsupported)\b.{0,20}\bmodel\b|model_not_found|invalid_api_key|api key not valid",
    re.IGNORECASE,
)
_NO_MONEY = re.compile(r"insufficient_quota|exceeded your current quota|billing", re.IGNORECASE)
_EXCERPT = 160

FailureKind = Literal["episode", "unavailable", "misconfigured"]
"""Cause of a failed extraction: the episode, an unavailable model, or its configuration."""

_SECRETS = (
    re.compile(r"(?i)\b(?:bearer|basic)\s+\S+"),
    re.compile(
        r"(?i)\b(?:[\w-]{0,40}api[-_ ]?key|[\w-]{0,40}token|secret|password|authorization)\b[^:=\n]{0,20}[:=]\s*\S+"
    ),
    re.compile(r"\b(?:sk|pk|rk|gsk|xai|ghp|hf|AIza)[-_]?[\w-]{6,}[\w*.-]*"),
    re.compile(r"(?<=://)[^/@\s]+@"),
    re.compile(r"(?<![\w+/=-])(?=[\w+/=-]*\d)(?=[\w+/=-]*[A-Za-z])[\w+/=-]{20,}"),
)


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status of an error of a client library, None without one."""
    response = getattr(error, "response", None)
    for value in (getattr(error, "status_code", None), getattr(response, "status_code", None)):
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
    if status in _PERMANENT or (status == 429 and _NO_MONEY.search(text)):
        return "misconfigured"
    if status == 400 and _NO_SUCH_MODEL.search(text):
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
