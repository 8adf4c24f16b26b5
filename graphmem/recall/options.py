"""Options of a recall, from the caller's arguments and the settings."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Self

from pydantic import Field, model_validator

from graphmem.models import AsOf, Edge, EdgeType, EpisodeFilter, Model, is_retracted
from graphmem.recall.seeds import SeedMode
from graphmem.results import Strategy, StrategyChoice
from graphmem.settings import Settings
from graphmem.trust import Trust

_Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]


class SpreadingOptions(Model):
    """Limits of spreading activation; see `graphmem.settings.Settings` for meanings and defaults."""

    decay_lambda: Annotated[float, Field(gt=0.0, le=1.0, allow_inf_nan=False)]
    max_hops: Annotated[int, Field(ge=1, le=6)]
    activation_threshold: _Share
    inhibition_threshold: _Share
    max_activated_nodes: Annotated[int, Field(ge=1)]
    time_limit: Annotated[float, Field(gt=0.0, allow_inf_nan=False)]

    @classmethod
    def of(cls, settings: Settings, max_hops: int | None = None) -> Self:
        """Return the limits from the settings; `max_hops` overrides theirs.

        Raises
        ------
        InvalidInput
            If `max_hops` is out of range.
        """
        return cls(
            decay_lambda=settings.spreading_decay_lambda,
            max_hops=settings.spreading_max_hops if max_hops is None else max_hops,
            activation_threshold=settings.spreading_activation_threshold,
            inhibition_threshold=settings.spreading_inhibition_threshold,
            max_activated_nodes=settings.spreading_max_activated_nodes,
            time_limit=settings.spreading_time_limit,
        )

    @model_validator(mode="after")
    def _thresholds_in_order(self) -> Self:
        if self.activation_threshold >= self.inhibition_threshold:
            raise ValueError(
                f"activation_threshold {self.activation_threshold} must be below "
                f"inhibition_threshold {self.inhibition_threshold}"
            )
        return self


MAX_RECALLED = 10_000
"""Maximum number of facts of a recall."""


class RecallOptions(Model):
    """Options of a recall; see `graphmem.settings.Settings` for meanings and defaults.

    With `as_of`, `ended_after` includes facts that ended between that time and `as_of`, also those with a successor;
    `only_ended` leaves out all others.
    """

    limit: Annotated[int, Field(ge=0, le=MAX_RECALLED)]
    strategy: StrategyChoice
    max_hops: Annotated[int, Field(ge=0, le=6)]
    spreading: SpreadingOptions
    max_seeds: int
    seed_community_cap: int
    max_frontier: int
    seed_structural_weight: float
    seed_mode: SeedMode
    fact_text_weight: float
    temporal_decay_rate: Annotated[float, Field(ge=0.0, le=10.0, allow_inf_nan=False)]
    edge_types: tuple[EdgeType, ...] = ()
    as_of: AsOf | None = None
    asked_by: str | None = None
    ended_after: datetime | None = None
    only_ended: bool = False
    filters: EpisodeFilter | None = None
    min_trust: Trust = "untrusted"
    episodes: Annotated[int, Field(ge=0, le=1_000)] = 0
    include_inferred: bool = True

    @classmethod
    def of(
        cls,
        settings: Settings,
        *,
        limit: int | None = None,
        strategy: StrategyChoice | None = None,
        max_hops: int | None = None,
        temporal_decay_rate: float | None = None,
        edge_types: tuple[EdgeType, ...] = (),
        as_of: AsOf | None = None,
        asked_by: str | None = None,
        filters: EpisodeFilter | None = None,
        min_trust: Trust = "untrusted",
        episodes: int | None = None,
        include_inferred: bool = True,
    ) -> Self:
        """Return the options from the arguments; None takes the value of the settings.

        Raises
        ------
        InvalidInput
            If a value is invalid.
        """
        chosen = settings.recall_strategy if strategy is None else strategy
        return cls(
            limit=settings.recall_limit if limit is None else limit,
            strategy=chosen,
            max_hops=settings.max_hops if max_hops is None else max_hops,
            spreading=SpreadingOptions.of(settings, max_hops if chosen == "spreading" else None),
            max_seeds=settings.max_seeds,
            seed_community_cap=settings.seed_community_cap,
            max_frontier=settings.max_frontier,
            seed_structural_weight=settings.seed_structural_weight,
            seed_mode=settings.seed_mode,
            fact_text_weight=settings.fact_text_weight,
            temporal_decay_rate=settings.temporal_decay_rate if temporal_decay_rate is None else temporal_decay_rate,
            edge_types=edge_types,
            as_of=as_of,
            asked_by=asked_by,
            filters=filters,
            min_trust=min_trust,
            episodes=settings.recall_episodes if episodes is None else episodes,
            include_inferred=include_inferred,
        )

    def is_ended(self, edge: Edge) -> bool:
        """Return whether `ended_after` includes a fact that doesn't hold at `as_of`."""
        if self.as_of is None or self.ended_after is None or edge.valid_to is None:
            return False
        return self.ended_after < edge.valid_to <= self.as_of.valid and not is_retracted(edge)

    def may_have_begun(self, edge: Edge) -> bool:
        """Return whether a state may hold at `as_of`: its beginning is unknown, and it was stored with a later end."""
        if self.as_of is None or self.only_ended or edge.recorded_at > self.as_of.known:
            return False
        has_only_end = edge.valid_from_assumed and edge.valid_to is not None and edge.expired_at is None
        return has_only_end and edge.kind == "state" and edge.valid_from > self.as_of.valid

    def hops(self, strategy: Strategy) -> int:
        """Return the maximum distance of a strategy from the seeds."""
        return self.spreading.max_hops if strategy == "spreading" else self.max_hops
