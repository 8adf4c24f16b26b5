"""The command line: `graphmem COMMAND`; see docs/reference/cli.md.

Exit codes: 0 success, 1 failure, 2 invalid command line, 3 store unavailable or damaged, 4 nothing found, 5 success
except for refused lines, 130 interrupted.
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
        Arguments after ``graphmem``; None uses those of the process.

    Raises
    ------
    SystemExit
        Always, with the exit code.
    """
    try:
        # imported here, so that Ctrl-C while modules load is handled as well
        from graphmem.adapters.cli.app import app

        app(args=None if arguments is None else list(arguments), prog_name="graphmem")
    except KeyboardInterrupt:
        sys.exit(130)
