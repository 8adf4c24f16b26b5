"""The code in README.md and docs/: every block runs, and prints what the page says that it prints.

A page's ```python blocks run in order in one interpreter, its ```console blocks line by line (`$ command`, then what
it prints) in one folder. A ```text block right after a ```python block is what that block prints.
"…" in what is printed stands for anything within a line. On the line before a block, `<!-- skip: reason -->` leaves
it out, and `<!-- file: NAME -->` puts it into the folder first.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
LONG = {"agents", "evaluate", "langchain", "langgraph", "mcp", "visualize"}
"""Pages about a tool that takes seconds to import; it has tests of its own."""
BLOCK = re.compile(
    r"(?P<skip>^<!-- skip: [^\n]*-->\n)?(?:^<!-- file: (?P<file>\S+) -->\n)?^```(?P<kind>\w+)\n(?P<body>.*?)^```$",
    re.M | re.S,
)
MARK = "\x1e"


@dataclass(frozen=True)
class Block:
    """A fenced block of a page that is to be run, and what it has to print (None: anything)."""

    line: int
    kind: str
    body: str
    prints: str | None = None


def blocks_of(page: str) -> list[Block]:
    """Return the blocks of a page that are to be run."""
    found: list[Block] = []
    previous: re.Match[str] | None = None
    for match in BLOCK.finditer(page):
        line = page.count("\n", 0, match.start("kind")) + 1
        if match["kind"] in {"python", "console"} and not match["skip"]:
            found.append(Block(line, match["kind"], match["body"]))
        follows = previous and previous["kind"] == "python" and not page[previous.end() : match.start()].strip()
        if match["kind"] == "text" and previous and follows and not previous["skip"]:
            found[-1] = Block(found[-1].line, "python", found[-1].body, match["body"])
        previous = match
    return found


def run(command: list[str] | str, folder: Path) -> str:
    """Run a program or a shell line in a folder, with this environment's commands first, and return what it prints."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "NO_COLOR": "1", "COLUMNS": "100"}
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        shell=isinstance(command, str),
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def steps_of(console: str) -> list[tuple[str, str]]:
    """Split a console block into commands and what each prints."""
    parts = re.split(r"^\$ (.*(?:\\\n.*)*)\n", console, flags=re.M)
    assert not parts[0].strip(), f"a console block starts with '$ command', not with {parts[0]!r}"
    return list(zip(parts[1::2], parts[2::2], strict=True))


def prints_as(shown: str, expected: str) -> bool:
    """Say whether a text is what a page says; … stands for anything within a line, any blanks for any others."""
    shown, expected = (
        "\n".join(" ".join(line.split()) for line in text.strip().splitlines()) for text in (shown, expected)
    )
    return re.fullmatch(re.escape(expected).replace("…", ".*"), shown) is not None


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=str(page.relative_to(ROOT)), marks=[pytest.mark.full] if page.stem in LONG else [])
        for page in PAGES
        if blocks_of(page.read_text("utf-8"))
    ],
)
def test_page_does_what_it_says(page: Path, tmp_path: Path) -> None:
    text = page.read_text("utf-8")
    blocks = blocks_of(text)
    for match in BLOCK.finditer(text):
        if match["file"]:
            (tmp_path / match["file"]).write_text(match["body"], "utf-8")
    pythons = [block for block in blocks if block.kind == "python"]
    program = "".join(f"{block.body}\nprint({MARK!r}, end='', flush=True)\n" for block in pythons)
    printed = iter(run([sys.executable, "-c", program], tmp_path).split(MARK) if pythons else [])
    for block in pythons:
        shown = next(printed)
        if block.prints is not None:
            assert prints_as(shown, block.prints), f"{page.name}, line {block.line} prints:\n{shown}"
    for block in blocks:
        for command, shows in steps_of(block.body) if block.kind == "console" else []:
            shown = run(command, tmp_path)
            if shows.strip():
                assert prints_as(shown, shows), f"{page.name}, line {block.line}: {command} prints:\n{shown}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_page_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\((?!\w+:|#)([^)#\s]+)", page.read_text("utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_decision_is_in_the_index() -> None:
    index = (ROOT / "docs/decisions/index.md").read_text("utf-8")
    pages = [page.name for page in (ROOT / "docs/decisions").glob("[0-9]*.md")]
    assert [name for name in pages if f"]({name})" not in index] == []


def test_every_page_that_the_code_names_is_there() -> None:
    sources = [path for folder in ("graphmem", "backends", "cypher") for path in (ROOT / folder).rglob("*.py")]
    named = {name for path in sources for name in re.findall(r"docs/[\w/.-]+\.md", path.read_text("utf-8"))}
    assert "docs/concepts/search.md" in named
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []


@pytest.mark.parametrize(
    ("page", "kinds"),
    [
        ("```python\nprint(1)\n```\n", ["python"]),
        ("<!-- skip: needs a server -->\n```python\nprint(1)\n```\n", []),
        ("```sql\nSELECT 1\n```\n```console\n$ ls\n```\n", ["console"]),
    ],
)
def test_blocks_are_found(page: str, kinds: list[str]) -> None:
    assert [block.kind for block in blocks_of(page)] == kinds


@pytest.mark.parametrize(
    ("shown", "expected", "same"),
    [("a   b  \n", "a b", True), ("a 1 b\n", "a … b", True), ("a\nb", "a…b", False), ("a b c", "a b", False)],
)
def test_ellipsis_stands_for_anything_within_a_line(shown: str, expected: str, same: bool) -> None:
    assert prints_as(shown, expected) is same


def test_text_after_a_python_block_is_what_it_prints() -> None:
    assert blocks_of("```python\nprint(1)\n```\n\n```text\n1\n```\n")[0].prints == "1\n"
