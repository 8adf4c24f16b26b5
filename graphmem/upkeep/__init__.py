"""Maintenance of stored data: merge, erasure, expiry, eviction, export and import."""
