-- The records of a raw table, each with the ids in the entries of its list (the view entries) under a key of its own, and under another one
-- the names of what entries say beside the link. Nothing is said by what is empty, what the record has to which the entry leads (the view
-- led_to), and a position that is the place in the list. A record that has the first key stays.
WITH numbered AS (
    SELECT
        owner,
        number,
        said,
        json_extract_string(number, '$') AS led_to,
        row_number() OVER (PARTITION BY owner ORDER BY page, place) AS place
    FROM (
        SELECT *, row_number() OVER () AS place
        FROM (
            SELECT
                owner,
                page,
                json_extract(payload, {paths}) AS said,
                coalesce(
                    CAST(json_extract(payload, '$."{reference}".id') AS VARCHAR),
                    nullif(CAST(json_extract(payload, '$."{reference}"') AS VARCHAR), 'null'),
                    CAST(json_extract(payload, '$.id') AS VARCHAR)
                ) AS number
            FROM (SELECT owner, page, as_json(payload) AS payload FROM entries)
        )
    )
),
led AS (
    SELECT
        coalesce(CAST(id AS VARCHAR), json_extract_string(valid, '$.id')) AS id,
        any_value(json_extract(valid, {paths})) AS own
    FROM (SELECT id, as_json(payload) AS valid FROM led_to)
    GROUP BY 1
),
lists AS (
    SELECT
        owner,
        string_agg(number, ',' ORDER BY place) AS numbers,
        list_sort(list_distinct(flatten(list(list_filter(
            {names},
            lambda name, i: CAST(said[i] AS VARCHAR) NOT IN ('null', '""', '[]', '{{}}')
                AND said[i] IS DISTINCT FROM own[i]
                AND NOT (name = '{position}' AND coalesce(TRY_CAST(said[i] AS BIGINT) IN (place, place - 1), false))
        ))))) AS beside
    FROM numbered LEFT JOIN led ON led.id = numbered.led_to
    GROUP BY owner
),
records AS (SELECT *, as_json(payload) AS valid FROM file)
SELECT
    records.id,
    page,
    CASE
        WHEN json_exists(valid, '$.id') AND NOT json_exists(valid, '$.{key}')
            THEN regexp_replace(payload, '\s*\}}\s*$', '') || ',"{key}":[' || coalesce(numbers, '') || ']'
                || CASE WHEN len(beside) > 0 THEN ',"{beside}":' || CAST(to_json(beside) AS VARCHAR) ELSE '' END || '}}'
        ELSE payload
    END AS payload,
    sha256
FROM records
LEFT JOIN lists ON lists.owner = coalesce(CAST(records.id AS VARCHAR), json_extract_string(valid, '$.id'))
