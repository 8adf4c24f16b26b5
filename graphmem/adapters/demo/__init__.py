"""Demo: a sample conversation and a tour of what graphmem extracts from it."""
