/* include edges_about */ AND r.valid_to IS NULL AND r.expired_at IS NULL
