"""Graph memory for AI agents: entities, dated facts and the episodes they came from."""
