"""Drawing a part of the memory."""

from __future__ import annotations

from collections.abc import Iterable

from graphmem.errors import InvalidInput, NotFound
from graphmem.inputs import to_as_of, to_limit
from graphmem.memory.part import Part, Time
from graphmem.models import AsOf
from graphmem.visualize import PictureFormat, read_picture, render

_MAX_HOPS = 6


class Visualizing(Part):
    """What draws the graph."""

    def visualize(
        self,
        names: str | Iterable[str] | None = None,
        *,
        hops: int = 1,
        community: str | None = None,
        as_of: AsOf | Time | None = None,
        limit: int = 200,
        format: PictureFormat = "html",  # noqa: A002 - the word that users expect
    ) -> str:
        """Draw the graph around some entities, of a community, or of the whole scope, colored by community.

        Parameters
        ----------
        names
            Names of entities.
        hops
            How far from them, in [0, 6].
        community
            Id or name of a community.
        as_of
            The moment that is drawn.
        limit
            Entities at most: near ones before far ones, then those with more facts.
        format
            ``html``: an interactive page in one file that needs no network, with facts of all times and the episodes
            that they come from; ``mermaid``: a flow chart for Markdown; ``dot``: for Graphviz; ``ascii``: a tree of
            lines.

        Returns
        -------
        str
            The text of the page, chart, digraph or tree.

        Raises
        ------
        NotFound
            If the scope has no entity of one of the names, or no such community.
        InvalidInput
            If hops, limit or format don't fit, both names and a community are given, or several communities have that
            name.
        """
        if not 0 <= hops <= _MAX_HOPS:
            raise InvalidInput(f"hops: expected a number in [0, {_MAX_HOPS}], got {hops}")
        asked = [names] if isinstance(names, str) else list(names or ())
        picture = read_picture(
            self._engine.backend,
            self.scope,
            [found for name in asked for found in self._known(name)],
            hops=hops,
            community=community,
            as_of=to_as_of(as_of),
            limit=to_limit(limit),
            with_past=format == "html",
        )
        return render(picture, format)

    def _known(self, name: str) -> tuple[str, ...]:
        found = self._ids([self.scope], name)
        if not found:
            raise NotFound(f"entity {name!r}: there is none of that name in scope {self.scope}")
        return found
