"""Thin adapters of `graphmem.memory`: command line, LangChain and demo."""
