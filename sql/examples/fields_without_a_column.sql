-- What do the records hold that no column of the tables takes?
-- It is kept in `residue`, as JSON, and the record as it was received is in the snapshot's raw files.
WITH keys AS (
    SELECT tenant, publishable_type, unnest(json_keys(residue)) AS field
    FROM publications
)
SELECT
    tenant,
    field,
    count(*) AS records,
    count(*) FILTER (WHERE publishable_type = 'Article') AS articles,
    count(*) FILTER (WHERE publishable_type = 'Book') AS books,
    count(*) FILTER (WHERE publishable_type = 'Report') AS reports
FROM keys
GROUP BY tenant, field
ORDER BY tenant COLLATE "C", records DESC, field COLLATE "C";
