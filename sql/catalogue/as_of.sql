-- One table at an instant: the newest complete snapshot with this table that was finished by then. One that had only begun can have what
-- people wrote later, most of all if it was stopped and continued.
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
            AND held.finished_at <= CAST(instant AS TIMESTAMP WITH TIME ZONE)
            AND list_contains(string_split(held.resources, ','), '{resource}')
    )
