// Take episodes out of what facts were stated by.
UNWIND $q.edges AS id
/* include find_edge */
SET r.episode_ids = [episode IN r.episode_ids WHERE NOT episode IN $q.ids]
RETURN count(r) AS row
