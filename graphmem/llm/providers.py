"""Settings of chat models by provider: temperature, strict schemas, time limits. Data and pure functions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

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
        Number of retries by the client library; None keeps its own. 0 where it takes one: the queue retries, and a
        client that repeats a call after its time limit is billed again.
    strict
        Whether structured output takes ``strict=True``, with which the server enforces the schema.
    slow
        Whether its models usually run on a local server.
    """

    temperature: float | None = 0.0
    retries: int | None = None
    strict: bool = False
    slow: bool = False


PROVIDERS: Mapping[str, Provider] = {
    "anthropic": Provider(retries=0),
    "azure_openai": Provider(retries=0, strict=True),
    "bedrock_converse": Provider(),
    "cohere": Provider(),
    "deepseek": Provider(retries=0),
    "fireworks": Provider(),
    "google_genai": Provider(),
    "google_vertexai": Provider(),
    "groq": Provider(retries=0),
    "huggingface": Provider(temperature=None, slow=True),
    "mistralai": Provider(),
    "ollama": Provider(slow=True),
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

    opened = cast("Any", init_chat_model)(model, timeout=timeout, **model_options(model))
    return cast("BaseChatModel", opened)


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
