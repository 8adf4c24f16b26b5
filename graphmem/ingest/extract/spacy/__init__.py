"""Extraction without a language model: `SpacyExtractor`."""

from graphmem.ingest.extract.spacy.extractor import SpacyExtractor, spacy_available

__all__ = ["SpacyExtractor", "spacy_available"]
