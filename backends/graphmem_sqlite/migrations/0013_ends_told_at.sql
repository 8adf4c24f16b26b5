-- a stated end also has the time at which it was stated: [id of an episode or a fact, time, time of telling]
UPDATE edges SET ends = (
    SELECT json_group_array(json_array(json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[1]')))
    FROM json_each(edges.ends)
)
WHERE ends IS NOT NULL;
