-- The differences between the issues of two reports, issues_a and issues_b, after those of their records (differences.sql).

-- A record may have the same issue twice: two wrong numbers in one field.
CREATE TEMP TABLE new_issues AS
    SELECT record, code, field FROM issues_b EXCEPT ALL SELECT record, code, field FROM issues_a;
CREATE TEMP TABLE solved_issues AS
    SELECT record, code, field FROM issues_a EXCEPT ALL SELECT record, code, field FROM issues_b;

-- An issue that depends on its record alone comes and goes with a change of that record, or of the rules.
CREATE TEMP TABLE touched AS
    SELECT try_cast(id AS BIGINT) AS record
    FROM (SELECT id FROM added UNION ALL SELECT id FROM removed UNION ALL SELECT id FROM changed);
CREATE TEMP MACRO depends_on_others(code) AS code IN ('file', 'shared', 'same_title');

CREATE TEMP VIEW issue_totals AS
SELECT
    (SELECT count(*) FROM new_issues) AS new,
    (SELECT count(*) FROM solved_issues) AS solved,
    (SELECT count(*) FROM new_issues ANTI JOIN touched USING (record) WHERE record IS NOT NULL AND NOT depends_on_others(code)),
    (SELECT count(*) FROM solved_issues ANTI JOIN touched USING (record) WHERE record IS NOT NULL AND NOT depends_on_others(code));
