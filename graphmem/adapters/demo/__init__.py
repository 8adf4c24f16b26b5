"""The demonstration: a conversation written for it, and the tour through what graphmem makes of it."""
