"""The command line: `graphmem COMMAND`; see docs/reference/cli.md.

Exit codes: 0 done, 1 a failure, 2 the command line is wrong, 3 the store is unavailable or damaged, 4 nothing was
found, 5 done but some lines were refused, 130 interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit with its code.

    Parameters
    ----------
    arguments
        What stands behind ``graphmem``; those of the process where None.

    Raises
    ------
    SystemExit
        Always, with the exit code.
    """
    try:
        # imported here, so that Ctrl-C while modules load is answered like any other
        from graphmem.adapters.cli.app import app

        app(args=None if arguments is None else list(arguments), prog_name="graphmem")
    except KeyboardInterrupt:
        sys.exit(130)
