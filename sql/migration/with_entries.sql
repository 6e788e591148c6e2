-- The records of a raw table, each with the entries of its list (the view entries) under a key of its own. A record that has the key stays.
COPY (
    WITH lists AS (
        SELECT
            owner,
            string_agg(CAST(coalesce(json_extract(payload, '$.{reference}'), json_extract(payload, '$.id')) AS VARCHAR), ',' ORDER BY page, place)
                AS numbers
        FROM (SELECT *, row_number() OVER () AS place FROM entries)
        GROUP BY owner
    )
    SELECT file.* REPLACE (
        CASE
            WHEN json_valid(payload) AND json_type(payload) = 'OBJECT' AND NOT json_exists(payload, '$.{key}')
                THEN regexp_replace(payload, '\s*\}}\s*$', '') || ',"{key}":[' || coalesce(numbers, '') || ']}}'
            ELSE payload
        END AS payload
    )
    FROM file
    LEFT JOIN lists ON lists.owner = coalesce(CAST(file.id AS VARCHAR), json_extract_string(payload, '$.id'))
) TO {to} (FORMAT parquet)
