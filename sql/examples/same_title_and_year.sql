-- Which records have the same title and year, and so may describe the same publication?
-- Capital letters, blanks and punctuation make no difference. Compare the kinds: a book and a review of it share their title.
WITH titles AS (
    SELECT
        tenant,
        id,
        publishable_type,
        CAST(coalesce(published_year, extract(year FROM published_on)) AS INTEGER) AS year,
        title COLLATE "C" AS title,
        trim(regexp_replace(lower(title), '[ .,:;!?"()/''-]+', ' ', 'g')) AS spoken
    FROM publications
    WHERE coalesce(published_year, extract(year FROM published_on)) IS NOT NULL
)
SELECT
    tenant,
    year,
    left(min(title), 80) || CASE WHEN length(min(title)) > 80 THEN '…' ELSE '' END AS title,
    count(*) AS records,
    string_agg(CAST(id AS VARCHAR), ', ' ORDER BY id) AS ids,
    string_agg(coalesce(publishable_type, 'no kind'), ', ' ORDER BY id) AS kinds
FROM titles
WHERE spoken <> ''
GROUP BY tenant, year, spoken
HAVING count(*) > 1
ORDER BY tenant COLLATE "C", records DESC, year, spoken COLLATE "C";
