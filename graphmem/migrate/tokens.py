"""The token of a scope: which write of the primary a store has.

During a migration each write transaction of the primary stores a new token in every scope that it changes, in the same
transaction. The secondary gets the changes with the token, and only if it has the one before. So the stores are equal
in a scope exactly when their tokens are.
"""

from __future__ import annotations

from graphmem.models import Changes, JobState, Scope, new_id
from graphmem.protocols import GraphBackend

JOB = "migrate"
"""Job of the state that holds the token."""
SHADOW = "migrate-shadow"
"""Job of the state that counts differing shadow reads."""

_REPAIRING = "repairing "


def token_of(store: GraphBackend, scope: Scope) -> str:
    """Return the token of a scope; "" if it has none."""
    return store.find_job_state(scope, JOB).cursor


def token_state(token: str) -> JobState:
    """Return the job state that holds a token."""
    return JobState(JOB, cursor=token)


def put_token(store: GraphBackend, scope: Scope, token: str) -> None:
    """Store the token of a scope."""
    store.write(scope, Changes(job_states=(token_state(token),)))


def repair_token() -> str:
    """Return a token of a scope that is being repaired."""
    return _REPAIRING + new_id()


def is_usable(token: str) -> bool:
    """Return whether a token tells which write a store has; False before the copy of the scope is complete."""
    return bool(token) and not token.startswith(_REPAIRING)


def is_equal(primary: GraphBackend, secondary: GraphBackend, scope: Scope) -> bool:
    """Return whether the secondary has all writes of the primary in a scope."""
    theirs = token_of(secondary, scope)
    return is_usable(theirs) and theirs == token_of(primary, scope)
