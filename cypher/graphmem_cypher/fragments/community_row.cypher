[c.id, c.scope, c.level, c.name, c.summary, c.fingerprint, c.parent_id, toString(c.created_at),
 toString(c.updated_at), toString(c.ended_at)]
