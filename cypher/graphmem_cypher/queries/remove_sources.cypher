// Remove episodes from the sources of facts.
UNWIND $q.edges AS id
/* include find_edge */
SET r.episode_ids = [episode IN r.episode_ids WHERE NOT episode IN $q.ids]
RETURN count(r) AS row
