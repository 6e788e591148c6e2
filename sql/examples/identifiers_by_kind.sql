-- Which identifiers do the records carry, how many of them are right, and how many are shared by several records?
SELECT
    tenant,
    type,
    count(*) AS filled,
    count(*) FILTER (WHERE verdict = 'valid') AS valid,
    count(*) FILTER (WHERE verdict = 'repaired') AS repaired,
    count(*) FILTER (WHERE verdict = 'invalid') AS invalid,
    count(*) FILTER (WHERE verdict = 'unrecognised') AS unrecognised,
    count(DISTINCT value) FILTER (WHERE verdict IN ('valid', 'repaired')) AS different
FROM publication_identifiers
GROUP BY tenant, type
ORDER BY tenant COLLATE "C", filled DESC, type COLLATE "C";
