"""Erasure of the episodes that have expired, batch by batch, like `graphmem.upkeep.forget` (spec: upkeep)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from graphmem.models import Changes, EpisodeQuery, Scope
from graphmem.ontology import Ontology
from graphmem.protocols import GraphBackend
from graphmem.upkeep.erase import Erased, erase
from graphmem.upkeep.erasure import ErasureRequest
from graphmem.upkeep.eviction import run_and_roll_back
from graphmem.upkeep.forget import Forgotten, IndexCopies, clean_up, summed
from graphmem.upkeep.schedule import Stopping
from graphmem.upkeep.scrub import Clean, scrub_files

EXPIRED = "expired episodes"
"""Name of the job state whose `episodes` field counts the expired episodes that were erased in a scope so far."""
_BATCH = 200  # episodes in one transaction


def expire(
    backend: GraphBackend,
    index: IndexCopies,
    scope: Scope,
    ontology: Ontology,
    now: datetime,
    stopping: Stopping = lambda: False,
    *,
    dry_run: bool = False,
    clean: Clean | None = None,
) -> Forgotten:
    """Erase the episodes that have expired by a time, with all that `forget` erases of an episode.

    Each batch is one transaction, in which the expiry is read again: an episode whose lifetime was extended meanwhile
    stays. The bytes in files are cleaned once, at the end.

    Parameters
    ----------
    backend, index, scope, ontology
        As for `forget`.
    now
        The present.
    stopping
        Called after each batch; True leaves the rest to the next run.
    dry_run
        Change nothing: run everything in one transaction and roll it back.
    clean
        As for `forget`.
    """
    step = partial(_erase_batch, backend, scope, ontology, now)
    done: list[Erased] = []
    if dry_run:
        done = run_and_roll_back(backend, lambda: list(iter(step, None)))
    else:
        while (erased := backend.atomic(step)) is not None:
            done.append(erased)
            if stopping():
                break
    left = () if dry_run else clean_up(index, scope, done, clean or partial(scrub_files, backend))
    return summed(done, dry_run=dry_run).changed(left=left)


def _erase_batch(backend: GraphBackend, scope: Scope, ontology: Ontology, now: datetime) -> Erased | None:
    """Erase a batch of expired episodes, in a transaction; return None if there are none."""
    page = backend.find_episodes([scope], EpisodeQuery(expired_by=now), limit=_BATCH)
    if not page:
        return None
    going = {episode.id: episode for episode in page}
    erased = erase(ErasureRequest(backend, scope, ontology, going, None))
    state = backend.find_job_state(scope, EXPIRED)
    counted = replace(state, done_at=now, episodes=state.episodes + len(going))
    backend.write(scope, Changes(job_states=(counted,)))
    return erased


def scopes_with_expired(backend: GraphBackend, scopes: Sequence[Scope], now: datetime) -> list[Scope]:
    """Return scopes in which episodes have expired, perhaps not yet all of them; none if there are none."""
    found = backend.find_episodes(scopes, EpisodeQuery(expired_by=now), limit=_BATCH) if scopes else []
    return list(dict.fromkeys(episode.scope for episode in found))
