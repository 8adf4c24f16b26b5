"""Language model calls: time limits, plain-text chat, and error messages without secrets."""
