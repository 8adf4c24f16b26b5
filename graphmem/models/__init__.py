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
    Redaction,
    Removal,
    RemovalKind,
    Support,
)
from graphmem.models.community import (
    Community,
    Membership,
    MembershipKey,
    existed,
)
from graphmem.models.found import (
    EntityHit,
    StoreStats,
    Subgraph,
)
from graphmem.models.index import (
    IndexEntry,
    IndexKind,
    IndexState,
)
from graphmem.models.merges import (
    FoldedEdge,
    Merge,
    MergeMethod,
)
from graphmem.models.partition import (
    MIN_EDGE_WEIGHT,
    CommunityAlgorithm,
    Partition,
    propagation_tries,
)
from graphmem.models.queries import (
    CommunityQuery,
    EdgeQuery,
    EntityQuery,
    EpisodeQuery,
    EpisodeState,
    ExpandLimits,
    MembershipQuery,
    MergeQuery,
    RecallQuery,
    TimeAxis,
    Versions,
)
from graphmem.models.recalls import (
    RecallTrace,
    TracedEpisode,
    TracedFact,
    TracedSeed,
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
from graphmem.models.stored import RowReader
from graphmem.models.upkeep import Mark, decayed

__all__ = [
    "MAX_FACT_BYTES",
    "MAX_NAME_BYTES",
    "MAX_RELATION_BYTES",
    "MIN_EDGE_WEIGHT",
    "Alias",
    "AsOf",
    "Changes",
    "Closing",
    "Community",
    "CommunityAlgorithm",
    "CommunityQuery",
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
    "FoldedEdge",
    "IndexEntry",
    "IndexKind",
    "IndexState",
    "Mark",
    "Membership",
    "MembershipKey",
    "MembershipQuery",
    "Mention",
    "Merge",
    "MergeMethod",
    "MergeQuery",
    "Model",
    "Outcome",
    "Partition",
    "Properties",
    "RecallQuery",
    "RecallTrace",
    "Redaction",
    "Removal",
    "RemovalKind",
    "RowReader",
    "Scalar",
    "Scope",
    "StoreStats",
    "Subgraph",
    "Support",
    "Text",
    "TimeAxis",
    "TracedEpisode",
    "TracedFact",
    "TracedSeed",
    "UTCDateTime",
    "Versions",
    "decayed",
    "existed",
    "is_visible",
    "new_id",
    "one_or_many",
    "propagation_tries",
    "utc_now",
]
