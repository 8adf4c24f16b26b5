"""Tests of filters of episodes: the same answer as `filter_matches`, on fields and on metadata of all types."""

# ruff: noqa: D102  the names of the tests describe them

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphmem.models import AsOf, Attachment, Changes, EpisodeFilter, EpisodeQuery, Removal, filter_matches
from graphmem.models.queries import ORDERS
from graphmem.protocols import GraphBackend
from graphmem.testing.base import StoreTests
from graphmem.testing.rows import day, episode, home, numbers_of, project

ODD = "a\"b'c\\d%_$.:;\n\t`{}"
METADATA: tuple[dict[str, Any], ...] = (
    {},
    {"v": None},
    {"v": True},
    {"v": False},
    {"v": 1},
    {"v": 0},
    {"v": 1.5},
    {"v": -2},
    {"v": 2**53 + 1},
    {"v": float(2**53)},
    {"v": 10**25},
    {"v": -(10**25) - 1},
    {"v": 1e300},
    {"v": 5e-324},
    {"v": -0.25},
    {"v": ""},
    {"v": "1"},
    {"v": "true"},
    {"v": "a"},
    {"v": "ab"},
    {"v": "Zoë"},
    {"v": "北京 🦊"},
    {"v": "\uffee"},
    {"v": "\uffff"},
    {"v": "🦊"},
    {"v": ODD},
    {"v": "x", ODD: "y"},
    {"v.": "dotted", "2:v": 1, "ü": "ü"},
    {"other": 1},
)
"""Metadata of the episodes that filters are tried on."""

LONG = "long/" * 500  # longer than what stores index of a text
SESSIONS = (
    None,
    "",
    *("a", "ab", "a/", "a/b", "a/b/c", "a0", "a.", "A", "A/b", "b"),
    *("a%", "a_", "a*", "a?", "a[b]", "a\\", "a'", 'a"', "a`", " a", "a ", "a\n"),
    *("ä", "a\u0308", "Ä", "a\u00ff", "a\u0fff", "a\ud7ff", "a\ue000", "a\uffff"),
    *("\U0001f98a", "a\U0010ffff", "a\U0010ffffb"),
    *(LONG, f"{LONG}a", f"{LONG}b", LONG[:70], f"{LONG[:64]}#", f"{LONG[:64]}#a"),
)
"""Sessions of the episodes that prefixes are tried on."""

VALUES: list[Any] = list(dict.fromkeys((type(m["v"]), m["v"]) for m in METADATA if "v" in m))
ORDERED_TEXTS = ("", "a", "a\ud7ff", "a\ue000", "a\uffff", "a\U00010000", "a\U0010ffff", "b", "\ue000", "\U0001f98a")
"""Texts in the order of their code points, in which those beyond U+FFFF come after U+FFFF, other than in UTF-16."""

SCALAR = st.sampled_from([value for _, value in VALUES])
ORDERED = SCALAR.filter(lambda value: value is not None and not isinstance(value, bool))
OPERATORS = st.one_of(
    st.fixed_dictionaries({"$eq": SCALAR}),
    st.fixed_dictionaries({"$ne": SCALAR}),
    st.fixed_dictionaries({"$in": st.lists(SCALAR, max_size=3)}),
    st.fixed_dictionaries({"$nin": st.lists(SCALAR, max_size=3)}),
    st.fixed_dictionaries({"$exists": st.booleans()}),
    st.fixed_dictionaries({}, optional=dict.fromkeys(("$gt", "$gte", "$lt", "$lte"), ORDERED)).filter(bool),
)
CONDITIONS = st.dictionaries(st.sampled_from(("v", "v", "v.", "2:v", "ü", "other", ODD)), OPERATORS, max_size=2)


class FilterTests(StoreTests):
    """A filter of `EpisodeQuery` selects the episodes that it matches, alone and with the other fields."""

    @pytest.mark.parametrize(
        ("wanted", "expected"),
        [
            ({"session_ids": "s"}, [1, 2]),
            ({"session_ids": ["t", "s", "s"]}, [1, 2, 3]),
            ({"session_ids": []}, []),
            ({"session_prefix": "s"}, [1, 2]),
            ({"session_prefix": ""}, [1, 2, 3]),
            ({"session_prefix": "s", "session_ids": ["t"]}, []),
            ({"speakers": ["Zoë", 'it\'s "me"']}, [1, 3]),
            ({"speakers": "zoë"}, []),
            ({"roles": "user"}, [1, 3]),
            ({"sources": ["document", "triple"]}, [4, 5]),
            ({"since": day(3)}, [3, 4, 5]),
            ({"until": day(3)}, [1, 2]),
            ({"since": day(2), "until": day(4)}, [2, 3]),
            ({"session_ids": "s", "speakers": "Zoë"}, [1]),
            ({"metadata": {"topic": "tax"}}, [1, 4]),
            ({"metadata": {"topic": "tax"}, "session_ids": "s"}, [1]),
            ({"metadata": {"topic": "tax"}, "session_prefix": "s"}, [1]),
            ({}, [1, 2, 3, 4, 5]),
        ],
    )
    def test_a_filter_selects_by_each_field(
        self, store: GraphBackend, wanted: Mapping[str, Any], expected: list[int]
    ) -> None:
        store.add_episodes(
            home(),
            [
                episode(1, session_id="s", speaker="Zoë", role="user", occurred_at=day(1), metadata={"topic": "tax"}),
                episode(2, session_id="s", speaker="Ann", occurred_at=day(2), metadata={"topic": None}),
                episode(3, session_id="t", speaker='it\'s "me"', role="user", occurred_at=day(3)),
                episode(4, source="document", occurred_at=day(4), metadata={"topic": "tax", "page": 2}),
                episode(5, source="triple", occurred_at=day(5)),
            ],
        )
        store.add_episodes(project(), [episode(9, project(), session_id="s", metadata={"topic": "tax"})])
        query = EpisodeQuery(filters=EpisodeFilter(**wanted))
        assert numbers_of(store.find_episodes([home()], query)) == expected
        ids = store.find_episode_ids([home()], query)
        assert ids == [found.id for found in store.find_episodes([home()], query)]

    def test_filters_are_combined_with_the_other_fields(self, store: GraphBackend) -> None:
        rows = [episode(n, session_id="s", occurred_at=day(n), metadata={"n": n % 2}) for n in range(1, 7)]
        store.add_episodes(home(), rows)
        odd = EpisodeFilter(metadata={"n": 1})
        under = odd.changed(session_prefix="s")
        queries: dict[str, tuple[EpisodeQuery, list[int]]] = {
            "ids": (EpisodeQuery(ids=(rows[0].id, rows[1].id, rows[4].id), filters=odd), [1, 5]),
            "session": (EpisodeQuery(session_id="s", filters=odd), [1, 3, 5]),
            "before": (EpisodeQuery(before=rows[4].id, filters=odd), [1, 3]),
            "as of": (EpisodeQuery(as_of=AsOf(day(4), day(9)), filters=odd), [1, 3]),
            "ids and prefix": (EpisodeQuery(ids=(rows[0].id, rows[1].id, rows[4].id), filters=under), [1, 5]),
            "session and prefix": (EpisodeQuery(session_id="s", filters=under), [1, 3, 5]),
            "before and prefix": (EpisodeQuery(before=rows[4].id, filters=under), [1, 3]),
            "as of and prefix": (EpisodeQuery(as_of=AsOf(day(4), day(9)), filters=under), [1, 3]),
            "live and prefix": (EpisodeQuery(live_at=day(9), filters=under), [1, 3, 5]),
            "hidden and prefix": (EpisodeQuery(hidden_at=day(9), filters=under), []),
            "pending and prefix": (EpisodeQuery(state="pending", filters=under), [1, 3, 5]),
        }
        found = {name: numbers_of(store.find_episodes([home()], query)) for name, (query, _) in queries.items()}
        assert found == {name: expected for name, (_, expected) in queries.items()}

    def test_pages_of_a_filter_neither_skip_nor_repeat(self, store: GraphBackend) -> None:
        store.add_episodes(home(), [episode(n, session_id="st"[n % 2], metadata={"n": n}) for n in range(9)])
        query = EpisodeQuery(filters=EpisodeFilter(session_ids=("s", "t"), metadata={"n": {"$ne": 4}}))
        expected = [0, 1, 2, 3, 5, 6, 7, 8]
        assert numbers_of(list(store.all_episodes([home()], query, chunk=2))) == expected
        newest = store.find_episodes([home()], query, limit=3, newest_first=True)
        assert numbers_of(newest) == [8, 7, 6]

    def test_a_prefix_of_sessions_is_compared_like_the_definition(self, store: GraphBackend) -> None:
        rows = [episode(n, session_id=session) for n, session in enumerate(SESSIONS)]
        store.add_episodes(home(), rows)
        store.add_episodes(project(), [episode(n + 100, project(), session_id=s) for n, s in enumerate(SESSIONS)])
        for prefix in (*filter(None, SESSIONS), "", LONG[:64], LONG[:65], f"{LONG}c"):
            query = EpisodeQuery(filters=EpisodeFilter(session_prefix=prefix))
            expected = [row.id for row in rows if row.session_id is not None and row.session_id.startswith(prefix)]
            assert (prefix, store.find_episode_ids([home()], query)) == (prefix, expected)
            pages = [row.id for row in store.all_episodes([home()], query, chunk=2)]
            assert (prefix, pages) == (prefix, expected)
            newest = [row.id for row in store.find_episodes([home()], query, limit=3, newest_first=True)]
            assert (prefix, newest) == (prefix, expected[:-4:-1])

    def test_a_prefix_of_sessions_follows_erasures(self, store: GraphBackend) -> None:
        store.add_episodes(
            home(), [episode(1, session_id="a"), episode(2, session_id="a"), episode(3, session_id="ab")]
        )
        query = EpisodeQuery(filters=EpisodeFilter(session_prefix="a"))
        for gone, left in ((1, [2, 3]), (2, [3]), (3, [])):
            store.write(home(), Changes(removals=(Removal("episode", episode(gone).id),)))
            assert numbers_of(store.find_episodes([home()], query)) == left

    def test_attachments_are_no_metadata_for_a_filter(self, store: GraphBackend) -> None:
        shown = episode(1, attachments=[Attachment(kind="image", name="a.png")], metadata={"a": 1})
        store.add_episodes(home(), [shown, episode(2, attachments=[Attachment(kind="image")])])
        query = EpisodeQuery(filters=EpisodeFilter(metadata={"a": {"$exists": True}}))
        assert store.find_episodes([home()], query) == [shown]

    @pytest.mark.parametrize("name", ORDERS)
    def test_texts_are_ordered_by_code_points(self, store: GraphBackend, name: str) -> None:
        store.add_episodes(home(), [episode(n, metadata={"v": text}) for n, text in enumerate(ORDERED_TEXTS)])
        found: dict[str, list[int]] = {}
        for text in ORDERED_TEXTS:
            query = EpisodeQuery(filters=EpisodeFilter(metadata={"v": {name: text}}))
            found[text] = numbers_of(store.find_episodes([home()], query))
        numbers = range(len(ORDERED_TEXTS))
        assert found == {text: [n for n in numbers if ORDERS[name](n, at)] for at, text in enumerate(ORDERED_TEXTS)}

    def test_metadata_is_compared_like_the_definition(self, store: GraphBackend) -> None:
        rows = [episode(n, metadata=metadata) for n, metadata in enumerate(METADATA)]
        store.add_episodes(home(), rows)

        @settings(self.stateful_settings, max_examples=150)
        @given(conditions=CONDITIONS)
        def check(conditions: dict[str, Any]) -> None:
            wanted = EpisodeFilter(metadata=conditions)
            expected = [row.id for row in rows if filter_matches(row, wanted)]
            assert store.find_episode_ids([home()], EpisodeQuery(filters=wanted)) == expected

        check()
