"""Extractors of entities and facts from episodes, with and without a language model."""
