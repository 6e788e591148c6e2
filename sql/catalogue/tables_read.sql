-- For each snapshot and table: whether the snapshot has it. Of a table that was not read, no count says anything about the library.
SELECT
    s.tenant,
    s.snapshot,
    t.table_name,
    position(',' || t.resource || ',' IN ',' || s.resources || ',') > 0
        AND position(',' || t.nested_list || ',' IN ',' || s.lists_not_read || ',') = 0 AS read,
    CASE
        WHEN position(',' || t.resource || ',' IN ',' || s.resources || ',') > 0 THEN
            CASE
                WHEN position(',' || t.nested_list || ',' IN ',' || s.lists_not_read || ',') > 0
                    THEN 'this backup did not read ' || t.nested_list || ', where the library may have it'
            END
        WHEN s.api = 'v2' AND t.resource <> 'publications' THEN 'version 2 of the API documents no list of ' || t.resource
        ELSE 'this backup did not ask for ' || t.resource || ', or could not read it'
    END AS reason
FROM snapshots AS s
CROSS JOIN (VALUES {tables}) AS t (table_name, resource, nested_list)
