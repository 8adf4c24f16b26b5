// When an episode was replaced (ended_at), and from when on it is hidden and to be erased (expires_at): few have either.

CREATE INDEX graphmem_episodes_ended IF NOT EXISTS FOR (n:Episode) ON (n.scope, n.ended_at);
CREATE INDEX graphmem_episodes_expiring IF NOT EXISTS FOR (n:Episode) ON (n.scope, n.expires_at);
