-- Which fields of the records have no column in the tables?
-- Their values are in `residue`, as JSON; the complete record, as received, is in the snapshot's raw files.
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
