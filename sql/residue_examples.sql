-- For each key in the table wanted: the first records of the view held with this residue key, and their values.
SELECT key, min_by(id, id, 3) AS ids, min_by(value, id, 3) AS examples
FROM (
    SELECT
        id,
        left(regexp_replace(name, '\[\d+\]', '[]', 'g'), 200) AS key,
        left(json_extract_string(residue, '/' || replace(replace(name, '~', '~0'), '/', '~1')), 300) AS value
    FROM (SELECT id, residue, unnest(json_keys(residue)) AS name FROM held WHERE json_valid(residue))
)
JOIN wanted USING (key)
WHERE id IS NOT NULL AND value IS NOT NULL
GROUP BY key
