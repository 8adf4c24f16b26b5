"""Settings: keyword arguments, then ``GRAPHMEM_…`` variables, then ``graphmem.toml``, then these defaults."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from graphmem.errors import InvalidInput
from graphmem.models import CommunityAlgorithm
from graphmem.registry import masked
from graphmem.results import StrategyChoice

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
Similarity = Annotated[float, Field(ge=0.5, le=1.0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
RetentionDays = Annotated[
    Annotated[float, Field(ge=0.0, le=1e6, allow_inf_nan=False)] | None,
    BeforeValidator(lambda given: None if given in ("", "none") else given),  # TOML and the environment have no None
]
_SECRETS = ("store_password", "qdrant_api_key", "redact_key")
Seconds = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
_PREFIX = "GRAPHMEM_"
_NO_SETTINGS = frozenset("DATA NEO4J_URL REQUIRE_NEO4J SCREENSHOTS SOAK".split())
"""Variables that the notebooks and the test suite read, as those that begin with TEST_."""


def _redact(value: object) -> object:
    """Read ``False`` as off; ``True`` is refused, since it doesn't tell whether texts are meant."""
    word = str(value).lower()
    if value is True or word in ("true", "1", "yes", "on"):
        raise ValueError("say what is redacted: 'facts' (facts and summaries; texts are stored as they are) or 'all'")
    return "off" if word in ("false", "0", "no") else value


class Settings(BaseSettings):
    """Every setting of graphmem with its default; read when a memory is opened, never at import.

    A variable that begins with ``GRAPHMEM_`` and names no setting is a warning.

    Raises
    ------
    InvalidInput
        If a value doesn't fit or a name isn't known; the message names both.
    """

    model_config = SettingsConfigDict(
        env_prefix=_PREFIX,
        toml_file="graphmem.toml",
        frozen=True,
        extra="forbid",
        validate_default=False,
        hide_input_in_errors=True,  # a traceback shows them, and a value may be a password
    )

    store: str = Field("sqlite:///graphmem.db", description="URL of the store")
    store_username: str | None = Field(None, description="who logs in to the store, where its URL doesn't say")
    store_password: SecretStr | None = Field(None, description="the password for that, where the URL doesn't say")
    store_timeout: Seconds = Field(120.0, description="seconds after which a server cancels a query or a transaction")
    store_wait: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] = Field(
        10.0, description="seconds to wait for a server that doesn't answer when the store is opened"
    )
    scope: str = Field("default", description="domain, or domain/project, taken as it is")
    ontology: Path | None = Field(None, description="TOML file that adds to the default ontology")

    extractor: str = Field("auto", description="auto, spacy, none, recorded:FILE or llm:PROVIDER:MODEL")
    llm: str | None = Field(None, description="LangChain model as provider:model, for extraction and contradictions")
    contradiction_check: bool = Field(False, description="ask the LLM which known facts a new one contradicts")
    resolve_similar: bool = Field(
        True, description="with an embedding model, take a new name for a known entity where the two mean the same"
    )
    resolve_merge_similarity: Similarity = Field(
        0.85, description="cosine from which they are the same, unless their words speak against it"
    )
    resolve_ask_similarity: Similarity = Field(
        0.7, description="cosine from which the LLM, if there is one, is asked whether they are the same"
    )
    resolve_questions: int = Field(20, ge=0, description="questions about names to the LLM for one batch")
    note_linking: bool = Field(
        False, description="link each new entity to those that are much like it, by similar_to (A-MEM)"
    )
    detect_injection: bool = Field(
        False, description="store, but don't extract, text that looks like a prompt injection (docs/how-to/privacy.md)"
    )
    redact: Annotated[Literal["off", "facts", "all"], BeforeValidator(_redact)] = Field(
        "off",
        description="replace personal data and secrets (docs/how-to/privacy.md): off, facts (in facts and summaries, "
        "not in texts), or all (in all that is stored or sent to a model)",
    )
    redact_key: SecretStr | None = Field(
        None, description="with redact=all: key of the digests that stand for ids and speakers that are personal"
    )
    context_turns: int = Field(4, ge=0, description="earlier user turns of the session that an extractor sees")
    extraction_timeout: Seconds = Field(15.0, description="seconds that an LLM may take for one episode")
    extraction_concurrency: Count = Field(4, description="LLM calls at once")
    max_attempts: Count = Field(3, description="tries to extract an episode; a model that is away uses up none")
    retry_delay: Seconds = Field(5.0, description="seconds before the second try; doubles each time")
    retry_delay_limit: Seconds = Field(
        14_400.0, description="seconds that it doubles up to, while the model is unavailable"
    )
    retry_days: Annotated[float, Field(gt=0.0, le=1e6, allow_inf_nan=False)] = Field(
        7.0, description="days after which an episode that only met an unavailable model is given up"
    )
    probe_interval: Seconds = Field(
        900.0, description="seconds between two tries, at most, while all extraction is paused"
    )
    claim_seconds: Seconds = Field(120.0, description="how long a worker holds the episodes that it took")
    batch_size: Count = Field(1000, description="triples or episodes in one transaction of a bulk load")

    embeddings: str = Field("auto", description="auto, none, minilm, minilm:FOLDER or PROVIDER:MODEL (LangChain)")
    embeddings_download: bool = Field(False, description="let the built-in model be fetched from the hub, once")
    embedding_timeout: Seconds = Field(10.0, description="seconds that the model may take for a batch or a question")
    vector_index: str = Field(
        "store",
        description="where sentences are searched: store, exact, native (the store's own engine), qdrant:URL or "
        "qdrant-edge:FOLDER",
    )
    qdrant_api_key: SecretStr | None = Field(None, description="the key for a Qdrant server")
    qdrant_prefix: str = Field("graphmem", description="of Qdrant's collections; one for each store")
    search_limit: Count = Field(10, description="episodes that a search returns")
    expansion_boost: Annotated[float, Field(ge=0.0, le=10.0, allow_inf_nan=False)] = Field(
        1.2, description="what the graph's share of a search is multiplied by where the caller asks for it"
    )
    index_wait: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] = Field(
        2.0, description="seconds that a search may spend on what was stored but not indexed yet"
    )

    recall_limit: Count = Field(10, description="facts that a recall returns")
    recall_strategy: StrategyChoice = Field(
        "bfs", description="how a recall walks the graph: bfs, spreading, ppr, astar, or auto by the kind of question"
    )
    max_hops: int = Field(2, ge=0, le=6, description="hops from the seeds")
    max_seeds: Count = Field(10, description="entities that a recall starts from")
    seed_community_cap: int = Field(
        3, ge=0, description="of those entities at most so many of one community; 0 is no limit"
    )
    max_frontier: Count = Field(300, description="nodes that a hop starts from")
    seed_mode: Literal["text", "hybrid"] = Field(
        "text", description="find seeds by meaning only where words find none (text), or always (hybrid)"
    )
    seed_structural_weight: Share = Field(0.4, description="weight of connectedness against text in a seed's score")
    fact_text_weight: Annotated[float, Field(ge=0.0, le=10.0, allow_inf_nan=False)] = Field(
        1.0, description="how much words that a fact shares with the question raise its score; 0 is off"
    )
    temporal_decay_rate: Annotated[float, Field(ge=0.0, le=10.0, allow_inf_nan=False)] = Field(
        0.0, description="how fast older facts lose against newer ones; 0 is off"
    )
    lpa_edge_chunk_size: int = Field(
        10_000, ge=0, description="rows read at once when communities are found in this process; 0 is taken as 10,000"
    )
    community_algorithm: CommunityAlgorithm = Field(
        "label_propagation", description="how communities are found: label_propagation, or leiden, which gives levels"
    )
    community_refresh_interval: Count = Field(
        100, description="processed episodes between two rounds of upkeep in the background"
    )
    eviction: bool = Field(True, description="in the background, delete and hide what the following settings name")
    expired_edge_retention_days: RetentionDays = Field(
        None,
        description="days after which superseded facts are deleted, and entities without active facts that nobody "
        "mentions are hidden; none keeps the history for ever",
    )
    min_edge_weight: Share = Field(
        0.0,
        description="effective confidence below which eviction ends a fact that nobody has stated or asked for in "
        "expired_edge_retention_days; 0 is off",
    )
    max_entities: int = Field(0, ge=0, description="entities beyond so many are hidden by eviction; 0 is no cap")
    decay: bool = Field(True, description="let retrieval counts fade, in the background")
    link_weight_decay_lambda: Annotated[float, Field(ge=0.0, le=100.0, allow_inf_nan=False)] = Field(
        0.01, description="how fast they fade: count × exp(−λ × days)"
    )
    link_weight_decay_interval: Annotated[float, Field(ge=0.0, le=1e6, allow_inf_nan=False)] = Field(
        1.0, description="days within which a fact that was retrieved keeps its count"
    )
    community_refresh: bool = Field(True, description="detect communities again in the background")
    community_assignment: bool = Field(
        True, description="let new entities join the communities of their neighbors, in the background"
    )
    spreading_decay_lambda: Annotated[float, Field(gt=0.0, le=1.0, allow_inf_nan=False)] = Field(
        0.85, description="share of its activation that a node passes on along a sure fact"
    )
    spreading_max_hops: int = Field(3, ge=1, le=6, description="rounds of spreading activation")
    spreading_activation_threshold: Share = Field(0.1, description="activation from which a node passes on")
    spreading_inhibition_threshold: Share = Field(0.8, description="activation from which a node receives nothing")
    spreading_max_activated_nodes: Count = Field(50, description="nodes that stay activated after a hop")
    spreading_time_limit: Seconds = Field(0.5, description="seconds after which spreading stops where it is")
    context_window: Count = Field(128_000, description="tokens that the model reads at once")
    context_share: Share = Field(0.04, description="share of the window that context() may fill")

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise InvalidInput("; ".join(map(_told, error.errors()))) from error
        _warn_of_unknown(os.environ)

    @model_validator(mode="after")
    def _weight_has_days(self) -> Self:
        if self.min_edge_weight > 0 and self.expired_edge_retention_days is None:
            raise ValueError(
                f"min_edge_weight {self.min_edge_weight}: set expired_edge_retention_days too, after which it counts, "
                "such as 90"
            )
        return self

    @model_validator(mode="after")
    def _thresholds_in_order(self) -> Self:
        if self.resolve_ask_similarity > self.resolve_merge_similarity:
            low, high = self.resolve_ask_similarity, self.resolve_merge_similarity
            raise ValueError(f"resolve_ask_similarity {low}: at most resolve_merge_similarity {high}")
        low, high = self.spreading_activation_threshold, self.spreading_inhibition_threshold
        if low >= high:
            raise ValueError(f"spreading_activation_threshold {low}: below spreading_inhibition_threshold {high}")
        return self

    @classmethod
    def load(cls, config: str | Path | None = None, **values: Any) -> Settings:
        """Read the settings, with another TOML file in place of ``graphmem.toml`` if one is given."""
        if config is None:
            return cls(**values)
        path = Path(config)
        if not path.is_file():
            raise InvalidInput(f"config file {path}: there is no such file")

        class FromFile(cls):
            model_config = SettingsConfigDict(toml_file=path)

        return FromFile(**values)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Order the sources; `.env` files and secret files are not read."""
        del dotenv_settings, file_secret_settings
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)

    def shown(self) -> dict[str, Any]:
        """Return the settings fit for printing: no password, neither in a URL nor by itself."""
        values = self.model_dump(mode="json")
        secrets = {name: value and "***" for name, value in values.items() if name in _SECRETS}
        return {**values, "store": masked(self.store), "vector_index": masked(self.vector_index), **secrets}

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Yield what `repr` shows."""
        yield from self.shown().items()


def _told(error: ErrorDetails) -> str:
    """Return what is wrong with a setting; a value is shown only where it can't be a password."""
    name = ".".join(map(str, error["loc"]))
    if error["type"] == "extra_forbidden":
        return _unknown(name)
    field = Settings.model_fields.get(name)
    shown = field is not None and "Secret" not in str(field.annotation)
    value = f" (got {masked(repr(error['input']))})" if shown else ""
    return f"{f'setting {name}' if name else 'settings'}: {error['msg']}{value}"


def _unknown(name: str) -> str:
    """Return what is wrong with a name that is no setting."""
    if name == "graphmem":
        return "setting graphmem: there is no such setting; in graphmem.toml, settings stand at the top, not in a table"
    near = get_close_matches(name.lower(), Settings.model_fields, n=1)
    return f"setting {name}: there is no such setting; {f'did you mean {near[0]}?' if near else 'see graphmem config'}"


def _warn_of_unknown(variables: Iterable[str]) -> None:
    """Warn of variables that look like settings and are none: pydantic reads only those that it knows."""
    for variable in sorted(variables):
        name = variable.upper().removeprefix(_PREFIX)
        is_ours = variable.upper().startswith(_PREFIX) and not name.startswith("TEST_")
        if is_ours and name not in _NO_SETTINGS and name.lower() not in Settings.model_fields:
            near = get_close_matches(name.lower(), Settings.model_fields, n=1)
            hint = f"; did you mean {_PREFIX}{near[0].upper()}?" if near else ""
            warnings.warn(f"the variable {variable} names no setting, and nothing reads it{hint}", stacklevel=5)
