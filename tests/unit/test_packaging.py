"""The declared package: extras that texts and messages name exist, and `all` has each of them but the kit."""

from __future__ import annotations

import re
import subprocess
import tomllib
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
EXTRAS = DECLARED["project"]["optional-dependencies"]
NAMED = re.compile(r"graphmem\[([a-z,-]+)\]|MissingExtra\([^\n)]*, \"([\w-]+)\"\)|pip install '\.\[([a-z,-]+)\]'")


def test_every_extra_that_a_text_or_a_message_names_exists() -> None:
    listing = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, text=True, check=False)
    if listing.returncode:
        pytest.skip("not a git checkout")
    paths = [ROOT / name for name in listing.stdout.split("\0") if name.endswith((".md", ".py", ".ipynb", ".toml"))]
    named = {
        extra: path.relative_to(ROOT).as_posix()
        for path in paths
        if path.is_file()
        for match in NAMED.finditer(path.read_text("utf-8"))
        for extra in next(filter(None, match.groups())).split(",")
    }
    assert {"spacy", "langchain", "testing"} <= named.keys()
    assert {extra: path for extra, path in named.items() if extra not in EXTRAS} == {}


def test_all_brings_every_extra_but_the_kit_and_agent_frameworks() -> None:
    """Who uses a framework has it installed already, and each is larger than the rest."""
    [line] = EXTRAS["all"]
    apart = {"all", "testing", "openai-agents", "pydantic-ai", "llama-index"}
    assert set(line.removeprefix("graphmem[").removesuffix("]").split(",")) == EXTRAS.keys() - apart


@pytest.mark.parametrize(("page", "shown"), [("README.md", "`graphmem[{}]`"), ("docs/how-to/install.md", "`{}`")])
def test_the_table_of_extras_has_each_of_them(page: str, shown: str) -> None:
    rows = [line for line in (ROOT / page).read_text("utf-8").splitlines() if line.startswith("| ")]
    first = " ".join(row.split("|")[1] for row in rows)
    assert [extra for extra in EXTRAS if shown.format(extra) not in first] == []


def needed(asked: list[str]) -> set[str]:
    """Return the names of all distributions that some requirements bring on this platform."""
    todo, seen = [Requirement(line) for line in asked], set[tuple[str, frozenset[str]]]()
    while todo:
        one = todo.pop()
        if (key := (canonicalize_name(one.name), frozenset(one.extras))) not in seen:
            seen.add(key)
            more = map(Requirement, requires(one.name) or [])
            todo += [each for each in more if any(applies(each, extra) for extra in ("", *one.extras))]
    return {name for name, _ in seen}


def applies(requirement: Requirement, extra: str = "") -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def test_the_demo_installs_what_it_needs_and_no_more() -> None:
    lines = (ROOT / "demo.lock").read_text("utf-8").splitlines()
    pins = [Requirement(line.removesuffix(" \\")) for line in lines if line and line[0] not in "# "]
    asked = [*DECLARED["project"]["dependencies"], *EXTRAS["spacy"], *EXTRAS["embeddings"]]
    asked += DECLARED["dependency-groups"]["demo"]
    assert {canonicalize_name(pin.name) for pin in pins if applies(pin)} == needed(asked)


def test_no_locked_package_is_torch_or_needs_it() -> None:
    """The built-in embedding model runs without it."""
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    locked = set(re.findall(r"^([\w.-]+)==", lock, re.MULTILINE))
    assert {"onnxruntime", "tokenizers"} <= locked
    assert locked & {"torch", "sentence-transformers", "transformers"} == set()


def test_every_address_of_the_project_is_below_its_home() -> None:
    urls = DECLARED["project"]["urls"]
    assert {"Homepage", "Documentation", "Changelog", "Issues"} <= urls.keys()
    assert [url for url in urls.values() if not url.startswith(urls["Homepage"])] == []
    [page] = [url.partition("/main/")[2] for label, url in urls.items() if label == "Changelog"]
    assert (ROOT / page).is_file()
