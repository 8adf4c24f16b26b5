"""The write path: queue, extraction, entity resolution and supersession."""
