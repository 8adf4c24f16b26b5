"""Answers for prompts and, later, search over episodes."""
