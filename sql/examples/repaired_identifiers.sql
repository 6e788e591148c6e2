-- What was repaired in the identifiers, how often, and what does a repair look like?
-- docs/tables.md explains each rule. The records in the library itself are as they were.
WITH repaired AS (
    SELECT
        tenant,
        type,
        rule,
        raw,
        value,
        count(*) OVER (PARTITION BY tenant, type, rule) AS identifiers,
        row_number() OVER (PARTITION BY tenant, type, rule ORDER BY publication_id NULLS LAST, position) AS place
    FROM publication_identifiers
    WHERE verdict = 'repaired'
)
SELECT tenant, type, rule, identifiers, raw AS before_repair, value AS after_repair
FROM repaired
WHERE place = 1
ORDER BY tenant COLLATE "C", identifiers DESC, type COLLATE "C", rule COLLATE "C";
