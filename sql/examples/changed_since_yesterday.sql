-- What changed since yesterday?
-- Compares the two newest complete snapshots of each library, field by field. Added and deleted records come with their title.
WITH nights AS (
    SELECT tenant, snapshot, row_number() OVER (PARTITION BY tenant ORDER BY snapshot DESC) AS place
    FROM snapshots
    WHERE complete AND position(',publications,' IN ',' || resources || ',') > 0
),
compared AS (
    SELECT newest.tenant, newest.snapshot, older.snapshot AS before
    FROM nights AS newest
    JOIN nights AS older ON older.tenant = newest.tenant AND older.place = 2
    WHERE newest.place = 1
),
fields AS (
    SELECT tenant, snapshot, id, 'title' AS field, title AS content FROM publications_history
    UNION ALL
    SELECT tenant, snapshot, id, 'kind', publishable_type FROM publications_history
    UNION ALL
    SELECT tenant, snapshot, id, 'published on', published_on_raw FROM publications_history
    UNION ALL
    SELECT tenant, snapshot, id, 'abstract', abstract FROM publications_history
    UNION ALL
    SELECT tenant, snapshot, publication_id, 'identifiers', string_agg(type || ' ' || raw, ' | ' ORDER BY position)
    FROM publication_identifiers_history
    GROUP BY tenant, snapshot, publication_id
    UNION ALL
    SELECT tenant, snapshot, publication_id, 'authors', string_agg(name, ' | ' ORDER BY position)
    FROM publication_authors_history
    GROUP BY tenant, snapshot, publication_id
    UNION ALL
    SELECT tenant, snapshot, publication_id, 'categories', string_agg(name, ' | ' ORDER BY position)
    FROM publication_categories_history
    GROUP BY tenant, snapshot, publication_id
    UNION ALL
    SELECT tenant, snapshot, publication_id, 'files', string_agg(coalesce(filename, name, '?'), ' | ' ORDER BY kind, position)
    FROM publication_files_history
    GROUP BY tenant, snapshot, publication_id
),
sides AS (
    SELECT f.tenant, f.id, f.field, f.content, f.snapshot = c.snapshot AS is_now
    FROM fields AS f
    JOIN compared AS c ON c.tenant = f.tenant AND (f.snapshot = c.snapshot OR f.snapshot = c.before)
),
contents AS (
    SELECT
        tenant,
        id,
        field,
        max(content) FILTER (WHERE NOT is_now) AS before,
        max(content) FILTER (WHERE is_now) AS now,
        count(*) FILTER (WHERE NOT is_now AND field = 'title') AS seen_before,
        count(*) FILTER (WHERE is_now AND field = 'title') AS seen_now
    FROM sides
    GROUP BY tenant, id, field
),
judged AS (
    SELECT
        tenant,
        CASE
            WHEN max(seen_before) OVER (PARTITION BY tenant, id) = 0 THEN 'added'
            WHEN max(seen_now) OVER (PARTITION BY tenant, id) = 0 THEN 'deleted'
            ELSE 'changed'
        END AS change,
        id,
        field,
        before,
        now
    FROM contents
)
SELECT
    tenant,
    change,
    id,
    field,
    left(before, 80) || CASE WHEN length(before) > 80 THEN '…' ELSE '' END AS before,
    left(now, 80) || CASE WHEN length(now) > 80 THEN '…' ELSE '' END AS now
FROM judged
WHERE (change = 'changed' AND now IS DISTINCT FROM before) OR (change <> 'changed' AND field = 'title')
ORDER BY tenant COLLATE "C", change COLLATE "C", id, field COLLATE "C";
