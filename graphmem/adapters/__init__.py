"""Thin surfaces over `graphmem.memory`: the command line."""
