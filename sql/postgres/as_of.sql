-- One table at an instant: the newest complete snapshot with this table that was finished by then. One that had only begun can have what
-- people wrote later, most of all if it was stopped and continued.
CREATE OR REPLACE FUNCTION {schema}.{table}_as_of(library text, instant timestamp with time zone)
RETURNS SETOF {schema}.{table}_history
LANGUAGE sql STABLE PARALLEL SAFE
AS $$
SELECT *
FROM {schema}.{table}_history
WHERE
    tenant = $1
    AND snapshot = (
        SELECT max(held.snapshot)
        FROM {schema}.snapshots AS held
        WHERE
            held.tenant = $1
            AND held.complete
            AND held.finished_at <= $2
            AND position(',{resource},' IN ',' || held.resources || ',') > 0
    )
$$
