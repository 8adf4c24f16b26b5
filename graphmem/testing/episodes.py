"""Tests of episodes, their queue, and mentions."""

# ruff: noqa: D102  the names of the tests describe them

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from graphmem.errors import Conflict, InvalidInput
from graphmem.models import (
    AsOf,
    Attachment,
    Changes,
    EpisodeEnd,
    EpisodeExpiry,
    EpisodeFilter,
    EpisodeQuery,
    Mention,
    ProcessingResult,
    Removal,
    SessionSummary,
    new_id,
)
from graphmem.protocols import GraphBackend
from graphmem.testing.base import StoreTests, contents
from graphmem.testing.filters import SESSIONS
from graphmem.testing.rows import (
    FUTURE,
    SCALARS,
    claimer,
    day,
    elsewhere,
    entity,
    entity_id,
    episode,
    episode_id,
    home,
    numbers_of,
    project,
    put_entities,
    reprs,
)

LEASE = timedelta(hours=1)
TICK = timedelta(microseconds=1)


class EpisodeTests(StoreTests):
    """Episodes are stored once and completely, and found by every field of `EpisodeQuery`."""

    def test_every_field_of_an_episode_comes_back_as_it_was_written(self, store: GraphBackend) -> None:
        written = episode(
            1,
            source="document",
            text="Zoë said: “北京 🦊”\n\tsecond line % _ \\ '",
            session_id="s/1",
            role="user",
            speaker="Zoë",
            title="Titel ü",
            occurred_at=day(1.5),
            recorded_at=day(2.25),
            metadata=dict(SCALARS),
            attachments=(
                Attachment(kind="image", name="b.png", media_type="image/png", url="https://e.org/b", size=2**40),
                Attachment(kind="audio", description="“北京 🦊”\n\tsecond line % _ \\ '\""),
            ),
            external_id="ext:1",
            attempts=2,
            error="timed out",
            retry_at=day(3.125),
            ended_at=day(4.5),
            expires_at=day(5.75),
        )
        store.add_episodes(home(), [written])
        (read,) = store.find_episodes([home()], EpisodeQuery())
        assert read == written
        assert reprs(read.metadata) == reprs(SCALARS)

    def test_metadata_named_like_attachments_stays_metadata(self, store: GraphBackend) -> None:
        written = episode(1, metadata={"attachments": "two of them"})
        store.add_episodes(home(), [written])
        assert store.find_episodes([home()], EpisodeQuery()) == [written]

    def test_fields_of_an_episode_that_were_not_given_come_back_as_defaults(self, store: GraphBackend) -> None:
        store.add_episodes(home(), [episode(1)])
        assert store.find_episodes([home()], EpisodeQuery()) == [episode(1)]

    def test_an_episode_may_arrive_processed(self, store: GraphBackend) -> None:
        store.add_episodes(home(), [episode(1, source="triple", processed_at=day(1))])
        assert store.find_episodes([home()], EpisodeQuery(state="processed")) == [
            episode(1, source="triple", processed_at=day(1))
        ]

    def test_a_text_of_a_megabyte_comes_back_whole(self, store: GraphBackend) -> None:
        text = "0123456789abcdeü" * 65536
        store.add_episodes(home(), [episode(1, text=text)])
        assert store.find_episodes([home()], EpisodeQuery())[0].text == text

    def test_ids_come_in_the_order_given(self, store: GraphBackend) -> None:
        added = store.add_episodes(home(), [episode(n) for n in (3, 1, 2)])
        assert added == [(episode_id(3), True), (episode_id(1), True), (episode_id(2), True)]

    def test_an_external_id_is_stored_once(self, store: GraphBackend) -> None:
        first = episode(1, external_id="x", text="first")
        store.add_episodes(home(), [first])
        again = store.add_episodes(home(), [episode(2, external_id="y"), episode(3, external_id="x", text="again")])
        assert again == [(episode_id(2), True), (episode_id(1), False)]
        assert store.find_episodes([home()], EpisodeQuery()) == [first, episode(2, external_id="y")]

    def test_an_external_id_that_stands_twice_in_a_call_is_stored_once(self, store: GraphBackend) -> None:
        added = store.add_episodes(home(), [episode(1, external_id="x"), episode(2), episode(3, external_id="x")])
        assert added == [(episode_id(1), True), (episode_id(2), True), (episode_id(1), False)]
        assert numbers_of(store.find_episodes([home()], EpisodeQuery())) == [1, 2]

    def test_the_same_episode_with_its_external_id_can_be_sent_again(self, store: GraphBackend) -> None:
        added = [store.add_episodes(home(), [episode(1, external_id="x")]) for _ in range(2)]
        assert added == [[(episode_id(1), True)], [(episode_id(1), False)]]

    def test_external_ids_of_two_scopes_are_two(self, store: GraphBackend) -> None:
        store.add_episodes(home(), [episode(1, external_id="x")])
        assert store.add_episodes(project(), [episode(2, project(), external_id="x")]) == [(episode_id(2), True)]

    @pytest.mark.parametrize("first", [None, "x"])
    def test_an_id_that_stands_twice_in_a_call_is_a_conflict(self, store: GraphBackend, first: str | None) -> None:
        before = contents(store, home())
        with pytest.raises(Conflict):
            store.add_episodes(home(), [episode(1, external_id=first), episode(1, external_id="y")])
        assert contents(store, home()) == before

    def test_an_id_that_is_taken_is_a_conflict_and_stores_nothing(self, store: GraphBackend) -> None:
        store.add_episodes(home(), [episode(1)])
        before = contents(store, home())
        with pytest.raises(Conflict):
            store.add_episodes(home(), [episode(2), episode(1, text="other")])
        assert contents(store, home()) == before

    def test_episodes_are_selected_by_each_field(self, store: GraphBackend) -> None:
        store.add_episodes(
            home(),
            [
                episode(1, session_id="s", external_id="a", processed_at=day(1)),
                episode(2, session_id="s", external_id="b"),
                episode(3, session_id="t", external_id="c", error="e", attempts=3),
                episode(4, session_id="s", error="e", attempts=1, retry_at=FUTURE),
                episode(5, occurred_at=day(5), recorded_at=day(3)),
            ],
        )
        queries: dict[str, tuple[EpisodeQuery, list[int]]] = {
            "ids": (EpisodeQuery(ids=(episode_id(4), episode_id(1), episode_id(9))), [1, 4]),
            "no ids": (EpisodeQuery(ids=()), []),
            "external_ids": (EpisodeQuery(external_ids=("c", "a", "z")), [1, 3]),
            "no external_ids": (EpisodeQuery(external_ids=()), []),
            "session": (EpisodeQuery(session_id="s"), [1, 2, 4]),
            "before": (EpisodeQuery(before=episode_id(4)), [1, 2]),
            "before the first": (EpisodeQuery(before=episode_id(1)), []),
            "before an absent one": (EpisodeQuery(before=episode_id(9)), []),
            "processed": (EpisodeQuery(state="processed"), [1]),
            "pending": (EpisodeQuery(state="pending"), [2, 4, 5]),
            "failed": (EpisodeQuery(state="failed"), [3]),
            "occurred later": (EpisodeQuery(as_of=AsOf(day(4), day(9))), [1, 2, 3, 4]),
            "occurred now": (EpisodeQuery(as_of=AsOf(day(5), day(3))), [1, 2, 3, 4, 5]),
            "recorded later": (EpisodeQuery(as_of=AsOf(day(9), day(2))), [1, 2, 3, 4]),
            "session and state": (EpisodeQuery(session_id="s", state="pending"), [2, 4]),
            "before and state": (EpisodeQuery(before=episode_id(4), state="processed"), [1]),
            "ids and session": (EpisodeQuery(ids=(episode_id(1), episode_id(3)), session_id="t"), [3]),
        }
        found = {name: numbers_of(store.find_episodes([home()], query)) for name, (query, _) in queries.items()}
        assert found == {name: expected for name, (_, expected) in queries.items()}

    def test_before_an_episode_are_those_of_its_session_and_scope(self, store: GraphBackend) -> None:
        for n, scope, session in ((1, home(), "s"), (2, project(), "s"), (3, home(), None), (4, home(), "")):
            store.add_episodes(scope, [episode(n, scope, session_id=session)])
            store.add_episodes(scope, [episode(n + 4, scope, session_id=session)])
        found = {
            n: numbers_of(store.find_episodes([home(), project()], EpisodeQuery(before=episode_id(n))))
            for n in range(1, 9)
        }
        assert found == {1: [], 2: [], 3: [], 4: [], 5: [1], 6: [2], 7: [], 8: [4]}
        assert store.find_episodes([home()], EpisodeQuery(before=episode_id(6))) == []

    @pytest.mark.parametrize("chunk", [1, 2, 3, 7])
    def test_paging_of_episodes_neither_skips_nor_repeats(self, store: GraphBackend, chunk: int) -> None:
        for scope, numbers in ((home(), (0, 2, 3, 4, 7, 8, 9, 12, 13)), (project(), (1, 5, 6, 10, 11, 14))):
            store.add_episodes(scope, [episode(n, scope, session_id="even" if n % 2 == 0 else "odd") for n in numbers])
        for query, expected in ((EpisodeQuery(), [*range(15)]), (EpisodeQuery(session_id="even"), [*range(0, 15, 2)])):
            assert _paged(store, query, chunk) == expected
            newest = store.find_episodes([project(), home()], query, limit=chunk, newest_first=True)
            assert numbers_of(newest) == expected[::-1][:chunk]
            ids = store.find_episode_ids([project(), home()], query)
            assert ids == [episode_id(n) for n in expected]

    def test_newest_first_is_by_id_descending(self, store: GraphBackend) -> None:
        store.add_episodes(home(), [episode(n, occurred_at=day(9 - n)) for n in (2, 4, 1, 3)])
        found = [store.find_episodes([home()], EpisodeQuery(), newest_first=True, limit=limit) for limit in (3, 9)]
        assert [numbers_of(rows) for rows in found] == [[4, 3, 2], [4, 3, 2, 1]]

    def test_newest_first_before_an_episode_gives_the_turns_just_before_it(self, store: GraphBackend) -> None:
        store.add_episodes(home(), [episode(n, session_id="s" if n != 4 else "t") for n in range(1, 7)])
        rows = store.find_episodes([home()], EpisodeQuery(before=episode_id(6)), newest_first=True, limit=3)
        assert numbers_of(rows) == [5, 3, 2]

    def test_changing_an_episode_that_was_given_or_read_changes_nothing_in_the_store(self, store: GraphBackend) -> None:
        given = episode(1, metadata={"a": 1})
        store.add_episodes(home(), [given])
        given.metadata["a"] = 2
        store.find_episodes([home()], EpisodeQuery())[0].metadata["a"] = 3
        store.claim_episodes(claimer("a"), now=day(1), until=FUTURE, limit=1, scopes=[home()])[0].metadata["a"] = 4
        assert store.find_episodes([home()], EpisodeQuery())[0].metadata == {"a": 1}

    def test_get_episodes_leaves_out_the_absent(self, store: GraphBackend) -> None:
        store.add_episodes(home(), [episode(1)])
        assert store.get_episodes([home()], [episode_id(2), episode_id(1)]) == {episode_id(1): episode(1)}


class SessionTests(StoreTests):
    """Sessions are listed with the counts, times and speakers of their episodes."""

    def test_a_session_has_the_number_times_and_speakers_of_its_episodes(self, store: GraphBackend) -> None:
        rows = [
            episode(1, session_id="s", speaker="Zoë", occurred_at=day(3)),
            episode(2, session_id="t", occurred_at=day(2.5)),
            episode(3, session_id="s", speaker="Ann", occurred_at=day(1.25)),
            episode(4, session_id="s", speaker="Zoë", occurred_at=day(2)),
            episode(5, session_id="s", occurred_at=day(2)),
            episode(6, speaker="Bob"),
        ]
        store.add_episodes(home(), rows)
        assert store.find_sessions([home()], EpisodeQuery()) == [
            SessionSummary("s", 4, day(1.25), day(3), ("Ann", "Zoë")),
            SessionSummary("t", 1, day(2.5), day(2.5)),
        ]

    def test_sessions_of_one_id_in_two_scopes_are_counted_together(self, store: GraphBackend) -> None:
        for n, scope, session in ((1, home(), "s"), (2, project(), "s"), (3, project(), "t"), (4, elsewhere(), "s")):
            store.add_episodes(scope, [episode(n, scope, session_id=session, occurred_at=day(n), speaker=f"{n}")])
        found = {
            name: store.find_sessions(scopes, EpisodeQuery())
            for name, scopes in (("one", [home()]), ("both", [project(), home(), home()]), ("none", []))
        }
        assert found == {
            "one": [SessionSummary("s", 1, day(1), day(1), ("1",))],
            "both": [
                SessionSummary("s", 2, day(1), day(2), ("1", "2")),
                SessionSummary("t", 1, day(3), day(3), ("3",)),
            ],
            "none": [],
        }

    def test_episodes_that_do_not_match_are_no_part_of_a_session(self, store: GraphBackend) -> None:
        rows = [
            episode(1, session_id="s", external_id="a", ended_at=day(5)),
            episode(2, session_id="s", speaker="Ann", expires_at=day(5), processed_at=day(3)),
            episode(3, session_id="s", error="e", metadata={"n": 1}),
            episode(4, session_id="t", expires_at=day(5)),
            episode(5, session_id="u", occurred_at=day(5), recorded_at=day(5)),
            episode(6, session_id="u", occurred_at=day(6), recorded_at=day(6)),
        ]
        store.add_episodes(home(), rows)
        asked: dict[str, tuple[EpisodeQuery, dict[str, int]]] = {
            "all": (EpisodeQuery(), {"s": 3, "t": 1, "u": 2}),
            "live": (EpisodeQuery(live_at=day(5)), {"s": 1, "u": 2}),
            "live before": (EpisodeQuery(live_at=day(4)), {"s": 3, "t": 1, "u": 2}),
            "hidden": (EpisodeQuery(hidden_at=day(5)), {"s": 2, "t": 1}),
            "expired": (EpisodeQuery(expired_by=day(5)), {"s": 1, "t": 1}),
            "as of": (EpisodeQuery(as_of=AsOf(day(5), day(5))), {"s": 3, "t": 1, "u": 1}),
            "ids": (EpisodeQuery(ids=(rows[0].id, rows[4].id)), {"s": 1, "u": 1}),
            "no ids": (EpisodeQuery(ids=()), {}),
            "external ids": (EpisodeQuery(external_ids=("a", "b")), {"s": 1}),
            "session": (EpisodeQuery(session_id="u"), {"u": 2}),
            "before": (EpisodeQuery(before=rows[2].id), {"s": 2}),
            "before an absent one": (EpisodeQuery(before=episode_id(9)), {}),
            "processed": (EpisodeQuery(state="processed"), {"s": 1}),
            "failed": (EpisodeQuery(state="failed"), {"s": 1}),
            "speaker": (EpisodeQuery(filters=EpisodeFilter(speakers=("Ann",))), {"s": 1}),
            "prefix": (EpisodeQuery(filters=EpisodeFilter(session_prefix="u")), {"u": 2}),
            "metadata, live": (EpisodeQuery(filters=EpisodeFilter(metadata={"n": 1}), live_at=day(9)), {"s": 1}),
        }
        found = {
            name: {session.id: session.episodes for session in store.find_sessions([home()], query)}
            for name, (query, _) in asked.items()
        }
        assert found == {name: expected for name, (_, expected) in asked.items()}

    @pytest.mark.parametrize("chunk", [1, 2, 7])
    def test_paging_of_sessions_is_in_the_order_of_code_points(self, store: GraphBackend, chunk: int) -> None:
        expected = sorted(session for session in SESSIONS if session is not None)
        in_turn = list(enumerate(SESSIONS))
        for n, session in in_turn + in_turn[::2]:
            scope = project() if n % 3 == 0 else home()
            hidden = episode(n, scope, session_id=session, ended_at=day(1) if n in (1, 3) else None)
            store.add_episodes(scope, [hidden.changed(id=new_id())])
        hidden = {SESSIONS[1], SESSIONS[3]}
        for query, listed in (
            (EpisodeQuery(), expected),
            (EpisodeQuery(live_at=day(2)), [session for session in expected if session not in hidden]),
        ):
            found: list[str] = []
            while page := store.find_sessions(
                [project(), home()], query, after=found[-1] if found else None, limit=chunk
            ):
                assert len(page) <= chunk
                found += [session.id for session in page]
            assert found == listed

    def test_a_session_ends_with_its_last_episode(self, store: GraphBackend) -> None:
        store.add_episodes(home(), [episode(n, session_id="s", occurred_at=day(n)) for n in (1, 2)])
        for gone, left in ((2, [SessionSummary("s", 1, day(1), day(1))]), (1, [])):
            store.write(home(), Changes(removals=(Removal("episode", episode_id(gone)),)))
            assert store.find_sessions([home()], EpisodeQuery()) == left


class QueueTests(StoreTests):
    """Pending episodes are claimed by one owner at a time, and return to the queue when the claim or retry expires."""

    def test_the_oldest_ids_are_claimed_first(self, empty_store: GraphBackend) -> None:
        for n, scope in ((4, home()), (6, project()), (2, project()), (3, home()), (1, elsewhere()), (5, home())):
            empty_store.add_episodes(scope, [episode(n, scope)])
        of_two = empty_store.claim_episodes("a", now=day(1), until=FUTURE + LEASE, limit=3, scopes=[home(), project()])
        assert (numbers_of(of_two), _claim(empty_store, limit=2)) == ([2, 3, 4], [1, 5])

    def test_a_claimed_episode_comes_whole(self, empty_store: GraphBackend) -> None:
        written = episode(1, metadata={"a": 1}, session_id="s", external_id="x")
        empty_store.add_episodes(home(), [written])
        assert empty_store.claim_episodes("a", now=day(1), until=FUTURE, limit=1) == [written]

    def test_what_is_held_is_not_claimed_again(self, empty_store: GraphBackend) -> None:
        empty_store.add_episodes(home(), [episode(n) for n in range(4)])
        claimed = [
            _claim(empty_store, "a", limit=2),
            _claim(empty_store, "b", limit=9),
            _claim(empty_store, "a", limit=9),
        ]
        assert claimed == [[0, 1], [2, 3], []]

    def test_a_lease_ends_at_its_time(self, empty_store: GraphBackend) -> None:
        begin, end = day(9), day(9) + LEASE
        empty_store.add_episodes(home(), [episode(1)])
        claims = [
            empty_store.claim_episodes(owner, now=now, until=now + LEASE, limit=1)
            for owner, now in (("a", begin), ("b", end - TICK), ("c", end), ("d", end))
        ]
        assert [len(claim) for claim in claims] == [1, 0, 1, 0]

    @pytest.mark.parametrize("whole_store", [False, True])
    def test_a_scope_in_which_another_process_has_claims_is_left_out(
        self, empty_store: GraphBackend, whole_store: bool
    ) -> None:
        for n, scope in enumerate((home(), home(), home(), project())):
            empty_store.add_episodes(scope, [episode(n, scope)])
        scopes = None if whole_store else [home(), project()]

        def claim(owner: str, own: str | None, now: datetime = FUTURE) -> list[int]:
            claimed = empty_store.claim_episodes(owner, now=now, until=now + LEASE, limit=1, scopes=scopes, own=own)
            return numbers_of(claimed)

        assert [claim("p1 a", "p1 "), claim("p1 b", "p1 ")] == [[0], [1]]  # of the same process
        assert [claim("p2 a", "p2 "), claim("p2 a", "p2 ")] == [[3], []]
        assert claim("p2 a", "p2 ", FUTURE + LEASE) == [0]  # the claims of the other have expired
        assert claim("p3 a", None, FUTURE + LEASE) == [1]

    def test_what_is_released_can_be_claimed(self, empty_store: GraphBackend) -> None:
        empty_store.add_episodes(home(), [episode(n) for n in range(3)])
        _claim(empty_store, "a", limit=2)
        _claim(empty_store, "ab", limit=1)
        assert numbers_of(empty_store.release_claims(["a", "nobody"])) == [0, 1]
        assert _claim(empty_store, "c", limit=9) == [0, 1]

    def test_releasing_twice_releases_nothing_more(self, empty_store: GraphBackend) -> None:
        empty_store.add_episodes(home(), [episode(1)])
        _claim(empty_store, "a")
        assert [
            numbers_of(empty_store.release_claims(["a"])),
            empty_store.release_claims(["a"]),
            empty_store.release_claims([]),
        ] == [[1], [], []]

    def test_owners_are_those_that_hold_something(self, empty_store: GraphBackend) -> None:
        empty_store.add_episodes(home(), [episode(n) for n in range(3)])
        before = empty_store.claim_owners(FUTURE)
        _claim(empty_store, "a", limit=1)
        _claim(empty_store, "b", limit=2)
        _claim(empty_store, "c", limit=1)
        both = sorted(empty_store.claim_owners(FUTURE))
        empty_store.release_claims(["a"])
        empty_store.write(home(), Changes(results=(ProcessingResult(episode_id(1), processed_at=day(2)),)))
        left = [empty_store.claim_owners(now) for now in (FUTURE, FUTURE + LEASE)]
        assert (before, both, left) == ([], ["a", "b"], [["b"], []])

    def test_claims_end_with_their_episodes(self, empty_store: GraphBackend) -> None:
        empty_store.add_episodes(home(), [episode(1), episode(2)])
        _claim(empty_store, "a", limit=1)
        _claim(empty_store, "b", limit=1)
        empty_store.write(home(), Changes(removals=(Removal("episode", episode_id(1)),)))
        owners = [empty_store.claim_owners(FUTURE)]
        empty_store.clear(home())
        owners.append(empty_store.claim_owners(FUTURE))
        empty_store.add_episodes(home(), [episode(1), episode(2)])
        assert owners == [["b"], []]
        assert _claim(empty_store, "c", limit=9) == [1, 2]

    def test_processed_and_failed_episodes_are_not_claimed(self, empty_store: GraphBackend) -> None:
        empty_store.add_episodes(
            home(), [episode(1, processed_at=day(1)), episode(2, error="e", attempts=3), episode(3)]
        )
        assert _claim(empty_store, limit=9) == [3]

    def test_an_episode_is_claimed_when_its_next_try_has_come(self, empty_store: GraphBackend) -> None:
        empty_store.add_episodes(home(), [episode(1, error="e", attempts=1, retry_at=day(5))])
        claims = [empty_store.claim_episodes("a", now=now, until=FUTURE, limit=1) for now in (day(5) - TICK, day(5))]
        assert [len(claim) for claim in claims] == [0, 1]

    def test_a_failed_try_is_stored_and_gives_the_episode_back(self, empty_store: GraphBackend) -> None:
        empty_store.add_episodes(home(), [episode(1)])
        _claim(empty_store, "a")
        result = ProcessingResult(episode_id(1), error="timed out", attempts=1, retry_at=day(2))
        empty_store.write(home(), Changes(results=(result,)))
        tried = episode(1, error="timed out", attempts=1, retry_at=day(2))
        assert empty_store.find_episodes([home()], EpisodeQuery(state="pending")) == [tried]
        assert empty_store.claim_episodes("b", now=day(3), until=FUTURE, limit=1) == [tried]

    def test_a_last_failed_try_takes_the_episode_out_of_the_queue(self, empty_store: GraphBackend) -> None:
        empty_store.add_episodes(home(), [episode(1)])
        _claim(empty_store, "a")
        empty_store.write(home(), Changes(results=(ProcessingResult(episode_id(1), error="timed out", attempts=3),)))
        assert empty_store.find_episodes([home()], EpisodeQuery(state="failed")) == [
            episode(1, error="timed out", attempts=3)
        ]
        assert empty_store.claim_episodes("b", now=FUTURE, until=FUTURE + LEASE, limit=1) == []

    def test_a_processed_episode_leaves_the_queue(self, empty_store: GraphBackend) -> None:
        empty_store.add_episodes(home(), [episode(1, error="e", attempts=1, retry_at=day(1))])
        _claim(empty_store, "a")
        empty_store.write(home(), Changes(results=(ProcessingResult(episode_id(1), processed_at=day(4), attempts=2),)))
        assert empty_store.find_episodes([home()], EpisodeQuery()) == [episode(1, processed_at=day(4), attempts=2)]
        assert empty_store.claim_episodes("b", now=FUTURE, until=FUTURE + LEASE, limit=1) == []

    def test_a_processed_episode_can_be_queued_again(self, empty_store: GraphBackend) -> None:
        empty_store.add_episodes(home(), [episode(1, processed_at=day(1), attempts=1)])
        empty_store.write(home(), Changes(results=(ProcessingResult(episode_id(1)),)))
        assert _claim(empty_store) == [1]

    def test_a_result_of_an_absent_episode_is_refused(self, empty_store: GraphBackend) -> None:
        with pytest.raises(InvalidInput):
            empty_store.write(home(), Changes(results=(ProcessingResult(episode_id(9), processed_at=day(1)),)))

    def test_the_queue_of_some_scopes_or_of_the_whole_store(self, empty_store: GraphBackend) -> None:
        for n, scope in enumerate((home(), project(), elsewhere())):
            empty_store.add_episodes(scope, [episode(n, scope)])
        of_two = empty_store.claim_episodes("a", now=day(1), until=FUTURE, limit=9, scopes=[project(), home()])
        rest = empty_store.claim_episodes("b", now=day(1), until=FUTURE, limit=9)
        assert ([e.scope for e in of_two], [e.scope for e in rest]) == ([home(), project()], [elsewhere()])

    def test_releasing_works_across_scopes(self, empty_store: GraphBackend) -> None:
        empty_store.add_episodes(home(), [episode(1)])
        empty_store.add_episodes(elsewhere(), [episode(2, elsewhere())])
        _claim(empty_store, "a", limit=2)
        assert numbers_of(empty_store.release_claims(["a"])) == [1, 2]

    def test_stats_count_the_queue(self, empty_store: GraphBackend) -> None:
        rows = [episode(1, processed_at=day(1)), episode(2), episode(3, error="e", attempts=3), episode(4)]
        empty_store.add_episodes(home(), rows)
        _claim(empty_store, "a", limit=1)
        stats = empty_store.stats(home())
        assert (stats.episodes, stats.pending_episodes, stats.failed_episodes) == (4, 2, 1)


class LifetimeTests(StoreTests):
    """Episodes end and expire at their times; `is_live` is the definition."""

    def test_episodes_are_selected_by_what_can_be_found_of_them(self, store: GraphBackend) -> None:
        rows = [
            episode(1),
            episode(2, ended_at=day(5)),
            episode(3, expires_at=day(5)),
            episode(4, ended_at=day(3), expires_at=day(8)),
            episode(5, ended_at=day(8), expires_at=day(3)),
            episode(6, ended_at=day(8), expires_at=day(8)),
        ]
        store.add_episodes(home(), rows)
        store.add_episodes(project(), [episode(9, project(), ended_at=day(1), expires_at=day(1))])
        asked: dict[str, tuple[EpisodeQuery, list[int]]] = {
            "live": (EpisodeQuery(live_at=day(4)), [1, 2, 3, 6]),
            "live at the moment of the end": (EpisodeQuery(live_at=day(5)), [1, 6]),
            "live before all": (EpisodeQuery(live_at=day(0)), [1, 2, 3, 4, 5, 6]),
            "hidden": (EpisodeQuery(hidden_at=day(4)), [4, 5]),
            "hidden at the moment of the end": (EpisodeQuery(hidden_at=day(5)), [2, 3, 4, 5]),
            "hidden before all": (EpisodeQuery(hidden_at=day(0)), []),
            "expired": (EpisodeQuery(expired_by=day(5)), [3, 5]),
            "expired and not ended": (EpisodeQuery(expired_by=day(9), live_at=day(7)), [6]),
            "live by id": (EpisodeQuery(ids=tuple(row.id for row in rows[:3]), live_at=day(5)), [1]),
            "hidden by id": (EpisodeQuery(ids=tuple(row.id for row in rows[:3]), hidden_at=day(5)), [2, 3]),
            "expired by id": (EpisodeQuery(ids=tuple(row.id for row in rows[:3]), expired_by=day(5)), [3]),
        }
        found = {name: numbers_of(store.find_episodes([home()], query)) for name, (query, _) in asked.items()}
        assert found == {name: expected for name, (_, expected) in asked.items()}
        ids = store.find_episode_ids([home()], EpisodeQuery(hidden_at=day(5)))
        assert ids == [episode_id(n) for n in (2, 3, 4, 5)]

    def test_an_episode_of_the_past_is_found_unless_it_has_expired(self, store: GraphBackend) -> None:
        rows = [episode(1, ended_at=day(5)), episode(2, expires_at=day(5)), episode(3, ended_at=day(2))]
        store.add_episodes(home(), [row.changed(occurred_at=day(1), recorded_at=day(1)) for row in rows])
        asked: dict[str, tuple[AsOf, list[int]]] = {
            "valid": (AsOf(day(4), day(9)), [1]),
            "known": (AsOf(day(9), day(4)), [1]),
            "both": (AsOf(day(9), day(9)), []),
            "early": (AsOf(day(1), day(1)), [1, 3]),
        }
        found = {
            name: numbers_of(store.find_episodes([home()], EpisodeQuery(as_of=as_of, live_at=day(6))))
            for name, (as_of, _) in asked.items()
        }
        assert found == {name: expected for name, (_, expected) in asked.items()}
        hidden = EpisodeQuery(as_of=AsOf(day(4), day(9)), hidden_at=day(6))
        assert numbers_of(store.find_episodes([home()], hidden)) == [2, 3]

    def test_pages_of_hidden_episodes_neither_skip_nor_repeat(self, store: GraphBackend) -> None:
        rows = [episode(n, ended_at=day(9 - n) if n % 2 else None, expires_at=day(n)) for n in range(9)]
        store.add_episodes(home(), [*rows, episode(9)])
        for query in (EpisodeQuery(hidden_at=day(9)), EpisodeQuery(expired_by=day(9))):
            assert numbers_of(list(store.all_episodes([home()], query, chunk=2))) == [*range(9)]
            newest = store.find_episodes([home()], query, limit=3, newest_first=True)
            assert numbers_of(newest) == [8, 7, 6]

    def test_an_end_and_an_expiry_are_set_and_taken_back(self, store: GraphBackend) -> None:
        written = episode(1, external_id="x", processed_at=day(1), metadata={"a": 1})
        store.add_episodes(home(), [written, episode(2)])
        steps = [
            (Changes(episode_ends=(EpisodeEnd(episode_id(1), day(2.25)),)), {"ended_at": day(2.25)}),
            (
                Changes(episode_expiries=(EpisodeExpiry(episode_id(1), day(3.5)),)),
                {"ended_at": day(2.25), "expires_at": day(3.5)},
            ),
            (Changes(episode_ends=(EpisodeEnd(episode_id(1), None),)), {"expires_at": day(3.5)}),
            (
                Changes(
                    episode_ends=(EpisodeEnd(episode_id(1), day(5)), EpisodeEnd(episode_id(1), day(4))),
                    episode_expiries=(EpisodeExpiry(episode_id(1), None),),
                ),
                {"ended_at": day(4)},
            ),
        ]
        for changes, fields in steps:
            store.write(home(), changes)
            assert store.find_episodes([home()], EpisodeQuery()) == [written.changed(**fields), episode(2)]
            assert numbers_of(store.find_episodes([home()], EpisodeQuery(hidden_at=FUTURE))) == [1]

    @pytest.mark.parametrize(
        "part", [{"episode_ends": (EpisodeEnd, day)}, {"episode_expiries": (EpisodeExpiry, day)}], ids=["end", "expiry"]
    )
    @pytest.mark.parametrize("n", [2, 9], ids=["of another scope", "absent"])
    def test_the_end_of_an_episode_that_is_not_in_the_scope_is_refused(
        self, store: GraphBackend, part: dict[str, Any], n: int
    ) -> None:
        store.add_episodes(project(), [episode(2, project())])
        [(name, (change, at))] = part.items()
        before = contents(store, project())
        with pytest.raises(InvalidInput):
            store.write(home(), Changes(**{name: (change(episode_id(n), at(1)),)}))
        assert contents(store, project()) == before


class MentionTests(StoreTests):
    """An episode mentions an entity once."""

    def test_mentions_are_found_by_entity_by_episode_and_by_both(self, store: GraphBackend) -> None:
        rows = _mentions(store)
        both = store.find_mentions([home()], entity_ids=[entity_id(1)], episode_ids=[episode_id(1), episode_id(9)])
        found = {
            "entity": store.find_mentions([home()], entity_ids=[entity_id(1)]),
            "episode": store.find_mentions([home()], episode_ids=[episode_id(2)]),
            "both": both,
            "all": store.find_mentions([home()]),
            "no entity": store.find_mentions([home()], entity_ids=[]),
            "no episode": store.find_mentions([home()], episode_ids=[]),
        }
        assert found == {
            "entity": [rows[0], rows[2]],
            "episode": [rows[2], rows[3]],
            "both": [rows[0]],
            "all": rows,
            "no entity": [],
            "no episode": [],
        }

    def test_the_limit_cuts_in_the_order_of_episode_and_entity(self, store: GraphBackend) -> None:
        rows = _mentions(store)
        assert [store.find_mentions([home()], limit=limit) for limit in (1, 3, 9)] == [rows[:1], rows[:3], rows]

    @pytest.mark.parametrize("chunk", [1, 2, 4, 9])
    def test_all_mentions_are_read_however_small_the_first_limit(self, store: GraphBackend, chunk: int) -> None:
        rows = _mentions(store)
        assert store.all_mentions([home()], chunk=chunk) == rows
        assert store.all_mentions([home()], entity_ids=[entity_id(1)], chunk=chunk) == [rows[0], rows[2]]

    def test_the_first_mention_of_an_entity_in_an_episode_stays(self, store: GraphBackend) -> None:
        rows = _mentions(store)
        again = Mention(entity_id=entity_id(1), episode_id=episode_id(1), surface="again", seen_at=day(9))
        store.write(home(), Changes(mentions=(again,)))
        assert store.find_mentions([home()]) == rows
        assert store.stats(home()).mentions == len(rows)

    @pytest.mark.parametrize(("entity_n", "episode_n"), [(9, 1), (1, 9)], ids=["entity", "episode"])
    def test_a_mention_of_or_in_something_absent_is_refused(
        self, store: GraphBackend, entity_n: int, episode_n: int
    ) -> None:
        rows = _mentions(store)
        bad = Mention(entity_id=entity_id(entity_n), episode_id=episode_id(episode_n), surface="x", seen_at=day(1))
        with pytest.raises(InvalidInput):
            store.write(home(), Changes(mentions=(bad,)))
        assert store.find_mentions([home()]) == rows


def _mentions(store: GraphBackend) -> list[Mention]:
    put_entities(store, entity(1), entity(2))
    store.add_episodes(home(), [episode(1), episode(2)])
    rows = [
        Mention(
            entity_id=entity_id(e), episode_id=episode_id(n), surface=f"Zoë {n} {e}", confidence=0.3, seen_at=day(n)
        )
        for n, e in ((1, 1), (1, 2), (2, 1), (2, 2))
    ]
    store.write(home(), Changes(mentions=(rows[3], rows[1])))
    store.write(home(), Changes(mentions=(rows[2], rows[0])))
    return rows


def _claim(store: GraphBackend, owner: str = "a", *, limit: int = 1) -> list[int]:
    return numbers_of(store.claim_episodes(owner, now=FUTURE, until=FUTURE + LEASE, limit=limit))


def _paged(store: GraphBackend, query: EpisodeQuery, chunk: int) -> list[int]:
    found: list[int] = []
    after = ""
    while page := store.find_episodes([project(), home()], query, after=after, limit=chunk):
        assert len(page) <= chunk
        assert page[-1].id > after
        found += numbers_of(page)
        after = page[-1].id
    return found
