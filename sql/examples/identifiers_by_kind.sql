-- Which identifiers do the records carry, and how many of each kind are shared by several records?
SELECT
    type,
    count(*) AS filled,
    count(DISTINCT raw) AS different,
    count(*) - count(DISTINCT raw) AS repeated
FROM publication_identifiers
GROUP BY type
ORDER BY filled DESC;
