-- How has the collection grown, by decade of publication and kind?
WITH dated AS (
    SELECT
        tenant,
        publishable_type AS kind,
        -- snapshots of version 0.1.0 have no published_year
        CAST(coalesce(published_year, extract(year FROM published_on)) AS INTEGER) AS year
    FROM publications
),
decades AS (
    SELECT
        *,
        CASE
            WHEN year IS NULL THEN 'no date'
            WHEN year < 1900 THEN 'before 1900'
            ELSE CAST(year - year % 10 AS VARCHAR) || 's'
        END AS published
    FROM dated
)
SELECT
    tenant,
    published,
    count(*) FILTER (WHERE kind = 'Article') AS articles,
    count(*) FILTER (WHERE kind = 'Book') AS books,
    count(*) FILTER (WHERE kind = 'Report') AS reports,
    count(*) FILTER (WHERE kind IS NULL OR kind NOT IN ('Article', 'Book', 'Report')) AS others,
    count(*) AS publications
FROM decades
GROUP BY tenant, published
ORDER BY tenant COLLATE "C", min(year) NULLS LAST;
