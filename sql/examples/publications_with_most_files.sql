-- Which publications have the most files, and how large are they?
WITH counted AS (
    SELECT
        tenant,
        publication_id,
        count(*) AS files,
        CAST(sum(size) AS BIGINT) AS bytes,
        row_number() OVER (
            PARTITION BY tenant ORDER BY count(*) DESC, sum(size) DESC NULLS LAST, publication_id
        ) AS place
    FROM publication_files
    WHERE publication_id IS NOT NULL
    GROUP BY tenant, publication_id
)
SELECT
    c.tenant,
    c.place,
    p.id,
    left(p.title, 60) || CASE WHEN length(p.title) > 60 THEN '…' ELSE '' END AS title,
    c.files,
    c.bytes
FROM counted AS c
JOIN publications AS p ON p.tenant = c.tenant AND p.id = c.publication_id
WHERE c.place <= 5
ORDER BY c.tenant COLLATE "C", c.place;
