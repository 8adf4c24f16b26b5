"""File formats: detection and readers."""
