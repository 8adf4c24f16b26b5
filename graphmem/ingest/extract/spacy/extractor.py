"""Extractor without a language model: spaCy entity recognizer and parser, and rules over the parse."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING

from graphmem.ingest.extract.spacy import words
from graphmem.ingest.extract.spacy.answers import completed
from graphmem.ingest.extract.spacy.clauses import clauses, is_make_believe, is_question
from graphmem.ingest.extract.spacy.facts import EXPLICIT, Facts, end_of_others
from graphmem.ingest.extract.spacy.labels import correct_labels
from graphmem.ingest.extract.spacy.mentions import mentions
from graphmem.ingest.extract.spacy.names import End, Names
from graphmem.ingest.extract.spacy.pasted import without_pasted
from graphmem.ingest.extract.spacy.people import attributes, newcomers, relatives, separated
from graphmem.ingest.extract.spacy.prepare import (
    corrected,
    correction_of,
    denied,
    is_denial,
    is_joke,
    is_joke_before,
    own_words,
    prose,
    replaced,
    rewritten,
    taken_back,
    with_apostrophes,
)
from graphmem.ingest.extract.spacy.statements import dates_of
from graphmem.ingest.extract.spacy.tokens import parsed, tokens
from graphmem.ingest.extract.spacy.words import ENTITY_TYPES, PLACES
from graphmem.models import Episode
from graphmem.models.metadata import is_mail
from graphmem.ontology import DEFAULT_ONTOLOGY, Ontology
from graphmem.protocols import (
    ExtractedEdge,
    ExtractedEnding,
    ExtractedEntity,
    Extraction,
    ExtractionRequest,
    Extractor,
)
from graphmem.text.english import batch_size, english_pipeline, parsing, pieces, seems_english
from graphmem.text.normalize import canonical
from graphmem.trust import is_assistant

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Span

MAX_ENTITIES = 10
MAX_EDGES = 15
MAX_CO_OCCURRENCES = 3
MAX_SENTENCE = 200
MAX_CHARACTERS = 100_000
ENOUGH = 4 * MAX_EDGES
"""Number of distinct facts after which no further piece of a long text is parsed; the best ones are kept."""
_ENOUGH_NAMES = 4 * MAX_ENTITIES  # the same for names in documents without facts
CO_OCCURRENCE = 0.3
MAX_CORRECTED = 2000
_LONG = 1000
"""Characters of a message from which on it is rather a piece of writing, or quotes one."""
_NEW_JOB = re.compile(r"\b(?:got|landed|accepted|took|found|offer|hired)\b")
_MISTAKE = re.compile(
    r"\A\s?(?:(?:oh|oops|sorry|wait|no|actually|hold on)[,.!]? )?"
    r"(?:i misspoke|i was (?:wrong|mistaken)|i made a mistake|"
    r"i got (?:that|it|this) wrong|correction|scratch that|let me correct (?:that|myself))"
    r"(?: (?:earlier|before|there|about that))?(?:[,.:;!]|\s?[-–—])\s+",
    re.IGNORECASE,
)
_CORRECTED_WITHIN = timedelta(hours=1)
_OTHER_LANGUAGE = Extraction(dropped=(("not English", 1),))


_Found = tuple[list[ExtractedEdge], list[ExtractedEnding], dict[tuple[str, str], ExtractedEntity]]


class SpacyExtractor(Extractor):
    """Extractor of entities and facts with spaCy; thread-safe, as a lock serializes parsing.

    Parameters
    ----------
    model
        An installed package of an English pipeline with a parser and an entity recognizer. None uses the first
        installed one of `graphmem.text.english.MODELS`. It is loaded on the first extraction.
    ontology
        Known relations and short names.
    document_facts
        Whether to take facts from documents and mails; if False, only names are. The rules are made for what people
        say of themselves and of those they know; of the facts in other prose too many are wrong or of no use.
    """

    def __init__(
        self, model: str | None = None, ontology: Ontology = DEFAULT_ONTOLOGY, *, document_facts: bool = False
    ) -> None:
        self._model = model
        self._ontology = ontology
        self._document_facts = document_facts

    @property
    def name(self) -> str:
        """Name of the extractor in stats and `doctor`."""
        return "spacy"

    @property
    def batch_size(self) -> int:
        """Preferred number of episodes per call."""
        return 64

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        """Return the extraction of each episode, or its error in place of it.

        Raises
        ------
        MissingExtra
            If spaCy is not installed, or no model is configured and none is installed.
        InvalidInput
            If the configured model isn't installed.
        """
        requests = [_own(request) for request in requests]
        english = [seems_english(with_apostrophes(request.episode.text)) for request in requests]
        texts = [list(pieces(_text(r) if ours else "")) for r, ours in zip(requests, english, strict=True)]
        with parsing():
            firsts = [(first, _people(r)) for r, (first, *_) in zip(requests, texts, strict=True)]
            parses = _parses(english_pipeline(self._model), firsts)
        return [
            _OTHER_LANGUAGE
            if not ours
            else Extraction(endings=tuple(self._corrected(request, ())[1]))
            if request.episode.speaker and is_joke(request.episode.text)
            else parse
            if isinstance(parse, Exception)
            else self._read(request, parse, further)
            for ours, request, parse, (_, *further) in zip(english, requests, parses, texts, strict=True)
        ]

    def _read(self, request: ExtractionRequest, doc: Doc, further: Sequence[str]) -> Extraction | Exception:
        try:
            return self._extraction(request, doc, further)
        except Exception as error:  # noqa: BLE001 - one failing parse must not fail the batch
            return error

    def _extraction(self, request: ExtractionRequest, doc: Doc, further: Sequence[str]) -> Extraction:
        episode = request.episode
        if (episode.source == "document" or is_mail(episode.metadata)) and not self._document_facts:
            return self._names(request, doc, further)
        edges, endings, mentioned = self._found(request, doc)
        if episode.speaker and episode.title is None:
            own = with_apostrophes(own_words(completed(request), [episode.speaker]))
            told = list(attributes(own, episode.speaker))
            endings += [end_of_others(edge, edge.relation) for edge in told if edge.relation == "has_address"]
            edges = _with_whole_favorites(edges, told)
            more, wrong = self._corrected(request, edges)
            retracted = {(e.source, e.relation, e.target) for e in wrong if more}
            edges = [e for e in edges if (e.source, e.relation, e.target) not in retracted] + more
            endings += wrong
        for text in further:
            if len(_distinct(edges)) >= ENOUGH:
                break
            with parsing():
                doc = parsed(english_pipeline(self._model), text, _people(request))
            more, over, named = self._found(request, doc)
            edges += more
            endings += over
            mentioned = {**named, **mentioned}
        if _is_written(episode):
            edges, endings = _of_acquaintances(edges, endings, {*_people(request)})
        if is_assistant(episode):
            edges = [edge for edge in edges if not _is_small_talk(edge, episode.speaker or "", request.addressee or "")]
        talking = frozenset({request.episode.speaker, request.addressee})
        aliases = [(edge.target, edge.source) for edge in edges if edge.relation == "alias_of"]
        further_names = {alias for _, alias in aliases}
        mentions = (entity for entity in mentioned.values() if entity.name not in further_names)
        edges = [edge for edge in edges if edge.relation != "alias_of"]
        found = _with_aliases(_limited(_distinct(_closed(edges, endings)), mentions, talking), aliases)
        short = frozenset(canonical(alias) for alias in further_names if len(alias) < 3)
        return replace(found, endings=tuple(dict.fromkeys(endings)), short_names=short)

    def _names(self, request: ExtractionRequest, doc: Doc, further: Sequence[str]) -> Extraction:
        """Return the names in a document or mail."""
        mentioned: dict[tuple[str, str], ExtractedEntity] = {}
        message = request.episode.speaker is not None
        for piece in chain([doc], further):
            if len(mentioned) >= _ENOUGH_NAMES:
                break
            if isinstance(piece, str):
                with parsing():
                    piece = parsed(english_pipeline(self._model), piece)
            names = Names(piece, self._ontology, None, None, request.episode.title)
            for sentence in piece.sents:
                for entity in mentions(names, sentence, message=message, mail=message):
                    mentioned.setdefault((entity.name, entity.entity_type), entity)
        return _limited([], mentioned.values(), frozenset())

    def _corrected(
        self, request: ExtractionRequest, edges: Sequence[ExtractedEdge]
    ) -> tuple[list[ExtractedEdge], list[ExtractedEnding]]:
        """Return the corrected facts of "Sorry, I meant Austin", and the retractions of the speaker's earlier ones."""
        episode = request.episode

        def found_in(turn: Episode) -> list[ExtractedEdge]:
            told = ExtractionRequest(turn, addressee=request.addressee)
            phrases = attributes(with_apostrophes(own_words(turn.text)), turn.speaker or "")
            return [*self._found(told, self._parsed(told))[0], *phrases]

        last = request.context[-1] if request.context else None
        if last is not None and last.speaker == episode.speaker:
            soon = episode.occurred_at - last.occurred_at <= _CORRECTED_WITHIN
            if soon and is_joke_before(episode.text):
                return [], taken_back(found_in(last))
            again = rewritten(episode.text, last.text, episode.occurred_at)
            if soon and again is not None:
                over = episode.text.rstrip(" .!").endswith(" now")
                return replaced(found_in(last), found_in(last.changed(text=again)), "over" if over else "corrected")
        correction = correction_of(episode.text)
        if correction is None and not (edges and is_denial(episode.text)):
            return [], []
        if correction is not None and correction.said:
            earlier = episode.changed(text=correction.said)
        else:
            wrong = (correction and correction.wrong) or ""
            own = [turn for turn in request.context if turn.speaker == episode.speaker and wrong in turn.text]
            near = own and (wrong or episode.occurred_at - own[-1].occurred_at <= _CORRECTED_WITHIN)
            if not near:
                return [], []
            is_last = own[-1] is request.context[-1]
            if correction is None:
                dated = any(edge.valid_from is not None for edge in edges)
                return [], denied(found_in(own[-1]), edges, only_dates=not is_last) if is_last or dated else []
            if not (is_last or correction.is_explicit):
                return [], []
            earlier = own[-1]

        def fits(edge: ExtractedEdge) -> bool:
            """Return whether the right name is of the target's kind: by itself a place, or by its place in the text."""
            if not edge.target[:1].isupper() or edge.target not in earlier.text:
                return False
            if correction.wrong:
                return True
            explicit, right = correction.is_explicit, correction.right
            text = earlier.text.replace(edge.target, right) if explicit else right
            with parsing():
                names = parsed(english_pipeline(self._model), text[:MAX_CORRECTED]).ents
            labels = {name.label_ for name in names if name.text == right} & ENTITY_TYPES.keys()
            is_place = edge.target_type == "location"
            return bool(labels) and bool(labels & PLACES) == is_place and (is_place or explicit)

        return corrected(found_in(earlier), correction, fits)

    def _parsed(self, request: ExtractionRequest) -> Doc:
        with parsing():
            return parsed(english_pipeline(self._model), next(pieces(_text(request))), _people(request))

    def _found(self, request: ExtractionRequest, doc: Doc) -> _Found:
        episode = request.episode
        local = episode.local_time.replace(tzinfo=UTC)  # days in the time zone of the author
        dates = dates_of(doc, local, message=episode.speaker is not None)  # first, as it corrects tags
        others = sorted(_others(request))
        written = _is_written(episode)
        addressee = None if written else request.addressee  # "you" of a long text is anybody
        names = Names(doc, self._ontology, episode.speaker, addressee, episode.title, others, written=written)
        facts = Facts(names, dates, self._ontology, local, written=written)
        edges: list[ExtractedEdge] = []
        endings: list[ExtractedEnding] = []
        mentioned: dict[tuple[str, str], ExtractedEntity] = {}
        starts: dict[str, datetime] = {}
        for sentence in doc.sents:
            for entity in mentions(names, sentence, message=episode.speaker is not None):
                mentioned.setdefault((entity.name, entity.entity_type), entity)
            if (
                len(sentence) > MAX_SENTENCE
                or is_question(sentence)
                or is_make_believe(sentence)
                or any(t.text == "=" for t in sentence)
            ):
                continue
            before = len(edges)
            edges += (related := list(relatives(sentence, names, dates)))
            endings += newcomers(sentence, related)
            edges += facts.of_first_and_last_days(sentence)
            endings += facts.ending_of_last_day(sentence)
            for clause in clauses(sentence):
                for found in facts.of(clause):
                    if isinstance(found, ExtractedEdge):
                        edges.append(found)
                    else:
                        endings.append(found)
                endings += facts.endings(clause)
                starts.update(facts.start_of(clause))
            near = _together(sentence, names, edges[before:])
            edges += near if episode.speaker is None else (e for e in near if e.relation == "part_of")
        endings += separated(edges)
        return [_started(edge, starts) for edge in edges], endings, mentioned


def _with_whole_favorites(edges: Sequence[ExtractedEdge], told: Sequence[ExtractedEdge]) -> list[ExtractedEdge]:
    """Return facts with those that fixed phrases tell, without the favorites whose name these have in full."""

    def is_part(edge: ExtractedEdge) -> bool:
        same = (e for e in told if (e.source, e.relation) == (edge.source, edge.relation))
        return any(edge.target.lower() in e.target.lower() != edge.target.lower() for e in same)

    return [e for e in edges if not (e.relation.startswith("favorite_") and is_part(e))] + list(told)


def _started(edge: ExtractedEdge, starts: Mapping[str, datetime]) -> ExtractedEdge:
    """Return a new job with its first day, if another sentence says it: "I got the job at Acme! I start on Monday"."""
    new = edge.relation == "works_at" and not edge.ended and _NEW_JOB.search(edge.fact) is not None
    begin = starts.get(edge.source) if new and edge.valid_from is None else None
    return edge if begin is None else replace(edge, valid_from=begin)


def _with_aliases(found: Extraction, aliases: Iterable[tuple[str, str]]) -> Extraction:
    """Return an extraction with further names of persons, given as (name, further name)."""
    entities = {entity.name: entity for entity in found.entities}
    for name, alias in aliases:
        entity = entities.get(name) or ExtractedEntity(name, "person", confidence=EXPLICIT)
        entities[name] = replace(entity, aliases=(*entity.aliases, alias))
    return replace(found, entities=tuple(entities.values()))


def _is_written(episode: Episode) -> bool:
    """Return whether a message is rather a piece of writing: a mail or a long text."""
    return episode.speaker is not None and (is_mail(episode.metadata) or len(episode.text) > _LONG)


def _of_acquaintances(
    edges: Sequence[ExtractedEdge], endings: Sequence[ExtractedEnding], people: Collection[str]
) -> tuple[list[ExtractedEdge], list[ExtractedEnding]]:
    """Return what a text says of the people who take part, and of those whom it tells to be related to them."""
    known = {e.target for e in edges if e.source in people and e.target_type == "person"} | set(people)
    return (
        [
            e
            for e in edges
            if e.relation == "alias_of" or e.source in known or (e.source_type == "person" and e.target in people)
        ],
        [e for e in endings if e.source in known or e.target in people],
    )


def _is_small_talk(edge: ExtractedEdge, assistant: str, user: str) -> bool:
    """Return whether an assistant describes itself, assumes something about its user, or explains the world."""
    if edge.source_type != "person" and edge.confidence < EXPLICIT:
        return True  # "surf and wine fit together in Porto"
    if edge.source == assistant:
        lasting = edge.kind == "state" and edge.relation != "alias_of"
        return lasting and not edge.relation.startswith(("recommends", "suggests"))
    return bool(user) and (user in (edge.source, edge.target) or edge.source.startswith(f"{user}'s "))


def _parses(pipeline: Language, texts: list[tuple[str, list[str]]]) -> list[Doc | Exception]:
    """Return the parse of each text, given with the people who take part."""
    size = batch_size([text for text, _ in texts])
    try:
        parses = pipeline.pipe((tokens(pipeline, *text) for text in texts), batch_size=size)
        return [correct_labels(parse) for parse in parses]
    except Exception:  # noqa: BLE001 - retried text by text below
        return [_parse(pipeline, *text) for text in texts]


def _parse(pipeline: Language, text: str, people: list[str]) -> Doc | Exception:
    try:
        return parsed(pipeline, text, people)
    except Exception as error:  # noqa: BLE001 - returned in place of the parse
        return error


def _own(request: ExtractionRequest) -> ExtractionRequest:
    """Return a request without the texts that messages hand over or quote."""
    turns = [_without_pasted(turn) for turn in (request.episode, *request.context)]
    return replace(request, episode=turns[0], context=tuple(turns[1:]))


def _without_pasted(episode: Episode) -> Episode:
    if episode.source != "message" or episode.title is not None or is_mail(episode.metadata):
        return episode
    own = _MISTAKE.sub("Sorry, ", without_pasted(episode.text))
    return episode if own == episode.text else episode.changed(text=own or " ")


def _others(request: ExtractionRequest) -> set[str]:
    """Return further speakers of the session."""
    return {t.speaker for t in request.context if t.speaker} - {request.episode.speaker or "", request.addressee or ""}


def _people(request: ExtractionRequest) -> list[str]:
    """Return the names of those who take part in the session."""
    return [name for name in (request.episode.speaker, request.addressee, *sorted(_others(request))) if name]


def _text(request: ExtractionRequest) -> str:
    episode = request.episode
    message = episode.source == "message" and episode.title is None
    people = [n for n in (episode.speaker, request.addressee) if n]
    return prose(
        completed(request)[:MAX_CHARACTERS],
        people,
        sorted(_others(request)),
        message=message,
        elliptic=not is_assistant(episode),
        mail=is_mail(episode.metadata),
    )


def _together(sentence: Span, names: Names, edges: Iterable[ExtractedEdge]) -> Iterator[ExtractedEdge]:
    """Yield co-occurrences of proper names in a sentence without a verb between them or a fact joining them."""
    near: dict[str, set[str]] = {}
    for edge in edges:
        near.setdefault(edge.source, {edge.source}).add(edge.target)
        near.setdefault(edge.target, {edge.target}).add(edge.source)
    ends = [(e, span.start) for e, span in names.named(sentence).items() if not e.role and e.label != "NORP"]
    said = re.sub(r"\s+", " ", sentence.text).strip()
    found = 0
    for n, (one, start) in enumerate(ends):
        for other, end in ends[n + 1 :]:
            verb = any(t.pos_ in ("VERB", "AUX") for t in sentence.doc[start:end])
            if not verb and not near.get(one.name, set()) & near.get(other.name, set()) and found < MAX_CO_OCCURRENCES:
                found += 1
                within = _lies_in(sentence, one, other, start, end)
                yield within or _co_occurrence(one, other, said)


def _lies_in(sentence: Span, one: End, other: End, start: int, end: int) -> ExtractedEdge | None:
    """Return "Austin part_of Texas" for "Austin, Texas"."""
    doc = sentence.doc
    between = doc[start:end].text.removeprefix(one.name).strip()
    places = {one.label, other.label} <= {"GPE", "LOC"}
    if not places or between != "," or doc[end].dep_ not in ("appos", "npadvmod", "nmod"):
        return None
    if not _is_region_of(other.name, one.name) or _is_listed(doc, start, end + len(other.name.split())):
        return None  # "a flat in Lund, Nöbbelöv", "I like Spain, Italy and Greece"
    return ExtractedEdge(
        one.name,
        "part_of",
        other.name,
        fact=f"{one.name} is in {other.name}.",
        confidence=0.6,
        source_type=one.kind,
        target_type=other.kind,
    )


def _is_region_of(region: str, place: str) -> bool:
    """Return whether a name is that of a country or province in which a place may lie that is none itself."""
    larger, smaller = ("_".join(name.lower().replace(".", "").split()).removeprefix("the_") for name in (region, place))
    if larger in words.COUNTRIES:
        return smaller in words.PROVINCES or smaller not in words.COUNTRIES
    return larger in words.PROVINCES and smaller not in words.COUNTRIES | words.PROVINCES


def _is_listed(doc: Doc, start: int, end: int) -> bool:
    """Return whether further names are joined to those from `start` to `end`: in "Spain, Italy, and Greece"."""
    after = [t for t in doc[end : end + 4] if t.lower_ not in ("the", ",", "and", "or")]
    joined = bool(after) and after[0].pos_ == "PROPN" and doc[end].text in (",", "and", "or")
    before = start > 1 and doc[start - 1].text == "," and doc[start - 2].pos_ == "PROPN"
    return joined or before


def _co_occurrence(one: End, other: End, said: str) -> ExtractedEdge:
    return ExtractedEdge(
        one.name,
        "co_occurs_with",
        other.name,
        edge_type="co_occurrence",
        fact=f"{one.name} and {other.name} are named together: “{said[:300]}”",
        confidence=CO_OCCURRENCE,
        source_type=one.kind,
        target_type=other.kind,
    )


def _closed(edges: Iterable[ExtractedEdge], endings: Iterable[ExtractedEnding]) -> Iterator[ExtractedEdge]:
    """Yield facts, those as over that the same text ends: has_boss of "my boss Anna quit"."""
    named = (e for e in endings if e.target and e.why == "over" and not e.others)
    over = {(e.source, e.relation, e.target): e.valid_to for e in named}
    for edge in edges:
        key = (edge.source, edge.relation, edge.target)
        lasting = edge.relation.startswith("has_") or edge.relation == "married_to"
        if key in over and lasting and not edge.ended:
            fact = edge.fact.replace(" is ", " was ", 1).replace(" has ", " had ", 1)
            edge = replace(edge, fact=fact, valid_to=over[key], ended=True)
        yield edge


def _distinct(edges: Iterable[ExtractedEdge]) -> list[ExtractedEdge]:
    """Return the most confident form of each fact, with co-occurrences only for pairs without another fact."""
    best: dict[tuple[str, str, str, bool], ExtractedEdge] = {}
    for edge in edges:
        key = (edge.source, edge.relation, edge.target, edge.ended)
        if key not in best or best[key].confidence < edge.confidence:
            best[key] = edge
    joined = {frozenset((e.source, e.target)) for e in best.values() if e.edge_type != "co_occurrence"}
    together: set[frozenset[str]] = set()
    kept: list[ExtractedEdge] = []
    for edge in best.values():
        pair = frozenset((edge.source, edge.target))
        if edge.edge_type == "co_occurrence":
            if pair in joined or pair in together or len(together) >= MAX_CO_OCCURRENCES:
                continue
            together.add(pair)
        kept.append(edge)
    return kept


def _limited(
    edges: list[ExtractedEdge], mentioned: Iterable[ExtractedEntity], talking: frozenset[str | None]
) -> Extraction:
    """Return the most confident facts and names within the limits; count the rest; participants are persons."""
    entities: dict[str, ExtractedEntity] = {}
    kept: list[ExtractedEdge] = []
    for edge in sorted(edges, key=lambda e: -e.confidence):
        ends = [
            ExtractedEntity(name, kind or "concept", confidence=edge.confidence, guessed=name not in talking)
            for name, kind in ((edge.source, edge.source_type), (edge.target, edge.target_type))
        ]
        new = [e for e in ends if e.name not in entities]
        if len(kept) < MAX_EDGES and len(entities) + len(new) <= MAX_ENTITIES:
            entities.update({e.name: e for e in new})
            kept.append(edge)
    dropped: Counter[str] = Counter()
    for entity in mentioned:
        if entity.name not in entities:
            if len(entities) < MAX_ENTITIES:
                entities[entity.name] = entity
            else:
                dropped["entity_limit"] += 1
    dropped["edge_limit"] += len(edges) - len(kept)
    return Extraction(tuple(entities.values()), tuple(kept), tuple((k, n) for k, n in sorted(dropped.items()) if n))
