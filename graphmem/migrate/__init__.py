"""Live migration of a store to another one: dual writes, copy, verification, cutover, rollback and cleanup."""
