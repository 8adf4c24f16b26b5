"""Mermaid, DOT, text and page of made-up pictures; names are hostile."""

from __future__ import annotations

import hashlib
import html
import json
import re
import shutil
import subprocess
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem.errors import InvalidInput
from graphmem.models import AsOf, EdgeType
from graphmem.visualize import FORMATS, Group, Link, Node, Picture, Source, render
from graphmem.visualize.picture import line

ROOT = Path(__file__).parents[3]
T0 = datetime(2024, 1, 1, tzinfo=UTC)
HOSTILE = (
    "</script><script>alert(1)</script>",
    '"quotes" and \\backslashes\\',
    "`ticks` $sum ${x} {{y}}",
    "line\nbreak\r\nand\ttab",
    "\u202eright to left\u202c \u2066isolate\u2069",
    "end]-->|x|n0; subgraph a[",
    "%%{init: {}}%% --> click n0 call f()",
    "#quot; &amp; &lt;b&gt; #35;",
    "<!-- <b>bold</b> -->",
    "\u2028\u2029\x00\x1b[31m\ud800",
    "1. a list\\N\\l",
    "ἄνθρωπος 人 مرحبا 👩",
    "'; DROP TABLE entity; --",
)
names = st.one_of(st.sampled_from(HOSTILE), st.text(min_size=1, max_size=40))


def picture(texts: list[str], *, grouped: bool = True, title: str = "title") -> Picture:
    """Return a picture of a ring in which every text stands everywhere it can."""
    nodes = tuple(
        Node(f"id{i}", text, text, text, i % 2 if grouped else None, is_seed=i == 0) for i, text in enumerate(texts)
    )
    links = tuple(
        Link(f"e{i}", i, (i + 1) % len(texts), text, EdgeType.SEMANTIC, text, 0.5, T0, None, (0,))
        for i, text in enumerate(texts)
        if len(texts) > 1
    )
    groups = (Group("g0", texts[0], texts[0]), Group("g1", texts[-1], texts[-1])) if grouped else ()
    sources = (Source("s0", texts[0], T0, texts[0], texts[0]),)
    return Picture(title, T0, None, nodes, links, groups, sources)


@pytest.mark.parametrize(
    ("form", "shown"),
    [
        ("ascii", "moves to (plan) ->"),
        ("mermaid", 'n0 -.->|"moves to #40;plan#41;"| n1'),
        ("dot", 'n0 -> n1 [label="moves to (plan)", tooltip="", style=dashed]'),
        ("html", '"relation":"moves to (plan)","stated":false'),
    ],
)
def test_what_is_no_stated_fact_is_marked(form: Any, shown: str) -> None:
    link = Link("a", 0, 1, "moves_to", EdgeType.SEMANTIC, "", 0.9, T0, qualifier="plan")
    assert shown in render(Picture("title", T0, None, (Node("1", "A", "b"), Node("2", "C", "d")), (link,)), form)


@pytest.fixture
def team() -> Picture:
    nodes = (
        Node("1", "Maya Chen", "person", group=0, is_seed=True),
        Node("2", "Globex", "organization", group=0),
        Node("3", "Oslo", "location", group=1),
        Node("4", "Ravi Menon", "person"),
    )
    links = (
        Link("a", 0, 1, "works_at", EdgeType.SEMANTIC, "Maya works at Globex.", 0.9, T0),
        Link("b", 1, 2, "located_in", EdgeType.ENTITY, "Globex is in Oslo.", 0.9, T0),
        Link("c", 3, 0, "manages", EdgeType.SEMANTIC, "Ravi manages Maya.", 0.9, T0, datetime(2024, 6, 1, tzinfo=UTC)),
    )
    groups = (Group("g", "Globex people"), Group("h", "Norway"))
    return Picture("Maya Chen and 2 hops around", T0, None, nodes, links, groups, left_out=2)


def test_tree_tells_every_fact_once_below_the_seed(team: Picture) -> None:
    assert render(team, "ascii") == (
        "Maya Chen and 2 hops around; 2 more entities beyond the limit\n"
        "\n"
        "Maya Chen [A]\n"
        "|-- works at -> Globex [A]  (since 2024-01-01)\n"
        "|   `-- located in -> Oslo [B]  (since 2024-01-01)\n"
        "`-- <- manages - Ravi Menon  (since 2024-01, until 2024-05)\n"
        "\n"
        "[A] Globex people\n"
        "[B] Norway\n"
    )


def test_mermaid_has_a_subgraph_and_a_color_for_each_community(team: Picture) -> None:
    chart = render(team, "mermaid")

    assert '  subgraph g0["Globex people"]\n    n0["Maya Chen"]\n    n1["Globex"]\n  end\n' in chart
    assert '  n0 -->|"works at"| n1\n' in chart
    assert "  class n0,n1 k0\n" in chart
    assert len(set(re.findall(r"classDef k\d fill:(#\w+)", chart))) == 3


def test_pictures_without_communities_are_colored_by_type(team: Picture) -> None:
    plain = Picture("all", T0, nodes=tuple(Node(n.id, n.name, n.entity_type) for n in team.nodes))

    chart = render(plain, "mermaid")

    assert "subgraph" not in chart
    assert "  class n0,n3 k0\n" in chart


def test_caption_names_the_moment_that_is_seen() -> None:
    seen = Picture("all", T0, AsOf(valid="2024-05-01T00:00:00Z", known="2024-06-01T00:00:00Z"))

    assert render(seen, "ascii").startswith("all; as of 2024-05-01, known by 2024-06-01\n")


@pytest.mark.parametrize("form", FORMATS)
def test_empty_picture_can_be_drawn(form: Any) -> None:
    assert render(Picture("nothing here", T0), form)


@pytest.mark.parametrize("form", FORMATS)
def test_same_picture_gives_the_same_text(team: Picture, form: Any) -> None:
    assert render(team, form) == render(team, form)


def test_unknown_format_is_named_in_the_error(team: Picture) -> None:
    with pytest.raises(InvalidInput, match="'svg': expected one of html, mermaid, dot, ascii"):
        render(team, "svg")  # pyright: ignore[reportArgumentType]


def test_libraries_are_the_ones_that_the_decision_names() -> None:
    decision = (ROOT / "docs/decisions/0023-cytoscape-and-d3-force.md").read_text("utf-8")
    libraries = (ROOT / "graphmem/visualize/assets").glob("*.min.js")
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in libraries}
    assert found == dict(re.findall(r"^\| `(\S+)` .* `(\w{64})` \|$", decision, re.M))


# Hostile names


@given(st.lists(names, min_size=1, max_size=4), st.booleans())
def test_mermaid_says_nothing_but_its_own_grammar(texts: list[str], grouped: bool) -> None:
    label = r'"(?:[^\W_]| |#\d+;)*"'
    allowed = re.compile(
        rf"%% [\w ,;.-]*|flowchart LR|  (?:  )?n\d+\[{label}\]|  subgraph g\d+\[{label}\]|  end|"
        rf"  n\d+ -->\|{label}\| n\d+|  classDef \w+ [\w:,#-]+|  class [n\d,]+ \w+"
    )
    for row in render(picture(texts, grouped=grouped, title=texts[0]), "mermaid").splitlines():
        assert allowed.fullmatch(row), row


@given(st.lists(names, min_size=1, max_size=4))
def test_mermaid_labels_read_back_as_the_names(texts: list[str]) -> None:
    chart = render(picture(texts, grouped=False), "mermaid")
    labels = re.findall(r'^  n\d+\["(.*)"\]$', chart, re.M)
    read = [re.sub(r"#(\d+);", lambda m: chr(int(m[1])), label) for label in labels]
    assert sorted(read) == sorted(line(t) for t in texts)


@given(st.lists(names, min_size=1, max_size=4), st.booleans())
def test_dot_says_nothing_but_its_own_grammar(texts: list[str], grouped: bool) -> None:
    quoted = r'"(?:[^"\\]|\\[\\"])*"'
    allowed = re.compile(
        rf"digraph graphmem {{|  label={quoted}; labelloc=t; fontname=Helvetica;|  (?:node|edge) \[[^<>]*\];|"
        rf"  subgraph cluster_\d+ {{|    label={quoted}; color=\"#\w+\";|  }}|}}|"
        rf"  (?:  )?n\d+ \[label={quoted}, tooltip={quoted}, fillcolor=\"#\w+\"(?:, penwidth=3)?\];|"
        rf"  n\d+ -> n\d+ \[label={quoted}, tooltip={quoted}, style=solid\];"
    )
    for row in render(picture(texts, grouped=grouped, title=texts[0]), "dot").splitlines():
        assert allowed.fullmatch(row), row


@given(st.lists(names, min_size=1, max_size=4))
def test_dot_labels_read_back_as_the_names(texts: list[str]) -> None:
    labels = re.findall(r'^    n\d+ \[label="((?:[^"\\]|\\.)*)"', render(picture(texts), "dot"), re.M)
    # Graphviz reads escapes, then HTML's character references
    read = [html.unescape(re.sub(r"\\(.)", r"\1", label)) for label in labels]
    assert sorted(read) == sorted(line(t) for t in texts)


@given(st.lists(names, min_size=1, max_size=4))
def test_text_has_no_line_and_no_control_character_of_a_name(texts: list[str]) -> None:
    drawn = picture(texts)
    told = render(drawn, "ascii")
    caption, root, groups, blanks = 1, 1, len(drawn.groups), 2
    assert told.count("\n") == caption + root + len(drawn.links) + groups + blanks
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]", told)


class _Elements(HTMLParser):
    """Collects the elements of a page, and what stands in the one with the data."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.data = ""
        self._in_data = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._in_data = ("id", "data") in attrs

    def handle_endtag(self, tag: str) -> None:
        self._in_data = False

    def handle_data(self, data: str) -> None:
        if self._in_data:
            self.data += data


def elements(page: str) -> _Elements:
    parser = _Elements()
    parser.feed(page)
    return parser


@given(st.lists(names, min_size=1, max_size=4))
def test_page_has_the_same_elements_whatever_the_names(texts: list[str]) -> None:
    found = elements(render(picture(texts, title=texts[0]), "html"))

    assert found.tags == elements(render(picture(["Maya"]), "html")).tags
    assert [node["name"] for node in json.loads(found.data)["nodes"]] == [line(t) for t in texts]


def test_page_lets_no_script_run_but_its_own_and_nothing_be_loaded(team: Picture) -> None:
    page = render(team, "html")
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)

    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    assert not re.search(r"""(?:src|href)\s*=\s*["']""", page.split("<script>")[0])


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz isn't installed")
def test_graphviz_draws_hostile_names_as_they_are() -> None:
    drawn = subprocess.run(
        ["dot", "-Tsvg"], input=render(picture(list(HOSTILE)), "dot"), capture_output=True, text=True, check=True
    )

    texts = {html.unescape(t).replace("\xa0", " ") for t in re.findall(r"<text [^>]*>([^<]*)</text>", drawn.stdout)}
    assert drawn.stderr == ""
    assert {line(name) for name in HOSTILE} <= texts
