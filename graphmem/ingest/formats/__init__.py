"""Formats of users' files: how each is recognized, and how its records are read."""
