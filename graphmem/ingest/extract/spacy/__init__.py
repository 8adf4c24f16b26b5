"""Rule-based extraction with spaCy, without a language model: `SpacyExtractor`."""

from graphmem.ingest.extract.spacy.extractor import SpacyExtractor
from graphmem.ontology import Ontology
from graphmem.settings import Settings
from graphmem.text.english import spacy_available

__all__ = ["SpacyExtractor", "open_extractor", "spacy_available"]


def open_extractor(_argument: str, *, ontology: Ontology, settings: Settings) -> SpacyExtractor:
    """Return the extractor for the entry point ``spacy`` of ``graphmem.extractors``."""
    return SpacyExtractor(ontology=ontology, document_facts=settings.document_facts)
