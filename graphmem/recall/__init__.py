"""Answering from memory: seeds, traversal and scoring; pure functions over a `Subgraph`."""
