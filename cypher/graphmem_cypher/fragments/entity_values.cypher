{id: row[0], scope: $q.scope, domain: $q.domain, project: $q.project, name: row[1], canonical_name: row[2],
 entity_type: row[3], summary: row[4], properties: row[5], confidence: row[6], access_count: row[7],
 name_words: row[8], summary_words: row[9], first_seen_at: times[row[10]], last_seen_at: times[row[11]],
 recorded_at: times[row[12]], archived_at: times[row[13]], valid_from: times[row[14]], valid_to: times[row[15]],
 entity_id: row[16]}
