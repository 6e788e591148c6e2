-- Which files and covers have no copy here, and why?
-- Without an address the service offered nothing to fetch; not_fetched: the backup left files out, as its settings say.
SELECT
    f.tenant,
    f.publication_id,
    left(p.title, 60) || CASE WHEN length(p.title) > 60 THEN '…' ELSE '' END AS title,
    f.kind,
    coalesce(f.filename, f.name) AS file,
    f.size,
    CASE WHEN f.has_url THEN f.status ELSE 'no address' END AS reason,
    f.problem
FROM publication_files AS f
LEFT JOIN publications AS p ON p.tenant = f.tenant AND p.id = f.publication_id
WHERE f.status <> 'kept'
ORDER BY f.tenant COLLATE "C", f.publication_id NULLS LAST, f.kind COLLATE "C", f.position;
