-- What a report tells of a snapshot, from the views publications, identifiers and files over its staged tables: whatever a librarian may
-- want to look at. Texts from records are cut: who reads needs their beginning, and one record may hold a megabyte.

CREATE TEMP MACRO short(text) AS left(text, 1000);

-- A date may be a year or a month; a year is all that duplicates are compared by.
CREATE TEMP MACRO year_of(raw) AS nullif(regexp_extract(trim(raw), '^[0-9]{4}(?:$|[^0-9])'), '')[:4];
CREATE TEMP MACRO is_year_or_month(raw) AS regexp_full_match(trim(raw), '[0-9]{4}(-(0[1-9]|1[0-2]))?');

-- A title without what two cataloguers write differently: accents, case, punctuation, blanks.
CREATE TEMP MACRO plain(title) AS
    trim(regexp_replace(lower(strip_accents(title)), '[^\p{L}\p{N}]+', ' ', 'g'));

-- v3 has one field for all types: there, the type says more.
CREATE TEMP VIEW judged AS
    SELECT
        publication_id AS record,
        position,
        left(CASE WHEN source_field = 'identifiers' AND type <> '' THEN type ELSE source_field END, 40) AS field,
        type,
        value,
        raw,
        verdict,
        rule
    FROM identifiers;

CREATE TEMP VIEW verdicts AS
    SELECT
        field,
        count(*) FILTER (verdict = 'valid') AS valid,
        count(*) FILTER (verdict = 'repaired') AS repaired,
        count(*) FILTER (verdict = 'invalid') AS invalid,
        count(*) FILTER (verdict = 'unrecognised') AS unrecognised
    FROM judged
    GROUP BY field
    ORDER BY count(*) DESC, field;

CREATE TEMP VIEW rules AS
    SELECT field, rule, count(*) AS values
    FROM (SELECT field, unnest(string_split(rule, '+')) AS rule FROM judged WHERE rule <> '')
    GROUP BY field, rule
    ORDER BY values DESC, rule, field;

CREATE TEMP VIEW holdings AS
    SELECT
        coalesce(nullif(left(publishable_type, 40), ''), '(none)') AS kind,
        count(*) AS publications,
        count(*) FILTER (NOT identified) AS without_identifier
    FROM (
        SELECT
            publishable_type,
            id IN (SELECT publication_id FROM identifiers WHERE verdict IN ('valid', 'repaired')) IS TRUE AS identified
        FROM publications
    )
    GROUP BY kind
    ORDER BY publications DESC, kind;

-- An ISSN names a journal, and the ISBN of an article or a chapter names the book that it is in: many records may have the same.
CREATE TEMP VIEW identifying AS
    SELECT DISTINCT type, value, publication_id AS record
    FROM identifiers
    WHERE verdict IN ('valid', 'repaired')
        AND publication_id IS NOT NULL
        AND type <> 'issn'
        AND (
            type <> 'isbn'
            OR publication_id NOT IN (
                SELECT id FROM publications
                WHERE id IS NOT NULL AND regexp_matches(publishable_type, 'article|chapter', 'i')
            )
        );
CREATE TEMP TABLE shared AS
    SELECT type, value, count(*) AS records, min(record, 10) AS first_records
    FROM identifying
    GROUP BY type, value
    HAVING count(*) > 1;
CREATE TEMP TABLE sharing AS
    SELECT type, value, record, records, first_records
    FROM identifying JOIN shared USING (type, value);

CREATE TEMP TABLE titled AS
    SELECT DISTINCT id AS record, md5_number(plain(title)) AS title, year_of(published_on_raw) AS year
    FROM publications
    WHERE id IS NOT NULL AND year_of(published_on_raw) IS NOT NULL AND plain(title) <> '';
CREATE TEMP TABLE same_titles AS
    SELECT title, year, count(*) AS records, min(record, 10) AS first_records
    FROM titled
    GROUP BY title, year
    HAVING count(*) > 1;
CREATE TEMP TABLE same_titled AS
    SELECT record, year, records, first_records, title AS title_key, short(any_value(publications.title)) AS title
    FROM titled
    JOIN same_titles USING (title, year)
    JOIN publications ON publications.id = record
    GROUP BY ALL;

CREATE TEMP VIEW shared_examples AS
    SELECT type, short(value) AS value, records, first_records,
        (SELECT short(any_value(title)) FROM publications WHERE id = first_records[1]) AS title
    FROM (FROM shared ORDER BY records DESC, type, value LIMIT 20)
    ORDER BY records DESC, type, value;
CREATE TEMP VIEW title_examples AS
    SELECT year AS type, min_by(title, record) AS value, any_value(records) AS records,
        any_value(first_records) AS first_records, NULL AS title
    FROM same_titled
    GROUP BY title_key, year
    ORDER BY records DESC, value
    LIMIT 20;

CREATE TEMP VIEW totals AS
SELECT
    (SELECT count(*) FROM publications) AS publications,
    (SELECT CAST(coalesce(sum(without_identifier), 0) AS BIGINT) FROM holdings) AS without_identifier,
    (SELECT count(*) FROM identifiers) AS identifiers,
    (SELECT count(*) FROM publications WHERE published_on_raw IS NULL) AS without_date,
    (SELECT count(*) FROM publications WHERE published_on IS NULL AND is_year_or_month(published_on_raw)) AS year_or_month,
    (SELECT count(*) FROM shared) AS shared,
    (SELECT count(DISTINCT record) FROM sharing) AS shared_records,
    (SELECT count(*) FROM same_titles) AS same_titles,
    (SELECT count(*) FROM same_titled) AS same_titled_records;

-- One row for whatever is worth a line, the most urgent first.
CREATE TEMP VIEW findings AS
SELECT * EXCLUDE (rank, a, b, position) FROM (
    SELECT 1 AS rank, kind AS a, '' AS b, 0 AS position, 'file' AS kind, publication_id AS record, kind AS field, '' AS type,
        short(coalesce(name, filename, file_id, '')) AS value, '' AS becomes, short(coalesce(problem, '')) AS detail,
        CAST([] AS BIGINT[]) AS records, 0 AS many
    FROM files WHERE status = 'failed'
    UNION ALL
    SELECT CASE verdict WHEN 'invalid' THEN 2 ELSE 3 END, field, rule, position, verdict, record, field, left(type, 40),
        short(raw), short(value), rule, [], 0
    FROM judged WHERE verdict IN ('invalid', 'unrecognised')
    UNION ALL
    SELECT 4, type, value, 0, 'shared', record, left(type, 40), left(type, 40), short(value), '', '', first_records, records
    FROM sharing
    UNION ALL
    SELECT 5, year, CAST(title_key AS VARCHAR), 0, 'same_title', record, 'title', '', title, '', year, first_records, records
    FROM same_titled
    UNION ALL
    SELECT 6, '', '', 0, 'no_title', id, 'title', '', '', '', '', [], 0
    FROM publications WHERE coalesce(trim(title), '') = ''
    UNION ALL
    SELECT 7, '', '', 0, 'no_date', id, 'published_on', '', short(published_on_raw), '', '', [], 0
    FROM publications WHERE published_on IS NULL AND trim(published_on_raw) <> '' AND NOT is_year_or_month(published_on_raw)
    UNION ALL
    SELECT 8, '', '', position, 'repaired', record, field, left(type, 40), short(raw), short(value), rule, [], 0
    FROM judged WHERE verdict = 'repaired'
)
ORDER BY rank, a, b, record NULLS LAST, position;
