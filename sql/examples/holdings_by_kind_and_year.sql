-- How many publications of each kind and year do we hold?
-- A date may be only a year or a month. Records without a date that can be read have no year; they come last.
SELECT
    tenant,
    coalesce(publishable_type, 'no kind') COLLATE "C" AS kind,
    CAST(coalesce(published_year, extract(year FROM published_on)) AS INTEGER) AS year,
    count(*) AS publications
FROM publications
GROUP BY 1, 2, 3
ORDER BY tenant COLLATE "C", 2, 3 NULLS LAST;
