-- The differences between the raw tables raw_a and raw_b of one resource, as the views added, removed, changed, fields and totals.

-- An id that is not a whole number is in the payload only. A record without an id is identified by its hash.
CREATE TEMP MACRO id_of(id, payload) AS coalesce(
    CAST(id AS VARCHAR),
    CASE WHEN json_valid(payload) AND json_type(payload, '$.id') = 'VARCHAR' THEN json_extract_string(payload, '$.id') END
);

-- Signatures in the addresses of files are new with every listing, and are no part of the record.
CREATE TEMP MACRO without_signatures(payload) AS regexp_replace(
    payload,
    '("(?:url|thumb_url|preview_url)"\s*:\s*"[^"?]*)\?[^"]*(?i:signature|x-amz-|x-goog-|sig=|token=|expires)[^"]*"',
    '\1"',
    'g'
);

CREATE TEMP MACRO member(payload, name) AS
    json_extract(payload, '/' || replace(replace(name, '~', '~0'), '/', '~1'));

CREATE TEMP MACRO is_object(payload) AS
    CASE WHEN json_valid(payload) THEN json_type(payload) = 'OBJECT' ELSE false END;

-- Stands for a SHA-256 in a quarter of its memory, which is most of that of the tables below.
CREATE TEMP MACRO digest(sha256) AS md5_number(sha256);

-- A partial listing may have an id twice. The records are equal only if every version of them is. Payloads are read only where an id is
-- missing, because they are most of the file.
CREATE TEMP TABLE ids_a AS
    SELECT id, min(digest(sha256)) AS low, max(digest(sha256)) AS high
    FROM (
        SELECT CAST(id AS VARCHAR) AS id, sha256 FROM raw_a WHERE id IS NOT NULL
        UNION ALL
        SELECT id_of(id, payload), sha256 FROM raw_a WHERE id IS NULL
    )
    WHERE id IS NOT NULL
    GROUP BY id;
CREATE TEMP TABLE ids_b AS
    SELECT id, min(digest(sha256)) AS low, max(digest(sha256)) AS high
    FROM (
        SELECT CAST(id AS VARCHAR) AS id, sha256 FROM raw_b WHERE id IS NOT NULL
        UNION ALL
        SELECT id_of(id, payload), sha256 FROM raw_b WHERE id IS NULL
    )
    WHERE id IS NOT NULL
    GROUP BY id;

CREATE TEMP TABLE pairs AS
    SELECT id, a.high AS was, b.high AS now
    FROM ids_a AS a FULL JOIN ids_b AS b USING (id)
    WHERE a.low IS DISTINCT FROM b.low OR a.high IS DISTINCT FROM b.high;

-- Both versions of what may have changed. Where only signatures differ, which may be everywhere, nothing is parsed.
CREATE TEMP TABLE earlier AS
    SELECT pairs.id, now, without_signatures(raw_a.payload) AS payload
    FROM pairs JOIN raw_a ON digest(raw_a.sha256) = pairs.was
    WHERE now IS NOT NULL;
CREATE TEMP TABLE versions AS
    SELECT id, was, now, CASE WHEN was = now THEN true ELSE is_object(was) AND is_object(now) END AS objects
    FROM (
        SELECT earlier.id, earlier.payload AS was, without_signatures(raw_b.payload) AS now
        FROM earlier JOIN raw_b ON digest(raw_b.sha256) = earlier.now
    );
DROP TABLE earlier;

-- A row for each field, because a list of them would parse the payloads of 2,000 records, field by field, before it frees memory.
CREATE TEMP TABLE differing AS
    SELECT DISTINCT id, name
    FROM (
        SELECT id, was, now, unnest(list_distinct(list_concat(json_keys(was), json_keys(now)))) AS name
        FROM versions
        WHERE was <> now AND objects
    )
    WHERE member(was, name) IS DISTINCT FROM member(now, name);
CREATE TEMP TABLE compared AS
    SELECT id, objects, coalesce(list(name ORDER BY name) FILTER (name IS NOT NULL), []) AS fields
    FROM (SELECT DISTINCT id, objects FROM versions) LEFT JOIN differing USING (id)
    GROUP BY id, objects;
DROP TABLE versions;

CREATE TEMP VIEW added AS
    SELECT id FROM pairs WHERE was IS NULL ORDER BY try_cast(id AS HUGEINT), id;
CREATE TEMP VIEW removed AS
    SELECT id FROM pairs WHERE now IS NULL ORDER BY try_cast(id AS HUGEINT), id;
CREATE TEMP VIEW changed AS
    SELECT id, fields FROM compared WHERE NOT objects OR len(fields) > 0 ORDER BY try_cast(id AS HUGEINT), id;
CREATE TEMP VIEW fields AS
    SELECT field, count(*) AS records
    FROM (SELECT unnest(fields) AS field FROM compared)
    GROUP BY field
    ORDER BY records DESC, field;

CREATE TEMP TABLE without_id AS
    SELECT coalesce(a.records, 0) AS before, coalesce(b.records, 0) AS after
    FROM (SELECT sha256, count(*) AS records FROM raw_a WHERE id IS NULL AND id_of(id, payload) IS NULL GROUP BY sha256) AS a
    FULL JOIN (SELECT sha256, count(*) AS records FROM raw_b WHERE id IS NULL AND id_of(id, payload) IS NULL GROUP BY sha256) AS b
    USING (sha256);

-- The names are those of ResourceDifferences.
CREATE TEMP VIEW totals AS
SELECT
    (SELECT count(*) FROM added) AS added,
    (SELECT count(*) FROM removed) AS removed,
    (SELECT count(*) FROM changed) AS changed,
    (SELECT count(*) FROM compared WHERE objects AND len(fields) = 0) AS rewritten,
    (SELECT count(*) FROM ids_a) - (SELECT count(*) FROM removed) - (SELECT count(*) FROM changed) AS unchanged,
    (SELECT CAST(coalesce(sum(greatest(after - before, 0)), 0) AS BIGINT) FROM without_id) AS added_without_id,
    (SELECT CAST(coalesce(sum(greatest(before - after, 0)), 0) AS BIGINT) FROM without_id) AS removed_without_id;
