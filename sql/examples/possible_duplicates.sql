-- Which records may describe the same publication? Those with the same DOI, PMID or arXiv number, and books with the same ISBN.
-- An ISBN on an article or a chapter names the book that it is in, and an ISSN names a journal: neither makes a duplicate.
-- An ISBN with ten digits and the one with thirteen are the same identifier.
WITH held AS (
    SELECT DISTINCT i.tenant, i.type, i.value, p.id, p.title COLLATE "C" AS title
    FROM publication_identifiers AS i
    JOIN publications AS p ON p.tenant = i.tenant AND p.id = i.publication_id
    WHERE
        i.verdict IN ('valid', 'repaired')
        AND (i.type IN ('doi', 'pmid', 'arxiv_id') OR (i.type = 'isbn' AND p.publishable_type = 'Book'))
)
SELECT
    tenant,
    type,
    value AS identifier,
    count(*) AS records,
    string_agg(CAST(id AS VARCHAR), ', ' ORDER BY id) AS ids,
    left(min(title), 60) || CASE WHEN length(min(title)) > 60 THEN '…' ELSE '' END AS one_title
FROM held
GROUP BY tenant, type, value
HAVING count(*) > 1
ORDER BY tenant COLLATE "C", records DESC, type COLLATE "C", value COLLATE "C";
