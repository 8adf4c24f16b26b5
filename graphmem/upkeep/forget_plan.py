"""Plan of an erasure by request: the episodes and the person or thing to remove, and descriptions of what stays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from graphmem.errors import InvalidInput, NotFound
from graphmem.models import Entity, Episode, EpisodeQuery, Scope
from graphmem.protocols import GraphBackend
from graphmem.text import counted
from graphmem.text.normalize import canonical
from graphmem.upkeep.erase import SHOWN
from graphmem.upkeep.erasure import NamedTexts, Names, Subject, find_named_texts, text_without
from graphmem.upkeep.scope_rows import entity_called


@dataclass(frozen=True, slots=True)
class ForgetPlan:
    """Plan of an erasure: what it removes and what it keeps.

    Attributes
    ----------
    going
        Episodes to remove, by id.
    subject
        Person or thing to remove with its entity, facts and names; None to remove episodes only.
    names
        Names searched for in texts.
    staying
        Episodes that are kept although they name it, by id.
    remaining
        Descriptions of what else stays, and why.
    missing
        The error if neither an entity nor a text has the name; facts, communities and traces may still quote it.
    """

    going: dict[str, Episode]
    subject: Subject | None = None
    names: frozenset[str] = frozenset()
    staying: Mapping[str, Episode] = field(default_factory=dict[str, Episode])
    remaining: tuple[str, ...] = ()
    missing: NotFound | None = None


def plan_forget(
    backend: GraphBackend,
    scope: Scope,
    entity: str | None,
    episode: str | None,
    session: str | None,
    speaker: str | None,
    *,
    with_episodes: bool,
) -> ForgetPlan:
    """Return the plan for the one that is given; parameters as for `graphmem.upkeep.forget.forget`.

    Raises
    ------
    NotFound
        If there is no such episode, session or speaker.
    InvalidInput
        If several entities have the name.
    """
    if entity is not None:
        return _plan_for_name(backend, scope, entity, with_episodes=with_episodes)
    if episode is not None:
        return ForgetPlan(_episode(backend, scope, episode))
    if session is not None:
        return ForgetPlan(_session(backend, scope, session))
    assert speaker is not None
    return _plan_for_speaker(backend, scope, speaker)


def _plan_for_name(backend: GraphBackend, scope: Scope, named: str, *, with_episodes: bool) -> ForgetPlan:
    """Find every episode that an entity said, that mentions it, or that contains one of its names."""
    entity, unknown = None, ""
    try:
        entity = entity_called(backend, scope, named)
    except NotFound as error:
        unknown = str(error)
    keys, shared = _names_of(backend, scope, entity, named)
    mentions = [] if entity is None else backend.all_mentions([scope], entity_ids=[entity.id])
    shown = [named, *([] if entity is None else [entity.name]), *(mention.surface for mention in mentions)]
    forms = frozenset(name for name in shown if canonical(name) in keys)
    names = Names(keys, forms, entity, {mention.episode_id for mention in mentions})
    texts = find_named_texts(backend, scope, names)
    if entity is None:
        _require_one_meaning(named, texts)
    going: dict[str, Episode] = {}
    redacted: dict[str, str] = {}
    staying: dict[str, Episode] = {}
    for episode in texts.about:
        if episode.source != "triple":
            (going if with_episodes else staying)[episode.id] = episode
        elif left := text_without(backend, scope, episode, names, texts.finder):
            redacted[episode.id] = left
        else:
            going[episode.id] = episode
    remaining = (*_describe_remaining(named, going, staying, texts), *_describe_shared(shared))
    missing = None
    if unknown and not (going or redacted or staying):
        missing = NotFound("; ".join([f"{unknown}, and no text contains this name", *remaining]))
    subject = Subject(keys, entity, redacted, staying, frozenset(texts.longer))
    return ForgetPlan(going, subject, keys, staying, remaining, missing)


def _require_one_meaning(named: str, texts: NamedTexts) -> None:
    """Raise InvalidInput if a name that no entity has is part of the names of several persons."""
    persons = {
        name if entity is None else entity.id: _described(name, entity)
        for name, entity in texts.longer.items()
        if entity is None or entity.entity_type == "person"
    }
    if len(persons) > 1:
        which = ", ".join(persons.values())
        raise InvalidInput(f"name {named!r}: several persons have it as a part of their names; forget one: {which}")


def _plan_for_speaker(backend: GraphBackend, scope: Scope, speaker: str) -> ForgetPlan:
    """Find the turns of a speaker, and turns of others that contain the name."""
    names = Names(frozenset({canonical(speaker)}), frozenset({speaker}))
    texts = find_named_texts(backend, scope, names)
    going = {e.id: e for e in texts.about if canonical(e.speaker or "") in names.keys}
    if not going:
        raise NotFound(f"no episode has the speaker {speaker!r} in scope {scope}")
    staying = {e.id: e for e in texts.about if e.id not in going}
    remaining = _describe_remaining(speaker, going, staying, texts)
    return ForgetPlan(going, None, names.keys, staying, tuple(remaining))


def _names_of(
    backend: GraphBackend, scope: Scope, entity: Entity | None, named: str
) -> tuple[frozenset[str], list[tuple[str, Entity]]]:
    """Return the names that only this entity has, and (name, other entity) for names that it shares."""
    if entity is None:
        return frozenset({canonical(named)}), []
    names = {alias.alias for alias in backend.find_aliases([scope], [entity.id])}
    others = [(name, e) for name, e in backend.resolve_names(scope, sorted(names)) if e.id != entity.id]
    return frozenset(names - {name for name, _ in others}), others


def _describe_remaining(
    named: str, going: Mapping[str, Episode], staying: Mapping[str, Episode], texts: NamedTexts
) -> Iterator[str]:
    if staying:
        yield (
            f"{counted(len(staying), 'episode')} by {named!r}, or with the name in the text, kept as words of the "
            f"speakers; forget({named!r}, with_episodes=True) erases them"
        )
    if in_ids := [e for e in texts.in_ids if e.id not in going and e.id not in staying]:
        ids = in_ids[0].session_id, in_ids[0].external_id
        yield (
            f"{counted(len(in_ids), 'episode')} with the name in the session or external id, such as {ids}; "
            "forget these episodes or sessions to erase them"
        )
    if texts.longer:
        example = _described(*next(iter(texts.longer.items())))
        yield (
            f"{counted(len(texts.longer), 'longer name')} of others, such as {example}, "
            f"in {counted(len(texts.in_longer), 'episode')}; forget them as well if they are the same"
        )
    for part, episodes in texts.by_part.items():
        yield (
            f"{counted(len(episodes), 'episode')} with {part!r}, a part of the name, such as "
            f"{episodes[0].text[:SHOWN]!r}; forget({part!r}, with_episodes=True) erases them if it is the same person"
        )


def _described(name: str, entity: Entity | None) -> str:
    return f"{name!r} (a speaker)" if entity is None else f"{name!r} ({entity.entity_type} {entity.id})"


def _describe_shared(shared: Iterable[tuple[str, Entity]]) -> Iterator[str]:
    for name, other in shared:
        yield f"texts that contain this name without a mention of it, which {_described(name, other)} has as well"


def _episode(backend: GraphBackend, scope: Scope, named: str) -> dict[str, Episode]:
    if found := backend.get_episodes([scope], [named]):
        return found
    by_name = backend.find_episodes([scope], EpisodeQuery(external_ids=(named,)), limit=1)
    if not by_name:
        raise NotFound(f"no episode has the id or external_id {named!r} in scope {scope}")
    return {episode.id: episode for episode in by_name}


def _session(backend: GraphBackend, scope: Scope, session: str) -> dict[str, Episode]:
    said = backend.all_episodes([scope], EpisodeQuery(session_id=session))
    found = {episode.id: episode for episode in said}
    if not found:
        raise NotFound(f"no episode belongs to session {session!r} in scope {scope}")
    return found
