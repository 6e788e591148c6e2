-- Which categories have ISBNs to check?
-- A record with several categories counts in each. The identifiers themselves: SELECT * FROM publication_identifiers WHERE verdict = 'invalid'.
WITH isbns AS (
    SELECT
        i.tenant,
        coalesce(c.name, 'no category') COLLATE "C" AS category,
        i.publication_id,
        i.verdict IN ('invalid', 'unrecognised') AS wrong
    FROM publication_identifiers AS i
    LEFT JOIN publication_categories AS c ON c.tenant = i.tenant AND c.publication_id = i.publication_id
    WHERE i.type = 'isbn'
)
SELECT
    tenant,
    category,
    count(*) AS isbns,
    count(*) FILTER (WHERE wrong) AS wrong,
    count(DISTINCT publication_id) FILTER (WHERE wrong) AS records
FROM isbns
GROUP BY tenant, category
HAVING count(*) FILTER (WHERE wrong) > 0
ORDER BY tenant COLLATE "C", wrong DESC, category;
