"""Asking language models: time limits, failures told without secrets, questions in plain text."""
