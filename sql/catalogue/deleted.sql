-- Records of a complete snapshot that the next complete one of the same library and resource no longer has.
SELECT seen.*, nights.missing_in
FROM (
    SELECT tenant, snapshot, lead(snapshot) OVER (PARTITION BY tenant ORDER BY snapshot) AS missing_in
    FROM snapshots
    WHERE complete AND position(',{resource},' IN ',' || resources || ',') > 0
) AS nights
JOIN {table}_history AS seen ON seen.tenant = nights.tenant AND seen.snapshot = nights.snapshot
WHERE
    nights.missing_in IS NOT NULL
    AND {seen_key} IS NOT NULL
    AND NOT EXISTS (
        SELECT 1
        FROM {table}_history AS later
        WHERE later.tenant = seen.tenant AND later.snapshot = nights.missing_in AND {later_key} = {seen_key}
    )
