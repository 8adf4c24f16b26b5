"""Draw docs/images/layers.svg from the imports in the code: `make reference`.

A box is a package directly inside `graphmem`, the engine, or a backend. It stands above everything that it imports,
directly or through a single module that isn't drawn; packages that import each other share a row. An arrow is an import
that doesn't follow from other arrows.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("graphmem", "backends", "cypher")
DRAWN_MODULES = {"graphmem.engine"}
WIDTH, ROW, GAP, HEIGHT, LETTER = 900, 92, 24, 40, 9.2

Graph = dict[str, set[str]]
Place = tuple[float, float, float]
"""Center, top and width of a box."""


def graph() -> Graph:
    """Return the boxes, each with those that it imports."""
    paths = {_module(path): path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))}
    boxes: Graph = {_box(module): set() for module in paths}
    for module, path in paths.items():
        boxes[_box(module)] |= {_box(name) for name in _imported(path) if name in paths} - {_box(module)}
    packages = {_box(module) for module, path in paths.items() if path.name == "__init__.py"}
    for box in boxes.keys() - packages - DRAWN_MODULES:
        behind = boxes.pop(box)
        for other, targets in boxes.items():
            if box in targets:
                targets |= behind
            targets -= {box, other}
    return boxes


def _module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts[1:] if parts[0] != "graphmem" else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _box(module: str) -> str:
    parts = module.split(".")
    return ".".join(parts[:2] if parts[0] == "graphmem" else parts[:1])


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
            yield node.module


def below(graph: Graph, box: str) -> set[str]:
    """Return everything that a box imports, directly or not; itself only if it is in a cycle."""
    seen: set[str] = set()
    waiting = list(graph[box])
    while waiting:
        other = waiting.pop()
        if other not in seen:
            seen.add(other)
            waiting += graph[other]
    return seen


def rows(graph: Graph) -> list[list[str]]:
    """Return the boxes by row, the lowest first."""
    lower = {box: below(graph, box) for box in graph}
    heights: dict[str, int] = {}

    def height(box: str) -> int:
        if box not in heights:
            strictly = [other for other in lower[box] if box not in lower[other]]
            heights[box] = 1 + max(map(height, strictly), default=-1)
        return heights[box]

    found: list[list[str]] = [[] for _ in range(1 + max(map(height, graph)))]
    for box in sorted(graph):
        found[heights[box]].append(box)
    return found


def arrows(graph: Graph) -> list[tuple[str, str]]:
    """Return the imports that don't follow from others, as (box, imported box)."""
    lower = {box: below(graph, box) for box in graph}
    cycle = {box: {other for other in lower[box] if box in lower[other]} for box in graph}

    def follows(box: str, target: str) -> bool:
        return any(target in lower[other] and {box, target}.isdisjoint(cycle[other]) for other in graph[box])

    return [
        (box, target)
        for box in sorted(graph)
        for target in sorted(graph[box])
        if box in lower[target] or not follows(box, target)
    ]


def places(levels: list[list[str]], drawn: list[tuple[str, str]]) -> dict[str, Place]:
    """Return where each box stands: in its row, in the order of the boxes that it is connected with."""
    found: dict[str, Place] = {}

    def wanted(box: str) -> float:
        others = [found[end][0] for pair in drawn if box in pair for end in pair if end != box and end in found]
        return sum(others) / len(others) if others else WIDTH / 2

    for _ in range(4):
        for number, level in enumerate(levels):
            level.sort(key=lambda box: (wanted(box), box))
            widths = [26 + LETTER * len(_label(box)) for box in level]
            left = (WIDTH - sum(widths) - GAP * (len(level) - 1)) / 2
            for box, width in zip(level, widths, strict=True):
                found[box] = (left + width / 2, GAP + ROW * (len(levels) - 1 - number), width)
                left += width + GAP
    return found


def _label(box: str) -> str:
    return box.removeprefix("graphmem.")


def picture() -> str:
    """Return the picture."""
    imports = graph()
    drawn, levels = arrows(imports), rows(imports)
    placed = places(levels, drawn)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {ROW * len(levels)}" font-family="sans-serif">',
        "<!-- written by `make reference` from the imports in the code -->",
        '<defs><marker id="end" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">',
        '<path d="M0 0 L8 4 L0 8 z" fill="#6b7890"/></marker></defs>',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        *(_arrow(placed[box], placed[target]) for box, target in drawn),
        *(_shape(box, *placed[box]) for level in levels for box in level),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _arrow(start: Place, end: Place) -> str:
    (x, top, _), (to_x, to_y, _) = start, end
    y = top + HEIGHT
    if top == to_y:  # they import each other
        path = f"M{x:.0f} {y:.0f} C{x:.0f} {y + 26:.0f} {to_x:.0f} {y + 26:.0f} {to_x:.0f} {y:.0f}"
    else:
        path = f"M{x:.0f} {y:.0f} C{x:.0f} {y + 45:.0f} {to_x:.0f} {to_y - 45:.0f} {to_x:.0f} {to_y:.0f}"
    return f'<path d="{path}" fill="none" stroke="#6b7890" marker-end="url(#end)"/>'


def _shape(box: str, center: float, top: float, width: float) -> str:
    fill = "#e4ebf7" if box == "graphmem" or box.startswith("graphmem.") else "#e7f0e4"
    return (
        f'<rect x="{center - width / 2:.0f}" y="{top:.0f}" width="{width:.0f}" height="{HEIGHT}" rx="6" '
        f'fill="{fill}" stroke="#5b6b85"/>\n'
        f'<text x="{center:.0f}" y="{top + 25:.0f}" text-anchor="middle" font-size="15">{_label(box)}</text>'
    )
