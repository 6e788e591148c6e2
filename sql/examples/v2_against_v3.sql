-- How much of the v2 library is in the v3 library already?
-- A record is found by a DOI, PMID or arXiv number, or a book by its ISBN; else by title and year, which is only a hint.
WITH records AS (
    SELECT
        p.tenant,
        p.id,
        s.api,
        coalesce(p.publishable_type, 'no kind') COLLATE "C" AS kind,
        CAST(coalesce(p.published_year, extract(year FROM p.published_on)) AS INTEGER) AS year,
        trim(regexp_replace(lower(p.title), '[ .,:;!?"()/''-]+', ' ', 'g')) AS title
    FROM publications AS p
    JOIN snapshots AS s ON s.tenant = p.tenant AND s.snapshot = p.snapshot
),
hints AS (
    -- a row for each record: is there a record of v3 with its title and year?
    SELECT
        tenant,
        id,
        api,
        kind,
        0 AS same_identifier,
        CASE
            WHEN title = '' OR title IS NULL OR year IS NULL THEN 0
            ELSE max(CASE WHEN api = 'v3' THEN 1 ELSE 0 END) OVER (PARTITION BY kind, title, year)
        END AS same_title
    FROM records
    UNION ALL
    -- and a row for each identifier of a record: does a record of v3 have it?
    SELECT
        r.tenant,
        r.id,
        r.api,
        r.kind,
        max(CASE WHEN r.api = 'v3' THEN 1 ELSE 0 END) OVER (PARTITION BY i.type, i.value),
        0
    FROM records AS r
    JOIN publication_identifiers AS i ON i.tenant = r.tenant AND i.publication_id = r.id
    WHERE
        i.verdict IN ('valid', 'repaired')
        AND (i.type IN ('doi', 'pmid', 'arxiv_id') OR (i.type = 'isbn' AND r.kind = 'Book'))
),
found AS (
    SELECT tenant, id, kind, max(same_identifier) AS same_identifier, max(same_title) AS same_title
    FROM hints
    WHERE api = 'v2'
    GROUP BY tenant, id, kind
)
SELECT
    tenant,
    kind,
    count(*) AS in_v2,
    count(*) FILTER (WHERE same_identifier = 1) AS same_identifier,
    count(*) FILTER (WHERE same_identifier = 0 AND same_title = 1) AS same_title_and_year,
    count(*) FILTER (WHERE same_identifier = 0 AND same_title = 0) AS not_found
FROM found
GROUP BY tenant, kind
ORDER BY tenant COLLATE "C", kind;
