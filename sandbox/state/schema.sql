-- One schema for all API versions: a publication is stored once, independently of them.
-- `key` joins tables; `id` is the number in the tenant's API.

CREATE TABLE tenants (
    key INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    signing_key BLOB NOT NULL -- signs this tenant's download addresses
);

-- A number is never used again, not even after a deletion.
CREATE TABLE sequences (
    tenant INTEGER NOT NULL REFERENCES tenants,
    resource TEXT NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (tenant, resource)
) WITHOUT ROWID;

-- Publications, assets, categories, organizations, users, locations, hard copies, authorities, collections, tasks, the files to which they
-- refer, uploads, and what the sign-in stores: a JSON object each. The password of a user is in plain text: the sandbox prints it at the start.
CREATE TABLE records (
    key INTEGER PRIMARY KEY,
    tenant INTEGER NOT NULL REFERENCES tenants,
    resource TEXT NOT NULL,
    id INTEGER NOT NULL,
    document TEXT NOT NULL,
    UNIQUE (tenant, resource, id)
);
CREATE UNIQUE INDEX users_by_email ON records (tenant, json_extract(document, '$.email') COLLATE NOCASE)
WHERE resource = 'users';
CREATE INDEX hard_copies_by_publication ON records (tenant, json_extract(document, '$.publication_id'))
WHERE resource = 'hard_copies';
CREATE INDEX assets_by_publication ON records (tenant, json_extract(document, '$.publication_id'))
WHERE resource = 'assets';
CREATE INDEX publications_by_date ON records (tenant, json_extract(document, '$.published_on'))
WHERE resource = 'publications';
CREATE INDEX publications_by_contributor ON records (tenant, json_extract(document, '$.contributor'))
WHERE resource = 'publications';

CREATE INDEX tokens_by_access ON records (tenant, json_extract(document, '$.access') COLLATE NOCASE)
WHERE resource = 'tokens';
CREATE INDEX tokens_by_refresh ON records (tenant, json_extract(document, '$.refresh') COLLATE NOCASE)
WHERE resource = 'tokens';

CREATE INDEX files_by_key ON records (tenant, json_extract(document, '$.storage_key') COLLATE NOCASE)
WHERE resource = 'files';

-- Identifiers by their type, and names of categories under the kind `category`; folded: without outer blanks, case folded.
CREATE TABLE terms (
    publication INTEGER NOT NULL REFERENCES records ON DELETE CASCADE,
    kind TEXT NOT NULL,
    folded TEXT NOT NULL
);
CREATE INDEX terms_by_value ON terms (kind, folded);
CREATE INDEX terms_by_publication ON terms (publication);

-- Full text; rowid is records.key of a publication.
CREATE VIRTUAL TABLE words USING fts5 (
    title, authors, abstract, identifiers, categories, tokenize = 'unicode61 remove_diacritics 2'
);

CREATE TRIGGER publication_leaves AFTER DELETE ON records WHEN OLD.resource = 'publications' BEGIN
    DELETE FROM words WHERE rowid = OLD.key;
    DELETE FROM records
    WHERE tenant = OLD.tenant AND resource = 'assets' AND json_extract(document, '$.publication_id') = OLD.id;
    DELETE FROM records
    WHERE tenant = OLD.tenant AND resource = 'hard_copies' AND json_extract(document, '$.publication_id') = OLD.id;
    UPDATE records SET document = json_set(document, '$.publication_id', NULL)
    WHERE tenant = OLD.tenant AND resource = 'tasks' AND json_extract(document, '$.publication_id') = OLD.id;
    UPDATE records
    SET document = json_set(document, '$.publication_ids', json((
        SELECT json_group_array(value) FROM json_each(document, '$.publication_ids') WHERE value <> OLD.id
    )))
    WHERE tenant = OLD.tenant AND resource = 'collections'
    AND EXISTS (SELECT 1 FROM json_each(document, '$.publication_ids') WHERE value = OLD.id);
END;

CREATE TRIGGER user_leaves AFTER DELETE ON records WHEN OLD.resource = 'users' BEGIN
    UPDATE records SET document = json_set(document, '$.assignee_id', NULL)
    WHERE tenant = OLD.tenant AND resource = 'tasks' AND json_extract(document, '$.assignee_id') = OLD.id;
    UPDATE records SET document = json_set(document, '$.contributor', NULL)
    WHERE tenant = OLD.tenant AND resource = 'publications' AND json_extract(document, '$.contributor') = OLD.id;
    UPDATE records SET document = json_set(document, '$.ended', json('true'))
    WHERE tenant = OLD.tenant AND resource = 'grants' AND json_extract(document, '$.person') = OLD.id;
    DELETE FROM records
    WHERE tenant = OLD.tenant AND resource = 'sessions' AND json_extract(document, '$.person') = OLD.id;
END;

CREATE TRIGGER asset_leaves AFTER DELETE ON records WHEN OLD.resource = 'assets' BEGIN
    DELETE FROM records
    WHERE tenant = OLD.tenant AND resource = 'files'
    AND json_extract(document, '$.storage_key') COLLATE NOCASE = json_extract(OLD.document, '$.file.id');
END;

CREATE TRIGGER file_is_replaced AFTER UPDATE ON records
WHEN OLD.resource = 'assets' AND json_extract(OLD.document, '$.file.id') <> json_extract(NEW.document, '$.file.id') BEGIN
    DELETE FROM records
    WHERE tenant = OLD.tenant AND resource = 'files'
    AND json_extract(document, '$.storage_key') COLLATE NOCASE = json_extract(OLD.document, '$.file.id');
END;
