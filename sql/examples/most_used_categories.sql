-- Which categories are used most?
WITH used AS (
    SELECT
        tenant,
        name,
        count(DISTINCT publication_id) AS publications,
        row_number() OVER (
            PARTITION BY tenant ORDER BY count(DISTINCT publication_id) DESC, name COLLATE "C"
        ) AS place
    FROM publication_categories
    WHERE name IS NOT NULL
    GROUP BY tenant, name
)
SELECT tenant, place, name AS category, publications
FROM used
WHERE place <= 20
ORDER BY tenant COLLATE "C", place;
