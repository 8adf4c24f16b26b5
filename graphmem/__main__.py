"""`python -m graphmem` is the command line."""

from graphmem.adapters.cli import main

main()
