"""What `visualize` draws of real stores, and its page in headless Chromium: offline, from disk.

The screenshots are in the folder that GRAPHMEM_SCREENSHOTS names, else in pytest's temporary one.
GRAPHMEM_TEST_CHROMIUM names the browser where it isn't found by itself, GRAPHMEM_TEST_MERMAID a `mermaid.min.js` with
which the charts are drawn.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from graphmem import AsOf, GraphMemory
from graphmem.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
HOSTILE = "</script><img src=x onerror=alert(1)>"
MAYA = (
    {"subject": "Maya Chen", "relation": "works at", "object": "Initech", "valid_from": "2024-01-01T00:00:00Z"},
    {"subject": "Maya Chen", "relation": "works at", "object": "Globex", "valid_from": "2025-06-01T00:00:00Z"},
    {"subject": "Maya Chen", "relation": "knows", "object": "Ravi Menon", "valid_from": "2024-02-01T00:00:00Z"},
    {"subject": "Globex", "relation": "part of", "object": "Hanso Group", "valid_from": "2020-01-01T00:00:00Z"},
    {"subject": "Ravi Menon", "relation": "caused", "object": HOSTILE, "valid_from": "2025-03-01T00:00:00Z"},
)
SAID = {
    "text": "Ravi fell over the cable, and that was the outage.",
    "speaker": "Ines",
    "occurred_at": "2025-03-02T09:00:00Z",
    "external_id": "turn-1",
}


def tell(memory: GraphMemory) -> None:
    """Fill a memory with a few people, two employers of one of them, and a name that is an attack."""
    memory.ingest([SAID])
    memory.add_facts([*MAYA[:4], {**MAYA[4], "source": "turn-1"}])


@pytest.fixture
def told(memory: GraphMemory) -> GraphMemory:
    tell(memory)
    return memory


# What is drawn, on every store


def test_text_around_a_name_shows_what_is_true_now(told: GraphMemory) -> None:
    drawn = told.visualize("maya chen", format="ascii")

    assert "works at -> Globex  (since 2025-06-01)" in drawn
    assert "knows -> Ravi Menon" in drawn
    assert "Initech" not in drawn
    assert "Hanso" not in drawn


def test_more_hops_reach_further(told: GraphMemory) -> None:
    assert "part of -> Hanso Group" in told.visualize("Maya Chen", hops=2, format="ascii")


def test_an_inferred_fact_is_marked(told: GraphMemory) -> None:
    told.add_facts([("Nate Cole", "works at", "Lab"), ("Ida Lund", "works at", "Lab")])
    told.admin.infer()
    assert "colleague of (inferred)" in told.visualize("Nate Cole", format="ascii")
    assert "works at (" not in told.visualize("Nate Cole", format="ascii")


def test_another_moment_shows_what_was_true_then(told: GraphMemory) -> None:
    drawn = told.visualize("Maya Chen", as_of="2024-06-01", format="ascii")

    assert "works at -> Initech  (since 2024-01, until 2025-05)" in drawn
    assert "Globex" not in drawn


@pytest.mark.server
def test_whole_scope_is_drawn_without_a_name(told: GraphMemory) -> None:
    drawn = told.visualize(format="mermaid")

    assert len(re.findall(r"^ +n\d+\[", drawn, re.M)) == told.stats().entities
    assert len(re.findall(r" -->\|", drawn)) == told.stats().active_edges


def test_limit_keeps_the_busiest_and_says_how_many_are_missing(told: GraphMemory) -> None:
    drawn = told.visualize(limit=2, format="ascii")

    assert drawn.startswith(f"Scope {told.scope}; {told.stats().entities - 2} more entities beyond the limit\n")
    assert "Maya Chen" in drawn


def test_limit_keeps_near_entities_before_far_ones(told: GraphMemory) -> None:
    drawn = told.visualize("Hanso Group", hops=3, limit=2, format="ascii")

    assert "<- part of - Globex" in drawn
    assert "Maya" not in drawn


def test_community_is_drawn_by_its_id_and_by_its_name(told: GraphMemory) -> None:
    told.admin.refresh_communities()
    found = told.communities()[0]

    by_id, by_name = (told.visualize(community=word, format="ascii") for word in (found.id, found.name.upper()))

    assert by_id == by_name
    assert f"[A] {found.name}\n" in by_id
    assert all(member.name in by_id for member in found.members if member.name != HOSTILE)


def test_page_holds_facts_that_ended_and_their_episodes(told: GraphMemory) -> None:
    data = page_data(told.visualize("Maya Chen", hops=2))

    assert {link["fact"] for link in data["links"]} >= {"Maya Chen works at Initech", "Maya Chen works at Globex"}
    assert SAID["text"] in [source["text"] for source in data["sources"]]


def test_page_of_an_earlier_knowledge_holds_nothing_that_was_learned_later(told: GraphMemory) -> None:
    before = datetime(2020, 6, 1, tzinfo=UTC)

    assert page_data(told.visualize("Maya Chen", as_of=AsOf(known=before)))["links"] == []


def page_data(page: str) -> Any:
    """Return the data in a page."""
    [text] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)
    return json.loads(text)


def test_unknown_name_is_told(told: GraphMemory) -> None:
    with pytest.raises(NotFound, match="'Nobody'"):
        told.visualize("Nobody")


def test_unknown_community_is_told(told: GraphMemory) -> None:
    with pytest.raises(NotFound, match="community 'Nobody'"):
        told.visualize(community="Nobody")


def test_names_and_community_together_are_refused(told: GraphMemory) -> None:
    with pytest.raises(InvalidInput, match="not both"):
        told.visualize("Maya Chen", community="x")


@pytest.mark.parametrize("hops", [-1, 7])
def test_hops_out_of_range_are_refused(told: GraphMemory, hops: int) -> None:
    with pytest.raises(InvalidInput, match="hops"):
        told.visualize("Maya Chen", hops=hops)


# The command


@dataclass(frozen=True)
class Shell:
    """Runs `graphmem` in a folder with a filled store."""

    folder: Path

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        program = str(Path(sys.executable).with_name("graphmem"))
        command = [program, "visualize", "--store", "sqlite:///memory.db", *arguments]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    with GraphMemory.open(f"sqlite:///{tmp_path}/memory.db", extractor="none", background=False) as memory:
        tell(memory)
    return Shell(tmp_path)


def test_command_prints_text(shell: Shell) -> None:
    assert "works at -> Globex" in shell.run("Maya Chen").stdout


@pytest.mark.full(name="a.html")
@pytest.mark.parametrize(
    ("name", "beginning"),
    [("a.html", "<!DOCTYPE html>"), ("a.mmd", "%% Maya Chen"), ("a.dot", "digraph"), ("a.txt", "Maya Chen and 1 hop")],
)
def test_command_takes_the_format_from_the_ending_of_the_file(shell: Shell, name: str, beginning: str) -> None:
    assert shell.run("Maya Chen", "--out", name).returncode == 0
    assert (shell.folder / name).read_text("utf-8").startswith(beginning)


def test_command_tells_what_it_wrote_as_json(shell: Shell) -> None:
    done = shell.run("Maya Chen", "--out", "a.html", "--json")
    assert json.loads(done.stdout) == {"format": "html", "file": "a.html"}


@pytest.mark.full(name="a.mmd")
@pytest.mark.full(name="a.dot")
@pytest.mark.parametrize("name", ["a.html", "a.mmd", "a.dot"])
def test_command_replaces_an_earlier_picture(shell: Shell, name: str) -> None:
    assert shell.run("Maya Chen", "--out", name).returncode == 0
    assert shell.run("--out", name).returncode == 0


def test_command_never_goes_over_the_store(shell: Shell) -> None:
    before = (shell.folder / "memory.db").read_bytes()
    done = shell.run("--format", "html", "--out", "memory.db", "--force")
    assert (done.returncode, "database" in done.stderr) == (2, True)
    assert (shell.folder / "memory.db").read_bytes() == before


def test_command_replaces_a_file_of_the_user_by_force_alone(shell: Shell) -> None:
    (shell.folder / "a.html").write_text("precious")
    done = shell.run("--out", "a.html")
    assert (done.returncode, "--force" in done.stderr) == (2, True)
    assert (shell.folder / "a.html").read_text() == "precious"
    assert shell.run("--out", "a.html", "--force").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("Nobody",), 4),
        (("Maya Chen", "--out", "a.pdf"), 2),
        pytest.param(("--format", "svg"), 2, marks=pytest.mark.full),
        pytest.param(("--out", "missing/a.html"), 2, marks=pytest.mark.full),
        pytest.param(("Maya Chen", "--hops", "9"), 2, marks=pytest.mark.full),
    ],
)
def test_command_tells_what_is_wrong(shell: Shell, arguments: tuple[str, ...], code: int) -> None:
    done = shell.run(*arguments)

    assert done.returncode == code
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


# The page in a browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    named = os.environ.get("GRAPHMEM_TEST_CHROMIUM")
    program = next(filter(None, map(shutil.which, [named] if named else CHROMIUM)), None)
    if program is None:
        pytest.skip(f"no Chromium ({named or ', '.join(CHROMIUM)}); GRAPHMEM_TEST_CHROMIUM names one")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-background-networking"]
        )
        yield started
        started.close()


@dataclass
class Opened:
    """A page opened from disk without a network, and what it asked for and complained of."""

    page: Page
    file: Path
    requests: list[str] = field(default_factory=list[str])
    complaints: list[str] = field(default_factory=list[str])

    def names(self) -> set[str]:
        """Return the names of the entities that are seen."""
        return set(self.page.evaluate("graph.nodes(':visible').map(node => node.data('label'))"))

    def wait_until_seen(self, *names: str, seen: bool = True) -> None:
        """Wait until all of these entities are seen, or none of them."""
        shown = "graph.nodes(':visible').some(node => node.data('label') === name)"
        self.page.wait_for_function(
            f"([names, seen]) => names.every(name => {shown} === seen)", arg=[list(names), seen]
        )

    def positions(self) -> Any:
        return self.page.evaluate("graph.nodes().map(node => node.position())")

    def click(self, selector: str) -> None:
        """Click on an entity or a fact of the graph, where it is on the screen."""
        box = self.page.locator("#graph").bounding_box()
        at: Any = self.page.evaluate(
            "selector => { const it = graph.$(selector)[0];"
            " return it.isNode() ? it.renderedPosition() : it.renderedMidpoint(); }",
            selector,
        )
        assert box is not None
        self.page.mouse.click(box["x"] + at["x"], box["y"] + at["y"])
        self.page.locator("#details").wait_for(state="visible")


def open_page(browser: Browser, file: Path) -> Opened:
    context = browser.new_context(offline=True, viewport={"width": 1400, "height": 900})
    opened = Opened(context.new_page(), file)
    opened.page.on("request", lambda request: opened.requests.append(request.url))
    opened.page.on("console", lambda message: opened.complaints.append(message.text))
    opened.page.on("pageerror", lambda error: opened.complaints.append(str(error)))
    opened.page.on("dialog", lambda dialog: opened.complaints.append(dialog.message))
    opened.page.goto(file.as_uri())
    opened.page.wait_for_function("window.graph")
    return opened


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    with GraphMemory.open("memory://", extractor="none", background=False) as memory:
        tell(memory)
        memory.admin.refresh_communities()
        (folder / "graph.html").write_text(memory.visualize("Maya Chen", hops=2), "utf-8")
    return folder / "graph.html"


@pytest.fixture
def opened(browser: Browser, drawn: Path) -> Iterator[Opened]:
    found = open_page(browser, drawn)
    yield found
    if folder := os.environ.get("GRAPHMEM_SCREENSHOTS"):
        found.page.screenshot(path=Path(folder) / "visualize.png")
    found.page.context.close()


def test_page_opens_from_disk_and_asks_for_nothing_else(opened: Opened) -> None:
    assert opened.requests == [opened.file.as_uri()]
    assert opened.complaints == []
    assert opened.names() == {"Maya Chen", "Globex", "Ravi Menon", "Hanso Group", HOSTILE}


@pytest.mark.full
def test_page_looks_the_same_each_time_it_is_opened(opened: Opened, browser: Browser) -> None:
    again = open_page(browser, opened.file)
    assert again.positions() == opened.positions()


def test_hostile_name_is_shown_as_text(opened: Opened) -> None:
    opened.page.fill("#search", HOSTILE[:12])
    opened.page.press("#search", "Enter")

    assert opened.page.locator("#details h2").inner_text() == HOSTILE
    assert opened.page.locator("img").count() == 0
    assert opened.complaints == []


@pytest.mark.full
def test_search_finds_names_before_words_of_facts(opened: Opened) -> None:
    opened.page.fill("#search", "globex")
    assert opened.page.locator("#hits bdi").all_inner_texts() == ["Globex", "Maya Chen", "Hanso Group"]


@pytest.mark.full
def test_click_on_an_entity_tells_its_facts_now_and_at_other_times(opened: Opened) -> None:
    opened.click("node.seed")

    headings = opened.page.locator("#details h3").all_inner_texts()
    facts = opened.page.locator("#details article > p:first-child").all_inner_texts()
    assert headings == ["2 facts", "At other times"]
    assert facts == ["Maya Chen works at Globex", "Maya Chen knows Ravi Menon", "Maya Chen works at Initech"]


@pytest.mark.full
def test_click_on_a_fact_quotes_its_episode_with_date_and_speaker(opened: Opened) -> None:
    opened.click("edge[label = 'caused']")

    quote = opened.page.locator("#details blockquote")
    assert quote.locator("bdi").first.inner_text() == SAID["text"]
    assert quote.locator("footer").inner_text() == "Ines, 2025-03-02"


@pytest.mark.full
def test_slider_goes_back_to_what_was_true_then(opened: Opened) -> None:
    opened.page.locator("#date").fill("2024-06-01")

    opened.wait_until_seen("Initech", "Ravi Menon")
    assert "Maya Chen works at Globex" not in shown_facts(opened)
    assert opened.page.locator("#slider").input_value() == str((datetime(2024, 6, 1) - datetime(1970, 1, 1)).days)  # noqa: DTZ001


def shown_facts(opened: Opened) -> list[str]:
    """Return the facts whose arrows are seen."""
    return opened.page.evaluate(
        "graph.edges(':visible').map(edge => JSON.parse(document.getElementById('data').textContent)"
        ".links[edge.data('number')].fact)"
    )


@pytest.mark.full
def test_all_time_shows_what_ended_too(opened: Opened) -> None:
    opened.page.click("#always")
    opened.wait_until_seen("Initech")
    assert {"Maya Chen works at Initech", "Maya Chen works at Globex"} <= set(shown_facts(opened))


@pytest.mark.full
def test_type_that_is_unticked_goes(opened: Opened) -> None:
    opened.page.locator("#types input[value=organization]").uncheck()
    opened.wait_until_seen("Globex", seen=False)


@pytest.mark.full
def test_edge_type_that_is_unticked_goes_with_entities_that_only_it_reaches(opened: Opened) -> None:
    opened.page.locator("#edge-types input[value=causal]").uncheck()
    opened.wait_until_seen(HOSTILE, seen=False)


@pytest.mark.full
def test_legend_tells_the_communities_in_the_colors_of_their_members(opened: Opened) -> None:
    shown = opened.page.evaluate("[...new Set(graph.nodes().map(node => node.data('color')))].length")

    assert opened.page.locator("#kinds-title").inner_text() == "Communities"
    assert opened.page.locator("#kinds li").count() == shown


# Mermaid itself


@pytest.mark.skipif("GRAPHMEM_TEST_MERMAID" not in os.environ, reason="GRAPHMEM_TEST_MERMAID names no mermaid.min.js")
def test_mermaid_draws_hostile_names_as_they_are(browser: Browser) -> None:
    hostile = [
        HOSTILE,
        '"a" `b` \\c',
        "end]-->|x|n0;",
        "#quot; &amp; #35;",
        "%%{init}%%",
        "1. list",
        "人 مرحبا",
        "**x** _y_",
    ]
    with GraphMemory.open("memory://", extractor="none", background=False) as memory:
        memory.add_facts([(name, "relates to", "Hub of all") for name in hostile])
        chart = memory.visualize(format="mermaid")
    page = browser.new_context(offline=True).new_page()
    page.add_script_tag(path=os.environ["GRAPHMEM_TEST_MERMAID"])

    page.evaluate(
        "chart => mermaid.render('drawing', chart).then(({svg}) => { document.body.innerHTML = svg; })", chart
    )

    assert set(page.locator(".nodeLabel").all_inner_texts()) >= {*hostile, "Hub of all"}
    assert page.locator("img").count() == 0
