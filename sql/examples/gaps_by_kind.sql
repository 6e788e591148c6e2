-- How many records of each kind lack what readers look for?
-- A year is a date, too. An identifier counts where it is valid, or could be repaired with certainty.
WITH filled AS (
    SELECT
        tenant,
        coalesce(publishable_type, 'no kind') COLLATE "C" AS kind,
        published_on IS NOT NULL OR published_year IS NOT NULL AS has_date,
        coalesce(abstract, '') <> '' AS has_abstract,
        EXISTS (
            SELECT 1 FROM publication_authors AS a WHERE a.tenant = p.tenant AND a.publication_id = p.id
        ) AS has_author,
        EXISTS (
            SELECT 1
            FROM publication_identifiers AS i
            WHERE i.tenant = p.tenant AND i.publication_id = p.id AND i.verdict IN ('valid', 'repaired')
        ) AS has_identifier,
        EXISTS (
            SELECT 1 FROM publication_categories AS c WHERE c.tenant = p.tenant AND c.publication_id = p.id
        ) AS has_category,
        EXISTS (
            SELECT 1 FROM publication_files AS f WHERE f.tenant = p.tenant AND f.publication_id = p.id
        ) AS has_file
    FROM publications AS p
)
SELECT
    tenant,
    kind,
    count(*) AS records,
    count(*) FILTER (WHERE NOT has_date) AS no_date,
    count(*) FILTER (WHERE NOT has_author) AS no_author,
    count(*) FILTER (WHERE NOT has_identifier) AS no_identifier,
    count(*) FILTER (WHERE NOT has_category) AS no_category,
    count(*) FILTER (WHERE NOT has_abstract) AS no_abstract,
    count(*) FILTER (WHERE NOT has_file) AS no_file
FROM filled
GROUP BY tenant, kind
ORDER BY tenant COLLATE "C", records DESC, kind;
