-- Which records may describe the same publication? Those with the same DOI, and books with the same ISBN.
SELECT
    identifiers.type,
    identifiers.value AS identifier,
    count(*) AS records,
    string_agg(publications.id::VARCHAR, ', ' ORDER BY publications.id) AS ids,
    left(min_by(publications.title, publications.id), 60) AS first_title
FROM (
    SELECT DISTINCT tenant, publication_id, type, value
    FROM publication_identifiers
    WHERE verdict IN ('valid', 'repaired')
) AS identifiers
JOIN publications
    ON publications.tenant = identifiers.tenant
    AND publications.id = identifiers.publication_id
WHERE identifiers.type = 'doi'
    -- on an article or a chapter the ISBN names the book it is in
    OR (identifiers.type = 'isbn' AND publications.publishable_type = 'Book')
GROUP BY identifiers.tenant, identifiers.type, identifiers.value
HAVING count(*) > 1
ORDER BY records DESC, identifier
LIMIT 10;
