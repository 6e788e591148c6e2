-- Matches the records that can be matched without comparing their content. Reads
--   source (id), target (id)                      the records of both sides
--   written (source_id, target_id)                what earlier plans created or changed, according to the journal
--   remembered (source_id, target_id, matched_by) what the newest plan found to be the same, and by which keys
--   decisions (source_id, decision, target_id)    what a person decided
--   same_library (yes)                            whether both sides are one library, whose ids are the same
-- and creates
--   matched (source_id, target_id, matched_by)
--   ambiguous (source_id, candidates, reason)
--   decided (source_id, decision, target_id)      the decisions that say which record it is, or that it is none
-- to which match_by_keys.sql adds rows. The strongest evidence comes first, and each record of the target is matched once.

CREATE OR REPLACE TABLE ambiguous AS
    SELECT decisions.source_id, []::VARCHAR[] AS candidates, 'decided_is_missing' AS reason
    FROM decisions
    SEMI JOIN source ON source.id = decisions.source_id
    ANTI JOIN target ON target.id = decisions.target_id
    WHERE target_id IS NOT NULL AND decision <> 'skip';

-- Records that are to be merged are found by their keys.
CREATE OR REPLACE TABLE decided AS
    SELECT decisions.* FROM decisions SEMI JOIN source ON source.id = decisions.source_id WHERE decision <> 'merge';

CREATE OR REPLACE TABLE matched AS
    SELECT source_id, target_id, 'decision' AS matched_by
    FROM decided
    SEMI JOIN target ON target.id = decided.target_id
    WHERE decision <> 'skip';

-- A record that an earlier plan wrote and that is gone was deleted by somebody. A record is not new either if a person matched another one
-- with the one that it was written to, or if earlier plans wrote several records to one.
CREATE OR REPLACE TABLE earlier AS
    SELECT known.*, target.id IS NOT NULL AS is_there, count(*) OVER (PARTITION BY known.target_id) AS sources
    FROM (
        SELECT source_id, target_id, 'journal' AS matched_by FROM written
        UNION ALL
        SELECT remembered.*
        FROM remembered
        SEMI JOIN target ON target.id = remembered.target_id
        ANTI JOIN written ON written.source_id = remembered.source_id
        ANTI JOIN written AS taken ON taken.target_id = remembered.target_id
        ANTI JOIN matched AS given ON given.target_id = remembered.target_id
    ) AS known
    SEMI JOIN source ON source.id = known.source_id
    ANTI JOIN decided ON decided.source_id = known.source_id
    ANTI JOIN ambiguous ON ambiguous.source_id = known.source_id
    LEFT JOIN target ON target.id = known.target_id;
INSERT INTO ambiguous
    SELECT source_id, [target_id], CASE WHEN is_there THEN 'several_sources' ELSE 'deleted_in_target' END
    FROM earlier
    WHERE NOT is_there OR sources > 1 OR target_id IN (SELECT target_id FROM matched);
INSERT INTO matched
    SELECT source_id, target_id, matched_by
    FROM earlier
    ANTI JOIN ambiguous ON ambiguous.source_id = earlier.source_id;

CREATE OR REPLACE TABLE same AS
    SELECT source.id, taken.target_id IS NOT NULL AS is_taken
    FROM source
    SEMI JOIN same_library ON same_library.yes
    SEMI JOIN target ON target.id = source.id
    LEFT JOIN matched AS taken ON taken.target_id = source.id
    ANTI JOIN matched ON matched.source_id = source.id
    ANTI JOIN ambiguous ON ambiguous.source_id = source.id
    ANTI JOIN decided ON decided.source_id = source.id;
INSERT INTO ambiguous SELECT id, [id], 'several_sources' FROM same WHERE is_taken;
INSERT INTO matched SELECT id, id, 'id' FROM same WHERE NOT is_taken;
DROP TABLE earlier;
DROP TABLE same;
