"""The public surface: what `import graphmem` brings, what it costs, and what it leaves alone."""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
import typing
from importlib.metadata import version
from pathlib import Path

import pytest

import graphmem
from graphmem import Document, ItemFields, Turn, errors
from graphmem.memory import GraphMemory

DOCUMENTED_MODULES = ("graphmem.protocols.",)

# Run in a fresh interpreter: prints the modules that the import brought, the variables that it read and the
# files that it opened other than Python's own.
WATCH = """
import json, os, sys
read, opened = [], []
class Watched(type(os.environ)):
    def __getitem__(self, key):
        read.append(key)
        return super().__getitem__(key)
os.environ.__class__ = Watched
sys.addaudithook(lambda event, args: opened.append((event, str(args[0])))
                 if event in ("open", "socket.connect", "sqlite3.connect", "subprocess.Popen") else None)
before = set(sys.modules)
import graphmem
brought = sorted(set(sys.modules) - before)
files = [what for event, what in opened if not (event == "open" and what.endswith((".py", ".pyc", ".pth", ".so")))]
print(json.dumps({"modules": brought, "read": read, "opened": files}))
"""


def watched(program: str) -> dict[str, list[str]]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def fresh_import() -> dict[str, list[str]]:
    return watched(WATCH)


def test_import_brings_nothing_but_graphmem_and_the_standard_library(fresh_import: dict[str, list[str]]) -> None:
    roots = {name.split(".")[0] for name in fresh_import["modules"]}
    assert roots - set(sys.stdlib_module_names) == {"graphmem"}


def test_import_reads_no_environment_variable(fresh_import: dict[str, list[str]]) -> None:
    assert fresh_import["read"] == []


def test_import_opens_nothing(fresh_import: dict[str, list[str]]) -> None:
    assert fresh_import["opened"] == []


@pytest.mark.slow  # it imports the frameworks of agents
def test_no_module_reads_a_setting_when_imported() -> None:
    reads_all = {"llama_index.py", "prometheus.py"}  # LlamaIndex, and wsgiref by prometheus_client
    names = [
        ".".join(path.relative_to(Path(graphmem.__file__).parents[1]).with_suffix("").parts)
        for path in Path(graphmem.__file__).parent.rglob("*.py")
        if path.name not in {"__init__.py", "__main__.py", "pytest_plugin.py", *reads_all}
    ]
    imports = "\n".join(f"import {name}" for name in sorted(names))
    program = WATCH.replace("import graphmem\n", imports + "\n")
    assert [name for name in watched(program)["read"] if name.startswith("GRAPHMEM_")] == []


@pytest.mark.parametrize("name", graphmem.__all__)
def test_public_name_exists_and_is_documented(name: str) -> None:
    value = getattr(graphmem, name)
    if inspect.isclass(value) or inspect.isroutine(value):
        assert (value.__dict__["__doc__"] if inspect.isclass(value) else value.__doc__ or "").strip()


def test_public_names_are_sorted_and_listed_by_dir() -> None:
    assert list(graphmem.__all__) == sorted(graphmem.__all__)
    assert set(graphmem.__all__) <= set(dir(graphmem))


def test_version_is_that_of_the_distribution() -> None:
    assert graphmem.__version__ == version("graphmem")


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = graphmem.no_such_name  # type: ignore[attr-defined]


def test_every_error_is_public() -> None:
    assert set(errors.__all__) - set(graphmem.__all__) == set()


def test_remember_names_every_field_of_a_turn_or_document() -> None:
    assert inspect.signature(GraphMemory.remember).parameters["fields"].annotation == "Unpack[ItemFields]"
    assert ItemFields.__annotations__.keys() == {*Turn.model_fields, *Document.model_fields} - {"text"}


def named_types(hint: object) -> set[type]:
    """Return the classes of graphmem that an annotation names, at any depth."""
    found = {hint} if inspect.isclass(hint) and hint.__module__.split(".")[0] == "graphmem" else set[type]()
    return found.union(*(named_types(part) for part in typing.get_args(hint)))


def test_every_type_that_the_facade_takes_or_returns_is_public() -> None:
    methods = [method for part in GraphMemory.mro() for name, method in vars(part).items() if not name.startswith("_")]
    functions = [getattr(method, "fget", None) or getattr(method, "__func__", method) for method in methods]
    hints = [(f, h) for f in functions if inspect.isfunction(f) for h in inspect.get_annotations(f).values()]
    words = [(f, node.id) for f, h in hints for node in ast.walk(ast.parse(h)) if isinstance(node, ast.Name)]
    used = {kind for function, word in words for kind in named_types(function.__globals__.get(word))}
    assert {"Fact", "Turn", "RecallResult"} <= {kind.__name__ for kind in used}
    hidden = {k.__name__ for k in used if not k.__module__.startswith(DOCUMENTED_MODULES)} - set(graphmem.__all__)
    assert sorted(hidden) == []


def test_the_queue_does_not_load_the_local_extractor() -> None:
    program = (
        "import sys, graphmem.ingest.queue\n"
        "print([name for name in sys.modules if name.startswith('graphmem.ingest.extract.spacy')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
