-- How has the collection grown, by decade of publication and kind?
WITH dated AS (
    SELECT
        tenant,
        publishable_type AS kind,
        published_on,
        CASE
            WHEN published_on IS NULL THEN 'no date'
            WHEN published_on < DATE '1900-01-01' THEN 'before 1900'
            ELSE CAST(CAST(floor(extract(year FROM published_on) / 10) AS INTEGER) * 10 AS VARCHAR) || 's'
        END AS published
    FROM publications
)
SELECT
    tenant,
    published,
    count(*) FILTER (WHERE kind = 'Article') AS articles,
    count(*) FILTER (WHERE kind = 'Book') AS books,
    count(*) FILTER (WHERE kind = 'Report') AS reports,
    count(*) FILTER (WHERE kind IS NULL OR kind NOT IN ('Article', 'Book', 'Report')) AS others,
    count(*) AS publications
FROM dated
GROUP BY tenant, published
ORDER BY tenant COLLATE "C", min(published_on) NULLS LAST;
