"""Work on what is stored."""
