"""Rendering of a picture: an interactive HTML page in one file, Graphviz, Mermaid, and an ASCII tree."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import defaultdict, deque
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from importlib.resources import files
from string import Template, ascii_uppercase
from typing import Any, Literal, get_args

from graphmem.errors import InvalidInput
from graphmem.visualize.picture import Kind, Link, Picture, caption, kinds, line

PictureFormat = Literal["html", "mermaid", "dot", "ascii"]
FORMATS: tuple[PictureFormat, ...] = get_args(PictureFormat)
_SCRIPTS = (
    "cytoscape.min.js",
    "d3-dispatch.min.js",
    "d3-quadtree.min.js",
    "d3-timer.min.js",
    "d3-force.min.js",
    "page.js",
)
_QUOTED = 400  # maximum characters of an episode


def render(picture: Picture, form: PictureFormat) -> str:
    """Return a picture as text.

    Parameters
    ----------
    picture
        The picture to render; for ``html`` read it `with_past`.
    form
        ``html``: an interactive page in one file; ``mermaid``: a flow chart for Markdown; ``dot``: a digraph for
        Graphviz; ``ascii``: a tree of lines.

    Raises
    ------
    InvalidInput
        If the format is unknown.
    """
    match form:
        case "html":
            return render_page(picture)
        case "mermaid":
            return render_mermaid(picture)
        case "dot":
            return render_dot(picture)
        case "ascii":
            return render_tree(picture)
        case _:  # pyright: ignore[reportUnnecessaryComparison]
            raise InvalidInput(f"format {form!r}: expected one of {', '.join(FORMATS)}")


def render_dot(picture: Picture) -> str:
    """Return a Graphviz digraph with one cluster per community."""
    lines = [
        "digraph graphmem {",
        f"  label={_quoted(caption(picture))}; labelloc=t; fontname=Helvetica;",
        '  node [shape=box, style="rounded,filled", fontname=Helvetica, fontsize=11, color="#555555"];',
        '  edge [fontname=Helvetica, fontsize=9, color="#777777"];',
    ]
    for number, kind in enumerate(kinds(picture)):
        lines += _dot_kind(picture, number, kind)
    lines += [
        f"  n{link.source} -> n{link.target} "
        f"[label={_quoted(link.label)}, tooltip={_quoted(line(link.fact))}, "
        f"style={'dashed' if link.qualifier else 'solid'}];"
        for link in picture.links
    ]
    return "\n".join([*lines, "}"]) + "\n"


def _dot_kind(picture: Picture, number: int, kind: Kind) -> list[str]:
    nodes = [_node(picture, i, kind.color) for i in kind.nodes]
    if not picture.groups:
        return [f"  {node}" for node in nodes]
    head = [f"  subgraph cluster_{number} {{", f'    label={_quoted(kind.name)}; color="{kind.color}";']
    return [*head, *(f"    {node}" for node in nodes), "  }"]


def _node(picture: Picture, place: int, color: str) -> str:
    node = picture.nodes[place]
    seed = ", penwidth=3" if node.is_seed else ""
    name, tooltip = _quoted(line(node.name)), _quoted(line(node.entity_type))
    return f'n{place} [label={name}, tooltip={tooltip}, fillcolor="{color}"{seed}];'


def _quoted(text: str) -> str:
    """Return a quoted string with Graphviz escapes and HTML character references."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
    return f'"{escaped}"'


def render_mermaid(picture: Picture) -> str:
    """Return a Mermaid flow chart with one subgraph per community."""
    found = kinds(picture)
    lines = [f"%% {_comment(caption(picture))}", "%% drawn by graphmem", "flowchart LR"]
    for number, kind in enumerate(found):
        lines += _mermaid_kind(picture, number, kind)
    lines += [
        f"  n{link.source} {'-.->' if link.qualifier else '-->'}|{_label(link.label)}| n{link.target}"
        for link in picture.links
    ]
    for number, kind in enumerate(found):
        lines.append(f"  classDef k{number} fill:{kind.color},stroke:#555,color:#222")
        if kind.nodes:
            lines.append(f"  class {','.join(f'n{i}' for i in kind.nodes)} k{number}")
    if seeds := [f"n{i}" for i, node in enumerate(picture.nodes) if node.is_seed]:
        lines += ["  classDef seed stroke-width:3px,stroke:#000", f"  class {','.join(seeds)} seed"]
    return "\n".join(lines) + "\n"


def _mermaid_kind(picture: Picture, number: int, kind: Kind) -> list[str]:
    nodes = [f"n{i}[{_label(line(picture.nodes[i].name))}]" for i in kind.nodes]
    if not picture.groups:
        return [f"  {node}" for node in nodes]
    return [f"  subgraph g{number}[{_label(kind.name)}]", *(f"    {node}" for node in nodes), "  end"]


def _label(text: str) -> str:
    """Return a quoted label with all characters except letters, digits and spaces as numeric entities."""
    return '"' + "".join(c if c.isalnum() or c == " " else f"#{ord(c)};" for c in text) + '"'


def _comment(text: str) -> str:
    return "".join(c if c.isalnum() or c in " ,;.-" else "_" for c in text)


def render_tree(picture: Picture) -> str:
    """Return a tree in ASCII lines; letters in brackets denote communities."""
    lines = [caption(picture), "", *(_Forest(picture).lines() if picture.nodes else ["(nothing)"])]
    if picture.groups:
        lines += ["", *(f"[{_letters(n)}] {line(group.name)}" for n, group in enumerate(picture.groups))]
    return "\n".join(lines) + "\n"


class _Forest:
    """Breadth-first trees of the graph, from the seeds, then from the unreached entities with the most facts."""

    def __init__(self, picture: Picture) -> None:
        self._nodes = picture.nodes
        self._facts: dict[int, list[Link]] = defaultdict(list)
        for link in picture.links:
            self._facts[link.source].append(link)
            self._facts[link.target].append(link)
        marked = kinds(picture)[: len(picture.groups)]
        self._marks = {i: f" [{_letters(number)}]" for number, kind in enumerate(marked) for i in kind.nodes}
        self._branches: dict[int, list[tuple[Link, int, bool]]] = defaultdict(list)
        self._roots = self._grow()

    def lines(self) -> Iterator[str]:
        """Yield the lines of all trees."""
        for root in self._roots:
            yield self._name(root)
            waiting = self._children(root, "")
            while waiting:
                head, inner, (link, end, is_new) = waiting.pop()
                yield f"{head}{self._fact(link, end)}"
                if is_new:
                    waiting += self._children(end, inner)

    def _grow(self) -> list[int]:
        """Assign each fact to an entity of a tree, and return the roots."""
        roots: list[int] = []
        reached: set[int] = set()
        seen: set[str] = set()
        for root in sorted(
            range(len(self._nodes)), key=lambda i: (not self._nodes[i].is_seed, -len(self._facts[i]), i)
        ):
            if root in reached:
                continue
            roots.append(root)
            reached.add(root)
            queue = deque([root])
            while queue:
                here = queue.popleft()
                for link in (f for f in self._facts[here] if f.id not in seen):
                    seen.add(link.id)
                    end = link.target if link.source == here else link.source
                    self._branches[here].append((link, end, end not in reached))
                    if end not in reached:
                        reached.add(end)
                        queue.append(end)
        return roots

    def _children(self, node: int, indent: str) -> list[tuple[str, str, tuple[Link, int, bool]]]:
        """Return (line prefix, indent of children, branch) of each branch, in reverse order."""
        branches = self._branches[node]
        ends = [("`-- ", "    ") if i == len(branches) - 1 else ("|-- ", "|   ") for i in range(len(branches))]
        return [(indent + head, indent + inner, b) for (head, inner), b in zip(ends, branches, strict=True)][::-1]

    def _fact(self, link: Link, end: int) -> str:
        arrow = f"{link.label} ->" if end == link.target else f"<- {link.label} -"
        return f"{arrow} {self._name(end)}  ({link.when})"

    def _name(self, node: int) -> str:
        return f"{line(self._nodes[node].name)}{self._marks.get(node, '')}"


def _letters(number: int) -> str:
    """Return A, B, …, Z, AA, AB and so on."""
    head = "" if number < 26 else _letters(number // 26 - 1)
    return head + ascii_uppercase[number % 26]


def render_page(picture: Picture) -> str:
    """Return the HTML page with the data embedded as JSON; a content security policy allows only its own scripts."""
    scripts = [_asset(name) for name in _SCRIPTS]
    return Template(_asset("page.html")).substitute(
        title=_escaped_text(caption(picture)),
        hashes=" ".join(f"'sha256-{_digest(text)}'" for text in scripts),
        style=_asset("page.css"),
        data=_escaped_json(_data(picture)),
        licence=_asset("d3.LICENSE"),
        scripts="\n".join(f"<script>{text}</script>" for text in scripts),
    )


@cache
def _asset(name: str) -> str:
    return files("graphmem.visualize").joinpath("assets", name).read_text("utf-8")


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _escaped_text(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _escaped_json(value: Any) -> str:
    """Return JSON escaped for embedding in an HTML script element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _data(picture: Picture) -> dict[str, Any]:
    found = kinds(picture)
    kind_of = {i: number for number, kind in enumerate(found) for i in kind.nodes}
    return {
        "title": caption(picture),
        "drawnAt": _time(picture.drawn_at),
        "moment": None if picture.as_of is None else _time(picture.as_of.valid),
        "byCommunity": bool(picture.groups),
        "kinds": [{"name": k.name, "summary": k.summary, "color": k.color, "size": len(k.nodes)} for k in found],
        "nodes": [
            {
                "name": line(node.name),
                "type": line(node.entity_type),
                "summary": line(node.summary),
                "kind": kind_of[place],
                "seed": node.is_seed,
            }
            for place, node in enumerate(picture.nodes)
        ],
        "links": [
            {
                "source": link.source,
                "target": link.target,
                "relation": link.label,
                "stated": not link.qualifier,
                "type": link.edge_type.value,
                "fact": line(link.fact),
                "confidence": round(link.confidence, 2),
                "from": _time(link.valid_from),
                "to": None if link.valid_to is None else _time(link.valid_to),
                "when": link.when,
                "sources": link.sources,
            }
            for link in picture.links
        ],
        "sources": [
            {
                "text": _cut(source.text),
                "at": _time(source.occurred_at),
                "who": line(source.speaker or source.title or ""),
            }
            for source in picture.sources
        ],
    }


def _cut(text: str) -> str:
    shown = line(text[:_QUOTED])
    return shown if len(text) <= _QUOTED else f"{shown} …"


def _time(moment: datetime) -> float:
    """Return milliseconds since 1970, the unit of JavaScript dates."""
    return moment.timestamp() * 1000
