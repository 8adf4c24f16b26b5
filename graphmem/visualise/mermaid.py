"""A picture as a Mermaid flow chart: what GitHub, GitLab and Jupyter draw out of Markdown."""

from __future__ import annotations

from graphmem.visualise.picture import Picture
from graphmem.visualise.style import Kind, caption, kinds, line, words


def render(picture: Picture) -> str:
    """Return the text of a flow chart, one subgraph for each community."""
    found = kinds(picture)
    lines = [f"%% {_comment(caption(picture))}", "%% drawn by graphmem", "flowchart LR"]
    for number, kind in enumerate(found):
        lines += _kind(picture, number, kind)
    lines += [f"  n{link.source} -->|{_label(words(link.relation))}| n{link.target}" for link in picture.links]
    for number, kind in enumerate(found):
        lines.append(f"  classDef k{number} fill:{kind.colour},stroke:#555,color:#222")
        if kind.nodes:
            lines.append(f"  class {','.join(f'n{i}' for i in kind.nodes)} k{number}")
    if seeds := [f"n{i}" for i, node in enumerate(picture.nodes) if node.is_seed]:
        lines += ["  classDef seed stroke-width:3px,stroke:#000", f"  class {','.join(seeds)} seed"]
    return "\n".join(lines) + "\n"


def _kind(picture: Picture, number: int, kind: Kind) -> list[str]:
    nodes = [f"n{i}[{_label(line(picture.nodes[i].name))}]" for i in kind.nodes]
    if not picture.groups:
        return [f"  {node}" for node in nodes]
    return [f"  subgraph g{number}[{_label(kind.name)}]", *(f"    {node}" for node in nodes), "  end"]


def _label(text: str) -> str:
    """Return a quoted label in which everything but letters, digits and blanks is written by its number."""
    return '"' + "".join(c if c.isalnum() or c == " " else f"#{ord(c)};" for c in text) + '"'


def _comment(text: str) -> str:
    return "".join(c if c.isalnum() or c in " ,;.-" else "_" for c in text)
