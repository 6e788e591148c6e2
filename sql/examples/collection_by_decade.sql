-- How has the collection grown, by decade of publication and kind?
SELECT
    CASE
        WHEN published_on IS NULL THEN 'no date'
        WHEN published_on < DATE '1900-01-01' THEN 'before 1900'
        ELSE format('{}s', year(published_on) // 10 * 10)
    END AS published,
    count(*) FILTER (publishable_type = 'Article') AS articles,
    count(*) FILTER (publishable_type = 'Book') AS books,
    count(*) FILTER (publishable_type = 'Report') AS reports,
    count(*) FILTER (publishable_type IS NULL OR publishable_type NOT IN ('Article', 'Book', 'Report')) AS others,
    count(*) AS publications
FROM publications
GROUP BY published
ORDER BY min(published_on) NULLS LAST;
