-- Who are the authors with the most publications?
-- By the name as it is catalogued: two forms of one name are two authors here.
WITH written AS (
    SELECT
        tenant,
        name,
        count(DISTINCT publication_id) AS publications,
        row_number() OVER (
            PARTITION BY tenant ORDER BY count(DISTINCT publication_id) DESC, name COLLATE "C"
        ) AS place
    FROM publication_authors
    WHERE name IS NOT NULL
    GROUP BY tenant, name
)
SELECT tenant, place, name AS author, publications
FROM written
WHERE place <= 20
ORDER BY tenant COLLATE "C", place;
