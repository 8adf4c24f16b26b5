"""Settings from keyword arguments, ``GRAPHMEM_…`` variables, ``graphmem.toml`` and defaults, in this order."""

from __future__ import annotations

import os
import tomllib
import warnings
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from graphmem.errors import InvalidInput
from graphmem.models import CommunityChoice
from graphmem.registry import masked
from graphmem.results import StrategyChoice

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
Similarity = Annotated[float, Field(ge=0.5, le=1.0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
_OR_NONE = BeforeValidator(lambda given: None if given in ("", "none") else given)
"""Reads what stands for None, which TOML and the environment don't have."""
Days = Annotated[float, Field(ge=0.0, le=5e5, allow_inf_nan=False)]  # a datetime can be that long ago
RetentionDays = Annotated[Days | None, _OR_NONE]
_SECRETS = ("store_password", "qdrant_api_key", "redact_key")
Seconds = Annotated[float, Field(gt=0.0, le=1e9, allow_inf_nan=False)]  # a datetime can be that far ahead
_PREFIX = "GRAPHMEM_"
_OTHER_VARIABLES = frozenset("DATA NEO4J_URL REQUIRE_NEO4J SCREENSHOTS SOAK".split())
"""Variables of the notebooks and the test suite, in addition to those that begin with TEST_."""


def _redact(value: object) -> object:
    """Return "off" for false values; refuse true values, which don't specify whether texts are included."""
    word = str(value).lower()
    if value is True or word in ("true", "1", "yes", "on"):
        raise ValueError("expected 'facts' (facts and summaries; texts are stored as they are) or 'all'")
    return "off" if word in ("false", "0", "no") else value


class Settings(BaseSettings):
    """All settings of graphmem with their defaults; read when a memory is opened, never at import.

    A variable that begins with ``GRAPHMEM_`` but is no setting causes a warning.

    Raises
    ------
    InvalidInput
        If a value is invalid or a name is unknown; the message contains both.
    """

    model_config = SettingsConfigDict(
        env_prefix=_PREFIX,
        env_ignore_empty=True,  # Docker Compose passes unset variables as empty ones
        toml_file="graphmem.toml",
        frozen=True,
        extra="forbid",
        validate_default=False,
        hide_input_in_errors=True,  # a value in a traceback may be a password
    )

    store: str = Field("sqlite:///graphmem.db", description="URL of the store")
    store_username: str | None = Field(None, description="user name for the store, if its URL has none")
    store_password: SecretStr | None = Field(None, description="password for the store, if its URL has none")
    store_timeout: Seconds = Field(120.0, description="seconds after which a server cancels a query or a transaction")
    store_wait: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] = Field(
        10.0, description="seconds to wait for a server that doesn't answer when the store is opened"
    )
    sqlite_busy_timeout: Annotated[float, Field(gt=0.0, le=86_400.0, allow_inf_nan=False)] = Field(
        60.0, description="seconds that a write to an SQLite file waits for another process before it fails"
    )
    migrate_shadow_share: Share = Field(
        0.0, description="share of the reads that are compared with the other store during a migration; 0 is off"
    )
    scope: str = Field("default", description="domain or domain/project, used unchanged")
    ontology: Annotated[Path | None, _OR_NONE] = Field(
        None, description="TOML file with additions to the default ontology"
    )

    extractor: str = Field("auto", description="auto, spacy, none, recorded:FILE or llm:PROVIDER:MODEL")
    document_facts: bool = Field(False, description="whether spacy takes facts from documents and mails, besides names")
    llm: Annotated[str | None, _OR_NONE] = Field(
        None, description="LangChain model as provider:model, for extraction and contradictions"
    )
    contradiction_check: bool = Field(False, description="ask the LLM which known facts a new one contradicts")
    resolve_similar: bool = Field(
        True, description="with an embedding model, resolve a new name to a known entity of the same meaning"
    )
    resolve_merge_similarity: Similarity = Field(
        0.85, description="minimum cosine similarity for a match, unless the words of the names contradict it"
    )
    resolve_ask_similarity: Similarity = Field(
        0.7, description="minimum cosine similarity for asking the LLM, if there is one, about a match"
    )
    resolve_questions: int = Field(
        20, ge=0, description="maximum number of names per batch that an LLM is asked about, in one call"
    )
    note_linking: bool = Field(False, description="link each new entity to similar ones by similar_to (A-MEM)")
    detect_injection: bool = Field(
        True, description="store, but don't extract, text that looks like a prompt injection (docs/how-to/privacy.md)"
    )
    redact: Annotated[Literal["off", "facts", "all"], BeforeValidator(_redact)] = Field(
        "off",
        description="replace personal data and secrets (docs/how-to/privacy.md): off, facts (in facts and summaries, "
        "not in texts), or all (in all data that is stored or sent to a model)",
    )
    redact_key: SecretStr | None = Field(
        None, description="with redact=all: key of the digests that replace personal ids and speakers"
    )
    context_turns: int = Field(4, ge=0, description="earlier turns of the session passed to the extractor")
    extraction_timeout: Seconds | None = Field(
        None, description="time limit of a call of an LLM, in seconds; by default 30, or 90 for models that think first"
    )
    extraction_concurrency: Count = Field(4, description="maximum number of concurrent LLM calls")
    extraction_order: Literal["scope", "session"] = Field(
        "scope",
        description="what is extracted one after the other: the episodes of a scope, or those of a session, which is "
        "faster for a scope of many sessions, whose facts may then be missing from each other's prompts",
    )
    llm_prices: dict[str, tuple[float, float]] = Field(
        {}, description="model → price of a million input and of a million output tokens, for the cost in metrics"
    )
    extraction_turns: Count = Field(
        4,
        description="maximum number of successive turns of a session, or passages of a document, that an LLM reads in "
        "one call, if they wait",
    )
    extraction_instructions: str | None = Field(
        None, description="what an LLM is told in addition when it extracts, such as what matters in a field of work"
    )
    max_attempts: Count = Field(3, description="extraction attempts per episode, except at an unavailable model")
    retry_delay: Seconds = Field(5.0, description="seconds before the second attempt; doubles each time")
    retry_delay_limit: Seconds = Field(
        14_400.0, description="maximum retry delay in seconds while the model is unavailable"
    )
    retry_days: Annotated[float, Field(gt=0.0, le=1e6, allow_inf_nan=False)] = Field(
        7.0,
        description="days after which an episode fails if the model was unavailable for it; outages don't count",
    )
    probe_interval: Seconds = Field(
        900.0, description="maximum seconds between two attempts while extraction is paused"
    )
    claim_seconds: Seconds = Field(120.0, description="seconds that a worker holds claimed episodes")
    batch_size: Count = Field(1000, description="triples or episodes in one transaction of a bulk load")

    embeddings: str = Field(
        "auto", description="auto, none, minilm, minilm:FOLDER, minilm+e5, minilm+e5:FOLDER or PROVIDER:MODEL"
    )
    embeddings_download: bool = Field(False, description="allow one-time downloads of the built-in models from the hub")
    embedding_timeout: Seconds = Field(10.0, description="time limit of the model in seconds for a batch or question")
    vector_index: str = Field(
        "store",
        description="index for vector search: store, exact, native (the store's own engine), qdrant:URL or "
        "qdrant-edge:FOLDER",
    )
    qdrant_api_key: SecretStr | None = Field(None, description="API key of a Qdrant server")
    qdrant_prefix: str = Field("graphmem", description="prefix of the Qdrant collections; use one per store")
    search_limit: Count = Field(10, description="maximum number of episodes that a search returns")
    min_confidence: Share = Field(
        0.0, description="confidence of a search below which it returns nothing (docs/concepts/search.md); 0 is off"
    )
    expansion_boost: Annotated[float, Field(ge=0.0, le=10.0, allow_inf_nan=False)] = Field(
        1.2, description="factor of the graph's score in a search that requests the boost"
    )
    index_wait: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] = Field(
        2.0, description="maximum seconds that a search spends on indexing stored rows first"
    )
    index_memory_mb: Count = Field(
        1_000,
        description="memory in megabytes for copies of the index, those used last; the index of another scope is read "
        "again when it is searched (docs/concepts/search.md)",
    )

    recall_limit: Count = Field(10, description="maximum number of facts that a recall returns")
    recall_episodes: int = Field(
        20, ge=0, le=1_000, description="best episodes of a search whose facts a recall adds; 0 walks the graph alone"
    )
    recall_strategy: StrategyChoice = Field(
        "bfs", description="graph traversal of a recall: bfs, spreading, ppr, astar, or auto (by kind of question)"
    )
    max_hops: int = Field(2, ge=0, le=6, description="maximum distance from the seeds in hops")
    max_seeds: Count = Field(10, description="maximum number of entities that a recall starts from")
    seed_community_cap: int = Field(3, ge=0, description="maximum number of seeds from one community; 0 is no limit")
    max_frontier: Count = Field(300, description="maximum number of nodes that a hop starts from")
    seed_mode: Literal["text", "hybrid"] = Field(
        "text", description="use embeddings for seeds only if words find none (text), or always (hybrid)"
    )
    seed_structural_weight: Share = Field(0.4, description="weight of connectivity against text in a seed's score")
    fact_text_weight: Annotated[float, Field(ge=0.0, le=10.0, allow_inf_nan=False)] = Field(
        2.0, description="weight of words shared with the question in a fact's score; 0 is off"
    )
    temporal_decay_rate: Annotated[float, Field(ge=0.0, le=10.0, allow_inf_nan=False)] = Field(
        0.0, description="rate at which the score bonus of recent facts decays with age; 0 is off"
    )
    lpa_edge_chunk_size: int = Field(
        10_000, ge=0, description="rows per read when communities are detected in this process; 0 means 10,000"
    )
    community_algorithm: CommunityChoice = Field(
        "auto",
        description="community detection: leiden, which finds levels, label_propagation, or auto: leiden if GDS or the "
        "extra leiden is installed, else label_propagation",
    )
    community_refresh_interval: Count = Field(
        100, description="processed episodes between two runs of background upkeep"
    )
    background_scopes: Annotated[tuple[str, ...] | None, _OR_NONE] = Field(
        None,
        description='scopes that the background work extracts, indexes and maintains, such as ["team-a"]; by default '
        "all of the store",
    )
    eviction: bool = Field(True, description="run eviction in the background, as configured by the following settings")
    expired_edge_retention_days: RetentionDays = Field(
        None,
        description="days after which superseded facts are deleted, and unmentioned entities without active facts are "
        "archived; none keeps the history forever",
    )
    min_edge_weight: Share = Field(
        0.0,
        description="effective confidence below which eviction ends a fact that was neither stated nor retrieved "
        "within expired_edge_retention_days; 0 is off",
    )
    max_entities: int = Field(0, ge=0, description="maximum number of entities; eviction archives more; 0 is no cap")
    decay: bool = Field(True, description="let retrieval counts decay in the background")
    link_weight_decay_lambda: Annotated[float, Field(ge=0.0, le=100.0, allow_inf_nan=False)] = Field(
        0.01, description="decay rate of retrieval counts: count × exp(−λ × days)"
    )
    link_weight_decay_interval: Days = Field(
        1.0, description="days after a retrieval during which the count doesn't decay"
    )
    community_refresh: bool = Field(True, description="detect communities again in the background")
    community_assignment: bool = Field(
        True, description="assign new entities to the communities of their neighbors in the background"
    )
    spreading_decay_lambda: Annotated[float, Field(gt=0.0, le=1.0, allow_inf_nan=False)] = Field(
        0.85, description="share of its activation that a node passes on along a fact of confidence 1"
    )
    spreading_max_hops: int = Field(3, ge=1, le=6, description="number of rounds of spreading activation")
    spreading_activation_threshold: Share = Field(0.1, description="minimum activation for a node to pass it on")
    spreading_inhibition_threshold: Share = Field(0.8, description="activation from which a node receives no more")
    spreading_max_activated_nodes: Count = Field(50, description="maximum number of activated nodes after a hop")
    spreading_time_limit: Seconds = Field(0.5, description="time limit of spreading in seconds")
    telemetry_text: bool = Field(
        False, description="show questions, stored texts and scopes in spans of OpenTelemetry (docs/how-to/monitor.md)"
    )
    context_window: Count = Field(128_000, description="context window of the model in tokens")
    context_share: Share = Field(
        0.00625, description="maximum share of the window that context() fills: 800 tokens of 128,000"
    )
    compaction_recent: Share = Field(
        0.2, description="share of the budget of a compacted conversation for its last messages, unchanged"
    )
    compaction_quotes: Share = Field(
        0.08, description="share for quotes of earlier messages, which also get what other parts leave"
    )
    compaction_summaries: Share = Field(0.08, description="share for summaries of communities about the question")
    compaction_facts: Share = Field(0.04, description="share for facts about the question")
    compaction_cross_session: Share = Field(0.04, description="share for quotes of other conversations")

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise InvalidInput("; ".join(map(_invalid_message, error.errors()))) from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InvalidInput(f"config file {self.model_config.get('toml_file')}: {error}") from error
        except SettingsError as error:  # a variable of a table that isn't JSON
            name = str(error).partition('"')[2].partition('"')[0]
            raise InvalidInput(f"{_PREFIX}{name.upper()}: expected JSON") from None
        _warn_of_unknown(os.environ)

    @model_validator(mode="after")
    def _check_weight_requires_retention(self) -> Self:
        if self.min_edge_weight > 0 and self.expired_edge_retention_days is None:
            raise ValueError(
                f"min_edge_weight {self.min_edge_weight}: requires expired_edge_retention_days; set it as well, for "
                "example to 90"
            )
        return self

    @model_validator(mode="after")
    def _check_threshold_order(self) -> Self:
        if self.resolve_ask_similarity > self.resolve_merge_similarity:
            low, high = self.resolve_ask_similarity, self.resolve_merge_similarity
            raise ValueError(f"resolve_ask_similarity {low}: must be at most resolve_merge_similarity {high}")
        low, high = self.spreading_activation_threshold, self.spreading_inhibition_threshold
        if low >= high:
            raise ValueError(
                f"spreading_activation_threshold {low}: must be below spreading_inhibition_threshold {high}"
            )
        return self

    @classmethod
    def load(cls, config: str | Path | None = None, **values: Any) -> Settings:
        """Load the settings, from the given TOML file instead of ``graphmem.toml`` if there is one."""
        if config is None:
            return cls(**values)
        path = Path(config)
        if not path.is_file():
            raise InvalidInput(f"config file {path}: the file doesn't exist")

        class FromFile(cls):
            model_config = SettingsConfigDict(toml_file=path)

        return FromFile(**values)

    @classmethod
    def of(cls, given: Settings | Mapping[str, Any] | None, values: Mapping[str, Any]) -> Settings:
        """Return the settings that are given, or load them with the values of a mapping and those by name."""
        if isinstance(given, Settings):
            if values:
                raise InvalidInput(
                    f"settings: Settings have a value for each, also for {', '.join(values)}; give single settings as "
                    "a mapping, or by name without settings"
                )
            return given
        if given is not None and not isinstance(given, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"settings: expected Settings or a mapping of names to values, got {given!r:.50}")
        named = {str(name): value for name, value in (given or {}).items()}
        return cls.load(**{**named, **values})

    @classmethod
    def origins(cls, config: str | Path | None = None, given: Iterable[str] = ()) -> dict[str, str]:
        """Return where each setting comes from: ``argument``, the variable, the TOML file, or ``default``.

        Parameters
        ----------
        config
            As in `load`.
        given
            Names of the settings that were passed as arguments.
        """
        path = Path("graphmem.toml" if config is None else config)
        in_file = tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}
        variables = {variable.lower(): variable for variable, value in os.environ.items() if value}
        arguments = set(given)

        def origin(name: str) -> str:
            if name in arguments:
                return "argument"
            variable = variables.get(f"{_PREFIX}{name}".lower())
            return variable or (str(path) if name in in_file else "default")

        return {name: origin(name) for name in cls.model_fields}

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources in order of precedence; `.env` files and secret files are not read."""
        del dotenv_settings, file_secret_settings
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)

    def shown(self) -> dict[str, Any]:
        """Return the settings for printing, with passwords and URLs masked."""
        values = self.model_dump(mode="json")
        secrets = {name: value and "***" for name, value in values.items() if name in _SECRETS}
        return {**values, "store": masked(self.store), "vector_index": masked(self.vector_index), **secrets}

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Yield the masked settings for `repr`."""
        yield from self.shown().items()


def _invalid_message(error: ErrorDetails) -> str:
    """Return the message for an invalid setting; the value is included only if it can't be a password."""
    name = ".".join(map(str, error["loc"]))
    if error["type"] == "extra_forbidden":
        return _unknown_message(name)
    field = Settings.model_fields.get(name)
    shown = field is not None and "Secret" not in str(field.annotation)
    value = f" (got {masked(repr(error['input']))})" if shown else ""
    return f"{f'setting {name}' if name else 'settings'}: {error['msg']}{value}"


def _unknown_message(name: str) -> str:
    """Return the message for an unknown setting."""
    if name == "graphmem":
        return "setting graphmem: is unknown; in graphmem.toml, settings belong at the top level, not in a table"
    similar = get_close_matches(name.lower(), Settings.model_fields, n=1)
    return f"setting {name}: is unknown; {f'did you mean {similar[0]}?' if similar else 'see graphmem config'}"


def _warn_of_unknown(variables: Iterable[str]) -> None:
    """Warn of unknown variables with the prefix of the settings; pydantic ignores them."""
    for variable in sorted(variables):
        name = variable.upper().removeprefix(_PREFIX)
        is_ours = variable.upper().startswith(_PREFIX) and not name.startswith("TEST_")
        if is_ours and name not in _OTHER_VARIABLES and name.lower() not in Settings.model_fields:
            similar = get_close_matches(name.lower(), Settings.model_fields, n=1)
            hint = f"; did you mean {_PREFIX}{similar[0].upper()}?" if similar else ""
            warnings.warn(f"variable {variable}: is not a setting and is ignored{hint}", stacklevel=5)
