-- How many records of each kind lack what readers look for?
WITH filled AS (
    SELECT
        publishable_type,
        published_on IS NOT NULL AS has_date,
        coalesce(abstract, '') <> '' AS has_abstract,
        (tenant, id) IN (SELECT (tenant, publication_id) FROM publication_authors) AS has_author,
        (tenant, id) IN (SELECT (tenant, publication_id) FROM publication_identifiers) AS has_identifier,
        (tenant, id) IN (SELECT (tenant, publication_id) FROM publication_categories) AS has_category,
        (tenant, id) IN (SELECT (tenant, publication_id) FROM publication_files) AS has_file
    FROM publications
)
SELECT
    coalesce(publishable_type, 'no kind') AS kind,
    count(*) AS records,
    count(*) FILTER (NOT has_date) AS no_date,
    count(*) FILTER (NOT has_author) AS no_author,
    count(*) FILTER (NOT has_identifier) AS no_identifier,
    count(*) FILTER (NOT has_category) AS no_category,
    count(*) FILTER (NOT has_abstract) AS no_abstract,
    count(*) FILTER (NOT has_file) AS no_file
FROM filled
GROUP BY kind
ORDER BY records DESC;
