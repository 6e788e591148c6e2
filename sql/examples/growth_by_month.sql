-- How has the library grown from month to month?
-- The last complete snapshot of each month counts.
WITH nights AS (
    SELECT
        tenant,
        snapshot,
        row_number() OVER (PARTITION BY tenant, substr(snapshot, 1, 6) ORDER BY snapshot DESC) AS place
    FROM snapshots
    WHERE complete AND position(',publications,' IN ',' || resources || ',') > 0
),
months AS (
    SELECT n.tenant, n.snapshot, count(p.sha256) AS publications
    FROM nights AS n
    LEFT JOIN publications_history AS p ON p.tenant = n.tenant AND p.snapshot = n.snapshot
    WHERE n.place = 1
    GROUP BY n.tenant, n.snapshot
)
SELECT
    tenant,
    substr(snapshot, 1, 4) || '-' || substr(snapshot, 5, 2) AS month,
    publications,
    publications - lag(publications) OVER (PARTITION BY tenant ORDER BY snapshot) AS growth
FROM months
ORDER BY tenant COLLATE "C", snapshot;
