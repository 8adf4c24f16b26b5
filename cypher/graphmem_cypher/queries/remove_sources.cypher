// Remove episodes from the sources of facts.
/* include find_edges */
SET r.episode_ids = [episode IN r.episode_ids WHERE NOT episode IN $q.episodes]
RETURN count(r) AS row
