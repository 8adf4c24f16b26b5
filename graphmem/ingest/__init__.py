"""Writing to memory: the queue, extraction, resolution, supersession."""
