"""Extraction without a language model: `SpacyExtractor`."""

from graphmem.ingest.extract.spacy.extractor import SpacyExtractor
from graphmem.text.english import spacy_available

__all__ = ["SpacyExtractor", "spacy_available"]
