-- How many copies stand at each location, and of how many publications?
SELECT
    h.tenant,
    coalesce(l.name, 'no location') COLLATE "C" AS location,
    count(*) AS copies,
    count(DISTINCT h.publication_id) AS publications,
    min(h.acquired_on) AS first_acquired,
    max(h.acquired_on) AS last_acquired
FROM hard_copies AS h
LEFT JOIN locations AS l ON l.tenant = h.tenant AND l.id = h.location_id
GROUP BY 1, 2
ORDER BY h.tenant COLLATE "C", copies DESC, 2;
