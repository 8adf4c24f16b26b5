"""Fact recall: seeds, traversal, strategies, scoring and traces."""
