// An end without a time zone, written by hand, compares with no ZONED DATETIME (null): it is compared as text.
(r.valid_to IS NULL OR coalesce(r.valid_to > $q.now AND r.valid_to > r.valid_from,
    toString(r.valid_to) > toString($q.now) AND toString(r.valid_to) > toString(r.valid_from)))
