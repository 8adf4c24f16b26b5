"""Inference of facts from others, by rules or a language model, and their dependence on their premises."""
