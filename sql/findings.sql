-- The findings of a report on a snapshot, from the views publications, identifiers and files over its staged tables: everything that a
-- librarian may want to check. A snapshot has each record once. Texts from records are cut (short): a reader needs their beginning, and one
-- record may have a megabyte.
CREATE TEMP MACRO short(text) AS left(text, 1000);
CREATE TEMP VIEW titles AS SELECT id AS record, short(title) AS record_title FROM publications;

-- A date may be a year or a month. Duplicates are compared by year.
CREATE TEMP MACRO year_of(raw) AS nullif(regexp_extract(trim(raw), '^[0-9]{4}(?:$|[^0-9])'), '')[:4];

-- A title without the differences between two cataloguers: accents, case, punctuation, blanks.
CREATE TEMP MACRO plain(title) AS
    trim(regexp_replace(lower(strip_accents(title)), '[^\p{L}\p{N}]+', ' ', 'g'));

-- A value in another spelling only has no line. The variable has the rules for such values.
CREATE TEMP MACRO is_spelling(rule) AS list_has_all(getvariable('spelling'), string_split(rule, '+'));

-- v3 has one field for all types: there the type says more.
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

-- Repaired values of identifiers, and dates whose day, month and year were in another order with one reading.
CREATE TEMP VIEW repairs AS
    SELECT record, position, field, type, raw, value, rule FROM judged WHERE verdict = 'repaired'
    UNION ALL
    SELECT id, -1, 'published_on', 'date', published_on_raw, CAST(published_on AS VARCHAR), 'date_order'
    FROM publications
    WHERE published_on_raw <> CAST(published_on AS VARCHAR);

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
    FROM (
        SELECT field, unnest(string_split(rule, '+')) AS rule FROM judged WHERE rule <> ''
        UNION ALL SELECT field, rule FROM repairs WHERE rule = 'date_order'
    )
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

-- An ISSN names a journal, and the ISBN of an article or a chapter names its book: many records may have the same.
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
    SELECT type, value, record FROM identifying SEMI JOIN shared USING (type, value);

-- A title without a letter or digit, or without a year, is null. A condition here would make every title plain twice.
CREATE TEMP TABLE titled AS
    SELECT DISTINCT record, CASE WHEN year IS NOT NULL THEN md5_number(nullif(plain(title), '')) END AS title, year
    FROM (SELECT id AS record, title, year_of(coalesce(CAST(published_on AS VARCHAR), published_on_raw)) AS year
        FROM publications WHERE id IS NOT NULL);
CREATE TEMP TABLE same_titles AS
    SELECT title, year, count(*) AS records, min(record, 10) AS first_records
    FROM titled
    WHERE title IS NOT NULL
    GROUP BY title, year
    HAVING count(*) > 1;
CREATE TEMP TABLE same_titled AS
    SELECT record, title, year FROM titled SEMI JOIN same_titles USING (title, year);
DROP TABLE titled;

CREATE TEMP VIEW shared_examples AS
    SELECT type, short(value) AS value, records, first_records,
        (SELECT short(any_value(title)) FROM publications WHERE id = first_records[1]) AS title
    FROM (FROM shared ORDER BY records DESC, type, value LIMIT 20)
    ORDER BY records DESC, type, value;
CREATE TEMP VIEW title_examples AS
    SELECT year AS type, (SELECT short(any_value(title)) FROM publications WHERE id = first_records[1]) AS value,
        records, first_records, NULL AS title
    FROM (FROM same_titles ORDER BY records DESC, first_records LIMIT 20)
    ORDER BY records DESC, value;

CREATE TEMP VIEW totals AS
SELECT
    (SELECT count(*) FROM publications) AS publications,
    (SELECT CAST(coalesce(sum(without_identifier), 0) AS BIGINT) FROM holdings) AS without_identifier,
    (SELECT count(*) FROM identifiers) AS identifiers,
    (SELECT count(*) FROM publications WHERE coalesce(published_on_raw, '') = '') AS without_date,
    (SELECT count(*) FROM publications WHERE published_precision IN ('year', 'month')) AS year_or_month,
    (SELECT count(*) FROM publications WHERE published_precision IS NULL AND published_on_raw <> '') AS unreadable_date,
    {
        'groups': (SELECT count(*) FROM shared),
        'records': (SELECT count(DISTINCT record) FROM sharing)
    } AS same_identifier,
    {
        'groups': (SELECT count(*) FROM same_titles),
        'records': (SELECT count(*) FROM same_titled)
    } AS same_title_and_year;

-- The findings, in views of the same columns, so that each view is sorted alone: kind, record, field, type, value, becomes, detail, records,
-- many, record_title. `records` is the ids of the first ones with blanks between them: a list would be made for each row.
CREATE TEMP MACRO no_records() AS '';

CREATE TEMP VIEW failed_files AS
    SELECT 'file', publication_id, kind, '', short(coalesce(name, filename, file_id, '')), '', short(coalesce(problem, '')),
        no_records(), 0, record_title
    FROM files LEFT JOIN titles ON record = publication_id
    WHERE status = 'failed'
    ORDER BY kind, publication_id NULLS LAST, position;

CREATE TEMP VIEW not_identifiers AS
    SELECT verdict, record, field, left(type, 40), short(raw), short(value), rule, no_records(), 0, record_title
    FROM judged LEFT JOIN titles USING (record)
    WHERE verdict IN ('invalid', 'unrecognised')
    ORDER BY verdict, field, rule, record NULLS LAST, position;

CREATE TEMP VIEW same_identifiers AS
    SELECT 'shared', record, left(type, 40), left(type, 40), short(value), '', '', array_to_string(first_records, ' '), records, record_title
    FROM sharing JOIN shared USING (type, value) LEFT JOIN titles USING (record)
    ORDER BY type, value, record;

CREATE TEMP VIEW same_titles_and_years AS
    SELECT 'same_title', record, 'title', '', record_title, '', year, array_to_string(first_records, ' '), records, record_title
    FROM same_titled JOIN same_titles USING (title, year) JOIN titles USING (record)
    ORDER BY year, title, record;

CREATE TEMP VIEW without_title AS
    SELECT 'no_title', id, 'title', '', '', '', '', no_records(), 0, ''
    FROM publications
    WHERE coalesce(trim(title), '') = ''
    ORDER BY id NULLS LAST;

CREATE TEMP VIEW without_readable_date AS
    SELECT 'no_date', id, 'published_on', '', short(published_on_raw), '', '', no_records(), 0, short(title)
    FROM publications
    WHERE published_precision IS NULL AND published_on_raw <> ''
    ORDER BY id NULLS LAST;

CREATE TEMP VIEW repaired AS
    SELECT 'repaired', record, field, left(type, 40), short(raw), short(value), rule, no_records(), 0, record_title
    FROM repairs LEFT JOIN titles USING (record)
    WHERE record IS NULL  -- a record's values are all here or none: those of one field are one line
        OR record IN (SELECT record FROM repairs WHERE record IS NOT NULL AND NOT is_spelling(rule))
    ORDER BY record NULLS LAST, position;
