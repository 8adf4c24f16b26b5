"""Add the page development/modules.md to the site: modules, classes, functions and constants with their docstrings.

A hook of MkDocs: the page is made from the code whenever the site is built, so that it is never out of date. It has the
first paragraph of each docstring.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
FOLDERS = ("graphmem", "backends", "cypher")
PAGE = "development/modules.md"
_HEAD = """# Modules

Made from the code: every module, and what is defined in it, with the first paragraph of its docstring. Names that
begin with an underscore are internal to their module. [Architecture](../architecture.md) says how the parts work
together.
"""


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the page to those of the site."""
    files.append(File.generated(config, PAGE, content=page()))


def page() -> str:
    """Return the page as Markdown."""
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    return _HEAD + "".join(_section(path) for path in paths)


def _section(path: Path) -> str:
    tree = ast.parse(path.read_text("utf-8"))
    described: list[str] = []
    others: list[str] = []
    for name, docstring in _definitions(tree.body):
        if docstring:
            described.append(f"- `{name}`: {_first_sentence(docstring)}\n")
        else:
            others.append(f"`{name}`")
    if not described and not others:
        return ""
    if others:
        described.append(f"- {', '.join(others)}\n")
    return f"\n## {path.relative_to(ROOT)}\n\n{_first_sentence(ast.get_docstring(tree) or '')}\n\n{''.join(described)}"


def _definitions(body: list[ast.stmt], owner: str = "") -> Iterator[tuple[str, str | None]]:
    """Yield the qualified name and docstring of classes, functions and constants, in their order."""
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if not node.name.startswith("__"):
                yield owner + node.name, ast.get_docstring(node)
            if isinstance(node, ast.ClassDef):
                yield from _definitions(node.body, f"{node.name}.")
        elif isinstance(node, ast.Assign | ast.AnnAssign) and not owner:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name) and not target.id.startswith("__"):
                    yield target.id, _text(after)


def _text(node: ast.stmt | None) -> str | None:
    """Return the text of a docstring that follows an assignment."""
    value = node.value if isinstance(node, ast.Expr) else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None


def _first_sentence(docstring: str) -> str:
    paragraph = " ".join(docstring.split("\n\n")[0].split())
    return paragraph.replace("<", "&lt;").replace("[", "\\[")
