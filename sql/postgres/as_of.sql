-- One table at an instant: the newest complete snapshot with this table that the library had begun by then.
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
            AND held.started_at <= $2
            AND position(',{resource},' IN ',' || held.resources || ',') > 0
    )
$$
