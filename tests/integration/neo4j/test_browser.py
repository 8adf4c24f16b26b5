"""Neo4j Browser in headless Chromium: what `graphmem browser` writes is imported, and pictures come out of it.

The screenshots are in the folder that GRAPHMEM_SCREENSHOTS names, else in pytest's temporary one.
GRAPHMEM_TEST_CHROMIUM names the program where it isn't found by itself.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.neo4j.team import TEAM, open_team, tell
from tests.neo4j_server import HTTP, PASSWORD, Neo4jServer, NoServer
from tests.shared_servers import unavailable

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ORANGE, BLUE, GREEN, SKY = "#E69F00", "#0072B2", "#009E73", "#56B4E9"  # person, organization, location, project
STILL = """node => new Promise(done => {
    let before;
    const look = () => {
        const now = node.getAttribute('transform');
        if (now === before) done();
        else { before = now; setTimeout(look, 200); }
    };
    look();
})"""
DROP = """([name, bytes]) => {
    const carried = new DataTransfer();
    carried.items.add(new File([new Uint8Array(bytes)], name));
    const page = document.querySelector('[data-testid="main"]');
    for (const kind of ['dragenter', 'dragover', 'drop'])
        page.dispatchEvent(new DragEvent(kind, {dataTransfer: carried, bubbles: true, cancelable: true}));
}"""


def chromium() -> str:
    """Return the path of a Chromium; skip, or fail where Neo4j has to be tested, when there is none."""
    named = os.environ.get("GRAPHMEM_TEST_CHROMIUM")
    found = next(filter(None, map(shutil.which, [named] if named else NAMES)), None)
    if found is None:
        looked_for = named or ", ".join(NAMES)
        unavailable(NoServer(f"no Chromium to open Neo4j Browser in ({looked_for}); GRAPHMEM_TEST_CHROMIUM names one"))
    return found


@dataclass(frozen=True)
class Browser:
    """Neo4j Browser on the team's graph, logged in, with the style and the queries imported."""

    page: Page
    screenshots: Path

    def favourite(self, title: str) -> Locator:
        """Return the entry of a saved query."""
        return self.page.get_by_test_id("savedScriptListItem").filter(has_text=title)

    @contextmanager
    def favourites(self) -> Generator[None, None, None]:
        """Have the folder of saved queries open; a click that comes while the drawer still moves is lost."""
        drawer = self.page.get_by_test_id("navigationFavorites").get_by_role("button")
        folder = self.page.get_by_test_id("expandFolder-graphmem")
        self._until(drawer.click, folder.is_visible)
        self._until(folder.click, self.favourite("19 Health").is_visible)
        yield
        self._until(drawer.click, folder.is_hidden)

    def play(self, title: str, shown: Locator) -> None:
        """Press the button of a saved query until something is shown."""

        def press() -> None:
            with self.favourites():
                self.favourite(title).get_by_test_id("savedScriptsButton-Run").click()

        self._until(press, shown.is_visible, seconds=20.0)

    def run(self, title: str) -> Locator:
        """Run a saved query by its button, wait for its picture to stand still, and return the frame of it."""
        command = self.page.get_by_test_id("frameCommand").filter(has_text=title)
        frame = self.page.get_by_test_id("frame").filter(has=command).first
        self.play(title, frame.locator("g.node").first)
        frame.locator("g.node").first.evaluate(STILL)
        frame.screenshot(path=self.screenshots / f"{title.replace(' ', '-')}.png")
        return frame

    def _until(self, act: Callable[[], None], done: Callable[[], bool], seconds: float = 5.0, times: int = 4) -> None:
        for _ in range(times):
            act()
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                if done():
                    return
                self.page.wait_for_timeout(100)
        self.page.screenshot(path=self.screenshots / "failed.png")
        pytest.fail(f"not shown: {self.page.get_by_test_id('main').inner_text()}")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = chromium()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        unavailable(NoServer("Playwright isn't installed: pip install playwright"))
    folder = Path(os.environ.get("GRAPHMEM_SCREENSHOTS") or tmp_path_factory.mktemp("screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    with server() as (address, files), sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-background-networking"]
        )
        page = started.new_page(viewport={"width": 1400, "height": 1000})
        page.set_default_timeout(60_000)
        page.goto(address)
        page.get_by_test_id("password").fill(PASSWORD)
        page.get_by_test_id("connect").click()
        page.locator(".monaco-editor").first.wait_for()
        for name in ("style.grass", "graphmem.zip"):
            page.evaluate(DROP, [name, list(files[name])])
        page.get_by_test_id("frame").filter(has_text="node.Graphmem").wait_for()
        yield Browser(page, folder)
        started.close()


@contextmanager
def server() -> Generator[tuple[str, Mapping[str, bytes]], None, None]:
    """Yield the address of Browser on a server with the team in it, and the files that are for it."""
    try:
        server = Neo4jServer(gds=False).start()
    except NoServer as error:
        unavailable(error)
    try:
        with open_team(server.url) as memory:
            tell(memory)
            explorer = memory.admin.explorer
            assert explorer is not None
            # the container says where the page is inside of it
            yield explorer.url.replace(f":{HTTP}/", f":{server.http_port}/"), explorer.files(TEAM)
    finally:
        server.remove()


def captions(frame: Locator) -> dict[str, str]:
    """Return what stands on the nodes of a picture, and their colours."""
    nodes = frame.locator("g.node").all()
    return {
        " ".join(" ".join(node.locator("text").all_text_contents()).split()): str(
            node.locator("circle.b-outline").get_attribute("fill")
        )
        for node in nodes
    }


def has_arrows(frame: Locator, expected: list[str]) -> bool:
    """Return whether these words stand on the arrows of a picture; a short arrow shows the beginning and "…"."""
    shown = sorted(frame.locator("g.relationship text").all_text_contents())
    pairs = zip(shown, sorted(expected), strict=False)
    return len(shown) == len(expected) and all(word.startswith(text.rstrip("…")) for text, word in pairs)


def test_the_queries_are_a_folder_of_favourites_with_readable_titles(browser: Browser) -> None:
    page = browser.page
    with browser.favourites():
        page.screenshot(path=browser.screenshots / "favourites.png")
        titles = page.get_by_test_id("savedScriptListItem").all_inner_texts()

    assert len(titles) > 20
    assert "02 What do we know about somebody or something" in titles


def test_the_parameters_are_accepted(browser: Browser) -> None:
    told = browser.page.get_by_test_id("rawParamData").first
    browser.play("00 Parameters", told)
    assert f'"scope": "{TEAM.key}"' in told.inner_text()


@pytest.fixture(scope="module")
def ready(browser: Browser) -> Browser:
    """Set the parameters as they come, and that nothing is drawn but results."""
    page = browser.page
    browser.play("00 Parameters", page.get_by_test_id("rawParamData").first)
    browser.play("00 Setting", page.get_by_test_id("frame").filter(has_text='"autoComplete": false').first)
    return browser


def test_what_we_know_is_drawn_with_names_relations_and_colors(ready: Browser) -> None:
    frame = ready.run("02 What do we know")

    assert captions(frame) == {
        "Maya Chen": ORANGE,
        "Ravi Menon": ORANGE,
        "Globex": BLUE,
        "Boston": GREEN,
        "Apollo": SKY,
    }
    assert has_arrows(frame, ["knows", "leads", "lives_in", "works_at"])


def test_what_replaced_what_draws_the_old_and_the_new(ready: Browser) -> None:
    frame = ready.run("06 What replaced what")

    assert captions(frame) == {"Maya Chen": ORANGE, "Initech": BLUE, "Globex": BLUE}
    assert has_arrows(frame, ["works_at", "works_at"])


def test_who_knows_whom_draws_persons_alone(ready: Browser) -> None:
    frame = ready.run("13 Who knows whom")

    assert set(captions(frame).values()) == {ORANGE}
    assert has_arrows(frame, ["knows", "knows", "married_to"])


def test_episodes_carry_their_words(ready: Browser) -> None:
    frame = ready.run("18 The last episodes")

    assert any(caption.startswith("Ravi Menon Lena from") for caption in captions(frame))
    assert has_arrows(frame, ["mentions"] * 20)
