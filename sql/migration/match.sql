-- Matches the records that can be matched without comparing their content. Reads
--   source (id), target (id)                      the records of both sides
--   written (source_id, target_id)                what earlier plans created or changed, according to the journal
--   decisions (source_id, decision, target_id)    what a person decided
--   same_library (yes)                            whether both sides are one library, whose ids are the same
-- and creates
--   matched (source_id, target_id, matched_by)
--   ambiguous (source_id, candidates, reason)
-- to which match_by_keys.sql adds rows. The strongest evidence comes first, and each record of the target is matched once.

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

-- A record that an earlier plan wrote and that is gone was deleted by somebody.
CREATE TABLE ambiguous AS
    SELECT written.source_id, [written.target_id] AS candidates, 'deleted_in_target' AS reason
    FROM written
    SEMI JOIN source ON source.id = written.source_id
    ANTI JOIN target ON target.id = written.target_id
    ANTI JOIN decisions ON decisions.source_id = written.source_id;

-- A record is not new either if a person matched another record with the one that it was written to, or if the record that a person named
-- does not exist.
INSERT INTO ambiguous
    SELECT written.source_id, [written.target_id], 'several_sources'
    FROM written
    SEMI JOIN source ON source.id = written.source_id
    SEMI JOIN matched ON matched.target_id = written.target_id AND matched.source_id <> written.source_id
    ANTI JOIN decisions ON decisions.source_id = written.source_id;
INSERT INTO ambiguous
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
    ANTI JOIN ambiguous ON ambiguous.source_id = source.id
    ANTI JOIN decisions ON decisions.source_id = source.id;
