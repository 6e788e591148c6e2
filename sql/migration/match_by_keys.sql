-- Matches the free records of both sides that have a key in common. Reads, beside the tables of match.sql,
--   source_keys (id, stage, type, value), target_keys (...)    the keys of both sides
--   stage (name, matched_by, gives_way)    the keys that count; gives_way: a pair with contradicting identifiers is two works
-- A record with several possible partners is ambiguous and never new: a create would make a duplicate (I8). So is one whose only partner
-- is asked about already.

CREATE OR REPLACE TABLE free_source AS
    SELECT source_keys.*
    FROM source_keys
    ANTI JOIN matched ON matched.source_id = source_keys.id
    ANTI JOIN ambiguous ON ambiguous.source_id = source_keys.id
    ANTI JOIN decided ON decided.source_id = source_keys.id
    WHERE stage = (SELECT name FROM stage);
CREATE OR REPLACE TABLE free_target AS
    SELECT target_keys.*
    FROM target_keys
    ANTI JOIN matched ON matched.target_id = target_keys.id
    WHERE stage = (SELECT name FROM stage);
CREATE OR REPLACE TABLE asked AS SELECT DISTINCT unnest(candidates) AS id FROM ambiguous;

-- A key that many records share would pair each with each.
CREATE OR REPLACE TABLE crowds AS
    SELECT type, value
    FROM (SELECT type, value, count(*) AS records FROM free_source GROUP BY ALL) AS s
    JOIN (SELECT type, value, count(*) AS records FROM free_target GROUP BY ALL) AS t USING (type, value)
    WHERE s.records * t.records > 100;

CREATE OR REPLACE TABLE pairs AS
    SELECT DISTINCT s.id AS source_id, t.id AS target_id
    FROM free_source AS s
    JOIN free_target AS t USING (type, value)
    ANTI JOIN crowds USING (type, value);

-- Two records that have a type of identifier in common and no value of it are two works, whatever else they share. This goes step by step,
-- because DuckDB would begin with all pairs of one type.
CREATE OR REPLACE TABLE source_sides AS
    SELECT pairs.source_id, pairs.target_id, s.type, s.value FROM pairs JOIN source_keys AS s ON s.id = pairs.source_id
    WHERE s.stage = 'identifier';
CREATE OR REPLACE TABLE target_sides AS
    SELECT pairs.source_id, pairs.target_id, t.type, t.value FROM pairs JOIN target_keys AS t ON t.id = pairs.target_id
    WHERE t.stage = 'identifier';
CREATE OR REPLACE TABLE contradicting AS
    SELECT DISTINCT source_id, target_id
    FROM (
        SELECT s.source_id, s.target_id, s.type, bool_or(s.value = t.value) AS agrees
        FROM source_sides AS s
        JOIN target_sides AS t USING (source_id, target_id, type)
        GROUP BY ALL
    )
    WHERE NOT agrees;

CREATE OR REPLACE TABLE candidates AS
    SELECT
        pairs.source_id,
        pairs.target_id,
        count(*) OVER (PARTITION BY pairs.source_id) AS targets,
        count(*) OVER (PARTITION BY pairs.target_id) + (asked.id IS NOT NULL)::INTEGER AS sources,
        contradicting.source_id IS NOT NULL AS disagree
    FROM pairs
    LEFT JOIN contradicting USING (source_id, target_id)
    LEFT JOIN asked ON asked.id = pairs.target_id
    WHERE contradicting.source_id IS NULL OR NOT (SELECT gives_way FROM stage);

CREATE OR REPLACE TABLE crowded AS
    SELECT DISTINCT s.id AS source_id, t.candidates
    FROM free_source AS s
    SEMI JOIN crowds USING (type, value)
    JOIN (
        SELECT type, value, list(id ORDER BY id)[:10] AS candidates
        FROM free_target SEMI JOIN crowds USING (type, value)
        GROUP BY ALL
    ) AS t USING (type, value);
CREATE OR REPLACE TABLE crowded_targets AS
    SELECT DISTINCT id FROM free_target SEMI JOIN crowds USING (type, value);

INSERT INTO matched
    SELECT source_id, target_id, (SELECT matched_by FROM stage)
    FROM candidates
    ANTI JOIN crowded USING (source_id)
    ANTI JOIN crowded_targets ON crowded_targets.id = candidates.target_id
    WHERE targets = 1 AND sources = 1 AND NOT disagree;

INSERT INTO ambiguous
    SELECT
        source_id,
        list_sort(list_distinct(flatten(list(found))))[:20],
        CASE
            WHEN max(targets) > 1 THEN 'several_targets'
            WHEN max(sources) > 1 THEN 'several_sources'
            ELSE 'identifiers_disagree'
        END
    FROM (
        SELECT source_id, [target_id] AS found, targets, sources FROM candidates
        UNION ALL
        SELECT source_id, candidates, len(candidates), 2 FROM crowded
        UNION ALL
        SELECT candidates.source_id, [target_id], 1, 2
        FROM candidates SEMI JOIN crowded_targets ON crowded_targets.id = candidates.target_id
    )
    ANTI JOIN matched USING (source_id)
    GROUP BY source_id;

DROP TABLE free_source;
DROP TABLE free_target;
DROP TABLE asked;
DROP TABLE crowds;
DROP TABLE pairs;
DROP TABLE source_sides;
DROP TABLE target_sides;
DROP TABLE contradicting;
DROP TABLE candidates;
DROP TABLE crowded;
DROP TABLE crowded_targets;
