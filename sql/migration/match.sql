-- Matches records without looking at their content: which record of the source is which record of the target. Reads
--   source (id), target (id)                      the records of both sides
--   written (source_id, target_id)                the records that earlier plans created or changed, by the journal
--   decisions (source_id, decision, target_id)    a person's decisions
--   same_library (yes)                            whether both sides are one library, with the same ids
-- and creates
--   matched (source_id, target_id, matched_by)
--   unclear (source_id, candidates, reason)
-- match_by_keys.sql then adds to both. The strongest evidence comes first, and each record of the target is used once.

CREATE TABLE matched AS
    SELECT decisions.source_id, decisions.target_id, 'decision' AS matched_by
    FROM decisions
    SEMI JOIN source ON source.id = decisions.source_id
    SEMI JOIN target ON target.id = decisions.target_id
    WHERE decision <> 'skip';

INSERT INTO matched
    SELECT written.source_id, written.target_id, 'journal'
    FROM written
    SEMI JOIN source ON source.id = written.source_id
    SEMI JOIN target ON target.id = written.target_id
    ANTI JOIN decisions ON decisions.source_id = written.source_id
    ANTI JOIN matched ON matched.target_id = written.target_id;

-- A record that was written before and is gone was deleted by somebody.
CREATE TABLE unclear AS
    SELECT written.source_id, [written.target_id] AS candidates, 'deleted_in_target' AS reason
    FROM written
    SEMI JOIN source ON source.id = written.source_id
    ANTI JOIN target ON target.id = written.target_id
    ANTI JOIN decisions ON decisions.source_id = written.source_id;

-- A record is not new either if a decision gave its counterpart to another record, or if the record of a decision does not exist.
INSERT INTO unclear
    SELECT written.source_id, [written.target_id], 'several_sources'
    FROM written
    SEMI JOIN source ON source.id = written.source_id
    SEMI JOIN matched ON matched.target_id = written.target_id AND matched.source_id <> written.source_id
    ANTI JOIN decisions ON decisions.source_id = written.source_id;
INSERT INTO unclear
    SELECT decisions.source_id, []::BIGINT[], 'decided_is_missing'
    FROM decisions
    SEMI JOIN source ON source.id = decisions.source_id
    ANTI JOIN target ON target.id = decisions.target_id
    WHERE target_id IS NOT NULL AND decision <> 'skip';

INSERT INTO matched
    SELECT source.id, source.id, 'id'
    FROM source
    SEMI JOIN same_library ON same_library.yes
    SEMI JOIN target ON target.id = source.id
    ANTI JOIN matched ON matched.source_id = source.id
    ANTI JOIN matched AS taken ON taken.target_id = source.id
    ANTI JOIN unclear ON unclear.source_id = source.id
    ANTI JOIN decisions ON decisions.source_id = source.id;
