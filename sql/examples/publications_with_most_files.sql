-- Which publications have the most files, and how large are they?
SELECT
    publications.id,
    left(publications.title, 60) AS title,
    count(*) AS files,
    sum(publication_files.size) AS bytes
FROM publication_files
JOIN publications
    ON publications.tenant = publication_files.tenant
    AND publications.id = publication_files.publication_id
GROUP BY publications.id, publications.title
ORDER BY files DESC, bytes DESC, publications.id
LIMIT 5;
