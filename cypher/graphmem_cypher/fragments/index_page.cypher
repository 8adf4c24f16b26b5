WITH collect(i) AS page
UNWIND range(0, size(page) - 1, 50) AS begin
RETURN [i IN page[begin .. begin + 50] WHERE i.position IS NOT NULL | /* include index_row */] AS row
