"""The token of a scope: which write of the primary a store has.

During a migration each write transaction of the primary stores a new token in every scope that it changes, in the same
transaction. The secondary gets the changes with the token, and only if it has the one before. So the stores are equal
in a scope exactly when their tokens are. A token belongs to one migration, whose id it begins with: writes outside of
migrations have none, so that those of an earlier migration say nothing about the next.

A transaction of the secondary that removes what the primary has erased also notes that its files have to be scrubbed.
The note belongs to the whole store: it stays when a scope is emptied or cleared.
"""

from __future__ import annotations

from dataclasses import replace

from graphmem.models import Changes, JobState, Scope, new_id, utc_now
from graphmem.protocols import GraphBackend

JOB = "migrate"
"""Job of the state that holds the token."""
SHADOW = "migrate-shadow"
"""Job of the state that counts differing shadow reads."""

_REPAIRING = "repairing "
_NOTES = Scope("graphmem-migrate")
_SCRUB = "scrub"


def token_of(store: GraphBackend, scope: Scope, move_id: str | None = None) -> str:
    """Return the token of a scope in a migration, by default the one of the store; "" if it has none."""
    token = store.find_job_state(scope, JOB).cursor
    return token if _is_of(token, _move_id(store) if move_id is None else move_id) else ""


def new_token(store: GraphBackend) -> str:
    """Return a token of the migration that a store takes part in."""
    return f"{_move_id(store)} {new_id()}"


def _move_id(store: GraphBackend) -> str:
    move = store.read_move()
    return "" if move is None else move.id


def _is_of(token: str, move_id: str) -> bool:
    return bool(move_id) and token.startswith(f"{move_id} ")


def put_token(store: GraphBackend, scope: Scope, token: str, *, erased: bool = False) -> None:
    """Store the token of a scope; `erased`, in a transaction that removes rows, has the files scrubbed later."""
    _put(store, scope, replace(store.find_job_state(scope, JOB), cursor=token))
    if erased:
        _put(store, _NOTES, JobState(_SCRUB, begun_at=utc_now(), cursor=new_id()))


def next_token(store: GraphBackend, scope: Scope, move_id: str) -> tuple[str, str]:
    """Store a new token of a scope in a migration; return the one before, "" if it had none, and the new one."""
    state = store.find_job_state(scope, JOB)
    token = f"{move_id} {new_id()}"
    _put(store, scope, replace(state, cursor=token))
    return state.cursor if _is_of(state.cursor, move_id) else "", token


def scrub(store: GraphBackend) -> bool:
    """Scrub the files of a store if that is left to do; return whether nothing is left."""
    note = store.find_job_state(_NOTES, _SCRUB)
    if note.begun_at is None:
        return True
    if not store.scrub():
        return False

    def scrubbed() -> None:
        if store.find_job_state(_NOTES, _SCRUB) == note:
            _put(store, _NOTES, replace(note, begun_at=None))

    store.atomic(scrubbed)
    return True


def _put(store: GraphBackend, scope: Scope, state: JobState) -> None:
    store.write(scope, Changes(job_states=(state,)))


def repair_token(store: GraphBackend) -> str:
    """Return a token of a scope of a store that is being repaired."""
    return f"{_move_id(store)} {_REPAIRING}{new_id()}"


def is_usable(token: str) -> bool:
    """Return whether a token tells which write a store has; False before the copy of the scope is complete."""
    return bool(token) and _REPAIRING not in token


def is_equal(primary: GraphBackend, secondary: GraphBackend, scope: Scope) -> bool:
    """Return whether the secondary has all writes of the primary in a scope."""
    theirs = token_of(secondary, scope)
    return is_usable(theirs) and theirs == token_of(primary, scope)
