-- Matches the remaining records by common values. Reads, besides the tables of match.sql,
--   stage_source (id, type, value), stage_target (…)   the keys of this stage
--   source_keys (id, type, value), target_keys (…)     all identifiers that identify a work
--   stage (name, gives_way)                            gives_way: a pair with different identifiers is two works
-- Several candidates are ambiguous and never new: an insert would make a duplicate (I8).

CREATE OR REPLACE TABLE free_source AS
    SELECT stage_source.*
    FROM stage_source
    ANTI JOIN matched ON matched.source_id = stage_source.id
    ANTI JOIN unclear ON unclear.source_id = stage_source.id
    ANTI JOIN decisions ON decisions.source_id = stage_source.id;
CREATE OR REPLACE TABLE free_target AS
    SELECT stage_target.*
    FROM stage_target
    ANTI JOIN matched ON matched.target_id = stage_target.id
    ANTI JOIN (SELECT unnest(candidates) AS id FROM unclear) AS wanted ON wanted.id = stage_target.id;

-- A key that many records share would pair each of them with each.
CREATE OR REPLACE TABLE crowds AS
    SELECT type, value
    FROM (SELECT type, value, count(*) AS records FROM free_source GROUP BY ALL) AS s
    JOIN (SELECT type, value, count(*) AS records FROM free_target GROUP BY ALL) AS t USING (type, value)
    WHERE s.records * t.records > 100;

CREATE OR REPLACE TABLE alike AS
    SELECT DISTINCT s.id AS source_id, t.id AS target_id
    FROM free_source AS s
    JOIN free_target AS t USING (type, value)
    ANTI JOIN crowds USING (type, value);

-- Records with a common type of identifier and no common value of it are two works, whatever else they share. Step by step, because DuckDB
-- would begin with all pairs of one type.
CREATE OR REPLACE TABLE source_sides AS
    SELECT alike.source_id, alike.target_id, s.type, s.value FROM alike JOIN source_keys AS s ON s.id = alike.source_id;
CREATE OR REPLACE TABLE target_sides AS
    SELECT alike.source_id, alike.target_id, t.type, t.value FROM alike JOIN target_keys AS t ON t.id = alike.target_id;
CREATE OR REPLACE TABLE apart AS
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
        alike.source_id,
        alike.target_id,
        count(*) OVER (PARTITION BY alike.source_id) AS targets,
        count(*) OVER (PARTITION BY alike.target_id) AS sources,
        apart.source_id IS NOT NULL AS disagree
    FROM alike
    LEFT JOIN apart USING (source_id, target_id)
    WHERE apart.source_id IS NULL OR NOT (SELECT gives_way FROM stage);

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
    SELECT source_id, target_id, (SELECT name FROM stage)
    FROM candidates
    ANTI JOIN crowded USING (source_id)
    ANTI JOIN crowded_targets ON crowded_targets.id = candidates.target_id
    WHERE targets = 1 AND sources = 1 AND NOT disagree;

INSERT INTO unclear
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
DROP TABLE crowds;
DROP TABLE alike;
DROP TABLE source_sides;
DROP TABLE target_sides;
DROP TABLE apart;
DROP TABLE candidates;
DROP TABLE crowded;
DROP TABLE crowded_targets;
