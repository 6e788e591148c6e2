-- Which identifiers do the records carry, and how many of each kind are shared by several records?
SELECT
    type,
    count(*) AS filled,
    count(DISTINCT value) AS different,
    count(*) - count(DISTINCT value) AS repeated
FROM publication_identifiers
GROUP BY type
ORDER BY filled DESC;
