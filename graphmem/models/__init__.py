"""The data model: scopes, entities, facts, episodes, and what reads and writes carry (spec: data model).

Everything here is frozen. Times are timezone-aware UTC; naive input is an error.
Models validate where data enters; hot read paths use the arrays of `Subgraph`.
"""

from graphmem.models.base import (
    MAX_FACT_BYTES,
    MAX_NAME_BYTES,
    MAX_RELATION_BYTES,
    Confidence,
    Model,
    Properties,
    Scalar,
    Text,
    UTCDateTime,
    new_id,
    utc_now,
)
from graphmem.models.changes import (
    Changes,
    Closing,
    Outcome,
    Support,
)
from graphmem.models.found import (
    EntityHit,
    StoreStats,
    Subgraph,
)
from graphmem.models.queries import (
    EdgeQuery,
    EntityQuery,
    EpisodeQuery,
    EpisodeState,
    ExpandLimits,
    TimeAxis,
    Versions,
)
from graphmem.models.rows import (
    Alias,
    AsOf,
    Edge,
    EdgeKey,
    EdgeType,
    Entity,
    Episode,
    EpisodeSource,
    Mention,
    Scope,
    is_visible,
    one_or_many,
)

__all__ = [
    "MAX_FACT_BYTES",
    "MAX_NAME_BYTES",
    "MAX_RELATION_BYTES",
    "Alias",
    "AsOf",
    "Changes",
    "Closing",
    "Confidence",
    "Edge",
    "EdgeKey",
    "EdgeQuery",
    "EdgeType",
    "Entity",
    "EntityHit",
    "EntityQuery",
    "Episode",
    "EpisodeQuery",
    "EpisodeSource",
    "EpisodeState",
    "ExpandLimits",
    "Mention",
    "Model",
    "Outcome",
    "Properties",
    "Scalar",
    "Scope",
    "StoreStats",
    "Subgraph",
    "Support",
    "Text",
    "TimeAxis",
    "UTCDateTime",
    "Versions",
    "is_visible",
    "new_id",
    "one_or_many",
    "utc_now",
]
