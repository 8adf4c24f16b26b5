"""The jobs of upkeep, as the settings want them."""

from __future__ import annotations

from graphmem.models import Scope
from graphmem.protocols import GraphBackend
from graphmem.settings import Settings
from graphmem.upkeep import decay, evict
from graphmem.upkeep.decay import DecayRule
from graphmem.upkeep.evict import EvictionRule
from graphmem.upkeep.schedule import Stopping, UpkeepJob


def decay_rule(settings: Settings) -> DecayRule:
    """Return how counts fade by the settings."""
    return DecayRule(settings.link_weight_decay_lambda, settings.link_weight_decay_interval)


def eviction_rule(settings: Settings) -> EvictionRule:
    """Return what is evicted by the settings."""
    return EvictionRule(settings.expired_edge_retention_days, settings.min_edge_weight, settings.max_entities)


def upkeep_jobs(backend: GraphBackend, settings: Settings) -> list[UpkeepJob]:
    """Return eviction and decay, those that the settings switch on; more can stand beside them."""

    def run_eviction(scope: Scope, stopping: Stopping) -> bool:
        return evict.evict(backend, scope, eviction_rule(settings), stopping).finished

    def run_decay(scope: Scope, stopping: Stopping) -> bool:
        decay.decay(backend, scope, decay_rule(settings), stopping)
        return not decay.is_interrupted(backend, scope)

    evicts = settings.eviction and not eviction_rule(settings).does_nothing
    jobs = ((evicts, evict.JOB, run_eviction), (settings.decay, decay.JOB, run_decay))
    return [UpkeepJob(name, run) for wanted, name, run in jobs if wanted]
