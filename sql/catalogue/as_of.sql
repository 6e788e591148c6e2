-- One table at an instant: the newest complete snapshot with this table that the library had begun by then.
CREATE MACRO {table}_as_of(library, instant) AS TABLE
SELECT *
FROM {table}_history
WHERE
    tenant = library
    AND snapshot = (
        SELECT max(held.snapshot)
        FROM snapshots AS held
        WHERE
            held.tenant = library
            AND held.complete
            AND held.started_at <= CAST(instant AS TIMESTAMP WITH TIME ZONE)
            AND list_contains(string_split(held.resources, ','), '{resource}')
    )
