"""Episode search and context rendering for prompts."""
