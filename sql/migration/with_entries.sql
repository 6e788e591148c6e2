-- The records of a raw table, each with the ids in the entries of its list (the view entries) under a key of its own, and under another one
-- the entries that have more than the known keys. A record that has the first key stays.
WITH lists AS (
    SELECT
        owner,
        string_agg(number, ',' ORDER BY page, place) AS numbers,
        string_agg(entry, ',' ORDER BY page, place) AS entries
    FROM (
        SELECT *, row_number() OVER () AS place
        FROM (
            SELECT
                owner,
                page,
                CASE WHEN json_merge_patch(payload, {known}) <> '{{}}' THEN payload END AS entry,
                coalesce(
                    CAST(json_extract(payload, '$."{reference}".id') AS VARCHAR),
                    nullif(CAST(json_extract(payload, '$."{reference}"') AS VARCHAR), 'null'),
                    CAST(json_extract(payload, '$.id') AS VARCHAR)
                ) AS number
            FROM (SELECT owner, page, CASE WHEN json_valid(payload) THEN payload END AS payload FROM entries)
        )
    )
    GROUP BY owner
),
records AS (SELECT *, CASE WHEN json_valid(payload) THEN payload END AS valid FROM file)
SELECT
    id,
    page,
    CASE
        WHEN json_exists(valid, '$.id') AND NOT json_exists(valid, '$.{key}')
            THEN regexp_replace(valid, '\s*\}}\s*$', '') || ',"{key}":[' || coalesce(numbers, '')
                || coalesce('],"{entries}":[' || lists.entries, '') || ']}}'
        ELSE payload
    END AS payload,
    sha256
FROM records
LEFT JOIN lists ON lists.owner = coalesce(CAST(records.id AS VARCHAR), json_extract_string(valid, '$.id'))
