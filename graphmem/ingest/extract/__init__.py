"""Extractors: what an episode says, with and without a language model."""
