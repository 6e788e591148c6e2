-- Which records have no reliable identifier?
-- Nobody finds these by DOI, ISBN, ISSN, PMID or arXiv number, and a migration recognises them by title and year only.
-- The last column has the texts of their identifier fields.
SELECT
    p.tenant,
    p.id,
    p.publishable_type AS kind,
    p.published_on_raw AS published,
    left(p.title, 80) || CASE WHEN length(p.title) > 80 THEN '…' ELSE '' END AS title,
    string_agg(i.type || ' ' || i.raw, ' | ' ORDER BY i.position) AS unusable
FROM publications AS p
LEFT JOIN publication_identifiers AS i ON i.tenant = p.tenant AND i.publication_id = p.id
GROUP BY p.tenant, p.id, p.publishable_type, p.published_on_raw, p.title
HAVING count(*) FILTER (WHERE i.verdict IN ('valid', 'repaired')) = 0
ORDER BY p.tenant COLLATE "C", p.id NULLS LAST, left(p.title, 80) COLLATE "C" NULLS LAST;
